"""Messages that arrive while a turn runs join it before its next model call, in order, each once;
or are the next turn.
"""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore

from longtable.base.errors import (
    ConfigError,
    ContextTooLargeError,
    MessageTooLongError,
    NotPrivateError,
    ThreadNotFoundError,
)
from longtable.base.stored import USAGE
from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.graph.threads import delete_thread
from longtable.memory.messages.marks import kind_of, turn_number
from longtable.nodes.arriving.inbox import Inbox, InboxMessage
from tests.memory.messages.test_rounds import assert_paired
from tests.support import doomed
from tests.support.models import ScriptedModel, call
from tests.support.postgres import store_url
from tests.support.threads import of_type

CONTEXT = Context(model_limit=16_000)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else store_url(request.param, tmp_path)


def echo(messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(
        "answer to " + " and ".join(str(m.text) for m in messages[1:] if m.type == "human")
    )


def asks_tool_once(messages: Sequence[BaseMessage]) -> AIMessage:
    return echo(messages) if any(m.type == "tool" for m in messages) else call("wait")


def waiting_in(store: BaseStore, thread_id: str = "t") -> list[str]:
    return [str(each.message.text) for each in Inbox(store, thread_id).messages()]


@contextmanager
def held(
    url: str, *, in_tool: bool
) -> Iterator[tuple[Any, Conversation, threading.Event, threading.Event]]:
    """Yield a store with a conversation whose turn stops in its tool, or in its only model call,
    till `go_on` is set.
    """
    reached, go_on = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        reached.set()
        go_on.wait(30)
        return "waited"

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        if in_tool:
            return asks_tool_once(messages)
        reached.set()
        go_on.wait(30)
        return echo([messages[0], messages[-1]])

    with open_persistence(url) as kept:
        graph = build_graph(model=ScriptedModel(say=say), tools=[wait]).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        yield kept, Conversation(graph, "t", context=CONTEXT), reached, go_on


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_what_comes_while_a_tool_works_joins_before_the_next_call(url: str) -> None:
    with (
        held(url, in_tool=True) as (kept, conversation, reached, go_on),
        ThreadPoolExecutor(4) as pool,
    ):
        running = pool.submit(lambda: [dict(event) for event in conversation.stream("question")])
        reached.wait(30)
        sent = []
        for n, text in enumerate(["only in March", "and in EUR"]):
            sender = Conversation(conversation.graph, "t", context=CONTEXT, when_busy="steer")
            sent.append(pool.submit(sender.ask, text) if n else pool.submit(sender.steer, text))
            until(lambda count=n + 1: len(waiting_in(kept.store)) == count)  # type: ignore[misc]
        go_on.set()
        events = running.result(30)
        assert [(answer.result(30).status, answer.result().turn) for answer in sent] == [
            ("steered", 1)
        ] * 2
        history = conversation.history()
        assert [m.text for m in history if m.type != "ai"] == [
            "question",
            "waited",
            "only in March",
            "and in EUR",
        ]
        assert history[-1].text == "answer to question and only in March and and in EUR"
        assert [kind_of(m) for m in history if m.type == "human"] == [
            "normal",
            "steered",
            "steered",
        ]
        assert {turn_number(m) for m in history} == {1}
        assert [event["text"] for event in of_type(events, "steered")] == [
            "only in March",
            "and in EUR",
        ]
        assert waiting_in(kept.store) == []
        assert_paired(conversation.view()[1:])


def test_what_comes_after_the_last_call_is_the_senders_own_turn(url: str) -> None:
    with (
        held(url, in_tool=False) as (kept, conversation, reached, go_on),
        ThreadPoolExecutor(2) as pool,
    ):
        running = pool.submit(conversation.ask, "question")
        reached.wait(30)
        late = pool.submit(Conversation(conversation.graph, "t", context=CONTEXT).steer, "late")
        until(lambda: waiting_in(kept.store) == ["late"])
        go_on.set()
        assert running.result(30).text == "answer to question"
        assert (late.result(30).text, late.result().status, late.result().turn) == (
            "answer to late",
            "answered",
            2,
        )
        assert [m.text for m in conversation.history()] == [
            "question",
            "answer to question",
            "late",
            "answer to late",
        ]
        assert waiting_in(kept.store) == []
        assert conversation.ask("next").turn == 3


def test_what_nobody_waits_for_goes_on_in_the_stream_of_who_has_the_thread(url: str) -> None:
    with held(url, in_tool=False) as (kept, conversation, _, go_on):
        go_on.set()
        events = []
        for event in conversation.stream("question"):
            events.append(dict(event))
            if len(events) == 2:
                assert conversation.steer("from within").status == "steered"
                assert (
                    Conversation(conversation.graph, "t", context=CONTEXT)
                    .steer("from elsewhere", wait=False)
                    .status
                    == "steered"
                )
        answers = of_type(events, "answer")
        assert [answer["turn"] for answer in answers] == [1, 2]
        assert [m.text for m in conversation.history() if m.type == "human"] == [
            "question",
            "from within",
            "from elsewhere",
        ]
        assert waiting_in(kept.store) == []


def test_a_free_thread_is_asked_as_ever(url: str) -> None:
    with held(url, in_tool=False) as (_, conversation, _, go_on):
        go_on.set()
        assert conversation.steer("question").text == "answer to question"


def test_async_callers_steer_too(tmp_path: Path) -> None:
    async def run() -> None:
        reached, go_on = asyncio.Event(), asyncio.Event()

        @tool
        async def wait() -> str:
            """Wait."""
            reached.set()
            await go_on.wait()
            return "waited"

        async with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
            graph = build_graph(model=ScriptedModel(say=asks_tool_once), tools=[wait])
            app = graph.compile(checkpointer=kept.checkpointer, store=kept.store)
            running = asyncio.create_task(Conversation(app, "t", context=CONTEXT).aask("question"))
            await reached.wait()
            joining = asyncio.create_task(
                Conversation(app, "t", context=CONTEXT, when_busy="steer").aask("only in March")
            )
            while not await kept.store.asearch(("longtable", "inbox", "t")):
                await asyncio.sleep(0.005)
            go_on.set()
            assert (await joining).status == "steered"
            assert (await running).text == "answer to question and only in March"
            events = []
            async for event in Conversation(app, "t", context=CONTEXT).astream("again"):
                events.append(event["type"])
                if len(events) == 1:
                    assert (
                        await Conversation(app, "t", context=CONTEXT).asteer("from within")
                    ).status == "steered"
            assert "steered" in events
            assert (
                await Conversation(app, "t", context=CONTEXT).asteer("alone")
            ).status == "answered"
            assert len({m.id for m in await Conversation(app, "t").ahistory()}) == 11

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_a_dead_sender_left_stands_before_the_next_question(url: str) -> None:
    with held(url, in_tool=False) as (kept, conversation, _, go_on):
        go_on.set()
        for key in ("2", "1"):
            Inbox(kept.store, "t").post(
                InboxMessage(key, HumanMessage(f"left {key}", id=f"m{key}"))
            )
        conversation.ask("question")
        conversation.ask("next")
        history = conversation.history()
        assert [m.text for m in history if m.type == "human"] == [
            "left 1",
            "left 2",
            "question",
            "next",
        ]
        assert [kind_of(m) for m in history if m.type == "human"] == [
            "steered",
            "steered",
            "normal",
            "normal",
        ]
        Inbox(kept.store, "t").post(InboxMessage("3", HumanMessage("left 3", id="m3")))
        delete_thread(kept, "t")
        # What it took stays.
        assert {item.namespace for item in kept.store.search(("longtable",))} <= {USAGE}


def test_a_message_that_may_not_come_in_is_refused_to_its_sender(url: str) -> None:
    with (
        held(url, in_tool=True) as (kept, conversation, reached, go_on),
        ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(
            Conversation(
                conversation.graph, "t", context=Context(model_limit=16_000, owner="ann")
            ).ask,
            "question",
        )
        reached.wait(30)
        for context, text, error in (
            (Context(model_limit=16_000, owner="bob"), "hello", ThreadNotFoundError),
            (Context(model_limit=16_000, owner="ann"), "x" * 9_000, MessageTooLongError),
            (
                Context(model_limit=2_000, owner="ann", max_message_chars=100_000),
                "word " * 5_000,
                ContextTooLargeError,
            ),
            # The running turn's settings count: its limit is smaller than this sender's, and it
            # shows cells.
            (
                Context(model_limit=90_000, owner="ann", max_message_chars=100_000),
                "word " * 14_000,
                ContextTooLargeError,
            ),
            (Context(model_limit=16_000, owner="ann", privacy="types"), "hello", NotPrivateError),
        ):
            with pytest.raises(error):
                Conversation(conversation.graph, "t", context=context).steer(text)
        assert waiting_in(kept.store) == []
        go_on.set()
        assert running.result(30).status == "answered"


def test_without_a_store_there_is_no_inbox() -> None:
    graph = build_graph(model=ScriptedModel(say=echo)).compile(checkpointer=InMemorySaver())
    with pytest.raises(ConfigError, match="store"):
        Conversation(graph, "t", context=CONTEXT, when_busy="steer").ask("hello")


def test_a_message_of_another_process_joins_once_wherever_the_turn_is_killed(
    tmp_path: Path,
) -> None:
    """The doomed process is steered in its second turn; its heir finishes that turn, or asks the
    next.
    """
    told = 0
    for point in range(16, 40, 4):
        folder = tmp_path / str(point)
        folder.mkdir()
        done = doomed.run(f"sqlite:///{folder}/chat.db", point, "steered")
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
        with open_persistence(f"sqlite:///{folder}/chat.db") as kept:
            conversation = Conversation(
                doomed.graph_on(kept.checkpointer, kept.store), "t", context=doomed.CONTEXT
            )
            if point % 3:
                conversation.resume()
            conversation.ask("question 3")
            texts = [str(m.text) for m in conversation.history() if m.type == "human"]
            accepted = "accepted" in done.stdout or "steered" in texts  # it may die between the two
            assert texts == ["question 1", "question 2", *["steered"] * accepted, "question 3"], (
                point,
                done.stdout,
            )
            told += accepted
            assert waiting_in(kept.store) == []
            assert_paired(conversation.view()[1:])
    assert told >= 4
