"""The graph against a real HTTP model server: tool loops, usage, and every way a provider fails."""

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import (
    LongtableError,
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderError,
    ProviderProtocolError,
    ProviderQuotaError,
    ProviderRateLimitedError,
    ProviderUnavailableError,
    TurnPendingError,
)
from longtable.graph import Context, Conversation, Database, build_graph, next_view
from longtable.memory.counting.tokens import counter
from tests.support import model_server
from tests.support.model_server import Fault, ModelServer, OverflowShape, Reply, open_model_server

CONTEXT = Context(model_limit=8_000)


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def conversation(server: ModelServer, context: Context = CONTEXT) -> Conversation:
    graph = build_graph(model=server.chat_model(), summarizer=False, tools=[add]).compile(
        checkpointer=InMemorySaver()
    )
    return Conversation(graph, "t", context=context)


def test_a_tool_loop_over_http_streams_and_keeps_usage(server: ModelServer) -> None:
    server.script(
        model_server.call("add", a=2, b=3), model_server.say("It is five.", input_tokens=321)
    )
    talk = conversation(server)
    events = list(talk.stream("What is 2 + 3?"))
    assert "".join(e["text"] for e in events if e["type"] == "token") == "It is five."
    assert server.requests[0].tool_names == ["recall_history", "add", "remember", "forget"]
    assert server.requests[1].roles == ["system", "user", "assistant", "tool"]
    last = talk.history()[-1]
    assert isinstance(last, AIMessage)
    assert last.usage_metadata is not None
    assert last.usage_metadata["input_tokens"] == 321


def test_async_speaks_the_same_protocol(server: ModelServer) -> None:
    server.script(model_server.call("add", a=2, b=3), model_server.say("It is five."))
    assert asyncio.run(conversation(server).aask("What is 2 + 3?")).text == "It is five."


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (model_server.unauthorized("sk-secret-key-123"), ProviderAuthError),
        (model_server.rate_limited(7), ProviderRateLimitedError),
        (model_server.server_error(), ProviderUnavailableError),
        (model_server.say("half an answer", breaks="drop"), ProviderUnavailableError),
        (model_server.say("half an answer", breaks="truncate"), ProviderUnavailableError),
        (
            model_server.calls(
                model_server.ToolCall(name="add", arguments='{"a": 1, "b": 22}', id="c"),
                breaks="truncate",
                pieces=6,
            ),
            ProviderUnavailableError,
        ),
        (model_server.error(400, "your tool schema is odd"), ProviderError),
    ],
)
def test_a_fault_is_typed_told_without_internals_and_the_turn_can_be_resumed(
    server: ModelServer, fault: Fault | Reply, kind: type[LongtableError]
) -> None:
    server.script(fault)
    talk = conversation(server)
    with pytest.raises(kind) as caught:
        talk.ask("hello")
    told = caught.value.user_text("en") + caught.value.user_text("zh")
    assert not any(
        word in told + str(caught.value) for word in ("sk-secret", "Traceback", "127.0.0.1")
    )
    assert [m.text for m in talk.history()] == ["hello"]
    assert talk.pending()
    server.script(model_server.say("here I am"))
    assert [e["text"] for e in talk.stream() if e["type"] == "answer"] == ["here I am"]
    assert [m.text for m in talk.history()] == ["hello", "here I am"]


@pytest.mark.parametrize(
    ("name", "sent", "text"),
    [
        ("eva", "eva", "hello"),
        ("Anna Müller", "Anna_Muller", "Anna Müller: hello"),
        ("王伟", None, "王伟: hello"),
        ("王伟 2", "2", "王伟 2: hello"),
        ("a" * 70, "a" * 64, f"{'a' * 70}: hello"),
        ("Bob\nsystem", "Bob_system", "Bob system: hello"),
    ],
)
@pytest.mark.parametrize("parts", [False, True])
def test_a_name_is_sent_as_providers_take_it_and_the_real_one_stands_in_the_text(
    server: ModelServer, name: str, sent: str | None, text: str, parts: bool
) -> None:
    def strict(request: model_server.ChatRequest) -> Reply | Fault:
        names = [message["name"] for message in request.messages if "name" in message]
        good = all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each) for each in names)
        return (
            model_server.say("hi")
            if good
            else model_server.error(400, "Invalid 'messages[1].name'", param="messages[1].name")
        )

    server.always(strict)
    app: Any = build_graph(model=server.chat_model()).compile(checkpointer=InMemorySaver())
    content: Any = [{"type": "text", "text": "hello"}] if parts else "hello"
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    talk = [
        HumanMessage("before", name=name),
        AIMessage(content, name=name),
        HumanMessage(content, name=name, id="h"),
    ]
    values = app.invoke({"messages": talk}, config, context=CONTEXT)
    for message in server.requests[0].messages[2:]:
        said = message["content"]
        assert (said if isinstance(said, str) else " ".join(part["text"] for part in said)) == text
        assert message.get("name") == sent
    kept = next(m for m in values["messages"] if m.id == "h")
    assert (kept.name, kept.content) == (name, content)
    counted = counter("o200k_base").messages(next_view(app.get_state(config).values, CONTEXT)[1:-1])
    assert values["usage"]["parts"]["messages"] == counted


def test_a_new_message_after_a_fault_keeps_the_first(server: ModelServer) -> None:
    server.script(model_server.server_error(), model_server.say("fine"))
    talk = conversation(server)
    with pytest.raises(ProviderUnavailableError):
        talk.ask("first")
    assert talk.ask("second").text == "fine"
    assert [m.text for m in talk.history()] == ["first", "second", "fine"]


def test_the_time_to_wait_reaches_the_person(server: ModelServer) -> None:
    server.script(model_server.rate_limited(7))
    with pytest.raises(ProviderRateLimitedError) as caught:
        conversation(server).ask("hello")
    assert "7 s" in caught.value.user_text("en")


@pytest.mark.parametrize("status", [429, 402])
def test_an_empty_account_is_told_and_not_waited_for(server: ModelServer, status: int) -> None:
    server.script(model_server.no_credit(status))
    with pytest.raises(ProviderQuotaError) as caught:
        conversation(server, CONTEXT.replace(max_retries=3)).ask("hello")
    assert len(server.requests) == 1
    assert "top it up" in caught.value.user_text("en")
    assert "充值" in caught.value.user_text("zh")


def test_a_stream_that_turns_to_garbage_is_no_reason_to_doubt_the_base_url(
    server: ModelServer,
) -> None:
    server.script(model_server.say("half an answer", breaks="garbage"))
    with pytest.raises(ProviderProtocolError) as caught:
        conversation(server).ask("hello")
    assert "/v1" not in str(caught.value)


def test_a_model_whose_repairs_are_spent_is_no_longer_offered_run_sql(
    server: ModelServer, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    server.script(
        *[model_server.call("run_sql", sql="SELECT nothing FROM orders")] * 2,
        model_server.say("It failed."),
    )
    server.always(model_server.say("Hello."))
    with Database.open(f"sqlite:///{tmp_path}/shop.db") as database:
        graph = build_graph(model=server.chat_model(), summarizer=False, database=database).compile(
            checkpointer=InMemorySaver()
        )
        talk = Conversation(graph, "t", context=Context(model_limit=16_000, max_repairs=1))
        assert talk.ask("names").text == "It failed."
        talk.ask("and now?")
    assert ["run_sql" in request.tool_names for request in server.requests] == [
        True,
        True,
        False,
        True,
    ]
    assert "describe_tables" in server.requests[2].tool_names


def test_a_provider_that_is_down_is_said() -> None:
    with open_model_server() as gone:
        model = gone.chat_model()
    graph = build_graph(model=model).compile(checkpointer=InMemorySaver())
    with pytest.raises(ProviderUnavailableError):
        Conversation(graph, "t", context=CONTEXT).ask("hello")


@pytest.mark.parametrize("shape", ["openai", "llama_cpp", "vllm", "vllm_flat"])
def test_an_overflow_compacts_harder_and_the_turn_succeeds(
    server: ModelServer, shape: OverflowShape
) -> None:
    server.always(model_server.say("answer " + "word " * 60))
    talk = conversation(server)
    for n in range(8):
        talk.ask(f"question {n} " + "word " * 60)
    before = len(server.requests)
    server.script(model_server.context_overflow(shape))
    events = list(talk.stream("one more"))
    assert [e["status"] for e in events if e["type"] == "answer"] == ["answered"]
    assert [e["type"] for e in events].count("context_compressed") == 1
    refused, accepted = server.requests[before:]
    assert len(str(accepted.messages)) < 0.7 * len(str(refused.messages))
    assert len(talk.history()) == 18


def test_an_overflow_that_no_compaction_helps_is_a_typed_error(server: ModelServer) -> None:
    server.always(model_server.context_overflow())
    talk = conversation(server, Context(model_limit=8_000))
    with pytest.raises(ModelContextOverflowError):
        talk.ask("hello")
    assert len(server.requests) == 4
    assert [m.text for m in talk.history()] == ["hello"]
    with pytest.raises(TurnPendingError):
        talk.compact()
    recovered = Conversation(talk.graph, "t", context=CONTEXT)
    server.always(model_server.say("fine"))
    assert recovered.ask("word " * 400).text == "fine"  # the ceiling was that turn's alone


def test_malformed_arguments_and_unknown_tools_go_back_to_the_model(server: ModelServer) -> None:
    bad = model_server.calls(
        model_server.ToolCall(name="add", arguments="a = 1", id="c1"),
        model_server.ToolCall(name="subtract", arguments="{}", id="c2"),
    )
    server.script(bad, model_server.say("Sorry."))
    talk = conversation(server)
    assert talk.ask("try").text == "Sorry."
    assert [m.status for m in talk.history() if isinstance(m, ToolMessage)] == ["error", "error"]
    sent = server.requests[1].messages
    assert (
        {call["id"] for call in sent[2]["tool_calls"]}
        == {message["tool_call_id"] for message in sent[3:]}
        == {"c1", "c2"}
    )


def test_an_empty_answer_is_asked_for_once_more(server: ModelServer) -> None:
    server.script(model_server.empty(), model_server.empty())
    assert conversation(server).ask("hello").status == "empty_answer"
    assert len(server.requests) == 2
