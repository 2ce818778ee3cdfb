"""CSV, Parquet, JSON and Excel files as one database: loaded into a DuckDB file of ours, which is then opened like any other."""

import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from zipfile import BadZipFile

import duckdb

from longtable.base.errors import DatabaseUnavailableError, MissingExtraError
from longtable.tools.catalog import fold, quoted
from longtable.tools.cells import clip
from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.engines.duckdb_instance import empty_instance, path_literal
from longtable.tools.parquet import column_names, write_parquet
from longtable.tools.sql.parsing import first_line
from longtable.tools.url import DATA_ENDINGS

# Types are told from the whole file: a word in row 100,000 makes a column text, not an error.
_CSV = "read_csv(?, sample_size=-1)"
_READERS = {
    ".csv": _CSV,
    ".tsv": "read_csv(?, sample_size=-1, delim='\t')",
    ".parquet": "read_parquet(?)",
    ".json": "read_json(?, sample_size=-1)",
    ".jsonl": "read_json(?, sample_size=-1, format='newline_delimited')",
    ".ndjson": "read_json(?, sample_size=-1, format='newline_delimited')",
}


def load_files(path: Path, target: Path, *, files: FileLimits) -> tuple[LoadNote, ...]:
    """Load a file, or all data files of a folder, each as a table of the new file `target`, and return what was guessed.

    Raises `DatabaseUnavailableError` naming the file at fault.
    """
    sources = _data_files(path, files)
    with empty_instance(memory_bytes=files.memory_bytes) as root:
        root.execute(f"ATTACH {path_literal(target)} AS files")
        root.execute("USE files")
        taken: set[str] = set()
        return tuple(note for source in sources for note in _load(root, source, taken, files))


def _data_files(path: Path, limits: FileLimits) -> list[Path]:
    try:
        if not path.exists():
            raise DatabaseUnavailableError(f"there is no file or folder {str(path)!r}: check the path in the URL")
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        found = [
            file for file in inside if file.suffix.lower() in DATA_ENDINGS and file.is_file() and not file.name.startswith((".", "~$"))
        ]
        size = sum(file.stat().st_size for file in found)
    except OSError as error:
        raise DatabaseUnavailableError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if not found:
        raise DatabaseUnavailableError(f"{str(path)!r} holds no data file: known are {', '.join(sorted(DATA_ENDINGS))}")
    if len(found) > limits.files:
        raise DatabaseUnavailableError(f"{str(path)!r} holds {len(found):,} data files, FileLimits.files allows {limits.files:,}")
    if size > limits.bytes:
        raise DatabaseUnavailableError(f"the data files of {str(path)!r} have {size:,} bytes, FileLimits.bytes allows {limits.bytes:,}")
    return found


def _load(root: duckdb.DuckDBPyConnection, file: Path, taken: set[str], limits: FileLimits) -> list[LoadNote]:
    try:
        if file.suffix.lower() == ".xlsx":
            _load_excel(root, file, taken, limits)
            return []
        table = _table_name(file.stem, taken)
        _create(root, table, _READERS[file.suffix.lower()], str(file), file.name)
        if file.suffix.lower() != ".csv":
            return []
        columns = [name for name, *_ in root.execute(f"DESCRIBE {quoted(table)}").fetchall()]
        notes = csv_guesses(root, _as_it_is(str(file)), file.name, names=columns)
        _comment(root, table, "; ".join([f"from {file.name}", *map(told, notes)]))
        return notes
    except duckdb.OutOfMemoryException as error:
        raise DatabaseUnavailableError(
            f"{file.name!r} does not fit into the {limits.memory_bytes:,} bytes that FileLimits.memory_bytes allows:"
            " load fewer or smaller files"
        ) from error
    except (duckdb.Error, UnicodeError) as error:
        raise DatabaseUnavailableError(f"the file {file.name!r} cannot be loaded: {_why(error)}") from error


def _why(error: Exception) -> str:
    """Return what DuckDB found wrong: its lines before what it advises and which settings it read with."""
    text = str(error)
    if "not utf-8 encoded" in text:
        return "it is not UTF-8 text: save it as UTF-8 (Excel calls that CSV UTF-8)"
    lines = itertools.takewhile(lambda line: line.strip() and not line.startswith(("Possible", "The search space")), text.splitlines())
    return clip("; ".join(line.strip() for line in lines), 300)


def _create(root: duckdb.DuckDBPyConnection, table: str, reader: str, path: str, source: str) -> None:
    root.execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM {reader}", [_as_it_is(path)])
    _comment(root, table, f"from {source}")


def _as_it_is(path: str) -> str:
    """Escape the wildcards of a path, which DuckDB reads as a pattern."""
    return re.sub(r"([*?\[\]{}])", r"[\1]", path)


def _comment(root: duckdb.DuckDBPyConnection, table: str, text: str) -> None:
    plain = text.replace("'", "''")
    root.execute(f"COMMENT ON TABLE {quoted(table)} IS '{plain}'")


def _table_name(text: str, taken: set[str]) -> str:
    """Return a name that needs no quotes for its signs, and is not taken."""
    plain = re.sub(r"\W+", "_", text).strip("_") or "data"
    base = f"t_{plain}" if plain[0].isdigit() else plain
    name, number = base, 1
    while fold(name) in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(fold(name))
    return name


def _load_excel(root: duckdb.DuckDBPyConnection, file: Path, taken: set[str], limits: FileLimits) -> None:
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise MissingExtraError("an Excel file cannot be read", "excel") from error
    broken = (BadZipFile, InvalidFileException, KeyError, ValueError, SyntaxError, OSError)
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except broken as error:
        raise DatabaseUnavailableError(f"the file {file.name!r} cannot be loaded: it is no Excel workbook") from error
    with tempfile.TemporaryDirectory(prefix="longtable-") as folder:
        try:
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            for sheet in sheets:
                part = Path(folder) / "sheet.parquet"
                if _sheet_to_parquet(part, sheet.iter_rows(values_only=True), lambda: _too_long(file, limits), limits.sheet_rows):
                    name = file.stem if len(sheets) == 1 else f"{file.stem}_{sheet.title}"
                    source = file.name if len(sheets) == 1 else f"{file.name}, sheet {sheet.title}"
                    table = _table_name(name, taken)
                    _create(root, table, "read_parquet(?)", str(part), source)
                    _days_as_dates(root, table)
        except broken as error:
            raise DatabaseUnavailableError(f"the file {file.name!r} cannot be loaded: {first_line(error)}") from error
        finally:
            with suppress(AttributeError):
                book.close()


def _days_as_dates(root: duckdb.DuckDBPyConnection, table: str) -> None:
    """Excel knows no date without a time: a column of midnights is one of dates."""
    columns = root.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND data_type = 'TIMESTAMP'", [table]).fetchall()
    for (column,) in columns:
        name = quoted(column)
        if root.execute(f"SELECT bool_and({name} = date_trunc('day', {name})) FROM {quoted(table)}").fetchall()[0][0]:
            root.execute(f"ALTER TABLE {quoted(table)} ALTER COLUMN {name} TYPE DATE")


def _sheet_to_parquet(part: Path, rows: Iterable[Sequence[object]], too_long: Callable[[], Exception], most: int) -> bool:
    """Write one sheet, its first row that is not empty as names; False when there is none."""
    filled = (row for row in rows if any(cell is not None for cell in row))
    head = next(filled, None)
    if head is None:
        return False
    width = max(place for place, cell in enumerate(head, 1) if cell is not None)
    names = column_names(["" if cell is None else str(cell).strip() for cell in head[:width]])

    def bounded() -> Iterator[list[object]]:
        for count, row in enumerate(filled, 1):
            if count > most:
                raise too_long()
            cells = list(islice(row, width))
            yield cells + [None] * (width - len(cells))

    write_parquet(part, names, bounded())
    return True


def _too_long(file: Path, limits: FileLimits) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"a sheet of {file.name!r} has more than the {limits.sheet_rows:,} rows that FileLimits.sheet_rows allows"
    )


_BETWEEN_FIELDS = frozenset(",;\t|")


def csv_guesses(root: duckdb.DuckDBPyConnection, path: str, file: str, *, names: Sequence[str]) -> list[LoadNote]:
    """Return what was guessed of a file, loaded with the columns `names`; `path` as DuckDB takes it."""
    if len(names) == 1 and _BETWEEN_FIELDS & set(names[0]):
        # Lines of unequal length part at no sign alike: the first that no line holds is then taken for the one between fields.
        return [LoadNote("lines_not_parted", file)]
    try:
        found = root.execute("SELECT SkipRows, HasHeader, [c.name FOR c IN Columns] FROM sniff_csv(?)", [path]).fetchall()
    except duckdb.Error:  # a sample may be read otherwise than the whole: then nothing is known of it
        return []
    skipped, named, sampled = found[0]
    if sampled != list(names):
        return []
    notes = [LoadNote("lines_left_out", file, int(skipped))] if skipped else []
    return notes if named else [*notes, LoadNote("no_names", file)]


_TOLD = {
    "lines_not_parted": "its lines have different numbers of fields: each is one value, not parted into columns",
    "lines_left_out": "its first {count:,} lines are left out",
    "no_names": "it has no row of names: its columns are numbered",
}


def told(note: LoadNote) -> str:
    """Return a note as the comment on its table says it, for who reads the schema."""
    return _TOLD[note.code].format(count=note.count)
