"""The part of a result that the model is shown: the first rows, and a summary of each column."""

import json
import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import islice

from longtable.tools.cells import Json, clean, clip, dumps, json_value, preview_rows
from longtable.tools.sql.verdict import MASK

SHOWN_ROWS = 20
"""Rows of a result in the model's preview."""

SHOWN_COLUMNS = 30
"""Columns whose cells are shown; a result with more is wide."""

SUMMED_COLUMNS = 40
"""Further numeric columns that are summed up in a wide result."""

NAMED_COLUMNS = 300
"""Columns whose names and types are shown."""

NAME_CHARS = 120

MOST_CELLS = 2_000_000
"""The most cells that a summary of a wide result reads."""

DIGITS = 6


def shown_types(types: Sequence[str], masked: Collection[int]) -> list[str]:
    """Return the types of a result that the model is shown. For SQLite and for SQL over kept
    results, they come from the values.
    """
    return [MASK if place in masked else name for place, name in enumerate(types)]


def shown_part(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]]
) -> dict[str, Json]:
    """Return the columns, types and rows that the model is shown, and the number of columns. A wide
    result is cut to its first columns.
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
    """Return an answer of run_sql with notes before its rows, because a long answer is cut at its
    end.
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
    """Return the minimum, maximum, mean and number of NULLs of the first `SUMMED_COLUMNS` numeric
    columns that are not shown.

    If there are very many cells, only the first rows are read, and `of_rows` says so. Masked
    columns are left out.
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
    """Return a column's figures, None if it holds anything but numbers."""
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
