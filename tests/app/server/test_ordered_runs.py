"""Runs at once on one thread, as a server of several processes has them: LangGraph's own
checkpointer over a pool in each, one PostgreSQL server, and no order but ours.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from longtable.app.server.ordered_runs import OrderedGraph
from longtable.graph import Context, build_graph
from longtable.store.persistence import locks_at
from longtable.store.postgres.advisory_leases import AdvisoryLease
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server

CONFIG: RunnableConfig = {"configurable": {"thread_id": "one"}}
ROUNDS = 3
WAIT_S = 0.3


@pytest.fixture
def urls() -> Iterator[list[str]]:
    """The URLs by which two processes reach one database. They differ, so that each has locks of
    its own here, too.
    """
    url = postgres_server().create()
    both = [f"{url}&application_name={name}" for name in ("first", "second")]
    yield both
    for each in both:
        lease = locks_at(each).lease
        assert lease is not None
        lease.close()


@asynccontextmanager
async def served(url: str) -> AsyncIterator[OrderedGraph]:
    """Open a graph as Aegra does: compiled without a checkpointer, and copied with one."""
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, kwargs=options, min_size=1, max_size=4) as pool:
        saver = AsyncPostgresSaver(conn=pool)  # type: ignore[arg-type]  # the rows are dicts
        await saver.setup()
        yield ordered_graph().copy(update={"checkpointer": saver})


def ordered_graph() -> OrderedGraph:
    model = ScriptedModel(say=lambda sent: AIMessage(f"answer to {sent[-1].text}"))
    return OrderedGraph.of(build_graph(model=model).compile())


async def ask(graph: OrderedGraph, question: str) -> None:
    message = HumanMessage(question, id=question)
    await graph.ainvoke({"messages": [message]}, CONFIG, context=Context(model_limit=16_000))


async def texts(graph: OrderedGraph) -> list[str]:
    messages: Any = (await graph.aget_state(CONFIG)).values["messages"]
    return [message.text for message in messages]


def test_messages_at_once_over_two_processes_are_all_answered(urls: list[str]) -> None:
    async def work() -> None:
        async with served(urls[0]) as first, served(urls[1]) as second:
            for turn in range(ROUNDS):
                await asyncio.gather(
                    ask(first, f"a{turn}"), ask(second, f"b{turn}"), ask(first, f"c{turn}")
                )
            said = await texts(second)
        assert sorted(said[::2]) == sorted(
            f"{name}{turn}" for name in "abc" for turn in range(ROUNDS)
        )
        assert said[1::2] == [f"answer to {question}" for question in said[::2]]

    asyncio.run(work())


def test_a_run_waits_for_another_process_and_can_be_cancelled_meanwhile(
    urls: list[str],
) -> None:
    other = AdvisoryLease(urls[1])

    async def work() -> None:
        async with served(urls[0]) as graph:
            assert other.take("one")
            cancelled = asyncio.create_task(ask(graph, "cancelled"))
            waiting = asyncio.create_task(ask(graph, "waiting"))
            await asyncio.sleep(WAIT_S)
            assert not (await graph.aget_state(CONFIG)).values
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert not waiting.done()
            other.close()
            await asyncio.wait_for(waiting, 20)
            assert await texts(graph) == ["waiting", "answer to waiting"]

    asyncio.run(work())


def test_a_run_waits_for_nothing_with_a_checkpointer_that_has_no_pool() -> None:
    graph = ordered_graph().copy(update={"checkpointer": InMemorySaver()})

    async def work() -> None:
        await ask(graph, "a")
        assert isinstance(graph.with_config(tags=["x"]), OrderedGraph)
        assert await texts(graph) == ["a", "answer to a"]

    asyncio.run(work())


def test_all_else_of_the_graph_stays() -> None:
    graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("one"))).compile()
    ordered = OrderedGraph.of(graph)
    assert isinstance(ordered, type(graph))
    assert vars(ordered) == vars(graph)
    assert list(ordered.get_input_jsonschema()["properties"]) == ["messages"]
