"""Check that each figure of an answer follows from the results of its turn.

A sentence points at places of a result: the rows that it names (Canada, 2022, UA), their sum and
mean, the sum and mean of all. Near evidence is what stands there, and the difference, ratio or
share of two such places. What two columns give together, what is left of a total, and what figures
that hold give together count only for a figure that a made-up one of its size would seldom hit.
Other rows and top rows by themselves are no evidence.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import TypeGuard

from longtable.memory.counting.figures import (
    SCALES,
    Figure,
    Source,
    bare_numbers,
    figures,
    number_in,
)

MOST_PLACES = 12
MOST_TOP = 10
MOST_COLUMNS = 20
MOST_OPERANDS = 30
CHANCES = (math.inf, 0.5, 0.1)
"""Chance that a made-up figure of the same size hits, up to which near, middle and other evidence
counts.
"""


# -- words -----------------------------------------------------------------------------------------

_GAP = re.compile(
    r"\b(?:differ\w*|gap|more|less|fewer|than|above|below|over|under|ahead|behind|trail\w*|margin|rang\w*|spread"
    r"|chang\w*|exce\w+|surplus|deficit|short|apart|gr[eo]w\w*|ris\w+|rose|increas\w+|gain\w*|fell|fall\w*|drop\w*|decreas\w+"
    r"|declin\w+|los[st]\w*|up|down|minus|plus|points?|pp|shr[aiu]nk\w*|climb\w*|jump\w*|add(?:s|ed)|faster|longer|better|recover\w*"
    r"|slower|smaller|cheaper|higher|lower|larger|bigger|reduc\w+|worse|surg\w*|slip\w*|dip\w*|rest|remain\w*|others?|uplift|not?|never"
    r"|leav\w+|left|net|missing|without|by (?:about |around |roughly |only |some )?[$€£]?\d)\b"
    r"|[(（]\s?[+-][\d.]+"
    r" ?%|[差超减降升涨跌余净亏剩增未]|(?<!最)[高低快慢长短多少]|(?<![占同环])比(?![例重率])|非|领先|落后"
    r"|变化|变动|同比|环比",
    re.IGNORECASE,
)
"""Words of a difference, growth or rest."""
_TOTAL = re.compile(
    r"\b(?:totals?|altogether|overall|in all|combined|across"
    r" all)\b|合计|总计|共计|总[共数额量]|(?<!累)计",
    re.IGNORECASE,
)
"""Words of a sentence that, where it names no row, is about all rows."""
_LABEL = re.compile(
    r"(?:^|[_\s])(?:ids?|code|year|month|quarter|day|hour|week|zip|phone|rank|no|nr)$|^(?:年[份度]?|月份?|季度|日期?|编号|序号|排名)$|_?id$",
    re.IGNORECASE,
)
"""Columns whose numbers name things: they are never added."""
_SCALE = re.compile(
    r"(?:^|[_\s(（/])(k|thousand|m|mn|mio|million|bn|billion|wan|yi|[kmgt]b|km|kg)s?(?:usd|eur|gbp|cny|rmb|chf|[$€£¥元])?(?=$|[_\s)）/])"
    r"|(?<!\d)(?<!\d )([百千十]?[万亿])",
    re.IGNORECASE,
)
"""Units of a column, in its name or the question: "revenue (USD millions)" may be told in
billions.
"""
_FACTORS = {
    "seconds": (1.0, 60.0, 3600.0, 86400.0, 604800.0, 0.001), "percent": (100.0,), "points": (1.0, 100.0), "times": (1.0,),
}  # fmt: skip
"""What a figure of a kind may be of a cell: 34 % of .34 or 34, 2 hours of 7,200 or 120."""
_MONTHS = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_QUARTERS = [
    (f"Q{at}", f"第{at}季度", f"{char}季度", f"{word} quarter")
    for at, char, word in zip(
        (1, 2, 3, 4), "一二三四", ("first", "second", "third", "fourth"), strict=True
    )
]
_HALVES = (("first half", "H1", "上半年"), ("second half", "H2", "下半年"))
_WHEN = re.compile(
    r"=((?:1[5-9]|20)\d\d)[年度]*(?:[-/.](\d\d)(?:[-/.](\d\d).*)?|-?Q([1-4]))?$|(?:month|月)[^=]*=(\d\d?)月?$|=(\d\d?)月$"
    r"|(?:quarter|季)[^=]*=Q?([1-4])$|=Q([1-4])$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^\n。！？；;]+?(?:[.!?](?=\s)|[\n。！？；;]|$)")


_AFTER = (
    "(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember|day|sday|nesday|rsday|urday)?s?(?![A-Za-z0-9])"
)


def _is_name(cell: object) -> TypeGuard[str]:
    return isinstance(cell, str) and 2 <= len(cell) <= 200 and number_in(cell) is None


def _forms(cell: object, column: str) -> list[tuple[str, str]]:
    """Return how an answer may name a row by this cell: (what the name is of, the name)."""
    forms: list[tuple[str, Sequence[str]]] = []
    if when := _WHEN.search(f"{column}={cell}"):
        month = int(when[2] or when[5] or when[6] or 0) % 13
        day = int(when[3] or 0)
        quarter = int(when[4] or when[7] or when[8] or (month + 2) // 3)
        name = _MONTHS[month]
        days = (f"{name} {day}", f"{name[:3]} {day}", f"{day} {name}", f"{month}月{day}日")
        forms = [
            ("year", [when[1] or ""]),
            ("day", days * bool(day)),
            ("month", (name, name[:3], f"{month}月") * bool(month)),
        ]
        forms += [("quarter", _QUARTERS[quarter - 1]), ("half", _HALVES[quarter > 2])] * bool(
            quarter
        )
    if _is_name(cell):
        short = re.sub(
            r"(?:特别行政区|自治区|[市省县区部]|(?<=[a-z]{3})s|(?<=^[A-Z]{2})[A-Z])$", "", cell
        )
        initials = "".join(word[0] for word in cell.split()) if cell.istitle() else ""
        forms.append(
            ("", (cell, short, initials, *(word for word in cell.split()[:-1] if len(word) > 2)))
        )
    return [(column + of, form) for of, named in forms for form in named if len(form) > 1]


def _pattern(form: str) -> str:
    case = "" if len(form) <= 3 or form in _MONTHS else "i"
    return rf"(?<![A-Za-z0-9])((?{case}:{re.escape(form)})){_AFTER if form[-1].isascii() else ''}"


# -- evidence --------------------------------------------------------------------------------------

Place = Sequence[float]
"""The numbers of a row, or of a sum or mean over rows: each measure, then what two give together.
NaN where there is none.
"""


class _Bag:
    """Numbers to look figures up in, and ratios, which are for "34 %" and "2.3 times" only."""

    def __init__(self, numbers: Iterable[float] = (), ratios: Iterable[float] = ()) -> None:
        self.numbers = list(numbers)
        self.ratios = list(ratios)

    def step(self, a: Place, b: Place, signs: Iterable[int] = (-1, 1)) -> None:
        """Add the ratios of two places, and their difference (-1) and sum (1)."""
        for x, y in zip(a, b, strict=False):
            self.numbers += [x + sign * y for sign in signs]
            self.ratios += _quotients(x, y)

    def sort(self) -> "_Bag":
        """Make ready for look-ups."""
        self.numbers, self.ratios = (
            sorted(set(filter(math.isfinite, some))) for some in (self.numbers, self.ratios)
        )
        return self


def _quotients(x: float, y: float) -> list[float]:
    return [x / y if y else math.nan, y / x if x else math.nan]


def _parts(numbers: Iterable[float]) -> list[float]:
    """Return what percentages may stand for numbers: .34 or 34."""
    return [n / by for n in numbers for by in (1, 100)]


class _Table:
    """One result, read once for an answer; `text` is question and answer."""

    def __init__(self, source: Source, text: str) -> None:
        names = [str(name) for name in source.columns[:MOST_COLUMNS]]
        cells = [
            [row[at] if at < len(row) else None for row in source.rows] for at in range(len(names))
        ]
        self.numbers = [
            [math.nan if (n := number_in(cell)) is None else n for cell in column]
            for column in cells
        ]
        pairs = [
            (name, column)
            for name, column in zip(names, self.numbers, strict=True)
            if not all(map(math.isnan, column))
        ]
        self.measures = [column for name, column in pairs if not _LABEL.search(name)]
        self.products = [
            [x * y for x, y in zip(a, b, strict=True)]
            for a, b in combinations(self.measures[:5], 2)
        ]
        self.rows = range(len(source.rows))
        self.width = len(self.measures)
        self.names = _names(cells, names, text.casefold())
        self.pattern = re.compile("|".join(_pattern(form) for form in self.names) or r"(?!)")
        self.whole = [self.over(self.rows, mean=mean) for mean in (False, True)]
        orders = [
            sorted((at for at in self.rows if column[at] == column[at]), key=column.__getitem__)
            for column in self.measures
        ]
        runs = [
            run[::way][:end]
            for run in (self.rows, *orders)
            for way in (1, -1)
            for end in range(1, MOST_TOP + 1)
        ]
        self.tops = [
            self.over(run, mean=mean)[: self.width] for run in runs for mean in (False, True)
        ]
        # How many rows there are, of each value, and over and under each number of the text.
        limits = [0.0, *map(abs, bare_numbers(text.replace(",", ""))[:40])]
        sizes = [Counter(map(str, column)) for column in cells]
        counts = [
            n
            for size in sizes
            for n in (len(size), size["None"], *(size.values() if len(size) < 60 else ()))
        ]
        for column, mean in zip(
            [
                [column[at] for at in order]
                for column, order in zip(self.measures, orders, strict=True)
            ],
            self.whole[1],
            strict=False,
        ):
            below = [
                bisect(column, limit)
                for limit in (*limits, mean)
                for bisect in (bisect_left, bisect_right)
            ]
            counts += [
                *below,
                *(len(column) - n for n in below),
                (column[len(column) // 2] + column[(len(column) - 1) // 2]) / 2,
            ]
        self.counts = _Bag(
            [source.row_count, len(self.rows), len(names), *counts],
            [n / len(self.rows) for n in counts if self.rows],
        ).sort()
        texts = [
            n
            for column in cells
            for cell in set(filter(_is_name, column[:200]))
            for n in bare_numbers(cell)
        ]
        numbers = [n for column in (*self.numbers, *self.tops) for n in column]
        self.rest = _Bag([*numbers, *texts], _parts(numbers))
        for top in self.tops:
            self.rest.step(top, self.whole[0], ())
        self.rest.sort()

    def over(self, rows: Iterable[int], *, mean: bool = False) -> Place:
        """Return the sum or mean over rows."""
        some = [
            [column[at] for at in rows if column[at] == column[at]]
            for column in (*self.measures, *self.products)
        ]
        numbers = [
            math.fsum(column) / (len(column) if mean else 1) if column else math.nan
            for column in some
        ]
        real = numbers[: min(self.width, 6)]
        total = sum(numbers[: self.width])
        steps = [n for x, y in combinations(real, 2) for n in (x - y, x + y, *_quotients(x, y))]
        return [
            *numbers,
            *steps,
            total,
            total / max(1, self.width),
            *(n / x if x else math.nan for n in (*numbers[self.width :],) for x in real),
            *(x / total if total else math.nan for x in real),
        ]

    def named(self, text: str) -> tuple[set[int], list[set[int]]]:
        """Return the rows that a text names, and those of each name. Names of several columns hold
        together.
        """
        by_row = [
            named
            for match in self.pattern.finditer(text)
            for named in [*self.names.values()][(match.lastindex or 1) - 1].items()
        ]
        by_column = [
            set[int]().union(*(rows for of, rows in by_row if of == column))
            for column in {of for of, _ in by_row}
        ] or [set[int]()]
        return (
            set.intersection(*by_column) or set.union(*by_column),
            [rows for _, rows in by_row][:MOST_OPERANDS],
        )

    def evidence(self, sentence: str, before: str) -> list[list[_Bag]]:
        """Return near, middle and other evidence on a sentence; `before` is the sentence before
        it.
        """
        (scope, groups) = self.named(sentence)
        signs = (-1,) if _GAP.search(sentence) else ()
        is_whole = not scope and bool(_TOTAL.search(sentence)) and len(self.rows) > 1
        own = sorted(scope or self.rows)
        singles = own[: 0 if is_whole else MOST_PLACES]
        sets = [own, *(group for group in groups if len(group) > 1)] if scope else []
        places = [
            *(self.over([at]) for at in singles),
            *(self.over(rows, mean=mean) for rows in sets for mean in (False, True)),
            *self.whole,
        ]
        beside = {at + step for at in own[:MOST_PLACES] for step in (-1, 1)} | {
            *sorted(self.named(before)[0])[:6],
            0,
            len(self.rows) - 1,
        }
        others = [self.over([at]) for at in sorted(beside - set(own)) if at in self.rows]
        others += [
            [pick(column) for column in zip(*self.tops[: 2 * MOST_TOP], strict=False)]
            for pick in (max, min)
        ]
        if scope:
            others += [
                [x - y for x, y in zip(self.whole[0], self.over(own), strict=True)],
                self.over(range(own[0], own[-1] + 1)),
            ]
        cells = [column[at] for column in self.numbers for at in scope] + [
            n for place in places for n in place[: self.width]
        ]
        wide = [n for place in places for n in place[self.width :]]
        near = _Bag([len(own), *map(len, groups), *cells], _parts(cells))
        middle = _Bag(wide, wide)
        for a, b in [*combinations(places, 2), *product(places, others)]:
            near.step(a[: self.width], b[: self.width], signs)
        tiers: list[list[_Bag]] = [[near.sort(), self.counts], [middle.sort()], []]
        tiers[2 if scope or is_whole else 0].append(self.rest)
        return tiers


def _names(
    cells: Sequence[Sequence[object]], names: Sequence[str], folded: str
) -> dict[str, dict[str, set[int]]]:
    """Return the names of rows that a text holds, and for each column the rows; longest first: New
    York is not York.
    """
    rows_by_name = defaultdict[str, dict[str, set[int]]](lambda: defaultdict(set))
    for column, name in zip(cells, names, strict=True):
        known = {cell: _forms(cell, name) for cell in column if isinstance(cell, str | int)}
        known = {
            cell: [(of, form) for of, form in forms if form.casefold() in folded]
            for cell, forms in known.items()
        }
        for at, (of, form) in [
            (at, named)
            for at, cell in enumerate(column)
            if isinstance(cell, str | int)
            for named in known[cell]
        ]:
            rows_by_name[form][of].add(at)
    return dict(sorted(rows_by_name.items(), key=lambda name: -len(name[0])))


# -- the answer ------------------------------------------------------------------------------------


def unsupported(
    answer: str,
    sources: Sequence[Source],
    question: str = "",
    said: Iterable[float] = (),
    earlier: Iterable[float] = (),
) -> list[Figure]:
    """Return the figures of `answer` that the results do not give, in order.

    Figures of the question and the SQL may be repeated, so may the numbers that other tools of the
    turn `said`; those of `earlier` messages count only for a figure that is seldom hit.
    """
    tables = [_Table(source, f"{question}\n{answer}") for source in sources]
    labels = [name for source in sources for name in map(str, source.columns)] + [
        form for table in tables for form in table.names
    ]
    labels = [label for label in labels if re.search(r"\d", label)]
    claimed = figures(answer, labels)
    asked = figures(question, labels)
    repeated = [*(figure.value for figure in asked), *(sign * n for n in said for sign in (1, -1))]
    repeated += [n for source in sources for n in bare_numbers(source.sql)]
    known = _Bag(repeated, _parts(repeated)).sort()
    old = _Bag(earlier).sort()
    scales = _scales(sources, question)
    left = list[Figure]()
    before = ""
    for match in _SENTENCE.finditer(answer):
        if inside := [figure for figure in claimed if match.start() <= figure.start < match.end()]:
            evidence = [table.evidence(match[0], before) for table in tables]
            growth = bool(_GAP.search(match[0]))
            tiers = [
                [bag, *(more for tiers in evidence for more in tiers[at])]
                for at, bag in enumerate((known, _Bag(), old))
            ]
            left += [
                figure for figure in inside if not _holds(figure, tiers, scales, growth=growth)
            ]
        before = match[0]
    flagged = {figure.start for figure in left}
    steps = _steps([*(figure for figure in claimed if figure.start not in flagged), *asked], tables)
    return [figure for figure in left if not _holds(figure, [[], [], [steps]], scales, growth=True)]


def _holds(
    figure: Figure, tiers: Sequence[Sequence[_Bag]], scales: Iterable[float], *, growth: bool
) -> bool:
    """Return whether a reading of the figure is in a tier where a made-up figure of its size would
    seldom be.
    """
    for reading, (bags, most) in product(figure.readings, zip(tiers, CHANCES, strict=True)):
        lists = [
            bag.ratios if reading.kind in ("percent", "times") else bag.numbers for bag in bags
        ]
        bounds = [
            (reading.low / factor, reading.high / factor, figure.negative)
            for factor in _FACTORS.get(reading.kind, scales)
        ]
        if reading.kind == "percent" and (growth or most < math.inf):
            bounds += [
                (1 + sign * bounds[0][0], 1 + sign * bounds[0][1], False) for sign in (1, -1)
            ]
        for low, high, negative in bounds:
            size = max(abs(low), abs(high), 1e-300)
            hits = any(
                _count(some, sign * low, sign * high)
                for some in lists
                for sign in ((-1,) if negative else (1, -1))
            )
            if (
                hits
                and sum(
                    _count(some, sign * size / 3, sign * size * 3)
                    for some in lists
                    for sign in (1, -1)
                )
                * abs(high - low)
                / (size * 8 / 3)
                <= most
            ):
                return True
    return False


def _count(ordered: Sequence[float], one: float, other: float) -> int:
    return bisect_right(ordered, max(one, other)) - bisect_left(ordered, min(one, other))


def _scales(sources: Sequence[Source], question: str) -> set[float]:
    """Return what numbers may be multiplied by: 1, and the units of columns and question ("USD
    millions", 万元).
    """
    heads = " ".join(
        [question, *(str(name) for source in sources for name in (*source.columns, source.sql))]
    )
    factors = {SCALES.get((match[1] or match[2]).lower(), 1e3) for match in _SCALE.finditer(heads)}
    return {n for a, b in product([1.0, *factors], repeat=2) for n in (a, a / b)}


def _steps(held: Sequence[Figure], tables: Sequence[_Table]) -> _Bag:
    """Return what two figures that hold, or a figure and a total, give: 5.66 % of 18,460."""
    values = [
        figure.value / (100 if figure.readings and figure.readings[0].kind == "percent" else 1)
        for figure in held[:MOST_OPERANDS]
    ]
    totals = [n for table in tables for n in table.whole[0][: table.width]][:MOST_OPERANDS]
    bag = _Bag((), values)
    for a, b in [*combinations(values, 2), *product(values, totals)]:
        bag.step([a], [b])
        bag.numbers += [
            a * b,
            *_quotients(a, b),
            *(x * (1 + sign * y) for x, y in ((a, b), (b, a)) for sign in (1, -1)),
        ]
    return bag.sort()
