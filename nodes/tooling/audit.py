"""Keep a record of every query that a model asks for: the SQL as asked, the SQL that ran, the
columns that it read, and how it ended. The records are in the threads' store.

There is one entry for each call. Its key is made of the id of the call's message and the call's
place in the message. If a turn is resumed or replayed, the entry is written anew, and counts the
runs. An entry is written before the query runs, so that a query whose process is killed also leaves
a trace.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Item, Op, PutOp

from longtable.base.concurrency import Execution, in_thread
from longtable.base.context import Context
from longtable.base.errors import (
    LongtableError,
    QueryCancelledError,
    QueryRefusedError,
    QueryTimeoutError,
    WorkerLostError,
)
from longtable.base.events import AuditFailed
from longtable.base.stored import thread_namespace
from longtable.memory.messages.marks import mark_of
from longtable.memory.messages.rounds import all_calls
from longtable.memory.voices import VOICE
from longtable.nodes.arriving.input_checks import storable
from longtable.nodes.state import Now
from longtable.nodes.tooling.tool_jobs import (
    Job,
    QueryRejectedError,
    RepairsUsedUpError,
    answer_json,
)
from longtable.store.records.retired import DAMAGED
from longtable.tools.check_tool import CHECK
from longtable.tools.database import QueryResult
from longtable.tools.several.databases import ARGUMENT
from longtable.tools.tool_answers import KIND

if TYPE_CHECKING:
    from longtable.tools.sql.verdict import Verdict as Checked

MOST_SQL = 50_000
"""Most characters of SQL that an entry keeps. The wall refuses longer queries anyway."""
MOST_COLUMNS = 500
MOST_NAME = 64
"""Most characters of the name of a database, which may be a model's invention."""

Verdict = Literal["running", "run", "refused", "failed", "cancelled", "waiting", "rejected"]
Checking = Callable[[str, str], "Checked | None"]
"""Function that returns the wall's verdict on a query of a database, with the columns that the
query reads. It is `Databases.check`.
"""

_log = logging.getLogger("longtable.audit")


@dataclass(frozen=True)
class AuditEntry:
    """One query of a model.

    `asked` is the SQL that the model asked for. `edited` is the SQL with which a person replaced
    it, "" if nobody did. `ran` is the SQL that the engine was sent, "" if none was sent.

    `verdict`: how the query ended.

    - "run": it succeeded.
    - "refused": the wall refused it; `rule` names the wall's rule.
    - "failed": it failed; `rule` is the error's code.
    - "cancelled": the turn was cancelled.
    - "waiting": it waits for a person's decision.
    - "rejected": a person rejected it, or no repair was left; `rule` is the error's code.
    - "running": it has not ended, or its process died.

    `columns` have the form "table.column". `runs` is above 1 if a resumed or replayed turn ran the
    query again. `time` is the time of the first run. `voice` is the id of the team's persona that
    asked, "" without a team. `database` is the name of the database that was asked, "" if the graph
    had only one.
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
    voice: str = ""
    database: str = ""

    @property
    def sent(self) -> str:
        """Return the SQL that was to run: `edited`, or else `asked`."""
        return self.edited or self.asked

    def as_json(self) -> dict[str, Any]:
        """Return the entry as plain JSON that any store accepts."""
        plain = {**asdict(self), "tables": list(self.tables), "columns": list(self.columns)}
        if not self.database:
            del plain["database"]
        return {name: _without_nul(value) for name, value in storable(plain).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AuditEntry":
        """Read an entry that `as_json` wrote. Fields that only other versions know are ignored."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(
            **{
                **known,
                "tables": tuple(data.get("tables") or ()),
                "columns": tuple(data.get("columns") or ()),
            }
        )


@dataclass(frozen=True)
class Audit:
    """The audit of a graph's queries. `log` opens the log of one step."""

    clock: Callable[[], datetime]
    check: Checking | None = None

    def log(
        self,
        jobs: Sequence[Job],
        tools: Mapping[str, BaseTool],
        now: Now,
    ) -> "Log":
        """Return the log of the calls of one step. Use it as `async with log.around(how)`."""
        message = next(
            (each for each in reversed(now.thread.messages) if isinstance(each, AIMessage)),
            None,
        )
        thread_id = now.thread_id
        entries: dict[int, AuditEntry] = {}
        if now.runtime.store is not None and thread_id and message is not None:
            logged_at = self.clock().isoformat(timespec="milliseconds")
            turn = now.turn.get("number", 0)
            # Its place in the message: a later step of the same answer may see fewer of its calls.
            places = {
                call["id"]: place for place, call in reversed([*enumerate(all_calls(message))])
            }
            for job in jobs:
                if (sql := _sql(job.call, tools)) is not None:
                    key = f"{message.id}:{places.get(job.call['id'], 0)}"
                    edited = (job.edited or "")[:MOST_SQL]
                    voice = str(mark_of(message, VOICE) or "")
                    entries[id(job.call)] = AuditEntry(
                        key,
                        logged_at,
                        turn,
                        job.call["name"],
                        "running",
                        sql[:MOST_SQL],
                        edited=edited,
                        voice=voice,
                        database=str(job.to_run["args"].get(ARGUMENT) or "")[:MOST_NAME],
                    )
        return Log(entries, thread_namespace("audit", thread_id or ""), self.check, now.runtime)


@dataclass
class Log:
    """The entries for the calls of one step. If the store fails, entries are lost, but the turn
    goes on; an event and a log line report the failure.
    """

    entries: dict[int, AuditEntry]
    """The entries, by the Python `id()` of their calls."""
    namespace: tuple[str, ...]
    check: Checking | None
    runtime: Runtime[Context]
    answers: dict[int, tuple[ToolMessage, int]] = field(default_factory=dict)
    """The answers, by the Python `id()` of their calls, each with the milliseconds since the step
    began.
    """
    started: float = field(default_factory=time.perf_counter)
    failed: bool = False

    @asynccontextmanager
    async def around(self, how: Execution) -> AsyncIterator[None]:
        """Write the entries when the block begins, and complete them when it ends in any way. Even
        a cancelled block waits until the store has written them.
        """
        await how.call(self._begin, partial(in_thread, self._begin))
        end = self._end
        try:
            yield
        except BaseException as error:
            end = partial(self._end, error)
            raise
        finally:
            await how.call(end, partial(in_thread, end))

    def answer(self, call: ToolCall, message: ToolMessage) -> ToolMessage:
        """Note how a call ended, and return its answer. The answer's artifact must be the result,
        or the error of the tool.
        """
        self.answers[id(call)] = message, self._ms()
        return message

    def wait(self) -> None:
        """Write entries that say that the calls wait for a person's decision."""
        self.entries = {
            call: replace(entry, verdict="waiting") for call, entry in self.entries.items()
        }
        self._write()

    def _begin(self) -> None:
        items = self._batch([GetOp(self.namespace, entry.key) for entry in self.entries.values()])
        for call, item in zip(self.entries, items, strict=False):
            if isinstance(item, Item) and DAMAGED not in item.value:
                before = AuditEntry.from_json(item.value)
                runs = before.runs + (before.verdict not in ("waiting", "refused"))
                self.entries[call] = replace(self.entries[call], time=before.time, runs=runs)
        self._write()

    def _end(self, error: BaseException | None = None) -> None:
        for call, entry in list(self.entries.items()):
            if call in self.answers:
                self.entries[call] = _closed(entry, *self.answers[call], self.check)
                more = enumerate(getattr(self.answers[call][0].artifact, "queries", [])[1:], 1)
                self.entries |= {
                    id(each): _checking(self.entries[call], each, place) for place, each in more
                }
            elif error is None or isinstance(error, GraphBubbleUp):
                # It runs in a later step, or after an answer.
                self.entries[call] = replace(entry, verdict="waiting")
            else:
                self.entries[call] = _with_reads(
                    replace(entry, verdict="cancelled", ms=self._ms()), entry.sent, self.check
                )
        self._write()

    def _ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)

    def _write(self) -> None:
        self._batch(
            [
                PutOp(self.namespace, entry.key, entry.as_json(), False)
                for entry in self.entries.values()
            ]
        )

    def _batch(self, ops: list[Op]) -> Sequence[Any]:
        try:
            return self.runtime.store.batch(ops) if ops and self.runtime.store is not None else ()
        except Exception as error:  # whatever a store raises: the person's turn goes on
            _log.error("the audit of thread %s was not written: %s", self.namespace[-1], error)
            if not self.failed:
                self.failed = True
                self.runtime.stream_writer(
                    AuditFailed(
                        type="audit_failed", calls=len(self.entries), failure=type(error).__name__
                    )
                )
            return ()


def _sql(call: ToolCall, tools: Mapping[str, BaseTool]) -> str | None:
    """Return the SQL that a tool call asks to run, None if it runs no query. For a check of a
    stored result, return the handle of the result.
    """
    tool = tools.get(call["name"])
    sql = call["args"].get("sql")
    kind = (tool.metadata or {}).get("kind") if tool else None
    if kind in ("query", CHECK):  # a check may have the handle of a result instead
        return (
            sql
            if isinstance(sql, str) and (sql or kind != CHECK)
            else str(call["args"].get("result", ""))
        )
    return sql if kind == KIND and isinstance(sql, str) and sql.strip() else None


def _closed(entry: AuditEntry, answer: ToolMessage, ms: int, check: Checking | None) -> AuditEntry:
    # The first of a check's.
    error = answer.artifact
    result = next(iter(getattr(answer.artifact, "queries", [])), answer.artifact)
    if isinstance(error, QueryRefusedError):
        return replace(entry, verdict="refused", rule=error.rule, ms=ms)
    if isinstance(error, QueryRejectedError | RepairsUsedUpError):
        return replace(entry, verdict="rejected", rule=error.code, ms=ms)
    if answer.status == "error":
        verdict: Verdict = "cancelled" if isinstance(error, QueryCancelledError) else "failed"
        rule = error.code if isinstance(error, LongtableError) else type(error).__name__
        # A text that cost a worker is not parsed again: it may cost the next one, too.
        if isinstance(error, WorkerLostError) or (
            isinstance(error, QueryTimeoutError) and error.killed
        ):
            check = None
        return _with_reads(replace(entry, verdict=verdict, rule=rule, ms=ms), entry.sent, check)
    fields = answer_json(answer)
    ran = str(fields.get("sql") or "")[:MOST_SQL]
    total = fields.get("total", fields.get("row_count"))
    rows = total if isinstance(total, int) else None
    entry = replace(
        entry, verdict="run", ms=ms, handle=str(fields.get("handle") or ""), ran=ran, rows=rows
    )
    if isinstance(result, QueryResult):
        entry = replace(entry, database=result.database)
        return _reading(entry, result.tables, result.reads[len(result.tables) :])
    return replace(entry, tables=tuple(map(str, fields.get("handles") or ())))


def _checking(entry: AuditEntry, ran: QueryResult, place: int) -> AuditEntry:
    """Return the entry for a further query that a check ran. `entry`: the entry of the check's
    call. `place`: the number of the query within the check.
    """
    fields: dict[str, Any] = {
        "key": f"{entry.key}.{place}",
        "asked": ran.sql,
        "ran": ran.sql,
        "edited": "",
        "rows": ran.row_count,
        "ms": ran.ms,
    }
    return _reading(replace(entry, **fields), ran.tables, ran.reads[len(ran.tables) :])


def _with_reads(entry: AuditEntry, sql: str, check: Checking | None) -> AuditEntry:
    """Return the entry with the SQL, tables and columns of a query that did not finish, as far as
    the wall can tell them.
    """
    if check is None or entry.tool != "run_sql":
        return entry
    try:
        verdict = check(sql, entry.database)
    except Exception as error:
        # A database that is gone has no catalogue: the entry stands without it.
        _log.warning("what a query read is unknown: %s", error)
        return entry
    return (
        _reading(replace(entry, ran=verdict.shown_sql[:MOST_SQL]), verdict.tables, verdict.columns)
        if verdict is not None and verdict.allowed
        else entry
    )


def _reading(entry: AuditEntry, tables: tuple[str, ...], columns: tuple[str, ...]) -> AuditEntry:
    return replace(
        entry,
        tables=tables,
        columns=columns if len(columns) <= MOST_COLUMNS else (*columns[:MOST_COLUMNS], "…"),
    )


def _without_nul(value: Any) -> Any:
    """Return a value without NUL characters, which PostgreSQL does not accept in JSON."""
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    return [_without_nul(item) for item in value] if isinstance(value, list) else value
