"""Run the calls of the newest answer, in parallel; a failing tool is an answer to the model, not a
crash.
"""

import asyncio
import contextvars
import difflib
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.messages import BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import StreamWriter
from pydantic import ValidationError

from longtable.base.concurrency import Execution, complete, in_thread
from longtable.base.context import Context
from longtable.base.errors import DatabaseError, LongtableError
from longtable.base.events import (
    ApprovalRequested,
    ChartShown,
    QueryFinished,
    QueryStarted,
    ToolStarted,
)
from longtable.base.redaction import redacted
from longtable.memory.counting.tokens import compact_json
from longtable.memory.messages.marks import PRIVATE, RECALLED, TABLES, mark_of, marked, turn_number
from longtable.memory.messages.rounds import DESCRIBED, LISTING, MALFORMED
from longtable.memory.pins.pins import PinChanges, said_by_user
from longtable.nodes.approve import Gate, request_of
from longtable.nodes.estimate import CallPlans
from longtable.nodes.ingest import stamp
from longtable.nodes.route import unanswered
from longtable.nodes.state import (
    Now,
    PendingCall,
    Turn,
    Update,
    pin_changes,
    with_last,
    without_key,
)
from longtable.nodes.team.team import Team, scene_of
from longtable.nodes.telemetry import span
from longtable.nodes.tooling.audit import Audit, Log
from longtable.nodes.tooling.recall import Indexes, Originals, recall_event
from longtable.nodes.tooling.tool_jobs import (
    EDITED,
    Job,
    RepairsUsedUpError,
    StoredAnswer,
    Work,
    answer_json,
    store_result,
    work_of,
)
from longtable.tools.cells import clean, clip, json_rows, without_labels
from longtable.tools.charts import chart_tool
from longtable.tools.check_tool import CHECK
from longtable.tools.database import QueryResult
from longtable.tools.fetch import ThreadResults
from longtable.tools.memory_tools import answered
from longtable.tools.pin_tools import PIN, PIN_NAMES
from longtable.tools.previews import with_note
from longtable.tools.tool_answers import KIND, Described, cancellable

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultStore

MAX_PARALLEL = 8
MOST_ERROR_CHARS = 4_000
"""Characters of an error."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class RunTools:
    """The node. Full results go to the person by event and into `results`; the thread keeps what
    the model is shown.
    """

    tools: Mapping[str, BaseTool]
    clock: Callable[[], datetime]
    indexes: Indexes
    audit: Audit
    plans: CallPlans
    results: "ResultStore | None" = None
    gate: Gate | None = None
    names_of: Mapping[str, Set[str]] = field(default_factory=dict)
    """Names of the tools that each persona of a team may call."""
    team: Team | None = None

    async def __call__(self, now: Now, how: Execution) -> Update:
        context = now.context
        runtime = now.runtime
        thread = now.thread
        messages = thread.messages
        turn = now.turn
        names = self.names_of.get(turn["voice"], ()) if turn.get("voice") else self.tools
        tools = {name: tool for name, tool in self.tools.items() if name in names}
        queries = frozenset(name for name, tool in tools.items() if _kind(tool) == "query")
        asking = [
            call
            for call in unanswered(messages)
            if _kind(tools.get(call["name"])) in ("query", CHECK)
        ]
        if self.gate and asking and "approval" not in turn and context.approve_sql != "never":
            check = partial(
                self.gate.pending, asking, mode=context.approve_sql, language=now.language
            )
            pending = await how.call(check, partial(cancellable, check))
            if pending:
                pending = self._with_name(pending, turn.get("voice", ""))
                calls = [call for call in asking if call["id"] in {each["id"] for each in pending}]
                log = self.audit.log([Job(call) for call in calls], tools, now)
                await how.call(log.wait, partial(in_thread, log.wait))
                runtime.stream_writer(
                    ApprovalRequested(type="approval_requested", **request_of(pending, calls))
                )
                return {"turn": {**turn, "approval": {"asked": pending}}}
        objection = partial(self._objection, now) if turn.get("voice") else None
        work = work_of(now, queries, repairs=context.max_repairs, objection=objection)
        log = self.audit.log(work.jobs, tools, now)
        results = (
            ThreadResults(
                self.results,
                now.thread_id,
                voice=turn.get("voice", ""),
                private=_is_voices_own(messages),
            )
            if self.results is not None and now.thread_id
            else None
        )
        board = PinChanges(
            thread.pins, said_by_user(thread.messages), _pin_calls(messages, turn.get("number", 0))
        )
        inputs = ToolInputs(
            tools,
            Originals(self.plans.of(now), runtime.store, now.thread_id, self.indexes),
            results,
            log,
            board,
        )
        async with log.around(how):
            while jobs := work.next():
                runs = [
                    self._run(job, runtime.stream_writer, inputs, how, alone=work.alone)
                    for job in jobs
                ]
                if work.alone:
                    # In the node's own thread: the answer to its interrupt is for it and no other.
                    work.done([await runs[0]])
                    break
                work.done(await how.call(partial(_in_pool, runs), partial(asyncio.gather, *runs)))
        update = self._update(work, now)
        if board.made or board.ends:
            update["edits"], event = pin_changes(board.made, board.ends)
            runtime.stream_writer(event)
        return update

    def _with_name(self, pending: Sequence[PendingCall], voice: str) -> list[PendingCall]:
        """Return the calls that wait, their descriptions with the name of the voice that asks."""
        name = self.team.names.get(voice, "") if self.team else ""
        if not name:
            return [*pending]
        return [{**each, "description": f"{name}: {each['description']}"} for each in pending]

    def _objection(self, now: Now, call: ToolCall) -> str:
        """Return why the team's mode refuses a call, "" if it may run."""
        if self.team is None:
            return ""
        scene = scene_of(self.team, now.thread.messages, now.turn)
        return self.team.mode.objection(scene, now.turn["voice"], call["name"], call["args"])

    async def _run(
        self, job: Job, emit: StreamWriter, inputs: "ToolInputs", how: Execution, *, alone: bool
    ) -> ToolMessage | None:
        """Return the answer, None for a tool that waits for one itself: it is run again, alone, and
        then asks.
        """
        report = _Report(job, inputs.tools, emit)
        try:
            with span(*report.span) as fields:
                tool = report.checked()
                call = report.tool_call(inputs)
                answer = await how.call(partial(tool.invoke, call), partial(tool.ainvoke, call))
                if isinstance(artifact := getattr(answer, "artifact", None), QueryResult):
                    fields["rows"] = artifact.row_count
            stored = (
                await how.call(partial(store_result, answer, inputs.results))
                if inputs.results
                else StoredAnswer(answer)
            )
            message = report.done(stored)
        except GraphInterrupt:
            if alone:
                raise
            return None
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever a tool raises is an answer to the model
            message = report.failed(error)
        return inputs.log.answer(job.call, message)

    def _update(self, work: Work, now: Now) -> Update:
        before = now.turn
        time_now = self.clock().isoformat(timespec="seconds")
        answers = work.answers()
        if is_private(before, now.context):
            args = {job.call["id"]: job.to_run["args"] for job in work.jobs}
            answers = [without_cells(answer, args[answer.tool_call_id]) for answer in answers]
        marks = {PRIVATE: True} if _is_voices_own(now.thread.messages) else {}
        # No artifact in state: the person has the whole result already, the thread keeps plain
        # text.
        answers = [
            stamp(
                answer.model_copy(update={"artifact": None}),
                turn=before,
                time=time_now,
                marks=marks,
            )
            for answer in answers
        ]
        after = without_key(before, "approval", "one_by_one")
        if work.waiting > 1:
            after["one_by_one"] = True
        return {"messages": answers, "turn": with_last(after, answers)}


def _is_voices_own(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the newest calls are private to the voice that made them."""
    calling = next((message for message in reversed(messages) if message.type == "ai"), None)
    return calling is not None and bool(mark_of(calling, PRIVATE))


def _pin_calls(messages: Sequence[BaseMessage], turn: int) -> int:
    """Return how many calls of this turn changed pins."""
    newest = takewhile(lambda message: turn_number(message) == turn, reversed(messages))
    return sum(
        isinstance(message, ToolMessage)
        and message.name in PIN_NAMES
        and message.status == "success"
        for message in newest
    )


def _in_pool(work: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    with ThreadPoolExecutor(max_workers=min(MAX_PARALLEL, len(work))) as pool:
        # Each worker gets the run's context variables, so that a tool's own model calls work.
        jobs = [pool.submit(contextvars.copy_context().run, complete, one) for one in work]
        return [job.result() for job in jobs]


@dataclass(frozen=True)
class ToolInputs:
    """The tools, and what calls get besides their arguments: originals, results where a store keeps
    them, the audit log, pins.
    """

    tools: Mapping[str, BaseTool]
    originals: Originals
    results: ThreadResults | None
    log: Log
    board: PinChanges


class UnknownToolError(LongtableError):
    """The model called a tool that is not there."""


class BadArgumentsError(LongtableError):
    """The model's arguments do not fit the tool."""


class _Report:
    """One call: sends its events, and makes its answer."""

    def __init__(self, job: Job, tools: Mapping[str, BaseTool], emit: StreamWriter) -> None:
        call = job.to_run
        self.job = job
        self.call = call
        self.tools = tools
        self.emit = emit
        self.id = call["id"] or ""
        self.name = call["name"]
        self.sql = str(call["args"].get("sql", ""))
        self.kind = _kind(tools.get(self.name))
        self.started = time.perf_counter()
        if self.kind == "query":
            emit(QueryStarted(type="query_started", call_id=self.id, name=self.name, sql=self.sql))
        else:
            emit(
                ToolStarted(type="tool_started", call_id=self.id, name=self.name, args=call["args"])
            )

    @property
    def span(self) -> tuple[str, str, dict[str, Any]]:
        """Return the kind, name and fields of its span; a name that no tool has is the model's own
        words, and not repeated.
        """
        return (
            "query" if self.kind == "query" else "tool",
            self.name if self.name in self.tools else "unknown",
            {},
        )

    def checked(self) -> BaseTool:
        """Return the tool, or raise what is wrong with the call, or why it may not run."""
        if self.job.stopped is not None:
            raise self.job.stopped
        if self.name not in self.tools:
            near = difflib.get_close_matches(self.name, self.tools, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise UnknownToolError(
                f"there is no tool {self.name!r}{hint} The tools are:"
                f" {', '.join(sorted(self.tools)) or 'none'}"
            )
        if set(self.call["args"]) == {MALFORMED}:
            raise BadArgumentsError(
                f"the arguments of {self.name} are not valid JSON: send one JSON object"
            )
        return self.tools[self.name]

    def tool_call(self, inputs: ToolInputs) -> ToolCall:
        """Return the call with what the model does not see: originals for recall, pins for what
        changes them, results.
        """
        unseen: dict[str, Any] = (
            {"results": inputs.results} if self.kind in (KIND, CHECK, chart_tool.KIND) else {}
        )
        if self.kind == "recall":
            unseen["originals"] = inputs.originals
        elif self.kind == PIN:
            unseen["board"] = inputs.board
        return {**self.call, "args": {**self.call["args"], **unseen}, "type": "tool_call"}

    def done(self, stored: StoredAnswer) -> ToolMessage:
        answer = stored.answer
        artifact = stored.answer.artifact
        if self.job.edited is not None:
            answer = answer.model_copy(update={"content": with_note(answer.text, edited=EDITED)})
        if self.kind == "recall":
            answer = marked(answer, kind=RECALLED)
            self.emit(
                recall_event(
                    str(self.call["args"].get("query", "")), answered(answer.text), via="tool"
                )
            )
        if isinstance(artifact, QueryResult):
            answer = marked(answer, **{TABLES: list(artifact.tables)})
            self.emit(_query_finished(self.id, self.name, self._ms(), artifact, stored))
        else:
            self._finished(answer.status)
        if isinstance(artifact, Described):
            answer = marked(
                answer,
                **{DESCRIBED: dict(artifact.tables)},
                **({LISTING: True} if artifact.listing else {}),
            )
        if isinstance(artifact, chart_tool.Chart):
            notes = list(artifact.notes)
            self.emit(
                ChartShown(
                    type="chart",
                    call_id=self.id,
                    handle=artifact.handle,
                    spec=artifact.spec,
                    notes=notes,
                )
            )
        return answer.model_copy(update={"id": f"tool-{self.id}-{time.time_ns():x}"})

    def failed(self, error: Exception) -> ToolMessage:
        code, text = _error_text(error, self.name)
        details = _details(error)
        self._finished("error", error=text, **details)
        edited = {} if self.job.edited is None else {"edited": EDITED}
        content = compact_json({"error": {"class": code, **details, **edited, "message": text}})
        message_id = f"tool-{self.id}-{time.time_ns():x}"
        return ToolMessage(
            content,
            tool_call_id=self.id,
            name=self.name,
            status="error",
            id=message_id,
            artifact=error,
        )

    def _finished(self, status: Literal["success", "error"], **more: Any) -> None:
        kind = (
            {"type": "query_finished", "sql": self.sql}
            if self.kind == "query"
            else {"type": "tool_finished"}
        )
        self.emit(
            {
                **kind,
                "call_id": self.id,
                "name": self.name,
                "status": status,
                "ms": self._ms(),
                **more,
            }
        )

    def _ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)


def _kind(tool: BaseTool | None) -> object:
    return (tool.metadata or {}).get("kind") if tool else None


def _error_text(error: Exception, name: str) -> tuple[str, str]:
    """Return a failure's class, and its text for the model."""
    if isinstance(error, LongtableError):
        # An engine's words may quote a cell.
        return error.code, clip(clean(str(error)), MOST_ERROR_CHARS)
    if isinstance(error, ValidationError):
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
            for fault in error.errors()
        )
        return BadArgumentsError.code, f"the arguments of {name} do not fit: {faults}"
    return (
        "tool_failed",
        f"{name} failed: {type(error).__name__}: {redacted(' '.join(str(error).split()))[:500]}",
    )


def _details(error: Exception) -> dict[str, Any]:
    """Return what is wrong with a query, where, and what was probably meant, as far as each is
    known.
    """
    if not isinstance(error, DatabaseError):
        return {}
    nearest = [clip(clean(name)) for name in error.nearest]
    details = {
        "problem": error.problem,
        "rule": getattr(error, "rule", ""),
        "line": error.line,
        "column": error.column,
        "nearest": nearest,
    }
    return {name: value for name, value in details.items() if value}


def _query_finished(
    call_id: str, name: str, ms: int, result: QueryResult, stored: StoredAnswer
) -> QueryFinished:
    event = QueryFinished(
        type="query_finished",
        call_id=call_id,
        name=name,
        status="success",
        ms=ms,
        sql=result.sql,
        columns=list(result.columns),
        column_types=list(result.types),
        rows=json_rows(result.rows),
        row_count=result.row_count,
    )
    if stored.handle:
        event["handle"] = stored.handle
    if stored.failure:
        event["not_kept"] = stored.failure
    return event


# -- cells of the database that are kept from every model: `Context.privacy = "types"` -------------
#
# What a model is not shown cannot reach a later call either: ledger, summaries and recall are made
# of these same messages. Lists of what may stay, not of what must go: a field that a tool adds
# later is withheld until it is listed.

NOTE = "values are withheld by the user's privacy setting; the user sees every row"
HIDDEN = "the reason is withheld, for it may quote values"

_RESULT = (
    "row_count",
    "total",
    "page",
    "pages",
    "columns",
    "types",
    "column_count",
    "handle",
    "sql",
    "ms",
    "edited",
)
_SIZE = ("name", "kind", "rows", "rows_estimate", "rows_at_least", "statistics_from")
_LISTING = (
    "dialect",
    "page",
    "pages",
    "total",
    "more",
    "more_matches",
    "incomplete",
    "searched_columns",
)
_COLUMN = (
    *(
        "table",
        "name",
        "column",
        "type",
        "nullable",
        "primary_key",
        "references",
        "inferred_reference",
    ),
    *("masked", "distinct", "nulls", "match"),
)
_CHART = ("shown", "handle", "points", "spec")
_ERROR = (
    "class",
    "problem",
    "rule",
    "line",
    "column",
    "nearest",
    "message",
    "edited",
    "repairs_left",
    "final",
)
_NAMED = ("syntax", "unknown_name", "ambiguous", "refused", "too_slow", "too_big", "unavailable")
"""Problems whose messages are made of the SQL, the schema and the limits; others come from the
engine and may quote a cell.
"""


def is_private(turn: Turn, context: Context) -> bool:
    """Return whether cells are withheld in this turn: as its settings say, also where it is resumed
    under others.
    """
    return context.privacy == "types" or bool(turn.get("private"))


def without_cells(answer: ToolMessage, args: Mapping[str, Any]) -> ToolMessage:
    """Return a tool's answer without cells; `args` are the call's. A caller's own tool keeps its
    answer, unless it ran a query.
    """
    data = answer_json(answer)
    name = str(answer.name)
    if answer.status == "error":
        safe: dict[str, Any] = {"error": _error(data.get("error"), answer.artifact)}
    elif isinstance(answer.artifact, QueryResult) or name in ("run_sql", "fetch_result"):
        safe = {**_only(data, _RESULT), "shown": 0, "rows": [], "withheld": True, "note": NOTE}
    elif name in ("list_tables", "describe_tables", "find_columns"):
        tables = [
            {**_only(table, _SIZE), **_columns(table)} for table in _dicts(data.get("tables"))
        ]
        columns = (
            {"columns": [_only(each, _COLUMN) for each in _dicts(data["columns"])]}
            if "columns" in data
            else {}
        )
        safe = {
            **_only(data, _LISTING),
            "tables": tables,
            **columns,
            "withheld": True,
            "note": NOTE,
        }
    elif name == "find_values":
        safe = {
            **_only(data, _LISTING),
            "matches": _matches(data, args),
            "withheld": True,
            "note": NOTE,
        }
    elif name == "show_chart":
        safe = {**_only(data, _CHART), "withheld": True, "note": NOTE}
    else:
        return answer
    return answer.model_copy(update={"content": compact_json(safe)})


def _columns(table: Mapping[str, Any]) -> dict[str, Any]:
    columns = [
        each if isinstance(each, str) else _only(each, _COLUMN)
        for each in table.get("columns") or ()
        if isinstance(each, str | dict)
    ]
    return (
        {"columns": columns, "sample_rows": []} if "sample_rows" in table else {"columns": columns}
    )


def _matches(data: Mapping[str, Any], args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return where values stand, and how many; the value itself only where it is, word for word,
    what was asked for.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for match in _dicts(data.get("matches")):
        searched = match.get("text", args.get("text"))
        value = (
            searched if match.get("match") == "exact" and match.get("value") == searched else None
        )
        count = match.get("count")
        counts[
            match.get("text"), match.get("table"), match.get("column"), value, match.get("match")
        ] += count if isinstance(count, int) else 0
    return [
        {
            **({} if text is None else {"text": text}),
            "table": table,
            "column": column,
            **({} if value is None else {"value": value}),
            "count": count,
            "match": kind,
        }
        for (text, table, column, kind, value), count in counts.items()
    ]


def _error(detail: object, error: object) -> dict[str, Any]:
    known = _only(detail if isinstance(detail, dict) else {}, _ERROR)
    quotes = (
        isinstance(error, DatabaseError)
        and error.problem not in _NAMED
        and error.code == "query_failed"
    )
    if quotes or not isinstance(error, LongtableError):
        known.pop("nearest", None)
        known["message"] = f"{known.get('problem', 'it failed')}: {HIDDEN}"
    if isinstance(error, RepairsUsedUpError):  # the error it repeats was not withheld yet
        known["message"] = str(RepairsUsedUpError(repairs=error.repairs, last=HIDDEN))
    return known


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _only(data: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return these items; types without the values that an enum lists."""
    safe_fields = {name: data[name] for name in names if name in data}
    if isinstance(safe_fields.get("type"), str):
        safe_fields["type"] = without_labels(safe_fields["type"])
    if isinstance(safe_fields.get("types"), list):
        safe_fields["types"] = [without_labels(str(kind)) for kind in safe_fields["types"]]
    return safe_fields
