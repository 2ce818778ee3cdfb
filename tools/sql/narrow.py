"""Rewrite a query so that it sees only the open columns of its tables. This module also lists
the predicates of a query and the columns that it reads. And it tells whether the query stops before
it has read all rows.

For example, if the column `salary` of the table `people` is denied, `people` becomes `(SELECT
people.id, people.name FROM main.people) AS people`. So the engine itself resolves `*`, `people.*`,
whole rows, NATURAL JOIN and COLUMNS(...) over the open columns, wherever they occur.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from longtable.tools.catalog import Catalog, Table, each_column, fold
from longtable.tools.sql.parsing import nodes_of, statement, written
from longtable.tools.sql.scope import is_cte, resolved_table
from longtable.tools.sql.verdict import Predicate, Predicates

Resolve = Callable[[exp.Table], Table | None]
Hidden = Mapping[tuple[str, str], frozenset[str]]


def narrowed(tree: exp.Expr, resolve: Resolve, hidden: Hidden, *, blind: bool = False) -> exp.Expr:
    """Return the tree. If a table has hidden columns, return a copy in which it is replaced by a
    subquery of its other columns. With `blind`, masked columns hold NULL in the subquery.
    """

    def closed(table: Table) -> bool:
        return bool(hidden.get((table.schema, table.bare_name))) or (
            blind and any(column.masked for column in table.columns)
        )

    if not (hidden or blind) or not any(
        (table := resolve(node)) and closed(table) for node in tree.find_all(exp.Table)
    ):
        return tree
    tree = tree.copy()
    # Resolved all at once: a common table expression is told by where its name stands.
    places = [
        (node, table)
        for node in tree.find_all(exp.Table)
        if (table := resolve(node)) and closed(table)
    ]
    for column in tree.find_all(exp.Column):
        without_schema(column, [table for _, table in places])
    for node, table in places:
        subquery = _subquery(node, table, blind)
        if node is tree:
            return subquery
        node.replace(subquery)
    return tree


def _subquery(node: exp.Table, table: Table, blind: bool) -> exp.Subquery:
    source = exp.Table(this=_name(table.bare_name), db=_name(table.schema))
    for part in ("only", "sample"):
        if (value := node.args.get(part)) is not None:
            source.set(part, value.copy() if isinstance(value, exp.Expr) else value)
    columns: list[exp.Expr] = []
    for column in table.columns:
        plain = exp.Column(this=_name(column.name), table=_name(table.bare_name))
        if blind and column.masked:
            # Of the column's type, but never its value.
            columns.append(
                exp.alias_(exp.Case(ifs=[exp.If(this=exp.false(), true=plain)]), _name(column.name))
            )
        else:
            columns.append(plain)
    alias = node.args.get("alias")
    new_alias = (
        alias.copy() if isinstance(alias, exp.TableAlias) else exp.TableAlias(this=node.this.copy())
    )
    subquery = exp.Subquery(this=exp.select(*columns).from_(source), alias=new_alias)
    for part in ("joins", "laterals", "pivots"):
        if value := node.args.get(part):
            subquery.set(part, value)  # moved, not copied: there may be tables to narrow in them
    return subquery


def without_schema(column: exp.Column, narrow: Sequence[Table]) -> None:
    """Remove the schema from a column's name. `sales.items.id` cannot name a column of a subquery,
    but `items.id` can.
    """
    schema = column.args.get("db")
    table = column.args.get("table")
    if schema is None or table is None:
        return
    if any(
        fold(schema.name) == fold(one.schema) and fold(table.name) == fold(one.bare_name)
        for one in narrow
    ):
        column.set("db", None)
        column.set("catalog", None)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def reads_of(tree: exp.Expr, resolve: Resolve) -> tuple[str, ...]:
    """Return the columns that a checked query reads, as `table.column`, sorted. A column that it
    only may read is included too.
    """
    tables: dict[str, Table] = {}
    by_alias: dict[str, set[str]] = {}
    nodes = nodes_of(tree)
    for source in nodes:
        if isinstance(source, exp.Table) and (table := resolve(source)) is not None:
            tables[table.name] = table
            by_alias.setdefault(fold(source.alias_or_name), set()).add(table.name)
    every: set[str] = set()
    words: set[str] = set()
    pairs: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            qualifier = node.parent.table if isinstance(node.parent, exp.Column) else ""
            every |= by_alias.get(fold(qualifier), set()) if qualifier else set(tables)
        elif (
            isinstance(node, exp.Join) and node.method.upper() in ("NATURAL", "POSITIONAL")
        ) or isinstance(node, exp.Columns):
            every |= set(tables)
        elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            if fold(node.table) in by_alias:
                pairs.setdefault(fold(node.table), set()).add(fold(node.name))
            else:
                words |= {fold(part.name) for part in node.parts}
                every |= by_alias.get(fold(node.name), set())  # a whole row
        elif isinstance(node, exp.Identifier) and isinstance(node.parent, exp.Dot | exp.Join):
            words.add(fold(node.name))
    for alias, names in by_alias.items():
        for name in names:
            pairs.setdefault(name + "\0", set()).update(pairs.get(alias, ()))
    return tuple(
        sorted(
            f"{table.name}.{column.name}"
            for table, column in each_column(tables.values())
            if table.name in every
            or fold(column.name) in words
            or fold(column.name) in pairs.get(table.name + "\0", set())
        )
    )


def stops_early(tree: exp.Expr) -> bool:
    """Return whether a query takes the first rows of its tables and then stops.

    The engine's plan of such a query may still say that all rows are read.
    """
    if not isinstance(tree, exp.Select) or tree.args.get("limit") is None:
        return False
    reads_all = any(
        tree.args.get(name)
        for name in ("where", "group", "having", "order", "distinct", "qualify", "with_")
    )
    heavy = any(node is not tree for node in tree.find_all(exp.Query)) or tree.find(
        exp.AggFunc, exp.Window
    )
    joined = any(
        join.args.get("on") or join.args.get("using") or join.args.get("method")
        for join in tree.find_all(exp.Join)
    )
    return not reads_all and not heavy and not joined


def crossed(tree: exp.Expr, resolve: Resolve) -> tuple[tuple[str, ...], ...]:
    """Return the tables of each FROM whose rows are compared each with each: of several sources,
    without an equation between columns.
    """
    found: list[tuple[str, ...]] = []
    for select in tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        first = select.args.get("from_")
        if not joins or first is None:
            continue
        linked = any(join.args.get("using") or join.method.upper() == "NATURAL" for join in joins)
        parts = [select.args.get("where"), *(join.args.get("on") for join in joins)]
        linked = linked or any(map(_has_equation, filter(None, parts)))
        nodes = [first.this, *(join.this for join in joins)]
        tables = [resolve(node) for node in nodes if isinstance(node, exp.Table)]
        names = tuple(table.name for table in tables if table is not None)
        if names and not linked:
            found.append(names)
    return tuple(found)


def _has_equation(part: exp.Expr) -> bool:
    return any(
        equation.this.find(exp.Column) and equation.expression.find(exp.Column)
        for equation in part.find_all(exp.EQ)
    )


MOST = 100

_VALUES = (exp.EQ, exp.In, exp.Like, exp.ILike)
_WRAPPERS = (exp.Lower, exp.Upper, exp.Trim, exp.Paren)


def predicates_of(sql: str, *, dialect: str, catalog: Catalog) -> Predicates:
    """Return the predicates of a query that found no rows, in a form that lets each be tried
    alone.
    """
    tree = statement(sql, dialect)
    total = (
        isinstance(tree, exp.Select)
        and not tree.args.get("group")
        and all(item.find(exp.AggFunc) for item in tree.selects)
    )
    return Predicates(total, tuple(_predicates(tree, catalog, dialect))[:MOST])


def _predicates(tree: exp.Expr, catalog: Catalog, dialect: str) -> Iterator[Predicate]:
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        parts = [where.this] if where is not None else []
        parts += [
            on for join in select.args.get("joins") or [] if (on := join.args.get("on")) is not None
        ]
        sources = sources_of(select, catalog, dialect)
        for part in parts:
            for node in (
                part.unnest().flatten() if isinstance(part.unnest(), exp.And) else [part.unnest()]
            ):
                if (table := _table(node, sources)) is not None:
                    bare = node.unnest()
                    values = _texts(bare) if isinstance(bare, _VALUES) else None
                    yield Predicate(_alone(node, dialect), table.name, _column(bare, table), values)


def sources_of(select: exp.Select, catalog: Catalog, dialect: str) -> Mapping[str, Table | None]:
    """Return the sources in FROM of a query by their folded names or aliases. The value is None for
    a source that is not a table.
    """
    first = select.args.get("from_")
    nodes = [
        *([first.this] if first is not None else []),
        *(join.this for join in select.args.get("joins") or []),
    ]
    return {fold(node.alias_or_name): _resolved(node, catalog, dialect) for node in nodes}


def _resolved(node: exp.Expr, catalog: Catalog, dialect: str) -> Table | None:
    if (
        isinstance(node, exp.Table)
        and isinstance(node.this, exp.Identifier)
        and not is_cte(node, dialect)
    ):
        return resolved_table(node, catalog, dialect)
    return None


def _table(node: exp.Expr, sources: Mapping[str, Table | None]) -> Table | None:
    """Return the table whose columns a condition uses. Return None if it uses several tables or
    none, or contains a subquery or an aggregate.
    """
    if node.find(exp.Query, exp.AggFunc, exp.Window) is not None:
        return None
    names = {owner_of(column, sources) for column in node.find_all(exp.Column)}
    return sources.get(names.pop()) if len(names) == 1 else None


def _has_column(table: Table, name: str) -> bool:
    return any(fold(column.name) == fold(name) for column in table.columns)


def owner_of(column: exp.Column, sources: Mapping[str, Table | None]) -> str:
    """Return the name of the source that a column is read from, "" if it is unknown."""
    if column.table:
        return fold(column.table)
    if None in sources.values():
        return ""
    owners = [name for name, table in sources.items() if table and _has_column(table, column.name)]
    return owners[0] if len(owners) == 1 else ""


def _alone(node: exp.Expr, dialect: str) -> str:
    return written(
        node.transform(
            lambda part: exp.Column(this=part.this) if isinstance(part, exp.Column) else part
        ),
        dialect,
    )


def _column(node: exp.Expr, table: Table) -> str:
    side = node.this
    while isinstance(side, _WRAPPERS):
        side = side.this
    if not isinstance(side, exp.Column):
        return ""
    return next(
        (column.name for column in table.columns if fold(column.name) == fold(side.name)), ""
    )


def _texts(node: exp.Expr) -> tuple[str, ...]:
    """Return the texts that a predicate compares its column with. The wildcards of LIKE patterns
    become spaces.
    """
    texts = [
        value.name
        for value in node.expressions or [node.expression]
        if isinstance(value, exp.Literal) and value.is_string
    ]
    return tuple(
        (
            text.replace("%", " ").replace("_", " ").strip()
            if isinstance(node, exp.Like | exp.ILike)
            else text
        )
        for text in texts
    )
