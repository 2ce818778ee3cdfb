"""SQLite behind its own wall.

The file is read-only, sizes are limited, and an authorizer lets queries read only the readable
tables and columns. While a query runs, its deadline is checked.
"""

import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from longtable.base.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    Problem,
    QueryMemoryError,
    ResultTooLargeError,
)
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected, fold, quoted, read_by_views
from longtable.tools.engines.base import (
    FailedAtError,
    Fetched,
    QueryLimits,
    Row,
    check_file,
    collect,
    file_uri,
    refusal,
    required_path,
)
from longtable.tools.engines.sqlite_introspection import (
    aliases,
    reflect_sqlite,
    shadow_tables,
    sqlite_plan,
    table_rows,
    virtual_tables,
)
from longtable.tools.sql.allow_lists import SCALAR_FUNCTIONS, TABLE_FUNCTIONS
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers.runner import Stop, StoppedError

IDLE_CONNECTIONS = 4
OPCODES_BETWEEN_LOOKS = 5_000

# instr(), replace() and trim() cannot be stopped and take quadratic time in the worst case: 3 s at
# 1 MB, 200 s at 8 MB.
MAX_VALUE_BYTES = 2_000_000
CAPS = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 100,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

# Tables that SQLite's modules offer without being made.
MODULES = {
    "dbstat",
    "fts3tokenize",
    "fts4aux",
    "fts5vocab",
    "bytecode",
    "tables_used",
    "completion",
    "fsdir",
    "csv",
}

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


class _Version(NamedTuple):
    """The state of the file when a pooled connection was opened."""

    immutable: bool
    inode: int
    modified_ns: int


class SqliteEngine:
    """One SQLite file. Each running query has its own connection; a few connections are kept for
    later queries.
    """

    dialect = "sqlite"

    @classmethod
    def open(
        cls, location: Location, /, *, limits: QueryLimits, wait_seconds: float
    ) -> "SqliteEngine":
        """Open the database file of a location."""
        return cls(required_path(location), limits=limits, busy_seconds=wait_seconds)

    def __init__(self, path: Path, *, limits: QueryLimits, busy_seconds: float) -> None:
        check_file(path, dialect=self.dialect)
        self._path = path
        self._busy_seconds = busy_seconds
        self._value_bytes = min(limits.bytes, MAX_VALUE_BYTES)
        self._lock = threading.Lock()
        self._idle: dict[bool, list[tuple[sqlite3.Connection, _Version]]] = {True: [], False: []}
        # Until `guard` has been called, nothing can be read.
        self._authorizer: Authorizer = lambda *_: sqlite3.SQLITE_DENY
        self._touch: tuple[str, ...] = ()
        self._walls = 0
        # Inode, time and size of the file when it was last asked whether it is a WAL database, and
        # the answer.
        self._wal_seen: tuple[tuple[int, int, int] | None, bool] = (None, False)
        self._view_sql: Mapping[str, str] = {}
        self._closed = False
        with self.session(walled=False) as session, _translated(self._value_bytes):
            session.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def reflect(self) -> Reflected:
        """Read the catalogue by PRAGMA."""
        with self.session(walled=False) as session, _translated(self._value_bytes):
            return reflect_sqlite(session.connection)

    def schema_version(self) -> object:
        """Return SQLite's own counter of schema changes, and the inode of the file."""
        with self.session(walled=False) as session, _translated(self._value_bytes):
            (count,) = session.connection.execute("PRAGMA schema_version").fetchone()
        return count, self._version().inode

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Build the authorizer: it lets a query read the tables and columns of the catalogue, and
        nothing else.
        """
        with self.session(walled=False) as session:
            virtual = [
                name
                for name in virtual_tables(session.connection)
                if catalog.resolve(name) is not None
            ]
            shadows = shadow_tables(session.connection, virtual)
            real = frozenset(
                fold(str(row[0]))
                for row in session.connection.execute("SELECT name FROM sqlite_master")
            )
        self._view_sql = {fold(name): text for (_, name), text in reflected.view_sql.items()}
        self._touch = tuple(f"SELECT 1 FROM {quoted(name)} LIMIT 0" for name in virtual)
        self._authorizer = _authorizer(catalog, reflected, shadows=shadows, real=real)
        with self._lock:
            # They are watched by what could be read before.
            idle = self._idle[True]
            self._idle[True] = []
            self._walls += 1
        for connection, _ in idle:
            connection.close()

    def close(self) -> None:
        """Close the idle connections. A connection that is at work is closed when its query
        ends.
        """
        with self._lock:
            self._closed = True
            idle = self._idle
            self._idle = {True: [], False: []}
        for connection, _ in [*idle[True], *idle[False]]:
            connection.close()

    @contextmanager
    def session(self, _stop: Stop | None = None, *, walled: bool) -> Iterator["SqliteSession"]:
        """Open a read-only session. In a walled session the authorizer checks what is read."""
        walls = self._walls
        connection, version = self._take(walled)
        try:
            yield SqliteSession(
                connection,
                value_bytes=self._value_bytes,
                view_sql=self._view_sql,
                rows_of=self._rows_of,
            )
        except BaseException:
            connection.close()
            raise
        with self._lock:
            keep = (
                not self._closed
                and len(self._idle[walled]) < IDLE_CONNECTIONS
                and (walls == self._walls or not walled)
            )
            if keep:
                self._idle[walled].append((connection, version))
        if not keep:
            connection.close()

    def _rows_of(self, tables: Iterable[str]) -> float | None:
        """Return the approximate number of rows of the largest of these tables, None if none of the
        names is that of a table.
        """
        file_bytes = self._path.stat().st_size
        with self.session(walled=False) as session, _translated(self._value_bytes):
            sizes = [
                table_rows(session.connection, table, file_bytes=file_bytes) for table in tables
            ]
        return max((size for size in sizes if size is not None), default=None)

    def _take(self, walled: bool) -> tuple[sqlite3.Connection, _Version]:
        version = self._version()
        while True:
            with self._lock:
                if self._closed:
                    raise DatabaseUnavailableError("the database was closed: open it again")
                pool = self._idle[walled]
                entry = pool.pop() if pool else None
            if entry is None:
                return self._connect(walled, version), version
            if entry[1] == version:
                return entry
            entry[0].close()

    def _version(self) -> _Version:
        """Return how the file must be opened now.

        If a WAL database is open nowhere else, a reader would create its -wal and -shm files and
        leave them there. Opening it as `immutable` leaves the folder as it is. A connection opened
        this way is not used again after the file has changed.
        """
        try:
            stat = self._path.stat()
        except OSError as error:
            raise DatabaseUnavailableError(
                f"the database file {str(self._path)!r} cannot be read: {error.strerror}"
            ) from error
        version = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if version != self._wal_seen[0]:
            # Opened without locks, SQLite would delete an empty file's journal, even another
            # process's.
            self._wal_seen = version, stat.st_size > 0 and self._uses_wal()
        # SQLite puts the -wal file beside the database itself, not beside a link to it.
        immutable = self._wal_seen[1] and not Path(f"{self._path.resolve()}-wal").exists()
        return _Version(immutable, stat.st_ino, stat.st_mtime_ns if immutable else 0)

    def _uses_wal(self) -> bool:
        """Return whether the file is a WAL database. SQLite cannot open a WAL database without
        locks, and it reports this before it creates a file.

        The first bytes of the file would also show it. But opening and closing the file here would
        drop the locks that a caller's own connection holds.
        """
        with (
            _translated(self._value_bytes),
            closing(sqlite3.connect(file_uri(self._path, "&nolock=1"), uri=True)) as connection,
        ):
            try:
                connection.execute("PRAGMA schema_version").fetchone()
            except sqlite3.Error as error:
                return error.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN
        return False

    def _connect(self, walled: bool, version: _Version) -> sqlite3.Connection:
        uri = file_uri(self._path, "&immutable=1" if version.immutable else "")
        with _translated(self._value_bytes):
            connection = sqlite3.connect(
                uri,
                uri=True,
                timeout=self._busy_seconds,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._wall_in(connection, walled)
            except BaseException:
                connection.close()
                raise
        return connection

    def _wall_in(self, connection: sqlite3.Connection, walled: bool) -> None:
        # Bytes that are not UTF-8 must not make a whole column unreadable.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.execute("PRAGMA query_only=1")
        connection.execute("PRAGMA trusted_schema=0")
        for limit, value in CAPS.items():
            connection.setlimit(limit, value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._value_bytes)
        if walled:
            # A virtual table first touched under the authorizer fails with "vtable constructor
            # failed".
            for sql in (
                "SELECT 1 FROM json_each('[]')",
                "SELECT 1 FROM json_tree('[]')",
                *self._touch,
            ):
                with suppress(sqlite3.Error):
                    connection.execute(sql).fetchall()
            connection.set_authorizer(self._authorizer)
        else:
            # SQLite's lower() knows A to Z only.
            connection.create_function("lt_fold", 1, _folded, deterministic=True)


class SqliteSession:
    """One connection at work."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        value_bytes: int,
        view_sql: Mapping[str, str],
        rows_of: Callable[[Iterable[str]], float | None],
    ) -> None:
        self.connection = connection
        self._value_bytes = value_bytes
        self._view_sql = view_sql
        self._rows_of = rows_of

    def fetch(
        self, sql: str, params: Sequence[Any] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched:
        """Run one statement and fetch all its rows. The deadline is checked every few thousand
        steps of SQLite.
        """
        self.connection.set_progress_handler(lambda: int(stop()), OPCODES_BETWEEN_LOOKS)
        try:
            with _translated(self._value_bytes):
                cursor = self.connection.execute(sql, _bound(params))
                columns = tuple(entry[0] for entry in cursor.description or ())
                rows: list[Row] = collect(cursor.fetchmany, limits=limits, stop=stop)
        finally:
            self.connection.set_progress_handler(None, 0)
        return Fetched(columns, tuple(_type_of(rows, index) for index in range(len(columns))), rows)

    def plan(
        self,
        sql: str,
        params: Sequence[Any] = (),
        *,
        limits: QueryLimits,  # noqa: ARG002  # what Session asks for
        stop: Stop,  # noqa: ARG002
    ) -> Plan:
        """Return SQLite's plan for one SELECT, without running it."""
        with _translated(self._value_bytes):
            steps = [
                (int(row[0]), int(row[1]), str(row[3]))
                for row in self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", _bound(params))
            ]
        by_alias = aliases(sql, self._view_sql)
        return sqlite_plan(
            steps, lambda name: self._rows_of(by_alias.get(fold(name), {fold(name)}))
        )

    def interrupt(self) -> None:
        """Stop the running statement, if there is one."""
        self.connection.interrupt()


def _bound(params: Sequence[Any]) -> list[Any]:
    """Return parameters in the types that SQLite has."""
    return [_plain(value) for value in params]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | UUID):
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


_NAMES = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}


def _type_of(rows: list[Row], index: int) -> str:
    """Return the storage class of a column's values. SQLite gives no other type for the columns of
    results.
    """
    kinds = {type(row[index]) for row in rows if row[index] is not None}
    if kinds == {int, float}:
        return "REAL"
    if len(kinds) > 1:
        return "ANY"
    return _NAMES[kinds.pop()] if kinds else "NULL"


def _authorizer(
    catalog: Catalog, reflected: Reflected, *, shadows: frozenset[str], real: frozenset[str]
) -> Authorizer:
    direct = {fold(table.name) for table in catalog.tables} | TABLE_FUNCTIONS["sqlite"] | shadows
    through_views = read_by_views(reflected, catalog)
    closed = {
        fold(table): set(map(fold, names))
        for (_, table), names in catalog.engine_hidden_columns.items()
    }
    functions = SCALAR_FUNCTIONS["sqlite"]

    def authorize(
        action: int,
        first: str | None,
        second: str | None,
        _database: str | None,
        source: str | None,
    ) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            name = fold(first or "")
            # A row id that is the key is asked for under the key's own name.
            if fold(second or "") in closed.get(name, ()):
                return sqlite3.SQLITE_DENY
            if name in direct or (name in through_views and (source is not None or not second)):
                return sqlite3.SQLITE_OK
            # count(*) over a common table expression asks to read no column of it.
            if (
                not second
                and name not in real
                and not name.startswith(("sqlite_", "pragma_"))
                and name not in MODULES
            ):
                return sqlite3.SQLITE_OK
        # A full text search asks on its own whether the file has changed.
        if (
            action == sqlite3.SQLITE_PRAGMA
            and shadows
            and first == "data_version"
            and second is None
        ):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and fold(second or "") in functions:
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    return authorize


@contextmanager
def _translated(value_bytes: int) -> Iterator[None]:
    """Raise errors of the driver as this package's errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, value_bytes) from error
    except MemoryError as error:
        raise QueryMemoryError(limit=value_bytes) from error


_LOCKED = "the database is locked by another program: wait until that has finished, then ask again"
_ERRORS: tuple[tuple[str, Callable[[str, int], DatabaseError | StoppedError]], ...] = (
    (r"interrupted", lambda *_: StoppedError()),
    (r"too big", lambda _, value_bytes: ResultTooLargeError(limit=value_bytes, what="one value")),
    (r"locked|busy", lambda *_: DatabaseUnavailableError(_LOCKED)),
    (
        r"not authorized|authorization denied|prohibited",
        lambda *_: refusal("the tables of the catalogue"),
    ),
    (
        (
            r"not a database|disk image|malformed database|unable to open|disk"
            r" I/O|readonly|unsupported file format"
        ),
        lambda text, _: DatabaseUnavailableError(f"the SQLite database cannot be read: {text}"),
    ),
)
"""Pairs of a pattern in SQLite's message and a function that makes this package's error. The
function gets the message and the size limit of a value in bytes. The first pair whose pattern
matches is used.
"""


def _translate(error: sqlite3.Error, value_bytes: int) -> DatabaseError | StoppedError:
    text = str(error)
    if make := next((make for pattern, make in _ERRORS if re.search(pattern, text)), None):
        return make(text, value_bytes)
    word = re.match(r'near "(.+)": ', text)
    return FailedAtError(text, problem=_problem(text), word=word[1] if word else "")


_PROBLEMS: tuple[tuple[str, Problem], ...] = (
    (r"no such|unknown table", "unknown_name"),
    (r"ambiguous column", "ambiguous"),
    (r"syntax error|incomplete input|unrecognized token", "syntax"),
    (r"datatype mismatch|wrong number of arguments|malformed JSON|integer overflow", "type"),
)


def _problem(text: str) -> Problem:
    return next((problem for pattern, problem in _PROBLEMS if re.search(pattern, text)), "other")


def _folded(value: str | None) -> str | None:
    return None if value is None else value.casefold()
