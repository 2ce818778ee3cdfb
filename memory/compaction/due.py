"""Choose what to compact before a call that is over the threshold: first results, then rounds.

First, results of all rounds but the newest two shrink to their heads, which needs no model. If the
view is then still about as large as the threshold, the oldest rounds become memory as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from longtable.memory.compaction.plan import (
    ENOUGH,
    WORTH,
    CompactionPlan,
    plan_compaction,
)
from longtable.memory.compaction.result_heads import ends_of_whole_rounds, is_result, results_id
from longtable.memory.records import BY_CODE, Compaction
from longtable.memory.view import CallPlan

RESULTS_VERSION = 1
"""Part of the identity of a compaction of results. Raise it if the format of heads changes."""
NO_MEMORY: Mapping[str, object] = {
    "kind": "results",
    "summary": "",
    "pins": [],
    "ledger": [],
    "excluded": [],
    "rebuilt": False,
    "method": "fallback",
    "writer": BY_CODE,
    "why_by_code": "results of earlier rounds shrink before anything is summarised",
    "coverage": 1.0,
    "coverage_note": "",
    "summary_tokens": 0,
    "policy_version": RESULTS_VERSION,
}
"""Values of the memory fields in the record of a compaction of results, which writes no memory."""


@dataclass(frozen=True)
class DueCompaction:
    """The compactions to do before the next call. In `call_plan` the results are already shrunk."""

    results: Compaction | None
    """The compaction that shrinks results, None if no result has to shrink."""
    plan: CompactionPlan | None
    """The rounds that become memory, None if no round has to."""
    call_plan: CallPlan


def due_compaction(
    call_plan: CallPlan, breaker: int | None, *, turn: int = 0, time: str = ""
) -> DueCompaction | None:
    """Return the compactions that are due before this call, None if no compaction is due.

    `breaker`: size of the view in tokens when the last compaction failed or was undone, None
    otherwise. `turn` and `time` go into the record of the compaction that shrinks results.
    """
    threshold = call_plan.call_config.threshold_tokens
    over = call_plan.parts.total > threshold
    candidates: list[DueCompaction] = []
    if over and not _waits(call_plan, breaker):
        for record in _results_compactions(call_plan, turn, time):
            smaller = _with(call_plan, record)
            if record["tokens_after"] < ENOUGH * threshold:
                return DueCompaction(record, None, smaller)
            plan = plan_compaction(smaller, over=True)
            candidates.append(DueCompaction(record, _ready(plan, breaker), smaller))
    if candidates:
        return _without_idle_results(_best(candidates), call_plan)
    plan = _ready(plan_compaction(call_plan), breaker)
    return DueCompaction(None, plan, call_plan) if plan else None


def _ready(plan: CompactionPlan | None, breaker: int | None) -> CompactionPlan | None:
    return None if plan and plan.waits(breaker) else plan


def _waits(call_plan: CallPlan, breaker: int | None) -> bool:
    """Return whether results must not shrink yet, because of an undo or a failed compaction."""
    more = WORTH * call_plan.call_config.threshold_tokens
    return breaker is not None and call_plan.parts.total < breaker + more


def _best(candidates: Sequence[DueCompaction]) -> DueCompaction:
    """Return the candidate that keeps the most rounds. If two keep the same number, return the
    first, because it leaves more results whole. If in no candidate rounds become memory, return the
    last candidate, because it shrinks the most results.
    """
    with_plan = [(due.plan.end, place) for place, due in enumerate(candidates) if due.plan]
    return candidates[min(with_plan)[1]] if with_plan else candidates[-1]


def _without_idle_results(due: DueCompaction, before: CallPlan) -> DueCompaction:
    """Leave out the compaction of results if the new memory covers all shrunk results anyway."""
    if due.plan is None or due.call_plan.thread.live_results[1] > due.plan.end:
        return due
    plan = replace(due.plan, tokens_before=before.parts.total)
    return DueCompaction(None, plan, before)


def _results_compactions(call_plan: CallPlan, turn: int, time: str) -> Iterator[Compaction]:
    """Yield the compactions that could shrink results now. The first keeps the results of the
    newest two rounds with results whole, the second only those of the newest round with results.
    """
    thread = call_plan.thread
    start = thread.live[1]
    known = max(start, thread.live_results[1])
    for end in ends_of_whole_rounds(thread.messages[start:], thread.excluded):
        place = start + end
        fresh = thread.messages[known:place]
        if any(map(is_result, fresh)):
            yield _record(call_plan, place, turn, time)


def _record(call_plan: CallPlan, end: int, turn: int, time: str) -> Compaction:
    """Return the compaction that shrinks the results before the message at index `end`."""
    thread = call_plan.thread
    known = max(thread.live[1], thread.live_results[1])
    fresh = thread.messages[known:end]
    before = call_plan.parts.total
    after = replace(call_plan, results_end=end).parts.total
    previous = thread.live_results[0]
    made_of = (RESULTS_VERSION, previous and previous["id"], sorted(thread.undone))
    covered = {
        "id": results_id(fresh, *made_of),
        "previous": previous["id"] if previous else None,
        "from_id": thread.messages[0].id,
        "to_id": thread.messages[end - 1].id,
        "count": thread.archived + end,
        "length": thread.length,
        "folded": sum(map(is_result, fresh)),
    }
    sizes = {"folded_tokens": before - after, "tokens_before": before, "tokens_after": after}
    about = {
        "strategy": call_plan.call_config.policy.strategy,
        "language": call_plan.memory.language,
        "turn": turn,
        "time": time,
    }
    return cast("Compaction", {**NO_MEMORY, **covered, **sizes, **about})


def _with(call_plan: CallPlan, record: Compaction) -> CallPlan:
    """Return the call with one more compaction."""
    thread = call_plan.thread
    return replace(call_plan, thread=replace(thread, compactions=[*thread.compactions, record]))
