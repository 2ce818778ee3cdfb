"""The gate names what is wrong with a memory."""

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.compaction.gate import Candidate, Sizes, objections, pairs_valid

GOOD = Candidate(
    summary="## Facts and findings\n- x",
    sizes=Sizes(
        summary=50,
        replaced=500,
        view=300,
        view_before=800,
        budget=600,
        kept=250,
        summary_budget=480,
    ),
    margin=0.1,
)


def with_sizes(**sizes: int) -> Candidate:
    return replace(GOOD, sizes=replace(GOOD.sizes, **sizes))


def test_a_good_memory_passes() -> None:
    assert objections(GOOD) == []


@pytest.mark.parametrize(
    ("candidate", "code", "word"),
    [
        (replace(GOOD, summary="  "), "empty", "empty"),
        (with_sizes(summary=451), "too_long", "at most 450"),
        (with_sizes(view=800), "no_gain", "not shrink"),
        (with_sizes(view=601), "over_threshold", "threshold is 600"),
        (replace(GOOD, missing_pins=["only JFK"]), "pins_missing", "only JFK"),
        (replace(GOOD, unknown_citations=[900]), "unknown_citations", "900"),
        (replace(GOOD, pairs_valid=False), "broken_pairs", "without its answer"),
    ],
)
def test_each_fault_is_named(candidate: Candidate, code: str, word: str) -> None:
    found = {reason["code"]: reason["message"] for reason in objections(candidate)}
    assert word in found[code]


def test_what_stays_word_for_word_is_not_held_against_the_memory() -> None:
    assert objections(with_sizes(view=700, kept=650)) == []


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
