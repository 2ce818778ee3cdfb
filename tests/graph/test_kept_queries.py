"""A turn's question and SQL are kept in the knowledge folder, or in the store."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import ConfigError, KnowledgeNotWritableError, NothingToKeepError
from longtable.graph import Context, Conversation, Database, KnowledgeFolder, build_graph
from longtable.graph.kept_queries import STORE, keep_query, remove_entry
from longtable.knowledge.entries import VerifiedQuery
from tests.store.records.test_knowledge_records import embedding_store

QUERY = VerifiedQuery(
    name="", question="How many birds?", sql="SELECT count(*) FROM birds", checked_by="Ann"
)


@pytest.fixture
def folder(tmp_path: Path) -> KnowledgeFolder:
    (tmp_path / "taught").mkdir()
    return KnowledgeFolder(tmp_path / "taught")


@pytest.fixture
def read_only(folder: KnowledgeFolder, monkeypatch: pytest.MonkeyPatch) -> KnowledgeFolder:
    """A folder on a disk that cannot be written, for whichever user runs the test."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    return folder


def conversation(
    tmp_path: Path, folder: KnowledgeFolder, store: InMemoryStore, thread: str = "t"
) -> Conversation:
    file = tmp_path / "birds.db"
    if not file.exists():
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript("CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT);")
    database = Database.open(str(file), isolation="none")
    graph = build_graph(model=BuiltInAnalyst(), database=database, hooks=[folder])
    compiled = graph.compile(checkpointer=InMemorySaver(), store=store)
    return Conversation(compiled, thread, context=Context(model_limit=32_000), knowledge=folder)


def test_a_folder_that_cannot_be_written_keeps_in_the_store_for_all_threads(
    tmp_path: Path, read_only: KnowledgeFolder
) -> None:
    store = InMemoryStore()
    talk = conversation(tmp_path, read_only, store)
    talk.ask("How many birds are there?")
    kept = talk.keep(by="Ann")
    assert (kept.place, kept.name) == (STORE, "how_many_birds_are_there")
    assert talk.keep(by="Ann") == kept
    other = conversation(tmp_path, KnowledgeFolder(read_only.path), store, "other")
    answer = other.ask("How many birds are there?")
    assert [query["checked_by"] for query in answer.verified] == ["Ann"]


def test_without_a_store_a_folder_that_cannot_be_written_is_told(
    read_only: KnowledgeFolder,
) -> None:
    with pytest.raises(KnowledgeNotWritableError, match="Read-only file system"):
        keep_query(read_only, QUERY, None)


def test_a_query_of_the_store_is_removed_by_its_name(read_only: KnowledgeFolder) -> None:
    store = InMemoryStore()
    kept = keep_query(read_only, QUERY, store)
    assert read_only.query_names() == {kept.name}
    assert remove_entry(read_only, kept.name, store)
    assert read_only.query_names() == set()
    assert not remove_entry(read_only, kept.name, store)


def test_a_query_that_the_folder_got_later_is_taught_once(read_only: KnowledgeFolder) -> None:
    store = InMemoryStore()
    keep_query(read_only, QUERY, store)
    (read_only.path / "queries").mkdir(exist_ok=True)
    text = "-- question: How many birds?\n-- checked by: Bob\nSELECT count(*) FROM birds\n"
    (read_only.path / "queries" / "birds.sql").write_text(text)
    kept = keep_query(read_only, QUERY, store)
    assert [query.name for query in read_only.current().queries] == ["birds"]
    assert kept.checked_by == "Bob"


def test_a_question_that_no_file_could_hold_is_kept_nowhere(read_only: KnowledgeFolder) -> None:
    store = InMemoryStore()
    query = VerifiedQuery(name="", question="x" * 2_000, sql="SELECT 1")
    with pytest.raises(ConfigError):
        keep_query(read_only, query, store)
    assert store.search(("longtable",)) == []


def test_what_is_near_in_meaning_goes_with_the_question(
    tmp_path: Path, folder: KnowledgeFolder
) -> None:
    store, _ = embedding_store()
    sql = "SELECT count(*) FROM birds"
    folder.add_query(VerifiedQuery(name="", question="All feathered animals", sql=sql))
    talk = conversation(tmp_path, folder, store)
    talk.ask("amount of winged ones?")
    passed = [passed for message in talk.history() for passed in _passed(message)]
    assert "query: all_feathered_animals" in passed


def test_a_turn_without_a_query_has_nothing_to_keep(
    tmp_path: Path, folder: KnowledgeFolder
) -> None:
    talk = conversation(tmp_path, folder, InMemoryStore())
    talk.ask("hello")
    with pytest.raises(NothingToKeepError):
        talk.keep()


def _passed(message: Any) -> list[str]:
    marks = message.additional_kwargs.get("longtable") or message.response_metadata
    return [cite for part in marks.get("passed", []) for cite in part.get("cites", [])]
