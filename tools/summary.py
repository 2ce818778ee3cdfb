"""What a model is told of a wide result's columns that it is not shown: least, most and mean of numbers, how many are NULL."""

import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import islice

from longtable.tools.cells import Json, clean, clip, json_value

SHOWN_COLUMNS = 30
"""Columns of a result that are shown with their cells; a result of more is wide."""
SUMMED_COLUMNS = 40
NAMED_COLUMNS = 300
"""Columns whose names and types are told."""
MOST_CELLS = 2_000_000
DIGITS = 6


def summary(columns: Sequence[str], rows: Sequence[Sequence[object]], masked: Collection[int], *, chars: int) -> dict[str, Json]:
    """Return least, most, mean and NULLs of the numeric columns past those shown, the first `SUMMED_COLUMNS` of them.

    Over the first rows only where there are very many cells; `of_rows` says so. A masked column tells nothing.
    """
    told: dict[str, Json] = {}
    seen = rows[: max(1, MOST_CELLS // max(1, len(columns)))]
    numeric = (found for place in range(SHOWN_COLUMNS, len(columns)) if place not in masked and (found := _column(columns, place, seen)))
    for name, figures in islice(numeric, SUMMED_COLUMNS):
        told[clip(clean(name), chars)] = figures
    if not told:
        return {}
    return {"summary": told, **({"summary_of_rows": len(seen)} if len(seen) < len(rows) else {})}


def _column(columns: Sequence[str], place: int, rows: Sequence[Sequence[object]]) -> tuple[str, dict[str, Json]] | None:
    """Return a column's figures, None where it holds anything but numbers."""
    cells = [row[place] for row in rows]
    numbers = [cell for cell in cells if cell is not None]
    if not numbers or not all(isinstance(cell, int | float | Decimal) and not isinstance(cell, bool) for cell in numbers):
        return None
    finite = [cell for cell in numbers if isinstance(cell, int | float | Decimal) and math.isfinite(cell)]
    if not finite:
        return None
    mean = math.fsum(finite) / len(finite)
    figures: dict[str, Json] = {"min": json_value(min(finite)), "max": json_value(max(finite)), "mean": float(f"{mean:.{DIGITS}g}")}
    return columns[place], {**figures, "nulls": len(cells) - len(numbers)}
