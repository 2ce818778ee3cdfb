"""Ask the model, with the view that was counted."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import Runtime
from langgraph.types import StreamWriter

from longtable.base.context import Context
from longtable.base.errors import ModelContextOverflowError, ProviderRefusedError, ProviderUnavailableError
from longtable.memory.calibration import Calibration
from longtable.memory.materials import Material, MaterialPart, with_materials
from longtable.memory.reasoning import MARK, separate_reasoning, without_reasoning
from longtable.memory.rounds import all_calls
from longtable.memory.spent import reported_model
from longtable.memory.stamps import unmarked
from longtable.memory.view import CallPlan, View
from longtable.nodes.estimate import usage_event
from longtable.nodes.ingest import stamp
from longtable.nodes.model.call_plans import CallPlans
from longtable.nodes.model.caller import Answerer, Caller
from longtable.nodes.model.context_providers import ContextProviders, ProvidedContext, context_passed_event
from longtable.nodes.model.marker_filter import NEED_CONTEXT, WholeAnswer, needed_context, whole_answers
from longtable.nodes.model.provider_errors import broke_off, learned_limit, provider_error
from longtable.nodes.records.recall import Indexes, Originals, originals_of, recall_event
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import State, calibration_of, thread_of, turn_of, with_last, without_key
from longtable.nodes.turns import refusals
from longtable.nodes.turns.rate_limit import RateLimit
from longtable.nodes.turns.tracing import log_cause, run_fields
from longtable.tools.recall_tool import answered, recall

THE_OWNERS_OWN = (ProviderRefusedError, ModelContextOverflowError)
"""Failures that what was sent may have brought about."""

MAX_OVERFLOW_RETRIES = 3
"""How often a turn compacts harder after the provider says the context is too long: each halves the call."""

Update = dict[str, Any]


EMPTY_TRIES = 2
"""An empty answer is asked for once more."""
MOST_RECALLS = 3
"""Times a marker is followed in one answer."""


@dataclass
class Asking:
    """Asks until there is an answer to keep. `view` is what to send; `take` judges what came back."""

    call_plan: CallPlan
    originals: Originals
    emit: StreamWriter
    tries: int = 0
    recalls: int = 0
    blocks: list[str] = field(default_factory=list)
    materials: Sequence[Material] = ()
    """What goes with this call and is not kept."""
    passed: list[MaterialPart] = field(default_factory=list)

    def view(self) -> View:
        """Return the next request."""
        view = (replace(self.call_plan, recalled="\n".join(self.blocks)) if self.blocks else self.call_plan).view
        view, self.passed = with_materials(view, self.materials, self.call_plan.call_config)
        return view

    def take(self, answer: BaseMessage, held: Sequence[WholeAnswer]) -> BaseMessage | None:
        """Return the answer to keep, None to ask again. Searches the store: call it off the event loop.

        Raises `ProviderUnavailableError` for one that broke off.
        """
        if broke_off(answer):
            raise ProviderUnavailableError("the provider's stream ended before its answer was complete")
        self.tries += 1
        keyword = needed_context(answer)
        if keyword is None:
            return None if is_empty(answer) and self.tries < EMPTY_TRIES else answer
        if self.recalls < MOST_RECALLS:
            self.recalls += 1
            found = self._recalled(keyword)
            if found or not held[-1].rest.strip():
                self.blocks.append(found or f"Nothing was found for “{keyword}”.")
                return None
        return _without_marker(answer, held[-1])

    def _recalled(self, keyword: str) -> str:
        """Return the block of originals for a keyword, "" when there are none."""
        try:
            found = answered(recall(self.originals, keyword))
        except Exception:  # no words in the keyword, or a store that fails: then nothing is found, and the answer is kept
            return ""
        if not found["messages"]:
            return ""
        self.emit(recall_event(keyword, found, via="marker"))
        lines = [f"[m{message['number']}] {message['role']} (turn {message['turn']}): {message['text']}" for message in found["messages"]]
        return "\n".join([f"Recalled for “{keyword}”: {found['note']}", *lines])


def is_empty(answer: BaseMessage) -> bool:
    """Return whether an answer holds neither text nor tool calls."""
    return not answer.text.strip() and not (isinstance(answer, AIMessage) and all_calls(answer))


def _without_marker(answer: BaseMessage, held: WholeAnswer) -> BaseMessage:
    extra: dict[str, Any] = {key: value for key, value in answer.additional_kwargs.items() if key != NEED_CONTEXT}
    content = f"{answer.text}{held.rest}"
    return answer.model_copy(update={"content": content, "additional_kwargs": extra})


@dataclass(frozen=True)
class Respond:
    """The node. A provider's overflow goes back to the counting, under more pressure; other failures raise typed errors."""

    line: Sequence[Answerer]
    """The model, then its fallbacks."""
    clock: Callable[[], datetime]
    indexes: Indexes
    plans: CallPlans
    providers: ContextProviders = field(default_factory=ContextProviders)
    rate_limit: RateLimit | None = None

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        asking, caller = self._asking(state, runtime), self._caller(state, runtime)
        view, usage = self._begun(asking, self.providers.collect(state, runtime), state, runtime)
        try:
            with whole_answers() as held:
                while (answer := asking.take(caller.call(view.messages), held)) is None:
                    view = asking.view()
        except Exception as error:
            self._give_back(error, state, runtime)
            return {**usage, **_failed(error, state, caller, view)}
        return {**usage, **self._answered(answer, state, asking, caller, view)}

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> Update:
        """Do the same without blocking the event loop."""
        asking, caller = await asyncio.to_thread(self._asking, state, runtime), self._caller(state, runtime)
        provided = await self.providers.acollect(state, runtime)
        view, usage = await asyncio.to_thread(self._begun, asking, provided, state, runtime)
        try:
            with whole_answers() as held:
                while (answer := await asyncio.to_thread(asking.take, await caller.acall(view.messages), held)) is None:
                    view = await asyncio.to_thread(asking.view)
        except Exception as error:
            await asyncio.to_thread(self._give_back, error, state, runtime)
            return {**usage, **_failed(error, state, caller, view)}
        return {**usage, **self._answered(answer, state, asking, caller, view)}

    def _give_back(self, error: Exception, state: State, runtime: Runtime[Context]) -> None:
        """Count the turn no more where its first call failed, and not for what the person sent."""
        turn = turn_of(state)
        if self.rate_limit and not turn.get("calls") and not isinstance(provider_error(error), THE_OWNERS_OWN):
            thread_id = runtime.execution_info.thread_id if runtime.execution_info else None
            self.rate_limit.give_back(f"{thread_id or ''} {turn.get('run')}")

    def _asking(self, state: State, runtime: Runtime[Context]) -> Asking:
        call_plan = self.plans.of(state, runtime)
        return Asking(call_plan, originals_of(call_plan, runtime, self.indexes), runtime.stream_writer)

    def _caller(self, state: State, runtime: Runtime[Context]) -> Caller:
        about = run_fields(turn_of(state), thread_id_of(runtime))
        return Caller(self.line, runtime.context or Context(), runtime.stream_writer, about)

    def _begun(self, asking: Asking, provided: ProvidedContext, state: State, runtime: Runtime[Context]) -> tuple[View, Update]:
        """Return the first request, and the usage it has where material came with it; tell of both."""
        asking.materials = provided.materials
        view = asking.view()
        if provided.materials or provided.failures:
            runtime.stream_writer(context_passed_event(turn_of(state).get("calls", 0) + 1, asking.passed, provided.failures))
        if not view.parts.passed:
            return view, {}
        usage = usage_event(view, asking.call_plan.call_config)
        runtime.stream_writer(usage)
        return view, {"usage": {**(state.get("usage") or {}), **{key: value for key, value in usage.items() if key != "type"}}}

    def _answered(self, answer: BaseMessage, state: State, asking: Asking, caller: Caller, view: View) -> Update:
        turn = without_key(turn_of(state), "without")
        status = _status(answer)
        calls, recalls = turn.get("calls", 0) + asking.tries, turn.get("recalls", 0) + asking.recalls
        update: Update = {"turn": {**turn, "calls": calls, "recalls": recalls, "status": status}}
        reported = answer.usage_metadata if isinstance(answer, AIMessage) else None
        if not caller.answered:  # what a fallback reports says nothing of the model that limit and tokens are counted for
            update |= _learned(calibration_of(state).learn(view.parts.total, reported), state)
        if not is_empty(answer):
            marks: Update = {MARK: reasoning} if (reasoning := separate_reasoning(answer)) else {}
            if caller.name and not (isinstance(answer, AIMessage) and reported_model(answer)):
                marks["model"] = caller.name
            if caller.answered:
                marks["instead_of"] = caller.line[0].name
            if passed := [{"source": part.source, "tokens": part.tokens, "ms": part.ms} for part in asking.passed if part.tokens]:
                marks["passed"] = passed
            if not reported:  # nothing else tells later what the call took
                marks["sent"] = view.parts.total
            stamped = stamp(without_reasoning(unmarked(answer)), turn=turn, time=self.clock().isoformat(timespec="seconds"), **marks)
            update["messages"] = [_with_call_ids(_with_fresh_id(stamped, thread_of(state).messages))]
            update["turn"] = with_last(update["turn"], update["messages"])
        return update


def _status(answer: BaseMessage) -> str:
    """Return "running", or why an answer is none or not a whole one, as its provider says."""
    ended = str(answer.response_metadata.get("finish_reason") or answer.response_metadata.get("stop_reason") or "")
    if is_empty(answer):
        return "content_filter" if ended == "content_filter" else "empty_answer"
    cut = ended in {"length", "max_tokens"} and not (isinstance(answer, AIMessage) and all_calls(answer))
    return "cut_off" if cut else "running"


def _failed(error: Exception, state: State, caller: Caller, view: View) -> Update:
    known = provider_error(error)
    if known is None:
        raise error
    log_cause(known.code, error)
    if isinstance(known, ProviderRefusedError) and known.content:
        return refusals.closed(state, known)
    if not isinstance(known, ModelContextOverflowError):
        raise known from error
    turn = turn_of(state)
    if turn.get("overflows", 0) >= MAX_OVERFLOW_RETRIES:
        raise ModelContextOverflowError(f"{known} ({_too_big(view)})") from error
    changes = {"overflows": turn.get("overflows", 0) + 1, "ceiling": view.parts.total // 2, "breaker": None}
    calibration = calibration_of(state)
    if (limit := learned_limit(error)) is not None and not caller.answered:
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
    """Give an id of its own to each call that came without one: nothing could answer it, nor decide on it alone."""
    if not isinstance(answer, AIMessage):
        return answer
    ids = [call["id"] for call in all_calls(answer)]
    if all(ids) and len(set(ids)) == len(ids):
        return answer
    seen: set[str] = set()

    def own(call_id: str | None) -> str:
        own_id = call_id if call_id and call_id not in seen else f"call_{uuid.uuid4().hex[:12]}"
        seen.add(own_id)
        return own_id

    calls = {name: [{**call, "id": own(call["id"])} for call in getattr(answer, name)] for name in ("tool_calls", "invalid_tool_calls")}
    return answer.model_copy(update=calls)


def _with_fresh_id(answer: BaseMessage, messages: Sequence[BaseMessage]) -> BaseMessage:
    """Never let an answer overwrite an older message: some servers repeat their ids."""
    if answer.id and all(message.id != answer.id for message in messages):
        return answer
    return answer.model_copy(update={"id": str(uuid.uuid4())})
