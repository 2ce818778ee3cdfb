"""Allow masked columns only where they reveal nothing, and find the masked columns of a result.

The rule (design.md section 7): a masked column must be used by itself. It may be selected, counted,
grouped, sorted, made distinct, joined to another masked column, or compared with a few literal
values. The outermost SELECT list may also contain some functions of a masked column, if nothing
else in the query uses their results. The result of such a function is masked as a whole.

Everything that is not listed is refused: an expression that the rule does not know may contain open
columns only. A name that fits no table of the query counts as masked if any masked column has this
name.
"""

from collections.abc import Callable, Iterable

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.sql.masks.masked_queries import MaskedQueries
from longtable.tools.sql.parsing import nodes_of
from longtable.tools.sql.scope import (
    Columns,
)
from longtable.tools.sql.verdict import Masks


def masks_of(tree: exp.Expr, resolve: Callable[[exp.Table], Table | None], dialect: str) -> Masks:
    """Return which columns of a query's result are masked. Raises `RefusedError` if the rule does
    not allow the query.

    `resolve` returns the table that a node names, or None if the node names a CTE.
    """
    return _masks(_columns_of(tree, resolve, dialect, view=False))


def masks_of_view(
    tree: exp.Expr, resolve: Callable[[exp.Table], Table | None], dialect: str
) -> tuple[Masks, Masks]:
    """Return which columns of a view are masked, and which of the masked columns the view computes.
    A masked column that the view only passes on is not computed. Raises `RefusedError` if the rule
    cannot decide.

    The author of a view is trusted. So an expression that the rule does not know makes its column
    masked, while it would be refused in a query.
    """
    columns = _columns_of(tree, resolve, dialect, view=True)
    masks = _masks(columns)
    if not masks.columns:
        return masks, masks
    return masks, _by_name((name, value.masked and not value.kind) for name, value in columns)


def _columns_of(
    tree: exp.Expr, resolve: Callable[[exp.Table], Table | None], dialect: str, *, view: bool
) -> Columns:
    """Return the columns of a query's result; empty if no table in it has a masked column."""
    nodes = (node for node in nodes_of(tree) if isinstance(node, exp.Table))
    tables = {id(node): table for node in nodes if (table := resolve(node)) is not None}
    if not any(table.has_masks for table in tables.values()):
        return []
    return MaskedQueries(tables, dialect, view=view).statement(tree)


def _masks(columns: Columns) -> Masks:
    if any(name is None for name, _ in columns) or not any(value.masked for _, value in columns):
        return Masks(whole=any(value.masked for _, value in columns))
    return _by_name((name, value.masked) for name, value in columns)


def _by_name(flags: Iterable[tuple[str | None, bool]]) -> Masks:
    return Masks(tuple((fold(name or ""), flag) for name, flag in flags))
