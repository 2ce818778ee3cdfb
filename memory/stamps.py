"""The mark an accepted message carries: its turn, its time, what kind it is. Providers are not sent it."""

from typing import Any, TypeVar

from langchain_core.messages import BaseMessage

STAMP = "longtable"
"""Key of the mark in `additional_kwargs`."""

RECALLED = "recalled"
"""Kind of a message that repeats earlier ones: no fold takes its words for new."""

EXCLUDED = "excluded"
"""Kind of a message that a person took out of views, summaries and recall."""

Marked = TypeVar("Marked", bound=BaseMessage)


def marks_of(message: BaseMessage) -> dict[str, Any]:
    """Return a message's marks, empty where no turn has accepted it yet."""
    marks = message.additional_kwargs.get(STAMP)
    return dict(marks) if isinstance(marks, dict) else {}


def turn_number(message: BaseMessage) -> int:
    """Return the turn that accepted a message, 0 where none has."""
    number = marks_of(message).get("turn", 0)
    return number if isinstance(number, int) else 0


def kind_of(message: BaseMessage) -> str:
    """Return a message's kind, "normal" where it has no other."""
    return str(marks_of(message).get("kind", "normal"))


def is_recalled(message: BaseMessage) -> bool:
    """Tell whether a message only brings earlier ones back."""
    return kind_of(message) == RECALLED


def marked(message: Marked, **marks: Any) -> Marked:
    """Return the message with these marks added to the ones it has."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, STAMP: {**marks_of(message), **marks}}})
