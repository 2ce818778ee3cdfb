"""Read the catalogue of a SQLite file by PRAGMA. A view that is broken has no columns, and breaks nothing else."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from longtable.tools.catalog import Column, ForeignKey, Reflected, Table, fold, quoted

HIDDEN_COLUMN = 1  # of a virtual table; 2 and 3 are generated columns, which can be read


def reflect(connection: sqlite3.Connection) -> Reflected:
    """Read every table and view but SQLite's own and the shadow tables of virtual ones."""
    rows = connection.execute("SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid").fetchall()
    shadows = shadow_tables(connection, virtual_tables(connection))
    kept = [
        (str(table), str(kind), str(sql or ""))
        for table, kind, sql in rows
        if not _internal(str(table)) and fold(str(table)) not in shadows
    ]
    info = {table: _columns(connection, table) for table, _, _ in kept}
    keys = {fold(table): (table, _primary_key(info[table])) for table, _, _ in kept}
    tables = tuple(
        Table(
            name=table,
            kind="view" if kind == "view" else "table",
            columns=tuple(Column(str(row[1]), str(row[2] or ""), nullable=not row[3] and not row[5]) for row in info[table]),
            primary_key=keys[fold(table)][1],
            foreign_keys=_foreign_keys(connection, table, keys) if kind == "table" else (),
        )
        for table, kind, _ in kept
    )
    views = {("main", table): sql for table, kind, sql in kept if kind == "view"}
    return Reflected(tables, views, database_names=frozenset({"main"}))


def virtual_tables(connection: sqlite3.Connection) -> list[str]:
    """Name the virtual tables."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'")
    return [str(row[0]) for row in rows]


def shadow_tables(connection: sqlite3.Connection, virtual: Sequence[str]) -> frozenset[str]:
    """Name, folded, the tables that hold the data of these virtual tables."""
    if not virtual or sqlite3.sqlite_version_info < (3, 37):
        return frozenset()
    rows = connection.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'")
    starts = tuple(fold(name) + "_" for name in virtual)
    return frozenset(fold(str(row[0])) for row in rows if fold(str(row[0])).startswith(starts))


def _internal(name: str) -> bool:
    return fold(name).startswith("sqlite_")


def _columns(connection: sqlite3.Connection, table: str) -> list[Any]:
    with suppress(sqlite3.OperationalError):  # a view over a table that is gone
        return [row for row in connection.execute(f"PRAGMA table_xinfo({quoted(table)})") if row[6] != HIDDEN_COLUMN]
    return []


def _primary_key(info: list[Any]) -> tuple[str, ...]:
    return tuple(str(row[1]) for row in sorted((row for row in info if row[5]), key=lambda row: int(row[5])))


def _foreign_keys(connection: sqlite3.Connection, table: str, keys: dict[str, tuple[str, tuple[str, ...]]]) -> tuple[ForeignKey, ...]:
    by_id: dict[int, list[Any]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted(table)})"):
        by_id.setdefault(int(row[0]), []).append(row)
    found = []
    for _, rows in sorted(by_id.items()):
        rows.sort(key=lambda row: int(row[1]))
        target, target_key = keys.get(fold(str(rows[0][2])), (str(rows[0][2]), ()))
        columns = tuple(str(row[3]) for row in rows)
        # Without named columns the key points at the other table's primary key.
        named = tuple(str(row[4]) for row in rows) if rows[0][4] is not None else target_key
        if len(named) == len(columns):
            found.append(ForeignKey(columns, target, named))
    return tuple(found)
