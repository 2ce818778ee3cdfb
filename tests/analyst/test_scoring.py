"""How the measurement of the analyst compares rows."""

import pytest

from evals.match import Row, same_tolerant

GOLD = [("a", 3), ("b", 2), ("c", 2)]


@pytest.mark.parametrize(
    ("got", "ordered", "same"),
    [
        ([("a", 3), ("b", 2), ("c", 2)], True, True),
        ([("a", 3), ("c", 2), ("b", 2)], True, True),
        ([("c", 2), ("b", 2), ("a", 3)], True, False),
        ([("c", 2), ("b", 2), ("a", 3)], False, True),
        ([("x", "a", 3), ("x", "b", 2), ("y", "b", 2), ("x", "c", 2)], True, True),
        ([("a", 3), ("b", 2)], False, False),
    ],
)
def test_order_counts_where_it_is_asked_for_and_ties_do_not(
    got: list[Row], ordered: bool, same: bool
) -> None:
    assert same_tolerant(GOLD, got, ordered=ordered) is same


def test_without_a_sorted_column_each_row_has_its_place() -> None:
    gold = [("b", 1), ("c", 3), ("a", 2)]
    assert same_tolerant(gold, gold, ordered=True)
    assert not same_tolerant(gold, gold[::-1], ordered=True)
