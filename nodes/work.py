"""The calls of one answer as work: what a person decided on each, which run at once, and which no more."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, ToolCall, ToolMessage

from longtable.base.errors import LongtableError
from longtable.nodes.approve import Asked, Decided
from longtable.nodes.repairs import QueryRejectedError, RepairsUsedUpError, Tries, told, tries_of
from longtable.nodes.route import unanswered
from longtable.nodes.state import State, thread_of, turn_of

EDITED = "the user changed this query before it ran: what they sent is what ran, do not send your own again"


@dataclass(frozen=True)
class Job:
    """One call as the model made it. `stopped`: why it does not run; `edited`: the SQL of a person that runs in its place."""

    call: ToolCall
    stopped: LongtableError | None = None
    edited: str | None = None

    @property
    def to_run(self) -> ToolCall:
        """Return the call as it is to run."""
        return self.call if self.edited is None else {**self.call, "args": {**self.call["args"], "sql": self.edited}}


@dataclass
class Work:
    """Hands out jobs and takes their answers, so that no more queries fail in one turn than may."""

    jobs: list[Job]
    queries: AbstractSet[str]
    repairs: int
    messages: Sequence[BaseMessage]
    turn: int
    alone: bool = False
    """One call at a time: several tools wait for a person's answer, and each is to get its own."""
    _todo: list[Job] = field(default_factory=list)
    _begun: list[Job] = field(default_factory=list)
    _answers: dict[str, ToolMessage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._todo = self.jobs[:1] if self.alone else list(self.jobs)

    def next(self) -> list[Job]:
        """Return the jobs to run now, at the same time; none when all have been."""
        tries = self._tries()
        left = room = tries.left(self.repairs)
        now: list[Job] = []
        later: list[Job] = []
        for job in self._todo:
            if left is None or room is None or job.stopped or job.call["name"] not in self.queries:
                now.append(job)
            elif left == 0:
                now.append(Job(job.call, RepairsUsedUpError(repairs=self.repairs, last=tries.last)))
            elif room > 0:
                now.append(job)
                room -= 1
            else:
                later.append(job)
        self._todo, self._begun = later, now
        return now

    def done(self, answers: Sequence[ToolMessage | None]) -> None:
        """Take the answers of the jobs handed out last; None for a call that waits for an answer itself."""
        given = zip(self._begun, answers, strict=True)
        self._answers.update({job.call["id"] or "": answer for job, answer in given if answer is not None})

    @property
    def left_over(self) -> int:
        """Count the calls that have no answer: they wait for one themselves."""
        return len(self.jobs) - len(self._answers)

    def answers(self) -> list[ToolMessage]:
        """Return the answers in the order of the calls; those of failed queries say how many repairs are left."""
        left = self._tries().left(self.repairs)
        answers = [answer for job in self.jobs if (answer := self._answers.get(job.call["id"] or "")) is not None]
        return [told(answer, left) if left is not None and answer.name in self.queries else answer for answer in answers]

    def _tries(self) -> Tries:
        return tries_of([*self.messages, *self._answers.values()], self.turn, self.queries)


def work_of(state: State, queries: AbstractSet[str], *, repairs: int) -> Work:
    """Return the work that the newest answer asks for. `queries`: names of the tools that run queries."""
    messages, turn = thread_of(state).messages, turn_of(state)
    calls = unanswered(messages)
    approval = turn.get("approval") or {}
    if reason := approval.get("passed_over"):
        jobs = [Job(call, QueryRejectedError(reason)) for call in calls]
    else:
        jobs = _decided(calls, approval.get("asked", []), approval.get("decided", []))
    alone = len(jobs) == 1 or bool(turn.get("one_by_one"))
    return Work(jobs, queries, repairs, messages, turn.get("number", 0), alone)


def _decided(calls: Sequence[ToolCall], asked: Sequence[Asked], decided: Sequence[Decided]) -> list[Job]:
    decisions = {one["id"]: decision for one, decision in zip(asked, decided, strict=True)}
    return [_job(call, decisions.get(call["id"] or "")) for call in calls]


def _job(call: ToolCall, decision: Decided | None) -> Job:
    if decision is None or decision["type"] == "approve":
        return Job(call)
    if decision["type"] == "reject":
        return Job(call, QueryRejectedError(decision.get("reason", "")))
    return Job(call, edited=decision.get("sql", ""))
