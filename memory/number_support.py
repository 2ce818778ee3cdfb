"""Gather what the results of a turn can vouch for: their cells, counts and totals, and what one step makes of them.

A step is a sum, difference, ratio, share, growth, average or count. Its operands are what an answer is likely to speak of:
totals, the rows it names, the first and last, the extremes; so the cost stays bounded, and chance hits rare.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from longtable.memory.number_reading import Figure, Reading, number_in

SMALL_TABLE = 12
"""Rows up to which every row is an operand."""
WHOLE_TABLE = 200
"""Rows up to which every cell vouches for a figure, however round the figure is."""
MOST_COLUMNS = 20
MOST_SALIENT = 24
MOST_GROUPS = 60
MOST_HEADLINES = 40

_RATE = re.compile(r"rate|pct|percent|share|ratio|%|率|比|margin", re.IGNORECASE)
_COLUMN_SCALES = (
    (re.compile(r"(?:^|[_\s(（])(?:wan|万\w?)(?:$|[_\s)）])|万", re.IGNORECASE), 1e4),
    (re.compile(r"(?:^|[_\s(（])yi(?:$|[_\s)）])|亿", re.IGNORECASE), 1e8),
    (re.compile(r"(?:^|[_\s(])(?:k|thousands?)(?:$|[_\s)])", re.IGNORECASE), 1e3),
    (re.compile(r"(?:^|[_\s(])(?:m|mn|mio|millions?)(?:$|[_\s)])", re.IGNORECASE), 1e6),
    (re.compile(r"(?:^|[_\s(])(?:bn|billions?)(?:$|[_\s)])", re.IGNORECASE), 1e9),
)
_TIME_FACTORS = (1.0, 60.0, 3600.0, 86400.0, 0.001)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True)
class Source:
    """One result that the turn used; `rows` hold JSON-safe cells, `row_count` counts also rows that are not in `rows`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    row_count: int
    sql: str = ""


@dataclass
class Bag:
    """Numbers to look an interval up in."""

    values: list[float] = field(default_factory=list)
    ready: bool = False

    def add(self, *values: float) -> None:
        """Put numbers in."""
        self.values.extend(values)
        self.ready = False

    def hit(self, low: float, high: float) -> bool:
        """Say whether a number lies from `low` to `high`."""
        if not self.ready:
            self.values, self.ready = sorted(set(self.values)), True
        at = bisect_left(self.values, low)
        return at < len(self.values) and self.values[at] <= high

    def signed(self, reading: Reading, *, negative: bool, factor: float = 1.0) -> bool:
        """Look a figure up: as it is, and below zero too; only below zero when it was written so."""
        low, high = reading.low * factor, reading.high * factor
        return (not negative and self.hit(low, high)) or self.hit(-high, -low)

    def either(self, reading: Reading, *, factor: float = 1.0) -> bool:
        """Look a figure up, whatever its sign: the order of a difference is a matter of wording."""
        return self.signed(reading, negative=False, factor=factor)


@dataclass
class Support:
    """All that a figure is held against."""

    direct: Bag = field(default_factory=Bag)
    rates: Bag = field(default_factory=Bag)
    """Cells that may be percentages as they stand (34)."""
    fractions: Bag = field(default_factory=Bag)
    """Cells that may be shares (0.34)."""
    exact: Bag = field(default_factory=Bag)
    """All cells of large results: for figures of five and more digits."""
    steps: Bag = field(default_factory=Bag)
    rate_steps: Bag = field(default_factory=Bag)
    ratios: Bag = field(default_factory=Bag)
    counts: Bag = field(default_factory=Bag)
    headlines: list[float] = field(default_factory=list)

    def pair(self, a: float, b: float, *, rates: bool = False) -> None:
        """Add what one step makes of two numbers."""
        self.steps.add(a - b, a + b)
        if rates:
            self.rate_steps.add(a - b, a + b)
        self.ratio(a, b)

    def ratio(self, a: float, b: float) -> None:
        """Add a/b and b/a."""
        if b:
            self.ratios.add(a / b)
        if a:
            self.ratios.add(b / a)


def gather(sources: Sequence[Source], *, told: str, given: Iterable[float]) -> Support:
    """Return what these results vouch for; `told` is question and answer, `given` the figures of the question and the SQL."""
    support = Support()
    lowered = told.casefold()
    months = {number for number, name in enumerate(_MONTHS, start=1) if name in lowered} | {
        int(month) for month in re.findall(r"(?<!\d)(\d{1,2})\s?月", told)
    }
    for source in sources:
        _Table(source, lowered, months).into(support)
    support.direct.add(*given)
    support.fractions.add(*(value for value in given if abs(value) < 1))
    headlines = list(dict.fromkeys(support.headlines))[:MOST_HEADLINES]
    for a, b in combinations(headlines, 2):
        support.pair(a, b)
    for a in headlines[:MOST_HEADLINES]:
        for b in given:
            support.ratio(a, b)
    return support


def mention(support: Support, figures: Sequence[Figure]) -> None:
    """Let figures of the answer that the results hold be operands too."""
    values = list(dict.fromkeys(figure.value for figure in figures))[:MOST_HEADLINES]
    for a, b in combinations(values, 2):
        support.pair(a, b)


class _Table:
    """One source, read once."""

    def __init__(self, source: Source, told: str, months: set[int]) -> None:
        self.source, self.told, self.months = source, told, months
        self.rows = source.rows
        self.columns: list[tuple[str, list[tuple[int, float]]]] = []
        for index, name in enumerate(source.columns[:200]):
            numbers = [(at, number) for at, row in enumerate(self.rows) if index < len(row) and (number := number_in(row[index])) is not None]
            if numbers:
                self.columns.append((str(name), numbers))
                self.columns += [
                    (str(name), [(at, number * scale) for at, number in numbers]) for mark, scale in _COLUMN_SCALES if mark.search(str(name))
                ]
        self.salient = self._salient()

    def into(self, support: Support) -> None:
        """Add all of it."""
        self._cells(support)
        self._counts(support)
        for name, numbers in self.columns[:MOST_COLUMNS]:
            self._column(support, numbers, rates=bool(_RATE.search(name)))
        self._across(support)
        self._groups(support)

    def _salient(self) -> list[int]:
        """Return the rows to make steps from: all of a small table, else the named, the outer, the extreme ones."""
        size = len(self.rows)
        if size <= SMALL_TABLE:
            return list(range(size))
        named = [at for at, row in enumerate(self.rows) if any(self._named(cell) for cell in row)]
        extremes = [at for _, numbers in self.columns[:MOST_COLUMNS] for at in (_at(min, numbers), _at(max, numbers))]
        return list(dict.fromkeys([*named[: MOST_SALIENT // 2], 0, size - 1, *extremes]))[:MOST_SALIENT]

    def _named(self, cell: object) -> bool:
        if isinstance(cell, str):
            if len(cell) >= 2 and cell.casefold() in self.told:
                return True
            date = re.match(r"\d{4}-(\d\d)(?:-\d\d)?(?:\D|$)", cell)
            return bool(date and int(date[1]) in self.months)
        return isinstance(cell, int) and 1900 <= cell <= 2100 and str(cell) in self.told

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
        if len(self.rows) != 1:
            support.headlines.append(counts[0])
        for index in range(min(len(self.source.columns), MOST_COLUMNS)):
            cells = [row[index] for row in self.rows if index < len(row)]
            support.counts.add(float(len({str(cell) for cell in cells})), float(sum(cell is None for cell in cells)))
        rows = float(self.source.row_count)
        for label_rows in (sum(any(self._named(cell) for cell in row if isinstance(cell, str)) for row in self.rows[:WHOLE_TABLE]),):
            support.counts.add(*(float(count) for count in range(2, min(label_rows, 5) + 1)))
        support.counts.add(rows)

    def _column(self, support: Support, numbers: list[tuple[int, float]], *, rates: bool) -> None:
        values = [number for _, number in numbers]
        total, size = sum(values), len(values)
        mean = total / size
        ordered = sorted(values)
        median = (ordered[(size - 1) // 2] + ordered[size // 2]) / 2
        support.direct.add(ordered[0], ordered[-1])
        support.steps.add(total, mean, median)
        support.rates.add(*([mean, median] if rates else []))
        support.fractions.add(*([mean, median] if any(value % 1 for value in values[:WHOLE_TABLE]) else []))
        if size > 1:
            support.headlines += [total, ordered[-1], ordered[0]] if size <= SMALL_TABLE else [total, mean]
            runs = [sum(values[:end]) for end in range(2, min(size, 21))] + [sum(values[-end:]) for end in range(2, min(size, 21))]
            if size <= SMALL_TABLE:
                support.steps.add(*(sum(values[start:end]) for start in range(size) for end in range(start + 2, size + 1)))
            support.steps.add(*runs, *(total - value for value in values[:WHOLE_TABLE]))
            for part in [*runs, *(number for at, number in numbers if at in set(self.salient))]:
                support.ratio(part, total)
        chosen = [number for at, number in numbers if at in set(self.salient)]
        for a, b in combinations(chosen, 2):
            support.pair(a, b, rates=rates)
        thresholds = [0.0, mean, *(float(text) for text in re.findall(r"(?<![\d.,])\d{1,9}(?:\.\d+)?(?![\d,])", self.told.replace(",", ""))[:20])]
        for threshold in thresholds:
            below = bisect_left(ordered, threshold)
            support.counts.add(float(below), float(size - below), float(size - bisect_left(ordered, threshold * (1 + 1e-12) + 1e-12)))

    def _across(self, support: Support) -> None:
        """Make steps between the columns of one row, and between the totals of columns."""
        wide = self.columns[:SMALL_TABLE]
        tables = [dict(numbers) for _, numbers in wide]
        for at in self.salient:
            cells = [(name, numbers[at]) for (name, _), numbers in zip(wide, tables, strict=True) if at in numbers]
            if len(cells) > 2:
                support.steps.add(sum(number for _, number in cells))
            for (name, a), (other, b) in combinations(cells, 2):
                support.pair(a, b, rates=bool(_RATE.search(name) and _RATE.search(other)))
        totals = [sum(numbers.values()) for numbers in tables if len(numbers) > 1]
        for a, b in combinations(totals, 2):
            support.pair(a, b)
        if totals:
            support.steps.add(sum(totals))

    def _groups(self, support: Support) -> None:
        """Add sums and counts by the values of text columns."""
        for index in range(min(len(self.source.columns), MOST_COLUMNS)):
            labels = [row[index] if index < len(row) and isinstance(row[index], str) else None for row in self.rows]
            sizes = Counter(label for label in labels if label is not None)
            if not 1 < len(sizes) < len(self.rows) or len(sizes) > MOST_GROUPS:
                continue
            support.counts.add(*map(float, sizes.values()))
            for _, numbers in self.columns[:MOST_COLUMNS]:
                sums: Counter[object] = Counter()
                for at, number in numbers:
                    sums[labels[at]] += number  # type: ignore[assignment]  # a Counter adds floats as well
                total = sum(sums.values())
                support.steps.add(*map(float, sums.values()))
                for value in sums.values():
                    support.ratio(float(value), float(total))


def _at(choose: object, numbers: list[tuple[int, float]]) -> int:
    pick = min if choose is min else max
    return pick(numbers, key=lambda item: item[1])[0]


def vouches(support: Support, reading: Reading, *, figure: Figure, per: bool) -> bool:
    """Say whether one reading of a figure is in the results or one step from them; `per` when an average is spoken of."""
    negative = figure.negative
    if reading.kind == "points":
        return support.rate_steps.either(reading) or support.steps.either(reading, factor=0.01) or vouches_percent(support, reading, negative)
    if reading.kind == "percent":
        return vouches_percent(support, reading, negative)
    if reading.kind == "times":
        return support.ratios.hit(reading.low, reading.high) or support.ratios.hit(reading.low + 1, reading.high + 1)
    if reading.kind == "seconds":
        return any(support.direct.signed(reading, negative=negative, factor=1 / factor) for factor in _TIME_FACTORS) or any(
            support.steps.either(reading, factor=1 / factor) for factor in _TIME_FACTORS
        )
    if support.direct.signed(reading, negative=negative) or support.steps.either(reading):
        return True
    if figure.whole and support.counts.hit(reading.low, reading.high):
        return True
    digits = re.sub(r"\D", "", figure.text)
    if len(digits) >= 5 and support.exact.signed(reading, negative=negative):
        return True
    return per and support.ratios.signed(reading, negative=negative)


def vouches_percent(support: Support, reading: Reading, negative: bool) -> bool:
    """Look a percentage up: as a cell, a share, a growth."""
    if support.rates.signed(reading, negative=negative) or support.fractions.signed(reading, negative=negative, factor=0.01):
        return True
    if support.rate_steps.either(reading):
        return True
    low, high = reading.low / 100, reading.high / 100
    growing = support.ratios.hit(1 + low, 1 + high)
    falling = support.ratios.hit(1 - high, 1 - low)
    return falling if negative else growing or falling or support.ratios.hit(low, high)
