"""Descriptions of a schema that has changed since: they stay in the transcript and leave the view."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from longtable.memory.stamps import mark_of, marks_of

DESCRIBED = "described"
"""Mark of a tool's answer: the tables it describes, each with a short hash of what it looked like."""
LISTING = "listing"
"""Mark of a tool's answer that says which tables there are: a new table makes it stale, too."""
CHANGED = "schema_changed"
"""Mark of the message that opens a turn, where the schema changed before it: {"changed", "new", "gone": names of tables, "listing":
whether lists of tables are stale, "all": there are too many to name}"""
MOST_NAMED = 5

Change = Mapping[str, Any]


def without_stale(messages: Sequence[BaseMessage], shown: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages `shown`, where an answer that no longer holds says so instead; `messages` are all, in order.

    Pure: what is stale follows from the marks alone. Where nothing changed nothing is looked at twice.
    """
    changes = [(place, change) for place, message in enumerate(messages) if (change := change_of(message))]
    if not changes:
        return list(shown)
    stubs: dict[str | None, ToolMessage] = {}
    for place, message in enumerate(messages[: changes[-1][0]]):
        if isinstance(message, ToolMessage):
            gone = [name for at, change in changes if at > place for name in _stale(message, change)]
            if gone:
                stubs[message.id] = message.model_copy(update={"content": _stub(list(dict.fromkeys(gone)))})
    return [stubs.get(message.id, message) for message in shown]


def change_of(message: BaseMessage) -> Change | None:
    """Return what changed before the turn that this message opened, None where nothing did."""
    change = mark_of(message, CHANGED) if message.type == "human" else None
    return change if isinstance(change, dict) else None


def described_in(messages: Sequence[BaseMessage]) -> dict[str, str]:
    """Return the tables that answers describe which still hold, each with the hash of what it looked like."""
    described: dict[str, str] = {}
    for message in messages:
        if change := change_of(message):
            described = {} if change.get("all") else {name: looks for name, looks in described.items() if name not in _touched(change)}
        elif isinstance(message, ToolMessage) and isinstance(told := marks_of(message).get(DESCRIBED), dict):
            described |= told
    return described


def _touched(change: Change) -> list[str]:
    return [*change.get("changed", ()), *change.get("gone", ())]


def _stale(message: ToolMessage, change: Change) -> list[str]:
    marks = marks_of(message)
    described = marks.get(DESCRIBED)
    if not isinstance(described, dict):
        return []
    if change.get("all"):
        return list(described) or [""]
    gone = [name for name in _touched(change) if name in described]
    return gone or ([""] if change.get("listing") and marks.get(LISTING) else [])


def _stub(names: Sequence[str]) -> str:
    told = ", ".join(name for name in names[:MOST_NAMED] if name)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    which = f" ({told}{more})" if told else ""
    return json.dumps({"stale": f"left out: the database's schema has changed since{which}; ask again"}, ensure_ascii=False)
