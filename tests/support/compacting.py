"""A thread that grows message by message and is compacted when due, as the graph does it, but
values only: no graph, no model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from longtable.base.context import Context
from longtable.base.errors import InputError
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.compaction import (
    Job,
    Outcome,
    Request,
    Strategy,
    compaction_steps,
    needs_originals,
)
from longtable.memory.compaction.due import due_compaction
from longtable.memory.compaction.plan import CompactionPlan, When, plan_compaction
from longtable.memory.compaction.rolling import Rolling
from longtable.memory.messages.marks import turn_number
from longtable.memory.messages.rounds import split_rounds
from longtable.memory.policy import CompactionPolicy
from longtable.memory.records import Compaction
from longtable.memory.thread import Thread
from longtable.memory.topics.strategy import Topics
from longtable.memory.view import CallPlan, View, build_view
from longtable.nodes.arriving.input_checks import check_input

Say = Callable[[Request], str | Exception]
STRATEGIES: dict[str, Strategy] = {"rolling": Rolling(), "topics": Topics()}
ANY_LENGTH = Context(max_message_chars=10**8)


def call_config(
    limit: int, *, window: int | None = None, tools: int = 100, factor: float = 1.0, **policy: Any
) -> CallConfig:
    """Return a call config with a short system prompt; `policy` are fields of
    `CompactionPolicy`.
    """
    return CallConfig(
        system="You answer.",
        tool_tokens=tools,
        limit=limit,
        encoding="o200k_base",
        policy=CompactionPolicy(**policy),
        window=window,
        factor=factor,
    )


@dataclass(frozen=True)
class Call:
    """One model call: the thread it is made on, what it is sent, whether a compaction was made just
    before it.
    """

    thread: Thread
    view: View
    compacted: bool


@dataclass
class Talk:
    """A thread that grows. `asked` holds every request to the summariser, compaction by
    compaction.
    """

    call_config: CallConfig
    say: Say | None = None
    strategies: dict[str, Strategy] = field(default_factory=lambda: STRATEGIES)
    thread: Thread = field(default_factory=lambda: Thread([]))
    breaker: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    asked: list[list[Request]] = field(default_factory=list)
    shrunk: int = 0
    """Compactions of results alone."""

    def hear(self, history: Sequence[BaseMessage]) -> Iterator[Call]:
        """Add a history round by round and yield each model call; a round whose question ingest
        refuses is left aside.
        """
        for round_ in split_rounds(history):
            question = [message for message in round_ if message.type == "human"]
            try:
                for message in question:
                    check_input([message], ANY_LENGTH, CallPlan(self.thread, self.call_config))
            except InputError:
                continue
            for i, message in enumerate(round_):
                self.add(message)
                after = round_[i + 1] if i + 1 < len(round_) else None
                answered = message.type == "tool" and (after is None or after.type != "tool")
                asked = message.type != "tool" and (
                    isinstance(after, AIMessage) or (after is None and message.type == "human")
                )
                if asked or answered:
                    yield self.call()
            self.compact("ahead")

    def add(self, message: BaseMessage) -> None:
        """Add one message."""
        self.thread = replace(self.thread, messages=[*self.thread.messages, message])

    def call(self) -> Call:
        """Compact if due, and return the call as it would be made."""
        outcome = self.compact("due")
        return Call(
            self.thread,
            build_view(CallPlan(self.thread, self.call_config)),
            compacted=bool(outcome and (outcome.record or outcome.results)),
        )

    def compact(self, when: When) -> Outcome | None:
        """Compact once where it is due; return what became of it."""
        call_plan = CallPlan(self.thread, self.call_config)
        if when == "ahead" and not self.call_config.policy.ahead:
            return None
        plan: CompactionPlan | None
        if when == "due":
            due = due_compaction(call_plan, self.breaker)
            if due is None:
                return None
            plan = due.plan
            if due.results:
                self._append(due.results)
            if plan is None:
                self.shrunk += 1
                return Outcome(None, [], results=due.results)
        else:
            plan = plan_compaction(call_plan, when)
            if plan is None or (when == "ahead" and plan.waits(self.breaker)):
                return None
        job = Job(
            strategy=self.call_config.policy.strategy,
            thread=self.thread,
            call_config=self.call_config,
            plan=plan,
            turn=turn_number(self.thread.messages[-1]),
            time="2026-01-01T00:00:00+00:00",
            originals=[] if needs_originals(self.thread, self.call_config) else None,
        )
        outcome = self._drive(job)
        self.jobs.append(job)
        self.outcomes.append(outcome)
        if outcome.record:
            self._append(outcome.record)
            self.breaker = None
        else:
            waits = all(reason["code"] != "too_little" for reason in outcome.reasons)
            self.breaker = (outcome.tokens if waits else 0) or self.breaker
        return outcome

    def _append(self, record: Compaction) -> None:
        self.thread = replace(self.thread, compactions=[*self.thread.compactions, record])

    def _drive(self, job: Job) -> Outcome:
        steps = compaction_steps(job, self.strategies[job.strategy])
        requests: list[Request] = []
        self.asked.append(requests)
        answer: str | Exception | None = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                return outcome
            assert self.say is not None, "a compaction without a summariser asks nothing"
            requests.append(request)
            answer = self.say(request)


def sent(messages: Sequence[BaseMessage], limits: CallConfig) -> int:
    """Return the tokens of a call with its tools."""
    return limits.counter.messages(messages) + limits.tool_tokens


def system_of(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the system message of a call."""
    assert isinstance(messages[0], SystemMessage)
    return str(messages[0].text)
