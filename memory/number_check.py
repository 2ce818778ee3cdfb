"""Check that each figure of an answer is in a result of the turn, or one step from such.

A step is a sum, difference, ratio, share, growth, average or count. Its operands are what an answer is likely to speak of:
totals, the rows it names, the first and last, the extremes; so the cost stays bounded, and chance hits rare.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from longtable.memory.figures import Figure, Reading, figures, number_in

_TIME_FACTORS = (1.0, 60.0, 3600.0, 86400.0, 0.001)


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
    parts: Bag = field(default_factory=Bag)
    """Shares of a total, and one number of a row by another."""
    compared: Bag = field(default_factory=Bag)
    """One number of a column by another of it: growth, "2.3 times as many"."""
    counts: Bag = field(default_factory=Bag)
    headlines: list[float] = field(default_factory=list)

    def pair(self, a: float, b: float) -> None:
        """Add what one step makes of two numbers that may be of any kind."""
        self.steps.add(a - b, a + b)
        self.compared.add(*both_ways(a, b))
        self.parts.add(*both_ways(a, b))


def both_ways(a: float, b: float) -> list[float]:
    """Return a/b and b/a, as far as there are such."""
    return ([a / b] if b else []) + ([b / a] if a else [])


@dataclass(frozen=True)
class Wording:
    """What the sentence around a figure speaks of."""

    per: bool
    up: bool
    down: bool
    change: bool
    """The figure itself is the size of a change: "grew by 5 %"."""


def vouches(support: Support, reading: Reading, *, figure: Figure, wording: Wording) -> bool:
    """Say whether one reading of a figure is in the results or one step from them."""
    negative = figure.negative
    if reading.kind == "points":
        return support.rates.signed(reading, negative=negative) or _rate_step(support, reading)
    if reading.kind == "percent":
        return _percent(support, reading, negative=negative, wording=wording)
    if reading.kind == "times":
        found = support.compared.hit(reading.low, reading.high) or support.parts.hit(reading.low, reading.high)
        return found or (wording.up and support.compared.hit(reading.low + 1, reading.high + 1))
    if reading.kind == "seconds":
        return any(
            support.direct.signed(reading, negative=negative, factor=1 / factor) or support.steps.either(reading, factor=1 / factor)
            for factor in _TIME_FACTORS
        )
    if support.direct.signed(reading, negative=negative) or support.steps.either(reading):
        return True
    if figure.whole and support.counts.hit(reading.low, reading.high):
        return True
    if len(re.sub(r"\D", "", figure.text)) >= 5 and support.exact.signed(reading, negative=negative):
        return True
    return wording.per and support.parts.signed(reading, negative=negative)


def _percent(support: Support, reading: Reading, *, negative: bool, wording: Wording) -> bool:
    """Look a percentage up: as a cell, a share, and as a growth where the sentence speaks of one."""
    if support.rates.signed(reading, negative=negative) or support.fractions.signed(reading, negative=negative, factor=0.01):
        return True
    low, high = reading.low / 100, reading.high / 100
    if not negative and not wording.change and support.parts.hit(low, high):
        return True
    up, down = wording.up and not negative, wording.down or negative
    if (up or down) and _rate_step(support, reading):
        return True
    grown = support.compared.hit(1 + low, 1 + high) or (low > 1 and support.compared.hit(low, high))
    return (up and grown) or (down and support.compared.hit(1 - high, 1 - low))


def _rate_step(support: Support, reading: Reading) -> bool:
    return support.rate_steps.either(reading) or support.rate_steps.either(reading, factor=0.01)


# -- what the results vouch for -------------------------------------------------------------------------------------

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


# -- the answer -----------------------------------------------------------------------------------------------------

_PER = re.compile(
    r"\b(?:per|each|averag\w*|mean|ratio|a (?:day|week|month|year|customer|track|user)|every)\b"
    r"|平均|人均|日均|月均|年均|均|每|单价|客单价|比例",
    re.IGNORECASE,
)
_UP = re.compile(
    r"\b(?:gr[eo]w\w*|rose|ris\w+|increas\w+|gain\w*|up|more|higher|larger|faster|longer|above|exceed\w*|climb\w*|jump\w*|plus|better"
    r"|recover\w*|expensive|gap|differ\w*|ahead)\b|[增涨升多高超快长]|环比|同比|变化|相差|差距|领先",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\b(?:fell|fall\w*|drop\w*|decreas\w+|declin\w+|los[st]\w*|down|less|fewer|lower|smaller|slower|shorter|below|under|behind|cheaper"
    r"|reduc\w+|shr[aiu]nk\w*|minus|worse|gap|differ\w*)\b|[降减跌少低慢短亏]|环比|同比|变化|相差|差距|落后",
    re.IGNORECASE,
)
_CHANGE = re.compile(r"\bby\s?(?:about\s|around\s|roughly\s|some\s|only\s|a\s)?$|[增降减涨跌][长幅加少]?(?:了|率?(?:约?为|达)?)?\s?约?\s?$")
_LABEL_CELLS = 5_000
_NEAR = 200
_ENDS = ("\n", ". ", "。", "！", "？")


def unsupported(answer: str, sources: Sequence[Source], question: str = "", said: Iterable[float] = ()) -> list[Figure]:
    """Return the figures of `answer` that neither the results nor the question, the SQL or one step from them give.

    A step is a sum, difference, ratio, share, growth, average or count. Years, dates, ordinals, versions, citations, code and
    names from the data claim nothing. `said`: numbers that may be repeated, but nothing is made of them.
    """
    labels = _labels(sources, answer)
    claimed = figures(answer, labels)
    if not claimed:
        return []
    given = [value for figure in figures(question, labels) for value in _values(figure)]
    given += [float(digits) for source in sources for digits in re.findall(r"(?<![\w.])\d{1,15}(?:\.\d{1,9})?(?![\w.])", source.sql)]
    support = gather(sources, told=f"{question}\n{answer}", given=list(dict.fromkeys(given))[:100])
    support.direct.add(*said)
    held = [_supported(figure, support, answer) for figure in claimed]
    left = [figure for figure, known in zip(claimed, held, strict=True) if not known]
    if not left:
        return []
    mention(support, [figure for figure, known in zip(claimed, held, strict=True) if known])
    return [figure for figure in left if not _supported(figure, support, answer)]


def _supported(figure: Figure, support: Support, answer: str) -> bool:
    sentence = _sentence(answer, figure)
    wording = Wording(
        per=bool(_PER.search(sentence)),
        up=bool(_UP.search(sentence)),
        down=bool(_DOWN.search(sentence)),
        change=bool(_CHANGE.search(answer[max(0, figure.start - 16) : figure.start])),
    )
    if any(vouches(support, reading, figure=figure, wording=wording) for reading in figure.readings):
        return True
    return bool(figure.parts) and all(_supported(part, support, answer) for part in figure.parts)


def _sentence(text: str, figure: Figure) -> str:
    """Return the sentence or line that a figure stands in, as far as it is near."""
    before, after = text[max(0, figure.start - _NEAR) : figure.start], text[figure.end : figure.end + _NEAR]
    start = max(before.rfind(mark) for mark in _ENDS)
    ends = [at for mark in _ENDS if (at := after.find(mark)) >= 0]
    return before[start + 1 :] + figure.text + after[: min(ends, default=len(after))]


def _values(figure: Figure) -> list[float]:
    percent = any(reading.kind == "percent" for reading in figure.readings)
    return [figure.value, *([figure.value / 100] if percent else []), *(part.value for part in figure.parts)]


def _labels(sources: Sequence[Source], answer: str) -> list[str]:
    """Return the names and text cells with digits in them that the answer repeats, longest first."""
    told = Told(answer)
    found: dict[str, None] = {}
    for source in sources:
        texts: list[object] = [*source.columns, *(cell for row in source.rows[:_LABEL_CELLS] for cell in row)]
        for text in texts:
            if isinstance(text, str) and len(text) <= 200 and told.names(text) and _is_label(text):
                found[text] = None
    return sorted(found, key=len, reverse=True)[:500]


def _is_label(text: str) -> bool:
    """Return whether a name would be read as a figure: it holds digits."""
    return bool(re.search(r"\d", text)) and not re.fullmatch(r"\s*[-+]?[\d.,]+\s*%?\s*", text)
