"""Open a database by URL, read its catalogue, and run read-only queries from any number of
threads.
"""

import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from longtable.base.errors import ConfigError
from longtable.base.url import Dialect, Location, parse_url, without_password
from longtable.tools.catalog import Catalog
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
from longtable.tools.sql.table_policy import TablePolicy, load_policy
from longtable.tools.sql.verdict import Plan, Predicates, Probe, Verdict
from longtable.tools.worker_backend import WorkerBackend, WorkerParser
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.worker_requests import CHECK, PREDICATES, PROBES, Answer, Request

if TYPE_CHECKING:
    from longtable.tools.schema.catalog_facts import Knowledge

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


class Backend(Protocol):
    """Where the database is open: in an engine of this process, or in workers."""

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None before it was read."""
        ...

    def catalog(self) -> Catalog:
        """Return the tables that can be read."""
        ...

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now."""
        ...

    def text(self, request: Request[Answer]) -> Answer:
        """Do a job on a SQL text."""
        ...

    def run(self, sql: str, *, seconds: float | None, cancel: Cancel | None) -> QueryResult:
        """Check one SELECT and run it behind the engine's wall."""
        ...

    def check_sql(self, sql: str, *, cancel: Cancel | None) -> Plan:
        """Check one SELECT and return the engine's plan for it."""
        ...

    def read(
        self, sql: str, params: Sequence[object], *, seconds: float, cancel: Cancel | None
    ) -> list[Row]:
        """Run SQL of this package."""
        ...

    def close(self) -> None: ...


class Database:
    """A database behind both walls; safe to share between threads, usable as a context manager."""

    notes: tuple[LoadNote, ...]
    """The guesses made when its files were loaded; empty for any other database."""

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
        self.dialect: Dialect = location.dialect
        self.notes = notes
        self._lock = threading.Lock()
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
        isolation: Isolation = "process",
    ) -> "Database":
        """Open an existing database; never create one. It is a context manager, or `close` ends it.

        `busy_seconds`: how long to wait for a locked file or table, or for a free connection.
        `files`: limits on data files. `isolation="process"` runs SQLite and DuckDB in processes of
        their own, and parses a server's queries in one. An error in the file may then be raised by
        the first call only. `isolation="none"` does all this in this process, with no bound on a
        query's memory.

        Raises `ConfigError` for a URL or a policy file that cannot be read, and if there is no
        Python to start a process; `DatabaseUnavailableError` for a file or server that cannot be
        read.
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
        return database

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None before it was read."""
        return self.backend.version

    def catalog(self) -> Catalog:
        """Return the tables that can be read; read once, then kept until `refresh` sees a
        change.
        """
        return self.backend.catalog()

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now; read it again if the schema may have changed."""
        return self.backend.refresh()

    def knowledge(self) -> "Knowledge":
        """Return the facts that sampling the data adds to the catalogue: search and inferred keys.
        Kept until the schema changes.
        """
        from longtable.tools.schema.catalog_facts import Knowledge

        catalog = self.catalog()
        with self._lock:
            if self._knowledge is None or self._knowledge.catalog is not catalog:
                self._knowledge = Knowledge(self, catalog)
            return self._knowledge

    def run(
        self, sql: str, *, seconds: float | None = None, cancel: Cancel | None = None
    ) -> QueryResult:
        """Check one SELECT, run it behind the engine's wall, and return all its rows.

        `seconds` is a time limit shorter than the database's own. Raises `QueryRefusedError`,
        `QueryFailedError`, `QueryTimeoutError`, `TooManyRowsError`, `ResultTooLargeError`,
        `QueryCancelledError` or `DatabaseUnavailableError`; after any of them the database can be
        used again.
        """
        return self.backend.run(sql, seconds=seconds, cancel=cancel)

    def check_sql(self, sql: str, *, cancel: Cancel | None = None) -> Plan:
        """Check one SELECT and return the engine's plan for it; nothing runs.

        Raises what `run` raises, except for errors that only running shows.
        """
        return self.backend.check_sql(sql, cancel=cancel)

    def read(
        self,
        sql: str,
        params: Sequence[object] = (),
        *,
        seconds: float,
        cancel: Cancel | None = None,
    ) -> list[Row]:
        """Run SQL that this package wrote over visible tables, with values as parameters; never a
        model's text.

        It finds no denied columns, and masked ones hold only NULL.
        """
        return self.backend.read(sql, params, seconds=seconds, cancel=cancel)

    def check(self, sql: str) -> Verdict:
        """Return the wall's verdict on a query, with the tables and columns it reads. Nothing
        runs.
        """
        return self.backend.text(CHECK.request({"sql": sql}))

    def predicates(self, sql: str) -> Predicates:
        """Return the conditions of a query that found no rows; each can be tried alone."""
        return self.backend.text(PREDICATES.request({"sql": sql}))

    def probes(self, sql: str, question: str = "") -> list[Probe]:
        """Return the queries that check a query which ran to answer `question`."""
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
