"""The interface of every engine, and the loop that fetches rows under the limits."""

import errno
import math
import os
import re
import sqlite3
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from sys import getsizeof
from typing import Protocol
from urllib.parse import quote

from longtable.base.errors import (
    ConfigError,
    DatabaseUnavailableError,
    Problem,
    QueryFailedError,
    QueryRefusedError,
    ResultTooLargeError,
    TooManyRowsError,
)
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected
from longtable.tools.cells import clip, html_table, preview_rows
from longtable.tools.engines.dialects import Dialect
from longtable.tools.sql.verdict import Plan, masked_rows
from longtable.tools.workers.runner import Stop, StoppedError


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """The limits of one query. A query that exceeds a limit is stopped, and none of its rows are
    returned.
    """

    seconds: float = 30.0
    rows: int = 10_000
    bytes: int = 8_000_000
    """Size of the result in bytes."""
    memory_bytes: int = 1_000_000_000
    """Memory of the engine in bytes, if the engine has a limit for it. In DuckDB the limit holds
    for all queries of one `Database` together.
    """
    temp_bytes: int = 1_000_000_000
    """Temporary space on disk in bytes, if the engine has a limit for it (PostgreSQL). DuckDB gets
    no space on disk. In SQLite only `seconds` bounds this space.
    """

    def __post_init__(self) -> None:
        if (
            isinstance(self.seconds, bool)
            or not isinstance(self.seconds, int | float)
            or not 0 < self.seconds <= 86_400
        ):
            raise ConfigError(
                f"QueryLimits.seconds must be over 0 and at most 86400, found {self.seconds!r}"
            )
        _check_least(self, rows=1, bytes=1_000, memory_bytes=16_000_000, temp_bytes=1_000_000)


@dataclass(frozen=True, kw_only=True)
class FileLimits:
    """Limits on data files that are loaded as a database."""

    files: int = 200
    bytes: int = 1_000_000_000
    """Size of all files together on disk, in bytes."""
    memory_bytes: int = 4_000_000_000
    """Memory in bytes that all files together may take when loaded."""
    sheet_rows: int = 1_100_000
    """Rows of one Excel sheet, at most."""
    columns: int = 2_000
    """Columns of one sheet or text file, at most. An Excel file of 1 kB can claim 18,278 columns,
    and reading those took minutes.
    """
    sheet_cells: int = 100_000_000
    """Cells of one Excel sheet, at most. Empty cells before the last filled cell of a row count
    too, although the file does not store them.
    """

    def __post_init__(self) -> None:
        _check_least(self, files=1, bytes=1, memory_bytes=16_000_000, sheet_rows=1)
        _check_least(self, columns=1, sheet_cells=1)


def _check_least(limits: QueryLimits | FileLimits, **least: int) -> None:
    for name, low in least.items():
        value = getattr(limits, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ConfigError(
                f"{type(limits).__name__}.{name} must be a whole number of at least {low}, found"
                f" {value!r}"
            )


BATCH_ROWS = 64
CELL_BYTES = 8
HEAD_BYTES = 32

Row = tuple[object, ...]


@dataclass(frozen=True)
class Fetched:
    """The columns, types and rows of one query."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]


NOTEBOOK_ROWS = 20


@dataclass(frozen=True)
class QueryResult:
    """A whole result.

    `sql` is the text that ran, except that a table with denied columns stands under its real name
    and not as the subquery that was read in its place. `types` are the engine's names of types,
    without the values of enums. `ms` is the time in milliseconds from the call to the last row.
    """

    sql: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]
    row_count: int
    ms: int
    masked: frozenset[int] = frozenset()
    """Indexes of the columns whose values no model sees."""
    reads: tuple[str, ...] = ()
    """The tables and columns that were read, as `table` and `table.column`, tables first. A column
    that may have been read is listed too.
    """
    tables: tuple[str, ...] = ()
    """The tables alone, which are the first entries of `reads`."""
    reads_some_rows: bool = False
    """Whether a row filter left rows of a table out, or may have."""
    rows_key: str = ""
    """The key of the row filters and row parameters under which the rows were read, "" if the query
    read no table with a row filter.
    """
    database: str = ""
    """The name of the database that was asked, "" if there is only one."""

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """Return some of the rows as a model may see them."""
        return masked_rows(rows, self.masked)

    def __repr__(self) -> str:
        return (
            f"<QueryResult of {self.row_count:,} rows:"
            f" {', '.join(clip(name, 30) for name in self.columns[:20])}>"
        )

    def _repr_html_(self) -> str:
        rows = preview_rows(self.rows[:NOTEBOOK_ROWS])
        below = (
            f"{NOTEBOOK_ROWS} of {self.row_count:,} rows" if self.row_count > NOTEBOOK_ROWS else ""
        )
        return html_table(self.columns, rows, below=below)


LOAD_SENTENCES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (Path(__file__).parent / "load_notes.toml").read_text(encoding="utf-8")
)
"""The text of a note about a loaded file, by its code and language."""


@dataclass(frozen=True)
class LoadNote:
    """A guess made when a file was loaded, about a table or one of its columns. `count` is a number
    of lines or files; `value` is an example.
    """

    code: str
    file: str
    count: int = 0
    table: str = ""
    column: str = ""
    value: str = ""

    def text(self) -> str:
        """Return the guess in words, for readers of the schema."""
        return LOAD_SENTENCES[self.code]["en"].format(count=self.count, value=self.value)


class FailedAtError(QueryFailedError):
    """A query failed at a character or near a word of the text that ran. `offset` counts characters
    from 0. `tools.sql.hints` finds the same place in the text that the model wrote.
    """

    code = QueryFailedError.code

    def __init__(
        self, reason: str, *, problem: Problem, offset: int | None = None, word: str = ""
    ) -> None:
        super().__init__(reason, problem=problem)
        self.offset = offset
        self.word = word


def refusal(readable: str) -> QueryRefusedError:
    """Return the error for a statement that an engine refused. The error names no table outside the
    catalogue.
    """
    return QueryRefusedError(
        "the database refused the statement", rule="engine", hint=f"only {readable} can be read"
    )


class Session(Protocol):
    """One connection, for one query at a time."""

    def fetch(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched: ...
    def plan(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Plan: ...
    def interrupt(self) -> None: ...


class Engine(Protocol):
    """One open database of one kind."""

    dialect: str

    @classmethod
    def open(cls, location: Location, /, *, limits: QueryLimits, wait_seconds: float) -> "Engine":
        """Open the database. `wait_seconds` is how long to wait for a locked file or table, or for
        a free connection. Raises `DatabaseUnavailableError` if it cannot be read.
        """
        ...

    def reflect(self) -> Reflected:
        """Read the whole catalogue; the policy is not applied."""
        ...

    def schema_version(self) -> object:
        """Return a value that changes whenever the schema may have changed. This must be cheap,
        because it is called in each turn.
        """
        ...

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Set the tables and columns that queries may read. This is called before the first walled
        session and after each change of the schema.
        """
        ...

    def session(self, stop: Stop, /, *, walled: bool) -> AbstractContextManager[Session]:
        """Open a read-only session. A walled session is behind the engine's wall and is used for
        SQL that a model wrote. Do not wait longer than `stop` allows.
        """
        ...

    def close(self) -> None: ...


def collect(
    fetchmany: Callable[[int], Sequence[Row]],
    *,
    limits: QueryLimits,
    stop: Stop,
    batch: int = BATCH_ROWS,
) -> list[Row]:
    """Fetch all rows in batches of `batch` rows. Raises `TooManyRowsError`, `ResultTooLargeError`
    or `StoppedError` when the first limit is passed.
    """
    rows: list[Row] = []
    size = 0
    while some := fetchmany(batch):
        if stop():
            raise StoppedError
        size += sum(map(_row_bytes, some))
        rows += some
        if len(rows) > limits.rows:
            raise TooManyRowsError(limit=limits.rows)
        if size > limits.bytes:
            raise ResultTooLargeError(limit=limits.bytes)
    return rows


def _row_bytes(row: Row) -> int:
    return sum(CELL_BYTES + _bytes(cell) for cell in row)


def _bytes(cell: object) -> int:
    if isinstance(cell, str):
        return len(cell) if cell.isascii() else len(cell.encode("utf-8", "surrogatepass"))
    if isinstance(cell, bytes):
        return len(cell)
    if isinstance(cell, dict):
        return sum(CELL_BYTES + _bytes(key) + _bytes(value) for key, value in cell.items())
    if isinstance(cell, list | tuple):
        return sum(CELL_BYTES + _bytes(item) for item in cell)
    return getsizeof(cell) if isinstance(cell, Decimal) else 0


_PLACEHOLDER = re.compile(
    r"""`(?:[^`\\]|``|\\.)*`|'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|\?""", re.DOTALL
)


def with_values(
    sql: str,
    params: Sequence[object],
    rules: Dialect,
    literal: "Callable[[object, Dialect], str] | None" = None,
) -> str:
    """Return SQL with each `?` replaced by its value as a literal, for a server to which values
    cannot be sent beside the text.
    """
    values = iter(params)
    written = literal or literal_of

    def replaced(match: re.Match[str]) -> str:
        return written(next(values), rules) if match[0] == "?" else match[0]

    return _PLACEHOLDER.sub(replaced, sql) if params else sql


def literal_of(value: object, rules: Dialect) -> str:
    """Return a value as SQL. Raises `TypeError` for a value of another kind."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return rules.literal(value)
    if isinstance(value, bool | int | Decimal):
        return str(value).upper()
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, datetime):
        return rules.literal(value.isoformat(sep=" "))
    if isinstance(value, date | time):
        return rules.literal(value.isoformat())
    raise TypeError(f"a parameter cannot be of {type(value).__name__}: {value!r:.40}")


def required_path(location: Location) -> Path:
    """Return the file of a location. Raises `ConfigError` if it names none."""
    if location.path is None:
        raise ConfigError("the database URL names no file")
    return location.path


SIGNATURES = {"sqlite": (0, b"SQLite format 3\x00"), "duckdb": (8, b"DUCK")}


def check_path(path: Path) -> None:
    """Raise `DatabaseUnavailableError` unless `path` is a readable file that is not empty. The file
    is not opened.
    """
    try:
        if not path.exists():
            raise DatabaseUnavailableError(
                f"there is no database file {str(path)!r}: check the path in the URL"
            )
        if not path.is_file():
            raise DatabaseUnavailableError(
                f"{str(path)!r} is not a file: the URL must name a database file"
            )
        if not path.stat().st_size:
            raise DatabaseUnavailableError(f"{str(path)!r} is empty, not a database")
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise DatabaseUnavailableError(
            f"the database file {str(path)!r} cannot be read: {error.strerror}"
        ) from error


def check_file(path: Path, *, dialect: str) -> None:
    """Raise `DatabaseUnavailableError` unless `path` is a file whose first bytes are those of this
    engine's files. No file is created.
    """
    check_path(path)
    try:
        head = _head(path)
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnavailableError(
            f"the database file {str(path)!r} cannot be read: {error}"
        ) from error
    kinds = [
        kind for kind, (offset, magic) in SIGNATURES.items() if head[offset:].startswith(magic)
    ]
    if head and dialect not in kinds:
        hint = (
            f"it is a {kinds[0]} database, open it as {kinds[0]}:///..."
            if kinds
            else "check the path in the URL"
        )
        raise DatabaseUnavailableError(f"{str(path)!r} is not a {dialect} database: {hint}")


def file_uri(path: Path, options: str) -> str:
    """Return the URI by which SQLite opens a file read-only. `options` are further parameters, such
    as `&immutable=1`.
    """
    return f"file:{quote(str(path.absolute()))}?mode=ro{options}"


def _head(path: Path) -> bytes:
    """Return the first bytes of a file without opening it in Python. Return empty bytes if the
    system does not list the descriptors of a process.

    When a process closes any descriptor of a file, it loses every POSIX lock that it holds on this
    file, including locks of the caller. So the bytes are read through a descriptor that is already
    open. If no descriptor is open, there is no lock to lose, and SQLite opens the file. SQLite,
    unlike other libraries, keeps its own connections' locks when it closes a file.

    One limit: if the system does not list descriptors, SQLite opens the file in any case. A second
    copy of SQLite in the process (apsw, DuckDB's sqlite extension) then loses its locks.
    """
    if head := _head_of_open(path):
        return head
    with closing(sqlite3.connect(file_uri(path, ""), uri=True)):
        return _head_of_open(path)


def _head_of_open(path: Path) -> bytes:
    status = path.stat()
    with suppress(OSError):
        for entry in Path("/dev/fd").iterdir():
            descriptor = int(entry.name)
            with suppress(OSError):  # closed meanwhile, or open for writing only
                if os.path.samestat(os.fstat(descriptor), status):
                    return os.pread(descriptor, HEAD_BYTES, 0)
    return b""
