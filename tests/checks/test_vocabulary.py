"""The words of the checks: read from words.toml, whole and without contradictions."""

from longtable.checks.vocabulary import (
    DAY_FORMS,
    DIFFERENCE,
    NAME_WORDS,
    TOTAL,
    UNITS,
    name_words,
    split_name,
)


def test_a_name_is_split_as_people_write_names() -> None:
    assert split_name("UnitPrice_USD单价") == ["Unit", "Price", "USD", "单价"]
    assert name_words("UnitPrices") == ["unit", "price"]


def test_each_unit_has_a_base_unit_of_size_one_but_speed() -> None:
    sizes: dict[float, set[float]] = {}
    for unit in UNITS.values():
        sizes.setdefault(unit.dimension, set()).add(unit.size)
    assert {dimension for dimension, known in sizes.items() if 1.0 in known} == {2.0, 3.0, 5.0}
    assert set(sizes) == {2.0, 2.5, 3.0, 5.0}


def test_the_words_of_a_time_are_units_but_name_none() -> None:
    assert NAME_WORDS["clock"] <= set(UNITS)


def test_words_of_a_difference_are_whole_words() -> None:
    assert DIFFERENCE.search("sales rose by 5")
    assert DIFFERENCE.search("同比")
    assert not DIFFERENCE.search("the roses sold")
    assert TOTAL.search("in all, 12")
    assert not TOTAL.search("累计 12")


def test_each_form_of_a_day_has_a_month_and_two_days() -> None:
    for form in DAY_FORMS:
        assert form.pattern.groups >= max(form.month, *form.days)
