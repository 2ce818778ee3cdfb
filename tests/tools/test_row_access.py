"""Row parameters: read once a turn, checked, and bound; never guessed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from longtable.base.errors import ConfigError, RowParameterError
from longtable.tools.row_access import (
    RowAccess,
    RowSource,
    bound_values,
    checked_parameters,
    current_access,
    fits,
    reading_as,
    rows_key,
)

FILTERS = {"orders": "region = :region"}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (None, "must be a mapping of names to values, found NoneType"),
        ([("region", "north")], "must be a mapping"),
        ({"region": ["north", "south"]}, "must be one text, number, boolean, date or time"),
        ({"region": {"a": 1}}, "found dict"),
        ({"region": b"north"}, "found bytes"),
        ({1: "north"}, "found '1'"),
        ({"my region": "north"}, "a word of letters, digits and underscores"),
        ({"region": "x" * 10_001}, "a value that no column holds"),
        ({"region": "a\x00b"}, "a value that no column holds"),
        ({"most": float("nan")}, "a value that no column holds"),
        ({"most": Decimal("Infinity")}, "a value that no column holds"),
    ],
)
def test_parameters_are_a_mapping_of_single_values(values: object, told: str) -> None:
    with pytest.raises(RowParameterError, match=told):
        checked_parameters(values)


def test_none_is_missing() -> None:
    assert checked_parameters({"region": None, "most": 3}) == {"most": 3}
    with pytest.raises(RowParameterError, match="'region' is missing"):
        bound_values([("most", "number"), ("region", "text")], {"most": 3})


def test_values_are_bound_in_the_order_of_the_marks() -> None:
    marks = [("a", "number"), ("b", "text"), ("a", "number")]
    assert bound_values(marks, {"b": "x", "a": 7, "c": 0}) == [7, "x", 7]


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("north", {"text", ""}),
        ("2024-01-31", {"text", "time", ""}),
        (7, {"number", ""}),
        (7.5, {"number", ""}),
        (Decimal("7.5"), {"number", ""}),
        (True, {"boolean", ""}),
        (date(2024, 1, 31), {"time", ""}),
        (datetime(2024, 1, 31, tzinfo=UTC), {"time", ""}),
        (UUID(int=7), {"text", ""}),
    ],
)
def test_which_values_fit_which_columns(value: object, kinds: set[str]) -> None:
    every = ("text", "number", "boolean", "time", "")
    assert {kind for kind in every if fits(value, kind)} == kinds  # type: ignore[arg-type]  # one of each


def test_the_function_is_asked_once_however_many_threads_need_it() -> None:
    asked: list[str | None] = []
    started = threading.Barrier(4)

    def read(owner: str | None) -> dict[str, object]:
        asked.append(owner)
        return {"region": "north"}

    access = RowSource(read, FILTERS).access("ann")
    assert asked == []

    def use(_: int) -> object:
        started.wait()
        return access.parameters

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(4))) == [{"region": "north"}] * 4
    assert asked == ["ann"]


def test_a_function_that_fails_refuses_and_is_not_asked_again() -> None:
    asked: list[int] = []

    def read(_: str | None) -> dict[str, object]:
        asked.append(1)
        raise KeyError("secret of the operator")

    access = RowSource(read, FILTERS).access(None)
    for _ in range(2):
        with pytest.raises(RowParameterError, match="could not be read") as caught:
            _ = access.parameters
        assert "secret" not in str(caught.value)
    assert asked == [1]
    assert access.key != RowSource(read, FILTERS).access(None).key


def test_a_source_is_a_function() -> None:
    with pytest.raises(ConfigError, match="must be a function"):
        RowSource({"ann": {}}, FILTERS)  # type: ignore[arg-type]  # wrong on purpose


def test_keys_are_of_filters_values_and_their_types() -> None:
    keys = [
        rows_key(FILTERS, {"region": "north"}),
        rows_key(FILTERS, {"region": "south"}),
        rows_key({"orders": "region <> :region"}, {"region": "north"}),
        rows_key(FILTERS, {"region": 1}),
        rows_key(FILTERS, {"region": "1"}),
        rows_key(FILTERS, {"region": True}),
        rows_key(FILTERS, {}),
    ]
    assert len({*keys}) == len(keys)
    assert rows_key(FILTERS, {"b": 1, "a": 2}) == rows_key(FILTERS, {"a": 2, "b": 1})
    assert "north" not in keys[0]


def test_an_access_holds_within_its_block_alone() -> None:
    access = RowAccess(lambda: {"region": "north"}, FILTERS)
    assert current_access() is None
    with reading_as(access):
        assert current_access() is access
        with reading_as(None):
            assert current_access() is None
        assert current_access() is access
    assert current_access() is None
