"""Units are read in questions and names."""

import pytest

from longtable.checks.units import units_named


@pytest.mark.parametrize(
    ("text", "number", "size"),
    [
        ("how many minutes", "", 60.0),
        ("longer than 95 minutes", "95", 60.0),
        ("1,200.5 km", "1,200.5", 1_000.0),
        ("an hour", "an", 3_600.0),
        ("每小时", "每", 3_600.0),
        ("in mph", "", 1_609.344 / 3_600),
        ("in km/h", "", 1 / 3.6),
        ("file size in gb", "", 1_024.0**3),
    ],
)
def test_a_unit_is_read_with_the_number_before_it(text: str, number: str, size: float) -> None:
    [named] = units_named(text)
    assert (named.number, named.unit.size) == (number, size)


def test_a_part_of_a_word_is_no_unit() -> None:
    assert units_named("the admins of a company, at noon") == []


def test_time_and_length_measure_different_things_and_speed_is_their_quotient() -> None:
    [hour, mile, mph] = [units_named(text)[0].unit for text in ("hour", "mile", "mph")]
    assert hour.dimension != mile.dimension
    assert mile.dimension / hour.dimension == mph.dimension
    assert mile.size / hour.size == pytest.approx(mph.size)
