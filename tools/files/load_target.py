"""The DuckDB file that files are loaded into: its tables, the names in use, and notes on
guesses.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from longtable.tools.catalog import quoted
from longtable.tools.cells import clip
from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.results.parquet import free_name

NOTE_CHARS = 200
"""The most characters that a note quotes from a file."""
Row = list[str]
Notes = list[tuple[str, int, str]]


@dataclass
class Loading:
    """The state of loading files into one DuckDB file. `names` are the table names in use;
    `sources` tells which file or sheet each table comes from; `notes` are the guesses so far.
    """

    root: duckdb.DuckDBPyConnection
    scratch: Path
    limits: FileLimits
    names: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[LoadNote] = field(default_factory=list)

    def note(
        self, code: str, table: str, *, count: int = 0, column: str = "", value: str = ""
    ) -> None:
        if count or column:
            self.notes.append(
                LoadNote(code, self.sources[table], count, table, column, clip(value, NOTE_CHARS))
            )


def columns_of(loading: Loading, table: str) -> dict[str, str]:
    """Return the types of a table's columns, by column name."""
    rows = loading.root.execute(f"SELECT column_name, column_type FROM (DESCRIBE {quoted(table)})")
    return {str(name): str(kind) for name, kind in rows.fetchall()}


def table_name(text: str, names: set[str]) -> str:
    """Return a table name made from `text` that is not in use yet and needs no quotes in SQL."""
    return free_name(
        re.sub(r"^(?=\d)", "t_", re.sub(r"\W+", "_", text).strip("_") or "data"), names, start=2
    )
