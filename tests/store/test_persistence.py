"""Where threads live: sync and async, closed and opened again, and clear errors for what cannot be
opened.
"""

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import duckdb
import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.faults.files import folder_for_all
from longtable.base.errors import ConfigError, PersistenceError, ThreadNotFoundError
from longtable.graph import (
    Context,
    Conversation,
    build_graph,
    list_threads,
    open_persistence,
    search_threads,
)
from longtable.graph.listing.thread_list import alist_threads
from longtable.graph.thread_state import Graph
from longtable.store import persistence, sqlite_setup
from longtable.store.persistence import Persistence
from longtable.store.storage_errors import storage_errors
from tests.support.forked import SERVER, run
from tests.support.models import script

SMALL = Context(model_limit=4_000)


def ask(url: str, thread_id: str, text: str, answer: str = "fine") -> int:
    with open_persistence(url) as kept:
        graph = build_graph(model=script(answer)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        return Conversation(graph, thread_id, context=SMALL).ask(text).turn


def test_a_thread_goes_on_after_it_was_closed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/deep/er/chat.db"
    assert ask(url, "t", "one") == 1
    assert ask(url, "t", "two") == 2
    with sqlite3.connect(tmp_path / "deep/er/chat.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_sync_and_async_share_one_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chat.db"
    ask(url, "t", "sync")

    async def run() -> list[str]:
        async with open_persistence(url) as kept:
            graph = build_graph(model=script("fine")).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )
            conversation = Conversation(graph, "t", context=SMALL)
            await conversation.aask("async")
            assert [info.turns for info in await alist_threads(kept)] == [2]
            return [m.text for m in await conversation.ahistory()]

    assert asyncio.run(run()) == ["sync", "fine", "async", "fine"]


def _open_new(url: str, together: Barrier) -> None:
    together.wait(30)
    with open_persistence(url) as kept:
        kept.store.put(("made",), str(os.getpid()), {"by": "one of many"})


def test_several_processes_may_make_one_new_file(tmp_path: Path) -> None:
    url, together = f"sqlite:///{tmp_path}/new.db", SERVER.Barrier(6)
    processes = [SERVER.Process(target=_open_new, args=(url, together)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    with open_persistence(url) as kept:
        assert len(kept.store.search(("made",))) == 6


def test_after_a_store_is_closed_no_thread_of_ours_stays(tmp_path: Path) -> None:
    # Pools that other tests of this process left open are theirs.
    before = set(threading.enumerate())

    def ours() -> list[str]:
        names = [thread.name for thread in threading.enumerate() if thread not in before]
        return [name for name in names if name.startswith("longtable")]

    async def use() -> None:
        kept = open_persistence(f"sqlite:///{tmp_path / 'chat.db'}")
        async with kept:
            await asyncio.gather(*(alist_threads(kept) for _ in range(64)))
            assert ours()

    asyncio.run(use())
    deadline = time.monotonic() + 5
    while ours() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ours() == []


def test_threads_are_listed_newest_first_with_their_titles(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chat.db"
    with open_persistence(url) as kept:
        assert list_threads(kept) == []
    for thread_id, text in (
        ("a", "first  question\nof a"),
        ("b", "二月有多少航班？"),
        ("a", "second of a"),
    ):
        ask(url, thread_id, text)
    with open_persistence(url) as kept:
        listed = list_threads(kept)
        titles = {info.thread_id: (info.title, info.turns) for info in listed}
        assert titles == {"a": ("first question of a", 2), "b": ("二月有多少航班？", 1)}
        assert [info.updated for info in listed] == sorted(
            (info.updated for info in listed), reverse=True
        )
        assert len(list_threads(kept, limit=1)) == 1


def test_memory_keeps_nothing_on_disk() -> None:
    with open_persistence("memory://") as kept:
        graph = build_graph(model=script("fine")).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        assert Conversation(graph, "t", context=SMALL).ask("hi").text == "fine"
        assert [info.thread_id for info in list_threads(kept)] == ["t"]


@pytest.mark.parametrize(
    "url", ["postgres://x", "chat.db", "sqlite:///", "", "mysql://u:secret@h/d"]
)
def test_another_url_is_refused_without_its_credentials(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///path") as caught:
        open_persistence(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("dear reader, " * 100)
    with (
        pytest.raises(PersistenceError, match="not a SQLite database"),
        open_persistence(f"sqlite:///{path}"),
    ):
        pass
    assert path.read_text() == "dear reader, " * 100


def test_a_file_of_no_bytes_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_setup, "EMPTY_SECONDS", 0.1)
    path = tmp_path / "chat.db"
    ask(f"sqlite:///{path}", "t", "one")
    os.truncate(path, 0)
    with (
        pytest.raises(
            PersistenceError, match=r"is empty \(0 bytes\).*Restore it from a copy, or delete"
        ),
        open_persistence(f"sqlite:///{path}"),
    ):
        pass
    assert path.stat().st_size == 0
    path.unlink()
    assert ask(f"sqlite:///{path}", "t", "one") == 1


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "text"])
def test_a_file_of_somebody_elses_data_is_refused_and_left_as_it_is(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "shop.db"
    if kind == "text":
        path.write_text("a,b\n1,2\n" * 1_000)
    else:
        with closing(
            sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))
        ) as connection:
            connection.execute("CREATE TABLE store (id INTEGER, city TEXT)")
            connection.execute("INSERT INTO store VALUES (1, 'Leipzig')")
            connection.commit()
    before = path.read_bytes()
    with pytest.raises(PersistenceError, match="give"), open_persistence(f"sqlite:///{path}"):
        pass
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["shop.db"]


def test_a_store_of_langgraphs_own_savers_is_opened(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "chat.db")) as saver:
        saver.setup()
    assert ask(f"sqlite:///{tmp_path}/chat.db", "t", "one") == 1


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_told(share: float, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    ask(f"sqlite:///{path}", "t", "one")
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(PersistenceError, match="damaged"):
        ask(f"sqlite:///{path}", "t", "two")


def _read_as_nobody(folder: Path, kind: str) -> None:
    if os.getuid() == 0:
        os.setuid(65_534)
    url = f"sqlite:///{folder}/chat.db"

    async def look() -> None:
        async with open_persistence(url) as kept:
            assert [info.thread_id for info in await alist_threads(kept)] == ["t"]
            conversation = Conversation(
                build_graph(model=script("fine")).compile(
                    checkpointer=kept.checkpointer, store=kept.store
                ),
                "t",
            )
            assert "one" in await conversation.aexport()
            with pytest.raises(PersistenceError, match="check that it can be written"):
                await conversation.aask("two")

    if kind == "async":
        asyncio.run(look())
        return
    with open_persistence(url) as kept:
        assert [info.thread_id for info in list_threads(kept)] == ["t"]
        assert len(search_threads(kept, "one")) == 1
        conversation = Conversation(
            build_graph(model=script("fine")).compile(
                checkpointer=kept.checkpointer, store=kept.store
            ),
            "t",
        )
        assert [m.text for m in conversation.history()] == ["one", "fine"]
        assert "one" in conversation.export()
        for write in (
            lambda: conversation.ask("two"),
            lambda: conversation.rename("new"),
            conversation.fork,
            conversation.delete,
        ):
            with pytest.raises(PersistenceError, match="check that it can be written"):
                write()
    assert sorted(file.name for file in folder.iterdir() if file.stat().st_size) == ["chat.db"]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(("file", "place"), [(0o444, 0o777), (0o444, 0o555), (0o644, 0o555)])
def test_a_store_that_cannot_be_written_is_listed_shown_and_exported(
    file: int, place: int, kind: str
) -> None:
    with folder_for_all() as folder:
        ask(f"sqlite:///{folder}/chat.db", "t", "one")
        (folder / "chat.db").chmod(file)
        folder.chmod(place)
        done = run(_read_as_nobody, folder, kind, timeout=60)
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr.decode()


def test_a_folder_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "chat.db"):
        with pytest.raises(PersistenceError), open_persistence(f"sqlite:///{path}"):
            pass


def test_a_locked_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chat.db"
    ask(f"sqlite:///{path}", "t", "one")
    monkeypatch.setattr(persistence, "BUSY_TIMEOUT_MS", 100)
    monkeypatch.setattr(sqlite_setup, "BUSY_TIMEOUT_MS", 100)
    holder = sqlite3.connect(path)
    holder.execute("PRAGMA locking_mode=EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(PersistenceError, match="locked"), open_persistence(f"sqlite:///{path}"):
        pass
    holder.close()
    assert ask(f"sqlite:///{path}", "t", "two") == 2


@pytest.mark.parametrize("key", [None, "a passphrase of some length"])
def test_a_store_that_another_program_writes_to_can_be_opened_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    url = f"sqlite:///{tmp_path}/chat.db"
    monkeypatch.setattr(persistence, "BUSY_TIMEOUT_MS", 100)
    monkeypatch.setattr(sqlite_setup, "BUSY_TIMEOUT_MS", 100)

    def graph_on(kept: Persistence) -> Graph:
        return build_graph(model=script("fine")).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )

    with open_persistence(url, key=key) as kept:
        Conversation(graph_on(kept), "t", context=SMALL).ask("one")
        with closing(sqlite3.connect(tmp_path / "chat.db", isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            for opened in (kept, open_persistence(url, key=key)):
                assert [info.thread_id for info in list_threads(opened)] == ["t"]
                assert [hit.thread_id for hit in search_threads(opened, "one")] == ["t"]
                talk = Conversation(graph_on(opened), "t", context=SMALL)
                assert [message.text for message in talk.history()] == ["one", "fine"]
                with pytest.raises(PersistenceError, match="locked"):
                    talk.ask("two")
            opened.close()
            holder.execute("ROLLBACK")
        assert Conversation(graph_on(kept), "t", context=SMALL).ask("two").turn == 2


def test_one_connection_in_two_threads_is_not_told_as_damage() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    failure = sqlite3.InterfaceError("bad parameter or other API misuse")
    failure.sqlite_errorcode = sqlite3.SQLITE_MISUSE
    with pytest.raises(PersistenceError, match="two threads at once"), storage_errors():
        raise failure
    connection.close()
    with (
        pytest.raises(PersistenceError, match="the conversation store was closed: open it again"),
        storage_errors(),
    ):
        connection.execute("SELECT 1")


def _fill_the_disk(folder: Path) -> None:
    with open_persistence(f"sqlite:///{folder}/chat.db") as kept:
        kept.store.put(("a",), "k", {"v": 1})
        # SQLite cannot tell a file that may not grow any more from a full disk.
        resource.setrlimit(
            resource.RLIMIT_FSIZE,
            (max(file.stat().st_size for file in folder.iterdir()), resource.RLIM_INFINITY),
        )
        with pytest.raises(sqlite3.OperationalError):
            kept.store.put(("a",), "k", {"v": "long " * 5_000})
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        graph = build_graph(model=script("fine")).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        assert Conversation(graph, "t", context=SMALL).ask("one").turn == 1


def test_a_disk_that_was_full_for_a_moment_stops_nobody_afterwards(tmp_path: Path) -> None:
    done = run(_fill_the_disk, tmp_path, timeout=30)
    assert done.returncode == 0, done.stderr.decode()


def test_an_unknown_thread_is_not_found_and_not_made() -> None:
    with open_persistence("memory://") as kept:
        graph = build_graph(model=script("fine")).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(graph, "nobody", context=SMALL)
        for look in (conversation.history, conversation.view, conversation.compact):
            with pytest.raises(ThreadNotFoundError, match="nobody"):
                look()
        assert list_threads(kept) == []


def test_a_conversation_needs_a_checkpointer() -> None:
    with pytest.raises(ConfigError, match="checkpointer"):
        Conversation(build_graph(model=script("x")).compile())


STRICT = """
from tests.store.test_persistence import ask
import sys
url = sys.argv[1]
for n in range(12):
    ask(url, "t", f"q{n} " + "w " * 160, "a " * 160)
from longtable.graph import open_persistence, build_graph, Conversation
from tests.support.models import script
with open_persistence(url) as kept:
    conversation = Conversation(build_graph(model=script("x")).compile(checkpointer=kept.checkpointer), "t")
    values = conversation.graph.get_state(conversation.config).values
    assert values["compactions"] and [type(m).__name__ for m in values["messages"][:2]] == ["HumanMessage", "AIMessage"]
"""


REFUSED = """
import sys
from langgraph.checkpoint.memory import InMemorySaver
from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.base.errors import ProviderRefusedError
from tests.support import model_server

def picky(request):
    refusal = model_server.error(400, "flagged", code="content_filter")
    return refusal if "poison" in str(request.messages) else model_server.say("fine")

with model_server.open_model_server() as server, open_persistence(sys.argv[1]) as kept:
    server.always(picky)
    for saver in (InMemorySaver(), kept.checkpointer):
        graph = build_graph(model=server.chat_model()).compile(checkpointer=saver)
        talk = Conversation(graph, "t", context=Context(model_limit=9_000))
        try:
            talk.ask("poison")
        except ProviderRefusedError as error:
            assert error.left_out
        assert "ProviderRefusedError" in str(graph.get_state(talk.config).tasks)
        assert talk.ask("two").text == "fine"
        assert [message.text for message in talk.history()] == ["poison", "two", "fine"]
"""


def strictly(code: str, url: str) -> str:
    """Run code in a process where LangGraph decodes no class it does not know; return its standard
    error.
    """
    env = {"LANGGRAPH_STRICT_MSGPACK": "true", "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", code, url],
        cwd=Path(__file__).parents[2],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_state_survives_strict_msgpack(tmp_path: Path) -> None:
    """No class of ours is in a checkpoint: only messages and plain JSON."""
    said = strictly(STRICT, f"sqlite:///{tmp_path}/chat.db")
    assert "unregistered" not in said
    assert "Blocked" not in said


def test_a_refused_turn_can_be_read_under_strict_msgpack(tmp_path: Path) -> None:
    """LangGraph writes the error beside the checkpoint; blocked, it is read as the dictionary of
    its sentence.
    """
    strictly(REFUSED, f"sqlite:///{tmp_path}/chat.db")


CLOSED_UNDER_WORK = """
import sys, threading
from longtable.graph import open_persistence

def work(kept):
    try:
        while True:
            kept.store.put(("a",), "k", {"text": "x" * 5_000})
            kept.store.search(("a",))
            kept.checkpointer.get_tuple({"configurable": {"thread_id": "t"}})
    except Exception:
        pass  # it was closed

for number in range(60):
    with open_persistence(sys.argv[1]) as kept:
        threads = [threading.Thread(target=work, args=(kept,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        kept.store.put(("b",), "k", {"number": number})
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
"""


def test_a_store_may_be_closed_while_other_threads_are_at_work_on_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLOSED_UNDER_WORK, f"sqlite:///{tmp_path}/chat.db"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
