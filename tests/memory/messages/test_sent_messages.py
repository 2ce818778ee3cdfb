"""What a provider is sent of stored messages: names it takes, a note for refused ones."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from longtable.memory.messages.marks import RECALLED, marked
from longtable.memory.messages.sent_messages import (
    BLANK,
    REFUSED_NOTE,
    with_notes,
    with_sent_name,
    without_copies,
)


@pytest.mark.parametrize(
    ("name", "sent", "text"),
    [
        ("ada_1", "ada_1", "hi"),
        ("Ada Byron", "Ada_Byron", "Ada Byron: hi"),
        ("José", "Jose", "José: hi"),
        ("小明", None, "小明: hi"),
    ],
)
def test_a_name_that_providers_refuse_begins_the_text(
    name: str, sent: str | None, text: str
) -> None:
    message = with_sent_name(HumanMessage("hi", name=name))
    assert (message.name, message.content) == (sent, text)


def test_an_answer_that_only_calls_tools_gets_no_text() -> None:
    call = {"name": "run_sql", "args": {}, "id": "1"}
    assert with_sent_name(AIMessage("", name="Ada Byron", tool_calls=[call])).content == ""


def test_a_run_of_refused_messages_has_one_note_and_other_excluded_ones_have_none() -> None:
    messages = [HumanMessage(f"question {number}", id=str(number)) for number in range(5)]
    shown = with_notes(messages, excluded={"1", "2", "4"}, refused={"1", "2"})
    assert [message.content for message in shown] == [
        "question 0",
        REFUSED_NOTE["en"],
        "question 3",
    ]
    assert [message.id for message in with_notes(messages, {"4"}, set())] == ["0", "1", "2", "3"]


def recall(text: str) -> ToolMessage:
    return marked(ToolMessage(text, tool_call_id="1"), turn=2, kind=RECALLED)


def test_recalled_words_go_with_the_message_that_was_excluded_since() -> None:
    copies = [{"id": "1", "text": "secret"}, {"id": "2", "text": "kept"}]
    message = without_copies(recall(json.dumps({"messages": copies})), {"1"})
    answer = json.loads(message.text)
    assert [copy["text"] for copy in answer["messages"]] == [BLANK, "kept"]


def test_a_recalled_answer_of_another_form_is_blank() -> None:
    assert without_copies(recall("secret"), {"1"}).content == BLANK
