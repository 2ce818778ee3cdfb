"""What a policy on columns means for the views of a database: which are hidden, and which of their columns are masked.

A view is hidden when it takes in a denied column: when it names one, or may take one in without naming it (`*`, a whole row,
NATURAL JOIN), or when it cannot be read. Its author meant to publish something, the policy's author later decided otherwise.
"""

from collections.abc import Mapping

from sqlglot import exp

from longtable.tools.catalog import Reflected, Table, fold, mentions
from longtable.tools.sql.masking import masks_of
from longtable.tools.sql.parsing import statements
from longtable.tools.sql.refusal import RefusedError
from longtable.tools.sql.table_policy import TablePolicy

Key = tuple[str, str]
ROW_IDS = ("rowid", "oid", "_rowid_")
"""Names that SQLite has for a whole number that is the key."""


def views_over(found: Reflected, hidden: Mapping[Key, frozenset[str]], dialect: str) -> set[str]:
    """Return the names of the views that take in a denied column, or read a view that does."""
    if not hidden:
        return set()
    views = [table for table in found.tables if table.kind == "view"]
    below = _inherited(found, hidden)
    bad: set[str] = set()
    grew = True
    while grew:
        grew = False
        for view in views:
            text = found.view_sql.get((view.schema, view.bare_name), "")
            if view.name in bad:
                continue
            through = any(mentions(text, other.bare_name) for other in views if other.name in bad)
            if through or _takes_in(text, {key: names for key, names in below.items() if mentions(text, key[1])}, dialect, found):
                bad.add(view.name)
                grew = True
    return bad


def masked_columns(found: Reflected, policy: TablePolicy, dialect: str) -> dict[str, frozenset[str]]:
    """Return the masked columns of each table, by the name it is shown under; a view's are what comes of its tables'."""
    masked = {
        table.name: frozenset(column.name for column in table.columns if _masked(found, table, column.name, policy))
        for table in found.tables
    }
    grew = any(masked.values())
    while grew:
        grew = False
        for view in found.tables:
            text = found.view_sql.get((view.schema, view.bare_name))
            if text is None:
                continue
            more = masked[view.name] | _come_through(text, view, found.tables, masked, dialect)
            if more != masked[view.name]:
                masked[view.name] = more
                grew = True
    return {name: names for name, names in masked.items() if names}


def _masked(found: Reflected, table: Table, column: str, policy: TablePolicy) -> bool:
    key = (table.schema, table.bare_name)
    parents = [parent for parent, parts in found.parts.items() if key in parts]
    return any(policy.masks(column, name, schema) for schema, name in (key, *found.parts.get(key, ()), *parents))


def _inherited(found: Reflected, hidden: Mapping[Key, frozenset[str]]) -> dict[Key, frozenset[str]]:
    """Add the other names of SQLite's row ids."""
    keys = {(table.schema, table.bare_name): {fold(name) for name in table.primary_key} for table in found.tables}
    return {
        key: names | (set(ROW_IDS) if keys.get(key, set()) & {fold(name) for name in names} else set()) for key, names in hidden.items()
    }


def _takes_in(text: str, hidden: Mapping[Key, frozenset[str]], dialect: str, found: Reflected) -> bool:
    if not hidden:
        return False
    if any(mentions(text, name) for names in hidden.values() for name in names):
        return True
    query = _query(text, dialect)
    if query is None:
        return True
    sources = {fold(node.alias_or_name) for node in query.find_all(exp.Table, exp.Subquery, exp.CTE)}
    for node in query.walk():
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            return True
        if isinstance(node, exp.Column) and fold(node.name) in sources:
            return True
        if isinstance(node, exp.Join) and node.method.upper() in ("NATURAL", "POSITIONAL"):
            return True
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
            return True
        if type(node).__name__ in ("Columns", "Pivot", "Unpivot", "Anonymous") and (
            type(node).__name__ != "Anonymous" or _own(node, found)
        ):
            return True
    return False


def _own(node: exp.Expr, found: Reflected) -> bool:
    """Say whether a call is of a function that the database defines itself: what that reads is not looked at."""
    return fold(node.name) in found.own_functions


def _come_through(text: str, view: Table, tables: tuple[Table, ...], masked: Mapping[str, frozenset[str]], dialect: str) -> frozenset[str]:
    every = frozenset(column.name for column in view.columns)
    by_name: dict[str, frozenset[str]] = {}
    for table in tables:
        if masked[table.name] and table.name != view.name and mentions(text, table.bare_name):
            by_name[fold(table.bare_name)] = by_name.get(fold(table.bare_name), frozenset()) | masked[table.name]
    if not by_name:
        return frozenset()
    query = _query(text, dialect)
    if query is None:
        return every
    try:
        masks = masks_of(query, lambda node: by_name.get(fold(node.name), frozenset()), dialect)
    except RefusedError:
        return every
    places = masks.of([column.name for column in view.columns])
    return frozenset(view.columns[index].name for index in places)


def _query(text: str, dialect: str) -> exp.Expr | None:
    """Return the query that a view is, None where it cannot be read."""
    try:
        trees = statements(text, dialect)
    except RefusedError:
        return None
    if len(trees) != 1:
        return None
    query = trees[0].expression if isinstance(trees[0], exp.Create) else trees[0]
    if isinstance(trees[0], exp.Create) and isinstance(trees[0].this, exp.Schema):
        return None  # columns renamed by place: all of them count
    return query if isinstance(query, exp.Select | exp.SetOperation | exp.Subquery) else None
