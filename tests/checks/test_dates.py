"""Days are read in questions, with how far the bound is from them."""

import pytest

from longtable.checks.dates import days_named


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("from 3 to 10 january", {(1, 3, 0), (1, 10, 0)}),
        ("on the 4th of july", {(7, 4, 0)}),
        ("december 24th", {(12, 24, 0)}),
        ("sept. 1 through 7", {(9, 1, 0), (9, 7, 0)}),
        ("on 2013-05-17", {(5, 17, 0)}),
        ("1月3日至10日", {(1, 3, 0), (1, 10, 0)}),
        ("before 3 may", {(5, 3, -1)}),
        ("later than the 3rd of may", {(5, 3, 1)}),
        ("before june and after 3 may", {(5, 3, 1)}),
        ("in may 2013", set()),
    ],
)
def test_a_day_is_read_as_people_write_it(text: str, days: set[tuple[int, int, int]]) -> None:
    assert {tuple(day) for day in days_named(text)} == days
