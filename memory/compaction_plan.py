"""Which rounds to compact now."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from longtable.memory.block import ledger_of, ledger_text, pins_text
from longtable.memory.ledger import ledger_lines
from longtable.memory.pins import live_pins
from longtable.memory.policy import WINDOW
from longtable.memory.rounds import pair_calls, split_rounds
from longtable.memory.thread import Compaction
from longtable.memory.view import CallPlan

ROOM = 0.9
"""A view that keeps all of `keep_rounds` must be this far under the threshold, or the next turn would compact again."""

WORTH = 0.05
"""Least a compaction must take, as a share of the threshold: where system prompt, tools and the newest rounds alone are over it,
a summary of next to nothing would be asked for every turn."""

MIN_NEW_MESSAGES = 4
"""Messages that must have come since the last compaction before the next: two rounds, less than which a summary
call is not worth. A view over the threshold waits only for as many that are not compacted."""

RECENT = 3
"""Newest rounds from which the size of the next one is guessed."""

When = Literal["due", "ahead", "asked"]
"""Why a compaction is looked for: before a call, after an answer (ahead of the next turn), or because a person asked."""


@dataclass(frozen=True)
class CompactionPlan:
    """The messages to compact: live messages `start` to `end`. Token counts are of the next call."""

    start: int
    end: int
    previous: Compaction | None
    tokens_before: int
    compacted_tokens: int
    summary_budget: int
    """Most tokens the summary may have."""


def plan_compaction(call_plan: CallPlan, when: When = "due") -> CompactionPlan | None:
    """Return what to compact now, oldest rounds first, or None when nothing is due or nothing can be compacted.

    Due: the view is over the threshold (`ahead`: with one more round like the newest few it would be) or one
    of the policy's triggers is met, the thread
    has `min_messages` and `MIN_NEW_MESSAGES` came since the last compaction. A view that would not fit the limit at all, a
    provider's overflow (`call_config.ceiling`), or a person who asked waives the counts of messages and the least a compaction takes.
    A memory that holds what was excluded since is made again ahead of the next turn, or when asked, with nothing new compacted.
    The newest round is never compacted; fewer than `keep_rounds` and `keep_messages` stay only where so many do not fit.
    """
    call_config, policy, thread = call_plan.call_config, call_plan.call_config.policy, call_plan.thread
    if policy.strategy == WINDOW:
        return None
    before = call_plan.parts.total
    urgent = before > call_config.hard_tokens or call_config.ceiling is not None
    record, start = thread.live
    if when != "asked" and not _is_due(call_plan, when):
        # What a person excluded leaves the memory after the next answer, whether a compaction is due or not.
        return CompactionPlan(start, start, record, before, 0, call_config.summary_tokens) if when == "ahead" and thread.stale else None
    # Rounds the last compaction left stand after it, but are not new; a view that is over does not wait for new ones.
    left = record.get("length", 0) if record and not _is_over(call_plan, when) else 0
    fresh = thread.length - max(left, thread.archived + start)
    if when != "asked" and not urgent and (thread.length < policy.min_messages or (record and fresh < MIN_NEW_MESSAGES)):
        return None
    rounds = split_rounds(thread.messages[start:])
    sizes = [sum(map(call_config.counter.message, pair_calls([m for m in round_ if m.id not in thread.excluded]))) for round_ in rounds]
    kept = _rounds_to_keep(sizes, [len(round_) for round_ in rounds], call_plan)
    compacted = rounds[: len(rounds) - kept]
    tokens = sum(sizes[: len(compacted)])
    if not compacted and when != "due" and thread.stale:
        return CompactionPlan(start, start, record, before, 0, call_config.summary_tokens)
    if not compacted or (when != "asked" and not urgent and not _is_worth(tokens, call_plan)):
        return None
    return CompactionPlan(
        start=start,
        end=start + sum(map(len, compacted)),
        previous=record,
        tokens_before=before,
        compacted_tokens=tokens,
        summary_budget=call_config.summary_tokens,
    )


def _is_due(call_plan: CallPlan, when: When) -> bool:
    policy, parts = call_plan.call_config.policy, call_plan.parts
    if _is_over(call_plan, when):
        return True
    if policy.trigger_tokens is not None and parts.memory + parts.messages > policy.trigger_tokens:
        return True
    return _many(call_plan)


def _is_over(call_plan: CallPlan, when: When) -> bool:
    call_config = call_plan.call_config
    coming = _coming(call_plan) if when == "ahead" else 0
    return call_plan.parts.total + coming > call_config.threshold_tokens


def _coming(call_plan: CallPlan) -> int:
    """Return the tokens the next round may take: the mean of the newest few."""
    newest = split_rounds(call_plan.messages)[-RECENT:]
    return sum(call_plan.call_config.counter.message(message) for round_ in newest for message in round_) // max(1, len(newest))


def _many(call_plan: CallPlan) -> bool:
    most = call_plan.call_config.policy.trigger_messages
    return most is not None and len(call_plan.thread.uncompacted) >= most


def _is_worth(tokens: int, call_plan: CallPlan) -> bool:
    trigger = min(
        call_plan.call_config.threshold_tokens, call_plan.call_config.policy.trigger_tokens or call_plan.call_config.threshold_tokens
    )
    return _many(call_plan) or tokens >= WORTH * trigger


def _rounds_to_keep(sizes: Sequence[int], lengths: Sequence[int], call_plan: CallPlan) -> int:
    """Return how many of the newest rounds stay: those the policy keeps if they fit, else as many as the target allows, at least 1."""
    if not sizes:
        return 0
    call_config = call_plan.call_config
    base = call_plan.parts.system + call_config.tool_tokens + call_config.summary_tokens + _beside_summary(call_plan)
    newest = [base + tokens for tokens in accumulate(reversed(sizes))]
    messages = list(accumulate(reversed(lengths)))
    enough = next((i + 1 for i, count in enumerate(messages) if count >= call_config.policy.keep_messages), len(sizes))
    keep = min(max(call_config.policy.keep_rounds, enough), len(sizes))
    if newest[keep - 1] <= call_config.threshold_tokens * ROOM:
        return keep
    return max(1, sum(1 for total in newest[:keep] if total <= call_config.target_tokens))


def _beside_summary(call_plan: CallPlan) -> int:
    """Return the most tokens that pins and ledger take once all uncompacted rounds are compacted."""
    thread, call_config, count = call_plan.thread, call_plan.call_config, call_plan.call_config.counter.text
    pins = live_pins(thread.pins)
    compacted, earlier = ledger_of(thread, call_config)
    lines = [*compacted, *ledger_lines(thread.uncompacted)]
    language = call_plan.memory.language
    return count(pins_text(pins, call_config, language)) + count(ledger_text(lines, earlier, call_config, language))
