"""Connections to a server: kept in a pool, lent to one query at a time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from longtable.base.errors import ConnectionWaitError, DatabaseUnavailableError
from longtable.tools.workers.runner import Stop, StoppedError

MAX_CONNECTIONS = 6
LOOK_EVERY_SECONDS = 0.05
CANCELS_APART_SECONDS = 0.2

C = TypeVar("C")


class Driver(Protocol[C]):
    """What the pool asks of a server's driver."""

    def connect(self) -> C:
        """Open a connection. Raises `DatabaseUnavailableError`."""
        ...

    def cancel(self, connection: C, /) -> None:
        """Ask the server to stop the statement that runs on a connection. Raises no error."""
        ...

    def is_idle(self, connection: C, /) -> bool:
        """Return whether a connection can be lent again: open, and in no transaction."""
        ...

    def close(self, connection: C, /) -> None:
        """Close a connection, at once even if an answer is unread."""
        ...


class Link(Generic[C]):
    """One connection on loan from the pool, for one query at a time."""

    def __init__(self, driver: Driver[C], connection: C, *, fresh: bool) -> None:
        self.connection = connection
        self.fresh = fresh
        self.interrupted = False
        self._driver = driver
        self._last = 0.0

    def interrupt(self) -> None:
        """Ask the server to stop the running statement. However often this is called, the server is
        asked at most five times a second.
        """
        self.interrupted = True
        if time.monotonic() - self._last < CANCELS_APART_SECONDS:
            return
        self._last = time.monotonic()
        self._driver.cancel(self.connection)


class Pool(Generic[C]):
    """The pool of connections. Threads may share it."""

    def __init__(
        self, driver: Driver[C], *, wait_seconds: float, size: int = MAX_CONNECTIONS
    ) -> None:
        self._driver = driver
        self._wait_seconds = wait_seconds
        self._size = size
        self._changed = threading.Condition()
        self._idle: list[C] = []
        self._out = 0
        self._closed = False

    @contextmanager
    def link(self, stop: Stop) -> Iterator[Link[C]]:
        """Lend a connection. When it comes back, it is closed rather than used again if it was
        interrupted or is in an unknown state.
        """
        link = self._take(stop)
        keep = False
        try:
            yield link
            keep = not link.interrupted
        finally:
            self._give_back(link.connection, keep=keep)

    def close(self) -> None:
        """Close the idle connections. A connection that is at work is closed when it comes back."""
        with self._changed:
            self._closed = True
            idle = self._idle
            self._idle = []
            self._changed.notify_all()
        for connection in idle:
            self._driver.close(connection)

    def _take(self, stop: Stop) -> Link[C]:
        began = time.monotonic()
        until = min(began + self._wait_seconds, stop.deadline)
        with self._changed:
            while not self._idle and self._out >= self._size and not self._closed:
                now = time.monotonic()
                if now >= until:
                    raise ConnectionWaitError(waited_s=now - began, connections=self._size)
                if stop():
                    raise StoppedError
                self._changed.wait(min(until - now, LOOK_EVERY_SECONDS))
            if self._closed:
                raise DatabaseUnavailableError("the database was closed: open it again")
            self._out += 1
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            return Link(self._driver, connection, fresh=False)
        try:
            return Link(self._driver, self._driver.connect(), fresh=True)
        except BaseException:
            self._freed()
            raise

    def replace(self, link: Link[C]) -> None:
        """Replace the link's connection, which the server has closed, with a new connection."""
        self._driver.close(link.connection)
        link.connection = self._driver.connect()
        link.fresh = True

    def _give_back(self, connection: C, *, keep: bool) -> None:
        try:
            keep = keep and self._driver.is_idle(connection)
            with self._changed:
                keep = keep and not self._closed
                if keep:
                    self._idle.append(connection)
            if not keep:
                self._driver.close(connection)
        finally:
            self._freed()

    def _freed(self) -> None:
        with self._changed:
            self._out -= 1
            self._changed.notify()
