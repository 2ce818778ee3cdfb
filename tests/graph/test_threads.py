"""Threads renamed, forked, searched, deleted, pruned: on real files, sync and async, by their owner
only.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import (
    PersistenceError,
    ThreadExistsError,
    ThreadNotFoundError,
    TurnPendingError,
    UnknownTurnError,
)
from longtable.base.stored import THREADS
from longtable.graph import (
    CompactionPolicy,
    ConfigError,
    Context,
    Conversation,
    MemoryTools,
    Persistence,
    build_graph,
    list_threads,
    open_persistence,
)
from longtable.graph.listing.thread_list import ThreadInfo
from longtable.graph.listing.thread_search import asearch_threads, search_threads
from longtable.graph.pruning import aprune_threads, prune_threads, stale_threads
from longtable.graph.thread_state import NODES, reader
from longtable.graph.threads import (
    adelete_thread,
    arename_thread,
    delete_thread,
    rename_thread,
)
from longtable.memory.messages.marks import EXCLUDED, kind_of
from longtable.tools.excerpts import short_excerpt
from tests.support.models import script
from tests.support.threads import CONTEXT, summariser, talk, talker, values_of

SHORT = CompactionPolicy(retire_after=16)
LATER = datetime.now(UTC) + timedelta(days=100)
AGE = timedelta(days=90)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Persistence]:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as persistence:
        yield persistence


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a thread of forty turns, most of them folded and retired."""
    path = tmp_path_factory.mktemp("forty") / "chat.db"
    with open_persistence(f"sqlite:///{path}") as persistence:
        talk(on(persistence), 40)
    return path


@pytest.fixture
def kept_forty(forty: Path, tmp_path: Path) -> Iterator[Persistence]:
    """Open a copy of that file."""
    shutil.copy(forty, tmp_path / "chat.db")
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as persistence:
        yield persistence


def on(
    kept: Persistence, thread_id: str = "t", owner: str | None = None, model: Any = None
) -> Conversation:
    graph = build_graph(
        model=model or talker(),
        summarizer=summariser(),
        memory_tools=MemoryTools(recall=False),
        policy=SHORT,
    )
    return Conversation(
        graph.compile(checkpointer=kept.checkpointer, store=kept.store),
        thread_id,
        context=CONTEXT.replace(owner=owner),
    )


def said(kept: Persistence, thread_id: str, *texts: str, owner: str | None = None) -> Conversation:
    conversation = on(kept, thread_id, owner, script("noted"))
    for text in texts:
        conversation.ask(text)
    return conversation


def rows_about(path: Path, thread_id: str) -> dict[str, int]:
    """Return how many rows of each table name a thread."""
    with closing(sqlite3.connect(path)) as connection:
        tables = {
            table: column
            for (table,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
            for column in ("thread_id", "prefix")
            if column in [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        }
        return {
            table: (
                connection.execute(
                    (
                        f"SELECT count(*) FROM {table} WHERE {column} = ?"
                        if column == "thread_id"
                        else (
                            f"SELECT count(*) FROM {table} WHERE {column} LIKE '%.' || ? OR (key ="
                            " ? AND prefix = 'longtable.threads')"
                        )
                    ),
                    (thread_id,) if column == "thread_id" else (thread_id, thread_id),
                ).fetchone()[0]
            )
            for table, column in tables.items()
        }


# -- rename ----------------------------------------------------------------------------------------


def test_a_title_can_be_changed_and_stays(kept: Persistence) -> None:
    conversation = said(kept, "t", "How many flights?")
    assert conversation.rename("  Flights \n of March ") == "Flights of March"
    conversation.ask("And in May?")
    assert [(info.title, info.turns) for info in list_threads(kept)] == [("Flights of March", 2)]
    with pytest.raises(ConfigError, match="title"):
        conversation.rename(" \n")


def test_a_thread_without_an_index_says_so_when_it_is_renamed() -> None:
    graph = build_graph(model=script("x"), memory_tools=MemoryTools(recall=False)).compile(
        checkpointer=InMemorySaver()
    )
    conversation = Conversation(graph, "t", context=CONTEXT)
    conversation.ask("hello")
    with pytest.raises(ConfigError, match="store"):
        conversation.rename("new")


# -- fork ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [1, 3, 20, 33, 39, 40])
def test_a_fork_has_the_transcript_up_to_its_turn_and_goes_on_by_itself(
    kept_forty: Persistence, turn: int
) -> None:
    conversation = on(kept_forty)
    assert values_of(conversation)["archive"]["count"] > 40
    before = conversation.history()
    fork = conversation.fork(turn)
    assert fork.history() == before[: 2 * turn]
    assert not fork.pending()
    assert fork.ask("another way").turn == turn + 1
    assert [m.text for m in fork.history()][:-2] == [m.text for m in before[: 2 * turn]]
    assert conversation.history() == before
    assert {info.thread_id: info.messages for info in list_threads(kept_forty)} == {
        "t": 80,
        fork.thread_id: 2 * turn + 2,
    }


def test_a_fork_has_the_memory_the_thread_had_after_that_turn(kept: Persistence) -> None:
    conversation, views = on(kept), {}
    for turns, start in [(5, 0), (7, 5), (8, 12), (13, 20), (7, 33)]:
        talk(conversation, turns, start=start)
        views[start + turns] = conversation.view()
    for turn in (5, 12, 20, 33):
        fork = conversation.fork(turn)
        assert fork.view() == views[turn]
        # The originals of the newest compaction are live.
        assert (fork.undo() is not None) == (turn > 5)
        assert fork.history() == conversation.history(limit=2 * turn)


def test_a_fork_keeps_what_the_person_changed_about_its_messages_and_nothing_of_later_ones(
    kept: Persistence,
) -> None:
    conversation = on(kept)
    talk(conversation, 4)
    early = conversation.pin("Amounts in euro.")
    history = conversation.history()
    talk(conversation, 4, start=4)
    conversation.pin("Only 2013.")
    conversation.exclude(str(history[0].id))
    conversation.exclude(str(conversation.history()[-1].id))
    fork = conversation.fork(4)
    assert fork.pins() == [early]
    assert [kind_of(m) for m in fork.history()] == [EXCLUDED, *["normal"] * 7]
    assert "q0 w" not in str([m.text for m in fork.view()])


@pytest.mark.parametrize("turn", [0, -1, 4])
def test_a_turn_that_is_not_there_cannot_be_forked(kept: Persistence, turn: int) -> None:
    conversation = said(kept, "t", "a", "b", "c")
    with pytest.raises(UnknownTurnError, match="1 to 3"):
        conversation.fork(turn)
    assert len(list_threads(kept)) == 1


def test_an_unfinished_turn_cannot_be_forked_and_the_one_before_can(kept: Persistence) -> None:
    said(kept, "t", "a")

    def fail(_: Any) -> AIMessage:
        raise RuntimeError("gone")

    broken = on(kept, model=script("x").model_copy(update={"say": fail}))
    with pytest.raises(RuntimeError):
        broken.ask("b")
    with pytest.raises(TurnPendingError):
        broken.fork(2)
    assert [m.text for m in broken.fork(1).history()] == ["a", "noted"]


def test_a_fork_never_writes_over_a_thread(kept: Persistence) -> None:
    conversation = said(kept, "t", "a")
    other = said(kept, "u", "b")
    with pytest.raises(ThreadExistsError):
        conversation.fork(1, thread_id="u")
    assert [m.text for m in other.history()] == ["b", "noted"]


# -- search ----------------------------------------------------------------------------------------


def test_search_finds_turns_of_all_threads_live_and_archived_and_says_where(
    kept: Persistence,
) -> None:
    said(
        kept,
        "flights",
        "How many flights left JFK?",
        "Which carrier has the worst punctuality in winter?",
    )
    said(kept, "chinese", "二月的航班有多少？")
    conversation = on(kept, "long")
    conversation.ask("What about the Zeppelin NT airships of Friedrichshafen?")
    talk(conversation, 40)
    assert values_of(conversation)["archive"]["count"] > 2
    assert [
        (f.thread_id, f.turn, f.number, f.title)
        for f in search_threads(kept, "punctuality of carriers")
    ][:1] == [("flights", 2, 3, "How many flights left JFK?")]
    assert [f.thread_id for f in search_threads(kept, "二月航班")] == ["chinese"]
    (found,) = search_threads(kept, "zeppelin")
    assert (found.thread_id, found.turn, found.role) == ("long", 1, "human")
    assert "Zeppelin" in found.excerpt
    assert (
        search_threads(kept, "")
        == search_threads(kept, "?!")
        == search_threads(kept, "submarine")
        == []
    )
    assert len(search_threads(kept, "flights noted", limit=2)) == 2


def test_search_shows_nothing_of_another_owner_and_nothing_excluded(kept: Persistence) -> None:
    said(kept, "a", "the salary of ann is 7", owner="ann")
    said(kept, "b", "the salary of bob is 8", owner="bob")
    said(kept, "c", "salary of nobody")
    seen = {
        owner: {f.thread_id for f in search_threads(kept, "salary", owner=owner)}
        for owner in ("ann", "bob", None)
    }
    assert seen == {"ann": {"a", "c"}, "bob": {"b", "c"}, None: {"c"}}
    assert len(search_threads(kept, "salary", all_owners=True)) == 3
    ann = on(kept, "a", "ann")
    ann.exclude(str(ann.history()[0].id))
    assert {f.thread_id for f in search_threads(kept, "salary", owner="ann")} == {"c"}


@pytest.mark.parametrize(
    ("text", "query", "holds"),
    [
        ("short text", "nothing", "short text"),
        ("filler " * 100 + "the needle here " + "filler " * 100, "needle", "the needle here"),
        (
            "needle " + "x " * 400 + "needle and thread " + "x " * 400,
            "needle thread",
            "needle and thread",
        ),
        ("航" * 300 + "延误最多的机场" + "班" * 300, "延误机场", "延误最多的机场"),
    ],
)
def test_an_excerpt_holds_what_was_found(text: str, query: str, holds: str) -> None:
    excerpt = short_excerpt(text, query)
    assert holds in excerpt
    assert len(excerpt) <= 200


# -- delete and prune ------------------------------------------------------------------------------


def test_nothing_of_a_deleted_thread_is_left_and_others_are_whole(
    kept: Persistence, tmp_path: Path
) -> None:
    talk(on(kept, "t"), 30)
    for thread_id in ("t1", "threads"):  # names that begin with its own
        talk(on(kept, thread_id), 3)
    before = on(kept, "t1").history()
    assert all(
        rows_about(tmp_path / "chat.db", "t")[table] > 10
        for table in ("checkpoints", "writes", "store")
    )
    on(kept, "t").delete()
    assert not any(rows_about(tmp_path / "chat.db", "t").values())
    assert on(kept, "t1").history() == before
    on(kept, "threads").delete()
    assert {info.thread_id for info in list_threads(kept)} == {"t1"}
    with pytest.raises(ThreadNotFoundError):
        on(kept, "t").delete()
    assert on(kept, "t").ask("anew").turn == 1


@pytest.mark.parametrize("change", [delete_thread, lambda k, t, **o: rename_thread(k, t, "x", **o)])
def test_only_its_owner_changes_a_thread(kept: Persistence, change: Callable[..., Any]) -> None:
    said(kept, "t", "mine", owner="ann")
    for other in ("bob", None):
        with pytest.raises(ThreadNotFoundError):
            change(kept, "t", owner=other)
        with pytest.raises(ThreadNotFoundError):
            on(kept, "t", other).fork(1)
    assert list_threads(kept, owner="ann")[0].title == "mine"
    change(kept, "t", owner="ann")


def test_a_deletion_killed_half_way_is_finished_by_the_next(
    kept_forty: Persistence, tmp_path: Path
) -> None:
    kept_forty.checkpointer.delete_thread("t")
    assert [info.thread_id for info in list_threads(kept_forty)] == ["t"]
    delete_thread(kept_forty, "t")
    assert not any(rows_about(tmp_path / "chat.db", "t").values())


def test_prune_deletes_what_was_not_used_for_so_long(kept: Persistence, tmp_path: Path) -> None:
    said(kept, "old", "a")
    said(kept, "new", "b", owner="ann")
    entry = kept.store.get(THREADS, "new")
    assert entry
    kept.store.put(THREADS, "new", {**entry.value, "updated": LATER.isoformat()}, index=False)
    assert prune_threads(kept, older_than=AGE, now=datetime.now(UTC), all_owners=True) == []
    assert [
        info.thread_id for info in prune_threads(kept, older_than=AGE, now=LATER, all_owners=True)
    ] == ["old"]
    assert not any(rows_about(tmp_path / "chat.db", "old").values())
    assert [info.thread_id for info in list_threads(kept, all_owners=True)] == ["new"]


def test_prune_keeps_what_has_no_time() -> None:
    infos = [
        ThreadInfo(str(n), "", "", updated, 1)
        for n, updated in enumerate(["", "soon", "2020-01-01", "2020-01-01T00:00:00+08:00"])
    ]
    assert [info.thread_id for info in stale_threads(infos, older_than=AGE, now=LATER)] == [
        "2",
        "3",
    ]
    with pytest.raises(ConfigError, match="age"):
        stale_threads(infos, older_than=-AGE, now=LATER)


def test_prune_that_keeps_the_archive_loses_no_message_no_memory_and_most_bytes(
    kept: Persistence, tmp_path: Path
) -> None:
    conversation = on(kept, owner="ann")
    talk(conversation, 40)
    conversation.pin("Amounts in euro.")
    before, view, pins = conversation.history(), conversation.view(), conversation.pins()
    rows = rows_about(tmp_path / "chat.db", "t")
    assert [
        info.thread_id
        for info in prune_threads(
            kept, older_than=AGE, now=LATER, keep_archive=True, all_owners=True
        )
    ] == ["t"]
    fewer = rows_about(tmp_path / "chat.db", "t")
    assert rows["checkpoints"] > 100
    assert fewer["checkpoints"] <= 2
    assert fewer["writes"] < rows["writes"] / 20
    assert (conversation.history(), conversation.view(), conversation.pins()) == (
        before,
        view,
        pins,
    )
    with pytest.raises(ThreadNotFoundError):
        on(kept).history()
    # Nothing more to drop.
    assert prune_threads(kept, older_than=AGE, now=LATER, keep_archive=True, all_owners=True) == []
    assert conversation.ask("and on").turn == 41
    assert (
        len(prune_threads(kept, older_than=AGE, now=LATER, keep_archive=True, all_owners=True)) == 1
    )


@pytest.mark.parametrize("at", ["delete_thread", "put"])
def test_a_reduction_killed_half_way_loses_nothing(
    kept_forty: Persistence, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, conversation = kept_forty, on(kept_forty)
    before = [(m.type, m.text, m.id) for m in conversation.history()]
    real = getattr(kept.checkpointer, at)

    def dies(*args: Any, **kwargs: Any) -> Any:
        if at == "delete_thread":
            real(*args, **kwargs)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(kept.checkpointer, at, dies)
        with pytest.raises(PersistenceError):
            prune_threads(kept, older_than=AGE, now=LATER, keep_archive=True)
    assert search_threads(kept, "q3")[0].turn == 4
    assert len(prune_threads(kept, older_than=AGE, now=LATER, keep_archive=True)) == 1
    assert [(m.type, m.text, m.id) for m in conversation.history()] == before


def test_an_interrupted_turn_is_not_reduced(kept: Persistence) -> None:
    conversation = on(kept)
    conversation.graph.invoke(
        {"messages": [HumanMessage("wait")]},
        conversation.config,
        context=CONTEXT,
        interrupt_before=["respond"],
    )
    assert conversation.pending()
    assert prune_threads(kept, older_than=AGE, now=LATER, keep_archive=True) == []
    assert conversation.pending()


# -- the reader, and async -------------------------------------------------------------------------


def test_the_reader_has_the_nodes_of_the_graph_and_runs_none(kept: Persistence) -> None:
    assert set(build_graph(model=script("x")).nodes) == set(NODES)
    said(kept, "t", "a")
    looking = Conversation(reader(kept), "t", context=Context(model_limit=8_000))
    assert [m.text for m in looking.history()] == ["a", "noted"]
    with pytest.raises(ConfigError, match="build_graph"):
        looking.ask("b")


def test_async_does_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
            conversation = on(kept)
            for n in range(30):
                await conversation.aask(f"q{n} " + "w " * 82)
            before = await conversation.ahistory()
            fork = await conversation.afork(20)
            assert await fork.ahistory() == before[:40]
            assert await fork.arename("Fork") == await arename_thread(kept, fork.thread_id, "Fork")
            assert {f.thread_id for f in await asearch_threads(kept, "q3")} == {"t", fork.thread_id}
            assert (
                len(await aprune_threads(kept, older_than=AGE, now=LATER, keep_archive=True)) == 2
            )
            assert await conversation.ahistory() == before
            await fork.adelete()
            assert [
                info.thread_id for info in await aprune_threads(kept, older_than=AGE, now=LATER)
            ] == ["t"]
            with pytest.raises(ThreadNotFoundError):
                await adelete_thread(kept, "t")

    asyncio.run(work())
    assert not any(rows_about(tmp_path / "chat.db", "t").values())
