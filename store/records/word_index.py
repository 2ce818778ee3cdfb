"""The index of the words of a thread's retired messages, kept beside the messages in the store.

`SEGMENT` messages make a segment. A segment is written when the last of its messages has retired,
and never changes. Later, one large segment replaces `GROUP` small segments. A segment has a head
(numbers, turns and lengths of the messages) and `SHARDS` shards. A hash of a term says which shard
holds the term's postings, so that a query reads only the shards of its own terms. Keys are numbers
and hold no word; an encrypted store encrypts the values.

A segment that is missing, damaged or of another version is rebuilt from the messages. So a search
without a segment takes longer, but never misses a message.
"""

import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeGuard

from langgraph.store.base import BaseStore, PutOp

from longtable.base.concurrency import BoundedCache
from longtable.base.stored import thread_namespace
from longtable.base.words import tokens_of
from longtable.memory.search import Index, Original, Segment
from longtable.store.records.retired import Item, key_of, key_of_id, readable
from longtable.store.records.retired_store import StoreArchive

VERSION = 1
"""Version of the stored format and of the way in which texts are cut into terms. A segment of
another version is rebuilt.
"""
SEGMENT = 128
"""Number of messages of a small segment. If it were larger, messages would wait longer for their
segment, and until then each process would have to index them itself.
"""
GROUP = 8
"""Number of small segments that become a large segment. The fewer segments, the fewer shards a
query reads.
"""
SHARDS = 64
KEPT_HEADS = 64
"""The most threads whose heads a process keeps in memory. A head takes some 100 bytes for each
message.
"""
KEPT_SHARDS = 2_048
"""The most shards that a process keeps in memory. A shard of a large segment takes some 20 KB."""

Terms = Mapping[str, Any]
"""A shard: the postings of each of its terms. Postings are not checked until they are used."""


@dataclass(frozen=True)
class Head:
    """The part of a segment that a search reads for every query."""

    last: str
    """The key (see `key_of_id`) of the segment's last message. It shows whether the segment belongs
    to an earlier thread that had the same thread id.
    """
    numbers: Sequence[int]
    turns: Sequence[int]
    lengths: Sequence[int]

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> "Head | None":
        """Return the head in a stored value. Return None if it is missing, of another version, or
        cannot be read.
        """
        if value is None or value.get("version") != VERSION:
            return None
        last, numbers, turns, lengths = map(value.get, ("last", "numbers", "turns", "lengths"))
        if not (_are_numbers(numbers) and _are_numbers(turns) and _are_numbers(lengths)):
            return None
        if not isinstance(last, str) or not len(numbers) == len(turns) == len(lengths):
            return None
        return cls(last, numbers, turns, lengths)

    def as_json(self) -> dict[str, Any]:
        """Return the head as plain JSON, the form in which it is stored."""
        return {
            "version": VERSION,
            "last": self.last,
            "numbers": list(self.numbers),
            "turns": list(self.turns),
            "lengths": list(self.lengths),
        }


@dataclass(frozen=True)
class WordCache:
    """The parts of the indexes that a process keeps in memory. This is safe because segments never
    change.
    """

    heads: BoundedCache[str, Mapping[range, Head]] = field(
        default_factory=lambda: BoundedCache(KEPT_HEADS), repr=False
    )
    shards: BoundedCache[tuple[str, str, str], Terms] = field(
        default_factory=lambda: BoundedCache(KEPT_SHARDS), repr=False
    )


@dataclass(frozen=True)
class WordIndex:
    """The index of one thread. Its methods block: call them from a worker thread."""

    store: BaseStore = field(repr=False)
    thread_id: str
    cache: WordCache = field(default_factory=WordCache, repr=False)

    def segments(self, archived: int, query: str) -> list[Segment]:
        """Return the full segments of the first `archived` messages, with the postings of the
        query's terms. Segments that are missing or damaged are built from the messages and written.
        """
        spans = spans_of(archived)
        heads = self._heads(spans)
        terms = {term: shard_of(term) for term in tokens_of(query)}
        wanted = product(heads.items(), sorted(set(terms.values())))
        shards = self._shards([(head, shard_key(span, shard)) for (span, head), shard in wanted])
        segments: list[Segment] = []
        for span in spans:
            mine = {term: shards.get(shard_key(span, shard)) for term, shard in terms.items()}
            segment = _segment(heads[span], mine) if span in heads else None
            segments.append(segment or self._built(span))
        return segments

    def write(self, first: int, originals: Sequence[Original]) -> None:
        """Write the segments that become full with these originals. `first` is the number of the
        first original. The originals and all messages before them must be in the archive already.
        """
        by_number = {original.number: original for original in originals}
        known = spans_of(first - 1)
        for span in spans_of(first - 1 + len(originals)):
            if span in known:
                continue
            missing = [number for number in span if number not in by_number]
            earlier = readable(StoreArchive(self.store), self.thread_id, missing)
            by_number |= {original.number: original for original in earlier}
            here = [by_number[number] for number in span if number in by_number]
            self._write(span, here, Index.build(here).segment)

    def _heads(self, spans: Sequence[range]) -> dict[range, Head]:
        """Return the heads of these segments. Segments that must still be built are left out."""
        kept = self.cache.heads.get(self.thread_id) or {}
        heads = {span: kept[span] for span in spans if span in kept}
        newest = next(reversed(heads), None)
        if newest and not self._ends_with(heads[newest], newest[-1]):
            heads = {}
        unknown = [span for span in spans if span not in heads]
        stored = self._get([head_key(span) for span in unknown]) if unknown else []
        for span, value in zip(unknown, stored, strict=True):
            head = Head.from_json(value)
            if head:
                heads[span] = head
        return dict(self.cache.heads.put(self.thread_id, heads))

    def _ends_with(self, head: Head, number: int) -> bool:
        """Return whether a segment belongs to this thread: its last message must be the thread's
        message `number`. The segment may instead be left from a deleted thread with the same id.
        """
        namespace = thread_namespace("archived", self.thread_id)
        (item,) = StoreArchive(self.store).get(namespace, [head.last])
        return item is not None and item.get("number") == number

    def _shards(self, wanted: Sequence[tuple[Head, str]]) -> dict[str, Terms]:
        """Return the wanted shards by key, except shards that are missing or cannot be read."""
        shards: dict[str, Terms] = {}
        unknown: list[tuple[Head, str]] = []
        for head, key in wanted:
            known = self.cache.shards.get((self.thread_id, head.last, key))
            if known is None:
                unknown.append((head, key))
            else:
                shards[key] = known
        stored = self._get([key for _, key in unknown]) if unknown else []
        for (head, key), value in zip(unknown, stored, strict=True):
            terms = _terms(value, head)
            if terms is not None:
                shards[key] = terms
                self.cache.shards.put((self.thread_id, head.last, key), terms)
        return shards

    def _built(self, span: range) -> Segment:
        """Build a segment from the messages in the archive. Write it to the store if all its
        messages can be read.
        """
        originals = readable(StoreArchive(self.store), self.thread_id, span)
        segment = Index.build(originals).segment
        with suppress(Exception):  # a search does not fail for want of an index
            self._write(span, originals, segment)
        return segment

    def _write(self, span: range, originals: Sequence[Original], segment: Segment) -> None:
        if len(originals) < len(span):
            # A message that cannot be read now may be restored: the segment waits for it.
            return
        head = Head(
            key_of_id(str(originals[-1].message.id)),
            segment.numbers,
            segment.turns,
            segment.lengths,
        )
        shards: list[dict[str, list[int]]] = [{} for _ in range(SHARDS)]
        for term, postings in segment.postings.items():
            shards[shard_of(term)][term] = list(postings)
        items: list[tuple[str, Item]] = [
            (shard_key(span, n), {"version": VERSION, "last": head.last, "terms": terms})
            for n, terms in enumerate(shards)
        ]
        items.append((head_key(span), head.as_json()))
        namespace = thread_namespace("words", self.thread_id)
        StoreArchive(self.store).put(namespace, items, embed=False)
        if len(span) > SEGMENT:
            parts = [range(n, n + SEGMENT) for n in span[::SEGMENT]]
            keys = [head_key(part) for part in parts]
            keys += [shard_key(part, shard) for part, shard in product(parts, range(SHARDS))]
            self.store.batch([PutOp(namespace, key, None) for key in keys])

    def _get(self, keys: Sequence[str]) -> list[Mapping[str, Any] | None]:
        archive = StoreArchive(self.store)
        namespace = thread_namespace("words", self.thread_id)
        values: list[Mapping[str, Any] | None] = []
        for start in range(0, len(keys), MOST_KEYS):
            values += archive.get(namespace, keys[start : start + MOST_KEYS])
        return values


MOST_KEYS = 1_000
"""The most keys of one store call: see `longtable.store.records.retired.BATCH`."""


def shard_of(term: str) -> int:
    """Return the number of the shard that holds a term. It is the same in all processes."""
    return zlib.crc32(term.encode()) % SHARDS


def head_key(span: range) -> str:
    """Return the key of a segment's head."""
    return f"{key_of(span[0])}-{len(span)}"


def shard_key(span: range, shard: int) -> str:
    """Return the key of a shard of a segment."""
    return f"{head_key(span)}-{shard:02}"


def spans_of(archived: int) -> list[range]:
    """Return the full segments of the first `archived` messages, each as a range of message
    numbers: as many large segments as possible, then small ones.
    """
    spans: list[range] = []
    first = 1
    for size in (GROUP * SEGMENT, SEGMENT):
        while first + size - 1 <= archived:
            spans.append(range(first, first + size))
            first += size
    return spans


def _are_numbers(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(each) is int for each in value)


def _terms(value: Mapping[str, Any] | None, head: Head) -> Terms | None:
    """Return the terms of a stored shard, None if the value is not a shard of this segment."""
    if value is None or value.get("version") != VERSION or value.get("last") != head.last:
        return None
    terms = value.get("terms")
    return terms if isinstance(terms, dict) else None


def _segment(head: Head, shards: Mapping[str, Terms | None]) -> Segment | None:
    """Return a segment with the postings of some terms. `shards`: for each term, the shard that
    holds it. Return None if a shard is missing or cannot be read.
    """
    postings: dict[str, Sequence[int]] = {}
    most = len(head.numbers)
    for term, terms in shards.items():
        if terms is None:
            return None
        counts = terms.get(term, [])
        if not _are_numbers(counts) or len(counts) % 2:
            return None
        if not all(0 <= place < most for place in counts[::2]):
            return None
        if counts:
            postings[term] = counts
    return Segment(head.numbers, head.turns, head.lengths, postings)
