"""Run the calls of the newest answer, in parallel; a failing tool is an answer to the model, not a crash."""

import asyncio
import contextvars
import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import StreamWriter
from pydantic import ValidationError

from longtable.graph.context import Context
from longtable.graph.errors import DatabaseError, LongtableError
from longtable.graph.events import ChartShown, QueryFinished, QueryStarted, ToolStarted
from longtable.graph.state import State, layout_of, thread_of, turn_of, written
from longtable.memory.rounds import MALFORMED, all_calls
from longtable.memory.stamps import RECALLED, marked
from longtable.memory.tokens import compact_json
from longtable.nodes.audit import Audit, Log
from longtable.nodes.folding import thread_id_of
from longtable.nodes.ingest import stamp
from longtable.nodes.keep import Kept, keep
from longtable.nodes.privacy import is_private, withheld
from longtable.nodes.recall import Indexes, Originals, originals_of, recall_event
from longtable.nodes.route import open_calls
from longtable.tools import chart_tool
from longtable.tools.cells import json_value
from longtable.tools.database import QueryResult
from longtable.tools.recall_tool import answered
from longtable.tools.result_tool import KIND, ThreadResults

if TYPE_CHECKING:
    from longtable.tools.results import ResultStore

MAX_PARALLEL = 8


@dataclass(frozen=True)
class RunTools:
    """The node. Full results go to the person by event and into `results`; the thread keeps what the model is shown."""

    tools: Mapping[str, BaseTool]
    clock: Callable[[], datetime]
    indexes: Indexes
    audit: Audit
    results: "ResultStore | None" = None

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        calls = _calls(state)
        log = self.audit.log(calls, self.tools, state, runtime)
        given = self._given(state, runtime, log)
        with log, ThreadPoolExecutor(max_workers=min(MAX_PARALLEL, max(1, len(calls)))) as pool:
            # Each worker gets the run's context variables, so that a tool's own model calls and interrupts work.
            jobs = [pool.submit(contextvars.copy_context().run, self._run, call, runtime.stream_writer, given) for call in calls]
            answers = [job.result() for job in jobs]
        return self._update(answers, state, runtime)

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        """Do the same without blocking the event loop; cancelling the run cancels the tools."""
        calls = _calls(state)
        log = self.audit.log(calls, self.tools, state, runtime)
        given = self._given(state, runtime, log)
        async with log:
            answers = await asyncio.gather(*(self._arun(call, runtime.stream_writer, given) for call in calls))
        return self._update(answers, state, runtime)

    def _given(self, state: State, runtime: Runtime[Context], log: Log) -> "_Given":
        thread_id = thread_id_of(runtime)
        results = ThreadResults(self.results, thread_id) if self.results is not None and thread_id else None
        layout = layout_of(state, runtime.context or Context())
        return _Given(originals_of(layout, runtime, self.indexes), results, log)

    def _run(self, call: ToolCall, emit: StreamWriter, given: "_Given") -> ToolMessage:
        report = _Report(call, self.tools, emit)
        try:
            return given.log.ended(call, report.done(keep(report.checked().invoke(report.given(given)), given.results)))
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever a tool raises is an answer to the model
            return given.log.ended(call, report.failed(error))

    async def _arun(self, call: ToolCall, emit: StreamWriter, given: "_Given") -> ToolMessage:
        report = _Report(call, self.tools, emit)
        try:
            answer = await report.checked().ainvoke(report.given(given))
            kept = await asyncio.to_thread(keep, answer, given.results) if given.results else Kept(answer)
            return given.log.ended(call, report.done(kept))
        except GraphBubbleUp:
            raise
        except Exception as error:  # as above
            return given.log.ended(call, report.failed(error))

    def _update(self, answers: Sequence[ToolMessage], state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        if is_private(state, runtime.context or Context()):
            answers = [withheld(answer, call["args"]) for answer, call in zip(answers, _calls(state), strict=True)]
        turn, now = turn_of(state), self.clock().isoformat(timespec="seconds")
        # No artifact in state: the person has the whole result already, the thread keeps plain text.
        stamped = [stamp(answer.model_copy(update={"artifact": None}), turn=turn, time=now) for answer in answers]
        return {"messages": stamped, "turn": written(turn, stamped)}


@dataclass(frozen=True)
class _Given:
    """What a run hands to its tools, unseen by the model: the thread's originals, and its results where a store keeps them."""

    originals: Originals
    results: ThreadResults | None
    log: Log
    """Is told how each call ended."""


class UnknownToolError(LongtableError):
    """The model called a tool that is not there."""

    code = "unknown_tool"


class BadArgumentsError(LongtableError):
    """The model's arguments do not fit the tool."""

    code = "bad_arguments"


class _Report:
    """One call: tells its start and end, and makes its answer."""

    def __init__(self, call: ToolCall, tools: Mapping[str, BaseTool], emit: StreamWriter) -> None:
        self.call, self.tools, self.emit = call, tools, emit
        self.id, self.name = call["id"] or "", call["name"]
        tool = tools.get(self.name)
        kind = (tool.metadata or {}).get("kind") if tool else None
        self.is_query, self.recalls, self.fetches = kind == "query", kind == "recall", kind in (KIND, chart_tool.KIND)
        self.started = time.perf_counter()
        if self.is_query:
            emit(QueryStarted(type="query_started", call_id=self.id, name=self.name, sql=self._sql()))
        else:
            emit(ToolStarted(type="tool_started", call_id=self.id, name=self.name, args=call["args"]))

    def checked(self) -> BaseTool:
        """Return the tool, or raise what is wrong with the call."""
        if self.name not in self.tools:
            near = difflib.get_close_matches(self.name, self.tools, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UnknownToolError(f"there is no tool {self.name!r}{hint} The tools are: {', '.join(sorted(self.tools)) or 'none'}")
        if set(self.call["args"]) == {MALFORMED}:
            raise BadArgumentsError(f"the arguments of {self.name} are not valid JSON: send one JSON object")
        return self.tools[self.name]

    def given(self, given: _Given) -> ToolCall:
        """Return the call as the tool gets it: one that recalls is handed the thread's originals, one that fetches its results."""
        more = {"originals": given.originals} if self.recalls else {"results": given.results} if self.fetches else {}
        return {**self.call, "args": {**self.call["args"], **more}, "type": "tool_call"}

    def done(self, kept: Kept) -> ToolMessage:
        answer = kept.answer
        if self.recalls:
            answer = marked(answer, kind=RECALLED)
            self.emit(recall_event(str(self.call["args"].get("query", "")), answered(answer.text), via="tool"))
        if isinstance(answer.artifact, QueryResult):
            self.emit(_query_finished(self.id, self.name, self._ms(), answer.artifact, kept))
        else:
            self._finished(answer.status)
        if isinstance(answer.artifact, chart_tool.Chart):
            self.emit(_chart_shown(self.id, answer.artifact))
        return answer.model_copy(update={"id": f"tool-{self.id}-{time.time_ns():x}"})

    def failed(self, error: Exception) -> ToolMessage:
        code, told = _told(error, self.name)
        details = _details(error)
        self._finished("error", error=told, **details)
        content = compact_json({"error": {"class": code, **details, "message": told}})
        message_id = f"tool-{self.id}-{time.time_ns():x}"
        return ToolMessage(content, tool_call_id=self.id, name=self.name, status="error", id=message_id, artifact=error)

    def _finished(self, status: str, **more: Any) -> None:
        kind = {"type": "query_finished", "sql": self._sql()} if self.is_query else {"type": "tool_finished"}
        self.emit({**kind, "call_id": self.id, "name": self.name, "status": status, "ms": self._ms(), **more})

    def _sql(self) -> str:
        return str(self.call["args"].get("sql", ""))

    def _ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)


def _told(error: Exception, name: str) -> tuple[str, str]:
    """Return a failure's class and what the model is told."""
    if isinstance(error, LongtableError):
        return error.code, str(error)
    if isinstance(error, ValidationError):
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())
        return BadArgumentsError.code, f"the arguments of {name} do not fit: {faults}"
    return "tool_failed", f"{name} failed: {type(error).__name__}: {' '.join(str(error).split())[:500]}"


def _details(error: Exception) -> dict[str, Any]:
    """Return what is wrong with a query, where, and what was probably meant, as far as each is known."""
    if not isinstance(error, DatabaseError):
        return {}
    details = {"problem": error.problem, "line": error.line, "column": error.column, "nearest": list(error.nearest)}
    return {name: value for name, value in details.items() if value}


def _query_finished(call_id: str, name: str, ms: int, result: QueryResult, kept: Kept) -> QueryFinished:
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


def _calls(state: State) -> list[ToolCall]:
    answer = open_calls(thread_of(state).messages)
    return all_calls(answer) if isinstance(answer, AIMessage) else []
