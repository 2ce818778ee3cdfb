"""Report one tool call: send its events, and make its answer to the model."""

import difflib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import StreamWriter
from pydantic import ValidationError

from longtable.base.errors import DatabaseError, LongtableError
from longtable.base.events import ChartShown, QueryFinished, QueryStarted, ToolStarted, Verified
from longtable.base.redaction import redacted
from longtable.memory.counting.tokens import compact_json
from longtable.memory.messages.call_reports import REPORT, ToolReport
from longtable.memory.messages.marks import RECALLED, TABLES, VERIFIED, marked
from longtable.memory.messages.rounds import DESCRIBED, LISTING, MALFORMED
from longtable.memory.pins.pin_changes import PinChanges
from longtable.nodes.tooling.audit import Log
from longtable.nodes.tooling.recall import Originals, recall_event
from longtable.nodes.tooling.tool_jobs import EDITED, Job, StoredAnswer
from longtable.tools.cells import clean, clip, json_rows
from longtable.tools.charts import chart_tool
from longtable.tools.check_tool import CHECK
from longtable.tools.database import QueryResult
from longtable.tools.fetch import ThreadResults
from longtable.tools.memory_tools import answered
from longtable.tools.pin_tools import PIN
from longtable.tools.previews import with_note
from longtable.tools.several.databases import ARGUMENT
from longtable.tools.tool_answers import KIND, Described

MOST_ERROR_CHARS = 4_000
"""Most characters of an error's text that the model is shown."""


@dataclass(frozen=True)
class ToolInputs:
    """The tools, and the inputs of calls besides the model's arguments.

    `originals`: messages for recall. `results`: stored results, None without a result store. `log`:
    the audit log. `board`: changes of pins.
    """

    tools: Mapping[str, BaseTool]
    originals: Originals
    results: ThreadResults | None
    log: Log
    board: PinChanges


Verify = Callable[[str, str], Verified | None]
"""Returns the verified query that some SQL of a database equals, None if none does. The database is
"" if there is only one.
"""


class UnknownToolError(LongtableError):
    """The model called a tool that does not exist."""


class BadArgumentsError(LongtableError):
    """The model's arguments do not fit the tool."""


class CallReport:
    """One tool call. It sends the call's events and makes the call's answer."""

    def __init__(
        self,
        job: Job,
        tools: Mapping[str, BaseTool],
        emit: StreamWriter,
        verify: Verify | None = None,
    ) -> None:
        call = job.to_run
        self.job = job
        self.call = call
        self.tools = tools
        self.emit = emit
        self.verify = verify
        self.id = call["id"] or ""
        self.name = call["name"]
        self.sql = str(call["args"].get("sql", ""))
        self.kind = tool_kind(tools.get(self.name))
        self.database = call_database(call["args"])
        self.started = time.perf_counter()
        if self.kind == "query":
            event = QueryStarted(
                type="query_started", call_id=self.id, name=self.name, sql=self.sql
            )
            if self.database:
                event["database"] = self.database
            emit(event)
        else:
            emit(
                ToolStarted(type="tool_started", call_id=self.id, name=self.name, args=call["args"])
            )

    @property
    def span(self) -> tuple[str, str, dict[str, Any]]:
        """Return the kind, name and fields of the call's span. The name is "unknown" if there is no
        such tool, because it is then free text of the model.
        """
        return (
            "query" if self.kind == "query" else "tool",
            self.name if self.name in self.tools else "unknown",
            {},
        )

    def checked(self) -> BaseTool:
        """Return the tool that is called. Raises a `LongtableError` if the call is wrong or may not
        run.
        """
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
        """Return the call with the arguments that the model does not see: stored results for tools
        that read them, originals for recall, and the changes of pins for the tools that make them.
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
        ms = self._ms()
        report = self._report(ms)
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
            event = _query_finished(self.id, self.name, ms, artifact, stored)
            verified = self._verified(artifact)
            if verified is not None:
                event["verified"] = report["verified"] = verified
                answer = marked(answer, **{VERIFIED: verified["query"]})
            if stored.failure:
                report["not_kept"] = stored.failure
            self.emit({**event, **self._decided})
        else:
            self._finished(answer.status, ms)
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
        answer = marked(answer, **{REPORT: dict(report)})
        return answer.model_copy(update={"id": f"tool-{self.id}-{time.time_ns():x}"})

    def failed(self, error: Exception) -> ToolMessage:
        code, text = _error_text(error, self.name)
        details = _details(error)
        ms = self._ms()
        self._finished("error", ms, error=text, **details)
        edited = {} if self.job.edited is None else {"edited": EDITED}
        content = compact_json({"error": {"class": code, **details, **edited, "message": text}})
        message_id = f"tool-{self.id}-{time.time_ns():x}"
        message = ToolMessage(
            content,
            tool_call_id=self.id,
            name=self.name,
            status="error",
            id=message_id,
            artifact=error,
        )
        return marked(message, **{REPORT: dict(self._report(ms))})

    def _verified(self, result: QueryResult) -> Verified | None:
        return self.verify(self.sql, result.database) if self.verify and self.sql else None

    def _report(self, ms: int) -> ToolReport:
        """Return what the thread keeps of the call besides its answer."""
        report = ToolReport(ms=ms)
        if self.kind == "query":
            report["query"] = True
        if self.job.edited is not None:
            report["sql"] = self.job.edited
        if self.database and call_database(self.job.call["args"]) != self.database:
            report["database"] = self.database
        if self.job.decision is not None:
            report["decision"] = self.job.decision["type"]
            report["decided_by"] = self.job.decision.get("by", "")
        return report

    @property
    def _decided(self) -> dict[str, Any]:
        """Return the fields of the call's last event that say what a person decided on it."""
        decision = self.job.decision
        if decision is None:
            return {}
        return {"decision": decision["type"], "decided_by": decision.get("by", "")}

    def _finished(self, status: Literal["success", "error"], ms: int, **more: Any) -> None:
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
                "ms": ms,
                **({"database": self.database} if self.database and self.kind == "query" else {}),
                **more,
                **self._decided,
            }
        )

    def _ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)


def call_database(args: Mapping[str, Any]) -> str:
    """Return the name of the database that a call's arguments name, "" if they name none."""
    name = args.get(ARGUMENT)
    return clip(clean(name)) if isinstance(name, str) else ""


def tool_kind(tool: BaseTool | None) -> object:
    return (tool.metadata or {}).get("kind") if tool else None


def _error_text(error: Exception, name: str) -> tuple[str, str]:
    """Return the code of an error, and its text for the model."""
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
    """Return the kind of a query's fault, its position and suggested names, as far as each is
    known. Empty for an error that does not come from the database.
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
        "database": error.database,
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
    if result.database:
        event["database"] = result.database
    if stored.handle:
        event["handle"] = stored.handle
    if stored.failure:
        event["not_kept"] = stored.failure
    return event
