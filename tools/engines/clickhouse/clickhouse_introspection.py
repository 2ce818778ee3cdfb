"""Read the catalogue of ClickHouse, the grants of the account, and what the server makes of a
query: its syntax tree and its plan.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from longtable.base.errors import QueryFailedError
from longtable.tools.catalog import Column, Reflected, Table, fold
from longtable.tools.engines.base import Row
from longtable.tools.engines.clickhouse.clickhouse_values import is_nullable, shown_type
from longtable.tools.sql.verdict import Plan, Scan, product

Ask = Callable[[str], Sequence[Row]]

TABLES = """
SELECT name, engine, comment, total_rows, as_select, engine_full, empty(parameterized_view_parameters),
  if(endsWith(engine, 'View'), create_table_query, '')
FROM system.tables
WHERE database = currentDatabase() AND NOT is_temporary AND NOT startsWith(name, '.inner') ORDER BY name
"""
COLUMNS = """
SELECT table, name, type, comment, default_kind, default_expression
FROM system.columns WHERE database = currentDatabase() AND default_kind <> 'EPHEMERAL'
ORDER BY table, default_kind = 'ALIAS', position
"""
FUNCTIONS = "SELECT name FROM system.functions WHERE origin <> 'System'"
FACTS = "SELECT currentDatabase()"
VERSION = """
SELECT
  (SELECT (count(), sum(cityHash64(name, engine, comment, create_table_query))) FROM system.tables
   WHERE database = currentDatabase() AND NOT is_temporary),
  (SELECT (count(), sum(cityHash64(table, name, type, comment, position))) FROM system.columns
   WHERE database = currentDatabase()),
  (SELECT count() FROM system.functions WHERE origin <> 'System')
"""
READONLY = "SELECT toInt64(getSetting('readonly'))"
QUOTE = "`"
_VIEWS = frozenset({"View", "MaterializedView", "LiveView", "WindowView"})
_READERS = frozenset(
    {
        *("Kafka", "RabbitMQ", "NATS", "FileLog", "S3Queue", "AzureQueue"),
        *("Executable", "ExecutablePool"),
    }
)
"""Engines of tables from which each row is read once only, or whose rows a program makes."""
_OVER_TABLES = frozenset({"Merge", "Distributed", "Buffer", "Alias"})
"""Engines of tables that store nothing themselves."""
_QUOTED_NAME = re.compile(r"`(?:[^`\\]|\\.)*`")
_LITERALS = re.compile(r"'((?:[^'\\]|\\.)*)'|([^\s,()]+)")


def reflect(ask: Ask) -> Reflected:
    """Read every table and view of the connection's database that the account may read. The number
    of queries does not grow with the number of tables.

    Keys are left out: a primary key of ClickHouse is an order, in which rows may be alike.
    """
    database = str(ask(FACTS)[0][0])
    columns = _columns_by_table(ask(COLUMNS))
    tables: list[Table] = []
    texts: dict[tuple[str, str], str] = {}
    engines: dict[str, str] = {}
    for row in ask(TABLES):
        name, engine, comment, rows, query, engine_text = map(_text, row[:6])
        is_view = engine in _VIEWS
        if (
            not row[6]
            or engine in _READERS
            or "\\" in name
            or (name not in columns and not is_view)
        ):
            continue
        found = Table(
            name=name,
            kind="view" if is_view else "table",
            columns=tuple(columns.get(name, ())),
            comment=comment or None,
            schema=database,
            rows_estimate=int(rows) if rows and not is_view else None,
            quote=QUOTE,
        )
        tables.append(found)
        engines[name] = engine_text
        if is_view:
            # The rows of a view with a table of its own are that table's, whatever it is filled by.
            texts[(database, name)] = "" if _has_target(_text(row[7])) else query
    return Reflected(
        tuple(tables),
        texts,
        database_names=frozenset({database}),
        own_functions=frozenset(fold(_text(row[0])) for row in ask(FUNCTIONS)),
        exact_case=True,
        parts=_parts(engines, database),
        unread_views=frozenset(name for (_, name), text in texts.items() if not text),
    )


def _has_target(statement: str) -> bool:
    """Return whether a view is stored in another table, by the statement that made it."""
    before, _, _ = _QUOTED_NAME.sub("x", statement).partition(" AS ")
    return re.search(r"\sTO\s", before) is not None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _columns_by_table(rows: Iterable[Row]) -> dict[str, list[Column]]:
    columns: dict[str, list[Column]] = {}
    for table, name, kind, comment, default, expression in (map(_text, row) for row in rows):
        if "\\" in name:
            continue  # no text names it in one way only
        column = Column(
            name,
            shown_type(kind),
            nullable=is_nullable(kind),
            comment=comment or None,
            generated_by=expression if default in ("ALIAS", "MATERIALIZED") else "",
        )
        columns.setdefault(table, []).append(column)
    return columns


def _parts(
    engines: Mapping[str, str], database: str
) -> dict[tuple[str, str], tuple[tuple[str, str], ...]]:
    """Return the tables that are read along with a table: those behind an engine that stores
    nothing itself.
    """
    parts: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
    for table, text in engines.items():
        name, _, rest = text.partition("(")
        if name.strip() not in _OVER_TABLES:
            continue
        arguments = [first or second for first, second in _LITERALS.findall(rest)]
        if name == "Merge":
            # The database may be a pattern, too: REGEXP, 'shop'.
            pattern = arguments[-1].replace("\\\\", "\\") if arguments else ""
            names = [other for other in engines if _matches(pattern, other)]
        else:
            named = {each.rpartition(".")[2] for each in arguments}
            names = [other for other in engines if other in named]
        others = [other for other in names if other != table]
        if not others:  # whatever it reads may be hidden
            others = [other for other in engines if other != table]
        parts[(database, table)] = tuple((database, other) for other in others)
    return parts


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True  # another dialect of patterns: it may match


# -- grants ----------------------------------------------------------------------------------------

_GRANT = re.compile(r"^GRANT (?P<rights>.+?) ON (?P<place>\S+) TO ", re.DOTALL)
_READING = re.compile(r"(SHOW|SELECT|dictGet)\b.*|KILL QUERY|USAGE|REMOTE|CLUSTER")


def rights_beyond_reading(lines: Iterable[str]) -> tuple[str, ...]:
    """Return what the account may do beyond reading, by the answer to SHOW GRANTS."""
    beyond: set[str] = set()
    for line in lines:
        if (grant := _GRANT.match(line)) is None:
            continue  # a role
        for right in re.sub(r"\([^)]*\)", "", grant["rights"]).split(","):
            if not _READING.fullmatch(right.strip()):
                beyond.add(right.strip())
    return tuple(sorted(beyond))


# -- syntax trees ----------------------------------------------------------------------------------

_NODE = re.compile(r"^(?P<depth> *)(?P<kind>[A-Za-z]+) ?(?P<rest>.*?)(?: \(children \d+\))?$")
_ALIAS = re.compile(r" \(alias .*\)$", re.DOTALL)
_IN = frozenset(
    {"in", "notin", "globalin", "globalnotin", "nullin", "notnullin", "globalnullin"}
    | {"globalnotnullin"}
)


class SyntaxTree:
    """What the server reads in a text: the names of tables and functions, as EXPLAIN AST writes
    them. Nothing of the text has run.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.tables: set[str] = set()
        self.functions: set[str] = set()
        self.has_settings = False
        path: list[tuple[int, str]] = []
        for line in lines:
            node = _NODE.match(line)
            if node is None:
                continue
            depth = len(node["depth"])
            while path and path[-1][0] >= depth:
                path.pop()
            name = _ALIAS.sub("", node["rest"])
            above = path[-2][1] if len(path) > 1 else ""
            if node["kind"] == "TableIdentifier" or (node["kind"] == "Identifier" and above in _IN):
                self.tables.add(name)
            elif node["kind"] == "Function":
                self.functions.add(fold(name))
            elif node["kind"] == "Set":
                self.has_settings = True
            path.append((depth, fold(name) if node["kind"] == "Function" else ""))


# -- plans -----------------------------------------------------------------------------------------

_CROSS = frozenset({"CROSS", "COMMA"})


def read_plan(estimates: Iterable[str], explained: str) -> Plan:
    """Read how many rows a query would read, by EXPLAIN ESTIMATE, and how many pairs it would
    compare, by EXPLAIN. Raises `QueryFailedError` for a plan that cannot be read.
    """
    rows: dict[str, float] = {}
    for line in estimates:
        database, table, _, count, _ = line.split("\t")
        rows[f"{database}.{table}"] = float(count)
    try:
        plans = json.loads(explained)
    except ValueError as error:
        raise QueryFailedError("the server's plan of the query cannot be read") from error
    reads: dict[str, int] = {}
    for step in _steps(plans):
        name = str(step.get("Description", ""))
        reads[name] = reads.get(name, 0) + 1
    each = {name: count / max(1, reads.get(name, 1)) for name, count in rows.items()}
    joins = _Joins(each)
    largest = max((joins.rows(part["Plan"]) for part in plans if "Plan" in part), default=0.0)
    scans = tuple(Scan(name.rpartition(".")[2], count) for name, count in sorted(rows.items()))
    return Plan(scans=scans, pairs=joins.pairs, step_rows=max(largest, joins.largest))


def _steps(part: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, list):
        for item in part:
            yield from _steps(item)
    elif isinstance(part, dict):
        if "Node Type" in part:
            yield part
        for key in ("Plan", "Plans"):
            yield from _steps(part.get(key))


class _Joins:
    """Adds up a plan's joins, by the number of rows of each table."""

    def __init__(self, tables: Mapping[str, float]) -> None:
        self._tables = tables
        self.pairs = 0.0
        self.largest = 0.0

    def rows(self, step: Mapping[str, Any]) -> float:
        """Return about how many rows a step has."""
        inner = [self.rows(part) for part in step.get("Plans") or ()]
        kind = str(step.get("Node Type", ""))
        if not inner:
            size = self._tables.get(str(step.get("Description", "")), 1.0)
        elif kind.startswith("Join") and len(inner) > 1:
            size = self._joined(step, inner)
        elif kind == "Limit" and isinstance(step.get("Limit"), int):
            size = min(max(inner), float(step["Limit"]))
        elif kind == "Aggregating" and not step.get("Keys"):
            size = 1.0
        elif kind == "CreatingSets":
            size = inner[0]
        else:
            size = sum(inner)
        self.largest = max(self.largest, size)
        return size

    def _joined(self, step: Mapping[str, Any], inner: Sequence[float]) -> float:
        if str(step.get("Type", "")).upper() not in _CROSS:
            return max(inner)
        size = product(inner)
        self.pairs = max(self.pairs, size)
        return size
