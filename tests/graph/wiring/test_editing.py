"""A person edits messages of a thread by `update_state`, as in Studio: the edit holds, or is
refused.
"""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt

from longtable.base.errors import EditRefusedError
from longtable.graph import CompactionPolicy, Conversation, build_graph
from longtable.memory.messages.marks import marked, marks_of
from longtable.memory.messages.rounds import all_calls
from tests.support.models import ScriptedModel, call, script
from tests.support.threads import CONTEXT, thread

SHORT = CompactionPolicy(keep_rounds=1, min_messages=4, retire_after=None)


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is red"


@tool
def confirm(what: str) -> str:
    """Ask a person."""
    return str(
        interrupt(
            {
                "action_requests": [
                    {"name": "confirm", "args": {"what": what}, "description": what}
                ],
                "review_configs": [],
            }
        )
    )


def conversation(model: ScriptedModel, **more: Any) -> Conversation:
    graph = build_graph(model=model, tools=[look, confirm], policy=SHORT).compile(
        checkpointer=InMemorySaver(), **more
    )
    return Conversation(graph, "t", context=CONTEXT)


def update(talk: Conversation, *messages: Any) -> None:
    talk.graph.update_state(talk.config, {"messages": list(messages)})


def compact(talk: Conversation) -> None:
    event = talk.compact()
    assert event
    assert event["type"] == "context_compressed"


def paired(view: list[BaseMessage]) -> bool:
    called = [
        each["id"]
        for message in view
        if isinstance(message, AIMessage)
        for each in all_calls(message)
    ]
    return called == [message.tool_call_id for message in view if isinstance(message, ToolMessage)]


FORMS: list[Any] = [
    lambda id_: {"type": "human", "id": id_, "content": "edited"},
    lambda id_: {"role": "user", "id": id_, "content": "edited"},
    lambda id_: {
        "type": "human",
        "id": id_,
        "content": "edited",
        "additional_kwargs": {},
        "response_metadata": {},
        "name": None,
    },
    lambda id_: HumanMessage("edited", id=id_),
    lambda id_: marked(HumanMessage("edited", id=id_), turn=7, time="then"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("awaited", [False, True])
def test_an_edit_holds_whatever_marks_its_message_bears(form: Any, awaited: bool) -> None:
    talk = conversation(script("one", "two", "three"))
    talk.ask("first")
    talk.ask("second")
    before = talk.history()
    values: Any = {"messages": [form(before[0].id)]}
    if awaited:
        asyncio.run(talk.graph.aupdate_state(talk.config, values))
    else:
        talk.graph.update_state(talk.config, values)
    after = talk.history()
    assert [message.text for message in after] == ["edited", "one", "second", "two"]
    assert marks_of(after[0]) == marks_of(before[0])
    assert after[1:] == before[1:]
    assert [message.text for message in talk.view()[1:]] == ["edited", "one", "second", "two"]
    assert talk.ask("third").turn == 3


def test_an_edit_of_what_was_compacted_undoes_the_memory_that_held_it() -> None:
    talk = conversation(ScriptedModel(say=lambda _: AIMessage("yes")))
    for number in range(4):
        talk.ask(f"The colour {number} is red. " + "word " * 60)
    compact(talk)
    for number in range(4, 8):
        talk.ask(f"The colour {number} is red. " + "word " * 60)
    compact(talk)
    of_the_first, of_the_second = talk.history()[0], talk.history()[8]
    assert "colour 4 is red" in str(list(talk.view()))
    update(talk, HumanMessage("The colour 4 is blue.", id=of_the_second.id))
    assert "colour 4 is red" not in str(list(talk.view()))
    assert "colour 4 is blue" in str(list(talk.view()))
    assert len(talk.view()) < len(talk.history())  # the first memory holds
    update(talk, {"role": "user", "id": of_the_first.id, "content": "Nothing of colours."})
    assert [message.text for message in talk.view()[1:]] == [
        message.text for message in talk.history()
    ]
    talk.ask("and now?")
    assert talk.compact()
    assert "colour 0" not in str(list(talk.view()))
    assert "colour 4 is red" not in str(list(talk.view()))


def test_a_pin_ends_when_the_words_that_it_quotes_are_edited_away() -> None:
    talk = conversation(script("yes"))
    talk.ask("Please answer always in euros.")
    assert [pin.text for pin in talk.pins()] == ["Please answer always in euros."]
    question = talk.history()[0]
    update(talk, HumanMessage("Hello. Please answer always in euros.", id=question.id))
    assert [pin.text for pin in talk.pins()] == ["Please answer always in euros."]
    update(talk, HumanMessage("Please answer in dollars.", id=question.id))
    assert talk.pins() == []


def test_the_edited_result_of_a_tool_keeps_its_call() -> None:
    model = script(call("look", what="sky"), "It is red.", "blue")
    talk = conversation(model)
    talk.ask("What is the sky like?")
    result = talk.history()[2]
    update(
        talk, {"type": "tool", "id": result.id, "content": "sky is blue", "tool_call_id": "call_1"}
    )
    assert [message.text for message in talk.view()[1:]] == [
        "What is the sky like?",
        "",
        "sky is blue",
        "It is red.",
    ]
    assert paired(talk.view())
    talk.ask("Again?")
    assert "sky is blue" in str(model.sent[-1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "tool", "content": "x", "tool_call_id": "other"},
        {"type": "human", "content": "x"},
        {"type": "ai", "content": "x"},
    ],
)
def test_an_edit_that_parts_a_call_from_its_answer_is_refused(wrong: dict[str, Any]) -> None:
    talk = conversation(script(call("look", what="sky"), "It is red."))
    talk.ask("What is the sky like?")
    before = talk.history()
    with pytest.raises(EditRefusedError, match="must keep its type"):
        update(talk, {**wrong, "id": before[2].id})
    with pytest.raises(EditRefusedError, match="the ids of its calls"):
        update(talk, AIMessage("", tool_calls=[], id=before[1].id))
    update(talk, {"type": "ai", "content": "I look.", "id": before[1].id})  # what is not sent stays
    assert talk.history()[1].text == "I look."
    assert paired(talk.view())


def test_removed_messages_leave_pairs_in_the_view() -> None:
    talk = conversation(script(call("look", what="sky"), "It is red.", "yes"))
    talk.ask("What is the sky like?")
    question, asked, result, answer = talk.history()
    update(talk, RemoveMessage(id=str(asked.id)))
    assert paired(talk.view())
    update(talk, {"type": "remove", "id": result.id, "content": ""}, RemoveMessage(id="unknown"))
    assert talk.history() == [question, answer]
    assert talk.ask("and?").text == "yes"
    update(talk, RemoveMessage(id=REMOVE_ALL_MESSAGES))
    assert talk.history() == []


def test_a_removed_message_leaves_the_memory_and_the_pins_that_stand_for_it() -> None:
    talk = conversation(ScriptedModel(say=lambda _: AIMessage("yes")))
    for number in range(4):
        talk.ask(f"Please answer always in euros. {number} " + "word " * 60)
    compact(talk)
    view, pins = talk.view(), talk.pins()
    update(talk, RemoveMessage(id=str(talk.history()[0].id)))
    assert (talk.view(), talk.pins()) == (view, pins)
    assert pins


def test_a_message_that_has_retired_is_neither_edited_nor_removed() -> None:
    talk = thread(policy=CompactionPolicy(retire_after=16), store=InMemoryStore())
    for number in range(60):
        talk.ask(f"q{number} " + "word " * 40)
    before = talk.history()
    retired = talk.graph.get_state(talk.config).values["archive"]["count"]
    assert retired
    for each in (HumanMessage("edited", id=before[0].id), RemoveMessage(id=str(before[0].id))):
        with pytest.raises(EditRefusedError, match="exclude it, or fork"):
            update(talk, each)
    assert talk.history() == before
    update(talk, HumanMessage("edited", id=before[-2].id))
    assert talk.history()[-2].text == "edited"


def test_an_edit_while_a_person_is_asked_keeps_the_question() -> None:
    talk = conversation(script(call("confirm", what="go"), "done"))
    assert talk.ask("May I?").status == "approval_requested"
    question = talk.history()[0]
    update(talk, HumanMessage("Shall I?", id=question.id))
    assert talk.pending()
    assert talk.resume().status == "approval_requested"
    assert [action["args"] for action in talk.approvals()] == [{"what": "go"}]
    assert talk.resume([{"type": "approve"}]).text == "done"
    assert [message.type for message in talk.history()] == ["human", "ai", "tool", "ai"]
    assert talk.history()[0].text == "Shall I?"


def test_an_input_that_repeats_an_id_still_overwrites_nothing() -> None:
    talk = conversation(script("one", "two"))
    talk.ask("first", id="a")
    sent: Any = {"messages": [HumanMessage("overwritten", id="a"), HumanMessage("second", id="b")]}
    talk.graph.invoke(sent, talk.config, context=CONTEXT)
    assert [message.text for message in talk.history()] == ["first", "one", "second", "two"]
