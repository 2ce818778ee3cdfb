"""Rows that vanish from a store are noticed: the thread says how many messages are gone, and a fork
goes on with what is left. A thread that is changed on purpose has lost nothing.
"""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import StateUpdate

from longtable.base.errors import (
    DamagedThreadError,
    LongtableError,
    LostMessagesError,
    ThreadNotFoundError,
)
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    MemoryTools,
    Persistence,
    build_graph,
    delete_thread,
    import_thread,
    open_persistence,
    search_threads,
)
from longtable.graph.thread_state import Graph
from longtable.nodes.tally import (
    Tally,
    check_whole,
    extended,
    is_whole,
    tally_after,
    tally_of,
)
from tests.support.models import ScriptedModel

CONTEXT = Context(model_limit=30_000)
TURNS = 14
MESSAGES = 2 * TURNS
OLDEST_TEN = "SELECT rowid FROM checkpoints ORDER BY checkpoint_id LIMIT 10"
MIDDLE_TEN = f"{OLDEST_TEN} OFFSET 25"
NEWEST_TEN = "SELECT rowid FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 10"
LOSSES = {
    "the oldest ten checkpoints": [f"DELETE FROM checkpoints WHERE rowid IN ({OLDEST_TEN})"],
    "ten checkpoints in the middle": [f"DELETE FROM checkpoints WHERE rowid IN ({MIDDLE_TEN})"],
    "the newest ten checkpoints": [f"DELETE FROM checkpoints WHERE rowid IN ({NEWEST_TEN})"],
    "an answer": ["DELETE FROM writes WHERE instr(value, CAST('answer to turn 5' AS BLOB))"],
    "all writes": ["DELETE FROM writes"],
    "all checkpoints": ["DELETE FROM checkpoints"],
    "all checkpoints and writes": ["DELETE FROM checkpoints", "DELETE FROM writes"],
}


def echo(messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(f"answer to {messages[-1].text}")


def graph_on(kept: Persistence, **more: Any) -> Graph:
    graph = build_graph(
        model=ScriptedModel(say=echo), memory_tools=MemoryTools(recall=False), **more
    )
    return graph.compile(checkpointer=kept.checkpointer, store=kept.store)


def talk_on(kept: Persistence, thread_id: str = "t", **more: Any) -> Conversation:
    return Conversation(graph_on(kept, **more), thread_id, context=CONTEXT)


def tally_in(talk: Conversation) -> Tally:
    return cast("Tally", talk.graph.get_state(talk.config).values["tally"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "chat.db"
    with open_persistence(f"sqlite:///{path}") as kept:
        for turn in range(TURNS):
            talk_on(kept).ask(f"turn {turn}")
        talk_on(kept, "other").ask("about submarines")
    return path


@pytest.fixture
def copied(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sound, tmp_path / "chat.db"))


def without(path: Path, statements: Sequence[str]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            where = "AND" if "WHERE" in statement else "WHERE"
            statement = statement.replace(
                "FROM checkpoints ORDER", "FROM checkpoints WHERE thread_id = 't' ORDER"
            )
            assert connection.execute(f"{statement} {where} thread_id = 't'").rowcount
        connection.commit()


# -- what is lost is said --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_whatever_opens_a_thread_says_that_messages_are_gone(loss: str, copied: Path) -> None:
    without(copied, LOSSES[loss])
    with open_persistence(f"sqlite:///{copied}") as kept:
        talk = talk_on(kept)
        uses: list[Callable[[], object]] = [
            talk.history,
            talk.view,
            talk.export,
            talk.pins,
            partial(talk.ask, "and now?"),
            partial(talk.pin, "amounts in euro"),
            talk.compact,
            partial(talk.ask, "and now?", id="m1"),
            talk.history,
        ]
        for use in uses:
            with pytest.raises(LostMessagesError, match=r"restore .*threads fork t\b") as caught:
                use()
            assert caught.value.wanted == MESSAGES
            assert caught.value.found < MESSAGES
            assert "28" in caught.value.user_text()
        told: list[DamagedThreadError] = []
        assert search_threads(kept, "submarines", on_damaged=told.append)
        assert [type(error) for error in told] == [LostMessagesError]


@pytest.mark.parametrize("loss", LOSSES)
def test_async_callers_are_told_too(loss: str, copied: Path) -> None:
    without(copied, LOSSES[loss])

    async def use() -> None:
        async with open_persistence(f"sqlite:///{copied}") as kept:
            for call in (talk_on(kept).aask("and now?"), talk_on(kept).ahistory()):
                with pytest.raises(LostMessagesError):
                    await call

    asyncio.run(use())


@pytest.mark.parametrize(
    ("loss", "left"),
    [("the oldest ten checkpoints", 24), ("ten checkpoints in the middle", 12), ("an answer", 27)],
)
def test_a_fork_goes_on_with_the_most_that_is_left(loss: str, left: int, copied: Path) -> None:
    without(copied, LOSSES[loss])
    with open_persistence(f"sqlite:///{copied}") as kept:
        fork = talk_on(kept).fork()
        assert left <= len(fork.history()) < MESSAGES
        assert fork.ask("and now?").text == "answer to and now?"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_thread_that_lost_messages_can_be_deleted_and_begun_anew(loss: str, copied: Path) -> None:
    without(copied, LOSSES[loss])
    with open_persistence(f"sqlite:///{copied}") as kept:
        delete_thread(kept, "t")
        with pytest.raises(ThreadNotFoundError):
            talk_on(kept).history()
        assert talk_on(kept).ask("anew").text == "answer to anew"
        assert len(talk_on(kept).history()) == 2


def test_a_bare_run_says_it_and_takes_its_input_out_again(copied: Path) -> None:
    without(copied, LOSSES["ten checkpoints in the middle"])
    with open_persistence(f"sqlite:///{copied}") as kept:
        talk = talk_on(kept)
        before = talk.graph.get_state(talk.config).values["messages"]
        for _ in range(2):
            with pytest.raises(LostMessagesError) as caught:
                talk.graph.invoke({"messages": [HumanMessage("hi")]}, talk.config, context=CONTEXT)
            assert caught.value.found == len(before)
            assert talk.graph.get_state(talk.config).values["messages"] == before


def test_a_callers_own_saver_is_compared_too(copied: Path) -> None:
    without(copied, LOSSES["an answer"])
    with closing(sqlite3.connect(copied, check_same_thread=False)) as connection:
        graph = build_graph(model=ScriptedModel(say=echo)).compile(
            checkpointer=SqliteSaver(connection)
        )
        talk = Conversation(graph, "t", context=CONTEXT)
        for use in (talk.history, lambda: talk.ask("and now?")):
            with pytest.raises(LostMessagesError):
                use()


def test_another_owner_is_not_told_what_a_thread_has_lost(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    anns = CONTEXT.replace(owner="ann")
    with open_persistence(f"sqlite:///{path}") as kept:
        for turn in range(3):
            Conversation(graph_on(kept), "t", context=anns).ask(f"turn {turn}")
    for loss in ("an answer", "all checkpoints"):
        statements = [each.replace("turn 5", "turn 1") for each in LOSSES[loss]]
        without(path, statements)
        with open_persistence(f"sqlite:///{path}") as kept:
            for use in (talk_on(kept).history, talk_on(kept).export):
                with pytest.raises(ThreadNotFoundError):
                    use()
            with pytest.raises(LostMessagesError):
                Conversation(graph_on(kept), "t", context=anns).history()


# -- what changes a thread on purpose has lost nothing ---------------------------------------------


def test_every_change_of_a_thread_keeps_its_tally_true(tmp_path: Path) -> None:
    policy = CompactionPolicy(retire_after=8, min_messages=2)
    small = Context(model_limit=3_000)
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        talk = Conversation(graph_on(kept, policy=policy), "t", context=small)

        def check() -> None:
            values = talk.graph.get_state(talk.config).values
            assert is_whole(values["tally"], values["messages"])
            assert values["tally"]["count"] == len(values["messages"])

        for turn in range(24):
            talk.ask(f"turn {turn} " + "w " * 80)
            check()
        assert talk.graph.get_state(talk.config).values["archive"]["count"]
        changes: list[Callable[[], object]] = [
            lambda: talk.exclude(str(talk.history()[-2].id)),
            lambda: talk.include(str(talk.history()[-2].id)),
            lambda: talk.pin("amounts in euro"),
            lambda: talk.compact(),
            lambda: talk.undo(),
            lambda: talk.ask("and then?"),
            lambda: talk.ask("and then?", id="mine"),
            lambda: talk.ask("and then?", id="mine"),
        ]
        for change in changes:
            change()
            check()
        exported = talk.export()
        fork = talk.fork(turn=20)
        assert fork.ask("go on").status == "answered"
        assert is_whole(tally_in(fork), fork.graph.get_state(fork.config).values["messages"])
        import_thread(kept, exported.splitlines(keepends=True), thread_id="imported")
        assert talk_on(kept, "imported").export("markdown") == talk.export("markdown")
        assert talk_on(kept, "imported").ask("go on").status == "answered"


def test_messages_that_a_person_adds_edits_or_removes_are_no_loss() -> None:
    graph = build_graph(model=ScriptedModel(say=echo)).compile(
        checkpointer=InMemorySaver(), store=InMemoryStore()
    )
    talk = Conversation(graph, "t", context=CONTEXT)
    for turn in range(3):
        talk.ask(f"turn {turn}")
    first, second, *_ = talk.history()
    edited = first.model_copy(update={"content": "another first"})
    writes: list[list[BaseMessage]] = [
        [edited],
        [RemoveMessage(id=str(first.id)), RemoveMessage(id=str(second.id))],
        [HumanMessage("by hand", id="h"), AIMessage("its answer", id="a")],
        [HumanMessage("without an id")],
    ]
    for written in writes:
        graph.update_state(talk.config, {"messages": written}, as_node="prepare")
        talk.history()
    hand = [{"messages": [HumanMessage(f"by hand {n}", id=f"h{n}")]} for n in range(4)]
    updates = [StateUpdate(values, "prepare") for values in hand]
    graph.bulk_update_state(talk.config, [updates[:1], updates[1:2], updates[2:]])
    assert talk.ask("and now?").status == "answered"
    texts = [message.text for message in talk.history()]
    assert texts[-2:] == ["and now?", "answer to and now?"]
    assert {"by hand", "by hand 3", "without an id"} <= {*texts}
    assert "turn 0" not in texts


@pytest.mark.parametrize("awaited", [False, True])
def test_a_run_whose_input_takes_messages_out_is_no_loss(awaited: bool) -> None:
    graph = build_graph(model=ScriptedModel(say=echo)).compile(checkpointer=InMemorySaver())
    talk = Conversation(graph, "t", context=CONTEXT)
    for turn in range(3):
        talk.ask(f"turn {turn}")
    *_, question, answer = talk.history()
    sent: Any = {
        "messages": [
            RemoveMessage(id=str(question.id)),
            RemoveMessage(id=str(answer.id)),
            HumanMessage("once more"),
        ],
        "tally": {"count": 99, "digest": 0},
    }
    if awaited:
        asyncio.run(graph.ainvoke(sent, talk.config, context=CONTEXT))
    else:
        graph.invoke(sent, talk.config, context=CONTEXT, interrupt_before=["ingest"])
        talk.history()  # before any node has seen it
        graph.invoke(None, talk.config, context=CONTEXT)
    assert [m.text for m in talk.history()][-3:] == [
        "answer to turn 1",
        "once more",
        "answer to once more",
    ]
    assert "tally" not in graph.get_input_jsonschema()["properties"]


def test_time_travel_is_no_loss(copied: Path) -> None:
    with open_persistence(f"sqlite:///{copied}") as kept:
        talk = talk_on(kept)
        states = [*talk.graph.get_state_history(talk.config)]
        earlier = next(s for s in states if len(s.values["messages"]) == 10 and not s.next)
        given: Any = {"messages": [HumanMessage("another way")]}
        talk.graph.invoke(given, earlier.config, context=CONTEXT)
        assert len(talk.history()) == 12
        talk.config = states[0].config
        assert len(talk.history()) == MESSAGES
        talk.config = {"configurable": {"thread_id": "t"}}
        assert talk.ask("and now?").status == "answered"


def test_a_turn_that_ends_while_the_thread_is_read_is_no_loss(copied: Path) -> None:
    with open_persistence(f"sqlite:///{copied}") as kept:
        reader = talk_on(kept)
        load = kept.checkpointer.get_tuple
        turns = iter(["a turn"])

        def slow(config: RunnableConfig) -> CheckpointTuple | None:
            loaded = load(config)
            text = next(turns, None)
            if text is not None:
                talk_on(kept).ask(text)
            return loaded

        reader.graph.checkpointer = copy(kept.checkpointer)
        vars(reader.graph.checkpointer)["get_tuple"] = slow
        assert len(reader.history()) == MESSAGES
        assert len(talk_on(kept).history()) == MESSAGES + 2


def test_a_thread_that_was_deleted_by_its_saver_has_lost_nothing(copied: Path) -> None:
    with open_persistence(f"sqlite:///{copied}") as kept:
        kept.checkpointer.delete_thread("t")
        assert talk_on(kept).ask("anew").status == "answered"
        assert len(talk_on(kept).history()) == 2


def test_a_thread_of_an_earlier_version_is_not_compared_and_counts_from_its_next_turn(
    copied: Path,
) -> None:
    with open_persistence(f"sqlite:///{copied}") as kept:
        talk = talk_on(kept)
        inner: Any = kept.checkpointer
        newest = inner.inner.get_tuple(talk.config)
        values = {k: v for k, v in newest.checkpoint["channel_values"].items() if k != "tally"}
        later = {**newest.checkpoint, "channel_values": values}
        inner.inner.put(newest.parent_config, later, newest.metadata, {})
        assert len(talk.history()) == MESSAGES
        assert talk.graph.get_state(talk.config).values.get("tally") is None
        talk.ask("and now?")
        assert tally_in(talk)["count"] == MESSAGES + 2


def test_a_tally_goes_on_where_it_stopped() -> None:
    messages: list[BaseMessage] = [HumanMessage(str(n), id=f"m{n}") for n in range(6)]
    tally = tally_of(messages[:2])
    assert tally_after(tally, messages[:2], messages[2:]) == tally_of(messages)
    assert tally_after(tally, messages[:4], messages[4:]) == tally_of(messages)  # two from a caller
    removed = RemoveMessage(id="m1")
    assert tally_after(tally, messages, [removed]) == tally_of([messages[0], *messages[2:]])
    check_whole("t", {"messages": messages, "tally": tally})
    check_whole("t", {"messages": messages})
    for lacking in (messages[1:], messages[:1], [messages[1], messages[0]], []):
        with pytest.raises(LostMessagesError):
            check_whole("t", {"messages": lacking, "tally": tally})
        # What is written to it later hides nothing.
        after = tally_after(tally, lacking, [HumanMessage("new", id="new")])
        assert not is_whole(after, [*lacking, HumanMessage("new", id="new")])
        assert tally_after(tally, lacking, [RemoveMessage(id="m0")]) == tally


def test_a_turn_digests_its_own_messages_alone() -> None:
    old: list[BaseMessage] = [HumanMessage(f"m{n}", id=f"m{n}") for n in range(300)]
    new = AIMessage("new", id="new")
    other = Tally(count=300, digest=7)  # not that of the old ones: nobody looks at these again
    assert tally_after(other, old, [new]) == extended(other, [new])


# -- flipped bits ----------------------------------------------------------------------------------


def flip_in_checkpoint(path: Path, chance: random.Random) -> None:
    """Flip one bit of one of the newest checkpoints, or of its metadata."""
    with closing(sqlite3.connect(path)) as connection:
        column = chance.choice(["checkpoint", "checkpoint", "checkpoint", "metadata"])
        offset = chance.choice([0, 0, 0, chance.randrange(12)])
        row, kind, cell = connection.execute(
            f"SELECT rowid, typeof({column}), CAST({column} AS BLOB) FROM checkpoints"
            " WHERE thread_id = 't' ORDER BY checkpoint_id DESC LIMIT 1 OFFSET ?",
            (offset,),
        ).fetchone()
        changed = bytearray(cell)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        connection.execute(
            f"UPDATE checkpoints SET {column} = CAST(? AS {kind}) WHERE rowid = ?",
            (bytes(changed), row),
        )
        connection.commit()


def flip_in_file(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(160))
def test_after_a_flipped_bit_a_thread_is_whole_and_answers_or_says_that_it_is_damaged(
    seed: int, copied: Path
) -> None:
    chance = random.Random(seed)
    (flip_in_file if seed % 4 == 0 else flip_in_checkpoint)(copied, chance)
    with suppress(LongtableError), open_persistence(f"sqlite:///{copied}") as kept:
        talk = talk_on(kept)
        with suppress(LongtableError):
            assert len(talk.history()) == MESSAGES
        with suppress(LongtableError):
            answer = talk.ask("and now?")
            assert (answer.status, answer.text) == ("answered", "answer to and now?")
            assert len(talk.history()) == MESSAGES + 2


def test_a_turn_that_nothing_is_left_to_run_of_is_damage(copied: Path) -> None:
    with open_persistence(f"sqlite:///{copied}") as kept:
        talk = talk_on(kept)
        inner: Any = kept.checkpointer
        newest = inner.inner.get_tuple(talk.config)
        seen = {**newest.checkpoint["versions_seen"]}
        seen["ingest"] = dict.fromkeys(seen["ingest"], "9" * 32 + ".5")
        damaged = {**newest.checkpoint, "versions_seen": seen}
        inner.inner.put(newest.parent_config, damaged, newest.metadata, {})
        for use in (talk.history, partial(talk.ask, "and now?")):
            with pytest.raises(DamagedThreadError):
                use()
