"""Where threads live: checkpointer and store in one place."""

import asyncio
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from longtable.base.concurrency import a_from, end_idle_threads, in_thread
from longtable.base.errors import AWAITED, ConfigError, MissingExtraError, PersistenceError
from longtable.base.redaction import redacted
from longtable.base.url import parse_url
from longtable.store.damage import item_row, item_value, text_factory
from longtable.store.encryption import (
    SQLITE_TABLES,
    EncryptedStore,
    check_key,
    sqlite_serializer,
)
from longtable.store.leases import CLOSED, LEASE_SECONDS, SqliteLease, setup_lease
from longtable.store.loading import LoadingSaver, MessageSerializer
from longtable.store.locks import ThreadLocks, wait_or_drop
from longtable.store.saver_guard import GuardedSaver

BUSY_TIMEOUT_MS = 10_000
BEGIN_READING = "BEGIN DEFERRED"
TABLES = {"checkpoints", "writes", "store", "store_migrations", "longtable_writers"}
"""Tables of a store that opening makes, but for `longtable_meta`."""
EMPTY_SECONDS = 1.0
CLOSE_SECONDS = 2.0
"""How long a new file may be empty; SQLite creates it and writes its first page some milliseconds
later.
"""
POSTGRES = "postgresql://"
OPEN_FILES = {errno.EMFILE, errno.ENFILE}
DISK_AND_FILES = {*OPEN_FILES, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
# With WAL, NORMAL loses no committed turn to a killed process, and saves an fsync at each superstep
# (44 to 15 ms a turn).
PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
)


class _Parts(NamedTuple):
    checkpointer: BaseCheckpointSaver[Any]
    store: BaseStore


class Persistence:
    """What `graph.compile(checkpointer=..., store=...)` takes, opened by `open_persistence` or by
    you.
    """

    url: str = ""
    path: Path | None = None
    """The file of a SQLite store."""
    key: str | None = None

    def __init__(self, checkpointer: BaseCheckpointSaver[Any], store: BaseStore) -> None:
        self._parts = _Parts(checkpointer, store)

    @property
    def checkpointer(self) -> BaseCheckpointSaver[Any]:
        """Return the checkpointer; `open_persistence` opens both by the first use. Raises
        `PersistenceError` after `close`.
        """
        return self._open().checkpointer

    @property
    def store(self) -> BaseStore:
        """Return the store; see `checkpointer`."""
        return self._open().store

    def _open(self) -> _Parts:
        return self._parts

    def close(self) -> None:
        """Close what `open_persistence` opened, not what you did. A thread's summary that is still
        being written is waited for, 2 seconds at most.
        """
        self.__exit__(None, None, None)

    aclose = a_from(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    async def __aenter__(self) -> Self:
        try:
            return await in_thread(self.__enter__)
        except asyncio.CancelledError:  # it may be open by now
            await in_thread(self.__exit__, None, None, None)
            raise

    async def __aexit__(self, *error: Any) -> None:
        await in_thread(self.__exit__, *error)


def open_persistence(
    url: str, *, lease_seconds: float = LEASE_SECONDS, key: str | None = None
) -> Persistence:
    """Open "sqlite:///file.db" (relative), "sqlite:////abs/file.db", "postgresql://..." or
    "memory://".

    As a context manager (`async with` opens the same: awaited methods run the blocking ones in
    threads), or by the first look at `checkpointer` or `store`; then `close` ends it. A missing
    file and its folder are created. Raises `ConfigError` for another URL, `PersistenceError` for a
    file that cannot be opened, is no SQLite database, is somebody's own database, is empty (a store
    never is: it was cut off), or is locked. A file that cannot be written is opened for reading:
    its threads can be listed, shown, searched and exported.

    Several processes may share one file or database. `lease_seconds`: how long a process that was
    killed in mid-turn keeps others off its thread in a file; a database notices at once.

    `key`: a passphrase with which checkpoints and the store's values are encrypted (extra
    `encryption`); thread ids, titles of tables, kinds and times are not. A store is encrypted from
    its beginning or not at all: else `StoreKeyError`. One that a later version wrote raises
    `NewerStoreError`.
    """
    if not lease_seconds > 0:
        raise ConfigError(f"lease_seconds must be above 0, found {lease_seconds!r}")
    return _UrlPersistence(url, lease_seconds=lease_seconds, key=check_key(key))


class _UrlPersistence(Persistence):
    """Opens a URL by the first use."""

    def __init__(self, url: str, *, lease_seconds: float, key: str | None) -> None:
        self.url = url
        self.path = _path(url)
        self.lease_seconds = lease_seconds
        self.key = key
        self._opening: AbstractContextManager[_Parts] | None = None
        self._opened: _Parts | None = None

    def __repr__(self) -> str:
        return f"<Persistence {redacted(self.url)}>"

    def _open(self) -> _Parts:
        if self._opening is None and self._opened is not None:
            raise PersistenceError(CLOSED)
        return cast("_Parts", self.__enter__()._opened)

    def __enter__(self) -> Self:
        if self._opening is not None:
            return self
        if self.url.startswith(POSTGRES):
            opening = _postgres(self.url, self.key)
        elif self.path is None:
            opening = _memory()
        else:
            lease = SqliteLease(self.path, seconds=self.lease_seconds, busy_ms=BUSY_TIMEOUT_MS)
            opening = _sqlite(self.path, lease, self.key)
        with storage_errors():
            self._opened = opening.__enter__()
        self._opening = opening
        return self

    def __exit__(self, *error: Any) -> None:
        opening = self._opening
        self._opening = None
        if opening is None:
            return
        try:
            opening.__exit__(*error)
        finally:
            end_idle_threads()


class _WriteConnection(sqlite3.Connection):
    """A connection whose transactions write from their beginning, one at a time among those that
    share its `write_lock`.

    The store's read first and write then: SQLite refuses that at once, "database is locked", where
    another connection has written in between, whatever the timeout; 40 threads at once were enough.
    And SQLite lets those who wait for its one writer in by chance: with 200 threads one waited
    longer than the timeout.
    """

    write_lock: threading.Lock
    begun = False

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """See `sqlite3.Connection`."""
        if sql in ("COMMIT", "ROLLBACK"):
            with self._ending():
                return super().execute(sql)
        if self.begun or sql == BEGIN_READING or not sql.startswith("BEGIN"):
            return super().execute(sql, parameters)
        self.write_lock.acquire()
        self.begun = True
        try:
            return super().execute("BEGIN IMMEDIATE")
        except BaseException:
            self._end()
            raise

    def commit(self) -> None:
        """See `sqlite3.Connection`."""
        with self._ending():
            super().commit()

    def rollback(self) -> None:
        """See `sqlite3.Connection`."""
        with self._ending():
            super().rollback()

    def close(self) -> None:
        """See `sqlite3.Connection`."""
        super().close()
        self._end()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the transaction in any case: one that a full disk kept from being committed would
        hold up all who write.
        """
        try:
            yield
        except BaseException:
            super().rollback()
            raise
        finally:
            self._end()

    def _end(self) -> None:
        if self.begun:
            self.begun = False
            self.write_lock.release()


class _Store(SqliteStore):
    """LangGraph's store, whose awaited methods work, too, and which reads while another program
    writes.
    """

    _reading = threading.local()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See `SqliteStore.batch`."""
        every = list(ops)
        if any(isinstance(op, PutOp) for op in every):
            return super().batch(every)
        self._reading.now = True
        try:
            return super().batch(every)
        finally:
            self._reading.now = False

    abatch: Any = a_from(batch)

    @contextmanager
    def _cursor(self, *, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        reads = transaction and getattr(self._reading, "now", False)
        with super()._cursor(transaction=transaction and not reads) as cursor:
            if reads:
                cursor.execute(BEGIN_READING)
            try:
                yield cursor
            finally:
                if reads:
                    cursor.execute("COMMIT")


def _write_connections() -> type[sqlite3.Connection]:
    """Return a class of its own for each store: its connections share one `write_lock`."""
    return type("StoreConnection", (_WriteConnection,), {"write_lock": threading.Lock()})


def _path(url: str) -> Path | None:
    if url == "memory://":
        return None
    if url.startswith(POSTGRES) and len(url) > len(POSTGRES):
        parse_url(url)  # its errors repeat no password; libpq's would
        return None
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return Path(url.removeprefix("sqlite:///")).expanduser()
    problem = (
        f"scheme {url.partition('://')[0]!r}"
        if "://" in url
        else f"{url!r}: write sqlite:///{url or 'file.db'}"
    )
    raise ConfigError(
        f"a store URL is sqlite:///path, postgresql://... or memory://, found {problem}"
    )


@contextmanager
def _memory() -> Iterator[_Parts]:
    saver = GuardedSaver(InMemorySaver())
    try:
        yield _Parts(saver, InMemoryStore())
    finally:
        wait_or_drop(saver.locks)


@contextmanager
def _sqlite(path: Path, lease: SqliteLease, key: str | None) -> Iterator[_Parts]:
    file = _set_up(path, lease, key)
    checkpoints = sqlite3.connect(file.uri, uri=True, check_same_thread=False, factory=file.factory)
    items = sqlite3.connect(
        file.uri, uri=True, check_same_thread=False, isolation_level=None, factory=file.factory
    )
    locks: list[threading.Lock] = []
    threads = ThreadLocks(file.lease)
    try:
        for connection in (checkpoints, items):
            connection.text_factory = text_factory
            for pragma in file.pragmas:
                connection.execute(pragma)
        items.row_factory = item_row
        saver = LoadingSaver(checkpoints, serde=file.serde or MessageSerializer())
        store = _Store(items, deserializer=item_value)
        locks += [store.lock, saver.lock]
        yield _Parts(GuardedSaver(saver, locks=threads), _encrypted(store, file.serde))
    finally:
        wait_or_drop(threads)
        lease.close()
        # A call that was cancelled may still be at work in a thread, and SQLite crashes when closed
        # under it. A list that was left half read never frees its lock.
        free = [lock for lock in locks if lock.acquire(timeout=CLOSE_SECONDS)]
        items.close()
        checkpoints.close()
        for lock in free:
            lock.release()


@contextmanager
def _postgres(url: str, key: str | None) -> Iterator[_Parts]:
    module = _postgres_module()
    lease = module.AdvisoryLease(module.check_url(url))
    threads = ThreadLocks(lease)
    try:
        with ExitStack() as stack:
            with storage_errors():
                saver, store = stack.enter_context(module.open_threads(url, lease, key))
            try:
                yield _Parts(GuardedSaver(saver, locks=threads), _encrypted(store, saver.serde))
            finally:
                wait_or_drop(threads)
    finally:
        lease.close()


def _postgres_module() -> ModuleType:
    try:
        return import_module("longtable.store.postgres_store")
    except ImportError as error:
        raise MissingExtraError("threads in PostgreSQL cannot be opened", "postgres") from error


def _encrypted(store: BaseStore, serde: SerializerProtocol | None) -> BaseStore:
    return EncryptedStore(store, serde) if isinstance(serde, EncryptedSerializer) else store


@dataclass(frozen=True)
class _File:
    """How a SQLite file is opened."""

    uri: str
    serde: EncryptedSerializer | None
    pragmas: Sequence[str] = PRAGMAS
    lease: SqliteLease | None = None
    """None: nobody can write to it, so nobody takes turns."""
    factory: type[sqlite3.Connection] = sqlite3.Connection


def _set_up(path: Path, lease: SqliteLease, key: str | None) -> _File:
    """Look at the file, so that a wrong one gives one clear error before anything is written, and
    create what is missing in it.
    """
    try:
        if _is_read_only(path):
            return _read_only(path, key)
        _refuse_empty(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise PersistenceError(
            f"the store {path} cannot be opened ({error}): give a file in a folder that can be"
            " written"
        ) from error
    with storage_errors(), closing(connection):
        try:
            _refuse_foreign(connection, path)
        except UnicodeDecodeError as error:  # SQLite's own message quotes a damaged name
            raise PersistenceError(f"the conversation store {_DAMAGED}") from error
        # SQLite takes a last page that was cut for a whole one.
        if path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0]:
            raise PersistenceError(f"the conversation store {_DAMAGED}")
        connection.execute("PRAGMA journal_mode=WAL")
        serde = sqlite_serializer(connection, key)
        complete = _has_tables(connection)
    if not complete:
        _create_tables(path, lease)
    return _File(
        f"{path.absolute().as_uri()}?mode=rw", serde, lease=lease, factory=_write_connections()
    )


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether every table is there as this version makes it: then opening writes nothing,
    and a store that another program writes to can be read.
    """
    names = {name for (name,) in connection.execute(SQLITE_TABLES)}
    if not names >= TABLES:
        return False
    columns = {row[1] for row in connection.execute("PRAGMA table_info(writes)")}
    (migration,) = connection.execute("SELECT max(v) FROM store_migrations").fetchone()
    return "task_path" in columns and migration == len(SqliteStore.MIGRATIONS) - 1


def _create_tables(path: Path, lease: SqliteLease) -> None:
    """Create the tables, one process at a time: the store's migrations hold no lock of their
    own.
    """
    with (
        storage_errors(),
        setup_lease(lease),
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        GuardedSaver(SqliteSaver(connection)).setup()
        SqliteStore(connection).setup()


def _is_read_only(path: Path) -> bool:
    """Return whether this process may read a file and not write it; in a folder that it may not
    write it cannot, either.
    """
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _read_only(path: Path, key: str | None) -> _File:
    """Open a file that can only be read: its threads can be listed, shown and exported.

    If the owner begins to write while it stays open, SQLite may read torn pages: open it anew then.
    """
    # In WAL mode even reading creates files beside the store, which would lock its owner out.
    # `immutable` avoids that; without a -wal file nobody has the store open.
    immutable = "" if Path(f"{path}-wal").exists() else "&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode=ro{immutable}"
    with (
        storage_errors(),
        closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection,
    ):
        _refuse_foreign(connection, path)
        return _File(uri, sqlite_serializer(connection, key, read_only=True), pragmas=PRAGMAS[2:])


def _refuse_empty(path: Path) -> None:
    """Raise `PersistenceError` for a file of 0 bytes: SQLite would begin a new store in it, and
    drop a log that is beside it.

    Another process may be making the file at this moment; it is given time to.
    """
    end = time.monotonic() + EMPTY_SECONDS
    while path.is_file() and path.stat().st_size == 0:
        if time.monotonic() > end:
            raise PersistenceError(
                f"the store {path} is empty (0 bytes), which a store never is: it was cut off, or"
                " never written. Restore it from a copy, or delete the empty file to begin a new"
                " store"
            )
        time.sleep(0.05)


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `PersistenceError` for a database that has tables or views, and none of a store."""
    query = (
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
    )
    names = {name for (name,) in connection.execute(query)}
    ours = (
        names & {"store_migrations", "longtable_meta", "longtable_writers", "longtable_leases"}
        or {"checkpoints", "writes"} <= names
    )
    if names and not ours:
        tables = ", ".join(sorted(names)[:3])
        raise PersistenceError(
            f"the file {path} is a database of its own (it has the tables {tables}), not a"
            " conversation store; nothing was written to it: give the store a file of its own, or"
            " one that does not exist yet"
        )


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn the exceptions of SQLite and PostgreSQL into `PersistenceError`s that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise PersistenceError(f"the conversation store {_advice(error)} ({error})") from error
    except asyncio.InvalidStateError as error:
        # What LangGraph's stores raise where they would block their own event loop.
        raise ConfigError(AWAITED) from error
    except OSError as error:
        if error.errno not in DISK_AND_FILES:
            raise
        raise PersistenceError(
            f"the conversation store {_UNOPENED if error.errno in OPEN_FILES else _UNWRITTEN}"
            f" ({error.strerror})"
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in {"psycopg", "psycopg_pool"}:
            raise
        raise PersistenceError(
            f"the conversation store in PostgreSQL failed ({error}): check that the server runs,"
            " and the URL"
        ) from error


_UNOPENED = (
    "cannot be opened: check that its folder can be written, and that this process may open more"
    " files (ulimit -n)"
)
_UNWRITTEN = "cannot be written: make room on its disk, or look whether the disk is sound"
_LOCKED = "is locked by another program: close it or wait"
_DAMAGED = "is not a SQLite database, or it is damaged: give another file"
_SHARED = (
    "was used by two threads at once over one sqlite3 connection: give the checkpointer and the"
    " store a connection each, as open_persistence does"
)
_ADVICE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: _UNWRITTEN,
    sqlite3.SQLITE_IOERR: _UNWRITTEN,
    sqlite3.SQLITE_CANTOPEN: _UNOPENED,
    sqlite3.SQLITE_READONLY: "cannot be used: check that it can be written",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_MISUSE: _SHARED,
    sqlite3.SQLITE_ROW: _SHARED,
    sqlite3.SQLITE_DONE: _SHARED,
}


def _advice(error: sqlite3.Error) -> str:
    """Return what is wrong with a SQLite file and what to do, by SQLite's primary result code."""
    # None where Python's module itself objects: to a closed connection.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "closed" in str(error):
        return "was closed: open it again"
    return _ADVICE.get((code or 0) & 0xFF, "cannot be used: look at its file")
