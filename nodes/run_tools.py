"""Run the tool calls of the newest answer, in parallel. If a tool fails, the model gets the error
as the tool's answer, and the turn goes on.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import StreamWriter

from longtable.base.concurrency import Execution, complete, in_thread
from longtable.base.events import (
    ApprovalRequested,
)
from longtable.memory.messages.marks import PRIVATE, mark_of, turn_number
from longtable.memory.pins.pin_changes import PinChanges
from longtable.memory.pins.pins import said_by_user
from longtable.nodes.approve import Gate, request_of
from longtable.nodes.arriving.stamps import stamp
from longtable.nodes.estimate import CallPlans
from longtable.nodes.route import unanswered
from longtable.nodes.state import (
    Now,
    PendingCall,
    Update,
    pin_changes,
    with_last,
    without_key,
)
from longtable.nodes.team.team import Team
from longtable.nodes.team.turn_order import scene_of
from longtable.nodes.telemetry import span
from longtable.nodes.tooling.audit import Audit, Log
from longtable.nodes.tooling.privacy import is_private, without_cells
from longtable.nodes.tooling.recall import Indexes, Originals
from longtable.nodes.tooling.tool_call import CallReport, ToolInputs, Verify, tool_kind
from longtable.nodes.tooling.tool_jobs import (
    Job,
    StoredAnswer,
    Work,
    store_result,
    work_of,
)
from longtable.tools.check_tool import CHECK
from longtable.tools.engines.base import QueryResult
from longtable.tools.fetch import ThreadResults
from longtable.tools.pin_tools import PIN_NAMES
from longtable.tools.several.databases import Databases
from longtable.tools.several.several_tools import TOOL_NAMES
from longtable.tools.tool_answers import cancellable

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultStore

MAX_PARALLEL = 8

Result = TypeVar("Result")


@dataclass(frozen=True)
class RunTools:
    """The node. Whole results are sent to the person by event and stored in `results`. The thread
    keeps only the part of a result that the model is shown.
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
    verify: Verify | None = None

    async def __call__(self, now: Now, how: Execution) -> Update:
        turn = now.turn
        voice = turn.get("voice", "")
        names = self.names_of.get(voice, ()) if voice else self.tools
        tools = {name: tool for name, tool in self.tools.items() if name in names}
        gated = self._gated(now, tools)
        if self.gate and gated:
            mode = now.context.approve_sql
            check = partial(self.gate.pending, gated, mode=mode, language=now.language)
            pending = await how.call(check, partial(cancellable, check))
            if pending:
                ask = partial(self._asked, now, tools, gated, pending)
                return await how.call(ask, partial(in_thread, ask))
        queries = self._query_names.intersection(tools)
        objection = partial(self._objection, now) if voice else None
        place = partial(_placed, self.gate.databases) if self.gate else None
        repairs = now.context.max_repairs
        work = work_of(now, queries, repairs=repairs, objection=objection, place=place)
        log = self.audit.log(work.jobs, tools, now)
        inputs = self._inputs(now, tools, log)
        async with log.around(how):
            while jobs := work.next():
                emit = now.runtime.stream_writer
                runs = [self._run(job, emit, inputs, how, alone=work.alone) for job in jobs]
                if work.alone:
                    # In the node's own thread: the answer to its interrupt is for it and no other.
                    work.done([await runs[0]])
                    break
                work.done(await how.call(partial(_in_pool, runs), partial(asyncio.gather, *runs)))
        update = self._update(work, now)
        board = inputs.board
        if board.made or board.ends:
            calling = _calling(now.thread.messages)
            update["edits"], event = pin_changes(board.made, board.ends, calling)
            now.runtime.stream_writer(event)
        return update

    @cached_property
    def _query_names(self) -> frozenset[str]:
        return frozenset(name for name, tool in self.tools.items() if tool_kind(tool) == "query")

    def _gated(self, now: Now, tools: Mapping[str, BaseTool]) -> list[ToolCall]:
        """Return the calls that may need a person's approval. The list is empty if the turn already
        has a record of approval.
        """
        if "approval" in now.turn or now.context.approve_sql == "never":
            return []
        return [
            call
            for call in unanswered(now.thread.messages)
            if tool_kind(tools.get(call["name"])) in ("query", CHECK)
        ]

    def _asked(
        self,
        now: Now,
        tools: Mapping[str, BaseTool],
        calls: Sequence[ToolCall],
        pending: Sequence[PendingCall],
    ) -> Update:
        """Note the calls that wait for approval in the audit, send the event, and return the update
        after which a person is asked.
        """
        asked = self._with_name(pending, now.turn.get("voice", ""))
        ids = {each["id"] for each in asked}
        waiting = [call for call in calls if call["id"] in ids]
        self.audit.log([Job(call) for call in waiting], tools, now).wait()
        request = request_of(asked, waiting)
        now.runtime.stream_writer(ApprovalRequested(type="approval_requested", **request))
        return {"turn": {**now.turn, "approval": {"asked": asked}}}

    def _inputs(self, now: Now, tools: Mapping[str, BaseTool], log: Log) -> ToolInputs:
        """Return the inputs that tools are given besides the model's arguments."""
        messages = now.thread.messages
        results: ThreadResults | None = None
        if self.results is not None and now.thread_id:
            voice = now.turn.get("voice", "")
            own = _is_voices_own(messages)
            results = ThreadResults(self.results, now.thread_id, voice=voice, private=own)
        store = now.runtime.store
        originals = Originals(self.plans.of(now), store, now.thread_id, self.indexes)
        changed = _pin_calls(messages, now.turn.get("number", 0))
        board = PinChanges(now.thread.pins, said_by_user(messages), changed)
        return ToolInputs(tools, originals, results, log, board)

    def _with_name(self, pending: Sequence[PendingCall], voice: str) -> list[PendingCall]:
        """Return the calls that wait for approval. With a team, their descriptions begin with the
        name of the voice that made them.
        """
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
        """Run a job and return the tool's answer. Return None if the tool itself asks a person a
        question: it is later run again, alone, and asks then.
        """
        report = CallReport(job, inputs.tools, emit, self.verify)
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


def _placed(databases: Databases, call: ToolCall, *, decided: bool) -> dict[str, Any] | None:
    """Return the arguments with which a call asks its database, None if they are its own. Raises
    `UnknownDatabaseError` if the database is not there.
    """
    if call["name"] not in TOOL_NAMES:
        return None
    args = databases.call_args(call["args"], decided=decided)
    return None if args == call["args"] else args


def _is_voices_own(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the newest tool calls are private to the voice that made them."""
    calling = _calling(messages)
    return calling is not None and bool(mark_of(calling, PRIVATE))


def _calling(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the message with the newest tool calls."""
    return next((message for message in reversed(messages) if message.type == "ai"), None)


def _pin_calls(messages: Sequence[BaseMessage], turn: int) -> int:
    """Return how many tool calls have changed pins in this turn."""
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


# -- cells of the database that are kept from every model: `Context.privacy = "types"` -------------
#
# What a model is not shown cannot reach a later call either: ledger, summaries and recall are made
# of these same messages. Lists of what may stay, not of what must go: a field that a tool adds
# later is withheld until it is listed.
