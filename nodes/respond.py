"""Ask the model, with the view that was counted."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import Runtime

from longtable.graph.context import Context
from longtable.graph.errors import ModelContextOverflowError, ProviderUnavailableError
from longtable.graph.state import State, calibration_of, layout_of, thread_of, turn_of
from longtable.memory.calibration import Calibration
from longtable.memory.rounds import all_calls
from longtable.memory.view import View, build_view
from longtable.nodes.ingest import stamp
from longtable.nodes.providers import broke_off, learned_limit, provider_error

Update = dict[str, Any]
TRIES = 2
"""An empty answer is asked for once more."""


@dataclass(frozen=True)
class Respond:
    """The node. A provider's overflow goes back to the counting, under more pressure; other failures raise typed errors."""

    model: Runnable[Any, BaseMessage]
    clock: Callable[[], datetime]

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        context, view = _view(state, runtime)
        try:
            for _ in range(TRIES):
                answer = _whole(self.model.invoke(view.messages))
                if not is_empty(answer):
                    break
        except Exception as error:
            return _failed(error, state, context, view)
        return self._answered(answer, state, view)

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> Update:
        """Do the same without blocking the event loop."""
        context, view = await asyncio.to_thread(_view, state, runtime)
        try:
            for _ in range(TRIES):
                answer = _whole(await self.model.ainvoke(view.messages))
                if not is_empty(answer):
                    break
        except Exception as error:
            return _failed(error, state, context, view)
        return self._answered(answer, state, view)

    def _answered(self, answer: BaseMessage, state: State, view: View) -> Update:
        turn = turn_of(state)
        status = "empty_answer" if is_empty(answer) else "running"
        update: Update = {"turn": {**turn, "calls": turn.get("calls", 0) + 1, "status": status}}
        reported = answer.usage_metadata if isinstance(answer, AIMessage) else None
        update |= _learned(calibration_of(state).learn(view.parts.total, reported), state)
        if status == "running":
            stamped = stamp(answer, turn=turn.get("number", 0), time=self.clock().isoformat(timespec="seconds"))
            update["messages"] = [_with_call_ids(_with_fresh_id(stamped, thread_of(state).messages))]
        return update


def _whole(answer: BaseMessage) -> BaseMessage:
    if broke_off(answer):
        raise ProviderUnavailableError("the provider's stream ended before its answer was complete")
    return answer


def is_empty(answer: BaseMessage) -> bool:
    """Tell whether an answer holds neither text nor tool calls."""
    return not answer.text.strip() and not (isinstance(answer, AIMessage) and all_calls(answer))


def _view(state: State, runtime: Runtime[Context]) -> tuple[Context, View]:
    context = runtime.context or Context()
    return context, build_view(layout_of(state, context))


def _failed(error: Exception, state: State, context: Context, view: View) -> Update:
    known = provider_error(error)
    if known is None:
        raise error
    if not isinstance(known, ModelContextOverflowError):
        raise known from error
    turn = turn_of(state)
    if turn.get("overflows", 0) >= context.max_overflow_retries:
        raise ModelContextOverflowError(f"{known} ({_too_big(view)})") from error
    changes = {"overflows": turn.get("overflows", 0) + 1, "ceiling": view.parts.total // 2, "breaker": None}
    calibration = calibration_of(state)
    if (limit := learned_limit(error)) is not None:
        calibration = replace(calibration, limit=limit)
    return {"turn": {**turn, **changes, "status": "overflow"}, **_learned(calibration, state)}


def _learned(calibration: Calibration, state: State) -> Update:
    """Return the update of what the provider taught, none where it taught nothing new."""
    return {} if calibration == calibration_of(state) else {"learned": calibration.as_json()}


def _too_big(view: View) -> str:
    """Say what of a call takes the room, the largest part first."""
    parts = sorted(((tokens, name) for name, tokens in asdict(view.parts).items()), reverse=True)
    return "tokens sent: " + ", ".join(f"{name} {tokens:,}" for tokens, name in parts)


def _with_call_ids(answer: BaseMessage) -> BaseMessage:
    """Give an id to each call that came without one, or nothing could answer it."""
    if not isinstance(answer, AIMessage) or all(call["id"] for call in all_calls(answer)):
        return answer
    calls = {
        name: [{**call, "id": call["id"] or f"call_{uuid.uuid4().hex[:12]}"} for call in getattr(answer, name)]
        for name in ("tool_calls", "invalid_tool_calls")
    }
    return answer.model_copy(update=calls)


def _with_fresh_id(answer: BaseMessage, messages: Sequence[BaseMessage]) -> BaseMessage:
    """Never let an answer overwrite an older message: some servers repeat their ids."""
    if answer.id and all(message.id != answer.id for message in messages):
        return answer
    return answer.model_copy(update={"id": str(uuid.uuid4())})
