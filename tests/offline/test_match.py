"""The comparison behind the analyst's figures."""

import pytest

from evals.match import same_strict, same_tolerant

GOLD = [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("got", "ordered", "strict", "tolerant"),
    [
        ([("a", 1), ("b", 2)], False, True, True),
        ([(2.0, "b"), (1.0, "a")], False, True, True),
        ([("b", 2), ("a", 1)], True, False, True),
        ([(7, "a", 1), (8, "b", 2)], False, False, True),
        ([("a", 1), ("a", 1), ("b", 2)], False, False, True),
        ([("a", 2), ("b", 1)], False, False, False),
        ([("a",), ("b",)], False, False, False),
        ([("a", 1)], False, False, False),
        ([], False, False, False),
    ],
)
def test_rows_are_compared(got: list[tuple[object, ...]], ordered: bool, strict: bool, tolerant: bool) -> None:
    assert (same_strict(GOLD, got, ordered=ordered), same_tolerant(GOLD, got, ordered=ordered)) == (strict, tolerant)


def test_nothing_equals_nothing() -> None:
    assert same_tolerant([], [], ordered=False)


def test_a_month_may_be_written_with_its_year_where_there_is_one_year_only() -> None:
    gold = [("03", 5), ("04", 6)]
    assert same_tolerant(gold, [("2024-03", 5), ("2024-04", 6)], ordered=False)
    assert not same_tolerant(gold, [("2024-03", 5), ("2023-04", 6)], ordered=False)
    assert not same_tolerant(gold, [("2024-03", 5), ("2024-05", 6)], ordered=False)
