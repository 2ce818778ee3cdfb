"""Write a query anew so that it finds the open columns of a table only, and tell which columns it reads.

`people`, of which `salary` is denied, becomes `(SELECT people.id, people.name FROM main.people) AS people`. So `*`, `people.*`,
whole rows, NATURAL JOIN and COLUMNS(...) are resolved by the engine itself over what is open, in whatever scope they stand.
"""

from collections.abc import Callable, Mapping

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.sql.parsing import nodes_of

Resolve = Callable[[exp.Table], Table | None]
Hidden = Mapping[tuple[str, str], frozenset[str]]


def narrowed(tree: exp.Expr, resolve: Resolve, hidden: Hidden, *, blind: bool = False) -> exp.Expr:
    """Return the tree, or a copy in which every table with hidden columns is a subquery of the others.

    With `blind`, masked columns hold NULL in it.
    """

    def closed(table: Table) -> bool:
        return bool(hidden.get((table.schema, table.bare_name))) or (blind and any(column.masked for column in table.columns))

    if not (hidden or blind) or not any((table := resolve(node)) and closed(table) for node in tree.find_all(exp.Table)):
        return tree
    tree = tree.copy()
    # Resolved all at once: a common table expression is told by where its name stands.
    found = [(node, table) for node in tree.find_all(exp.Table) if (table := resolve(node)) and closed(table)]
    for column in tree.find_all(exp.Column):
        _without_schema(column, [table for _, table in found])
    for node, table in found:
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
            columns.append(exp.alias_(exp.Case(ifs=[exp.If(this=exp.false(), true=plain)]), _name(column.name)))
        else:
            columns.append(plain)
    alias = node.args.get("alias")
    named = alias.copy() if isinstance(alias, exp.TableAlias) else exp.TableAlias(this=node.this.copy())
    made = exp.Subquery(this=exp.select(*columns).from_(source), alias=named)
    for part in ("joins", "laterals", "pivots"):
        if value := node.args.get(part):
            made.set(part, value)  # moved, not copied: there may be tables to narrow in them
    return made


def _without_schema(column: exp.Column, narrow: list[Table]) -> None:
    """`sales.items.id` cannot name a column of a subquery, `items.id` can."""
    schema, table = column.args.get("db"), column.args.get("table")
    if schema is None or table is None:
        return
    if any(fold(schema.name) == fold(one.schema) and fold(table.name) == fold(one.bare_name) for one in narrow):
        column.set("db", None)
        column.set("catalog", None)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def reads_of(tree: exp.Expr, resolve: Resolve) -> tuple[str, ...]:
    """Return the columns a checked query reads, as `table.column`, sorted; those that it may read where that cannot be told."""
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
            named = node.parent.table if isinstance(node.parent, exp.Column) else ""
            every |= by_alias.get(fold(named), set()) if named else set(tables)
        elif (isinstance(node, exp.Join) and node.method.upper() in ("NATURAL", "POSITIONAL")) or isinstance(node, exp.Columns):
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
            for table in tables.values()
            for column in table.columns
            if table.name in every or fold(column.name) in words or fold(column.name) in pairs.get(table.name + "\0", set())
        )
    )
