"""Give the model one chance to mend an answer whose figures nothing vouches for: one further call, told which they are.

The first draft has streamed, so it cannot be held back: the mended answer follows it, as a message of its own. The draft stays in
the transcript, marked as excluded: no later view, summary or recall repeats its figures. A mend that fails, in whatever way, costs
nothing: the draft stands as the answer, flagged.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.base.context import Context
from longtable.nodes.prompts import MEND
from longtable.nodes.state import State, thread_of, turn_of

NOTE_ID = "longtable-mend"

Turn = Mapping[str, Any]


def begun(figures: Sequence[str], state: State, context: Context) -> dict[str, Any]:
    """Return what the turn's record says of a mend that is to begin, empty where none is."""
    turn, messages = turn_of(state), thread_of(state).messages
    room = turn.get("calls", 0) < context.max_model_calls
    if context.check_numbers != "mend" or not figures or "mending" in turn or not room or not isinstance(messages[-1], AIMessage):
        return {}
    return {"status": "running", "mending": {"figures": list(figures), "draft": messages[-1].id}}


def is_due(state: State) -> bool:
    """Tell whether the next call is to mend the newest message; a message that joined since comes first."""
    messages = thread_of(state).messages
    mend = turn_of(state).get("mending") or {}
    return bool(messages) and bool(mend) and "mended" not in mend and mend["draft"] == messages[-1].id


def note(state: State, language: str) -> BaseMessage:
    """Return what the model is told at the end of that call: it names the figures, and is not kept."""
    return HumanMessage(MEND[language].format(figures=", ".join(turn_of(state)["mending"]["figures"])), id=NOTE_ID)


def ended(turn: Turn, *, mended: bool) -> dict[str, Any]:
    """Return the turn's record after the call, whatever came of it."""
    return {**turn, "status": "running", "mending": {**turn["mending"], "mended": mended}}


def draft_left_out(state: State) -> dict[str, Any]:
    """Return the update that excludes a draft which was mended, empty where none was."""
    turn, thread = turn_of(state), thread_of(state)
    mend = turn.get("mending") or {}
    if not mend.get("mended"):
        return {}
    place = next((i for i, message in enumerate(thread.messages) if message.id == mend["draft"]), None)
    if place is None:
        return {}
    return {"edits": [{"id": f"mend-{mend['draft']}", "op": "exclude", "message": mend["draft"], "number": thread.archived + place + 1}]}
