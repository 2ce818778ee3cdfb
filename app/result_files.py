"""Write a kept result to a file that other programs read: CSV or Parquet."""

import csv
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.graph.errors import ConfigError
from longtable.tools.cells import Json, dumps, json_value

if TYPE_CHECKING:
    from longtable.tools.results import ResultStore

FORMS = (".csv", ".parquet")


def save_result(results: "ResultStore", thread_id: str, handle: str, file: Path) -> int:
    """Write the whole result to a new file, in the form its name ends with, and return its number of rows.

    CSV is UTF-8 with a heading, NULL is empty. Raises `ConfigError` for another ending and for a file that is there
    already or cannot be written, `UnknownResultError`, `ResultGoneError`.
    """
    if file.suffix.lower() not in FORMS:
        raise ConfigError(f"the file must end in {' or '.join(FORMS)}, found {file.name!r}")
    meta = results.meta(thread_id, handle)
    kept = results.path(thread_id, handle)
    try:
        if file.suffix.lower() == ".parquet":
            with kept.open("rb") as source, file.open("xb") as target:
                shutil.copyfileobj(source, target)
        else:
            _write_csv(file, meta.columns, results.batches(thread_id, handle))
    except FileExistsError:
        raise ConfigError(f"{str(file)!r} is there already: name another file") from None
    except OSError as error:
        raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}") from error
    return meta.row_count


def _write_csv(file: Path, columns: Sequence[str], batches: Iterable[Sequence[Sequence[object]]]) -> None:
    with file.open("x", encoding="utf-8", newline="", errors="replace") as target:
        writer = csv.writer(target)
        writer.writerow(columns)
        for rows in batches:
            writer.writerows([_text(cell) for cell in row] for row in rows)


def _text(cell: object) -> Json:
    value = json_value(cell)
    return dumps(value) if isinstance(value, list | dict) else value
