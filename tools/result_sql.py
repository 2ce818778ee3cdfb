"""Run a model's SQL over kept results: the handles it names are the only tables there are, behind both walls."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb

from longtable.base.errors import DatabaseUnavailableError, QueryFailedError, UnknownTableError
from longtable.tools.catalog import Catalog, Table, quoted
from longtable.tools.cells import without_labels
from longtable.tools.database import QueryLimits, QueryResult
from longtable.tools.engines.base import Fetched
from longtable.tools.engines.duckdb import DuckdbSession
from longtable.tools.parquet import close_wall, empty_instance, path_literal
from longtable.tools.query_runner import Cancel, Runner, Stop
from longtable.tools.sql.hints import add_hints
from longtable.tools.sql.verdict import without_values
from longtable.tools.sql.wall import check


def run_over_handles(
    sql: str, catalog: Catalog, files: Mapping[str, str], *, limits: QueryLimits, runner: Runner, cancel: Cancel | None
) -> QueryResult | str:
    """Check one SELECT against the handles of a catalogue, and run it over their files. Return the handle whose file is gone, if one is."""
    started = time.monotonic()
    verdict = check(sql, dialect="duckdb", catalog=catalog)
    try:
        verdict.raise_if_refused()
    except UnknownTableError as error:
        known = ", ".join([table.name for table in catalog.tables][-10:]) or "no results yet"
        hint = f"the tables here are the handles of results: {known}"
        raise UnknownTableError(error.reason, rule=error.rule, hint=hint, line=error.line, column=error.column) from error
    handles = {table: Path(files[table.name]) for table in catalog.tables if table.name in verdict.tables}
    if gone := next((table.name for table, path in handles.items() if not path.exists()), ""):
        return gone

    def work(stop: Stop) -> Fetched:
        with opened(handles, limits=limits) as session, stop.watch(session):
            return session.fetch(verdict.sql, limits=limits, stop=stop)

    try:
        fetched = runner.run(work, seconds=limits.seconds, cancel=cancel)
    except QueryFailedError as error:
        if verdict.masks:
            error = without_values(error, sql)
        raise add_hints(error, asked=sql, ran=verdict.sql, dialect="duckdb", catalog=catalog, tables=verdict.tables) from error
    ms = round((time.monotonic() - started) * 1000)
    return QueryResult(
        sql=verdict.sql,
        columns=fetched.columns,
        types=tuple(map(without_labels, fetched.types)),
        rows=fetched.rows,
        row_count=len(fetched.rows),
        ms=ms,
        masked=verdict.masks.of(fetched.columns),
        reads=(*verdict.tables, *verdict.columns),
        tables=verdict.tables,
    )


@contextmanager
def opened(handles: Mapping[Table, Path], *, limits: QueryLimits) -> Iterator[DuckdbSession]:
    """Open an instance that holds a view of each handle and may open no file but theirs."""
    connection = empty_instance(memory_bytes=limits.memory_bytes)
    try:
        for table, path in handles.items():
            # The columns by name: `*` would let the file's path be asked for.
            names = ", ".join(quoted(column.name) for column in table.columns)
            connection.execute(f"CREATE VIEW {quoted(table.name)} AS SELECT {names} FROM read_parquet({path_literal(path)})")
        connection.execute(f"SET allowed_paths = [{', '.join(map(path_literal, handles.values()))}]")
        close_wall(connection)
    except duckdb.Error as error:
        connection.close()
        reason = re.sub(r"'[^']*/", "'", str(error).splitlines()[0])
        raise DatabaseUnavailableError(f"the kept results cannot be read: {reason}") from error
    try:
        yield DuckdbSession(connection, memory_bytes=limits.memory_bytes, readable=frozenset(table.name for table in handles))
    finally:
        connection.close()
