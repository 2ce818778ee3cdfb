"""A store with damaged bytes: one thread that cannot be read is named, the others work, and it can
be deleted and forked.
"""

import asyncio
import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import Op, PutOp
from langgraph.store.base import Result as StoreResult
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import (
    DamagedThreadError,
    LongtableError,
    PersistenceError,
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
    list_threads,
    open_persistence,
    prune_threads,
    search_threads,
    usage_of_threads,
)
from longtable.graph.listing.thread_list import alist_threads
from longtable.graph.listing.thread_search import asearch_threads
from longtable.graph.reports import audit_of_threads
from longtable.graph.thread_state import Graph
from longtable.store.damage import json_value
from longtable.store.saver_guard import GuardedSaver
from tests.support.models import ScriptedModel, call
from tests.support.postgres import postgres_server
from tests.support.threads import Events, of_type, summariser

CONTEXT = Context(model_limit=3_000)
TURNS = {"long": 18, "short": 4, "other": 2}
TABLES = (
    "checkpoints",
    "writes",
    "store",
    "checkpoints",
    "writes",
    "store",
    "longtable_writers",
    "longtable_meta",
)


def echo(messages: Sequence[BaseMessage]) -> AIMessage:
    return AIMessage(f"answer to {messages[-1].text}")


def graph_on(kept: Persistence) -> Graph:
    graph = build_graph(
        model=ScriptedModel(say=echo),
        memory_tools=MemoryTools(recall=False),
        policy=CompactionPolicy(retire_after=8),
    )
    return graph.compile(checkpointer=kept.checkpointer, store=kept.store)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "chat.db"
    with open_persistence(f"sqlite:///{path}") as kept:
        for name, turns in TURNS.items():
            conversation = Conversation(graph_on(kept), name, context=CONTEXT)
            for turn in range(turns):
                conversation.ask(f"{name} turn {turn} " + "w " * 80)
        assert (
            graph_on(kept)
            .get_state({"configurable": {"thread_id": "long"}})
            .values["archive"]["count"]
            > 0
        )
        Conversation(graph_on(kept), "short", context=CONTEXT).pin("amounts in euro")
    return path


def copied(sound: Path, folder: Path) -> Path:
    return Path(shutil.copy(sound, folder / "chat.db"))


def damage(
    path: Path, table: str, where: str, *, column: str, at: int = 0, to: bytes = b"\xc1"
) -> None:
    """Write other bytes into one cell."""
    with closing(sqlite3.connect(path)) as connection:
        ((row, kind, cell),) = connection.execute(
            f"SELECT rowid, typeof({column}), CAST({column} AS BLOB) FROM {table} WHERE {where}"
            " ORDER BY rowid DESC LIMIT 1"
        ).fetchall()
        if cell[at : at + len(to)] == to:  # as random bytes may be
            to = bytes(byte ^ 0xFF for byte in to)
        changed = cell[:at] + to + cell[at + len(to) :]
        connection.execute(
            f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE rowid = ?", (changed, row)
        )
        connection.commit()


def flip(path: Path, table: str, chance: random.Random) -> None:
    """Flip one bit of one cell, often of a long one."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        columns = [
            name.decode() for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")
        ]
        row = chance.choice(connection.execute(f"SELECT rowid FROM {table}").fetchall())[0]
        found = zip(
            columns,
            connection.execute(f"SELECT * FROM {table} WHERE rowid = ?", (row,)).fetchone(),
            strict=True,
        )
        cells = {name: cell for name, cell in found if isinstance(cell, bytes) and cell}
        lengths = [len(cell) if chance.random() < 0.6 else 1 for cell in cells.values()]
        column = chance.choices(list(cells), lengths)[0]
        changed = bytearray(cells[column])
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        kind = (
            connection.execute(f"SELECT typeof({column}) FROM {table} WHERE rowid = ?", (row,))
            .fetchone()[0]
            .decode()
        )
        with suppress(sqlite3.IntegrityError):  # it became the name of another row
            connection.execute(
                f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE rowid = ?",
                (bytes(changed), row),
            )
        connection.commit()


def is_damaged(call: Callable[[], object]) -> bool:
    try:
        call()
    except DamagedThreadError:
        return True
    return False


@pytest.mark.parametrize("seed", range(48))
def test_a_flipped_bit_costs_one_thread_at_most(seed: int, sound: Path, tmp_path: Path) -> None:
    path, chance = copied(sound, tmp_path), random.Random(seed)
    flip(path, TABLES[seed % len(TABLES)], chance)
    try:
        opened = open_persistence(f"sqlite:///{path}")
        with opened:
            pass
    except PersistenceError:
        assert TABLES[seed % len(TABLES)] == "longtable_meta"  # of a version that nobody knows
        return
    with open_persistence(f"sqlite:///{path}") as kept:
        told: list[DamagedThreadError] = []
        graph = graph_on(kept)
        # Of a damaged name nobody knows whose it was.
        assert len(list_threads(kept)) >= len(TURNS) - 1
        search_threads(kept, "short turn", on_damaged=told.append)
        usage_of_threads(kept, on_damaged=told.append)
        audit_of_threads(kept, on_damaged=told.append)
        conversations = {name: Conversation(graph, name, context=CONTEXT) for name in TURNS}
        hurt = {
            name
            for name, talk in conversations.items()
            if any(
                [
                    is_damaged(talk.history),
                    is_damaged(talk.view),
                    is_damaged(talk.export),
                    is_damaged(lambda: talk.export("html")),  # noqa: B023
                ]
            )
        }
        assert len(hurt) <= 1
        assert {error.thread_id for error in told} <= hurt
        for name in set(TURNS) - hurt:
            assert conversations[name].ask("and now?").status == "answered"
        for name in hurt:
            is_damaged(lambda: conversations[name].ask("and now?"))  # noqa: B023
            with suppress(DamagedThreadError):
                assert conversations[name].fork().ask("and now?").status == "answered"
            delete_thread(kept, name)
            with pytest.raises(ThreadNotFoundError):
                conversations[name].history()


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_anywhere_in_the_file_is_a_typed_error_at_most(
    seed: int, sound: Path, tmp_path: Path
) -> None:
    path, chance = copied(sound, tmp_path), random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(4):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    with suppress(LongtableError), open_persistence(f"sqlite:///{path}") as kept:
        graph = graph_on(kept)
        calls: list[Callable[[], object]] = [
            lambda: list_threads(kept),
            lambda: search_threads(kept, "turn"),
        ]
        for name in TURNS:
            talk = Conversation(graph, name, context=CONTEXT)
            calls += [
                talk.history,
                talk.export,
                partial(talk.ask, "and now?"),
                partial(delete_thread, kept, name),
            ]
        for call in calls:
            with suppress(LongtableError):
                call()


def test_the_error_names_the_thread_and_a_fork_goes_on_from_what_can_be_read(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    damage(path, "checkpoints", "thread_id = 'short'", column="checkpoint")
    with open_persistence(f"sqlite:///{path}") as kept:
        talk = Conversation(graph_on(kept), "short", context=CONTEXT)
        for call in (talk.history, talk.export, talk.pins, lambda: talk.ask("and now?")):
            with pytest.raises(
                DamagedThreadError, match=r"'short' is damaged.*threads fork short"
            ) as caught:
                call()
            assert caught.value.thread_id == "short"
        fork = talk.fork(thread_id="again")
        assert len([m for m in fork.history() if m.type == "human"]) >= TURNS["short"] - 1
        assert fork.ask("and now?").text == "answer to and now?"
        assert {info.thread_id for info in list_threads(kept)} == {*TURNS, "again"}


def test_the_commands_of_the_error_quote_the_thread() -> None:
    error = DamagedThreadError("June; rm notes", what="its state", why="ValueError")
    assert "`longtable threads fork 'June; rm notes'`" in str(error)
    assert "`longtable threads delete 'June; rm notes'`" in str(error)


def test_a_state_stored_with_an_unknown_type_is_damage(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    damage(path, "checkpoints", "thread_id = 'short'", column="type", to=b"nsgpack")
    with open_persistence(f"sqlite:///{path}") as kept, pytest.raises(DamagedThreadError):
        Conversation(graph_on(kept), "short", context=CONTEXT).history()


def test_a_saver_without_async_methods_is_not_called_damage(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chat.db", check_same_thread=False)) as connection:
        app = build_graph(model=ScriptedModel(say=echo)).compile(
            checkpointer=SqliteSaver(connection)
        )
        with pytest.raises(NotImplementedError, match="async"):
            asyncio.run(Conversation(app, "t", context=CONTEXT).aask("hello"))


class FaultySaver(InMemorySaver):
    """A caller's saver with a bug."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return super().get_tuple(config["conf"])  # type: ignore[typeddict-item]  # the bug


def test_a_bug_of_a_callers_saver_is_not_called_damage() -> None:
    talk = Conversation(
        build_graph(model=ScriptedModel(say=echo)).compile(checkpointer=FaultySaver()),
        "t",
        context=CONTEXT,
    )
    for use in (talk.history, talk.view, lambda: talk.ask("hello")):
        with pytest.raises(KeyError):
            use()


def test_a_damaged_thread_in_postgresql_is_forked_too() -> None:
    server = postgres_server()
    url = server.create()
    with open_persistence(url) as kept:
        talk = Conversation(graph_on(kept), "t", context=CONTEXT)
        for turn in range(3):
            talk.ask(f"turn {turn}")
        server.run(
            url,
            r"UPDATE checkpoint_blobs SET blob = '\xc1' WHERE version = (SELECT max(version) FROM"
            r" checkpoint_blobs)",
        )
        with pytest.raises(DamagedThreadError):
            talk.history()
        assert len(talk.fork().history()) >= 4

    async def fork() -> None:
        async with open_persistence(url) as kept:
            assert (
                len(
                    await (
                        await Conversation(graph_on(kept), "t", context=CONTEXT).afork()
                    ).ahistory()
                )
                >= 4
            )

    asyncio.run(fork())


def test_a_damaged_thread_in_memory_is_forked_too() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    app = build_graph(
        model=ScriptedModel(say=echo), memory_tools=MemoryTools(recall=False)
    ).compile(checkpointer=GuardedSaver(saver), store=store)
    talk = Conversation(app, "t", context=CONTEXT)
    for turn in range(3):
        talk.ask(f"turn {turn}")
    stored = saver.storage["t"][""]
    stored[max(stored)] = (("msgpack", b"\xc1"), *stored[max(stored)][1:])
    with pytest.raises(DamagedThreadError):
        talk.history()
    assert len(talk.fork().history()) >= 4
    assert len(asyncio.run(talk.afork()).history()) >= 4


def test_a_fork_is_damage_where_no_finished_turn_can_be_read(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        oldest = "SELECT min(checkpoint_id) FROM checkpoints WHERE thread_id = 'other'"
        connection.execute(
            "UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = 'other' AND checkpoint_id"
            f" > ({oldest})"
        )
        connection.commit()
    with open_persistence(f"sqlite:///{path}") as kept, pytest.raises(DamagedThreadError):
        Conversation(graph_on(kept), "other", context=CONTEXT).fork()


@pytest.mark.parametrize(
    ("table", "column", "sound_bytes", "damaged_bytes"),
    [
        # The checkpoint bears another id than its row.
        ("checkpoints", "checkpoint", rb"(\xa2id\xd9\x24).", rb"\1f"),
        ("writes", "value", rb"language", rb"lanfuage"),  # a field of a compaction
    ],
)
def test_a_turn_on_values_that_decode_and_make_no_sense_says_so(
    table: str, column: str, sound_bytes: bytes, damaged_bytes: bytes, sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            f"SELECT rowid, {column} FROM {table} WHERE thread_id = 'long' AND type = 'msgpack'"
        ).fetchall()
        changed = [(re.sub(sound_bytes, damaged_bytes, cell), row) for row, cell in rows]
        connection.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", changed)
        connection.commit()
    with open_persistence(f"sqlite:///{path}") as kept, pytest.raises(DamagedThreadError):
        Conversation(graph_on(kept), "long", context=CONTEXT).ask("and now?")


def test_a_fork_of_a_sound_thread_without_a_turn_has_all_of_it(sound: Path, tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{copied(sound, tmp_path)}") as kept:
        talk = Conversation(graph_on(kept), "long", context=CONTEXT)
        assert [m.text for m in talk.fork().history()] == [m.text for m in talk.history()]


def test_a_damaged_line_of_the_list_is_marked_and_healed_by_the_next_turn(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    damage(path, "store", "prefix = 'longtable.threads' AND key = 'other'", column="value")
    damage(
        path,
        "store",
        "prefix = 'longtable.threads' AND key = 'short'",
        column="created_at",
        to=b"x",
    )
    with open_persistence(f"sqlite:///{path}") as kept:
        assert {info.thread_id: info.damaged for info in list_threads(kept)} == {
            "long": False,
            "short": False,
            "other": True,
        }
        talk = Conversation(graph_on(kept), "other", context=CONTEXT)
        assert len(talk.history()) == 2 * TURNS["other"]
        talk.ask("a new title")
        assert {info.title for info in list_threads(kept) if info.thread_id == "other"} == {
            "a new title"
        }
        assert not any(info.damaged for info in list_threads(kept))

    async def listed() -> list[str]:
        async with open_persistence(f"sqlite:///{path}") as kept:
            return [info.thread_id for info in await alist_threads(kept)]

    assert set(asyncio.run(listed())) == set(TURNS)


def test_a_thread_of_which_nobody_knows_whose_it_is_is_deleted_by_who_runs_the_store(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    damage(path, "checkpoints", "thread_id = 'other'", column="checkpoint")
    damage(path, "store", "prefix = 'longtable.threads' AND key = 'other'", column="value")
    with open_persistence(f"sqlite:///{path}") as kept:
        with pytest.raises(DamagedThreadError, match="all_owners"):
            delete_thread(kept, "other")
        delete_thread(kept, "other", all_owners=True)
        assert {info.thread_id for info in list_threads(kept)} == {"long", "short"}


def test_a_damaged_thread_is_pruned_and_left_where_its_transcript_is_to_stay(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    damage(path, "checkpoints", "thread_id = 'other'", column="checkpoint")
    later = datetime.now(UTC) + timedelta(days=9)
    with open_persistence(f"sqlite:///{path}") as kept:
        told: list[DamagedThreadError] = []
        done = prune_threads(
            kept, older_than=timedelta(days=1), now=later, keep_archive=True, on_damaged=told.append
        )
        assert {info.thread_id for info in done} == {"long", "short"}
        assert [error.thread_id for error in told] == ["other"]
        assert {
            info.thread_id for info in prune_threads(kept, older_than=timedelta(days=1), now=later)
        } == set(TURNS)


def test_a_search_over_all_owners_finds_a_thread_whose_line_of_the_list_is_damaged(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    with open_persistence(f"sqlite:///{path}") as kept:
        Conversation(graph_on(kept), "anns", context=Context(model_limit=3_000, owner="ann")).ask(
            "about submarines"
        )
    damage(path, "store", "prefix = 'longtable.threads' AND key = 'anns'", column="value")
    with open_persistence(f"sqlite:///{path}") as kept:
        assert {
            found.thread_id for found in search_threads(kept, "submarines", all_owners=True)
        } == {"anns"}
        assert not search_threads(kept, "submarines")
        assert "anns" not in {info.thread_id for info in list_threads(kept, owner="ben")}


def test_another_owner_deletes_no_damaged_thread(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with open_persistence(f"sqlite:///{path}") as kept:
        Conversation(graph_on(kept), "anns", context=Context(model_limit=3_000, owner="ann")).ask(
            "mine"
        )
    damage(path, "checkpoints", "thread_id = 'anns'", column="checkpoint")
    with open_persistence(f"sqlite:///{path}") as kept:
        with pytest.raises(ThreadNotFoundError):
            delete_thread(kept, "anns", owner="ben")
        with pytest.raises(ThreadNotFoundError):
            delete_thread(kept, "anns")
        delete_thread(kept, "anns", owner="ann")
        assert "anns" not in {info.thread_id for info in list_threads(kept, all_owners=True)}


def test_an_encrypted_store_with_a_damaged_row_goes_on(tmp_path: Path) -> None:
    path, key = tmp_path / "chat.db", "a passphrase of a test"
    with open_persistence(f"sqlite:///{path}", key=key) as kept:
        for name in ("a", "b"):
            Conversation(graph_on(kept), name, context=CONTEXT).ask("hello")
    damage(
        path,
        "store",
        "prefix = 'longtable.threads' AND key = 'a'",
        column="value",
        at=60,
        to=b"AAAA",
    )
    damage(path, "checkpoints", "thread_id = 'b'", column="checkpoint", at=20)
    with open_persistence(f"sqlite:///{path}", key=key) as kept:
        assert {info.thread_id: info.damaged for info in list_threads(kept)} == {
            "a": True,
            "b": False,
        }
        assert len(Conversation(graph_on(kept), "a", context=CONTEXT).history()) == 2
        with pytest.raises(DamagedThreadError):
            Conversation(graph_on(kept), "b", context=CONTEXT).history()


def test_a_damaged_archive_stops_neither_turns_nor_compactions(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    policy = CompactionPolicy(retire_after=8, rebuild_every=2, min_messages=2)

    def talk(kept: Persistence, turns: int) -> Events:
        graph = build_graph(
            model=ScriptedModel(say=echo),
            summarizer=summariser(),
            policy=policy,
            memory_tools=MemoryTools(recall=False),
        )
        conversation = Conversation(
            graph.compile(checkpointer=kept.checkpointer, store=kept.store), "t", context=CONTEXT
        )
        return [
            dict(event)
            for turn in range(turns)
            for event in conversation.stream(f"turn {turn} " + "w " * 100)
        ]

    with open_persistence(f"sqlite:///{path}") as kept:
        assert of_type(talk(kept, 24), "messages_retired")
    for kind in ("archive", "archived", "compactions"):
        damage(path, "store", f"prefix = 'longtable.{kind}.t'", column="value")
    with open_persistence(f"sqlite:///{path}") as kept:
        events = talk(kept, 12)
    assert [event["status"] for event in of_type(events, "answer")] == ["answered"] * 12
    assert of_type(events, "context_compressed")
    assert not of_type(events, "context_compaction_skipped")


def test_recall_leaves_out_what_is_damaged(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    damage(path, "store", "prefix = 'longtable.archive.long'", column="value")

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        return (
            call("recall_history", query="long turn")
            if messages[-1].type == "human"
            else AIMessage("done")
        )

    with open_persistence(f"sqlite:///{path}") as kept:
        app = build_graph(model=ScriptedModel(say=say)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        events = [
            dict(event)
            for event in Conversation(
                app, "long", context=CONTEXT.replace(model_limit=16_000)
            ).stream("what was it?")
        ]
    assert [event["found"] > 1 for event in of_type(events, "recall")] == [True]


def test_async_callers_read_fork_and_delete_around_a_damaged_thread(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    damage(path, "writes", "thread_id = 'short' AND channel = 'messages'", column="value")

    async def use() -> None:
        async with open_persistence(f"sqlite:///{path}") as kept:
            told: list[DamagedThreadError] = []
            await asearch_threads(kept, "turn", on_damaged=told.append)
            assert [error.thread_id for error in told] == ["short"]
            talk = Conversation(graph_on(kept), "short", context=CONTEXT)
            for read in (talk.ahistory(), talk.aexport(), talk.aask("and now?")):
                with pytest.raises(DamagedThreadError):
                    await read
            fork = await talk.afork()
            assert (await fork.aask("and now?")).status == "answered"
            assert (
                await Conversation(graph_on(kept), "other", context=CONTEXT).aask("and now?")
            ).status == "answered"
            await talk.adelete()
            assert "short" not in {info.thread_id for info in await alist_threads(kept)}

    asyncio.run(use())


class FailsAfterTheAnswer(InMemoryStore):
    """A store that takes no count of messages."""

    def batch(self, ops: Iterable[Op]) -> list[StoreResult]:
        ops = list(ops)
        if any(isinstance(op, PutOp) and op.value and "messages" in op.value for op in ops):
            raise OSError("the disk is gone")
        return super().batch(ops)


def test_a_store_that_fails_once_the_answer_has_streamed_costs_no_turn() -> None:
    app = build_graph(model=ScriptedModel(say=echo)).compile(
        checkpointer=InMemorySaver(), store=FailsAfterTheAnswer()
    )
    assert Conversation(app, "t", context=CONTEXT).ask("hello").status == "answered"


NUMBERS = [2**63, -(2**70), 10**40, 2**63 - 1, 1.5, 1e300, float("inf")]


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_a_number_of_any_length_is_read_as_it_was_written(number: float) -> None:
    text = json.dumps({"n": [number]})
    assert json_value(text) == {"n": [number]}
    assert json_value(text.encode()) == {"n": [number]}
    assert type(json_value(text)["n"][0]) is type(number)
