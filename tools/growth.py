"""Bound from above what `repeat`, `range` and their kind make out of nothing, before anything runs."""

import re

from sqlglot import exp

from longtable.tools.functions import GROWING_FUNCTIONS

DATE_STEPS = {"HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE"}
DATES = 100_000
"""Elements taken for a series of dates; whatever the dates, it has far fewer than one of numbers could."""


def growth(tree: exp.Expr) -> float | None:
    """Return the product of the sizes of all growing calls; None when one of them cannot be known from the text."""
    product = 1.0
    for node in tree.find_all(exp.Func):
        size = _size(node)
        if size is None:
            return None
        product *= max(1.0, size)
    return product


def _size(node: exp.Func) -> float | None:
    if isinstance(node, exp.GenerateSeries):
        # In FROM the rows stream; as a value they are one list.
        return 1.0 if isinstance(node.parent, exp.Table | exp.From | exp.Join | exp.Lateral) else _series(node)
    if isinstance(node, exp.Repeat):
        return _number(node.args.get("times"))
    if isinstance(node, exp.Pad):
        return _number(node.expression)
    if isinstance(node, exp.Format):
        return _widths(node.this)
    if isinstance(node, exp.Anonymous) and node.name.lower() in GROWING_FUNCTIONS:
        if node.name.lower() in ("printf", "format"):
            return _widths(node.expressions[0]) if node.expressions else 1.0
        return _number(node.expressions[1]) if len(node.expressions) > 1 else 1.0
    return 1.0


def _series(node: exp.GenerateSeries) -> float | None:
    step = node.args.get("step")
    if isinstance(step, exp.Interval):
        unit = step.args.get("unit")
        return DATES if unit is not None and unit.name.upper().rstrip("S") in DATE_STEPS else None
    start, end = _number(node.args.get("start")), _number(node.args.get("end"))
    by = _number(step) if step is not None else 1.0
    if start is None or end is None or by is None:
        return None
    return abs(end - start) / (abs(by) or 1.0) + 1


def _number(node: exp.Expr | None) -> float | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren | exp.Cast):
        return _number(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return float(node.name.replace("_", ""))
        except ValueError:
            return None
    return None


def _widths(template: exp.Expr | None) -> float | None:
    """Return the largest number in a format string; None when there is no telling."""
    if not isinstance(template, exp.Literal) or "*" in template.name or re.search(r"\{[^{}]*\{", template.name):
        return None
    return max((float(number) for number in re.findall(r"\d{1,300}", template.name)), default=1.0)
