"""Rows of two results are the same whatever the order of rows and columns, and in no other way."""

import random
import time
from itertools import chain

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from longtable.evaluation.matching import Order, Rows, difference

CELLS = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.floats(-1e6, 1e6).map(lambda number: round(number, 3)),
    st.sampled_from(["a", "b", "1", ""]),
)
TABLES = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=8)
)


@given(TABLES, st.randoms(use_true_random=False))
def test_permuted_rows_and_columns_match(rows: list[list[object]], dice: random.Random) -> None:
    places = [*range(len(rows[0]))]
    dice.shuffle(places)
    got = [[row[place] for place in places] for row in rows]
    dice.shuffle(got)
    assert difference(rows, got) == ""


@given(TABLES, st.data())
def test_a_changed_cell_does_not_match(rows: list[list[object]], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(rows) - 1))
    place = data.draw(st.integers(0, len(rows[0]) - 1))
    new = data.draw(CELLS)
    assume(difference([[rows[number][place]]], [[new]]))
    got = [list(row) for row in rows]
    got[number][place] = new
    # Both hold the same cells in all unless the change swaps rows or columns into place.
    assume(_all_cells(rows) != _all_cells(got))
    assert difference(rows, got) != ""


def _all_cells(rows: list[list[object]]) -> list[str]:
    return sorted(map(repr, chain.from_iterable(rows)))


@given(TABLES, st.floats(-9e-7, 9e-7))
def test_floats_within_the_tolerance_match(rows: list[list[object]], shift: float) -> None:
    got = [[_shifted(cell, shift) for cell in row] for row in rows]
    assert difference(rows, got) == ""


def _shifted(cell: object, shift: float) -> object:
    return cell * (1 + shift) if isinstance(cell, float) else cell


@pytest.mark.parametrize(
    ("gold", "got", "said"),
    [
        ([[1]], [[1.0]], ""),
        ([[None]], [[None]], ""),
        ([[None]], [[0]], "rows"),
        ([["2024"]], [[2024]], ""),
        ([["1.10"], ["2"]], [[1.1], [2]], ""),
        ([["1.10"]], [["1.1"]], "rows"),
        ([["1.10", 1]], [["1.1", 1]], "rows"),
        ([["1.10", "2024"]], [["1.10", 2024]], ""),
        ([["007"]], [[7]], "rows"),
        ([["1e3"]], [[1000]], "rows"),
        ([["12345678901234567890"]], [["12345678901234567891"]], "rows"),
        ([["0.1000000000000000055"]], [[0.1]], ""),
        ([[1], [1], [2]], [[1], [2], [2]], "rows"),
        ([[1]], [[1], [1]], "row count"),
        ([[1]], [[1, 2]], "columns"),
        ([], [], ""),
        ([[1_000_000], [1_000_002]], [[1_000_001], [1_000_002]], "rows"),
        ([[0.30000000000000004]], [[0.3]], ""),
        ([[0.0]], [[1e-12]], ""),
        ([[1, "a"], [2, "b"]], [["b", 1], ["a", 2]], "rows"),
        ([[[1, 2]]], [[[1, 2]]], ""),
        ([[True]], [[1]], ""),
    ],
)
def test_cells_and_counts(gold: Rows, got: Rows, said: str) -> None:
    assert difference(gold, got) == said


@pytest.mark.parametrize(
    ("widths", "extra", "said"),
    [
        ((2, 2), False, ""),
        ((1, 2), False, "columns"),
        ((1, 2), True, ""),
        ((2, 1), True, "columns"),
    ],
)
def test_empty_results_match_only_with_as_many_columns(
    widths: tuple[int, int], extra: bool, said: str
) -> None:
    assert difference([], [], extra_columns=extra, widths=widths) == said


def test_numbers_that_are_close_in_a_chain_are_not_all_the_same() -> None:
    gold = [[1.0 + number * 9e-7] for number in range(20)]
    got = [*gold[:-2], [1.0], [1.0]]
    assert difference(gold, got) == "rows"


SCORES: Rows = [["a", 3], ["b", 2], ["c", 2]]


@pytest.mark.parametrize(
    ("got", "order", "said"),
    [
        ([["a", 3], ["c", 2], ["b", 2]], Order((1,)), ""),
        ([[3, "a"], [2, "c"], [2, "b"]], Order((1,)), ""),
        ([["c", 2], ["b", 2], ["a", 3]], Order((1,)), "order"),
        ([["a", 3], ["c", 2], ["b", 2]], Order((1, 0)), "order"),
        ([["a", 3], ["c", 2], ["b", 2]], Order(), "order"),
        ([["c", 2], ["b", 2], ["a", 3]], None, ""),
    ],
)
def test_order_counts_where_gold_orders_and_ties_do_not(
    got: Rows, order: Order | None, said: str
) -> None:
    assert difference(SCORES, got, order) == said


def test_further_columns_are_allowed_where_asked_for() -> None:
    got = [["x", 2, "b"], ["y", 3, "a"], ["z", 2, "c"]]
    assert difference(SCORES, got) == "columns"
    assert difference(SCORES, got, extra_columns=True) == ""
    assert difference(SCORES, [row[:2] for row in got], extra_columns=True) == "rows"


def balanced(rows: int, columns: int, dice: random.Random) -> list[list[object]]:
    """Return rows whose columns all hold as many 0 as 1, so that none is told by its values."""
    made: list[list[object]] = []
    for _ in range(columns):
        column: list[object] = [0, 1] * (rows // 2)
        dice.shuffle(column)
        made.append(column)
    return [list(row) for row in zip(*made, strict=True)]


@pytest.mark.parametrize(("rows", "columns"), [(500, 40), (10_000, 12), (4, 60), (20, 30)])
def test_columns_of_the_same_values_are_told_apart_in_time(rows: int, columns: int) -> None:
    dice = random.Random(1)
    gold = balanced(rows, columns, dice)
    places = [*range(columns)]
    dice.shuffle(places)
    got = [[row[place] for place in places] for row in gold]
    dice.shuffle(got)
    began = time.perf_counter()
    assert difference(gold, got) == ""
    swapped = [list(row) for row in got]
    for row in swapped[:2]:
        row[0] = 1 - int(str(row[0]))
    assert difference(gold, swapped) != "" or got == swapped
    assert time.perf_counter() - began < 30


def test_a_wide_result_in_the_same_order_matches_at_once() -> None:
    gold: Rows = [[row * column % 7 for column in range(2_000)] for row in range(5)]
    assert difference(gold, [list(reversed(row)) for row in gold]) == ""
    turned = [list(reversed(row)) for row in reversed(gold)]
    assert difference(gold, turned) == "too many columns alike"
