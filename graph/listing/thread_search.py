"""Search what was said in all threads of a store.

The words of threads are kept in an index (`longtable.store.records.search_index`). Only threads
that have changed since are read, and those of which a message is shown.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice

from langchain_core.messages import BaseMessage

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.words import tokens_of
from longtable.graph.listing.thread_list import ThreadInfo, info_of, visible_entries
from longtable.graph.listing.thread_states import OnIndexed, states_of
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import load_thread
from longtable.memory.messages.marks import marks_of
from longtable.memory.search import Index, Original, Segment, is_searched, ranked, text_of
from longtable.store.damage import Report, log_damaged, skip_unreadable
from longtable.store.persistence import Persistence
from longtable.store.records.item_values import KeyValue
from longtable.store.records.search_index import (
    LARGE,
    Document,
    Postings,
    SearchHead,
    SearchIndex,
)
from longtable.store.records.thread_index import Entry, names_owner, owner_of
from longtable.tools.excerpts import short_excerpt

LEAST_MESSAGES = 256
"""The index grows once this many messages are not in it. Until then it is quicker to read them."""
MOST_AHEAD = 200
"""The number of matches whose threads are read many at a time."""


@dataclass(frozen=True)
class SearchHit:
    """A place in a transcript that matches a search. `number` is the number of the message, counted
    from 1. `score` is BM25's: the higher, the better.
    """

    thread_id: str
    title: str
    turn: int
    number: int
    role: str
    time: str
    excerpt: str
    score: float


def search_threads(
    persistence: Persistence | StoredThreads,
    query: str,
    *,
    limit: int = 20,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
    on_indexed: OnIndexed | None = None,
) -> list[SearchHit]:
    """Return the turns that match a query best, in all transcripts that an owner may see, both live
    and archived messages.

    Each turn is returned once, with its best message. Excluded messages are left out. Threads that
    changed since the last search are read, all others are found by the index. `on_damaged` is
    called for each thread that cannot be read; by default it writes to the log.
    """
    if limit < 0:
        raise ConfigError(f"a search takes no negative limit, found {limit}")
    if not tokens_of(query):
        return []
    threads = threads_in(persistence)
    entries = visible_entries(threads, owner, all_owners=all_owners)
    entries.reverse()  # of equal matches, those of the newest thread come first
    reading = _Reading(threads, dict(entries), owner, all_owners, on_damaged)
    words = _words_of(threads, entries, query, reading, on_indexed)
    matches = words.matches(query)
    best = list(islice(matches, MOST_AHEAD))
    reading = reading.of([thread_id for thread_id, *_ in best])
    hits: list[SearchHit] = []
    seen: set[tuple[str, int]] = set()
    for thread_id, number, turn, score in chain(best, matches):
        if len(hits) >= limit:
            break
        if (thread_id, turn) in seen:
            continue
        message = reading.message(thread_id, number)
        if message is not None:
            seen.add((thread_id, turn))
            info = info_of(thread_id, reading.entries[thread_id])
            hits.append(_hit(info, turn, number, message, query, score))
    return hits


asearch_threads = a_from(search_threads)


def _hit(
    info: ThreadInfo, turn: int, number: int, message: BaseMessage, query: str, score: float
) -> SearchHit:
    return SearchHit(
        thread_id=info.thread_id,
        title=info.title,
        turn=turn,
        number=number,
        role=message.type,
        time=str(marks_of(message).get("time", "")),
        excerpt=short_excerpt(text_of(message), query),
        score=round(score, 3),
    )


@dataclass(frozen=True)
class _Reading:
    """Reads threads. Those of which messages are shown are kept while the search lasts."""

    threads: StoredThreads
    entries: Mapping[str, Entry]
    owner: str | None
    all_owners: bool
    on_damaged: Report
    shown: dict[str, list[BaseMessage]] = field(default_factory=dict)

    def of(self, thread_ids: Sequence[str]) -> "_Reading":
        """Return the same for reading these threads one by one, in this order."""
        return replace(self, threads=self.threads.reading(thread_ids))

    def transcript(self, thread_id: str) -> list[BaseMessage] | None:
        """Return the messages of a thread, None if it cannot be read."""
        entry = self.entries[thread_id]
        reader = owner_of(entry) if names_owner(entry) else self.owner
        with skip_unreadable(self.on_damaged):
            whole, _ = load_thread(
                self.threads, thread_id, reader, all_owners=self.all_owners, entry=entry
            )
            return whole.shown
        return None

    def message(self, thread_id: str, number: int) -> BaseMessage | None:
        """Return a message of a thread. Return None if it is gone, or if it was excluded since the
        thread was indexed: some servers tell of no such change.
        """
        messages = self.shown.get(thread_id)
        if messages is None:
            messages = self.transcript(thread_id) or []
            self.shown[thread_id] = messages
        message = messages[number - 1] if number <= len(messages) else None
        return message if message is not None and is_searched(message) else None


@dataclass(frozen=True)
class _Words:
    """The words of some threads, in an order in which each message has a number of its own."""

    thread_ids: Sequence[str]
    bases: Sequence[int]
    """For each thread, the number of all messages before it."""
    segments: Sequence[Segment]

    def matches(self, query: str) -> Iterator[tuple[str, int, int, float]]:
        """Yield thread, number, turn and score of each matching message, the best first."""
        for match in ranked(self.segments, query):
            place = bisect_right(self.bases, match.number - 1) - 1
            yield self.thread_ids[place], match.number - self.bases[place], match.turn, match.score


def _words_of(
    threads: StoredThreads,
    entries: Sequence[KeyValue],
    query: str,
    reading: _Reading,
    on_indexed: OnIndexed | None,
) -> _Words:
    """Return the words of threads: from the index, or read now, if they changed since."""
    states = states_of(threads, entries)
    store = threads.optional_store
    index = SearchIndex(store) if store is not None else None
    heads = index.heads() if index is not None else []
    postings = index.postings(heads, query) if index is not None else {}
    heads = [head for head in heads if head.key in postings]
    wanted = {thread_id: states.get(thread_id, "") for thread_id, _ in entries}
    keys = _keys_of_segments(heads, wanted)
    missing = [thread_id for thread_id in wanted if thread_id not in keys]
    reading = reading.of(missing)
    documents: dict[str, Document] = {}
    unwritten: list[Document] = []
    for done, thread_id in enumerate(missing):
        if on_indexed is not None:
            on_indexed(done, len(missing))
        messages = reading.transcript(thread_id)
        if messages is not None:
            document = _document(thread_id, wanted[thread_id], messages)
            documents[thread_id] = document
            unwritten.append(document)
        if index is not None and _size(unwritten) >= LARGE:
            # A search that is broken off leaves what it has read.
            _keep(threads, index, unwritten, wanted)
            unwritten = []
    last_numbers = _last_numbers(heads, keys, documents.values())
    sizes = [last_numbers.get(thread_id, 0) for thread_id in wanted]
    bases = [0, *accumulate(sizes)][:-1]
    base_of = dict(zip(wanted, bases, strict=True))
    segments = [_moved(each.segment, base_of[name]) for name, each in documents.items()]
    bases_by_key: dict[str, dict[str, int]] = {head.key: {} for head in heads}
    for name, key in keys.items():
        bases_by_key[key][name] = base_of[name]
    for head in heads:
        segments.append(_segment(head, postings[head.key], bases_by_key[head.key]))
    if index is not None:
        _keep(threads, index, unwritten, wanted)
    return _Words(list(wanted), bases, segments)


def _keys_of_segments(heads: Sequence[SearchHead], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return for each wanted thread the key of the segment that has it in its state of now. Threads
    that no segment has are left out.
    """
    keys: dict[str, str] = {}
    for head in heads:
        for name, state, _ in head.threads:
            if state and wanted.get(name) == state:
                keys.setdefault(name, head.key)
    return keys


def _document(thread_id: str, state: str, messages: Sequence[BaseMessage]) -> Document:
    originals = [Original(number, message) for number, message in enumerate(messages, 1)]
    return Document(thread_id, state, Index.build(originals).segment)


def _last_numbers(
    heads: Sequence[SearchHead], keys: Mapping[str, str], documents: Iterable[Document]
) -> dict[str, int]:
    """Return for each thread the number of its last message that can be found. Threads without one
    are left out.
    """
    last: dict[str, int] = {}
    for head in heads:
        end = 0
        for name, _, count in head.threads:
            end += count
            if count and keys.get(name) == head.key:
                last[name] = head.numbers[end - 1]
    for document in documents:
        if document.segment.numbers:
            last[document.thread_id] = document.segment.numbers[-1]
    return last


def _moved(segment: Segment, base: int) -> Segment:
    """Return a segment whose messages are counted on from `base`."""
    numbers = [base + number for number in segment.numbers]
    return Segment(numbers, segment.turns, segment.lengths, segment.postings)


def _segment(head: SearchHead, postings: Postings, base_of: Mapping[str, int]) -> Segment:
    """Return the part of a stored segment that belongs to the threads of `base_of`. Their messages
    are counted on from their bases.
    """
    places: dict[int, int] = {}
    numbers: list[int] = []
    for (name, _, count), start in zip(head.threads, head.starts, strict=True):
        base = base_of.get(name)
        if base is not None:
            for place in range(start, start + count):
                places[place] = len(numbers)
                numbers.append(base + head.numbers[place])
    kept: dict[str, list[int]] = {}
    for term, pairs in postings.items():
        mine: list[int] = []
        for place, times in zip(pairs[::2], pairs[1::2], strict=True):
            if place in places:
                mine += (places[place], times)
        if mine:
            kept[term] = mine
    turns = [head.turns[place] for place in places]
    lengths = [head.lengths[place] for place in places]
    return Segment(numbers, turns, lengths, kept)


def _size(documents: Sequence[Document]) -> int:
    """Return the number of messages."""
    return sum(len(document.segment.numbers) for document in documents)


def _keep(
    threads: StoredThreads,
    index: SearchIndex,
    documents: Sequence[Document],
    states: Mapping[str, str],
) -> None:
    """Add threads to the index, if they are many. A store that cannot be written to keeps no search
    from its result.
    """
    known = [document for document in documents if document.state]
    if _size(known) < LEAST_MESSAGES:
        return
    with suppress(Exception):
        index.add(known)
        there = {thread_id for thread_id, _ in visible_entries(threads, None, all_owners=True)}
        deleted = [document.thread_id for document in known if document.thread_id not in there]
        if deleted:  # while they were read
            index.forget(deleted)
        newest = threads.states()
        if newest is None:
            # Whether threads of other owners changed is not known here; their own search finds out.
            index.merge(lambda name, state: states.get(name, state) == state)
        else:
            index.merge(lambda name, state: newest.get(name) == state)
