"""Figures of a text, and every value that each may stand for."""

import pytest

from longtable.memory.counting.figures import BLANK, bare_numbers, figures, mask, number_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5 orders", 1234.5),
        ("1.234,5 orders", 1234.5),
        ("3.4k orders", 3400.0),
        ("3.4 million orders", 3_400_000.0),
        ("１２３ orders", 123.0),
        ("1250 万", 12_500_000.0),
    ],
)
def test_a_figure_is_read_as_people_write_it(text: str, value: float) -> None:
    [figure] = figures(text)
    assert figure.value == pytest.approx(value)
    assert any(reading.low <= value <= reading.high for reading in figure.readings)


def test_a_rounded_figure_stands_for_what_rounds_to_it() -> None:
    [figure] = figures("3.4 seats a row")
    [reading] = [each for each in figure.readings if each.kind == "plain"]
    assert reading.low <= 3.35 <= 3.449 <= reading.high
    assert not reading.low <= 3.5 <= reading.high


@pytest.mark.parametrize(
    "text",
    ["in 2013", "see `SELECT 12`", "message 12", "https://a.b/12", "```\n12\n```"],
)
def test_digits_that_claim_nothing_are_no_figures(text: str) -> None:
    assert figures(text) == []


def test_a_mask_is_as_long_as_the_text_and_blanks_names_from_the_data() -> None:
    text = "Terminal 5A had 12 flights, see https://a.b/77"
    masked = mask(text, ["Terminal 5A"])
    assert len(masked) == len(text)
    assert BLANK in masked
    assert [figure.text for figure in figures(text, ["Terminal 5A"])] == ["12"]


@pytest.mark.parametrize(
    ("cell", "number"),
    [(12, 12.0), ("2328.60", 2328.6), ("UA", None), (None, None), ("12 of 13", None)],
)
def test_a_cell_is_a_number_also_as_text(cell: object, number: float | None) -> None:
    assert number_in(cell) == number


def test_bare_numbers_are_read_whatever_they_mean() -> None:
    assert bare_numbers("WHERE n > 250 AND m < -1.5 AND q46 = 1") == [250.0, -1.5, 1.0]
