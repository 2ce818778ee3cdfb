"""Turn the tool calls of one answer into jobs: apply a person's decisions, limit the tries of
failing queries, and keep results.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from longtable.base.errors import (
    DatabaseUnavailableError,
    LongtableError,
    QueryCancelledError,
    UnknownDatabaseError,
)
from longtable.base.redaction import redacted
from longtable.memory.counting.tokens import compact_json
from longtable.memory.messages.marks import turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.nodes.route import unanswered
from longtable.nodes.state import Approval, Decision, Now
from longtable.tools.database import QueryResult
from longtable.tools.fetch import ThreadResults
from longtable.tools.previews import with_note


def answer_json(answer: ToolMessage) -> dict[str, Any]:
    """Return the JSON object of a tool's answer, empty if the answer is anything else."""
    try:
        data = json.loads(answer.text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


FINAL = (
    "No further try is allowed in this turn. Do not call this tool again; tell the user that the"
    " query could not be made to run, with this last error, and do not guess what it would have"
    " returned."
)


class RepairsUsedUpError(LongtableError):
    """The query was not run, because too many queries failed in this turn: no repair is left."""

    def __init__(self, *, repairs: int, last: str) -> None:
        tries = f"{repairs} repair{'' if repairs == 1 else 's'}"
        super().__init__(
            f"not run: the query failed, and so did {tries} of it. The last error was: {last}"
            f" {FINAL}"
        )
        self.repairs = repairs
        self.last = last


class CallRefusedError(LongtableError):
    """The team's mode refused the call, so it did not run. The message is the mode's text."""


class QueryRejectedError(LongtableError):
    """The query was not run, because a person did not approve it."""

    def __init__(self, reason: str) -> None:
        why = f"their reason: {reason}" if reason else "they gave no reason"
        super().__init__(
            f"not run: the user did not approve this query; {why}. Do not send it again unless the"
            " user asks for it"
        )
        self.reason = reason


NO_TRY = {
    RepairsUsedUpError.code,
    QueryRejectedError.code,
    DatabaseUnavailableError.code,
    QueryCancelledError.code,
}
"""Codes of errors that do not count as a failed try of a query."""


def failed_tries(
    messages: Sequence[BaseMessage], turn: int, queries: Collection[str]
) -> tuple[int, str]:
    """Return how many tries of queries failed in a turn, and the text of the newest error.

    `messages`: the transcript; the turn's messages are the newest. `queries`: names of the tools
    that run queries. The failures of the first answer with failing queries count as one, however
    many calls it made at the same time. Each later failure counts as one.
    """
    newest = list(
        takewhile(
            lambda each: each.type != "human" and (turn_number(each) or turn) == turn,
            reversed(messages),
        )
    )
    asked_by: dict[str, int] = {}
    failed: Counter[int] = Counter()
    last = ""
    for place, message in enumerate(reversed(newest)):
        if isinstance(message, AIMessage):
            asked_by.update({call["id"] or "": place for call in all_calls(message)})
        elif (
            isinstance(message, ToolMessage)
            and message.name in queries
            and (error := _error(message))
        ):
            failed[asked_by.get(message.tool_call_id, -1)] += 1
            last = str(error.get("message", ""))
    return (1 + failed.total() - failed[min(failed)] if failed else 0), last


def spent_tools(messages: Sequence[BaseMessage], turn: int) -> set[str]:
    """Return the names of the tools that may not be called again in a turn, because one of their
    answers said that no repair is left.
    """
    newest = takewhile(lambda each: turn_number(each) == turn, reversed(messages))
    failed = [
        message
        for message in newest
        if isinstance(message, ToolMessage) and message.status == "error"
    ]
    return {
        str(each.name)
        for each in failed
        if isinstance(error := answer_json(each).get("error"), dict)
        and error.get("repairs_left") == 0
    }


def _error(message: ToolMessage) -> Mapping[str, Any] | None:
    """Return the error in the answer of a failed query. Return None if the query did not fail, or
    if the error does not count as a failed try.
    """
    error = answer_json(message).get("error") if message.status == "error" else None
    return error if isinstance(error, dict) and error.get("class") not in NO_TRY else None


@dataclass(frozen=True)
class StoredAnswer:
    """A tool's answer after its result was stored, if it has one. `handle`: the handle of the whole
    result, "" if none was stored. `failure`: why the result could not be stored, otherwise "".
    """

    answer: ToolMessage
    handle: str = ""
    failure: str = ""


def store_result(answer: ToolMessage, results: ThreadResults | None) -> StoredAnswer:
    """Store the result of a query and add its handle to the answer. This blocks: call it from a
    worker thread.
    """
    if results is None or not isinstance(answer.artifact, QueryResult):
        return StoredAnswer(answer)
    try:
        handle = results.put(answer.artifact)
        return StoredAnswer(
            answer.model_copy(update={"content": with_note(answer.text, handle=handle)}), handle
        )
    except LongtableError as error:
        return StoredAnswer(answer, failure=str(error))
    except Exception as error:
        # A full disk, a value that Parquet has no form for: the rows are here all the same.
        return StoredAnswer(
            answer,
            failure=f"{type(error).__name__}: {redacted(' '.join(str(error).split()))[:200]}",
        )


EDITED = (
    "the user changed this query before it ran: what they sent is what ran, do not send your own"
    " again"
)


@dataclass(frozen=True)
class Job:
    """One tool call as the model made it. `stopped`: the error if the call may not run. `edited`:
    the SQL with which a person replaced the model's SQL, None if nobody did.
    """

    call: ToolCall
    stopped: LongtableError | None = None
    edited: str | None = None
    decision: Decision | None = None
    """What a person decided on the call, None if nobody was asked."""
    args: dict[str, Any] | None = None
    """The arguments that name the database as it is named now, None if the model's own do."""

    @property
    def to_run(self) -> ToolCall:
        """Return the call that is to run, with the person's SQL if there is any."""
        args = self.call["args"] if self.args is None else self.args
        if self.edited is not None:
            args = {**args, "sql": self.edited}
        return {**self.call, "args": args}


@dataclass
class Work:
    """Hand out the jobs of an answer and take their answers, so that no more queries fail in a turn
    than `repairs` allows.
    """

    jobs: list[Job]
    queries: AbstractSet[str]
    repairs: int
    messages: Sequence[BaseMessage]
    turn: int
    alone: bool = False
    """True if only one call may run in this step: there is only one, or several tools ask a person,
    and each must get its own answer.
    """
    _todo: list[Job] = field(init=False)
    _begun: list[Job] = field(default_factory=list)
    _answers: dict[str, ToolMessage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._todo = self.jobs[:1] if self.alone else list(self.jobs)

    def next(self) -> list[Job]:
        """Return the jobs to run now, at the same time. The list is empty if all jobs have run."""
        left, last = self._tries_left()
        free = [
            job
            for job in self._todo
            if left is None or job.stopped or job.call["name"] not in self.queries
        ]
        tries = [job for job in self._todo if job not in free]
        now = tries[:left]
        if left == 0:
            now = [
                Job(job.call, RepairsUsedUpError(repairs=self.repairs, last=last)) for job in tries
            ]
        order = {id(job.call): place for place, job in enumerate(self._todo)}
        self._todo = tries[len(now) :]
        self._begun = sorted([*free, *now], key=lambda job: order[id(job.call)])
        return self._begun

    def done(self, answers: Sequence[ToolMessage | None]) -> None:
        """Take the answers of the jobs that `next` returned last. An answer is None if the tool
        itself waits for a person's answer.
        """
        pairs = zip(self._begun, answers, strict=True)
        self._answers.update(
            {job.call["id"] or "": answer for job, answer in pairs if answer is not None}
        )

    @property
    def waiting(self) -> int:
        """Return how many calls have no answer yet, because their tools wait for a person."""
        return len(self.jobs) - len(self._answers)

    def answers(self) -> list[ToolMessage]:
        """Return the answers in the order of the calls. Answers of failed queries say how many
        repairs are left.
        """
        left, _ = self._tries_left()
        answers = [
            answer
            for job in self.jobs
            if (answer := self._answers.get(job.call["id"] or "")) is not None
        ]
        if left is None:
            return answers
        more: dict[str, Any] = (
            {"repairs_left": left} if left else {"repairs_left": 0, "final": FINAL}
        )
        return [
            (
                answer.model_copy(update={"content": compact_json({"error": {**error, **more}})})
                if answer.name in self.queries and (error := _error(answer))
                else answer
            )
            for answer in answers
        ]

    def _tries_left(self) -> tuple[int | None, str]:
        """Return how many more queries may fail, and the text of the newest error. The number is
        None if no query has failed yet.
        """
        failed, last = failed_tries(
            [*self.messages, *self._answers.values()], self.turn, self.queries
        )
        return (max(0, self.repairs + 1 - failed) if failed else None), last


Objection = Callable[[ToolCall], str]
"""Function that returns why a call is refused, "" if the call may run."""


class Place(Protocol):
    """Finds the database of a call."""

    def __call__(self, call: ToolCall, *, decided: bool) -> dict[str, Any] | None:
        """Return the arguments with which a call asks its database, None if they are its own.
        Raises `UnknownDatabaseError` if the database is not there. `decided`: a person decided on
        the call.
        """
        ...


def work_of(
    now: Now,
    queries: AbstractSet[str],
    *,
    repairs: int,
    objection: Objection | None = None,
    place: Place | None = None,
) -> Work:
    """Return the work for the tool calls of the newest answer. `queries`: names of the tools that
    run queries. `repairs`: how often a failing query may be corrected in a turn. `objection`: the
    rule of the team's mode, None without a team. `place`: finds the database of a call, None
    without a database.
    """
    messages = now.thread.messages
    turn = now.turn
    approval = turn.get("approval") or Approval(asked=[])
    decisions = {
        one["id"]: decision
        for one, decision in zip(approval["asked"], approval.get("decided", ()), strict=False)
    }
    rejection = approval.get("passed_over")
    jobs = [
        (
            Job(call, QueryRejectedError(rejection))
            if rejection
            else _job(call, decisions.get(call["id"] or ""))
        )
        for call in unanswered(messages)
    ]
    if objection:
        jobs = [_checked(job, objection) for job in jobs]
    if place:
        jobs = [_with_database(job, place) for job in jobs]
    alone = len(jobs) == 1 or bool(turn.get("one_by_one"))
    return Work(jobs, queries, repairs, messages, turn.get("number", 0), alone)


def _checked(job: Job, objection: Objection) -> Job:
    reason = objection(job.call)
    return replace(job, stopped=CallRefusedError(reason)) if reason else job


def _with_database(job: Job, place: Place) -> Job:
    if job.stopped is not None:
        return job
    try:
        return replace(job, args=place(job.call, decided=job.decision is not None))
    except UnknownDatabaseError as error:
        return replace(job, stopped=error)


def _job(call: ToolCall, decision: Decision | None) -> Job:
    if decision is None or decision["type"] == "approve":
        return Job(call, decision=decision)
    if decision["type"] == "reject":
        rejected = QueryRejectedError(decision.get("reason", ""))
        return Job(call, rejected, decision=decision)
    return Job(call, edited=decision.get("sql", ""), decision=decision)
