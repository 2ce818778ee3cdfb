"""Leases on threads between processes. This module has those of a SQLite file, `graph/postgres.py` those of a server."""

import sqlite3
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from longtable.base.errors import PersistenceError

LEASE_SECONDS = 10.0
"""How long a process that was killed keeps its threads from others."""

TABLE = "CREATE TABLE IF NOT EXISTS longtable_leases (thread_id TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID"
HELD_BY_ANOTHER = "SELECT 1 FROM longtable_leases WHERE thread_id = ? AND holder <> ? AND until > ? AND until < ?"
# A row that ends later than a lease can was written before the clock was set back: it counts as lapsed.
TAKE = """INSERT INTO longtable_leases (thread_id, holder, until) VALUES (?1, ?2, ?3)
    ON CONFLICT (thread_id) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4 OR until >= ?5"""
RELEASE = "DELETE FROM longtable_leases WHERE thread_id = ? AND holder = ?"


class Lease(ABC):
    """The leases of one process. A thread of its own renews them, and takes back at once those that were lost.

    Each method is quick, and may be called from any thread.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval
        """Seconds between two renewals, while there are leases."""
        self.held: set[str] = set()
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.closed = False
        self.renewing: threading.Thread | None = None

    def take(self, thread_id: str) -> bool:
        """Take a thread's lease; return whether this process has it now."""
        with self.lock:
            if self.closed:  # one who waited in a thread must open no connection that nobody closes
                raise PersistenceError("the store of threads was closed while a turn waited for its thread: open it again")
            if not self._take(thread_id):
                return False
            self.held.add(thread_id)
            if self.renewing is None or not self.renewing.is_alive():
                self.renewing = threading.Thread(target=self._renew_all, name="longtable leases", daemon=True)
                self.renewing.start()
            self.changed.notify()
            return True

    def release(self, thread_id: str) -> None:
        """Release a thread's lease, if this process still has it."""
        with self.lock:
            self.held.discard(thread_id)
            self._release(thread_id)

    def close(self) -> None:
        """Release everything."""
        with self.lock:
            self.closed = True
            self.changed.notify()
        if self.renewing is not None:
            self.renewing.join()
        with self.lock:
            self._close()

    def _renew_all(self) -> None:
        with self.lock:
            while not self.closed:
                if not self.held:
                    self.changed.wait()
                elif not self.changed.wait_for(lambda: self.closed, self.interval):
                    self._renew()

    @abstractmethod
    def _take(self, thread_id: str) -> bool:
        """Take a lease, or take it again."""

    @abstractmethod
    def _release(self, thread_id: str) -> None:
        """Release a lease."""

    @abstractmethod
    def _renew(self) -> None:
        """Renew what is held and take back what was lost. An error is left to the next renewal."""

    @abstractmethod
    def _close(self) -> None:
        """Release what is held and close the connection."""


class SqliteLease(Lease):
    """A row for each lease in the SQLite file itself. After `seconds` without a renewal another process may take it."""

    def __init__(self, path: Path, *, seconds: float = LEASE_SECONDS, busy_ms: int, clock: Callable[[], float] = time.time) -> None:
        super().__init__(seconds / 3)
        self.path, self.seconds, self.busy_ms, self.clock = path, seconds, busy_ms, clock
        self.holder = uuid.uuid4().hex
        self.connection: sqlite3.Connection | None = None

    def _take(self, thread_id: str) -> bool:
        connection, now = self._open(), self.clock()
        latest = now + 2 * self.seconds
        # Most of those who wait only read: writing waits for the file's one writer.
        if connection.execute(HELD_BY_ANOTHER, (thread_id, self.holder, now, latest)).fetchone():
            return False
        taken = connection.execute(TAKE, (thread_id, self.holder, now + self.seconds, now, latest))
        return taken.rowcount == 1

    def _release(self, thread_id: str) -> None:
        if self.connection is not None:
            self.connection.execute(RELEASE, (thread_id, self.holder))

    def _renew(self) -> None:
        for thread_id in self.held:
            try:
                self._take(thread_id)
            except sqlite3.Error:  # locked for long, or for a moment unreadable
                return

    def _close(self) -> None:
        if self.connection is not None:
            for thread_id in self.held:
                self._release(thread_id)
            self.connection.close()
            self.connection = None

    def _open(self) -> sqlite3.Connection:
        if self.connection is None:
            self.connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self.connection.execute(f"PRAGMA busy_timeout={self.busy_ms}")
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute(TABLE)
        return self.connection
