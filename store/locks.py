"""Locks on threads: first come, first served within a process, and a lease between processes.

They give order, not safety. Safety comes from the saver guard (`store/saver_guard.py`): it refuses
the writes of a process that lost its lease or never asked for one. The leases of a SQLite file are
in `store/leases.py`, those of a server in `store/postgres_store.py`.
"""

import asyncio
import atexit
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TypeVar

from longtable.base.concurrency import (
    BACKGROUND,
    SYNC,
    BoundedCache,
    Execution,
    complete,
    in_thread,
)
from longtable.base.errors import ThreadBusyError
from longtable.base.events import Event
from longtable.store.leases import Lease

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.1
"""The longest time that a process waits before it asks again for a lease that another process
has.
"""
Result = TypeVar("Result")
Owner = tuple[int, int]
"""An OS thread and an asyncio task (0 without a task). For a thread that has not started yet, 0 and
a number.
"""


# -- work that goes on after a turn ---------------------------------------------------------------

WAIT_SECONDS = 2.0
"""How long the closing of a store and the end of a process wait for such work."""
KEPT_JOBS = 1_024


class Background:
    """Work on a conversation thread after a turn, in an OS thread of its own. Once `dropped` is
    set, it starts no further write.
    """

    def __init__(self, locks: "ThreadLocks") -> None:
        self.locks = locks
        self.events: list[Event] = []
        self.done = threading.Event()
        self.dropped = False


_running: set[Background] = set()


@atexit.register
def wait_or_drop(locks: "ThreadLocks | None" = None) -> None:
    """Wait at most `WAIT_SECONDS` for the background work of these locks, or of all locks; then
    drop the work that is left.
    """
    end = time.monotonic() + WAIT_SECONDS
    under_way = list(_running)
    for job in under_way:
        if locks not in (None, job.locks):
            continue
        if not job.done.wait(max(0.0, end - time.monotonic())):
            job.dropped = True
            _running.discard(job)


# -- locks within a process, with a lease ---------------------------------------------------------


class Queue:
    """The owner of a thread within this process, and the callers that wait for it."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.waiting: deque[tuple[Future[None], Owner]] = deque()

    def owners_before(self) -> list[Owner]:
        """Return all owners that get the thread before the next caller."""
        return [self.owner, *(owner for granted, owner in self.waiting if not granted.cancelled())]


class ThreadLocks:
    """The locks on all threads of one checkpointer. Sync and async callers wait in one queue."""

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease
        self.queues: dict[str, Queue] = {}
        self.lock = threading.Lock()
        self.jobs: BoundedCache[str, Background] = BoundedCache(KEPT_JOBS)

    @asynccontextmanager
    async def alone(
        self, thread_id: str, how: Execution, *, wait: bool, place: "Future[None] | None" = None
    ) -> AsyncIterator[None]:
        """Hold the thread's lock within the block. `place`: the caller's place in the queue, if it
        has one.

        Raises `ThreadBusyError` if the caller may not wait, or would wait for itself. It always
        waits for work that goes on after a turn.
        """
        if not wait:
            await self.wait_for_job(thread_id, how)
        granted = place or self._enter(thread_id, _caller(), wait=wait, blocks=not how.on_loop)
        try:
            if not granted.done():
                await how.call(granted.result, lambda: asyncio.wrap_future(granted))
        except BaseException:
            self._give_up(thread_id, granted)
            raise
        try:
            await self._take(thread_id, how, wait=wait)
            try:
                yield
            finally:
                await self._release(thread_id, how)
        finally:
            self._leave(thread_id)

    @contextmanager
    def locked(
        self, thread_id: str, *, wait: bool, place: "Future[None] | None" = None
    ) -> Iterator[None]:
        """Hold the thread's lock within the block; see `alone`."""
        stack = AsyncExitStack()
        complete(stack.enter_async_context(self.alone(thread_id, SYNC, wait=wait, place=place)))
        try:
            yield
        finally:
            complete(stack.aclose())

    def go_on(
        self,
        thread_id: str,
        work: Callable[[Background], None],
        *,
        on_error: Callable[[Exception], None],
    ) -> None:
        """Run `work` in an OS thread of its own once the caller has released the conversation
        thread, before any later caller. Nobody waits for the work, so `on_error` gets the
        exceptions that it raises.
        """
        job = Background(self)
        place = self._enter(thread_id, (0, id(job)), wait=True, blocks=False)
        _running.add(self.jobs.put(thread_id, job))
        try:
            threading.Thread(
                target=self._go_on,
                args=(thread_id, job, place, work, on_error),
                daemon=True,
                name=BACKGROUND,
            ).start()
        except RuntimeError:  # no further thread can be started
            self._give_up(thread_id, place)
            self._finish(job)

    async def wait_for_job(self, thread_id: str, how: Execution, *, most: float = math.inf) -> None:
        """Wait at most `most` seconds for work that goes on after a turn."""
        job = self.jobs.get(thread_id)
        end = time.monotonic() + most
        for seconds in pauses():
            if job is None or job.done.is_set() or job.dropped or time.monotonic() > end:
                return
            await pause(seconds, how)

    def events_of(self, thread_id: str) -> list[Event]:
        """Return, once, the events of work that went on after a turn and is done."""
        job = self.jobs.get(thread_id)
        if job is None or not job.done.is_set():
            return []
        self.jobs.pop(thread_id)
        return job.events

    def _go_on(
        self,
        thread_id: str,
        job: Background,
        place: "Future[None]",
        work: Callable[[Background], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        try:
            with self.locked(thread_id, wait=True, place=place):
                work(job)
        except Exception as error:
            # The thread stands as its last turn left it.
            if not job.dropped:
                on_error(error)
        finally:
            self._finish(job)

    def _finish(self, job: Background) -> None:
        _running.discard(job)
        job.done.set()

    async def relock(self, thread_id: str, how: Execution) -> None:
        """Take the lease again of a thread that the caller has locked, after another process took
        the lease over; wait if necessary.
        """
        await self._release(thread_id, how)
        await self._take(thread_id, how, wait=True)

    def is_mine(self, thread_id: str, *, blocks: bool) -> bool:
        """Return whether the thread's present owner can only go on after the caller, so that a wait
        would never end.

        `blocks`: the caller waits without letting the event loop of its OS thread run.
        """
        with self.lock:
            queue = self.queues.get(thread_id)
            return queue is not None and _waits_for(queue.owner, _caller(), blocks=blocks)

    async def _take(self, thread_id: str, how: Execution, *, wait: bool) -> None:
        if (lease := self.lease) is None:
            return
        for seconds in pauses():
            try:
                if await how.call(
                    partial(lease.take, thread_id), lambda: in_thread(lease.take, thread_id)
                ):
                    return
            except asyncio.CancelledError:
                # Taken or not: nobody else in this process has the thread.
                await self._release(thread_id, how)
                raise
            if not wait:
                raise ThreadBusyError(thread_id)
            await pause(seconds, how)

    async def _release(self, thread_id: str, how: Execution) -> None:
        if (lease := self.lease) is not None:
            await how.call(
                partial(lease.release, thread_id), lambda: _run_to_end(lease.release, thread_id)
            )

    def _enter(self, thread_id: str, owner: Owner, *, wait: bool, blocks: bool) -> Future[None]:
        granted: Future[None] = Future()
        with self.lock:
            queue = self.queues.get(thread_id)
            if queue is None:
                self.queues[thread_id] = Queue(owner)
                granted.set_result(None)
            elif not wait or any(
                _waits_for(other, owner, blocks=blocks) for other in queue.owners_before()
            ):
                raise ThreadBusyError(thread_id)  # a turn within a turn would wait for ever
            else:
                queue.waiting.append((granted, owner))
        return granted

    def _leave(self, thread_id: str) -> None:
        with self.lock:
            queue = self.queues[thread_id]
            while queue.waiting:
                granted, owner = queue.waiting.popleft()
                if granted.set_running_or_notify_cancel():
                    queue.owner = owner
                    granted.set_result(None)
                    return
            del self.queues[thread_id]

    def _give_up(self, thread_id: str, granted: Future[None]) -> None:
        """Leave the queue. If the caller has just become the thread's owner, release the thread."""
        if not granted.cancel() and not granted.cancelled():
            self._leave(thread_id)


def _caller() -> Owner:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this OS thread
        task = None
    return threading.get_ident(), 0 if task is None else id(task)


def _waits_for(owner: Owner, caller: Owner, *, blocks: bool) -> bool:
    """Return whether an owner can only go on after the caller has returned: it is the caller
    itself, or the caller blocks it.

    A caller that blocks its OS thread stops all tasks of that thread. A task stops only itself and
    the code that runs its event loop.
    """
    return owner[0] == caller[0] and (blocks or owner[1] in {caller[1], 0})


def pauses() -> Iterator[float]:
    """Yield the seconds to wait before each new attempt."""
    seconds = FIRST_PAUSE_S
    while True:
        yield seconds
        seconds = min(seconds * 1.5, LONGEST_PAUSE_S)


async def pause(seconds: float, how: Execution) -> None:
    """Do nothing for some seconds."""
    await how.call(partial(time.sleep, seconds), partial(asyncio.sleep, seconds))


async def _run_to_end(call: Callable[[str], Result], thread_id: str) -> Result:
    """Run a quick call in an OS thread, and wait for its end even if this task is cancelled
    meanwhile.
    """
    done = asyncio.ensure_future(in_thread(call, thread_id))
    cancelled = False
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        done.exception()
        raise asyncio.CancelledError
    return done.result()


_locks: "weakref.WeakKeyDictionary[object, ThreadLocks]" = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()


def locks_of(checkpointer: object) -> ThreadLocks:
    """Return a checkpointer's locks. If it came from `open_persistence`, these are its own and work
    between processes, else they work within this process only.
    """
    locks = getattr(checkpointer, "locks", None)
    if isinstance(locks, ThreadLocks):
        return locks
    with _locks_lock:
        return _locks.setdefault(checkpointer, ThreadLocks())
