"""Run one compaction: plan it, let the strategy write with the summariser, look up what was already compacted, tell what happened."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context
from longtable.base.errors import ArchiveFormatError, ArchiveGapError, ConfigError, Reason
from longtable.base.events import ContextCompactionSkipped, ContextCompressed
from longtable.base.redaction import redacted
from longtable.base.store_keys import thread_namespace
from longtable.base.twins import in_thread
from longtable.memory.archive import DAMAGED, page
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction import Job, Outcome, Request, Strategy, compaction_steps, must_be_remade, needs_originals
from longtable.memory.compaction_plan import CompactionPlan, When, plan_compaction
from longtable.memory.reasoning import split_reasoning
from longtable.memory.spent import call_usage
from longtable.memory.summary import Numbered
from longtable.memory.thread import Compaction
from longtable.memory.tokens import TokenCounter
from longtable.memory.view import CallPlan
from longtable.nodes.estimate import breaker_holds
from longtable.nodes.model.call_plans import CallPlans
from longtable.nodes.model.provider_errors import provider_error
from longtable.nodes.records.archive_store import Files, StoreArchive, archived
from longtable.nodes.records.bounded_cache import BoundedCache
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import State, turn_of
from longtable.nodes.turns.tracing import log_cause, span, usage_fields

NO_STORE = "messages of this thread have retired to a store that is not there"
PRIVATE: RunnableConfig = {"tags": ["nostream", "langsmith:nostream"], "run_name": "summarise", "callbacks": []}
"""Keeps the summariser's tokens out of every stream of the user's run: no callbacks of the run reach it, and two tags say
so to LangGraph and to agent-chat-ui."""
REMEMBERED = 256
"""Records a process keeps, so that a compaction is made once also where there is no store."""

Update = dict[str, Any]


@dataclass
class SummaryCalls:
    """The summariser's calls of one compaction: each a trace span, their tokens kept in its record."""

    model: str
    about: dict[str, Any]
    counter: TokenCounter
    calls: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, model: str, thread_id: str, turn: int, call_config: CallConfig) -> "SummaryCalls":
        """Return no calls yet, of a compaction in this turn of a thread."""
        about = {"thread_id": thread_id, "turn": turn, "purpose": "summarise", "gen_ai.request.model": model or None}
        return cls(model, about, call_config.counter)

    @contextmanager
    def call(self, request: Request) -> Iterator[Callable[[BaseMessage], str]]:
        """Run one call; the block passes the answer to the function it is given, which returns the text."""
        with span("model", self.model or "summariser", self.about) as attributes:

            def text_of(answer: BaseMessage) -> str:
                attributes.update(usage_fields(answer))
                self.calls.append(call_usage(answer, request, self.model, self.counter))
                return str(split_reasoning(answer, self.model).text)  # a memory is made of the answer, not of the reasoning

            yield text_of

    def with_usage(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the calls in its record: no other place of a thread holds their usage."""
        return replace(outcome, record={**outcome.record, "spent": self.calls}) if outcome.record and self.calls else outcome


@dataclass(frozen=True)
class Task:
    """What one compaction starts from."""

    call_plan: CallPlan
    plan: CompactionPlan
    turn: int
    thread_id: str
    from_originals: bool


@dataclass(frozen=True)
class Compactor:
    """Compacts a thread. Without a summariser the strategy's fallback writes. A compaction that fails never fails the turn."""

    summarizer: BaseChatModel | None
    strategies: Mapping[str, Strategy]
    clock: Callable[[], datetime]
    plans: CallPlans
    seconds: float
    """How long one call of the summariser may take."""
    files: Files | None = None
    """Where what is compacted is written before."""
    name: str = ""
    """The summariser's model, for spans and usage."""
    instructions: str | None = None
    """Replaces the built-in instructions of the summariser."""
    made: BoundedCache[tuple[str, str], Compaction] = field(default_factory=lambda: BoundedCache(REMEMBERED), repr=False)

    def compact(self, state: State, runtime: Runtime[Context], when: When) -> Outcome | None:
        """Return the compaction's outcome, None when there was nothing to do."""
        task = self._task(state, runtime, when)
        if task is None:
            return None
        try:
            job = self._job(task, _originals(task, runtime))
        except Exception as error:  # without its originals a memory is not made
            return _given_up(task, error)
        return archived(self.files, self._made(task, job, runtime.store), job, thread_id_of(runtime), runtime.store)

    async def acompact(self, state: State, runtime: Runtime[Context], when: When) -> Outcome | None:
        """Do the same without blocking the event loop."""
        task = await asyncio.to_thread(self._task, state, runtime, when)
        if task is None:
            return None
        try:
            job = self._job(task, await in_thread(_originals, task, runtime))
        except Exception as error:  # as above
            return _given_up(task, error)
        await asyncio.to_thread(lambda: job.id)  # the identity hashes all that is compacted: off the event loop
        outcome = await self._amade(task, job, runtime.store)
        if self.files is not None:
            outcome = await asyncio.to_thread(archived, self.files, outcome, job, thread_id_of(runtime), runtime.store)
        return outcome

    # -- inside -----------------------------------------------------------------------------------------------------

    def _made(self, task: Task, job: Job, store: BaseStore | None) -> Outcome:
        try:
            known = self.made.get((task.thread_id, job.id)) or _stored(store.get(_place(task), job.id) if store else None)
        except Exception as error:  # without its store a memory is not made twice
            return _given_up(task, error)
        if known:
            return Outcome(known, [])
        outcome = self._drive(job, task)
        if outcome.record and store:
            with suppress(Exception):  # then it is kept in the thread alone
                store.put(_place(task), job.id, outcome.record, index=False)
        return self._remember(job, task, outcome)

    async def _amade(self, task: Task, job: Job, store: BaseStore | None) -> Outcome:
        try:
            known = self.made.get((task.thread_id, job.id)) or _stored(await store.aget(_place(task), job.id) if store else None)
        except Exception as error:  # as above
            return _given_up(task, error)
        if known:
            return Outcome(known, [])
        outcome = await self._adrive(job, task)
        if outcome.record and store:
            with suppress(Exception):
                await store.aput(_place(task), job.id, outcome.record, index=False)
        return self._remember(job, task, outcome)

    def _task(self, state: State, runtime: Runtime[Context], when: When) -> Task | None:
        call_plan = self.plans.of(state, runtime)
        plan = plan_ahead(call_plan, turn_of(state).get("breaker")) if when == "ahead" else plan_compaction(call_plan, when)
        if plan is None:
            return None
        return Task(
            call_plan=call_plan,
            plan=plan,
            turn=turn_of(state).get("number", 0),
            thread_id=thread_id_of(runtime) or "-",
            from_originals=needs_originals(call_plan.thread, call_plan.call_config),
        )

    def _job(self, task: Task, originals: Sequence[Numbered] | None) -> Job:
        call_config = task.call_plan.call_config
        return Job(
            strategy=call_config.policy.strategy,
            thread=task.call_plan.thread,
            call_config=call_config,
            plan=task.plan,
            turn=task.turn,
            time=self.clock().isoformat(timespec="seconds"),
            instructions=self.instructions,
            originals=originals,
        )

    def _remember(self, job: Job, task: Task, outcome: Outcome) -> Outcome:
        if outcome.record:
            self.made.put((task.thread_id, job.id), outcome.record)
        return outcome

    def _drive(self, job: Job, task: Task) -> Outcome:
        steps, answer, calls = (
            compaction_steps(job, self.strategies[job.strategy]),
            None,
            SummaryCalls.of(self.name, task.thread_id, task.turn, task.call_plan.call_config),
        )
        while not isinstance(request := _advance(steps, answer, job), Outcome):
            answer = self._ask(request, calls)
        return calls.with_usage(request)

    async def _adrive(self, job: Job, task: Task) -> Outcome:
        steps, answer, calls = (
            compaction_steps(job, self.strategies[job.strategy]),
            None,
            SummaryCalls.of(self.name, task.thread_id, task.turn, task.call_plan.call_config),
        )
        # Counting and the fallback take time on a long thread: off the event loop.
        while not isinstance(request := await asyncio.to_thread(_advance, steps, answer, job), Outcome):
            answer = await self._aask(request, calls)
        return calls.with_usage(request)

    def _ask(self, request: Request, calls: SummaryCalls) -> str | Exception:
        model = self.summarizer
        assert model is not None, "a compaction without a summariser asks nothing"
        try:
            with calls.call(request) as text_of:
                return text_of(_within(self.seconds, lambda: model.invoke(request, PRIVATE)))
        except Exception as error:  # a summariser that fails in any way must not fail the turn: the outcome says so
            return _failure_of(error)

    async def _aask(self, request: Request, calls: SummaryCalls) -> str | Exception:
        assert self.summarizer is not None, "a compaction without a summariser asks nothing"
        try:
            with calls.call(request) as text_of:
                return text_of(await asyncio.wait_for(self.summarizer.ainvoke(request, PRIVATE), self.seconds))
        except Exception as error:  # as above
            return _failure_of(error)


def plan_ahead(call_plan: CallPlan, breaker: int | None) -> CompactionPlan | None:
    """Return the compaction to make ahead of the next turn, None where none is due or one that failed waits for more tokens."""
    if not call_plan.call_config.policy.ahead:
        return None
    plan = plan_compaction(call_plan, "ahead")
    return None if plan and breaker_holds(breaker, plan.tokens_before, call_plan.call_config) else plan


def compaction_update(state: State, outcome: Outcome | None, runtime: Runtime[Context], started: float, *, ahead: bool = False) -> Update:
    """Tell what became of a compaction and return the update it makes."""
    turn = turn_of(state)
    outcome = outcome or Outcome(None, [{"code": "nothing_to_fold", "message": "there is nothing to compact"}])
    record = outcome.record
    if record is None:
        runtime.stream_writer(ContextCompactionSkipped(type="context_compaction_skipped", reasons=outcome.reasons))
        return {"turn": {**turn, "breaker": outcome.tokens or turn.get("breaker")}}
    event = ContextCompressed(
        type="context_compressed",
        id=record["id"],
        original_tokens=record["tokens_before"],
        compressed_tokens=record["tokens_after"],
        messages=record["folded"],
        strategy=record["strategy"],
        method=record["method"],
        coverage=record["coverage"],
        rebuilt=record["rebuilt"],
        ahead=ahead,
        reasons=outcome.reasons,
        ms=round((time.perf_counter() - started) * 1000),
    )
    runtime.stream_writer({**event, "archive": outcome.archive} if outcome.archive else event)
    return {"compactions": [record], "turn": {**turn, "breaker": None}}


def _place(task: Task) -> tuple[str, ...]:
    return thread_namespace("compactions", task.thread_id)


def _stored(item: Any) -> Compaction | None:
    return cast("Compaction", dict(item.value)) if item and DAMAGED not in item.value else None


def _given_up(task: Task, error: Exception) -> Outcome:
    reason = Reason(code="store_failed", message=f"what was compacted before cannot be read: {type(error).__name__}")
    return Outcome(None, [reason], task.plan.tokens_before)


def _advance(steps: Any, answer: str | Exception | None, job: Job) -> Request | Outcome:
    try:
        request: Request = steps.send(answer)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    except Exception as error:  # a strategy that fails, a user's own say, must not fail the turn either
        reason = Reason(code="strategy_failed", message=redacted(f"the strategy failed: {type(error).__name__}: {error}")[:300])
        return Outcome(None, [reason], job.plan.tokens_before)
    return request


def _originals(task: Task, runtime: Runtime[Context]) -> list[Numbered] | None:
    if not task.from_originals:
        return None
    archive, last = _retired(task, runtime)
    try:
        return _not_excluded(page(archive, task.thread_id, 1, last), task) if archive else []
    except (ArchiveFormatError, ArchiveGapError):  # continue from the previous memory: otherwise the thread could never be compacted again
        if must_be_remade(task.call_plan.thread, task.call_plan.call_config):
            raise
        return None


def _retired(task: Task, runtime: Runtime[Context]) -> tuple[StoreArchive | None, int]:
    """Return where a thread's retired messages are, None where it has none, and how many. Raises `ConfigError` without a store."""
    archived = task.call_plan.thread.archived
    if archived and runtime.store is None:
        raise ConfigError(NO_STORE)
    return StoreArchive(runtime.store) if archived and runtime.store else None, archived


def _not_excluded(originals: Sequence[Any], task: Task) -> list[Numbered]:
    return [(original.number, original.message) for original in originals if original.message.id not in task.call_plan.thread.excluded]


def _failure_of(error: Exception) -> Exception:
    """Return the typed error of a failed call, and log its cause."""
    known = provider_error(error)
    log_cause(known.code if known else "summariser_failed", error)
    return known or error


def _within(seconds: float, call: Callable[[], BaseMessage]) -> BaseMessage:
    """Return what a call returns; raise TimeoutError after so long. The call goes on in its thread, unheard."""
    done: Future[BaseMessage] = Future()

    def work() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # handed over to the caller, whatever it is
            done.set_exception(error)

    threading.Thread(target=work, daemon=True, name="longtable-summarise").start()
    return done.result(timeout=seconds)


@dataclass(frozen=True)
class Compact:
    """The node: appends one compaction record, or says why there is none."""

    compactor: Compactor

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        started = time.perf_counter()
        return compaction_update(state, self.compactor.compact(state, runtime, _when(state)), runtime, started)

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        """Do the same without blocking the event loop on the summariser."""
        started = time.perf_counter()
        return compaction_update(state, await self.compactor.acompact(state, runtime, _when(state)), runtime, started)


def _when(state: State) -> When:
    return "asked" if turn_of(state).get("status") == "compacting" else "due"
