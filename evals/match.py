"""Compare the rows of two queries: strictly, and tolerant of extra columns, of repeated rows, and
of how a month of one year is written.
"""

import re
from collections import Counter
from collections.abc import Sequence

Row = Sequence[object]


def same_strict(gold: Sequence[Row], got: Sequence[Row], *, ordered: bool) -> bool:
    """Say whether both hold the same rows, columns in any order; the order of rows counts when
    `ordered`.
    """
    gold_columns, got_columns = _columns(gold), _columns(got)
    if len(gold) != len(got) or (gold and len(gold_columns) != len(got_columns)):
        return False
    return not gold or any(
        _equal(gold, [[row[i] for i in places] for row in got], ordered)
        for places in _placings(gold_columns, got_columns)
    )


def same_tolerant(gold: Sequence[Row], got: Sequence[Row], *, ordered: bool) -> bool:
    """Say whether some columns of `got` hold what `gold` holds; extra columns and repeated rows are
    no fault. When `ordered`, rows of the same rank may stand in any order.
    """
    if not gold or not got:
        return not gold and not got
    return _holds(gold, got, ordered=ordered) or (
        bool(months := _months(got)) and _holds(gold, months, ordered=ordered)
    )


def _holds(gold: Sequence[Row], got: Sequence[Row], *, ordered: bool) -> bool:
    for places in _placings(_columns(gold), _columns(got)):
        picked = list(dict.fromkeys(_key([row[i] for i in places]) for row in got))
        wanted = list(dict.fromkeys(map(_key, gold)))
        if set(picked) == set(wanted) and (not ordered or _same_order(wanted, picked)):
            return True
    return False


def _same_order(gold: Sequence[tuple[str, ...]], got: Sequence[tuple[str, ...]]) -> bool:
    """Say whether rows come in the same order: all of them, or the values of a column that `gold`
    is sorted by, whose equals may stand in any order.
    """
    columns = zip(zip(*gold, strict=True), zip(*got, strict=True), strict=True)
    return gold == got or any(_is_sorted(one) and one == other for one, other in columns)


def _is_sorted(cells: Sequence[str]) -> bool:
    """Say whether a column rises or falls all along; one of a single value does not."""
    try:
        values: list[float] | list[str] = [float(cell) for cell in cells]
    except ValueError:
        values = list(cells)
    rising = sorted(values) == values
    falling = sorted(values, reverse=True) == values
    return rising != falling


def _months(rows: Sequence[Row]) -> list[Row]:
    """Write 2024-03 as 3 where a column holds months of one year only; no rows where there is no
    such column.
    """
    columns = [[str(row[i]) for row in rows] for i in range(len(rows[0]))]
    places = {
        i
        for i, cells in enumerate(columns)
        if all(map(_MONTH.fullmatch, cells)) and len({cell[:4] for cell in cells}) == 1
    }
    return (
        [
            [int(str(cell)[5:]) if i in places else cell for i, cell in enumerate(row)]
            for row in rows
        ]
        if places
        else []
    )


_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


def _columns(rows: Sequence[Row]) -> list[list[str]]:
    return [[_cell(row[i]) for row in rows] for i in range(len(rows[0]))] if rows else []


def _placings(gold: list[list[str]], got: list[list[str]]) -> list[tuple[int, ...]]:
    """Return ways to find each gold column among the others, by equal sets of values."""
    if len(gold) > len(got):
        return []
    options = [
        [i for i, column in enumerate(got) if set(column) == set(gold_column)]
        for gold_column in gold
    ]
    placings: list[tuple[int, ...]] = [()]
    for option in options:
        placings = [(*places, i) for places in placings for i in option if i not in places][:200]
    return placings


def _equal(gold: Sequence[Row], got: Sequence[Row], ordered: bool) -> bool:
    left, right = [_key(row) for row in gold], [_key(row) for row in got]
    return left == right if ordered else Counter(left) == Counter(right)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(map(_cell, row))


def _cell(value: object) -> str:
    if value is None:
        return "∅"
    try:
        return f"{float(value):.4f}"  # type: ignore[arg-type]  # what is no number falls through
    except (TypeError, ValueError):
        return str(value).strip()


__all__ = ["same_strict", "same_tolerant"]
