"""One database to ask: opened by URL, its catalogue, and one read-only query at a time, or many from many threads."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from longtable.base.errors import ConfigError, MissingExtraError, QueryFailedError, QueryRefusedError
from longtable.tools.catalog import Catalog
from longtable.tools.cells import without_labels
from longtable.tools.engines.base import Engine, Fetched, FileLimits, LoadNote, QueryLimits, Row
from longtable.tools.query_runner import Cancel, Runner, Stop
from longtable.tools.sql.cost import Plan, stops_early
from longtable.tools.sql.masks import masked_rows, without_values
from longtable.tools.sql.table_policy import TablePolicy, load_policy
from longtable.tools.sql.visible import visible
from longtable.tools.url import Dialect, Location, parse_url, without_password

if TYPE_CHECKING:
    from longtable.tools.schema.knowledge import Knowledge
    from longtable.tools.sql.wall import Verdict

__all__ = ["BUSY_SECONDS", "Cancel", "Database", "FileLimits", "QueryLimits", "QueryResult", "TablePolicy"]

BUSY_SECONDS = 5.0
PLAN_SECONDS = 5.0


@dataclass(frozen=True)
class QueryResult:
    """A whole result. `sql` is the text that ran, tables of which columns are denied by their names;

    `types` are the engine's names, enums without their labels; `ms` is the time from call to last row.
    """

    sql: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]
    row_count: int
    ms: int
    masked: frozenset[int] = frozenset()
    """Places of the columns whose values no model is shown."""
    reads: tuple[str, ...] = ()
    """Tables and columns that were read, as `table` and `table.column`: rather one too many than one too few."""

    def shown(self, rows: Sequence[Row]) -> list[Row]:
        """Return some of the rows as a model may see them."""
        return masked_rows(rows, self.masked)


class Database:
    """A database behind both walls; safe to share between threads, usable as a context manager."""

    def __init__(self, engine: Engine, *, url: str, location: Location, limits: QueryLimits, policy: TablePolicy) -> None:
        self.url, self.name, self.limits, self.policy = without_password(url, location), location.name, limits, policy
        self.dialect: Dialect = location.dialect
        self.engine = engine
        self._runner = Runner()
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._version: object = None
        self._knowledge: Knowledge | None = None

    @classmethod
    def open(
        cls,
        url: str,
        *,
        limits: QueryLimits | None = None,
        policy: TablePolicy | Path | None = None,
        busy_seconds: float = BUSY_SECONDS,
        files: FileLimits | None = None,
    ) -> "Database":
        """Open what is there, never create it.

        `busy_seconds` is how long is waited for what others hold: a SQLite file that another program has locked, a locked
        table of a server, a free connection to it; `files` bounds what is loaded of data files. Raises `ConfigError` for a
        URL or a policy file that cannot be read and `DatabaseUnavailableError` for a file or a server that cannot.
        """
        limits = limits or QueryLimits()
        policy = load_policy(policy) if isinstance(policy, Path) else policy or TablePolicy()
        if policy.rows is not None and policy.rows < limits.rows:
            limits = replace(limits, rows=policy.rows)
        location = parse_url(url)
        engine = _open_engine(location, limits=limits, busy_seconds=busy_seconds, files=files or FileLimits())
        return cls(engine, url=url, location=location, limits=limits, policy=policy)

    @property
    def notes(self) -> tuple[LoadNote, ...]:
        """What was guessed when its files were loaded; empty for any other database."""
        return self.engine.notes

    def catalog(self) -> Catalog:
        """Return the tables that can be read; found out once, then kept until `refresh` sees a change."""
        with self._lock:
            return self._catalog or self._reflected(self.engine.schema_version())

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now: found out again where the schema may have changed since."""
        version = self.engine.schema_version()
        with self._lock:
            return self._catalog if self._catalog and version == self._version else self._reflected(version)

    def knowledge(self) -> "Knowledge":
        """Return what is learned of the catalogue by looking: search, inferred keys. Kept until the schema changes."""
        from longtable.tools.schema.knowledge import Knowledge

        catalog = self.catalog()
        with self._lock:
            if self._knowledge is None or self._knowledge.catalog is not catalog:
                self._knowledge = Knowledge(self, catalog)
            return self._knowledge

    def _reflected(self, version: object) -> Catalog:
        found = self.engine.reflect()
        catalog = visible(found, self.policy, dialect=self.dialect)
        self.engine.guard(catalog, found)
        self._catalog, self._version = catalog, version
        return catalog

    def run(self, sql: str, *, seconds: float | None = None, cancel: Cancel | None = None) -> QueryResult:
        """Check one SELECT, run it behind the engine's wall, and return all its rows.

        `seconds`: at most so long, where that is less than the limit. Raises `QueryRefusedError`, `QueryFailedError`,
        `QueryTimeoutError`, `TooManyRowsError`, `ResultTooLargeError`, `QueryCancelledError` or
        `DatabaseUnavailableError`; after any of them the database can be asked again.
        """
        started = time.monotonic()
        verdict = self._checked(sql)

        def work(stop: Stop) -> Fetched:
            with self.engine.walled(stop) as session:
                stop.watch(session)
                try:
                    return session.fetch(verdict.sql, limits=self.limits, stop=stop)
                finally:
                    stop.watch(None)

        with self._explained(sql, verdict):
            fetched = self._runner.run(work, seconds=min(seconds or self.limits.seconds, self.limits.seconds), cancel=cancel)
        ms = round((time.monotonic() - started) * 1000)
        masked, reads = verdict.masks.of(fetched.columns), (*verdict.tables, *verdict.columns)
        columns = tuple(verdict.headings.get(name, name) for name in fetched.columns)
        types = tuple(map(without_labels, fetched.types))
        return QueryResult(verdict.told, columns, types, fetched.rows, len(fetched.rows), ms, masked, reads)

    def check_sql(self, sql: str, *, cancel: Cancel | None = None) -> Plan:
        """Check one SELECT, have the engine plan it behind its wall, and return what it would do; nothing runs.

        Raises what `run` does, but for what only running shows.
        """
        verdict = self._checked(sql)

        def work(stop: Stop) -> Plan:
            with self.engine.walled(stop) as session:
                stop.watch(session)
                try:
                    return session.plan(verdict.sql, limits=self.limits, stop=stop)
                finally:
                    stop.watch(None)

        with self._explained(sql, verdict):
            plan = self._runner.run(work, seconds=min(PLAN_SECONDS, self.limits.seconds), cancel=cancel)
        tables = {table.name for table in self.catalog().tables if table.kind == "table"}
        return Plan() if set(verdict.tables) <= tables and stops_early(verdict.told, self.dialect) else plan

    def _checked(self, sql: str) -> "Verdict":
        # sqlglot takes a tenth of a second to load: not before there is a query.
        from longtable.tools.sql.wall import check

        verdict = check(sql, dialect=self.dialect, catalog=self.catalog())
        verdict.raise_if_refused()
        return verdict

    @contextmanager
    def _explained(self, sql: str, verdict: "Verdict") -> Iterator[None]:
        """Tell of a failing query what its readers want to know: where it failed, and what was probably meant."""
        try:
            yield
        except QueryFailedError as error:
            from longtable.tools.sql.hints import explained

            if verdict.masks:
                error = without_values(error, sql)
            found = explained(error, asked=sql, ran=verdict.sql, dialect=self.dialect, catalog=self.catalog(), tables=verdict.tables)
            raise found from error
        except QueryRefusedError as error:
            from longtable.tools.sql.hints import place_of_start

            hint = "write it another way" if verdict.masks else error.hint  # it may tell the count that was too large
            line, column = place_of_start(sql, self.dialect)  # an engine says of no more than the whole
            raise QueryRefusedError(error.reason, rule=error.rule, hint=hint, line=line, column=column) from error

    def read(self, sql: str, params: Sequence[object] = (), *, seconds: float, cancel: Cancel | None = None) -> list[Row]:
        """Run SQL that this package wrote over visible tables, with values as parameters; never a model's text.

        Denied columns are not there for it either, and masked ones hold nothing but NULL.
        """
        catalog = self.catalog()
        if catalog.hidden_columns or catalog.has_masks:
            from longtable.tools.sql.wall import own_sql

            sql = own_sql(sql, dialect=self.dialect, catalog=catalog)

        def work(stop: Stop) -> Fetched:
            with self.engine.trusted(stop) as session:
                stop.watch(session)
                try:
                    return session.fetch(sql, params, limits=self.limits, stop=stop)
                finally:
                    stop.watch(None)

        return self._runner.run(work, seconds=min(seconds, self.limits.seconds), cancel=cancel).rows

    def check(self, sql: str) -> "Verdict":
        """Return what the wall says of a query, with the tables and columns it reads. Nothing is run."""
        from longtable.tools.sql.wall import check

        return check(sql, dialect=self.dialect, catalog=self.catalog())

    def close(self) -> None:
        """Cancel what runs and close the file."""
        self._runner.cancel_all()
        self.engine.close()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _open_engine(location: Location, *, limits: QueryLimits, busy_seconds: float, files: FileLimits) -> Engine:
    """Load one engine and no other: each takes its time, and PostgreSQL's driver need not be installed."""
    if location.server:
        try:
            from longtable.tools.engines.postgres import PostgresEngine
        except ImportError as error:
            raise MissingExtraError("a PostgreSQL database cannot be opened", "postgres") from error
        return PostgresEngine(location.server, limits=limits, wait_seconds=busy_seconds)
    if location.path is None:
        raise ConfigError("the database URL names neither a file nor a server")
    if location.load:
        from longtable.tools.engines.files import open_files

        return open_files(location.path, limits=limits, files=files)
    if location.dialect == "sqlite":
        from longtable.tools.engines.sqlite import SqliteEngine

        return SqliteEngine(location.path, limits=limits, busy_seconds=busy_seconds)
    from longtable.tools.engines.duckdb import DuckdbEngine

    return DuckdbEngine.of_file(location.path, limits=limits)
