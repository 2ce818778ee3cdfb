"""Run the calls of the newest answer, in parallel; a failing tool is an answer to the model, not a crash."""

import asyncio
import contextvars
import difflib
import functools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.types import StreamWriter
from pydantic import ValidationError

from longtable.base.context import Context
from longtable.base.errors import DatabaseError, LongtableError
from longtable.base.events import ApprovalRequested, ChartShown, QueryFinished, QueryStarted, ToolStarted
from longtable.base.redaction import redacted
from longtable.memory.rounds import MALFORMED
from longtable.memory.stale import DESCRIBED, LISTING
from longtable.memory.stamps import RECALLED, TABLES, marked
from longtable.memory.tokens import compact_json
from longtable.nodes.approve import Gate, request_of
from longtable.nodes.ingest import stamp
from longtable.nodes.model.call_plans import CallPlans
from longtable.nodes.records.audit import Audit, Log
from longtable.nodes.records.recall import Indexes, Originals, originals_of, recall_event
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.route import unanswered
from longtable.nodes.state import PendingCall, State, newest_language, thread_of, turn_of, with_last, without_key
from longtable.nodes.turns.privacy import is_private, without_cells
from longtable.nodes.turns.tool_jobs import EDITED, Job, StoredAnswer, Work, keep, work_of
from longtable.nodes.turns.tracing import span
from longtable.tools.cells import clean, clip, json_value
from longtable.tools.charts import chart_tool
from longtable.tools.database import QueryResult
from longtable.tools.query_tools import with_note
from longtable.tools.recall_tool import answered
from longtable.tools.result_tool import KIND, ThreadResults
from longtable.tools.toolset import Described, cancellable

if TYPE_CHECKING:
    from longtable.tools.results import ResultStore

MAX_PARALLEL = 8
MOST_TOLD = 4_000
"""Characters of an error."""

Update = dict[str, Any]


@dataclass(frozen=True)
class RunTools:
    """The node. Full results go to the person by event and into `results`; the thread keeps what the model is shown."""

    tools: Mapping[str, BaseTool]
    clock: Callable[[], datetime]
    indexes: Indexes
    audit: Audit
    plans: CallPlans
    results: "ResultStore | None" = None
    gate: Gate | None = None

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        if (gated := self._gated(state, runtime)) is not None and (asked := gated()):
            self._log(_of(asked, state), state, runtime).wait()
            return _ask(asked, state, runtime)
        work = self._work(state, runtime)
        log = self._log_of(work, state, runtime)
        inputs = self._inputs(state, runtime, log)
        with log:
            while jobs := work.next():
                if work.alone:  # here, in the node's own thread: what it interrupts with is answered to it and no other
                    work.done([self._run(jobs[0], runtime.stream_writer, inputs)])
                    break
                with ThreadPoolExecutor(max_workers=min(MAX_PARALLEL, len(jobs))) as pool:
                    # Each worker gets the run's context variables, so that a tool's own model calls work.
                    begun = [pool.submit(contextvars.copy_context().run, self._try, job, runtime.stream_writer, inputs) for job in jobs]
                    work.done([job.result() for job in begun])
        return self._update(work, state, runtime)

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> Update:
        """Do the same without blocking the event loop; cancelling the run cancels the tools."""
        if (gated := self._gated(state, runtime)) is not None and (asked := await cancellable(gated)):
            await self._log(_of(asked, state), state, runtime).await_()
            return _ask(asked, state, runtime)
        work = self._work(state, runtime)
        log = self._log_of(work, state, runtime)
        inputs = self._inputs(state, runtime, log)
        async with log:
            while jobs := work.next():
                if work.alone:
                    work.done([await self._arun(jobs[0], runtime.stream_writer, inputs)])
                    break
                work.done(await asyncio.gather(*(self._atry(job, runtime.stream_writer, inputs) for job in jobs)))
        return self._update(work, state, runtime)

    def _log(self, calls: list[ToolCall], state: State, runtime: Runtime[Context]) -> Log:
        return self.audit.log(calls, self.tools, state, runtime)

    def _log_of(self, work: Work, state: State, runtime: Runtime[Context]) -> Log:
        edits = {place: job.edited for place, job in enumerate(work.jobs) if job.edited is not None}
        return self.audit.log([job.call for job in work.jobs], self.tools, state, runtime, edits=edits)

    def _gated(self, state: State, runtime: Runtime[Context]) -> "Callable[..., list[PendingCall]] | None":
        """Return what finds the calls that a person must approve first, None where there are none to look at."""
        context = runtime.context or Context()
        if self.gate is None or context.approve_sql == "never" or "approval" in turn_of(state):
            return None
        messages = thread_of(state).messages
        queries = [call for call in unanswered(messages) if self._is_query(call["name"])]
        if not queries:
            return None
        language = context.language or newest_language(messages)
        return functools.partial(self.gate.asked, queries, mode=context.approve_sql, language=language)

    def _work(self, state: State, runtime: Runtime[Context]) -> Work:
        queries = frozenset(name for name in self.tools if self._is_query(name))
        return work_of(state, queries, repairs=(runtime.context or Context()).max_repairs)

    def _is_query(self, name: str) -> bool:
        return name in self.tools and _kind(self.tools[name]) == "query"

    def _try(self, job: Job, emit: StreamWriter, inputs: "ToolInputs") -> ToolMessage | None:
        """Return the answer, None for a tool that waits for one itself: it is run again, alone, and then asks."""
        try:
            return self._run(job, emit, inputs)
        except GraphInterrupt:
            return None

    async def _atry(self, job: Job, emit: StreamWriter, inputs: "ToolInputs") -> ToolMessage | None:
        try:
            return await self._arun(job, emit, inputs)
        except GraphInterrupt:
            return None

    def _inputs(self, state: State, runtime: Runtime[Context], log: Log) -> "ToolInputs":
        thread_id = thread_id_of(runtime)
        results = ThreadResults(self.results, thread_id) if self.results is not None and thread_id else None
        call_plan = self.plans.of(state, runtime)
        return ToolInputs(originals_of(call_plan, runtime, self.indexes), results, log)

    def _run(self, job: Job, emit: StreamWriter, inputs: "ToolInputs") -> ToolMessage:
        report = _Report(job, self.tools, emit)
        try:
            with span(*report.span) as told:
                answer = report.checked().invoke(report.tool_call(inputs))
                told |= _rows(answer)
            return inputs.log.ended(job.call, report.done(keep(answer, inputs.results)))
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever a tool raises is an answer to the model
            return inputs.log.ended(job.call, report.failed(error))

    async def _arun(self, job: Job, emit: StreamWriter, inputs: "ToolInputs") -> ToolMessage:
        report = _Report(job, self.tools, emit)
        try:
            with span(*report.span) as told:
                answer = await report.checked().ainvoke(report.tool_call(inputs))
                told |= _rows(answer)
            kept = await asyncio.to_thread(keep, answer, inputs.results) if inputs.results else StoredAnswer(answer)
            return inputs.log.ended(job.call, report.done(kept))
        except GraphBubbleUp:
            raise
        except Exception as error:  # as above
            return inputs.log.ended(job.call, report.failed(error))

    def _update(self, work: Work, state: State, runtime: Runtime[Context]) -> Update:
        before, now = turn_of(state), self.clock().isoformat(timespec="seconds")
        answers = work.answers()
        if is_private(state, runtime.context or Context()):
            args = {job.call["id"]: job.to_run["args"] for job in work.jobs}
            answers = [without_cells(answer, args[answer.tool_call_id]) for answer in answers]
        # No artifact in state: the person has the whole result already, the thread keeps plain text.
        answers = [stamp(answer.model_copy(update={"artifact": None}), turn=before, time=now) for answer in answers]
        after = without_key(before, "approval", "one_by_one")
        if work.left_over > 1:
            after["one_by_one"] = True
        return {"messages": answers, "turn": with_last(after, answers)}


def _ask(asked: list[PendingCall], state: State, runtime: Runtime[Context]) -> Update:
    """Return the update that sends the turn to `approve`, and tell of it."""
    runtime.stream_writer(ApprovalRequested(type="approval_requested", **request_of(asked, _of(asked, state))))
    return {"turn": {**turn_of(state), "approval": {"asked": asked}}}


def _of(asked: list[PendingCall], state: State) -> list[ToolCall]:
    wanted = {one["id"] for one in asked}
    return [call for call in unanswered(thread_of(state).messages) if call["id"] in wanted]


@dataclass(frozen=True)
class ToolInputs:
    """What a run hands to its tools, unseen by the model: the thread's originals, and its results where a store keeps them."""

    originals: Originals
    results: ThreadResults | None
    log: Log
    """Is told how each call ended."""


class UnknownToolError(LongtableError):
    """The model called a tool that is not there."""


class BadArgumentsError(LongtableError):
    """The model's arguments do not fit the tool."""


class _Report:
    """One call: tells its start and end, and makes its answer."""

    def __init__(self, job: Job, tools: Mapping[str, BaseTool], emit: StreamWriter) -> None:
        call = job.to_run
        self.job, self.call, self.tools, self.emit = job, call, tools, emit
        self.id, self.name = call["id"] or "", call["name"]
        kind = _kind(tools.get(self.name))
        self.is_query, self.recalls, self.fetches = kind == "query", kind == "recall", kind in (KIND, chart_tool.KIND)
        self.started = time.perf_counter()
        if self.is_query:
            emit(QueryStarted(type="query_started", call_id=self.id, name=self.name, sql=self._sql()))
        else:
            emit(ToolStarted(type="tool_started", call_id=self.id, name=self.name, args=call["args"]))

    @property
    def span(self) -> tuple[str, str, dict[str, Any]]:
        """Return what its span tells; a name that no tool has is the model's own words, and not repeated."""
        return "query" if self.is_query else "tool", self.name if self.name in self.tools else "unknown", {}

    def checked(self) -> BaseTool:
        """Return the tool, or raise what is wrong with the call, or why it may not run."""
        if self.job.stopped is not None:
            raise self.job.stopped
        if self.name not in self.tools:
            near = difflib.get_close_matches(self.name, self.tools, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise UnknownToolError(f"there is no tool {self.name!r}{hint} The tools are: {', '.join(sorted(self.tools)) or 'none'}")
        if set(self.call["args"]) == {MALFORMED}:
            raise BadArgumentsError(f"the arguments of {self.name} are not valid JSON: send one JSON object")
        return self.tools[self.name]

    def tool_call(self, inputs: ToolInputs) -> ToolCall:
        """Return the call as the tool gets it: one that recalls is handed the thread's originals, one that fetches its results."""
        more = {"originals": inputs.originals} if self.recalls else {"results": inputs.results} if self.fetches else {}
        return {**self.call, "args": {**self.call["args"], **more}, "type": "tool_call"}

    def done(self, kept: StoredAnswer) -> ToolMessage:
        answer = kept.answer
        if self.job.edited is not None:
            answer = answer.model_copy(update={"content": with_note(answer.text, edited=EDITED)})
        if self.recalls:
            answer = marked(answer, kind=RECALLED)
            self.emit(recall_event(str(self.call["args"].get("query", "")), answered(answer.text), via="tool"))
        if isinstance(answer.artifact, QueryResult):
            self.emit(_query_finished(self.id, self.name, self._ms(), answer.artifact, kept))
            answer = marked(answer, **{TABLES: list(answer.artifact.tables)})
        else:
            self._finished(answer.status)
        if isinstance(answer.artifact, Described):
            answer = marked(answer, **{DESCRIBED: dict(answer.artifact.tables)}, **({LISTING: True} if answer.artifact.listing else {}))
        if isinstance(answer.artifact, chart_tool.Chart):
            self.emit(_chart_shown(self.id, answer.artifact))
        return answer.model_copy(update={"id": f"tool-{self.id}-{time.time_ns():x}"})

    def failed(self, error: Exception) -> ToolMessage:
        code, told = _told(error, self.name)
        details = _details(error)
        self._finished("error", error=told, **details)
        edited = {} if self.job.edited is None else {"edited": EDITED}
        content = compact_json({"error": {"class": code, **details, **edited, "message": told}})
        message_id = f"tool-{self.id}-{time.time_ns():x}"
        return ToolMessage(content, tool_call_id=self.id, name=self.name, status="error", id=message_id, artifact=error)

    def _finished(self, status: str, **more: Any) -> None:
        kind = {"type": "query_finished", "sql": self._sql()} if self.is_query else {"type": "tool_finished"}
        self.emit({**kind, "call_id": self.id, "name": self.name, "status": status, "ms": self._ms(), **more})

    def _sql(self) -> str:
        return str(self.call["args"].get("sql", ""))

    def _ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)


def _kind(tool: BaseTool | None) -> object:
    return (tool.metadata or {}).get("kind") if tool else None


def _rows(answer: object) -> dict[str, Any]:
    artifact = getattr(answer, "artifact", None)
    return {"rows": artifact.row_count} if isinstance(artifact, QueryResult) else {}


def _told(error: Exception, name: str) -> tuple[str, str]:
    """Return a failure's class and what the model is told."""
    if isinstance(error, LongtableError):
        return error.code, clip(clean(str(error)), MOST_TOLD)  # an engine's words may quote a cell
    if isinstance(error, ValidationError):
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())
        return BadArgumentsError.code, f"the arguments of {name} do not fit: {faults}"
    return "tool_failed", f"{name} failed: {type(error).__name__}: {redacted(' '.join(str(error).split()))[:500]}"


def _details(error: Exception) -> dict[str, Any]:
    """Return what is wrong with a query, where, and what was probably meant, as far as each is known."""
    if not isinstance(error, DatabaseError):
        return {}
    details = {
        "problem": error.problem,
        "rule": getattr(error, "rule", ""),
        "line": error.line,
        "column": error.column,
        "nearest": [clip(clean(name)) for name in error.nearest],
    }
    return {name: value for name, value in details.items() if value}


def _query_finished(call_id: str, name: str, ms: int, result: QueryResult, kept: StoredAnswer) -> QueryFinished:
    told = QueryFinished(
        type="query_finished",
        call_id=call_id,
        name=name,
        status="success",
        ms=ms,
        sql=result.sql,
        columns=list(result.columns),
        column_types=list(result.types),
        rows=[[json_value(cell) for cell in row] for row in result.rows],
        row_count=result.row_count,
    )
    if kept.handle:
        told["handle"] = kept.handle
    if kept.failure:
        told["not_kept"] = kept.failure
    return told


def _chart_shown(call_id: str, chart: chart_tool.Chart) -> ChartShown:
    return ChartShown(type="chart", call_id=call_id, handle=chart.handle, spec=chart.spec, notes=list(chart.notes))
