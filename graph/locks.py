"""Take turns on a thread: first come, first served within a process, and a lease between processes."""

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from longtable.base.errors import ThreadBusyError
from longtable.graph.leases import Lease

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.1
"""How long a process waits before it looks again whether another has let go."""
SETUP, SETUP_PAUSE_S = "longtable setup", 0.05
"""The lease of who creates the tables, and how long others wait before they ask for it again."""
Result = TypeVar("Result")
Owner = tuple[int, int]


@contextmanager
def setting_up(lease: Lease) -> Iterator[None]:
    """Let one process at a time create the tables. By asking again: one that waited within a server would block their indexes."""
    while not lease.take(SETUP):
        time.sleep(SETUP_PAUSE_S)
    try:
        yield
    finally:
        lease.release(SETUP)


class Line:
    """Who has a thread within this process, and who waits for it."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.waiting: deque[tuple[Future[None], Owner]] = deque()


class Turns:
    """The turns of all threads of one checkpointer: sync and async callers stand in one line."""

    def __init__(self, lease: Lease | None = None) -> None:
        self.lease = lease
        self.lines: dict[str, Line] = {}
        self.lock = threading.Lock()

    @contextmanager
    def turn(self, thread_id: str, *, wait: bool) -> Iterator[None]:
        """Have the thread alone within the block. Raises `ThreadBusyError` where it may not wait, or would wait for itself."""
        granted = self._enter(thread_id, (threading.get_ident(), 0), wait=wait)
        try:
            granted.result()
        except BaseException:
            self._give_up(thread_id, granted)
            raise
        try:
            self._take(thread_id, wait=wait)
            try:
                yield
            finally:
                if self.lease is not None:
                    self.lease.release(thread_id)
        finally:
            self._leave(thread_id)

    @asynccontextmanager
    async def aturn(self, thread_id: str, *, wait: bool) -> AsyncIterator[None]:
        """Have the thread alone within the block: see `turn`."""
        granted = self._enter(thread_id, (threading.get_ident(), id(asyncio.current_task())), wait=wait)
        try:
            if not granted.done():
                await asyncio.wrap_future(granted)
        except BaseException:
            self._give_up(thread_id, granted)
            raise
        try:
            await self._atake(thread_id, wait=wait)
            try:
                yield
            finally:
                if self.lease is not None:
                    await _whole(self.lease.release, thread_id)
        finally:
            self._leave(thread_id)

    def again(self, thread_id: str) -> None:
        """Wait for the lease of a thread that the caller has in this process, after another process took it over."""
        if self.lease is not None:
            self.lease.release(thread_id)
            self._take(thread_id, wait=True)

    async def aagain(self, thread_id: str) -> None:
        """Wait for the lease again: see `again`."""
        if self.lease is not None:
            await _whole(self.lease.release, thread_id)
            await self._atake(thread_id, wait=True)

    def _take(self, thread_id: str, *, wait: bool) -> None:
        for pause in pauses():
            if self.lease is None or self.lease.take(thread_id):
                return
            if not wait:
                raise ThreadBusyError(thread_id)
            time.sleep(pause)

    async def _atake(self, thread_id: str, *, wait: bool) -> None:
        if self.lease is None:
            return
        for pause in pauses():
            try:
                taken = await _whole(self.lease.take, thread_id)
            except asyncio.CancelledError:
                await _whole(self.lease.release, thread_id)  # nobody else in this process can have it: the line is ours
                raise
            if taken:
                return
            if not wait:
                raise ThreadBusyError(thread_id)
            await asyncio.sleep(pause)

    def mine(self, thread_id: str) -> bool:
        """Tell whether the caller itself, this thread or this task, has the thread."""
        try:
            task = id(asyncio.current_task())
        except RuntimeError:
            task = 0
        with self.lock:
            line = self.lines.get(thread_id)
            return line is not None and line.owner == (threading.get_ident(), task)

    def _enter(self, thread_id: str, owner: Owner, *, wait: bool) -> Future[None]:
        granted: Future[None] = Future()
        with self.lock:
            line = self.lines.get(thread_id)
            if line is None:
                self.lines[thread_id] = Line(owner)
                granted.set_result(None)
            elif not wait or line.owner == owner:  # a turn within a turn would wait for ever
                raise ThreadBusyError(thread_id)
            else:
                line.waiting.append((granted, owner))
        return granted

    def _leave(self, thread_id: str) -> None:
        with self.lock:
            line = self.lines[thread_id]
            while line.waiting:
                granted, owner = line.waiting.popleft()
                if granted.set_running_or_notify_cancel():
                    line.owner = owner
                    granted.set_result(None)
                    return
            del self.lines[thread_id]

    def _give_up(self, thread_id: str, granted: Future[None]) -> None:
        """Stand back; the turn may have come in this very moment."""
        if not granted.cancel() and not granted.cancelled():
            self._leave(thread_id)


def pauses() -> Iterator[float]:
    """Yield how long to wait before each new look."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(pause * 1.5, LONGEST_PAUSE_S)


async def _whole(call: Callable[[str], Result], thread_id: str) -> Result:
    """Run a quick call in a thread and wait for its end, also when this task is cancelled meanwhile."""
    done = asyncio.ensure_future(asyncio.to_thread(call, thread_id))
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


_turns: "weakref.WeakKeyDictionary[object, Turns]" = weakref.WeakKeyDictionary()
_turns_lock = threading.Lock()


def turns_of(checkpointer: object) -> Turns:
    """Return the turns of a checkpointer: its own (`open_persistence` gives it some that hold between processes), else this process's."""
    turns = getattr(checkpointer, "turns", None)
    if isinstance(turns, Turns):
        return turns
    with _turns_lock:
        return _turns.setdefault(checkpointer, Turns())
