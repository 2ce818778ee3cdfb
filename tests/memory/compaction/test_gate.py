"""The gate names what is wrong with a memory."""

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.compaction.gate import Candidate, objections, pairs_valid

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
    ("change", "code", "word"),
    [
        ({"summary": "  "}, "empty", "empty"),
        ({"summary_tokens": 451}, "too_long", "at most 450"),
        ({"view_tokens": 800}, "no_gain", "not shrink"),
        ({"view_tokens": 601}, "over_threshold", "threshold is 600"),
        ({"missing_pins": ["only JFK"]}, "pins_missing", "only JFK"),
        ({"unknown_citations": [900]}, "unknown_citations", "900"),
        ({"pairs_valid": False}, "broken_pairs", "without its answer"),
    ],
)
def test_each_fault_is_named(change: dict[str, object], code: str, word: str) -> None:
    found = {reason["code"]: reason["message"] for reason in objections(replace(GOOD, **change))}  # type: ignore[arg-type]  # a table of fields
    assert word in found[code]


def test_what_stays_word_for_word_is_not_held_against_the_memory() -> None:
    assert objections(replace(GOOD, view_tokens=700, kept_tokens=650)) == []


def call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": id_} for id_ in ids])


def answer(id_: str) -> ToolMessage:
    return ToolMessage("x", tool_call_id=id_)


@pytest.mark.parametrize(
    ("messages", "valid"),
    [
        ([HumanMessage("q"), call("1", "2"), answer("2"), answer("1"), AIMessage("a")], True),
        ([call("1", "2"), answer("1"), AIMessage("a")], False),
        ([answer("1")], False),
        ([call("1"), answer("1"), answer("1")], False),
        ([call("1")], False),
    ],
)
def test_pairs_are_valid_when_each_call_has_exactly_its_answer(
    messages: list[BaseMessage], valid: bool
) -> None:
    assert pairs_valid(messages) == valid
