"""The mark an accepted message carries: its turn, its time, what kind it is. Providers are not sent it."""

from typing import Any, TypeVar

from langchain_core.messages import BaseMessage

STAMP = "longtable"
"""Key of the mark in `additional_kwargs`."""

RECALLED = "recalled"
"""Kind of a message that repeats earlier ones: no fold takes its words for new."""

Marked = TypeVar("Marked", bound=BaseMessage)


def marks_of(message: BaseMessage) -> dict[str, Any]:
    """Return a message's marks, empty where no turn has accepted it yet."""
    marks = message.additional_kwargs.get(STAMP)
    return dict(marks) if isinstance(marks, dict) else {}


def turn_number(message: BaseMessage) -> int:
    """Return the turn that accepted a message, 0 where none has."""
    number = marks_of(message).get("turn", 0)
    return number if isinstance(number, int) else 0


def is_recalled(message: BaseMessage) -> bool:
    """Tell whether a message only brings earlier ones back."""
    return marks_of(message).get("kind") == RECALLED


def marked(message: Marked, **marks: Any) -> Marked:
    """Return the message with these marks added to the ones it has."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, STAMP: {**marks_of(message), **marks}}})
