"""DuckDB behind its own wall: an empty instance with the file attached read-only. The instance has
no access to anything outside, and its settings are locked.

The file is attached rather than opened, because DuckDB refuses to open a file twice in one process
with two configurations. If the file were opened, this engine could fail because a caller has the
file open for reading, or because a second `Database` has other limits.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import duckdb
from sqlglot import exp

from longtable.base.errors import (
    DatabaseUnavailableError,
    LongtableError,
    Problem,
    QueryFailedError,
    QueryMemoryError,
    QueryRefusedError,
)
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected, Table, fold, quoted, read_by_views
from longtable.tools.engines.base import (
    FailedAtError,
    Fetched,
    QueryLimits,
    check_file,
    collect,
    refusal,
    required_path,
)
from longtable.tools.engines.duckdb_introspection import (
    duckdb_plan,
    plan_detail,
    plan_nodes,
    reflect_duckdb,
)
from longtable.tools.results.parquet import close_wall, empty_instance, path_literal
from longtable.tools.sql.parsing import first_line, statement
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers.runner import Stop, StoppedError

TAKEN_NAMES = {"main", "memory", "system", "temp", "information_schema", "pg_catalog"}


class DuckdbEngine:
    """One walled DuckDB instance. Each query gets its own cursor."""

    dialect = "duckdb"

    def __init__(
        self, open_root: Callable[[], duckdb.DuckDBPyConnection], *, alias: str, memory_bytes: int
    ) -> None:
        self._open_root = open_root
        self._alias = alias
        self._memory_bytes = memory_bytes
        self._root = open_root()
        self._times_opened = 1
        self._path: Path | None = None
        self._file: tuple[int, ...] = ()
        self._lock = threading.Lock()
        self._readable = frozenset[str]()  # nothing, until `guard` has been called
        self._closed_columns: Mapping[str, frozenset[str]] = {}
        self._closed = False
        self._at_work = 0

    @classmethod
    def open(
        cls,
        location: Location,
        /,
        *,
        limits: QueryLimits,
        wait_seconds: float,  # noqa: ARG003  # a file opens at once
    ) -> "DuckdbEngine":
        """Attach the database file of a location."""
        return cls.of_file(required_path(location), limits=limits)

    @classmethod
    def of_file(cls, path: Path, *, limits: QueryLimits) -> "DuckdbEngine":
        """Attach a database file to an empty instance."""
        check_file(path, dialect=cls.dialect)
        alias = path.stem if fold(path.stem) not in TAKEN_NAMES else f"{path.stem}_db"
        identity = _identity(path)  # before it is opened: replaced in between, it is opened again
        open_root = partial(_attached, path, alias=alias, memory_bytes=limits.memory_bytes)
        engine = cls(open_root, alias=alias, memory_bytes=limits.memory_bytes)
        engine._path = path
        engine._file = identity
        return engine

    def reflect(self) -> Reflected:
        """Read the catalogue from DuckDB's own system tables."""
        with self._cursor() as cursor:
            return reflect_duckdb(cursor, name=self._alias)

    def schema_version(self) -> object:
        """Return how often the file was opened, and the identity of the file. Nobody can change a
        file while it is attached for reading, but another file may be renamed to the same path.
        """
        with self._lock:
            if not self._closed:
                self._follow_file()
            return self._times_opened, *self._file

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Set the names of the tables that a statement may read, including tables that visible
        views read.
        """
        own = {fold(table.bare_name) for table in catalog.tables}
        self._readable = frozenset(own | read_by_views(reflected, catalog))
        self._closed_columns = {
            fold(f"{schema}.{table}"): names
            for (schema, table), names in catalog.engine_hidden_columns.items()
        }

    @contextmanager
    def session(self, _stop: Stop, *, walled: bool) -> Iterator["DuckdbSession"]:
        """Open a session for one SELECT. A walled session can read only the readable tables."""
        readable = self._readable if walled else None
        with self._cursor() as cursor:
            yield DuckdbSession(
                cursor,
                memory_bytes=self._memory_bytes,
                readable=readable,
                closed=self._closed_columns,
            )

    def close(self) -> None:
        """Close the instance. If cursors are still at work, it closes when the last one ends."""
        with self._lock:
            was_closed = self._closed
            self._closed = True
            if not was_closed and not self._at_work:
                self._root.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock:
            if self._closed:
                raise DatabaseUnavailableError("the database was closed: open it again")
            self._follow_file()
            try:
                cursor = self._new_cursor()
            except duckdb.FatalException:
                # After an INTERNAL error while a query runs, DuckDB takes no more statements in
                # this instance.
                self._open_again()
                cursor = self._new_cursor()
            self._at_work += 1
        try:
            yield cursor
        finally:
            with self._lock:
                cursor.close()
                self._at_work -= 1
                if self._closed and not self._at_work:
                    self._root.close()

    def _follow_file(self) -> None:
        """Open the path again if another file was renamed to it, as a nightly load does."""
        if self._path is None:
            return
        identity = _identity(self._path)
        if identity != self._file:
            self._open_again()
            self._file = identity

    def _open_again(self) -> None:
        """Replace the instance by a new one. The old instance is not closed here, because that
        would close cursors that are still at work; it ends with the last of these cursors.
        """
        self._root = self._open_root()
        self._times_opened += 1

    def _new_cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._root.cursor()
        cursor.execute(f"USE {quoted(self._alias)}")
        return cursor


def _identity(path: Path) -> tuple[int, ...]:
    """Return the identity of the file at a path: a value that changes when the file is written or
    when another file takes its place. Raises `DatabaseUnavailableError` if the path cannot be read.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise DatabaseUnavailableError(
            f"the database file {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def _attached(path: Path, *, alias: str, memory_bytes: int) -> duckdb.DuckDBPyConnection:
    root = empty_instance(memory_bytes=memory_bytes)
    try:
        root.execute(f"ATTACH {path_literal(path)} AS {quoted(alias)} (READ_ONLY, TYPE duckdb)")
        close_wall(root)
    except BaseException as error:
        root.close()
        if isinstance(error, duckdb.Error):
            raise DatabaseUnavailableError(
                f"the DuckDB database {str(path)!r} cannot be opened: {first_line(error)}"
            ) from error
        raise
    return root


class DuckdbSession:
    """One cursor at work."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        *,
        memory_bytes: int,
        readable: frozenset[str] | None,
        closed: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self.cursor = cursor
        self._memory_bytes = memory_bytes
        self._readable = readable
        self._closed = closed or {}

    def fetch(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched:
        """Run one SELECT and fetch all its rows in batches."""
        try:
            self._check(sql, params)
            # What was loaded into memory could be written to but for this; a file was attached for
            # reading anyway.
            self.cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                self.cursor.execute(sql, list(params))
                entries = self.cursor.description or []
                rows = collect(self.cursor.fetchmany, limits=limits, stop=stop)
            finally:
                with suppress(duckdb.FatalException):
                    # It would hide the INTERNAL error that it comes from.
                    self.cursor.execute("ROLLBACK")
        except (duckdb.Error, MemoryError) as error:
            raise self._translate(error, sql) from error
        return Fetched(
            tuple(str(entry[0]) for entry in entries),
            tuple(str(entry[1]) for entry in entries),
            rows,
        )

    def plan(
        self,
        sql: str,
        params: Sequence[object] = (),
        *,
        limits: QueryLimits,  # noqa: ARG002  # what Session asks for
        stop: Stop,  # noqa: ARG002
    ) -> Plan:
        """Return DuckDB's plan for one SELECT, without running it."""
        try:
            self._check(sql, params)
            explained = self._plan(sql, params)
            tables = self.cursor.execute(
                "SELECT database_name, schema_name, table_name, estimated_size FROM duckdb_tables()"
            ).fetchall()
        except (duckdb.Error, MemoryError) as error:
            raise self._translate(error, sql) from error
        return duckdb_plan(
            explained,
            {f"{database}.{schema}.{table}": size for database, schema, table, size in tables},
        )

    def interrupt(self) -> None:
        """Stop the running statement, if there is one."""
        self.cursor.interrupt()

    def _check(self, sql: str, params: Sequence[object]) -> None:
        """Check a text as DuckDB itself reads it: it must be one SELECT and read only readable
        tables, also inside views and macros. Raises `QueryRefusedError`. In a session without a
        wall nothing is checked.
        """
        if self._readable is None:
            return
        kinds = [statement.type for statement in self.cursor.extract_statements(sql)]
        if kinds != [duckdb.StatementType.SELECT]:
            names = ", ".join(kind.name for kind in kinds) or "nothing"
            raise QueryRefusedError(
                f"DuckDB reads the text as {names}", rule="engine", hint="send exactly one SELECT"
            )
        endings = tuple(f".{name}" for name in self._readable)
        if not all(name.endswith(endings) for name in self._tables_read(sql, params)):
            raise refusal("the tables of the catalogue")
        if not self._closed:
            return
        for table, read in _columns_of_plan(self._plan(sql, params)):
            for name, columns in self._closed.items():
                if table.endswith(f".{name}") and not columns.isdisjoint(read):
                    raise refusal("the columns of the catalogue")

    def _plan(self, sql: str, params: Sequence[object]) -> object:
        explained = self.cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", list(params)).fetchall()
        return json.loads(explained[0][1])

    def _tables_read(self, sql: str, params: Sequence[object]) -> list[str]:
        try:
            return [f".{_bare(name)}" for name in self.cursor.get_table_names(sql, qualified=True)]
        except duckdb.BinderException:
            # get_table_names binds without the catalogue, so that NATURAL JOIN and COLUMNS('...')
            # fail in it: ask the plan.
            return [
                f".{fold(table)}"
                for node in plan_nodes(self._plan(sql, params))
                if (table := plan_detail(node, "Table"))
            ]

    def _translate(self, error: Exception, sql: str) -> LongtableError | StoppedError:
        make = next((make for kind, make in _ERRORS if isinstance(error, kind)), None)
        return make(first_line(error), self._memory_bytes) if make else _failed(error, sql)


_FAULT = "DuckDB failed on this query by a fault of its own"
_ERRORS: tuple[tuple[type[Exception], Callable[[str, int], LongtableError | StoppedError]], ...] = (
    (duckdb.InterruptException, lambda *_: StoppedError()),
    (duckdb.OutOfMemoryException, lambda _, memory_bytes: QueryMemoryError(limit=memory_bytes)),
    (MemoryError, lambda _, memory_bytes: QueryMemoryError(limit=memory_bytes)),
    (duckdb.PermissionException, lambda *_: refusal("its own tables")),
    (
        duckdb.InternalException,
        lambda line, _: QueryFailedError(f"{_FAULT}: {line}", hint="write the query another way"),
    ),
    # Another query, at the same time, met a fault.
    (
        duckdb.FatalException,
        lambda *_: DatabaseUnavailableError(
            "DuckDB has to be started anew after a fault of its own: ask again"
        ),
    ),
    (
        duckdb.IOException,
        lambda line, _: DatabaseUnavailableError(f"the DuckDB database cannot be read: {line}"),
    ),
)
"""Pairs of an exception class and a function that makes this package's error. The function gets the
first line of DuckDB's message and the memory limit in bytes. The first pair whose class fits is
used.
"""


@contextmanager
def session_over_files(
    files: Mapping[Table, Path], *, limits: QueryLimits
) -> Iterator[DuckdbSession]:
    """Open a session of an instance that has a view over each Parquet file and can open no other
    file.
    """
    connection = empty_instance(memory_bytes=limits.memory_bytes)
    try:
        for table, path in files.items():
            # The columns by name: `*` would let the file's path be asked for.
            names = ", ".join(quoted(column.name) for column in table.columns)
            connection.execute(
                f"CREATE VIEW {quoted(table.name)} AS SELECT {names} FROM"
                f" read_parquet({path_literal(path)})"
            )
        connection.execute(f"SET allowed_paths = [{', '.join(map(path_literal, files.values()))}]")
        close_wall(connection)
    except duckdb.Error as error:
        connection.close()
        reason = re.sub(r"'[^']*/", "'", first_line(error))
        raise DatabaseUnavailableError(f"the kept results cannot be read: {reason}") from error
    try:
        yield DuckdbSession(
            connection,
            memory_bytes=limits.memory_bytes,
            readable=frozenset(table.name for table in files),
        )
    finally:
        connection.close()


def _columns_of_plan(plan: object) -> Iterator[tuple[str, set[str]]]:
    """Yield the folded name of each table that a plan scans, and the columns that the scan reads. A
    column that the planner left out is not read.
    """
    for node in plan_nodes(plan):
        if table := plan_detail(node, "Table"):
            projections = node["extra_info"].get("Projections", [])
            names = {
                str(name)
                for name in (projections if isinstance(projections, list) else [projections])
            }
            filters = re.findall(r'"((?:[^"]|"")+)"|(\w+)', plan_detail(node, "Filters"))
            yield fold(table), names | {quote or word for quote, word in filters}


def _bare(name: str) -> str:
    """Return the folded last part of a table's name. `name` has the form that `get_table_names`
    returns, such as `main."my table" AS t`.
    """
    table = statement(f"SELECT 1 FROM {name}", "duckdb").find(exp.Table)
    return fold(table.name) if table is not None else name


def _failed(error: Exception, sql: str) -> FailedAtError:
    """Return an error with the first line of DuckDB's message and the place that the message points
    at. Other lines are dropped, because they may name hidden tables.
    """
    text = str(error)
    first = re.split(r"\s*Did you mean|\s*Candidate", text.strip().split("\n", 1)[0])[0]
    place = re.search(r"LINE (\d+): (.*)\n( *)\^", text)
    offset = None
    if place is not None:
        label = len(f"LINE {place[1]}: ")
        near = place[2][max(0, len(place[3]) - label) :].rstrip(".")
        line = sql.split("\n")[int(place[1]) - 1] if int(place[1]) <= sql.count("\n") + 1 else ""
        # A long line is shown in part, between dots: what stands at the mark is looked for instead.
        at = (
            max(0, len(place[3]) - label)
            if line.startswith(place[2])
            else line.find(near)
            if line.count(near) == 1
            else -1
        )
        offset = (
            at + sum(len(part) + 1 for part in sql.split("\n")[: int(place[1]) - 1])
            if at >= 0
            else None
        )
    return FailedAtError(first, problem=_problem(error, first), offset=offset)


_TYPES = (
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.TypeMismatchException,
    duckdb.InvalidTypeException,
)


def _problem(error: Exception, text: str) -> Problem:
    if isinstance(error, duckdb.ParserException | duckdb.SyntaxException):
        return "syntax"
    if isinstance(error, _TYPES) or re.search(
        r"No function matches|Cannot (compare|mix|cast)|explicit type cast|Could not convert", text
    ):
        return "type"
    if re.search(r"[Aa]mbiguous", text):
        return "ambiguous"
    if isinstance(error, duckdb.CatalogException) or re.search(
        r"not found|does not (have|exist)", text
    ):
        return "unknown_name"
    return "other"
