"""Hold masked columns to the places where they tell nothing, and find where they stand in a result.

The rule (design.md section 7): a masked column stands by itself: selected, counted, grouped,
sorted, made distinct, joined to a masked column, or compared with a few values that are written
out. In the outermost SELECT list some functions of it may stand, masked as a whole and used by
nothing else. The list is positive: an expression that the rule does not know may hold open columns
only, and a name that no scope explains is masked if any masked column has it.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.sql.parsing import RefusedError, nodes_of
from longtable.tools.sql.scope import (
    UNKNOWN,
    Columns,
    Scope,
    Source,
    Value,
    bare,
    child_nodes,
    cte_of,
    holds_query,
    merged,
    name_key,
)
from longtable.tools.sql.verdict import Masks

MAX_VALUES = 20
"""Values written out that one query may compare masked columns with: more would be a dictionary."""
NUMBER_CHARS = 15
"""DuckDB casts a DECIMAL(38, 0) column to the scale of a longer number, and fails where a value is
too large for that.
"""
ROW_IDS = ("rowid", "oid", "_rowid_")
"""Names that SQLite has for a whole number that is the key."""

_ALONE = (
    "by itself it can be selected, counted, grouped, sorted by, made distinct, joined to a masked"
    " column (name both with their tables), and compared by =, <>, IN or IS NULL with values"
    " written out in WHERE, ON, HAVING or FILTER"
)
_OUTERMOST = (
    "; ||, concat, upper, lower, trim, coalesce, CAST to text, min, max and string_agg of it only"
    " in the outermost SELECT list"
)

_TEXT = re.compile("CHAR|TEXT|STRING|CLOB|ENUM", re.IGNORECASE)
_TIME = re.compile("DATE|TIME", re.IGNORECASE)
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
"""Of open columns; what these return is short, so that no limit of size tells the length of a
masked value beside it.
"""
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_NAMELESS = tuple(
    getattr(exp, name)
    for name in ("Star", "Columns", "PositionalColumn", "Pseudocolumn", "TableColumn", "PivotAny")
    if hasattr(exp, name)
)
"""These may read columns that the text does not name."""


def masks_of(tree: exp.Expr, resolve: Callable[[exp.Table], Table | None], dialect: str) -> Masks:
    """Return which columns of a query's result are masked; raise `RefusedError` for what the rule
    does not allow.

    `resolve` finds the table that a node names, None for a CTE.
    """
    return _masks(_columns_of(tree, resolve, dialect, view=False))


def masks_of_view(
    tree: exp.Expr, resolve: Callable[[exp.Table], Table | None], dialect: str
) -> tuple[Masks, Masks]:
    """Return which columns of a view are masked, and which of these it computes: all but masked
    columns by themselves. Raise `RefusedError` if the rule cannot say.

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
    """Return the columns of a query's result; none if no table in it has a masked column."""
    nodes = (node for node in nodes_of(tree) if isinstance(node, exp.Table))
    tables = {id(node): table for node in nodes if (table := resolve(node)) is not None}
    if not any(table.has_masks for table in tables.values()):
        return []
    return _Rule(tables, dialect, view=view).statement(tree)


def _masks(columns: Columns) -> Masks:
    if any(name is None for name, _ in columns) or not any(value.masked for _, value in columns):
        return Masks(whole=any(value.masked for _, value in columns))
    return _by_name((name, value.masked) for name, value in columns)


def _by_name(flags: Iterable[tuple[str | None, bool]]) -> Masks:
    return Masks(tuple((fold(name or ""), flag) for name, flag in flags))


class _Rule:
    """Walks the queries of one statement."""

    def __init__(self, tables: Mapping[int, Table], dialect: str, *, view: bool) -> None:
        self._tables = tables
        self._dialect = dialect
        self._view = view
        self._ctes: dict[int, Columns] = {}
        self._values = 0
        self._unread = {
            node for node, table in tables.items() if any(column.masked for column in table.columns)
        }
        self._masked_names: set[str | None] = set()
        for table in tables.values():
            self._remember(self._columns(table))
            if dialect == "sqlite" and any(
                column.masked and column.name in table.primary_key for column in table.columns
            ):
                self._masked_names.update(ROW_IDS)

    def statement(self, tree: exp.Expr) -> Columns:
        columns = self.query(tree, None, top=True)
        if self._unread:  # in a place that the rule does not know
            raise _refused("read in this way", tree)
        return columns

    def _key(self, identifier: exp.Expr | None) -> str:
        return name_key(identifier, self._dialect)

    def _remember(self, columns: Columns) -> None:
        self._masked_names.update(name for name, value in columns if name and value.masked)

    def _columns(self, table: Table) -> Columns:
        exact = self._dialect == "postgres"
        untyped = "?" if self._dialect == "sqlite" else ""
        return [
            (
                column.name if exact else fold(column.name),
                Value(column.masked, "" if column.computed else column.type or untyped),
            )
            for column in table.columns
        ]

    # Queries

    def query(self, query: exp.Expr, outer: Scope | None, *, top: bool = False) -> Columns:
        """Check a query and return its columns. `top`: its SELECT list is the outermost."""
        scope = Scope(outer)
        done = ("this", "expression", "with_", "order")
        if isinstance(query, exp.Select):
            return self._select(query, scope, top=top)
        if isinstance(query, exp.SetOperation):
            scope.items = self._set_operation(query, scope, top=top)
        elif holds_query(query):
            self._with(query, outer)
            scope.items = self.query(
                query.this,
                outer,
                top=top and not any(value for key, value in query.args.items() if key != "this"),
            )
        else:
            scope.items = UNKNOWN
            done = ("", "", "", "order")
        self._sorted(query, scope)
        self._open(child_nodes(query, *done), scope)
        return scope.items

    def _select(self, select: exp.Select, scope: Scope, *, top: bool) -> Columns:
        self._with(select, scope.outer)
        joins = [
            select.args.get("from_"),
            *(select.args.get("joins") or ()),
            *(select.args.get("laterals") or ()),
        ]
        joins = [join for join in joins if join is not None]
        for join in joins:
            self._join(join, scope)
        scope.partial = False
        for item in select.expressions:
            columns = self._item(item, scope, top=top)
            if any(value.masked and not value.kind for _, value in columns):
                scope.computed.append(item)
            scope.items += columns
        scope.partial = True
        for join in joins:
            self._condition(join.args.get("on"), scope)
        scope.partial = False
        for clause in ("where", "having", "qualify"):
            if (node := select.args.get(clause)) is not None:
                self._condition(node.this, scope)
        if (distinct := select.args.get("distinct")) is not None:
            self._by_itself([distinct.args.get("on")], scope)
            self._unused(scope.computed if distinct.args.get("on") is None else [], "made distinct")
        if (group := select.args.get("group")) is not None:
            self._by_itself(group.expressions, scope)
            self._unused(
                [
                    item
                    for item in scope.computed
                    if group.args.get("all") and not item.find(exp.AggFunc)
                ],
                "grouped",
            )
            self._open(child_nodes(group, "expressions"), scope)
        self._sorted(select, scope)
        done = (
            "expressions",
            "from_",
            "joins",
            "laterals",
            "with_",
            "where",
            "having",
            "qualify",
            "distinct",
            "group",
            "order",
        )
        self._open(child_nodes(select, *done), scope)
        return scope.items

    def _set_operation(self, query: exp.SetOperation, scope: Scope, *, top: bool) -> Columns:
        parts: list[exp.Expr] = []
        part: exp.Expr = query
        plain = True
        while isinstance(part, exp.SetOperation):
            # A union of 1,000 parts is 1,000 deep on this side.
            self._with(part, scope.outer)
            odd = (
                part.args.get("by_name")
                or part.args.get("order")
                or part.args.get("distinct") is not False
            )
            plain = plain and isinstance(part, exp.Union) and not odd
            parts.insert(0, part.expression)
            part = part.this
        lists = [self.query(one, scope.outer, top=top and plain) for one in [part, *parts]]
        if not any(value.masked for columns in lists for _, value in columns):
            return [(name, Value()) for name, _ in lists[0]]
        complete = len({len(columns) for columns in lists}) == 1 and all(
            name is not None for columns in lists for name, _ in columns
        )
        places = list(zip(*lists, strict=True)) if complete else []
        values = [[value for _, value in place] for place in places]
        if (
            not complete
            or query.args.get("by_name")
            or not (self._view or (top and plain and all(map(self._side_by_side, values))))
        ):
            hint = (
                "use UNION ALL as the outermost query, without ORDER BY, or send two queries;"
                " masked beside masked, NULL or a plain column"
            )
            raise RefusedError(
                "masked", "a masked column cannot stand in this set operation", hint, node=query
            )
        names = [name for name, _ in lists[0]]
        return list(zip(names, map(self._united, values), strict=True))

    def _united(self, values: list[Value]) -> Value:
        """Return what one column of a set operation is. In a view, masked columns of one type stay
        a masked column.
        """
        value = merged(values)
        alike = self._view and len({one.kind for one in values}) == 1
        return value if alike else Value(value.masked)

    def _side_by_side(self, values: list[Value]) -> bool:
        """Return whether a UNION ALL may have these in one column: a cast to what they have in
        common must not fail by a value.
        """
        kinds = [value.kind for value in values if value.kind]
        return not any(value.masked for value in values) or (
            all(value.kind or value.masked for value in values)
            and all(self._alike(kinds[0], kind) for kind in kinds)
        )

    def _alike(self, one: str, other: str) -> bool:
        """Return whether comparing two types casts no text: DuckDB fails on the first text that is
        no number.
        """
        return (
            self._dialect != "duckdb"
            or "NULL" in (one, other)
            or bool(_TEXT.search(one)) == bool(_TEXT.search(other))
        )

    def _with(self, query: exp.Expr, outer: Scope | None) -> None:
        for cte in query.args["with_"].expressions if query.args.get("with_") else ():
            self._cte(cte, outer)

    def _cte(self, cte: exp.Expr, outer: Scope | None) -> Columns:
        if id(cte) not in self._ctes:
            # For a use within itself: no union in it holds masked columns.
            self._ctes[id(cte)] = UNKNOWN
            self._ctes[id(cte)] = self._renamed(self.query(cte.this, outer), cte)
        return self._ctes[id(cte)]

    # FROM

    def _join(self, join: exp.Expr, scope: Scope) -> None:
        sources, star = self._source(join if isinstance(join, exp.Lateral) else join.this, scope)
        using = [self._key(name) for name in join.args.get("using") or ()]
        method = str(join.args.get("method") or "").upper()
        if method == "NATURAL":
            names = {name for name, _ in star}
            using = [name for name, _ in scope.star if name is not None and name in names]
            if None in names | {name for name, _ in scope.star} and any(
                value.masked for _, value in scope.star + star
            ):
                raise _refused("joined in this way", join)
        for name in using:
            left, right = (
                merged([value for column, value in side if column == name])
                for side in (scope.star, star)
            )
            self._check_joined(left, right, join)
        common = [(name, value) for name, value in scope.star if name in using]
        rest = [(name, value) for name, value in star if name not in using]
        if self._dialect == "postgres" and common:
            scope.star = [*common, *[column for column in scope.star if column[0] not in using]]
        scope.star = scope.star + (
            [] if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI") else rest
        )
        scope.sources += sources
        if not isinstance(join, exp.Lateral):
            self._open(child_nodes(join, "this", "on", "using"), scope)

    def _check_joined(self, one: Value, other: Value, node: exp.Expr) -> None:
        both = one.masked and other.masked and one.kind and other.kind
        if (one.masked or other.masked) and not (both and self._alike(one.kind, other.kind)):
            raise _refused("compared with an open column or one of another type", node)

    def _source(self, node: exp.Expr, scope: Scope) -> tuple[list[Source], Columns]:
        """Return the sources that a table, subquery or join in brackets is, and what `*` makes of
        it.
        """
        done: tuple[str, ...] = ("this", "alias", "joins", "with_", "db", "catalog")
        self._with(node, scope)
        self._unread.discard(id(node))
        pivoted = isinstance(node, exp.Pivot) or node.args.get("pivots")
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            table = self._tables.get(id(node))
            cte = cte_of(node, self._dialect) if table is None else None
            columns = (
                self._columns(table)
                if table is not None
                else UNKNOWN
                if cte is None
                else self._cte(cte, scope)
            )
        elif holds_query(node) or (isinstance(node, exp.Lateral) and holds_query(node.this)):
            columns = self.query(node.this, scope)
        elif isinstance(node, exp.Subquery | exp.Paren | exp.Pivot) and isinstance(
            node.this, exp.Table | exp.Subquery | exp.Paren | exp.Pivot
        ):
            sources, columns = self._source(node.this, scope)
            if not node.alias and not pivoted:
                return self._more_joins(node, sources, columns, scope)
        else:
            columns = UNKNOWN
            done = ("alias", "joins")
        if pivoted:
            if any(value.masked for _, value in columns):
                raise _refused(
                    "pivoted", node, "pivot a subquery of open columns: (SELECT a, b FROM t)"
                )
            columns = UNKNOWN
        self._open(child_nodes(node, *done), scope)
        columns = self._renamed(columns, node)
        return self._more_joins(node, [Source(self._key(_alias_of(node)), columns)], columns, scope)

    def _more_joins(
        self, node: exp.Expr, sources: list[Source], star: Columns, scope: Scope
    ) -> tuple[list[Source], Columns]:
        """Add the joins that stand within a pair of brackets."""
        if not (joins := node.args.get("joins")):
            return sources, star
        within = Scope(scope, sources=sources, star=star)
        for join in joins:
            self._join(join, within)
        for join in joins:
            self._condition(join.args.get("on"), within)
        return within.sources, within.star

    def _renamed(self, columns: Columns, node: exp.Expr) -> Columns:
        """Return the columns under the names of an alias, as in `AS t(a, b)`."""
        alias = node.args.get("alias")
        names = (
            [self._key(name) for name in alias.args.get("columns") or ()]
            if isinstance(alias, exp.TableAlias)
            else []
        )
        if names and any(name is None for name, _ in columns):
            masked = any(value.masked for _, value in columns)
            columns = [*[(name, Value(masked)) for name in names], *columns]
        elif names:
            columns = [
                *zip(names, [value for _, value in columns], strict=False),
                *columns[len(names) :],
            ]
        self._remember(columns)
        return columns

    # The SELECT list

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
        """Return whether an expression is one that may hold masked columns in the outermost SELECT
        list.
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
            lists = [
                source.columns
                for one in scope.chain()
                for source in one.sources
                if source.name == name
            ]
            columns = lists[0] if lists else UNKNOWN
            unclear = len(lists) != 1 or item.args.get("db") is not None
        else:
            columns = scope.star
            unclear = not scope.sources
        if (
            unclear or any(value for key, value in star.args.items() if key != "except_")
        ) and scope.any_masked():
            raise _refused("part of this *", item, "write out the columns that you want")
        without = {
            self._key(bare(node).this if isinstance(node, exp.Column) else node)
            for node in star.args.get("except_") or ()
        }
        self._open(child_nodes(star, "except_"), scope)
        return [(name, value) for name, value in columns if name not in without]

    # Clauses

    def _sorted(self, query: exp.Expr, scope: Scope) -> None:
        if (order := query.args.get("order")) is not None:
            self._by_itself(order.expressions, scope)
            everything = any(isinstance(part.this, exp.Var) for part in order.expressions)
            self._unused(scope.computed if everything else [], "sorted by")

    def _unused(self, items: list[exp.Expr], what: str) -> None:
        if items:
            raise _refused(
                f"{what} when something is computed from it",
                items[0],
                "use the columns by themselves",
            )

    def _by_itself(self, nodes: Iterable[exp.Expr | None], scope: Scope) -> None:
        """Check what is grouped or sorted by: columns by themselves, or places in the SELECT
        list.
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
                    raise _refused(
                        "sorted or grouped by when something is computed from it",
                        core,
                        "use the columns by themselves",
                    )
            elif core is not None:
                self._place(core, scope)
                self._open([core], scope)

    def _place(self, node: exp.Expr, scope: Scope) -> None:
        """Check a place in the SELECT list; SQLite takes `2 COLLATE NOCASE` for one, too."""
        number = node
        while isinstance(number, exp.Paren | exp.Collate | exp.Neg):
            number = number.this
        if isinstance(number, exp.Literal) and not number.is_string:
            place = int(number.name) if number.name.isdecimal() else 0
            known = number is node and not any(name is None for name, _ in scope.items[:place])
            items = scope.items[place - 1 : place] if known else scope.items
            if any(value.masked and not (value.kind and known) for _, value in items):
                raise _refused(
                    "sorted or grouped by when something is computed from it",
                    node,
                    "use the columns by themselves",
                )

    def _condition(self, root: exp.Expr | None, scope: Scope) -> None:
        """Check a condition: what it asks of a masked column must be a comparison that the rule
        knows.
        """
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
                stack += node.iter_expressions()
            elif node is not None and not self._compares(node, scope):
                self._open([node], scope)

    def _compares(self, node: exp.Expr, scope: Scope) -> bool:
        """Return whether a node compares a masked column with NULL, with values that are written
        out, or with a masked column.
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
        """Return whether a node is a value that an engine compares with a column of this type
        without casting the column.
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

    # Expressions

    def _open(self, roots: Iterable[exp.Expr], scope: Scope) -> None:
        """Check expressions whose value goes anywhere: they hold open columns only, but may count
        masked ones.
        """
        stack = list(roots)
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Select | exp.SetOperation) or holds_query(node):
                columns = self.query(node, scope)
                if any(value.masked for _, value in columns) and not isinstance(
                    node.parent, exp.Exists
                ):
                    raise _refused("used in this way", node)
            elif isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                if self._meaning(node, scope).masked:
                    raise _refused("used in this way", node)
            elif isinstance(node, exp.Identifier):
                if self._named(self._key(node), scope).masked:
                    raise _refused("used in this way", node)
            elif isinstance(node, (*_NAMELESS, exp.Column)):
                if scope.any_masked() and not (
                    isinstance(node, exp.Star) and isinstance(node.parent, exp.Count)
                ):
                    raise _refused(
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
        """Return what of a count is not a column by itself."""
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
        """Check all of a window but its function. Some functions and frames compute with what they
        are ordered by.
        """
        self._by_itself(window.args.get("partition_by") or (), scope)
        function = window.this.this if isinstance(window.this, exp.Filter) else window.this
        ranked = isinstance(function, _RANKS) and window.args.get("spec") is None
        order = window.args.get("order")
        if ranked and order is not None:
            self._by_itself(order.expressions, scope)
        done = ("this", "partition_by", "alias", *(["order"] if ranked else []))
        self._open(child_nodes(window, *done), scope)

    # Names

    def _meaning(self, column: exp.Column, scope: Scope) -> Value:
        """Return what a column name means, all that it may mean taken together."""
        *parts, name = [self._key(part) for part in column.parts]
        if not parts:
            return self._named(name, scope)
        values = scope.find(name, parts[-1])
        sources = [
            source for one in scope.chain() for source in one.sources if source.name == parts[-1]
        ]
        if not values and any(value.masked for part in parts for value in scope.find(part)):
            return Value(masked=True)  # a field of a masked value
        if (
            not values
            and self._dialect == "postgres"
            and any(value.masked for source in sources for _, value in source.columns)
        ):
            # `t.text` is `CAST(t AS text)` there, and `t.to_json` is `to_json(t)`.
            raise RefusedError(
                "column",
                f"{parts[-1]!r} has no column {name!r}",
                "see describe_tables for its columns",
                node=column,
            )
        return merged(
            values
            or [Value(masked=name in self._masked_names and (not sources or name in ROW_IDS))]
        )

    def _named(self, name: str, scope: Scope) -> Value:
        values = scope.find(name)
        for one in scope.chain():  # the name of a source is its whole row
            rows = [
                source for source in one.sources if source.name == name and not source.values(name)
            ]
            values += [
                Value(masked=True)
                for source in rows
                if any(value.masked for _, value in source.columns)
            ]
        return merged(values or [Value(masked=name in self._masked_names)])


def _alias_of(node: exp.Expr) -> exp.Expr | None:
    """Return the name that a source goes by."""
    alias = node.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) else alias
    return (
        name if name is not None else node.this if isinstance(node.this, exp.Identifier) else None
    )


def _refused(what: str, node: exp.Expr, hint: str = _ALONE + _OUTERMOST) -> RefusedError:
    return RefusedError("masked", f"a masked column cannot be {what}", hint, node=node)
