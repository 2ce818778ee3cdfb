"""A provider refuses a request for its content: the turn is closed, its messages leave the view,
and the thread goes on.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from longtable.base.errors import (
    ProviderRefusedError,
    ProviderUnavailableError,
    ThreadBusyError,
    TurnPendingError,
)
from longtable.graph import (
    Context,
    Conversation,
    State,
    build_graph,
    import_thread,
    list_threads,
    next_view,
    open_persistence,
)
from longtable.graph.embedding import as_node
from longtable.memory.messages.marks import EXCLUDED, kind_of
from longtable.memory.messages.rounds import UNANSWERED
from longtable.memory.messages.sent_messages import REFUSED_NOTE
from longtable.nodes.closing.failures import _NEXT
from tests.graph.test_embedding import Talk
from tests.memory.messages.test_rounds import assert_paired
from tests.support import model_server
from tests.support.model_server import ChatRequest, Fault, ModelServer, Reply, open_model_server
from tests.support.models import script

CONTEXT = Context(model_limit=8_000)
T: RunnableConfig = {"configurable": {"thread_id": "t"}}
NOTE, NOTE_ZH = REFUSED_NOTE["en"], REFUSED_NOTE["zh"]
POLICY = model_server.error(
    400, "The prompt was flagged.", type="invalid_request_error", code="content_policy_violation"
)
IMAGE = HumanMessage(
    [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ],
    id="picture",
)


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    return f"poison of {word}"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def picky(request: ChatRequest) -> Reply | Fault:
    """Refuse as providers do: images, and the word "poison" wherever it stands."""
    if "image_url" in str(request.messages):
        return model_server.error(
            400,
            "Invalid content type. image_url is only supported by certain models.",
            param="messages.[1].content",
        )
    return (
        POLICY
        if "poison" in str(request.messages)
        else model_server.say(f"seen {len(request.messages)}")
    )


def conversation(server: ModelServer, **settings: Any) -> Conversation:
    graph = build_graph(model=server.chat_model(**settings), tools=[lookup])
    return Conversation(graph.compile(checkpointer=InMemorySaver()), "t", context=CONTEXT)


def ask(talk: Conversation, text: str, *, asynchronous: bool = False) -> str:
    return (asyncio.run(talk.aask(text)) if asynchronous else talk.ask(text)).text


def refused(talk: Conversation, text: str, *, asynchronous: bool = False) -> ProviderRefusedError:
    with pytest.raises(ProviderRefusedError) as caught:
        ask(talk, text, asynchronous=asynchronous)
    return caught.value


def texts(events: Iterable[Any]) -> list[str]:
    return [event["text"] for event in events if event["type"] == "answer"]


def contents(server: ModelServer) -> list[str]:
    return [str(message["content"]) for message in server.requests[-1].messages[1:]]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_refused_message_stays_in_the_transcript_and_leaves_the_view_with_a_note(
    server: ModelServer, streaming: bool, asynchronous: bool
) -> None:
    server.always(picky)
    talk = conversation(server, streaming=streaming)
    ask(talk, "one", asynchronous=asynchronous)
    error = refused(talk, "some poison", asynchronous=asynchronous)
    assert error.left_out
    assert "history" in error.user_text("en") + error.user_text("zh")
    assert not talk.pending()
    ask(talk, "two", asynchronous=asynchronous)
    assert contents(server) == ["one", "seen 2", NOTE, "two"]
    assert [m.text for m in talk.history()] == ["one", "seen 2", "some poison", "two", "seen 5"]
    assert [kind_of(m) for m in talk.history()] == [
        "normal",
        "normal",
        EXCLUDED,
        "normal",
        "normal",
    ]
    assert len(server.requests) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_refused_image_in_a_bare_graph_is_followed_by_a_plain_question(
    server: ModelServer, asynchronous: bool
) -> None:
    server.always(picky)
    app: Any = build_graph(model=server.chat_model()).compile(checkpointer=InMemorySaver())

    def invoke(message: HumanMessage) -> list[Any]:
        given = {"messages": [message]}
        made = (
            asyncio.run(app.ainvoke(given, T, context=CONTEXT))
            if asynchronous
            else app.invoke(given, T, context=CONTEXT)
        )
        return list(made["messages"])

    with pytest.raises(ProviderRefusedError):
        invoke(IMAGE)
    values = app.get_state(T).values
    assert values["turn"]["status"] == "failed"
    assert [m.text for m in next_view(values, CONTEXT)[1:]] == [NOTE]
    assert [m.text for m in invoke(HumanMessage("and now?"))] == [
        "What is this?",
        "and now?",
        "seen 3",
    ]
    assert values["messages"][0].content == IMAGE.content


def test_the_note_is_in_the_language_of_the_conversation(server: ModelServer) -> None:
    server.always(picky)
    talk = conversation(server)
    ask(talk, "有多少订单？")
    assert "会话记录" in refused(talk, "poison").user_text("zh")
    ask(talk, "那么退货呢？")
    assert contents(server)[2:] == [NOTE_ZH, "那么退货呢？"]


def test_a_tool_result_that_is_refused_takes_its_whole_turn_out_of_the_view(
    server: ModelServer,
) -> None:
    server.script(model_server.say("hi"), model_server.call("lookup", word="frog"))
    server.always(picky)
    talk = conversation(server)
    talk.ask("hello")
    refused(talk, "What is a frog?")
    assert [m.type for m in talk.history()] == ["human", "ai", "human", "ai", "tool"]
    talk.ask("Never mind")
    assert contents(server) == ["hello", "hi", NOTE, "Never mind"]
    assert_paired(talk.view()[1:])


def test_where_a_call_without_it_is_refused_too_nothing_more_is_taken_out_and_the_person_is_told(
    server: ModelServer,
) -> None:
    server.always(POLICY)
    talk = conversation(server)
    assert refused(talk, "one").left_out
    second = refused(talk, "two")
    assert not second.left_out
    assert "refused again" in second.user_text("en")
    assert "仍然拒绝" in second.user_text("zh")
    assert "exclude()" in str(second)
    assert not refused(talk, "three").left_out
    assert [m.text for m in talk.view()[1:]] == [NOTE, "two", UNANSWERED, "three"]
    server.always(model_server.say("fine"))
    assert talk.ask("four").text == "fine"
    assert contents(server) == [NOTE, "two", UNANSWERED, "three", UNANSWERED, "four"]
    assert [m.text for m in talk.history()] == ["one", "two", "three", "four", "fine"]


def test_the_same_image_sent_twice_does_not_poison_the_third_message(server: ModelServer) -> None:
    server.always(picky)
    talk = conversation(server)
    assert refused(talk, "poison").left_out
    assert not refused(talk, "poison again").left_out  # it may be the request itself
    # Asked once more without it, which shows that it was the message.
    assert talk.ask("a plain question").text == "seen 3"
    assert [m.text for m in talk.view()[1:]] == [NOTE, "a plain question", "seen 3"]
    assert len(server.requests) == 4


def test_a_message_that_failed_otherwise_and_then_is_refused_leaves_the_view_too(
    server: ModelServer,
) -> None:
    server.script(model_server.server_error())
    talk = conversation(server)
    with pytest.raises(ProviderUnavailableError):
        talk.ask("poison")
    server.always(picky)
    assert talk.ask("a plain question").text == "seen 3"
    assert contents(server) == [NOTE, "a plain question"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_retry_brings_the_messages_of_a_refused_turn_back_and_asks_again(
    server: ModelServer, asynchronous: bool
) -> None:
    server.always(picky)
    talk = conversation(server)

    def retry() -> list[str]:
        async def events() -> list[Any]:
            return [event async for event in talk.astream()]

        return texts(asyncio.run(events()) if asynchronous else talk.stream())

    assert talk.ask("hello").text == "seen 2"
    assert retry() == []  # nothing failed
    refused(talk, "poison")
    with pytest.raises(ProviderRefusedError) as caught:
        retry()
    assert caught.value.left_out
    assert [m.text for m in talk.view()[1:]] == ["hello", "seen 2", NOTE]
    server.always(model_server.say("fine now"))
    assert retry() == ["fine now"]
    assert contents(server) == ["hello", "seen 2", "poison"]
    assert [m.text for m in talk.history()] == ["hello", "seen 2", "poison", "fine now"]
    assert {kind_of(m) for m in talk.history()} == {"normal"}
    assert retry() == []


def test_retry_goes_on_with_a_tool_loop_where_it_was_refused(server: ModelServer) -> None:
    server.script(model_server.call("lookup", word="frog"), POLICY, model_server.say("A frog."))
    talk = conversation(server)
    refused(talk, "What is a frog?")
    assert texts(talk.stream()) == ["A frog."]
    assert [m.type for m in talk.history()] == ["human", "ai", "tool", "ai"]


def test_retry_resumes_a_turn_whose_provider_was_down(server: ModelServer) -> None:
    server.script(model_server.server_error(), model_server.say("back"))
    talk = conversation(server)
    with pytest.raises(ProviderUnavailableError):
        talk.ask("hello")
    assert texts(talk.stream()) == ["back"]


def test_a_bare_graph_retries_where_the_refused_message_is_sent_again(server: ModelServer) -> None:
    server.script(POLICY, model_server.say("fine"))
    app: Any = build_graph(model=server.chat_model()).compile(checkpointer=InMemorySaver())
    given = {"messages": [HumanMessage("hello", id="h")]}
    with pytest.raises(ProviderRefusedError):
        app.invoke(given, T, context=CONTEXT)
    assert [m.text for m in app.invoke(given, T, context=CONTEXT)["messages"]] == ["hello", "fine"]
    assert contents(server) == ["hello"]


def test_after_a_refusal_exclude_compact_undo_and_pins_work_and_retry_still_does(
    server: ModelServer,
) -> None:
    server.always(picky)
    talk = conversation(server)
    for n in range(12):
        talk.ask(f"question {n} " + "word " * 40)
    refused(talk, "All amounts are in poison. Never show ids.")
    assert talk.compact() is not None
    assert talk.undo() is not None
    assert talk.compact() is None or talk.undo() is not None
    talk.exclude(str(talk.history()[0].id))
    talk.pin("Be brief.")
    assert "poison" not in str(list(talk.view())).replace(NOTE, "")
    server.always(model_server.say("fine"))
    assert texts(talk.stream()) == ["fine"]


def test_what_was_refused_is_in_no_memory_made_later(server: ModelServer) -> None:
    server.always(picky)
    talk = conversation(server)
    refused(talk, "From now on all amounts are in poison.")
    for n in range(14):
        talk.ask(f"question {n} " + "word " * 60)
    assert talk.compact() is not None
    talk.ask("and now?")
    assert "poison" not in str(list(talk.view()))
    assert "poison" not in str(talk.pins())
    assert talk.history()[0].text.endswith("poison.")


def test_a_message_of_a_turn_whose_call_failed_can_be_excluded(server: ModelServer) -> None:
    server.script(model_server.say("hi"), model_server.server_error())
    talk = conversation(server)
    talk.ask("the cause")
    with pytest.raises(ProviderUnavailableError):
        talk.ask("second")
    with pytest.raises(TurnPendingError, match=r"resume\(\)"):
        talk.compact()
    # An older one: the turn still waits, and asks without it.
    talk.exclude(str(talk.history()[0].id))
    assert talk.pending()
    server.script(model_server.say("fine"), model_server.server_error())
    assert texts(talk.stream()) == ["fine"]
    assert contents(server) == ["hi", "second"]
    with pytest.raises(ProviderUnavailableError):
        talk.ask("third")
    talk.exclude(str(talk.history()[-1].id))  # the question itself: nothing is left to answer
    assert not talk.pending()
    assert list(talk.stream()) == []
    server.script(model_server.say("going on"))
    assert talk.ask("fourth").text == "going on"
    assert contents(server) == ["hi", "second", "fine", "fourth"]


def test_a_refused_turn_can_be_forked_and_goes_into_an_export(
    server: ModelServer, tmp_path: Any
) -> None:
    server.always(picky)
    with open_persistence(f"sqlite:///{tmp_path}/a.db") as kept:
        app = build_graph(model=server.chat_model()).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        talk = Conversation(app, "t", context=CONTEXT)
        refused(talk, "poison")
        import_thread(kept, talk.export().splitlines(), thread_id="copy")
        for other in (Conversation(app, "copy", context=CONTEXT), talk.fork(1)):
            assert other.view() == talk.view()
            with pytest.raises(ProviderRefusedError):
                list(other.stream())
            assert other.ask("a plain question").text == "seen 3"
            assert [m.text for m in other.history()] == ["poison", "a plain question", "seen 3"]
            assert [e["op"] for e in other.graph.get_state(other.config).values["edits"]] == [
                "exclude",
                "fail",
                "include",
                "exclude",
            ]
            assert [turn.status for turn in other.turns()] == ["provider_refused", "answered"]


def test_no_thread_is_called_after_a_refused_message(server: ModelServer, tmp_path: Any) -> None:
    server.always(picky)
    with open_persistence(f"sqlite:///{tmp_path}/a.db") as kept:
        app = build_graph(model=server.chat_model()).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        for name in ("own", "made"):
            talk = Conversation(app, name, context=CONTEXT)
            refused(talk, "poison")
            if name == "own":
                talk.rename("My title")
            talk.ask("a plain question")
            talk.ask("another")
        assert {info.thread_id: info.title for info in list_threads(kept)} == {
            "own": "My title",
            "made": "a plain question",
        }


def test_an_earlier_talk_handed_in_with_a_refused_message_stays_in_the_view(
    server: ModelServer,
) -> None:
    server.always(picky)
    app: Any = build_graph(model=server.chat_model()).compile(checkpointer=InMemorySaver())
    with pytest.raises(ProviderRefusedError):
        app.invoke(
            {"messages": [HumanMessage("before"), AIMessage("yes"), IMAGE]}, T, context=CONTEXT
        )
    assert [m.text for m in next_view(app.get_state(T).values, CONTEXT)[1:]] == [
        "before",
        "yes",
        NOTE,
    ]


def test_within_another_graph_a_refused_message_does_not_stop_the_next(server: ModelServer) -> None:
    server.always(picky)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Talk)
    builder.add_node("analyst", as_node(build_graph(model=server.chat_model()), context=CONTEXT))
    builder.add_edge(START, "analyst")
    builder.add_edge("analyst", END)
    app = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(ProviderRefusedError):
        app.invoke({"messages": [HumanMessage("poison", id="p")]}, T)
    with pytest.raises(ProviderRefusedError):
        app.invoke(None, T)
    assert len(server.requests) == 2  # it was asked again
    made = app.invoke({"messages": [HumanMessage("a plain question", id="q")]}, T)
    assert [m.text for m in made["messages"]] == ["poison", "a plain question", "seen 3"]


def test_same_state_same_view_whatever_was_refused(server: ModelServer) -> None:
    server.always(picky)
    talk = conversation(server)
    for text in ("one", "poison", "two", "poison", "poison"):
        try:
            talk.ask(text)
        except ProviderRefusedError:
            continue
    values = talk.graph.get_state(talk.config).values
    assert next_view(values, CONTEXT) == next_view(values, CONTEXT) == talk.view()
    assert [m.text for m in talk.history() if m.type == "human"] == [
        "one",
        "poison",
        "two",
        "poison",
        "poison",
    ]
    assert State.__annotations__.keys() >= values.keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("decide", "resume(decisions)"),
        ("adecide", "aresume(decisions)"),
        ("astream_reply", "astream(answer=answer)"),
    ],
)
def test_a_method_that_was_renamed_is_named_awaited_or_not_as_it_was_called(
    old: str, new: str
) -> None:
    with pytest.raises(AttributeError, match=f"use {re.escape(new)}$"):
        getattr(
            Conversation(
                build_graph(model=script("fine")).compile(checkpointer=InMemorySaver()), "t"
            ),
            old,
        )


def test_errors_name_no_method_that_went() -> None:
    assert "retry()" not in str(TurnPendingError("t")) + _NEXT[True]
    assert "Conversation" not in str(ThreadBusyError("t"))
