"""Calls and answers stay together, and nothing is changed in the transcript."""

from collections import Counter

from hypothesis import given
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.messages.marks import STEERED, marked
from longtable.memory.messages.rounds import (
    INTERRUPTED,
    MALFORMED,
    all_calls,
    pair_calls,
    split_rounds,
)
from longtable.memory.summary.code_summary import fallback_summary
from tests.support.compacting import Talk, call_config, sent
from tests.support.histories import histories, talk


def assert_paired(messages: list[BaseMessage]) -> None:
    """Each call has exactly one answer right behind its message, each answer its call, no assistant
    message is empty.
    """
    i = 0
    while i < len(messages):
        message = messages[i]
        assert not isinstance(message, ToolMessage), "an answer without its call"
        i += 1
        if isinstance(message, AIMessage):
            calls = [call["id"] for call in message.tool_calls]
            assert not message.invalid_tool_calls
            assert calls or message.content
            answers = [
                m.tool_call_id for m in messages[i : i + len(calls)] if isinstance(m, ToolMessage)
            ]
            assert answers == calls
            i += len(calls)


@given(histories())
def test_every_history_is_paired_and_left_as_it_was(history: list[BaseMessage]) -> None:
    before = [message.model_dump_json() for message in history]
    paired = pair_calls(history)
    assert_paired(paired)
    assert [message.model_dump_json() for message in history] == before
    assert [m.id for m in paired if m.type == "human"] == [
        m.id for m in history if m.type == "human"
    ]


@given(histories())
def test_rounds_are_a_partition_and_begin_with_a_user_message(history: list[BaseMessage]) -> None:
    rounds = split_rounds(history)
    assert [message for round_ in rounds for message in round_] == history
    assert all(
        round_[0].type == "human" and Counter(m.type for m in round_)["human"] == 1
        for round_ in rounds
    )


def test_an_interrupted_call_is_answered_and_its_neighbour_keeps_its_result() -> None:
    both = AIMessage(
        "",
        tool_calls=[{"name": "f", "args": {}, "id": "1"}, {"name": "g", "args": {}, "id": "2"}],
        id="a",
    )
    paired = pair_calls(
        [HumanMessage("q"), both, ToolMessage("got it", tool_call_id="2"), HumanMessage("next")]
    )
    assert [m.text for m in paired] == ["q", "", INTERRUPTED, "got it", "next"]


def test_repeated_call_ids_keep_each_answer_with_its_own_call() -> None:
    def step(n: int) -> list[BaseMessage]:
        return [
            AIMessage("", tool_calls=[{"name": "f", "args": {"n": n}, "id": "call_0"}], id=f"a{n}"),
            ToolMessage(str(n), tool_call_id="call_0"),
        ]

    paired = pair_calls([HumanMessage("q"), *step(1), *step(2)])
    assert [m.text for m in paired] == ["q", "", "1", "", "2"]


def test_malformed_arguments_are_shown_as_text_in_a_valid_call() -> None:
    bad = AIMessage(
        "",
        invalid_tool_calls=[
            {
                "name": "run_sql",
                "args": '{"sql": ',
                "id": "1",
                "error": None,
                "type": "invalid_tool_call",
            }
        ],
    )
    paired = pair_calls(
        [HumanMessage("q"), bad, ToolMessage("not JSON", tool_call_id="1", status="error")]
    )
    assert isinstance(paired[1], AIMessage)
    assert [call["args"] for call in paired[1].tool_calls] == [{MALFORMED: '{"sql": '}]
    assert len(all_calls(bad)) == 1


def test_orphans_and_second_answers_are_left_out() -> None:
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}], id="a")
    paired = pair_calls(
        [
            ToolMessage("orphan", tool_call_id="9"),
            HumanMessage("q"),
            call,
            ToolMessage("one", tool_call_id="1"),
            ToolMessage("two", tool_call_id="1"),
        ]
    )
    assert [m.text for m in paired] == ["q", "", "one"]


def test_a_history_without_a_user_message_is_one_round() -> None:
    assert split_rounds([AIMessage("hello")]) == [[AIMessage("hello")]]
    assert split_rounds([]) == []


def test_what_joined_a_turn_stays_with_the_question_it_joined() -> None:
    """Neither a fold in mid-turn nor a view that is too small parts them: the results go first, the
    question last.
    """
    said = [
        HumanMessage("Compare JFK with LGA.", id="q"),
        marked(HumanMessage("In minutes.", id="s"), kind=STEERED),
    ]
    steps = [
        message
        for n in range(3)
        for message in (
            AIMessage("", tool_calls=[{"name": "run_sql", "args": {}, "id": f"c{n}"}], id=f"c{n}"),
            ToolMessage("12 " * 400, tool_call_id=f"c{n}", id=f"t{n}"),
        )
    ]
    turn = [marked(message, turn=9) for message in [said[0], *steps[:4], said[1], *steps[4:]]]
    assert split_rounds([*talk(4), *turn])[-1] == turn
    assert split_rounds([*talk(4), *turn[5:]])[-1] == turn[5:]
    for limits in (
        call_config(1_500, min_messages=0),
        call_config(600, min_messages=0),
        call_config(600, strategy="window", keep_messages=1),
    ):
        talking = Talk(limits)
        for message in [*talk(4), *turn]:
            talking.add(message)
        view = talking.call().view
        assert [message.id for message in view.messages if message.id in {"q", "s"}] == ["q", "s"]
        assert sent(view.messages, limits) <= limits.threshold_tokens
    finding = fallback_summary("", list(enumerate(turn, 1)), language="en", budget=500, count=len)
    assert "Asked: Compare JFK with LGA. In minutes." in finding
