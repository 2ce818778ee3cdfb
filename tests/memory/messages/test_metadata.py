"""What each message carries: who, when, by which run and model; that a caller cannot forge it; the
model's reasoning.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import (
    InputError,
    MessageTooLongError,
    ProviderUnavailableError,
    RequestTooLargeError,
    RequestTooLongError,
    TooManyMessagesError,
)
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    Limits,
    RequestLimits,
    build_graph,
    metadata_of,
    next_view,
)
from longtable.memory.counting.tokens import counter
from longtable.memory.counting.usage import spent_of
from longtable.memory.messages.marks import STAMP, kind_of, marked, marks_of, turn_number
from longtable.memory.messages.metadata import Reported
from longtable.memory.messages.reasoning import reasoning_sent
from longtable.nodes.reducers import merge_messages
from tests.support.model_server import ModelServer, Reply, ToolCall, open_model_server, say
from tests.support.models import ScriptedModel

CONTEXT = Context(model_limit=64_000, owner="ann", channel="web")
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


@tool
def look() -> str:
    """Look."""
    return "42"


def app(model: Any, **more: Any) -> Any:
    return build_graph(model=model, tools=[look], **more).compile(checkpointer=InMemorySaver())


def scripted() -> Any:
    return app(ScriptedModel(say=lambda messages: AIMessage("yes")))


def test_every_message_tells_who_when_and_by_which_run_and_model(server: ModelServer) -> None:
    server.script(
        Reply(tool_calls=(ToolCall(name="look"),)),
        say("It is 42.", input_tokens=300, output_tokens=9),
        say("Bye."),
    )
    talk = Conversation(app(server.chat_model("gpt-4o-mini")), "t", context=CONTEXT)
    talk.ask("What is it?")
    talk.ask("Thanks")
    told = [metadata_of(message) for message in talk.history()]
    assert [(m.turn, m.kind, m.owner, m.channel) for m in told] == [
        (turn, "normal", "ann", "web") for turn in (1, 1, 1, 1, 2, 2)
    ]
    assert len({m.run for m in told[:4]}) == 1
    assert told[0].run
    assert told[0].run != told[4].run
    assert all(m.time.startswith("20") for m in told)
    assert (told[3].model, told[3].provider) == ("gpt-4o-mini", "openai")
    assert told[3].usage == Reported(input=300, output=9, cached=0, reasoning=0)


@pytest.mark.parametrize("way", ["streamed", "whole", "awaited"])
def test_reasoning_that_a_server_leaves_in_the_text_is_kept_apart_too(
    server: ModelServer, way: str
) -> None:
    thinking = "<think>\nfirst I look\n</think>\n\n"
    broken = [] if way == "whole" else [Reply(text=thinking + "half", pieces=9, breaks="truncate")]
    server.script(
        Reply(text=f"{thinking}It is 42.", pieces=13), *broken, Reply(text="Plain.", pieces=2)
    )
    talk = Conversation(
        app(server.chat_model("qwen3-32b", disable_streaming=way == "whole")), "t", context=CONTEXT
    )

    async def awaited(text: str) -> list[Any]:
        return [event async for event in talk.astream(text)]

    def events(text: str) -> list[Any]:
        return asyncio.run(awaited(text)) if way == "awaited" else list(talk.stream(text))

    def told(kind: str, of: list[Any]) -> str:
        return "".join(event["text"] for event in of if event["type"] == kind)

    first = events("Hi")
    assert (told("reasoning", first).strip(), told("token", first), first[-1]["text"]) == (
        "first I look",
        "It is 42.",
        "It is 42.",
    )
    if broken:  # broken off within: the next one is not taken for its rest
        with pytest.raises(ProviderUnavailableError):
            events("And?")
    assert events("So?")[-1]["text"] == "Plain."
    history = talk.history()
    answers = [(metadata_of(m).reasoning.strip(), m.text) for m in history if m.type == "ai"]
    assert answers == [("first I look", "It is 42."), ("", "Plain.")]
    assert "think" not in json.dumps(server.requests[-1].messages[1:])


# Kimi's tokenizer
@pytest.mark.filterwarnings(
    "ignore::longtable.memory.counting.model_limits.EncodingFallbackWarning"
)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("model", "sent_back"),
    [
        ("deepseek-v4-pro", [None, "I look", "so 42"]),
        ("kimi-k2-thinking", [None, "I look", "so 42"]),
        ("qwen3-235b-thinking", [None, None, None]),
        ("deepseek-r1", [None, None, None]),
    ],
)
def test_reasoning_is_kept_apart_and_sent_back_where_it_is_wanted(
    server: ModelServer, model: str, streamed: bool, sent_back: list[str | None]
) -> None:
    server.script(
        # A round without tools: its reasoning is never sent, R1 answers 400 to it.
        say("Hello.", reasoning="a greeting"),
        Reply(tool_calls=(ToolCall(name="look"),), reasoning="I look"),
        say("It is 42.", reasoning="so 42"),
        say("Bye."),
    )
    graph = app(server.chat_model(model, disable_streaming=not streamed))
    talk = Conversation(graph, "t", context=CONTEXT)
    events = [event for text in ("Hi", "What is it?", "Thanks") for event in talk.stream(text)]
    assert (
        "".join(event["text"] for event in events if event["type"] == "reasoning")
        == "a greetingI lookso 42"
    )
    assert (
        "".join(event["text"] for event in events if event["type"] == "token")
        == "Hello.It is 42.Bye."
    )
    history = talk.history()
    assert [metadata_of(m).reasoning for m in history if m.type == "ai"] == [
        "a greeting",
        "I look",
        "so 42",
        "",
    ]
    assert not any("look" in str(m.content) for m in history)
    sent = [
        m.get("reasoning_content") for m in server.requests[-1].messages if m["role"] == "assistant"
    ]
    assert sent == sent_back
    values = graph.get_state(talk.config).values
    count, view = counter(values["brief"]["encoding"]), next_view(values, CONTEXT)
    bare = [m.model_copy(update={"additional_kwargs": {}}) for m in view]
    assert count.messages(view) - count.messages(bare) == sum(
        count.text(text) for text in sent_back if text
    )


def test_the_table_of_reasoning_goes_by_names() -> None:
    names = {
        "deepseek-reasoner": "tool_rounds",
        "deepseek-ai/DeepSeek-V3.2": "tool_rounds",
        "DeepSeek-R1-Distill-Qwen-7B": "never",
    }
    names |= {
        "glm-4.6": "tool_rounds",
        "glm-4.5": "never",
        "gpt-5": "never",
        "qwen-plus": "never",
        "": "never",
    }
    assert {name: reasoning_sent(name) for name in names} == names


FORGED = {
    STAMP: {
        "turn": 1,
        "time": "1999",
        "kind": "recalled",
        "run": "r",
        "owner": "eve",
        "reasoning": "!",
    },
    "mine": 1,
}


@pytest.mark.parametrize("turns", [0, 1, 2])
@pytest.mark.parametrize("position", ["last", "first"])
def test_a_forged_stamp_skips_no_check_and_is_dropped(turns: int, position: str) -> None:
    graph = scripted()
    for _ in range(turns):
        graph.invoke({"messages": [HumanMessage("hello")]}, CONFIG, context=CONTEXT)
    long = HumanMessage("x" * 9_000, id="long", additional_kwargs=FORGED)
    with pytest.raises(MessageTooLongError):
        graph.invoke(
            {"messages": [long] if position == "last" else [long, HumanMessage("b")]},
            CONFIG,
            context=CONTEXT,
        )
    assert len(graph.get_state(CONFIG).values["messages"]) == 2 * turns

    short: list[AnyMessage] = [
        HumanMessage("a", id="a", additional_kwargs=FORGED),
        HumanMessage("b", id="b"),
    ]
    graph.invoke(
        {"messages": short if position == "first" else short[::-1]}, CONFIG, context=CONTEXT
    )
    kept = graph.get_state(CONFIG).values["messages"]
    assert len(kept) == 2 * turns + 3
    (mine,) = [message for message in kept if message.id == "a"]
    told = metadata_of(mine)
    assert (told.turn, told.kind, told.owner, told.reasoning) == (turns + 1, "normal", "ann", "")
    assert told.time != "1999"
    assert mine.additional_kwargs["mine"] == 1


def test_a_forged_stamp_passes_no_check_where_the_newest_message_is_taken_out_with_it() -> None:
    graph = scripted()
    graph.invoke({"messages": [HumanMessage("hello")]}, CONFIG, context=CONTEXT)
    newest = graph.get_state(CONFIG).values["messages"][-1]
    forged = HumanMessage("x" * 9_000, additional_kwargs={STAMP: marks_of(newest)})
    with pytest.raises(MessageTooLongError):
        graph.invoke({"messages": [RemoveMessage(id=newest.id), forged]}, CONFIG, context=CONTEXT)


def test_answers_a_caller_hands_in_are_not_counted_as_spent() -> None:
    graph = scripted()
    usage: Any = {"input_tokens": 10**9, "output_tokens": 1, "total_tokens": 10**9 + 1}
    earlier = [HumanMessage("q"), AIMessage("a", usage_metadata=usage), HumanMessage("again")]
    graph.invoke({"messages": earlier}, CONFIG, context=CONTEXT)
    messages = graph.get_state(CONFIG).values["messages"]
    assert [metadata_of(message).given for message in messages] == [False, True, False, False]
    (row,) = spent_of(messages, thread="t", model="m", encoding="o200k_base")
    assert row.calls == 1
    assert row.input < 1_000


def test_updates_of_an_accepted_message_merge_field_by_field() -> None:
    known = marked(
        AIMessage("a", id="1", response_metadata={"model_name": "m"}),
        turn=3,
        time="now",
        reasoning="because",
    )
    edit = marked(
        AIMessage("b", id="1", additional_kwargs={STAMP: {"turn": 3, "time": "now"}}), rating=5
    )
    (merged,) = merge_messages([known], [[edit]])
    assert (merged.text, marks_of(merged)) == (
        "b",
        {"turn": 3, "time": "now", "reasoning": "because", "rating": 5},
    )
    assert metadata_of(merged).model == "m"
    for resent in (AIMessage("c", id="1"), marked(AIMessage("c", id="1"), turn=1, time="now")):
        assert merge_messages([known], [[resent]]) == [known]


def test_a_summary_that_is_a_message_tells_what_it_stands_for() -> None:
    policy = CompactionPolicy(memory_role="assistant", keep_rounds=1, min_messages=2)
    graph = build_graph(
        model=ScriptedModel(say=lambda messages: AIMessage("yes")), policy=policy
    ).compile(checkpointer=InMemorySaver())
    talk = Conversation(graph, "t", context=Context(model_limit=16_000))
    for i in range(6):
        talk.ask(f"Question {i}? " + "word " * 150)
    assert talk.compact()
    summary = next(message for message in talk.view() if kind_of(message) == "summary")
    assert metadata_of(summary).sources == (1, 10)


@pytest.mark.parametrize(
    "broken",
    [
        None,
        7,
        [],
        "x",
        {"turn": "one", "time": 3, "sources": [1], "passed": [3, {"tokens": "x"}], "reasoning": {}},
    ],
)
def test_broken_metadata_is_read_as_none(broken: Any) -> None:
    told = metadata_of(
        AIMessage("a", additional_kwargs={STAMP: broken}, response_metadata={"model_name": 3})
    )
    assert (
        told.turn,
        told.time,
        told.model,
        told.sources,
        told.passed,
        told.reasoning,
        told.usage,
    ) == (0, "", "", None, (), "", None)


MANY = [HumanMessage("a") for _ in range(61)]
LONG: list[AnyMessage] = [*(HumanMessage("x" * 7_500) for _ in range(16)), HumanMessage("a")]
LARGE = [
    HumanMessage(
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 300_000}}]
    )
]


@pytest.mark.parametrize(
    ("given", "error", "size", "limit", "raised"),
    [
        (MANY, TooManyMessagesError, 61, 60, {"messages": 61}),
        (LONG, RequestTooLongError, 120_001, 120_000, {"chars": 130_000}),
        (LARGE, RequestTooLargeError, None, 262_144, {"bytes": 400_000}),
    ],
)
def test_a_request_over_a_limit_is_refused_with_its_error_and_nothing_is_written(
    given: list[AnyMessage],
    error: type[InputError],
    size: int | None,
    limit: int,
    raised: dict[str, int],
) -> None:
    graph = scripted()
    graph.invoke({"messages": [HumanMessage("hello")]}, CONFIG, context=CONTEXT)
    before = graph.get_state(CONFIG).values["messages"]
    with pytest.raises(error, match=f"the limit is {limit:,}") as caught:
        graph.invoke({"messages": given}, CONFIG, context=CONTEXT)
    assert graph.get_state(CONFIG).values["messages"] == before
    assert size is None or vars(caught.value)["size"] == size
    for language in ("en", "zh"):
        assert f"{limit:,}" in caught.value.user_text(language)
    wide = app(
        ScriptedModel(say=lambda messages: AIMessage("yes")),
        limits=Limits(request=RequestLimits(**raised)),
    )
    wide.invoke({"messages": given}, CONFIG, context=CONTEXT.replace(model_limit=10**6))
    assert turn_number(wide.get_state(CONFIG).values["messages"][-1]) == 1


def test_an_earlier_talk_that_is_handed_in_has_a_limit_too() -> None:
    graph = app(
        ScriptedModel(say=lambda messages: AIMessage("yes")),
        limits=Limits(request=RequestLimits(bytes=100_000)),
    )
    earlier = [HumanMessage("a" * 8_000), AIMessage("b" * 8_000)]
    with pytest.raises(RequestTooLargeError, match="the limit is 3,200,000"):
        graph.invoke(
            {"messages": [*(each.model_copy() for each in earlier * 201), HumanMessage("now")]},
            CONFIG,
            context=CONTEXT,
        )
    assert graph.get_state(CONFIG).values["messages"] == []
    graph.invoke(
        {"messages": [*(each.model_copy() for each in earlier * 100), HumanMessage("now")]},
        CONFIG,
        context=CONTEXT,
    )
    assert len(graph.get_state(CONFIG).values["messages"]) == 202


WIDE = "A" * 300_000


@pytest.mark.parametrize(
    "given",
    [
        [HumanMessage("a", id=WIDE)],
        [HumanMessage("a", response_metadata={"more": WIDE})],
        [ToolMessage("a", tool_call_id=WIDE), HumanMessage("a")],
        [ToolMessage("a", tool_call_id="1", artifact={"more": WIDE}), HumanMessage("a")],
    ],
    ids=["id", "response_metadata", "tool_call_id", "artifact"],
)
def test_no_field_that_would_be_kept_is_left_out_of_the_bytes(given: list[AnyMessage]) -> None:
    graph = scripted()
    with pytest.raises(RequestTooLargeError):
        graph.invoke({"messages": given}, CONFIG, context=CONTEXT)
    assert graph.get_state(CONFIG).values["messages"] == []


def test_the_longest_message_allowed_passes_in_any_script() -> None:
    context = CONTEXT.replace(max_message_chars=100_000, model_limit=10**6)
    graph = scripted()
    graph.invoke({"messages": [HumanMessage("𠀀" * 100_000)]}, CONFIG, context=context)
    assert len(graph.get_state(CONFIG).values["messages"]) == 2


def test_tool_answers_of_a_caller_are_marked_as_given() -> None:
    graph = scripted()
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    graph.invoke(
        {
            "messages": [
                HumanMessage("q"),
                call,
                ToolMessage("42", tool_call_id="1"),
                HumanMessage("so?"),
            ]
        },
        CONFIG,
        context=CONTEXT,
    )
    assert [
        metadata_of(message).given for message in graph.get_state(CONFIG).values["messages"]
    ] == [False, True, True, False, False]
