"""Which rounds to compact now, and how much room their memory has."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from longtable.memory.block import ledger_of, ledger_text, pins_text
from longtable.memory.call_config import BLOCK_TOKENS, SUMMARY_FLOOR
from longtable.memory.ledger import ledger_lines
from longtable.memory.pins import current_pins
from longtable.memory.policy import WINDOW
from longtable.memory.rounds import pair_calls, split_rounds
from longtable.memory.thread import Compaction
from longtable.memory.view import CallPlan

FREE_ROUNDS = 3
"""Rounds like the kept ones that a view has room for after a compaction, or the next turn would
compact again. Ahead of a turn one more, that turn's own: 100 turns with 9 rows of SQL each at a
limit of 8,000 then compact 18 times, not 23.
"""
FULL = 0.9
"""`keep_messages` stay only where they leave the view this far under the threshold."""
WORTH = 1 / 12
"""Least a compaction must take, as a share of the trigger that fired: where system prompt, tools
and the newest round are over it alone, a summary of next to nothing would be asked for every turn.
One that failed waits for as much again.
"""
LITTLE = BLOCK_TOKENS + SUMMARY_FLOOR
"""Tokens of a thread's first compaction below which no memory is smaller than what it replaces."""
LEDGER_PART = 1 / 3
"""Most of the memory's room that the query ledger may take, as its default share is to the
summary's.
"""
MIN_NEW_MESSAGES = 4
"""Messages that must have come since the last compaction before the next: two rounds, less than
which a summary call is not worth. A view over the threshold does not wait.
"""
RECENT = 3
"""Newest rounds from which the size of the next one is guessed."""

When = Literal["due", "ahead", "asked"]
"""Why a compaction is looked for: before a call, after an answer (ahead of the next turn), or
because a person asked.
"""


@dataclass(frozen=True)
class CompactionPlan:
    """The messages to compact: live messages `start` to `end`. Token counts are of the next
    call.
    """

    start: int
    end: int
    previous: Compaction | None
    tokens_before: int
    compacted_tokens: int
    summary_budget: int
    """Most tokens the summary may have."""
    ledger_budget: int
    """Most tokens the query ledger may have beside it."""
    trigger: int
    """Tokens of the trigger that fired; those of the whole call where a person asked."""

    def waits(self, breaker: int | None) -> bool:
        """Return whether it is too early to try again after a compaction that failed at `breaker`
        tokens.
        """
        return breaker is not None and self.tokens_before < breaker + WORTH * self.trigger


def plan_compaction(call_plan: CallPlan, when: When = "due") -> CompactionPlan | None:
    """Return what to compact now, oldest rounds first, or None when nothing is due or nothing can
    be compacted.

    Due: the view is over the threshold (`ahead`: with one more round like the newest few it would
    be), or one of the policy's triggers is met, the thread has `min_messages` and
    `MIN_NEW_MESSAGES` came since the last compaction. A view that would not fit the limit at all, a
    provider's overflow (`call_config.ceiling`), or a person who asked waives the least a compaction
    takes. A memory that holds what was excluded since is made again ahead of the next turn, or when
    asked, with nothing new compacted. The newest round is never compacted.
    """
    call_config, policy, thread = (
        call_plan.call_config,
        call_plan.call_config.policy,
        call_plan.thread,
    )
    if policy.strategy == WINDOW:
        return None
    before, (record, start) = call_plan.parts.total, thread.live
    trigger = before if when == "asked" else _trigger(call_plan, when)
    if not trigger and not (when == "ahead" and thread.stale):
        return None
    if trigger and trigger < call_config.threshold_tokens and when != "asked":
        fresh = thread.length - max(
            record.get("length", 0) if record else 0, thread.archived + start
        )
        if thread.length < policy.min_messages or (record and fresh < MIN_NEW_MESSAGES):
            return None
    rounds = split_rounds(thread.messages[start:])
    sizes = [
        sum(
            map(
                call_config.counter.message,
                pair_calls([m for m in round_ if m.id not in thread.excluded]),
            )
        )
        for round_ in rounds
    ]
    beside, ledger = _beside_summary(call_plan)
    end = (
        len(rounds)
        - rounds_to_keep(sizes, [len(round_) for round_ in rounds], beside, call_plan, when)
        if trigger
        else 0
    )
    tokens = sum(sizes[:end])
    if not end and (when == "due" or not thread.stale):
        return None
    urgent = when == "asked" or before > call_config.hard_tokens or call_config.ceiling is not None
    if end and not urgent and not (tokens >= WORTH * trigger and (record or tokens >= LITTLE)):
        return None
    memory = call_config.memory_tokens(beside + sum(sizes[end:]))
    ledger_budget = min(call_config.ledger_tokens, int(memory * LEDGER_PART))
    return CompactionPlan(
        start=start,
        end=start + sum(map(len, rounds[:end])),
        previous=record,
        tokens_before=before,
        compacted_tokens=tokens,
        summary_budget=min(
            call_config.summary_tokens, max(SUMMARY_FLOOR, memory - min(ledger, ledger_budget))
        ),
        ledger_budget=ledger_budget,
        trigger=trigger or before,
    )


def rounds_to_keep(
    sizes: Sequence[int], lengths: Sequence[int], beside: int, call_plan: CallPlan, when: When
) -> int:
    """Return how many of the newest rounds stay: the most, up to `keep_rounds`, that leave room for
    three more like them.

    `sizes` in tokens and `lengths` in messages, oldest round first; `beside`: tokens of the pins.
    At least one stays, and `keep_messages` where they fit.
    """
    call_config, policy = call_plan.call_config, call_plan.call_config.policy
    newest, messages = list(accumulate(reversed(sizes))), list(accumulate(reversed(lengths)))
    fixed = call_config.around_tokens + beside + BLOCK_TOKENS + call_config.least_memory
    room = call_config.threshold_tokens - fixed
    if policy.trigger_tokens is not None:
        room = min(room, policy.trigger_tokens - beside - BLOCK_TOKENS - call_config.least_memory)
    free = FREE_ROUNDS + (when == "ahead")
    fitting = [
        n
        for n, tokens in enumerate(newest[: policy.keep_rounds], 1)
        if tokens + free * tokens / n <= room
    ]
    enough = next(
        (n for n, count in enumerate(messages, 1) if count >= policy.keep_messages), len(sizes)
    )
    if enough and newest[enough - 1] + fixed > FULL * call_config.threshold_tokens:
        enough = 0
    return min(len(sizes), max(fitting[-1] if fitting else 1, enough))


def _trigger(call_plan: CallPlan, when: When) -> int:
    """Return the tokens of the trigger that fired, 0 where none did."""
    call_config, parts = call_plan.call_config, call_plan.parts
    policy = call_config.policy
    coming = _coming(call_plan) if when == "ahead" else 0
    if parts.total + coming > call_config.threshold_tokens:
        return call_config.threshold_tokens
    if policy.trigger_tokens is not None and parts.memory + parts.messages > policy.trigger_tokens:
        return policy.trigger_tokens
    most = policy.trigger_messages
    return parts.messages if most is not None and len(call_plan.thread.uncompacted) >= most else 0


def _coming(call_plan: CallPlan) -> int:
    """Return the tokens the next round may take: the mean of the newest few."""
    newest = split_rounds(call_plan.messages)[-RECENT:]
    return sum(
        call_plan.call_config.counter.message(message) for round_ in newest for message in round_
    ) // max(1, len(newest))


def _beside_summary(call_plan: CallPlan) -> tuple[int, int]:
    """Return the tokens of the pins and of the whole query ledger once all uncompacted rounds are
    compacted.
    """
    thread, call_config, count = (
        call_plan.thread,
        call_plan.call_config,
        call_plan.call_config.counter.text,
    )
    pins = current_pins(thread.pins)
    compacted, earlier = ledger_of(thread, call_config)
    lines = [*compacted, *ledger_lines(thread.uncompacted)]
    language = call_plan.memory.language
    return count(pins_text(pins, call_config, language)), count(
        ledger_text(lines, earlier, call_config, language)
    )
