"""A turn whose lease was lost, or that a bare run overtook, is queued again: no message is lost or
doubled.
"""

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool

from longtable.base.errors import ProviderUnavailableError, ThreadBusyError
from longtable.graph import Conversation, Database, build_graph, open_persistence
from longtable.graph.running.overtaken import rest_of
from longtable.graph.thread_state import Graph
from longtable.nodes.state import Input
from tests.store.test_locks import wait_until
from tests.support.forked import SERVER
from tests.support.models import ScriptedModel, call
from tests.support.postgres import postgres_server, store_url
from tests.support.writers import CONTEXT, LEASE_SECONDS, Log, graph_on, talk

LEASES = """SELECT pid FROM pg_locks WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = hashtextextended('t', 1)"""
"""The connections that hold the lease of the thread "t"; the guard's transactions have advisory
locks of their own.
"""


class SlowModel:
    """Answers what it is asked; each answer to "slow" waits until `go_on` is set."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, messages: Sequence[BaseMessage]) -> AIMessage:
        text = str(next(m.text for m in reversed(messages) if m.type == "human"))
        if text == "slow":
            self.asked.set()
            assert self.go_on.wait(30)
        return AIMessage(f"answer to {text}")


def graph_over(
    kept: Any, say: Callable[[Sequence[BaseMessage]], AIMessage], **settings: Any
) -> Graph:
    return build_graph(model=ScriptedModel(say=say), **settings).compile(
        checkpointer=kept.checkpointer, store=kept.store
    )


def overtake(url: str, model: SlowModel) -> None:
    """Run a turn of a bare graph on the same thread while the model of another turn waits, and let
    that go on.
    """
    with open_persistence(url) as other:
        assert model.asked.wait(20)
        config: Any = {"configurable": {"thread_id": "t"}}
        graph_over(other, SlowModel()).invoke(
            Input(messages=[HumanMessage("quick")]), config, context=CONTEXT
        )
        model.go_on.set()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_turn_that_a_bare_run_overtook_is_queued_again(
    kind: str, tmp_path: Path, *, asynchronous: bool
) -> None:
    url, model = store_url(kind, tmp_path), SlowModel()

    async def ask() -> str:
        async with open_persistence(url) as kept:
            return (
                await Conversation(graph_over(kept, model), "t", context=CONTEXT).aask("slow")
            ).text

    with open_persistence(url) as kept, ThreadPoolExecutor(1) as pool:
        conversation = Conversation(graph_over(kept, model), "t", context=CONTEXT)
        conversation.ask("before")
        overtaking = pool.submit(overtake, url, model)
        assert (
            asyncio.run(ask()) if asynchronous else conversation.ask("slow").text
        ) == "answer to slow"
        overtaking.result(30)
        texts = [m.text for m in conversation.history()]
        assert texts == [
            "before",
            "answer to before",
            "quick",
            "answer to quick",
            "slow",
            "answer to slow",
        ]
        assert conversation.ask("after").turn == 5


def test_a_turn_that_lost_its_lease_among_tool_calls_is_queued_again_as_a_whole(
    tmp_path: Path,
) -> None:
    url, begun, go_on = store_url("sqlite", tmp_path), threading.Event(), threading.Event()

    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        begun.set()
        assert go_on.wait(20)
        return a + b

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        return (
            AIMessage(f"it is {messages[-1].text}")
            if messages[-1].type == "tool"
            else call("add", a=1, b=2)
        )

    with open_persistence(url) as one, open_persistence(url) as two, ThreadPoolExecutor(1) as pool:
        slow = Conversation(graph_over(one, say, tools=[add]), "t", context=CONTEXT)
        answer = pool.submit(lambda: [dict(event) for event in slow.stream("sum")])
        assert begun.wait(20)
        with sqlite3.connect(tmp_path / "chat.db", isolation_level=None) as connection:
            # As if its process had stood still for longer than the lease.
            connection.execute("DELETE FROM longtable_leases")
        connection.close()
        quick = Conversation(graph_over(two, SlowModel(), tools=[add]), "t", context=CONTEXT)
        assert quick.ask("quick").text == "answer to quick"
        go_on.set()
        events = answer.result(30)
        assert (events[-1]["text"], events[-1]["status"]) == ("it is 3", "answered")
        assert [event["code"] for event in events if event["type"] == "model_retry"] == [
            "thread_busy"
        ]
        assert [m.text for m in quick.history()] == [
            "quick",
            "answer to quick",
            "sum",
            "",
            "3",
            "it is 3",
        ]


def test_a_turn_that_another_process_finished_meanwhile_has_that_answer(tmp_path: Path) -> None:
    url, model, asked = store_url("sqlite", tmp_path), SlowModel(), []

    def other(messages: Sequence[BaseMessage]) -> AIMessage:
        asked.append(messages[-1].text)
        return AIMessage("the other's answer")

    with open_persistence(url) as one, open_persistence(url) as two, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(Conversation(graph_over(one, model), "t", context=CONTEXT).ask, "slow")
        assert model.asked.wait(20)
        with sqlite3.connect(tmp_path / "chat.db", isolation_level=None) as connection:
            connection.execute("DELETE FROM longtable_leases")
        connection.close()
        Conversation(graph_over(two, other), "t", context=CONTEXT).resume()
        model.go_on.set()
        assert answer.result(30).text == "the other's answer"
        assert [m.text for m in Conversation(graph_over(two, other), "t").history()] == [
            "slow",
            "the other's answer",
        ]
        assert asked == ["slow"]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_resumed_turn_that_was_overtaken_is_queued_again(
    tmp_path: Path, *, asynchronous: bool
) -> None:
    url, model, down = store_url("sqlite", tmp_path), SlowModel(), [True]

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].text == "slow" and down and down.pop():
            raise ConnectionError("down")
        return model(messages)

    with open_persistence(url) as kept, ThreadPoolExecutor(1) as pool:
        conversation = Conversation(graph_over(kept, say), "t", context=CONTEXT)
        conversation.ask("before")
        with pytest.raises(ProviderUnavailableError):
            conversation.ask("slow")
        overtaking = pool.submit(overtake, url, model)
        answer = asyncio.run(conversation.aresume()) if asynchronous else conversation.resume()
        overtaking.result(30)
        assert answer.text == "answer to slow"
        texts = [m.text for m in conversation.history()]
        assert texts == [
            "before",
            "answer to before",
            "quick",
            "answer to quick",
            "slow",
            "answer to slow",
        ]
        assert not conversation.pending()


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "asked"])
def test_the_answer_of_an_overtaken_turn_holds_each_query_once_and_none_runs_without_approval(
    tmp_path: Path, *, approved: bool
) -> None:
    url, asked, go_on = store_url("sqlite", tmp_path), threading.Event(), threading.Event()
    with sqlite3.connect(tmp_path / "data.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "human":
            return call("run_sql", sql="SELECT count(*) FROM orders")
        asked.set()
        assert go_on.wait(20)
        return AIMessage("done")

    def overtake() -> None:
        with open_persistence(url) as other:
            assert asked.wait(20)
            config: Any = {"configurable": {"thread_id": "t"}}
            graph_over(other, SlowModel(), database=database).invoke(
                Input(messages=[HumanMessage("quick")]), config, context=CONTEXT
            )
            go_on.set()

    context = CONTEXT.replace(approve_sql="always") if approved else CONTEXT
    with (
        open_persistence(url) as kept,
        Database.open(f"sqlite:///{tmp_path}/data.db") as database,
        ThreadPoolExecutor(1) as pool,
    ):
        conversation = Conversation(graph_over(kept, say, database=database), "t", context=context)
        overtaking = pool.submit(overtake)
        answer = conversation.ask("how many?")
        if approved:
            assert answer.status == "approval_requested"
            answer = conversation.resume([{"type": "approve"}])
            assert (answer.status, answer.queries) == ("approval_requested", [])
            answer = conversation.resume([{"type": "approve"}])
        overtaking.result(30)
        assert (answer.text, answer.status, len(answer.queries)) == ("done", "answered", 1)
        assert [m.text for m in conversation.history() if m.type != "tool"] == [
            "quick",
            "answer to quick",
            "how many?",
            "",
            "done",
        ]
        assert not conversation.pending()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_turn_that_is_resumed_in_place_keeps_the_queries_of_its_first_part(
    tmp_path: Path, *, asynchronous: bool
) -> None:
    with sqlite3.connect(tmp_path / "data.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    graphs: list[Graph] = []

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "human":
            return call("run_sql", sql="SELECT count(*) FROM orders")
        if graphs:  # another program writes to the thread, and leaves the turn where it is
            graphs.pop().update_state(
                {"configurable": {"thread_id": "t"}}, {"edits": []}, as_node="run_tools"
            )
        return AIMessage("done")

    with (
        open_persistence(store_url("sqlite", tmp_path)) as kept,
        Database.open(f"sqlite:///{tmp_path}/data.db") as database,
    ):
        graphs.append(graph_over(kept, say, database=database))
        conversation = Conversation(graphs[0], "t", context=CONTEXT)
        answer = (
            asyncio.run(conversation.aask("how many?"))
            if asynchronous
            else conversation.ask("how many?")
        )
        assert (answer.text, answer.status, len(answer.queries)) == ("done", "answered", 1)
        assert [m.text for m in conversation.history() if m.type != "tool"] == [
            "how many?",
            "",
            "done",
        ]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_compaction_that_was_overtaken_runs_again(tmp_path: Path, *, asynchronous: bool) -> None:
    url, writes = store_url("sqlite", tmp_path), []

    def quick() -> None:
        with open_persistence(url) as other:
            config: Any = {"configurable": {"thread_id": "t"}}
            graph_over(other, SlowModel()).invoke(
                Input(messages=[HumanMessage("quick")]), config, context=CONTEXT
            )

    def summarize(_: Sequence[BaseMessage]) -> AIMessage:
        writes.append(1)
        if len(writes) == 1:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(quick).result(30)
        return AIMessage("a summary")

    with open_persistence(url) as kept:
        graph = graph_over(
            kept, lambda _: AIMessage("fine " * 40), summarizer=ScriptedModel(say=summarize)
        )
        conversation = Conversation(graph, "t", context=CONTEXT)
        for n in range(12):
            conversation.ask(f"question {n} " + "word " * 60)
        assert asyncio.run(conversation.acompact()) if asynchronous else conversation.compact()
        assert len(writes) > 1
        assert conversation.history()[-1].text == "answer to quick"
        assert conversation.ask("after").status == "answered"


def test_a_conversation_that_does_not_queue_is_told_that_it_was_overtaken(tmp_path: Path) -> None:
    model = SlowModel()
    with open_persistence(store_url("sqlite", tmp_path)) as kept, ThreadPoolExecutor(1) as pool:
        graph = graph_over(kept, model)
        answer = pool.submit(
            Conversation(graph, "t", context=CONTEXT, when_busy="reject").ask, "slow"
        )
        assert model.asked.wait(20)
        graph.invoke(
            Input(messages=[HumanMessage("quick")]),
            {"configurable": {"thread_id": "t"}},
            context=CONTEXT,
        )
        model.go_on.set()
        with pytest.raises(ThreadBusyError) as caught:
            answer.result(30)
        assert caught.value.stored


def test_a_cut_lease_connection_is_replaced_before_another_process_takes_the_thread() -> None:
    url, model = store_url("postgres", Path()), SlowModel()
    with open_persistence(url) as one, open_persistence(url) as two, ThreadPoolExecutor(1) as pool:
        slow = Conversation(graph_over(one, model), "t", context=CONTEXT)
        answer = pool.submit(slow.ask, "slow")
        assert model.asked.wait(20)
        for _ in range(3):
            [(pid,)] = postgres_server().run(url, LEASES)
            postgres_server().run(url, f"SELECT pg_terminate_backend({pid}, 5000)")
            wait_until(lambda: [row for row in postgres_server().run(url, LEASES) if row[0] != pid])  # noqa: B023
        with pytest.raises(ThreadBusyError):
            Conversation(
                graph_over(two, SlowModel()), "t", context=CONTEXT, when_busy="reject"
            ).ask("hasty")
        model.go_on.set()
        assert answer.result(30).text == "answer to slow"
        assert [m.text for m in slow.history()] == ["slow", "answer to slow"]
        assert len(postgres_server().run(url, LEASES)) == 0


def ask_slowly(url: str, path: Path, go_on: Path) -> None:
    """Ask "slow", log its call of the model and what became of it; the model waits for a file."""
    log, model = Log(path), SlowModel()

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        log.write("model", "slow")
        wait_until(go_on.exists, 60)
        model.go_on.set()
        return model(messages)

    with open_persistence(url, lease_seconds=LEASE_SECONDS) as kept:
        log.write(
            "answered", Conversation(graph_over(kept, say), "t", context=CONTEXT).ask("slow").text
        )


def test_a_process_that_was_stopped_for_longer_than_its_lease_answers_its_turn_later(
    tmp_path: Path,
) -> None:
    url, log, go_on = (
        store_url("sqlite", tmp_path),
        Log(tmp_path / "stopped.log"),
        tmp_path / "go on",
    )
    process = SERVER.Process(target=ask_slowly, args=(url, log.path, go_on))
    process.start()
    try:
        wait_until(log.lines, 60)
        assert process.pid
        os.kill(process.pid, signal.SIGSTOP)
        with open_persistence(url) as kept:
            conversation = Conversation(graph_over(kept, SlowModel()), "t", context=CONTEXT)
            assert conversation.ask("quick").text == "answer to quick"
            os.kill(process.pid, signal.SIGCONT)
            go_on.touch()
            process.join(60)
            assert process.exitcode == 0
            assert log.lines() == [
                ("model", "slow"),
                ("model", "slow"),
                ("answered", "answer to slow"),
            ]
            assert [m.text for m in conversation.history()] == [
                "quick",
                "answer to quick",
                "slow",
                "answer to slow",
            ]
    finally:
        process.kill()
        process.join()


def test_processes_whose_lease_connections_are_cut_again_and_again_lose_no_turn(
    tmp_path: Path,
) -> None:
    url, names, turns = store_url("postgres", tmp_path), ("a", "b"), 12
    with open_persistence(url) as kept:
        logs = {name: Log(tmp_path / f"{name}.log") for name in names}
        processes = [
            SERVER.Process(target=talk, args=(url, name, range(turns), "queue", logs[name].path))
            for name in names
        ]
        for process in processes:
            process.start()
        try:
            cuts = 0
            while any(process.exitcode is None for process in processes):
                cuts += len(
                    postgres_server().run(
                        url, LEASES.replace("SELECT pid", "SELECT pg_terminate_backend(pid)", 1)
                    )
                )
                time.sleep(0.2)
            outcomes = {
                text: what
                for log in logs.values()
                for what, text in log.lines()
                if what not in {"asked", "model"}
            }
            asked = [f"{name}-{n}" for name in names for n in range(turns)]
            assert outcomes == {**dict.fromkeys(asked, "done"), **dict.fromkeys(names, "finished")}
            texts = [
                str(m.text)
                for m in Conversation(
                    graph_on(kept.checkpointer, kept.store, Log(tmp_path / "x")), "t"
                ).history()
            ]
            assert texts[1::2] == [f"answer to {text}" for text in texts[::2]]
            assert sorted(texts[::2]) == sorted(asked)
            assert cuts >= 3
        finally:
            for process in processes:
                process.kill()
                process.join()


@pytest.mark.parametrize(("said", "status"), [("answer", "answered"), ("", "empty_answer")])
def test_a_turn_that_was_answered_before_others_came_ends_as_its_answer_says(
    said: str, status: str
) -> None:
    with open_persistence("memory://") as kept:
        graph = graph_over(kept, lambda messages: AIMessage(said))
    conversation = Conversation(graph, "t", context=CONTEXT)
    conversation.ask("slow")
    conversation.ask("quick")
    state = graph.get_state({"configurable": {"thread_id": "t"}})
    rest = rest_of(conversation.history()[:1], state, ThreadBusyError("t"))
    assert rest.answer is not None
    assert (rest.answer["status"], rest.answer["turn"]) == (status, 1)
