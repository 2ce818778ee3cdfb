"""Restrict masked columns to places where they reveal nothing, and find the masked columns of a
result.

The rule (design.md section 7): a masked column must be used by itself. It may be selected, counted,
grouped, sorted, made distinct, joined to a masked column, or compared with a few literal values.
The outermost SELECT list may hold some functions of it, if nothing else uses them; they are masked
as a whole. The list is positive: an expression that the rule does not know may hold open columns
only, and a name that no scope explains is masked if any masked column has it.
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
    """Return which columns of a query's result are masked. Raise `RefusedError` if the rule does
    not allow the query.

    `resolve` finds the table that a node names, None for a CTE.
    """
    return _masks(_columns_of(tree, resolve, dialect, view=False))


def masks_of_view(
    tree: exp.Expr, resolve: Callable[[exp.Table], Table | None], dialect: str
) -> tuple[Masks, Masks]:
    """Return which columns of a view are masked, and which of these it computes. A masked column
    that the view only passes on is not computed. Raise `RefusedError` if the rule cannot decide.

    Unlike in a query, an expression that the rule does not know is masked instead of refused: the
    view's author is trusted.
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
