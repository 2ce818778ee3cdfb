"""Numbers that figures are looked up in."""

import math

from longtable.checks.result_table import Evidence, as_shares, count_between, quotient, quotients


def test_two_places_give_their_difference_their_sum_and_their_ratios() -> None:
    evidence = Evidence([1.0])
    evidence.compare([6.0, 5.0], [3.0, 0.0])
    evidence.sort()
    assert evidence.numbers == [1.0, 3.0, 5.0, 9.0]
    assert evidence.ratios == [0.0, 0.5, 2.0]


def test_what_is_no_number_is_left_out_and_each_number_is_there_once() -> None:
    evidence = Evidence([2.0, math.nan, 1.0, math.inf, 2.0]).sort()
    assert evidence.numbers == [1.0, 2.0]


def test_a_division_by_zero_gives_no_number() -> None:
    assert math.isnan(quotient(1.0, 0.0))
    assert quotients(4.0, 2.0) == [2.0, 0.5]


def test_a_percentage_is_of_a_share_or_of_a_number() -> None:
    assert as_shares([34.0]) == [34.0, 0.34]


def test_bounds_may_come_in_either_order_and_count_with_them() -> None:
    numbers = [1.0, 2.0, 3.0]
    assert count_between(numbers, 3.0, 2.0) == 2
    assert count_between(numbers, -1.0, 0.0) == 0
