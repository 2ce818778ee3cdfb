"""Refuse constructs that sqlglot and an engine read differently, as the dialect's record says."""

import re

from sqlglot import Token, exp

from longtable.tools.catalog import Catalog, fold
from longtable.tools.cells import clip
from longtable.tools.engines.dialects import Dialect
from longtable.tools.sql.parsing import RefusedError, line_and_column

_FRACTION = re.compile(r"[-+]?\d*\.\d*")


_ORDERING = ("order", "limit", "offset")


def check_trap(node: exp.Expr, rules: Dialect) -> None:
    """Raise `RefusedError` if the engine may read this node differently from what the tree says."""
    if type(node).__name__ in rules.refused_nodes:
        raise RefusedError(
            "construct",
            f"{type(node).__name__.upper()} is not allowed in a query",
            "write it another way",
            node=node,
        )
    _check_parts(node, rules)
    if rules.reads_in_name and isinstance(node, exp.In):
        _check_in(node)
    if rules.scalar_ctes and isinstance(node, exp.CTE):
        _check_cte(node)
    if rules.old_names_stay and isinstance(node, exp.Select):
        _check_old_names(node)
    if rules.later_aliases and isinstance(node, exp.Select | exp.Alias):
        _check_aliases(node)
    if rules.whole_intervals and isinstance(node, exp.Interval | exp.DateAdd | exp.DateSub):
        _check_interval(node)
    if (
        not rules.schema_calls
        and isinstance(node, exp.Dot)
        and isinstance(node.expression, exp.Func)
    ):
        # A stored function, which may read anything.
        name = node.expression.name or node.expression.sql_name().lower()
        raise RefusedError(
            "function", f"the function {name!r} is not allowed", "leave the schema out", node=node
        )


def _check_parts(node: exp.Expr, rules: Dialect) -> None:
    if rules.query_parts and isinstance(node, exp.Query):
        for name, value in node.args.items():
            if value and name not in rules.query_parts:
                shown = name.rstrip("_").upper()
                raise RefusedError(
                    "construct", f"{shown} is not allowed in a query", "leave it out", node=node
                )
    if rules.set_order_is_last and isinstance(node, exp.SetOperation):
        last = node.expression
        if isinstance(last, exp.Select) and (_is_ordered(node) or _is_ordered(last)):
            raise RefusedError(
                "construct",
                "ORDER BY or LIMIT after the last SELECT of a union would hold for this SELECT alone",
                "write SELECT * FROM (... UNION ALL ...) AS u ORDER BY ...",
                node=node,
            )
    if not rules.join_kinds or not isinstance(node, exp.Join):
        return
    kind = node.kind.upper()
    if kind == "ARRAY":
        raise RefusedError(
            "construct",
            "ARRAY JOIN is not allowed in a query",
            "write arrayJoin(column) AS name in the SELECT list",
            node=node,
        )
    if kind not in rules.join_kinds or node.method not in ("", "NATURAL", "ASOF"):
        raise RefusedError(
            "construct",
            f"{kind or node.method} JOIN is not allowed in a query",
            "write JOIN ... ON",
            node=node,
        )


def _is_ordered(query: exp.Expr) -> bool:
    return any(query.args.get(name) for name in _ORDERING)


def _check_in(node: exp.In) -> None:
    """Refuse a single name in the list after IN, because the engine reads it as a table."""
    items = node.expressions
    item = items[0] if len(items) == 1 else None
    if not isinstance(node.this, exp.Expr):
        raise RefusedError(
            "construct", "IN is an operator", "write value IN (SELECT column FROM table)", node=node
        )
    while isinstance(item, exp.Paren):
        item = item.this
    if isinstance(item, exp.Column | exp.Dot | exp.Identifier):
        raise RefusedError(
            "construct",
            "a single name after IN can be read as a table",
            "write = for a column, and IN (SELECT column FROM table) for a table",
            node=node,
        )


def _check_cte(node: exp.CTE) -> None:
    if node.args.get("scalar") or not isinstance(node.this, exp.Query):
        raise RefusedError(
            "construct",
            "WITH may name queries only, not an expression",
            f"write WITH {node.alias} AS (SELECT ...), and read it in FROM",
            node=node,
        )


def _check_old_names(select: exp.Select) -> None:
    """Refuse a column that is named with a table's own name, if the table has another name in this
    query: elsewhere the name would mean a table of the query around it. Raises `RefusedError`.
    """
    names = _source_names(select)
    old = {own: alias for alias, own in names.items() if own != alias and own not in names}
    if not old:
        return
    for column in select.find_all(exp.Column):
        alias = old.get(fold(column.table)) if column.table else None
        inner = column.find_ancestor(exp.Select)
        while alias is not None and inner is not None and inner is not select:
            if fold(column.table) in _source_names(inner):
                alias = None
            inner = inner.find_ancestor(exp.Select)
        if alias is not None:
            raise RefusedError(
                "column",
                f"{column.table!r} has the alias {alias!r} in this query",
                "give every table an alias, and write it before the names of its columns",
                node=column,
            )


def _source_names(select: exp.Select) -> dict[str, str]:
    """Return the folded aliases of the tables in FROM, with their own folded names."""
    sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
    tables = (source.this for source in sources if source is not None)
    return {
        fold(table.alias_or_name): fold(table.name)
        for table in tables
        if isinstance(table, exp.Table)
    }


def _check_aliases(node: exp.Select | exp.Alias) -> None:
    """Refuse names whose meaning depends on an alias that the text gives elsewhere. Raises
    `RefusedError`.
    """
    if isinstance(node, exp.Alias):
        if not isinstance(node.parent, exp.Select | exp.Star) or node.arg_key == "distinct":
            raise RefusedError(
                "construct",
                f"the alias {node.alias!r} stands within an expression",
                "give aliases to whole items of the SELECT list",
                node=node,
            )
        return
    later: set[str] = set()
    for item in reversed(node.expressions):
        for column in item.find_all(exp.Column):
            if fold(column.parts[0].name) in later:
                raise RefusedError(
                    "construct",
                    f"the name {column.parts[0].name!r} is used before the item that it is the"
                    " alias of",
                    "put that item first, or give it another alias",
                    node=column,
                )
        if isinstance(item, exp.Alias):
            later.add(fold(item.alias))


def _check_interval(node: exp.Expr) -> None:
    amount = node.this if isinstance(node, exp.Interval) else node.args.get("expression")
    unit = node.args.get("unit")
    if not isinstance(amount, exp.Literal) or not _FRACTION.fullmatch(amount.name):
        return
    unit_name = unit.name.upper() if unit else ""
    if unit_name != "SECOND":
        raise RefusedError(
            "construct",
            f"the interval of {amount.name} {unit_name} can be read in two ways",
            "write it in whole units, such as INTERVAL 36 HOUR",
            node=node,
        )


def check_double_quotes(sql: str, tokens: list[Token], catalog: Catalog) -> None:
    """Refuse a text in double quotes that is the name of a column: whoever wrote it may mean the
    column, and would get the text in each row. Raises `RefusedError`.
    """
    for token in tokens:
        if sql[token.start : token.start + 1] == '"' and catalog.has_column(token.text):
            raise RefusedError(
                "syntax",
                f"{clip(token.text, 60)!r} in double quotes is a text here, not the column",
                "write a name in backticks, and a text in single quotes",
                place=line_and_column(sql, token.start),
            )


def check_relation_names(tree: exp.Expr) -> None:
    """Refuse two names of tables, CTEs or aliases that differ only in case: on one server they are
    the same, on another they are not. Raises `RefusedError`.
    """
    spellings: dict[str, str] = {}
    for node in tree.find_all(exp.Table, exp.TableAlias):
        identifier = node.this
        if not isinstance(identifier, exp.Identifier) or node.args.get("db"):
            continue
        known = spellings.setdefault(fold(identifier.name), identifier.name)
        if known != identifier.name:
            raise RefusedError(
                "construct",
                f"the names {known!r} and {identifier.name!r} differ only in case",
                "spell a name always the same, and give different things different names",
                node=identifier,
            )
