"""Values of a database become plain JSON that loses nothing and obeys nothing."""

from datetime import date, datetime
from decimal import Decimal

import pytest

from longtable.tools.cells import (
    clean,
    clip,
    dumps,
    html_table,
    json_value,
    preview_cell,
    without_labels,
)


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, None),
        (True, True),
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (float("nan"), "NaN"),
        (Decimal("1.10"), 1.1),
        (Decimal("12345678901234567890"), "12345678901234567890"),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (date(2024, 2, 29), "2024-02-29"),
        (datetime(2024, 2, 29, 1, 2), "2024-02-29T01:02:00"),
        (b"\x00" * 1500, "<1,500 bytes>"),
        ({"a": [Decimal(1), None]}, {"a": [1, None]}),
    ],
)
def test_a_value_keeps_all_its_digits(value: object, json: object) -> None:
    assert json_value(value) == json


def test_what_a_terminal_would_obey_is_removed_and_words_stay() -> None:
    assert clean("\x1b[31mred\x1b[0m\x07 \u202eabc") == "red abc"
    assert clean("می‌خواهم 👩‍💻\n") == "می‌خواهم 👩‍💻\n"


def test_a_long_text_ends_with_a_mark() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcd", 4) == "abcd"
    assert preview_cell(["x" * 200], 20) == '["xxxxxxxxxxxxxxxxx…'


def test_the_labels_of_an_enum_are_left_out() -> None:
    assert without_labels("ENUM mood('sad', 'it''s ok')") == "ENUM mood"
    assert without_labels("STRUCT(m ENUM('a', 'b'))[]") == "STRUCT(m ENUM)[]"


def test_unseen_characters_of_a_name_stay_usable_in_json() -> None:
    assert dumps({"a\u200bb": 1}) == '{"a\\u200bb":1}'


def test_no_cell_is_markup() -> None:
    page = html_table(["<b>"], [["<script>"]], colours=["#fff"], below="a\nb")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a<br>b" in page
