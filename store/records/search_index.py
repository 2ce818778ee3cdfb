"""The words of all threads, for one search over them together.

A segment holds the words of some threads, each in one state. A thread
whose state has changed counts as missing. A segment has a
head (threads, and numbers, turns and lengths of their messages) and `SHARDS` shards. A hash of a
term says which shard holds the term's postings, so that a query reads only the shards of its own
terms. Keys hold no word; an encrypted store encrypts the values.
"""

import hashlib
import json
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

from longtable.base.stored import SEARCH, SEARCH_TERMS
from longtable.base.words import tokens_of
from longtable.memory.search import Segment
from longtable.store.records.retired_store import StoreArchive

VERSION = 1
"""Version of the stored format and of the way in which texts are cut into terms. A segment of
another version counts as missing.
"""
SHARDS = 32
LARGE = 4_096
"""The messages of a large segment. If it were larger, deleting one of its threads would take longer
than 0.1 s, because the segment is written anew without it.
"""
GROUP = 8
"""The most small segments. If there are more, one takes their place: the fewer segments, the fewer
shards a query reads.
"""
MOST_SEGMENTS = 1_000_000
MOST_KEYS = 1_000
"""The most keys of one store call."""

IsCurrent = Callable[[str, str], bool]
"""Whether a thread, given by its id, is in a state."""
Postings = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Document:
    """The words of one thread. `state` is a text that changes with each change of the thread.
    The numbers of the segment are those of the thread's messages, from 1.
    """

    thread_id: str
    state: str
    segment: Segment


@dataclass(frozen=True)
class SearchHead:
    """The part of a segment that a search reads for every query."""

    key: str
    threads: Sequence[tuple[str, str, int]]
    """Id, state and number of messages of each thread."""
    numbers: Sequence[int] = field(repr=False)
    turns: Sequence[int] = field(repr=False)
    lengths: Sequence[int] = field(repr=False)

    @property
    def ids(self) -> list[str]:
        """Return the ids of the threads."""
        return [thread_id for thread_id, _, _ in self.threads]

    @property
    def starts(self) -> list[int]:
        """Return the place of each thread's first message."""
        return [0, *accumulate(count for _, _, count in self.threads)][:-1]

    def current(self, is_current: IsCurrent) -> int:
        """Return the number of messages of threads that are still in their state."""
        return sum(count for name, state, count in self.threads if is_current(name, state))


@dataclass(frozen=True)
class SearchIndex:
    """The index in a store. Its methods block."""

    store: BaseStore = field(repr=False)

    def heads(self) -> list[SearchHead]:
        """Return the heads of all segments. Those that cannot be read are left out."""
        (items,) = self.store.batch([SearchOp(SEARCH, limit=MOST_SEGMENTS)])
        found = cast("list[SearchItem]", items or [])
        heads = [_head(item.key, item.value) for item in found if item.namespace == SEARCH]
        return [head for head in heads if head is not None]

    def postings(self, heads: Sequence[SearchHead], query: str) -> dict[str, Postings]:
        """Return the postings of the query's terms, by the key of the segment. A segment of which a
        shard is missing or damaged is left out.
        """
        terms = {*tokens_of(query)}
        return self._postings(heads, {_shard_of(term) for term in terms}, terms)

    def add(self, documents: Sequence[Document]) -> list[str]:
        """Write the words of threads, in segments of at most `LARGE` messages if threads are not
        larger themselves. Return the keys of the segments.
        """
        return [self._write(group) for group in _groups(documents)]

    def merge(self, is_current: IsCurrent) -> None:
        """Write small segments as few large ones, if there are more than `GROUP`. A segment is
        small if at most half a large one is current. Threads that are not current are left out.
        """
        heads = self.heads()
        small = [head for head in heads if head.current(is_current) <= LARGE // 2]
        if len(small) > GROUP:
            self._replace(small, is_current)

    def forget(self, thread_ids: Collection[str]) -> None:
        """Delete the words of threads from the index."""
        gone = {*thread_ids}
        heads = [head for head in self.heads() if not gone.isdisjoint(head.ids)]
        if heads:
            self._replace(heads, lambda thread_id, _: thread_id not in gone)

    def _replace(self, heads: Sequence[SearchHead], is_kept: IsCurrent) -> None:
        postings = self._postings(heads, range(SHARDS))
        documents: dict[str, Document] = {}
        for head in heads:
            for document in _documents(head, postings.get(head.key)):
                if is_kept(document.thread_id, document.state):
                    documents[document.thread_id] = document
        written = self.add(list(documents.values()))
        self._delete([head.key for head in heads if head.key not in written])

    def _write(self, documents: Sequence[Document]) -> str:
        """Write a segment, and return its key."""
        key = _key(documents)
        shards: list[dict[str, list[int]]] = [{} for _ in range(SHARDS)]
        start = 0
        for document in documents:
            for term, postings in document.segment.postings.items():
                mine = shards[_shard_of(term)].setdefault(term, [])
                for place, times in zip(postings[::2], postings[1::2], strict=True):
                    mine += (start + place, times)
            start += len(document.segment.numbers)
        items: list[tuple[str, dict[str, Any]]] = []
        for number, terms in enumerate(shards):
            items.append((_shard_key(key, number), {"version": VERSION, "terms": terms}))
        archive = StoreArchive(self.store)
        archive.put(SEARCH_TERMS, items, embed=False)
        archive.put(SEARCH, [(key, _head_as_json(documents))], embed=False)
        return key

    def _delete(self, keys: Sequence[str]) -> None:
        shards = [_shard_key(key, shard) for key, shard in product(keys, range(SHARDS))]
        self.store.batch([PutOp(SEARCH, key, None) for key in keys])
        for start in range(0, len(shards), MOST_KEYS):
            some = shards[start : start + MOST_KEYS]
            self.store.batch([PutOp(SEARCH_TERMS, key, None) for key in some])

    def _postings(
        self,
        heads: Sequence[SearchHead],
        shards: Collection[int],
        wanted: Collection[str] | None = None,
    ) -> dict[str, Postings]:
        """Return the postings in some shards, by the key of the segment: those of the `wanted`
        terms, or all. A segment of which a shard is missing or damaged is left out.
        """
        read = self._shards([head.key for head in heads], shards)
        found: dict[str, Postings] = {}
        for head in heads:
            parts = [read.get(_shard_key(head.key, shard)) for shard in shards]
            known = [part for part in parts if part is not None]
            mine = _merged(known)
            if wanted is not None:
                mine = {term: mine[term] for term in wanted if term in mine}
            most = len(head.numbers)
            if len(known) == len(parts) and all(_are_places(each, most) for each in mine.values()):
                found[head.key] = mine
        return found

    def _shards(self, keys: Sequence[str], shards: Collection[int]) -> dict[str, Postings]:
        """Return shards of segments by key, except those that are missing or cannot be read."""
        wanted = [_shard_key(key, shard) for key, shard in product(keys, shards)]
        archive = StoreArchive(self.store)
        found: dict[str, Postings] = {}
        for start in range(0, len(wanted), MOST_KEYS):
            some = wanted[start : start + MOST_KEYS]
            for key, value in zip(some, archive.get(SEARCH_TERMS, some), strict=True):
                terms = value.get("terms") if value and value.get("version") == VERSION else None
                if isinstance(terms, dict):
                    found[key] = terms
        return found


def _are_places(postings: object, most: int) -> bool:
    """Return whether a stored value is a list of postings of a segment with `most` messages."""
    if not isinstance(postings, list) or len(postings) % 2:
        return False
    return all(type(each) is int for each in postings) and all(
        0 <= place < most for place in postings[::2]
    )


def _merged(shards: Sequence[Postings]) -> dict[str, Sequence[int]]:
    merged: dict[str, Sequence[int]] = {}
    for shard in shards:
        merged |= shard
    return merged


def _groups(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Yield documents in groups, each for one segment."""
    group: list[Document] = []
    size = 0
    for document in documents:
        count = len(document.segment.numbers)
        if group and size + count > LARGE:
            yield group
            group = []
            size = 0
        group.append(document)
        size += count
    if group:
        yield group


def _documents(head: SearchHead, postings: Postings | None) -> list[Document]:
    """Return the threads of a segment, with all their words. Without postings there are none."""
    if postings is None:
        return []
    starts = head.starts
    words: list[dict[str, list[int]]] = [{} for _ in head.threads]
    for term, places in postings.items():
        for place, times in zip(places[::2], places[1::2], strict=True):
            at = bisect_right(starts, place) - 1
            words[at].setdefault(term, []).extend((place - starts[at], times))
    documents: list[Document] = []
    for (name, state, count), start, own in zip(head.threads, starts, words, strict=True):
        span = slice(start, start + count)
        segment = Segment(head.numbers[span], head.turns[span], head.lengths[span], own)
        documents.append(Document(name, state, segment))
    return documents


def _head(key: str, value: Mapping[str, Any]) -> SearchHead | None:
    """Return a stored head, None if it is of another version or its parts are of unequal length."""
    if value.get("version") != VERSION:
        return None
    parts = [value.get(name) for name in ("threads", "numbers", "turns", "lengths")]
    if not all(isinstance(part, list) for part in parts):
        return None
    threads, numbers, turns, lengths = cast("list[list[Any]]", parts)
    try:
        entries = [(str(name), str(state), int(count)) for name, state, count in threads]
    except (TypeError, ValueError):
        return None
    count = sum(count for _, _, count in entries)
    if not len(numbers) == len(turns) == len(lengths) == count:
        return None
    return SearchHead(key, entries, numbers, turns, lengths)


def _head_as_json(documents: Sequence[Document]) -> dict[str, Any]:
    """Return the head of a segment as plain JSON, the form in which it is stored."""
    numbers: list[int] = []
    turns: list[int] = []
    lengths: list[int] = []
    for document in documents:
        numbers += document.segment.numbers
        turns += document.segment.turns
        lengths += document.segment.lengths
    threads = [[each.thread_id, each.state, len(each.segment.numbers)] for each in documents]
    return {
        "version": VERSION,
        "threads": threads,
        "numbers": numbers,
        "turns": turns,
        "lengths": lengths,
    }


def _key(documents: Sequence[Document]) -> str:
    """Return the key of a segment. Processes that index the same threads write the same segment."""
    names = [[document.thread_id, document.state] for document in documents]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:24]


def _shard_of(term: str) -> int:
    """Return the number of the shard that holds a term. It is the same in all processes."""
    return zlib.crc32(term.encode()) % SHARDS


def _shard_key(key: str, shard: int) -> str:
    return f"{key}-{shard:02}"
