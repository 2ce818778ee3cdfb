"""Write down every query of a model beside its thread: what was asked, what ran, what it read, how it ended.

One entry a call, under a key made of its message and place: a turn that is resumed or replayed writes the entry of its call anew
and counts the runs. It is opened before the query runs, so that one whose process is killed is not without a trace.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Item, Op, PutOp

from longtable.base.context import Context
from longtable.base.errors import LongtableError, QueryCancelledError, QueryRefusedError
from longtable.base.events import AuditFailed
from longtable.base.store_keys import thread_namespace
from longtable.base.twins import a_from
from longtable.memory.archive import DAMAGED
from longtable.memory.rounds import all_calls
from longtable.nodes.ingest import storable
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import State, thread_of, turn_of
from longtable.nodes.turns.tool_jobs import QueryRejectedError, RepairsUsedUpError, answer_json
from longtable.tools.database import QueryResult
from longtable.tools.result_tool import KIND

if TYPE_CHECKING:
    from longtable.tools.sql.verdict import Verdict as Checked

MOST_SQL = 50_000
"""Characters of SQL that are kept; the wall refuses longer texts."""
MOST_COLUMNS = 500

Verdict = Literal["running", "run", "refused", "failed", "cancelled", "waiting", "rejected"]
Checking = Callable[[str], "Checked"]
"""Returns what the wall says of a query, with what it reads: `Database.check`."""

_log = logging.getLogger("longtable.audit")


@dataclass(frozen=True)
class AuditEntry:
    """One query of a model. `asked` is its text, `ran` what the engine was sent, "" where that was nothing; `edited` is the text that
    a person put in its place.

    `verdict`: "run", "refused" (`rule` names the wall's rule), "failed" (`rule` is the error's code), "cancelled", "waiting"
    for a person's decision, "rejected" by it or for want of repairs (`rule`), or "running": it has not ended, or its
    process died. `columns` are "table.column". `runs` is above 1 where a resumed or replayed turn ran it again; `time` is
    that of the first.
    """

    key: str
    time: str
    turn: int
    tool: str
    verdict: Verdict
    asked: str
    ran: str = ""
    rule: str = ""
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: int | None = None
    ms: int | None = None
    handle: str = ""
    runs: int = 1
    edited: str = ""

    @property
    def sent(self) -> str:
        """Return the text that was to run."""
        return self.edited or self.asked

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON, fit for any store."""
        plain = {**asdict(self), "tables": list(self.tables), "columns": list(self.columns)}
        return {name: _fit(value) for name, value in plain.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AuditEntry":
        """Read what `as_json` wrote; what another version wrote besides is left out."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**{**known, "tables": tuple(data.get("tables") or ()), "columns": tuple(data.get("columns") or ())})


@dataclass(frozen=True)
class Audit:
    """What a graph's queries are written down with."""

    clock: Callable[[], datetime]
    check: Checking | None = None

    def log(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, BaseTool],
        state: State,
        runtime: Runtime[Context],
        *,
        edits: Mapping[int, str] | None = None,
    ) -> "Log":
        """Return the log of one step's calls, to be entered around them. `edits`: the SQL of a person, by the place of its call."""
        message = next((each for each in reversed(thread_of(state).messages) if isinstance(each, AIMessage)), None)
        thread_id = thread_id_of(runtime)
        entries: dict[int, AuditEntry] = {}
        if runtime.store is not None and thread_id and message is not None:
            now, turn = self.clock().isoformat(timespec="milliseconds"), turn_of(state).get("number", 0)
            entries = {
                place: AuditEntry(f"{message.id}:{_number(call, message)}", now, turn, call["name"], "running", sql[:MOST_SQL])
                for place, call in enumerate(calls)
                if (sql := _sql(call, tools)) is not None
            }
            for place, sql in (edits or {}).items():
                if place in entries:
                    entries[place] = replace(entries[place], edited=sql[:MOST_SQL])
        return Log(calls, entries, thread_namespace("audit", thread_id or ""), self.check, runtime)


class Log:
    """Around the calls of one step: opens their entries, is told how each ended, closes them, whatever happens between.

    A store that fails costs the entry and no answer: it is told by the event `audit_failed`, and logged.
    """

    def __init__(
        self,
        calls: Sequence[ToolCall],
        entries: dict[int, AuditEntry],
        namespace: tuple[str, ...],
        check: Checking | None,
        runtime: Runtime[Context],
    ) -> None:
        self._calls, self._entries, self._namespace, self._check, self._runtime = calls, entries, namespace, check, runtime
        self._ended: dict[int, tuple[ToolMessage, int]] = {}
        self._started = time.perf_counter()
        self._told = False

    def ended(self, call: ToolCall, answer: ToolMessage) -> ToolMessage:
        """Note how a call ended, and return its answer: its artifact is the result, or the error that it tells."""
        place = next(i for i, each in enumerate(self._calls) if each is call)
        self._ended[place] = answer, round((time.perf_counter() - self._started) * 1000)
        return answer

    def wait(self) -> None:
        """Write down that the calls wait for a person's decision."""
        self._entries = {place: replace(entry, verdict="waiting") for place, entry in self._entries.items()}
        self._batch(self._puts())

    await_ = a_from(wait)

    def __enter__(self) -> "Log":
        self._begin(self._batch(self._gets()))
        self._batch(self._puts())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end(kind)
        self._batch(self._puts())

    __aenter__ = a_from(__enter__)
    __aexit__ = a_from(__exit__)
    """Cancelled, it still ends: what ran is written all the same."""

    def _begin(self, found: Sequence[Any]) -> None:
        for place, item in zip(self._entries, found, strict=False):
            if isinstance(item, Item) and DAMAGED not in item.value:
                before = AuditEntry.from_json(item.value)
                runs = before.runs + (before.verdict not in ("waiting", "refused"))
                self._entries[place] = replace(self._entries[place], time=before.time, runs=runs)

    def _end(self, kind: type[BaseException] | None) -> None:
        for place, entry in self._entries.items():
            if place in self._ended:
                self._entries[place] = _closed(entry, *self._ended[place], self._check)
            else:
                waits = kind is None or issubclass(kind, GraphBubbleUp)  # one that is to run in a later step, or after an answer
                ms = round((time.perf_counter() - self._started) * 1000)
                open_ended = replace(entry, verdict="waiting") if waits else replace(entry, verdict="cancelled", ms=ms)
                self._entries[place] = open_ended if waits else _with_reads(open_ended, entry.sent, self._check)

    def _gets(self) -> list[Op]:
        return [GetOp(self._namespace, entry.key) for entry in self._entries.values()]

    def _puts(self) -> list[Op]:
        return [PutOp(self._namespace, entry.key, entry.as_json(), False) for entry in self._entries.values()]

    def _batch(self, ops: list[Op]) -> Sequence[Any]:
        try:
            return self._runtime.store.batch(ops) if ops and self._runtime.store is not None else ()
        except Exception as error:  # whatever a store raises: the person's turn goes on
            return self._failed(error)

    def _failed(self, error: Exception) -> Sequence[Any]:
        _log.error("the audit of thread %s was not written: %s", self._namespace[-1], error)
        if not self._told:
            self._told = True
            self._runtime.stream_writer(AuditFailed(type="audit_failed", calls=len(self._entries), failure=type(error).__name__))
        return ()


def _number(call: ToolCall, message: AIMessage) -> int:
    """Return a call's place in its message: a later step of the same answer may see fewer of its calls."""
    return next((place for place, each in enumerate(all_calls(message)) if each["id"] == call["id"]), 0)


def _sql(call: ToolCall, tools: Mapping[str, BaseTool]) -> str | None:
    """Return the SQL that a call asks for, None for a call that asks for none."""
    tool, sql = tools.get(call["name"]), call["args"].get("sql")
    kind = (tool.metadata or {}).get("kind") if tool else None
    if kind == "query":
        return sql if isinstance(sql, str) else ""
    return sql if kind == KIND and isinstance(sql, str) and sql.strip() else None


def _closed(entry: AuditEntry, answer: ToolMessage, ms: int, check: Checking | None) -> AuditEntry:
    error = result = answer.artifact
    if isinstance(error, QueryRefusedError):
        return replace(entry, verdict="refused", rule=error.rule, ms=ms)
    if isinstance(error, QueryRejectedError | RepairsUsedUpError):
        return replace(entry, verdict="rejected", rule=error.code, ms=ms)
    if answer.status == "error":
        verdict: Verdict = "cancelled" if isinstance(error, QueryCancelledError) else "failed"
        rule = error.code if isinstance(error, LongtableError) else type(error).__name__
        return _with_reads(replace(entry, verdict=verdict, rule=rule, ms=ms), entry.sent, check)
    told = answer_json(answer)
    ran, total = str(told.get("sql") or "")[:MOST_SQL], told.get("total", told.get("row_count"))
    rows = total if isinstance(total, int) else None
    entry = replace(entry, verdict="run", ms=ms, handle=str(told.get("handle") or ""), ran=ran, rows=rows)
    if isinstance(result, QueryResult):
        return _reading(entry, result.tables, result.reads[len(result.tables) :])
    return replace(entry, tables=tuple(map(str, told.get("handles") or ())))


def _with_reads(entry: AuditEntry, sql: str, check: Checking | None) -> AuditEntry:
    """Return the entry with what a query that failed would have read."""
    if check is None or entry.tool != "run_sql":
        return entry
    try:
        found = check(sql)
    except Exception as error:  # a database that is gone has no catalogue: the entry stands without it
        _log.warning("what a query read is unknown: %s", error)
        return entry
    return _reading(replace(entry, ran=found.shown_sql[:MOST_SQL]), found.tables, found.columns) if found.allowed else entry


def _reading(entry: AuditEntry, tables: tuple[str, ...], columns: tuple[str, ...]) -> AuditEntry:
    return replace(entry, tables=tables, columns=columns if len(columns) <= MOST_COLUMNS else (*columns[:MOST_COLUMNS], "…"))


def _fit(value: Any) -> Any:
    """Return a value as each store takes it: PostgreSQL's JSON has no NUL."""
    if isinstance(value, str):
        return str(storable(value)).replace("\x00", "\ufffd")
    return [_fit(item) for item in value] if isinstance(value, list) else value
