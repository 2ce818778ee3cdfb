"""Distinguish a common table expression from a table of the same name, by the scope that the engine would use.

Where the engines could read a name as the table, it counts as the table: DuckDB reads the real table in
`WITH RECURSIVE s AS (SELECT * FROM s) ...` and in the first part of a recursive union.
"""

from typing import cast

from sqlglot import exp

from longtable.tools.catalog import Catalog, Table, fold

_PLACES = "longtable_places"


def written_name(identifier: exp.Expr | None, dialect: str) -> str:
    """Return the name that an identifier stands for: PostgreSQL folds what is not quoted and takes the rest as it is."""
    if identifier is None:
        return ""
    name = identifier.name
    return fold(name) if dialect == "postgres" and not identifier.args.get("quoted") else name


def resolved_table(node: exp.Table, catalog: Catalog, dialect: str) -> Table | None:
    """Return the table of the catalogue that a table node names, whatever CTEs are in scope; None for one that cannot be seen."""
    schema, database = (written_name(node.args.get(part) or None, dialect) for part in ("db", "catalog"))
    return catalog.resolve(written_name(node.this, dialect), schema=schema, database=database)


def name_key(identifier: exp.Expr | None, dialect: str) -> str:
    """Return what two names must share to be the same."""
    name = written_name(identifier, dialect)
    return name if dialect == "postgres" else fold(name)


def _alias(cte: exp.Expr, dialect: str) -> str:
    alias = cte.args.get("alias")
    return name_key(alias.this if isinstance(alias, exp.TableAlias) else alias, dialect)


def is_cte(table: exp.Table, dialect: str) -> bool:
    """Return whether this table node means a common table expression that is in scope where it stands."""
    return cte_of(table, dialect) is not None


def cte_of(table: exp.Table, dialect: str) -> exp.Expr | None:
    """Return the common table expression that this table node means, None for a table."""
    if table.args.get("db") is not None or table.args.get("catalog") is not None:
        return None
    name = name_key(table.this, dialect)
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.With):
            if (seen := _seen_from_within(parent, node, table, name, dialect)) is not None:
                return seen
            # The query that owns this WITH has been dealt with: go on above it.
            node = parent.parent or parent
            continue
        with_ = parent.args.get("with_")
        if with_ is not None and with_ is not node:
            for place in _places(with_, dialect).get(name, ())[:1]:
                return cast(exp.Expr, with_.expressions[place])
        node = parent
    return None


def _seen_from_within(with_: exp.With, inside: exp.Expr, table: exp.Table, name: str, dialect: str) -> exp.Expr | None:
    """Decide for a name inside the body of one expression of `with_`."""
    for place in _places(with_, dialect).get(name, ()):
        cte: exp.Expr = with_.expressions[place]
        if cte is inside:
            if _recursive_reference(with_, cte, table, dialect):
                return cte
        elif dialect == "sqlite" or (place < (inside.index or 0)):
            return cte  # SQLite sees later expressions too
    return None


def _places(with_: exp.With, dialect: str) -> dict[str, list[int]]:
    """Return where the expressions of each name stand in a WITH; kept in the tree, as a search for each table took seconds."""
    count, places = with_.meta.get(_PLACES, (0, {}))
    if count != len(with_.expressions):
        places = {}
        for place, cte in enumerate(with_.expressions):
            places.setdefault(_alias(cte, dialect), []).append(place)
        with_.meta[_PLACES] = len(with_.expressions), places
    return cast(dict[str, list[int]], places)


def _recursive_reference(with_: exp.With, cte: exp.Expr, table: exp.Table, dialect: str) -> bool:
    """Return whether `table` stands in the recursive part of the union that `cte` is."""
    body = cte.this
    if not isinstance(body, exp.SetOperation):
        return False
    if dialect == "sqlite":
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
