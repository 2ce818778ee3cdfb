"""Make changed copies of a SQLite database: some rows deleted, values shuffled within columns.

A query that is right only by luck, such as a constant in place of a condition, rarely gives the
rows of gold on a copy, too. Keys stay whole: columns of a primary key or a unique index are not
shuffled, no row is deleted that another row refers to, and a foreign key only gets values that it
had.

The copies are made by a process of its own: `python -m longtable.evaluation.mutations FROM TO
SEED`. It reads the user's file through SQLite's backup, so that a file in use is copied whole.
"""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longtable.base.errors import DatabaseUnavailableError

MOST_BYTES = 500_000_000
"""Of a database that is copied."""
SECONDS = 300.0
"""For one copy."""
DELETED = 0.2
"""Share of a table's rows that each of two rounds tries to delete."""
ROUNDS = 2
"""The second round can delete rows whose referring rows the first one deleted."""
MODULE = "longtable.evaluation.mutations"
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
    """A table whose rows can be changed. `row_id` names the number of its rows."""

    name: str
    row_id: str
    columns: Sequence[str]
    """Columns whose values may be shuffled."""


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
        references += _references(copy, name)
    found = [_table(copy, name, references) for name in names]
    tables = [table for table in found if table is not None]
    for table in tables:
        for column in table.columns:
            _shuffle(copy, table, column, dice)
    for _ in range(ROUNDS):
        for table in tables:
            _delete(copy, table, references, dice)
    copy.execute("COMMIT")


def _table_names(copy: sqlite3.Connection) -> list[str]:
    """Return the tables with rows of their own, in the order of their names."""
    rows = copy.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0"
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


def _table(copy: sqlite3.Connection, name: str, references: Sequence[_Reference]) -> _Table | None:
    """Return a table with the columns that may be shuffled, None if its rows have no number."""
    rows = copy.execute(
        "SELECT name, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid", [name]
    ).fetchall()
    all_names = {column.lower() for column, _, _ in rows}
    row_id = next((each for each in _ROW_IDS if each not in all_names), None)
    if row_id is None:
        return None
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
    copy.execute("CREATE TEMP TABLE old (id INTEGER PRIMARY KEY, value)")
    copy.execute("CREATE TEMP TABLE moves (id INTEGER PRIMARY KEY, source INTEGER)")
    copy.execute(f"INSERT INTO temp.old SELECT {table.row_id}, {cell} FROM main.{name}")
    copy.executemany("INSERT INTO temp.moves VALUES (?, ?)", zip(numbers, sources, strict=True))
    copy.execute(
        f"UPDATE main.{name} SET {cell} = (SELECT value FROM temp.moves JOIN temp.old"
        f" ON old.id = moves.source WHERE moves.id = {name}.{table.row_id})"
    )
    copy.execute("DROP TABLE temp.old")
    copy.execute("DROP TABLE temp.moves")


def _delete(
    copy: sqlite3.Connection,
    table: _Table,
    references: Sequence[_Reference],
    dice: random.Random,
) -> None:
    """Delete some rows that no row refers to."""
    numbers = _row_numbers(copy, table)
    chosen = dice.sample(numbers, int(len(numbers) * DELETED))
    copy.execute("CREATE TEMP TABLE chosen (id INTEGER PRIMARY KEY)")
    copy.executemany("INSERT INTO temp.chosen VALUES (?)", [[number] for number in chosen])
    conditions = [f"{table.row_id} IN (SELECT id FROM temp.chosen)"]
    for each in references:
        if each.parent.lower() == table.name.lower():
            own = ", ".join(map(_quoted, each.parent_columns))
            others = ", ".join(map(_quoted, each.columns))
            filled = " AND ".join(f"{_quoted(column)} IS NOT NULL" for column in each.columns)
            conditions.append(
                f"({own}) NOT IN (SELECT {others} FROM main.{_quoted(each.table)} WHERE {filled})"
            )
    copy.execute(f"DELETE FROM main.{_quoted(table.name)} WHERE {' AND '.join(conditions)}")
    copy.execute("DROP TABLE temp.chosen")


def _row_numbers(copy: sqlite3.Connection, table: _Table) -> list[int]:
    rows = copy.execute(f"SELECT {table.row_id} FROM main.{_quoted(table.name)} ORDER BY 1")
    return [number for (number,) in rows.fetchall()]


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
