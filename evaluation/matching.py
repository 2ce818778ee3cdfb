"""Compare the rows of two results.

Rows are a multiset; their order counts only if gold has one. Names and order of columns are free.
Numbers are equal within a relative 1e-6, except that two integers are equal only if they are the
same. NULL equals NULL. A text that is written as a number equals this number: '2024' of strftime is
the same year as 2024. Two texts are equal only if they are the same: '1.10' is not '1.1'. Cells
have the JSON form that events have, in which a number that JSON cannot hold is a text, too.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from longtable.tools.cells import json_value

RELATIVE = 1e-6
ABSOLUTE = 1e-9
"""For sums that would be zero without rounding."""
MOST_WORK = 10_000_000
"""Most cells that are looked at to find the place of each column: some seconds."""
MOST_SEARCHED = 300
"""Most columns of gold that are searched for if the rows come in another order."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?")
"""A number as engines write it; "007" and "+7" are texts."""

Rows = Sequence[Sequence[object]]
Cell = tuple[str, object]
Column = tuple[Cell, ...]


@dataclass(frozen=True)
class Order:
    """The order that gold gives its rows. `keys`: the places of the columns that it orders by, None
    if some key is not among the columns. Rows of equal keys may come in any order.
    """

    keys: tuple[int, ...] | None = None


def difference(
    gold: Rows,
    got: Rows,
    order: Order | None = None,
    *,
    extra_columns: bool = False,
    widths: tuple[int, int] = (0, 0),
) -> str:
    """Return what differs between gold and an answer, "" if they match: "row count", "columns",
    "rows", "order", or "too many columns alike" if the columns cannot be told apart in time.

    With `extra_columns`, gold's columns need only be among the answer's. `widths`: the numbers of
    columns of both, for results without rows.
    """
    if len(gold) != len(got):
        return "row count"
    gold_width, got_width = (len(gold[0]), len(got[0])) if gold else widths
    if gold_width > got_width or (gold_width < got_width and not extra_columns):
        return "columns"
    if not gold:
        return ""
    search = _search(_Side(gold, gold_width), _Side(got, got_width))
    if search.places(order) is not None:
        return ""
    if search.is_too_long:
        return "too many columns alike"
    return "order" if order and search.places(None) is not None else "rows"


def close(one: object, other: object) -> bool:
    """Return whether two cells are equal within the tolerance."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return one == other


class _Side:
    """The columns of one result, in two forms: with texts as they are, and with texts that are
    written as numbers as these numbers.
    """

    def __init__(self, rows: Rows, width: int) -> None:
        self.texts: list[list[object]] = []
        self.numbers: list[list[object]] = []
        for place in range(width):
            column = [_restored(row[place]) for row in rows]
            self.texts.append(column)
            self.numbers.append([_number(cell) for cell in column])

    def chosen(self, other: "_Side", clusters: dict[float, int]) -> list[list[object]]:
        """Return each column in the form in which it can match: as numbers only if a column of
        numbers in the other result matches it, and no column of texts.
        """
        same_texts = {_values(_cells(column, clusters)) for column in other.texts}
        same_numbers: set[frozenset[tuple[Cell, int]]] = set()
        for texts, numbers in zip(other.texts, other.numbers, strict=True):
            if any(isinstance(cell, int | float) for cell in texts):
                same_numbers.add(_values(_cells(numbers, clusters)))
        columns: list[list[object]] = []
        for texts, numbers in zip(self.texts, self.numbers, strict=True):
            is_text = _values(_cells(texts, clusters)) in same_texts
            is_number = _values(_cells(numbers, clusters)) in same_numbers
            columns.append(numbers if is_number and not is_text else texts)
        return columns


def _restored(cell: object) -> object:
    """Return the number that JSON could not hold, if a cell is the text of one."""
    number = _number(cell)
    if isinstance(cell, str) and number is not cell and json_value(Decimal(cell)) == cell:
        return number
    return cell


def _number(cell: object) -> object:
    """Return the number that a text is written as. Other cells stay as they are."""
    if isinstance(cell, str) and _NUMBER.fullmatch(cell):
        return float(cell) if "." in cell else int(cell)
    return cell


def _search(gold: _Side, got: _Side) -> "_Search":
    clusters = _clusters([*gold.numbers, *got.numbers])
    gold_columns = gold.chosen(got, clusters)
    got_columns = got.chosen(gold, clusters)
    return _Search(
        [_cells(column, clusters) for column in gold_columns],
        [_cells(column, clusters) for column in got_columns],
        [*zip(*gold_columns, strict=True)],
        [*zip(*got_columns, strict=True)],
    )


def _clusters(columns: Iterable[Sequence[object]]) -> dict[float, int]:
    """Return a number for each group of close numbers. Numbers of a group may be further apart than
    the tolerance, so matching rows are compared once more.
    """
    numbers: set[float] = set()
    for column in columns:
        numbers.update(cell for cell in column if isinstance(cell, int | float))
    clusters: dict[float, int] = {}
    before: float | None = None
    for number in sorted(numbers):
        if before is None or not close(before, number):
            clusters[number] = len(clusters)
        else:
            clusters[number] = clusters[before]
        before = number
    return clusters


def _cells(column: Sequence[object], clusters: dict[float, int]) -> Column:
    """Return a column with cells that can be hashed."""
    return tuple(_cell(cell, clusters) for cell in column)


def _cell(value: object, clusters: dict[float, int]) -> Cell:
    if value is None:
        return ("null", None)
    if isinstance(value, int | float):
        return ("number", clusters[value])
    return ("text", value if isinstance(value, str) else repr(value))


class _Search:
    """The search for a place of each gold column among the answer's columns."""

    def __init__(
        self, gold: Sequence[Column], got: Sequence[Column], gold_rows: Rows, got_rows: Rows
    ) -> None:
        self.gold = gold
        self.got = got
        self.gold_rows = gold_rows
        self.got_rows = got_rows
        self.is_too_long = False
        """Whether the search was given up."""
        self._work = 0
        self._by_column: dict[Column, list[int]] = defaultdict(list)
        self._by_values: dict[frozenset[tuple[Cell, int]], list[int]] = defaultdict(list)
        for place, column in enumerate(got):
            self._by_column[column].append(place)
            self._by_values[_values(column)].append(place)

    def places(self, order: Order | None) -> list[int] | None:
        """Return the place of each gold column, None if there is none."""
        aligned = set(range(len(self.gold))) if order and order.keys is None else set()
        if order and order.keys:
            aligned = set(order.keys)
        options: dict[int, list[int]] = {}
        for place, column in enumerate(self.gold):
            options[place] = self._options(column, aligned=place in aligned)
        hardest_first = sorted(options, key=lambda place: len(options[place]))
        found = self._in_row_order()
        if found is None and len(aligned) < len(self.gold):
            if len(hardest_first) > MOST_SEARCHED:
                self.is_too_long = True
                return None
            alike = [0] * len(self.gold_rows)
            found = self._extended({}, hardest_first, options, alike, alike)
        return None if found is None else [found[place] for place in range(len(self.gold))]

    def _in_row_order(self) -> dict[int, int] | None:
        """Return the place of each column if all rows are in the same order, otherwise None."""
        found: dict[int, int] = {}
        used: Counter[Column] = Counter()
        for place, column in enumerate(self.gold):
            others = self._by_column.get(column, [])
            if used[column] >= len(others):
                return None
            found[place] = others[used[column]]
            used[column] += 1
        return found if self._is_close(found) else None

    def _options(self, column: Column, *, aligned: bool) -> list[int]:
        """Return the answer's columns with the same values, and if `aligned` in the same order.
        Columns in the same order come first.
        """
        same = self._by_column.get(column, [])
        if aligned:
            return same
        alike = self._by_values.get(_values(column), [])
        return [*same, *(place for place in alike if place not in same)]

    def _extended(
        self,
        chosen: dict[int, int],
        rest: Sequence[int],
        options: dict[int, list[int]],
        gold_groups: Sequence[int],
        got_groups: Sequence[int],
    ) -> dict[int, int] | None:
        """Return a choice for all columns that begins with `chosen`, None if there is none. Rows of
        the same group have the same cells in the columns chosen so far.
        """
        if not rest:
            return chosen if self._is_close(chosen) else None
        tried: set[Column] = set()
        for place in options[rest[0]]:
            if place in chosen.values() or self.got[place] in tried:
                continue
            tried.add(self.got[place])
            self._work += len(gold_groups)
            if self._work > MOST_WORK:
                self.is_too_long = True
                return None
            numbers: dict[tuple[int, Cell], int] = {}
            left = _refined(gold_groups, self.gold[rest[0]], numbers)
            right = _refined(got_groups, self.got[place], numbers)
            if Counter(left) != Counter(right):
                continue
            longer = {**chosen, rest[0]: place}
            found = self._extended(longer, rest[1:], options, left, right)
            if found is not None or self.is_too_long:
                return found
        return None

    def _is_close(self, chosen: dict[int, int]) -> bool:
        """Return whether rows that match by groups of numbers match by the numbers, too."""
        gold_groups = self._groups(self.gold, chosen.keys())
        got_groups = self._groups(self.got, chosen.values())
        for cells, numbers in gold_groups.items():
            others = got_groups[cells]
            for place, other in chosen.items():
                left = _numbers(self.gold_rows[number][place] for number in numbers)
                right = _numbers(self.got_rows[number][other] for number in others)
                if not all(map(close, left, right)):
                    return False
        return True

    def _groups(
        self, columns: Sequence[Column], places: Iterable[int]
    ) -> dict[tuple[Cell, ...], list[int]]:
        """Return the numbers of the rows with the same cells."""
        groups: dict[tuple[Cell, ...], list[int]] = defaultdict(list)
        for number, cells in enumerate(zip(*(columns[place] for place in places), strict=True)):
            groups[cells].append(number)
        return groups


def _values(column: Column) -> frozenset[tuple[Cell, int]]:
    """Return how often a column has each cell."""
    return frozenset(Counter(column).items())


def _refined(
    groups: Sequence[int], column: Column, numbers: dict[tuple[int, Cell], int]
) -> list[int]:
    """Return the group of each row after one more column. `numbers`: those of groups so far."""
    pairs = zip(groups, column, strict=True)
    return [numbers.setdefault(pair, len(numbers)) for pair in pairs]


def _numbers(cells: Iterable[object]) -> list[int | float]:
    return sorted(cell for cell in cells if isinstance(cell, int | float))
