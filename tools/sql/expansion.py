"""Limit what a query reads and computes after the engine has expanded its CTEs, views and named
expressions.

An engine expands these while it prepares a query. If each of 30 CTEs names the previous CTE twice,
the query has 2^30 sources. SQLite's `prepare` took 8 GB for such a query, and no limit or interrupt
stops it. Here each CTE and view is counted only once, so the time for counting is linear in the
length of the text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from sqlglot import exp

from longtable.tools.catalog import Catalog, Expansion, fold
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import RefusedError, children_of, statement
from longtable.tools.sql.scope import child_nodes, cte_of, resolved_table

MAX_SOURCES = 1_000
MAX_REFERENCES = 10_000
"""The most column references in the expanded query. Literals in expanded parts count too. With
16,000 of them in one expression, DuckDB takes 1.8 s and 95 MB to read the query, and twice as many
take twice as much.
"""

_MAX_OF_VIEW = MAX_REFERENCES // 4
"""The most column references in one view. The author of a view may write more than the author of a
query, but a query must still be able to use the view a few times.
"""

Columns = Sequence[tuple[str, int]]
"""For each column, in order: its folded name, and the number of column references it expands to."""


def check_expansion(tree: exp.Expr, dialect: str, catalog: Catalog) -> None:
    """Raise `RefusedError` if the expanded query has more than `MAX_SOURCES` sources or
    `MAX_REFERENCES` column references.
    """
    _Expander(dialect, catalog).statement(tree)


@dataclass
class _Scope:
    """The names that one SELECT knows. The names of the SELECT around it (`outer`) are
    known too.
    """

    outer: "_Scope | None" = None
    names: dict[str, int] = field(default_factory=dict)
    """For each named expression, its number of column references. If two have the same name, the
    larger number counts.
    """
    tables: dict[str, Columns] = field(default_factory=dict)
    windows: dict[str, exp.Expr | int] = field(default_factory=dict)
    """Each named window. After its first use, the number of column references in it."""
    clauses: list[exp.Expr] = field(default_factory=list)
    """Expressions that are counted after the SELECT items, because they may use aliases of these
    items.
    """

    def add(self, name: str, references: int) -> None:
        self.names[name] = max(references, self.names.get(name, 1))

    def references(self, column: exp.Column) -> int:
        # A struct's field looks like a table's column.
        parts = [fold(part.name) for part in column.parts]
        most = 1
        scope = self
        while True:
            most = max(most, *(scope.names.get(part, 1) for part in parts))
            if len(parts) == 1 and parts[0] not in scope.names:  # a table's name is its whole row
                most = max(most, _sum(scope.tables.get(parts[0], ())))
            if scope.outer is None:
                return most
            scope = scope.outer

    def columns(self, star: exp.Expr) -> Columns:
        table = fold(star.table) if isinstance(star, exp.Column) else ""
        return (
            self.tables[table]
            if table in self.tables
            else list(chain.from_iterable(self.tables.values()))
        )


def _all_columns(sources: Iterable[tuple[str, Columns]]) -> Columns:
    return list(chain.from_iterable(columns for _, columns in sources))


class _Expander:
    """Counts the sources and references of a statement in one running total. Where a recursive CTE
    names itself, this counts as one source.
    """

    def __init__(self, dialect: str, catalog: Catalog) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._ctes: dict[int, Expansion] = {}
        self._views: dict[str, Expansion] = {}
        self._used: set[int] = set()
        self._sources = self._references = self._leaves = 0
        self._counted: exp.Expr | None = None

    def statement(self, tree: exp.Expr) -> None:
        self._query(tree, None)
        for cte, size in self._ctes.items():
            if cte not in self._used:
                self._add(tree, size.sources, size.references)

    def _add(self, node: exp.Expr, sources: int, references: int) -> None:
        self._sources += sources
        self._references += references
        cte = self._counted
        what = "the query" if cte is None else f"the expression {cte.alias!r} of WITH"
        if self._sources > MAX_SOURCES:
            raise RefusedError(
                "sources",
                f"{what} reads more than {MAX_SOURCES:,} tables and subqueries after its CTEs and"
                " views are expanded",
                "use each CTE and view fewer times: every use is expanded again",
                node=node if cte is None else cte.args["alias"],
            )
        if self._references > MAX_REFERENCES:
            reason = f"{what} expands to more than {MAX_REFERENCES:,} column references"
            raise RefusedError(
                "growth", reason, "refer to each named expression fewer times", node=node
            )

    def _query(self, query: exp.Expr, outer: _Scope | None) -> Columns:
        scope = _Scope(outer)
        if isinstance(query, exp.SetOperation):
            columns = self._set_operation(query, scope)
        elif isinstance(query, exp.Select):
            columns = self._select(query, scope)
        else:
            columns = _all_columns(self._source(query, scope))
        for clause in scope.clauses:
            self._expression(clause, scope)
        return columns

    def _set_operation(self, query: exp.SetOperation, scope: _Scope) -> Columns:
        columns: Columns = ()
        part: exp.Expr = query
        while isinstance(part, exp.SetOperation):
            # A union of 1,000 parts is 1,000 deep on this side.
            self._with(part, scope.outer)
            scope.clauses += child_nodes(part, "this", "expression", "with_")
            columns = _larger(self._query(part.expression, scope.outer), columns)
            part = part.this
        columns = _larger(self._query(part, scope.outer), columns)
        scope.names.update(columns)
        return columns

    def _select(self, select: exp.Select, scope: _Scope) -> Columns:
        self._with(select, scope.outer)
        joins = [
            select.args.get("from_"),
            *(select.args.get("joins") or ()),
            *(select.args.get("laterals") or ()),
        ]
        for join in filter(None, joins):
            self._join(join, scope)
        for window in select.args.get("windows") or ():
            scope.windows[fold(window.name)] = window
        columns: list[tuple[str, int]] = []
        for item in select.expressions:
            added = self._item(item, scope)
            columns += added
            if dialect_of(self._dialect).aliases_in_items:
                for name, references in added:
                    scope.add(name, references)
        for name, references in columns:
            scope.add(name, references)
        scope.clauses += child_nodes(select, "expressions", "from_", "joins", "laterals", "with_")
        return columns

    def _window(self, name: str, scope: _Scope) -> int:
        window = scope.windows.get(name, 0)
        if isinstance(window, int):
            return window
        scope.windows[name] = 0  # for a use within itself
        scope.windows[name] = references = self._expression(window, scope)
        return references

    def _item(self, item: exp.Expr, scope: _Scope) -> Columns:
        before = self._references
        if item.is_star:
            starred = list(scope.columns(item))
            self._add(item, 0, _sum(starred))
            for changed in item.find_all(exp.Alias):  # of REPLACE and RENAME
                starred.append((fold(changed.alias), max(1, self._expression(changed, scope))))
            return starred
        references = self._expression(item, scope)
        if self._references == before:
            self._add(item, 0, 1)
        if item.find(exp.Columns):
            columns = scope.columns(exp.Star())
            times = -(-references // max(1, _sum(columns)))
            return [(name, size * times) for name, size in columns]
        return [(fold(item.alias_or_name), max(1, references))]

    def _expression(self, root: exp.Expr, scope: _Scope) -> int:
        """Count an expression with its subqueries. Return how many columns and literals each use of
        the expression's name adds.
        """
        before = self._references + self._leaves
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Select | exp.SetOperation | exp.Subquery | exp.Table):
                self._query(node, scope)
            elif isinstance(node, exp.Star | exp.Columns) or (
                isinstance(node, exp.Column) and node.is_star
            ):
                if not isinstance(node.parent, exp.Count):
                    self._add(node, 0, _sum(scope.columns(node)))
            elif isinstance(node, exp.Column):
                self._add(node, 0, scope.references(node))
            else:
                if isinstance(node, exp.Window):
                    self._add(node, 0, self._window(fold(node.alias), scope))
                children = children_of(node)
                self._leaves += not children
                stack += children
        return self._references + self._leaves - before

    def _join(self, join: exp.Expr, scope: _Scope) -> list[tuple[str, Columns]]:
        sources = self._source(join if isinstance(join, exp.Lateral) else join.this, scope)
        scope.clauses += child_nodes(join, "this", "alias")
        for table, columns in sources:
            scope.tables[table] = [*scope.tables.get(table, ()), *columns]
            for name, references in columns:
                scope.add(name, references)
        return sources

    def _source(self, source: exp.Expr, scope: _Scope) -> list[tuple[str, Columns]]:
        """Count a table or subquery and everything in it, and return its columns by table name. A
        join in brackets has several tables.
        """
        self._with(source, scope.outer)
        sources: list[tuple[str, Columns]]
        if isinstance(source, exp.Table | exp.Subquery):
            self._add(source, 1, 0)
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            sources = [(fold(source.name), self._table(source, scope))]
        elif isinstance(source.this, exp.Select | exp.SetOperation):
            sources = [("", self._query(source.this, scope))]
        elif isinstance(source.this, exp.Table | exp.Subquery | exp.Paren | exp.Values):
            sources = self._source(source.this, scope)
        else:  # a function or VALUES: each column may hold all that is in it
            references = sum(
                self._expression(child, scope) for child in child_nodes(source, "alias", "joins")
            )
            names = source.alias_column_names or [source.alias]
            sources = [("", [(fold(name), max(1, references)) for name in names])]
        if source.alias:
            sources = [(fold(source.alias), _renamed(_all_columns(sources), source))]
        if isinstance(source, exp.Table | exp.Subquery):
            scope.clauses += child_nodes(source, "this", "db", "catalog", "alias", "joins", "with_")
            for join in source.args.get("joins") or ():
                sources += self._join(join, scope)
        return sources

    def _table(self, table: exp.Table, scope: _Scope) -> Columns:
        cte = cte_of(table, self._dialect)
        size = self._view(fold(table.name)) if cte is None else self._cte(cte, scope)
        if cte is not None:
            self._used.add(id(cte))
        self._add(table, size.sources, size.references)
        if cte is not None or size.columns:
            return size.columns
        known = resolved_table(table, self._catalog, self._dialect)
        return [(fold(column.name), 1) for column in known.columns] if known else [("", 1)]

    def _with(self, query: exp.Expr, outer: _Scope | None) -> None:
        # In the order of the text: most CTEs name earlier ones only, so that the count is not
        # recursive.
        for cte in query.args["with_"].expressions if query.args.get("with_") else ():
            self._cte(cte, outer)

    def _cte(self, cte: exp.Expr, outer: _Scope | None) -> Expansion:
        if id(cte) not in self._ctes:
            self._ctes[id(cte)] = Expansion()  # for a use within itself
            self._ctes[id(cte)] = self._apart(cte.this, outer, cte)
        return self._ctes[id(cte)]

    def _apart(self, query: exp.Expr, outer: _Scope | None, cte: exp.Expr | None) -> Expansion:
        """Count a query on its own, starting from zero. Each use of the query later adds this count
        to the running total.
        """
        outside = self._sources, self._references, self._leaves, self._counted
        self._sources = 0
        self._references = 0
        self._leaves = 0
        self._counted = cte
        try:
            columns = self._query(query, outer)
            return Expansion(
                self._sources,
                self._references + self._leaves,
                _renamed(columns, cte) if cte else columns,
            )
        finally:
            self._sources, self._references, self._leaves, self._counted = outside

    def _view(self, name: str) -> Expansion:
        """Count a view; a name that is not that of a view counts zero. If several schemas have a
        view of this name, the view with the most sources counts.
        """
        if (known := self._catalog.view_expansions.get(name) or self._views.get(name)) is None:
            self._views[name] = Expansion()  # for a use within itself
            texts = [
                text for (_, view), text in self._catalog.view_sql.items() if fold(view) == name
            ]
            known = max(
                map(self._view_text, texts), default=Expansion(), key=lambda size: size.sources
            )
            self._catalog.view_expansions[name] = known
        return known

    def _view_text(self, text: str) -> Expansion:
        try:
            tree = statement(text, self._dialect)
            schema, query = (
                (tree.this, tree.expression) if isinstance(tree, exp.Create) else (None, tree)
            )
            size = self._apart(query, None, None)
        except RefusedError as refused:
            if refused.rule == "syntax":  # an author's text in syntax that sqlglot does not know
                return Expansion()
            # Too long to count: it may be used once.
            return Expansion(
                MAX_SOURCES if refused.rule == "sources" else MAX_SOURCES // 2, _MAX_OF_VIEW
            )
        names = (
            [fold(name.name) for name in schema.expressions]
            if isinstance(schema, exp.Schema)
            else []
        )
        names += [name for name, _ in size.columns[len(names) :]]
        columns = [
            (name, min(references, _MAX_OF_VIEW))
            for name, (_, references) in zip(names, size.columns, strict=False)
        ]
        return Expansion(size.sources, min(size.references, _MAX_OF_VIEW), columns)


def _sum(columns: Columns) -> int:
    return sum(references for _, references in columns)


def _larger(columns: Columns, others: Columns) -> Columns:
    """Return the columns of a union: the names come from its first part, and each column counts as
    in the part where it is largest.
    """
    sizes = [references for _, references in others] + [1] * len(columns)
    return [
        (name, max(references, size))
        for (name, references), size in zip(columns, sizes, strict=False)
    ]


def _renamed(columns: Columns, source: exp.Expr) -> Columns:
    names = source.alias_column_names
    return [
        (fold(name), references) for name, (_, references) in zip(names, columns, strict=False)
    ] + list(columns[len(names) :])
