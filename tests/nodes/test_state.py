"""What a node works on."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime

from longtable.base.context import Context
from longtable.memory.messages.marks import marked
from longtable.nodes.state import FOOTER, Now, State, is_ahead, with_last, without_key

INFO = ExecutionInfo(checkpoint_id="c", checkpoint_ns="", task_id="x", thread_id="t", run_id=None)


def now(state: State, **settings: Any) -> Now:
    return Now.of(state, Runtime(context=Context(**settings), execution_info=INFO))


def test_a_state_is_read_once() -> None:
    question = HumanMessage("多少？", id="1")
    read = now({"messages": [question], "turn": {"number": 3}, "brief": {"limit": 9}})
    assert list(read.thread.messages) == [question]
    assert read.turn == {"number": 3}
    assert read.config == {"limit": 9}
    assert read.thread_id == "t"
    assert read.language == "zh"
    assert now({"messages": [question]}, language="en").language == "en"


def test_after_an_update_the_rest_stays() -> None:
    first = HumanMessage("How many?", id="1")
    answer = AIMessage("Three.", id="2")
    before = now({"messages": [first], "turn": {"number": 1}})
    after = before.after({"messages": [answer], "turn": {"number": 1, "status": "answered"}})
    assert list(after.thread.messages) == [first, answer]
    assert after.turn["status"] == "answered"
    assert list(before.thread.messages) == [first]
    assert after.with_turn({"number": 2}).thread.messages == after.thread.messages


def test_no_node_is_shown_what_stands_below_an_answer() -> None:
    answer = marked(AIMessage("Three.\n[CSV]", id="2"), **{FOOTER: "\n[CSV]"})
    read = now({"messages": [answer], "turn": {"number": 1, "footers": True}})
    assert [message.text for message in read.thread.messages] == ["Three."]


def test_a_voice_is_ahead_only_in_the_turn_it_answered_in() -> None:
    state: State = {"ahead": {"checker": {"turn": {"number": 2}}}}
    assert is_ahead(state, {"voice": "checker", "number": 2})
    assert not is_ahead(state, {"voice": "checker", "number": 3})
    assert not is_ahead(state, {"voice": "analyst", "number": 2})
    assert not is_ahead({}, {"voice": "checker", "number": 2})


def test_a_record_of_a_turn_is_never_changed_in_place() -> None:
    turn = without_key({"number": 1, "calls": 2}, "calls")
    assert turn == {"number": 1}
    assert with_last(turn, [AIMessage("Three.", id="2")]) == {"number": 1, "last": "2"}
    assert turn == {"number": 1}
    assert with_last(turn, []) is turn
