"""A turn ends with its answer: a summary made ahead goes on in the background, and is whole or not
there at all.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from longtable.graph import Conversation, MemoryTools, build_graph, open_persistence
from longtable.store.locks import locks_of
from longtable.store.persistence import Persistence
from tests.support.asker import CONTEXT, QUESTION
from tests.support.model_server import (
    ChatRequest,
    ModelServer,
    Reply,
    answer_or_summary,
    open_model_server,
)

ROOT = Path(__file__).parents[2]
SECONDS = 30.0


class HeldServer:
    """A model server that answers at once and holds each summary until `release` is set."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.asked, self.release = threading.Event(), threading.Event()
        server.always(self._step)

    def _step(self, request: ChatRequest) -> Reply:
        if request.is_for_summary:
            self.asked.set()
            assert self.release.wait(SECONDS)
        return answer_or_summary(request, answer="word " * 80)

    @property
    def turns(self) -> list[ChatRequest]:
        """The requests of turns."""
        return [request for request in self.server.requests if not request.is_for_summary]

    @property
    def summaries(self) -> int:
        """How many summaries were asked for."""
        return len(self.server.requests) - len(self.turns)


@pytest.fixture
def held() -> Iterator[HeldServer]:
    with open_model_server() as server:
        held = HeldServer(server)
        yield held
        held.release.set()  # or the server would wait for it


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'threads.db'}"


def conversation(held: HeldServer, kept: Persistence | None = None, **more: Any) -> Conversation:
    saver, store = (kept.checkpointer, kept.store) if kept else (InMemorySaver(), None)
    graph = build_graph(
        model=held.server.chat_model(), memory_tools=MemoryTools(recall=False)
    ).compile(checkpointer=saver, store=store)
    return Conversation(graph, "t", context=CONTEXT, **more)


def ask_until_summary(talk: Conversation, held: HeldServer) -> int:
    """Ask until an answer is followed by a summary; return the next question's number."""
    for n in range(20):
        start = time.monotonic()
        assert talk.ask(QUESTION.format(n=n)).status == "answered"
        assert time.monotonic() - start < SECONDS / 2  # it did not wait for what is held
        if next_step(talk) == ("prepare",):
            assert held.asked.wait(SECONDS)
            return n + 1
    raise AssertionError("no summary was asked for")


def next_step(talk: Conversation) -> tuple[str, ...]:
    return talk.graph.get_state(talk.config).next


def compactions(talk: Conversation) -> int:
    return len(talk.graph.get_state(talk.config).values["compactions"])


def has_memory(request: ChatRequest) -> bool:
    return "the user asked for words" in str(request.messages[0]["content"])


@contextmanager
def asking(url: str, held: HeldServer, *numbers: int) -> Iterator["subprocess.Popen[str]"]:
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.support.asker",
        url,
        held.server.base_url,
        *map(str, numbers),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_answer_does_not_wait_for_the_summary_and_the_next_turn_does(held: HeldServer) -> None:
    talk = conversation(held)
    n = ask_until_summary(talk, held)
    assert compactions(talk) == 0
    with ThreadPoolExecutor() as pool:
        following = pool.submit(lambda: list(talk.stream(QUESTION.format(n=n))))
        time.sleep(0.3)
        assert len(held.turns) == n  # the next turn has asked nothing yet
        held.release.set()
        events = following.result(SECONDS)
    assert events[0]["type"] == "context_compressed"
    assert events[0]["ahead"]
    assert has_memory(held.turns[n])
    assert held.summaries == compactions(talk) >= 1
    assert [message.text for message in talk.history() if message.type == "human"] == [
        QUESTION.format(n=each) for each in range(n + 1)
    ]


def test_what_is_made_after_an_answer_overtakes_no_run_of_the_bare_graph(
    held: HeldServer, url: str
) -> None:
    asked, answer = threading.Event(), threading.Event()
    with open_persistence(url) as kept, ThreadPoolExecutor() as pool:
        talk = conversation(held, kept)
        n = ask_until_summary(talk, held)

        def step(request: ChatRequest) -> Reply:
            if "A bare run" in str(request.messages[-1]["content"]):
                asked.set()
                assert answer.wait(SECONDS)
            return held._step(request)

        held.server.always(step)
        given: Any = {"messages": [HumanMessage("A bare run")]}
        bare = pool.submit(lambda: talk.graph.invoke(given, talk.config, context=CONTEXT))
        assert asked.wait(SECONDS)
        job = locks_of(kept.checkpointer).jobs.get("t")
        assert job is not None
        held.release.set()
        assert job.done.wait(SECONDS)
        answer.set()
        assert bare.result(SECONDS)["turn"]["status"] == "answered"
        assert [message.type for message in talk.history()] == ["human", "ai"] * (n + 1)


def test_who_takes_no_busy_thread_waits_for_the_summary_alone(held: HeldServer) -> None:
    talk = conversation(held, when_busy="reject")
    n = ask_until_summary(talk, held)
    with ThreadPoolExecutor() as pool:
        following = pool.submit(talk.ask, QUESTION.format(n=n))
        time.sleep(0.3)
        held.release.set()
        assert following.result(SECONDS).status == "answered"
    assert has_memory(held.turns[n])


def test_awaited_answers_do_not_wait_for_the_summary_and_leave_no_work_on_the_loop(
    held: HeldServer, url: str
) -> None:
    async def run(kept: Persistence) -> int:
        talk = conversation(held, kept)
        for n in range(20):
            await talk.aask(QUESTION.format(n=n))
            if next_step(talk) == ("prepare",):
                return n + 1
        raise AssertionError("no summary was asked for")

    with open_persistence(url) as kept:
        n = asyncio.run(run(kept))
        assert held.asked.wait(SECONDS)
        held.release.set()
        assert asyncio.run(conversation(held, kept).aask(QUESTION.format(n=n))).status == "answered"
        assert compactions(conversation(held, kept)) >= 1


def test_a_store_that_is_closed_drops_the_summary_after_two_seconds(
    held: HeldServer, url: str
) -> None:
    with open_persistence(url) as kept:
        talk = conversation(held, kept)
        n = ask_until_summary(talk, held)
        job = locks_of(kept.checkpointer).jobs.get("t")
        assert job is not None
        start = time.monotonic()
    assert 1.5 < time.monotonic() - start < 4
    held.release.set()
    assert job.done.wait(SECONDS)
    with open_persistence(url) as kept:
        talk = conversation(held, kept)
        assert compactions(talk) == 0
        assert len(talk.history()) == 2 * n
        assert talk.ask(QUESTION.format(n=n)).status == "answered"
        assert len(talk.history()) == 2 * n + 2


def test_a_store_that_is_closed_waits_for_a_summary_that_is_nearly_there(
    held: HeldServer, url: str
) -> None:
    with open_persistence(url) as kept:
        ask_until_summary(conversation(held, kept), held)
        threading.Timer(0.5, held.release.set).start()
    with open_persistence(url) as kept:
        assert compactions(conversation(held, kept)) >= 1


@pytest.mark.parametrize("closed", [True, False])
def test_a_process_ends_within_seconds_of_its_last_answer(
    held: HeldServer, url: str, *, closed: bool
) -> None:
    with asking(url if closed else "none", held, 0) as process:
        assert held.asked.wait(SECONDS)
        start = time.monotonic()
        out, err = process.communicate(timeout=SECONDS)
        # Far less where the machine is idle; the summary is held for longer.
        assert 1 < time.monotonic() - start < SECONDS / 2
    assert (out.split()[-1], err, process.returncode) == ("closed", "", 0)


def test_a_killed_process_loses_nothing_and_another_goes_on(held: HeldServer, url: str) -> None:
    with asking(url, held, 0) as process:
        assert held.asked.wait(SECONDS)
        process.kill()
        out, _ = process.communicate(timeout=SECONDS)
    assert "closed" not in out
    answered = len(held.turns)
    held.release.set()
    with open_persistence(url) as kept:
        talk = conversation(held, kept)
        assert len(talk.history()) == 2 * answered
        assert not talk.pending()
        for n in range(answered, answered + 4):
            assert talk.ask(QUESTION.format(n=n)).status == "answered"
        assert len(talk.history()) == 2 * answered + 8
    with open_persistence(url) as kept:
        assert compactions(conversation(held, kept)) >= 1


def test_a_turn_in_another_process_waits_for_the_summary_and_sees_it(
    held: HeldServer, url: str
) -> None:
    with open_persistence(url, lease_seconds=1) as kept:
        talk = conversation(held, kept)
        n = ask_until_summary(talk, held)
        with asking(url, held, n, n) as process:
            time.sleep(2.5)  # it has started by now
            assert len(held.turns) == n
            held.release.set()
            out, err = process.communicate(timeout=SECONDS)
        assert out.split() == ["answered", str(n), "closed"], err
        assert has_memory(held.turns[n])
        assert len(talk.history()) == 2 * n + 2


def test_in_a_bare_graph_and_over_a_saver_of_an_event_loop_it_stays_in_the_run(
    held: HeldServer, tmp_path: Path
) -> None:
    held.release.set()
    talk = conversation(held)
    for n in range(12):
        given: Any = {"messages": [HumanMessage(QUESTION.format(n=n))]}
        talk.graph.invoke(given, talk.config, context=CONTEXT)
        assert next_step(talk) == ()
    assert compactions(talk) >= 1

    async def run() -> int:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "loop.db")) as saver:
            graph = build_graph(
                model=held.server.chat_model(), memory_tools=MemoryTools(recall=False)
            ).compile(checkpointer=saver)
            on_loop = Conversation(graph, "t", context=CONTEXT)
            for n in range(12):
                await on_loop.aask(QUESTION.format(n=n))
            state = await graph.aget_state(on_loop.config)
            assert state.next == ()
            return len(state.values["compactions"])

    assert asyncio.run(run()) >= 1
