"""Count exactly what the next call would send, and say whether a fold is due."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime

from longtable.base.context import Context
from longtable.base.events import ContextUsage, UsageParts
from longtable.memory.frame import Frame, Parts
from longtable.memory.plan import plan_fold
from longtable.memory.stamps import STEERED
from longtable.memory.view import View
from longtable.nodes.inbox import InboxMessage, receive, steered_event
from longtable.nodes.ingest import stamp
from longtable.nodes.model.call_plans import CallPlans
from longtable.nodes.state import UNDER_WAY, State, Turn, thread_of, turn_of, written

BREAKER_SHARE = 0.05
"""After a compaction that failed, no other is tried until this share of the limit came: some three turns."""


@dataclass(frozen=True)
class Estimate:
    """The node: writes `usage`, emits `context_usage`. What came since the last call joins the turn here, and is counted."""

    clock: Callable[[], datetime]
    plans: CallPlans

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        context = runtime.context or Context()
        turn = turn_of(state)
        asks = turn.get("status") in UNDER_WAY and turn.get("calls", 0) < context.max_model_calls
        came, turn = receive(turn, runtime, look=asks)
        joined = self._joined(came, state, turn, runtime)
        messages = {"messages": [*thread_of(state).messages, *joined]} if joined else {}
        layout = self.plans.of({**state, "turn": turn, **messages}, runtime)
        frame = layout.frame
        fold = plan_fold(layout)
        due = fold is not None and not waits(turn.get("breaker"), fold.tokens_before, frame)
        usage = usage_event(View(layout.messages, layout.parts) if due else layout.view, frame)
        runtime.stream_writer(usage)
        update: dict[str, Any] = {"usage": {**{key: value for key, value in usage.items() if key != "type"}, "due": due}}
        if turn.get("status") in UNDER_WAY:
            update["turn"] = {**turn, "status": "running" if asks else "call_budget"}
        return {**update, "turn": written(update["turn"], joined), "messages": joined} if joined else update

    def _joined(self, came: Sequence[InboxMessage], state: State, turn: Turn, runtime: Runtime[Context]) -> list[HumanMessage]:
        if not came:
            return []
        known = {message.id for message in thread_of(state).messages}
        now = self.clock().isoformat(timespec="seconds")
        joined = [stamp(each.message, turn=turn, time=now, kind=STEERED) for each in came if each.message.id not in known]
        for message in joined:
            runtime.stream_writer(steered_event(message, turn.get("number", 0)))
        return joined


def waits(breaker: int | None, tokens: int, frame: Frame) -> bool:
    """Tell whether a fold that failed at `breaker` tokens keeps the next from being tried at `tokens`."""
    return breaker is not None and tokens < breaker + BREAKER_SHARE * frame.limit


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
