"""The interface of every engine, and the loop that fetches rows under the limits."""

import errno
import os
import sqlite3
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
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
from longtable.tools.catalog import Catalog, Reflected
from longtable.tools.cells import clip, html_table, preview_rows
from longtable.tools.sql.verdict import Plan, masked_rows
from longtable.tools.workers.runner import Stop, StoppedError


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """The most that one query may take. A query over a limit is stopped and returns nothing."""

    seconds: float = 30.0
    rows: int = 10_000
    bytes: int = 8_000_000
    """Size of the result."""
    memory_bytes: int = 1_000_000_000
    """Memory of the engine, if the engine has such a limit (DuckDB: for all queries of one
    `Database` together).
    """
    temp_bytes: int = 1_000_000_000
    """Temporary space on disk, if the engine has such a limit (PostgreSQL). DuckDB gets none; in
    SQLite it is bounded only by `seconds`.
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
    """Limits on files that are loaded as a database."""

    files: int = 200
    bytes: int = 1_000_000_000
    """All files together, as they are on disk."""
    memory_bytes: int = 4_000_000_000
    """Memory that they may take when loaded."""
    sheet_rows: int = 1_100_000
    """Rows of one Excel sheet."""
    columns: int = 2_000
    """Columns of one sheet or text file. 1 kB of Excel can name 18,278, which took minutes."""
    sheet_cells: int = 100_000_000
    """Cells of one Excel sheet, including empty cells before the last one of a row, which the file
    does not store.
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

    `sql` is the text that ran; a table with denied columns has its own name in it. `types` are the
    engine's names, enums without their labels. `ms` is the time from the call to the last row.
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
    """Tables and columns that were read, as `table` and `table.column`, tables first. In doubt a
    column is listed.
    """
    tables: tuple[str, ...] = ()
    """The tables alone, the first of `reads`."""

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
    """A guess made when a file was loaded, about a table or one column. `count` is in lines or
    files, `value` an example.
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
    """A query failed at a character (from 0) of the text that ran, or near a word.
    `tools.sql.hints` finds the same place in the model's text.
    """

    code = QueryFailedError.code

    def __init__(
        self, reason: str, *, problem: Problem, offset: int | None = None, word: str = ""
    ) -> None:
        super().__init__(reason, problem=problem)
        self.offset = offset
        self.word = word


def refusal(readable: str) -> QueryRefusedError:
    """Return the error for a statement that an engine refused. It names nothing outside the
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
    def plan(self, sql: str, *, limits: QueryLimits, stop: Stop) -> Plan: ...
    def interrupt(self) -> None: ...


class Engine(Protocol):
    """One open database of one kind."""

    dialect: str

    def reflect(self) -> Reflected:
        """Read the whole catalogue, without applying the policy."""
        ...

    def schema_version(self) -> object:
        """Return a value that changes when the schema may have changed. It must be cheap, because
        each turn asks for it.
        """
        ...

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Set the tables and columns that may be read. Called before the first walled session and
        after each change of the schema.
        """
        ...

    def session(self, stop: Stop, /, *, walled: bool) -> AbstractContextManager[Session]:
        """Open a read-only session, behind the engine's wall for SQL that a model wrote; wait no
        longer than `stop` says.
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
    """Fetch all rows in small batches. Stop with an error at the first limit that is passed."""
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


SIGNATURES = {"sqlite": (0, b"SQLite format 3\x00"), "duckdb": (8, b"DUCK")}


def check_path(path: Path) -> None:
    """Raise `DatabaseUnavailableError` unless `path` is a file that can be read; it is not
    opened.
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
    """Raise `DatabaseUnavailableError` unless `path` is a file that begins as this engine's do;
    nothing is created.
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
    """Return the URI by which SQLite opens a file for reading, with further options:
    `&immutable=1`.
    """
    return f"file:{quote(str(path.absolute()))}?mode=ro{options}"


def _head(path: Path) -> bytes:
    """Return a file's first bytes without opening it; empty if the system does not list a process's
    descriptors.

    The first close of any descriptor drops every POSIX lock that the process holds on the file, a
    caller's own too. So the bytes are read through a descriptor that is already open: a process
    that holds a lock has one. If none is open, there is no lock to lose, and SQLite opens the file;
    unlike other libraries it keeps its own connections' locks on close.

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
