"""Leases on threads between processes, in the threads' SQLite file."""

import os
import sqlite3
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from longtable.base.errors import PersistenceError

LEASE_SECONDS = 10.0
"""How long a killed process still keeps other processes off its threads."""

TABLE = (
    "CREATE TABLE IF NOT EXISTS longtable_leases (thread_id TEXT PRIMARY KEY, holder TEXT NOT NULL,"
    " until REAL NOT NULL) WITHOUT ROWID"
)

HELD_BY_ANOTHER = (
    "SELECT holder, until FROM longtable_leases WHERE thread_id = ? AND holder <> ? AND until > ?"
)

TAKE = """INSERT INTO longtable_leases (thread_id, holder, until) VALUES (?1, ?2, ?3)
    ON CONFLICT (thread_id) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4 OR holder = ?5"""

RELEASE = "DELETE FROM longtable_leases WHERE thread_id = ? AND holder = ?"


def process_name(pid: int) -> str:
    """Return a name that no other process has: it consists of the ids of the machine's boot and of
    the container, the process number and the start time. It is "ended" for a zombie, and "" on
    systems other than Linux.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        container = Path("/proc/self/ns/pid").readlink()
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if state in "ZX" else f"{boot} {container} {pid} {fields[18]}"


def has_ended(process: str) -> bool:
    """Return whether the process with this name has certainly ended. This can be told only if it
    ran on this machine: its number is then free, or belongs to another process by now.
    """
    *place, pid, _ = [*process.split(" "), "", ""][:4]
    if not pid.isdecimal() or place != process_name(os.getpid()).split(" ")[:2]:
        return False
    try:
        os.kill(int(pid), 0)
    except OSError as error:  # of another user's process nothing more can be read
        return isinstance(error, ProcessLookupError)
    return process_name(int(pid)) not in ("", process)


class Lease(ABC):
    """The leases of one process on conversation threads. An OS thread renews the leases, and takes
    lost leases back as soon as it can.

    Each method is quick, and may be called from any OS thread.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval
        """Seconds between two renewals while any lease is held."""
        self.held: set[str] = set()
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.closed = False
        self.renewing: threading.Thread | None = None

    def take(self, thread_id: str) -> bool:
        """Try to take the lease on a thread. Return whether this process has the lease now. Raises
        `PersistenceError` after `close`.
        """
        with self.lock:
            if self.closed:
                # A turn that waited in a thread must not open a connection that nobody closes.
                raise PersistenceError(CLOSED)
            if not self._take(thread_id):
                return False
            self.held.add(thread_id)
            if self.renewing is None or not self.renewing.is_alive():
                self.renewing = threading.Thread(
                    target=self._renew_all, name="longtable leases", daemon=True
                )
                self.renewing.start()
            self.changed.notify()
            return True

    def release(self, thread_id: str) -> None:
        """Release the lease on a thread, if this process still has it."""
        with self.lock:
            self.held.discard(thread_id)
            self._release(thread_id)

    def close(self) -> None:
        """Release all leases, and end the OS thread that renews them."""
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
        """Take a lease or renew it. Return whether this process has it now."""

    @abstractmethod
    def _release(self, thread_id: str) -> None:
        """Release a lease."""

    @abstractmethod
    def _renew(self) -> None:
        """Renew the leases in `held`, and take back lost ones. After an error, the next renewal
        tries again.
        """

    @abstractmethod
    def _close(self) -> None:
        """Release the leases in `held`, and close the connection."""


class SqliteLease(Lease):
    """Leases as rows of a table in the SQLite file itself.

    If the holder has not renewed a lease for `seconds` (the holder's value counts), another process
    may take it. It may take the lease at once if the holder ran on the same machine and has ended.
    """

    def __init__(
        self,
        path: Path,
        *,
        seconds: float = LEASE_SECONDS,
        busy_ms: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(seconds / 3)
        self.path = path
        self.seconds = seconds
        self.busy_ms = busy_ms
        self.clock = clock
        self.holder = f"{uuid.uuid4().hex} {seconds} {process_name(os.getpid())}"
        self.connection: sqlite3.Connection | None = None

    def _take(self, thread_id: str) -> bool:
        connection = self._open()
        now = self.clock()
        # Read first: a write would wait for the file's one writer, and most callers find the lease
        # held.
        other, until = connection.execute(
            HELD_BY_ANOTHER, (thread_id, self.holder, now)
        ).fetchone() or ("", now)
        if other:
            # Rows of earlier versions hold the id alone.
            _, seconds, process = [*other.split(" ", 2), self.seconds, ""][:3]
            # A row that ends later than its lease can was written before the clock was set back: it
            # counts as lapsed.
            if until < now + 2 * float(seconds) and not has_ended(process):
                return False
        return (
            connection.execute(
                TAKE, (thread_id, self.holder, now + self.seconds, now, other)
            ).rowcount
            == 1
        )

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
            self.connection = sqlite3.connect(
                self.path, check_same_thread=False, isolation_level=None
            )
            self.connection.execute(f"PRAGMA busy_timeout={self.busy_ms}")
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute(TABLE)
        return self.connection


GRACE_SECONDS = 0.2
"""How long a turn that has its answer still waits for background work. If the work ends within this
time, the same turn reports its events.
"""


@contextmanager
def setup_lease(lease: Lease) -> Iterator[None]:
    """Let only one process at a time create the tables, within the block. The function asks for the
    lease repeatedly, because a wait inside the database server would block the creation of indexes.
    """
    while not lease.take(SETUP):
        time.sleep(SETUP_PAUSE_S)
    try:
        yield
    finally:
        lease.release(SETUP)


SETUP = "longtable setup"

SETUP_PAUSE_S = 0.05
"""How long a process waits before it asks again for the lease `SETUP`, while another process
creates the tables.
"""

CLOSED = "the conversation store was closed: open it again"
