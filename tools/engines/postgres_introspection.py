"""Read the catalogue of PostgreSQL and the plan of a query, and load values for which Python has no
type.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.types import datetime as dates
from psycopg.types.string import TextLoader

from longtable.tools.catalog import Column, ForeignKey, Reflected, Table, fold, quoted
from longtable.tools.sql.verdict import Plan as Cost
from longtable.tools.sql.verdict import Scan

RawConnection = psycopg.Connection[tuple[Any, ...]]

_AS_TEXT = [
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *(
        "int4multirange",
        "int8multirange",
        "nummultirange",
        "datemultirange",
        "tsmultirange",
        "tstzmultirange",
    ),
    *("inet", "cidr"),
]


def _text(data: Buffer) -> str:
    return bytes(data).decode("utf-8", "replace")


class _OrText(Loader):
    """Read a value with the loader named after this class in the base classes, or as text if Python
    cannot hold the value.
    """

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)  # type: ignore[safe-super]  # the next class has a body
        except (psycopg.DataError, psycopg.NotSupportedError, OverflowError):
            return _text(data)


class IntervalLoader(_OrText, dates.IntervalLoader):
    """Return a timedelta. An interval with months or years becomes text, because months and years
    have no fixed length.
    """

    def load(self, data: Buffer) -> Any:
        raw = bytes(data)
        return _text(raw) if b"mon" in raw or b"year" in raw else super().load(raw)


class JsonLoader(Loader):
    """Return JSON as plain Python values, without loss of digits in numbers. JSON that Python
    cannot read, such as one nested too deeply, becomes its text.
    """

    def load(self, data: Buffer) -> Any:
        text = _text(data)
        try:
            return json.loads(text, parse_float=Decimal)
        except (RecursionError, ValueError):
            # ValueError: a whole number of more digits than Python reads
            return text


_DATES: dict[str, type[Loader]] = {
    "date": dates.DateLoader,
    "time": dates.TimeLoader,
    "timetz": dates.TimetzLoader,
    "timestamp": dates.TimestampLoader,
    "timestamptz": dates.TimestamptzLoader,
}
_LOADERS: dict[str, type[Loader]] = {
    **{name: type(f"{name}OrText", (_OrText, loader), {}) for name, loader in _DATES.items()},
    "interval": IntervalLoader,
    "json": JsonLoader,
    "jsonb": JsonLoader,
    **dict.fromkeys(_AS_TEXT, TextLoader),
}


def register_loaders(context: AdaptContext) -> None:
    """Register these loaders with the connection; they also read values inside arrays."""
    adapters = context.adapters
    assert adapters is not None
    for name, loader in _LOADERS.items():
        adapters.register_loader(name, loader)


Key = tuple[str, str]

FACTS = """
SELECT current_setting('server_version_num')::int, current_schemas(false)::text[],
       (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user),
       EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'pg_read_all_data'),
       ARRAY(SELECT name FROM pg_catalog.pg_settings WHERE name = ANY ($1))::text[]
"""
MAY_SET = "SELECT has_parameter_privilege('temp_file_limit', 'SET')"

TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_table_is_visible(c.oid), d.description, c.reltuples::bigint,
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END, c.relispartition
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
  AND has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
  AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
ORDER BY array_position(current_schemas(false), n.nspname), n.nspname, c.oid
"""
COLUMNS = """
SELECT a.attrelid, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull OR t.typnotnull, d.description, t.typtype::text,
       CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END,
       CASE WHEN t.typtype = 'e' THEN (
         SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid
       ) END,
       CASE WHEN a.attgenerated <> '' THEN (
         SELECT pg_get_expr(g.adbin, g.adrelid) FROM pg_attrdef g WHERE g.adrelid = a.attrelid AND g.adnum = a.attnum
       ) END
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_description d ON d.objoid = a.attrelid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
WHERE a.attrelid = ANY ($1) AND a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attrelid, a.attnum
"""
KEYS = """
SELECT conrelid, contype::text, conkey::int[], confrelid, confkey::int[] FROM pg_constraint
WHERE conrelid = ANY ($1) AND contype IN ('p', 'f') AND (contype = 'p' OR conparentid = 0) ORDER BY conrelid, oid
"""
PARTS = """
SELECT i.inhparent, i.inhrelid, n.nspname, c.relname, c.relkind::text, c.reltuples::bigint FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'f')
"""
FUNCTIONS = """
SELECT DISTINCT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND pg_function_is_visible(p.oid)
  AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
"""
TYPES = """
SELECT n.nspname, t.typname, pg_type_is_visible(t.oid) FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype IN ('e', 'd') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
SYSTEM = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN"
    " ('r', 'v')"
)
NAME = "SELECT current_database()"

# xmin is the transaction that wrote a row last. The catalogue's statistics are overwritten in
# place, which leaves it as it is.
VERSION = """
WITH own AS (SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema') OR nspname ~ '^pg_(toast|temp)')
SELECT count(*), sum(c.xmin::text::bigint),
  (SELECT (count(*), sum(a.xmin::text::bigint))::text FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
   WHERE a.attnum > 0 AND r.relpersistence <> 't' AND r.relnamespace NOT IN (SELECT oid FROM own)),
  (SELECT (count(*), sum(d.xmin::text::bigint))::text FROM pg_description d WHERE d.objoid >= 16384),
  (SELECT (count(*), sum(k.xmin::text::bigint))::text FROM pg_constraint k WHERE k.oid >= 16384),
  (SELECT (count(*), sum(n.xmin::text::bigint))::text FROM pg_namespace n WHERE n.oid >= 16384)
FROM pg_class c WHERE c.relpersistence <> 't' AND c.relnamespace NOT IN (SELECT oid FROM own)
"""

ENUM_CHARS = 400


@dataclass(frozen=True)
class Server:
    """Facts about a server and the role of the connection, read once. `reads_as` is the role under
    which a superuser's queries run; for other roles it is empty.
    """

    version: int
    search_path: tuple[str, ...]
    reads_as: str
    may_limit_temp_files: bool
    knows: frozenset[str]

    def settings(self, *, temp_bytes: int, milliseconds: int) -> dict[str, str | int | float]:
        """Return settings that some servers do not have, or that some roles may not set."""
        values: dict[str, str | int | float] = {}
        if "client_connection_check_interval" in self.knows:
            values["client_connection_check_interval"] = 1_000
        if "transaction_timeout" in self.knows:
            values["transaction_timeout"] = milliseconds + 1_000
        if self.may_limit_temp_files:
            values["temp_file_limit"] = max(1, temp_bytes // 1024)
        if self.reads_as:
            values["row_security"] = "off"  # an error is better than rows left out in silence
        return values


def server_facts(connection: RawConnection) -> Server:
    """Ask the server for its version and settings, and for the rights of the role."""
    optional = ["client_connection_check_interval", "transaction_timeout"]
    version, path, superuser, has_reader, knows = connection.execute(FACTS, [optional]).fetchall()[
        0
    ]
    may_set = bool(superuser)
    if not may_set and version >= 150_000:
        may_set = bool(connection.execute(MAY_SET).fetchall()[0][0])
    # pg_temp is named last, so that no temporary table takes a table's name.
    search_path = (*path, "pg_temp")
    return Server(
        version,
        search_path,
        "pg_read_all_data" if superuser and has_reader else "",
        may_set,
        frozenset(knows),
    )


def _columns_by_table(
    rows: Iterable[Any],
) -> tuple[dict[int, dict[int, str]], dict[int, list[Column]]]:
    """Return two dicts by the table's oid: the names of the table's columns by number, and its
    columns.
    """
    names: dict[int, dict[int, str]] = {}
    columns: dict[int, list[Column]] = {}
    for oid, number, name, kind, required, comment, sort, base, labels, expression in rows:
        names.setdefault(oid, {})[number] = name
        column = Column(
            name,
            _type(kind, sort, base, labels),
            nullable=not required,
            comment=comment or None,
            generated_by=expression or "",
        )
        columns.setdefault(oid, []).append(column)
    return names, columns


def _without_partitions(table_rows: list[Any], parts: dict[int, list[Any]]) -> list[Any]:
    """Leave out each partition whose parent table can be read."""
    readable = {row[0] for row in table_rows}
    below: set[int] = set()
    for parent, children in parts.items():
        if parent in readable:
            below.update(child[1] for child in children)
    return [row for row in table_rows if not row[8] or row[0] not in below]


def _keys_by_table(
    rows: Iterable[Any], names: dict[int, dict[int, str]], names_shown: dict[int, str]
) -> tuple[dict[int, tuple[str, ...]], dict[int, list[ForeignKey]]]:
    """Return two dicts by the table's oid: the primary key of the table, and its foreign keys.
    `names` gives the names of columns by oid and number.
    """
    primary: dict[int, tuple[str, ...]] = {}
    foreign: dict[int, list[ForeignKey]] = {}
    for oid, kind, numbers, target, target_numbers in rows:
        own = _named(names.get(oid, {}), numbers)
        if own and kind == "p":
            primary[oid] = own
        elif own and target in names_shown:
            others = _named(names.get(target, {}), target_numbers)
            if others:
                foreign.setdefault(oid, []).append(ForeignKey(own, names_shown[target], others))
    return primary, foreign


def _type_names(rows: Iterable[Any]) -> frozenset[str]:
    """Return the names of types in the form `schema.name`. A type on the search path is also listed
    without the schema.
    """
    names: set[str] = set()
    for schema, name, is_visible in rows:
        names.add(f"{schema}.{name}")
        if is_visible:
            names.add(name)
    return frozenset(names)


def reflect(connection: RawConnection) -> Reflected:
    """Read every table and view that the role may read, in every schema. A partition is not listed
    if its parent table is.
    """

    def rows(sql: str, *params: object) -> list[Any]:
        return connection.execute(sql, list(params) or None).fetchall()

    table_rows = rows(TABLES)
    parts: dict[int, list[Any]] = {}
    for row in rows(PARTS):
        parts.setdefault(row[0], []).append(row)
    listed = _without_partitions(table_rows, parts)
    oids = [row[0] for row in listed]
    keys = {row[0]: (row[1], row[2]) for row in listed}
    names_shown = {row[0]: _shown(row[1], row[2], visible=row[4]) for row in listed}
    names, columns = _columns_by_table(rows(COLUMNS, oids))
    primary, foreign = _keys_by_table(rows(KEYS, oids), names, names_shown)
    tables = []
    for oid, schema, name, kind, is_visible, comment, estimate, _, _ in listed:
        found = Table(
            name=names_shown[oid],
            kind="view" if kind in ("v", "m") else "table",
            columns=tuple(columns.get(oid, ())),
            primary_key=primary.get(oid, ()),
            foreign_keys=tuple(foreign.get(oid, ())),
            comment=comment or None,
            schema=schema,
            bare=name,
            qualified=not is_visible,
            rows_estimate=None if kind == "v" else _estimate(oid, kind, estimate, parts),
        )
        tables.append(found)
    view_sql = {keys[row[0]]: row[7] or "" for row in listed if row[7] is not None}
    below_tables = {
        keys[oid]: tuple(dict.fromkeys(_below(oid, parts))) for oid in parts if oid in keys
    }
    return Reflected(
        tuple(tables),
        view_sql,
        database_names=frozenset({str(rows(NAME)[0][0])}),
        own_functions=frozenset(fold(row[0]) for row in rows(FUNCTIONS)),
        exact_case=True,
        own_types=_type_names(rows(TYPES)),
        parts=below_tables,
        system_relations=frozenset(row[0] for row in rows(SYSTEM)),
    )


def _shown(schema: str, name: str, *, visible: bool) -> str:
    # A dot within a name would make `a.b` the name of two things.
    plain = quoted(name) if "." in name else name
    return plain if visible else f"{quoted(schema) if '.' in schema else schema}.{plain}"


def _type(kind: str, sort: str, base: str | None, labels: list[str] | None) -> str:
    """Return the name of a type. The name of an enum includes its values, that of a domain includes
    the base type.
    """
    if sort == "e" and labels is not None:
        text = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)
        return f"ENUM {kind}({text if len(text) <= ENUM_CHARS else text[: ENUM_CHARS - 1] + '…'})"
    return f"{base} (domain {kind})" if sort == "d" and base else kind


def _named(names: dict[int, str], numbers: list[int]) -> tuple[str, ...]:
    """Return the columns with these numbers; empty if the role may not read one of them."""
    return (
        tuple(names[number] for number in numbers)
        if all(number in names for number in numbers)
        else ()
    )


def _below(oid: int, parts: dict[int, list[Any]]) -> list[Key]:
    """Return schema and name of all tables that are read along with a table, at any depth."""
    keys: list[Key] = []
    for row in parts.get(oid, ()):
        keys += [(row[2], row[3]), *_below(row[1], parts)]
    return keys


def _estimate(oid: int, kind: str, own: int, parts: dict[int, list[Any]]) -> int | None:
    """Return the estimated rows of a table and all its parts together, None if one of them has no
    statistics yet.
    """
    counts = [_estimate(row[1], row[4], row[5], parts) for row in parts.get(oid, ())]
    if kind != "p":
        counts.append(own if own >= 0 else None)
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


EXPLAIN = "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) "
EXPLAIN_COSTS = "EXPLAIN (FORMAT JSON) "

_CALL = re.compile(r'(?:([a-z_][\w$]*|"[^"]+")\.)?([a-z_][\w$]*|"[^"]+")\(')
_STRING = re.compile(r"E?'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_FOREIGN = re.compile(r'\(?((?:[\w$]+|"[^"]+"))\.((?:[\w$]+|"[^"]+"))')

DENIED = re.compile(
    r"""
    pg_(?!typeof$|size_pretty$|size_bytes$|column_|\w+_size$|get_expr$|get_\w+def$|\w+_is_visible$|char_to_encoding$|encoding_to_char$).*
  | lo_.* | loread | lowrite | loopen | dblink.* | set_config | current_setting | setseed
  | nextval | setval | currval | lastval | txid_.* | (?:query|table|cursor|schema|database)_to_xml.* | xpath_table | crosstab.* | connectby
  | ts_stat | ts_rewrite | inet_(?:server|client)_.* | binary_upgrade_.* | brin_\w+_range | brin_summarize.* | gin_clean.*
  | http_?(?:get|post|put|delete|head|patch|list_curlopt|set_curlopt)? | has_\w+_privilege | row_security_active | sql_.*exec.*
""",
    re.VERBOSE,
)
"""Functions that reach beyond their arguments. They read files, settings or locks, touch other
sessions or the network, or run SQL given as a string.
"""


@dataclass
class Plan:
    """What a query would do by the server's plan. `relations` are schema and name of each relation
    read, `functions` the functions called; `writes` is True if anything would be written or locked.
    """

    relations: set[tuple[str, str]] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    writes: bool = False

    @property
    def denied_functions(self) -> list[str]:
        """Return the called functions that no query may call."""
        return sorted(name for name in self.functions if DENIED.fullmatch(name))


def read_plan(explained: object) -> Plan:
    """Read the answer to `EXPLAIN`."""
    plan = Plan()
    for node in _nodes(explained):
        _read(node, plan)
    return plan


def read_cost(explained: object) -> Cost:
    """Read the server's estimate of a query's cost from the answer to `EXPLAIN_COSTS`."""
    nodes = list(_nodes(explained))
    scans = tuple(
        Scan(str(node["Relation Name"]), _number(node, "Plan Rows"))
        for node in nodes
        if node["Node Type"] == "Seq Scan"
    )
    rows = max((_number(node, "Plan Rows") for node in nodes), default=0.0)
    return Cost(
        scans=scans, step_rows=rows, cost=_number(nodes[0], "Total Cost") if nodes else None
    )


def _number(node: dict[str, object], key: str) -> float:
    value = node.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def _nodes(part: object) -> Iterator[dict[str, object]]:
    if isinstance(part, list):
        for item in part:
            yield from _nodes(item)
    elif isinstance(part, dict):
        if "Node Type" in part:
            yield part
        for value in part.values():
            if isinstance(value, list | dict):
                yield from _nodes(value)


def _read(node: dict[str, object], plan: Plan) -> None:
    if node["Node Type"] in ("ModifyTable", "LockRows"):
        plan.writes = True
    relation = node.get("Relation Name")
    if isinstance(relation, str):
        plan.relations.add((str(node.get("Schema", "")), relation))
    elif isinstance(joined := node.get("Relations"), str):  # a join that a foreign server does
        plan.relations |= {
            (_bare(schema), _bare(name)) for schema, name in _FOREIGN.findall(joined)
        }
    for key in ("Function Name", "Table Function Name"):
        if isinstance(name := node.get(key), str):
            plan.functions.add(name)
    for value in node.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                plan.functions |= {
                    _bare(name) for _, name in _CALL.findall(_STRING.sub("''", text))
                }


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
