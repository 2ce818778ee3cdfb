"""A turn's question and SQL are kept in the knowledge folder, or in the store."""

import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import ConfigError, KnowledgeNotWritableError, NothingToKeepError
from longtable.graph import Context, Conversation, Database, KnowledgeFolder, build_graph
from longtable.graph.kept_queries import STORE, keep_query, remove_entry, teach_kept
from longtable.knowledge.entries import VerifiedQuery
from longtable.store.records.knowledge_records import KnowledgeRecords
from tests.store.records.test_knowledge_records import embedding_store
from tests.support.models import call, script

QUERY = VerifiedQuery(
    name="", question="How many birds?", sql="SELECT count(*) FROM birds", checked_by="Ann"
)


NOW = "2026-11-27T09:00:00+00:00"


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
    tmp_path: Path,
    folder: KnowledgeFolder,
    store: InMemoryStore,
    thread: str = "t",
    model: BaseChatModel | None = None,
) -> Conversation:
    file = tmp_path / "birds.db"
    if not file.exists():
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript("CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT);")
    database = Database.open(str(file), isolation="none")
    graph = build_graph(model=model or BuiltInAnalyst(), database=database, hooks=[folder])
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
        keep_query(read_only, QUERY, None, NOW)


def test_a_query_of_the_store_is_removed_by_its_name(read_only: KnowledgeFolder) -> None:
    store = InMemoryStore()
    kept = keep_query(read_only, QUERY, store, NOW)
    assert read_only.query_names() == {kept.name}
    assert remove_entry(read_only, kept.name, store)
    assert read_only.query_names() == set()
    assert not remove_entry(read_only, kept.name, store)


def test_a_query_that_the_folder_got_later_is_taught_once(read_only: KnowledgeFolder) -> None:
    store = InMemoryStore()
    keep_query(read_only, QUERY, store, NOW)
    (read_only.path / "queries").mkdir(exist_ok=True)
    text = "-- question: How many birds?\n-- checked by: Bob\nSELECT count(*) FROM birds\n"
    (read_only.path / "queries" / "birds.sql").write_text(text)
    kept = keep_query(read_only, QUERY, store, NOW)
    assert [query.name for query in read_only.current().queries] == ["birds"]
    assert kept.checked_by == "Bob"


def test_a_query_is_removed_by_the_name_under_which_it_is_listed(
    read_only: KnowledgeFolder,
) -> None:
    store = InMemoryStore()
    keep_query(read_only, QUERY, store, NOW)
    keep_query(read_only, replace(QUERY, sql="SELECT max(id) FROM birds"), store, NOW)
    assert read_only.query_names() == {"how_many_birds", "how_many_birds_2"}
    (read_only.path / "queries").mkdir(exist_ok=True)
    file = read_only.path / "queries" / "how_many_birds.sql"
    file.write_text("-- question: How many birds?\nSELECT 1\n")
    assert len(read_only.query_names()) == 3
    assert remove_entry(read_only, "how_many_birds_2", store)
    assert file.exists()
    assert remove_entry(read_only, "how_many_birds", store)
    assert not file.exists()


def test_a_record_that_is_no_query_is_told_and_the_others_count(
    read_only: KnowledgeFolder,
) -> None:
    store = InMemoryStore()
    keep_query(read_only, QUERY, store, NOW)
    namespace = store.search(("longtable", "knowledge"))[0].namespace
    store.put(namespace, "odd", {"question": 3})
    again = KnowledgeFolder(read_only.path)
    teach_kept(again, KnowledgeRecords(store, again.path))
    assert [query.question for query in again.current().queries] == ["How many birds?"]
    assert [str(problem) for problem in again.current().problems] == [
        "store: a record of the store is no query: it is left out"
    ]


@pytest.mark.parametrize("sql", ["DROP TABLE birds", "SELECT nope FROM birds", "SELECT"])
def test_sql_that_cannot_run_is_not_kept(tmp_path: Path, folder: KnowledgeFolder, sql: str) -> None:
    talk = conversation(tmp_path, folder, InMemoryStore())
    talk.ask("How many birds are there?")
    with pytest.raises(ConfigError, match="cannot run"):
        talk.keep(sql=sql, by="Ann")
    assert folder.query_names() == set()


def test_what_a_person_ran_in_place_of_the_models_sql_is_kept(
    tmp_path: Path, folder: KnowledgeFolder
) -> None:
    edited = "SELECT count(*) FROM birds"
    model = script(call("run_sql", "c1", sql="SELECT name FROM birds"), "Done.")
    talk = conversation(tmp_path, folder, InMemoryStore(), model=model)
    talk.context = replace(talk.context, approve_sql="always")
    assert talk.ask("How many birds?").status == "approval_requested"
    action = {"name": "run_sql", "args": {"sql": edited}}
    talk.resume([{"type": "edit", "edited_action": action}])
    assert talk.kept_pair() == ("How many birds?", edited)


class Broken(Embeddings):
    """A client whose server is down, or slow."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        time.sleep(self.seconds)
        raise ConnectionError(f"key=sk-secret {len(texts)}")

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.mark.parametrize(("seconds", "code"), [(0.0, "store_failed"), (4.0, "store_slow")])
def test_without_the_search_by_meaning_the_words_still_count(
    tmp_path: Path, folder: KnowledgeFolder, seconds: float, code: str
) -> None:
    index: Any = {"dims": 2, "embed": Broken(seconds), "fields": ["text"]}
    folder.add_query(replace(QUERY, question="Amount of birds?"))
    talk = conversation(tmp_path, folder, InMemoryStore(index=index))
    events = [*talk.stream("amount of birds, please")]
    passed = next(event for event in events if event["type"] == "context_passed")
    assert passed["passed"][0]["cites"] == ["query: amount_of_birds"]
    assert [reason["code"] for reason in passed["left_out"]] == [code]
    assert "sk-secret" not in str(events)


def test_a_question_that_no_file_could_hold_is_kept_nowhere(read_only: KnowledgeFolder) -> None:
    store = InMemoryStore()
    query = VerifiedQuery(name="", question="x" * 2_000, sql="SELECT 1")
    with pytest.raises(ConfigError):
        keep_query(read_only, query, store, NOW)
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
