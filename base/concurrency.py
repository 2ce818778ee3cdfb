"""Use one implementation for callers that block and for callers that await. Also bounded caches
that OS threads can share, and a lock between processes.

`a_from` makes an async version (a twin) of a method that blocks. The twin runs the method in our
own bounded pool of threads. Code that streams, waits or can be cancelled is written as a coroutine
that waits only through its `Execution`. `await` runs such a coroutine on the event loop; `complete`
runs it without an event loop.

LangGraph runs sync nodes in the event loop's default executor. Twins do not use that executor,
because six waiting calls in it kept a turn's nodes from running (8.2 s instead of 0.3).
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

WORKERS = 32
BACKGROUND = "longtable prepare"
"""Name of the OS threads in which work continues after a turn."""
Params = ParamSpec("Params")
Result = TypeVar("Result")


async def in_thread(
    call: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> Result:
    """Run a blocking call in an OS thread and return its result.

    If the awaiting task is cancelled, wait for the call to end all the same, so that the call
    writes nothing after the task has moved on.
    """
    job = _submitted(partial(contextvars.copy_context().run, partial(call, *args, **kwargs)))
    done = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if not job.cancel():
            while not done.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([done])
            done.exception()
        raise


def a_from(blocking: Callable[Params, Result]) -> Callable[Params, Coroutine[Any, Any, Result]]:
    """Return an async version of a blocking function or method: `ahistory = a_from(history)`."""

    @wraps(blocking)
    async def twin(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        return await in_thread(blocking, *args, **kwargs)

    return twin


@dataclass(frozen=True)
class Execution:
    """The way in which a coroutine waits: on the event loop if `on_loop`, else by blocking."""

    on_loop: bool

    async def call(
        self, blocking: Callable[[], Result], awaited: Callable[[], Awaitable[Result]] | None = None
    ) -> Result:
        """Make a call and return its result. On the event loop, await `awaited`; without it, run
        `blocking` in a thread of the default executor. Otherwise run `blocking` directly.
        """
        return (
            await (awaited() if awaited else asyncio.to_thread(blocking))
            if self.on_loop
            else blocking()
        )


SYNC = Execution(on_loop=False)
ASYNC = Execution(on_loop=True)


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that waits only through `SYNC`, and return its result. Such a coroutine never
    suspends. Raises `RuntimeError` if it does.
    """
    try:
        work.send(None)
    except StopIteration as stop:
        return cast("Result", stop.value)
    raise RuntimeError("work without an event loop must wait by Execution.call")


def in_event_loop() -> bool:
    """Return whether an event loop runs in this OS thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  # a fork has no threads of its parent
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="longtable")


def _submitted(work: Callable[[], Result]) -> Future[Result]:
    try:
        return _pool(os.getpid()).submit(work)
    except RuntimeError:  # the pool ended between the two steps
        return _pool(os.getpid()).submit(work)


def in_daemon(work: Callable[[], Result], name: str) -> Future[Result]:
    """Run a blocking call in a new daemon thread. Whoever waits for the result may give up: a call
    that hangs for ever holds up neither its caller nor the end of the process.
    """
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()  # the thread cannot be stopped

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised again where the result is waited for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name=name).start()
    return future


def end_idle_threads() -> None:
    """End the pool's threads, each after its present work. The next call starts new threads."""
    pool = _pool(os.getpid())
    _pool.cache_clear()
    pool.shutdown(wait=False)


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """A cache of at most `most` values by key. The values put first are dropped first. It is safe
    to share between OS threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[Key, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, None if it is not kept."""
        with self._lock:
            return self._made.get(key)

    def pop(self, key: Key) -> Value | None:
        """Remove a key and return its value, None if the key is not kept."""
        with self._lock:
            return self._made.pop(key, None)

    def put(self, key: Key, value: Value) -> Value:
        """Keep a value under a key, in place of an earlier value, and return the value."""
        with self._lock:
            self._made.pop(key, None)
            self._made[key] = value
            while len(self._made) > self._most:
                del self._made[next(iter(self._made))]
        return value


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is made if it is not there. Other processes and
    threads wait. The system releases the lock if the process is killed.

    Raises `OSError` if the file cannot be opened, `ImportError` on a system without `fcntl`.
    """
    import fcntl  # here: a system without it can do all that needs no lock

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
