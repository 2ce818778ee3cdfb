"""The search over all threads: the index finds what reading every thread finds."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from longtable.base.stored import SEARCH, SEARCH_TERMS, SPENDING, THREADS
from longtable.graph import (
    Context,
    Conversation,
    Persistence,
    build_graph,
    delete_thread,
    move_thread,
    open_persistence,
    prune_threads,
    pruning,
    usage_of_threads,
)
from longtable.graph.listing import thread_search
from longtable.graph.listing.thread_list import MOST_THREADS, list_threads
from longtable.graph.listing.thread_search import SearchHit, search_threads
from longtable.graph.thread_state import threads_in
from longtable.graph.transcripts import load_thread
from longtable.memory.search import Index, Original
from longtable.store.records.search_index import SearchIndex
from tests.support.models import script

WORDS = [
    "kestrel",
    "heron",
    "eagle",
    "robin",
    "wren",
    "finch",
    "翠鸟",
    "4711",
    "carrier",
    "delay",
    "flights",
    "noted",
]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Persistence]:
    monkeypatch.setattr(thread_search, "LEAST_MESSAGES", 1)
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as persistence:
        yield persistence


def said(kept: Persistence, thread_id: str, *texts: str, owner: str | None = None) -> Conversation:
    model = script("noted")
    graph = build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store)
    conversation = Conversation(graph, thread_id, context=Context(model_limit=8_000, owner=owner))
    for text in texts:
        conversation.ask(text)
    return conversation


def read_by_all(
    kept: Persistence, query: str, owner: str | None
) -> list[tuple[str, int, int, float]]:
    """Search as if there were no index: read every thread."""
    threads = threads_in(kept)
    originals: list[Original] = []
    places: list[tuple[str, int]] = []
    for info in reversed(list_threads(kept, limit=MOST_THREADS, owner=owner)):
        whole, _ = load_thread(threads, info.thread_id, info.owner)
        for number, message in enumerate(whole.shown, 1):
            originals.append(Original(len(places) + 1, message))
            places.append((info.thread_id, number))
    best: dict[tuple[str, int], tuple[str, int, int, float]] = {}
    for original, score in Index.build(originals).search(query, len(originals)):
        name, number = places[original.number - 1]
        best.setdefault((name, original.turn), (name, original.turn, number, round(score, 3)))
    return list(best.values())


def told(hits: list[SearchHit]) -> list[tuple[str, int, int, float]]:
    return [(hit.thread_id, hit.turn, hit.number, hit.score) for hit in hits]


def test_the_index_finds_what_reading_every_thread_finds(kept: Persistence) -> None:
    chance = random.Random(7)

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))

    for number in range(14):
        owner = chance.choice(["ann", "bob", None])
        texts = [text() for _ in range(chance.randint(1, 4))]
        said(kept, f"t{number}", *texts, owner=owner)
    for step in range(48):
        owner = chance.choice(["ann", "bob", None])
        infos = list_threads(kept, owner=owner)
        info = chance.choice(infos)
        conversation = said(kept, info.thread_id, owner=info.owner)
        change = step % 7
        if change == 0:
            conversation.ask(text())
        elif change == 1:
            conversation.exclude(str(chance.choice(conversation.history()).id))
        elif change == 2:
            conversation.fork(1)
        elif change == 3:
            conversation.undo()
        elif change == 4:
            move_thread(kept, info.thread_id, chance.choice("xy"), owner=info.owner)
        elif change == 5:
            later = datetime.now(UTC) + timedelta(days=9)
            age = timedelta(days=1)
            prune_threads(kept, older_than=age, now=later, keep_archive=True, owner=owner)
        elif len(infos) > 3:
            delete_thread(kept, info.thread_id, owner=info.owner)
        for query in chance.sample(WORDS, 3):
            assert told(search_threads(kept, query, limit=99, owner=owner)) == read_by_all(
                kept, query, owner
            )


def test_only_threads_that_changed_and_those_that_are_shown_are_read(
    kept: Persistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = [said(kept, f"t{number}", f"kestrel {number}") for number in range(9)]
    read: list[str] = []

    def counted(threads: object, thread_id: str, *args: object, **more: object) -> object:
        read.append(thread_id)
        return load_thread(threads, thread_id, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(thread_search, "load_thread", counted)
    progress: list[tuple[int, int]] = []
    search_threads(kept, "kestrel", limit=2, on_indexed=lambda *each: progress.append(each))
    assert len({*read}) == 9
    assert progress == [(done, 9) for done in range(9)]
    read.clear()
    assert len(search_threads(kept, "kestrel", limit=2)) == 2
    assert len(read) == 2
    read.clear()
    conversations[3].ask("heron")
    assert [hit.thread_id for hit in search_threads(kept, "heron")] == ["t3"]
    assert {*read} == {"t3"}


def test_a_deleted_thread_leaves_no_word_in_the_index(kept: Persistence) -> None:
    said(kept, "a", "the kestrel of ann")
    said(kept, "b", "a heron")
    search_threads(kept, "kestrel")
    assert kept.store.search(SEARCH)
    delete_thread(kept, "a")
    left = [item.value["terms"] for item in kept.store.search(SEARCH_TERMS, limit=1_000)]
    assert not [terms for terms in left if "kestrel" in terms]
    assert [hit.thread_id for hit in search_threads(kept, "heron")] == ["b"]


def test_a_thread_that_is_deleted_while_it_is_read_leaves_no_word(
    kept: Persistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(kept, "a", "the kestrel of ann")
    said(kept, "b", "a heron")
    add = SearchIndex.add

    def late(index: SearchIndex, documents: object) -> None:
        monkeypatch.setattr(SearchIndex, "add", add)
        delete_thread(kept, "a")
        add(index, documents)  # type: ignore[arg-type]

    monkeypatch.setattr(SearchIndex, "add", late)
    search_threads(kept, "heron")
    left = [item.value["terms"] for item in kept.store.search(SEARCH_TERMS, limit=1_000)]
    assert left
    assert not [terms for terms in left if "kestrel" in terms]


def test_pruned_threads_leave_no_word_though_a_search_runs(
    kept: Persistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        said(kept, name, f"the kestrel of {name}")
    prune = pruning._prune

    def searched(*args: Any, **more: Any) -> bool:
        search_threads(kept, "kestrel")
        return prune(*args, **more)

    monkeypatch.setattr(pruning, "_prune", searched)
    later = datetime.now(UTC) + timedelta(days=100)
    assert len(prune_threads(kept, older_than=timedelta(days=90), now=later)) == 3
    assert not kept.store.search(SEARCH) + kept.store.search(SEARCH_TERMS)


def test_an_encrypted_store_holds_no_word_in_the_clear(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    with open_persistence(f"sqlite:///{file}", key="k" * 16) as kept:
        said(kept, "a", *[f"kestrel number {place}" for place in range(140)])
        assert search_threads(kept, "kestrel", limit=3)
        assert kept.store.search(SEARCH)
    for each in tmp_path.iterdir():
        assert b"kestrel" not in each.read_bytes()


def test_a_store_that_cannot_be_written_to_is_searched_all_the_same(
    kept: Persistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(kept, "a", "kestrel")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(SearchIndex, "add", fail)
    assert [hit.thread_id for hit in search_threads(kept, "kestrel")] == ["a"]


def test_a_turn_writes_nothing_for_the_index(kept: Persistence) -> None:
    said(kept, "a", "kestrel")
    search_threads(kept, "kestrel")
    usage_of_threads(kept)
    places = (SEARCH, SEARCH_TERMS, SPENDING)
    before = [kept.store.search(place, limit=1_000) for place in places]
    assert all(before)
    said(kept, "a", "heron")
    said(kept, "b", "heron")
    assert [kept.store.search(place, limit=1_000) for place in places] == before


def test_a_thread_whose_entry_names_no_owner_is_found_by_its_owner_alone(kept: Persistence) -> None:
    said(kept, "t", "zebra", owner="ann")
    item = kept.store.get(THREADS, "t")
    assert item is not None
    damaged = {name: value for name, value in item.value.items() if name != "owner"}
    kept.store.put(THREADS, "t", damaged, index=False)
    assert [hit.thread_id for hit in search_threads(kept, "zebra", owner="ann")] == ["t"]
    assert search_threads(kept, "zebra", owner="bob") == []
    assert search_threads(kept, "zebra") == []
