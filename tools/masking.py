"""Tell which columns of a result hold what comes of a masked column, from the text of the query.

By names, and too often rather than too seldom: a name that a masked value may go by, at any depth of the query, is followed
until nothing new is found. Where what goes where cannot be told, all columns are masked.
"""

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.masks import Masks, goes_by

_SPREADING = tuple(
    getattr(exp, name)
    for name in ("Columns", "Pivot", "Unpivot", "Explode", "Unnest", "Lateral", "Inline", "PosExplode")
    if hasattr(exp, name)
)


def masks_of(tree: exp.Expr, masked: Callable[[exp.Table], frozenset[str]]) -> Masks:
    """Follow the masked columns through a query. `masked` gives the masked columns of what a table node means, none for a CTE."""
    tables = {id(node): found for node in tree.find_all(exp.Table) if (found := masked(node))}
    if not tables:
        return Masks()
    if any(_unruly(node) for node in tree.walk()):
        return Masks(whole=True)
    names = {fold(name) for found in tables.values() for name in found}
    sources: set[str] = set()
    while True:
        size = len(names) + len(sources)
        _spread(tree, tables, names, sources)
        if len(names) + len(sources) == size:
            break
    if any(_nameless(node, tables, names, sources) for node in tree.walk()):
        return Masks(whole=True)
    layout = _layout(tree, names, sources)
    return Masks(whole=True) if layout is None else Masks(frozenset(names), layout)


def _unruly(node: exp.Expr) -> bool:
    """Say whether a node makes columns whose names or places the text does not tell."""
    if type(node) in _SPREADING:
        return True
    if isinstance(node, exp.Join) and node.method.upper() == "POSITIONAL":
        return True
    if isinstance(node, exp.SetOperation) and node.args.get("by_name"):
        return True
    if isinstance(node, exp.Star):
        if any(node.args.get(key) for key in ("replace", "rename")):
            return True
        # A star counts, or stands in a SELECT list by itself or behind one name; elsewhere it is a row.
        holder = node.parent.parent if isinstance(node.parent, exp.Column) else node.parent
        return not isinstance(holder, exp.Count | exp.Select)
    return False


def _spread(tree: exp.Expr, tables: Mapping[int, frozenset[str]], names: set[str], sources: set[str]) -> None:
    """Add the names that one more step gives to masked values (`names`) and to rows that hold some (`sources`)."""
    for node in tree.walk():
        if isinstance(node, exp.Alias) and _touches(node.this, names, sources):
            names.add(fold(node.alias))
        elif isinstance(node, exp.Aliases) and _touches(node.this, names, sources):
            names.update(fold(item.name) for item in node.expressions)
        elif isinstance(node, exp.PropertyEQ | exp.Kwarg) and _touches(node.expression, names, sources):
            names.add(fold(node.this.name))
        elif isinstance(node, exp.Table | exp.Subquery | exp.CTE) and _holds(node, tables, sources):
            alias = node.args.get("alias")
            if isinstance(node, exp.Table):
                sources.add(fold(node.name))
            if isinstance(alias, exp.TableAlias):
                sources.add(fold(alias.name))
                # Named by place: which of them is masked depends on what a star stands for.
                names.update(fold(column.name) for column in alias.args.get("columns") or ())
        elif isinstance(node, exp.SetOperation):
            _spread_union(node, names, sources)
        elif isinstance(node, exp.Select):
            _spread_items(node, names, sources)


def _spread_items(node: exp.Select, names: set[str], sources: set[str]) -> None:
    """A column that is taken as it is keeps its name, also that of a field within it."""
    for item in node.expressions:
        if isinstance(item, exp.Column | exp.Dot) and not isinstance(item.this, exp.Star) and _touches(item, names, sources):
            names.add(fold(item.name if isinstance(item, exp.Column) else item.expression.name))


def _spread_union(node: exp.SetOperation, names: set[str], sources: set[str]) -> None:
    """The columns of a union go by the names of its first part, whatever the others call them."""
    parts = [part for part in _parts(node) if isinstance(part, exp.Select)]
    for other in parts[1:]:
        for first, item in zip(parts[0].expressions, other.expressions, strict=False):
            if first.alias_or_name and _touches(item, names, sources):
                names.add(fold(first.alias_or_name))


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.SetOperation):
        yield from _parts(node.this)
        yield from _parts(node.expression)
    elif isinstance(node, exp.Subquery):
        yield from _parts(node.this)
    else:
        yield node


def _holds(node: exp.Expr, tables: Mapping[int, frozenset[str]], sources: set[str]) -> bool:
    return any(id(table) in tables or fold(table.name) in sources for table in node.find_all(exp.Table))


def _touches(node: object, names: set[str], sources: set[str]) -> bool:
    """Say whether the value of an expression may come of a masked column; what is counted does not come through."""
    if not isinstance(node, exp.Expr) or isinstance(node, exp.Count):
        return False
    if isinstance(node, exp.Star):
        return True
    if isinstance(node, exp.Identifier | exp.Literal | exp.Var) and goes_by(node.name, names):
        return True
    if isinstance(node, exp.Column) and (isinstance(node.this, exp.Star) or fold(node.name) in sources):
        return True
    return any(_touches(child, names, sources) for child in node.iter_expressions())


def _nameless(node: exp.Expr, tables: Mapping[int, frozenset[str]], names: set[str], sources: set[str]) -> bool:
    """Say whether a masked value goes on from here by a name that the engine makes, or by its place."""
    if isinstance(node, exp.Values):
        return _touches(node, names, sources)
    if isinstance(node, exp.Table | exp.From | exp.Join) and isinstance(node.this, exp.Func):
        return _touches(node.this, names, sources)
    if isinstance(node, exp.SetOperation) and _is_source(node):
        items = [item for part in _parts(node) for item in (part.expressions if isinstance(part, exp.Select) else [])]
        unnamed = any(_is_star(item) or not item.alias_or_name for item in items)
        return unnamed and _holds(node, tables, sources)
    if isinstance(node, exp.Select) and _is_source(node):
        return any(
            not isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Dot | exp.Star) and _touches(item, names, sources)
            for item in node.expressions
        )
    return False


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _is_source(query: exp.Expr) -> bool:
    """Say whether other parts of the text read the query's columns by name."""
    above = query.parent
    while isinstance(above, exp.SetOperation | exp.Subquery | exp.Paren):
        above = above.parent
    return isinstance(above, exp.From | exp.Join | exp.CTE | exp.Lateral)


def _layout(tree: exp.Expr, names: set[str], sources: set[str]) -> tuple[bool | None, ...] | None:
    """Return what stands in the SELECT list, None where that cannot be told."""
    parts = list(_parts(tree))
    lists = [_items(part, names, sources) for part in parts]
    known = [one for one in lists if one is not None]
    if len(known) != len(lists):
        return None
    if len(known) == 1:
        return known[0]
    if any(None in one for one in known) or len({len(one) for one in known}) != 1:
        return None
    return tuple(any(one[index] for one in known) for index in range(len(known[0])))


def _items(part: exp.Expr, names: set[str], sources: set[str]) -> tuple[bool | None, ...] | None:
    if isinstance(part, exp.Values):
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in part.expressions]
        return tuple(any(_touches(item, names, sources) for item in column) for column in zip(*rows, strict=True)) if rows else None
    if not isinstance(part, exp.Select):
        return None
    found: list[bool | None] = []
    for item in part.expressions:
        if isinstance(item, exp.Star):
            found.append(None)
        elif isinstance(item, exp.Column) and _is_star(item):
            if goes_by(item.table, names):  # the fields of a value, by names of their own
                return None
            found.append(None)
        else:
            found.append(_touches(item, names, sources))
    return tuple(found)


def masked_of(table: Table | None) -> frozenset[str]:
    """Return the masked columns of a table of the catalogue."""
    return frozenset(column.name for column in table.columns if column.masked) if table else frozenset()
