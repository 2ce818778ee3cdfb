"""Check for ranges of dates that end in the middle of a day, or begin or end a day too early or too
late.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from sqlglot import exp

from longtable.checks.query_part import STEPS, Comparison, Part
from longtable.checks.vocabulary import DAY_FORMS, PHRASES, name_words
from longtable.tools.sql.verdict import Probe

_DAY = timedelta(days=1)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](.+))?")


class DayNamed(NamedTuple):
    """A day that a question names. `step` is the number of days from this day to the bound that is
    meant: -1 for "before 3 May", 1 for "after 3 May", otherwise 0.
    """

    month: int
    day: int
    step: int


def days_named(text: str) -> set[DayNamed]:
    """Return the days that a text names."""
    days: set[DayNamed] = set()
    for form in DAY_FORMS:
        for match in form.pattern.finditer(text):
            month = _month_number(match[form.month])
            step = _step(text[: match.start()])
            days |= {
                DayNamed(month, int(match[place]), step) for place in form.days if match[place]
            }
    return days


def _month_number(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS.index(text) + 1


def _step(text_before: str) -> int:
    is_after = PHRASES["after"].search(text_before) is not None
    is_before = PHRASES["before"].search(text_before) is not None
    return is_after - is_before


@dataclass(frozen=True)
class _Bound:
    """One end of a range of dates."""

    condition: exp.Expr
    is_first: bool
    column: str
    day: date
    """The first or last day that the range includes."""
    cuts_day: bool
    """Whether the range includes only the first moment of its last day, because it ends with a
    comparison such as `<= '2024-05-31'`, which means midnight.
    """


def date_bounds(part: Part) -> Iterator[Probe]:
    """Find ranges of dates that end in the middle of a day, or begin or end a day too early or too
    late.
    """
    days = days_named(part.question.text)
    bounds = [bound for each in part.comparisons if (bound := _bound_of(part, each))]
    for bound in bounds:
        others = [
            other.day
            for other in bounds
            if other.column == bound.column and other.is_first != bound.is_first
        ]
        asked = {date(bound.day.year, day.month, day.day) + day.step * _DAY for day in days}
        if bound.cuts_day:
            yield _bound_probe(part, bound, bound.day, is_inside=False)
        right = _right_day(bound, others, asked)
        if right is None:
            continue
        if (right > bound.day) == bound.is_first:
            yield _bound_probe(part, bound, bound.day, is_inside=True)
        else:
            yield _bound_probe(part, bound, right, is_inside=False)
    for comparison in part.comparisons:
        yield from _wrong_number(part, comparison, "month", {day.month for day in days})
        yield from _wrong_number(part, comparison, "day", {day.day for day in days})


def _bound_of(part: Part, comparison: Comparison) -> _Bound | None:
    """Return the bound that a comparison sets. Return None unless it compares a column with a
    written date.
    """
    literal = comparison.value.find(exp.Literal)
    if literal is None or isinstance(comparison.value, exp.Binary):
        return None
    match = _DATE.fullmatch(literal.name)
    column = comparison.side.find(exp.Column)
    if match is None or column is None:
        return None
    is_midnight = not match[2] or match[2].startswith("00:00")
    steps = STEPS[comparison.kind] if is_midnight else 0
    return _Bound(
        comparison.condition,
        comparison.kind in (exp.GT, exp.GTE),
        part.text(column),
        date.fromisoformat(match[1]) + steps * _DAY,
        comparison.kind is exp.LTE and is_midnight and column is comparison.side,
    )


def _bound_probe(part: Part, bound: _Bound, day: date, *, is_inside: bool) -> Probe:
    """Return the probe for rows of `day` that are on the wrong side of a bound. It counts the rows
    inside the bound if `is_inside` is True, otherwise the rows outside.
    """
    condition = part.text(bound.condition)
    return Probe(
        "date_bounds",
        f"{part.short(bound.condition)} {'takes in' if is_inside else 'leaves out'} {{0:,}} rows of"
        f" {day}",
        part.count(
            f"{bound.column} >= '{day}' AND {bound.column} < '{day + _DAY}' AND"
            f" {'' if is_inside else 'NOT '}({condition})",
            without=bound.condition,
        ),
    )


def _wrong_number(
    part: Part, comparison: Comparison, word: str, numbers: set[int]
) -> Iterator[Probe]:
    """Find a comparison of a month or day with a number that is one off from a number in the
    question.
    """
    if not comparison.value.is_int or name_words(comparison.side.name) != [word]:
        return
    number = int(comparison.value.name) + STEPS[comparison.kind]
    if number not in numbers and {number - 1, number + 1} & numbers:
        named = ", ".join(map(str, sorted(numbers)))
        yield Probe(
            "date_bounds",
            f"{part.short(comparison.condition)} is one {word} off: the question says {named}",
        )


def _right_day(bound: _Bound, others: Sequence[date], asked: set[date]) -> date | None:
    """Return the first or last day that was probably meant. None means that the bound may be right
    as it is.
    """
    day = bound.day
    whole = [one for one in (day - _DAY, day, day + _DAY) if _ends_month(one, bound.is_first)]
    # "From May to 1 July" may well end with June.
    if day in {*asked, *others, *whole}:
        return None
    near = [one for one in (day - _DAY, day + _DAY) if one in asked]
    if not near and all(_ends_month(other, not bound.is_first) for other in others):
        near = whole
    return next(iter(near), None)


def _ends_month(day: date, is_first: bool) -> bool:
    """Return whether a day is the first day of its month (if `is_first`) or the last day."""
    return (day if is_first else day + _DAY).day == 1
