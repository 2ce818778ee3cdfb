"""A database that this process opens itself.

It is a SQLite or DuckDB file, inside a worker or where no worker may be started, or it is a server.
For a server, a worker may parse the SQL texts.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Protocol, TypeVar, cast

from longtable.base.concurrency import BoundedCache
from longtable.base.errors import (
    ConfigError,
    MissingExtraError,
    QueryFailedError,
    QueryRefusedError,
    QueryTimeoutError,
)
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected, Table
from longtable.tools.cells import without_labels
from longtable.tools.engines.base import Engine, Fetched, QueryLimits, QueryResult, Row, Session
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.row_access import RowParameters, bound_values
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.sql.verdict import Plan, Scan, Verdict, product
from longtable.tools.workers.runner import Cancel, Runner, Stop, StoppedError
from longtable.tools.workers.worker_requests import CHECK, EXPLAINED, OWN_SQL, Answer, Request

T = TypeVar("T")

PLAN_SECONDS = 5.0
COUNT_SECONDS = 300.0
"""How long the number of visible rows of a filtered table is kept."""
MOST_COUNTS = 1_000


class TextParser(Protocol):
    """Does the jobs that parse SQL, either in this process or in a worker."""

    def visible(self, reflected: Reflected, policy: TablePolicy, dialect: str) -> Catalog:
        """Return the part of the catalogue that the policy lets a model see."""
        ...

    def answer(self, request: Request[Answer], dialect: str, catalog: Catalog) -> Answer:
        """Run a job on a SQL text, such as checking it, and return the answer."""
        ...

    def close(self) -> None: ...


class LocalParser:
    """Parses SQL in this process."""

    def visible(self, reflected: Reflected, policy: TablePolicy, dialect: str) -> Catalog:
        """Return the part of the catalogue that the policy lets a model see."""
        # sqlglot takes a tenth of a second to load: not where a worker reads the catalogue.
        from longtable.tools.sql.visible import visible

        return visible(reflected, policy, dialect=dialect)

    def answer(self, request: Request[Answer], dialect: str, catalog: Catalog) -> Answer:
        """Run a job on a SQL text, and return the answer."""
        from longtable.tools.sql.text_jobs import do_text_job

        return cast("Answer", do_text_job(request.job, request.arguments, dialect, catalog))

    def close(self) -> None:
        """Do nothing, because nothing is open."""


class InProcess:
    """The backend of a `Database` whose engine runs in this process."""

    def __init__(
        self, engine: Engine, parser: TextParser, *, limits: QueryLimits, policy: TablePolicy
    ) -> None:
        self.engine = engine
        self.parser = parser
        self.limits = limits
        self.policy = policy
        self._runner = Runner()
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._version: object = None
        self._seen: BoundedCache[tuple[str, str], tuple[float, float]] = BoundedCache(MOST_COUNTS)
        """When visible rows were counted, and how many there were, by table and parameters."""

    @property
    def version(self) -> object:
        """Return the schema version of the catalogue, None until the catalogue has been read."""
        return self._version

    def catalog(self) -> Catalog:
        """Return the tables that can be read."""
        with self._lock, self._in_time():
            return self._catalog or self._reflect(self.engine.schema_version())

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now."""
        with self._in_time():
            version = self.engine.schema_version()
        with self._lock, self._in_time():
            if self._catalog and version == self._version:
                return self._catalog
            return self._reflect(version)

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Raise `QueryTimeoutError` if reading the schema takes longer than a query may."""
        try:
            yield
        except StoppedError:
            raise QueryTimeoutError(limit_s=self.limits.seconds) from None

    def _reflect(self, version: object) -> Catalog:
        reflected = self.engine.reflect()
        catalog = self.parser.visible(reflected, self.policy, self.engine.dialect)
        self.engine.guard(catalog, reflected)
        self._catalog = catalog
        self._version = version
        return catalog

    def text(self, request: Request[Answer]) -> Answer:
        """Run a job on a SQL text, and return the answer."""
        return self.parser.answer(request, self.engine.dialect, self.catalog())

    def run(
        self, sql: str, *, rows: RowParameters, seconds: float | None, cancel: Cancel | None
    ) -> QueryResult:
        """Check one SELECT and run it behind the engine's wall. `rows` are bound to the marks of
        row filters.
        """
        started = time.monotonic()
        verdict = self._allowed_verdict(sql)
        values = bound_values(verdict.marks, rows)

        def fetch(session: Session, stop: Stop) -> Fetched:
            return session.fetch(verdict.sql, values, limits=self.limits, stop=stop)

        with self._explain_errors(sql, verdict):
            fetched = self._in_session(
                fetch, walled=True, seconds=seconds or self.limits.seconds, cancel=cancel
            )
        headings = dict(verdict.headings)
        return QueryResult(
            sql=verdict.shown_sql,
            columns=tuple(headings.get(name, name) for name in fetched.columns),
            types=tuple(map(without_labels, fetched.types)),
            rows=fetched.rows,
            row_count=len(fetched.rows),
            ms=round((time.monotonic() - started) * 1000),
            masked=verdict.masks.of(fetched.columns),
            reads=(*verdict.tables, *verdict.columns),
            tables=verdict.tables,
            reads_some_rows=verdict.reads_some_rows,
        )

    def check_sql(self, sql: str, *, rows: RowParameters | None, cancel: Cancel | None) -> Plan:
        """Check one SELECT and return the engine's plan for it. Without `rows`, the query is only
        planned: NULL is bound to the marks of row filters.
        """
        verdict = self._allowed_verdict(sql)
        nulls: list[object] = [None] * len(verdict.marks)
        values = nulls if rows is None else bound_values(verdict.marks, rows)

        def plan_of(session: Session, stop: Stop) -> Plan:
            return session.plan(verdict.sql, values, limits=self.limits, stop=stop)

        with self._explain_errors(sql, verdict):
            plan = self._in_session(plan_of, walled=True, seconds=PLAN_SECONDS, cancel=cancel)
        if verdict.reads_some_rows:
            # Whatever an engine estimates of a filtered table, it estimates of hidden rows, too.
            return Plan() if rows is None else self._plan_of_seen(verdict, rows, cancel)
        tables = {table.name for table in self.catalog().tables if table.kind == "table"}
        return Plan() if set(verdict.tables) <= tables and verdict.stops_early else plan

    def _plan_of_seen(self, verdict: Verdict, rows: RowParameters, cancel: Cancel | None) -> Plan:
        """Return a plan that is made of the numbers of rows which the person may see, and of
        nothing else.
        """
        catalog = self.catalog()
        tables = [table for name in verdict.tables if (table := catalog.find(name)) is not None]
        counts = {table.name: self._seen_rows(table, rows, cancel) for table in tables}
        pairs = 0.0
        for names in verdict.crossed:
            pairs = max(pairs, product(counts.get(name, 0.0) for name in names))
        scans = tuple(Scan(name, size) for name, size in counts.items())
        return Plan(scans=() if verdict.stops_early else scans, pairs=pairs)

    def _seen_rows(self, table: Table, rows: RowParameters, cancel: Cancel | None) -> float:
        """Return the number of rows of a table that can be seen with these parameters. It is kept
        for a while, because counting a large table takes as long as a query.
        """
        key = (table.name, repr(sorted(rows.items())))
        now = time.monotonic()
        known = self._seen.get(key)
        if known is not None and now - known[0] < COUNT_SECONDS:
            return known[1]
        count_sql = f"SELECT count(*) FROM {table.sql_name}"
        count = self.read(count_sql, [], rows=rows, seconds=PLAN_SECONDS, cancel=cancel)[0][0]
        size = float(count) if isinstance(count, int) else 0.0
        return self._seen.put(key, (now, size))[1]

    def _allowed_verdict(self, sql: str) -> Verdict:
        verdict = self.text(CHECK.request({"sql": sql}))
        verdict.raise_if_refused()
        return verdict

    @contextmanager
    def _explain_errors(self, sql: str, verdict: Verdict) -> Iterator[None]:
        """If the query fails, add to the error the place of the fault and the name that was
        probably meant.
        """
        try:
            yield
        except (QueryFailedError, QueryRefusedError) as error:
            request = EXPLAINED.request({"error": error, "sql": sql, "verdict": verdict})
            raise self.text(request) from error

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
        text = sql
        values = params
        if self.catalog().is_rewritten:
            own = self.text(OWN_SQL.request({"sql": sql}))
            text = own.sql
            if own.sources is not None:
                marks = [each for each in own.sources if not isinstance(each, int)]
                bound = iter(bound_values(marks, rows))
                values = [
                    params[each] if isinstance(each, int) else next(bound) for each in own.sources
                ]

        def fetch(session: Session, stop: Stop) -> Fetched:
            return session.fetch(text, values, limits=self.limits, stop=stop)

        return self._in_session(fetch, walled=False, seconds=seconds, cancel=cancel).rows

    def _in_session(
        self,
        act: Callable[[Session, Stop], T],
        *,
        walled: bool,
        seconds: float,
        cancel: Cancel | None,
    ) -> T:
        """Run `act` in a new session on another thread. It is stopped after `seconds`, or after the
        limit of the database if that is shorter.
        """

        def work(stop: Stop) -> T:
            with self.engine.session(stop, walled=walled) as session, stop.watch(session):
                return act(session, stop)

        return self._runner.run(work, seconds=min(seconds, self.limits.seconds), cancel=cancel)

    def close(self) -> None:
        """Cancel running queries and close the database."""
        self._runner.cancel_all()
        self.engine.close()
        self.parser.close()


def open_engine(location: Location, *, limits: QueryLimits, busy_seconds: float) -> Engine:
    """Open the engine that a location needs. Only this engine is imported, because each takes time
    to load and the driver of a server may not be installed.
    """
    if not location.server and location.path is None:
        raise ConfigError("the database URL names neither a file nor a server")
    rules = dialect_of(location.dialect)
    module, _, name = rules.engine.partition(":")
    try:
        engine: type[Engine] = getattr(import_module(module), name)
    except ImportError as error:
        if not rules.extra:
            raise
        what = f"a {rules.title} database cannot be opened"
        raise MissingExtraError(what, rules.extra) from error
    return engine.open(location, limits=limits, wait_seconds=busy_seconds)
