"""The audit: every query of a model, however it ended, beside its thread and its owner's alone."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from longtable.base.errors import ThreadNotFoundError
from longtable.graph import (
    ConfigError,
    Context,
    Conversation,
    Database,
    Limits,
    build_graph,
    delete_thread,
    open_persistence,
)
from longtable.graph.reports import aaudit_of_threads, audit_of_threads
from longtable.tools.check_tool import check_tool
from longtable.tools.engines.base import QueryLimits
from longtable.tools.results.result_store import ResultStore
from longtable.tools.sql.verdict import CostThresholds
from longtable.tools.worker_backend import WorkerBackend
from longtable.tools.workers.supervisor import SUPERVISOR
from tests.support.models import ScriptedModel, call, script
from tests.support.postgres import postgres_server

CONTEXT = Context(model_limit=16_000)
SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE teas (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        connection.executemany(
            "INSERT INTO teas (name, price) VALUES (?, ?)", [(f"茶 {n}", n / 4) for n in range(9)]
        )
    connection.close()
    return path


def talk(
    shop: Path,
    model: ScriptedModel,
    *,
    saver: Any = None,
    store: Any = None,
    context: Context = CONTEXT,
) -> Conversation:
    database = Database.open(f"sqlite:///{shop}", limits=QueryLimits(seconds=5))
    graph = build_graph(model=model, database=database)
    return Conversation(
        graph.compile(checkpointer=saver or InMemorySaver(), store=store or InMemoryStore()),
        "t",
        context=context,
    )


ASKED = (
    call("run_sql", sql="SELECT name FROM teas -- all\n WHERE price > 1"),
    call("run_sql", sql="DELETE FROM teas"),
    call("run_sql", sql="SELECT name / FROM teas"),
    call("run_sql", sql="SELECT abs(-9223372036854775808), name FROM teas"),
    call("list_tables"),
)


def shown(conversation: Conversation) -> list[tuple[Any, ...]]:
    return [
        (e.turn, e.verdict, e.rule, e.rows, e.tables, e.columns, e.runs)
        for e in conversation.audit()
    ]


EXPECTED = [
    (1, "run", "", 4, ("teas",), ("teas.name", "teas.price"), 1),
    (1, "refused", "statement", None, (), (), 1),
    (1, "refused", "syntax", None, (), (), 1),
    (1, "failed", "query_failed", None, ("teas",), ("teas.name",), 1),
]


@pytest.mark.parametrize("kept", ["sqlite", "postgres"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_query_is_written_down_however_it_ended(
    shop: Path, tmp_path: Path, kept: str, asynchronous: bool
) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}" if kept == "sqlite" else postgres_server().create()

    async def arun() -> None:
        async with open_persistence(url) as p:
            await talk(shop, script(*ASKED, "There."), saver=p.checkpointer, store=p.store).aask(
                "which?"
            )

    if asynchronous:
        asyncio.run(arun())
    with open_persistence(url) as p:
        conversation = talk(shop, script(*ASKED, "There."), saver=p.checkpointer, store=p.store)
        if not asynchronous:
            conversation.ask("which?")
        assert shown(conversation) == EXPECTED
        first, second, *_ = conversation.audit()
        assert (first.asked, first.ran) == (
            "SELECT name FROM teas -- all\n WHERE price > 1",
            "SELECT name FROM teas WHERE price > 1",
        )
        assert (second.asked, second.ran) == ("DELETE FROM teas", "")
        assert list(pd.DataFrame(conversation.audit())["verdict"]) == [
            "run",
            "refused",
            "refused",
            "failed",
        ]
        conversation.delete()
        assert p.store.search(("longtable", "audit"), limit=10) == []


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("stopped", [signal.SIGKILL, signal.SIGSTOP])
def test_a_text_that_cost_a_worker_is_not_parsed_again(shop: Path, stopped: signal.Signals) -> None:
    database = Database.open(
        f"sqlite:///{shop}", limits=QueryLimits(seconds=1), isolation="process"
    )
    assert isinstance(database.backend, WorkerBackend)
    client = database.backend.workers.client
    sql = SLOW.replace("SELECT 1 UNION", "SELECT id FROM teas UNION")
    graph = build_graph(model=script(call("run_sql", sql=sql), "There."), database=database)
    conversation = Conversation(
        graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore()), "t", context=CONTEXT
    )
    database.catalog()
    for event in conversation.stream("how many?"):
        if event["type"] == "query_started":
            until = time.monotonic() + 5
            while (
                not (
                    busy := [
                        one for one in SUPERVISOR.workers_of(client) if one.busy and one.opened
                    ]
                )
                and time.monotonic() < until
            ):
                time.sleep(0.01)
            time.sleep(0.3)  # it has the query by then: one that never came is given to another
            os.kill(busy[0].process.pid, stopped)
    [entry] = conversation.audit()
    assert (entry.verdict, entry.tables, entry.ran) == ("failed", (), "")
    database.close()


def test_a_cancelled_query_is_written_down_as_cancelled(shop: Path, tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as p:
            conversation = talk(
                shop,
                script(call("run_sql", sql=SLOW), "There."),
                saver=p.checkpointer,
                store=p.store,
            )
            started = asyncio.Event()

            async def turn() -> None:
                async for event in conversation.astream("how many?"):
                    if event["type"] == "query_started":
                        started.set()

            task = asyncio.create_task(turn())
            await asyncio.wait_for(started.wait(), 30)
            [before] = await conversation.aaudit()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            [after] = await conversation.aaudit()
            assert await aaudit_of_threads(p) == [("t", after)]
            return [before.verdict, after.verdict, after.ran]

    before, after, ran = asyncio.run(run())
    assert (before, after) == ("running", "cancelled")
    assert ran.startswith("WITH RECURSIVE n")


class Dying(ScriptedModel):
    """Fails once at its second call."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if len(self.sent) == 1:
            self.sent.append(list(messages))
            raise RuntimeError("gone")
        return super()._generate(messages, *args, **kwargs)

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if len(self.sent) == 1:
            self.sent.append(list(messages))
            raise RuntimeError("gone")
        return super()._stream(messages, *args, **kwargs)


def test_a_resumed_turn_has_its_query_once_and_a_replayed_one_counts_its_runs(shop: Path) -> None:
    answers = iter(
        [call("run_sql", sql="SELECT count(*) FROM teas"), AIMessage("Nine."), AIMessage("Nine.")]
    )
    conversation = talk(shop, Dying(say=lambda _: next(answers).model_copy(deep=True)))
    with pytest.raises(RuntimeError, match="gone"):
        conversation.ask("how many?")
    conversation.resume()
    assert shown(conversation) == [(1, "run", "", 1, ("teas",), (), 1)]
    before = next(
        s
        for s in conversation.graph.get_state_history(conversation.config)
        if s.next == ("run_tools",)
    )
    conversation.graph.invoke(None, before.config, context=CONTEXT)
    assert shown(conversation) == [(1, "run", "", 1, ("teas",), (), 2)]


class Failing(InMemoryStore):
    """Takes no audit."""

    def batch(self, ops: Any) -> Any:
        if any("audit" in getattr(op, "namespace", ()) for op in ops):
            raise OSError(28, "No space left on device")
        return super().batch(ops)


def test_a_store_that_fails_costs_no_answer_and_is_said(shop: Path) -> None:
    conversation = talk(shop, script(call("run_sql", sql="SELECT 1"), "One."), store=Failing())
    events = list(conversation.stream("one?"))
    assert [event for event in events if event["type"] == "audit_failed"] == [
        {"type": "audit_failed", "calls": 1, "failure": "OSError"}
    ]
    assert events[-1]["type"] == "answer"
    assert events[-1]["text"] == "One."


def test_no_owner_sees_the_sql_of_another(shop: Path, tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as p:
        ann = CONTEXT.replace(owner="ann")
        model = script(call("run_sql", sql="SELECT 'of ann'"), "There.")
        mine = talk(shop, model, saver=p.checkpointer, store=p.store, context=ann)
        mine.ask("mine?")
        with pytest.raises(ThreadNotFoundError):
            talk(
                shop,
                model,
                saver=p.checkpointer,
                store=p.store,
                context=CONTEXT.replace(owner="bob"),
            ).audit()
        assert audit_of_threads(p, owner="bob") == audit_of_threads(p) == []
        assert [entry.asked for _, entry in audit_of_threads(p, owner="ann")] == ["SELECT 'of ann'"]
        assert len(audit_of_threads(p, all_owners=True)) == 1
        delete_thread(p, "t", owner="ann")
        again = talk(shop, script("Hi."), saver=p.checkpointer, store=p.store)
        again.ask("anew")
        assert again.audit() == []


def test_without_a_store_it_says_what_is_missing(shop: Path) -> None:
    graph = build_graph(
        model=script(call("run_sql", sql="SELECT 1"), "One."),
        database=Database.open(f"sqlite:///{shop}"),
    )
    conversation = Conversation(graph.compile(checkpointer=InMemorySaver()), "t", context=CONTEXT)
    assert conversation.ask("one?").text == "One."
    with pytest.raises(ConfigError, match="in a store"):
        conversation.audit()


def test_sql_that_no_store_takes_as_it_is_is_written_all_the_same(shop: Path) -> None:
    sql = "SELECT '\x00 \ud83d' " + "x" * 60_000
    with open_persistence(postgres_server().create()) as p:
        conversation = talk(
            shop, script(call("run_sql", sql=sql), "No."), saver=p.checkpointer, store=p.store
        )
        conversation.ask("odd?")
        [entry] = conversation.audit()
    assert (entry.verdict, entry.rule, len(entry.asked)) == ("refused", "length", 50_000)


@tool
def confirm(what: str) -> str:
    """Ask the person."""
    return f"{what}: {interrupt(what)}"


@pytest.mark.parametrize(
    ("sql", "verdict", "ran", "tables"),
    [
        ("DELETE FROM teas", "refused", "", ()),
        ("SELECT json(name) FROM teas", "failed", "SELECT JSON(name) FROM teas", ("teas",)),
    ],
)
def test_of_a_query_that_a_person_changed_the_audit_tells_theirs_however_it_ends(
    shop: Path, sql: str, verdict: str, ran: str, tables: tuple[str, ...]
) -> None:
    model = script(call("run_sql", sql="SELECT count(*) FROM teas a, teas b"), "done")
    with Database.open(f"sqlite:///{shop}") as database:
        graph = build_graph(
            model=model, database=database, limits=Limits(cost=CostThresholds(pairs=10))
        )
        conversation = Conversation(
            graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore()), "t", context=CONTEXT
        )
        conversation.ask("all")
        conversation.resume(
            [{"type": "edit", "edited_action": {"name": "run_sql", "args": {"sql": sql}}}]
        )
        [entry] = conversation.audit()
    assert (entry.verdict, entry.asked, entry.edited) == (
        verdict,
        "SELECT count(*) FROM teas a, teas b",
        sql,
    )
    assert (entry.ran, entry.tables) == (ran, tables)


def test_what_waits_for_a_person_and_what_they_decide_is_written_down(shop: Path) -> None:
    pairs = "SELECT count(*) FROM teas a, teas b"
    asked = [
        {"name": "run_sql", "args": {"sql": sql}, "id": f"c{n}"}
        for n, sql in enumerate([pairs, "SELECT 1", pairs, pairs])
    ]
    sure = [{"name": "confirm", "args": {"what": what}, "id": f"d{what}"} for what in "ab"]
    beside = [*sure, {"name": "run_sql", "args": {"sql": "SELECT 2"}, "id": "d2"}]
    model = script(AIMessage("", tool_calls=asked), AIMessage("", tool_calls=beside), "done")
    with Database.open(f"sqlite:///{shop}") as database:
        graph = build_graph(
            model=model,
            database=database,
            tools=[confirm],
            limits=Limits(cost=CostThresholds(pairs=10)),
        )
        conversation = Conversation(
            graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore()), "t", context=CONTEXT
        )
        assert conversation.ask("all").status == "approval_requested"
        assert [entry.verdict for entry in conversation.audit()] == ["waiting"] * 3
        edited = {"type": "edit", "edited_action": {"name": "run_sql", "args": {"sql": "SELECT 3"}}}
        conversation.resume([{"type": "approve"}, {"type": "reject", "message": "no"}, edited])
        assert [
            entry.edited for entry in sorted(conversation.audit(), key=lambda entry: entry.key)
        ][:4] == ["", "", "", "SELECT 3"]
        first = [
            (entry.key.partition(":")[2], entry.verdict, entry.asked, entry.ran, entry.runs)
            for entry in conversation.audit()
        ][:4]
        ran = "SELECT COUNT(*) FROM teas AS a CROSS JOIN teas AS b"
        assert sorted(first) == [
            ("0", "run", pairs, ran, 1),
            ("1", "run", "SELECT 1", "SELECT 1", 1),
            ("2", "rejected", pairs, "", 1),
            ("3", "run", pairs, "SELECT 3", 1),
        ]
        while state := conversation.graph.get_state(conversation.config).interrupts:
            conversation.graph.invoke(
                Command(resume={state[0].id: "yes"}), conversation.config, context=CONTEXT
            )
        assert [(entry.verdict, entry.ran, entry.runs) for entry in conversation.audit()][4:] == [
            ("run", "SELECT 2", 1)
        ]


def test_a_check_is_asked_for_like_a_query_and_each_of_its_queries_is_written_down(
    shop: Path, tmp_path: Path
) -> None:
    with Database.open(f"sqlite:///{shop}") as database:
        results = ResultStore(tmp_path / "results", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        model = script(
            call("run_sql", sql="SELECT count(price) FROM teas WHERE name <> '茶 1'"),
            call("check_sql", result="r1", question="How many teas are there but one?"),
            call("check_sql", sql="SELECT avg(price) FROM teas"),
            "There.",
        )
        graph = build_graph(
            model=model, database=database, tools=[check_tool(database)], results=results
        )
        app = graph.compile(InMemorySaver(), store=InMemoryStore())
        conversation = Conversation(app, "t", context=CONTEXT.replace(approve_sql="always"))
        assert conversation.ask("how many?").status == "approval_requested"
        assert conversation.resume([{"type": "approve"}]).status == "approval_requested"
        conversation.resume([{"type": "reject", "message": "no"}])
        entries = conversation.audit()
        assert [(e.tool, e.verdict, e.asked) for e in entries if e.verdict == "rejected"] == [
            ("check_sql", "rejected", "SELECT avg(price) FROM teas"),
        ]
        of_check = [e for e in entries if e.tool == "check_sql" and e.verdict == "run"]
        assert (of_check[0].asked, [e.tables for e in of_check]) == ("r1", [("teas",)] * 4)
        assert all("IS NULL" in e.ran for e in of_check[1:])
        [answer] = [m for m in conversation.history() if m.type == "tool" and "look_at" in m.text]
        assert json.loads(answer.text)["ok"][0] == "run again, it gives the same rows"
