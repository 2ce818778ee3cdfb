"""Check that each figure of an answer follows from the results of its turn.

A sentence of the answer points at places of a result: at the rows that it names (such as Canada,
2022 or UA), at their sum and mean, and at the sum and mean of all rows. There are three tiers of
evidence. Near evidence is the numbers at these places, and the difference, ratio or share of any
two of them. Middle evidence is the results of combining two columns. Other evidence is all other
rows, the top rows, and results of combining figures that were already confirmed. A figure may match
middle or other evidence by accident. So such a match counts only if a made-up figure of the same
size would seldom match.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from longtable.checks.result_table import (
    MOST_OPERANDS,
    Evidence,
    ResultTable,
    as_shares,
    count_between,
    quotients,
)
from longtable.checks.vocabulary import DIFFERENCE
from longtable.memory.counting.figures import (
    SCALES,
    Figure,
    Reading,
    Source,
    bare_numbers,
    figures,
)

CHANCES = (math.inf, 0.5, 0.1)
"""For near, middle and other evidence: the largest chance with which a made-up figure of the same
size may match, so that a match still counts.
"""
_SCALE = re.compile(
    r"(?:^|[_\s(（/])(k|thousand|m|mn|mio|million|bn|billion|wan|yi|[kmgt]b|km|kg)s?(?:usd|eur|gbp|cny|rmb|chf|[$€£¥元])?(?=$|[_\s)）/])"
    r"|(?<!\d)(?<!\d )([百千十]?[万亿])",
    re.IGNORECASE,
)
"""Matches units in the name of a column or in the question. An answer may write a number of
"revenue (USD millions)" in billions.
"""
_FACTORS = {
    "seconds": (1.0, 60.0, 3600.0, 86400.0, 604800.0, 0.001), "percent": (100.0,), "points": (1.0, 100.0), "times": (1.0,),
}  # fmt: skip
"""Factors by which a figure of each kind may differ from its cell. For example, 34 % may come from
.34 or 34, and 2 hours from 7,200 seconds or 120 minutes.
"""
_NAME = re.compile(r"[^\W\d_]\w*\d\w*")
"""Matches a name with a digit in SQL."""
_JOINT = re.compile(r"_+|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_SENTENCE = re.compile(r"[^\n。！？；;]+?(?:[.!?](?=\s)|[\n。！？；;]|$)")


class _Bounds(NamedTuple):
    """An interval. A number of a result in this interval supports a figure."""

    low: float
    high: float
    is_negative: bool


def unsupported(
    answer: str,
    sources: Sequence[Source],
    question: str = "",
    said: Iterable[float] = (),
    earlier: Iterable[float] = (),
) -> list[Figure]:
    """Return the figures of `answer` that do not follow from the results, in their order.

    An answer may repeat figures of the question and of the SQL, and the numbers in `said`, which
    come from other tools of the turn. A number of `earlier` messages counts only if a made-up
    figure would seldom match.
    """
    tables = [ResultTable(source, f"{question}\n{answer}") for source in sources]
    labels = _labels(sources, tables)
    claimed = figures(answer, labels)
    asked = figures(question, labels)
    known = _known(asked, sources, said)
    old = Evidence(earlier).sort()
    scales = _scales(sources, question)
    left: list[Figure] = []
    before = ""
    for match in _SENTENCE.finditer(answer):
        sentence = match[0]
        inside = [figure for figure in claimed if match.start() <= figure.start < match.end()]
        if inside:
            tiers: list[list[Evidence]] = [[known], [], [old]]
            for table in tables:
                for tier, more in zip(tiers, table.evidence(sentence, before), strict=True):
                    tier += more
            growth = bool(DIFFERENCE.search(sentence))
            left += [each for each in inside if not _holds(each, tiers, scales, growth=growth)]
        before = sentence
    flagged = {figure.start for figure in left}
    held = [figure for figure in claimed if figure.start not in flagged]
    steps = [[], [], [_steps([*held, *asked], tables)]]
    return [figure for figure in left if not _holds(figure, steps, scales, growth=True)]


def _labels(sources: Sequence[Source], tables: Sequence[ResultTable]) -> list[str]:
    """Return the names of tables, columns and rows that contain a digit. An answer may write
    sales_2023 and sales2023 as "sales 2023".
    """
    labels: list[str] = []
    for source in sources:
        labels += map(str, source.columns)
        for name in _NAME.findall(source.sql):
            labels += (name, _JOINT.sub(" ", name))
    for table in tables:
        labels += table.names
    return [label for label in labels if re.search(r"\d", label)]


def _known(asked: Sequence[Figure], sources: Sequence[Source], said: Iterable[float]) -> Evidence:
    """Return as evidence the numbers that an answer may repeat."""
    repeated = [figure.value for figure in asked]
    for number in said:
        repeated += [number, -number]
    for source in sources:
        repeated += bare_numbers(source.sql)
    return Evidence(repeated, as_shares(repeated)).sort()


def _holds(
    figure: Figure,
    tiers: Sequence[Sequence[Evidence]],
    scales: Iterable[float],
    *,
    growth: bool,
) -> bool:
    """Return whether the evidence supports a figure: a tier contains a number that the figure may
    stand for, and a made-up figure of the same size would seldom match this tier.
    """
    for reading, (tier, chance) in product(figure.readings, zip(tiers, CHANCES, strict=True)):
        is_ratio = reading.kind in ("percent", "times")
        lists = [each.ratios if is_ratio else each.numbers for each in tier]
        may_grow = growth or chance < math.inf
        for bounds in _bounds(reading, figure, scales, may_grow=may_grow):
            if _hits(lists, bounds) and _chance(lists, bounds) <= chance:
                return True
    return False


def _bounds(
    reading: Reading, figure: Figure, scales: Iterable[float], *, may_grow: bool
) -> Iterator[_Bounds]:
    """Yield the intervals that a reading of a figure may stand for. If `may_grow`, growth by 34 %
    may also stand for a ratio of 1.34 or 0.66.
    """
    for factor in _FACTORS.get(reading.kind, scales):
        yield _Bounds(reading.low / factor, reading.high / factor, figure.negative)
    if reading.kind == "percent" and may_grow:
        for sign in (1, -1):
            yield _Bounds(1 + sign * reading.low / 100, 1 + sign * reading.high / 100, False)


def _hits(lists: Iterable[Sequence[float]], bounds: _Bounds) -> bool:
    signs = (-1,) if bounds.is_negative else (1, -1)
    return any(
        count_between(numbers, sign * bounds.low, sign * bounds.high)
        for numbers, sign in product(lists, signs)
    )


def _chance(lists: Iterable[Sequence[float]], bounds: _Bounds) -> float:
    """Return how many matches to expect by accident, for a made-up figure that is between a third
    of this figure and three times as large.
    """
    size = max(abs(bounds.low), abs(bounds.high), 1e-300)
    near = sum(
        count_between(numbers, sign * size / 3, sign * size * 3)
        for numbers, sign in product(lists, (1, -1))
    )
    return near * abs(bounds.high - bounds.low) / (size * 8 / 3)


def _scales(sources: Sequence[Source], question: str) -> set[float]:
    """Return the factors by which an answer may scale numbers of the results: 1, and those of units
    in the names of columns and in the question, such as "USD millions" or 万元.
    """
    heads = [question]
    for source in sources:
        heads += [*map(str, source.columns), source.sql]
    matches = _SCALE.finditer(" ".join(heads))
    factors = {1.0} | {SCALES.get((match[1] or match[2]).lower(), 1e3) for match in matches}
    ratios = {one / other for one, other in product(factors, factors)}
    return factors | ratios


def _steps(held: Sequence[Figure], tables: Sequence[ResultTable]) -> Evidence:
    """Return the results of combining two confirmed figures, or a figure and a total, such as 5.66
    % of 18,460.
    """
    values = [_plain_value(figure) for figure in held[:MOST_OPERANDS]]
    totals: list[float] = []
    for table in tables:
        totals += table.whole[0][: table.width]
    steps = Evidence((), values)
    for a, b in [*combinations(values, 2), *product(values, totals[:MOST_OPERANDS])]:
        steps.compare([a], [b])
        steps.numbers += [a * b, *quotients(a, b)]
        steps.numbers += [a * (1 + b), a * (1 - b), b * (1 + a), b * (1 - a)]
    return steps.sort()


def _plain_value(figure: Figure) -> float:
    """Return the value of a figure. A percentage becomes a share: 0.34 for 34 %."""
    is_percent = bool(figure.readings) and figure.readings[0].kind == "percent"
    return figure.value / (100 if is_percent else 1)
