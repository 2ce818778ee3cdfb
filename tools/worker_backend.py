"""The work that a `Database` leaves to worker processes: everything for a SQLite or DuckDB file,
but only the parsing of SQL texts for a server.
"""

import threading
import weakref
from collections.abc import Sequence
from typing import cast

from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected
from longtable.tools.engines.base import QueryLimits, QueryResult, Row
from longtable.tools.in_process import PLAN_SECONDS
from longtable.tools.row_access import RowParameters
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers.pool import Workers
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.worker_requests import (
    CHECK_SQL,
    PARSE,
    READ,
    REFRESH,
    RUN,
    TEXT,
    VISIBLE,
    Answer,
    Request,
)

CATALOG_SECONDS = 60.0


class WorkerParser:
    """Sends SQL texts for a server to workers, which parse them. The workers need no driver for the
    server.
    """

    def __init__(self, *, limits: QueryLimits, wait_seconds: float) -> None:
        self.workers = Workers(
            memory_bytes=limits.memory_bytes,
            answer_bytes=limits.bytes,
            wait_seconds=wait_seconds,
        )
        weakref.finalize(self, self.workers.close)
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._number = 0

    def visible(self, reflected: Reflected, policy: TablePolicy, dialect: str) -> Catalog:
        """Return the part of the catalogue that the policy lets a model see."""
        request = VISIBLE.request({"reflected": reflected, "policy": policy, "dialect": dialect})
        return self.workers.call(request, seconds=CATALOG_SECONDS)

    def answer(self, request: Request[Answer], dialect: str, catalog: Catalog) -> Answer:
        """Run a job on a SQL text, and return the answer. If the worker does not know the catalogue
        yet, it is sent along.
        """
        number = self._number_of(catalog)
        answer = self._parsed(request, dialect, number, None)
        if answer is None:
            answer = self._parsed(request, dialect, number, catalog)
        assert answer is not None
        return cast("Answer", answer[0])

    def _number_of(self, catalog: Catalog) -> int:
        with self._lock:
            if self._catalog is not catalog:
                self._catalog = catalog
                self._number += 1
            return self._number

    def _parsed(
        self, request: Request[Answer], dialect: str, number: int, catalog: Catalog | None
    ) -> list[object] | None:
        parse = PARSE.request(
            {
                "job": request.job,
                "number": number,
                "catalog": catalog,
                "dialect": dialect,
                "arguments": request.arguments,
            }
        )
        return self.workers.call(parse, seconds=PLAN_SECONDS)

    def close(self) -> None:
        """End all workers."""
        self.workers.close()


class WorkerBackend:
    """The backend of a `Database` that is open only in workers. This process does not open the
    database, and parses, plans and runs no query.
    """

    def __init__(
        self,
        location: Location,
        *,
        limits: QueryLimits,
        policy: TablePolicy,
        busy_seconds: float,
    ) -> None:
        assert location.path is not None
        self.limits = limits
        self.workers = Workers(
            database={
                "url": f"{location.dialect}:///{location.path.absolute()}",
                "limits": limits,
                "policy": policy,
                "busy_seconds": busy_seconds,
            },
            dialect=location.dialect,
            memory_bytes=limits.memory_bytes,
            answer_bytes=limits.bytes,
            wait_seconds=busy_seconds,
        )
        weakref.finalize(self, self.workers.close)
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._version: object = None

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None until the catalogue has been read."""
        return self._version

    def catalog(self) -> Catalog:
        """Return the tables that can be read."""
        return self._catalog or self.refresh()

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now."""
        request = REFRESH.request({"version": self._version})
        version, catalog = self.workers.call(request, seconds=CATALOG_SECONDS)
        with self._lock:
            if catalog is not None and catalog != self._catalog:
                self._catalog = catalog
            self._version = version
            assert self._catalog is not None
            return self._catalog

    def text(self, request: Request[Answer]) -> Answer:
        """Run a job on a SQL text, and return the answer."""
        text = TEXT.request(
            {"version": self._version, "job": request.job, "arguments": request.arguments}
        )
        return cast("Answer", self._call(text, seconds=PLAN_SECONDS, cancel=None))

    def run(
        self, sql: str, *, rows: RowParameters, seconds: float | None, cancel: Cancel | None
    ) -> QueryResult:
        """Check one SELECT and run it behind the engine's wall."""
        limit = seconds or self.limits.seconds
        request = RUN.request(
            {"version": self._version, "sql": sql, "rows": rows, "seconds": limit}
        )
        return self._call(request, seconds=limit, cancel=cancel)

    def check_sql(self, sql: str, *, rows: RowParameters | None, cancel: Cancel | None) -> Plan:
        """Check one SELECT and return the engine's plan for it."""
        request = CHECK_SQL.request({"version": self._version, "sql": sql, "rows": rows})
        return self._call(request, seconds=PLAN_SECONDS, cancel=cancel)

    def read(
        self,
        sql: str,
        params: Sequence[object],
        *,
        rows: RowParameters,
        seconds: float,
        cancel: Cancel | None,
    ) -> list[Row]:
        """Run SQL that this package wrote, and return the rows."""
        request = READ.request(
            {
                "version": self._version,
                "sql": sql,
                "params": list(params),
                "rows": rows,
                "seconds": seconds,
            }
        )
        return self._call(request, seconds=seconds, cancel=cancel)

    def _call(self, request: Request[Answer], *, seconds: float, cancel: Cancel | None) -> Answer:
        limit = min(seconds, self.limits.seconds)
        return self.workers.call(request, seconds=limit, cancel=cancel)

    def close(self) -> None:
        """End all workers."""
        self.workers.close()
