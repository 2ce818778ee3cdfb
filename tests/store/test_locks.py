"""Turns of one thread follow one another: sync, async, mixed, in one process and in several; or
they are refused at once.
"""

import asyncio
import gc
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.concurrency import ASYNC
from longtable.base.errors import ConfigError, LongtableError, PersistenceError, ThreadBusyError
from longtable.base.stored import USAGE
from longtable.graph import CompactionPolicy, Context, Conversation, build_graph, open_persistence
from longtable.graph.pruning import prune_threads
from longtable.graph.thread_state import Graph
from longtable.graph.threads import delete_thread, import_thread, rename_thread
from longtable.store.leases import Lease, SqliteLease, process_name
from longtable.store.locks import ThreadLocks, locks_of
from tests.support import forked
from tests.support.models import ScriptedModel

CONTEXT = Context(model_limit=16_000)


def echo(messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(f"answer to {next(m.text for m in reversed(messages) if m.type == 'human')}")


def graph_over(
    checkpointer: Any, store: Any = None, say: Callable[[Sequence[BaseMessage]], AIMessage] = echo
) -> Graph:
    return build_graph(model=ScriptedModel(say=say)).compile(checkpointer=checkpointer, store=store)


def paired(texts: Sequence[str], asked: Sequence[str]) -> bool:
    """Tell whether each question stands once, with its answer right after it."""
    return sorted(texts[::2]) == sorted(asked) and all(
        b == f"answer to {a}" for a, b in zip(texts[::2], texts[1::2], strict=True)
    )


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/chat.db"])
def test_threads_of_a_process_queue_in_the_order_they_came(url: str, tmp_path: Path) -> None:
    with open_persistence(url.format(tmp_path)) as kept:
        graph = graph_over(kept.checkpointer, kept.store)
        asked = [f"m{n}" for n in range(12)]
        with ThreadPoolExecutor(6) as pool:
            answers = list(
                pool.map(
                    lambda text: Conversation(graph, "t", context=CONTEXT).ask(text).text, asked
                )
            )
        assert answers == [f"answer to {text}" for text in asked]
        assert paired([m.text for m in Conversation(graph, "t", context=CONTEXT).history()], asked)


def test_an_unguarded_checkpointer_of_the_callers_own_is_queued_too() -> None:
    graph = graph_over(InMemorySaver())
    asked = [f"m{n}" for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda text: Conversation(graph, "t", context=CONTEXT).ask(text), asked))
    assert paired([m.text for m in Conversation(graph, "t").history()], asked)


def test_tasks_of_a_loop_queue_and_a_cancelled_one_lets_go(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
            graph = graph_over(kept.checkpointer, kept.store)
            asked = [f"m{n}" for n in range(8)]
            tasks = [
                asyncio.create_task(Conversation(graph, "t", context=CONTEXT).aask(text))
                for text in [*asked, "never"]
            ]
            await asyncio.sleep(0.01)
            tasks[-1].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(done[-1], asyncio.CancelledError)
            texts = [m.text for m in await Conversation(graph, "t").ahistory()]
            assert paired(texts, asked)
            assert texts[::2] == asked
            assert locks_of(kept.checkpointer).queues == {}

    asyncio.run(run())


@pytest.mark.parametrize(
    "names", [["busy"] * 50, [f"busy-{n}" for n in range(50)]], ids=["one busy thread", "fifty"]
)
def test_awaited_calls_that_wait_for_busy_threads_slow_no_other_turn(
    names: list[str], tmp_path: Path
) -> None:
    async def run() -> None:
        async with (
            open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept,
            AsyncExitStack() as held,
        ):
            graph = graph_over(kept.checkpointer, kept.store)
            other = Conversation(graph, "other", context=CONTEXT)

            async def median() -> float:
                times = []
                for _ in range(5):
                    begun = time.perf_counter()
                    await asyncio.wait_for(other.aask("hello"), 20)
                    times.append(time.perf_counter() - begun)
                return sorted(times)[2]

            await other.aask("hello")
            alone = await median()
            for name in set(names):
                await Conversation(graph, name, context=CONTEXT).aask("hello")
                await held.enter_async_context(
                    locks_of(kept.checkpointer).alone(name, ASYNC, wait=False)
                )
            calls = [
                asyncio.create_task(Conversation(graph, name, context=CONTEXT).apin(f"rule {n}"))
                for n, name in enumerate(names)
            ]
            await asyncio.sleep(0.2)
            beside = await median()
            assert not any(call.done() for call in calls)
            await held.aclose()
            assert len(await asyncio.gather(*calls)) == 50
            assert beside <= 2 * alone + 0.05, (beside, alone)

    asyncio.run(run())


class SlowWriter(ScriptedModel):
    """Writes summaries for half a minute, and notes which calls still run."""

    running: ClassVar[list[str]] = []

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        self.running.append("call")
        try:
            await asyncio.sleep(30)
        finally:
            self.running.pop()


def test_a_turn_that_is_cancelled_in_mid_summary_leaves_no_running_call() -> None:
    graph = build_graph(
        model=ScriptedModel(say=lambda _: AIMessage("fine " * 40)),
        summarizer=SlowWriter(say=lambda _: AIMessage("")),
        policy=CompactionPolicy(ahead=False),
    ).compile(checkpointer=InMemorySaver())
    talk = Conversation(graph, "t", context=CONTEXT.replace(model_limit=2_000))

    async def ask() -> None:
        for n in range(60):
            await talk.aask(f"question {n} " + "word " * 30)

    async def run() -> None:
        asking = asyncio.create_task(ask())
        while not SlowWriter.running:
            await asyncio.sleep(0.01)
            assert not asking.done()
        asking.cancel()
        begun = time.perf_counter()
        with suppress(asyncio.CancelledError):
            await asking
        assert SlowWriter.running == []
        assert not locks_of(graph.checkpointer).queues
        assert time.perf_counter() - begun < 1

    asyncio.run(run())


def test_sync_and_async_callers_stand_in_one_line() -> None:
    locks, order = ThreadLocks(), []

    async def waits() -> None:
        async with locks.alone("t", ASYNC, wait=True):
            order.append("async")

    def waits_too() -> None:
        with locks.locked("t", wait=True):
            order.append("sync")

    async def run() -> None:
        async with locks.alone("t", ASYNC, wait=True):
            tasks = []
            for _ in range(2):
                tasks.append(asyncio.create_task(waits()))
                await until(lambda: len(locks.queues["t"].waiting) == len(tasks))
                tasks.append(asyncio.ensure_future(asyncio.to_thread(waits_too)))
                await until(lambda: len(locks.queues["t"].waiting) == len(tasks))
            order.append("first")
        await asyncio.gather(*tasks)

    async def until(holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(run(), 30))
    assert order == ["first", "async", "sync", "async", "sync"]
    assert locks.queues == {}


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/chat.db"])
def test_reject_refuses_at_once_and_writes_nothing(url: str, tmp_path: Path) -> None:
    with open_persistence(url.format(tmp_path)) as kept:
        graph = graph_over(kept.checkpointer, kept.store)
        first = Conversation(graph, "t", context=CONTEXT).stream("first")
        next(first)
        hasty = Conversation(graph, "t", context=CONTEXT, when_busy="reject")
        for refused in (
            lambda: hasty.ask("second"),
            lambda: hasty.resume(),
            hasty.compact,
            lambda: hasty.pin("no cancelled flights"),
        ):
            with pytest.raises(ThreadBusyError) as caught:
                refused()
            assert not caught.value.stored
        list(first)
        assert [m.text for m in hasty.history()] == ["first", "answer to first"]
        assert hasty.ask("third").text == "answer to third"


def test_when_busy_is_checked() -> None:
    with pytest.raises(ConfigError, match="when_busy"):
        Conversation(graph_over(InMemorySaver()), "t", when_busy="wait")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="lease_seconds"):
        open_persistence("memory://", lease_seconds=0)


def test_a_turn_within_a_turn_is_refused_where_it_would_wait_for_itself() -> None:
    graph = graph_over(InMemorySaver())
    conversation = Conversation(graph, "t", context=CONTEXT)

    def nested() -> None:
        for _ in conversation.stream("outer"):
            conversation.ask("inner")

    async def anested() -> None:
        async for _ in conversation.astream("outer"):
            await conversation.aask("inner")

    with pytest.raises(ThreadBusyError):
        nested()
    gc.collect()
    with pytest.raises(ThreadBusyError):
        asyncio.run(anested())
    assert conversation.ask("after").status == "answered"


@pytest.mark.parametrize(
    "outer", ["stream in a loop", "stream around a loop", "astream", "another task"]
)
def test_a_call_that_would_stop_the_turn_it_waits_for_is_refused_or_leaves_its_message(
    outer: str, tmp_path: Path
) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        conversation = Conversation(graph_over(kept.checkpointer, kept.store), "t", context=CONTEXT)

        def interject() -> None:
            with pytest.raises(ThreadBusyError):
                conversation.ask("refused")
            assert conversation.steer("left").status == "steered"

        async def ainterject() -> None:
            with pytest.raises(ThreadBusyError):
                await conversation.aask("refused")
            assert (await conversation.asteer("left")).status == "steered"

        async def in_task(act: Callable[[], None]) -> None:
            act()

        async def run() -> None:
            if outer == "stream in a loop":
                events = conversation.stream("first")
                next(events)
                interject()
                list(events)
                return
            async with aclosing(conversation.astream("first")) as aevents:
                await anext(aevents)
                if outer == "astream":
                    interject()
                else:
                    await asyncio.create_task(in_task(interject))
                assert [event["type"] async for event in aevents].count("answer") >= 1

        def talk() -> None:
            if outer != "stream around a loop":
                asyncio.run(run())
                return
            events = conversation.stream("first")
            next(events)
            asyncio.run(ainterject())
            list(events)

        talking = threading.Thread(target=talk, daemon=True)
        talking.start()
        talking.join(20)
        assert not talking.is_alive()
        texts = [m.text for m in conversation.history() if m.type == "human"]
        assert texts == ["first", "left"]


def test_a_turn_that_fails_lets_go() -> None:
    def fail(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].text == "fail":
            raise ConnectionError("down")
        return echo(messages)

    conversation = Conversation(graph_over(InMemorySaver(), say=fail), "t", context=CONTEXT)
    with pytest.raises((LongtableError, ConnectionError)):
        conversation.ask("fail")
    assert conversation.ask("next").text == "answer to next"


def test_two_that_opened_the_same_file_take_turns(tmp_path: Path) -> None:
    """As two processes do: each has its own connections and its own lease."""
    url, asked = f"sqlite:///{tmp_path}/chat.db", [f"m{n}" for n in range(12)]
    with open_persistence(url) as one, open_persistence(url) as two:
        graphs = [graph_over(kept.checkpointer, kept.store) for kept in (one, two)]
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
        first.close()  # type: ignore[attr-defined]
        assert (
            Conversation(graphs[1], "t", context=CONTEXT, when_busy="reject").ask("third").text
            == "answer to third"
        )


def lease_on(path: Path, now: list[float], seconds: float = 10.0) -> SqliteLease:
    return SqliteLease(path, seconds=seconds, busy_ms=1_000, clock=lambda: now[0])


def test_a_lease_holds_until_it_is_released_or_lapses(tmp_path: Path) -> None:
    now = [1_000.0]
    mine, other = lease_on(tmp_path / "chat.db", now), lease_on(tmp_path / "chat.db", now)
    assert mine.take("t")
    assert not other.take("t")
    assert other.take("another")
    now[0] += 9.9
    assert not other.take("t")
    mine.release("t")
    assert other.take("t")
    now[0] += 10.1
    assert mine.take("t")
    other.release("t")
    assert not other.take("t")
    mine.close()
    assert other.take("t")
    other.close()
    with sqlite3.connect(tmp_path / "chat.db") as connection:
        assert connection.execute("SELECT count(*) FROM longtable_leases").fetchone() == (0,)
    connection.close()


def test_a_lease_from_before_the_clock_was_set_back_blocks_no_longer_than_any(
    tmp_path: Path,
) -> None:
    now = [1_000_000.0]
    dead = lease_on(tmp_path / "chat.db", now)
    assert dead.take("t")
    now[0] = 1_000.0
    heir = lease_on(tmp_path / "chat.db", now)
    assert heir.take("t")
    heir.close()
    dead.close()


def test_a_lease_is_judged_by_its_own_length(tmp_path: Path) -> None:
    now = [1_000.0]
    long, short = (
        lease_on(tmp_path / "chat.db", now, 60.0),
        lease_on(tmp_path / "chat.db", now, 2.0),
    )
    assert long.take("t")
    assert not short.take("t")
    now[0] += 59
    assert not short.take("t")
    now[0] += 2
    assert short.take("t")
    long.close()
    short.close()


def _take_and_die(path: str) -> None:
    assert SqliteLease(Path(path), seconds=600, busy_ms=1_000).take("t")
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_lease_of_a_killed_process_of_this_machine_is_free_at_once(tmp_path: Path) -> None:
    if not process_name(os.getpid()):
        pytest.skip("this machine does not say which it is")
    path = tmp_path / "chat.db"
    assert forked.run(_take_and_die, str(path)).returncode == -signal.SIGKILL
    heir = SqliteLease(path, seconds=10, busy_ms=1_000)
    assert heir.take("t")
    heir.close()


@pytest.mark.parametrize(
    ("part", "value", "free"),
    [
        (0, "same", False),
        (2, "another-boot", False),
        (3, "pid:[1]", False),
        (5, "17", True),
        (4, str(2**22 + 1), True),
    ],
)
def test_a_lease_is_taken_over_only_where_its_process_is_known_to_be_gone(
    part: int, value: str, free: bool, tmp_path: Path
) -> None:
    if not process_name(os.getpid()):
        pytest.skip("this machine does not say which it is")
    path = tmp_path / "chat.db"
    holder = SqliteLease(path, seconds=600, busy_ms=1_000)
    parts = holder.holder.split(" ")
    holder.holder = " ".join([*parts[:part], value, *parts[part + 1 :]])
    heir = SqliteLease(path, seconds=10, busy_ms=1_000)
    assert holder.take("t")
    assert heir.take("t") is free
    holder.close()
    heir.close()


def test_a_lease_of_an_earlier_version_holds(tmp_path: Path) -> None:
    holder, heir = (SqliteLease(tmp_path / "chat.db", seconds=10, busy_ms=1_000) for _ in range(2))
    holder.holder = "9f0c2a"
    assert holder.take("t")
    assert not heir.take("t")
    holder.close()
    heir.close()


def test_who_waits_for_another_turn_is_told(tmp_path: Path) -> None:
    with (
        open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept,
        open_persistence(f"sqlite:///{tmp_path}/chat.db") as others,
    ):
        first = Conversation(
            graph_over(kept.checkpointer, kept.store), "t", context=CONTEXT
        ).stream("first")
        next(first)
        second = Conversation(
            graph_over(others.checkpointer, others.store), "t", context=CONTEXT
        ).stream("second")
        assert next(second) == {"type": "thread_waiting", "thread_id": "t"}
        list(first)
        assert next(event for event in second if event["type"] == "answer")["status"] == "answered"


def test_a_lease_is_renewed_while_its_process_lives(tmp_path: Path) -> None:
    mine = SqliteLease(tmp_path / "chat.db", seconds=0.3, busy_ms=1_000)
    other = SqliteLease(tmp_path / "chat.db", seconds=0.3, busy_ms=1_000)
    assert mine.take("t")
    ended = time.monotonic() + 1.0
    tries = 0
    while time.monotonic() < ended:
        assert not other.take("t")
        tries += 1
        time.sleep(0.01)
    assert tries > 1
    mine.close()
    assert other.take("t")
    other.close()


def test_a_lapsed_lease_is_taken_back_as_soon_as_it_is_free(tmp_path: Path) -> None:
    mine = SqliteLease(tmp_path / "chat.db", seconds=0.3, busy_ms=1_000)
    other = SqliteLease(tmp_path / "chat.db", seconds=30, busy_ms=1_000)
    assert mine.take("t")
    with sqlite3.connect(tmp_path / "chat.db", isolation_level=None) as connection:
        connection.execute("DELETE FROM longtable_leases")
    connection.close()
    assert other.take("t")
    other.release("t")
    wait_until(lambda: is_refused(other))
    mine.close()
    assert other.take("t")
    other.close()
    with pytest.raises(PersistenceError, match="closed"):
        other.take("t")


def test_a_lease_outlives_a_moment_in_which_its_file_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    mine, other = (SqliteLease(path, seconds=0.3, busy_ms=1_000) for _ in range(2))
    assert mine.take("t")
    with mine.lock:
        whole = path.read_bytes()
        path.write_bytes(b"no database " * (len(whole) // 12))
    time.sleep(0.25)
    with mine.lock:
        path.write_bytes(whole)
    time.sleep(0.4)
    assert not other.take("t")
    mine.close()
    other.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_leases_are_renewed_again_from_the_next_turn_on_where_renewing_had_failed(
    tmp_path: Path,
) -> None:
    fails: list[bool] = []

    def clock() -> float:
        if fails and fails.pop():
            raise ValueError("no time")
        return time.time()

    mine = SqliteLease(tmp_path / "chat.db", seconds=0.3, busy_ms=1_000, clock=clock)
    other = SqliteLease(tmp_path / "chat.db", seconds=0.3, busy_ms=1_000)
    assert mine.take("t")
    fails.append(True)
    assert mine.renewing
    mine.renewing.join(20)
    assert mine.take("another")
    time.sleep(0.5)
    assert not other.take("t")
    mine.close()
    other.close()


def is_refused(lease: Lease) -> bool:
    """Return whether another process has the lease of "t"."""
    if taken := lease.take("t"):
        lease.release("t")
    return not taken


def wait_until(holds: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/chat.db"])
def test_what_changes_a_whole_thread_takes_its_turn(url: str, tmp_path: Path) -> None:
    with open_persistence(url.format(tmp_path)) as kept:
        graph = graph_over(kept.checkpointer, kept.store)
        conversation = Conversation(graph, "t", context=CONTEXT)
        conversation.ask("first")
        lines = conversation.export().splitlines()
        running = conversation.stream("second")
        next(running)
        for refused in (
            lambda: delete_thread(kept, "t"),
            lambda: rename_thread(kept, "t", "another"),
            lambda: import_thread(kept, lines),
            conversation.delete,
            Conversation(graph, "t", context=CONTEXT, when_busy="reject").delete,
        ):
            with pytest.raises(ThreadBusyError):
                refused()
        assert (
            prune_threads(kept, older_than=timedelta(0), now=datetime.now(UTC) + timedelta(days=1))
            == []
        )
        assert [event["type"] for event in running][-1] == "answer"
        assert [m.text for m in conversation.history() if m.type == "human"] == ["first", "second"]
        with ThreadPoolExecutor(1) as pool:
            running = conversation.stream("third")
            next(running)
            gone = pool.submit(Conversation(graph, "t", context=CONTEXT).delete)
            list(running)
            gone.result(30)
        # What it took stays.
        assert {item.namespace for item in kept.store.search(("longtable",))} <= {USAGE}
