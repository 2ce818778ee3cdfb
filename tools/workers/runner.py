"""Run one query in a thread of its own, so that time limit and cancel work whatever the engine
does.

The engines look at their stop flag only between steps. A single call on a huge value can run for
minutes without a step: in DuckDB, levenshtein of two strings of 200,000 characters ran for 33 s
after `interrupt()`. So the caller waits in its own thread, and leaves the query behind after a
short grace period.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from longtable.base.errors import DatabaseUnavailableError, QueryCancelledError, QueryTimeoutError

T = TypeVar("T")

GRACE_SECONDS = 0.5
INTERRUPT_EVERY_SECONDS = 0.02
MAX_LEFT_BEHIND = 8


class StoppedError(Exception):
    """The engine stopped the query. This error is raised in the engine's thread and never leaves
    this package.
    """


class Interruptible(Protocol):
    """Something that another thread can stop."""

    def interrupt(self) -> None: ...


class Cancel:
    """A switch that stops the query it was passed to. Threads may share it. Once it has been used,
    it cannot be reset.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Return whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop the query now. A second call does nothing."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks = self._callbacks
            self._callbacks = []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when `cancel` is called, or at once if it has been called already. Return
        a function that removes the callback.
        """
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


class Stop:
    """What a running query checks to know whether to stop: a flag that is set from outside, and a
    deadline.
    """

    def __init__(self, *, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.flag = threading.Event()
        self._lock = threading.Lock()
        self._session: Interruptible | None = None

    @property
    def left(self) -> float:
        """Return the seconds until the deadline, 0 when it has passed."""
        return max(0.0, self.deadline - time.monotonic())

    def __call__(self) -> bool:
        return self.flag.is_set() or time.monotonic() >= self.deadline

    @contextmanager
    def watch(self, session: Interruptible) -> Iterator[None]:
        """Interrupt this session if the query is stopped during the block. After the block it is
        not interrupted, because the session's next query belongs to another caller.
        """
        self._name(session)
        try:
            yield
        finally:
            self._name(None)

    def _name(self, session: Interruptible | None) -> None:
        with self._lock:
            self._session = session

    def interrupt(self) -> None:
        """Set the flag, and interrupt the session if there is one."""
        self.flag.set()
        with self._lock:
            if self._session is not None:
                self._session.interrupt()


def _in_daemon(work: Callable[[], T]) -> Future[T]:
    """Run a function in a daemon thread. Unlike a thread of an executor, it does not delay the end
    of the interpreter.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="longtable-query", daemon=True).start()
    return future


class Runner:
    """Runs work in a separate thread, with a deadline and a cancel. It counts the queries that did
    not stop and were left behind.
    """

    def __init__(self) -> None:
        self._left_behind: list[Future[Any]] = []
        self._running: set[Cancel] = set()

    def run(self, work: Callable[[Stop], T], *, seconds: float, cancel: Cancel | None = None) -> T:
        """Return what `work` returns. Raises `QueryTimeoutError` or `QueryCancelledError` if the
        work was stopped, `DatabaseUnavailableError` if too many stopped queries are still running.

        `work` must enter `stop.watch(session)` as soon as it has a session.
        """
        cancel = cancel or Cancel()
        if cancel.cancelled:
            raise QueryCancelledError
        self._left_behind = [job for job in self._left_behind if not job.done()]
        if len(self._left_behind) >= MAX_LEFT_BEHIND:
            raise DatabaseUnavailableError(
                f"{MAX_LEFT_BEHIND} stopped queries have not ended yet: wait until they have"
            )
        wake = threading.Event()
        stop = Stop(seconds=seconds)
        forget = cancel.on_cancel(wake.set)
        self._running.add(cancel)
        job = _in_daemon(partial(work, stop))
        job.add_done_callback(lambda _: wake.set())
        try:
            wake.wait(seconds)
            if not job.done():
                self._stop(job, stop)
            if cancel.cancelled:
                raise QueryCancelledError
            if not job.done():
                raise QueryTimeoutError(limit_s=seconds)
            return job.result()
        except StoppedError:
            raise QueryTimeoutError(limit_s=seconds) from None
        except BaseException:
            # Ctrl-C in the waiting thread must not leave the query running.
            if not job.done():
                stop.interrupt()
            raise
        finally:
            forget()
            self._running.discard(cancel)

    def cancel_all(self) -> None:
        """Cancel all running work."""
        for cancel in list(self._running):
            cancel.cancel()

    def _stop(self, job: Future[Any], stop: Stop) -> None:
        """Interrupt the job again and again for a short time, because an interrupt before the query
        begins is lost. If it still runs then, count it as left behind.
        """
        until = time.monotonic() + GRACE_SECONDS
        while not job.done() and time.monotonic() < until:
            stop.interrupt()
            time.sleep(INTERRUPT_EVERY_SECONDS)
        if not job.done():
            self._left_behind.append(job)
