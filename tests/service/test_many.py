"""Many threads at once in one process: all complete, on few connections; and a server that goes
away in mid-turn.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    MemoryTools,
    build_graph,
    open_persistence,
)
from longtable.store.postgres.store_connections import CONNECTIONS
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server

CONTEXT = Context(model_limit=16_000)
THREADS, TURNS = 32, 2
EIGHT, TURNS_OF_EIGHT = 8, 20
"""Where transactions take a second lock instead of the saver's own, 160 turns fail as surely as
1,600 did.
"""


def echo(messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(f"answer to {messages[-1].text}")


def test_many_threads_at_once_all_complete_on_few_connections(url: str) -> None:
    async def run() -> int:
        async with open_persistence(url) as kept:
            app = build_graph(model=ScriptedModel(say=echo)).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )

            async def talk(name: str) -> None:
                conversation = Conversation(app, name, context=CONTEXT)
                for turn in range(TURNS):
                    assert (
                        await conversation.aask(f"{name} {turn}")
                    ).text == f"answer to {name} {turn}"

            await asyncio.gather(*(talk(f"t{n}") for n in range(THREADS)))
            for n in range(THREADS):
                texts = [m.text for m in await Conversation(app, f"t{n}").ahistory()]
                assert texts[::2] == [f"t{n} {turn}" for turn in range(TURNS)]
            if url.startswith("sqlite"):
                return 0
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            return int((await asyncio.to_thread(postgres_server().run, url, query))[0][0])

    # Those of the pool, of the leases, and the one that counts.
    assert asyncio.run(run()) <= CONNECTIONS + 2


def test_eight_threads_with_a_conversation_each_lose_no_turn(tmp_path: Path) -> None:
    small = Context(model_limit=3_000)
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        graph = build_graph(
            model=ScriptedModel(say=echo),
            policy=CompactionPolicy(retire_after=16),
            memory_tools=MemoryTools(recall=False),
        )
        app = graph.compile(checkpointer=kept.checkpointer, store=kept.store)

        def talk(name: str) -> list[str]:
            conversation = Conversation(app, name, context=small)
            asked = [f"{name} turn {turn} " + "w " * 60 for turn in range(TURNS_OF_EIGHT)]
            for text in asked:
                assert conversation.ask(text).text == f"answer to {text}"
            return asked

        names = [f"t{n}" for n in range(EIGHT)]
        with ThreadPoolExecutor(EIGHT) as pool:
            asked = dict(zip(names, pool.map(talk, names), strict=True))
        for name in names:
            conversation = Conversation(app, name)
            texts = [m.text for m in conversation.history()]
            assert texts == [line for text in asked[name] for line in (text, f"answer to {text}")]
            assert app.get_state(conversation.config).values["archive"]["count"] > 0


def test_threads_and_tasks_that_opened_the_same_file_lose_no_turn(tmp_path: Path) -> None:
    url, names, turns = f"sqlite:///{tmp_path}/chat.db", [f"t{n}" for n in range(4)], 8

    def talk(name: str) -> None:
        for turn in range(turns):
            assert (
                Conversation(sync_app, name, context=CONTEXT).ask(f"{turn}").text
                == f"answer to {turn}"
            )

    async def talk_async() -> None:
        async with open_persistence(url) as kept:
            app = build_graph(model=ScriptedModel(say=echo)).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )

            async def talk_one(name: str) -> None:
                for turn in range(turns):
                    assert (
                        await Conversation(app, name, context=CONTEXT).aask(f"{turn}")
                    ).text == f"answer to {turn}"

            await asyncio.gather(*(talk_one(f"async {name}") for name in names))

    with open_persistence(url) as kept, ThreadPoolExecutor(len(names) + 1) as pool:
        sync_app = build_graph(model=ScriptedModel(say=echo)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        for done in [
            pool.submit(lambda: asyncio.run(talk_async())),
            *(pool.submit(talk, name) for name in names),
        ]:
            done.result()
        for name in [*names, *(f"async {name}" for name in names)]:
            assert len(Conversation(sync_app, name).history()) == 2 * turns


def test_a_turn_whose_connections_are_cut_goes_on_over_new_ones() -> None:
    url = postgres_server().create()

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].text == "second":
            # What a restart does to its clients: every connection is cut, whatever it was doing.
            others = (
                "FROM pg_stat_activity WHERE datname = current_database() AND pid <>"
                " pg_backend_pid()"
            )
            postgres_server().run(url, f"SELECT pg_terminate_backend(pid, 5000) {others}")
        return echo(messages)

    with open_persistence(url) as kept:
        app = build_graph(model=ScriptedModel(say=say)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(app, "t", context=CONTEXT)
        conversation.ask("first")
        assert conversation.ask("second").text == "answer to second"
        assert conversation.ask("third").text == "answer to third"
        texts = [m.text for m in conversation.history() if m.type == "human"]
        assert texts == ["first", "second", "third"]
        assert len(conversation.history()) == len({m.id for m in conversation.history()}) == 6


def test_a_delete_that_is_cancelled_stops_nobody(tmp_path: Path) -> None:
    async def talk() -> None:
        async with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
            app = build_graph(model=ScriptedModel(say=echo)).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )
            for pause_ms in range(12):
                deleting = asyncio.create_task(kept.checkpointer.adelete_thread("t"))
                await asyncio.sleep(pause_ms / 10_000)
                deleting.cancel()
                assert (
                    await Conversation(app, "t", context=CONTEXT).aask("hello")
                ).status == "answered"

    asyncio.run(talk())
