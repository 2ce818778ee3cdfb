"""ClickHouse behind its own wall.

- Each query is one HTTP request with `readonly=1`, under which the server runs no statement that
  writes, no table function that reaches outside, and no change of a setting. All limits and what
  the SQL means are settings of the same request.
- The server's own reading of the text (EXPLAIN AST, which runs nothing) comes first: it may name
  only readable tables, and only functions of the list. So a text that the server would read in
  another way than the AST wall did is refused.
- `readonly=1` alone would let through `file('...')` as a value, `merge(...)`, tables of the system
  and of other databases, and INTO OUTFILE. These are kept back by the AST wall, by the server's
  reading, and by the account's rights.
- A running query is stopped by `KILL QUERY` with its id, in a request of its own.
"""

import logging
import math
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path

from longtable.base.errors import DatabaseUnavailableError, QueryRefusedError
from longtable.base.url import Location
from longtable.tools.catalog import Catalog, Reflected, fold, read_by_views
from longtable.tools.engines import base
from longtable.tools.engines.base import (
    Fetched,
    QueryLimits,
    Row,
    collect,
    literal_of,
    refusal,
    with_values,
)
from longtable.tools.engines.clickhouse.clickhouse_connection import ClickhouseDriver, Connection
from longtable.tools.engines.clickhouse.clickhouse_errors import translated
from longtable.tools.engines.clickhouse.clickhouse_introspection import (
    READONLY,
    VERSION,
    SyntaxTree,
    read_plan,
    reflect,
    rights_beyond_reading,
)
from longtable.tools.engines.clickhouse.clickhouse_values import (
    FORMAT_SETTINGS,
    Reader,
    Values,
)
from longtable.tools.engines.connection_pool import Link, Pool
from longtable.tools.engines.dialects import CLICKHOUSE, Dialect
from longtable.tools.sql.verdict import Plan, Scan
from longtable.tools.workers.runner import Stop, StoppedError

_log = logging.getLogger(__name__)

MEANING = {
    "join_use_nulls": "1",
    "max_recursive_cte_evaluation_depth": "1000000",
    "joined_subquery_requires_alias": "0",
    "union_default_mode": "DISTINCT",
    "intersect_default_mode": "DISTINCT",
    "except_default_mode": "DISTINCT",
    "prefer_column_name_to_alias": "1",
    "cast_keep_nullable": "1",
    "group_by_use_nulls": "1",
    "asterisk_include_alias_columns": "1",
    "asterisk_include_materialized_columns": "1",
}
"""Settings under which SQL means what it means elsewhere: a row without a partner has NULL, UNION
drops duplicates, a name in WHERE is the column and not an alias, and `*` has all columns.
"""
WIRE_FACTOR = 3
WIRE_SPARE = 1_000_000
"""The bytes that may be read for a result of N bytes: N times the factor, and the spare, because
rows are longer as JSON than they count as cells.
"""
UNKNOWN_ROWS = 1e15
"""The rows of a query that cannot be planned in half of the time: more than any threshold."""


class ClickhouseEngine:
    """One database of a server. Each running query has its own client."""

    dialect = "clickhouse"

    @classmethod
    def open(
        cls, location: Location, /, *, limits: QueryLimits, wait_seconds: float
    ) -> "ClickhouseEngine":
        """Connect to the server of a location."""
        return cls(location.server, limits=limits, wait_seconds=wait_seconds)

    def __init__(self, server: str, *, limits: QueryLimits, wait_seconds: float) -> None:
        self._limits = limits
        self._driver = ClickhouseDriver(server, seconds=limits.seconds)
        self._pool = Pool(self._driver, wait_seconds=wait_seconds)
        self._readable = _Readable()  # nothing, until `guard` has been called
        with self._pool.link(self._stop()) as link, translated(limits=limits):
            _check_account(link.connection)

    def reflect(self) -> Reflected:
        """Read the catalogue of the URL's database."""
        stop = self._stop()
        with self.session(stop, walled=False) as session:
            return reflect(lambda sql: session.rows(sql, stop))

    def schema_version(self) -> object:
        """Return a value that changes with each change of a table, column, view or comment. Changed
        rows do not change it.
        """
        stop = self._stop()
        with self.session(stop, walled=False) as session:
            return session.rows(VERSION, stop)[0]

    def guard(self, catalog: Catalog, reflected: Reflected) -> None:
        """Set the tables that a query may name: the visible tables and views, and for SQL that
        names the tables behind them.
        """
        visible = {table.bare_name for table in catalog.tables}
        through = read_by_views(reflected, catalog)
        known = {table.bare_name for table in reflected.tables}
        behind = {name for name in known if fold(name) in through}
        self._readable = _Readable(
            visible | behind,
            hidden=known - visible - behind,
            databases=reflected.database_names,
            own_functions=reflected.own_functions,
        )

    @contextmanager
    def session(self, stop: Stop, /, *, walled: bool) -> Iterator["ClickhouseSession"]:
        """Lend a client. A walled session is for one SELECT over the readable tables."""
        with self._pool.link(stop) as link, stop.watch(link):
            readable = self._readable if walled else None
            most_rows = self._driver.address.max_rows_to_read
            yield ClickhouseSession(
                link, limits=self._limits, readable=readable, max_rows_to_read=most_rows
            )

    def close(self) -> None:
        """Close the idle clients. A client that is at work is closed when its query ends."""
        self._pool.close()

    def _stop(self) -> Stop:
        return Stop(seconds=self._limits.seconds)


def _check_account(connection: Connection) -> None:
    """Raise `DatabaseUnavailableError` if longtable cannot set its limits for the account, and log
    a warning if the account may do more than read.
    """
    readonly = connection.texts(READONLY, {})[0]
    if readonly != "0":
        raise DatabaseUnavailableError(
            f"the account's profile has readonly = {readonly}, under which longtable can set neither"
            " its limits nor readonly = 1 for a query: use an account without readonly, which has"
            " SELECT on the database and nothing else; longtable sets readonly = 1 for each query"
        )
    if beyond := rights_beyond_reading(connection.texts("SHOW GRANTS", {})):
        shown = ", ".join(beyond)[:300]
        _log.warning(
            "the database account may do more than read (%s): an account with SELECT on the"
            " database alone is safer",
            shown,
        )


@cache
def _functions() -> frozenset[str]:
    """Return the functions that the server may read in a text: those of the list, and those that
    operators and syntax mean.
    """
    text = (Path(base.__file__).parent / "functions.toml").read_text(encoding="utf-8")
    lists = tomllib.loads(text)[ClickhouseEngine.dialect]
    names = " ".join(lists.values()).split()
    return frozenset(map(fold, names))


def _is_listed(name: str) -> bool:
    """Return whether a function is in the list, also with what DISTINCT and FILTER append to its
    name.
    """
    known = _functions() | CLICKHOUSE_SYNTAX
    return name in known or any(
        name.endswith(ending) and _is_listed(name.removesuffix(ending))
        for ending in ("distinct", "if")
    )


class _Readable:
    """The names that a walled query may have, by the server's reading of it. `hidden` are tables of
    the database that it may not read.
    """

    def __init__(
        self,
        tables: set[str] | None = None,
        *,
        hidden: set[str] | None = None,
        databases: frozenset[str] = frozenset(),
        own_functions: frozenset[str] = frozenset(),
    ) -> None:
        self._tables = tables
        self._hidden = hidden or set()
        self._databases = databases
        self._own_functions = own_functions

    def check(self, tree: SyntaxTree) -> None:
        """Raise `QueryRefusedError` for a name that may not be read or called."""
        if self._tables is None or not all(map(self._allows, tree.tables)):
            raise refusal("the tables of the catalogue")
        unknown = {name for name in tree.functions if not _is_listed(name)}
        if unknown or tree.functions & self._own_functions or tree.has_settings:
            named = f", such as {min(unknown)!r}" if unknown else ""
            raise QueryRefusedError(
                f"the database reads something else in the text than a plain query{named}",
                rule="engine",
                hint="write it another way",
            )

    def _allows(self, name: str) -> bool:
        """Return whether a name as the server writes it, without quotes, means a readable table or
        a CTE.
        """
        tables = self._tables or set()
        for database in self._databases:
            prefix = f"{database}."
            if name.startswith(prefix) and name.removeprefix(prefix) in tables:
                return True
        return name in tables or ("." not in name and name not in self._hidden)


CLICKHOUSE_SYNTAX = frozenset(
    """
    and or not xor equals notequals less greater lessorequals greaterorequals plus minus multiply
    divide modulo negate concat in notin globalin globalnotin like notlike ilike notilike isnull
    isnotnull isnotdistinctfrom isdistinctfrom if multiif caseWithExpression cast tuple array map
    arrayelement tupleelement lambda exists between tointervalsecond tointervalminute
    tointervalhour tointervalday tointervalweek tointervalmonth tointervalquarter tointervalyear
    tointervalmillisecond tointervalmicrosecond tointervalnanosecond count identity
    """.lower().split()
)
"""What operators, CASE, CAST and brackets are called in the server's reading."""


class ClickhouseSession:
    """A client at work, for one query at a time."""

    def __init__(
        self,
        link: Link[Connection],
        *,
        limits: QueryLimits,
        readable: _Readable | None,
        max_rows_to_read: int | None,
    ) -> None:
        self._link = link
        self._limits = limits
        self._readable = readable
        self._max_rows_to_read = max_rows_to_read

    def rows(self, sql: str, stop: Stop) -> list[Row]:
        """Run SQL of this package, and return its rows without a limit of their number."""
        with translated(limits=self._limits, sql=sql, stopped=stop):
            settings = {**FORMAT_SETTINGS, **_time_limit(stop), "readonly": "1"}
            with self._link.connection.lines(sql, settings) as lines:
                reader = self._reader(lines)
                return [reader.row(line) for line in lines]

    def fetch(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Fetched:
        """Run one SELECT and fetch all its rows in batches."""
        text = with_values(sql, params, CLICKHOUSE, _literal)
        self._check(text, limits, stop)
        settings = {**FORMAT_SETTINGS, **self._settings(limits, stop), **_result_limits(limits)}
        most = WIRE_FACTOR * limits.bytes + WIRE_SPARE
        with (
            translated(limits=limits, sql=text, stopped=stop),
            self._link.connection.lines(text, settings, most=most) as lines,
        ):
            reader = self._reader(lines)
            rows: list[Row] = collect(
                lambda count: [reader.row(line) for line in islice(lines, count)],
                limits=limits,
                stop=stop,
            )
        return Fetched(reader.columns, reader.types, rows)

    def plan(
        self, sql: str, params: Sequence[object] = (), *, limits: QueryLimits, stop: Stop
    ) -> Plan:
        """Return the server's plan for one SELECT, without running it."""
        text = with_values(sql, params, CLICKHOUSE, _literal)
        self._check(text, limits, stop)
        # The server computes a subquery that has one value while it plans.
        seconds = f"{max(0.001, stop.left / 2):.3f}"
        settings = {**self._settings(limits, stop), "max_execution_time": seconds}
        try:
            with translated(limits=limits, sql=text, stopped=stop):
                ask = self._link.connection.texts
                estimates = ask(f"EXPLAIN ESTIMATE {text}", settings)
                explained = ask(f"EXPLAIN json = 1, actions = 1 {text}", settings)
        except StoppedError:
            if stop():
                raise
            return Plan(scans=(Scan("a subquery", UNKNOWN_ROWS),))
        return read_plan(estimates, "\n".join(explained))

    def interrupt(self) -> None:
        """Stop the running query, if there is one."""
        self._link.interrupt()

    def _reader(self, lines: Iterator[bytes]) -> Reader:
        names = next(lines, b"[]")
        types = next(lines, b"[]")
        return Reader(names, types, Values(self._link.connection.zone))

    def _check(self, text: str, limits: QueryLimits, stop: Stop) -> None:
        """Raise `QueryRefusedError` if the server reads a name in the text that is not allowed."""
        if self._readable is None:
            return
        settings = {
            **self._settings(limits, stop),
            "max_execution_time": f"{max(1.0, stop.left):.3f}",
        }
        with translated(limits=limits, sql=text, stopped=stop):
            lines = self._link.connection.texts(f"EXPLAIN AST {text}", settings)
        self._readable.check(SyntaxTree(lines))

    def _settings(self, limits: QueryLimits, stop: Stop) -> dict[str, str]:
        settings = {
            **MEANING,
            **_time_limit(stop),
            "max_memory_usage": str(limits.memory_bytes),
            "max_temporary_data_on_disk_size_for_query": str(limits.temp_bytes),
            "readonly": "1",
        }
        if self._max_rows_to_read is not None:
            settings["max_rows_to_read"] = str(self._max_rows_to_read)
        return settings


def _literal(value: object, rules: Dialect) -> str:
    """Return a value as SQL. A decimal number as it is written would be read as a float."""
    if isinstance(value, Decimal):
        digits = max(0, -int(value.as_tuple().exponent)) if value.is_finite() else 0
        return f"CAST('{value:f}' AS Decimal(76, {min(digits, 76)}))"
    return literal_of(value, rules)


def _time_limit(stop: Stop) -> dict[str, str]:
    left = max(0.001, stop.left)
    return {
        "max_execution_time": f"{left:.3f}" if math.isfinite(left) else "0",
        "timeout_overflow_mode": "throw",
        "cancel_http_readonly_queries_on_client_close": "1",
    }


def _result_limits(limits: QueryLimits) -> dict[str, str]:
    return {
        "max_result_rows": str(limits.rows),
        "max_result_bytes": str(limits.bytes),
        "result_overflow_mode": "throw",
    }
