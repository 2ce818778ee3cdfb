"""Prompt caches over real HTTP: where Claude's marks stand on the wire, and OpenAI's key."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from longtable.graph import (
    Context,
    ContextProvider,
    Conversation,
    Persona,
    Team,
    Workflow,
    build_graph,
    open_persistence,
)
from longtable.memory.policy import rolling_chat
from longtable.nodes.calling.model_clients import server_host
from longtable.nodes.calling.prompt_cache import MOST_MARKS, cache_key, sends_key
from tests.support import forked
from tests.support.anthropic_server import (
    AnthropicServer,
    claude,
    marks_of,
    open_anthropic_server,
)
from tests.support.model_server import (
    ModelServer,
    answer_or_summary,
    call,
    open_model_server,
    say,
    server_error,
)

CONTEXT = Context(model_limit=16_000)
MARK = {"type": "ephemeral"}
pytestmark = pytest.mark.filterwarnings("ignore:the tokenizer of model")


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with open_anthropic_server() as running:
        yield running


def talk(model: Any, context: Context = CONTEXT, **settings: Any) -> Conversation:
    graph = build_graph(model=model, **settings).compile(checkpointer=InMemorySaver())
    return Conversation(graph, "t", context=context)


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"Rain in {city}" if city else ""


def test_a_first_call_marks_tools_system_and_the_last_message(server: AnthropicServer) -> None:
    server.script(say("Hello."))
    talk(server.claude(), tools=[weather]).ask("Hi")
    body = server.requests[0].body
    assert marks_of(body) == ["tool", "system", "message"]
    assert body["tools"][-1]["cache_control"] == MARK
    assert body["messages"][-1]["content"][-1] == {
        "type": "text",
        "text": "Hi",
        "cache_control": MARK,
    }


@pytest.mark.parametrize(
    ("setting", "mark"), [("5m", MARK), ("1h", {**MARK, "ttl": "1h"}), ("off", None)]
)
def test_the_setting_says_how_long_the_cache_lives(
    server: AnthropicServer, setting: Any, mark: dict[str, str] | None
) -> None:
    server.script(say("Hello."))
    talk(server.claude(), CONTEXT.replace(prompt_cache=setting)).ask("Hi")
    body = server.requests[0].body
    assert bool(marks_of(body)) is bool(mark)
    if mark:
        assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    else:
        assert body["messages"][-1]["content"] == "Hi"


def test_no_stored_message_bears_a_mark(server: AnthropicServer) -> None:
    server.script(call("weather", city="Oslo"), say("It rains."), say("Still."))
    conversation = talk(server.claude(), tools=[weather])
    conversation.ask("Weather in Oslo?")
    conversation.ask("And now?")
    assert [marks_of(request.body)[-1] for request in server.requests] == ["message"] * 3
    state = conversation.graph.get_state(conversation.config).values
    assert "cache_control" not in repr(state)


def test_after_a_compaction_the_memory_has_a_mark_of_its_own_and_summaries_have_none(
    server: AnthropicServer,
) -> None:
    server.always(answer_or_summary)
    policy = rolling_chat()
    conversation = talk(server.claude(), Context(model_limit=4_000), policy=policy)
    for n in range(12):
        conversation.ask(f"Question {n}: words please")
    summaries = [request for request in server.requests if request.is_for_summary]
    others = [request for request in server.requests if not request.is_for_summary]
    assert summaries
    assert all(not marks_of(request.body) for request in summaries)
    assert all(len(marks_of(request.body)) <= MOST_MARKS for request in others)
    with_memory = others[-1].body
    texts = [block["text"] for block in with_memory["system"]]
    assert ["<memory>" in text for text in texts] == [False, True]
    assert marks_of(with_memory) == ["tool", "system", "system", "message"]
    before = others[-2].body
    assert before["system"][0] == with_memory["system"][0]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_memory_in_a_message_of_its_own_is_marked_there(
    server: AnthropicServer, role: Any
) -> None:
    server.always(answer_or_summary)
    policy = replace(rolling_chat(), memory_role=role)
    conversation = talk(server.claude(), Context(model_limit=4_000), policy=policy)
    for n in range(12):
        conversation.ask(f"Question {n}: words please")
    body = server.requests[-1].body
    assert marks_of(body) == ["tool", "system", "message", "message"]
    [memory] = [
        block
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and "<memory>" in block.get("text", "")
    ]
    assert "cache_control" in memory


def test_blocks_that_may_bear_no_mark_are_passed_over(server: AnthropicServer) -> None:
    server.script(
        say("", reasoning="Let me think.", tool_calls=call("weather", city="").tool_calls),
        say("Nothing came."),
    )
    thinking = CONTEXT.replace(thinking=2_000)
    talk(server.claude(max_tokens=8_000), thinking, tools=[weather]).ask("Weather?")
    body = server.requests[1].body
    assert "thinking" in json.dumps(body["messages"][1])
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block["type"] == "thinking" or block.get("text", "x") == "":
                assert "cache_control" not in block
    # The empty result cannot bear a mark, nor can an answer that only calls: the question does.
    assert "cache_control" in body["messages"][0]["content"][-1]


def test_an_image_may_bear_the_mark(server: AnthropicServer) -> None:
    server.script(say("A dot."))
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    message = HumanMessage([{"type": "text", "text": "What is it?"}, picture])
    conversation = talk(server.claude())
    conversation.graph.invoke({"messages": [message]}, conversation.config, context=CONTEXT)
    last = server.requests[0].body["messages"][-1]["content"][-1]
    assert last["type"] == "image"
    assert last["cache_control"] == MARK


def test_a_streamed_turn_is_marked_too(server: AnthropicServer) -> None:
    server.script(call("weather", city="Oslo"), say("It rains."))
    conversation = talk(server.claude(), tools=[weather])
    events = list(conversation.stream("Weather?"))
    assert events[-1]["type"] == "answer"
    assert all(request.streams for request in server.requests)
    assert [marks_of(request.body)[-1] for request in server.requests] == ["message", "message"]
    result = server.requests[1].body["messages"][-1]["content"][-1]
    assert result["type"] == "tool_result"
    assert result["cache_control"] == MARK


def test_a_fallback_of_another_provider_is_sent_no_mark(server: AnthropicServer) -> None:
    with open_model_server() as other:
        server.script(server_error(529), say("Back."))
        other.script(say("From the other."))
        conversation = talk(server.claude(), fallbacks=[other.chat_model()])
        conversation.ask("Hi")
        conversation.ask("And?")
        assert "cache_control" not in json.dumps(other.requests[0].body)
        assert marks_of(server.requests[1].body) == ["tool", "system", "message"]


def test_voices_of_two_providers_are_each_sent_what_they_take(server: AnthropicServer) -> None:
    with open_model_server() as other:
        server.always(say("Four."))
        other.always(say("I agree."))
        team = Team(
            Persona("analyst", prompt="Answer."),
            Persona("checker", prompt="Check.", model=other.chat_model()),
            mode=Workflow("analyst", "checker"),
        )
        talk(server.claude(), team=team).ask("Two and two?")
        assert marks_of(server.requests[0].body)[-1] == "message"
        assert "cache_control" not in json.dumps(other.requests[0].body)


def test_material_of_a_provider_stands_behind_a_mark(server: AnthropicServer) -> None:
    server.always(say("Yes."))
    notes = ContextProvider(name="notes", provide=lambda _: "a note on this question " * 10)
    conversation = talk(server.claude(), hooks=[notes])
    conversation.ask("One?")
    conversation.ask("Two?")
    first, second = (request.body["messages"] for request in server.requests)
    marked = [
        block["text"][:4]
        for message in second
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if "cache_control" in block
    ]
    assert marked == ["Yes.", "Two?"]
    assert len(marks_of(server.requests[1].body)) <= MOST_MARKS
    assert first[0] != second[0]  # the material is not repeated


@tool("weather")
def deadly_weather(city: str) -> str:
    """Tell the weather."""
    os.kill(os.getpid(), signal.SIGKILL)
    return city


def ask_and_die(base_url: str, threads: str) -> None:
    """Ask on a stored thread. The tool kills the process."""
    model = claude(base_url)
    with open_persistence(threads) as persistence:
        graph = build_graph(model=model, tools=[deadly_weather]).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        Conversation(graph, "t", context=CONTEXT).ask("Weather?")


def test_a_thread_whose_process_was_killed_goes_on_with_marks(
    server: AnthropicServer, tmp_path: Path
) -> None:
    server.script(call("weather", city="Oslo"), say("It rains."))
    threads = f"sqlite:///{tmp_path / 'threads.db'}"
    died = forked.run(ask_and_die, server.base_url, threads)
    assert died.returncode == -signal.SIGKILL
    with open_persistence(threads) as persistence:
        graph = build_graph(model=server.claude(), tools=[weather]).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        answer = Conversation(graph, "t", context=CONTEXT).resume()
    assert answer.text == "It rains."
    first, second = (request.body for request in server.requests)
    assert marks_of(second) == ["tool", "system", "message"]
    assert second["tools"] == first["tools"]
    assert second["system"] == first["system"]
    database = (tmp_path / "threads.db").read_bytes()
    assert b"cache_control" not in database


def test_the_answer_tells_what_its_calls_read_from_the_cache(server: AnthropicServer) -> None:
    asks = replace(
        call("weather", city="Oslo"), input_tokens=2_000, cache_written=1_900, output_tokens=7
    )
    tells = say("It rains.", input_tokens=2_100, cache_read=1_900, output_tokens=5)
    server.script(asks, tells)
    conversation = talk(server.claude(), tools=[weather])
    assert conversation.ask("Weather?").tokens == {
        "input": 4_100,
        "output": 12,
        "cached": 1_900,
        "cache_written": 1_900,
        "reasoning": 0,
    }


# -- OpenAI's key ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "setting", "sent"),
    [
        (None, None, True),
        ("https://eu.api.openai.com/v1", None, True),
        ("https://api.openai.com.evil.example/v1", None, False),
        ("http://127.0.0.1:1/v1", None, False),
        ("http://127.0.0.1:1/v1", True, True),
        (None, False, False),
    ],
)
def test_the_key_is_sent_to_openai_and_elsewhere_only_by_setting(
    base_url: str | None, setting: bool | None, *, sent: bool
) -> None:
    model = ChatOpenAI(model="gpt-4o-mini", base_url=base_url, api_key=SecretStr("sk-test"))
    assert sends_key(model, setting) is sent


def test_claude_is_sent_no_key(server: AnthropicServer) -> None:
    assert not sends_key(server.claude(), True)
    assert server_host(server.claude()) == ""


def test_the_key_is_the_same_for_a_thread_and_tells_nothing_of_its_name() -> None:
    with open_model_server() as server:
        server.always(answer_or_summary)
        context = Context(model_limit=4_000, prompt_cache_key=True, owner="anna")
        conversation = talk(server.chat_model(), context, policy=rolling_chat())
        for n in range(12):
            conversation.ask(f"Question {n}")
        keys = {request.body.get("prompt_cache_key") for request in answers(server)}
        assert keys == {cache_key("t", "")}
        assert "anna" not in cache_key("anna-thread", "")
        summaries = [request for request in server.requests if request.is_for_summary]
        assert summaries
        assert all("prompt_cache_key" not in request.body for request in summaries)


def answers(server: ModelServer) -> list[Any]:
    return [request for request in server.requests if not request.is_for_summary]
