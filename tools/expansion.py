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
