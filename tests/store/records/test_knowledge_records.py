"""What a knowledge folder keeps in a store: checked queries, and its questions by meaning."""

from pathlib import Path

from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from longtable.graph import open_persistence
from longtable.store.records.knowledge_records import MOST_EMBEDDED, KnowledgeRecords

FIELDS = {"question": "How many herons?", "sql": "SELECT 1", "wordings": []}


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


def test_queries_are_kept_by_name_for_their_folder_only(tmp_path: Path) -> None:
    store = InMemoryStore()
    records = KnowledgeRecords(store, tmp_path / "one")
    records.keep("b", FIELDS)
    records.keep("a", FIELDS)
    assert records.kept() == [("a", FIELDS), ("b", FIELDS)]
    assert KnowledgeRecords(store, tmp_path / "other").kept() == []
    assert records.forget("a")
    assert not records.forget("a")
    assert [name for name, _ in records.kept()] == ["b"]


def test_more_than_a_page_is_kept(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/store.db") as persistence:
        records = KnowledgeRecords(persistence.store, tmp_path)
        for number in range(1_050):
            records.keep(f"q{number:04}", FIELDS)
        assert [name for name, _ in records.kept()] == [f"q{n:04}" for n in range(1_050)]


def test_an_encrypted_store_holds_no_word_of_a_query(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/store.db", key="a long passphrase") as persistence:
        records = KnowledgeRecords(persistence.store, tmp_path)
        records.keep("a", FIELDS)
        assert records.kept() == [("a", FIELDS)]
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert b"herons" not in stored


def test_questions_are_embedded_once_and_found_by_meaning(tmp_path: Path) -> None:
    store, embeddings = embedding_store()
    records = KnowledgeRecords(store, tmp_path)
    assert records.finds_by_meaning
    assert records.embed({"apples": "one", "bees": "two"}) == 0
    assert records.embed({"apples": "one", "bees": "two", "bears": "two"}) == 0
    assert sorted(embeddings.embedded) == ["apples", "bears", "bees"]
    assert records.near("anything", 1) == [("apples", "one")]
    assert {name for _, name in records.near("between", 2)} == {"two"}
    assert records.near("  ", 3) == []


def test_many_questions_are_embedded_over_several_turns(tmp_path: Path) -> None:
    store, embeddings = embedding_store()
    records = KnowledgeRecords(store, tmp_path)
    questions = {f"question {number}": "q" for number in range(MOST_EMBEDDED + 30)}
    assert records.embed(questions) == 30
    assert len(embeddings.embedded) == MOST_EMBEDDED
    assert records.embed(questions) == 0


def test_a_store_without_an_index_finds_nothing_by_meaning(tmp_path: Path) -> None:
    assert not KnowledgeRecords(InMemoryStore(), tmp_path).finds_by_meaning
