"""Refuse the uses of a masked column that would tell its values by the rows that come back."""

from collections.abc import Mapping

from sqlglot import exp

from longtable.tools.catalog import fold
from longtable.tools.sql.allow_lists import TABLE_FUNCTIONS, depends_on_children
from longtable.tools.sql.masks import goes_by
from longtable.tools.sql.parsing import RefusedError


def touches(node: object, names: set[str], sources: set[str]) -> bool:
    """Return whether the value of an expression may come of a masked column; what is counted does not come through."""
    if not isinstance(node, exp.Expr) or isinstance(node, exp.Count):
        return False
    if not depends_on_children(node):
        return True
    if isinstance(node, exp.Identifier | exp.Literal | exp.Var) and goes_by(node.name, names):
        return True
    if isinstance(node, exp.Column) and (isinstance(node.this, exp.Star) or fold(node.name) in sources):
        return True
    return any(touches(child, names, sources) for child in node.iter_expressions())


def reaches(node: exp.Expr, names: set[str], sources: set[str]) -> bool:
    """Like `touches`, but of a subquery check only the selected columns; its conditions are checked separately."""
    if isinstance(node, exp.Select):
        return not isinstance(node.parent, exp.Exists) and any(reaches(item, names, sources) for item in node.expressions)
    if isinstance(node, exp.SetOperation):
        return any(reaches(part, names, sources) for part in (node.this, node.expression))
    if any(isinstance(child, exp.Select | exp.SetOperation | exp.Subquery) for child in node.iter_expressions()):
        return any(reaches(child, names, sources) for child in node.iter_expressions())
    if isinstance(node, exp.Count) or not list(node.iter_expressions()):
        return touches(node, names, sources)
    if isinstance(node, exp.Column):
        return touches(node, names, sources)
    return any(reaches(child, names, sources) for child in node.iter_expressions())


def is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def check_uses(tree: exp.Expr, tables: Mapping[int, frozenset[str]], names: set[str], sources: set[str], dialect: str) -> None:
    """Refuse what tells a masked value by the rows that come, not by what is in them: joined to a series, a filter spells it out."""
    own = _masked_sources(tree, tables)
    for node in tree.walk():
        if isinstance(node, exp.Where | exp.Having | exp.Qualify) and (odd := _odd_part(node.this, names, sources, own)) is not None:
            raise _refused("filtered in this way", odd)
        if isinstance(node, exp.Join):
            on, using = node.args.get("on"), node.args.get("using") or []
            natural = node.method.upper() in ("NATURAL", "POSITIONAL")
            odd = None if on is None else _odd_part(on, names, sources, own)
            if natural or odd is not None or any(goes_by(item.name, names) for item in using):
                raise _refused("joined in this way", odd or node)
        if isinstance(node, exp.Limit | exp.Offset | exp.Fetch | exp.TableSample) and reaches(node, names, sources):
            raise _refused("used to say how many rows are wanted", node)
        if isinstance(node, exp.Pivot) and reaches(node, names, sources):
            raise _refused("pivoted", node)
        if isinstance(node, exp.Ordered) and reaches(node, names, sources) and not isinstance(node.this, exp.Column | exp.Literal):
            raise _refused("sorted by what is computed of it", node.this)
        if isinstance(node, exp.Func) and _makes_rows(node, dialect) and reaches(node, names, sources):
            raise _refused("turned into rows", node)


def _refused(what: str, node: exp.Expr) -> RefusedError:
    return RefusedError(
        "masked",
        f"a masked column cannot be {what}",
        "it can be selected, counted, grouped, sorted by, joined to a masked column by its table's name,"
        " and compared by =, <>, IN or IS NULL with a value that is written out",
        node=node,
    )


def _masked_sources(tree: exp.Expr, tables: Mapping[int, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the masked columns of each table by the name it goes by, where no other source goes by that."""
    found: dict[str, list[frozenset[str]]] = {}
    within: set[int] = set()
    for node in tree.find_all(exp.Table, exp.Subquery, exp.CTE, exp.Values, exp.Unnest, exp.Lateral):
        if id(node) in within:
            continue
        table = node
        if isinstance(node, exp.Subquery) and (inner := _as_it_is(node)) is not None:
            within.add(id(inner))
            table = inner
        if name := fold(node.alias_or_name):
            found.setdefault(name, []).append(frozenset(fold(column) for column in tables.get(id(table), ())))
    return {name: columns[0] for name, columns in found.items() if len(columns) == 1}


def _as_it_is(node: exp.Subquery) -> exp.Table | None:
    """Return the table of which a subquery only picks columns, as `narrowed` writes it."""
    query, alias = node.this, node.args.get("alias")
    if not isinstance(query, exp.Select) or not isinstance(alias, exp.TableAlias) or alias.args.get("columns"):
        return None
    source = query.args.get("from_")
    if {name for name, value in query.args.items() if value} - {"expressions", "from_", "kind"} or not isinstance(source, exp.From):
        return None
    plain = all(isinstance(item, exp.Column) and not is_star(item) for item in query.expressions)
    return source.this if plain and isinstance(source.this, exp.Table) else None


def _odd_part(node: exp.Expr, names: set[str], sources: set[str], own: Mapping[str, frozenset[str]]) -> exp.Expr | None:
    """Return the part of a condition that asks of a masked value more than whether it is one written out, or another masked one."""
    if not reaches(node, names, sources):
        return None
    if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
        parts = (_odd_part(child, names, sources, own) for child in node.iter_expressions())
        return next((part for part in parts if part is not None), None)
    return None if _is_plain(node, own) else node


def _is_plain(node: exp.Expr, own: Mapping[str, frozenset[str]]) -> bool:
    if isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ | exp.Is):
        sides = [node.this, node.expression]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        if len(columns) == 2:
            return all(fold(column.name) in own.get(fold(column.table), ()) for column in columns)
        return len(columns) == 1 and all(_written_out(side) for side in sides if not isinstance(side, exp.Column))
    if isinstance(node, exp.In):
        return (
            isinstance(node.this, exp.Column) and set(node.args) - {"this"} <= {"expressions"} and all(map(_written_out, node.expressions))
        )
    return False


def _written_out(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean) or (isinstance(node, exp.Neg | exp.Paren) and _written_out(node.this))


def _makes_rows(node: exp.Func, dialect: str) -> bool:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return isinstance(node, exp.Unnest | exp.GenerateSeries | exp.Explode) or fold(name) in TABLE_FUNCTIONS[dialect]
