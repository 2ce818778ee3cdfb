"""Where a turn goes next."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from longtable.nodes.route import (
    after_estimate,
    after_ingest,
    after_respond,
    after_run_tools,
    after_settle,
    unanswered,
)
from longtable.nodes.state import State

CALLS = AIMessage(
    "",
    tool_calls=[
        {"name": "run_sql", "args": {}, "id": "a"},
        {"name": "run_sql", "args": {}, "id": "b"},
    ],
)
FIRST_ANSWER = ToolMessage("1", tool_call_id="a")
SECOND_ANSWER = ToolMessage("2", tool_call_id="b")


def state(*messages: Any, **turn: Any) -> State:
    return {"messages": [HumanMessage("How many?"), *messages], "turn": turn}  # type: ignore[typeddict-item]  # any record


def test_calls_without_an_answer_are_run_in_order() -> None:
    assert [call["id"] for call in unanswered([CALLS])] == ["a", "b"]
    assert [call["id"] for call in unanswered([CALLS, FIRST_ANSWER])] == ["b"]
    assert unanswered([CALLS, FIRST_ANSWER, SECOND_ANSWER]) == []
    assert unanswered([CALLS, HumanMessage("Never mind")]) == []


@pytest.mark.parametrize(
    ("status", "step"),
    [("answered", "__end__"), ("refused", "settle"), ("nobody", "settle"), ("running", "respond")],
)
def test_after_ingest(status: str, step: str) -> None:
    assert after_ingest(state(status=status)) == step


@pytest.mark.parametrize(
    ("status", "due", "step"),
    [
        ("running", False, "respond"),
        ("running", True, "compact"),
        ("compacting", True, "settle"),
        ("call_budget", True, "settle"),
    ],
)
def test_after_estimate(status: str, due: bool, step: str) -> None:
    counted: Any = {**state(status=status), "usage": {"due": due}}
    assert after_estimate(counted) == step


@pytest.mark.parametrize(
    ("status", "step"),
    [
        ("overflow", "estimate"),
        ("again", "estimate"),
        ("failed", "settle"),
        ("voice_gone", "settle"),
        ("running", "run_tools"),
    ],
)
def test_after_respond(status: str, step: str) -> None:
    assert after_respond(state(CALLS, status=status)) == step


def test_an_answer_without_calls_ends_the_turn() -> None:
    assert after_respond(state(AIMessage("Three."), status="running")) == "settle"


def test_calls_that_wait_for_a_person_go_to_approve() -> None:
    waiting = state(CALLS, status="running", approval={"asked": []})
    assert after_run_tools(waiting) == "approve"
    decided = state(CALLS, status="running", approval={"asked": [], "decided": []})
    assert after_run_tools(decided) == "run_tools"


def test_the_model_is_asked_again_once_all_calls_have_an_answer() -> None:
    answered = state(CALLS, FIRST_ANSWER, SECOND_ANSWER, status="running")
    assert after_run_tools(answered) == "respond"


def test_after_settle() -> None:
    assert after_settle(state(status="answered")) == "__end__"
    assert after_settle(state(status="answered", prepare=True)) == "prepare"
    assert after_settle(state(status="running", voice="checker")) == "respond"
