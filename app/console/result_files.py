"""Write a stored result to a file for other programs: CSV, Parquet or Excel."""

import csv
import re
import shutil
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from langchain_core.messages import BaseMessage

from longtable.base.errors import ConfigError, MissingExtraError, PersistenceError
from longtable.base.events import ChartShown
from longtable.tools.cells import Json, dumps, json_value
from longtable.tools.charts.chart_tool import Chart, chart_of, draws_pictures

if TYPE_CHECKING:
    from longtable.app.session import Session
    from longtable.tools.results.result_store import ResultStore


FORMS = (".csv", ".parquet", ".xlsx")
SHEET_ROWS = 1_048_576
SHEET_COLUMNS = 16_384
CELL_CHARS = 32_767
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""If a text begins with one of these characters, a spreadsheet reads it as a formula."""


MOST_LINKS = 5
"""The most results of a turn that an answer links, counted from the newest."""
_HANDLE = re.compile(r'"handle":\s*"(r\d+)"')
"""Matches a handle in the JSON of a tool. In the text of a cell the quotes are escaped, so such a
text does not match.
"""


def answer_links(address: str, thread_id: str, messages: Sequence[BaseMessage]) -> str:
    """Return Markdown for browsers that shows the charts of a turn and links its results as CSV.
    Return "" if the turn has no results.
    """
    results = [
        (match[1], str(message.text))
        for message in messages
        if message.type == "tool" and (match := _HANDLE.search(message.text))
    ]
    at = f"{address.rstrip('/')}/longtable/threads/{quote(thread_id, safe='')}/results"
    charts = (
        dict.fromkeys(handle for handle, text in results if re.search(r'"shown":\s*true', text))
        if draws_pictures()
        else {}
    )
    tables = [*dict.fromkeys(handle for handle, _ in results)][-MOST_LINKS:]
    lines = [
        *(f"![{handle}]({at}/{handle}.svg)" for handle in charts),
        " · ".join(f"[{handle}.csv]({at}/{handle}.csv)" for handle in tables),
    ]
    return "\n\n" + "\n\n".join(lines) if tables else ""


def save_result(
    results: "ResultStore", thread_id: str, handle: str, file: Path, *, quote_formulas: bool = False
) -> tuple[int, int]:
    """Write a whole result to a new file. The ending of the name chooses the format.

    Return the number of rows, and the number of cells that a spreadsheet would read as formulas
    (see `write_csv`). CSV is UTF-8 with a line of headings; NULL is empty, and each cell is written
    unchanged. In an Excel file text always stays text, so no cell is a formula.

    Raises `ConfigError` for another ending, for a file that exists or cannot be written, and if the
    result is too large for a sheet. Raises `UnknownResultError` or `ResultGoneError` if there is no
    such result any more.
    """
    if file.suffix.lower() not in FORMS:
        raise ConfigError(
            f"the file must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}, found {file.name!r}"
        )
    meta = results.meta(thread_id, handle)
    path = results.path(thread_id, handle)
    formulas = 0
    try:
        if file.suffix.lower() == ".parquet":
            with path.open("rb") as source, file.open("xb") as target:
                shutil.copyfileobj(source, target)
        elif file.suffix.lower() == ".xlsx":
            _write_sheet(file, meta.columns, results.batches(thread_id, handle), meta.row_count)
        else:
            with file.open("x", encoding="utf-8", newline="", errors="replace") as target:
                formulas = write_csv(
                    target,
                    meta.columns,
                    results.batches(thread_id, handle),
                    quote_formulas=quote_formulas,
                )
    except FileExistsError:
        raise ConfigError(f"{str(file)!r} already exists: name another file") from None
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}") from error
    return meta.row_count, formulas


def write_csv(
    target: IO[str],
    columns: Sequence[str],
    batches: Iterable[Sequence[Sequence[object]]],
    *,
    quote_formulas: bool = False,
) -> int:
    """Write a line of headings and all rows as CSV. Return how many texts a spreadsheet would read
    as formulas. With `quote_formulas`, a ' is put before these texts and 0 is returned.
    """
    writer = csv.writer(target)
    formulas = 0
    for rows in chain([[columns]], batches):
        formulas += sum(map(_is_formula, chain.from_iterable(rows)))
        writer.writerows(csv_cells(row, quote_formulas=quote_formulas) for row in rows)
    return 0 if quote_formulas else formulas


def csv_cells(row: Sequence[object], *, quote_formulas: bool = False) -> list[Json]:
    """Return the cells of a row for CSV. Nested values become JSON."""
    return [
        f"'{_text(cell)}" if quote_formulas and _is_formula(cell) else _text(cell) for cell in row
    ]


def _is_formula(cell: object) -> bool:
    return isinstance(cell, str) and cell.startswith(FORMULA)


def _write_sheet(
    file: Path, columns: Sequence[str], batches: Iterable[Sequence[Sequence[object]]], rows: int
) -> None:
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError(
            "an Excel file cannot be written", "excel", instead="write .csv or .parquet"
        ) from error
    if rows >= SHEET_ROWS or len(columns) > SHEET_COLUMNS:
        raise ConfigError(
            f"a sheet holds {SHEET_ROWS - 1:,} rows and {SHEET_COLUMNS:,} columns, the result has"
            f" {rows:,} and {len(columns):,}: write .csv or .parquet"
        )
    with file.open("xb") as target:
        book = Workbook(write_only=True)  # a row at a time: the whole sheet is never in memory
        sheet = book.create_sheet("result")
        sheet.append([_sheet_cell(sheet, name) for name in columns])
        for batch in batches:
            for row in batch:
                sheet.append([_sheet_cell(sheet, cell) for cell in row])
        book.save(target)


def _sheet_cell(sheet: Any, cell: object) -> object:
    """Return a cell for openpyxl. Numbers and dates stay as they are; everything else becomes text
    that is never read as a formula.
    """
    if isinstance(cell, datetime | time) and cell.tzinfo is not None:
        cell = cell.isoformat()  # Excel knows no time zone
    value = cell if isinstance(cell, date | time | Decimal) else _text(cell)
    if isinstance(value, Decimal) and not value.is_finite():
        value = str(value)
    if not isinstance(value, str):
        return value
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    text = ILLEGAL_CHARACTERS_RE.sub("", value)[:CELL_CHARS]
    if not text.startswith(FORMULA):
        return text
    styled = WriteOnlyCell(sheet, value=text)
    styled.data_type = "s"
    styled.quotePrefix = True  # or it becomes one when a person edits it
    return styled


def _text(cell: object) -> Json:
    value = json_value(cell)
    return dumps(value) if isinstance(value, list | dict) else value


def chart_in(session: "Session", event: ChartShown) -> Chart:
    """Return the chart of an event, with its rows. Raises the errors of `ResultStore.get` and
    `chart_of`.
    """
    with session.reading():
        result = session.results.get(session.thread_id, event["handle"])
    return chart_of(event["handle"], result, spec=event["spec"])


def write_png(session: "Session", chart: Chart) -> Path:
    """Draw a chart into a new file beside its result, and return the file. Raises
    `MissingExtraError` without the extra `charts`, and other `LongtableError`s if the chart or the
    file fails.
    """
    png = chart.png()
    with session.reading():
        folder = session.results.path(session.thread_id, chart.handle).parent
    for number in count(1):
        file = folder / f"chart-{number}.png"
        try:
            with file.open("xb") as target:
                target.write(png)
        except FileExistsError:
            continue
        except OSError as error:
            raise PersistenceError(f"{str(file)!r} cannot be written: {error.strerror}") from error
        return file
    raise AssertionError("numbers never end")
