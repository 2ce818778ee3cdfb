"""Count exactly what the next call would send, and say whether a fold is due."""

from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from longtable.graph.context import Context
from longtable.graph.events import ContextUsage, UsageParts
from longtable.graph.state import State, frame_of, thread_of, turn_of
from longtable.memory.plan import plan_fold
from longtable.memory.view import Frame, Parts, build_view, measure


@dataclass(frozen=True)
class Estimate:
    """The node: writes `usage`, emits `context_usage`."""

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        context = runtime.context or Context()
        frame = frame_of(state, context)
        messages, compactions = thread_of(state)
        turn = turn_of(state)
        fold = plan_fold(messages, compactions, frame)
        due = fold is not None and not waits(turn.get("breaker"), fold.tokens_before, frame)
        parts = measure(messages, compactions, frame) if due else build_view(messages, compactions, frame).parts
        usage = usage_event(parts, frame)
        runtime.stream_writer(usage)
        update: dict[str, Any] = {"usage": {**{key: value for key, value in usage.items() if key != "type"}, "due": due}}
        if turn.get("status") in {"running", "overflow"}:
            spent = turn.get("calls", 0) >= context.max_model_calls
            update["turn"] = {**turn, "status": "call_budget" if spent else "running"}
        return update


def waits(breaker: int | None, tokens: int, frame: Frame) -> bool:
    """Tell whether a fold that failed at `breaker` tokens keeps the next from being tried at `tokens`."""
    return breaker is not None and tokens < breaker + frame.policy.breaker_share * frame.limit


def usage_event(parts: Parts, frame: Frame) -> ContextUsage:
    """Return the event that tells a call's size in tokens by part."""
    return ContextUsage(
        type="context_usage",
        total=parts.total,
        limit=frame.limit,
        fraction=round(parts.total / frame.limit, 4),
        threshold=frame.policy.threshold,
        parts=UsageParts(system=parts.system, tools=parts.tools, memory=parts.memory, messages=parts.messages),
        estimated=frame.counter.estimated,
    )
