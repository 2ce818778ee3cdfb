"""Where a turn goes next: pure functions of the state."""

from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from longtable.base.events import TurnStatus
from longtable.memory.messages.rounds import all_calls
from longtable.nodes.closing.failures import ASK_AGAIN, FAILED
from longtable.nodes.state import ANSWERED, NOBODY, UNDER_WAY, State, is_ahead, thread_of, turn_of

Counted = Literal["compact", "respond", "settle"]


def after_ingest(state: State) -> Counted | Literal["__end__"]:
    """A refused input goes straight to settle, which raises its error; where all was answered
    before, nothing is to do.
    """
    if _status(state) == ANSWERED:
        return "__end__"
    return "settle" if _status(state) in {"refused", NOBODY} else after_estimate(state)


def counts_after_ingest(_: State, after: State) -> bool:
    """Return whether ingest counts in its own superstep: each one is a checkpoint, 1.2 ms."""
    return _status(after) not in {"refused", ANSWERED, NOBODY}


def after_estimate(state: State) -> Counted:
    """Compact when due; close the turn when its model calls are used up or when a compaction was
    all that was asked for.
    """
    if _status(state) in {"compacting", "call_budget"}:
        return "settle"
    return "compact" if (usage := state.get("usage")) and usage.get("due") else "respond"


def after_respond(state: State) -> Literal["estimate", "run_tools", "approve", "settle"]:
    """Run the calls of the answer; count again after an overflow, or without messages refused
    before; else the turn is over.
    """
    if _waits_for_approval(state):  # a voice of a team that was asked with others
        return "approve"
    if _status(state) in {"overflow", ASK_AGAIN}:
        return "estimate"
    if _status(state) in {FAILED, "voice_failed", "voice_gone"}:
        return "settle"
    return "run_tools" if unanswered(thread_of(state).messages) else "settle"


def after_run_tools(state: State) -> Literal["approve", "run_tools"] | Counted:
    """Ask a person where calls wait for approval; go on with calls that have no answer yet; else
    ask the model again.
    """
    if _waits_for_approval(state):
        return "approve"
    return "run_tools" if unanswered(thread_of(state).messages) else after_estimate(state)


def counts_after_run_tools(before: State, after: State) -> bool:
    """Return whether the tools' answers are counted in their own superstep.

    Not in a turn that a new message takes the place of: what came for it meanwhile belongs to the
    new one.
    """
    passed_over = "passed_over" in (turn_of(before).get("approval") or {})
    return not (passed_over or _waits_for_approval(after) or unanswered(thread_of(after).messages))


def after_settle(state: State) -> Counted | Literal["prepare", "__end__"]:
    """Ask the team's next voice; after the last make room for the next turn where there is
    something to compact or to retire.
    """
    if _status(state) in UNDER_WAY:
        return "respond" if is_ahead(state) else after_estimate(state)
    return "prepare" if turn_of(state).get("prepare") else "__end__"


def counts_after_settle(_: State, after: State) -> bool:
    """Return whether another voice of the team is asked now."""
    return _status(after) in UNDER_WAY and not is_ahead(after)


def unanswered(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """Return the calls of the newest assistant message that have no answer yet, in order."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return [call for call in all_calls(message) if call["id"] not in answered]
        else:
            break
    return []


def _waits_for_approval(state: State) -> bool:
    return "decided" not in (turn_of(state).get("approval") or {"decided": []})


def _status(state: State) -> TurnStatus | Literal[""]:
    return turn_of(state).get("status", "")
