"""Check how a SELECT list uses masked columns, and return the columns of this list."""

from sqlglot import exp

from longtable.tools.sql.masks.masked_clauses import MaskedClauses
from longtable.tools.sql.masks.masked_names import NUMBER_CHARS, refused
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.scope import (
    UNKNOWN,
    Columns,
    Scope,
    Value,
    bare,
    child_nodes,
)

_SHOWN_WHOLE = (
    *(
        exp.DPipe,
        exp.Concat,
        exp.ConcatWs,
        exp.Upper,
        exp.Lower,
        exp.Trim,
        exp.Coalesce,
        exp.Cast,
        exp.TryCast,
    ),
    *(exp.Min, exp.Max, exp.GroupConcat, exp.Paren, exp.Distinct),
)
_NUMBERS = (exp.Count, exp.Sum, exp.Avg, exp.Round)
"""Functions whose results may be combined with a masked column, if they are computed from open
columns. These results are short, so that no limit on sizes reveals the length of the masked value.
"""


class MaskedItems(MaskedClauses):
    """Checks the items of SELECT lists."""

    def _item(self, item: exp.Expr, scope: Scope, *, top: bool) -> Columns:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            return self._star(item, star, scope)
        alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
        node = bare(item.this if isinstance(item, exp.Alias) else item)
        name = self._key(
            alias if alias is not None else item.this if isinstance(item, exp.Column) else None
        )
        value = self._value(node, scope, top=top)
        if value.masked and not name and not top:
            raise RefusedError(
                "masked",
                "a masked column needs a name here",
                "give it an alias: AS name",
                node=item,
            )
        columns: Columns = [(name, value)]
        self._remember(columns)
        return columns

    def _value(self, node: exp.Expr, scope: Scope, *, top: bool) -> Value:
        if isinstance(node, exp.Column) and (
            (value := self._meaning(node, scope)).kind or (top and value.masked)
        ):
            return value
        if isinstance(node, exp.Literal | exp.Null):
            short = node.is_string or len(node.name) <= NUMBER_CHARS
            return Value(
                kind=(
                    "NULL"
                    if isinstance(node, exp.Null)
                    else "TEXT"
                    if node.is_string
                    else "NUMBER"
                    if short
                    else ""
                )
            )
        try:
            if isinstance(node, exp.Subquery) and len(columns := self.query(node, scope)) == 1:
                return columns[0][1]
            self._open([node], scope)
        except RefusedError:
            if not (self._view or (top and self._shown_whole(node, scope))):
                raise
            return Value(masked=True)
        return Value()

    def _shown_whole(self, node: exp.Expr, scope: Scope) -> bool:
        """Return whether this expression may be in the outermost SELECT list although it contains
        masked columns. Its result is then masked as a whole.
        """
        if isinstance(node, exp.Column):
            return bool(self._meaning(node, scope).kind)
        if isinstance(node, exp.Literal | exp.Null):
            return True
        if isinstance(node, _NUMBERS):
            self._open([node], scope)
            return True
        if isinstance(node, exp.Filter):
            self._condition(node.expression.this, scope)
            return self._shown_whole(node.this, scope)
        if isinstance(node, exp.Window):
            self._window(node, scope)
            return self._shown_whole(node.this, scope)
        if isinstance(node, exp.Order):
            self._by_itself(node.expressions, scope)
            return self._shown_whole(node.this, scope)
        if isinstance(node, exp.Coalesce) and not self._side_by_side(
            [self._value(bare(part), scope, top=True) for part in child_nodes(node)]
        ):
            return False
        # The limit of a result's size tells how long a masked text is: no length may depend on the
        # characters of a value.
        compared = isinstance(node, exp.Min | exp.Max) and node.find(
            exp.Coalesce, exp.Concat, exp.ConcatWs
        )
        if compared or (isinstance(node, exp.Trim) and node.expression is not None):
            return False
        text = not isinstance(node, exp.Cast) or node.to.this in exp.DataType.TEXT_TYPES
        return (
            isinstance(node, _SHOWN_WHOLE)
            and text
            and all(self._shown_whole(part, scope) for part in child_nodes(node, "to"))
        )

    def _star(self, item: exp.Expr, star: exp.Star, scope: Scope) -> Columns:
        if isinstance(item, exp.Column):
            name = self._key(item.args.get("table"))
            lists = [source.columns for source in scope.sources_named(name)]
            columns = lists[0] if lists else UNKNOWN
            unclear = len(lists) != 1 or item.args.get("db") is not None
        else:
            columns = scope.star
            unclear = not scope.sources
        if (
            unclear or any(value for key, value in star.args.items() if key != "except_")
        ) and scope.any_masked():
            raise refused("part of this *", item, "write out the columns that you want")
        without = {
            self._key(bare(node).this if isinstance(node, exp.Column) else node)
            for node in star.args.get("except_") or ()
        }
        self._open(child_nodes(star, "except_"), scope)
        return [(name, value) for name, value in columns if name not in without]
