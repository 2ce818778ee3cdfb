"""Make changed copies of a SQLite database: some rows deleted, values shuffled within columns.

A query that is right only by luck, such as a constant in place of a condition, rarely gives the
rows of gold on a copy, too. Keys stay whole: columns of a primary key or a unique index are not
shuffled, and a foreign key only gets values of rows that are there. A row that refers to a deleted
one is made to refer to another row; if it cannot be, because its key is unique or has several
columns, it is deleted, too.

The copies are made by a process of its own: `python -m longtable.evaluation.mutations FROM TO
SEED`. It reads the user's file through SQLite's backup, so that a file in use is copied whole.
"""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longtable.base.errors import DatabaseUnavailableError

MOST_BYTES = 500_000_000
"""Of a database that is copied."""
SECONDS = 300.0
"""For one copy."""
DELETED = (0.1, 0.3)
"""Least and largest share of a table's rows that are deleted; of two rows and more at least one."""
MOST_ROUNDS = 1_000
"""Rounds in which rows are repaired or deleted that refer to deleted ones: no chain of references
is longer.
"""
MODULE = "longtable.evaluation.mutations"
_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
_ROW_IDS = ("rowid", "_rowid_", "oid")


def make_copies(source: Path, folder: Path, *, seeds: Sequence[int]) -> list[Path]:
    """Return changed copies of a database, one for each seed. The same seed gives the same copy.

    Raises `DatabaseUnavailableError` if the file is too large, or cannot be copied in time.
    """
    size = source.stat().st_size
    if size > MOST_BYTES:
        raise DatabaseUnavailableError(
            f"changed copies are made of at most {MOST_BYTES:,} bytes, found {size:,}"
        )
    copies: list[Path] = []
    for seed in seeds:
        target = folder / f"copy-{seed}.db"
        line = [sys.executable, "-m", MODULE, str(source), str(target), str(seed)]
        try:
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise DatabaseUnavailableError(
                f"no changed copy was made in {SECONDS:g} s: try --copies 0"
            ) from error
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["the process ended"])[-1]
            raise DatabaseUnavailableError(f"no changed copy can be made: {reason}")
        copies.append(target)
    return copies


@dataclass(frozen=True)
class _Table:
    """A table with rows of its own."""

    name: str
    row_id: str | None
    """The name of the number of its rows, None if they have none: such rows stay as they are,
    unless they refer to deleted ones.
    """
    columns: Sequence[str]
    """Columns whose values may be changed."""


@dataclass(frozen=True)
class _Reference:
    """A foreign key: columns of one table that refer to those of another."""

    table: str
    columns: Sequence[str]
    parent: str
    parent_columns: Sequence[str]


def copy_changed(source: Path, target: Path, seed: int) -> None:
    """Copy a database and change the copy. Raises `sqlite3.Error`."""
    address = f"file:{quote(str(source.absolute()))}?mode=ro"
    original = sqlite3.connect(address, uri=True)
    with closing(original), closing(sqlite3.connect(target)) as copy:
        original.backup(copy)
        _change(copy, random.Random(seed))


def _change(copy: sqlite3.Connection, dice: random.Random) -> None:
    copy.isolation_level = None
    copy.execute("PRAGMA foreign_keys = OFF")
    copy.execute("PRAGMA ignore_check_constraints = ON")
    copy.execute("PRAGMA synchronous = OFF")
    copy.execute("BEGIN")
    for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        copy.execute(f"DROP TRIGGER {_quoted(name)}")
    names = _table_names(copy)
    references: list[_Reference] = []
    for name in names:
        references += [each for each in _references(copy, name) if _is_whole(copy, each)]
    tables = [_table(copy, name, references) for name in names]
    # Unique columns stay as they are. An index over an expression or over some rows would fail.
    for (name,) in copy.execute(_INDEXES).fetchall():
        copy.execute(f"DROP INDEX {_quoted(name)}")
    for table in tables:
        for column in table.columns:
            _shuffle(copy, table, column, dice)
    for table in tables:
        _delete(copy, table, dice)
    _repair(copy, {table.name: table for table in tables}, references, dice)
    copy.execute("COMMIT")


def _table_names(copy: sqlite3.Connection) -> list[str]:
    """Return the tables with rows of their own, in the order of their names."""
    rows = copy.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    )
    return [name for (name,) in rows.fetchall()]


def _references(copy: sqlite3.Connection, name: str) -> list[_Reference]:
    """Return the foreign keys of a table."""
    rows = copy.execute(
        'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq', [name]
    ).fetchall()
    references: list[_Reference] = []
    for number in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == number]
        parent = own[0][1]
        parent_columns = [row[3] for row in own]
        if None in parent_columns:
            parent_columns = _primary_key(copy, parent)
        if len(parent_columns) == len(own):
            columns = [row[2] for row in own]
            references.append(_Reference(name, columns, parent, parent_columns))
    return references


def _primary_key(copy: sqlite3.Connection, name: str) -> list[str]:
    rows = copy.execute("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", [name])
    return [column for (column,) in rows.fetchall()]


def _table(copy: sqlite3.Connection, name: str, references: Sequence[_Reference]) -> _Table:
    """Return a table with the columns that may be changed."""
    rows = copy.execute(
        "SELECT name, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid", [name]
    ).fetchall()
    without = copy.execute(
        "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", [name]
    )
    if without.fetchone() == (1,):
        return _Table(name, None, [])
    all_names = {column.lower() for column, _, _ in rows}
    row_id = next((each for each in _ROW_IDS if each not in all_names), None)
    if row_id is None:
        return _Table(name, None, [])
    fixed = {column for column, key, hidden in rows if key or hidden}
    fixed |= _unique_columns(copy, name)
    for each in references:
        if each.table == name and len(each.columns) > 1:
            fixed |= {*each.columns}
        if each.parent.lower() == name.lower():
            fixed |= {*each.parent_columns}
    lower = {column.lower() for column in fixed if column}
    return _Table(name, row_id, [column for column, _, _ in rows if column.lower() not in lower])


def _unique_columns(copy: sqlite3.Connection, name: str) -> set[str]:
    rows = copy.execute(
        'SELECT i.name FROM pragma_index_list(?) AS l, pragma_index_info(l.name) AS i WHERE l."unique"',
        [name],
    )
    return {column for (column,) in rows.fetchall() if column}


def _shuffle(copy: sqlite3.Connection, table: _Table, column: str, dice: random.Random) -> None:
    """Give each row the value that another row had. The values never leave SQLite."""
    numbers = _row_numbers(copy, table)
    sources = [*numbers]
    dice.shuffle(sources)
    name = _quoted(table.name)
    cell = _quoted(column)
    copy.execute("SAVEPOINT shuffle")
    copy.execute("CREATE TEMP TABLE longtable_old (id INTEGER PRIMARY KEY, value)")
    copy.execute("CREATE TEMP TABLE longtable_moves (id INTEGER PRIMARY KEY, source INTEGER)")
    copy.execute(f"INSERT INTO longtable_old SELECT {table.row_id}, {cell} FROM main.{name}")
    copy.executemany(
        "INSERT INTO longtable_moves VALUES (?, ?)", zip(numbers, sources, strict=True)
    )
    try:
        copy.execute(
            f"UPDATE main.{name} AS longtable_changed SET {cell} = (SELECT o.value FROM"
            " longtable_moves AS m JOIN longtable_old AS o ON o.id = m.source"
            f" WHERE m.id = longtable_changed.{table.row_id})"
        )
    except sqlite3.IntegrityError:  # a unique column is generated from this one
        copy.execute("ROLLBACK TO shuffle")
    else:
        copy.execute("DROP TABLE longtable_old")
        copy.execute("DROP TABLE longtable_moves")
    copy.execute("RELEASE shuffle")


def _delete(copy: sqlite3.Connection, table: _Table, dice: random.Random) -> None:
    """Delete some rows of a table."""
    if table.row_id is None:
        return
    numbers = _row_numbers(copy, table)
    if len(numbers) < 2:
        return
    chosen = dice.sample(numbers, max(1, int(len(numbers) * dice.uniform(*DELETED))))
    copy.executemany(
        f"DELETE FROM main.{_quoted(table.name)} WHERE {table.row_id} = ?",
        [[number] for number in chosen],
    )


def _repair(
    copy: sqlite3.Connection,
    tables: Mapping[str, _Table],
    references: Sequence[_Reference],
    dice: random.Random,
) -> None:
    """Repair or delete rows that refer to deleted ones, until there is none."""
    for _ in range(MOST_ROUNDS):
        changed = [_repaired(copy, tables[each.table], each, dice) for each in references]
        if not any(changed):
            return


def _repaired(
    copy: sqlite3.Connection, table: _Table, reference: _Reference, dice: random.Random
) -> bool:
    """Make rows that refer to a deleted row refer to another one, or delete them. Return whether
    there was one. The values never leave SQLite.
    """
    name = f"main.{_quoted(table.name)}"
    dangling = f"{name} WHERE {_filled(reference.columns)} AND NOT {_is_held(reference)}"
    is_free = {each.lower() for each in reference.columns} <= {
        each.lower() for each in table.columns
    }
    if table.row_id is None or len(reference.columns) > 1 or not is_free:
        return copy.execute(f"DELETE FROM {dangling}").rowcount > 0
    rows = _numbers(copy, f"SELECT {table.row_id} FROM {dangling} ORDER BY 1")
    own = _quoted(reference.columns[0])
    source = f"SELECT {own} FROM {name} WHERE {_is_held(reference)}"
    [count] = _numbers(copy, f"SELECT count(*) FROM ({source})")
    if not count:  # the column had no other value: take one of the rows that are there
        other = _quoted(reference.parent_columns[0])
        source = f"SELECT {other} AS {own} FROM main.{_quoted(reference.parent)} WHERE {other} IS NOT NULL"
        [count] = _numbers(copy, f"SELECT count(*) FROM ({source})")
    if not count:
        return copy.execute(f"DELETE FROM {dangling}").rowcount > 0
    copy.execute(f"CREATE TEMP TABLE longtable_sources AS {source} ORDER BY 1")
    copy.executemany(
        f"UPDATE {name} SET {own} = (SELECT {own} FROM longtable_sources WHERE rowid = ?)"
        f" WHERE {table.row_id} = ?",
        [[dice.randint(1, count), number] for number in rows],
    )
    copy.execute("DROP TABLE longtable_sources")
    return bool(rows)


def _filled(columns: Sequence[str]) -> str:
    """Return the condition that no column is NULL."""
    return " AND ".join(f"{_quoted(column)} IS NOT NULL" for column in columns)


def _is_held(reference: _Reference) -> str:
    """Return the condition that the row is there that another one refers to."""
    own = ", ".join(map(_quoted, reference.columns))
    others = ", ".join(map(_quoted, reference.parent_columns))
    parent = f"main.{_quoted(reference.parent)}"
    return f"({own}) IN (SELECT {others} FROM {parent} WHERE {_filled(reference.parent_columns)})"


def _is_whole(copy: sqlite3.Connection, reference: _Reference) -> bool:
    """Return whether each row refers to one that is there. SQLite seldom checks foreign keys, so
    that a database may declare some that never held, even to a table or a column that is gone.
    """
    dangling = (
        f"SELECT 1 FROM main.{_quoted(reference.table)} WHERE {_filled(reference.columns)}"
        f" AND NOT {_is_held(reference)} LIMIT 1"
    )
    try:
        return copy.execute(dangling).fetchone() is None
    except sqlite3.OperationalError:
        return False


def _row_numbers(copy: sqlite3.Connection, table: _Table) -> list[int]:
    return _numbers(copy, f"SELECT {table.row_id} FROM main.{_quoted(table.name)} ORDER BY 1")


def _numbers(copy: sqlite3.Connection, sql: str) -> list[int]:
    return [number for (number,) in copy.execute(sql).fetchall()]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def main(arguments: Sequence[str]) -> None:
    """Make one copy: the arguments are the file, the copy, and the seed."""
    source, target, seed = arguments
    try:
        copy_changed(Path(source), Path(target), int(seed))
    except sqlite3.Error as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
