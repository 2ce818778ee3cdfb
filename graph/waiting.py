"""What a turn that stopped in its middle waits for: a person's decisions on queries, or the answer a tool asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.types import Command, Interrupt, StateSnapshot

from longtable.base.errors import NothingAskedError
from longtable.base.events import ActionRequest, ApprovalRequested, InputRequested
from longtable.nodes.approve import decisions_of
from longtable.nodes.state import turn_of

ANOTHER_MESSAGE = "they did not decide, and sent another message instead"

Decision = Mapping[str, Any]
"""`{"type": "approve"}`,
`{"type": "edit", "edited_action": {"name": ..., "args": {"sql": ...}}}` or
`{"type": "reject", "message": ...}`."""


@dataclass(frozen=True)
class Waiting:
    """One question of a turn. `value`: what is asked, as `interrupt` was given it."""

    id: str
    value: Any

    @property
    def actions(self) -> list[ActionRequest]:
        """Return the calls that wait for a decision; none where it asks for something else."""
        requests = self.value.get("action_requests") if isinstance(self.value, Mapping) else None
        return cast("list[ActionRequest]", requests) if isinstance(requests, list) else []

    @property
    def event(self) -> ApprovalRequested | InputRequested:
        """Return what tells a stream's reader of it."""
        if not self.actions:
            return InputRequested(type="input_requested", id=self.id, value=self.value)
        configs = self.value.get("review_configs", [])
        return ApprovalRequested(type="approval_requested", action_requests=self.actions, review_configs=configs)


def waiting_of(interrupts: Sequence[Interrupt]) -> list[Waiting]:
    """Return LangGraph's interrupts as questions."""
    return [Waiting(one.id, one.value) for one in interrupts]


def waiting_in(state: StateSnapshot) -> list[Waiting]:
    """Return the questions that a thread waits with."""
    return [one for task in state.tasks for one in waiting_of(task.interrupts)]


def answered(state: StateSnapshot, answer: Any, waiting_id: str | None, thread_id: str) -> Command[str]:
    """Return the command that goes on with a person's answer.

    A list of decisions goes to the calls that wait for one, anything else to the first question, unless `waiting_id` names it.
    Raises `NothingAskedError`, `WrongDecisionError`.
    """
    decisions = isinstance(answer, Sequence) and all(isinstance(each, Mapping) for each in answer) and not isinstance(answer, str)
    questions = [one for one in waiting_in(state) if waiting_id in (None, one.id)]
    if not questions:
        raise NothingAskedError(thread_id)
    waiting = next((one for one in questions if bool(one.actions) == decisions), questions[0])
    if waiting.actions and decisions:
        answer = {"decisions": list(answer)}
    if waiting.actions and "approval" in turn_of(state.values):  # an interrupt of somebody's own tool may allow other decisions
        decisions_of(answer, waiting.actions)
    return Command(resume={waiting.id: answer})


def passed_over(state: StateSnapshot) -> dict[str, Any]:
    """Return the update that rejects all calls of a turn that waits for approval, for the person goes on; empty for any other turn."""
    turn = turn_of(state.values)
    if "approval" not in turn or not waiting_in(state):
        return {}
    return {"turn": {**turn, "approval": {**turn["approval"], "decided": [], "passed_over": ANOTHER_MESSAGE}}}
