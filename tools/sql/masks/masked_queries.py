"""Walk through the queries of a statement. Check the sources, SELECT list and clauses of each query
with the names that it knows.
"""

from sqlglot import exp

from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.masks.masked_items import MaskedItems
from longtable.tools.sql.masks.masked_names import refused
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.scope import (
    UNKNOWN,
    Columns,
    Scope,
    Source,
    Value,
    child_nodes,
    cte_of,
    holds_masks,
    holds_query,
    merged,
)

_SELECT_PARTS = (
    *("expressions", "from_", "joins", "laterals", "with_", "where"),
    *("having", "qualify", "distinct", "group", "order"),
)
"""The parts of a SELECT that are checked separately."""


class MaskedQueries(MaskedItems):
    """Walks through the queries of one statement."""

    def statement(self, tree: exp.Expr) -> Columns:
        columns = self.query(tree, None, top=True)
        if self._unread:  # in a place that the rule does not know
            raise refused("read in this way", tree)
        return columns

    def query(self, query: exp.Expr, outer: Scope | None, *, top: bool = False) -> Columns:
        """Check a query and return its columns. `top` is True if its SELECT list is the
        outermost.
        """
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
        joins = _joins_of(select)
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
            self._grouped(group, scope)
        self._sorted(select, scope)
        self._open(child_nodes(select, *_SELECT_PARTS), scope)
        return scope.items

    def _grouped(self, group: exp.Expr, scope: Scope) -> None:
        self._by_itself(group.expressions, scope)
        grouped = scope.computed if group.args.get("all") else []
        self._unused([item for item in grouped if not item.find(exp.AggFunc)], "grouped")
        self._open(child_nodes(group, "expressions"), scope)

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
        if not any(map(holds_masks, lists)):
            return [(name, Value()) for name, _ in lists[0]]
        same_width = len({len(columns) for columns in lists}) == 1
        complete = same_width and all(map(_all_named, lists))
        places = list(zip(*map(_values_of, lists), strict=True)) if complete else []
        values = list(map(list, places))
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
        """Return the value of one column of a set operation. In a view, if all parts have masked
        columns of the same type, the result still counts as a masked column used by itself.
        """
        value = merged(values)
        alike = self._view and len({one.kind for one in values}) == 1
        return value if alike else Value(value.masked)

    def _with(self, query: exp.Expr, outer: Scope | None) -> None:
        for cte in query.args["with_"].expressions if query.args.get("with_") else ():
            self._cte(cte, outer)

    def _cte(self, cte: exp.Expr, outer: Scope | None) -> Columns:
        if id(cte) not in self._ctes:
            # For a use within itself: no union in it holds masked columns.
            self._ctes[id(cte)] = UNKNOWN
            self._ctes[id(cte)] = self._renamed(self.query(cte.this, outer), cte)
        return self._ctes[id(cte)]

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
                raise refused("joined in this way", join)
        for name in using:
            left = merged([value for column, value in scope.star if column == name])
            right = merged([value for column, value in star if column == name])
            self._check_joined(left, right, join)
        common = [(name, value) for name, value in scope.star if name in using]
        rest = [(name, value) for name, value in star if name not in using]
        if dialect_of(self._dialect).using_first and common:
            scope.star = [*common, *[column for column in scope.star if column[0] not in using]]
        scope.star = scope.star + (
            [] if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI") else rest
        )
        scope.sources += sources
        if not isinstance(join, exp.Lateral):
            self._open(child_nodes(join, "this", "on", "using"), scope)

    def _source(self, node: exp.Expr, scope: Scope) -> tuple[list[Source], Columns]:
        """Return the sources in a table, a subquery or a join in brackets, and the columns that `*`
        gives for it.
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
                raise refused(
                    "pivoted", node, "pivot a subquery of open columns: (SELECT a, b FROM t)"
                )
            columns = UNKNOWN
        self._open(child_nodes(node, *done), scope)
        columns = self._renamed(columns, node)
        return self._more_joins(node, [Source(self._key(_alias_of(node)), columns)], columns, scope)

    def _more_joins(
        self, node: exp.Expr, sources: list[Source], star: Columns, scope: Scope
    ) -> tuple[list[Source], Columns]:
        """Add the joins inside a pair of brackets."""
        if not (joins := node.args.get("joins")):
            return sources, star
        within = Scope(scope, sources=sources, star=star)
        for join in joins:
            self._join(join, within)
        for join in joins:
            self._condition(join.args.get("on"), within)
        return within.sources, within.star

    def _renamed(self, columns: Columns, node: exp.Expr) -> Columns:
        """Return the columns with the names that an alias gives them, as in `AS t(a, b)`."""
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


def _joins_of(select: exp.Select) -> list[exp.Expr]:
    """Return the FROM clause of a SELECT with its joins."""
    joins = [*(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    first = select.args.get("from_")
    return [join for join in (first, *joins) if join is not None]


def _all_named(columns: Columns) -> bool:
    return all(name is not None for name, _ in columns)


def _values_of(columns: Columns) -> list[Value]:
    return [value for _, value in columns]


def _alias_of(node: exp.Expr) -> exp.Expr | None:
    """Return the name of a source in a query: its alias, or the name of the table. None if it has
    no name.
    """
    alias = node.args.get("alias")
    name = alias.this if isinstance(alias, exp.TableAlias) else alias
    return (
        name if name is not None else node.this if isinstance(node.this, exp.Identifier) else None
    )
