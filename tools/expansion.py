"""Bound the tables and subqueries that a query comes to once the engine has put in its CTEs and views.

An engine does that while it prepares a query. 30 CTEs that name the one before twice are 2^30 sources: SQLite's `prepare` took
8 GB for them, and answers to no limit and no interrupt meanwhile. Each CTE and view is counted once, so counting is linear.
"""

from collections.abc import Iterator

from sqlglot import exp

from longtable.tools.catalog import Catalog, fold
from longtable.tools.parsing import statement
from longtable.tools.refusal import RefusedError
from longtable.tools.scope import cte_of

MAX_SOURCES = 1_000
MAX_REFERENCES = 10_000
"""Columns that one expression comes to. At 16,000 DuckDB takes 1.8 s and 95 MB to read the query, twice that for each doubling."""


def check_sources(tree: exp.Expr, dialect: str, catalog: Catalog) -> None:
    """Raise `RefusedError` for a query that comes to more than `MAX_SOURCES` sources; the place is the CTE or view at fault."""
    written = list(tree.find_all(exp.Table, exp.CTE))
    if len(written) > MAX_SOURCES:
        raise _refused("the query", len(written), written[MAX_SOURCES])
    counts = _Counts(dialect, catalog)
    # In the order of the text: most CTEs name earlier ones only, so that the count is not recursive.
    for cte in tree.find_all(exp.CTE, bfs=False):
        if (size := counts.of_cte(cte)) > MAX_SOURCES:
            raise _refused(f"the expression {cte.alias!r} of WITH", size, cte.args["alias"])
    if (size := counts.of_query(tree)) > MAX_SOURCES:
        largest = max(_sources(tree), key=counts.of_source)
        raise _refused("the query", size, largest)


def check_expressions(tree: exp.Expr, dialect: str) -> None:
    """Raise `RefusedError` where an expression doubles from name to name: `x + x AS x` over itself, or `a + a AS b, b + b AS c`.

    The engine puts an expression in for each use of its name, while it prepares the query: SQLite over subqueries and CTEs,
    DuckDB over the names of one SELECT, too.
    """
    weights = _Weights(dialect)
    for select in tree.find_all(exp.Select, bfs=False):
        weights.of_query(select)


class _Weights:
    """How many columns each named expression comes to, by folded name; of two of one name the larger counts."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._known: dict[int, dict[str, int]] = {}

    def of_query(self, query: exp.Expr) -> dict[str, int]:
        if id(query) not in self._known:
            self._known[id(query)] = {}  # for a use within itself
            self._known[id(query)] = self._of_query(query)
        return self._known[id(query)]

    def _of_query(self, query: exp.Expr) -> dict[str, int]:
        if isinstance(query, exp.SetOperation):
            first, other = self.of_query(query.this), list(self.of_query(query.expression).values())
            return {name: max([size, *other[place : place + 1]]) for place, (name, size) in enumerate(first.items())}
        if not isinstance(query, exp.Select):
            return self.of_query(query.this) if isinstance(query, exp.Subquery) else {}
        known = self._of_sources(query)
        found: dict[str, int] = {}
        for place, item in enumerate(query.expressions):
            if item.is_star:
                found.update(known)
                continue
            size = sum(known.get(fold(column.name), 1) for column in item.find_all(exp.Column))
            size += sum(sum(self.of_query(inner).values()) for inner in item.find_all(exp.Select))
            if size > MAX_REFERENCES:
                reason = f"the expression {item.alias_or_name!r} comes to {size:,} columns once the expressions it names are put in"
                raise RefusedError("growth", reason, f"name each expression fewer times: {MAX_REFERENCES:,} are allowed", node=item)
            name = fold(item.alias_or_name) or str(place)
            found[name] = max(1, size)
            if self._dialect == "duckdb":  # later items may name this one
                known[name] = max(found[name], known.get(name, 1))
        return found

    def _of_sources(self, select: exp.Select) -> dict[str, int]:
        found: dict[str, int] = {}
        parts = [select.args.get("from_"), *(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
        for source in (part.this for part in parts if part is not None):
            named = cte_of(source, self._dialect) if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) else None
            sizes = self.of_query(source if named is None else named.this) if named is not None or isinstance(source, exp.Subquery) else {}
            for alias in (None if named is None else named.args.get("alias"), source.args.get("alias")):
                if isinstance(alias, exp.TableAlias) and alias.columns:
                    sizes = {fold(column.name): size for column, size in zip(alias.columns, sizes.values(), strict=False)}
            for name, size in sizes.items():
                found[name] = max(size, found.get(name, 1))
        return found


def _refused(what: str, size: int, node: exp.Expr) -> RefusedError:
    found = f"{size:,}" if size <= MAX_SOURCES**2 else "millions of"
    return RefusedError(
        "sources",
        f"{what} comes to {found} tables and subqueries once its CTEs and views are put in, {MAX_SOURCES:,} are allowed",
        "name each CTE and view fewer times: each use of one stands for all that it reads",
        node=node,
    )


class _Counts:
    """What CTEs and views come to, each counted once; a recursive use of one counts as one source."""

    def __init__(self, dialect: str, catalog: Catalog) -> None:
        self._dialect, self._views, self._catalog = dialect, catalog.view_sources, catalog
        self._ctes: dict[int, int] = {}

    def of_query(self, query: exp.Expr) -> int:
        return sum(map(self.of_source, _sources(query)))

    def of_source(self, source: exp.Expr) -> int:
        """Return what a table node or a subquery stands for, itself included; what is within a subquery is counted by itself."""
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            return 1
        cte = cte_of(source, self._dialect)
        return 1 + (self.of_view(source) if cte is None else self.of_cte(cte))

    def of_cte(self, cte: exp.Expr) -> int:
        if id(cte) not in self._ctes:
            self._ctes[id(cte)] = 0  # for a use within itself
            self._ctes[id(cte)] = self.of_query(cte.this)
        return self._ctes[id(cte)]

    def of_view(self, table: exp.Table) -> int:
        """Return what a view's text comes to, 0 for a table; of two views of one name in two schemas the larger."""
        name = fold(table.name)
        if name not in self._views:
            texts = [text for (_, view), text in self._catalog.view_sql.items() if fold(view) == name]
            self._views[name] = 0
            self._views[name] = max(map(self._of_text, texts), default=0)
        return self._views[name]

    def _of_text(self, text: str) -> int:
        try:
            return self.of_query(statement(text, self._dialect))
        except RefusedError:
            return 0  # an author's text in syntax that sqlglot does not know


def _sources(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the tables and subqueries of a query, without those in its CTEs."""
    for node in query.walk(prune=lambda node: isinstance(node, exp.CTE)):
        if isinstance(node, exp.Table | exp.Subquery):
            yield node
