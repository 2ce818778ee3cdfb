"""Locks on conversation threads. Within a process, callers get a thread in the order in which they
came; between processes, a lease decides.

Locks give order, not safety. Safety comes from the saver guard (`store/saver_guard.py`): it refuses
the writes of a process that lost its lease or never asked for a lease. Leases in a SQLite file are
in `store/leases.py`, leases in a PostgreSQL server in `store/postgres/advisory_leases.py`.
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
"""The longest pause before a process asks again for a lease that another process has. Pauses grow
from `FIRST_PAUSE_S` to this.
"""
Result = TypeVar("Result")
Owner = tuple[int, int]
"""A caller: the ids of its OS thread and of its asyncio task (0 without a task). For an OS thread
that has not started yet: 0 and a number of its own.
"""


# -- work that goes on after a turn ---------------------------------------------------------------

WAIT_SECONDS = 2.0
"""How many seconds the closing of a store, or the end of the process, waits for work that goes on
after a turn.
"""
KEPT_JOBS = 1_024


class Background:
    """Background work for a conversation thread. It runs in a separate OS thread and continues
    after the turn has ended. Once `dropped` is true, it starts no further write.
    """

    def __init__(self, locks: "ThreadLocks") -> None:
        self.locks = locks
        self.events: list[Event] = []
        self.done = threading.Event()
        self.dropped = False


_running: set[Background] = set()


@atexit.register
def wait_or_drop(locks: "ThreadLocks | None" = None) -> None:
    """Wait at most `WAIT_SECONDS` for background work, then drop the work that is not done. `locks`
    limits this to the work of one checkpointer.
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
        """Return all owners that a new caller would have to wait for."""
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
        """Hold the lock on a conversation thread within the block. `place`: the caller's place in
        the queue, if it has one already.

        Raises `ThreadBusyError` if the thread is in use and the caller may not wait (`wait`), or
        would wait for itself. Work that goes on after a turn is waited for even with `wait=False`.
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
        """Hold the lock on a conversation thread within the block; see `alone`."""
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
        """Run `work` in a separate OS thread. It begins once the caller has released the
        conversation thread, and before any later caller gets it. Nobody waits for the work, so
        `on_error` is called with an exception that the work raises.
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
        """Wait at most `most` seconds for a thread's work that goes on after a turn."""
        job = self.jobs.get(thread_id)
        end = time.monotonic() + most
        for seconds in pauses():
            if job is None or job.done.is_set() or job.dropped or time.monotonic() > end:
                return
            await pause(seconds, how)

    def events_of(self, thread_id: str) -> list[Event]:
        """Return the events of work that went on after a turn, if the work is done. They are
        returned only once; later calls return an empty list.
        """
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
        """Take the lease on a thread again, after another process took the lease over although the
        caller has the lock. Wait for the lease if necessary.
        """
        await self._release(thread_id, how)
        await self._take(thread_id, how, wait=True)

    def is_mine(self, thread_id: str, *, blocks: bool) -> bool:
        """Return whether the thread's present owner cannot go on before the caller returns. If the
        caller waited for such an owner, the wait would never end.

        `blocks`: True if the caller's wait stops the event loop of its OS thread.
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
        """Leave the queue. If the caller has become the thread's owner meanwhile, let the next
        caller have the thread.
        """
        if not granted.cancel() and not granted.cancelled():
            self._leave(thread_id)


def _caller() -> Owner:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this OS thread
        task = None
    return threading.get_ident(), 0 if task is None else id(task)


def _waits_for(owner: Owner, caller: Owner, *, blocks: bool) -> bool:
    """Return whether an owner cannot go on before the caller returns, because the owner is the
    caller itself, or because the caller's wait stops the owner.

    A caller that blocks its OS thread (`blocks`) stops all tasks of that OS thread. A task that
    awaits stops only itself and the code that runs its event loop.
    """
    return owner[0] == caller[0] and (blocks or owner[1] in {caller[1], 0})


def pauses() -> Iterator[float]:
    """Yield the seconds to wait before each new attempt, which grow from pause to pause."""
    seconds = FIRST_PAUSE_S
    while True:
        yield seconds
        seconds = min(seconds * 1.5, LONGEST_PAUSE_S)


async def pause(seconds: float, how: Execution) -> None:
    """Wait for some seconds, in the way that `how` says."""
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
    """Return the locks of a checkpointer. A checkpointer of `open_persistence` has its own locks,
    which also work between processes if it keeps threads in a file or server. The locks of any
    other checkpointer work within this process only.
    """
    locks = getattr(checkpointer, "locks", None)
    if isinstance(locks, ThreadLocks):
        return locks
    with _locks_lock:
        return _locks.setdefault(checkpointer, ThreadLocks())
