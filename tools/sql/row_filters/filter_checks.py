"""Check the row filters of a policy against the tables of the database, when it is opened.

A filter is one condition over columns of its own table: no subquery, no aggregate, and only
functions that a query may call. It may read denied and masked columns, because the operator wrote
it.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from longtable.base.errors import ConfigError
from longtable.tools.catalog import Catalog, Reflected, RowFilter, Table, fold, mentions
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import RefusedError, nodes_of
from longtable.tools.sql.row_filters.row_conditions import column_of, condition_of, parameter_name
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.sql.wall import check_node

Key = tuple[str, str]
"""Schema and name of a table."""
_TEXT = re.compile(r"CHAR|CLOB|TEXT|STRING|^ENUM|^UUID|^NAME$", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!PO)INT(?!ERVAL)|DEC|NUM|REAL|FLOA|DOUB|SERIAL", re.IGNORECASE)
_TIME = re.compile(r"^(DATE|TIMESTAMP)", re.IGNORECASE)
_BOOLEAN = re.compile(r"^BOOL", re.IGNORECASE)
_NO_KIND = re.compile(r"\[|RANGE|^STRUCT|^MAP|^UNION|JSON", re.IGNORECASE)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike)


def row_filters_of(reflected: Reflected, policy: TablePolicy, dialect: str) -> dict[Key, RowFilter]:
    """Return the row filter of each table that has one, by schema and name. Partitions and
    inheriting tables have the filter of their table. Raises `ConfigError` for a filter that does
    not fit its table.
    """
    if not policy.row_filters:
        return {}
    if not dialect_of(dialect).row_fence:
        raise ConfigError(f"a {dialect_of(dialect).title} database can have no row_filters yet")
    filters: dict[Key, RowFilter] = {}
    for table in reflected.tables:
        text = policy.row_filter(table.bare_name, table.schema)
        if text is not None:
            entry = _entry(policy, table)
            filters[table.schema, table.bare_name] = _checked(
                text, table, reflected, dialect, policy.place_of_filter(entry)
            )
    _check_parts(filters, reflected, policy)
    return _with_parts(filters, reflected)


def _entry(policy: TablePolicy, table: Table) -> str:
    full = f"{table.schema}.{table.bare_name}".casefold()
    return full if full in policy.row_filters else table.bare_name.casefold()


def _check_parts(
    filters: Mapping[Key, RowFilter], reflected: Reflected, policy: TablePolicy
) -> None:
    """Raise `ConfigError` if only a part of a table has a filter: a query of the whole table would
    read the part without it.
    """
    for whole, parts in reflected.parts.items():
        for part in parts:
            if part in filters and whole not in filters:
                name = f"{part[0]}.{part[1]}".casefold()
                entry = name if name in policy.row_filters else part[1].casefold()
                raise ConfigError(
                    f"{policy.place_of_filter(entry)}: {part[1]!r} is read along with the table"
                    f" {whole[1]!r}, of which it is a part: give {whole[1]!r} the filter"
                )


def _with_parts(filters: Mapping[Key, RowFilter], reflected: Reflected) -> dict[Key, RowFilter]:
    every = dict(filters)
    for whole, parts in reflected.parts.items():
        if whole in filters:
            every |= {part: filters[whole] for part in parts if part not in filters}
    return every


def _checked(text: str, table: Table, reflected: Reflected, dialect: str, place: str) -> RowFilter:
    # Only these functions and types: nobody checks what the database's own ones read.
    catalog = Catalog((table,), hidden_functions=reflected.own_functions)
    try:
        condition, source = condition_of(text, dialect)
        for node in nodes_of(condition):
            _check_part(node, source, table, catalog, dialect)
        parameters = _parameters(condition, table, dialect)
    except RefusedError as refused:
        hint = f": {refused.hint}" if refused.hint else ""
        raise ConfigError(
            f"{place}: the row filter of {table.name!r} does not fit: {refused.reason}{hint}"
        ) from refused
    columns = [column_of(node, table, dialect) for node in condition.find_all(exp.Column)]
    return RowFilter(
        text, tuple(sorted(parameters.items())), tuple(sorted({each.name for each in columns}))
    )


def _check_part(node: exp.Expr, source: str, table: Table, catalog: Catalog, dialect: str) -> None:
    if isinstance(node, exp.Query | exp.Table | exp.Exists | exp.Subquery):
        raise RefusedError(
            "rows",
            "it reads another table",
            "a filter is a condition over columns of its own table; let row_parameters look up"
            " the rest",
        )
    if isinstance(node, exp.AggFunc | exp.Window | exp.Star | exp.Lambda):
        raise RefusedError("rows", "it is no condition on one row", "compare columns with values")
    if isinstance(node, exp.Placeholder):
        parameter_name(node)
    elif isinstance(node, exp.Column):
        column_of(node, table, dialect)
    else:
        check_node(node, source, dialect, catalog)


def _parameters(condition: exp.Expr, table: Table, dialect: str) -> dict[str, str]:
    """Return the kind of each parameter of a condition. Raises `RefusedError` if one is compared
    with columns of two kinds.
    """
    kinds: dict[str, str] = {}
    for node in condition.find_all(exp.Placeholder):
        name = parameter_name(node)
        kind = _kind(node, table, dialect)
        if kinds.get(name) and kind and kinds[name] != kind:
            raise RefusedError(
                "rows", f"{name!r} is compared with a {kinds[name]} and with a {kind}", "use two"
            )
        kinds[name] = kinds.get(name) or kind
    return kinds


def _kind(node: exp.Placeholder, table: Table, dialect: str) -> str:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if isinstance(above, _COMPARISONS):
        sides = [above.this.unnest(), above.expression.unnest()]
        other = next((side for side in sides if isinstance(side, exp.Column)), None)
    elif isinstance(above, exp.In | exp.Between):
        other = above.this.unnest()
    else:
        other = None
    if not isinstance(other, exp.Column):
        return ""
    return kind_of(column_of(other, table, dialect).type, dialect)


def kind_of(type_name: str, dialect: str) -> str:
    """Return the kind of a column by its type, as `RowFilter.parameters` has it."""
    if _NO_KIND.search(type_name):
        return ""
    kinds = {"text": _TEXT, "number": _NUMBER}
    if dialect_of(dialect).declared_types:
        kinds |= {"time": _TIME, "boolean": _BOOLEAN}
    return next((kind for kind, pattern in kinds.items() if pattern.search(type_name)), "")


def closed_views(reflected: Reflected, filters: Mapping[Key, RowFilter]) -> dict[str, str]:
    """Return the views that read a filtered table and have no filter of their own, each with the
    name of the table. They are closed, because a view has read its rows before a filter could leave
    any out. A view that calls a function of the database's own may read any table.
    """
    if not filters:
        return {}
    closed: dict[str, str] = {}
    names = {name: name for _, name in filters}
    functions = dict.fromkeys(reflected.own_functions, next(iter(names)))
    views = [table for table in reflected.tables if table.kind == "view"]
    grown = True
    while grown:
        grown = False
        for view in views:
            text = reflected.view_sql.get((view.schema, view.bare_name), "")
            reads = next(
                (told for name, told in (names | functions).items() if mentions(text, name)), None
            )
            if reads is not None and view.name not in closed:
                grown = True
                closed[view.name] = reads
                names.setdefault(view.bare_name, reads)
    return {
        view.name: closed[view.name]
        for view in views
        if view.name in closed and (view.schema, view.bare_name) not in filters
    }


def spelled(closed: Mapping[str, str], reflected: Reflected) -> dict[str, str]:
    """Return closed views by the folded names that SQL may use for them."""
    names: dict[str, str] = {}
    for table in reflected.tables:
        if table.name in closed:
            for name in (table.name, table.bare_name):
                names[fold(name)] = closed[table.name]
    return names


def without_estimate(table: Table, filters: Mapping[Key, RowFilter]) -> Table:
    """Return a table without the server's number of its rows if it has a row filter: that number
    counts hidden rows.
    """
    filtered = (table.schema, table.bare_name) in filters
    return replace(table, rows_estimate=None) if filtered else table
