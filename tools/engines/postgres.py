"""PostgreSQL behind its own wall: a read-only transaction, one statement, its plan
checked, timeouts, always rolled back.

What the wall does for each query, on whatever role the URL names:

- `BEGIN ... READ ONLY` with statement, lock and idle timeouts, a fixed `search_path`, and, where
  the role may set it, a bound on temporary files; `ROLLBACK` at the end, which also undoes any
  setting the query changed.
- The server's own plan (`EXPLAIN`) must read visible tables only and call none of the functions in
  `postgres_introspection.DENIED`.
- `DECLARE ... NO SCROLL CURSOR FOR` by the extended protocol: one statement, a query, nothing that
  writes. Rows come one by one, and a row over the byte limit is stopped in the server.
- A superuser's queries run as `pg_read_all_data` (PostgreSQL 14 or newer): no files, no programs.

What the role itself should be, since a role is the one wall no text gets around: `LOGIN` without
`SUPERUSER`, `SELECT` granted on the named tables and nothing else,
`REVOKE TEMPORARY ON DATABASE ... FROM PUBLIC`,
`ALTER ROLE ... SET default_transaction_read_only = on`, and a `temp_file_limit` set for it by an
administrator. Without it, denied tables are kept back by the AST wall and by the plan alone, and
temporary files are bounded by the time limit alone.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import cast

import psycopg
from psycopg import sql as compose

from longtable.base.errors import (
    ConfigError,
    ConnectionWaitError,
    DatabaseError,
    DatabaseUnavailableError,
    LongtableError,
    Problem,
    QueryFailedError,
    QueryMemoryError,
    QueryRefusedError,
    ResultTooLargeError,
    TempSpaceError,
)
from longtable.tools.catalog import Catalog, Reflected, fold, mentions, read_by_views
from longtable.tools.engines.base import FailedAtError, Fetched, QueryLimits, Row, collect, refusal
from longtable.tools.engines.postgres_introspection import (
    EXPLAIN,
    EXPLAIN_COSTS,
    VERSION,
    RawConnection,
    Server,
    read_cost,
    read_plan,
    reflect,
    register_loaders,
    server_facts,
)
from longtable.tools.sql.verdict import OVER
from longtable.tools.sql.verdict import Plan as Cost
from longtable.tools.workers.runner import Stop, StoppedError

BATCH_ROWS = 8  # rows are weighed in small batches: one may be as large as the whole result may be

ROW_TOO_LARGE = "longtable: a row is too large"
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
    """One database of a server; a connection of its own for each query at a time."""

    dialect = "postgres"

    def __init__(self, server: str, *, limits: QueryLimits, wait_seconds: float) -> None:
        self._limits = limits
        self._wait_seconds = wait_seconds
        self._pool = Pool(connector(server, seconds=limits.seconds), wait_seconds=wait_seconds)
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._readable = frozenset[tuple[str, str]]()  # nothing, until `guard` has been called
        with self._pool.link(self._stop()) as link:
            self._facts(link.connection)

    def reflect(self) -> Reflected:
        """Read the catalogue from the system tables, in a few queries however many tables there
        are.
        """
        stop = self._stop()
        with (
            self.session(stop, walled=False) as session,
            translated(limits=self._limits, stopped=stop),
        ):
            return reflect(session.link.connection)

    def schema_version(self) -> object:
        """Return a value that changes with each table, column, key, comment and grant, but not with
        rows or ANALYZE.
        """
        stop = self._stop()
        with (
            self.session(stop, walled=False) as session,
            translated(limits=self._limits, stopped=stop),
        ):
            return session.link.connection.execute(VERSION).fetchone()

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Remember the relations a plan may scan: those shown, their partitions, and what the views
        shown read.
        """
        visible = {(table.schema, table.bare_name) for table in catalog.tables}
        through = read_by_views(reflected, catalog)
        behind = {
            (table.schema, table.bare_name)
            for table in reflected.tables
            if fold(table.bare_name) in through
        }
        parts = {part for key in visible | behind for part in reflected.parts.get(key, ())}
        texts = [
            reflected.view_sql.get((table.schema, table.bare_name), "")
            for table in catalog.tables
            if table.kind == "view"
        ]
        system = {
            ("pg_catalog", name)
            for name in reflected.system_relations
            if any(mentions(text, name) for text in texts)
        }
        self._readable = frozenset(visible | behind | parts | system)

    @contextmanager
    def session(self, stop: Stop, *, walled: bool) -> Iterator["PostgresSession"]:
        """Open a read-only transaction; a walled one is for one SELECT over the readable tables."""
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
        """Close the idle connections; those at work are closed when they come back."""
        self._pool.close()

    def _stop(self) -> Stop:
        return Stop(seconds=self._limits.seconds)

    def _begin(self, link: "Link", stop: Stop) -> None:
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

    def __init__(self, link: "Link", *, readable: frozenset[tuple[str, str]] | None) -> None:
        self.link = link
        self._readable = readable

    def fetch(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched:
        """Run one SELECT and fetch all its rows as they stream."""
        connection = self.link.connection
        self._check(sql, limits, stop)
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

    def plan(self, sql: str, *, limits: QueryLimits, stop: Stop) -> Cost:
        """Return what the server would do for one SELECT, without running it."""
        self._check(sql, limits, stop)
        with translated(limits=limits, sql=sql, before=len(EXPLAIN_COSTS), stopped=stop):
            explained = self.link.connection.execute(EXPLAIN_COSTS + sql, binary=True).fetchone()
        return read_cost(explained[0] if explained else None)

    def interrupt(self) -> None:
        """Stop the statement that runs; without effect when none does."""
        self.link.interrupt()

    def _check(self, sql: str, limits: QueryLimits, stop: Stop) -> None:
        """Check the server's own plan in a walled session: a query over readable relations that
        calls no denied function.
        """
        if self._readable is None:
            return
        with translated(limits=limits, sql=sql, before=len(EXPLAIN), stopped=stop):
            explained = self.link.connection.execute(EXPLAIN + sql, binary=True).fetchone()
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


MAX_CONNECTIONS = 6
LOOK_EVERY_SECONDS = 0.05
CONNECT_SECONDS = 10
OLDEST_VERSION = 120_000

# A network that went silent must not hold a thread for hours.
KEEPALIVE: dict[str, str | int] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def connector(server: str, *, seconds: float) -> Callable[[], RawConnection]:
    """Return what opens one connection to the server of this URL; raise `ConfigError` for a URL
    that libpq cannot read.
    """
    try:
        from_url = {
            key: value
            for key, value in psycopg.conninfo.conninfo_to_dict(server).items()
            if value is not None
        }
    except psycopg.Error:
        # What libpq says may quote the password: it is not repeated, nor kept as the cause, which a
        # log would show.
        raise ConfigError(
            "the PostgreSQL URL cannot be read: check its host, port and parameters"
        ) from None
    settings = (
        KEEPALIVE
        | {"connect_timeout": CONNECT_SECONDS, "fallback_application_name": "longtable"}
        | from_url
    )
    settings["client_encoding"] = "utf8"
    # Not for the walled transaction, which says it all again, but for whatever should run outside
    # of one.
    first = f"-c default_transaction_read_only=on -c statement_timeout={round(seconds * 1000) + 1}"
    options = f"{settings.get('options', '')} {first}".strip()

    def connect() -> RawConnection:
        try:
            try:
                connection = _open({**settings, "options": options})
            except psycopg.OperationalError as error:
                if "startup parameter" not in str(error):
                    raise
                # A pooler such as PgBouncer, which passes no options on.
                connection = _open(settings)
        except psycopg.Error as error:
            raise DatabaseUnavailableError(
                f"the PostgreSQL server cannot be reached: {_what_failed(error)}"
            ) from error
        version = connection.info.server_version
        if version < OLDEST_VERSION:
            connection.close()
            raise DatabaseUnavailableError(
                f"the server is PostgreSQL {version // 10_000}: version {OLDEST_VERSION // 10_000}"
                " or newer is needed"
            )
        return connection

    return connect


def _open(settings: dict[str, str | int]) -> RawConnection:
    text = psycopg.conninfo.make_conninfo("", **settings)
    connection: RawConnection = psycopg.connect(
        text, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
    )
    register_loaders(connection)
    return connection


def _what_failed(error: psycopg.Error) -> str:
    return str(error).strip().split("\n", 1)[0]


class Link:
    """One connection out of the pool, for one query at a time."""

    def __init__(self, connection: RawConnection, *, fresh: bool) -> None:
        self.connection = connection
        self.fresh = fresh
        self.interrupted = False
        self._last = 0.0

    def interrupt(self) -> None:
        """Ask the server to stop what runs; asked again and again, it asks a few times a second."""
        self.interrupted = True
        if time.monotonic() - self._last < 0.2:
            return
        self._last = time.monotonic()
        with suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=1.0)


class Pool:
    """The connections; safe to share between threads."""

    def __init__(
        self,
        connect: Callable[[], RawConnection],
        *,
        wait_seconds: float,
        size: int = MAX_CONNECTIONS,
    ) -> None:
        self._connect = connect
        self._wait_seconds = wait_seconds
        self._size = size
        self._changed = threading.Condition()
        self._idle: list[RawConnection] = []
        self._out = 0
        self._closed = False

    @contextmanager
    def link(self, stop: Stop) -> Iterator[Link]:
        """Lend a connection; one that was interrupted, or left in an unknown state, is closed
        rather than used again.
        """
        link = self._take(stop)
        keep = False
        try:
            yield link
            keep = not link.interrupted
        finally:
            self._give_back(link.connection, keep=keep)

    def close(self) -> None:
        """Close what is idle; what is at work is closed when it comes back."""
        with self._changed:
            self._closed = True
            idle = self._idle
            self._idle = []
            self._changed.notify_all()
        for connection in idle:
            connection.close()

    def _take(self, stop: Stop) -> Link:
        began = time.monotonic()
        until = min(began + self._wait_seconds, stop.deadline)
        with self._changed:
            while not self._idle and self._out >= self._size and not self._closed:
                now = time.monotonic()
                if now >= until:
                    raise ConnectionWaitError(waited_s=now - began, connections=self._size)
                if stop():
                    raise StoppedError
                self._changed.wait(min(until - now, LOOK_EVERY_SECONDS))
            if self._closed:
                raise DatabaseUnavailableError("the database was closed: open it again")
            self._out += 1
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            return Link(connection, fresh=False)
        try:
            return Link(self._connect(), fresh=True)
        except BaseException:
            self._freed()
            raise

    def replace(self, link: Link) -> None:
        """Give the link a new connection for one that the server has closed meanwhile."""
        link.connection.close()
        link.connection = self._connect()
        link.fresh = True

    def _give_back(self, connection: RawConnection, *, keep: bool) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        keep = keep and not connection.closed and connection.info.transaction_status == idle
        with self._changed:
            keep = keep and not self._closed
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        self._freed()

    def _freed(self) -> None:
        with self._changed:
            self._out -= 1
            self._changed.notify()


_STOPPED = {"25P04"}  # transaction_timeout, of PostgreSQL 17
_LOCKED = "a table is locked by another session: wait until that has finished, then ask again"
_ERRORS: dict[str, Callable[[QueryLimits], DatabaseError]] = {
    **dict.fromkeys(("42501", "25006", "2F003"), lambda _: refusal("what the catalogue shows")),
    "53200": lambda limits: QueryMemoryError(limit=limits.memory_bytes),
    "53400": lambda limits: TempSpaceError(limit=limits.temp_bytes),
    "54000": lambda limits: ResultTooLargeError(limit=limits.bytes, what="one value"),
    "55P03": lambda _: DatabaseUnavailableError(_LOCKED),
    "57014": lambda _: QueryFailedError(
        "the query was cancelled on the server by someone else", hint="ask again"
    ),
}
"""The errors of some SQLSTATEs."""
_GONE = ("08", "57P", "58", "XX", "53300", "53100", "25P03", "F0")


@contextmanager
def translated(
    *,
    limits: QueryLimits,
    sql: str = "",
    before: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Raise typed errors; `before` is the number of characters that stood before `sql` in what the
    server read.
    """
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, limits, sql, before, stopped()) from error
    except MemoryError as error:
        raise ResultTooLargeError(limit=limits.bytes) from error


def _translate(
    error: psycopg.Error, limits: QueryLimits, sql: str, before: int, stopped: bool
) -> LongtableError | StoppedError:
    state = error.sqlstate or ""
    text = error.diag.message_primary or str(error).strip().split("\n", 1)[0]
    if state in _STOPPED or (state == "57014" and (stopped or "timeout" in text)):
        return StoppedError()
    if ROW_TOO_LARGE in text:
        return ResultTooLargeError(limit=limits.bytes, what="one row")
    if OVER in text:
        return QueryRefusedError(
            "a count in the query is too large",
            rule="growth",
            hint=text.partition('"')[2].rstrip('"'),
        )
    if make := _ERRORS.get(state):
        return make(limits)
    if state.startswith(_GONE) or (isinstance(error, psycopg.OperationalError) and not state):
        return DatabaseUnavailableError(f"the PostgreSQL server cannot be asked: {text}")
    position = error.diag.statement_position
    at = int(position) - 1 - before if position else -1
    return FailedAtError(
        text, problem=_problem(state, text), offset=at if 0 <= at < len(sql) else None
    )


_PROBLEMS: dict[str, Problem] = {
    "42601": "syntax", "42703": "unknown_name", "42P01": "unknown_name", "42704": "unknown_name", "3F000": "unknown_name",
    "42702": "ambiguous", "42725": "ambiguous", "42804": "type", "42846": "type", "42P18": "type", "42P22": "type", "42883": "type",
    "22P02": "type", "22007": "type", "22008": "type", "22003": "type", "22018": "type",
}  # fmt: skip


def _problem(state: str, text: str) -> Problem:
    # A function of no arguments that fit is a matter of types; the names that may be called are
    # known to the AST wall.
    return _PROBLEMS.get(state, "syntax" if "syntax error" in text else "other")
