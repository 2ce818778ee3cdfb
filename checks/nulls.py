"""Check for conditions and counts that leave out rows without a value (NULL)."""

from collections.abc import Iterator

from sqlglot import exp

from longtable.checks.query_part import STEPS, Part
from longtable.checks.vocabulary import name_words
from longtable.tools.catalog import fold
from longtable.tools.sql.verdict import Probe


def nulls_dropped(part: Part) -> Iterator[Probe]:
    """Find conditions and counts that leave out rows without a value (NULL)."""
    if not part.question.says("known"):
        yield from _dropped_by_conditions(part)
    if part.question.text:
        yield from _dropped_by_counts(part)


def _dropped_by_conditions(part: Part) -> Iterator[Probe]:
    for condition in part.conditions:
        if condition.find(exp.Is, exp.Coalesce, exp.Exists):
            continue
        if any(node.expression != exp.Literal.string("") for node in _negations(part, condition)):
            yield Probe(
                "nulls_dropped",
                f"{part.short(condition)} leaves out {{0:,}} rows without a value",
                part.count(f"({part.text(condition)}) IS NULL", without=condition),
            )


def _negations(part: Part, condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that a reader expects to include rows without a value. These
    are negations such as "not in Berlin". If the question says "no" or "not", comparisons by size
    are such parts too.
    """
    kinds = (exp.NEQ, exp.Not, exp.Like, *(STEPS if part.question.says("negated") else ()))
    for node in condition.find_all(*kinds):
        if not isinstance(node, exp.Like) or node.args.get("negate"):
            yield node


def _dropped_by_counts(part: Part) -> Iterator[Probe]:
    for node in part.aggregates:
        if not isinstance(node, exp.Count) or not part.may_be_null(node.this):
            continue
        is_named = any(map(part.question.names, name_words(node.this.name)))
        if not is_named and not _is_of_a_share(node):
            yield Probe(
                "nulls_dropped",
                f"{part.short(node)} leaves out {{0:,}} rows without a value",
                part.count(f"{part.text(node.this)} IS NULL"),
            )


def _is_of_a_share(node: exp.Count) -> bool:
    """Return whether a count is part of a quotient that also counts all rows or reads the same
    column elsewhere.
    """
    quotient = node.find_ancestor(exp.Div)
    if quotient is None:
        return False
    if any(isinstance(each.this, exp.Star) for each in quotient.find_all(exp.Count)):
        return True
    name = fold(node.this.name)
    others = [each for each in quotient.find_all(exp.Column) if each is not node.this]
    return any(fold(each.name) == name for each in others)
