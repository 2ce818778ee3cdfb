"""The index beside a thread follows all that is done to the thread."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.stored import thread_namespace
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    build_graph,
    import_thread,
    open_persistence,
)
from longtable.graph.pruning import prune_threads
from longtable.graph.threads import delete_thread, move_thread
from longtable.store.persistence import Persistence
from longtable.store.records.word_index import SEGMENT, SHARDS
from tests.support.models import ScriptedModel, call
from tests.support.threads import values_of

KEY = "correct horse battery staple"
TURNS = 80
LIMIT = 3_000


def say(sent: Any) -> AIMessage:
    if isinstance(sent[-1], ToolMessage):
        hits = json.loads(sent[-1].text)["messages"]
        return AIMessage(f"read: {[(hit['number'], hit['text']) for hit in hits]}")
    if sent[-1].text.startswith("recall "):
        return call("recall_history", "c1", query=sent[-1].text.removeprefix("recall "))
    return AIMessage("noted " + "a " * 30)


def conversation_on(kept: Persistence, thread_id: str = "t", limit: int = LIMIT) -> Conversation:
    graph = build_graph(
        model=ScriptedModel(say=say), policy=CompactionPolicy(retire_after=10), summarizer=False
    )
    compiled = graph.compile(checkpointer=kept.checkpointer, store=kept.store)
    return Conversation(compiled, thread_id, context=Context(model_limit=limit))


def ask_all(conversation: Conversation) -> None:
    conversation.ask("The project is called Kingfisher and its budget is 48,250 euros.")
    conversation.ask("The badge of Zanzibar is 4711.")
    for n in range(2, TURNS):
        conversation.ask(f"q{n} " + "w " * 60)


@pytest.fixture(scope="module")
def long_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store whose thread "t" has a full segment of retired messages."""
    path = tmp_path_factory.mktemp("long") / "chat.db"
    with open_persistence(f"sqlite:///{path}") as kept:
        ask_all(conversation_on(kept))
        state: Any = values_of(conversation_on(kept))
        assert state["archive"]["count"] >= SEGMENT
    return path


@contextmanager
def opened(long_store: Path, folder: Path) -> Iterator[Persistence]:
    shutil.copy(long_store, folder / "chat.db")
    with open_persistence(f"sqlite:///{folder / 'chat.db'}") as kept:
        yield kept


def items(kept: Persistence, thread_id: str = "t") -> int:
    return len(kept.store.search(thread_namespace("words", thread_id), limit=1_000))


def test_it_is_written_as_messages_retire_and_found_by(long_store: Path, tmp_path: Path) -> None:
    with opened(long_store, tmp_path) as kept:
        assert items(kept) == SHARDS + 1
        answer = conversation_on(kept).ask("recall Kingfisher budget").text
        assert "48,250 euros" in answer
        assert "48,250 euros" in conversation_on(kept).ask("recall m1-m2").text


def test_an_excluded_message_is_not_found_by_word_or_number_and_an_included_one_is(
    long_store: Path, tmp_path: Path
) -> None:
    with opened(long_store, tmp_path) as kept:
        conversation = conversation_on(kept)
        message = str(conversation.history()[2].id)
        assert "4711" in conversation.ask("recall Zanzibar badge").text
        conversation.exclude(message)
        for query in ("Zanzibar badge", "m3", "messages 1 to 5"):
            assert "4711" not in conversation.ask(f"recall {query}").text
        conversation.include(message)
        assert "4711" in conversation_on(kept, limit=16_000).ask("recall Zanzibar badge").text


def test_a_deleted_thread_leaves_no_words(long_store: Path, tmp_path: Path) -> None:
    with opened(long_store, tmp_path) as kept:
        conversation_on(kept).ask("recall Kingfisher")
        delete_thread(kept, "t")
        assert items(kept) == 0
        assert "48,250" not in conversation_on(kept).ask("recall Kingfisher").text
        prune_threads(kept, older_than=timedelta(0), now=datetime.now(UTC) + timedelta(days=1))
        assert items(kept) == 0


def test_forks_and_imports_have_their_own(long_store: Path, tmp_path: Path) -> None:
    with opened(long_store, tmp_path) as kept:
        conversation = conversation_on(kept)
        fork = conversation.fork(thread_id="fork")
        assert items(kept, "fork") in (0, SHARDS + 1)
        import_thread(kept, conversation.export().splitlines(), thread_id="copy")
        assert items(kept, "copy") == SHARDS + 1
        move_thread(kept, "t", "elsewhere")
        delete_thread(kept, "t")
        for thread_id in ("fork", "copy"):
            other = conversation_on(kept, thread_id)
            assert "48,250 euros" in other.ask("recall Kingfisher budget").text
        assert fork.thread_id == "fork"


def test_after_undo_and_prune_that_keeps_the_archive_it_still_finds(
    long_store: Path, tmp_path: Path
) -> None:
    with opened(long_store, tmp_path) as kept:
        conversation_on(kept).undo()
        # What was undone takes room: the answer of recall would be shortened at the old limit.
        roomy = conversation_on(kept, limit=4 * LIMIT)
        assert "48,250 euros" in roomy.ask("recall Kingfisher budget").text
        later = datetime.now(UTC) + timedelta(days=1)
        assert prune_threads(kept, older_than=timedelta(0), now=later, keep_archive=True)
        assert "48,250 euros" in roomy.ask("recall Kingfisher budget").text
        roomy.ask("and on")
        assert "4711" in roomy.ask("recall Zanzibar").text


def test_a_store_without_it_or_with_a_damaged_one_is_searched_all_the_same(
    long_store: Path, tmp_path: Path
) -> None:
    with opened(long_store, tmp_path) as kept:
        place = thread_namespace("words", "t")
        for item in kept.store.search(place, limit=1_000):
            kept.store.put(place, item.key, {"version": "x"}, index=False)
        assert "48,250 euros" in conversation_on(kept).ask("recall Kingfisher budget").text
        for item in kept.store.search(place, limit=1_000):
            kept.store.delete(place, item.key)
        assert "48,250 euros" in conversation_on(kept).ask("recall Kingfisher budget").text
        assert items(kept) == SHARDS + 1, "it is written again"


@pytest.mark.parametrize("key", [KEY, None])
def test_an_encrypted_store_holds_no_word_of_it_in_plain_text(
    key: str | None, tmp_path: Path
) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}", key=key) as kept:
        ask_all(conversation_on(kept))
        assert items(kept) == SHARDS + 1
        assert "48,250 euros" in conversation_on(kept).ask("recall Kingfisher budget").text
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir()).lower()
    assert (b"zanzibar" in stored) == (key is None)
    assert (b"kingfish" in stored) == (key is None)


def test_without_a_store_the_live_transcript_is_searched() -> None:
    graph = build_graph(model=ScriptedModel(say=say), summarizer=False).compile(
        checkpointer=InMemorySaver()
    )
    conversation = Conversation(graph, "t", context=Context(model_limit=LIMIT))
    ask_all(conversation)
    assert "48,250 euros" in conversation.ask("recall Kingfisher budget").text
