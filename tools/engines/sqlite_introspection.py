"""Read the catalogue of a SQLite file, and the plan of a query."""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlglot import exp

from longtable.tools.catalog import Column, ForeignKey, Reflected, Table, fold, quoted
from longtable.tools.sql.parsing import RefusedError, statement
from longtable.tools.sql.verdict import Plan, Scan, product

HIDDEN_COLUMN = 1  # of a virtual table
GENERATED_COLUMNS = (2, 3)


def reflect_sqlite(connection: sqlite3.Connection) -> Reflected:
    """Read every table and view. SQLite's own tables and the shadow tables of virtual tables are
    left out.
    """
    rows = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
    ).fetchall()
    shadows = shadow_tables(connection, virtual_tables(connection))
    objects = [
        (str(table), str(kind), str(sql or ""))
        for table, kind, sql in rows
        if not fold(str(table)).startswith("sqlite_") and fold(str(table)) not in shadows
    ]
    info = {table: _columns(connection, table) for table, _, _ in objects}
    keys = {fold(table): (table, _primary_key(info[table])) for table, _, _ in objects}
    tables = []
    for table, kind, sql in objects:
        found = Table(
            name=table,
            kind="view" if kind == "view" else "table",
            columns=tuple(_sqlite_column(row, sql) for row in info[table]),
            primary_key=keys[fold(table)][1],
            foreign_keys=_foreign_keys(connection, table, keys) if kind == "table" else (),
        )
        tables.append(found)
    views = {("main", table): sql for table, kind, sql in objects if kind == "view"}
    return Reflected(tuple(tables), views, database_names=frozenset({"main"}))


def virtual_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the virtual tables."""
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'"
    )
    return [str(row[0]) for row in rows]


def shadow_tables(connection: sqlite3.Connection, virtual: Sequence[str]) -> frozenset[str]:
    """Return the folded names of the tables that hold the data of these virtual tables."""
    if not virtual or sqlite3.sqlite_version_info < (3, 37):
        return frozenset()
    rows = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'"
    )
    starts = tuple(fold(name) + "_" for name in virtual)
    return frozenset(fold(str(row[0])) for row in rows if fold(str(row[0])).startswith(starts))


def _columns(connection: sqlite3.Connection, table: str) -> list[Any]:
    with suppress(sqlite3.OperationalError):  # a view over a table that is gone
        return [
            row
            for row in connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
            if row[6] != HIDDEN_COLUMN
        ]
    return []


def _sqlite_column(row: Sequence[Any], table_sql: str) -> Column:
    """Return the column that a row of `PRAGMA table_xinfo` describes."""
    generated_by = table_sql if row[6] in GENERATED_COLUMNS else ""
    nullable = not row[3] and not row[5]
    return Column(str(row[1]), str(row[2] or ""), nullable=nullable, generated_by=generated_by)


def _primary_key(info: list[Any]) -> tuple[str, ...]:
    parts = [row for row in info if row[5]]
    parts.sort(key=lambda row: int(row[5]))
    return tuple(str(row[1]) for row in parts)


def _foreign_keys(
    connection: sqlite3.Connection, table: str, keys: dict[str, tuple[str, tuple[str, ...]]]
) -> tuple[ForeignKey, ...]:
    by_id: dict[int, list[Any]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted(table)})"):
        by_id.setdefault(int(row[0]), []).append(row)
    foreign_keys = []
    for _, rows in sorted(by_id.items()):
        rows.sort(key=lambda row: int(row[1]))
        target, target_key = keys.get(fold(str(rows[0][2])), (str(rows[0][2]), ()))
        columns = tuple(str(row[3]) for row in rows)
        # Without named columns the key points at the other table's primary key.
        targets = tuple(str(row[4]) for row in rows) if rows[0][4] is not None else target_key
        if len(targets) == len(columns):
            foreign_keys.append(ForeignKey(columns, target, targets))
    return tuple(foreign_keys)


DERIVED_ROWS = 1_000.0
"""The number of rows assumed for a subquery whose result is read again. SQLite's plan does not give
the size of such a result, and most such subqueries are grouped.
"""
LEAST_ROW_BYTES = 4
_IS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"

# A SEARCH that uses nothing is a scan for the least or largest value.
_SCAN = re.compile(
    r"SCAN (?!CONSTANT ROW)(?:TABLE )?(?P<name>.+?)(?: USING .*| AS .*| VIRTUAL TABLE .*|"
    r" LEFT-JOIN| EXISTS)?$"
)
_SEARCH = re.compile(r"SEARCH (?:TABLE )?(?P<name>(?:(?! USING ).)+?)(?: LEFT-JOIN| EXISTS)?$")

Step = tuple[int, int, str]
"""A step of a plan: its number, the number of the step above it, and its text."""


def sqlite_plan(steps: Sequence[Step], rows_of: Callable[[str], float | None]) -> Plan:
    """Return the plan. `rows_of` returns the number of rows of a table by its name or alias in the
    plan, or None if the name is not that of a table.
    """
    return _plan_below(0, 1.0, steps, rows_of)


def _plan_below(
    above: int, times: float, steps: Sequence[Step], rows_of: Callable[[str], float | None]
) -> Plan:
    """Add up the steps directly below step `above` and everything under them. Several scans at the
    same level are nested loops.
    """
    loops = 0
    scans = []
    pairs = 0.0
    inner = times
    for number, parent, what in steps:
        if parent != above:
            continue
        if step := _SCAN.match(what) or _SEARCH.match(what):
            rows = rows_of(step["name"])
            if rows is not None:
                scans.append(Scan(step["name"], rows))
            loops = loops + 1
            inner = product((inner, DERIVED_ROWS if rows is None else rows))
        # Once for each row of the loops around it, where it looks at that row.
        below = _plan_below(number, inner if what.startswith("CORRELATED") else 1.0, steps, rows_of)
        scans += below.scans
        pairs = max(pairs, below.pairs)
    if loops and (loops > 1 or times > 1.0):
        pairs = max(pairs, inner)
    return Plan(scans=tuple(scans), pairs=pairs)


def aliases(sql: str, view_sql: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the tables that a plan's names may mean, including tables inside views. The keys are
    folded names and aliases; the values are the folded names of the tables.
    """
    known: dict[str, set[str]] = {}
    todo = [sql]
    read = set()
    while todo:
        with suppress(RefusedError):
            for node in statement(todo.pop(), "sqlite").find_all(exp.Table):
                name = fold(node.name)
                known.setdefault(fold(node.alias or node.name), set()).add(name)
                known.setdefault(name, set()).add(name)
                if name in view_sql and name not in read:
                    read.add(name)
                    todo.append(view_sql[name])
    return known


def table_rows(connection: sqlite3.Connection, table: str, *, file_bytes: int) -> float | None:
    """Return the approximate number of rows of a table, without counting them. Return None for a
    view or a subquery, which has no rows of its own.

    The number is the largest rowid, but no more than the file could hold. For a table without
    rowids it is the number that ANALYZE stored.
    """
    try:
        row = connection.execute(f"SELECT max(rowid) FROM {quoted(table)}").fetchone()
        if isinstance(row[0], int):
            return float(min(max(0, row[0]), file_bytes // LEAST_ROW_BYTES))
        if row[0] is None and connection.execute(_IS_TABLE, (table,)).fetchone() is not None:
            return 0.0
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            rows = connection.execute(
                "SELECT max(CAST(stat AS INTEGER)) FROM sqlite_stat1 WHERE tbl = ? COLLATE NOCASE",
                (table,),
            )
            if (noted := rows.fetchone()[0]) is not None:
                return float(noted)
    return None
