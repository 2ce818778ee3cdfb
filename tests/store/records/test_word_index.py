"""The index of retired messages finds what an index over all finds, and survives what happens to
it.
"""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from longtable.base.stored import thread_namespace
from longtable.memory.search import Index, Original, ranked
from longtable.store.records.retired import DAMAGED, key_of
from longtable.store.records.retired_store import StoreArchive, keep_originals
from longtable.store.records.word_index import (
    GROUP,
    SEGMENT,
    SHARDS,
    VERSION,
    WordCache,
    WordIndex,
    head_key,
    shard_key,
)

WORDS = [
    "kestrel",
    "osprey",
    "heron",
    "翠鸟",
    "budget",
    "delay",
    "carrier",
    "of",
    "the",
    "4711",
    "N14228",
    "預算",
    "late_minutes",
]
SECOND = range(SEGMENT + 1, 2 * SEGMENT + 1)
WHERE = thread_namespace("words", "t")


def messages(count: int, seed: int = 1) -> list[Original]:
    chance = random.Random(seed)
    return [
        Original(n, HumanMessage(" ".join(chance.choices(WORDS, k=8)), id=f"{seed}-{n}"))
        for n in range(1, count + 1)
    ]


def archived(originals: Sequence[Original], store: BaseStore | None = None) -> BaseStore:
    store = store or InMemoryStore()
    keep_originals(StoreArchive(store), "t", originals)
    return store


def found(
    index: WordIndex, count: int, query: str = "kestrel 翠鸟 4711"
) -> list[tuple[int, float]]:
    matches = ranked(index.segments(count, query), query)
    return [(match.number, round(match.score, 9)) for match in matches]


def expected(originals: Sequence[Original], query: str = "kestrel 翠鸟 4711") -> list[Any]:
    hits = Index.build(originals).search(query, len(originals))
    return [(original.number, round(score, 9)) for original, score in hits]


@pytest.mark.parametrize("query", ["kestrel", "翠鸟 預算", "the of", "late minutes", "nothing"])
@pytest.mark.parametrize("written", [True, False], ids=["written", "missing"])
def test_segments_rank_as_one_index_over_all_messages_does(query: str, written: bool) -> None:
    originals = messages(SEGMENT * 3)
    store = archived(originals)
    if written:
        WordIndex(store, "t").write(1, originals)
    index = WordIndex(store, "t")
    assert found(index, len(originals), query) == expected(originals, query)
    assert found(WordIndex(store, "t"), len(originals), query) == expected(originals, query)


def test_a_segment_is_written_once_the_last_of_its_messages_has_retired() -> None:
    originals = messages(SEGMENT * 2 + 5)
    store = archived(originals)
    counts = []
    for start in range(0, len(originals), 50):
        WordIndex(store, "t").write(start + 1, originals[start : start + 50])
        counts.append(len(store.search(WHERE, limit=1_000)) // (SHARDS + 1))
    assert counts == [0, 0, 1, 1, 1, 2]
    assert found(WordIndex(store, "t"), SEGMENT * 2) == expected(originals[: SEGMENT * 2])


def test_small_segments_become_a_large_one_that_takes_their_place() -> None:
    originals = messages(SEGMENT * (GROUP + 1))
    store = archived(originals)
    for start in range(0, len(originals), 100):
        WordIndex(store, "t").write(start + 1, originals[start : start + 100])
    assert len(store.search(WHERE, limit=10_000)) == 2 * (SHARDS + 1)
    cache = WordCache()
    for count in (SEGMENT, len(originals), SEGMENT * 3, len(originals)):  # time travel, and back
        index = WordIndex(store, "t", cache)
        assert found(index, count) == expected(originals[:count])


class Counted(InMemoryStore):
    """Counts the items that are read."""

    read = 0

    def batch(self, ops: Any) -> Any:
        ops = list(ops)
        self.read += sum(not isinstance(op, PutOp) for op in ops)
        return super().batch(ops)


def test_a_query_reads_heads_and_its_own_shards_and_the_next_one_nearly_nothing() -> None:
    originals = messages(SEGMENT * 4)
    store = Counted()
    archived(originals, store)
    WordIndex(store, "t").write(1, originals)
    index = WordIndex(store, "t")
    store.read = 0
    found(index, len(originals), "kestrel heron")
    assert store.read == 4 * (1 + 2)
    store.read = 0
    found(index, len(originals), "kestrel heron")
    assert store.read == 1


def spoil_head(store: BaseStore) -> None:
    store.put(WHERE, head_key(SECOND), {DAMAGED: True}, index=False)


def spoil_shards(store: BaseStore) -> None:
    for shard in range(SHARDS):
        store.put(WHERE, shard_key(SECOND, shard), {"version": VERSION, "terms": []}, index=False)


def wrong_places(store: BaseStore) -> None:
    for shard in range(SHARDS):
        item = store.get(WHERE, shard_key(SECOND, shard))
        assert item is not None
        terms = {term: [999, 1] for term in item.value["terms"]}
        store.put(WHERE, shard_key(SECOND, shard), {**item.value, "terms": terms}, index=False)


def another_version(store: BaseStore) -> None:
    for item in store.search(WHERE, limit=1_000):
        store.put(WHERE, item.key, {**item.value, "version": VERSION + 1}, index=False)


def lose(store: BaseStore) -> None:
    for item in store.search(WHERE, limit=1_000):
        store.delete(WHERE, item.key)


@pytest.mark.parametrize("damage", [spoil_head, spoil_shards, wrong_places, another_version, lose])
def test_what_is_damaged_of_another_version_or_missing_is_built_anew(damage: Any) -> None:
    originals = messages(SEGMENT * 2)
    store = archived(originals)
    WordIndex(store, "t").write(1, originals)
    damage(store)
    assert found(WordIndex(store, "t"), len(originals)) == expected(originals)
    again = Counted()
    again._data = store._data  # type: ignore[attr-defined]  # the same items, counted
    assert found(WordIndex(again, "t"), len(originals)) == expected(originals)
    assert again.read < SEGMENT, "it was written again"


def test_a_segment_with_a_message_that_cannot_be_read_waits_for_it() -> None:
    originals = messages(SEGMENT)
    store = archived(originals)
    place = thread_namespace("archive", "t")
    item = store.get(place, key_of(7))
    assert item is not None
    store.put(place, key_of(7), {DAMAGED: True}, index=False)
    without = [original for original in originals if original.number != 7]
    assert found(WordIndex(store, "t"), SEGMENT) == expected(without)
    store.put(place, key_of(7), item.value, index=False)
    assert found(WordIndex(store, "t"), SEGMENT) == expected(originals)


def test_a_thread_that_took_a_deleted_ones_id_is_not_searched_by_the_words_of_that_one() -> None:
    cache = WordCache()
    first = messages(SEGMENT)
    store = archived(first)
    assert found(WordIndex(store, "t", cache), SEGMENT) == expected(first)
    second = messages(SEGMENT, seed=2)
    other = archived(second)
    assert found(WordIndex(other, "t", cache), SEGMENT) == expected(second)
