"""Mark a message as accepted in a turn, and make its texts storable."""

from collections.abc import Mapping
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage

from longtable.memory.messages.marks import STAMP, marks_of
from longtable.memory.voices import VOICE
from longtable.nodes.arriving.input_checks import storable
from longtable.nodes.state import Turn

WRITTEN_BY_OTHERS = (
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "response_metadata",
    "name",
)
"""Fields of a message whose values come from callers and providers, and so may not be storable."""


Accepted = TypeVar("Accepted", bound=BaseMessage)


def stamp(
    message: Accepted, *, turn: Turn, time: str, marks: Mapping[str, Any] | None = None
) -> Accepted:
    """Return the message marked as accepted in a turn, with the turn's run, owner and channel.
    Values that a checkpoint cannot hold are made storable. `turn`: the turn's record. `marks`:
    further marks.
    """
    names = ("run", "owner", "channel", *(() if message.type == "human" else (VOICE,)))
    whose = {name: value for name, value in turn.items() if name in names and value}
    stamped = {
        **marks_of(message),
        "turn": turn.get("number", 0),
        "time": time,
        **whose,
        **(marks or {}),
    }
    fields: dict[str, Any] = {name: getattr(message, name, None) for name in WRITTEN_BY_OTHERS}
    fields["additional_kwargs"] = {**message.additional_kwargs, STAMP: stamped}
    fields["usage_metadata"] = getattr(message, "usage_metadata", None)
    clean: dict[str, Any] = storable(fields)
    changes = {name: clean[name] for name in fields if clean[name] != fields[name]}
    if "usage_metadata" in changes:
        changes["usage_metadata"] = None  # no count of tokens
    return message.model_copy(update={"additional_kwargs": fields["additional_kwargs"], **changes})
