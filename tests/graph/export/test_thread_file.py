"""A thread exported and imported again is the same, byte for byte; what is no whole export is
refused and writes nothing.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.base.errors import ThreadExistsError, ThreadFormatError, ThreadNotFoundError
from longtable.graph import (
    CompactionPolicy,
    ConfigError,
    Conversation,
    MemoryTools,
    Persistence,
    build_graph,
    list_threads,
    open_persistence,
)
from longtable.graph.export.thread_file import export_lines, import_lines
from longtable.graph.thread_state import StoredThreads, reader
from longtable.graph.threads import aimport_thread, import_thread
from longtable.graph.transcripts import ThreadRecord, load_thread, save_thread
from longtable.memory.messages.marks import marked
from tests.support.histories import histories
from tests.support.threads import CONTEXT, summariser, talk, talker

SHORT = CompactionPolicy(retire_after=16)


def on(kept: Persistence, thread_id: str = "t", owner: str | None = None) -> Conversation:
    graph = build_graph(
        model=talker(),
        summarizer=summariser(),
        memory_tools=MemoryTools(recall=False),
        policy=SHORT,
    )
    return Conversation(
        graph.compile(checkpointer=kept.checkpointer, store=kept.store),
        thread_id,
        context=CONTEXT.replace(owner=owner),
    )


def long_talk(kept: Persistence, owner: str | None = None) -> Conversation:
    conversation = on(kept, owner=owner)
    talk(conversation, 30)
    conversation.pin("Amounts in euro; 金额以欧元计。")
    conversation.exclude(str(conversation.history()[3].id))
    conversation.rename("Naïve – 标题 \u2028")
    return conversation


def test_a_thread_imported_elsewhere_is_the_same_and_goes_on(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'a.db'}") as here:
        original = long_talk(here, "ann")
        text = original.export()
        history, view, pins, listed = (
            original.history(),
            original.view(),
            original.pins(),
            list_threads(here, owner="ann"),
        )
    assert text.isascii()
    with open_persistence(f"sqlite:///{tmp_path / 'b.db'}") as there:
        assert import_thread(there, text.splitlines(keepends=True)) == "t"
        again = on(there, owner="ann")
        assert again.export() == text
        assert (again.history(), again.view(), again.pins(), list_threads(there, owner="ann")) == (
            history,
            view,
            pins,
            listed,
        )
        assert again.ask("and on").turn == 31
        assert [m.text for m in again.history()[:60]] == [m.text for m in history]
        with pytest.raises(ThreadNotFoundError):
            on(there, owner="bob").export()
        with pytest.raises(ThreadExistsError):
            import_thread(there, text.splitlines())
        import_thread(there, text.splitlines(), thread_id="mine", owner="bob")
        assert on(there, "mine", "bob").history() == history
        with pytest.raises(ThreadNotFoundError):
            on(there, "mine", "ann").history()


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=5,
)
METADATA = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1), PLAIN, max_size=2
)


def put(kept: Persistence, whole: ThreadRecord) -> str:
    threads = StoredThreads(reader(kept))
    save_thread(threads, whole)
    return "".join(export_lines(load_thread(threads, whole.thread_id, None)[0]))


@given(
    history=histories(most_rounds=8, recalls=True),
    metadata=METADATA,
    usage=METADATA,
    archived=st.integers(0, 40),
    title=st.text(max_size=20),
)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_thread_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory,
    history: Sequence[BaseMessage],
    metadata: dict[str, Any],
    usage: dict[str, Any],
    archived: int,
    title: str,
) -> None:
    folder = tmp_path_factory.mktemp("export")
    messages = [
        marked(
            message.model_copy(update={"response_metadata": metadata}),
            turn=i // 2 + 1,
            time="2026-01-01T00:00:00+00:00",
        )
        for i, message in enumerate(history)
    ]
    clean = title.encode("utf-8", "replace").decode()
    whole = ThreadRecord(
        thread_id="t.1",
        entry={"title": clean, "created": "", "updated": "", "turns": 1, "messages": len(messages)},
        messages=messages,
        archived=min(archived, len(messages)),
        edits=[{"id": "e1", "op": "exclude", "message": messages[0].id, "number": 1}],
        turn={"number": 1, "status": "answered"},
        channels={"usage": usage} if usage else {},
    )
    with (
        open_persistence(f"sqlite:///{folder / 'a.db'}") as here,
        open_persistence(f"sqlite:///{folder / 'b.db'}") as there,
    ):
        text = put(here, whole)
        again = put(there, import_lines(text.splitlines(keepends=True)))
    assert again == text
    assert [
        json.loads(line)["message"]["fields"]["id"]
        for line in text.splitlines()
        if '"type":"message"' in line
    ] == [m.id for m in messages]


def sealed(lines: list[str]) -> list[str]:
    """Return lines with an end that fits them, as somebody who makes up a file would write it."""
    body = [line.rstrip("\n") + "\n" for line in lines]
    digest = hashlib.sha256("".join(body).encode()).hexdigest()
    return [*body, json.dumps({"type": "end", "lines": len(body), "sha256": digest})]


def changed(**fields: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: sealed([json.dumps({**json.loads(lines[0]), **fields}), *lines[1:-1]])


def with_message(**fields: Any) -> Callable[[list[str]], list[str]]:
    def change(lines: list[str]) -> list[str]:
        first = json.loads(lines[1])
        first["message"]["fields"].update(fields)
        return sealed([lines[0], json.dumps(first), *lines[2:-1]])

    return change


def with_line(**fields: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: sealed([*lines[:-1], json.dumps(fields)])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed(schema=2), "schema 2, this version reads up to 1: update"),
        (changed(type="other"), "does not begin"),
        (changed(schema="1"), "does not begin"),
        (changed(thread_id=7), "first line"),
        (changed(archived=-1), "first line"),
        (changed(archived=999), "archived"),
        (changed(entry={"title": 7}), "first line"),
        (changed(entry={"evil": "x"}), "first line"),
        (changed(entry={"owner": " x"}), "owner"),
        (changed(entry={"owner": "eve"}), "two owners"),
        (with_message(id=None), "message 1"),
        (with_message(id="same", content=7), "message 1"),
        (with_message(content={"%": "bytes", "value": "?"}), "message 1"),
        (with_line(type="edit", edit={"id": "x"}), "memory"),
        (with_line(type="compaction", record={"id": "x"}), "memory"),
        (with_line(type="edit", edit=[]), "edit"),
        (with_line(type="state", turn=[]), "turn"),
        (with_line(type="state", turn={}, brief={"policy": {"threshold": 7}}), "memory"),
        (with_line(type="ledger"), "ledger.*update"),
        (lambda lines: lines[:-1], "cut off"),
        (lambda lines: lines[:3], "cut off"),
        (lambda lines: [*lines[:2], *lines[3:]], "message 2"),
        (lambda lines: [lines[0], lines[1].replace("q0", "q9"), *lines[2:]], "not as it was"),
        (lambda lines: [*lines, lines[0]], "follows"),
        (lambda lines: [], "cut off"),
        (lambda lines: ["hello"], "line 1"),
        (lambda lines: ["[" * 100_000], "line 1"),
        (lambda lines: ["{}"], "line 1"),
    ],
)
def test_a_file_that_is_no_whole_export_is_refused_and_nothing_is_written(
    change: Callable[[list[str]], list[str]], says: str, exported: list[str], tmp_path: Path
) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'b.db'}") as there:
        with pytest.raises(ThreadFormatError, match=says):
            import_thread(there, change(exported))
        assert list_threads(there, all_owners=True) == []
        assert list(there.checkpointer.list(None)) == []


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with open_persistence(f"sqlite:///{tmp_path_factory.mktemp('export') / 'a.db'}") as here:
        return long_talk(here).export().splitlines()


def test_two_messages_of_one_id_are_refused() -> None:
    whole = ThreadRecord("t", {}, [HumanMessage("a", id="x"), AIMessage("b", id="x")], 0)
    with pytest.raises(ThreadFormatError, match="share an id"):
        import_lines(export_lines(whole))


def test_a_thread_that_was_run_without_a_store_is_exported_and_imported_too(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'a.db'}") as kept:
        bare = Conversation(
            build_graph(model=talker(), memory_tools=MemoryTools(recall=False)).compile(
                checkpointer=kept.checkpointer
            ),
            "t",
            context=CONTEXT,
        )
        talk(bare, 3)
        text = bare.export()
        import_thread(kept, text.splitlines(), thread_id="copy")
        assert on(kept, "copy").history() == bare.history()


def test_a_thread_is_exported_for_people_too(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'a.db'}") as here:
        conversation = long_talk(here)
        markdown, page = conversation.export("markdown"), conversation.export("html")
        for n in (1, 15, 30):
            assert f"## Turn {n} " in markdown
            assert f"Turn {n} " in page
        assert "(left out of memory)" in markdown
        with pytest.raises(ConfigError, match="pdf"):
            conversation.export("pdf")  # type: ignore[arg-type]  # what a caller without type checks may give


def test_an_owner_that_cannot_be_one_is_refused(exported: list[str]) -> None:
    with pytest.raises(ConfigError, match="owner"):
        import_lines(exported, owner="\n")


def test_async_does_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_persistence(f"sqlite:///{tmp_path / 'a.db'}") as kept:
            conversation = on(kept)
            for n in range(20):
                await conversation.aask(f"q{n} " + "w " * 82)
            text = await conversation.aexport()
            await conversation.adelete()
            await aimport_thread(kept, text.splitlines())
            assert await conversation.aexport() == text

    asyncio.run(work())
