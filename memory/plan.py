"""Which rounds to fold now."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from longtable.memory.block import ledger_of, ledger_text, pins_text
from longtable.memory.ledger import ledger_lines
from longtable.memory.pins import heuristic_pins, live_pins
from longtable.memory.policy import WINDOW
from longtable.memory.rounds import pair_calls, split_rounds
from longtable.memory.thread import Compaction
from longtable.memory.view import Layout

ROOM = 0.9
"""A view that keeps all of `keep_rounds` must be this far under the threshold, or the next turn would fold again."""

WORTH = 0.05
"""Least a fold must take, as a share of the threshold: where system prompt, tools and the newest rounds alone are over it,
a summary of next to nothing would be asked for every turn."""

MIN_NEW_MESSAGES = 4
"""Messages that must have come since the last compaction before the next: two rounds, less than which a summary
call is not worth. A view over the threshold waits only for as many that are not compacted."""

RECENT = 3
"""Newest rounds from which the size of the next one is guessed."""

When = Literal["due", "ahead", "asked"]
"""Why a fold is looked for: before a call, after an answer (ahead of the next turn), or because a person asked."""


@dataclass(frozen=True)
class Fold:
    """The messages to fold: live messages `start` to `end`. Token counts are of the next call."""

    start: int
    end: int
    previous: Compaction | None
    tokens_before: int
    folded_tokens: int
    summary_budget: int
    """Most tokens the summary may have."""


def plan_fold(layout: Layout, when: When = "due") -> Fold | None:
    """Return what to fold now, oldest rounds first, or None when nothing is due or nothing can be folded.

    Due: the view is over the threshold (`ahead`: with one more round like the newest few it would be) or one
    of the policy's triggers is met, the thread
    has `min_messages` and `MIN_NEW_MESSAGES` came since the last fold. A view that would not fit the limit at all, a
    provider's overflow (`frame.ceiling`), or a person who asked waives the counts of messages and the least a fold takes.
    A memory that holds what was excluded since is made again ahead of the next turn, or when asked, with nothing new folded.
    The newest round is never folded; fewer than `keep_rounds` and `keep_messages` stay only where so many do not fit.
    """
    frame, policy, thread = layout.frame, layout.frame.policy, layout.thread
    if policy.strategy == WINDOW:
        return None
    before = layout.parts.total
    urgent = before > frame.hard_tokens or frame.ceiling is not None
    record, start = thread.live
    if when != "asked" and not _is_due(layout, when):
        # What a person excluded leaves the memory after the next answer, whether a fold is due or not.
        return Fold(start, start, record, before, 0, frame.summary_tokens) if when == "ahead" and thread.stale else None
    # Rounds the last fold left stand after it, but are not new; a view that is over does not wait for new ones.
    left = record.get("length", 0) if record and not _is_over(layout, when) else 0
    fresh = thread.length - max(left, thread.archived + start)
    if when != "asked" and not urgent and (thread.length < policy.min_messages or (record and fresh < MIN_NEW_MESSAGES)):
        return None
    rounds = split_rounds(thread.messages[start:])
    sizes = [sum(map(frame.counter.message, pair_calls([m for m in round_ if m.id not in thread.excluded]))) for round_ in rounds]
    kept = _rounds_to_keep(sizes, [len(round_) for round_ in rounds], layout)
    folded = rounds[: len(rounds) - kept]
    tokens = sum(sizes[: len(folded)])
    if not folded and when != "due" and thread.stale:
        return Fold(start, start, record, before, 0, frame.summary_tokens)
    if not folded or (when != "asked" and not urgent and not _is_worth(tokens, layout)):
        return None
    return Fold(
        start=start,
        end=start + sum(map(len, folded)),
        previous=record,
        tokens_before=before,
        folded_tokens=tokens,
        summary_budget=frame.summary_tokens,
    )


def _is_due(layout: Layout, when: When) -> bool:
    policy, parts = layout.frame.policy, layout.parts
    if _is_over(layout, when):
        return True
    if policy.trigger_tokens is not None and parts.memory + parts.messages > policy.trigger_tokens:
        return True
    return _many(layout)


def _is_over(layout: Layout, when: When) -> bool:
    frame = layout.frame
    coming = _coming(layout) if when == "ahead" else 0
    return layout.parts.total + coming > frame.threshold_tokens


def _coming(layout: Layout) -> int:
    """Return the tokens the next round may take: the mean of the newest few."""
    newest = split_rounds(layout.messages)[-RECENT:]
    return sum(layout.frame.counter.message(message) for round_ in newest for message in round_) // max(1, len(newest))


def _many(layout: Layout) -> bool:
    most = layout.frame.policy.trigger_messages
    return most is not None and len(layout.thread.unfolded) >= most


def _is_worth(tokens: int, layout: Layout) -> bool:
    trigger = min(layout.frame.threshold_tokens, layout.frame.policy.trigger_tokens or layout.frame.threshold_tokens)
    return _many(layout) or tokens >= WORTH * trigger


def _rounds_to_keep(sizes: Sequence[int], lengths: Sequence[int], layout: Layout) -> int:
    """Return how many of the newest rounds stay: those the policy keeps if they fit, else as many as the target allows, at least 1."""
    if not sizes:
        return 0
    frame = layout.frame
    base = layout.parts.system + frame.tool_tokens + frame.summary_tokens + _beside_summary(layout)
    newest = [base + tokens for tokens in accumulate(reversed(sizes))]
    messages = list(accumulate(reversed(lengths)))
    enough = next((i + 1 for i, count in enumerate(messages) if count >= frame.policy.keep_messages), len(sizes))
    keep = min(max(frame.policy.keep_rounds, enough), len(sizes))
    if newest[keep - 1] <= frame.threshold_tokens * ROOM:
        return keep
    return max(1, sum(1 for total in newest[:keep] if total <= frame.target_tokens))


def _beside_summary(layout: Layout) -> int:
    """Return the most tokens that pins and ledger take once all unfolded rounds are folded."""
    thread, frame, count = layout.thread, layout.frame, layout.frame.counter.text
    pins = live_pins([*thread.pins, *heuristic_pins(thread.unfolded)])
    folded, earlier = ledger_of(thread, frame)
    lines = [*folded, *ledger_lines(thread.unfolded, dialect=frame.dialect)]
    language = layout.memory.language
    return count(pins_text(pins, frame, language)) + count(ledger_text(lines, earlier, frame, language))
