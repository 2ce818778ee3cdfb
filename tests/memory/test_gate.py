"""The gate names what is wrong with a memory."""

from dataclasses import replace

import pytest

from longtable.memory.gate import Candidate, objections

GOOD = Candidate(
    summary="## Facts and findings\n- x",
    summary_tokens=50,
    replaced_tokens=500,
    view_tokens=300,
    view_before=800,
    budget=600,
    kept_tokens=250,
    margin=0.1,
    summary_budget=480,
)


def test_a_good_memory_passes() -> None:
    assert objections(GOOD) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"summary": "  "}, "empty"),
        ({"summary_tokens": 451}, "at most 450"),
        ({"view_tokens": 800}, "not shrink"),
        ({"view_tokens": 601}, "threshold is 600"),
    ],
)
def test_each_fault_is_named(change: dict[str, object], word: str) -> None:
    assert word in " ".join(objections(replace(GOOD, **change)))  # type: ignore[arg-type]  # a table of fields


def test_what_stays_word_for_word_is_not_held_against_the_memory() -> None:
    assert objections(replace(GOOD, view_tokens=700, kept_tokens=650)) == []
