"""Ask the model, and send it the view that was counted."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import StreamWriter

from longtable.base.concurrency import Execution
from longtable.base.errors import (
    LongtableError,
    ModelContextOverflowError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.base.events import TurnStatus
from longtable.memory.counting.calibration import Calibration
from longtable.memory.counting.provider_reports import reported_model
from longtable.memory.materials import Material, MaterialPart, with_materials
from longtable.memory.messages.call_reports import (
    REPORT,
    AnswerReport,
    ReportedMaterial,
    ReportedRecall,
)
from longtable.memory.messages.marks import MATERIAL, POOLED, PRIVATE, unmarked
from longtable.memory.messages.reasoning import MARK, separate_reasoning, without_reasoning
from longtable.memory.messages.rounds import all_calls
from longtable.memory.view import CallPlan, View
from longtable.nodes.arriving.rate_limit import RateLimit
from longtable.nodes.arriving.stamps import stamp
from longtable.nodes.calling.caller import Answerer, Caller, without_tools
from longtable.nodes.calling.context_providers import (
    ContextProviders,
    ProvidedContext,
    context_passed_event,
)
from longtable.nodes.calling.marker_filter import NEED_CONTEXT, needed_context
from longtable.nodes.calling.provider_errors import broke_off, learned_limit, provider_error
from longtable.nodes.closing.failures import close_refused
from longtable.nodes.estimate import CallPlans, team_figures, usage_figures
from longtable.nodes.state import (
    Learned,
    Now,
    Turn,
    Update,
    Usage,
    with_fresh_id,
    with_last,
    without_key,
)
from longtable.nodes.team.team import Team
from longtable.nodes.team.turn_order import with_mode
from longtable.nodes.telemetry import log_cause, run_fields
from longtable.nodes.tooling.recall import Indexes, Originals, recall_event
from longtable.nodes.tooling.tool_jobs import spent_tools
from longtable.tools.memory_tools import NOTE, answered, recall

CAUSED_BY_INPUT = (ProviderRefusedError, ModelContextOverflowError)
"""Errors that the messages themselves may cause. A turn that fails with another error at its first
call does not count towards the rate limit.
"""

MAX_OVERFLOW_RETRIES = 3
"""How often a turn may compact further because the provider said that the context is too long. Each
time the call's size is halved.
"""


EMPTY_TRIES = 2
"""How often the model is asked in all, if its answers are empty."""
MOST_RECALLS = 3
MOST_KEYWORDS = 3
"""For one answer, originals are recalled at most `MOST_RECALLS` times, each time for at most
`MOST_KEYWORDS` markers `[NEED_CONTEXT: keyword]`.
"""


NOT_FOUND = "Nothing was found for “{}”. Answer with what is here, without a marker, or say what is missing."
LAST_SEARCH = "That was the last search: answer with what is here, and say what is missing."


@dataclass
class Asking:
    """The requests of one answer. The model is asked until there is an answer to keep: `view`
    returns the next request, and `take` judges the model's reply.
    """

    call_plan: CallPlan
    originals: Originals
    emit: StreamWriter
    tries: int = 0
    recalls: int = 0
    blocks: list[str] = field(default_factory=list)
    searched: dict[str, None] = field(default_factory=dict)
    """The keywords of markers for which originals were searched, in order."""
    materials: Sequence[Material] = ()
    """Material that is sent with this call only and is not kept."""
    passed: list[MaterialPart] = field(default_factory=list)
    report: AnswerReport = field(default_factory=AnswerReport)
    """What the thread keeps of the call besides its answer."""

    def view(self) -> View:
        """Return the next request."""
        view = (
            replace(self.call_plan, recalled="\n".join(self.blocks))
            if self.blocks
            else self.call_plan
        ).view
        view, self.passed = with_materials(view, self.materials, self.call_plan)
        return view

    def take(self, answer: BaseMessage) -> BaseMessage | None:
        """Return the answer to keep, or None if the model must be asked again. This may search the
        store, so do not call it on the event loop.

        The text around a marker is a draft, never an answer. So an answer that still holds a marker
        after the last search counts as empty.

        Raises `ProviderUnavailableError` if the stream of the answer broke off.
        """
        if broke_off(answer):
            raise ProviderUnavailableError(
                "the provider's stream ended before its answer was complete"
            )
        self.tries += 1
        keywords = needed_context(answer)[:MOST_KEYWORDS]
        if not keywords:
            return None if is_empty(answer) and self.tries < EMPTY_TRIES else answer
        if self.recalls < MOST_RECALLS:
            self.recalls += 1
            self.searched |= dict.fromkeys(keywords)
            recalled = [self._recalled(keyword, len(keywords)) for keyword in keywords]
            blocks = list(filter(None, recalled))
            self.blocks += blocks or [NOT_FOUND.format("”, “".join(keywords))]
            if self.recalls == MOST_RECALLS:
                self.blocks.append(LAST_SEARCH)
            return None
        extra = {
            key: value for key, value in answer.additional_kwargs.items() if key != NEED_CONTEXT
        }
        return answer.model_copy(update={"additional_kwargs": extra})

    def _recalled(self, keyword: str, among: int) -> str:
        """Return the text block with the originals for a keyword, "" if none were found. `among`:
        the number of keywords that share the room for such blocks.
        """
        try:
            hits = answered(recall(self.originals, keyword, share=among))
        except Exception:
            # No words in the keyword, or a store that fails: the answer stays as it is.
            return ""
        if not hits["messages"]:
            return ""
        event = recall_event(keyword, hits, via="marker")
        self.emit(event)
        kept = ReportedRecall(query=keyword, found=event["found"], turns=event["turns"])
        self.report.setdefault("recalls", []).append(kept)
        lines = [
            f"[m{hit['number']}] {' '.join(filter(None, [hit['role'], hit.get('name')]))} (turn"
            f" {hit['turn']}): {hit['text']}"
            for hit in hits["messages"]
        ]
        if following := hits.get("next"):
            lines.append(f"Not all fit. The next: [NEED_CONTEXT: {following}]")
        return "\n".join([f"Recalled for “{keyword}”: {NOTE}", *lines])


def is_empty(answer: BaseMessage) -> bool:
    """Return whether an answer holds neither text nor tool calls."""
    return not answer.text.strip() and not _has_calls(answer)


def _has_calls(answer: BaseMessage) -> bool:
    return isinstance(answer, AIMessage) and bool(all_calls(answer))


@dataclass(frozen=True)
class Respond:
    """The node. If the provider says that the context is too long, the turn is counted again with a
    smaller limit. Other failures raise typed errors.
    """

    lines: Mapping[tuple[str, str], Sequence[Answerer]]
    """The models to ask in order: the model, then its fallbacks. The key is the persona ("" without
    a team) and the name with which a run chooses its model ("" for the graph's own model).
    """
    clock: Callable[[], datetime]
    indexes: Indexes
    plans: CallPlans
    providers: ContextProviders = field(default_factory=ContextProviders)
    rate_limit: RateLimit | None = None
    team: Team | None = None

    async def __call__(self, now: Now, how: Execution) -> Update:
        turn = now.turn
        voice = turn.get("voice", "")
        if voice and (self.team is None or voice not in self.team.personas):
            return {"turn": {**turn, "status": "voice_gone"}}
        call_plan = await how.call(partial(self.plans.of, now))
        emit = now.runtime.stream_writer
        originals = Originals(call_plan, now.runtime.store, now.thread_id, self.indexes)
        asking = Asking(call_plan, originals, emit)
        line = self._line(now, pinning=call_plan.call_config.pin_tools)
        fields = run_fields(turn, now.thread_id)
        caller = Caller(line, now.context, emit, fields, voice, now.thread_id or "")
        provided = await self.providers.collect(now, how)
        view, usage = await how.call(partial(self._first_view, asking, provided, now))
        try:
            answer = None
            while answer is None:
                reply = await caller.call(view, how)
                answer = await how.call(partial(asking.take, reply))
                if answer is None:
                    view = await how.call(asking.view)
        except Exception as error:
            if (
                self.rate_limit
                and not turn.get("calls")
                and not isinstance(provider_error(error), CAUSED_BY_INPUT)
            ):
                whose = (now.context.owner, now.thread_id or "", str(turn.get("run")))
                await how.call(partial(self.rate_limit.give_back, *whose, now.runtime.store))
            try:
                return {**usage, **self._failed(error, now, caller, view)}
            except LongtableError as known:
                if not (self.team and voice and self.team.mode.together):
                    raise
                reason = known.user_text(now.language)
                return {**usage, "turn": {**turn, "status": "voice_failed", "reason": reason}}
        return {**usage, **self._answered(answer, now, asking, caller, view)}

    def _line(self, now: Now, *, pinning: bool) -> list[Answerer]:
        """Return the models to ask, in order, each with the tools that may still be called."""
        voice = now.turn.get("voice", "")
        choice = now.config.get("choice", "")
        line = self.lines.get((voice, choice), self.lines[voice, ""])
        spent = spent_tools(now.thread.messages, now.turn.get("number", 0))
        answerers: list[Answerer] = []
        for each in line:
            model = (each.with_pins if pinning else None) or each.model
            answerers.append(replace(each, model=without_tools(model, spent)))
        return answerers

    def _first_view(
        self,
        asking: Asking,
        provided: ProvidedContext,
        now: Now,
    ) -> tuple[View, Update]:
        """Return the first request and, if material was added to it, the update of its usage. Send
        the events about material and usage.
        """
        emit = now.runtime.stream_writer
        asking.materials = provided.materials
        view = asking.view()
        passed = asking.passed
        figures = usage_figures(view, asking.call_plan.call_config)
        if of_team := self.plans.of_team(now):
            shown, passed = with_materials(of_team.view, asking.materials, of_team)
            figures = team_figures(shown, of_team.call_config)
        asking.report["usage"] = figures
        if provided.materials or provided.failures:
            call = now.turn.get("calls", 0) + 1
            event = context_passed_event(call, passed, provided.failures)
            emit(event)
            asking.report["material"] = ReportedMaterial(
                call=call, passed=event["passed"], left_out=event["left_out"]
            )
        if not view.parts.passed:
            return view, {}
        emit({"type": "context_usage", **figures})
        due = now.state.get("usage", {}).get("due", False)
        return view, {"usage": Usage(due=due, **figures)}

    def _answered(
        self, answer: BaseMessage, now: Now, asking: Asking, caller: Caller, view: View
    ) -> Update:
        turn = without_key(now.turn, "without")
        status = _status(answer)
        calls = turn.get("calls", 0) + asking.tries
        recalls = turn.get("recalls", 0) + asking.recalls
        turn = {**turn, "calls": calls, "recalls": recalls, "status": status}
        if self.team and turn.get("voice"):
            turn["calls_left"] = max(0, turn.get("calls_left", self.team.max_calls) - asking.tries)
        if status == "empty_answer" and asking.searched:
            turn = {**turn, "status": "recall_exhausted", "searched": list(asking.searched)}
        update: Update = {}
        reported = answer.usage_metadata if isinstance(answer, AIMessage) else None
        # What a fallback or a persona's own model reports says nothing of the model that limit and
        # tokens are counted for.
        if not caller.answered and not _has_own_model(now):
            known = self._calibration(now)
            update |= _learned(known, known.learn(view.parts.total, reported))
        if not is_empty(answer):
            marks = self._marks(answer, turn, asking, caller)
            if not reported:  # later nothing else says what the call took
                marks["sent"] = view.parts.total
            if self.team and (voice := turn.get("voice")):
                answer = answer.model_copy(update={"name": self.team.personas[voice].display})
            stamped = stamp(
                without_reasoning(unmarked(answer)),
                turn=turn,
                time=self.clock().isoformat(timespec="seconds"),
                marks=marks,
            )
            accepted = _with_call_ids(with_fresh_id(stamped, now.thread.messages))
            if self.team:
                accepted = with_mode(self.team, accepted, now.thread.messages, turn)
            update["messages"] = [accepted]
        return {**update, "turn": with_last(turn, update.get("messages", ()))}

    def _marks(
        self, answer: BaseMessage, turn: Turn, asking: Asking, caller: Caller
    ) -> dict[str, Any]:
        """Return the marks of an answer that say how its call went."""
        reasoning = separate_reasoning(answer)
        marks: dict[str, Any] = {MARK: reasoning} if reasoning else {}
        if caller.name and not (isinstance(answer, AIMessage) and reported_model(answer)):
            marks["model"] = caller.name
        if caller.answered:
            marks["instead_of"] = caller.line[0].name
        marks |= _material_marks(asking.passed)
        if self.team and self.team.mode.private:
            marks |= {POOLED: True, PRIVATE: True} if _has_calls(answer) else {POOLED: True}
        report: AnswerReport = {**asking.report}
        if _has_calls(answer):
            report.pop("usage", None)
        if caller.fallbacks:
            report["fallbacks"] = list(caller.fallbacks)
        if self.team and (voice := turn.get("voice")) and self.team.personas[voice].color:
            report["color"] = self.team.personas[voice].color
        return {**marks, REPORT: dict(report)} if report else marks

    def _calibration(self, now: Now) -> Calibration:
        return self.plans.readings.calibration(now.state.get("learned"))

    def _failed(self, error: Exception, now: Now, caller: Caller, view: View) -> Update:
        """Return the update after a failed call. After an overflow, the call is counted and made
        again; if the provider refused the content, `close_refused` decides. Raise any other
        failure.
        """
        known = provider_error(error, answering=caller.answering)
        if known is None:
            raise error
        log_cause(known.code, error)
        if isinstance(known, ProviderRefusedError) and known.content:
            return close_refused(now, known)
        if not isinstance(known, ModelContextOverflowError):
            raise known from error
        turn = now.turn
        if turn.get("overflows", 0) >= MAX_OVERFLOW_RETRIES:
            parts = sorted(
                ((tokens, name) for name, tokens in asdict(view.parts).items()), reverse=True
            )
            sizes = ", ".join(f"{name} {tokens:,}" for tokens, name in parts)
            raise ModelContextOverflowError(f"{known} (tokens sent: {sizes})") from error
        before = self._calibration(now)
        limit = learned_limit(error)
        learns = limit is not None and not caller.answered and not _has_own_model(now)
        calibration = replace(before, limit=limit) if learns else before
        again: Turn = {
            "overflows": turn.get("overflows", 0) + 1,
            "ceiling": view.parts.total // 2,
            "status": "overflow",
        }
        unblocked: Turn = {"breaker": None, "skipped": None}
        return {"turn": {**turn, **again, **unblocked}, **_learned(before, calibration)}


def _material_marks(parts: Sequence[MaterialPart]) -> dict[str, Any]:
    """Return the marks of an answer that describe the material sent with its call. They are empty
    if there was none.
    """
    if not parts:
        return {}
    passed = [
        {"source": part.source, "tokens": part.tokens, "ms": part.ms, "cites": [*part.cites]}
        for part in parts
        if part.tokens
    ]
    wanted = {MATERIAL: sum(part.wanted for part in parts)}
    return {"passed": passed, **wanted} if passed else wanted


def _has_own_model(now: Now) -> bool:
    """Return whether the voice that is asked has its own model instead of the conversation's."""
    voice = now.config.get("voices", {}).get(now.turn.get("voice", ""))
    return voice is not None and voice["own_model"]


def _status(answer: BaseMessage) -> TurnStatus:
    """Return the turn's status after an answer: "running", or why the answer is empty or was cut
    off.
    """
    ended = str(
        answer.response_metadata.get("finish_reason")
        or answer.response_metadata.get("stop_reason")
        or ""
    )
    if is_empty(answer):
        return "content_filter" if ended == "content_filter" else "empty_answer"
    cut = ended in {"length", "max_tokens"} and not (
        isinstance(answer, AIMessage) and all_calls(answer)
    )
    return "cut_off" if cut else "running"


def _learned(before: Calibration, after: Calibration) -> Update:
    """Return the update that stores a new calibration. It is empty if the calibration did not
    change.
    """
    return {} if after == before else {"learned": cast("Learned", after.as_json())}


def _with_call_ids(answer: BaseMessage) -> BaseMessage:
    """Return the answer with a unique id for each tool call. Without unique ids, a single call
    could not be answered or approved.
    """
    if not isinstance(answer, AIMessage):
        return answer
    seen: set[str] = set()
    update: dict[str, Any] = {}
    for name in ("tool_calls", "invalid_tool_calls"):
        numbered: list[dict[str, Any]] = []
        for call in getattr(answer, name):
            id_ = call["id"]
            if not id_ or id_ in seen:
                id_ = f"call_{uuid.uuid4().hex[:12]}"
            seen.add(id_)
            numbered.append({**call, "id": id_})
        if numbered != getattr(answer, name):
            update[name] = numbered
    return answer.model_copy(update=update) if update else answer
