"""Decide which rounds to compact now, and how much room their memory has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from langchain_core.messages import BaseMessage

from longtable.memory.call_config import BLOCK_TOKENS, SUMMARY_FLOOR, CallConfig
from longtable.memory.compaction.ledger import ledger_lines
from longtable.memory.compaction.result_heads import ends_of_whole_rounds, shrunk
from longtable.memory.memory_block import ledger_of, ledger_text, pins_text
from longtable.memory.messages.rounds import pair_calls, split_rounds
from longtable.memory.pins.pins import current_pins
from longtable.memory.policy import WINDOW
from longtable.memory.records import Compaction
from longtable.memory.view import CallPlan

FREE_ROUNDS = 3
"""Number of further rounds that must fit into the view after a compaction. Without that room the
next turn would compact again. A compaction ahead of a turn leaves room for one round more: that of
the coming turn.
"""
ENOUGH = 0.95
"""Share of the threshold. If shrinking results brings a view below this share, no summary is made,
unless a summary is cheaper ahead of a turn.
"""
FULL = 0.9
"""Share of the threshold. The policy's `keep_messages` is ignored if it would leave the view above
this share.
"""
WORTH = 1 / 12
"""Smallest text worth a compaction, as a share of the trigger that fired.

Without this minimum, a thread whose system prompt, tools and newest round alone are over the
trigger would make a summary of almost nothing every turn. After a failed compaction, the next
attempt waits for the same amount of new text.
"""
LITTLE = BLOCK_TOKENS + SUMMARY_FLOOR
"""Fewest tokens for a thread's first compaction. With fewer, no memory would be smaller than the
text it replaces.
"""
MIN_NEW_MESSAGES = 4
"""Fewest new messages between one compaction and the next: two rounds, because fewer are not worth
a summary call. A view over the threshold is compacted without waiting for them.
"""
RECENT = 3
"""Number of newest rounds from which the size of the next round is estimated."""

When = Literal["due", "ahead", "asked"]
"""The occasion of a compaction: before a call, after an answer (ahead of the next turn), or because
a person asked.
"""


@dataclass(frozen=True)
class CompactionPlan:
    """The messages to compact: those of the thread from index `start` up to `end`. Token counts
    are as in the next call.
    """

    start: int
    end: int
    previous: Compaction | None
    tokens_before: int
    compacted_tokens: int
    summary_budget: int
    """Most tokens the summary may have."""
    ledger_budget: int
    """Most tokens that the query ledger may have beside the summary."""
    trigger: int
    """Tokens of the trigger that fired; if a person asked, the tokens of the whole call."""

    def waits(self, breaker: int | None) -> bool:
        """Return whether it is too early to try again after a compaction that failed at `breaker`
        tokens.
        """
        return breaker is not None and self.tokens_before < breaker + WORTH * self.trigger


def plan_compaction(
    call_plan: CallPlan, when: When = "due", *, over: bool = False
) -> CompactionPlan | None:
    """Return what to compact now, oldest rounds first. Return None if nothing is due or nothing can
    be compacted.

    `when="due"`: a compaction is due if the view is over the threshold or meets one of the policy's
    triggers. `over` says that the view was over the threshold before its results shrank.
    `when="ahead"`: a compaction is due if the view would be over the threshold with one more round
    like the newest few, even after all whole results in the view shrank.

    The thread must have `min_messages`, and `MIN_NEW_MESSAGES` since the last compaction, unless
    the view is over the threshold or a person asked. The compacted text must have a minimum size,
    unless the view would not fit the limit at all, the provider reported an overflow
    (`call_config.ceiling`), or a person asked. The newest round is never compacted.

    If the memory holds text that was excluded since, the memory is made again ahead of the next
    turn, or if a person asks, even if no new message is compacted.
    """
    call_config = call_plan.call_config
    thread = call_plan.thread
    if call_config.policy.strategy == WINDOW:
        return None
    before = call_plan.parts.total
    record, start = thread.live
    trigger = _trigger(call_plan, when, over)
    if not trigger and not (when == "ahead" and thread.stale):
        return None
    waits = when == "ahead" or (when == "due" and trigger < call_config.threshold_tokens)
    if trigger and waits and _is_too_soon(call_plan):
        return None
    rounds = split_rounds(thread.messages[start:])
    sizes = [_shown_tokens(call_plan, round_) for round_ in rounds]
    end = len(rounds) - rounds_to_keep(rounds, sizes, call_plan, when) if trigger else 0
    tokens = sum(sizes[:end])
    if not end and (when == "due" or not thread.stale):
        return None
    urgent = when == "asked" or before > call_config.hard_tokens or call_config.ceiling is not None
    if end and not urgent and not (tokens >= WORTH * trigger and (record or tokens >= LITTLE)):
        return None
    return CompactionPlan(
        start=start,
        end=start + sum(map(len, rounds[:end])),
        previous=record,
        tokens_before=before,
        compacted_tokens=tokens,
        summary_budget=call_config.summary_tokens,
        ledger_budget=call_config.ledger_tokens,
        trigger=trigger or before,
    )


def rounds_to_keep(
    rounds: Sequence[Sequence[BaseMessage]],
    sizes: Sequence[int],
    call_plan: CallPlan,
    when: When,
) -> int:
    """Return how many of the newest rounds stay: as many as leave room for three more rounds beside
    a full memory, at most `keep_rounds`.

    `sizes`: tokens of each round as the view shows it, oldest first. A future round is assumed to
    have the mean size of the newest three rounds, with their results whole. At least one round
    stays, and, if they fit, enough rounds to hold the policy's `keep_messages`.
    """
    call_config = call_plan.call_config
    policy = call_config.policy
    pins, ledger = _beside_summary(call_plan)
    memory = call_config.summary_tokens + min(ledger, call_config.ledger_tokens)
    beside = pins + BLOCK_TOKENS + memory
    room = _room(call_config, beside)
    to_come = (FREE_ROUNDS + (when == "ahead")) * _coming(call_plan)
    newest = list(accumulate(reversed(sizes)))
    fitting = [
        count
        for count, tokens in enumerate(newest[: policy.keep_rounds], 1)
        if tokens + to_come <= room
    ]
    fewest = _rounds_of_messages(rounds, policy.keep_messages)
    if fewest:
        total = call_config.around_tokens + beside + newest[fewest - 1]
        if total > FULL * call_config.threshold_tokens:
            fewest = 0
    return min(len(sizes), max(fitting[-1] if fitting else 1, fewest))


def _room(call_config: CallConfig, beside: int) -> int:
    """Return the tokens that rounds may take without triggering a compaction. `beside`: tokens of
    the memory.
    """
    room = call_config.threshold_tokens - call_config.around_tokens - beside
    trigger = call_config.policy.trigger_tokens
    return room if trigger is None else min(room, trigger - beside)


def _rounds_of_messages(rounds: Sequence[Sequence[BaseMessage]], messages: int) -> int:
    """Return how many of the newest rounds are needed to hold at least this many messages. Return
    all rounds if they hold fewer.
    """
    counts = accumulate(len(round_) for round_ in reversed(rounds))
    enough = (place for place, count in enumerate(counts, 1) if count >= messages)
    return next(enough, len(rounds)) if messages else 0


def _shown_tokens(call_plan: CallPlan, messages: Sequence[BaseMessage]) -> int:
    """Return the tokens of a round as the view shows it: with heads in place of shrunk results, and
    without excluded messages.
    """
    excluded = call_plan.thread.excluded
    sent = [message for message in messages if message.id not in excluded]
    heads = shrunk(sent, call_plan.shrunk_numbers)
    return sum(map(call_plan.call_config.counter.message, pair_calls(heads)))


def _is_too_soon(call_plan: CallPlan) -> bool:
    """Return whether the thread has too few messages, or too few since the last compaction, to be
    summarised already.
    """
    thread = call_plan.thread
    record, start = thread.live
    compacted_at = record.get("length", 0) if record else 0
    fresh = thread.length - max(compacted_at, thread.archived + start)
    too_few = thread.length < call_plan.call_config.policy.min_messages
    return too_few or (record is not None and fresh < MIN_NEW_MESSAGES)


def _trigger(call_plan: CallPlan, when: When, over: bool) -> int:
    """Return the tokens of the trigger that fired, 0 if none did."""
    call_config = call_plan.call_config
    parts = call_plan.parts
    policy = call_config.policy
    if when == "asked":
        return parts.total
    if when == "ahead":
        # Results that are still whole may shrink first, also where they are over the threshold now.
        over = _next_is_over(call_plan)
    elif not over:
        over = parts.total > call_config.threshold_tokens
    if over:
        return call_config.threshold_tokens
    if policy.trigger_tokens is not None and parts.memory + parts.messages > policy.trigger_tokens:
        return policy.trigger_tokens
    most = policy.trigger_messages
    return parts.messages if most is not None and len(call_plan.thread.uncompacted) >= most else 0


def _next_is_over(call_plan: CallPlan) -> bool:
    """Return whether one more round like the newest few would make a summary necessary, even after
    results shrank. The answer of that round is not counted, because no call of the round has it.
    """
    coming = _coming(call_plan, with_answer=False)
    threshold = call_plan.call_config.threshold_tokens
    before = call_plan.parts.total + coming
    if before <= threshold:
        return False
    thread = call_plan.thread
    start = thread.live[1]
    # The coming round keeps its results whole, and if there is room so does the newest one now.
    newest_whole = start + ends_of_whole_rounds(thread.messages[start:], thread.excluded)[-1]
    for end in (max(newest_whole, thread.live_results[1]), len(thread.messages)):
        heads = replace(call_plan, results_end=end)
        plan = plan_compaction(heads, over=True)
        after = heads.parts.total + coming
        if _results_are_enough(heads, plan, before=before, after=after):
            return False
    return True


def _results_are_enough(
    heads: CallPlan, plan: CompactionPlan | None, *, before: int, after: int
) -> bool:
    """Return whether shrunk results alone make room at no higher price than a summary would.

    The price is in tokens for each further round that there is room for. A provider's prompt cache
    holds nothing of a view that was compacted, so each compaction costs the view that it leaves. A
    summary also costs the text that the summariser reads; its own length is left aside.

    Without this comparison, results shrank by little every few turns, and two fifths more was
    billed (`benchmarks/cost.py`).

    `heads`: the call with the results shrunk. `plan`: the summary that could follow. `before` and
    `after`: tokens of the call before and after the results shrink.
    """
    threshold = heads.call_config.threshold_tokens
    if plan is None or after >= ENOUGH * threshold:
        return after < ENOUGH * threshold
    read = plan.compacted_tokens + before - after  # the summariser reads whole results
    left = after - plan.compacted_tokens
    coming = max(1, _coming(heads))
    rounds = max(1, (threshold - after) // coming)
    rounds_with_summary = max(1, (threshold - left) // coming)
    return after / rounds <= (read + left) / rounds_with_summary


def _coming(call_plan: CallPlan, *, with_answer: bool = True) -> int:
    """Return the expected tokens of the next round: the mean size of the newest few rounds, with
    whole results.
    """
    rounds = split_rounds(call_plan.thread.uncompacted)
    if len(rounds) > 1 and len(rounds[-1]) == 1:
        # A question without its answer yet says nothing of a round's size.
        rounds = rounds[:-1]
    count = call_plan.call_config.counter.message
    newest = [pair_calls(round_) for round_ in rounds[-RECENT:]]
    if not with_answer:
        newest = [round_[:-1] or round_ for round_ in newest]
    sizes = [sum(map(count, round_)) for round_ in newest]
    return sum(sizes) // max(1, len(sizes))


def _beside_summary(call_plan: CallPlan) -> tuple[int, int]:
    """Return the tokens of the pins, and the tokens that the whole query ledger would have if all
    rounds were compacted.
    """
    thread = call_plan.thread
    call_config = call_plan.call_config
    count = call_config.counter.text
    pins = current_pins(thread.pins)
    compacted, earlier = ledger_of(thread, call_config)
    lines = [*compacted, *ledger_lines(thread.uncompacted)]
    language = call_plan.memory.language
    pins_tokens = count(pins_text(pins, call_config, language))
    return pins_tokens, count(ledger_text(lines, earlier, call_config, language))
