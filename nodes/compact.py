"""Run one compaction: plan it, read originals that were compacted before if they are needed, let
the strategy write the memory with the summariser, and send the event.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from longtable.base.concurrency import BoundedCache, Execution, in_daemon, in_thread
from longtable.base.context import Context
from longtable.base.errors import (
    ArchiveFormatError,
    ArchiveGapError,
    ConfigError,
    ProviderError,
    Reason,
)
from longtable.base.redaction import redacted
from longtable.base.stored import Namespace, thread_namespace
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.compaction import (
    ROLLING,
    Job,
    Outcome,
    Request,
    Strategy,
    compaction_steps,
    must_be_remade,
    needs_originals,
)
from longtable.memory.compaction.due import DueCompaction, due_compaction
from longtable.memory.compaction.plan import CompactionPlan, When, plan_compaction
from longtable.memory.compaction.rolling import PIN_ROOM
from longtable.memory.counting.usage import SummaryCall, call_usage
from longtable.memory.messages.reasoning import split_reasoning
from longtable.memory.records import Compaction, writer_of
from longtable.memory.summary.summary_text import Numbered
from longtable.memory.view import CallPlan
from longtable.nodes.calling.caller import LOCKED_OUT, bounded, summary_settings
from longtable.nodes.calling.provider_errors import provider_error
from longtable.nodes.compacting.archiving import Files, archived
from longtable.nodes.compacting.compaction_events import compaction_update
from longtable.nodes.estimate import CallPlans
from longtable.nodes.state import (
    UNDER_WAY,
    Now,
    Turn,
    Update,
    failed_at,
)
from longtable.nodes.telemetry import log_cause, span, usage_fields
from longtable.store.records.retired import DAMAGED, page
from longtable.store.records.retired_store import StoreArchive

NO_THREAD = "-"
NO_STORE = "messages of this thread have retired to a store that is not there"
PRIVATE: RunnableConfig = {
    "tags": ["longtable:summary", "nostream", "langsmith:nostream"],
    "run_name": "summarise",
    "callbacks": [],
}
"""The config with which the summariser is called, so that none of its tokens is streamed in the
user's run. It has no callbacks of the run, and two tags that LangGraph and agent-chat-ui respect.
"""
OTHER_ANSWERS = 4_096
"""The limit on the tokens of the summariser's answer is at least this, with a strategy other than
"rolling".
"""
RECENT = 256
"""Number of compaction records that a process keeps. With them a compaction is made only once, even
without a store.
"""


class Writer(NamedTuple):
    """The writer of summaries: a model and its name, or code if `model` is None."""

    model: BaseChatModel | None
    name: str = ""


@dataclass(frozen=True)
class Task:
    """The input of one compaction."""

    writer: Writer
    call_plan: CallPlan
    plan: CompactionPlan
    results: Compaction | None
    """The compaction that shrinks results before the summary is made, None if there is none."""
    turn: int
    thread_id: str
    from_originals: bool
    context: Context

    @property
    def namespace(self) -> Namespace:
        """Return the namespace in which the store keeps the thread's compactions."""
        return thread_namespace("compactions", self.thread_id)


@dataclass(frozen=True)
class Compactor:
    """Compacts a thread. Without a summariser, code writes the memory (the strategy's fallback). A
    compaction that fails never makes the turn fail.
    """

    writers: Mapping[str, Writer]
    """The writers of summaries, by the name with which a run chooses its model; "" is for the
    graph's own model.
    """
    strategies: Mapping[str, Strategy]
    clock: Callable[[], datetime]
    plans: CallPlans
    seconds: float
    """How many seconds one call of the summariser may take."""
    files: Files | None = None
    """The archive files to which messages are written before they are compacted, None for none."""
    instructions: str | None = None
    """Replaces the built-in instructions of the summariser."""
    recent: BoundedCache[tuple[str, str], Compaction] = field(
        default_factory=lambda: BoundedCache(RECENT), repr=False
    )
    locked_out: BoundedCache[tuple[str, int], ProviderError] = field(
        default_factory=lambda: BoundedCache(RECENT), repr=False
    )
    """Errors about the summariser's key or account, by thread and turn. After such an error the
    summariser is not asked again in the same turn.
    """

    @property
    def asks_a_model(self) -> bool:
        """Return whether any of the writers is a model."""
        return any(writer.model for writer in self.writers.values())

    async def compact(self, now: Now, when: When, how: Execution) -> Outcome | None:
        """Run one compaction and return its outcome, None if there was nothing to do."""
        task = await how.call(partial(self._task, now, when))
        if task is None or isinstance(task, Outcome):
            return task
        runtime = now.runtime
        store = runtime.store
        key = ""
        try:  # without originals or store no memory is made: it might be made twice
            originals = await how.call(
                partial(_originals, task, runtime), partial(in_thread, _originals, task, runtime)
            )
            job = self._job(task, originals)
            key = await how.call(lambda: job.id)  # the identity hashes all that is compacted
            known = self.recent.get((task.thread_id, key))
            if known is None and store:
                get = partial(store.get, task.namespace, key)
                known = _stored(await how.call(get, partial(store.aget, task.namespace, key)))
        except Exception as error:
            reason = Reason(
                code="store_failed",
                message=f"what was compacted before cannot be read: {type(error).__name__}",
            )
            return Outcome(None, [reason], task.plan.tokens_before, results=task.results)
        outcome = Outcome(known, []) if known else await self._write(job, task, how)
        outcome = replace(outcome, results=task.results)
        if outcome.record and not known:
            if store:
                op = PutOp(task.namespace, key, cast("dict[str, Any]", outcome.record), False)
                with suppress(Exception):  # then it is kept in the thread alone
                    await how.call(partial(store.batch, [op]), partial(store.abatch, [op]))
            self.recent.put((task.thread_id, key), outcome.record)
        return (
            await how.call(partial(archived, self.files, outcome, job, now.thread_id, store))
            if self.files
            else outcome
        )

    # -- inside ------------------------------------------------------------------------------------

    def _task(self, now: Now, when: When) -> Task | Outcome | None:
        """Return the task of writing a memory. Return the outcome itself if only results shrink,
        and None if there is nothing to do.
        """
        call_plan = self.plans.of(now, shared=True)
        results: Compaction | None = None
        plan: CompactionPlan | None = None
        if when == "due":
            # A voice may hear more than all have room for: its colleagues' names, and their
            # queries.
            due = self._due(now.turn, call_plan) or self._due(now.turn, self.plans.of(now))
            if due is None:
                return None
            results = due.results
            plan = due.plan
            call_plan = due.call_plan
        elif when == "ahead":
            plan = plan_ahead(call_plan, failed_at(now.turn))
        else:
            plan = plan_compaction(call_plan, when)
        if plan is None:
            return Outcome(None, [], results=results) if results else None
        choice = now.config.get("choice", "")
        return Task(
            writer=self.writers.get(choice, self.writers[""]),
            call_plan=call_plan,
            plan=plan,
            results=results,
            turn=now.turn.get("number", 0),
            thread_id=now.thread_id or NO_THREAD,
            from_originals=needs_originals(call_plan.thread, call_plan.call_config),
            context=now.context,
        )

    def _due(self, turn: Turn, call_plan: CallPlan) -> DueCompaction | None:
        time = self.clock().isoformat(timespec="seconds")
        number = turn.get("number", 0)
        return due_compaction(call_plan, failed_at(turn), turn=number, time=time)

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

    async def _write(self, job: Job, task: Task, how: Execution) -> Outcome:
        """Let the strategy write the memory. The usage of its calls is put into the record, because
        the thread stores this usage nowhere else.
        """
        steps = compaction_steps(job, self.strategies[job.strategy])
        answer = None
        calls = list[SummaryCall]()
        # Counting and the fallback take time on a long thread: off the event loop.
        while not isinstance(
            request := await how.call(partial(_advance, steps, answer, job)), Outcome
        ):
            answer = await self._ask(request, task, calls, how)
        if (record := request.record) is None:
            return replace(request, calls=calls)
        why = (
            _why_by_code(task.writer.model is not None, request.reasons)
            if record["method"] == "fallback"
            else ""
        )
        record = (
            {**record, "why_by_code": why, "spent": calls}
            if calls
            else {**record, "why_by_code": why}
        )
        return replace(request, record={**record, "writer": writer_of(record)}, calls=calls)

    async def _ask(
        self, request: Request, task: Task, calls: list[SummaryCall], how: Execution
    ) -> str | Exception:
        model = task.writer.model
        run = (task.thread_id, task.turn)
        assert model is not None, "a compaction without a summariser asks nothing"
        if (refusal := self.locked_out.get(run)) is not None:
            return refusal
        fields = {
            "thread_id": task.thread_id,
            "turn": task.turn,
            "purpose": "summarise",
            "gen_ai.request.model": task.writer.name or None,
        }
        try:
            with span("model", task.writer.name or "summariser", fields) as attributes:
                settings = summary_settings(task.context, model)
                writer = bounded(model, answer_tokens(task.plan, task.call_plan.call_config))
                ask = partial(writer.invoke, request, PRIVATE, **settings)
                answer = await how.call(
                    lambda: in_daemon(ask, "longtable-summarise").result(self.seconds),
                    lambda: asyncio.wait_for(
                        writer.ainvoke(request, PRIVATE, **settings), self.seconds
                    ),
                )
                attributes.update(usage_fields(answer))
                calls.append(
                    call_usage(
                        answer, request, task.writer.name, task.call_plan.call_config.counter
                    )
                )
                # A memory is made of the answer, not of the reasoning.
                return str(split_reasoning(answer, task.writer.name).text)
        except Exception as error:
            # A summariser that fails in any way must not fail the turn: the outcome says so.
            known = provider_error(error)
            log_cause(known.code if known else "summariser_failed", error)
            if task.thread_id != NO_THREAD and isinstance(known, LOCKED_OUT):
                self.locked_out.put(run, known)
            return known or error


def answer_tokens(plan: CompactionPlan, call_config: CallConfig) -> int:
    """Return the most tokens of one answer of the summariser, in the provider's tokens."""
    most = plan.summary_budget + PIN_ROOM
    if call_config.policy.strategy != ROLLING:
        # Its answers are documents, lists, or a caller's own.
        most = max(2 * most, OTHER_ANSWERS)
    return math.ceil(most * call_config.factor)


def plan_ahead(call_plan: CallPlan, breaker: int | None) -> CompactionPlan | None:
    """Return the plan of a compaction ahead of the next turn. Return None if no compaction is due,
    or if one has failed and must wait for more text.
    """
    if not call_plan.call_config.policy.ahead:
        return None
    plan = plan_compaction(call_plan, "ahead")
    return None if plan and plan.waits(breaker) else plan


def _why_by_code(has_model: bool, reasons: Sequence[Reason]) -> str:
    """Return, as text, why code and not a model wrote a memory."""
    if not has_model:
        return "no model writes summaries here"
    return (
        "; ".join(dict.fromkeys(reason["message"] for reason in reasons))
        or "there was no room for a text of the model's"
    )


def _stored(item: Any) -> Compaction | None:
    return cast("Compaction", dict(item.value)) if item and DAMAGED not in item.value else None


def _advance(steps: Any, answer: str | Exception | None, job: Job) -> Request | Outcome:
    try:
        request: Request = steps.send(answer)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome
    except Exception as error:
        # A strategy that fails, a user's own say, must not fail the turn either.
        reason = Reason(
            code="strategy_failed",
            message=redacted(f"the strategy failed: {type(error).__name__}: {error}")[:300],
        )
        return Outcome(None, [reason], job.plan.tokens_before)
    return request


def _originals(task: Task, runtime: Runtime[Context]) -> list[Numbered] | None:
    """Return the retired messages if the memory must be made anew from the originals. Return None
    if it continues the previous memory. Raises `ConfigError` if they are needed and there is no
    store.
    """
    if not task.from_originals:
        return None
    thread = task.call_plan.thread
    if not thread.archived:
        return []
    if runtime.store is None:
        raise ConfigError(NO_STORE)
    try:
        originals = page(StoreArchive(runtime.store), task.thread_id, 1, thread.archived)
    except (ArchiveFormatError, ArchiveGapError):
        # Continue from the previous memory: otherwise the thread could never be compacted again.
        if must_be_remade(thread, task.call_plan.call_config):
            raise
        return None
    return [
        (original.number, original.message)
        for original in originals
        if original.message.id not in thread.excluded
    ]


@dataclass(frozen=True)
class Compact:
    """The node: runs one compaction and appends its records, or reports why there is none."""

    compactor: Compactor

    async def __call__(self, now: Now, how: Execution) -> Update:
        started = time.perf_counter()
        when: When = "asked" if now.turn.get("status") == "compacting" else "due"
        outcome = await self.compactor.compact(now, when, how)
        whole = await how.call(partial(self._whole, now))
        return compaction_update(now, outcome, started, whole=whole)

    def _whole(self, now: Now) -> int:
        """Return the tokens of the speaking voice's next call before anything is shortened, 0 if no
        voice is speaking.
        """
        turn = now.turn
        if not turn.get("voice") or turn.get("status") not in UNDER_WAY:
            return 0
        return self.compactor.plans.of(now).parts.total
