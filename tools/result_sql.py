"""What is known of kept results, and a model's SQL over them: the handles it names are the only tables there are, behind both walls."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from longtable.base.errors import DatabaseError, DatabaseUnavailableError, QueryFailedError, UnknownTableError
from longtable.tools.catalog import Catalog, Column, Table, quoted
from longtable.tools.cells import without_labels
from longtable.tools.database import QueryLimits, QueryResult
from longtable.tools.engines.base import Fetched
from longtable.tools.engines.duckdb import DuckdbSession
from longtable.tools.engines.duckdb_instance import close_wall, empty_instance, path_literal
from longtable.tools.query_runner import Cancel, Runner, Stop
from longtable.tools.sql.masks import without_values


class UnknownResultError(DatabaseError):
    """The thread never had a result of this handle."""

    def __init__(self, handle: str, *, known: Sequence[str]) -> None:
        there = f"there are {', '.join(known[-10:])}" if known else "no query has run yet"
        super().__init__(f"this conversation has no result {handle[:40]!r}: {there}")
        self.handle, self.known = handle, tuple(known)


class ResultGoneError(DatabaseError):
    """The rows of a result were dropped to stay within the quota; `sql` makes them again."""

    def __init__(self, handle: str, *, sql: str) -> None:
        super().__init__(f"the rows of {handle} are no longer kept (quota): run its SQL again: {sql}")
        self.handle, self.sql = handle, sql


@dataclass(frozen=True, kw_only=True)
class ResultMeta:
    """What is known of a result without its rows. `names` are its columns in SQL over handles: `columns`, each one once."""

    handle: str
    sql: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    row_count: int
    bytes: int
    created: str
    """Time in ISO 8601."""
    masked: tuple[int, ...] = ()
    """Indexes of the columns whose values no model sees."""


def run_over_handles(
    sql: str,
    metas: Mapping[str, ResultMeta],
    path_of: Callable[[str], Path],
    *,
    limits: QueryLimits,
    runner: Runner,
    cancel: Cancel | None,
) -> QueryResult:
    """Check one SELECT against these handles, and run it over their files; `path_of` raises for a result that is gone."""
    # sqlglot takes a tenth of a second to load: not before there is a query.
    from longtable.tools.sql.hints import add_hints
    from longtable.tools.sql.wall import check

    started = time.monotonic()
    catalog = Catalog(tuple(map(_table, metas.values())), frozenset({"memory"}))
    verdict = check(sql, dialect="duckdb", catalog=catalog)
    try:
        verdict.raise_if_refused()
    except UnknownTableError as error:
        known = ", ".join(list(metas)[-10:]) or "no results yet"
        hint = f"the tables here are the handles of results: {known}"
        raise UnknownTableError(error.reason, rule=error.rule, hint=hint, line=error.line, column=error.column) from error
    paths = {handle: path_of(handle) for handle in verdict.tables}

    def work(stop: Stop) -> Fetched:
        with opened({metas[handle]: path for handle, path in paths.items()}, limits=limits) as session, stop.watch(session):
            return session.fetch(verdict.sql, limits=limits, stop=stop)

    try:
        fetched = runner.run(work, seconds=limits.seconds, cancel=cancel)
    except QueryFailedError as error:
        if verdict.masks:
            error = without_values(error, sql)
        raise add_hints(error, asked=sql, ran=verdict.sql, dialect="duckdb", catalog=catalog, tables=verdict.tables) from error
    ms = round((time.monotonic() - started) * 1000)
    masked, reads = verdict.masks.of(fetched.columns), (*verdict.tables, *verdict.columns)
    return QueryResult(
        sql=verdict.sql,
        columns=fetched.columns,
        types=tuple(map(without_labels, fetched.types)),
        rows=fetched.rows,
        row_count=len(fetched.rows),
        ms=ms,
        masked=masked,
        reads=reads,
        tables=verdict.tables,
    )


def _table(meta: ResultMeta) -> Table:
    types = [*meta.types, *[""] * (len(meta.names) - len(meta.types))]
    # Without a type a masked column can be shown, but not sorted or compared: what is kept may be a union of masked values and others.
    columns = (
        Column(name, "" if place in meta.masked else kind, masked=place in meta.masked)
        for place, (name, kind) in enumerate(zip(meta.names, types, strict=False))
    )
    return Table(meta.handle, "table", tuple(columns))


@contextmanager
def opened(handles: Mapping[ResultMeta, Path], *, limits: QueryLimits) -> Iterator[DuckdbSession]:
    """Open an instance that holds a view of each handle and may open no file but theirs."""
    connection = empty_instance(memory_bytes=limits.memory_bytes)
    try:
        for meta, path in handles.items():
            # The columns by name: `*` would let the file's path be asked for.
            names = ", ".join(map(quoted, meta.names))
            connection.execute(f"CREATE VIEW {quoted(meta.handle)} AS SELECT {names} FROM read_parquet({path_literal(path)})")
        connection.execute(f"SET allowed_paths = [{', '.join(map(path_literal, handles.values()))}]")
        close_wall(connection)
    except duckdb.Error as error:
        connection.close()
        reason = re.sub(r"'[^']*/", "'", str(error).splitlines()[0])
        raise DatabaseUnavailableError(f"the kept results cannot be read: {reason}") from error
    try:
        yield DuckdbSession(connection, memory_bytes=limits.memory_bytes, readable=frozenset(meta.handle for meta in handles))
    finally:
        connection.close()
