"""One result of a turn, and the evidence that it gives for a sentence of the answer."""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from operator import mul

from longtable.checks.row_names import name_pattern, names_in_column, rows_by_name
from longtable.checks.vocabulary import DIFFERENCE, TOTAL
from longtable.memory.counting.figures import Source, bare_numbers, numbers_in_column

MOST_PLACES = 12
MOST_TOP = 10
MOST_COLUMNS = 20
MOST_OPERANDS = 30
MOST_FACTORS = 5
"""The number of measures of which each two are multiplied with each other."""
_LABEL = re.compile(
    r"(?:^|[_\s])(?:ids?|code|year|month|quarter|day|hour|week|zip|phone|rank|no|nr)$|^(?:年[份度]?|月份?|季度|日期?|编号|序号|排名)$|_?id$",
    re.IGNORECASE,
)
"""Matches names of columns whose numbers only name things, such as ids or years. These numbers are
never added.
"""

Place = Sequence[float]
"""The numbers of one row, or of a sum or mean over rows. First comes each measure, then the results
of combining two measures. NaN stands for a missing number.
"""


class Evidence:
    """Numbers and ratios in which figures are looked up. Only figures such as "34 %" or "2.3 times"
    are looked up among the ratios.
    """

    def __init__(self, numbers: Iterable[float] = (), ratios: Iterable[float] = ()) -> None:
        self.numbers = list(numbers)
        self.ratios = list(ratios)

    def compare(self, a: Place, b: Place, signs: Iterable[int] = (-1, 1)) -> None:
        """Add the ratios of two places, number by number. With a sign of -1 also add their
        differences, with 1 their sums.
        """
        for x, y in zip(a, b, strict=False):
            self.numbers += [x + sign * y for sign in signs]
            self.ratios += quotients(x, y)

    def sort(self) -> "Evidence":
        """Sort the numbers and ratios, so that figures can be looked up, and return this
        evidence.
        """
        self.numbers = sorted(set(filter(math.isfinite, self.numbers)))
        self.ratios = sorted(set(filter(math.isfinite, self.ratios)))
        return self


def quotients(x: float, y: float) -> list[float]:
    """Return x / y and y / x, NaN for a division by zero."""
    return [quotient(x, y), quotient(y, x)]


def quotient(x: float, y: float) -> float:
    """Return x / y, NaN if y is zero."""
    return x / y if y else math.nan


def as_shares(numbers: Iterable[float]) -> list[float]:
    """Return the ratios that percentages may stand for if these are the numbers in a result. 34 %
    may stand for .34 or for 34.
    """
    shares: list[float] = []
    for number in numbers:
        shares += [number, number / 100]
    return shares


def count_between(ordered: Sequence[float], one: float, other: float) -> int:
    """Return how many of the sorted numbers lie between two bounds, including the bounds. The
    bounds may be in either order.
    """
    return bisect_right(ordered, max(one, other)) - bisect_left(ordered, min(one, other))


Tiers = list[list[Evidence]]
"""Lists of near, middle and other evidence, in this order."""


class ResultTable:
    """One result, prepared for checking one answer. `text` is the question followed by the
    answer.
    """

    def __init__(self, source: Source, text: str) -> None:
        columns = [str(name) for name in source.columns[:MOST_COLUMNS]]
        cells = [_cells_of(source, at) for at in range(len(columns))]
        self.rows = range(len(source.rows))
        self.numbers = list(map(numbers_in_column, cells))
        self.measures = [
            column
            for name, column in zip(columns, self.numbers, strict=True)
            if not _LABEL.search(name) and not all(map(math.isnan, column))
        ]
        self.width = len(self.measures)
        self.products = [
            list(map(mul, one, other))
            for one, other in combinations(self.measures[:MOST_FACTORS], 2)
        ]
        self.names = rows_by_name(cells, columns, text.casefold())
        self.pattern = name_pattern(self.names)
        self.whole = [self.over(self.rows, mean=mean) for mean in (False, True)]
        orders = [self._order(column) for column in self.measures]
        self.tops = self._tops([self.rows, *orders])
        self.counts = self._counts(source, cells, orders, text)
        self.rest = self._rest(cells)

    def _order(self, column: Sequence[float]) -> list[int]:
        """Return the rows that have a number in this column, from the smallest number to the
        largest.
        """
        known = [at for at in self.rows if not math.isnan(column[at])]
        return sorted(known, key=column.__getitem__)

    def _tops(self, orders: Sequence[Sequence[int]]) -> list[Place]:
        """Return sums and means over the first and over the last rows in each order, for 1 to
        `MOST_TOP` rows.
        """
        tops: list[Place] = []
        for order, way, end in product(orders, (1, -1), range(1, MOST_TOP + 1)):
            rows = order[::way][:end]
            tops.append(_sums(self.measures, rows, mean=False))
            tops.append(_sums(self.measures, rows, mean=True))
        return tops

    def _counts(
        self,
        source: Source,
        cells: Sequence[Sequence[object]],
        orders: Sequence[Sequence[int]],
        text: str,
    ) -> Evidence:
        """Return as evidence counts of rows, and the medians. Counted are all rows, the rows with
        each value, and the rows over and under each number in the text.
        """
        counts: list[float] = []
        for column in cells:
            counts += _value_counts(column)
        numbers = bare_numbers(text.replace(",", ""))[:40]
        limits = [0.0, *map(abs, numbers)]
        means = self.whole[1]
        for measure, order, mean in zip(self.measures, orders, means, strict=False):
            ordered = [measure[at] for at in order]
            counts += _limit_counts(ordered, [*limits, mean])
            counts.append(_median(ordered))
        shares = [n / len(self.rows) for n in counts if self.rows]
        return Evidence(
            [source.row_count, len(self.rows), len(cells), *counts],
            shares,
        ).sort()

    def _rest(self, cells: Sequence[Sequence[object]]) -> Evidence:
        """Return as evidence all cells and the sums and means of top rows, whatever a sentence
        names.
        """
        numbers: list[float] = []
        for column in (*self.numbers, *self.tops):
            numbers += column
        texts: list[float] = []
        for cells_of_column in cells:
            texts += _numbers_in_names(cells_of_column)
        rest = Evidence([*numbers, *texts], as_shares(numbers))
        for top in self.tops:
            rest.compare(top, self.whole[0], ())
        return rest.sort()

    def over(self, rows: Iterable[int], *, mean: bool = False) -> Place:
        """Return the sums over these rows, or the means if `mean` is True, followed by the results
        of combining them.
        """
        numbers = _sums((*self.measures, *self.products), list(rows), mean=mean)
        sums = numbers[: self.width]
        products = numbers[self.width :]
        operands = numbers[: min(self.width, 6)]
        steps: list[float] = []
        for x, y in combinations(operands, 2):
            steps += [x - y, x + y, *quotients(x, y)]
        total = sum(sums)
        return [
            *numbers,
            *steps,
            total,
            total / max(1, self.width),
            *(quotient(n, x) for n, x in product(products, operands)),
            *(quotient(x, total) for x in operands),
        ]

    def named(self, text: str) -> tuple[set[int], list[set[int]]]:
        """Return the rows that a text names, and the set of rows for each name. If the text has
        names from several columns, only rows that are named in each of these columns are returned;
        if there are none, all named rows.
        """
        by_place = list(self.names.values())
        groups: list[set[int]] = []
        by_column: dict[str, set[int]] = {}
        for match in self.pattern.finditer(text):
            for column, rows in by_place[(match.lastindex or 1) - 1].items():
                groups.append(rows)
                by_column[column] = by_column.get(column, set()) | rows
        sets = list(by_column.values()) or [set()]
        scope = set.intersection(*sets) or set.union(*sets)
        return scope, groups[:MOST_OPERANDS]

    def evidence(self, sentence: str, before: str) -> Tiers:
        """Return the near, middle and other evidence for a sentence. `before` is the sentence
        before it.
        """
        scope, groups = self.named(sentence)
        is_whole = not scope and bool(TOTAL.search(sentence)) and len(self.rows) > 1
        places = self._places(scope, groups, is_whole=is_whole)
        others = self._other_places(scope, before)
        cells = self._cells(scope, places)
        size = len(scope or self.rows)
        near = Evidence([size, *map(len, groups), *cells], as_shares(cells))
        signs = (-1,) if DIFFERENCE.search(sentence) else ()
        for a, b in [*combinations(places, 2), *product(places, others)]:
            near.compare(a[: self.width], b[: self.width], signs)
        wide: list[float] = []
        for place in places:
            wide += place[self.width :]
        middle = Evidence(wide, wide)
        tiers: Tiers = [[near.sort(), self.counts], [middle.sort()], []]
        tiers[2 if scope or is_whole else 0].append(self.rest)
        return tiers

    def _places(
        self, scope: set[int], groups: Sequence[set[int]], *, is_whole: bool
    ) -> list[Place]:
        """Return the numbers of the rows that a sentence names, their sums and means, and the sums
        and means of all rows.
        """
        own = sorted(scope or self.rows)
        singles = [] if is_whole else own[:MOST_PLACES]
        places = [self.over([at]) for at in singles]
        sets = [own, *(group for group in groups if len(group) > 1)] if scope else []
        for rows in sets:
            places += [self.over(rows), self.over(rows, mean=True)]
        return places + self.whole

    def _other_places(self, scope: set[int], before: str) -> list[Place]:
        """Return the numbers of rows next to the named rows, of the top rows, and of the total
        without the named rows.
        """
        own = sorted(scope or self.rows)
        beside = {0, len(self.rows) - 1, *sorted(self.named(before)[0])[:6]}
        for at in own[:MOST_PLACES]:
            beside |= {at - 1, at + 1}
        others = [self.over([at]) for at in sorted(beside - set(own)) if at in self.rows]
        tops = list(zip(*self.tops[: 2 * MOST_TOP], strict=False))
        others += [list(map(max, tops)), list(map(min, tops))]
        if scope:
            rest = [x - y for x, y in zip(self.whole[0], self.over(own), strict=True)]
            others += [rest, self.over(range(own[0], own[-1] + 1))]
        return others

    def _cells(self, scope: set[int], places: Sequence[Place]) -> list[float]:
        """Return all numbers of the named rows, and the measures of the places."""
        cells: list[float] = []
        for column in self.numbers:
            cells += [column[at] for at in scope]
        for place in places:
            cells += place[: self.width]
        return cells


def _cells_of(source: Source, at: int) -> list[object]:
    """Return one column of a result. A row that is too short gives None."""
    return [row[at] if at < len(row) else None for row in source.rows]


def _sums(columns: Sequence[Sequence[float]], rows: Sequence[int], *, mean: bool) -> list[float]:
    """Return the sum of each column over these rows, or its mean if `mean` is True. NaN stands for
    a column without a number.
    """
    sums: list[float] = []
    for column in columns:
        known = [column[at] for at in rows if not math.isnan(column[at])]
        sums.append(math.fsum(known) / (len(known) if mean else 1) if known else math.nan)
    return sums


def _value_counts(column: Sequence[object]) -> list[int]:
    """Return the number of different values in a column and the number of empty cells. If there are
    few different values, also return the number of rows with each.
    """
    sizes = Counter(map(str, column))
    each = list(sizes.values()) if len(sizes) < 60 else []
    return [len(sizes), sizes["None"], *each]


def _limit_counts(ordered: Sequence[float], limits: Sequence[float]) -> list[int]:
    """Return how many numbers are under and over each limit. Each is given twice: once without and
    once with the numbers that equal the limit.
    """
    under: list[int] = []
    for limit in limits:
        under += [bisect_left(ordered, limit), bisect_right(ordered, limit)]
    return under + [len(ordered) - n for n in under]


def _median(ordered: Sequence[float]) -> float:
    return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2


def _numbers_in_names(column: Sequence[object]) -> list[float]:
    numbers: list[float] = []
    for cell in names_in_column(column[:200]):
        numbers += bare_numbers(cell)
    return numbers
