"""Preview a compaction without calling a model."""

from dataclasses import dataclass
from itertools import chain

from longtable.base.context import Context
from longtable.memory.call_config import BLOCK_TOKENS
from longtable.memory.compaction.compaction import Job, needs_originals
from longtable.memory.compaction.plan import plan_compaction
from longtable.memory.compaction.rolling import split_input
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.state import State, turn_of


@dataclass(frozen=True)
class CompactionPreview:
    """What a compaction would do, without doing it. Tokens are those of the thread's counter."""

    messages: int
    """How many messages it would compact. These are the messages `first` to `last` of the
    transcript.
    """
    first: int
    last: int
    tokens_before: int
    """Tokens of the whole next call as it is now."""
    tokens_after_most: int
    """The most tokens that the whole next call would have after the compaction."""
    summariser_calls: int
    """The number of calls of the summariser if its first draft is accepted; 0 if code writes the
    memory.
    """
    summariser_tokens: int
    """The number of tokens of text that the summariser would read."""
    rebuilt: bool
    """Whether the memory would be made anew from the original messages, and not from the earlier
    memory. Retired messages are not counted in `summariser_tokens`.
    """


def preview_of(values: State, context: Context) -> CompactionPreview | None:
    """Return what a compaction would do now, None if there is nothing to compact. Pure."""
    call_plan = call_plan_of(values, context)
    plan = plan_compaction(call_plan, "asked")
    if plan is None:
        return None
    call_config = call_plan.call_config
    thread = call_plan.thread
    rebuilt = needs_originals(thread, call_config)
    job = Job(
        strategy=call_config.policy.strategy,
        thread=thread,
        call_config=call_config,
        plan=plan,
        turn=turn_of(values).get("number", 0),
        time="",
        originals=[] if rebuilt else None,
    )
    most_memory = plan.summary_budget + plan.ledger_budget + call_config.pin_tokens + BLOCK_TOKENS
    parts = (
        split_input(job, call_config.window)
        if call_config.window is not None and job.budget
        else []
    )
    texts = chain.from_iterable(parts)
    left = plan.tokens_before - plan.compacted_tokens
    return CompactionPreview(
        messages=plan.end - plan.start,
        first=thread.archived + plan.start + 1,
        last=job.count,
        tokens_before=plan.tokens_before,
        # A compaction that makes the next call no smaller is not accepted.
        tokens_after_most=min(plan.tokens_before, left + most_memory - call_plan.parts.memory),
        summariser_calls=len(parts),
        summariser_tokens=sum(map(call_config.counter.text, texts)),
        rebuilt=rebuilt,
    )
