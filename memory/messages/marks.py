"""The marks of an accepted message: its turn, time, kind and more. They are not sent to
providers.
"""

from typing import Any, TypeVar

from langchain_core.messages import BaseMessage

STAMP = "longtable"
"""Key of the marks in `additional_kwargs`."""

RECALLED = "recalled"
"""Kind of a message that repeats earlier ones. No compaction treats its words as new."""

STEERED = "steered"
"""Kind of a message that joined a running turn."""

COLLEAGUE = "colleague"
"""Kind of a message that stands for the answer of another voice, in a voice's view."""

EXCLUDED = "excluded"
"""Kind of a message that a person excluded from views, summaries and recall."""

SUMMARY = "summary"
"""Kind of a message that holds nothing but the memory. Its mark `sources` is the range of the
compacted messages.
"""

GIVEN = "given"
"""Mark of an answer or a result that a caller handed in. This thread's model did not make it."""

MATERIAL = "material"
"""Mark of an answer. Its value is the number of tokens that the material of context providers
needed in the answer's call.
"""

PRIVATE = "private"
"""Mark of a tool call and of its result. Other voices of the team may not see them; nor may the
summariser.
"""

POOLED = "pooled"
"""Mark of an answer or tool call in a mode that keeps secrets. The tokens of its model call count
for the team as a whole, because the tokens of a single voice could give away the voice's role.
"""

VERIFIED = "verified"
"""Mark of the tool message that answers a query. It is the name of the verified query that the SQL
equals but for parameters.
"""

TABLES = "tables"
"""Mark of the tool message that answers a query. It lists the tables that the query read, and is
used by the query ledger.
"""

Marked = TypeVar("Marked", bound=BaseMessage)


def marks_of(message: BaseMessage) -> dict[str, Any]:
    """Return a message's marks, empty if no turn has accepted it yet."""
    marks = message.additional_kwargs.get(STAMP)
    return dict(marks) if isinstance(marks, dict) else {}


def mark_of(message: BaseMessage, name: str) -> Any:
    """Return the mark of this name, None if the message does not have it."""
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
    """Return whether a message only repeats earlier messages."""
    return kind_of(message) == RECALLED


def speaker_of(message: BaseMessage) -> str:
    """Return the name of the person or model who wrote a message, empty if there is no name. A tool
    is not a speaker.
    """
    # langchain-openai sends either
    name = (
        (message.name or message.additional_kwargs.get("name"))
        if message.type in ("human", "ai")
        else None
    )
    return " ".join(str(name or "").split())


def unmarked(message: Marked) -> Marked:
    """Return the message without marks. Marks in messages of a caller are forged and removed."""
    if STAMP not in message.additional_kwargs:
        return message
    return message.model_copy(
        update={
            "additional_kwargs": {k: v for k, v in message.additional_kwargs.items() if k != STAMP}
        }
    )


def is_copy(message: BaseMessage, known: BaseMessage) -> bool:
    """Return whether a message is a copy of an accepted message, with the same turn and time."""
    mine = marks_of(message)
    theirs = marks_of(known)
    return all(mine.get(name) == theirs.get(name) for name in ("turn", "time"))


def merged(known: Marked, update: Marked) -> Marked:
    """Merge an update into a message. Metadata that the update does not have are kept."""
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
    """Return the message with these marks added to its marks."""
    return message.model_copy(
        update={
            "additional_kwargs": {
                **message.additional_kwargs,
                STAMP: {**marks_of(message), **marks},
            }
        }
    )
