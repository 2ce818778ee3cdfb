"""Decide to which node a turn goes next, by pure functions of the state."""

from collections.abc import Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from longtable.memory.messages.rounds import all_calls
from longtable.nodes.closing.failures import ASK_AGAIN, FAILED
from longtable.nodes.state import ANSWERED, NOBODY, UNDER_WAY, Now, State, Turn, is_ahead, turn_of

Counted = Literal["compact", "respond", "settle"]


def after_ingest(state: State) -> Counted | Literal["__end__"]:
    """Return the node after ingest. A refused input goes straight to settle, which raises the
    error. If everything was answered before, the run ends.
    """
    turn = turn_of(state)
    if turn.get("status") == ANSWERED:
        return "__end__"
    return "settle" if turn.get("status") in {"refused", NOBODY} else _counted(state, turn)


def counts_after_ingest(_: Now, after: Now) -> bool:
    """Return whether the next call is counted in ingest's own superstep. This saves a superstep,
    whose checkpoint takes 1.2 ms.
    """
    return after.turn.get("status") not in {"refused", ANSWERED, NOBODY}


def after_estimate(state: State) -> Counted:
    """Return the node after estimate. A compaction runs if it is due. The turn is closed if its
    model calls are used up, or if only a compaction was asked for. Otherwise the model is asked.
    """
    return _counted(state, turn_of(state))


def _counted(state: State, turn: Turn) -> Counted:
    if turn.get("status") in {"compacting", "call_budget"}:
        return "settle"
    return "compact" if (usage := state.get("usage")) and usage.get("due") else "respond"


def after_respond(state: State) -> Literal["estimate", "run_tools", "approve", "settle"]:
    """Return the node after respond. The answer's tool calls are run. After an overflow, or to ask
    again without messages that were refused, the call is counted again. Otherwise the turn is over.
    """
    turn = turn_of(state)
    if _waits_for_approval(turn):  # a voice of a team that was asked with others
        return "approve"
    if turn.get("status") in {"overflow", ASK_AGAIN}:
        return "estimate"
    if turn.get("status") in {FAILED, "voice_failed", "voice_gone"}:
        return "settle"
    return "run_tools" if unanswered(state.get("messages") or []) else "settle"


def after_run_tools(state: State) -> Literal["approve", "run_tools"] | Counted:
    """Return the node after run_tools. If calls wait for approval, a person is asked. Calls that
    have no answer yet are run. Otherwise the model is asked again.
    """
    turn = turn_of(state)
    if _waits_for_approval(turn):
        return "approve"
    return "run_tools" if unanswered(state.get("messages") or []) else _counted(state, turn)


def counts_after_run_tools(before: Now, after: Now) -> bool:
    """Return whether the next call is counted in the superstep of run_tools.

    False if calls are still open. Also False if a new message replaces the turn, because messages
    that arrived meanwhile belong to the new turn.
    """
    passed_over = "passed_over" in (before.turn.get("approval") or {})
    return not (passed_over or _waits_for_approval(after.turn) or unanswered(after.thread.messages))


def after_settle(state: State) -> Counted | Literal["prepare", "__end__"]:
    """Return the node after settle. The team's next voice is asked. After the last voice, prepare
    runs if there is something to compact or to retire; otherwise the run ends.
    """
    turn = turn_of(state)
    if turn.get("status") in UNDER_WAY:
        return "respond" if is_ahead(state, turn) else _counted(state, turn)
    return "prepare" if turn.get("prepare") else "__end__"


def counts_after_settle(_: Now, after: Now) -> bool:
    """Return whether the next call is counted in settle's superstep: True if another voice of the
    team is to be asked now.
    """
    return after.turn.get("status") in UNDER_WAY and not is_ahead(after.state, after.turn)


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


def _waits_for_approval(turn: Turn) -> bool:
    return "decided" not in (turn.get("approval") or {"decided": []})
