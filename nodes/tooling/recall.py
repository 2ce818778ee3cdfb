"""Recall: bring back messages of a thread that the next call does not show. They are searched by
words and, if the store supports that, by meaning.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from langgraph.store.base import BaseStore

from longtable.base.concurrency import BoundedCache
from longtable.base.events import Recall
from longtable.base.stored import Kind, thread_namespace
from longtable.memory.messages.marks import marks_of, speaker_of
from longtable.memory.search import Index, Original, Segment, is_searched, ranked, text_of
from longtable.memory.thread import Thread
from longtable.memory.topics.topics import find_section, visible_topics
from longtable.memory.view import CallPlan
from longtable.store.records.retired import numbers_in_archive, readable
from longtable.store.records.retired_store import StoreArchive, embeds
from longtable.store.records.word_index import SEGMENT, WordCache, WordIndex
from longtable.tools.memory_tools import LEAST_BUDGET, NOTE, Hit

KEPT_INDEXES = 8
"""Number of threads for which a process keeps an index of the newest messages. An index is extended
when its thread grows.
"""
RANK = 60
"""The constant k of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""
BUDGET_SHARE = 0.1
"""Largest size of a block of recalled messages, as a share of the threshold."""
LEAST_PAGE = 10
"""Originals are read from the store in pages of at least this many."""
SAMPLE = 8
SAMPLE_CHARS = 400
"""The characters per token of a thread are measured on its first `SAMPLE` messages, on at most
`SAMPLE_CHARS` characters of each.
"""


@dataclass(frozen=True)
class ThreadIndex:
    """The index of a thread's messages after number `base` up to number `end`. `last`: the id of
    the message with number `end`.
    """

    base: int
    end: int
    last: str | None
    index: Index = field(repr=False)

    def continues_in(self, thread: Thread, base: int) -> bool:
        """Return whether a thread continues the indexed messages, so that the index can be
        extended. False for another branch of the thread (time travel).
        """
        place = self.end - thread.archived - 1
        if self.base != base or not 0 <= place < len(thread.messages):
            return False
        return thread.messages[place].id == self.last


@dataclass(frozen=True)
class Indexes:
    """The indexes of threads that a process keeps. All runs of the process share them."""

    newest: BoundedCache[str, ThreadIndex] = field(
        default_factory=lambda: BoundedCache(KEPT_INDEXES), repr=False
    )
    words: WordCache = field(default_factory=WordCache, repr=False)


@dataclass(frozen=True)
class Originals:
    """The original messages of one thread, for one run. Its methods block: call them from a worker
    thread.
    """

    call_plan: CallPlan = field(repr=False)
    store: BaseStore | None = field(repr=False)
    thread_id: str | None
    indexes: Indexes = field(repr=False)

    @property
    def thread(self) -> Thread:
        """Return the thread."""
        return self.call_plan.thread

    @cached_property
    def budget_chars(self) -> int:
        """Return the most characters of a block of recalled messages. It is computed from a budget
        in tokens, with the characters per token of this thread's own messages, ids and times
        included.
        """
        sample = NOTE + "".join(
            str(hit)[:SAMPLE_CHARS] for hit in self.numbered(range(1, SAMPLE + 1))
        )
        tokens = int(self.call_plan.call_config.threshold_tokens * BUDGET_SHARE)
        return max(
            LEAST_BUDGET, tokens * len(sample) // self.call_plan.call_config.counter.text(sample)
        )

    def search(
        self, query: str, from_turn: int | None, to_turn: int | None, limit: int
    ) -> list[Hit]:
        """Return the messages that match the query best, the best first. Only messages that the
        next call does not show whole are returned.

        Messages of other threads and excluded messages are never returned.
        """
        low = -math.inf if from_turn is None else from_turn
        high = math.inf if to_turn is None else to_turn
        matches = ranked([*self._segments(query), self.index.segment], query)
        numbers = [match.number for match in matches if low <= match.turn <= high]
        by_words = self._hidden(numbers, limit)
        by_meaning = [
            original for original in self._by_meaning(query, limit) if low <= original.turn <= high
        ]
        sources = [
            original
            for original in self._hidden(self._of_section(query))
            if low <= original.turn <= high
        ]
        hits = [*sources, *_fused([by_words, by_meaning])]
        by_number = {original.number: original for original in hits}
        return [_hit(original) for original in by_number.values()][:limit]

    def numbered(self, numbers: Sequence[int]) -> list[Hit]:
        """Return the messages with these numbers in the given order, even if the next call shows
        them. Messages that are excluded, or that the voice may not hear, are left out.
        """
        return [_hit(each) for each in self._originals(numbers) if self._may_show(each)]

    @cached_property
    def index(self) -> Index:
        """Return the index of the messages that are in no full segment of the store. If the process
        keeps an index of the thread, only newer messages are added to it.
        """
        thread = self.thread
        key = self.thread_id or "-"
        known = self.indexes.newest.get(key)
        if known is None or not known.continues_in(thread, self._base):
            retired = self._originals(range(self._base + 1, thread.archived + 1))
            known = ThreadIndex(self._base, thread.archived, None, Index.build(retired))
        if known.end < thread.length:
            new = self._originals(range(known.end + 1, thread.length + 1))
            last = thread.messages[-1].id
            known = ThreadIndex(self._base, thread.length, last, known.index.extended(new))
        return self.indexes.newest.put(key, known).index

    @property
    def _base(self) -> int:
        """Return how many messages the full segments of the store hold. Without a store, return the
        number of retired messages, which then cannot be read.
        """
        return self.thread.archived // SEGMENT * SEGMENT if self._archive else self.thread.archived

    @property
    def _archive(self) -> StoreArchive | None:
        return StoreArchive(self.store) if self.store is not None and self.thread_id else None

    def _segments(self, query: str) -> list[Segment]:
        if self.store is None or not self.thread_id or not self._base:
            return []
        return WordIndex(self.store, self.thread_id, self.indexes.words).segments(self._base, query)

    def _originals(self, numbers: Sequence[int]) -> list[Original]:
        """Return the messages with these numbers, in the order of `numbers`. Messages that cannot
        be read, and messages that are not searched (see `is_searched`), are left out.
        """
        thread = self.thread
        retired = [number for number in numbers if 0 < number <= thread.archived]
        stored: list[Original] = []
        if self._archive and retired:
            stored = readable(self._archive, str(self.thread_id), retired)
        by_number = {original.number: original for original in stored}
        for number in numbers:
            if thread.archived < number <= thread.length:
                message = thread.messages[number - thread.archived - 1]
                by_number[number] = Original(number, message)
        originals = [by_number[number] for number in numbers if number in by_number]
        return [original for original in originals if is_searched(original.message)]

    def _hidden(self, numbers: Sequence[int], limit: int | None = None) -> list[Original]:
        """Return those of these messages that the next call does not show whole, at most the first
        `limit`.
        """
        excluded = set(self.thread.excluded.values())
        allowed = [number for number in numbers if number not in excluded]
        limit = len(allowed) if limit is None else limit
        hidden: list[Original] = []
        while allowed and len(hidden) < limit:
            page = allowed[: max(limit, LEAST_PAGE)]
            del allowed[: len(page)]
            hidden += [each for each in self._originals(page) if self._is_hidden(each)]
        return hidden[:limit]

    @cached_property
    def _shown(self) -> dict[str | None, str]:
        return {message.id: str(message.text) for message in self.call_plan.view.messages}

    def _is_hidden(self, original: Original) -> bool:
        """Return whether a message may be shown, but the next call leaves it out or shortens it."""
        is_shown = self._shown.get(original.message.id)
        return self._may_show(original) and (
            is_shown is None or str(original.message.text) not in is_shown
        )

    def _may_show(self, original: Original) -> bool:
        """Return whether a message may be shown: it is not excluded, and the voice that is asked
        may hear it.
        """
        voice = self.call_plan.call_config.voice
        return original.message.id not in self.thread.excluded and (
            voice is None or voice.hears(original.message)
        )

    def _of_section(self, query: str) -> list[int]:
        """Return the numbers of the source messages of the topic section that fits a query best.
        The list is empty if no section fits, or if the memory is not kept in topics.
        """
        section = find_section(visible_topics(self.thread), query)
        return sorted(section.section.sources) if section else []

    def _by_meaning(self, query: str, limit: int) -> list[Original]:
        """Return the messages nearest in meaning among those that the next call does not show
        whole, the nearest first. The list is empty if the store has no embedding index, or fails.
        """
        if self.store is None or self.thread_id is None or not embeds(self.store):
            return []
        archive = StoreArchive(self.store)
        live = self._hidden(range(self.thread.archived + 1, self.thread.length + 1))
        kinds: tuple[Kind, ...] = ("recall", "archive")
        scores: dict[str, float] = {}
        try:
            archive.embed(self.thread_id, live)
            for kind in kinds:
                scores |= archive.near(thread_namespace(kind, self.thread_id), query, limit)
            retired = numbers_in_archive(archive, self.thread_id, list(scores))
        except Exception:  # an embedding server that is down: words alone must do
            return []
        count = self.thread.archived
        originals = self._hidden([number for number in retired if number <= count])
        by_id = {str(original.message.id): original for original in [*live, *originals]}
        near = sorted(by_id.keys() & scores.keys(), key=scores.__getitem__, reverse=True)
        return [by_id[id_] for id_ in near]


def recall_event(
    query: str, answer: Mapping[str, Any], *, via: Literal["marker", "tool"]
) -> Recall:
    """Return the event that reports recalled messages. `answer`: the answer of the tool
    `recall_history`.
    """
    turns = sorted({int(message["turn"]) for message in answer["messages"]})
    return Recall(type="recall", query=query, found=answer["found"], turns=turns, via=via)


def _fused(rankings: Sequence[Sequence[Original]]) -> list[Original]:
    """Merge rankings of messages by reciprocal rank fusion. Of messages with the same score, the
    newer comes first.
    """
    by_number: dict[int, Original] = {}
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, original in enumerate(ranking):
            by_number[original.number] = original
            scores[original.number] += 1 / (RANK + rank)
    return [
        by_number[number]
        for number in sorted(scores, key=lambda number: (-scores[number], -number))
    ]


def _hit(original: Original) -> Hit:
    message = original.message
    return Hit(
        number=original.number,
        id=str(message.id),
        turn=original.turn,
        time=str(marks_of(message).get("time", "")),
        role=message.type,
        name=speaker_of(message),
        text=text_of(message),
    )
