"""Check a SQLite file before it is opened as a store, and create missing tables."""

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from longtable.base.errors import PersistenceError
from longtable.store.encryption import SQLITE_TABLES, sqlite_serializer
from longtable.store.leases import SqliteLease, setup_lease
from longtable.store.saver_guard import GuardedSaver
from longtable.store.sqlite_connection import BUSY_TIMEOUT_MS, write_connections
from longtable.store.storage_errors import DAMAGED, storage_errors

TABLES = {"checkpoints", "writes", "store", "store_migrations", "longtable_writers"}
"""The tables that are created when a store is opened, except `longtable_meta`."""
EMPTY_SECONDS = 1.0
# With WAL, NORMAL loses no committed turn to a killed process, and saves an fsync at each superstep
# (44 to 15 ms a turn).
PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
)


@dataclass(frozen=True)
class OpenFile:
    """How to connect to a SQLite file that was checked."""

    uri: str
    serde: EncryptedSerializer | None
    pragmas: Sequence[str] = PRAGMAS
    lease: SqliteLease | None = None
    """The leases on threads. None if the file cannot be written, because no turn can run then."""
    factory: type[sqlite3.Connection] = sqlite3.Connection


def set_up(path: Path, lease: SqliteLease, key: str | None) -> OpenFile:
    """Check a SQLite file and create missing tables. Raises `PersistenceError` before anything is
    written if the file is not a store or cannot be opened.
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
            raise PersistenceError(f"the conversation store {DAMAGED}") from error
        # SQLite takes a last page that was cut for a whole one.
        if path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0]:
            raise PersistenceError(f"the conversation store {DAMAGED}")
        connection.execute("PRAGMA journal_mode=WAL")
        serde = sqlite_serializer(connection, key)
        complete = _has_tables(connection)
    if not complete:
        _create_tables(path, lease)
    return OpenFile(
        f"{path.absolute().as_uri()}?mode=rw", serde, lease=lease, factory=write_connections()
    )


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether every table exists as this version creates it. If so, opening the store writes
    nothing. So it can be opened while another program writes to it.
    """
    names = {name for (name,) in connection.execute(SQLITE_TABLES)}
    if not names >= TABLES:
        return False
    columns = {row[1] for row in connection.execute("PRAGMA table_info(writes)")}
    (migration,) = connection.execute("SELECT max(v) FROM store_migrations").fetchone()
    return "task_path" in columns and migration == len(SqliteStore.MIGRATIONS) - 1


def _create_tables(path: Path, lease: SqliteLease) -> None:
    """Create the tables. Only one process at a time does this, because LangGraph's own migrations
    take no lock.
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
    """Return whether this process can only read a file: it may not write the file itself or the
    file's folder. (SQLite needs both.)
    """
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _read_only(path: Path, key: str | None) -> OpenFile:
    """Check a file that can only be read. Its threads can be listed, shown and exported.

    If another process begins to write the file while it is open here, SQLite may read pages that
    are half written. Open the file again in that case.
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
        return OpenFile(
            uri, sqlite_serializer(connection, key, read_only=True), pragmas=PRAGMAS[2:]
        )


def _refuse_empty(path: Path) -> None:
    """Raise `PersistenceError` if the file has 0 bytes. SQLite would begin a new store in such a
    file, and delete a log file beside it.

    Another process may be creating the file at this moment, so the function waits a little first.
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
    """Raise `PersistenceError` if the database has tables or views, but none of a store."""
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
