"""Read the catalogue of a DuckDB file, and the plan of a query."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from longtable.tools.catalog import Column, ForeignKey, Reflected, Table, fold
from longtable.tools.sql.verdict import Plan, Scan, product

if TYPE_CHECKING:
    import duckdb


Node = Mapping[str, Any]


def plan_nodes(plan: object) -> Iterator[Node]:
    """Yield every node of a plan. `plan` is the JSON of a plan, or a list of plans."""
    if isinstance(plan, list):
        for item in plan:
            yield from plan_nodes(item)
    elif isinstance(plan, dict):
        yield plan
        yield from plan_nodes(plan.get("children"))


def plan_detail(node: Node, key: str) -> str:
    """Return the detail `key` of a plan's node as text, empty if the node has no such detail."""
    extra = node.get("extra_info")
    return str(extra.get(key, "")) if isinstance(extra, dict) else ""


TABLES = """
SELECT schema_name, table_name, 'table', comment, '', table_oid FROM duckdb_tables()
WHERE database_name = $1 AND NOT internal AND NOT temporary
UNION ALL
SELECT schema_name, view_name, 'view', comment, sql, view_oid FROM duckdb_views()
WHERE database_name = $1 AND NOT internal AND NOT temporary
ORDER BY 1, 6
"""

COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, is_nullable, comment, column_default FROM duckdb_columns()
WHERE database_name = $1 AND NOT internal ORDER BY schema_name, table_name, column_index
"""

KEYS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints()
WHERE database_name = $1 AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY schema_name, table_name, constraint_index
"""

FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"


def reflect_duckdb(cursor: "duckdb.DuckDBPyConnection", *, name: str) -> Reflected:
    """Read every table and view of the attached database `name`."""

    def rows(sql: str, *params: str) -> list[Any]:
        return cursor.execute(sql, list(params)).fetchall()

    columns: dict[tuple[str, str], list[Column]] = {}
    for schema, table, column, kind, nullable, comment, default in rows(COLUMNS, name):
        columns.setdefault((schema, table), []).append(
            Column(
                column,
                kind,
                nullable=bool(nullable),
                comment=comment or None,
                # DuckDB keeps both here; a default names no column.
                generated_by=default or "",
            )
        )
    primary: dict[tuple[str, str], tuple[str, ...]] = {}
    foreign: dict[tuple[str, str], list[ForeignKey]] = {}
    for schema, table, kind, names, target, target_names in rows(KEYS, name):
        if kind == "PRIMARY KEY":
            primary[schema, table] = tuple(names)
        else:
            foreign.setdefault((schema, table), []).append(
                ForeignKey(tuple(names), _shown(schema, target), tuple(target_names))
            )
    tables = []
    views = {}
    for schema, table, kind, comment, sql, _ in rows(TABLES, name):
        key = (schema, table)
        found = Table(
            name=_shown(schema, table),
            kind="view" if kind == "view" else "table",
            columns=tuple(columns.get(key, ())),
            primary_key=primary.get(key, ()),
            foreign_keys=tuple(foreign.get(key, ())),
            comment=comment or None,
            schema=schema,
            bare=table,
            qualified=schema != "main",
        )
        tables.append(found)
        if kind == "view":
            views[key] = sql or ""
    functions = frozenset(fold(row[0]) for row in rows(FUNCTIONS))
    return Reflected(
        tuple(tables), views, database_names=frozenset({fold(name)}), own_functions=functions
    )


def _shown(schema: str, table: str) -> str:
    return table if schema == "main" else f"{schema}.{table}"


EACH_WITH_EACH = ("CROSS_PRODUCT", "NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "POSITIONAL_JOIN")


def duckdb_plan(explained: object, sizes: Mapping[str, int]) -> Plan:
    """Return the plan of a query. `explained` is the JSON of EXPLAIN; `sizes` gives the number of
    rows of each table by `database.schema.name`.
    """
    nodes = list(plan_nodes(explained))
    pairs = max(
        (product(map(_rows, node["children"])) for node in nodes if _name(node) in EACH_WITH_EACH),
        default=0.0,
    )
    scans = [
        Scan(table.rpartition(".")[2], float(sizes.get(table, _rows(node))))
        for node in nodes
        if (table := plan_detail(node, "Table"))
    ]
    return Plan(scans=tuple(scans), pairs=pairs, step_rows=max(map(_rows, nodes), default=0.0))


def _name(node: Node) -> str:
    return str(node.get("name", "")).strip()


def _rows(node: Node) -> float:
    estimate = plan_detail(node, "Estimated Cardinality")
    if estimate.isdecimal():
        return float(estimate)
    return product(map(_rows, node["children"])) if _name(node) == "CROSS_PRODUCT" else 0.0
