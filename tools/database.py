"""Open a database by URL, read its catalogue, and run read-only queries from any number of
threads.
"""

import copy
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from longtable.base.concurrency import BoundedCache
from longtable.base.errors import ConfigError, QueryFailedError, QueryRefusedError
from longtable.base.url import Location, parse_url, without_password
from longtable.tools.catalog import Catalog, Table
from longtable.tools.engines.base import (
    FileLimits,
    LoadNote,
    QueryLimits,
    QueryResult,
    Row,
    check_path,
)
from longtable.tools.files.loaded_database import load_database, remove_folder
from longtable.tools.in_process import InProcess, LocalParser, open_engine
from longtable.tools.row_access import (
    RowAccess,
    RowParameters,
    checked_parameters,
    current_access,
    rows_key,
)
from longtable.tools.sql.table_policy import TablePolicy, load_policy
from longtable.tools.sql.verdict import Plan, Predicates, Probe, Verdict
from longtable.tools.worker_backend import WorkerBackend, WorkerParser
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.worker_requests import CHECK, PREDICATES, PROBES, Answer, Request

if TYPE_CHECKING:
    from longtable.tools.schema.catalog_facts import CatalogFacts

__all__ = [
    "BUSY_SECONDS",
    "Cancel",
    "Database",
    "FileLimits",
    "QueryLimits",
    "QueryResult",
    "TablePolicy",
]

Isolation = Literal["process", "none"]

BUSY_SECONDS = 5.0
FACTS = 16
"""How many people's facts about samples of the data are kept. Each person sees other rows."""


class Backend(Protocol):
    """The place where the database is open: an engine in this process, or worker processes."""

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None until the catalogue has been read."""
        ...

    def catalog(self) -> Catalog:
        """Return the tables that can be read."""
        ...

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now."""
        ...

    def text(self, request: Request[Answer]) -> Answer:
        """Run a job on a SQL text, such as checking it, and return the answer."""
        ...

    def run(
        self, sql: str, *, rows: RowParameters, seconds: float | None, cancel: Cancel | None
    ) -> QueryResult:
        """Check one SELECT and run it behind the engine's wall. `rows` are bound to the marks of
        row filters.
        """
        ...

    def check_sql(self, sql: str, *, rows: RowParameters | None, cancel: Cancel | None) -> Plan:
        """Check one SELECT and return the engine's plan for it. Without `rows`, NULL is bound."""
        ...

    def read(
        self,
        sql: str,
        params: Sequence[object],
        *,
        rows: RowParameters,
        seconds: float,
        cancel: Cancel | None,
    ) -> list[Row]:
        """Run SQL that this package wrote and return the rows."""
        ...

    def close(self) -> None: ...


class Database:
    """A database behind both walls. Threads may share it, and it is usable as a context manager."""

    notes: tuple[LoadNote, ...]
    """The guesses made when data files were loaded as this database; empty for any other database.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        url: str,
        location: Location,
        limits: QueryLimits,
        policy: TablePolicy,
        notes: tuple[LoadNote, ...] = (),
    ) -> None:
        self.backend = backend
        self.url = without_password(url, location)
        self.name = location.name
        self.limits = limits
        self.policy = policy
        self.dialect = location.dialect
        self.notes = notes
        self._lock = threading.Lock()
        self._facts: BoundedCache[str, CatalogFacts] = BoundedCache(FACTS)
        self._access: RowAccess | None = None

    @classmethod
    def open(
        cls,
        url: str,
        *,
        limits: QueryLimits | None = None,
        policy: TablePolicy | Path | None = None,
        busy_seconds: float = BUSY_SECONDS,
        files: FileLimits | None = None,
        isolation: Isolation = "process",
    ) -> "Database":
        """Open an existing database; never create one. Close it with `close`, or use it as a
        context manager.

        `busy_seconds`: how long to wait for a locked file or table, or for a free connection.
        `files`: limits on data files.

        `isolation="process"` runs SQLite and DuckDB in separate processes. An error in the database
        file may then be raised only by the first call. For a server such as PostgreSQL, only the
        parsing of queries runs in a separate process. `isolation="none"` does everything in this
        process, with no limit on the memory of a query.

        Raises `ConfigError` for a URL or a policy file that cannot be read, or if no Python is
        found to start a process. Raises `DatabaseUnavailableError` for a file or server that cannot
        be read.
        """
        if isolation not in ("process", "none"):
            raise ConfigError(f'isolation must be "process" or "none", found {isolation!r}')
        limits = limits or QueryLimits()
        policy = load_policy(policy) if isinstance(policy, Path) else policy or TablePolicy()
        if policy.rows is not None and policy.rows < limits.rows:
            limits = replace(limits, rows=policy.rows)
        location = parse_url(url)
        notes: tuple[LoadNote, ...] = ()
        folder: Path | None = None
        if location.load and location.path is not None:
            loaded, notes = load_database(
                location.path, files or FileLimits(), in_process=isolation == "none"
            )
            folder = loaded.parent
            location = replace(location, path=loaded, load=False)
        try:
            backend = _open_backend(location, limits, policy, busy_seconds, isolation)
            database = cls(
                backend, url=url, location=location, limits=limits, policy=policy, notes=notes
            )
        except BaseException:
            if folder is not None:
                remove_folder(folder)
            raise
        if folder is not None:
            weakref.finalize(database, remove_folder, folder)
        _check_filters(database)
        return database

    def bound(self, parameters: Mapping[str, object]) -> "Database":
        """Return this database as it is seen with these row parameters, whoever asks. Both share
        their connections: closing one closes both.

        Raises `RowParameterError` for parameters that are no single values.
        """
        values = checked_parameters(parameters)
        seen = copy.copy(self)
        seen._access = RowAccess(lambda: values, self.policy.row_filters)
        seen._facts = BoundedCache(1)
        return seen

    @property
    def access(self) -> RowAccess | None:
        """Return whose rows are read: those of `bound`, otherwise those of the running turn. None
        outside of a turn.
        """
        return self._access or current_access()

    @property
    def is_bound(self) -> bool:
        """Return whether this database was made by `bound`."""
        return self._access is not None

    def _rows(self) -> RowParameters:
        """Return the row parameters that hold here; empty if the policy has no row filters, or if
        there is nobody whose rows could be read. Raises `RowParameterError` if they cannot be read.
        """
        access = self.access if self.policy.row_filters else None
        return access.parameters if access is not None else {}

    def rows_key(self) -> str:
        """Return the key of the rows that can be read here, "" if the policy has no row filters."""
        if not self.policy.row_filters:
            return ""
        access = self.access
        filters = self.policy.row_filters
        return access.key_of(filters) if access is not None else rows_key(filters, {})

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None until the catalogue has been read."""
        return self.backend.version

    def catalog(self) -> Catalog:
        """Return the tables that can be read. They are read once and kept until `refresh` finds
        that the schema changed.
        """
        return self.backend.catalog()

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now. It is read again if the schema may have changed."""
        return self.backend.refresh()

    def facts(self) -> "CatalogFacts":
        """Return the facts that samples of the data add to the catalogue: a search index and
        inferred keys. They are kept until the schema changes.
        """
        from longtable.tools.schema.catalog_facts import CatalogFacts

        catalog = self.catalog()
        key = self.rows_key()
        with self._lock:
            facts = self._facts.get(key)
            if facts is None or facts.catalog is not catalog:
                facts = self._facts.put(key, CatalogFacts(self, catalog))
            return facts

    def run(
        self, sql: str, *, seconds: float | None = None, cancel: Cancel | None = None
    ) -> QueryResult:
        """Check one SELECT, run it behind the engine's wall, and return all its rows.

        `seconds` may set a time limit shorter than that of the database. Raises
        `QueryRefusedError`, `QueryFailedError`, `QueryTimeoutError`, `TooManyRowsError`,
        `ResultTooLargeError`, `QueryCancelledError`, `RowParameterError` or
        `DatabaseUnavailableError`. The database can be used again after each of these errors.
        """
        result = self.backend.run(sql, rows=self._rows(), seconds=seconds, cancel=cancel)
        return replace(result, rows_key=self.rows_key()) if result.reads_some_rows else result

    def check_sql(self, sql: str, *, cancel: Cancel | None = None) -> Plan:
        """Check one SELECT and return the engine's plan for it, without running it. The plan of a
        query over filtered rows tells the numbers of rows that can be seen, and nothing else.

        Raises the errors of `run`, except those that only running the query can show.
        """
        return self.backend.check_sql(sql, rows=self._rows(), cancel=cancel)

    def check_names(self, sql: str, *, cancel: Cancel | None = None) -> None:
        """Check one SELECT that is not going to run for anybody yet, such as one of a knowledge
        folder. No row parameter is needed. Raises the errors of `check_sql`.
        """
        self.backend.check_sql(sql, rows=None, cancel=cancel)

    def read(
        self,
        sql: str,
        params: Sequence[object] = (),
        *,
        seconds: float,
        cancel: Cancel | None = None,
    ) -> list[Row]:
        """Run SQL over visible tables that this package wrote, with values as parameters. Never
        pass a model's text.

        Denied columns and rows that a row filter leaves out cannot be read, and masked columns hold
        only NULL.
        """
        rows = self._rows()
        return self.backend.read(sql, params, rows=rows, seconds=seconds, cancel=cancel)

    def check(self, sql: str) -> Verdict:
        """Return the wall's verdict on a query, with the tables and columns that the query reads.
        The query does not run.
        """
        return self.backend.text(CHECK.request({"sql": sql}))

    def predicates(self, sql: str) -> Predicates:
        """Return the conditions of a query that found no rows, in a form that lets each be tried
        alone.
        """
        return self.backend.text(PREDICATES.request({"sql": sql}))

    def probes(self, sql: str, question: str = "") -> list[Probe]:
        """Return the queries that check `sql`, a query that was run to answer `question`."""
        return self.backend.text(PROBES.request({"sql": sql, "question": question}))

    def close(self) -> None:
        """Cancel running queries and close the database."""
        self.backend.close()

    def __repr__(self) -> str:
        return f"<Database {self.name} ({self.dialect})>"

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_filters(database: Database) -> None:
    """Raise `ConfigError` for a row filter that does not fit, now and not by the first query. The
    engine itself plans a query of each filtered table, because it may have more to say of types.
    """
    if not database.policy.row_filters:
        return
    try:
        catalog = database.catalog()
        for table in catalog.tables:
            if catalog.row_filter(table) is not None and table.columns:
                _check_filter(database, table)
    except BaseException:
        database.close()
        raise


def _check_filter(database: Database, table: Table) -> None:
    try:
        database.check_names(f"SELECT 1 FROM {table.sql_name}")
    except (QueryFailedError, QueryRefusedError) as error:
        entry = f"{table.schema}.{table.bare_name}".casefold()
        if entry not in database.policy.row_filters:
            entry = table.bare_name.casefold()
        raise ConfigError(
            f"{database.policy.place_of_filter(entry)}: the database cannot use the row filter of"
            f" {table.name!r}: cast its parameters to the types they are compared with, as in"
            f" CAST(:name AS TEXT) ({error.problem})"
        ) from error


def _open_backend(
    location: Location,
    limits: QueryLimits,
    policy: TablePolicy,
    busy_seconds: float,
    isolation: Isolation,
) -> Backend:
    if isolation == "process" and location.path is not None and not location.server:
        check_path(location.path)
        return WorkerBackend(location, limits=limits, policy=policy, busy_seconds=busy_seconds)
    engine = open_engine(location, limits=limits, busy_seconds=busy_seconds)
    if isolation == "process" and location.server:
        parser = WorkerParser(limits=limits, wait_seconds=busy_seconds)
        return InProcess(engine, parser, limits=limits, policy=policy)
    return InProcess(engine, LocalParser(), limits=limits, policy=policy)
