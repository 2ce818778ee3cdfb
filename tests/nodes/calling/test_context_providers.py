"""Context providers: material for one turn's calls, counted, named, never kept; one that fails or
is slow is left out.
"""

import asyncio
import contextlib
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import ConfigError
from longtable.graph import Context, ContextProvider, Conversation, build_graph, metadata_of
from longtable.memory.call_config import CallConfig
from longtable.memory.counting.tokens import counter
from longtable.memory.materials import Material, with_materials
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan, build_view
from longtable.nodes.calling.context_providers import ContextRequest
from tests.support.models import ScriptedModel

CONTEXT = Context(model_limit=8_000)


@tool
def look() -> str:
    """Look."""
    return "42"


def answer(messages: Any) -> AIMessage:
    done = messages[-1].type == "tool"
    return (
        AIMessage("It is 42.")
        if done
        else AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": f"c{len(messages)}"}])
    )


def events_of(conversation: Conversation, text: str, *, asynchronous: bool) -> list[Any]:
    async def run() -> list[Any]:
        return [event async for event in conversation.astream(text)]

    return asyncio.run(run()) if asynchronous else list(conversation.stream(text))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_material_goes_with_the_calls_of_one_turn_and_is_kept_nowhere(asynchronous: bool) -> None:
    asked: list[ContextRequest] = []

    def document(about: ContextRequest) -> str:
        asked.append(about)
        return f"DOCUMENT for {about.question}"

    async def date(about: ContextRequest) -> str:
        await asyncio.sleep(0)
        return "DATE 2026-11-21"

    providers = [
        ContextProvider(name="document", provide=document),
        ContextProvider(name="date", provide=date),
    ]
    model = ScriptedModel(say=answer)
    app = build_graph(model=model, tools=[look], hooks=[*providers]).compile(
        checkpointer=InMemorySaver()
    )
    talk = Conversation(app, "t", context=CONTEXT.replace(owner="ann"))
    events = events_of(talk, "what?", asynchronous=asynchronous)
    events_of(talk, "and?", asynchronous=asynchronous)

    assert [(about.question, about.turn, about.owner, about.thread_id) for about in asked] == [
        ("what?", 1, "ann", "t"),
        ("and?", 2, "ann", "t"),
    ]
    texts = [[str(message.text) for message in sent] for sent in model.sent]
    for sent, question in zip(texts, ["what?", "what?", "and?", "and?"], strict=True):
        place = sent.index(question)
        assert "DOCUMENT for" in sent[place - 2]
        assert "DATE" in sent[place - 1]
        assert sum("DOCUMENT" in text for text in sent) == 1
    state = app.get_state(talk.config).values
    assert "DOCUMENT" not in repr(state)
    assert not any("DATE" in repr(snapshot) for snapshot in app.get_state_history(talk.config))

    told = [event for event in events if event["type"] == "context_passed"]
    assert [
        (event["call"], [part["source"] for part in event["passed"]], event["left_out"])
        for event in told
    ] == [
        (1, ["document", "date"], []),
        (2, ["document", "date"], []),
    ]
    usage = [event for event in events if event["type"] == "context_usage"][-1]
    sent_messages = model.sent[1]
    count = counter("o200k_base")
    assert usage["parts"]["passed"] == sum(part["tokens"] for part in told[1]["passed"])
    assert usage["total"] == count.messages(sent_messages) + usage["parts"]["tools"]
    named = metadata_of(talk.history()[3]).passed
    assert [(each.source, each.tokens > 10) for each in named] == [
        ("document", True),
        ("date", True),
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_provider_that_fails_or_is_slow_is_left_out_and_said_so(asynchronous: bool) -> None:
    def broken(about: ContextRequest) -> str:
        raise ValueError("password=hunter2")

    async def hangs(about: ContextRequest) -> str:
        await asyncio.sleep(5)
        return "late"

    def sleeps(about: ContextRequest) -> str:
        time.sleep(1)
        return "late"

    def number(about: ContextRequest) -> Any:
        return 7

    made = {
        "broken": broken,
        "hangs": hangs,
        "sleeps": sleeps,
        "number": number,
        "empty": lambda about: " ",
        "good": lambda about: "GOOD",
    }
    providers = [
        ContextProvider(name=name, provide=provide, seconds=0.2) for name, provide in made.items()
    ]
    model = ScriptedModel(say=lambda messages: AIMessage("yes"))
    app = build_graph(model=model, hooks=[*providers]).compile(checkpointer=InMemorySaver())
    started = time.monotonic()
    events = events_of(Conversation(app, "t", context=CONTEXT), "what?", asynchronous=asynchronous)
    assert time.monotonic() - started < 0.9
    (told,) = [event for event in events if event["type"] == "context_passed"]
    assert [part["source"] for part in told["passed"]] == ["good"]
    codes = {reason["message"].partition(":")[0]: reason["code"] for reason in told["left_out"]}
    assert codes == {
        "broken": "provider_failed",
        "hangs": "provider_slow",
        "sleeps": "provider_slow",
        "number": "provider_failed",
    }
    assert "hunter2" not in repr(events)
    assert events[-1]["text"] == "yes"


def test_a_provider_that_goes_on_when_it_is_cancelled_holds_up_no_turn() -> None:
    async def run() -> None:
        ended = asyncio.Event()

        async def stubborn(about: ContextRequest) -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
            await ended.wait()
            return "late"

        model = ScriptedModel(say=lambda messages: AIMessage("yes"))
        providers = [ContextProvider(name="stubborn", provide=stubborn, seconds=0.05)]
        app = build_graph(model=model, hooks=[*providers]).compile(checkpointer=InMemorySaver())
        answer = await asyncio.wait_for(Conversation(app, "t", context=CONTEXT).aask("what?"), 5)
        assert answer.text == "yes"
        assert not any("late" in str(message.text) for message in model.sent[0])
        ended.set()

    asyncio.run(run())


@pytest.mark.parametrize("size", [0, 10, 3_000, 30_000, 1_000_000])
@pytest.mark.parametrize("said", [10, 5_000])
def test_material_never_makes_a_call_larger_than_it_may_be(size: int, said: int) -> None:
    call_config = CallConfig(
        system="You answer.", tool_tokens=100, limit=4_000, encoding="o200k_base"
    )
    messages: list[BaseMessage] = [HumanMessage("w " * (said // 2))]
    call_plan = CallPlan(Thread(messages), call_config)
    view = build_view(call_plan)
    materials = [Material("a", "x y " * (size // 4), 1, 10_000), Material("b", "z " * size, 1, 500)]
    passed, told = with_materials(view, materials, call_plan)
    assert passed.parts.total <= max(call_plan.bound, view.parts.total)
    assert (
        passed.parts.total
        == call_config.counter.messages(passed.messages) + call_config.tool_tokens
    )
    assert passed.messages[-1] is messages[-1]
    assert all(part.tokens <= most for part, most in zip(told, (10_000, 500), strict=True))
    assert sum(part.tokens for part in told) == passed.parts.passed
    if size == 1_000_000 and said == 10:
        assert told[0].shortened
        assert "cut: 1,000,000 characters in all" in passed.messages[1].text


@pytest.mark.parametrize(
    ("name", "more"), [(" ", {}), ("a", {"seconds": 0}), ("a", {"max_tokens": 0}), ("a\nb", {})]
)
def test_a_wrong_provider_is_refused_when_it_is_made(name: str, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="context provider"):
        ContextProvider(name=name, provide=lambda about: "", **more)


def test_two_providers_of_one_name_are_refused() -> None:
    provider = ContextProvider(name="a", provide=lambda about: "")
    with pytest.raises(ConfigError, match="share a name"):
        build_graph(model=ScriptedModel(say=answer), hooks=[provider, provider])
