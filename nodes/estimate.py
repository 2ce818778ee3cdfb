"""Count exactly what the next call would send, and say whether a fold is due."""

from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from longtable.graph.context import Context
from longtable.graph.events import ContextUsage, UsageParts
from longtable.graph.state import State, layout_of, turn_of
from longtable.memory.frame import Frame, Parts
from longtable.memory.plan import plan_fold
from longtable.memory.view import View, build_view


@dataclass(frozen=True)
class Estimate:
    """The node: writes `usage`, emits `context_usage`."""

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        context = runtime.context or Context()
        layout = layout_of(state, context)
        frame, turn = layout.frame, turn_of(state)
        fold = plan_fold(layout)
        due = fold is not None and not waits(turn.get("breaker"), fold.tokens_before, frame)
        usage = usage_event(View(layout.messages, layout.parts) if due else build_view(layout), frame)
        runtime.stream_writer(usage)
        update: dict[str, Any] = {"usage": {**{key: value for key, value in usage.items() if key != "type"}, "due": due}}
        if turn.get("status") in {"running", "overflow"}:
            spent = turn.get("calls", 0) >= context.max_model_calls
            update["turn"] = {**turn, "status": "call_budget" if spent else "running"}
        return update


def waits(breaker: int | None, tokens: int, frame: Frame) -> bool:
    """Tell whether a fold that failed at `breaker` tokens keeps the next from being tried at `tokens`."""
    return breaker is not None and tokens < breaker + frame.policy.breaker_share * frame.limit


def usage_event(view: View, frame: Frame) -> ContextUsage:
    """Return the event that tells a call's size by part, and how much had to give way for it."""
    parts = view.parts
    calibrated = round(parts.total * frame.factor)
    return ContextUsage(
        type="context_usage",
        total=parts.total,
        calibrated=calibrated,
        ratio=round(frame.factor, 4),
        limit=frame.limit,
        fraction=round(calibrated / frame.limit, 4),
        threshold=frame.policy.threshold,
        parts=_told(parts),
        shrunk=view.shrunk,
        left_out=view.left_out,
        estimated=frame.counter.estimated,
    )


def _told(parts: Parts) -> UsageParts:
    told = UsageParts(system=parts.system, tools=parts.tools, memory=parts.memory, messages=parts.messages)
    if parts.passed:
        told["passed"] = parts.passed
    return told
