"""Tell which columns of a result hold what comes of a masked column, from the text of the query.

By names, and too often rather than too seldom: a name that a masked value may go by, at any depth of the query, is followed
until nothing new is found. Where what goes where cannot be told, all columns are masked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.functions import TABLE_FUNCTIONS
from longtable.tools.masks import Masks, goes_by
from longtable.tools.refusal import RefusedError

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
    _check_uses(tree, tables, names, sources, dialect)
    if any(_unruly(node) or _nameless(node, tables, names, sources) for node in tree.walk()):
        return Masks(whole=True)
    layout = _layout(tree, names, sources)
    return Masks(whole=True) if layout is None else Masks(frozenset(names), layout)


def _check_uses(tree: exp.Expr, tables: Mapping[int, frozenset[str]], names: set[str], sources: set[str], dialect: str) -> None:
    """Refuse what tells a masked value by the rows that come, not by what is in them: joined to a series, a filter spells it out."""
    own = _masked_sources(tree, tables)
    for node in tree.walk():
        if isinstance(node, exp.Where | exp.Having | exp.Qualify) and not _plain(node.this, names, sources, own):
            raise _refused("filtered in this way")
        if isinstance(node, exp.Join):
            on, using = node.args.get("on"), node.args.get("using") or []
            natural = node.method.upper() in ("NATURAL", "POSITIONAL")
            if natural or any(goes_by(item.name, names) for item in using) or (on is not None and not _plain(on, names, sources, own)):
                raise _refused("joined in this way")
        if isinstance(node, exp.Limit | exp.Offset | exp.Fetch | exp.TableSample) and _reaches(node, names, sources):
            raise _refused("used to say how many rows are wanted")
        if isinstance(node, exp.Pivot) and _reaches(node, names, sources):
            raise _refused("pivoted")
        if isinstance(node, exp.Ordered) and _reaches(node, names, sources) and not isinstance(node.this, exp.Column | exp.Literal):
            raise _refused("sorted by what is computed of it")
        if isinstance(node, exp.Func) and _makes_rows(node, dialect) and _reaches(node, names, sources):
            raise _refused("turned into rows")


def _refused(what: str) -> RefusedError:
    return RefusedError(
        "masked",
        f"a masked column cannot be {what}",
        "it can be selected, counted, grouped, sorted by, joined to a masked column by its table's name,"
        " and compared by =, <>, IN or IS NULL with a value that is written out",
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
    plain = all(isinstance(item, exp.Column) and not _is_star(item) for item in query.expressions)
    return source.this if plain and isinstance(source.this, exp.Table) else None


def _plain(node: exp.Expr, names: set[str], sources: set[str], own: Mapping[str, frozenset[str]]) -> bool:
    """Say whether a condition asks of a masked value no more than whether it is one that is written out, or another masked one."""
    if not _reaches(node, names, sources):
        return True
    if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
        return all(_plain(child, names, sources, own) for child in node.iter_expressions())
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


def _reaches(node: exp.Expr, names: set[str], sources: set[str]) -> bool:
    """Do as `_touches`, but of a query inside look at what it selects alone: its own conditions are looked at by themselves."""
    if isinstance(node, exp.Select):
        return not isinstance(node.parent, exp.Exists) and any(_reaches(item, names, sources) for item in node.expressions)
    if isinstance(node, exp.SetOperation):
        return any(_reaches(part, names, sources) for part in (node.this, node.expression))
    if any(isinstance(child, exp.Select | exp.SetOperation | exp.Subquery) for child in node.iter_expressions()):
        return any(_reaches(child, names, sources) for child in node.iter_expressions())
    if isinstance(node, exp.Count) or not list(node.iter_expressions()):
        return _touches(node, names, sources)
    if isinstance(node, exp.Column):
        return _touches(node, names, sources)
    return any(_reaches(child, names, sources) for child in node.iter_expressions())


def _makes_rows(node: exp.Func, dialect: str) -> bool:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return isinstance(node, exp.Unnest | exp.GenerateSeries | exp.Explode) or fold(name) in TABLE_FUNCTIONS[dialect]


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
                names.update(_renamed(node, alias.args.get("columns") or (), names, sources))
        elif isinstance(node, exp.SetOperation):
            _spread_union(node, names, sources)
        elif isinstance(node, exp.Select):
            _spread_items(node, names, sources)


def _renamed(node: exp.Expr, columns: Sequence[exp.Expr], names: set[str], sources: set[str]) -> Iterator[str]:
    """Yield the new names of masked columns: by their places where these are written out, else all of them."""
    parts = [part for part in _parts(node.this) if isinstance(part, exp.Select)] if isinstance(node, exp.Subquery | exp.CTE) else []
    told = bool(parts) and not any(_is_star(item) for part in parts for item in part.expressions)
    for place, column in enumerate(columns):
        items = [part.expressions[place] for part in parts if place < len(part.expressions)]
        if not told or len(items) < len(parts) or any(_touches(item, names, sources) for item in items):
            yield fold(column.name)


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
