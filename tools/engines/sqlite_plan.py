"""Read what SQLite itself says a query would do: the loops of `EXPLAIN QUERY PLAN`, and how many rows a table has."""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp

from longtable.tools.catalog import fold, quoted
from longtable.tools.sql.cost import Plan, Scan, product
from longtable.tools.sql.parsing import statement
from longtable.tools.sql.refusal import RefusedError

DERIVED_ROWS = 1_000.0
"""What a subquery is taken for where the plan reads its result again: it says nothing of its size, and most are grouped."""
LEAST_ROW_BYTES = 4

# A SEARCH that uses nothing is a scan for the least or largest value.
_SCAN = re.compile(r"SCAN (?!CONSTANT ROW)(?:TABLE )?(?P<name>.+?)(?: USING .*| AS .*| VIRTUAL TABLE .*| LEFT-JOIN| EXISTS)?$")
_SEARCH = re.compile(r"SEARCH (?:TABLE )?(?P<name>(?:(?! USING ).)+?)(?: LEFT-JOIN| EXISTS)?$")

Step = tuple[int, int, str]
"""Number, number of the step above it, and what it does."""


@dataclass(frozen=True)
class _Work:
    scans: tuple[Scan, ...]
    pairs: float


def read_plan(steps: Sequence[Step], rows_of: Callable[[str], float | None]) -> Plan:
    """Return the plan; `rows_of` gives a table's rows by the name or alias that the plan calls it, None for what is no table."""
    work = _work(0, 1.0, steps, rows_of)
    return Plan(scans=work.scans, pairs=work.pairs)


def _work(above: int, times: float, steps: Sequence[Step], rows_of: Callable[[str], float | None]) -> _Work:
    """Add up the steps below one. Scans side by side are loops within each other."""
    loops, scans, pairs, inner = 0, [], 0.0, times
    for number, parent, what in steps:
        if parent != above:
            continue
        if found := _SCAN.match(what) or _SEARCH.match(what):
            rows = rows_of(found["name"])
            if rows is not None:
                scans.append(Scan(found["name"], rows))
            loops, inner = loops + 1, product((inner, DERIVED_ROWS if rows is None else rows))
        # Once for each row of the loops around it, where it looks at that row.
        below = _work(number, inner if what.startswith("CORRELATED") else 1.0, steps, rows_of)
        scans += below.scans
        pairs = max(pairs, below.pairs)
    if loops and (loops > 1 or times > 1.0):
        pairs = max(pairs, inner)
    return _Work(tuple(scans), pairs)


def aliases(sql: str, view_sql: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the folded names of tables by the folded names that a plan may call them, those within views too."""
    known: dict[str, set[str]] = {}
    todo, seen = [sql], set()
    while todo:
        with suppress(RefusedError):
            for node in statement(todo.pop(), "sqlite").find_all(exp.Table):
                name = fold(node.name)
                known.setdefault(fold(node.alias or node.name), set()).add(name)
                known.setdefault(name, set()).add(name)
                if name in view_sql and name not in seen:
                    seen.add(name)
                    todo.append(view_sql[name])
    return known


def table_rows(connection: sqlite3.Connection, table: str, *, file_bytes: int) -> float | None:
    """Return about how many rows a table has, at once; None for what has none of its own (a view, a subquery).

    The largest rowid, but never more than the file could hold; without rowids what ANALYZE noted.
    """
    try:
        row = connection.execute(f"SELECT max(rowid) FROM {quoted(table)}").fetchone()
        if isinstance(row[0], int):
            return float(min(max(0, row[0]), file_bytes // LEAST_ROW_BYTES))
        if row[0] is None and _is_table(connection, table):
            return 0.0
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            rows = connection.execute("SELECT max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE tbl = ? COLLATE NOCASE", (table,))
            if (noted := rows.fetchone()[0]) is not None:
                return float(noted)
    return None


def _is_table(connection: sqlite3.Connection, name: str) -> bool:
    sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
    return connection.execute(sql, (name,)).fetchone() is not None
