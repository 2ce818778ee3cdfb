"""What a message's mark says, whatever is broken in it."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.messages.marks import (
    RECALLED,
    STAMP,
    is_copy,
    is_recalled,
    kind_of,
    mark_of,
    marked,
    marks_of,
    merged,
    speaker_of,
    turn_number,
    unmarked,
)


def test_a_message_without_a_mark_is_normal_and_of_no_turn() -> None:
    message = HumanMessage("hi")
    assert marks_of(message) == {}
    assert kind_of(message) == "normal"
    assert turn_number(message) == 0


def test_a_broken_mark_is_read_as_none() -> None:
    for broken in ("text", 3, ["turn"], None):
        message = HumanMessage("hi", additional_kwargs={STAMP: broken})
        assert marks_of(message) == {}
        assert mark_of(message, "turn") is None
    assert turn_number(HumanMessage("hi", additional_kwargs={STAMP: {"turn": "three"}})) == 0


def test_a_marked_message_says_its_turn_and_kind_and_the_first_one_stays_as_it_was() -> None:
    plain = HumanMessage("hi", id="1")
    message = marked(plain, turn=3, kind=RECALLED)
    assert (turn_number(message), kind_of(message)) == (3, RECALLED)
    assert is_recalled(message)
    assert marks_of(plain) == {}


def test_what_a_caller_hands_in_says_nothing_of_marks() -> None:
    message = HumanMessage("hi", additional_kwargs={STAMP: {"turn": 3}, "name": "Ada"})
    assert unmarked(message).additional_kwargs == {"name": "Ada"}


def test_a_speaker_has_a_name_and_a_tool_is_none() -> None:
    named: list[BaseMessage] = [
        HumanMessage("hi", name="Ada  Byron"),
        AIMessage("hi", additional_kwargs={"name": "Ada Byron"}),
    ]
    assert [speaker_of(message) for message in named] == ["Ada Byron"] * 2
    assert speaker_of(ToolMessage("hi", tool_call_id="1", name="run_sql")) == ""


def test_a_copy_carries_the_turn_and_the_time_of_the_accepted_message() -> None:
    known = marked(HumanMessage("hi"), turn=3, time="2024-01-01")
    assert is_copy(marked(HumanMessage("ho"), turn=3, time="2024-01-01"), known)
    assert not is_copy(marked(HumanMessage("hi"), turn=3, time="2024-01-02"), known)


def test_an_update_loses_no_field_that_it_does_not_name() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    answer = AIMessage("old", id="1", usage_metadata=usage, response_metadata={"model": "m"})
    known = marked(answer, turn=3, time="then")
    update = merged(known, marked(AIMessage("new", id="1"), turn=4))
    assert update.content == "new"
    assert update.usage_metadata == usage
    assert update.response_metadata == {"model": "m"}
    assert marks_of(update) == {"turn": 4, "time": "then"}
