"""The part of a result that the model sees: the first rows, and a summary of further columns."""

import json
import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import islice

from longtable.tools.cells import Json, clean, clip, dumps, json_value, preview_rows
from longtable.tools.sql.verdict import MASK

SHOWN_ROWS = 20
"""The number of rows in the model's preview."""

SHOWN_COLUMNS = 30
"""The number of columns whose cells are shown. A result with more columns is called wide."""

SUMMED_COLUMNS = 40
"""The most numeric columns of a wide result that are summed up, because their cells are not shown.
"""

NAMED_COLUMNS = 300
"""The number of columns whose names and types are shown."""

NAME_CHARS = 120

MOST_CELLS = 2_000_000
"""The most cells that are read for the summary of a wide result."""

DIGITS = 6


def shown_types(types: Sequence[str], masked: Collection[int]) -> list[str]:
    """Return the types of a result's columns as the model sees them: the type of a masked column is
    replaced by the mask.
    """
    return [MASK if place in masked else name for place, name in enumerate(types)]


def shown_part(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]]
) -> dict[str, Json]:
    """Return the columns, types and rows that the model sees, and how many rows these are. Of a
    wide result, only the first columns have cells, and the number of all columns is added.
    """
    preview = preview_rows([row[:SHOWN_COLUMNS] for row in rows])
    part: dict[str, Json] = {
        "columns": [clip(clean(name), NAME_CHARS) for name in columns[:NAMED_COLUMNS]],
        "types": [clip(name, NAME_CHARS) for name in types[:NAMED_COLUMNS]],
        "shown": len(preview),
    }
    if len(columns) > SHOWN_COLUMNS:
        part |= {"column_count": len(columns), "shown_columns": SHOWN_COLUMNS}
    return {**part, "rows": [list(row) for row in preview]}


def with_note(answer: str, **notes: Json) -> str:
    """Return an answer of run_sql with notes put before its rows. A long answer is cut at its end,
    which would cut off notes after the rows.
    """
    noted: dict[str, Json] = {}
    for name, value in json.loads(answer).items():
        if name == "rows":
            noted |= notes
        noted[name] = value
    return dumps(noted)


def summary(
    columns: Sequence[str], rows: Sequence[Sequence[object]], masked: Collection[int], *, chars: int
) -> dict[str, Json]:
    """Return the minimum, maximum, mean and number of NULLs of up to `SUMMED_COLUMNS` numeric
    columns whose cells are not shown.

    If the result has very many cells, only its first rows are read, and `summary_of_rows` says how
    many. Masked columns are left out. Each column name is cut to `chars` characters.
    """
    ranges: dict[str, Json] = {}
    sample = rows[: max(1, MOST_CELLS // max(1, len(columns)))]
    numeric = (
        found
        for place in range(SHOWN_COLUMNS, len(columns))
        if place not in masked and (found := _column(columns, place, sample))
    )
    for name, figures in islice(numeric, SUMMED_COLUMNS):
        ranges[clip(clean(name), chars)] = figures
    if not ranges:
        return {}
    return {
        "summary": ranges,
        **({"summary_of_rows": len(sample)} if len(sample) < len(rows) else {}),
    }


def _column(
    columns: Sequence[str], place: int, rows: Sequence[Sequence[object]]
) -> tuple[str, dict[str, Json]] | None:
    """Return the name and figures of a column, None if it has values that are not numbers or no
    finite number.
    """
    cells = [row[place] for row in rows]
    numbers = [cell for cell in cells if cell is not None]
    if not numbers or not all(
        isinstance(cell, int | float | Decimal) and not isinstance(cell, bool) for cell in numbers
    ):
        return None
    finite = [
        cell for cell in numbers if isinstance(cell, int | float | Decimal) and math.isfinite(cell)
    ]
    if not finite:
        return None
    mean = math.fsum(finite) / len(finite)
    figures: dict[str, Json] = {
        "min": json_value(min(finite)),
        "max": json_value(max(finite)),
        "mean": float(f"{mean:.{DIGITS}g}"),
    }
    return columns[place], {**figures, "nulls": len(cells) - len(numbers)}
