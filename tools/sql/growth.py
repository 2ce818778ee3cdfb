"""Limit calls such as `repeat` and `range`, which can make values of any size, before anything
runs.

For DuckDB such a call is one step. DuckDB cannot be stopped during the step, and does not count its
memory against the memory limit. A count that is written as a number is evaluated here. Any other
count gets a check that the engine runs: `repeat(name, n)` becomes `repeat(name, CASE WHEN n > 10000
THEN error('...') ELSE n END)`.

PostgreSQL can be stopped during such a call. But it writes a series in FROM to disk before it
returns the first row. So in PostgreSQL the number of rows of a series is limited wherever the
series is in the query. PostgreSQL has no `error()`, so the check is a cast that fails.
"""

import math
import re
from collections.abc import Iterator
from typing import cast

from sqlglot import exp

from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import children_of, nodes_of
from longtable.tools.sql.verdict import OVER

MAX_GROWTH = 10_000_000
"""The most elements that one value may have, as far as the text of the query tells."""
MAX_REPEATS = 10_000
MAX_SERIES = 1_000_000

_DATE_STEPS = {"HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "DECADE"}
_SHORT_UNITS = {
    "D": "DAY",
    "MON": "MONTH",
    "MIN": "MINUTE",
    "H": "HOUR",
    "W": "WEEK",
    "Y": "YEAR",
    "YR": "YEAR",
}
_DATES = 100_000
_VOLATILE = {
    "clock_timestamp",
    "random_normal",
    "timeofday",
    "random",
    "uuid",
    "uuidv4",
    "uuidv7",
    "gen_random_uuid",
}
_COUNTED = {"repeat", "lpad", "rpad", "list_resize", "array_resize", "bitstring"}


def bounded(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Return the tree. If a count is not written as a number, return a copy in which each such
    count has a check.
    """
    calls = [node for node in nodes_of(tree) if isinstance(node, exp.Func)]
    if not any(isinstance(node, exp.GenerateSeries) or _count(node) is not None for node in calls):
        return tree
    tree = tree.copy()
    for node in [node for node in nodes_of(tree) if isinstance(node, exp.Func)]:
        if isinstance(node, exp.GenerateSeries) and (
            dialect_of(dialect).series_are_rows or not _streams(node)
        ):
            _bound_series(node, dialect)
        elif (
            (count := _count(node)) is not None
            and _number(count) is None
            and not _is_checked(count)
        ):
            count.replace(_checked(count.copy(), count.copy(), MAX_REPEATS, dialect))
    return tree


def longest_series(tree: exp.Expr) -> float | None:
    """Return the number of rows of the longest series, None if the length of a series is
    unknown.
    """
    series = [node for node in nodes_of(tree) if isinstance(node, exp.GenerateSeries)]
    sizes = [_series(node, steps=_DATE_STEPS | {"MINUTE"}) for node in series]
    known = [size for size in sizes if size is not None]
    return max(known, default=1.0) if len(known) == len(sizes) else None


def growth(tree: exp.Expr, dialect: str) -> float | None:
    """Return by how much the calls of a query can make a value grow. Return None if there is no
    limit for one of the calls.

    Calls beside each other in one SELECT do not feed each other, so the largest counts. Nested
    calls and calls in different SELECTs may feed each other, so their sizes are multiplied.
    """
    largest: dict[int, float] = {}
    for _, select, size in _nested_sizes(tree, dialect):
        if size is None:
            return None
        largest[select] = max(size, largest.get(select, 1.0))
    return math.prod(largest.values())


def largest(tree: exp.Expr, dialect: str) -> exp.Expr | None:
    """Return the call that grows most or whose size is unknown. If the query is refused, this call
    is named as the cause. Return None if there is no call.
    """

    def size(call: tuple[exp.Func, int, float | None]) -> float:
        node, _, nested = call
        series = (
            _series(node, steps=_DATE_STEPS | {"MINUTE"})
            if isinstance(node, exp.GenerateSeries)
            else 1.0
        )
        return max(math.inf if one is None else one for one in (nested, series))

    return max(_nested_sizes(tree, dialect), key=size, default=(None,))[0]


def _nested_sizes(tree: exp.Expr, dialect: str) -> Iterator[tuple[exp.Func, int, float | None]]:
    """Yield each call, the id of the SELECT that it is in, and its growth multiplied by the growth
    of the calls around it.
    """
    todo: list[tuple[exp.Expr, int, float | None]] = [(tree, id(tree), 1.0)]
    while todo:
        node, select, size = todo.pop()
        if isinstance(node, exp.Select):
            select = id(node)
            size = 1.0
        elif isinstance(node, exp.Func):
            own = _size(node, dialect)
            size = None if size is None or own is None else size * own
            yield node, select, size
        todo.extend((child, select, size) for child in children_of(node))


def _size(node: exp.Func, dialect: str) -> float | None:
    """Return the most that this call alone can make a value grow. This is 1 for a function that
    makes nothing larger, and None if it is unknown.
    """
    if isinstance(node, exp.GenerateSeries):
        # In FROM the rows stream; as a value they are one list.
        is_rows = dialect_of(dialect).series_are_rows or _streams(node)
        return 1.0 if is_rows else _series(node, steps=_DATE_STEPS)
    if isinstance(node, exp.Format) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in ("printf", "format")
    ):
        template = node.this if isinstance(node, exp.Format) else next(iter(node.expressions), None)
        return _widths(template)
    count = _count(node)
    if count is None:
        return 1.0
    number = float(MAX_REPEATS) if _is_checked(count) else _number(count)
    return None if number is None else max(1.0, abs(number))


def _count(node: exp.Func) -> exp.Expr | None:
    """Return the argument of a call that says how often to repeat, or how long to make the result.
    Return None if the call has no such argument.
    """
    if isinstance(node, exp.Repeat):
        times = node.args.get("times")
        return times if isinstance(times, exp.Expr) else None
    if isinstance(node, exp.Pad):
        return cast(exp.Expr, node.expression)
    if (
        isinstance(node, exp.Anonymous)
        and node.name.lower() in _COUNTED
        and len(node.expressions) > 1
    ):
        second = node.expressions[1]
        return second if isinstance(second, exp.Expr) else None
    return None


def _streams(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Table | exp.From | exp.Join | exp.Lateral)


def _series(node: exp.GenerateSeries, *, steps: set[str]) -> float | None:
    step = node.args.get("step")
    start = node.args.get("start")
    end = node.args.get("end")
    if (unit := _interval_unit(step)) is not None:
        return float(_DATES) if unit in steps else None
    by = 1.0 if step is None else _number(step)
    if by is None or by == 0:
        return None
    if end is not None and _is_checked(end):
        return float(MAX_SERIES)
    low = _number(start) if start is not None else 0.0
    high = _number(end)
    return None if low is None or high is None else max(1.0, abs(high - low) / abs(by) + 1)


def _interval_unit(step: exp.Expr | None) -> str | None:
    """Return the unit of a step in time, such as "DAY". Return "" if the unit is unknown, None if
    the step is not an interval.
    """
    if isinstance(step, exp.Interval) and step.args.get("unit") is not None:
        number = step.this
        plain = not isinstance(number, exp.Literal) or re.fullmatch(
            r"[-+]?0*[1-9]\d*", number.name.strip()
        )
        return str(step.args["unit"].name).upper().rstrip("S") if plain else ""
    if isinstance(step, exp.Interval) or (
        isinstance(step, exp.Cast) and step.to.is_type("interval")
    ):
        text = step.this.name if isinstance(step.this, exp.Literal) else ""
        parts = re.fullmatch(r"\s*[-+]?0*[1-9]\d*\s+([a-zA-Z]+)\s*", text)
        return (
            _SHORT_UNITS.get(parts[1].upper().rstrip("S"), parts[1].upper().rstrip("S"))
            if parts
            else ""
        )
    if isinstance(step, exp.Literal) and step.is_string:
        return _interval_unit(exp.Interval(this=step.copy()))
    return None


def _bound_series(node: exp.GenerateSeries, dialect: str) -> None:
    step = node.args.get("step")
    start = node.args.get("start")
    end = node.args.get("end")
    by = 1.0 if step is None else _number(step)
    if (
        end is None
        or by is None
        or by == 0
        or _interval_unit(step) is not None
        or _is_checked(end)
        or (_number(start) is not None and _number(end) is not None)
    ):
        return
    # Without an interval the series is of whole numbers, so that its length can be told by taking
    # away.
    span: exp.Expr = (
        exp.Sub(this=exp.Paren(this=end.copy()), expression=exp.Paren(this=start.copy()))
        if start is not None
        else end.copy()
    )
    end.replace(
        _checked(
            end.copy(), exp.Abs(this=span), math.floor(MAX_SERIES * min(1.0, abs(by))) or 1, dialect
        )
    )


def _checked(value: exp.Expr, size: exp.Expr, most: int, dialect: str) -> exp.Case:
    message = f"{OVER} {most}"
    failing: exp.Expr = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string(message)])
    if dialect_of(dialect).errors_by_cast:
        # The value stands in the text, or else the cast would fail already when the query is
        # planned.
        text = exp.DPipe(
            this=exp.Literal.string(f"{message}: "),
            expression=exp.cast(exp.Paren(this=value.copy()), "text"),
        )
        failing = exp.cast(exp.Paren(this=text), "int")
    branch = exp.If(this=exp.GT(this=size, expression=exp.Literal.number(most)), true=failing)
    return exp.Case(ifs=[branch], default=value)


def _is_checked(node: exp.Expr) -> bool:
    """Return whether this node is a check as `bounded` writes it. The value that is compared must
    be the value that is used.
    """
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return False
    branch = node.args["ifs"][0]
    value = node.args.get("default")
    test = branch.this
    outcome = branch.args.get("true")
    if not (isinstance(test, exp.GT) and _fails(outcome) and value is not None):
        return False
    most = _number(test.expression)
    if most is None or most > MAX_SERIES or _volatile(node):
        return False
    if isinstance(test.this, exp.Abs):
        parent = node.parent
        start = parent.args.get("start") if isinstance(parent, exp.GenerateSeries) else None
        span = test.this.this
        if start is None:
            return bool(span == value)
        return bool(
            isinstance(span, exp.Sub)
            and span.left.unnest() == value.unnest()
            and span.right.unnest() == start.unnest()
        )
    return bool(most <= MAX_REPEATS and test.this == value)


def _fails(outcome: exp.Expr | None) -> bool:
    if (
        isinstance(outcome, exp.Cast)
        and outcome.to.is_type("int")
        and isinstance(text := outcome.this.unnest(), exp.DPipe)
    ):
        return (
            isinstance(text.this, exp.Literal)
            and text.this.is_string
            and text.this.name.startswith(OVER)
        )
    return isinstance(outcome, exp.Anonymous) and outcome.name.lower() == "error"


def _volatile(node: exp.Expr) -> bool:
    """Return whether the node may give another value each time it is evaluated, so that the checked
    value may differ from the used value.
    """
    names = (
        func.name if isinstance(func, exp.Anonymous) else func.sql_name()
        for func in node.find_all(exp.Func)
    )
    return any(isinstance(func, exp.Rand | exp.Uuid) for func in node.find_all(exp.Func)) or any(
        name.lower() in _VOLATILE for name in names
    )


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
    """Return the largest number in a format string, which is the largest width it asks for. Return
    None if it is unknown.
    """
    if (
        not isinstance(template, exp.Literal)
        or "*" in template.name
        or re.search(r"\{[^{}]*\{", template.name)
    ):
        return None
    return max((float(number) for number in re.findall(r"\d{1,300}", template.name)), default=1.0)
