"""Which rounds to fold now."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from langchain_core.messages import BaseMessage

from longtable.memory.rounds import pair_calls, split_rounds
from longtable.memory.view import Frame, Record, live_record, measure

ROOM = 0.9
"""A view that keeps all of `keep_rounds` must be this far under the threshold, or the next turn would fold again."""


@dataclass(frozen=True)
class Fold:
    """The messages to fold: `messages[start:end]` of the transcript. Token counts are of the next call."""

    start: int
    end: int
    previous: Record | None
    tokens_before: int
    folded_tokens: int
    summary_budget: int
    """Most tokens the summary may have."""


def plan_fold(messages: Sequence[BaseMessage], compactions: Sequence[Record], frame: Frame, *, asked: bool = False) -> Fold | None:
    """Return what to fold now, oldest rounds first, or None when nothing is due or nothing can be folded.

    Due: the view is over the threshold, the thread has `min_messages` and `min_new_messages` came since the last
    fold. A view that would not fit the limit at all, a provider's overflow (`frame.ceiling`), or a person who asked
    waives the message counts. The newest round is never folded; fewer than `keep_rounds` stay only where so many
    do not fit.
    """
    parts = measure(messages, compactions, frame)
    before = parts.total
    urgent = before > frame.hard_tokens or frame.ceiling is not None
    if not asked and before <= frame.threshold_tokens:
        return None
    record, start = live_record(messages, compactions)
    policy = frame.policy
    if not (asked or urgent) and (len(messages) < policy.min_messages or (record and len(messages) - start < policy.min_new_messages)):
        return None
    rounds = split_rounds(messages[start:])
    sizes = [sum(map(frame.counter.message, pair_calls(round_))) for round_ in rounds]
    kept = _rounds_to_keep(sizes, before - sum(sizes) - parts.memory, frame)
    folded = rounds[: len(rounds) - kept]
    if not folded:
        return None
    return Fold(
        start=start,
        end=start + sum(map(len, folded)),
        previous=record,
        tokens_before=before,
        folded_tokens=sum(sizes[: len(folded)]),
        summary_budget=frame.summary_tokens,
    )


def _rounds_to_keep(sizes: Sequence[int], fixed: int, frame: Frame) -> int:
    """Return how many of the newest rounds stay: `keep_rounds` if they fit, else as many as the target allows, at least 1."""
    if not sizes:
        return 0
    base = fixed + frame.summary_tokens
    newest = [base + tokens for tokens in accumulate(reversed(sizes))]
    keep = min(frame.policy.keep_rounds, len(sizes))
    if newest[keep - 1] <= frame.threshold_tokens * ROOM:
        return keep
    return max(1, sum(1 for total in newest[:keep] if total <= frame.target_tokens))
