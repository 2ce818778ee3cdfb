"""Threads in PostgreSQL: guard, turns and leases on a real server."""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Connection, OperationalError, errors
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from longtable.base.errors import ConfigError, PersistenceError, ThreadBusyError
from longtable.graph import (
    Conversation,
    Persistence,
    build_graph,
    list_threads,
    open_persistence,
)
from longtable.graph.listing.thread_list import alist_threads
from longtable.store.heads import Expected, Head, HeadMovedError, Key, retry_once
from longtable.store.postgres.advisory_leases import AdvisoryLease
from longtable.store.postgres.postgres_heads import PostgresHeads
from longtable.store.postgres.store_connections import StoreOutage
from longtable.store.saver_guard import GuardedSaver
from tests.store.test_locks import is_refused, paired, wait_until
from tests.store.test_saver_guard import CONFIG, CONTEXT, TIMES, Outcome, graph_over, said, texts
from tests.support.forked import SERVER
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server


@pytest.fixture
def url() -> str:
    return postgres_server().create()


def test_a_thread_goes_on_after_it_was_closed_sync_and_async(url: str) -> None:
    with open_persistence(url) as kept:
        assert (
            Conversation(graph_over(kept.checkpointer), "t", context=CONTEXT).ask("one").turn == 1
        )

    async def run() -> list[str]:
        async with open_persistence(url) as kept:
            graph = graph_over(kept.checkpointer)
            await Conversation(graph, "t", context=CONTEXT).aask("two")
            assert await alist_threads(kept) == []  # this graph has no store
            return [m.text for m in await Conversation(graph, "t").ahistory()]

    assert asyncio.run(run()) == ["one", "answer to one", "two", "answer to two"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_of_runs_at_once_each_is_kept_or_told(url: str, durability: Any) -> None:
    with open_persistence(url) as kept:
        graph = graph_over(kept.checkpointer)

        def run(text: str) -> tuple[str, Outcome]:
            try:
                graph.invoke(said(text), CONFIG, context=CONTEXT, durability=durability)
            except ThreadBusyError as error:
                return text, error.stored
            return text, "done"

        with ThreadPoolExecutor(4) as pool:
            told = dict(pool.map(run, [f"m{n}" for n in range(16)]))
        there = texts(graph)
        for text, outcome in told.items():
            assert there.count(text) in TIMES[outcome], (text, outcome)
            assert there.count(f"answer to {text}") >= (outcome == "done"), (text, outcome)
        assert set(told.values()) > {"done"}


def test_async_runs_at_once_are_each_kept_or_told(url: str) -> None:
    async def run() -> None:
        async with open_persistence(url) as kept:
            graph = graph_over(kept.checkpointer)

            async def one(text: str) -> tuple[str, Outcome]:
                try:
                    await graph.ainvoke(said(text), CONFIG, context=CONTEXT, durability="sync")
                except ThreadBusyError as error:
                    return text, error.stored
                return text, "done"

            told = dict(await asyncio.gather(*(one(f"m{n}") for n in range(8))))
            there = [m.text for m in (await graph.aget_state(CONFIG)).values["messages"]]
            for text, outcome in told.items():
                assert there.count(text) in TIMES[outcome], (text, outcome)
            assert False in told.values()

    asyncio.run(run())


def test_forks_are_let_through(url: str) -> None:
    with open_persistence(url) as kept:
        graph = graph_over(kept.checkpointer)
        for text in ("one", "two"):
            graph.invoke(said(text), CONFIG, context=CONTEXT)
        rest = next(
            state
            for state in graph.get_state_history(CONFIG)
            if not state.next and len(state.values["messages"]) == 2
        )
        graph.invoke(said("other"), rest.config, context=CONTEXT)
        assert texts(graph) == ["one", "answer to one", "other", "answer to other"]


def test_workers_on_one_database_take_turns(url: str) -> None:
    asked = [f"m{n}" for n in range(12)]
    with open_persistence(url) as one, open_persistence(url) as two:
        graphs = [graph_over(kept.checkpointer) for kept in (one, two)]
        with ThreadPoolExecutor(4) as pool:
            list(
                pool.map(
                    lambda n: Conversation(graphs[n % 2], "t", context=CONTEXT).ask(asked[n]),
                    range(12),
                )
            )
        assert paired([m.text for m in Conversation(graphs[0], "t").history()], asked)
        first = Conversation(graphs[0], "t", context=CONTEXT).stream("first")
        next(first)
        with pytest.raises(ThreadBusyError):
            Conversation(graphs[1], "t", context=CONTEXT, when_busy="reject").ask("second")
        list(first)
        assert list_threads(one) == []


def hold(url: str, thread_id: str, path: Path) -> None:
    """Take a thread's lease, say so in a file, and keep it."""
    assert AdvisoryLease(url).take(thread_id)
    path.touch()
    time.sleep(60)


def test_a_process_that_is_gone_holds_nothing(url: str, tmp_path: Path) -> None:
    heir, taken = AdvisoryLease(url), tmp_path / "taken"
    process = SERVER.Process(target=hold, args=(url, "t", taken))
    process.start()
    wait_until(taken.exists)
    assert not heir.take("t")
    process.kill()
    process.join()
    wait_until(lambda: heir.take("t"))
    heir.release("t")
    heir.close()


def test_a_lease_whose_connection_broke_is_taken_again_or_left_to_who_has_it(url: str) -> None:
    mine, other = AdvisoryLease(url), AdvisoryLease(url)
    assert mine.take("t")
    assert not other.take("t")
    cut = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
    with mine.lock:  # so that it sees the break later than the other
        postgres_server().run(url, cut)
        wait_until(lambda: other.take("t"))
    time.sleep(0.1)
    assert not mine.take("t")
    other.release("t")
    wait_until(lambda: is_refused(other))
    mine.release("t")
    assert other.take("t")
    other.release("t")
    assert postgres_server().run(url, "SELECT pid FROM pg_locks WHERE locktype = 'advisory'") == []
    mine.close()
    other.close()


def test_a_connection_of_ones_own_is_guarded_too(url: str) -> None:
    with Connection[DictRow].connect(
        url, autocommit=True, prepare_threshold=0, row_factory=dict_row
    ) as connection:
        saver = GuardedSaver(PostgresSaver(connection))
        saver.setup()
        graph = graph_over(saver)
        slow = graph.stream(
            said("slow"), CONFIG, context=CONTEXT, stream_mode="updates", durability="sync"
        )
        next(slow)
        graph.invoke(said("quick"), CONFIG, context=CONTEXT)
        with pytest.raises(ThreadBusyError):
            list(slow)
        assert texts(graph) == ["slow", "quick", "answer to quick"]
        saver.delete_thread("t")
        assert saver.heads.writer(("t", "")) is None


def test_it_conforms_to_what_langgraph_expects_of_a_saver() -> None:
    @checkpointer_test(name="postgres")
    async def make() -> Any:
        async with open_persistence(postgres_server().create()) as kept:
            yield kept.checkpointer

    base = {"put", "put_writes", "get_tuple", "list", "delete_thread"}
    report = asyncio.run(validate(make, capabilities=base))
    assert {
        name: result.failures for name, result in report.results.items() if result.failures
    } == {}
    assert {name for name, result in report.results.items() if result.passed} == base


def test_a_server_that_is_not_there_is_said_without_the_password() -> None:
    with (
        pytest.raises(PersistenceError, match="PostgreSQL") as caught,
        open_persistence("postgresql://user:secret@127.0.0.1:1/nothing"),
    ):
        pass
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError):
        open_persistence("postgresql://")


def restarting() -> ScriptedModel:
    """Return a model that restarts the server before it answers "restart"."""

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].text == "restart":
            time.sleep(0.3)  # as any model takes: what the step before wrote is done
            postgres_server().restart()
        return AIMessage(f"answer to {messages[-1].text}")

    return ScriptedModel(say=say)


AWAY = "the conversation store's server cannot be reached; it is tried again"
BACK = "the conversation store's server can be reached again"


def test_a_server_that_is_restarted_in_mid_turn_costs_no_turn(url: str) -> None:
    with open_persistence(url) as kept:
        graph = build_graph(model=restarting()).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        with ThreadPoolExecutor(4) as pool:  # as many connections as will be found dead
            list(
                pool.map(
                    lambda n: Conversation(graph, f"t{n}", context=CONTEXT).ask("one"), range(4)
                )
            )
        conversation = Conversation(graph, "t0", context=CONTEXT)
        for text in ("restart", "after"):
            assert conversation.ask(text).text == f"answer to {text}"
        with ThreadPoolExecutor(4) as pool:
            told = list(
                pool.map(
                    lambda n: Conversation(graph, f"t{n}", context=CONTEXT).ask("two"), range(4)
                )
            )
        assert [answer.status for answer in told] == ["answered"] * 4
        assert [m.text for m in conversation.history() if m.type == "human"] == [
            "one",
            "restart",
            "after",
            "two",
        ]


def test_an_outage_of_the_server_is_one_line_and_its_end_another(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with open_persistence(url) as kept:
        graph = build_graph(model=restarting()).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(graph, "t", context=CONTEXT)
        for text in ("one", "restart", "after", "restart", "end"):
            conversation.ask(text)
    assert [
        r for r in caplog.records if r.name == "psycopg.pool" and r.levelname == "WARNING"
    ] == []
    said = [r.getMessage() for r in caplog.records if r.name == "longtable.store"]
    assert said == [AWAY, BACK] * (len(said) // 2)


def test_a_pools_warnings_are_one_line_when_the_server_is_away_and_one_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = StoreOutage("longtable-store-7")
    pool_log = logging.getLogger("psycopg.pool")
    with outage.watching():
        for _ in range(5):
            pool_log.warning("error connecting in %r: %s", "longtable-store-7", "refused")
        pool_log.warning("error connecting in %r: %s", "somebody-elses", "refused")
        outage.connected(None)
        outage.connected(None)
        pool_log.warning("error connecting in %r: %s", "longtable-store-7", "refused")
    assert [r.getMessage() for r in caplog.records] == [
        AWAY,
        "error connecting in 'somebody-elses': refused",
        BACK,
        AWAY,
    ]


def test_async_it_costs_none_either(url: str) -> None:
    async def run() -> list[str]:
        async with open_persistence(url) as kept:
            graph = build_graph(model=restarting()).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )
            talks = [Conversation(graph, f"t{n}", context=CONTEXT) for n in range(4)]
            await asyncio.gather(*(talk.aask("one") for talk in talks))
            assert (await talks[0].aask("restart")).text == "answer to restart"
            await asyncio.gather(*(talk.aask("two") for talk in talks))
            return [m.text for m in await talks[0].ahistory() if m.type == "human"]

    assert asyncio.run(run()) == ["one", "restart", "two"]


CUTS = """
CREATE SEQUENCE cuts;
CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('cuts') % 11 = 0 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER cut_checkpoints AFTER INSERT ON checkpoints DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut();
CREATE TRIGGER cut_writes AFTER INSERT ON checkpoint_writes FOR EACH STATEMENT EXECUTE FUNCTION cut();
CREATE TRIGGER cut_items AFTER INSERT OR UPDATE ON store FOR EACH STATEMENT EXECUTE FUNCTION cut();
"""
"""Each eleventh statement that writes loses its connection before it is kept; a sequence counts on
where all else is rolled back.
"""


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_write_whose_connection_is_cut_is_done_once_more_and_nobody_sees_it(
    url: str, asynchronous: bool
) -> None:
    with open_persistence(url):
        pass
    postgres_server().run(url, CUTS)
    model = ScriptedModel(say=lambda messages: AIMessage(f"answer to {messages[-1].text}"))
    asked = [f"m{n}" for n in range(4)]

    async def run() -> list[str]:
        async with open_persistence(url) as kept:
            talk = Conversation(
                build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store),
                "t",
                context=CONTEXT,
            )
            for text in asked:
                assert (await talk.aask(text)).text == f"answer to {text}"
            return [m.text for m in await talk.ahistory() if m.type == "human"]

    if asynchronous:
        assert asyncio.run(run()) == asked
    else:
        with open_persistence(url) as kept:
            talk = Conversation(
                build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store),
                "t",
                context=CONTEXT,
            )
            for text in asked:
                assert talk.ask(text).text == f"answer to {text}"
            assert [m.text for m in talk.history() if m.type == "human"] == asked
    [(writes,)] = postgres_server().run(url, "SELECT last_value FROM cuts")
    assert writes > 60
    assert len(model.sent) == len(asked)


class DeafHeads(PostgresHeads):
    """Keeps each second write and loses its answer."""

    writes = 0

    @contextmanager
    def writing(self, key: Key, expected: Expected | None = None) -> Iterator[Head]:
        with super().writing(key, expected) as head:
            yield head
        self.writes += 1
        if self.writes % 2:
            raise OperationalError("server closed the connection unexpectedly")


def test_a_write_that_was_kept_and_whose_answer_was_lost_is_taken_for_ones_own(url: str) -> None:
    with open_persistence(url) as kept:
        assert isinstance(kept.checkpointer, GuardedSaver)
        assert isinstance(kept.checkpointer.inner, PostgresSaver)
        kept.checkpointer.heads = deaf = DeafHeads(kept.checkpointer.inner)
        graph = graph_over(kept.checkpointer)
        for text in ("one", "two"):
            graph.invoke(said(text), CONFIG, context=CONTEXT, durability="sync")
        assert texts(graph) == ["one", "answer to one", "two", "answer to two"]
        assert deaf.writes > 20
        slow = graph.stream(
            said("slow"), CONFIG, context=CONTEXT, stream_mode="updates", durability="sync"
        )
        next(slow)
        graph.invoke(said("quick"), CONFIG, context=CONTEXT)
        with pytest.raises(ThreadBusyError):  # another run's write is never taken for one's own
            list(slow)


def test_what_is_no_lost_connection_is_not_tried_again() -> None:
    calls: list[int] = []

    def fails(error: Exception) -> None:
        calls.append(1)
        raise error

    for error in (errors.DiskFull(), errors.QueryCanceled(), PoolTimeout(), ValueError()):
        with pytest.raises(type(error)):
            retry_once(partial(fails, error))
    assert len(calls) == 4


def heads_of(kept: Persistence) -> PostgresHeads:
    assert isinstance(kept.checkpointer, GuardedSaver)
    heads = kept.checkpointer.heads
    assert isinstance(heads, PostgresHeads)
    return heads


def test_a_refused_write_leaves_a_clean_connection_and_no_line_in_the_log(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with open_persistence(url) as kept:
        heads = heads_of(kept)
        graph = graph_over(kept.checkpointer)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        newest = heads.checkpoint_ids("t")[0]
        writes = [("channel", "value")]
        stale = Expected("another", "another's", "mine")
        config: RunnableConfig = {
            "configurable": {**CONFIG["configurable"], "checkpoint_id": newest, "checkpoint_ns": ""}
        }

        def write() -> None:
            with heads.writing(("t", ""), stale) as head:
                for task in ("a", "b", "c"):
                    head.saver.put_writes(config, writes, task)

        with pytest.raises(HeadMovedError):
            write()
        right = Expected(newest, heads.writer(("t", "")), "mine")
        with pytest.raises(TypeError), heads.writing(("t", ""), right):
            raise TypeError
        assert heads.writer(("t", "")) != "mine"
        pool = heads.saver.conn
        assert isinstance(pool, ConnectionPool)
        with pool.connection() as connection:
            assert connection.info.transaction_status == TransactionStatus.IDLE
        graph.invoke(said("two"), CONFIG, context=CONTEXT)
        assert texts(graph) == ["one", "answer to one", "two", "answer to two"]
    assert [record for record in caplog.records if record.name.startswith("psycopg")] == []


def test_a_delete_waits_until_a_write_of_the_thread_is_over(url: str) -> None:
    with open_persistence(url) as kept:
        heads = heads_of(kept)
        graph = graph_over(kept.checkpointer)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        with ThreadPoolExecutor(1) as pool:
            with heads.writing(("t", "")) as head:
                deleting = pool.submit(kept.checkpointer.delete_thread, "t")
                with pytest.raises(TimeoutError):
                    deleting.result(0.3)
                head.claim("late")
            deleting.result(30)
        assert heads.writer(("t", "")) is None
        assert heads.checkpoint_ids("t") == []
