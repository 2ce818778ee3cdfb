"""Find which columns of a result derive from a masked column, from the text of the query.

By names, and too often rather than too seldom: a name that a masked value may go by, at any depth of the query, is followed
until nothing new is found. Where what goes where cannot be told, all columns are masked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.sql.masked_uses import check_uses, is_star, touches
from longtable.tools.sql.masks import Masks, goes_by

_SPREADING = tuple(
    getattr(exp, name)
    for name in ("Columns", "Pivot", "Unpivot", "Explode", "Unnest", "Lateral", "Inline", "PosExplode")
    if hasattr(exp, name)
)


def masks_of(tree: exp.Expr, masked: Callable[[exp.Table], frozenset[str]], dialect: str) -> Masks:
    """Follow the masked columns through a query. `masked` gives the masked columns of what a table node means, none for a CTE."""
    tables = {id(node): found for node in tree.find_all(exp.Table) if (found := masked(node))}
    if not tables:
        return Masks()
    names = {fold(name) for found in tables.values() for name in found}
    sources: set[str] = set()
    while True:
        size = len(names) + len(sources)
        _spread(tree, tables, names, sources)
        if len(names) + len(sources) == size:
            break
    check_uses(tree, tables, names, sources, dialect)
    if any(_unruly(node) or _nameless(node, tables, names, sources) for node in tree.walk()):
        return Masks(whole=True)
    layout = _layout(tree, names, sources)
    return Masks(whole=True) if layout is None else Masks(frozenset(names), layout)


def _unruly(node: exp.Expr) -> bool:
    """Return whether a node makes columns whose names or places the text does not tell."""
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
        if isinstance(node, exp.Alias) and touches(node.this, names, sources):
            names.add(fold(node.alias))
        elif isinstance(node, exp.Aliases) and touches(node.this, names, sources):
            names.update(fold(item.name) for item in node.expressions)
        elif isinstance(node, exp.PropertyEQ | exp.Kwarg) and touches(node.expression, names, sources):
            names.add(fold(node.this.name))
        elif isinstance(node, exp.Table | exp.Subquery | exp.CTE) and _holds(node, tables, sources):
            alias = node.args.get("alias")
            if isinstance(node, exp.Table):
                sources.add(fold(node.name))
            if isinstance(alias, exp.TableAlias):
                sources.add(fold(alias.name))
                names.update(_renamed(node, alias.args.get("columns") or (), names, sources))
        elif isinstance(node, exp.SetOperation):
            _spread_union(node, names, sources)
        elif isinstance(node, exp.Select):
            _spread_items(node, names, sources)


def _renamed(node: exp.Expr, columns: Sequence[exp.Expr], names: set[str], sources: set[str]) -> Iterator[str]:
    """Yield the new names of masked columns: by their places where these are written out, else all of them."""
    parts = [part for part in _parts(node.this) if isinstance(part, exp.Select)] if isinstance(node, exp.Subquery | exp.CTE) else []
    told = bool(parts) and not any(is_star(item) for part in parts for item in part.expressions)
    for place, column in enumerate(columns):
        items = [part.expressions[place] for part in parts if place < len(part.expressions)]
        if not told or len(items) < len(parts) or any(touches(item, names, sources) for item in items):
            yield fold(column.name)


def _spread_items(node: exp.Select, names: set[str], sources: set[str]) -> None:
    """A column that is taken as it is keeps its name, also that of a field within it."""
    for item in node.expressions:
        if isinstance(item, exp.Column | exp.Dot) and not isinstance(item.this, exp.Star) and touches(item, names, sources):
            names.add(fold(item.name if isinstance(item, exp.Column) else item.expression.name))


def _spread_union(node: exp.SetOperation, names: set[str], sources: set[str]) -> None:
    """The columns of a union go by the names of its first part, whatever the others call them."""
    parts = [part for part in _parts(node) if isinstance(part, exp.Select)]
    for other in parts[1:]:
        for first, item in zip(parts[0].expressions, other.expressions, strict=False):
            if first.alias_or_name and touches(item, names, sources):
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


def _nameless(node: exp.Expr, tables: Mapping[int, frozenset[str]], names: set[str], sources: set[str]) -> bool:
    """Return whether a masked value goes on from here by a name that the engine makes, or by its place."""
    if isinstance(node, exp.Values):
        return touches(node, names, sources)
    if isinstance(node, exp.Table | exp.From | exp.Join) and isinstance(node.this, exp.Func):
        return touches(node.this, names, sources)
    if isinstance(node, exp.SetOperation) and _is_source(node):
        items = [item for part in _parts(node) for item in (part.expressions if isinstance(part, exp.Select) else [])]
        unnamed = any(is_star(item) or not item.alias_or_name for item in items)
        return unnamed and _holds(node, tables, sources)
    if isinstance(node, exp.Select) and _is_source(node):
        return any(
            not isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Dot | exp.Star) and touches(item, names, sources)
            for item in node.expressions
        )
    return False


def _is_source(query: exp.Expr) -> bool:
    """Return whether other parts of the text read the query's columns by name."""
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
        return tuple(any(touches(item, names, sources) for item in column) for column in zip(*rows, strict=True)) if rows else None
    if not isinstance(part, exp.Select):
        return None
    found: list[bool | None] = []
    for item in part.expressions:
        if isinstance(item, exp.Star):
            found.append(None)
        elif isinstance(item, exp.Column) and is_star(item):
            if goes_by(item.table, names):  # the fields of a value, by names of their own
                return None
            found.append(None)
        else:
            found.append(touches(item, names, sources))
    return tuple(found)


def masked_of(table: Table | None) -> frozenset[str]:
    """Return the masked columns of a table of the catalogue."""
    return frozenset(column.name for column in table.columns if column.masked) if table else frozenset()
