"""CSV, Parquet, JSON and Excel files as one database: loaded into a DuckDB file of ours, which is
then opened like any other.

Text files and sheets are rows of texts at first. Their table is found in them, then each column's
type is decided from all of its values (`column_types`). Whatever was guessed is noted.
"""

import csv
import gzip
import itertools
import os
import re
import tempfile
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal
from zipfile import BadZipFile, ZipFile

import duckdb

from longtable.base.errors import DatabaseUnavailableError, MissingExtraError
from longtable.base.url import DATA_ENDINGS, GZIP, data_ending, data_stem
from longtable.tools.catalog import fold, quoted
from longtable.tools.cells import clip
from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.files.column_readings import readings_of, text_literal, value_sql
from longtable.tools.files.column_types import MISSING, TEXT, Style, looks_typed
from longtable.tools.files.sheet_blocks import SheetBlocks
from longtable.tools.files.text_encodings import NoTextError, codec_of, encoding_of
from longtable.tools.files.total_rows import TOTAL, total_rows
from longtable.tools.results.parquet import column_names, empty_instance, free_name, path_literal
from longtable.tools.sql.parsing import first_line

_READERS = {
    ".parquet": "read_parquet(?, hive_partitioning=false)",
    ".json": "read_json(?, sample_size=-1, hive_partitioning=false)",
    ".jsonl": "read_json(?, sample_size=-1, format='newline_delimited', hive_partitioning=false)",
    ".ndjson": "read_json(?, sample_size=-1, format='newline_delimited', hive_partitioning=false)",
}
MOST_DEPTH = 6
"""Folders within folders that are looked into."""
HEAD_CHARS = 262_144
"""Characters that are read to find the field separator."""
MOST_LINE = 2_000_000
"""Characters of one line; DuckDB's own limit."""
FIRST_ROWS = 1_000
HEAD_ROWS = 100
"""Rows in which a table begins, and its rows that show whether the first one holds names."""
END_MARK = "\0end"
NOTE_CHARS = 200
"""Most characters of the file that a note quotes."""
MOST_TAIL = 3
"""Most lines below a table that may be remarks and not rows."""
_RULER = re.compile(r"[-=_+|*]*[-=_]{3}[-=_+|*]*")
"""A cell of a separator line, such as `-----`."""
_ALIKE = ({"BIGINT", "DOUBLE"}, {"DATE", "TIMESTAMP"})
"""Types that one column has in different files."""
_RECORDS = re.compile(r"STRUCT\(.*\)\[\]")
_OBJECT = re.compile(r"STRUCT\(.*\)")
MOST_WRAPPERS = 3
"""Objects within objects that are looked into for a list of records."""
_YEAR = re.compile(r"(?:19|20)\d\d")

Row = list[str]
Notes = list[tuple[str, int, str]]


@dataclass
class _Loading:
    """What is loaded into one DuckDB file: the names that are used, the notes so far."""

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


def load_files(path: Path, target: Path, *, files: FileLimits) -> tuple[LoadNote, ...]:
    """Load a file, or all data files of a folder, into tables of the new file `target`; return what
    was guessed.

    Raises `DatabaseUnavailableError` naming the file at fault.
    """
    sources = _data_files(path, files)
    home = path if path.is_dir() else path.parent
    with (
        empty_instance(memory_bytes=files.memory_bytes) as root,
        tempfile.TemporaryDirectory(prefix="longtable-") as scratch,
    ):
        root.execute(
            f"ATTACH {path_literal(target)} AS files; ATTACH"
            f" {path_literal(Path(scratch) / 'scratch.duckdb')} AS scratch; USE files"
        )
        loading = _Loading(root, Path(scratch), files)
        for group in _groups(sources, home):
            loaded = [(file, table) for file in group for table in _load(loading, file, home)]
            if _hive(group[0], home):
                for part in _alike(loading, loaded):
                    _join(loading, part, home)
            elif len({file for file, _ in loaded}) > 1:
                _join(loading, loaded, home)
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


def _data_files(path: Path, limits: FileLimits) -> list[Path]:
    try:
        if not path.exists():
            raise DatabaseUnavailableError(
                f"there is no file or folder {str(path)!r}: check the path in the URL"
            )
        paths = list(itertools.islice(_inside(path), limits.files + 1)) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in paths)
    except OSError as error:
        raise DatabaseUnavailableError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if not paths:
        raise DatabaseUnavailableError(
            f"{str(path)!r} holds no data file: known are {', '.join(sorted(DATA_ENDINGS))}"
        )
    if len(paths) > limits.files:
        raise DatabaseUnavailableError(
            f"{str(path)!r} holds over {limits.files:,} data files, FileLimits.files allows"
            f" {limits.files:,}"
        )
    if size > limits.bytes:
        raise DatabaseUnavailableError(
            f"the data files of {str(path)!r} have {size:,} bytes, FileLimits.bytes allows"
            f" {limits.bytes:,}"
        )
    return paths


def _inside(path: Path) -> Iterator[Path]:
    """Yield the data files of a folder and its sub-folders; `.txt` may be anything, and is loaded
    by its own name only.
    """
    for folder, folders, names in os.walk(path):
        deeper = folders if len(Path(folder).relative_to(path).parts) < MOST_DEPTH else []
        folders[:] = sorted(name for name in deeper if not name.startswith("."))
        known = [Path(folder, name) for name in sorted(names) if not name.startswith((".", "~$"))]
        yield from (
            file for file in known if data_ending(file) not in ("", ".txt") and file.is_file()
        )


def _hive(file: Path, home: Path) -> dict[str, str]:
    """Return what the folders of a file say: `year=2023` is a column."""
    return dict(part.split("=", 1) for part in file.relative_to(home).parts[:-1] if "=" in part)


def _groups(sources: Sequence[Path], home: Path) -> list[list[Path]]:
    """Return the files that may be one table: names that differ by digits alone, or folders of the
    form `year=2023`.
    """
    groups: dict[object, list[Path]] = {}
    for file in sources:
        parent = tuple(part for part in file.parts[:-1] if "=" not in part)
        groups.setdefault(
            (
                parent,
                tuple(_hive(file, home)) or re.sub(r"\d+", "#", data_stem(file)),
                data_ending(file),
            ),
            [],
        ).append(file)
    return list(groups.values())


def _alike(loading: _Loading, loaded: Sequence[tuple[Path, str]]) -> list[list[tuple[Path, str]]]:
    """Return the tables of such folders in groups: those that share more than half of their columns
    are one table.
    """
    groups: list[list[tuple[Path, str]]] = []
    shared: list[set[str]] = []
    for item in loaded:
        columns = set(map(fold, _columns_of(loading, item[1])))
        for group, common in zip(groups, shared, strict=True):
            if 2 * len(columns & common) > max(len(columns), len(common)):
                group.append(item)
                common &= columns
                break
        else:
            groups.append([item])
            shared.append(columns)
    return groups


def _made_alike(loading: _Loading, tables: Sequence[str]) -> dict[str, str]:
    """Make columns of one name text in all of these tables where their types differ. Return the
    columns that have a note, with its code.
    """
    shapes = [_columns_of(loading, table) for table in tables]
    codes: dict[str, str] = {}
    for name in dict.fromkeys(name for shape in shapes for name in shape):
        types = {shape[name] for shape in shapes if name in shape}
        if len(types) > 1 and not any(types <= alike for alike in _ALIKE):
            codes[name] = "types_differ"
        elif not all(name in shape for shape in shapes):
            codes[name] = "not_in_all"
    for table, shape in zip(tables, shapes, strict=True):
        for name in shape:
            if codes.get(name) == "types_differ":
                loading.root.execute(
                    f"ALTER TABLE {quoted(table)} ALTER {quoted(name)} TYPE {TEXT}"
                )
    return codes


def _join(loading: _Loading, loaded: Sequence[tuple[Path, str]], home: Path) -> None:
    """Make one table of those with the same columns, with columns that say which file a row is
    from.
    """
    shapes = [
        loading.root.execute(
            f"SELECT column_name, column_type FROM (DESCRIBE {quoted(table)})"
        ).fetchall()
        for _, table in loaded
    ]
    hive = _hive(loaded[0][0], home)
    # A column of amounts without decimals in one year is the same column.
    if len({str(shape).replace("'BIGINT'", "'DOUBLE'") for shape in shapes}) > 1:
        if not hive:
            names = ", ".join(loading.sources[table] for _, table in loaded)
            loading.notes.append(LoadNote("not_joined", home.name, len(loaded), value=names))
            return
        differing_columns = _made_alike(loading, [table for _, table in loaded])
    else:
        differing_columns = {}
    marks = [_hive(file, home) for file, _ in loaded]
    if len(set(map(str, marks))) < len(marks):
        marks = [
            {**mark, "file": loading.sources[table]}
            for mark, (_, table) in zip(marks, loaded, strict=True)
        ]
    differing = [
        digits
        for digits in zip(
            *(re.findall(r"\d+", data_stem(file)) for file, _ in loaded), strict=False
        )
        if len(set(digits)) > 1
    ]
    if (
        len(differing) == 1
        and all(map(_YEAR.fullmatch, differing[0]))
        and not (hive or {"DATE", "TIMESTAMP"} & {kind for _, kind in shapes[0]})
    ):
        marks = [{**mark, "year": year} for mark, year in zip(marks, differing[0], strict=True)]
    known = list(dict.fromkeys(str(name) for shape in shapes for name, _ in shape))
    added = column_names([*known, *marks[0]])[len(known) :]
    casts = [
        f"::{'BIGINT' if all(re.fullmatch(r'0|[1-9][0-9]{0,17}', mark[key]) for mark in marks) else TEXT}"
        f" AS {quoted(new)}"
        for new, key in zip(added, marks[0], strict=True)
    ]
    selects = [
        f"SELECT *, {', '.join(map(str.__add__, map(text_literal, mark.values()), casts))} FROM"
        f" {quoted(table)}"
        for mark, (_, table) in zip(marks, loaded, strict=True)
    ]
    parts = [
        *loaded[0][0].relative_to(home).parts[:-1],
        "" if hive else re.sub(r"\d+", " ", data_stem(loaded[0][0])).strip(" _-.()"),
    ]
    name = _table_name(
        "_".join(part for part in parts if part and "=" not in part) or home.name, loading.names
    )
    loading.root.execute(f"CREATE TABLE {quoted(name)} AS {' UNION ALL BY NAME '.join(selects)}")
    loading.sources[name] = home.name
    loading.note(
        "files_joined_by_name" if differing_columns else "files_joined",
        name,
        count=len(loaded),
        value=", ".join(loading.sources[table] for _, table in loaded),
    )
    for column, code in differing_columns.items():
        loading.note(code, name, column=column)
    loading.notes += [
        LoadNote("from_file_name", home.name, table=name, column=column) for column in added
    ]
    loading.root.execute("; ".join(f"DROP TABLE {quoted(table)}" for _, table in loaded))
    loading.sources = {
        table: source
        for table, source in loading.sources.items()
        if all(table != part for _, part in loaded)
    }
    loading.notes[:] = [
        note if note.table in loading.sources else replace(note, table=name)
        for note in loading.notes
    ]


def _load(loading: _Loading, file: Path, home: Path) -> list[str]:
    """Load one file and return its tables: none where it is empty, which is noted."""
    ending = data_ending(file) if file.stat().st_size else ""
    source = _unpacked(loading, file) if file.suffix.lower() == GZIP else file
    tables: list[str] = []
    base = "_".join([*file.relative_to(home).parts[:-1], data_stem(file)])
    try:
        if ending in _READERS:
            table = _table_name(base, loading.names)
            loading.sources[table] = file.name
            loading.root.execute(
                f"CREATE TABLE {quoted(table)} AS SELECT * FROM {_READERS[ending]}",
                [re.sub(r"([*?\[\]{}])", r"[\1]", str(source))],  # DuckDB reads a path as a pattern
            )
            if ending == ".json" and _is_one_object(source):
                _unwrap(loading, table)
            _note_utc(loading, table)
            return [table]
        sheets = _sheets(loading, file) if ending == ".xlsx" else _text_sheet(source)
        for title, rows, texts, notes in sheets:
            narrow = _narrow_rows(rows, file, loading.limits)
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
    loading.notes += [] if tables else [LoadNote("empty_file", file.name, 1)]
    return tables


def _columns_of(loading: _Loading, table: str) -> dict[str, str]:
    """Return the types of a table's columns."""
    rows = loading.root.execute(f"SELECT column_name, column_type FROM (DESCRIBE {quoted(table)})")
    return {str(name): str(kind) for name, kind in rows.fetchall()}


@dataclass(frozen=True)
class _Sheet:
    """A sheet, or the whole of a text file. `title`: "" where it is alone."""

    file: Path
    title: str
    name: str
    texts: set[int] | None
    notes: Notes

    @property
    def source(self) -> str:
        return f"{self.file.name}, sheet {self.title}" if self.title else self.file.name


def _text_sheet(file: Path) -> Iterator[tuple[str, Iterator[Row], None, Notes]]:
    encoding = encoding_of(file)
    yield "", _text_rows(file, encoding), None, [("encoding", len(encoding), encoding)]


def _load_block(loading: _Loading, sheet: _Sheet, rows: Iterator[Row]) -> str:
    """Load one table of a sheet and return its name, "" where there is none."""
    names, guesses, body, cells = _find_table(rows)
    if sheet.title and cells == 1:
        words = f"{sheet.title} ({_words(names)})"
        loading.notes.append(LoadNote("sheet_left_out", sheet.file.name, 1, value=words))
        return ""
    if not names:
        return ""
    table = _table_name(sheet.name, loading.names)
    loading.sources[table] = sheet.source
    for code, count, value in [*sheet.notes, *guesses]:
        loading.note(code, table, count=count, value=value)
    _make_table(loading, table, names, body, texts=sheet.texts)
    return table


def _number_tables(loading: _Loading, tables: Sequence[str], sheet: _Sheet) -> None:
    """Note which table of its sheet each is, where there are several."""
    here = [table for table in tables if loading.sources[table] == sheet.source]
    if len(here) > 1:
        for number, table in enumerate(here, start=1):
            loading.note("table_on_sheet", table, count=number)


def _is_one_object(file: Path) -> bool:
    with file.open("rb") as stream:
        head = stream.read(10_000)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _unwrap(loading: _Loading, table: str) -> None:
    """Make the list of records that a document of one object holds the rows of its table."""
    for _ in range(MOST_WRAPPERS):
        columns = _columns_of(loading, table)
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


def _note_utc(loading: _Loading, table: str) -> None:
    for name, kind in _columns_of(loading, table).items():
        if kind == "TIMESTAMP WITH TIME ZONE":
            loading.note("utc_times", table, column=name)


def _unpacked(loading: _Loading, file: Path) -> Path:
    """Unpack a file of gzip into the scratch folder. Raises `DatabaseUnavailableError` for one that
    is damaged or too large.
    """
    target = loading.scratch / f"unpacked{data_ending(file)}"
    most = loading.limits.memory_bytes
    try:
        with gzip.open(file) as packed, target.open("wb") as whole:
            for part in iter(partial(packed.read, 1 << 20), b""):
                whole.write(part)
                if whole.tell() > most:
                    raise DatabaseUnavailableError(
                        f"{file.name!r} has more than the {most:,} bytes when unpacked that"
                        " FileLimits.memory_bytes allows"
                    )
    except (EOFError, OSError, zlib.error) as error:
        raise DatabaseUnavailableError(
            f"the file {file.name!r} cannot be unpacked: {clip(first_line(error), 300)}"
        ) from error
    return target


def _table_name(text: str, names: set[str]) -> str:
    """Return a name that is not used yet and needs no quotes for its signs."""
    return free_name(
        re.sub(r"^(?=\d)", "t_", re.sub(r"\W+", "_", text).strip("_") or "data"), names, start=2
    )


def _text_rows(file: Path, encoding: str) -> Iterator[Row]:
    """Yield the rows of a text file."""
    with file.open(encoding=codec_of(encoding), errors="replace", newline="") as text:
        head = text.read(HEAD_CHARS).splitlines(keepends=True)
        text.seek(0)
        csv.field_size_limit(MOST_LINE)
        rows = _closed(_reader(head[:1000], file.suffix.lower())(itertools.chain(text, [END_MARK])))
        # Codes are written so to keep their zeros: ="007".
        yield from (
            ([re.sub(r'^="(.*)"$', r"\1", cell) for cell in row] for row in rows)
            if any('="' in line for line in head)
            else rows
        )


def _closed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows above the mark that was put at the end; raise `csv.Error` where a quote that
    is not closed swallowed it.
    """
    for row in rows:
        if row[-1:] != [END_MARK] and row and row[-1].endswith(END_MARK):
            raise csv.Error(
                f"the quote before {clip(row[-1].splitlines()[0], 40)!r} is never closed, so all"
                " lines after it would be one cell: close it, or write it twice"
            )
        if row != [END_MARK]:
            yield row


def _reader(lines: Sequence[str], ending: str) -> Callable[[Iterable[str]], Iterator[Row]]:
    """Return a reader that splits lines into fields, by the separator that splits most of these
    lines into the same number.
    """
    text = "".join(lines)
    # R puts a backslash before a quote where others write the quote twice. One before the end of a
    # field is a path's: "C:\".
    escape = bool(re.search(r'\\"[^,;\t|"\s]', text)) and not re.search(r'\w""\w', text)
    separator = re.match(r'(?i)"?sep=(.)"?\s*$', lines[0] if lines else "")
    best: tuple[float, int] = (0.0, 0)
    reader = partial(_split, sign=",", escape=escape)
    for sign in separator[1] if separator else "\t" if ending == ".tsv" else ",;\t| ":
        # Programs that write tabs between copied cells quote nothing.
        bare = sign == "\t" and re.search(
            r'(?m)(?:^|\t)"(?:[^"\t\n]*"[^"\t\r\n]|[^"\t]*\t[^"]*$)', text
        )
        tried = partial(
            _split, sign=sign, escape=escape, quoting=csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL
        )
        widths = Counter(len(row) for row in tried(lines) if any(map(str.strip, row)))
        width, count = max(
            widths.items(),
            key=lambda item: (item[0] * item[1] * (item[0] > 1), item[0]),
            default=(1, 0),
        )
        score = (count / max(widths.total(), 1) * min(width, 4) * (width > 1), width)
        # A space separates words, too: it counts only where nothing else does, and for all lines.
        if score > best and (
            sign != " "
            or (
                best[0] <= 1
                and count > 1
                and count >= 0.9 * (widths.total() - 1)
                and not all(map(looks_typed, map(str.strip, lines[1:])))
            )
        ):
            best = score
            reader = tried
    return (lambda lines: itertools.islice(reader(lines), 1, None)) if separator else reader


def _split(
    lines: Iterable[str], *, sign: str, escape: bool, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[Row]:
    return csv.reader(
        (line.replace('\\"', '""') for line in lines) if escape else lines,
        delimiter=sign,
        quoting=quoting,
    )


def _find_table(rows: Iterable[Row]) -> tuple[Row, Notes, Iterator[Row], int]:
    """Return the names of a table, what was guessed, its rows, and how many cells were seen.

    It begins at the first row that fills most of its columns. There are no names where there is no
    cell.
    """
    stripped = itertools.dropwhile(
        lambda row: not any(row), (list(map(str.strip, row)) for row in rows)
    )
    read = list(itertools.islice(stripped, FIRST_ROWS))
    places = [place for place, row in enumerate(read) if any(row) and not _is_ruler(row)]
    if not places:
        return [], [], stripped, 0
    width = max(len(read[place]) for place in places)
    head = [read[place] + [""] * (width - len(read[place])) for place in places]
    counts = [sum(map(bool, row)) for row in head]
    first = next(place for place, count in enumerate(counts) if count >= 0.6 * max(counts))
    body = head[first + 1 : first + HEAD_ROWS]
    for upper in (first - 1, first):
        over = head[upper]
        under = head[min(upper + 1, len(head) - 1)]
        gaps = any(
            low and not top and any(over[:place])
            for place, (top, low) in enumerate(zip(over, under, strict=True))
        )
        columns = _columns(under, head[upper + 2 : upper + HEAD_ROWS])
        if (
            upper >= 0
            and sum(map(bool, over)) > 1
            and gaps
            and (upper == first or len(set(filter(None, under))) < sum(map(bool, under)))
            and not any(map(looks_typed, under))
            and any(name and cells and all(map(looks_typed, cells)) for name, cells in columns)
        ):
            labels = itertools.accumulate(
                zip(over, under, strict=True),
                lambda last, cell: (cell[0] or (cell[1] and last[0]), cell[1]),
            )
            names = [" ".join(filter(None, label)) for label in labels]
            first = upper
            start = places[upper + 1] + 1
            notes = [("header_joined", 2, "")]
            break
    else:
        names = [" ".join(name.split()) for name in read[places[first]]]
        start = places[first] + 1
        notes = []
        if not _is_header(head[first], body):
            names = [""] * width
            start = places[first]
            notes = [("no_names", 1, "")]
        # R writes no name above the names of rows.
        elif (
            not head[first][-1]
            and all(head[first][:-1])
            and all(row[-1] for row in body)
            and len({row[0] for row in body}) == len(body) > 1
        ):
            names = ["", *names][:width]
    notes.append(("lines_left_out", first, " / ".join(map(_words, head[:first]))))
    return names, notes, itertools.chain(read[start:], stripped), sum(counts)


def _words(row: Row) -> str:
    return ", ".join(filter(None, row))


def _is_ruler(row: Row) -> bool:
    """Return whether a row is a separator line, such as `-----`, in all its cells."""
    return any(row) and all(map(_RULER.fullmatch, filter(None, row)))


def _is_header(head: Row, body: Sequence[Row]) -> bool:
    """Return whether a row holds names: no column is of numbers or dates from this row on, years as
    names set aside.
    """
    typed = [
        (name, cells)
        for name, cells in _columns(head, body)
        if (cells or not body) and all(map(looks_typed, [name, *cells]))
    ]
    return all(
        body and _YEAR.fullmatch(name) and not all(map(_YEAR.fullmatch, cells))
        for name, cells in typed
    )


def _columns(head: Row, body: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return each column's name and its cells that are not missing."""
    return [
        (name, [cell for cell in cells if cell and cell.lower() not in MISSING])
        for name, *cells in zip(head, *body, strict=False)
    ]


def _make_table(
    loading: _Loading, table: str, header: Row, rows: Iterator[Row], *, texts: set[int] | None
) -> None:
    """Write the rows for DuckDB, decide the types of the columns, and make the table; `texts` as
    `_sheets` has them.
    """
    part = loading.scratch / "rows.csv"
    width = widest = len(header)
    counts = Counter[str]()
    examples = dict[str, str]()
    blank = 0
    typical = 0
    tail = deque[tuple[int, Row]](maxlen=MOST_TAIL + 1)
    with part.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            code = "empty_rows" if row else "blank"
            if any(row) or (width == 1 and row):
                even = texts is not None or len(row) == width
                code = "rulers" if _is_ruler(row) else "rows" if even else "uneven_lines"
            counts[code] += 1
            examples[code] = examples.get(code) or _words(row)
            if code in ("rows", "uneven_lines"):
                # A blank line in a file of one column is a value that is missing.
                writer.writerows([[""]] * blank if width == 1 else [])
                writer.writerow(row + [""] * (width - len(row)))
                tail.append((blank, row))
                blank = 0
                widest = max(widest, len(row))
                typical = max(typical, sum(map(bool, row)))
            else:
                blank += code != "rulers" or width > 1
    headers = {f"c{place}": name for place, name in enumerate(header + [""] * (widest - width))}
    loading.root.execute(
        f"CREATE OR REPLACE TABLE scratch.body AS FROM read_csv({path_literal(part)},"
        " auto_detect=false, header=false, delim=',', quote='\"', escape='\"',"
        f" null_padding={widest > width}, parallel={widest == width},"
        f" max_line_size={8 * MOST_LINE}, columns={dict.fromkeys(headers, TEXT)})"
    )
    [(end,)] = loading.root.execute("SELECT count(*) FROM scratch.body").fetchall()
    style: Style | None = None if texts is None else "point"
    end -= len(below := _lines_below(loading, tail, typical, end, headers, style))
    loading.note("rows_left_out", table, count=len(below), value=" / ".join(map(_words, below)))
    counts["uneven_lines"] -= sum(len(row) != width for row in below)
    for code in ("uneven_lines", "empty_rows", "rulers"):
        loading.note(code, table, count=max(0, counts[code]), value=examples.get(code, ""))
    _leave_out_totals(loading, table, end, headers, style)
    body = f"FROM scratch.body WHERE rowid < {end}"
    used = [
        name
        for name, new in headers.items()
        if new or loading.root.execute(f"SELECT count({name}) {body}").fetchall() != [(0,)]
    ]
    if texts is not None:
        gap = _gap(headers, used)
        loading.note("gap_in_sheet", table, count=int(bool(gap)), value=gap)
    names = dict(zip(used, column_names([headers[name] for name in used]), strict=True))
    readings = readings_of(loading.root, body, headers, style)
    words = frozenset(word for reading in readings.values() for word in reading.missing)
    for name, new in names.items():
        known = [
            *[("unnamed", "")] * (any(header) and not headers[name]),
            *[("from_text", "")] * (int(name[1:]) in (texts or ()) and readings[name].type != TEXT),
        ]
        for code, value in [*readings[name].notes, *known]:
            loading.note(code, table, column=new, value=value)
    loading.note("missing", table, count=len(words), value=", ".join(sorted(words)))
    chosen = ", ".join(
        f"{value_sql(name, readings[name], words)} AS {quoted(new)}" for name, new in names.items()
    )
    loading.root.execute(f"CREATE TABLE {quoted(table)} AS SELECT {chosen} {body} ORDER BY rowid")


def _gap(headers: dict[str, str], used: Sequence[str]) -> str:
    """Return the names on both sides of an empty column that may part two tables; "" without."""
    named = list(headers.values())
    for place, name in enumerate(headers):
        around = [*named[max(0, place - 2) : place], *named[place + 1 : place + 3]]
        if name not in used and len(around) == 4 and all(around):
            return f"{named[place - 1]} / {named[place + 1]}"
    return ""


def _leave_out_totals(
    loading: _Loading, table: str, end: int, headers: dict[str, str], style: Style | None
) -> None:
    """Delete the rows that are totals of others, and note them and those that may be."""
    found = total_rows(loading.root, end, headers, style)
    left_out = [str(row.place) for row in found if row.is_left_out]
    if left_out:
        loading.root.execute(f"DELETE FROM scratch.body WHERE rowid IN ({', '.join(left_out)})")
    for code in dict.fromkeys(row.code for row in found):
        words = [row.words for row in found if row.code == code]
        loading.note(code, table, count=len(words), value=" / ".join(words))


def _lines_below(
    loading: _Loading,
    tail: Sequence[tuple[int, Row]],
    typical: int,
    end: int,
    headers: dict[str, str],
    style: Style | None,
) -> list[Row]:
    """Return the last lines that are no rows: few cells, and a first one that does not fit its
    column or stands below a blank line.

    `tail` has the last rows, each with the number of blank lines above it; `typical` is how many
    cells a row has.
    """
    most = max(1, typical // 4) if typical > 2 else -1
    few = list(itertools.takewhile(lambda item: sum(map(bool, item[1])) <= most, reversed(tail)))
    readings = (
        readings_of(
            loading.root, f"FROM scratch.body WHERE rowid < {end - len(few)}", headers, style
        )
        if few
        else {}
    )
    for left, (blank, row) in zip(range(len(few), 0, -1), reversed(few), strict=True):
        place, cell = next((place, cell) for place, cell in enumerate(row) if cell)
        reading = readings[f"c{place}"]
        odd = (
            reading.type != TEXT
            and cell.lower() not in MISSING
            and not re.fullmatch(reading.pattern, cell)
        )
        if (blank or odd) and not TOTAL.fullmatch(cell):
            return [row for _, row in tail][-left:] if left <= MOST_TAIL else []
    return []


def _sheets(loading: _Loading, file: Path) -> Iterator[tuple[str, Iterator[Row], set[int], Notes]]:
    """Yield the title of each visible sheet (none where it is alone), its rows, the columns with
    numbers stored as text, and notes.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("an Excel file cannot be read", "excel") from error
    try:
        if (
            size := sum(part.file_size for part in ZipFile(file).infolist())
        ) > loading.limits.memory_bytes:
            raise DatabaseUnavailableError(
                f"{file.name!r} has {size:,} bytes when unpacked, FileLimits.memory_bytes allows"
                f" {loading.limits.memory_bytes:,}"
            )
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            visible: list[Any] = [
                sheet for sheet in book.worksheets if sheet.sheet_state == "visible"
            ] or book.worksheets
            loading.notes += [
                LoadNote("hidden_sheet", file.name, 1, value=sheet.title)
                for sheet in book.worksheets
                if sheet not in visible
            ]
            for sheet in visible:
                texts = set[int]()
                # Some programs write a wrong size, and rows outside it would be lost.
                sheet.reset_dimensions()
                rows = _sheet_rows(sheet.iter_rows(values_only=True), file, loading.limits, texts)
                yield (
                    sheet.title if len(visible) > 1 else "",
                    rows,
                    texts,
                    _merged_and_unsaved(sheet._get_source()),
                )
    except (BadZipFile, KeyError, ValueError, SyntaxError, OSError) as error:
        raise _unreadable(file, error) from error


def _merged_and_unsaved(source: IO[bytes]) -> Notes:
    """Return notes on the XML of a sheet: cells merged over rows, and formulas whose values the
    program did not save.
    """
    unsaved = list[str]()
    cells = [b""]
    rest = b""
    for part in itertools.chain(iter(partial(source.read, 1 << 22), b""), [b"<c "]):
        *cells, rest = (rest[-(1 << 22) :] + part).split(b"<c ")
        unsaved += [
            cell.split(b'"')[1].decode()
            for cell in cells
            if re.search(rb"<f[ />]", cell) and not re.search(rb'<v>[^<]|t="str"', cell)
        ]
    merged = re.finditer(rb'(?<=mergeCell ref=")(?![A-Z]+(\d+):[A-Z]+\1")[^"]+', cells[-1])
    return [
        (code, len(cells), ", ".join(cells))
        for code, cells in (
            ("unsaved_formulas", unsaved),
            ("merged_cells", [area[0].decode() for area in merged]),
        )
    ]


def _check_size(file: Path, count: int, *, most: int, what: str, setting: str) -> None:
    if count > most:
        raise DatabaseUnavailableError(
            f"a sheet of {file.name!r} has more than the {most:,} {what} that"
            f" FileLimits.{setting} allows"
        )


def _narrow_rows(rows: Iterable[Row], file: Path, limits: FileLimits) -> Iterator[Row]:
    """Yield the rows of a sheet or text file. Raises `DatabaseUnavailableError` for one that is too
    wide, or that cannot be read.
    """
    try:
        for row in rows:
            if len(row) > limits.columns:
                raise DatabaseUnavailableError(
                    f"{file.name!r} has more than the {limits.columns:,} columns that"
                    " FileLimits.columns allows"
                )
            yield row
    except (BadZipFile, KeyError, SyntaxError) as error:
        raise _unreadable(file, error) from error
    except ValueError as error:
        if isinstance(error, UnicodeError) or file.suffix.lower() != ".xlsx":
            raise
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"the file {file.name!r} cannot be loaded: it is no .xlsx workbook, or has a password"
        f" ({first_line(error)})"
    )


def _sheet_rows(
    rows: Iterable[Sequence[object]], file: Path, limits: FileLimits, texts: set[int]
) -> Iterator[Row]:
    cells = 0
    for count, row in enumerate(rows):
        cells += len(row)
        _check_size(file, count, most=limits.sheet_rows, what="rows", setting="sheet_rows")
        _check_size(file, cells, most=limits.sheet_cells, what="cells", setting="sheet_cells")
        texts.update(
            place for place, cell in enumerate(row) if isinstance(cell, str) and cell[:1].isdigit()
        )
        filled = [place for place, cell in enumerate(row) if cell not in (None, "")]
        width = filled[-1] + 1 if filled else 0
        yield ["" if cell is None else str(cell) for cell in row[:width]]
