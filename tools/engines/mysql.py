"""MySQL and MariaDB behind their own wall.

- An account that may read or write files of the server (FILE), or do anything (SUPER), is refused
  when the database is opened. If it may write, or see what others run, a warning is logged.
- Each query runs in a READ ONLY transaction with a time limit, and with one fixed `sql_mode`, in
  which the server reads quotes and operators as the AST wall does.
- The server's own plan (EXPLAIN) comes first: the tables that views read must be readable, too.
- After each query the transaction is rolled back and the session reset, so that no setting,
  variable, lock or temporary table is left.
- A READ ONLY transaction alone would let through files, variables, locks and code in comments.
  These are kept back by the AST wall and by the account's rights.
"""

import logging
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pymysql

from longtable.base.errors import (
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
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected, fold, read_by_views
from longtable.tools.engines.base import (
    FailedAtError,
    Fetched,
    QueryLimits,
    Row,
    collect,
    refusal,
    with_values,
)
from longtable.tools.engines.connection_pool import Link, Pool
from longtable.tools.engines.dialects import MYSQL
from longtable.tools.engines.mysql_connection import (
    Connection,
    MysqlDriver,
    TooMuchReadError,
)
from longtable.tools.engines.mysql_introspection import (
    VERSION,
    aliases_in_note,
    names_in_note,
    names_in_plan,
    read_cost,
    read_grants,
    reflect,
    type_name,
)
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers.runner import Stop, StoppedError

_log = logging.getLogger(__name__)

SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""Without ANSI_QUOTES, PIPES_AS_CONCAT, NO_BACKSLASH_ESCAPES, IGNORE_SPACE and HIGH_NOT_PRECEDENCE:
that is how sqlglot reads a text, and how it writes one.
"""
ONLY_FULL_GROUP_BY = "ONLY_FULL_GROUP_BY"
"""MySQL's default. MariaDB's form of it refuses columns that depend on the group's key."""
RECURSION = {"max_recursive_iterations", "cte_max_recursion_depth"}
"""MariaDB's and MySQL's bound of a recursive CTE. MariaDB ends it there in silence, after 1,000
rounds by default.
"""
MOST_RECURSION = 4_000_000_000
PLAN_FORMAT = "explain_json_format_version"
"""MySQL's setting for the form of a plan in JSON: 1 names the tables as MariaDB does."""
OPTIONAL = {"max_statement_time", "max_session_mem_used", PLAN_FORMAT, *RECURSION}
"""Settings that only one of the servers has."""
WIRE_FACTOR = 3
WIRE_SPARE = 1_000_000
"""The bytes that may be read for a result of N bytes: N times the factor, and the spare. A time is
longer in the protocol than it counts as a cell, and column names are read too.
"""


class MysqlEngine:
    """One database of a server. Each running query has its own connection."""

    dialect = "mysql"

    @classmethod
    def open(
        cls, location: Location, /, *, limits: QueryLimits, wait_seconds: float
    ) -> "MysqlEngine":
        """Connect to the server of a location."""
        return cls(location.server, limits=limits, wait_seconds=wait_seconds)

    def __init__(self, server: str, *, limits: QueryLimits, wait_seconds: float) -> None:
        self._limits = limits
        self._wait_seconds = wait_seconds
        self._pool = Pool(MysqlDriver(server, seconds=limits.seconds), wait_seconds=wait_seconds)
        self._lock = threading.Lock()
        self._optional: frozenset[str] | None = None
        self._readable = _Readable()  # nothing, until `guard` has been called
        with self._pool.link(self._stop()) as link, translated(limits=limits):
            _check_grants(link.connection)
            self._optional_settings(link.connection)

    def reflect(self) -> Reflected:
        """Read the catalogue of the URL's database."""
        stop = self._stop()
        with (
            self.session(stop, walled=False) as session,
            translated(limits=self._limits, stopped=stop),
        ):
            return reflect(session.link.connection.rows)

    def schema_version(self) -> object:
        """Return a value that changes with each change of a table, column, key, comment or right.
        Changed rows do not change it.
        """
        stop = self._stop()
        with (
            self.session(stop, walled=False) as session,
            translated(limits=self._limits, stopped=stop),
        ):
            return tuple(session.link.connection.rows(VERSION)[0])

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Set the tables that a plan may read: the visible tables and views, and the tables that
        the visible views read.
        """
        visible = {table.bare_name for table in catalog.tables}
        through = read_by_views(reflected, catalog)
        behind = {table.bare_name for table in reflected.tables if fold(table.bare_name) in through}
        known = {table.bare_name for table in reflected.tables}
        hides = bool(known - visible or catalog.hidden_columns or catalog.has_masks)
        self._readable = _Readable(
            hidden=frozenset(known - visible - behind),
            databases=reflected.database_names,
            needs_plan=hides or not reflected.unread_views,
        )

    @contextmanager
    def session(self, stop: Stop, /, *, walled: bool) -> Iterator["MysqlSession"]:
        """Open a READ ONLY transaction. A walled session is for one SELECT over the readable
        tables.
        """
        with self._pool.link(stop) as link:
            try:
                with stop.watch(link):
                    with translated(limits=self._limits, stopped=stop):
                        self._begin(link, stop)
                    yield MysqlSession(link, readable=self._readable if walled else None)
            finally:
                self._end(link)

    def close(self) -> None:
        """Close the idle connections. A connection that is at work is closed when its query
        ends.
        """
        self._pool.close()

    def _stop(self) -> Stop:
        return Stop(seconds=self._limits.seconds)

    def _begin(self, link: Link[Connection], stop: Stop) -> None:
        try:
            self._open_transaction(link.connection, stop)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError):
            if link.fresh or link.connection.is_open:
                raise
            # The server closed it while it was idle: a restart, or `wait_timeout`.
            self._pool.replace(link)
            self._open_transaction(link.connection, stop)

    def _open_transaction(self, connection: Connection, stop: Stop) -> None:
        left = max(0.001, stop.left)
        optional = self._optional_settings(connection)
        modes = SQL_MODE
        if not connection.version.is_mariadb:
            modes = f"{ONLY_FULL_GROUP_BY},{SQL_MODE}"
        settings: dict[str, object] = {
            "sql_mode": f"'{modes}'",
            "group_concat_max_len": self._limits.bytes,
            "lock_wait_timeout": max(1, math.ceil(min(left, self._wait_seconds))),
        }
        if "max_statement_time" in optional:
            settings["max_statement_time"] = f"{left:.3f}"
        else:
            settings["max_execution_time"] = max(1, round(left * 1000))
        if "max_session_mem_used" in optional:
            settings["max_session_mem_used"] = self._limits.memory_bytes
        for name in RECURSION & optional:
            settings[name] = MOST_RECURSION
        if PLAN_FORMAT in optional:
            settings[PLAN_FORMAT] = 1
        parts = ", ".join(f"SESSION {name} = {value}" for name, value in settings.items())
        connection.rows(f"SET {parts}")
        connection.in_transaction = True
        connection.rows("START TRANSACTION READ ONLY")

    def _end(self, link: Link[Connection]) -> None:
        """Roll back and reset the session, or close the connection if rows are unread or it was
        interrupted.
        """
        connection = link.connection
        connection.reader.left = None
        if link.interrupted or connection.is_streaming:
            connection.close()
            return
        try:
            connection.reset()
        except (pymysql.Error, OSError):
            connection.close()

    def _optional_settings(self, connection: Connection) -> frozenset[str]:
        with self._lock:
            if self._optional is None:
                names = ", ".join(f"'{name}'" for name in OPTIONAL)
                sql = f"SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"
                self._optional = frozenset(str(row[0]) for row in connection.rows(sql))
            return self._optional


def _check_grants(connection: Connection) -> None:
    """Raise `DatabaseUnavailableError` if the account has rights with which no query runs, and log
    a warning if it may do more than read.
    """
    grants = read_grants(str(row[0]) for row in connection.rows("SHOW GRANTS"))
    if grants.refused:
        raise DatabaseUnavailableError(
            f"the account has the right {' and '.join(grants.refused)} on the server, with which a"
            " query could read and write its files: use an account that has SELECT and SHOW VIEW on"
            " the database and nothing else"
        )
    if grants.beyond:
        _log.warning(
            "the database account may do more than read (%s): an account with SELECT and SHOW VIEW"
            " alone is safer",
            ", ".join(grants.beyond),
        )


class _Readable:
    """The tables that a walled query may read. `hidden` are names of tables of the database that it
    may not.
    """

    def __init__(
        self,
        *,
        hidden: frozenset[str] | None = None,
        databases: frozenset[str] = frozenset(),
        needs_plan: bool = True,
    ) -> None:
        self._hidden = hidden
        self._databases = databases
        self.needs_plan = needs_plan
        """Whether a query without a plan is refused. A plan needs the right SHOW VIEW."""

    def allows(self, explained: str, notes: Sequence[str]) -> bool:
        """Return whether all tables of a plan may be read.

        The plan has aliases of tables, or their names where there is no alias. The notes have
        names, but not those of a subquery that the server ran while it planned.
        """
        if self._hidden is None:
            return False
        names = names_in_plan(explained)
        for note in notes:
            names -= aliases_in_note(note)
        for note in notes:
            pairs = names_in_note(note)
            names |= {name for database, name in pairs if database in self._databases}
        return not names & self._hidden


class MysqlSession:
    """One transaction at work."""

    def __init__(self, link: Link[Connection], *, readable: _Readable | None) -> None:
        self.link = link
        self._readable = readable

    def fetch(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched:
        """Run one SELECT and fetch all its rows in batches."""
        connection = self.link.connection
        text = with_values(sql, params, MYSQL) if params else sql
        self._explain(text, limits, stop)
        with translated(limits=limits, sql=text, stopped=stop):
            connection.reader.left = WIRE_FACTOR * limits.bytes + WIRE_SPARE
            cursor = connection.stream(text)
            fields = connection.fields(cursor)
            if not fields:
                raise QueryRefusedError(
                    "the database reads the text as no query",
                    rule="engine",
                    hint="send exactly one SELECT",
                )
            rows: list[Row] = collect(
                lambda count: cursor.fetchmany(count), limits=limits, stop=stop
            )
            connection.end_stream(cursor)
            connection.reader.left = None
            _check_warnings(connection, limits)
        return Fetched(
            tuple(field.name for field in fields),
            tuple(type_name(field.type_code, field.flags, field.charset) for field in fields),
            rows,
        )

    def plan(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Plan:
        """Return the server's plan for one SELECT, without running it."""
        text = with_values(sql, params, MYSQL) if params else sql
        explained = self._explain(text, limits, stop)
        return read_cost(explained) if explained else Plan()

    def interrupt(self) -> None:
        """Stop the running statement, if there is one."""
        self.link.interrupt()

    def _explain(self, sql: str, limits: QueryLimits, stop: Stop) -> str:
        """Return the server's plan as JSON. In a walled session raise `QueryRefusedError` if it
        reads a table that is not readable. Return "" for an unwalled session, and for a view whose
        plan the account may not see, if nothing is hidden from queries.
        """
        if self._readable is None:
            return ""
        connection = self.link.connection
        try:
            with translated(limits=limits, sql=sql, stopped=stop):
                explained = str(connection.rows(f"EXPLAIN FORMAT=JSON {sql}")[0][0])
                if connection.version.is_mariadb:
                    # Its note after FORMAT=JSON is empty.
                    connection.rows(f"EXPLAIN EXTENDED {sql}")
                warnings = connection.rows("SHOW WARNINGS")
        except _NoPlanError as error:
            if self._readable.needs_plan:
                raise refusal("views whose SQL the account may see (SHOW VIEW)") from error
            return ""
        notes = [str(note) for _, code, note in warnings if code == EXPLAIN_NOTE]
        if not self._readable.allows(explained, notes):
            raise refusal("the tables of the catalogue")
        return explained


# -- errors ----------------------------------------------------------------------------------------

EXPLAIN_NOTE = 1003
_CUT = {
    1260: "one value of GROUP_CONCAT",
    1301: "one value",
}
"""Warnings that say that a value was cut or left out, with what was too large."""
_TIMED_OUT = (1969, 3024)
_INTERRUPTED = 1317
_LOCKED = "a table is locked by another session: wait until that has finished, then ask again"
_ERRORS: dict[int, Callable[[QueryLimits], DatabaseError]] = {
    **dict.fromkeys(
        (1044, 1045, 1142, 1143, 1227, 1356, 1370, 1792, 3118),
        lambda _: refusal("what the catalogue shows"),
    ),
    **dict.fromkeys(
        (1037, 1038, 1041, 1290, 3170),
        lambda limits: QueryMemoryError(limit=limits.memory_bytes),
    ),
    **dict.fromkeys((3, 1021, 1114), lambda limits: TempSpaceError(limit=limits.temp_bytes)),
    **dict.fromkeys(
        (1153, 2027), lambda limits: ResultTooLargeError(limit=limits.bytes, what="one value")
    ),
    **dict.fromkeys((1205, 1213, 3572), lambda _: DatabaseUnavailableError(_LOCKED)),
}
"""For some codes, a function that makes this package's error from the limits."""
_GONE = frozenset(
    {0, 1040, 1049, 1053, 1077, 1079, 1080, 1129, 1130, 1152, 1158, 1159, 1160, 1161, 1203}
    | {1226, 1927, 3159, 4031}
    | set(range(2000, 2060))
)
_NO_PLAN = 1345
_PROBLEMS: dict[int, Problem] = {
    **dict.fromkeys((1064, 1149), "syntax"),
    **dict.fromkeys((1054, 1109, 1146, 1305, 1051), "unknown_name"),
    1052: "ambiguous",
    **dict.fromkeys((1582, 1583, 1210, 1267, 1270, 1271, 1241, 4078, 4079), "type"),
}
_TELLS_NO_DATA = frozenset(
    _PROBLEMS.keys() | {1055, 1056, 1060, 1066, 1110, 1111, 1113, 1115, 1140, 1176, 1191, 1222}
    | {1221, 1235, 1247, 1248, 1250, 1253, 1273, 1318, 1584, 3593, 4015, 4016, 4019}
)  # fmt: skip
"""Errors whose text holds names of the query only. Others may quote a value of the data, such as
"Duplicate entry 'x' for key": their quoted parts are left out.
"""
_NEAR = re.compile(r"near '(?P<near>.*)' at line \d+\s*$", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^']|'(?=\w))*'")


class _NoPlanError(QueryFailedError):
    """The account may not see the plan of a query over a view."""

    code = QueryFailedError.code


@contextmanager
def translated(
    *, limits: QueryLimits, sql: str = "", stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Raise errors of the driver as this package's errors."""
    try:
        yield
    except pymysql.Error as error:
        raise _translate(error, limits, sql, stopped()) from error
    except (TooMuchReadError, MemoryError) as error:
        raise ResultTooLargeError(limit=limits.bytes) from error
    except OSError as error:
        if stopped():
            raise StoppedError from error
        raise DatabaseUnavailableError(f"the MySQL server cannot be asked: {error}") from error


def _translate(
    error: pymysql.Error, limits: QueryLimits, sql: str, stopped: bool
) -> LongtableError | StoppedError:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[-1]) if error.args else type(error).__name__
    if code in _TIMED_OUT or (stopped and (code == _INTERRUPTED or code in _GONE)):
        return StoppedError()
    if code == _INTERRUPTED:
        return QueryFailedError(
            "the query was cancelled on the server by someone else", hint="ask again"
        )
    if make := _ERRORS.get(code):
        return make(limits)
    if code == _NO_PLAN:
        return _NoPlanError("the plan of a view cannot be seen")
    if code in _GONE:
        return DatabaseUnavailableError(f"the MySQL server cannot be asked: {text}")
    near = _NEAR.search(text)
    offset = sql.find(near["near"]) if near and near["near"] else -1
    reason = text if code in _TELLS_NO_DATA else _QUOTED.sub("'…'", text)
    return FailedAtError(
        reason, problem=_PROBLEMS.get(code, "other"), offset=offset if offset >= 0 else None
    )


def _check_warnings(connection: Connection, limits: QueryLimits) -> None:
    """Raise `ResultTooLargeError` if the server says that it cut a value or left one out."""
    if not connection.warnings:
        return
    for _, code, _ in connection.rows("SHOW WARNINGS"):
        if code in _CUT:
            raise ResultTooLargeError(limit=limits.bytes, what=_CUT[code])
