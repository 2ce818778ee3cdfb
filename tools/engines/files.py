"""CSV, Parquet, JSON and Excel files as one database: loaded into a DuckDB file of ours, which is then opened like any other.

Text files and sheets are rows of texts at first. Their table is found in them, then each column's type is decided from all of
its values (`column_types`). Whatever was guessed is noted.
"""

import csv
import itertools
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile

import duckdb

from longtable.base.errors import DatabaseUnavailableError, MissingExtraError
from longtable.tools.catalog import fold, quoted
from longtable.tools.cells import clip
from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.engines.column_types import TEXT, Reading, Style, looks_typed, read_as
from longtable.tools.parquet import column_names, empty_instance, path_literal
from longtable.tools.sql.parsing import first_line
from longtable.tools.url import DATA_ENDINGS

_READERS = {
    ".parquet": "read_parquet(?, hive_partitioning=false)",
    ".json": "read_json(?, sample_size=-1, hive_partitioning=false)",
    ".jsonl": "read_json(?, sample_size=-1, format='newline_delimited', hive_partitioning=false)",
    ".ndjson": "read_json(?, sample_size=-1, format='newline_delimited', hive_partitioning=false)",
}
MOST_DEPTH = 6
"""Folders within folders that are looked into."""
HEAD_CHARS = 262_144
"""What is looked at to find the sign between fields."""
MOST_LINE = 2_000_000
"""Characters of one line; DuckDB's own limit."""
HEAD_ROWS = 100
CHUNK_ROWS = 10_000
"""Rows that are written at a time; the lines under a table are looked for in the last of them."""
_RULE = re.compile(r"[-=_+|*]*[-=_]{3}[-=_+|*]*")
"""A line of signs between the rows of a list for the eye."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_TOTAL = re.compile(
    r"(?i)\W*(?:(?:grand |sub)?totals?\b.*|(?:gesamt|zwischen)?summe\b.*|(?:ins)?gesamt\b.*|sum|somme|合计|总计|小计|总额|共计|\*)\W*"
)

Row = list[str]
Notes = list[tuple[str, int]]


@dataclass
class _Loading:
    """What is loaded into one DuckDB file: the names that are used, the notes so far."""

    root: duckdb.DuckDBPyConnection
    scratch: Path
    limits: FileLimits
    names: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[LoadNote] = field(default_factory=list)

    def note(self, code: str, table: str, *, count: int = 0, column: str = "", value: str = "") -> None:
        if count or column:
            self.notes.append(LoadNote(code, self.sources[table], count, table, column, clip(value, 60)))


def load_files(path: Path, target: Path, *, files: FileLimits) -> tuple[LoadNote, ...]:
    """Load a file, or all data files of a folder, into tables of the new file `target`; return what was guessed.

    Raises `DatabaseUnavailableError` naming the file at fault.
    """
    sources = _data_files(path, files)
    home = path if path.is_dir() else path.parent
    with empty_instance(memory_bytes=files.memory_bytes) as root, tempfile.TemporaryDirectory(prefix="longtable-") as scratch:
        root.execute(f"ATTACH {path_literal(target)} AS files")
        root.execute(f"ATTACH {path_literal(Path(scratch) / 'scratch.duckdb')} AS scratch")
        root.execute("USE files")
        loading = _Loading(root, Path(scratch), files)
        for group in _groups(sources, home):
            loaded = [(file, table) for file in group for table in _load(loading, file, home)]
            if loaded and (len({file for file, _ in loaded}) > 1 or _hive(group[0], home)):
                _join(loading, loaded, home)
        if not loading.sources:
            raise DatabaseUnavailableError(f"the file {sources[0].name!r} cannot be loaded: it is empty")
        comments = {(table, ""): [f"from {source}"] for table, source in loading.sources.items()}
        for note in loading.notes:
            comments.setdefault((note.table or next(iter(loading.sources)), note.column), []).append(note.text())
        for (table, column), texts in comments.items():
            where = f"COLUMN {quoted(table)}.{quoted(column)}" if column else f"TABLE {quoted(table)}"
            root.execute(f"COMMENT ON {where} IS {_text('; '.join(dict.fromkeys(texts)))}")
        return tuple(loading.notes)


def _data_files(path: Path, limits: FileLimits) -> list[Path]:
    try:
        if not path.exists():
            raise DatabaseUnavailableError(f"there is no file or folder {str(path)!r}: check the path in the URL")
        found = list(islice(_inside(path), limits.files + 1)) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in found)
    except OSError as error:
        raise DatabaseUnavailableError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if not found:
        raise DatabaseUnavailableError(f"{str(path)!r} holds no data file: known are {', '.join(sorted(DATA_ENDINGS))}")
    if len(found) > limits.files:
        raise DatabaseUnavailableError(f"{str(path)!r} holds over {limits.files:,} data files, FileLimits.files allows {limits.files:,}")
    if size > limits.bytes:
        raise DatabaseUnavailableError(f"the data files of {str(path)!r} have {size:,} bytes, FileLimits.bytes allows {limits.bytes:,}")
    return found


def _inside(path: Path) -> Iterator[Path]:
    """Yield the data files of a folder and its sub-folders; `.txt` may be anything, and is loaded by its own name only."""
    for folder, folders, names in os.walk(path):
        depth = len(Path(folder).relative_to(path).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and depth < MOST_DEPTH)
        known = [Path(folder, name) for name in sorted(names) if not name.startswith((".", "~$"))]
        yield from (file for file in known if file.suffix.lower() in DATA_ENDINGS - {".txt"} and file.is_file())


def _hive(file: Path, home: Path) -> dict[str, str]:
    """Return what the folders of a file say: `year=2023` is a column."""
    return dict(part.split("=", 1) for part in file.relative_to(home).parts[:-1] if "=" in part)


def _groups(sources: Sequence[Path], home: Path) -> list[list[Path]]:
    """Return the files that may be one table: names that differ by digits alone, or folders of the form `year=2023`."""
    groups: dict[object, list[Path]] = {}
    for file in sources:
        hive = _hive(file, home)
        parent = tuple(part for part in file.relative_to(home).parts[:-1] if "=" not in part)
        stem = tuple(hive) if hive else re.sub(r"\d+", "#", file.stem)
        groups.setdefault((parent, stem, file.suffix.lower()), []).append(file)
    return list(groups.values())


def _join(loading: _Loading, loaded: Sequence[tuple[Path, str]], home: Path) -> None:
    """Make one table of those with the same columns, with columns that say which file a row is from."""
    shapes = [loading.root.execute(f"SELECT column_name, column_type FROM (DESCRIBE {quoted(table)})").fetchall() for _, table in loaded]
    # A column of amounts without decimals in one year is the same column.
    if len({str(shape).replace("'BIGINT'", "'DOUBLE'") for shape in shapes}) > 1:
        return
    hive = _hive(loaded[0][0], home)
    names = [str(name) for name, _ in shapes[0]]
    marks = [_hive(file, home) or {"file": file.stem} for file, _ in loaded]
    differing = [digits for digits in zip(*(re.findall(r"\d+", file.stem) for file, _ in loaded), strict=False) if len(set(digits)) > 1]
    dated = hive or {"DATE", "TIMESTAMP"} & {kind for _, kind in shapes[0]}
    if len(differing) == 1 and all(map(_YEAR.fullmatch, differing[0])) and not dated:
        marks = [{**mark, "year": year} for mark, year in zip(marks, differing[0], strict=True)]
    added = column_names([*names, *marks[0]])[len(names) :]
    texts = zip(*(mark.values() for mark in marks), strict=True)
    casts = [
        f"::{'BIGINT' if all(re.fullmatch(r'0|[1-9][0-9]{0,17}', cell) for cell in column) else TEXT} AS {quoted(new)}"
        for new, column in zip(added, texts, strict=True)
    ]
    selects = [
        f"SELECT *, {', '.join(map(str.__add__, map(_text, mark.values()), casts))} FROM {quoted(table)}"
        for mark, (_, table) in zip(marks, loaded, strict=True)
    ]
    parts = [part for part in loaded[0][0].relative_to(home).parts[:-1] if "=" not in part]
    parts += [] if hive else [re.sub(r"\d+", " ", loaded[0][0].stem).strip(" _-.()")]
    name = _table_name("_".join(filter(None, parts)) or home.name, loading.names)
    loading.sources[name] = home.name
    loading.root.execute(f"CREATE TABLE {quoted(name)} AS {' UNION ALL '.join(selects)}")
    for _, table in loaded:
        loading.root.execute(f"DROP TABLE {quoted(table)}")
        del loading.sources[table]
    loading.notes[:] = [replace(note, table=name) if note.table not in loading.sources else note for note in loading.notes]
    loading.note("files_joined", name, count=len(loaded), value=", ".join(added))


def _load(loading: _Loading, file: Path, home: Path) -> list[str]:
    """Load one file and return its tables: none where it is empty, which is noted."""
    ending, encoding = file.suffix.lower() if file.stat().st_size else "", ""
    tables: list[str] = []
    left: list[str] = []
    base = "_".join([*file.relative_to(home).parts[:-1], file.stem])
    try:
        if ending in _READERS:
            table = _table_name(base, loading.names)
            loading.sources[table] = file.name
            path = re.sub(r"([*?\[\]{}])", r"[\1]", str(file))  # DuckDB reads a path as a pattern
            loading.root.execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM {_READERS[ending]}", [path])
            return [table]
        sheets = _sheets(file, loading.limits) if ending == ".xlsx" else [("", _text_rows(file, encoding := _encoding(file)), None)]
        for title, rows, texts in sheets:
            names, notes, body = _find_table(rows) or ([], [], iter(()))
            first = next(body, [])
            if title and not first and sum(map(bool, names)) == 1:
                left.append(title)
            elif names:
                table = _table_name("_".join(filter(None, [base, title])), loading.names)
                tables.append(table)
                loading.sources[table] = f"{file.name}, sheet {title}" if title else file.name
                loading.note("encoding", table, count=len(encoding), value=encoding)
                for code, count in notes:
                    loading.note(code, table, count=count)
                _make_table(loading, table, names, itertools.chain([first] if first else [], body), texts=texts)
        for title in left if tables else ():
            loading.note("sheet_left_out", tables[0], count=1, value=title)
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise DatabaseUnavailableError(
            f"{file.name!r} does not fit into the {loading.limits.memory_bytes:,} bytes that FileLimits.memory_bytes allows:"
            " load fewer or smaller files"
        ) from error
    except (duckdb.Error, UnicodeError, csv.Error) as error:
        raise DatabaseUnavailableError(f"the file {file.name!r} cannot be loaded: {clip(first_line(error), 300)}") from error
    if not tables:
        loading.notes.append(LoadNote("empty_file", file.name, 1, "", "", file.name))
    return tables


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _table_name(text: str, names: set[str]) -> str:
    """Return a name that is not used yet and needs no quotes for its signs."""
    base = re.sub(r"^(?=\d)", "t_", re.sub(r"\W+", "_", text).strip("_") or "data")
    name = next(name for name in itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2))) if fold(name) not in names)
    names.add(fold(name))
    return name


def _encoding(file: Path) -> str:
    """Return the encoding of a text file as people call it; nothing for UTF-8."""
    with file.open("rb") as stream:
        head = stream.read(1_000_000)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    with suppress(UnicodeError), file.open(encoding="utf-8") as text:
        while text.read(1_000_000):
            pass
        return ""
    signs = head.decode("utf-8", "replace")
    if signs.count("\ufffd") <= 3 * sum("\x7f" < sign < "\ufffd" for sign in signs):
        return "UTF-8 with wrong bytes"
    # Most signs of a Chinese text are from the first level of GB 2312, two high bytes each.
    pairs = sum(pair[0] <= 0xA3 or 0xB0 <= pair[0] <= 0xD7 for pair in re.findall(rb"[\xa1-\xfe]{2}", head))
    return "GB18030" if 4 * pairs >= len(re.findall(rb"[\x80-\xff]", head)) > 0 else "Windows-1252"


def _text_rows(file: Path, encoding: str) -> Iterator[Row]:
    """Yield the rows of a text file."""
    codec = {"Windows-1252": "cp1252", "GB18030": "GB18030", "UTF-16": "UTF-16"}.get(encoding, "utf-8-sig")
    with file.open(encoding=codec, errors="replace", newline="") as text:
        head = text.read(HEAD_CHARS).splitlines(keepends=True)
        text.seek(0)
        csv.field_size_limit(MOST_LINE)
        rows = _reader(head[:1000], file.suffix.lower())(text)
        formulas = any('="' in line for line in head)  # how codes are written to keep their zeros: ="007"
        yield from ([re.sub(r'^="(.*)"$', r"\1", cell) for cell in row] for row in rows) if formulas else rows


def _reader(lines: Sequence[str], ending: str) -> Callable[[Iterable[str]], Iterator[Row]]:
    """Return what parts lines into fields: at the sign at which most of these lines part into the same number."""
    text = "".join(lines)
    # R puts a backslash before a quote where others write the quote twice.
    escape = "\\" if '\\"' in text and not re.search(r'\w""\w', text) else None
    named = re.match(r'(?i)"?sep=(.)"?\s*$', lines[0] if lines else "")
    best: tuple[float, int] = (0.0, 0)
    reader = partial(csv.reader, delimiter=",")
    for sign in named[1] if named else "\t" if ending == ".tsv" else ",;\t| ":
        # Programs that write tabs between copied cells quote nothing.
        bare = sign == "\t" and re.search(r'(?m)(?:^|\t)"(?:[^"\t\n]*"[^"\t\r\n]|[^"\t]*\t[^"]*$)', text)
        quoting: Literal[0, 3] = csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL
        tried = partial(csv.reader, delimiter=sign, escapechar=escape, doublequote=not escape, quoting=quoting)
        rows = [row for row in tried(lines) if any(map(str.strip, row))]
        widths = Counter(len(row) for row in rows if len(row) > 1)
        width, count = max(widths.items(), key=lambda item: (item[0] * item[1], item[0]), default=(1, 0))
        score = (count / max(len(rows), 1) * min(width, 4), width)
        # A space parts words, too: it counts only where nothing else does, and for all lines.
        if score > best and (sign != " " or (best[0] <= 1 and count > 1 and count >= 0.9 * (len(rows) - 1))):
            best, reader = score, tried
    return (lambda lines: islice(reader(lines), 1, None)) if named else reader


def _find_table(rows: Iterable[Row]) -> tuple[Row, Notes, Iterator[Row]] | None:
    """Return the names of a table, what was guessed and its rows: it begins at the first row that fills most of its columns."""
    filled = (row for row in (list(map(str.strip, row)) for row in rows) if any(row) and not _RULE.fullmatch("".join(row)))
    read = list(islice(filled, HEAD_ROWS))
    if not read:
        return None
    width = max(map(len, read))
    head = [row + [""] * (width - len(row)) for row in read]
    counts = [sum(map(bool, row)) for row in head]
    first = next(place for place, count in enumerate(counts) if count >= 0.6 * max(counts))
    for upper in (first - 1, first):
        over, under = head[upper], head[min(upper + 1, len(head) - 1)]
        words = [cell for cell in under if cell]
        gaps = any(low and not top and any(over[:place]) for place, (top, low) in enumerate(zip(over, under, strict=True)))
        if upper >= 0 and gaps and sum(map(bool, over)) > 1 and len(set(words)) < len(words) and not any(map(looks_typed, words)):
            labels = itertools.accumulate(zip(over, under, strict=True), lambda last, cell: (cell[0] or (cell[1] and last[0]), cell[1]))
            names = [" ".join(filter(None, label)) for label in labels]
            return names, [("lines_left_out", upper), ("header_joined", 2)], itertools.chain(read[upper + 2 :], filled)
    names, body = head[first], head[first + 1 :]
    if body and not _is_header(names, body):
        return [""] * width, [("lines_left_out", first), ("no_names", 1)], itertools.chain(read[first:], filled)
    # R writes no name above the names of rows.
    shifted = not names[-1] and all(names[:-1]) and all(row[-1] for row in body) and len({row[0] for row in body}) == len(body) > 1
    names = ["", *names[:-1]] if shifted else [" ".join(name.split()) for name in read[first]]
    return names, [("lines_left_out", first)], itertools.chain(read[first + 1 :], filled)


def _is_header(head: Row, body: Sequence[Row]) -> bool:
    """Return whether a row holds names: no column is of numbers or dates from this row on, years as names set aside."""
    columns = [(name, [cell for cell in cells if cell]) for name, *cells in zip(head, *body, strict=False)]
    typed = [(name, cells) for name, cells in columns if cells and all(map(looks_typed, [name, *cells]))]
    return all(_YEAR.fullmatch(name) and not all(map(_YEAR.fullmatch, cells)) for name, cells in typed)


def _make_table(loading: _Loading, table: str, header: Row, rows: Iterator[Row], *, texts: set[int] | None) -> None:
    """Write the rows for DuckDB, decide the types of the columns, and make the table; `texts` as `_sheets` has them."""
    part = loading.scratch / "rows.csv"
    width = widest = len(header)
    last, uneven = list[Row](), 0
    with part.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        while chunk := list(islice(rows, CHUNK_ROWS)):
            widest, uneven = max(widest, *map(len, chunk)), uneven + sum(len(row) != width for row in chunk)
            writer.writerows(last)
            last = [row if len(row) >= width else row + [""] * (width - len(row)) for row in chunk]
        counts = [sum(map(bool, row)) for row in last]
        typical = max(counts, default=0)
        while typical > 2 and counts[-1] <= max(1, typical // 4):
            counts.pop()
        writer.writerows(last[: len(counts)])
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(widest))
    loading.root.execute(
        f"CREATE OR REPLACE TABLE scratch.body AS FROM read_csv({path_literal(part)}, auto_detect=false, header=false,"
        f" delim=',', quote='\"', escape='\"', null_padding={widest > width}, parallel={widest == width},"
        f" max_line_size={8 * MOST_LINE}, columns={{{columns}}})"
    )
    loading.note("rows_left_out", table, count=len(last) - len(counts))
    loading.note("uneven_lines", table, count=max(0, uneven - len(last) + len(counts)))
    header = header + [""] * (widest - width)
    [(end, *present)] = loading.root.execute(
        f"SELECT count(*), {', '.join(f'count(c{place})' for place in range(widest))} FROM scratch.body"
    ).fetchall()
    used = [place for place in range(widest) if header[place] or present[place]]
    names = dict(zip((f"c{place}" for place in used), column_names([header[place] for place in used]), strict=True))
    body = f"FROM scratch.body WHERE rowid < {end}"
    style: Style | None = None if texts is None else "point"
    label = next(filter(None, last[len(counts) - 1]), "") if counts else ""
    if _TOTAL.fullmatch(label) and end != 1:
        above = f"FROM scratch.body WHERE rowid < {end} - 1"
        trial = _readings(loading, above, names, style)
        numbers = [_value(name, reading, frozenset()) for name, reading in trial.items() if reading.type in ("BIGINT", "DOUBLE")]
        sums = [f"bool_or(rowid = {end} - 1 AND {n} <> 0 AND abs({n} - (SELECT sum({n}) {above})) <= 0.005 * abs({n}))" for n in numbers]
        adds = any(loading.root.execute(f"SELECT {', '.join(sums)} {body}").fetchall()[0]) if sums else False
        loading.note("total_left_out" if adds else "total_rows", table, count=1, value=label)
        body = above if adds else body
    readings = _readings(loading, body, names, style)
    words = frozenset(word for reading in readings.values() for word in reading.missing)
    for name, new in names.items():
        place = int(name[1:])
        unnamed = [("unnamed", "")] if any(header) and not header[place] else []
        stored = [("from_text", "")] if place in (texts or ()) and readings[name].type != TEXT else []
        for code, value in [*readings[name].notes, *unnamed, *stored]:
            loading.note(code, table, column=new, value=value)
    loading.note("missing", table, count=len(words), value=", ".join(sorted(words)))
    chosen = ", ".join(f"{_value(name, readings[name], words)} AS {quoted(new)}" for name, new in names.items())
    loading.root.execute(f"CREATE TABLE {quoted(table)} AS SELECT {chosen} {body} ORDER BY rowid")


def _readings(loading: _Loading, body: str, names: dict[str, str], style: Style | None) -> dict[str, Reading]:
    """Return how to read each column: decided from some values, and again with each value that does not fit."""
    values = {
        name: {str(cell) for (cell,) in loading.root.execute(f"SELECT {name} {body} AND {name} IS NOT NULL LIMIT 200").fetchall()}
        for name in names
    }
    readings: dict[str, Reading] = {}
    unsure, fixed = set(names), style
    for _ in range(12):
        readings |= {name: read_as(values[name], names[name], style=style) for name in unsure}
        misfits = {name: _misfit(name, readings[name]) for name in names if name in unsure and readings[name].pattern}
        counts = loading.root.execute(
            f"SELECT count(*), {', '.join(f'count(*) FILTER ({misfit})' for misfit in misfits.values())} {body}"
        ).fetchall()[0][1:]
        unsure = {name for name, count in zip(misfits, counts, strict=False) if count}
        for name in unsure:
            values[name] |= {
                str(cell) for (cell,) in loading.root.execute(f"SELECT DISTINCT {name} {body} AND {misfits[name]} LIMIT 200").fetchall()
            }
        shown = {reading.style for reading in readings.values()} - {None}
        agreed = fixed or (shown.pop() if len(shown) == 1 else None)
        if agreed != style:
            style, unsure = agreed, unsure | {name for name in names if readings[name].notes}
        if not unsure:
            break
    return readings | dict.fromkeys(unsure, Reading(TEXT))


def _misfit(name: str, reading: Reading) -> str:
    """Return SQL that is true where a value is not of the form that its column is read as."""
    converted = "" if reading.type == TEXT else f" AND ({reading.sql.format(v=name)}) IS NOT NULL"
    known = _value(name, Reading(TEXT), reading.missing)
    return f"{known} IS NOT NULL AND NOT (regexp_full_match({name}, {_text(reading.pattern)}){converted})"


def _value(name: str, reading: Reading, words: frozenset[str]) -> str:
    """Return SQL for the value of a column as it is read; in a column of text, `words` are missing, too."""
    words = words if reading.type == TEXT else reading.missing
    value = reading.sql.format(v=name)
    return f"CASE WHEN {name} NOT IN ({', '.join(map(_text, sorted(words)))}) THEN {value} END" if words else value


def _sheets(file: Path, limits: FileLimits) -> Iterator[tuple[str, Iterator[Row], set[int]]]:
    """Yield the title of each visible sheet (none where it is alone), its rows, and the columns with numbers stored as text."""
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise MissingExtraError("an Excel file cannot be read", "excel") from error
    try:
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            for sheet in visible:
                texts = set[int]()
                rows = _sheet_rows(sheet.iter_rows(values_only=True), file, limits, texts)
                yield sheet.title if len(visible) > 1 else "", rows, texts
    except (BadZipFile, InvalidFileException, KeyError, ValueError, SyntaxError, OSError) as error:
        raise DatabaseUnavailableError(
            f"the file {file.name!r} cannot be loaded: it is no .xlsx workbook, or has a password ({first_line(error)})"
        ) from error


def _sheet_rows(rows: Iterable[Sequence[object]], file: Path, limits: FileLimits, texts: set[int]) -> Iterator[Row]:
    for count, row in enumerate(rows):
        if count > limits.sheet_rows:
            raise DatabaseUnavailableError(
                f"a sheet of {file.name!r} has more than the {limits.sheet_rows:,} rows that FileLimits.sheet_rows allows"
            )
        texts.update(place for place, cell in enumerate(row) if isinstance(cell, str) and cell[:1].isdigit())
        yield ["" if cell is None else cell.isoformat(" ") if isinstance(cell, datetime) else str(cell) for cell in row]
