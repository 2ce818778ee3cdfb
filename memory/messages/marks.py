"""The mark an accepted message carries: its turn, its time, what kind it is. Providers are not sent
it.
"""

from typing import Any, TypeVar

from langchain_core.messages import BaseMessage

STAMP = "longtable"
"""Key of the mark in `additional_kwargs`."""

RECALLED = "recalled"
"""Kind of a message that repeats earlier ones: no compaction takes its words for new."""

STEERED = "steered"
"""Kind of a message that joined a turn under way."""

COLLEAGUE = "colleague"
"""Kind of a message in a view that says what another voice of the team answered."""

EXCLUDED = "excluded"
"""Kind of a message that a person took out of views, summaries and recall."""

SUMMARY = "summary"
"""Kind of the message that holds the memory if it is a message of its own; its mark `sources` has
the range of the compacted messages.
"""

GIVEN = "given"
"""Mark of an answer or a result that a caller handed in: no call of this thread's model made it."""

MATERIAL = "material"
"""Mark of an answer: the tokens that material of context providers wanted of its call."""

PRIVATE = "private"
"""Mark of a call and its result: no other voice of the team is shown them, nor the summariser."""

POOLED = "pooled"
"""Mark of an answer or call in a mode that keeps secrets: what it took is the team's, for by the
tokens of each voice its role could be told.
"""

TABLES = "tables"
"""Mark of a query's answer: the tables that it read, for the ledger."""

Marked = TypeVar("Marked", bound=BaseMessage)


def marks_of(message: BaseMessage) -> dict[str, Any]:
    """Return a message's marks, empty if no turn has accepted it yet."""
    marks = message.additional_kwargs.get(STAMP)
    return dict(marks) if isinstance(marks, dict) else {}


def mark_of(message: BaseMessage, name: str) -> Any:
    """Return one of a message's marks, None if it does not have it."""
    marks = message.additional_kwargs.get(STAMP)
    return marks.get(name) if isinstance(marks, dict) else None


def turn_number(message: BaseMessage) -> int:
    """Return the turn that accepted a message, 0 if no turn has."""
    number = mark_of(message, "turn")
    return number if isinstance(number, int) else 0


def kind_of(message: BaseMessage) -> str:
    """Return a message's kind, "normal" by default."""
    return str(mark_of(message, "kind") or "normal")


def is_recalled(message: BaseMessage) -> bool:
    """Return whether a message only brings earlier ones back."""
    return kind_of(message) == RECALLED


def speaker_of(message: BaseMessage) -> str:
    """Return the name of the person or model who said a message, empty if it has none; a tool is no
    speaker.
    """
    # langchain-openai sends either
    name = (
        (message.name or message.additional_kwargs.get("name"))
        if message.type in ("human", "ai")
        else None
    )
    return " ".join(str(name or "").split())


def unmarked(message: Marked) -> Marked:
    """Return the message without marks: what a caller hands in says nothing of them."""
    if STAMP not in message.additional_kwargs:
        return message
    return message.model_copy(
        update={
            "additional_kwargs": {k: v for k, v in message.additional_kwargs.items() if k != STAMP}
        }
    )


def is_copy(message: BaseMessage, known: BaseMessage) -> bool:
    """Return whether a message was made from an accepted one: it carries the same turn and time."""
    mine = marks_of(message)
    theirs = marks_of(known)
    return all(mine.get(name) == theirs.get(name) for name in ("turn", "time"))


def merged(known: Marked, update: Marked) -> Marked:
    """Merge an update into a message; fields it does not name stay."""
    extra = {
        **known.additional_kwargs,
        **update.additional_kwargs,
        STAMP: {**marks_of(known), **marks_of(update)},
    }
    changes: dict[str, Any] = {
        "additional_kwargs": extra,
        "response_metadata": {**known.response_metadata, **update.response_metadata},
    }
    if (
        getattr(update, "usage_metadata", None) is None
        and getattr(known, "usage_metadata", None) is not None
        and update.type == "ai"
    ):
        changes["usage_metadata"] = getattr(known, "usage_metadata", None)
    return update.model_copy(update=changes)


def marked(message: Marked, **marks: Any) -> Marked:
    """Return the message with these marks added to the ones it has."""
    return message.model_copy(
        update={
            "additional_kwargs": {
                **message.additional_kwargs,
                STAMP: {**marks_of(message), **marks},
            }
        }
    )
