"""Rows are named by their cells, and dates also in other words."""

import pytest

from longtable.checks.row_names import is_name, name_pattern, rows_by_name


def rows_named(cells: list[object], column: str, text: str) -> dict[str, set[int]]:
    """Return the names that a text holds of the rows of one column, with their rows."""
    names = rows_by_name([cells], [column], text.casefold())
    return {name: set().union(*columns.values()) for name, columns in names.items()}


@pytest.mark.parametrize(
    ("cell", "column", "text"),
    [
        ("2013-05", "month", "May"),
        ("2013-05-17", "date", "May 17"),
        ("2013-05-17", "date", "17 May"),
        (5, "month", "5月"),
        (3, "quarter", "third quarter"),
        ("2013-Q3", "period", "第3季度"),
        ("2013-11", "month", "second half"),
        ("New York City", "city", "New York City"),
        ("United Airlines", "carrier", "United"),
        ("United Airlines", "carrier", "UA"),
        ("Peru's", "land", "Peru's"),
        ("浙江省", "地区", "浙江"),
    ],
)
def test_a_row_is_named_in_other_words(cell: object, column: str, text: str) -> None:
    assert rows_named([cell], column, text)[text] == {0}


def test_a_name_that_the_text_does_not_hold_is_no_name() -> None:
    assert rows_named(["Canada", "Peru"], "land", "Peru has 87") == {"Peru": {1}}


def test_the_longest_name_comes_first_and_no_word_is_cut() -> None:
    names = rows_by_name([["York", "New York"]], ["city"], "new york and york and yorkshire")
    found = name_pattern(names).findall("New York and York and Yorkshire")
    assert next(iter(names)) == "New York"
    assert ["".join(groups) for groups in found] == ["New York", "York"]


def test_a_number_or_a_single_letter_is_no_name() -> None:
    assert [is_name(cell) for cell in ("UA", "12", "x", None, 12, "x" * 300)] == [
        True,
        *[False] * 5,
    ]
