"""What a compaction asked for now would fold and cost, without making it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longtable.base.context import Context
from longtable.memory.fold import BLOCK_TOKENS, Job, needs_originals
from longtable.memory.frame import Frame
from longtable.memory.plan import plan_fold
from longtable.memory.rolling import split_input
from longtable.nodes.state import layout_of, turn_of


@dataclass(frozen=True)
class CompactionPreview:
    """One fold that was not made. Tokens as counted."""

    messages: int
    """Messages it would fold, number `first` to `last` of the transcript."""
    first: int
    last: int
    tokens_before: int
    """The whole next call as it is."""
    tokens_after_most: int
    """The whole next call after it, at most."""
    summariser_calls: int
    """Calls of the summariser if its first draft is accepted; 0 without one."""
    summariser_tokens: int
    """Tokens of text it would read."""
    rebuilt: bool
    """It would be made from the originals, not from the memory before; retired messages are not in `summariser_tokens`."""


def _most_memory(frame: Frame) -> int:
    return frame.summary_tokens + frame.pin_tokens + frame.ledger_tokens + BLOCK_TOKENS


def preview_of(values: Mapping[str, Any], context: Context) -> CompactionPreview | None:
    """Return what folding now would do, None when there is nothing to fold. Pure."""
    layout = layout_of(values, context)
    fold = plan_fold(layout, "asked")
    if fold is None:
        return None
    frame, thread = layout.frame, layout.thread
    rebuilt = needs_originals(thread, frame)
    job = Job(
        strategy=frame.policy.strategy,
        thread=thread,
        frame=frame,
        fold=fold,
        turn=turn_of(values).get("number", 0),
        time="",
        originals=[] if rebuilt else None,
    )
    parts = split_input(job, frame.window) if frame.window is not None else []
    return CompactionPreview(
        messages=fold.end - fold.start,
        first=thread.archived + fold.start + 1,
        last=job.count,
        tokens_before=fold.tokens_before,
        tokens_after_most=fold.tokens_before - fold.folded_tokens + _most_memory(frame) - layout.parts.memory,
        summariser_calls=len(parts),
        summariser_tokens=sum(frame.counter.text(text) for part in parts for text in part),
        rebuilt=rebuilt,
    )
