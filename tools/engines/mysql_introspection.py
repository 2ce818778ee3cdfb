"""Read the catalogue of MySQL or MariaDB, the grants of the account, and the plan of a query."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.constants import FIELD_TYPE, FLAG

from longtable.base.errors import QueryFailedError
from longtable.tools.catalog import Column, ForeignKey, Reflected, Table, fold
from longtable.tools.sql.verdict import Plan, Scan, product

Rows = Sequence[tuple[Any, ...]]

TABLES = """
SELECT TABLE_NAME, TABLE_TYPE, TABLE_COMMENT, TABLE_ROWS FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE <> 'SEQUENCE' ORDER BY TABLE_NAME
"""
COLUMNS = """
SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_COMMENT, GENERATION_EXPRESSION
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE() AND FIND_IN_SET('select', PRIVILEGES) > 0
ORDER BY TABLE_NAME, ORDINAL_POSITION
"""
KEYS = """
SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME
FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE()
ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION
"""
VIEWS = "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()"
FUNCTIONS = (
    "SELECT DISTINCT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'"
)
FACTS = "SELECT DATABASE(), @@lower_case_table_names"

# There is no counter of changes, so all that a catalogue shows is summed up: some 50 ms for 1,000
# tables.
VERSION = """
SELECT
  (SELECT CONCAT(COUNT(*), '/', SUM(CRC32(CONCAT_WS('|', TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_TYPE, IS_NULLABLE,
     COLUMN_COMMENT, GENERATION_EXPRESSION, PRIVILEGES)))) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()),
  (SELECT CONCAT(COUNT(*), '/', SUM(CRC32(CONCAT_WS('|', TABLE_NAME, TABLE_TYPE, TABLE_COMMENT)))) FROM information_schema.TABLES
   WHERE TABLE_SCHEMA = DATABASE()),
  (SELECT CONCAT(COUNT(*), '/', SUM(CRC32(CONCAT_WS('|', TABLE_NAME, VIEW_DEFINITION)))) FROM information_schema.VIEWS
   WHERE TABLE_SCHEMA = DATABASE()),
  (SELECT CONCAT(COUNT(*), '/', SUM(CRC32(CONCAT_WS('|', TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME,
     REFERENCED_COLUMN_NAME)))) FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE())
"""
QUOTE = "`"


def reflect(rows: Callable[[str], Rows]) -> Reflected:
    """Read every table and view of the connection's database that the account may read. The number
    of queries does not grow with the number of tables.
    """
    (database, lower_case), *_ = rows(FACTS)
    columns = _columns_by_table(rows(COLUMNS))
    primary, foreign = _keys_by_table(rows(KEYS), str(database))
    tables = []
    for name, kind, comment, estimate in rows(TABLES):
        is_view = "VIEW" in kind
        if name not in columns and not is_view:
            continue  # the account may read none of its columns
        found = Table(
            name=name,
            kind="view" if is_view else "table",
            columns=tuple(columns.get(name, ())),  # a broken view has none
            primary_key=primary.get(name, ()),
            foreign_keys=tuple(foreign.get(name, ())),
            comment=None if is_view else comment or None,
            schema=str(database),
            rows_estimate=None if is_view or estimate is None else int(estimate),
            quote=QUOTE,
        )
        tables.append(found)
    texts = {(str(database), name): text or "" for name, text in rows(VIEWS)}
    return Reflected(
        tuple(tables),
        texts,
        database_names=frozenset({str(database)}),
        own_functions=frozenset(fold(row[0]) for row in rows(FUNCTIONS)),
        exact_case=lower_case == 0,
        unread_views=frozenset(name for (_, name), text in texts.items() if not text),
    )


def _columns_by_table(rows: Rows) -> dict[str, list[Column]]:
    columns: dict[str, list[Column]] = {}
    for table, name, kind, nullable, comment, expression in rows:
        column = Column(
            name,
            _type_shown(kind),
            nullable=nullable == "YES",
            comment=comment or None,
            generated_by=expression or "",
        )
        columns.setdefault(table, []).append(column)
    return columns


def _type_shown(kind: str) -> str:
    """Return a column's type as people read it: the display width of a number is left out."""
    return re.sub(r"^((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", kind)


def _keys_by_table(
    rows: Rows, database: str
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[ForeignKey]]]:
    """Return two dicts by the table's name: its primary key, and its foreign keys."""
    primary: dict[str, tuple[str, ...]] = {}
    references: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for table, constraint, column, other_database, other, other_column in rows:
        if constraint == "PRIMARY":
            primary[table] = (*primary.get(table, ()), column)
        elif other is not None and other_database == database:
            references.setdefault((table, constraint), []).append((column, other, other_column))
    foreign: dict[str, list[ForeignKey]] = {}
    for (table, _), parts in references.items():
        own = tuple(part[0] for part in parts)
        others = tuple(part[2] for part in parts)
        foreign.setdefault(table, []).append(ForeignKey(own, parts[0][1], others))
    return primary, foreign


# -- grants ----------------------------------------------------------------------------------------

_GRANT = re.compile(r"^GRANT (?P<rights>.+?) ON (?P<place>.+?) TO ", re.DOTALL)
_READING = frozenset(
    {"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "EXECUTE", "REFERENCES", "PROXY"}
)
REFUSED_RIGHTS = frozenset({"FILE", "SUPER"})


@dataclass(frozen=True)
class Grants:
    """What the account may do beyond reading. `refused` are rights with which no query runs."""

    refused: tuple[str, ...]
    beyond: tuple[str, ...]


_TO_PUBLIC = re.compile(r"\bON `test(?:\\_%)?`\.\* TO PUBLIC\b", re.IGNORECASE)


def read_grants(lines: Iterable[str]) -> Grants:
    """Read the answer to SHOW GRANTS."""
    refused: set[str] = set()
    beyond: set[str] = set()
    for line in lines:
        if _TO_PUBLIC.search(line):
            continue  # everybody has these: on a fresh server, rights on its database `test`
        if (grant := _GRANT.match(line)) is None:
            continue  # a role; its rights have lines of their own
        everywhere = grant["place"].strip() == "*.*"
        for right in re.sub(r"\([^)]*\)", "", grant["rights"]).split(","):
            name = right.strip().upper()
            if name == "ALL PRIVILEGES":
                beyond.add(name)
                refused |= REFUSED_RIGHTS if everywhere else set()
            elif name in REFUSED_RIGHTS:
                refused.add(name)
            elif name not in _READING:
                beyond.add(name)
    return Grants(tuple(sorted(refused)), tuple(sorted(beyond)))


# -- plans -----------------------------------------------------------------------------------------

_TABLE_IN_NOTE = re.compile(r"`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`(?![.`])")
_TEXT_IN_PLAN = re.compile(r'^(\s*"\w+": )"(.*)"(,?)$', re.MULTILINE)
_LIST_IN_PLAN = re.compile(r'^(\s*"\w+": )\[.+\](,?)$', re.MULTILINE)
_ALIAS_IN_NOTE = re.compile(r"`\.`(?:[^`]|``)+` `((?:[^`]|``)+)`")


def names_in_note(note: str) -> set[tuple[str, str]]:
    """Return pairs of names in the query as the server rewrote it, which the note after EXPLAIN
    holds. They include database and name of each table, also of those that views read.
    """
    found = _TABLE_IN_NOTE.findall(note)
    return {(first.replace("``", "`"), second.replace("``", "`")) for first, second in found}


def aliases_in_note(note: str) -> set[str]:
    """Return the aliases that the query gives to tables, as the note after EXPLAIN has them."""
    return {alias.replace("``", "`") for alias in _ALIAS_IN_NOTE.findall(note)}


def names_in_plan(explained: str) -> set[str]:
    """Return the names in a plan: aliases of the query's tables, and names of the tables that its
    views read.
    """
    names = {str(step.get("table_name", "")) for step in _steps(_read_plan(explained))}
    return {name for name in names if name and not name.startswith("<")}


def read_cost(explained: str) -> Plan:
    """Read from a plan how many rows the query would read, and how many pairs it would compare.

    The server gives for each table of a join the rows that it reads for one row of the tables
    before. MariaDB gives no cost, and MySQL's has other units than any threshold. Raises
    `QueryFailedError` for a plan that cannot be read.
    """
    plan = _read_plan(explained)
    scans: list[Scan] = []
    pairs = 0.0
    largest = 0.0
    for loop in _loops(plan):
        before = 1.0
        for place, step in enumerate(loop):
            rows = _number(step, "rows", "rows_examined_per_scan")
            if step.get("access_type") in ("ALL", "index"):
                scans.append(Scan(str(step.get("table_name", "")), rows))
                if place:
                    pairs += product([before, rows])
            before = product([before, max(rows * _number(step, "filtered") / 100, 1.0)])
            largest = max(largest, before, rows)
    return Plan(scans=tuple(scans), pairs=pairs, step_rows=largest)


def _number(step: Mapping[str, Any], *keys: str) -> float:
    for key in keys:
        value = step.get(key)
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
    return 0.0


def _read_plan(text: str) -> object:
    """Read a plan line by line: MariaDB escapes nothing in the texts of conditions, so that a query
    could write parts of its own plan. Raises `QueryFailedError` if it cannot be read.
    """
    quoted = _TEXT_IN_PLAN.sub(lambda line: f"{line[1]}{json.dumps(line[2])}{line[3]}", text)
    try:
        return json.loads(_LIST_IN_PLAN.sub(r"\1[]\2", quoted))
    except ValueError as error:
        raise QueryFailedError("the server's plan of the query cannot be read") from error


def _steps(part: object) -> Iterator[Mapping[str, Any]]:
    """Yield each table of a plan."""
    if isinstance(part, list):
        for item in part:
            yield from _steps(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "table" and isinstance(value, dict):
                yield value
            yield from _steps(value)


def _loops(part: object) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the tables of each join of a plan, in the order in which they are read. A table that is
    joined to no other is a join of one.
    """
    if isinstance(part, list):
        for item in part:
            yield from _loops(item)
        return
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if key == "nested_loop" and isinstance(value, list):
            joined = [step for step in map(_first_table, value) if step is not None]
            yield joined
            for step in joined:
                yield from _loops({**step, "table": None})
        elif key == "table" and isinstance(value, dict):
            yield [value]
            yield from _loops(value)
        else:
            yield from _loops(value)


def _first_table(item: object) -> Mapping[str, Any] | None:
    """Return the table of one step of a join. It may stand within a sort or a join buffer."""
    if not isinstance(item, dict):
        return None
    if isinstance(table := item.get("table"), dict):
        return table
    return next((found for value in item.values() if (found := _first_table(value))), None)


# -- types -----------------------------------------------------------------------------------------

_BINARY_CHARSET = 63
_NUMBERS = {
    FIELD_TYPE.TINY: "TINYINT",
    FIELD_TYPE.SHORT: "SMALLINT",
    FIELD_TYPE.INT24: "MEDIUMINT",
    FIELD_TYPE.LONG: "INT",
    FIELD_TYPE.LONGLONG: "BIGINT",
}
_OTHERS = {
    FIELD_TYPE.DECIMAL: "DECIMAL",
    FIELD_TYPE.NEWDECIMAL: "DECIMAL",
    FIELD_TYPE.FLOAT: "FLOAT",
    FIELD_TYPE.DOUBLE: "DOUBLE",
    FIELD_TYPE.NULL: "NULL",
    FIELD_TYPE.TIMESTAMP: "TIMESTAMP",
    FIELD_TYPE.DATE: "DATE",
    FIELD_TYPE.NEWDATE: "DATE",
    FIELD_TYPE.TIME: "TIME",
    FIELD_TYPE.DATETIME: "DATETIME",
    FIELD_TYPE.YEAR: "YEAR",
    FIELD_TYPE.BIT: "BIT",
    FIELD_TYPE.JSON: "JSON",
    FIELD_TYPE.ENUM: "ENUM",
    FIELD_TYPE.SET: "SET",
    FIELD_TYPE.GEOMETRY: "GEOMETRY",
}
_BLOBS = (FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.BLOB)


def type_name(code: int, flags: int, charset: int) -> str:
    """Return the SQL name of a result column's type."""
    if code in _NUMBERS:
        return _NUMBERS[code] + (" UNSIGNED" if flags & FLAG.UNSIGNED else "")
    if code in _OTHERS:
        return _OTHERS[code]
    if flags & FLAG.ENUM:
        return "ENUM"
    if flags & FLAG.SET:
        return "SET"
    is_binary = charset == _BINARY_CHARSET
    if code in _BLOBS:
        return "BLOB" if is_binary else "TEXT"
    return "VARBINARY" if is_binary else "VARCHAR"
