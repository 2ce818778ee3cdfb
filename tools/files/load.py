"""Load CSV, Parquet, JSON and Excel files into a new DuckDB file, which is then opened like any
other database.

A text file or a sheet is first a list of rows of texts. The table is found in these rows, and the
type of each column is decided from all its values (`column_types`). Every guess becomes a note.
"""

import csv
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from longtable.base.errors import DatabaseUnavailableError
from longtable.base.url import GZIP, data_ending, data_stem
from longtable.tools.catalog import quoted
from longtable.tools.cells import clip
from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.files.column_readings import text_literal
from longtable.tools.files.data_files import data_files, file_groups, hive_columns, unpacked
from longtable.tools.files.joined_files import join_tables, tables_alike
from longtable.tools.files.load_target import Loading, Notes, Row, columns_of, table_name
from longtable.tools.files.sheet_blocks import SheetBlocks
from longtable.tools.files.sheets import narrow_rows, workbook_sheets
from longtable.tools.files.table_heads import find_table, words_of_row
from longtable.tools.files.text_encodings import NoTextError
from longtable.tools.files.text_tables import text_sheet
from longtable.tools.files.typed_tables import make_table
from longtable.tools.results.parquet import empty_instance, path_literal
from longtable.tools.sql.parsing import first_line

_READERS = {
    ".parquet": "read_parquet(?, hive_partitioning=false)",
    ".json": "read_json(?, sample_size=-1, hive_partitioning=false)",
    ".jsonl": "read_json(?, sample_size=-1, format='newline_delimited', hive_partitioning=false)",
    ".ndjson": "read_json(?, sample_size=-1, format='newline_delimited', hive_partitioning=false)",
}
_RECORDS = re.compile(r"STRUCT\(.*\)\[\]")
_OBJECT = re.compile(r"STRUCT\(.*\)")
MOST_WRAPPERS = 3
"""How many levels of nested objects are searched for a list of records."""


def load_files(path: Path, target: Path, *, files: FileLimits) -> tuple[LoadNote, ...]:
    """Load a file, or all data files of a folder, into tables of the new file `target`. Return
    notes on the guesses made.

    Raises `DatabaseUnavailableError` with the name of the file that cannot be loaded.
    """
    sources = data_files(path, files)
    home = path if path.is_dir() else path.parent
    with (
        empty_instance(memory_bytes=files.memory_bytes) as root,
        tempfile.TemporaryDirectory(prefix="longtable-") as scratch,
    ):
        root.execute(
            f"ATTACH {path_literal(target)} AS files; ATTACH"
            f" {path_literal(Path(scratch) / 'scratch.duckdb')} AS scratch; USE files"
        )
        loading = Loading(root, Path(scratch), files)
        for group in file_groups(sources, home):
            loaded: list[tuple[Path, str]] = []
            for file in group:
                loaded += [(file, table) for table in _load(loading, file, home)]
            if hive_columns(group[0], home):
                for part in tables_alike(loading, loaded):
                    join_tables(loading, part, home)
            elif len({file for file, _ in loaded}) > 1:
                join_tables(loading, loaded, home)
        if not loading.sources:
            raise DatabaseUnavailableError(
                f"the file {sources[0].name!r} cannot be loaded: it is empty"
            )
        comments = {(table, ""): [f"from {source}"] for table, source in loading.sources.items()}
        for note in loading.notes:
            table = note.table or next(iter(loading.sources))
            where = "" if note.file == loading.sources[table] else f"{note.file}: "
            comments.setdefault((table, note.column), []).append(where + note.text())
        for (table, column), texts in comments.items():
            kind, name = (
                ("COLUMN", f"{quoted(table)}.{quoted(column)}")
                if column
                else ("TABLE", quoted(table))
            )
            root.execute(
                f"COMMENT ON {kind} {name} IS {text_literal('; '.join(dict.fromkeys(texts)))}"
            )
        return tuple(loading.notes)


def _load(loading: Loading, file: Path, home: Path) -> list[str]:
    """Load one file, and return the names of its tables. An empty file gives no table but a
    note.
    """
    ending = data_ending(file) if file.stat().st_size else ""
    source = unpacked(loading, file) if file.suffix.lower() == GZIP else file
    tables: list[str] = []
    base = "_".join([*file.relative_to(home).parts[:-1], data_stem(file)])
    try:
        if ending in _READERS:
            table = table_name(base, loading.names)
            loading.sources[table] = file.name
            loading.root.execute(
                f"CREATE TABLE {quoted(table)} AS SELECT * FROM {_READERS[ending]}",
                [re.sub(r"([*?\[\]{}])", r"[\1]", str(source))],  # DuckDB reads a path as a pattern
            )
            if ending == ".json" and _is_one_object(source):
                _unwrap(loading, table)
            _note_utc(loading, table)
            return [table]
        sheets = workbook_sheets(loading, file) if ending == ".xlsx" else text_sheet(source)
        for title, rows, texts, notes in sheets:
            narrow = narrow_rows(rows, file, loading.limits)
            blocks = [narrow] if texts is None else SheetBlocks(narrow).tables()
            name = "_".join(filter(None, [base, title]))
            place = _Sheet(file, title, name, texts, notes)
            tables += filter(None, [_load_block(loading, place, block) for block in blocks])
            _number_tables(loading, tables, place)
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise DatabaseUnavailableError(
            f"{file.name!r} does not fit into the {loading.limits.memory_bytes:,} bytes that"
            " FileLimits.memory_bytes allows: load fewer or smaller files"
        ) from error
    except (duckdb.Error, UnicodeError, csv.Error, NoTextError) as error:
        raise DatabaseUnavailableError(
            f"the file {file.name!r} cannot be loaded: {clip(first_line(error), 300)}"
        ) from error
    except OSError as error:
        raise DatabaseUnavailableError(
            f"the file {file.name!r} cannot be loaded: {error.strerror or error}"
        ) from error
    loading.notes += [] if tables else [LoadNote("empty_file", file.name, 1)]
    return tables


@dataclass(frozen=True)
class _Sheet:
    """A sheet of a workbook, or a whole text file. `title` is "" for a text file and for the only
    sheet of a workbook.
    """

    file: Path
    title: str
    name: str
    texts: set[int] | None
    notes: Notes

    @property
    def source(self) -> str:
        return f"{self.file.name}, sheet {self.title}" if self.title else self.file.name


def _load_block(loading: Loading, sheet: _Sheet, rows: Iterator[Row]) -> str:
    """Load one table of a sheet and return the table's name, "" if there is no table."""
    names, guesses, body, cells = find_table(rows)
    if sheet.title and cells == 1:
        words = f"{sheet.title} ({words_of_row(names)})"
        loading.notes.append(LoadNote("sheet_left_out", sheet.file.name, 1, value=words))
        return ""
    if not names:
        return ""
    table = table_name(sheet.name, loading.names)
    loading.sources[table] = sheet.source
    for code, count, value in [*sheet.notes, *guesses]:
        loading.note(code, table, count=count, value=value)
    make_table(loading, table, names, body, texts=sheet.texts)
    return table


def _number_tables(loading: Loading, tables: Sequence[str], sheet: _Sheet) -> None:
    """If a sheet has several tables, add a note to each with its number on the sheet."""
    here = [table for table in tables if loading.sources[table] == sheet.source]
    if len(here) > 1:
        for number, table in enumerate(here, start=1):
            loading.note("table_on_sheet", table, count=number)


def _is_one_object(file: Path) -> bool:
    with file.open("rb") as stream:
        head = stream.read(10_000)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _unwrap(loading: Loading, table: str) -> None:
    """If a JSON document is one object that contains a list of records, make these records the rows
    of the table.
    """
    for _ in range(MOST_WRAPPERS):
        columns = columns_of(loading, table)
        lists = [name for name, kind in columns.items() if _RECORDS.fullmatch(kind)]
        objects = [name for name, kind in columns.items() if _OBJECT.fullmatch(kind)]
        inner = lists or objects
        rows = loading.root.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()
        if rows != [(1,)] or len(inner) != 1 or (objects and not lists and len(columns) > 1):
            return
        rest = ", ".join(quoted(name) for name in columns if name != inner[0])
        if rest:
            [(words,)] = loading.root.execute(
                f"SELECT to_json(struct_pack({rest}))::VARCHAR FROM {quoted(table)}"
            ).fetchall()
            loading.note("wrapper_left_out", table, count=len(columns) - 1, value=str(words))
        field = quoted(inner[0])
        records = f"unnest({field}, max_depth := 2)" if lists else f"unnest({field})"
        loading.root.execute(
            f"CREATE TABLE scratch.records AS SELECT {records} FROM {quoted(table)};"
            f" CREATE OR REPLACE TABLE {quoted(table)} AS FROM scratch.records;"
            " DROP TABLE scratch.records"
        )
        loading.note("unwrapped", table, count=1, value=inner[0])
        if lists:
            return


def _note_utc(loading: Loading, table: str) -> None:
    for name, kind in columns_of(loading, table).items():
        if kind == "TIMESTAMP WITH TIME ZONE":
            loading.note("utc_times", table, column=name)
