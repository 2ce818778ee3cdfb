"""The predicates of a query that can be tried alone, as plain data: the query is parsed here, and nowhere else."""

from collections.abc import Iterator, Mapping

from sqlglot import exp

from longtable.tools.catalog import Catalog, Table, fold
from longtable.tools.sql.parsing import statement, written
from longtable.tools.sql.scope import is_cte, resolved_table
from longtable.tools.sql.verdict import Predicate, Predicates

MOST = 100

_VALUES = (exp.EQ, exp.In, exp.Like, exp.ILike)
_WRAPPERS = (exp.Lower, exp.Upper, exp.Trim, exp.Paren)


def predicates_of(sql: str, *, dialect: str, catalog: Catalog) -> Predicates:
    """Return what can be tried of a query that found nothing."""
    tree = statement(sql, dialect)
    total = isinstance(tree, exp.Select) and not tree.args.get("group") and all(item.find(exp.AggFunc) for item in tree.selects)
    return Predicates(total, tuple(_predicates(tree, catalog, dialect))[:MOST])


def _predicates(tree: exp.Expr, catalog: Catalog, dialect: str) -> Iterator[Predicate]:
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        parts = [where.this] if where is not None else []
        parts += [on for join in select.args.get("joins") or [] if (on := join.args.get("on")) is not None]
        sources = _sources(select, catalog, dialect)
        for part in parts:
            for node in part.unnest().flatten() if isinstance(part.unnest(), exp.And) else [part.unnest()]:
                if (table := _table(node, sources)) is not None:
                    bare = node.unnest()
                    values = _texts(bare) if isinstance(bare, _VALUES) else None
                    yield Predicate(_alone(node, dialect), table.name, _column(bare, table), values)


def _sources(select: exp.Select, catalog: Catalog, dialect: str) -> Mapping[str, Table | None]:
    """Return what a query reads from by the folded names it goes by there; None for what is no table."""
    first = select.args.get("from_")
    nodes = [*([first.this] if first is not None else []), *(join.this for join in select.args.get("joins") or [])]
    return {fold(node.alias_or_name): _resolved(node, catalog, dialect) for node in nodes}


def _resolved(node: exp.Expr, catalog: Catalog, dialect: str) -> Table | None:
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not is_cte(node, dialect):
        return resolved_table(node, catalog, dialect)
    return None


def _table(node: exp.Expr, sources: Mapping[str, Table | None]) -> Table | None:
    """Return the one table that a condition looks at, None where there is no such one."""
    if node.find(exp.Query, exp.AggFunc, exp.Window) is not None:
        return None
    names = {_owner(column, sources) for column in node.find_all(exp.Column)}
    return sources.get(names.pop()) if len(names) == 1 else None


def _owner(column: exp.Column, sources: Mapping[str, Table | None]) -> str:
    """Return the name of what a column is read from, "" where that is unknown."""
    if column.table:
        return fold(column.table)
    if None in sources.values():
        return ""
    owners = [name for name, table in sources.items() if table and any(fold(each.name) == fold(column.name) for each in table.columns)]
    return owners[0] if len(owners) == 1 else ""


def _alone(node: exp.Expr, dialect: str) -> str:
    return written(node.transform(lambda part: exp.Column(this=part.this) if isinstance(part, exp.Column) else part), dialect)


def _column(node: exp.Expr, table: Table) -> str:
    side = node.this
    while isinstance(side, _WRAPPERS):
        side = side.this
    if not isinstance(side, exp.Column):
        return ""
    return next((column.name for column in table.columns if fold(column.name) == fold(side.name)), "")


def _texts(node: exp.Expr) -> tuple[str, ...]:
    """Return the texts that a predicate compares its column with, patterns without their signs."""
    texts = [value.name for value in node.expressions or [node.expression] if isinstance(value, exp.Literal) and value.is_string]
    return tuple(text.replace("%", " ").replace("_", " ").strip() if isinstance(node, exp.Like | exp.ILike) else text for text in texts)
