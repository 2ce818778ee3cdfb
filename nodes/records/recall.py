"""Bring originals back: what a thread compacted or retired, searched by words and, where the store can, by meaning."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context
from longtable.base.events import Recall
from longtable.memory.archive import near, readable_page
from longtable.memory.call_config import CallConfig
from longtable.memory.search import Index, Original, in_turns, text_of
from longtable.memory.stamps import is_recalled, marks_of
from longtable.memory.thread import Thread
from longtable.memory.topic_strategy import topics_of
from longtable.memory.topics import find_section
from longtable.memory.view import CallPlan
from longtable.nodes.records.archive_store import StoreArchive, embeds
from longtable.nodes.records.bounded_cache import BoundedCache
from longtable.nodes.records.thread_index import thread_id_of
from longtable.tools.recall_tool import Hit

KEPT_INDEXES = 8
"""Indexes a process keeps: one a thread, made again when more was compacted."""
RANK = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""
BUDGET_SHARE = 0.1
"""Most a recalled block may take, as a share of the threshold."""
CHARS_A_TOKEN = 2
"""Characters counted as one token when a budget in tokens bounds a text: on the safe side for English, about right for Chinese."""

Key = tuple[int, int, str, frozenset[str]]
"""What an index was made of: messages retired, live ones compacted, the last of them, those excluded."""
Indexes = BoundedCache[str, tuple[Key, Index]]
"""The newest index of each thread, shared by a process's runs."""


@dataclass(frozen=True)
class Originals:
    """The compacted and retired messages of one thread, for one run. Blocking: call it from a worker thread."""

    thread: Thread = field(repr=False)
    call_config: CallConfig = field(repr=False)
    store: BaseStore | None = field(repr=False)
    thread_id: str | None
    indexes: Indexes = field(repr=False)

    @property
    def budget_chars(self) -> int:
        """Return the most characters a recalled block may have."""
        return max(400, int(self.call_config.threshold_tokens * BUDGET_SHARE) * CHARS_A_TOKEN)

    def search(self, query: str, from_turn: int | None, to_turn: int | None, limit: int) -> list[Hit]:
        """Return what answers the query best, the best first; never a message of another thread, nor an excluded one."""
        index = self.index
        most = limit if from_turn is None and to_turn is None else len(index.originals)
        by_words = [original for original, _ in index.search(query, most)]
        found = in_turns([*self._of_section(query), *_fused([by_words, self._by_meaning(query, limit)])], from_turn, to_turn)
        return [_hit(original) for original in {original.number: original for original in found}.values()][:limit]

    def numbered(self, numbers: Sequence[int]) -> list[Hit]:
        """Return the compacted messages with these numbers, in the order asked."""
        by_number = {original.number: original for original in self.index.originals}
        return [_hit(by_number[number]) for number in numbers if number in by_number]

    @property
    def index(self) -> Index:
        """Return the index over them, made once until more is compacted."""
        thread, end = self.thread, self.thread.live[1]
        last = thread.messages[end - 1].id if end else ""
        key = (thread.archived, end, last or "", frozenset(thread.excluded))
        known = self.indexes.get(self.thread_id or "-")
        if known is None or known[0] != key:
            known = self.indexes.put(self.thread_id or "-", (key, Index.build(self._all())))
        return known[1]

    def _all(self) -> list[Original]:
        thread = self.thread
        there = thread.archived and self.store is not None and self.thread_id
        retired = readable_page(StoreArchive(self.store), str(self.thread_id), 1, thread.archived) if there and self.store else []
        live = [Original(number, message) for number, message in thread.numbered(0, thread.live[1])]
        return [original for original in [*retired, *live] if original.message.id not in thread.excluded]

    def _of_section(self, query: str) -> list[Original]:
        """Return the source messages of the topic section that answers a query, where the memory is kept in topics."""
        section = find_section(topics_of(self.thread), query)
        sources = set(section.section.sources) if section else set()
        return [original for original in self.index.originals if original.number in sources]

    def _by_meaning(self, query: str, limit: int) -> list[Original]:
        if self.store is None or self.thread_id is None or not embeds(self.store):
            return []
        try:
            found = near(StoreArchive(self.store), self.thread_id, query, limit)
        except Exception:  # an embedding server that is down: words alone must do
            return []
        excluded, length = self.thread.excluded, self.thread.length
        return [o for o in found if o.message.id not in excluded and o.number <= length and not is_recalled(o.message)]


def originals_of(call_plan: CallPlan, runtime: Runtime[Context], indexes: Indexes) -> Originals:
    """Return what a run may recall."""
    return Originals(call_plan.thread, call_plan.call_config, runtime.store, thread_id_of(runtime), indexes)


def recall_event(query: str, answer: Mapping[str, Any], *, via: Literal["marker", "tool"]) -> Recall:
    """Return the event of what was brought back. `answer`: of recall_history."""
    turns = sorted({int(message["turn"]) for message in answer["messages"]})
    return Recall(type="recall", query=query, found=answer["found"], turns=turns, via=via)


def _fused(rankings: Sequence[Sequence[Original]]) -> list[Original]:
    """Merge rankings by reciprocal rank fusion; of equals the newer first."""
    by_number = {original.number: original for ranking in rankings for original in ranking}
    scores: defaultdict[int, float] = defaultdict(float)
    for rank, original in (each for ranking in rankings for each in enumerate(ranking)):
        scores[original.number] += 1 / (RANK + rank)
    return [by_number[number] for number in sorted(scores, key=lambda number: (-scores[number], -number))]


def _hit(original: Original) -> Hit:
    message = original.message
    return Hit(
        number=original.number,
        id=str(message.id),
        turn=original.turn,
        time=str(marks_of(message).get("time", "")),
        role=message.type,
        text=text_of(message),
    )
