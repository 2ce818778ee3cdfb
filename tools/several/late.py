"""Open a database that may be down: a server that cannot be reached, a file that is not there. Its
uses fail until it is up, and each failure says what is wrong.
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from longtable.base.errors import DatabaseUnavailableError
from longtable.base.url import parse_url
from longtable.tools.catalog import Catalog
from longtable.tools.database import Backend, Database
from longtable.tools.engines.base import QueryLimits, QueryResult, Row
from longtable.tools.row_access import RowParameters
from longtable.tools.sql.table_policy import TablePolicy, load_policy
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.worker_requests import Answer, Request

RETRY_SECONDS = 1.0
"""Uses within this time after a failure get the same error, because a server that is down may take
seconds to say so, and a turn asks several times.
"""


def open_or_defer(
    url: str, *, limits: QueryLimits | None = None, policy: TablePolicy | Path | None = None
) -> Database:
    """Return a database as `Database.open` does; if it is down, one that is opened by its first use
    when it is up. Raises `ConfigError` as `Database.open` does.
    """
    policy = load_policy(policy) if isinstance(policy, Path) else policy or TablePolicy()
    opening = partial(Database.open, url, limits=limits, policy=policy)
    try:
        return opening()
    except DatabaseUnavailableError as error:
        late = LateBackend(opening, error)
    database = Database(
        late, url=url, location=parse_url(url), limits=limits or QueryLimits(), policy=policy
    )
    late.when_open = partial(_take_notes, database)
    return database


def _take_notes(database: Database, opened: Database) -> None:
    database.notes = opened.notes


class LateBackend:
    """A backend that is opened by its first use. Threads may share it."""

    when_open: Callable[[Database], None] | None = None
    """Called with the database that was opened."""

    def __init__(
        self,
        open_database: Callable[[], Database],
        error: DatabaseUnavailableError,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = open_database
        self._clock = clock
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._failure = str(error)
        self._failed_at = clock()
        self._closed = False

    def _opened(self) -> Backend:
        with self._lock:
            if self._database is not None:
                return self._database.backend
            if self._closed:
                raise DatabaseUnavailableError("the database was closed: open it again")
            if self._clock() - self._failed_at < RETRY_SECONDS:
                raise DatabaseUnavailableError(self._failure)
            try:
                self._database = self._open()
            except DatabaseUnavailableError as error:
                self._failure = str(error)
                self._failed_at = self._clock()
                raise
            if self.when_open is not None:
                self.when_open(self._database)
            return self._database.backend

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None until the catalogue has been read."""
        return self._database.version if self._database is not None else None

    def catalog(self) -> Catalog:
        """Return the tables that can be read."""
        return self._opened().catalog()

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now."""
        return self._opened().refresh()

    def text(self, request: Request[Answer]) -> Answer:
        """Run a job on a SQL text, such as checking it, and return the answer."""
        return self._opened().text(request)

    def run(
        self, sql: str, *, rows: RowParameters, seconds: float | None, cancel: Cancel | None
    ) -> QueryResult:
        """Check one SELECT and run it behind the engine's wall."""
        return self._opened().run(sql, rows=rows, seconds=seconds, cancel=cancel)

    def check_sql(self, sql: str, *, rows: RowParameters | None, cancel: Cancel | None) -> Plan:
        """Check one SELECT and return the engine's plan for it."""
        return self._opened().check_sql(sql, rows=rows, cancel=cancel)

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
        return self._opened().read(sql, params, rows=rows, seconds=seconds, cancel=cancel)

    def close(self) -> None:
        """Close the database if it was opened; it is not opened again."""
        with self._lock:
            self._closed = True
            if self._database is not None:
                self._database.close()
                self._database = None
