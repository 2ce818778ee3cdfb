"""Read what DuckDB itself says a query would do: the steps of its plan, and the rows each is thought to make."""

from collections.abc import Iterator, Mapping
from typing import Any

from longtable.tools.sql.cost import Plan, Scan, product

EACH_WITH_EACH = ("CROSS_PRODUCT", "NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "POSITIONAL_JOIN")

Node = Mapping[str, Any]


def read_plan(explained: object, sizes: Mapping[str, int]) -> Plan:
    """Return the plan; `explained` is the JSON of EXPLAIN, `sizes` the rows of tables by `database.schema.name`."""
    nodes = [node for root in (explained if isinstance(explained, list) else [explained]) for node in _walk(root)]
    pairs = max((product(map(_rows, node["children"])) for node in nodes if _name(node) in EACH_WITH_EACH), default=0.0)
    scans = [Scan(table.rpartition(".")[2], float(sizes.get(table, _rows(node)))) for node in nodes if (table := _table(node))]
    return Plan(scans=tuple(scans), pairs=pairs, step_rows=max(map(_rows, nodes), default=0.0))


def _walk(node: object) -> Iterator[Node]:
    if isinstance(node, dict) and isinstance(node.get("children"), list):
        yield node
        for child in node["children"]:
            yield from _walk(child)


def _name(node: Node) -> str:
    return str(node.get("name", "")).strip()


def _extra(node: Node, key: str) -> str:
    extra = node.get("extra_info")
    return str(extra.get(key, "")) if isinstance(extra, dict) else ""


def _table(node: Node) -> str:
    return _extra(node, "Table")


def _rows(node: Node) -> float:
    told = _extra(node, "Estimated Cardinality")
    if told.isdecimal():
        return float(told)
    return product(map(_rows, node["children"])) if _name(node) == "CROSS_PRODUCT" else 0.0
