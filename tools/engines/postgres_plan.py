"""Read what PostgreSQL itself says a query would do: the relations it scans, the functions it calls.

The plan is the engine's own reading of the text, views and inheritance looked through: what sqlglot misread, it shows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from longtable.tools.sql.cost import Plan as Cost
from longtable.tools.sql.cost import Scan

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
"""Functions that reach beyond their arguments: files, settings, locks, other sessions, SQL in a string, the network."""


@dataclass
class Plan:
    """Schema and name of each relation read, the functions called, and whether anything would be written or locked."""

    relations: set[tuple[str, str]] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    writes: bool = False

    @property
    def denied_functions(self) -> list[str]:
        """Name the functions called that no query may call."""
        return sorted(name for name in self.functions if DENIED.fullmatch(name))


def read_plan(explained: object) -> Plan:
    """Read the answer to `EXPLAIN`."""
    plan = Plan()
    for node in _nodes(explained):
        _read(node, plan)
    return plan


def read_cost(explained: object) -> Cost:
    """Read what the server thinks a query would take, from the answer to `EXPLAIN_COSTS`."""
    nodes = list(_nodes(explained))
    scans = tuple(Scan(str(node["Relation Name"]), _number(node, "Plan Rows")) for node in nodes if node["Node Type"] == "Seq Scan")
    rows = max((_number(node, "Plan Rows") for node in nodes), default=0.0)
    return Cost(scans=scans, step_rows=rows, cost=_number(nodes[0], "Total Cost") if nodes else None)


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
        plan.relations |= {(_bare(schema), _bare(name)) for schema, name in _FOREIGN.findall(joined)}
    for key in ("Function Name", "Table Function Name"):
        if isinstance(name := node.get(key), str):
            plan.functions.add(name)
    for value in node.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                plan.functions |= {_bare(name) for _, name in _CALL.findall(_STRING.sub("''", text))}


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
