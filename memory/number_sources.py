"""Gather what the results of a turn can vouch for: their cells, counts and totals, and what one step makes of them.

A step is a sum, difference, ratio, share, growth, average or count. Its operands are what an answer is likely to speak of:
totals, the rows it names, the first and last, the extremes; so the cost stays bounded, and chance hits rare.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from longtable.memory.number_forms import number_in
from longtable.memory.number_reading import Figure
from longtable.memory.number_support import Support, both_ways

SMALL_TABLE = 12
"""Rows up to which every row is an operand."""
WHOLE_TABLE = 200
"""Rows up to which every cell vouches for a figure, however round the figure is."""
MOST_COLUMNS = 20
MOST_SALIENT = 24
MOST_GROUPS = 60
MOST_HEADLINES = 40

_RATE = re.compile(r"rate|pct|percent|share|ratio|%|率|比|margin", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|[_\s])(?:id|ids|code|year|month|day|hour|week|zip|phone|rank|no|nr)$|^(?:年份?|月份?|日期?|编号|序号|排名)$|_?id$", re.IGNORECASE
)
"""Numbers that name: there is no sense in adding them."""
_COLUMN_SCALES = (
    (re.compile(r"(?:^|[_\s(（])(?:wan|万\w?)(?:$|[_\s)）])|万", re.IGNORECASE), 1e4),
    (re.compile(r"(?:^|[_\s(（])yi(?:$|[_\s)）])|亿", re.IGNORECASE), 1e8),
    (re.compile(r"(?:^|[_\s(])(?:k|thousands?)(?:$|[_\s)])", re.IGNORECASE), 1e3),
    (re.compile(r"(?:^|[_\s(])(?:m|mn|mio|millions?)(?:$|[_\s)])", re.IGNORECASE), 1e6),
    (re.compile(r"(?:^|[_\s(])(?:bn|billions?)(?:$|[_\s)])", re.IGNORECASE), 1e9),
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


@dataclass(frozen=True)
class Source:
    """One result that the turn used; `rows` hold JSON-safe cells, `row_count` counts also rows that are not in `rows`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    row_count: int
    sql: str = ""


class Told:
    """A text that cells are looked for in; what it does not begin to say is found out by two letters."""

    def __init__(self, text: str) -> None:
        self.text = text.casefold()
        self._pairs = {self.text[at : at + 2] for at in range(len(self.text) - 1)}

    def names(self, cell: str) -> bool:
        """Say whether the text holds this cell, whatever the case."""
        lowered = cell[:1_000].casefold()
        return len(lowered) >= 2 and lowered[:2] in self._pairs and lowered[-2:] in self._pairs and lowered in self.text


def gather(sources: Sequence[Source], *, told: str, given: Iterable[float]) -> Support:
    """Return what these results vouch for; `told` is question and answer, `given` the figures of the question and the SQL."""
    support = Support()
    words = Told(told)
    months = {number for number, name in enumerate(_MONTHS, start=1) if name in words.text} | {
        int(month) for month in re.findall(r"(?<!\d)(\d{1,2})\s?月", told)
    }
    for source in sources:
        _Table(source, words, months).into(support)
    support.direct.add(*given)
    support.fractions.add(*(value for value in given if abs(value) < 1))
    if len(sources) > 1:
        support.headlines += [float(source.row_count) for source in sources if source.row_count != 1]
    headlines = list(dict.fromkeys(support.headlines))[:MOST_HEADLINES]
    for a, b in combinations(headlines, 2):
        support.pair(a, b)
    for a in headlines[:MOST_HEADLINES]:
        for b in given:
            support.parts.add(*both_ways(a, b))
    return support


def mention(support: Support, figures: Sequence[Figure]) -> None:
    """Let figures of the answer that the results hold be operands too."""
    values = list(dict.fromkeys(figure.value for figure in figures))[:MOST_HEADLINES]
    for a, b in combinations(values, 2):
        support.pair(a, b)


class _Table:
    """One source, read once."""

    def __init__(self, source: Source, told: Told, months: set[int]) -> None:
        self.source, self.told, self.months = source, told, months
        self.rows = source.rows
        self.columns: list[tuple[str, list[tuple[int, float]]]] = []
        for index, name in enumerate(source.columns[:200]):
            numbers = [
                (at, number) for at, row in enumerate(self.rows) if index < len(row) and (number := number_in(row[index])) is not None
            ]
            if numbers:
                self.columns.append((str(name), numbers))
                self.columns += [
                    (str(name), [(at, number * scale) for at, number in numbers])
                    for mark, scale in _COLUMN_SCALES
                    if mark.search(str(name))
                ]
        self.salient = self._salient()

    def into(self, support: Support) -> None:
        """Add all of it."""
        self._cells(support)
        self._counts(support)
        for name, numbers in self.columns[:MOST_COLUMNS]:
            if not _LABEL.search(name):
                self._column(support, numbers, rates=bool(_RATE.search(name)))
        self._across(support)
        self._groups(support)

    def _salient(self) -> list[int]:
        """Return the rows to make steps from: all of a small table, else the named, the outer, the extreme ones."""
        size = len(self.rows)
        if size <= SMALL_TABLE:
            return list(range(size))
        named = [at for at, row in enumerate(self.rows) if any(self._named(cell) for cell in row)]
        extremes = [at for _, numbers in self.columns[:MOST_COLUMNS] for at, _ in (min(numbers, key=_value), max(numbers, key=_value))]
        return list(dict.fromkeys([*named[: MOST_SALIENT // 2], 0, size - 1, *extremes]))[:MOST_SALIENT]

    def _named(self, cell: object) -> bool:
        if isinstance(cell, str):
            if self.told.names(cell):
                return True
            date = re.match(r"\d{4}-(\d\d)(?:-\d\d)?(?:\D|$)", cell)
            return bool(date and int(date[1]) in self.months)
        return isinstance(cell, int) and 1900 <= cell <= 2100 and str(cell) in self.told.text

    def _cells(self, support: Support) -> None:
        inside = set(range(min(len(self.rows), WHOLE_TABLE))) | set(self.salient)
        hundredfold = "100" in self.source.sql
        for name, numbers in self.columns:
            near = [number for at, number in numbers if at in inside]
            support.direct.add(*near)
            rate = hundredfold or bool(_RATE.search(name))
            support.rates.add(*(number for number in near if rate or number % 1))
            support.fractions.add(*(number for number in near if number % 1 or number in (0, 1)))
            if len(self.rows) > WHOLE_TABLE:
                support.exact.add(*(number for _, number in numbers))
        for at in inside:
            for cell in self.rows[at]:
                if isinstance(cell, str) and len(cell) <= 2_000 and number_in(cell) is None:
                    support.direct.add(*(float(digits) for digits in re.findall(r"\d{1,15}(?:\.\d{1,6})?", cell)))
        if len(self.rows) <= 3 and len(self.columns) <= 12:
            support.headlines += [number for _, numbers in self.columns for _, number in numbers]

    def _counts(self, support: Support) -> None:
        counts = [float(self.source.row_count), float(len(self.rows))]
        support.direct.add(*counts)
        support.counts.add(float(len(self.source.columns)))
        for index in range(min(len(self.source.columns), MOST_COLUMNS)):
            cells = [row[index] for row in self.rows if index < len(row)]
            support.counts.add(float(len({str(cell) for cell in cells})), float(sum(cell is None for cell in cells)))
        # "Two airlines stand out: ..." counts what the answer itself lists.
        listed = sum(any(self._named(cell) for cell in row if isinstance(cell, str)) for row in self.rows[:WHOLE_TABLE])
        support.counts.add(*map(float, range(2, min(listed, 5) + 1)))

    def _column(self, support: Support, numbers: list[tuple[int, float]], *, rates: bool) -> None:
        values = [number for _, number in numbers]
        ordered, total, size = sorted(values), sum(values), len(values)
        middles = [total / size, (ordered[(size - 1) // 2] + ordered[size // 2]) / 2]
        support.direct.add(ordered[0], ordered[-1], total, *middles)
        if rates:
            support.rates.add(*middles)
        if any(value % 1 for value in values[:WHOLE_TABLE]):
            support.fractions.add(*middles)
        salient = set(self.salient)
        chosen = [number for at, number in numbers if at in salient]
        shares = rates and (abs(total - 100) < 1 or abs(total - 1) < 0.01)
        for a, b in combinations(chosen, 2):
            support.steps.add(a - b, a + b)
            support.compared.add(*both_ways(a, b))
            if rates:
                support.rate_steps.add(a - b, *([a + b] if shares else []))
        if size > 1:
            self._sums(support, values, chosen, total)
        self._thresholds(support, ordered, middles[0])

    def _sums(self, support: Support, values: list[float], chosen: list[float], total: float) -> None:
        """Add totals, sums of neighbours, and what is left of a total without one row; their shares too."""
        size = len(values)
        support.headlines.append(total)
        ends = [sum(values[:end]) for end in range(2, min(size, 21))] + [sum(values[-end:]) for end in range(2, min(size, 21))]
        support.steps.add(*ends, *(total - value for value in values[:WHOLE_TABLE]))
        if size <= SMALL_TABLE:
            support.steps.add(*(sum(values[start:end]) for start in range(size) for end in range(start + 2, size + 1)))
        if total:
            support.parts.add(*(part / total for part in [*ends, *chosen]))

    def _thresholds(self, support: Support, ordered: list[float], mean: float) -> None:
        """Count the rows over and under zero, the mean, and each number that question or answer name."""
        told = re.findall(r"(?<![\d.,])\d{1,9}(?:\.\d+)?(?![\d,])", self.told.text.replace(",", ""))
        for threshold in [0.0, mean, *(float(text) for text in told[:20])]:
            below = bisect_left(ordered, threshold)
            through = bisect_right(ordered, threshold)
            support.counts.add(*map(float, (below, through, len(ordered) - below, len(ordered) - through)))

    def _across(self, support: Support) -> None:
        """Make steps between the columns of one row, and between the totals of columns."""
        wide = [(name, numbers) for name, numbers in self.columns if not _LABEL.search(name)][:SMALL_TABLE]
        tables = [dict(numbers) for _, numbers in wide]
        lines = [[(name, table[at]) for (name, _), table in zip(wide, tables, strict=True) if at in table] for at in self.salient]
        if len(self.rows) > 1:
            lines.append([(name, sum(table.values())) for (name, _), table in zip(wide, tables, strict=True)])
        for cells in lines:
            if len(cells) > 2:
                support.steps.add(sum(number for _, number in cells))
            for (name, a), (other, b) in combinations(cells, 2):
                support.steps.add(a - b, a + b)
                support.parts.add(*both_ways(a, b))
                if _RATE.search(name) and _RATE.search(other):
                    support.rate_steps.add(a - b)

    def _groups(self, support: Support) -> None:
        """Add sums and counts by the values of text columns."""
        for index in range(min(len(self.source.columns), MOST_COLUMNS)):
            labels = [_text(row, index) for row in self.rows]
            sizes = Counter(label for label in labels if label is not None)
            if not 1 < len(sizes) < len(self.rows) or len(sizes) > MOST_GROUPS:
                continue
            support.counts.add(*map(float, sizes.values()))
            for name, numbers in self.columns[:MOST_COLUMNS]:
                if _LABEL.search(name):
                    continue
                sums: dict[str | None, float] = defaultdict(float)
                for at, number in numbers:
                    sums[labels[at]] += number
                total = sum(sums.values())
                support.steps.add(*sums.values())
                if total:
                    support.parts.add(*(value / total for value in sums.values()))


def _value(item: tuple[int, float]) -> float:
    return item[1]


def _text(row: Sequence[object], index: int) -> str | None:
    cell = row[index] if index < len(row) else None
    return cell if isinstance(cell, str) else None
