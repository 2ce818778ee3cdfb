"""What is folded is written to a file first, whole and once; its key leads nowhere else, and it
goes with its thread.
"""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import (
    PersistenceError,
    StoreKeyError,
    ThreadNotFoundError,
    UnknownArchiveError,
)
from longtable.base.stored import NODE
from longtable.graph import (
    ArchiveFiles,
    CompactionPolicy,
    ConfigError,
    Context,
    Conversation,
    as_node,
    build_graph,
    delete_thread,
    node_thread_id,
    open_persistence,
    prune_threads,
)
from longtable.memory.search import Original
from longtable.store.records.retired import decode_message
from tests.support.threads import CONTEXT, Events, of_type, summariser, talk, talker, thread

KEY = "correct horse battery staple"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def conversation(
    files: ArchiveFiles, *, saver: Any = None, store: Any = None, thread_id: str = "t", **more: Any
) -> Conversation:
    """Return a conversation that archives what it folds."""
    made = thread(thread_id=thread_id, saver=saver, store=store, hooks=[files], **more)
    made.archive = files
    return made


def folds(events: Events) -> Events:
    """Return what was told of folds."""
    return of_type(events, "context_compressed")


def one_file(files: ArchiveFiles, thread_id: str = "t") -> str:
    """Write a file of one message and return its key."""
    return files.keep(
        thread_id, [Original(1, HumanMessage("secret", id="m1"))], compaction="c", time=NOON
    )


def test_each_compaction_leaves_a_file_with_the_originals_it_covers(tmp_path: Path) -> None:
    talked = conversation(ArchiveFiles(tmp_path / "archive"), summarizer=summariser())
    told = folds(talk(talked, 30))
    files = talked.archive_files()
    assert len(told) == len(files) >= 2
    assert [event["archive"] for event in told] == [file.key for file in files]
    assert [file.first for file in files] == [1, *(file.last + 1 for file in files[:-1])]
    for file in files:
        found = json.loads(talked.archive_file(file.key))
        assert [
            decode_message(json.dumps(each["message"])) for each in found["messages"]
        ] == talked.history(start=file.first, limit=file.last - file.first + 1)
        assert (found["thread_id"], found["first"], found["last"]) == ("t", file.first, file.last)
    assert not list(tmp_path.rglob("draft-*"))


def test_async_and_asked_for_it_is_the_same(tmp_path: Path) -> None:
    async def run() -> None:
        talked = conversation(ArchiveFiles(tmp_path))
        for n in range(8):
            await talked.aask(f"q{n} " + "w " * 82)
        event = await talked.acompact()
        assert event is not None
        keys = [file.key for file in await talked.aarchive_files()]
        assert event.get("archive") == keys[-1]
        assert json.loads(await talked.aarchive_file(keys[0]))["first"] == 1
        await talked.adelete()
        assert talked.archive is not None
        assert talked.archive.files("t") == []

    asyncio.run(run())


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_fork_has_the_files_of_its_compactions_and_they_stay_when_the_other_goes(
    tmp_path: Path, key: str | None, asynchronous: bool
) -> None:
    files = ArchiveFiles(tmp_path / "archive", key=key)
    talked = conversation(files, summarizer=summariser())
    talk(talked, 30)
    whole = talked.archive_files()
    if asynchronous:
        fork = asyncio.run(talked.afork(20, thread_id="f"))
        mine = asyncio.run(fork.aarchive_files())
    else:
        fork = talked.fork(20, thread_id="f")
        mine = fork.archive_files()
    assert 1 <= len(mine) < len(whole)
    assert mine == whole[: len(mine)]
    assert len(mine) == len(fork.graph.get_state(fork.config).values["compactions"])
    texts = [talked.archive_file(file.key) for file in mine]
    talked.delete()
    assert [fork.archive_file(file.key) for file in mine] == texts
    fork.delete()
    assert not list(tmp_path.rglob("*.json"))


def test_a_nodes_files_are_found_by_its_name(tmp_path: Path) -> None:
    files = ArchiveFiles(tmp_path / "archive")
    policy = CompactionPolicy(keep_rounds=1, min_messages=2)
    builder = StateGraph(MessagesState, context_schema=Context)
    builder.add_node(
        "analyst",
        as_node(build_graph(model=talker(), hooks=[files], policy=policy), context=CONTEXT),
    )
    builder.add_edge(START, "analyst")
    app = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    for n in range(30):
        app.invoke({"messages": [HumanMessage(f"q{n}")]}, {"configurable": {"thread_id": "t"}})
    assert not files.files("t")
    [file, *_] = files.files(node_thread_id("t", "analyst"))
    assert json.loads(files.read(node_thread_id("t", "analyst"), file.key))["first"] == 1


def test_a_resumed_compaction_writes_its_file_once(tmp_path: Path) -> None:
    files = ArchiveFiles(tmp_path)
    key = one_file(files)
    assert one_file(files) == key
    other = files.keep(
        "t", [Original(1, HumanMessage("another branch", id="m2"))], compaction="d", time=NOON
    )
    assert (key, other) == ("20261121T120000Z-1-1.json", "20261121T120000Z-1-1-2.json")
    assert "secret" in files.read("t", key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "..",
        "../other.json",
        "../../chat.db",
        "/etc/passwd",
        "//server/share/x.json",
        "C:\\Windows\\win.ini",
        "..\\x.json",
        "CON",
        "NUL.json",
        "20261121T120000Z-1-1.json:stream",
        "20261121T120000Z-1-1.json\n",
        "20261121T120000Z-1-1.json\0",
        "20261121T120000Z-1-1.json\0.txt",
        "./20261121T120000Z-1-1.json",
        "20261121T120000Z-1-1.JSON",
        "２０２６1121T120000Z-1-1.json",
        "20261121T120000Z-1-1․json",
        "%2e%2e%2fother.json",
        "~/x.json",
        "draft-1.json",
        "20261121T120000Z-1-1.json" * 200,
        "\ud800.json",
    ],
)
def test_no_key_leads_out_of_its_folder(tmp_path: Path, key: str) -> None:
    files = ArchiveFiles(tmp_path / "archive")
    one_file(files)
    (tmp_path / "archive" / "other.json").write_text("no")
    with pytest.raises(UnknownArchiveError):
        files.read("t", key)


def test_no_link_and_no_pipe_is_followed(tmp_path: Path) -> None:
    files = ArchiveFiles(tmp_path / "archive")
    key = one_file(files)
    [home] = (tmp_path / "archive").iterdir()
    (tmp_path / "outside.json").write_text("no")
    (home / "20260101T000000Z-1-1.json").symlink_to(tmp_path / "outside.json")
    os.mkfifo(home / "20260102T000000Z-1-1.json")
    assert [file.key for file in files.files("t")] == [key]
    for name in ("20260101T000000Z-1-1.json", "20260102T000000Z-1-1.json"):
        with pytest.raises(UnknownArchiveError):
            files.read("t", name)
    home.rename(tmp_path / "elsewhere")
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnknownArchiveError):
        files.read("t", key)
    assert files.files("t") == []
    files.delete("t")
    assert (tmp_path / "elsewhere" / key).is_file()


@pytest.mark.parametrize(
    "thread_id",
    ["..", "/etc", "a/../b", "CON", "a\0b", "Ünï 会话", ".", "", "x" * 5_000, "\ud800", "T"],
)
def test_a_thread_of_any_name_has_a_folder_of_its_own_inside(
    tmp_path: Path, thread_id: str
) -> None:
    files = ArchiveFiles(tmp_path / "archive")
    one_file(files)
    key = one_file(files, thread_id)
    assert [file.key for file in files.files(thread_id)] == [key]
    homes = list((tmp_path / "archive").iterdir())
    assert len({home.name.lower() for home in homes}) == 2
    assert {path.parent.parent for path in tmp_path.rglob("*.json")} == {tmp_path / "archive"}
    files.delete(thread_id)
    assert files.files(thread_id) == []
    assert len(files.files("t")) == 1


def test_another_owners_files_are_not_found(tmp_path: Path) -> None:
    talked = conversation(ArchiveFiles(tmp_path))
    talked.context = CONTEXT.replace(owner="ann")
    talk(talked, 12)
    [key, *_] = [file.key for file in talked.archive_files()]
    other = Conversation(talked.graph, "t", context=CONTEXT.replace(owner="bob"), archive=tmp_path)
    with pytest.raises(ThreadNotFoundError):
        other.archive_files()
    with pytest.raises(ThreadNotFoundError):
        other.archive_file(key)
    with pytest.raises(ConfigError, match=r"archive=\.\.\."):
        Conversation(talked.graph, "t", context=talked.context).archive_files()


def test_a_file_that_cannot_be_written_is_told_and_the_turn_goes_on(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file is in the way")
    talked = conversation(ArchiveFiles(tmp_path / "archive"))
    told = folds(talk(talked, 12))
    assert told
    assert all("archive" not in event for event in told)
    assert {reason["code"] for event in told for reason in event["reasons"]} == {"archive_failed"}
    assert len(talked.history()) == 24
    with pytest.raises(PersistenceError, match="cannot be written"):
        one_file(ArchiveFiles(tmp_path / "archive"))


def test_in_an_encrypted_store_no_plain_file_is_written(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db", key=KEY) as kept:
        for key in (None, KEY):
            files = ArchiveFiles(tmp_path / "archive", key=key)
            talked = conversation(
                files, saver=kept.checkpointer, store=kept.store, thread_id=f"t{key}"
            )
            told = folds(talk(talked, 12))
            reasons = {reason["code"] for event in told for reason in event["reasons"]}
            assert reasons == ({"archive_failed"} if key is None else set())
        [file, *_] = talked.archive_files()
        assert "answer to q0" in talked.archive_file(file.key)
        assert b"answer to" not in b"".join(
            path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
        )
        again = ArchiveFiles(tmp_path / "archive", key=KEY)
        assert again.read(f"t{KEY}", file.key) == talked.archive_file(file.key)
        for wrong in (None, "another key of some length"):
            with pytest.raises(StoreKeyError):
                ArchiveFiles(tmp_path / "archive", key=wrong).read(f"t{KEY}", file.key)


def test_files_go_with_their_thread_and_stay_where_the_archive_is_kept(tmp_path: Path) -> None:
    files = ArchiveFiles(tmp_path / "archive")
    with open_persistence("memory://") as kept:
        for name in ("one", "two", "three"):
            talk(conversation(files, saver=kept.checkpointer, store=kept.store, thread_id=name), 12)
            one_file(files, NODE.join([name, "node"]))
        later = datetime.now(UTC) + timedelta(days=9)
        assert (
            len(
                prune_threads(
                    kept, older_than=timedelta(1), now=later, keep_archive=True, archive=files
                )
            )
            == 3
        )
        assert all(files.files(name) for name in ("one", "two", "three"))
        Conversation(
            conversation(files, saver=kept.checkpointer, store=kept.store).graph,
            "one",
            archive=files,
        ).delete()
        delete_thread(kept, "two", archive=files)
        assert len(prune_threads(kept, older_than=timedelta(1), now=later, archive=files)) == 1
        assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("folder", [3, "", None])
def test_a_folder_that_is_none_is_refused(folder: Any) -> None:
    with pytest.raises(ConfigError, match="ArchiveFiles takes a folder"):
        ArchiveFiles(folder)


def test_archive_files_are_a_hook() -> None:
    build_graph(model=talker(), hooks=[ArchiveFiles("archive")]).compile(
        checkpointer=InMemorySaver(), store=InMemoryStore()
    )
