"""PostgreSQL behind its own wall.

These walls hold for each query, whatever role the URL names:

- `BEGIN ... READ ONLY` with timeouts, a fixed `search_path` and, if the role may set it, a limit on
  temporary files. `ROLLBACK` at the end also undoes settings that the query changed.
- The server's own plan (`EXPLAIN`) must read visible tables only, and must call none of the
  functions in `postgres_introspection.DENIED`.
- `DECLARE ... NO SCROLL CURSOR FOR` by the extended protocol accepts exactly one statement, which
  must be a query that does not write. The server stops at a row over the byte limit.
- A superuser's queries run as `pg_read_all_data` (PostgreSQL 14 or newer), a role that can read no
  files and start no programs.
"""

# The role is the one wall that no text gets around. It should have `LOGIN` without `SUPERUSER`,
# `SELECT` on the named tables and nothing else, `REVOKE TEMPORARY ON DATABASE ... FROM PUBLIC`,
# `ALTER ROLE ... SET default_transaction_read_only = on`, and a `temp_file_limit` set by an
# administrator. Without these, only the AST wall and the plan keep denied tables back, and only
# the time limit bounds temporary files.

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import cast

import psycopg
from psycopg import sql as compose

from longtable.base.errors import (
    QueryRefusedError,
)
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected, fold, mentions, read_by_views
from longtable.tools.engines.base import Fetched, QueryLimits, Row, collect, refusal
from longtable.tools.engines.connection_pool import Link, Pool
from longtable.tools.engines.postgres_connection import PostgresDriver
from longtable.tools.engines.postgres_errors import ROW_TOO_LARGE, translated
from longtable.tools.engines.postgres_introspection import (
    EXPLAIN,
    EXPLAIN_COSTS,
    VERSION,
    RawConnection,
    Server,
    read_cost,
    read_plan,
    reflect,
    server_facts,
)
from longtable.tools.sql.verdict import Plan as Cost
from longtable.tools.workers.runner import Stop

BATCH_ROWS = 8  # rows are weighed in small batches: one may be as large as the whole result may be

# The whole row is weighed as text, for in a table it may be compressed. OFFSET 0 keeps the planner
# from moving the test inwards.
DECLARE = "DECLARE longtable NO SCROLL CURSOR FOR SELECT * FROM (SELECT * FROM ("
WEIGH = (
    "\n) AS longtable_query OFFSET 0) AS longtable_row WHERE CASE WHEN"
    " octet_length((longtable_row.*)::text) > {most} THEN ('"
    + ROW_TOO_LARGE
    + "' || octet_length((longtable_row.*)::text))::boolean ELSE true END"
)


class PostgresEngine:
    """One database of a server. Each running query has its own connection."""

    dialect = "postgres"

    @classmethod
    def open(
        cls, location: Location, /, *, limits: QueryLimits, wait_seconds: float
    ) -> "PostgresEngine":
        """Connect to the server of a location."""
        return cls(location.server, limits=limits, wait_seconds=wait_seconds)

    def __init__(self, server: str, *, limits: QueryLimits, wait_seconds: float) -> None:
        self._limits = limits
        self._wait_seconds = wait_seconds
        driver = PostgresDriver(server, seconds=limits.seconds)
        self._pool = Pool(driver, wait_seconds=wait_seconds)
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._readable = frozenset[tuple[str, str]]()  # nothing, until `guard` has been called
        with self._pool.link(self._stop()) as link:
            self._facts(link.connection)

    def reflect(self) -> Reflected:
        """Read the catalogue from the system tables. The number of queries does not grow with the
        number of tables.
        """
        stop = self._stop()
        with (
            self.session(stop, walled=False) as session,
            translated(limits=self._limits, stopped=stop),
        ):
            return reflect(session.link.connection)

    def schema_version(self) -> object:
        """Return a value that changes with each change of a table, column, key, comment or grant.
        Changed rows and ANALYZE do not change it.
        """
        stop = self._stop()
        with (
            self.session(stop, walled=False) as session,
            translated(limits=self._limits, stopped=stop),
        ):
            return session.link.connection.execute(VERSION).fetchone()

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Set the relations that a plan may scan: the visible tables and views, their partitions,
        and the relations that the visible views read.
        """
        visible = {(table.schema, table.bare_name) for table in catalog.tables}
        through = read_by_views(reflected, catalog)
        behind = {
            (table.schema, table.bare_name)
            for table in reflected.tables
            if fold(table.bare_name) in through
        }
        parts: set[tuple[str, str]] = set()
        for key in visible | behind:
            parts.update(reflected.parts.get(key, ()))
        texts = [
            reflected.view_sql.get((table.schema, table.bare_name), "")
            for table in catalog.tables
            if table.kind == "view"
        ]
        every_text = "\n".join(texts)
        relations = reflected.system_relations
        system = {("pg_catalog", name) for name in relations if mentions(every_text, name)}
        self._readable = frozenset(visible | behind | parts | system)

    @contextmanager
    def session(self, stop: Stop, *, walled: bool) -> Iterator["PostgresSession"]:
        """Open a read-only transaction. A walled session is for one SELECT over the readable
        tables.
        """
        with self._pool.link(stop) as link:
            try:
                with stop.watch(link):
                    with translated(limits=self._limits, stopped=stop):
                        self._begin(link, stop)
                    yield PostgresSession(link, readable=self._readable if walled else None)
            finally:
                # When this fails the pool sees that the connection is not idle, and closes it.
                with suppress(psycopg.Error):
                    if not link.interrupted:
                        link.connection.execute("ROLLBACK; SELECT pg_advisory_unlock_all()")

    def close(self) -> None:
        """Close the idle connections. A connection that is at work is closed when its query
        ends.
        """
        self._pool.close()

    def _stop(self) -> Stop:
        return Stop(seconds=self._limits.seconds)

    def _begin(self, link: Link[RawConnection], stop: Stop) -> None:
        try:
            self._open_transaction(link.connection, stop)
        except psycopg.OperationalError:
            if link.fresh or not link.connection.broken:
                raise
            # The server closed it while it was idle: a restart, or a firewall.
            self._pool.replace(link)
            self._open_transaction(link.connection, stop)

    def _open_transaction(self, connection: RawConnection, stop: Stop) -> None:
        facts = self._facts(connection)
        left = max(1, round(stop.left * 1000))
        settings = {
            "statement_timeout": left,
            "lock_timeout": max(1, min(left, round(self._wait_seconds * 1000))),
            "idle_in_transaction_session_timeout": left + 10_000,
            "standard_conforming_strings": "on",
            "datestyle": "ISO",
            "intervalstyle": "postgres",
            "bytea_output": "hex",
            "cursor_tuple_fraction": 1.0,  # all rows are wanted, not the first
            **facts.settings(temp_bytes=self._limits.temp_bytes, milliseconds=left),
        }
        lines: list[compose.Composable] = [
            compose.SQL("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        ]
        lines += [
            compose.SQL("SET LOCAL {} = {}").format(compose.Identifier(name), value)
            for name, value in settings.items()
        ]
        lines.append(
            compose.SQL("SET LOCAL search_path = {}").format(
                compose.SQL(", ").join(map(compose.Identifier, facts.search_path))
            )
        )
        if facts.reads_as:
            lines.append(
                compose.SQL("SET LOCAL ROLE {}").format(compose.Identifier(facts.reads_as))
            )
        connection.execute(compose.SQL("; ").join(lines))

    def _facts(self, connection: RawConnection) -> Server:
        with self._lock:
            if self._server is None:
                with translated(limits=self._limits):
                    self._server = server_facts(connection)
            return self._server


class PostgresSession:
    """One transaction at work."""

    def __init__(
        self, link: Link[RawConnection], *, readable: frozenset[tuple[str, str]] | None
    ) -> None:
        self.link = link
        self._readable = readable

    def fetch(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched:
        """Run one SELECT and fetch all its rows in batches."""
        connection = self.link.connection
        self._check(sql, params, limits, stop)
        with translated(limits=limits, sql=sql, before=len(DECLARE), stopped=stop):
            # binary=True makes it the extended protocol, which takes one statement and no more.
            connection.execute(
                DECLARE + sql + WEIGH.format(most=limits.bytes), list(params) or None, binary=True
            )
            cursor = connection.cursor()
            with closing(
                cast(
                    "Generator[Row, None, None]",
                    cursor.stream(f"FETCH FORWARD {limits.rows + 1} FROM longtable"),
                )
            ) as stream:
                rows: list[Row] = collect(
                    lambda count: list(islice(stream, count)),
                    limits=limits,
                    stop=stop,
                    batch=BATCH_ROWS,
                )
            # An empty stream tells no columns.
            columns = (
                cursor.description
                or connection.execute("FETCH FORWARD 0 FROM longtable").description
                or []
            )
            return Fetched(
                tuple(column.name for column in columns),
                self._types([column.type_code for column in columns]),
                rows,
            )

    def plan(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Cost:
        """Return the server's plan for one SELECT, without running it."""
        self._check(sql, params, limits, stop)
        with translated(limits=limits, sql=sql, before=len(EXPLAIN_COSTS), stopped=stop):
            explained = self.link.connection.execute(
                EXPLAIN_COSTS + sql, list(params) or None, binary=True
            ).fetchone()
        return read_cost(explained[0] if explained else None)

    def interrupt(self) -> None:
        """Stop the running statement, if there is one."""
        self.link.interrupt()

    def _check(self, sql: str, params: Sequence[object], limits: QueryLimits, stop: Stop) -> None:
        """In a walled session, check the server's own plan: the text must be a query that reads
        only readable relations and calls no denied function. Raises `QueryRefusedError` if it is
        not.
        """
        if self._readable is None:
            return
        with translated(limits=limits, sql=sql, before=len(EXPLAIN), stopped=stop):
            explained = self.link.connection.execute(
                EXPLAIN + sql, list(params) or None, binary=True
            ).fetchone()
        plan = read_plan(explained[0] if explained else None)
        if plan.writes:
            raise QueryRefusedError(
                "the database reads the text as writing",
                rule="engine",
                hint="send exactly one SELECT",
            )
        if denied := plan.denied_functions:
            raise QueryRefusedError(
                f"the function {denied[0]!r} is not allowed",
                rule="engine",
                hint="use another function",
            )
        if not plan.relations <= self._readable:
            raise refusal("the tables of the catalogue")

    def _types(self, oids: list[int]) -> tuple[str, ...]:
        if not oids:
            return ()
        sql = (
            "SELECT format_type(o, NULL) FROM unnest($1::oid[]) WITH ORDINALITY AS t(o, n) ORDER"
            " BY n"
        )
        return tuple(str(row[0]) for row in self.link.connection.execute(sql, [oids]).fetchall())
