"""Check how a query uses masked columns outside the SELECT list: in sorting, grouping, comparing
and counting.

The allowed uses are listed. Any other expression may contain open columns only.
"""

import re
from collections.abc import Iterable

from sqlglot import exp

from longtable.tools.sql.masks.masked_names import NUMBER_CHARS, MaskedNames, refused
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.scope import (
    Columns,
    Scope,
    Value,
    bare,
    child_nodes,
    holds_query,
)

MAX_VALUES = 20
"""The most literal values that one query may compare masked columns with. With more values, a query
could try out a whole dictionary.
"""
_TIME = re.compile("DATE|TIME", re.IGNORECASE)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_NAMELESS = tuple(
    getattr(exp, name)
    for name in ("Star", "Columns", "PositionalColumn", "Pseudocolumn", "TableColumn", "PivotAny")
    if hasattr(exp, name)
)
"""Node types that may read columns without naming them."""


class MaskedClauses(MaskedNames):
    """Checks the clauses of a query and the expressions in them."""

    def query(self, query: exp.Expr, outer: Scope | None, *, top: bool = False) -> Columns:
        """Check a query and return its columns. `top` is True if its SELECT list is the
        outermost.
        """
        raise NotImplementedError

    def _sorted(self, query: exp.Expr, scope: Scope) -> None:
        if (order := query.args.get("order")) is not None:
            self._by_itself(order.expressions, scope)
            everything = any(isinstance(part.this, exp.Var) for part in order.expressions)
            self._unused(scope.computed if everything else [], "sorted by")

    def _unused(self, items: list[exp.Expr], what: str) -> None:
        if items:
            raise refused(
                f"{what} when something is computed from it",
                items[0],
                "use the columns by themselves",
            )

    def _by_itself(self, nodes: Iterable[exp.Expr | None], scope: Scope) -> None:
        """Check the expressions that a query groups or sorts by. A masked column may be used only
        by itself, either by its name or by its place in the SELECT list.
        """
        for node in nodes:
            core = (
                bare(node.this if isinstance(node, exp.Ordered) else node)
                if node is not None
                else None
            )
            if isinstance(core, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
                self._by_itself(core.expressions, scope)
            elif isinstance(core, exp.Column) and (value := self._meaning(core, scope)).masked:
                if not value.kind:
                    raise refused(
                        "sorted or grouped by when something is computed from it",
                        core,
                        "use the columns by themselves",
                    )
            elif core is not None:
                self._place(core, scope)
                self._open([core], scope)

    def _place(self, node: exp.Expr, scope: Scope) -> None:
        """Check a number in ORDER BY or GROUP BY that may be a place in the SELECT list. SQLite
        also reads `2 COLLATE NOCASE` as a place.
        """
        number = node
        while isinstance(number, exp.Paren | exp.Collate | exp.Neg):
            number = number.this
        if isinstance(number, exp.Literal) and not number.is_string:
            place = int(number.name) if number.name.isdecimal() else 0
            known = number is node and not any(name is None for name, _ in scope.items[:place])
            items = scope.items[place - 1 : place] if known else scope.items
            if any(value.masked and not (value.kind and known) for _, value in items):
                raise refused(
                    "sorted or grouped by when something is computed from it",
                    node,
                    "use the columns by themselves",
                )

    def _condition(self, root: exp.Expr | None, scope: Scope) -> None:
        """Check a condition. A masked column may be used in it only in a comparison that the rule
        allows.
        """
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
                stack += node.iter_expressions()
            elif node is not None and not self._compares(node, scope):
                self._open([node], scope)

    def _compares(self, node: exp.Expr, scope: Scope) -> bool:
        """Return whether a node compares a masked column in an allowed way: with NULL, with literal
        values, or with another masked column. Raises `RefusedError` for a comparison that is not
        allowed.
        """
        column = (
            bare(node.this)
            if isinstance(
                node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ | exp.Is | exp.In
            )
            else None
        )
        other = bare(node.expression) if isinstance(node, exp.Binary) else None
        if not isinstance(column, exp.Column):
            column, other = other, column
        if not isinstance(column, exp.Column):
            return False
        value = self._meaning(column, scope)
        if isinstance(other, exp.Column) and not isinstance(node, exp.Is):
            self._check_joined(value, self._meaning(other, scope), node)
            return value.masked
        if not (value.masked and value.kind):
            return False
        if isinstance(node, exp.In) and (query := node.args.get("query")) is not None:
            columns = self.query(query, scope)
            self._check_joined(value, columns[0][1] if len(columns) == 1 else Value(), node)
            return True
        others = node.expressions if isinstance(node, exp.In) else [other]
        if (isinstance(node, exp.In) and not node.expressions) or (
            isinstance(node, exp.Is) and not isinstance(other, exp.Null)
        ):
            return False
        self._values += sum(not isinstance(one, exp.Null) for one in others)
        if self._values > MAX_VALUES:
            reason = f"masked columns are compared with more than {MAX_VALUES} values"
            raise RefusedError(
                "masked",
                reason,
                f"compare with at most {MAX_VALUES} values in one query",
                node=node,
            )
        return all(one is not None and self._written_out(one, value.kind) for one in others)

    def _written_out(self, node: exp.Expr, kind: str) -> bool:
        """Return whether a node is a literal that an engine can compare with a column of type
        `kind` without casting the column.
        """
        node = bare(node)
        if isinstance(node, exp.Cast):
            return (
                isinstance(node.this, exp.Literal)
                and node.this.is_string
                and node.to.this in exp.DataType.TEMPORAL_TYPES
                and bool(_TIME.search(kind))
            )
        if isinstance(node, exp.Boolean):
            return kind.upper().startswith("BOOL")
        number = bare(node.this) if isinstance(node, exp.Neg) else node
        if isinstance(number, exp.Literal) and not number.is_string:
            return len(number.name) <= NUMBER_CHARS and self._alike("NUMBER", kind)
        return isinstance(node, exp.Literal | exp.Null)

    def _open(self, roots: Iterable[exp.Expr], scope: Scope) -> None:
        """Check expressions whose value may be used in any way. They may contain only open columns,
        except that they may count masked columns.
        """
        stack = list(roots)
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Select | exp.SetOperation) or holds_query(node):
                columns = self.query(node, scope)
                if any(value.masked for _, value in columns) and not isinstance(
                    node.parent, exp.Exists
                ):
                    raise refused("used in this way", node)
            elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                if self._meaning(node, scope).masked:
                    raise refused("used in this way", node)
            elif isinstance(node, exp.Identifier):
                if self._named(self._key(node), scope).masked:
                    raise refused("used in this way", node)
            elif isinstance(node, (*_NAMELESS, exp.Column)):
                if scope.any_masked() and not (
                    isinstance(node, exp.Star) and isinstance(node.parent, exp.Count)
                ):
                    raise refused(
                        "read without its name", node, "write out the columns that you want"
                    )
            elif isinstance(node, exp.Count):
                stack += self._uncounted(node, scope)
            elif isinstance(node, exp.Filter):
                self._condition(node.expression.this, scope)
                stack.append(node.this)
            elif isinstance(node, exp.Window):
                self._window(node, scope)
                stack.append(node.this)
            elif isinstance(node, exp.Exists):
                stack.append(node.this)
            else:
                stack += reversed(list(child_nodes(node, "alias")))

    def _uncounted(self, count: exp.Count, scope: Scope) -> Iterable[exp.Expr]:
        """Return the parts of a COUNT that must still be checked. This is empty if it counts a
        column by itself.
        """
        parts = list(child_nodes(count))
        distinct = parts[0] if len(parts) == 1 and isinstance(parts[0], exp.Distinct) else count
        inner = list(child_nodes(distinct))
        if (
            len(inner) == 1
            and isinstance(inner[0], exp.Column)
            and self._meaning(inner[0], scope).kind
        ):
            return []
        return inner

    def _window(self, window: exp.Window, scope: Scope) -> None:
        """Check the parts of a window, but not its function. With some functions and frames, the
        columns in ORDER BY must be open, because the engine computes with their values.
        """
        self._by_itself(window.args.get("partition_by") or (), scope)
        function = window.this.this if isinstance(window.this, exp.Filter) else window.this
        ranked = isinstance(function, _RANKS) and window.args.get("spec") is None
        order = window.args.get("order")
        if ranked and order is not None:
            self._by_itself(order.expressions, scope)
        done = ("this", "partition_by", "alias", *(["order"] if ranked else []))
        self._open(child_nodes(window, *done), scope)
