"""Turn rows of texts into a table: its columns get types, and remarks and totals below the table
are left out.
"""

import csv
import itertools
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longtable.tools.catalog import quoted
from longtable.tools.files.column_readings import readings_of, value_sql
from longtable.tools.files.column_types import MISSING, TEXT, Style
from longtable.tools.files.load_target import Loading, Row
from longtable.tools.files.table_heads import is_ruler, words_of_row
from longtable.tools.files.text_tables import MOST_LINE
from longtable.tools.files.total_rows import TOTAL, total_rows
from longtable.tools.results.parquet import column_names, path_literal

MOST_TAIL = 3
"""The most lines at the end that may be remarks instead of rows of the table."""


def make_table(
    loading: Loading, table: str, header: Row, rows: Iterator[Row], *, texts: set[int] | None
) -> None:
    """Write the rows to a file for DuckDB, decide the types of the columns, and make the table.
    `texts` are the places of columns with numbers stored as text, as `workbook_sheets` yields them;
    None for a text file.
    """
    part = loading.scratch / "rows.csv"
    width = len(header)
    written = _write_rows(part, width, rows, in_text_file=texts is None)
    widest = written.widest
    headers = {f"c{place}": name for place, name in enumerate(header + [""] * (widest - width))}
    loading.root.execute(
        f"CREATE OR REPLACE TABLE scratch.body AS FROM read_csv({path_literal(part)},"
        " auto_detect=false, header=false, delim=',', quote='\"', escape='\"',"
        f" null_padding={widest > width}, parallel={widest == width},"
        f" max_line_size={8 * MOST_LINE}, columns={dict.fromkeys(headers, TEXT)})"
    )
    [(end,)] = loading.root.execute("SELECT count(*) FROM scratch.body").fetchall()
    style: Style | None = None if texts is None else "point"
    below = _lines_below(loading, written.tail, written.typical, end, headers, style)
    end -= len(below)
    loading.note(
        "rows_left_out", table, count=len(below), value=" / ".join(map(words_of_row, below))
    )
    written.counts["uneven_lines"] -= sum(len(row) != width for row in below)
    for code in ("uneven_lines", "empty_rows", "rulers"):
        count = max(0, written.counts[code])
        loading.note(code, table, count=count, value=written.examples.get(code, ""))
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
    missing = (reading.missing for reading in readings.values())
    words = frozenset(itertools.chain.from_iterable(missing))
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


@dataclass
class _Written:
    """What was written: how many rows of each kind there were, an example of each kind, and the
    last rows. `widest` is the most cells of a row; `typical` is the most filled cells of a row.
    """

    widest: int
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    tail: deque[tuple[int, Row]] = field(default_factory=lambda: deque(maxlen=MOST_TAIL + 1))
    typical: int = 0


def _write_rows(part: Path, width: int, rows: Iterator[Row], *, in_text_file: bool) -> _Written:
    written = _Written(width)
    blank = 0
    with part.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            code = "empty_rows" if row else "blank"
            if any(row) or (width == 1 and row):
                even = not in_text_file or len(row) == width
                code = "rulers" if is_ruler(row) else "rows" if even else "uneven_lines"
            written.counts[code] += 1
            written.examples[code] = written.examples.get(code) or words_of_row(row)
            if code in ("rows", "uneven_lines"):
                # A blank line in a file of one column is a value that is missing.
                writer.writerows([[""]] * blank if width == 1 else [])
                writer.writerow(row + [""] * (width - len(row)))
                written.tail.append((blank, row))
                blank = 0
                written.widest = max(written.widest, len(row))
                written.typical = max(written.typical, sum(map(bool, row)))
            else:
                blank += code != "rulers" or width > 1
    return written


def _gap(headers: dict[str, str], used: Sequence[str]) -> str:
    """Return the names on both sides of an empty column that may separate two tables, such as
    "Sales / Costs". Return "" if there is no such column.
    """
    named = list(headers.values())
    for place, name in enumerate(headers):
        around = [*named[max(0, place - 2) : place], *named[place + 1 : place + 3]]
        if name not in used and len(around) == 4 and all(around):
            return f"{named[place - 1]} / {named[place + 1]}"
    return ""


def _leave_out_totals(
    loading: Loading, table: str, end: int, headers: dict[str, str], style: Style | None
) -> None:
    """Delete the rows that are totals of other rows. Add notes on the deleted rows, and on rows
    that only may be totals.
    """
    found = total_rows(loading.root, end, headers, style)
    left_out = [str(row.place) for row in found if row.is_left_out]
    if left_out:
        loading.root.execute(f"DELETE FROM scratch.body WHERE rowid IN ({', '.join(left_out)})")
    for code in dict.fromkeys(row.code for row in found):
        words = [row.words for row in found if row.code == code]
        loading.note(code, table, count=len(words), value=" / ".join(words))


def _lines_below(
    loading: Loading,
    tail: Sequence[tuple[int, Row]],
    typical: int,
    end: int,
    headers: dict[str, str],
    style: Style | None,
) -> list[Row]:
    """Return the lines at the end that are not rows of the table. Such a line has few cells; also,
    it follows a blank line, or its first cell does not fit its column.

    `tail` holds the last rows, each with the number of blank lines above it. `typical` is the
    number of cells that a full row has.
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
