"""Leases on threads in the SQLite file itself: a row for each thread that a process has, renewed while it lives."""

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

LEASE_SECONDS = 10.0
"""How long a process that was killed keeps its threads from others."""

TABLE = "CREATE TABLE IF NOT EXISTS longtable_leases (thread_id TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID"
LOOK = "SELECT 1 FROM longtable_leases WHERE thread_id = ? AND holder <> ? AND until > ? AND until < ?"
# A row that ends later than a lease can was written before the clock was set back: it holds no longer than any other.
TAKE = """INSERT INTO longtable_leases (thread_id, holder, until) VALUES (?1, ?2, ?3)
    ON CONFLICT (thread_id) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4 OR until >= ?5"""
RENEW = "UPDATE longtable_leases SET until = ? WHERE holder = ?"
RELEASE = "DELETE FROM longtable_leases WHERE thread_id = ? AND holder = ?"


class SqliteLease:
    """The leases of one process in one file. `seconds`: after this time without a sign of life another may take over."""

    def __init__(self, path: Path, *, seconds: float = LEASE_SECONDS, busy_ms: int, clock: Callable[[], float] = time.time) -> None:
        self.path, self.seconds, self.busy_ms, self.clock = path, seconds, busy_ms, clock
        self.holder = uuid.uuid4().hex
        self.held: set[str] = set()
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.connection: sqlite3.Connection | None = None
        self.renewing: threading.Thread | None = None

    def take(self, thread_id: str) -> bool:
        """Take the thread, or tell that another process has it."""
        with self.lock:
            connection, now = self._open(), self.clock()
            end, latest = now + self.seconds, now + 2 * self.seconds
            # Most of those who wait only read: writing waits for the file's one writer.
            if connection.execute(LOOK, (thread_id, self.holder, now, latest)).fetchone():
                return False
            taken = connection.execute(TAKE, (thread_id, self.holder, end, now, latest)).rowcount == 1
            if taken:
                self.held.add(thread_id)
            return taken

    def release(self, thread_id: str) -> None:
        """Let go of the thread, if it is still this process's."""
        with self.lock:
            self.held.discard(thread_id)
            if self.connection is not None:
                self.connection.execute(RELEASE, (thread_id, self.holder))

    def close(self) -> None:
        """Let go of everything."""
        self.over.set()
        if self.renewing is not None:
            self.renewing.join()
        with self.lock:
            if self.connection is not None:
                for thread_id in self.held:
                    self.connection.execute(RELEASE, (thread_id, self.holder))
                self.connection.close()
                self.connection = None

    def _open(self) -> sqlite3.Connection:
        if self.connection is None:
            self.connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self.connection.execute(f"PRAGMA busy_timeout={self.busy_ms}")
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute(TABLE)
            self.renewing = threading.Thread(target=self._renew, name="longtable leases", daemon=True)
            self.renewing.start()
        return self.connection

    def _renew(self) -> None:
        while not self.over.wait(self.seconds / 3):
            with self.lock:
                if self.held and self.connection is not None:
                    try:
                        self.connection.execute(RENEW, (self.clock() + self.seconds, self.holder))
                    except sqlite3.OperationalError:
                        continue  # locked for long: tried again; a lease that was lost meanwhile the saver guard notices
