"""A failed run tells the person one sentence and a code; on a server nothing else leaves it."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import LongtableError, ProviderRateLimitedError, RunFailedError
from longtable.graph import Context, Conversation, build_graph
from tests.support.errors import CLASSES, HOSTILE, INSIDE, SECRETS, SQL, made
from tests.support.models import ScriptedModel, script

CONTEXT = Context(model_limit=8_000, max_message_chars=40)
BUSY = ProviderRateLimitedError("wait", retry_after=7)


def failing(error: Exception) -> ScriptedModel:
    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        raise error

    return ScriptedModel(say=say)


def talk(model: ScriptedModel) -> Conversation:
    return Conversation(
        build_graph(model=model).compile(checkpointer=InMemorySaver()), "t", context=CONTEXT
    )


FAILURES: list[tuple[Exception | None, str, str, str, float | None]] = [
    (BUSY, "现在有多少订单？", "provider_rate_limited", "模型服务繁忙：请在 7 秒后重试。", 7),
    (
        BUSY,
        "How many orders?",
        "provider_rate_limited",
        "The model's provider is busy: try again in 7 s.",
        7,
    ),
    (ValueError(HOSTILE), "How many orders?", "error", "Something went wrong.", None),
    (None, "问" * 41, "message_too_long", "消息有 41 个字符，上限是 40：请缩短。", None),
    (None, "多少\ud800", "invalid_text", "消息含有无效字符。", None),
]


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(("error", "question", "code", "text", "wait"), FAILURES)
def test_who_reads_only_the_stream_reads_the_sentence_once(
    error: Exception | None, question: str, code: str, text: str, wait: float | None, awaited: bool
) -> None:
    conversation, events = talk(failing(error) if error else script("hello")), list[Any]()

    async def read() -> None:
        async for event in conversation.astream(question):
            events.append(event)

    with pytest.raises((LongtableError, ValueError)) as raised:
        (
            asyncio.run(read())
            if awaited
            else events.extend(_each(conversation.stream(question), events))
        )
    assert [event for event in events if event["type"] == "failed"] == [
        {"type": "failed", "code": code, "text": text, "retry_after": wait}
    ]
    assert events[-1]["type"] == "failed"
    assert not isinstance(raised.value, RunFailedError)  # from Python the error itself is raised
    assert not error or raised.value is error


def _each(stream: Any, events: list[Any]) -> list[Any]:
    for event in stream:
        events.append(event)
    return []


def test_a_failure_before_a_run_begins_is_told_likewise() -> None:
    conversation = talk(script("hello"))
    conversation.ask("hello")
    events: list[Any] = []
    conversation.context = conversation.context.replace(owner="ann", language="zh")
    conversation.graph.update_state(
        conversation.config, {"turn": {"number": 1, "owner": "bob"}}, as_node="prepare"
    )
    with pytest.raises(LongtableError):
        _each(conversation.stream(), events)
    assert events == [
        {
            "type": "failed",
            "code": "thread_not_found",
            "text": "没有这个会话。",
            "retry_after": None,
        }
    ]


@pytest.mark.parametrize(
    "error", [*map(made, CLASSES), ValueError(HOSTILE)], ids=lambda error: type(error).__name__
)
def test_what_leaves_a_run_on_a_server_is_the_sentence_and_the_rest_is_in_the_log(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    graph = build_graph(model=failing(error)).compile()
    on_a_server: Any = {"configurable": {"graph_id": "g", "assistant_id": "a"}}
    given: Any = {"messages": [("user", "hello")]}
    with caplog.at_level(logging.WARNING, "longtable.run"), pytest.raises(RunFailedError) as raised:
        graph.invoke(given, on_a_server, context=CONTEXT)
    left = raised.value
    known = error if isinstance(error, LongtableError) else LongtableError()
    # A graph around it may catch it.
    assert isinstance(left, type(error)) or not isinstance(error, LongtableError)
    assert left.dict() == {
        "error": type(error).__name__,
        "message": known.user_text("en"),
        "code": known.code,
    }
    assert not [inside for inside in INSIDE if inside in f"{left} {left!r} {left.__cause__}"]
    assert str(error).split()[-1] in caplog.text
    assert not [secret for secret in SECRETS if secret in caplog.text]
    assert SQL in caplog.text or SQL not in str(error)
