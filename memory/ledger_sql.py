"""Read the tables and filters out of a query's text; what does not parse has none."""

from collections.abc import Iterator
from functools import lru_cache

from sqlglot import exp

from longtable.tools.sql.parsing import RefusedError, statement, written

MOST_SQL = 20_000
"""Characters of SQL past which no tree is built: the line keeps its SQL, without tables and filters."""
MOST_FILTERS = 12
FILTER_CHARS = 160


def tables_in(sql: str, dialect: str = "") -> tuple[str, ...]:
    """Return the names of the tables a query reads, in order of first use, without its own CTEs."""
    return _read(sql, dialect)[0]


def filters_in(sql: str, dialect: str = "") -> tuple[str, ...]:
    """Return the conditions of a query's WHERE and HAVING, and-ed ones apart, in order."""
    return _read(sql, dialect)[1]


@lru_cache(maxsize=512)
def _read(sql: str, dialect: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(sql) > MOST_SQL:
        return (), ()
    try:
        tree = statement(sql, dialect)
        return _tables(tree), tuple(dict.fromkeys(_conditions(tree, dialect)))[:MOST_FILTERS]
    except (RefusedError, RecursionError, ValueError):
        return (), ()


def _tables(tree: exp.Expr) -> tuple[str, ...]:
    own = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    # Breadth-first order mixes scopes; the text's order is what a reader expects.
    names = [".".join(part.name for part in table.parts) for table in tree.find_all(exp.Table, bfs=False)]
    return tuple(dict.fromkeys(name for name in names if name and name.casefold() not in own))


def _conditions(tree: exp.Expr, dialect: str) -> Iterator[str]:
    for clause in tree.find_all(exp.Where, exp.Having, bfs=False):
        parts = clause.this.flatten() if isinstance(clause.this, exp.And) else [clause.this]
        for part in parts:
            text = " ".join(written(part, dialect).split())
            yield text if len(text) <= FILTER_CHARS else f"{text[: FILTER_CHARS - 1]}…"
