"""Check that figures are in the unit that the question, or the column's name in the result, asks
for.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from sqlglot import exp

from longtable.checks.query_part import Comparison, Part
from longtable.checks.vocabulary import NAME_WORDS, NO_UNIT, UNITS, Unit, name_words, split_name
from longtable.tools.sql.verdict import Probe

_LONGEST_FIRST = "|".join(sorted(UNITS, key=len, reverse=True))
_UNIT = re.compile(rf"(\d[\d,.]*\s*|\ban?\s+|每)?(?<![a-z])({_LONGEST_FIRST})s?(?![a-z])")


class UnitNamed(NamedTuple):
    """A unit that a text names, with the number before it. `text` is what is written."""

    number: str
    """The number as it is written, or "a", "an" or 每. Empty if the text names only the unit."""
    unit: Unit
    text: str


class _Figure(NamedTuple):
    """One column of the result with its unit."""

    item: exp.Expr
    unit: Unit


def units_named(text: str) -> list[UnitNamed]:
    """Return the units that a text names, in order."""
    return [
        UnitNamed((match[1] or "").strip(), UNITS[match[2]], match[0])
        for match in _UNIT.finditer(text)
    ]


def unit_faults(part: Part) -> Iterator[Probe]:
    """Find figures and limits that are in another unit than asked for, and numbers that are wrongly
    used as shares.
    """
    figures = [_Figure(item, _unit_of(item, part)) for item in part.select.expressions]
    yield from _wrong_factors(part, figures)
    yield from _missing_percent(part, figures)
    for comparison in part.comparisons:
        yield from _wrong_limit(part, comparison)
    for node in part.select.find_all(exp.Sub, exp.Div):
        yield from _wrong_share(part, node)


def _wrong_factors(part: Part, figures: Sequence[_Figure]) -> Iterator[Probe]:
    asked = _units_asked(part)
    for item, unit in figures:
        if unit.dimension == NO_UNIT.dimension:
            continue
        renamed = units_named(" ".join(name_words(item.alias)))
        meant = [*(each.unit for each in renamed), *asked]
        sizes = _sizes(meant, unit.dimension) or _sizes(UNITS.values(), unit.dimension)
        if sizes and not _is_near(unit.size, sizes):
            yield Probe(
                "unit",
                f"{part.short(item)} is off by a factor of {abs(unit.size / sizes[0]):.6g} from the"
                " unit asked for",
            )


def _units_asked(part: Part) -> list[Unit]:
    """Return the units that the question asks for, and the quotients of any two of them, such as
    kilometres per hour.
    """
    asked = [each.unit for each in units_named(part.question.text) if not each.number]
    quotients = [
        Unit(one.size / other.size, one.dimension / other.dimension)
        for one, other in product(asked, asked)
        if one.dimension != other.dimension
    ]
    return asked + quotients


def _missing_percent(part: Part, figures: Sequence[_Figure]) -> Iterator[Probe]:
    sizes = [
        unit.size
        for item, unit in figures
        if unit.dimension == NO_UNIT.dimension and item.find(exp.AggFunc, exp.Div)
    ]
    if part.question.says("percent") and sizes and not _is_near(0.01, sizes):
        yield Probe(
            "unit",
            "the question asks for per cent, and no figure of the query is 100 times a share",
        )


def _wrong_limit(part: Part, comparison: Comparison) -> Iterator[Probe]:
    """Find a comparison with another length or size than the one that the question names."""
    side = _unit_of(comparison.side, part)
    value = comparison.value
    if side.dimension == NO_UNIT.dimension:
        return
    meant = [
        float(each.number.replace(",", "")) * each.unit.size
        for each in units_named(part.question.text)
        if each.unit.dimension == side.dimension and each.number[:1].isdigit()
    ]
    if not meant or value.find(exp.Column, exp.Null):
        return
    if not _is_near(side.size / _unit_of(value, part).size, meant):
        yield Probe(
            "unit",
            f"{part.short(comparison.condition)} compares with another length or size than the"
            " question says",
        )


def _wrong_share(part: Part, node: exp.Expr) -> Iterator[Probe]:
    """Report `share / 100` where some values of the share are already between 0 and 1. Also report
    `1 - share` where some values are over 1.
    """
    is_quotient = isinstance(node, exp.Div)
    share = node.this if is_quotient else node.expression
    number = node.expression if is_quotient else node.this
    column = part.catalog_column(share)
    if column is None or number != exp.Literal.number(100 if is_quotient else 1):
        return
    text = part.text(share)
    yield Probe(
        "unit",
        f"{part.short(node)}: {{0:,}} values of {share.name} are"
        f" {'shares already' if is_quotient else 'over 1, and no shares'}",
        part.count(f"{text} > 0 AND {text} < 1" if is_quotient else f"{text} > 1"),
    )


def _sizes(units: Iterable[Unit], dimension: float) -> list[float]:
    return [unit.size for unit in units if unit.dimension == dimension]


def _is_near(one: float, others: Sequence[float]) -> bool:
    """Return whether a size is approximately one of these sizes. So a gigabyte may be 1,000 or
    1,024 to the third power.
    """
    return any(other and 0.92 < abs(one / other) < 1.08 for other in others)


def _unit_of(node: exp.Expr, part: Part) -> Unit:
    """Return the unit of an expression. A constant changes the unit: `ms / 1000` is in seconds."""
    if isinstance(node, exp.Column):
        return _column_unit(node, part)
    if isinstance(node, exp.Mul | exp.Div):
        one = _unit_of(node.this, part)
        other = _unit_of(node.expression, part)
        if isinstance(node, exp.Mul):
            return Unit(one.size * other.size, one.dimension * other.dimension)
        return Unit(one.size / other.size, one.dimension / other.dimension)
    if node.is_number and float(node.name or 0):
        return Unit(1 / float(node.name), NO_UNIT.dimension)
    if isinstance(node, exp.Count | exp.Subquery):
        return NO_UNIT
    operand = _operand(node)
    return _unit_of(operand, part) if isinstance(operand, exp.Expr) else NO_UNIT


def _operand(node: exp.Expr) -> object:
    """Return the part of an expression that determines its unit."""
    if isinstance(node, exp.Case):
        return node.args["ifs"][0].args["true"]
    if isinstance(node, exp.Add | exp.Sub) and not node.this.find(exp.Column):
        return node.expression
    return node.this


def _column_unit(node: exp.Column, part: Part) -> Unit:
    """Return the unit that the name or comment of a column tells."""
    column = part.catalog_column(node)
    if column is None:
        return NO_UNIT
    name = " ".join(split_name(column.name)).lower()
    comment = (column.comment or "").lower()
    for each in units_named(f"{name}  {comment}"):
        if not each.number and each.text not in NAME_WORDS["clock"]:
            return each.unit
    return NO_UNIT
