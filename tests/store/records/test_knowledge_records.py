"""What a knowledge folder keeps in a store: checked queries, and its questions by meaning."""

from pathlib import Path

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ConfigError
from longtable.graph import open_persistence
from longtable.graph.kept_queries import teach_kept
from longtable.knowledge.folder import KnowledgeFolder
from longtable.store.records import knowledge_records
from longtable.store.records.knowledge_records import MOST_EMBEDDED, PAGE, KnowledgeRecords


def fields(question: str, sql: str = "SELECT 1", time: str = "2026-11-27") -> dict[str, str]:
    return {"name": "herons", "question": question, "sql": sql, "time": time}


class ByFirstLetter(Embeddings):
    """Texts are near to each other if they begin with the same letter."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0 if letter == text[:1].lower() else 0.0 for letter in "abcdefghijklmnop"]


def embedding_store() -> tuple[InMemoryStore, ByFirstLetter]:
    embeddings = ByFirstLetter()
    index = {"dims": 16, "embed": embeddings, "fields": ["text"]}
    return InMemoryStore(index=index), embeddings  # type: ignore[arg-type]  # a TypedDict


def test_queries_are_kept_for_their_folder_only(tmp_path: Path) -> None:
    store = InMemoryStore()
    records = KnowledgeRecords(store, tmp_path / "one")
    records.keep(fields("a", time="2026-11-28"))
    records.keep(fields("b"))
    assert records.kept() == [fields("b"), fields("a", time="2026-11-28")]
    assert KnowledgeRecords(store, tmp_path / "other").kept() == []
    records.forget("b", "SELECT 1")
    records.forget("b", "SELECT 1")
    assert [kept["question"] for kept in records.kept()] == ["a"]


def test_two_answers_to_one_question_are_both_kept(tmp_path: Path) -> None:
    records = KnowledgeRecords(InMemoryStore(), tmp_path)
    for sql in ("SELECT 1", "SELECT 2", "SELECT 2"):
        records.keep(fields("a", sql))
    assert sorted(str(kept["sql"]) for kept in records.kept()) == ["SELECT 1", "SELECT 2"]


def test_more_than_a_page_is_kept_and_no_more_than_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge_records, "MOST_KEPT", PAGE + 20)
    with open_persistence(f"sqlite:///{tmp_path}/store.db") as persistence:
        records = KnowledgeRecords(persistence.store, tmp_path)
        for number in range(PAGE + 20):
            records.keep(fields(f"q{number:04}", time=f"{number:04}"))
        assert [kept["question"] for kept in records.kept()] == [
            f"q{number:04}" for number in range(PAGE + 20)
        ]
        with pytest.raises(ConfigError, match="at most 520 queries"):
            records.keep(fields("one more"))
        records.keep(fields("q0000"))


def test_an_encrypted_store_holds_no_word_of_a_query(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/store.db", key="a long passphrase") as persistence:
        records = KnowledgeRecords(persistence.store, tmp_path)
        records.keep(fields("How many herons?", "SELECT egrets"))
        assert records.kept() == [fields("How many herons?", "SELECT egrets")]
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert b"herons" not in stored
    assert b"egrets" not in stored


def test_questions_are_embedded_once_and_found_by_meaning(tmp_path: Path) -> None:
    store, embeddings = embedding_store()
    records = KnowledgeRecords(store, tmp_path)
    assert records.finds_by_meaning
    assert records.embed({"apples": "one", "bees": "two"}) == 0
    assert records.embed({"apples": "one", "bees": "two", "bears": "two"}) == 0
    assert sorted(embeddings.embedded) == ["apples", "bears", "bees"]
    questions = {"apples": "one", "bees": "two", "bears": "two"}
    assert records.near("anything", 1, questions) == ["one"]
    assert records.near("between", 2, questions) == ["two"]
    assert records.near("  ", 3, questions) == []


def test_what_is_stored_of_a_question_that_went_is_deleted_once_it_is_found(tmp_path: Path) -> None:
    store, _ = embedding_store()
    records = KnowledgeRecords(store, tmp_path)
    records.embed({"apples": "one", "ants": "two"})
    assert records.near("anything", 5, {"ants": "two"}) == ["two"]
    stored = [item.value["text"] for item in store.search(("longtable", "meanings"))]
    assert stored == ["ants"]


def test_many_questions_are_embedded_over_several_turns(tmp_path: Path) -> None:
    store, embeddings = embedding_store()
    records = KnowledgeRecords(store, tmp_path)
    questions = {f"question {number}": "q" for number in range(MOST_EMBEDDED + 30)}
    assert records.embed(questions) == 30
    assert len(embeddings.embedded) == MOST_EMBEDDED
    assert records.embed(questions) == 0


def test_a_store_without_an_index_finds_nothing_by_meaning(tmp_path: Path) -> None:
    assert not KnowledgeRecords(InMemoryStore(), tmp_path).finds_by_meaning


def test_one_question_of_two_databases_is_kept_for_both(tmp_path: Path) -> None:
    store = InMemoryStore()
    records = KnowledgeRecords(store, tmp_path)
    texts = {"name": "n", "question": "how many?", "sql": "SELECT 1", "time": "t"}
    checked = {"checked_by": "", "checked_on": "", "wordings": []}
    for database in ("", "web"):
        named = {"database": database} if database else {}
        records.keep({**texts, **checked, **named})
    folder = KnowledgeFolder(tmp_path)
    teach_kept(folder, records)
    assert sorted(query.database for query in folder.current().queries) == ["", "web"]
    records.forget("how many?", "SELECT 1", "web")
    assert ["database" in each for each in records.kept()] == [False]
