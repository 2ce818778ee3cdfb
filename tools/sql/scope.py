"""Find what a name means at its place in a query: a table, a common table expression (CTE), or
columns of the query and of the queries around it.

If an engine could read a name as a table, the name counts as the table. DuckDB, for example, reads
the real table `s` in `WITH RECURSIVE s AS (SELECT * FROM s) ...` and in the first part of a
recursive union.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, cast

from sqlglot import exp

from longtable.tools.catalog import Catalog, Table, fold
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.verdict import without_number

_PLACES = "longtable_places"


def written_name(identifier: exp.Expr | None, dialect: str) -> str:
    """Return the name that an identifier means. PostgreSQL folds names without quotes to lower
    case, and takes quoted names as they are.
    """
    if identifier is None:
        return ""
    name = identifier.name
    is_folded = dialect_of(dialect).exact_names and not identifier.args.get("quoted")
    return fold(name) if is_folded else name


def resolved_table(node: exp.Table, catalog: Catalog, dialect: str) -> Table | None:
    """Return the table of the catalogue that a table node names, None if no visible table has this
    name. CTEs are not considered.
    """
    schema, database = (
        written_name(node.args.get(part) or None, dialect) for part in ("db", "catalog")
    )
    return catalog.resolve(written_name(node.this, dialect), schema=schema, database=database)


def missing_table(node: exp.Table, dialect: str, catalog: Catalog) -> RefusedError:
    """Return the refusal of a table that the catalogue does not have, with the nearest names."""
    name = node.name
    close = catalog.nearest_tables(name)
    hint = f"nearest tables: {', '.join(close)}" if close else "see list_tables for the tables"
    if dialect_of(dialect).exact_names:
        exact = written_name(node.this, dialect)
        others = [table for table in catalog.tables if fold(table.bare_name) == fold(name)]
        for other in others:
            if other.bare_name != exact:
                close = [other.sql_name]
                hint = f"a name with capitals needs its quotes: {other.sql_name}"
                break
    reason = f"there is no table {name!r} to read"
    return RefusedError("table", reason, hint, node=node.this, nearest=close)


def name_key(identifier: exp.Expr | None, dialect: str) -> str:
    """Return the key of a name. Two names mean the same if they have the same key."""
    name = written_name(identifier, dialect)
    return name if dialect_of(dialect).exact_names else fold(name)


def _alias(cte: exp.Expr, dialect: str) -> str:
    alias = cte.args.get("alias")
    return name_key(alias.this if isinstance(alias, exp.TableAlias) else alias, dialect)


def is_cte(table: exp.Table, dialect: str) -> bool:
    """Return whether this table node means a common table expression, not a table."""
    return cte_of(table, dialect) is not None


def cte_of(table: exp.Table, dialect: str) -> exp.Expr | None:
    """Return the common table expression that this table node means, None if it means a table."""
    if table.args.get("db") is not None or table.args.get("catalog") is not None:
        return None
    name = name_key(table.this, dialect)
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.With):
            if (visible := _seen_from_within(parent, node, table, name, dialect)) is not None:
                return visible
            # The query that owns this WITH has been dealt with: go on above it.
            node = parent.parent or parent
            continue
        with_ = parent.args.get("with_")
        if with_ is not None and with_ is not node:
            for place in _places(with_, dialect).get(name, ())[:1]:
                return cast(exp.Expr, with_.expressions[place])
        node = parent
    return None


def _seen_from_within(
    with_: exp.With, inside: exp.Expr, table: exp.Table, name: str, dialect: str
) -> exp.Expr | None:
    """Return the CTE of `with_` that a name means if the name is used inside another CTE of
    `with_`. Return None if the name means none of these CTEs.
    """
    for place in _places(with_, dialect).get(name, ()):
        cte: exp.Expr = with_.expressions[place]
        if cte is inside:
            if _recursive_reference(with_, cte, table, dialect):
                return cte
        elif dialect_of(dialect).sees_later_ctes or (place < (inside.index or 0)):
            return cte
    return None


def _places(with_: exp.With, dialect: str) -> dict[str, list[int]]:
    """Return the places in a WITH of the CTEs with each name. The result is stored in the tree,
    because searching again for each table took seconds.
    """
    count, places = with_.meta.get(_PLACES, (0, {}))
    if count != len(with_.expressions):
        places = {}
        for place, cte in enumerate(with_.expressions):
            places.setdefault(_alias(cte, dialect), []).append(place)
        with_.meta[_PLACES] = len(with_.expressions), places
    return cast(dict[str, list[int]], places)


def _recursive_reference(with_: exp.With, cte: exp.Expr, table: exp.Table, dialect: str) -> bool:
    """Return whether `table` is in the recursive part of a union, where the union is the query of
    `cte`.
    """
    body = cte.this
    if not isinstance(body, exp.SetOperation):
        return False
    if dialect_of(dialect).recurses_without_word:
        spine = []
        part: exp.Expr = body
        while isinstance(part, exp.SetOperation):
            spine.append(part.expression)
            part = part.this
        return any(_within(table, part) for part in spine)
    return bool(with_.args.get("recursive")) and _within(table, body.expression)


def _within(node: exp.Expr, ancestor: exp.Expr) -> bool:
    above: exp.Expr | None = node
    while above is not None:
        if above is ancestor:
            return True
        above = above.parent
    return False


class Value(NamedTuple):
    """What is known about a column or an item of a SELECT list."""

    masked: bool = False
    kind: str = ""
    """The type of the column in the catalogue, if this is a column used by itself. Empty if it is
    computed, or if the name has several meanings.
    """


Columns = list[tuple[str | None, Value]]
"""The columns of a query or source in order, as pairs of name and value. An empty name means that
the engine chooses the name. None as a name stands for any number of further open columns with
unknown names.
"""
UNKNOWN: Columns = [(None, Value())]


def holds_masks(columns: Columns) -> bool:
    """Return whether any of these columns is masked."""
    return any(value.masked for _, value in columns)


class Source(NamedTuple):
    """A table, subquery or CTE in FROM."""

    name: str
    columns: Columns

    @property
    def has_masks(self) -> bool:
        """Return whether any column of this source is masked."""
        return holds_masks(self.columns)

    def values(self, name: str) -> list[Value]:
        """Return the values that a column name may mean in this source. If two columns have the
        same name, the engine adds a number to the name of the second.
        """
        names = [column for column, _ in self.columns if column is not None]
        plain = without_number(name) if len(set(names)) < len(names) else name
        return [value for column, value in self.columns if column in (name, plain)]


@dataclass
class Scope:
    """The names that one query knows. An inner query also knows the names of the queries
    around it.
    """

    outer: "Scope | None" = None
    sources: list[Source] = field(default_factory=list)
    star: Columns = field(default_factory=list)
    items: Columns = field(default_factory=list)
    computed: list[exp.Expr] = field(default_factory=list)
    """Items of the SELECT list that are computed from masked columns."""
    partial: bool = True
    """Whether FROM is still being read. A name in FROM may mean a source that has been read
    already, or a source of an outer query.
    """

    def chain(self) -> "Iterator[Scope]":
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def find(self, name: str, table: str | None = None) -> list[Value]:
        """Return the values that a column name may mean, from this query outwards."""
        values: list[Value] = []
        other: list[Value] = []
        for one in self.chain():
            sources = [source for source in one.sources if table in (None, source.name)]
            listed: list[Value] = []
            for source in sources:
                listed += source.values(name)
            values += listed
            if table is None:
                values += [value for item, value in one.items if item == name]
            if listed and not one.partial:
                break
            columns = chain.from_iterable(source.columns for source in sources)
            if any(column is None for column, _ in columns):
                other = [Value()]  # a function's column may have the name
        return values and values + other

    def sources_named(self, name: str) -> list[Source]:
        """Return the sources with this name, from this query outwards."""
        sources = chain.from_iterable(one.sources for one in self.chain())
        return [source for source in sources if source.name == name]

    def any_masked(self) -> bool:
        """Return whether any source that this query can name has a masked column."""
        sources = chain.from_iterable(one.sources for one in self.chain())
        return any(source.has_masks for source in sources)


def merged(values: list[Value]) -> Value:
    """Return the value of a name that may mean each of these values. It is masked if one of them is
    masked.
    """
    same = all(value.kind and value.masked == values[0].masked for value in values)
    return Value(any(value.masked for value in values), values[0].kind if values and same else "")


def holds_query(node: exp.Expr) -> bool:
    """Return whether a node in brackets holds a query, and not a table or a join."""
    inner = node.this if isinstance(node, exp.Subquery | exp.Paren) else None
    return isinstance(inner, exp.Select | exp.SetOperation) or (
        inner is not None and holds_query(inner)
    )


def child_nodes(node: exp.Expr, *handled: str) -> Iterator[exp.Expr]:
    """Yield the child nodes of a node, except the children in the arguments named by `handled`."""
    for key, value in node.args.items():
        if key not in handled:
            yield from (
                child
                for child in (value if isinstance(value, list) else [value])
                if isinstance(child, exp.Expr)
            )


def bare(node: exp.Expr) -> exp.Expr:
    """Return a node without the brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
