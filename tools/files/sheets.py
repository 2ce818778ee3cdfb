"""Read the sheets of an Excel workbook as rows of texts."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from longtable.base.errors import DatabaseUnavailableError, MissingExtraError
from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.files.load_target import Loading, Notes, Row
from longtable.tools.sql.parsing import first_line


def workbook_sheets(
    loading: Loading, file: Path
) -> Iterator[tuple[str, Iterator[Row], set[int], Notes]]:
    """Yield each visible sheet of a workbook as (title, rows, texts, notes). The title is empty if
    the workbook has only one visible sheet. `texts` are the places of columns with numbers stored
    as text; it is complete when all rows have been read.
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
    """Return notes on a sheet that are found in its XML: on cells merged over several rows, and on
    formulas whose values the program did not save.
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
    areas = [area[0].decode() for area in merged]
    return [
        ("unsaved_formulas", len(unsaved), ", ".join(unsaved)),
        ("merged_cells", len(areas), ", ".join(areas)),
    ]


def _check_size(file: Path, count: int, *, most: int, what: str, setting: str) -> None:
    if count > most:
        raise DatabaseUnavailableError(
            f"a sheet of {file.name!r} has more than the {most:,} {what} that"
            f" FileLimits.{setting} allows"
        )


def narrow_rows(rows: Iterable[Row], file: Path, limits: FileLimits) -> Iterator[Row]:
    """Yield the rows of a sheet or text file. Raises `DatabaseUnavailableError` if a row has too
    many cells or the file cannot be read.
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
