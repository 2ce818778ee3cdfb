"""The search index: what is written is read, threads leave it, and damage is noticed."""

from collections.abc import Sequence

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from longtable.base.stored import SEARCH, SEARCH_TERMS
from longtable.memory.search import Index, Original
from longtable.store.records import search_index
from longtable.store.records.search_index import Document, SearchIndex


def document(thread_id: str, *texts: str, state: str = "1") -> Document:
    messages = [HumanMessage(text, id=f"{thread_id}{place}") for place, text in enumerate(texts, 1)]
    originals = [Original(number, message) for number, message in enumerate(messages, 1)]
    return Document(thread_id, state, Index.build(originals).segment)


def holders(index: SearchIndex, word: str) -> set[str]:
    """Return the threads that the index finds by a word."""
    heads = index.heads()
    found = index.postings(heads, word)
    names: set[str] = set()
    for head in heads:
        places = found.get(head.key, {}).get(word, ())[::2]
        starts = [*head.starts, len(head.numbers)]
        for (name, _, _), first, end in zip(head.threads, starts, starts[1:], strict=False):
            if any(first <= place < end for place in places):
                names.add(name)
    return names


def words_kept(store: InMemoryStore) -> str:
    """Return all stored terms as one text."""
    return " ".join(
        " ".join(item.value["terms"]) for item in store.search(SEARCH_TERMS, limit=100_000)
    )


def some(count: int, word: str = "kestrel") -> list[Document]:
    return [document(f"t{number}", f"{word} {number}", "other") for number in range(count)]


def test_threads_are_found_by_their_words_and_no_key_holds_one() -> None:
    store = InMemoryStore()
    index = SearchIndex(store)
    index.add([document("a", "the kestrel", "a heron"), document("b", "heron"), document("c")])
    assert holders(index, "kestrel") == {"a"}
    assert holders(index, "heron") == {"a", "b"}
    assert holders(index, "eagle") == set()
    (head,) = index.heads()
    assert [entry[0] for entry in head.threads] == ["a", "b", "c"]
    keys = [item.key for item in store.search(SEARCH_TERMS, limit=1_000)]
    assert not [key for key in keys if "kestrel" in key or "heron" in key]


def test_a_forgotten_thread_leaves_no_word() -> None:
    store = InMemoryStore()
    index = SearchIndex(store)
    index.add([document("a", "the kestrel", "a heron"), document("b", "heron")])
    index.add([document("c", "eagle")])
    index.forget(["a", "unknown"])
    assert holders(index, "heron") == {"b"}
    assert holders(index, "eagle") == {"c"}
    assert "kestrel" not in words_kept(store)
    index.forget(["b", "c"])
    assert not store.search(SEARCH) + store.search(SEARCH_TERMS)


def test_many_small_segments_become_one_without_what_changed() -> None:
    store = InMemoryStore()
    index = SearchIndex(store)
    for each in some(search_index.GROUP):
        index.add([each])
    index.merge(lambda _name, _state: True)
    assert len(index.heads()) == search_index.GROUP
    index.add([document("late", "kestrel")])
    index.merge(lambda name, _: name != "t3")
    (head,) = index.heads()
    assert {entry[0] for entry in head.threads} == {
        "t0",
        "t1",
        "t2",
        *map("t{}".format, range(4, 8)),
        "late",
    }
    assert holders(index, "kestrel") == {entry[0] for entry in head.threads}
    assert len(store.search(SEARCH_TERMS, limit=1_000)) == search_index.SHARDS


def test_segments_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "LARGE", 10)
    index = SearchIndex(InMemoryStore())
    index.add([*some(12), document("long", *["kestrel"] * 25)])
    assert sorted(len(head.numbers) for head in index.heads()) == [4, 10, 10, 25]
    assert len(holders(index, "kestrel")) == 13


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"version": 0, "terms": {"kestrel": [0, 1]}},
        {"version": 1, "terms": ["kestrel"]},
        {"version": 1, "terms": {"kestrel": [0]}},
        {"version": 1, "terms": {"kestrel": [99, 1]}},
        {"version": 1, "terms": {"kestrel": ["0", 1]}},
    ],
)
def test_a_segment_with_a_damaged_shard_counts_as_missing(value: dict[str, object] | None) -> None:
    store = InMemoryStore()
    index = SearchIndex(store)
    index.add([document("a", "kestrel")])
    (key,) = [
        item.key
        for item in store.search(SEARCH_TERMS, limit=1_000)
        if "kestrel" in item.value["terms"]
    ]
    store.batch([PutOp(SEARCH_TERMS, key, value, False)])
    assert index.postings(index.heads(), "kestrel") == {}
    index.forget(["b"])
    index.merge(lambda _name, _state: True)
    index.forget(["a"])
    assert not store.search(SEARCH)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 9},
        {"numbers": [1, 2]},
        {"turns": None},
        {"lengths": {}},
        {"threads": [["a", "1"]]},
        {"threads": [7]},
        {"threads": [["a", "1", "many"]]},
    ],
)
def test_a_damaged_head_counts_as_missing(change: dict[str, object]) -> None:
    store = InMemoryStore()
    index = SearchIndex(store)
    index.add([document("a", "kestrel")])
    (item,) = store.search(SEARCH)
    store.put(SEARCH, item.key, {**item.value, **change}, index=False)
    assert index.heads() == []


def test_two_processes_that_index_the_same_write_one_segment() -> None:
    store = InMemoryStore()
    documents: Sequence[Document] = some(3)
    SearchIndex(store).add(documents)
    SearchIndex(store).add(documents)
    assert len(SearchIndex(store).heads()) == 1
