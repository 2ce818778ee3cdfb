"""Bring back what the next call does not show of a thread, searched by words and, where the store
can, by meaning.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.concurrency import BoundedCache
from longtable.base.context import Context
from longtable.base.events import Recall
from longtable.base.stored import Kind, thread_namespace
from longtable.memory.archive import readable_page
from longtable.memory.search import Index, Original, in_turns, text_of
from longtable.memory.stamps import marks_of, speaker_of
from longtable.memory.thread import Thread
from longtable.memory.topics import find_section, visible_topics
from longtable.memory.view import CallPlan
from longtable.nodes.records.archive_store import StoreArchive, embeds
from longtable.nodes.records.thread_index import thread_id_of
from longtable.tools.memory_tools import LEAST_BUDGET, NOTE, Hit

KEPT_INDEXES = 8
"""Indexes a process keeps: one a thread, extended as the thread grows."""
RANK = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""
BUDGET_SHARE = 0.1
"""Most a recalled block may take, as a share of the threshold."""
SAMPLE, SAMPLE_CHARS = 8, 400
"""First messages of a thread, and characters of each, by which the characters of a token are
measured.
"""


@dataclass(frozen=True)
class ThreadIndex:
    """The index of a thread's first `end` messages, of which the first `archived` had retired;
    `last`: id of the newest.
    """

    archived: int
    end: int
    last: str | None
    index: Index = field(repr=False)

    def continues_in(self, thread: Thread) -> bool:
        """Return whether a thread begins with the messages that are indexed here: another branch of
        it does not.
        """
        place = self.end - self.archived - 1
        if self.archived != thread.archived or self.end > thread.length:
            return False
        return place < 0 or thread.messages[place].id == self.last


Indexes = BoundedCache[str, ThreadIndex]
"""The newest index of each thread, shared by a process's runs."""


@dataclass(frozen=True)
class Originals:
    """The messages of one thread, for one run. Blocking: call it from a worker thread."""

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
        """Return the most characters a recalled block may have: of this thread's own words, with
        the ids and times beside them.
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
        """Return what answers the query best, the best first, of the messages that the next call
        does not show whole.

        Never a message of another thread, nor an excluded one.
        """
        hidden = {
            original.number: original
            for original in in_turns(self.index.originals, from_turn, to_turn)
            if self._is_hidden(original)
        }
        by_words = [
            original
            for original, _ in self.index.search(query, len(self.index.originals))
            if original.number in hidden
        ]
        hits = [
            *self._of_section(query),
            *_fused([by_words[:limit], self._by_meaning(query, list(hidden.values()), limit)]),
        ]
        return [
            _hit(hidden[number])
            for number in dict.fromkeys(original.number for original in hits)
            if number in hidden
        ][:limit]

    def numbered(self, numbers: Sequence[int]) -> list[Hit]:
        """Return the messages with these numbers, in the order asked, shown or not; excluded ones
        are left out.
        """
        by_number = {
            original.number: original
            for original in self.index.originals
            if self._may_show(original)
        }
        return [_hit(by_number[number]) for number in numbers if number in by_number]

    @cached_property
    def index(self) -> Index:
        """Return the index over all messages, of which only the new ones are indexed anew."""
        thread, key = self.thread, self.thread_id or "-"
        known = self.indexes.get(key)
        if known is None or not known.continues_in(thread):
            there = thread.archived and self.store is not None and self.thread_id
            retired = (
                readable_page(StoreArchive(self.store), str(self.thread_id), 1, thread.archived)
                if there and self.store
                else []
            )
            known = ThreadIndex(thread.archived, thread.archived, None, Index.build(retired))
        if known.end < thread.length:
            index = known.index.extended(self._live[known.end - thread.archived :])
            known = ThreadIndex(thread.archived, thread.length, thread.messages[-1].id, index)
        return self.indexes.put(key, known).index

    @property
    def _live(self) -> list[Original]:
        return [
            Original(number, message)
            for number, message in enumerate(self.thread.messages, self.thread.archived + 1)
        ]

    @cached_property
    def _shown(self) -> dict[str | None, str]:
        return {message.id: str(message.text) for message in self.call_plan.view.messages}

    def _is_hidden(self, original: Original) -> bool:
        """Return whether a message that is not excluded is left out of the next call, or shortened
        there.
        """
        is_shown = self._shown.get(original.message.id)
        return self._may_show(original) and (
            is_shown is None or str(original.message.text) not in is_shown
        )

    def _may_show(self, original: Original) -> bool:
        """Return whether a message is not excluded, and the voice that is asked may hear it."""
        voice = self.call_plan.call_config.voice
        return original.message.id not in self.thread.excluded and (
            voice is None or voice.hears(original.message)
        )

    def _of_section(self, query: str) -> list[Original]:
        """Return the source messages of the topic section that answers a query, where the memory is
        kept in topics.
        """
        section = find_section(visible_topics(self.thread), query)
        sources = set(section.section.sources) if section else set()
        return [original for original in self.index.originals if original.number in sources]

    def _by_meaning(self, query: str, hidden: Sequence[Original], limit: int) -> list[Original]:
        """Return the hidden messages nearest in meaning, the nearest first; none where the store
        has no embedding index.
        """
        if self.store is None or self.thread_id is None or not embeds(self.store):
            return []
        archive, by_id = (
            StoreArchive(self.store),
            {original.message.id: original for original in hidden},
        )
        kinds: tuple[Kind, ...] = ("recall", "archive")
        try:
            archive.embed(
                self.thread_id,
                [original for original in hidden if original.number > self.thread.archived],
            )
            near = [
                pair
                for kind in kinds
                for pair in archive.near(thread_namespace(kind, self.thread_id), query, limit)
            ]
        except Exception:  # an embedding server that is down: words alone must do
            return []
        scores = {id_: score for id_, score in near if id_ in by_id}
        return [by_id[id_] for id_ in sorted(scores, key=scores.__getitem__, reverse=True)]


def originals_of(call_plan: CallPlan, runtime: Runtime[Context], indexes: Indexes) -> Originals:
    """Return what a run may recall."""
    return Originals(call_plan, runtime.store, thread_id_of(runtime), indexes)


def recall_event(
    query: str, answer: Mapping[str, Any], *, via: Literal["marker", "tool"]
) -> Recall:
    """Return the event of what was brought back. `answer`: of recall_history."""
    turns = sorted({int(message["turn"]) for message in answer["messages"]})
    return Recall(type="recall", query=query, found=answer["found"], turns=turns, via=via)


def _fused(rankings: Sequence[Sequence[Original]]) -> list[Original]:
    """Merge rankings by reciprocal rank fusion; of equals the newer first."""
    by_number = {original.number: original for ranking in rankings for original in ranking}
    scores: defaultdict[int, float] = defaultdict(float)
    for rank, original in (each for ranking in rankings for each in enumerate(ranking)):
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
