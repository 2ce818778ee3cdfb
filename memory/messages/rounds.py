"""Group messages into rounds, and pair tool calls with their answers. A call without an answer, or
an answer without a call, is mended in the view only.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from longtable.memory.messages.marks import (
    COLLEAGUE,
    STEERED,
    kind_of,
    mark_of,
    marks_of,
    turn_number,
)

UNANSWERED = "This turn was interrupted before an answer."
INTERRUPTED = "This call was interrupted, no result."
MALFORMED = "malformed_arguments"


def split_rounds(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """Split messages into rounds. A round is a user message with all messages that follow it up to
    the next user message.

    A message that joined a running turn belongs to the round of that turn's question, so that no
    compaction separates the two before they are answered. Messages before the first user message
    belong to the first round.
    """
    starts: list[int] = []
    for i, message in enumerate(messages):
        if message.type == "human" and not (starts and _joins(message, messages[starts[-1]])):
            starts.append(i)
    if not starts:
        return [list(messages)] if messages else []
    edges = [0, *starts[1:], len(messages)]
    return [list(messages[a:b]) for a, b in pairwise(edges)]


def _joins(message: BaseMessage, opening: BaseMessage) -> bool:
    kinds = (kind_of(message), kind_of(opening))
    return (STEERED in kinds or COLLEAGUE in kinds) and turn_number(message) == turn_number(opening)


def is_users(message: BaseMessage) -> bool:
    """Return whether the user wrote a message. False for a colleague's answer, which is also a
    human message in a team's view.
    """
    return message.type == "human" and kind_of(message) != COLLEAGUE


def split_groups(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """Split messages into the smallest parts that can be left out: a message, or a call with its
    answers.
    """
    groups: list[list[BaseMessage]] = []
    for message in messages:
        if isinstance(message, ToolMessage) and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def pair_calls(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages in which each tool call is followed at once by exactly one answer, and each
    answer has its call.

    An unanswered call (of a cancelled run) is answered "was interrupted, no result". An answer
    without a call, and a second answer to a call, are left out. An assistant message with neither
    text nor calls is left out too, because providers refuse it. A call whose arguments are not JSON
    becomes a call with the text of the arguments as its only argument. The input is not changed.
    """
    answers = _answers(messages)
    paired: list[BaseMessage] = []
    for i, message in enumerate(messages):
        if message.type != "ai" or not isinstance(message, AIMessage):
            # isinstance() is slow for messages of other classes
            paired += [] if message.type == "tool" else [message]
            continue
        calls = all_calls(message)
        if not calls:
            if _has_content(message):
                paired.append(message)
            continue
        paired.append(_with_calls(message, calls) if message.invalid_tool_calls else message)
        for slot, call in enumerate(calls):
            answer = answers.get((i, slot))
            paired.append(answer or _interrupted(message, call, slot))
    return paired


def without_dangling(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with an answer added to each question that has none, because the next turn's
    question follows directly.

    A cancelled turn leaves its question unanswered, and some providers refuse two messages of the
    user in a row.
    """
    answered: list[BaseMessage] = []
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        answered.append(message)
        if following is not None and message.type == following.type == "human":
            turn = turn_number(message)
            if turn and turn != turn_number(following):
                answered.append(AIMessage(UNANSWERED, id=f"{message.id}/unanswered"))
    return answered


def all_calls(message: AIMessage) -> list[ToolCall]:
    """Return a message's tool calls. If the arguments of a call are malformed, their text is the
    call's only argument.
    """
    if not message.invalid_tool_calls:
        return message.tool_calls
    malformed = [
        ToolCall(
            name=bad["name"] or "unknown",
            args={MALFORMED: bad["args"] or ""},
            id=bad["id"],
            type="tool_call",
        )
        for bad in message.invalid_tool_calls
    ]
    return [*message.tool_calls, *malformed]


def _answers(messages: Sequence[BaseMessage]) -> dict[tuple[int, int], ToolMessage]:
    """Map each call, as (place of the assistant message, slot of the call), to its answer. An
    answer belongs to the newest earlier call that has the same id and no answer yet.
    """
    answers: dict[tuple[int, int], ToolMessage] = {}
    open_slots: dict[str, list[tuple[int, int]]] = {}
    for i, message in enumerate(messages):
        if message.type == "ai" and isinstance(message, AIMessage):
            # Some servers number calls anew in each answer ("call_0"): within one message in order,
            # between messages the newest first.
            fresh: dict[str, list[tuple[int, int]]] = {}
            for slot, call in enumerate(all_calls(message)):
                fresh.setdefault(call["id"] or "", []).append((i, slot))
            for call_id, slots in fresh.items():
                open_slots.setdefault(call_id, []).extend(reversed(slots))
        elif (
            message.type == "tool"
            and isinstance(message, ToolMessage)
            and open_slots.get(message.tool_call_id)
        ):
            answers[open_slots[message.tool_call_id].pop()] = message
    return answers


def _has_content(message: AIMessage) -> bool:
    content = message.content
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _with_calls(message: AIMessage, calls: list[ToolCall]) -> AIMessage:
    extra = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    return message.model_copy(
        update={"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": extra}
    )


def _interrupted(message: AIMessage, call: ToolCall, slot: int) -> ToolMessage:
    return ToolMessage(
        INTERRUPTED,
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="error",
        id=f"{message.id}/{slot}/interrupted",
    )


DESCRIBED = "described"
"""Mark of a tool's answer that describes tables: their names, each with a short hash of the table's
schema at that time.
"""
LISTING = "listing"
"""Mark of a tool's answer that lists the tables. A new table makes such an answer stale, too."""
CHANGED = "schema_changed"
"""Mark of the message that opens a turn, if the schema changed before that turn.

A dict: "changed", "new" and "gone" hold names of tables; "listing" is true if earlier lists of
tables are stale; "all" is true if too many tables changed to name them.
"""
MOST_NAMED = 5

Change = Mapping[str, Any]


def without_stale(
    messages: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """Return `sent` with a note in place of each tool answer that describes an outdated schema.

    `messages` is the whole history, in order. The function is pure: the marks alone say which
    answers are outdated.
    """
    changes = [
        (place, change) for place, message in enumerate(messages) if (change := change_of(message))
    ]
    if not changes:
        return list(sent)
    stubs: dict[str | None, ToolMessage] = {}
    for place, message in enumerate(messages[: changes[-1][0]]):
        if isinstance(message, ToolMessage):
            stale: list[str] = []
            for at, change in changes:
                if at > place:
                    stale += _stale(message, change)
            if stale:
                stubs[message.id] = message.model_copy(
                    update={"content": _stub(list(dict.fromkeys(stale)))}
                )
    return [stubs.get(message.id, message) for message in sent]


def change_of(message: BaseMessage) -> Change | None:
    """Return the schema change just before the turn that this message opens, None if there was
    none.
    """
    change = mark_of(message, CHANGED) if message.type == "human" else None
    return change if isinstance(change, dict) else None


def described_in(messages: Sequence[BaseMessage]) -> dict[str, str]:
    """Return the tables that tool answers have described and that have not changed since, each with
    the hash of its schema.
    """
    described: dict[str, str] = {}
    for message in messages:
        change = change_of(message)
        if change:
            described = _still_described(described, change)
        elif isinstance(message, ToolMessage):
            tables = marks_of(message).get(DESCRIBED)
            described |= tables if isinstance(tables, dict) else {}
    return described


def _still_described(described: Mapping[str, str], change: Change) -> dict[str, str]:
    """Return the described tables that a change of the schema did not touch."""
    if change.get("all"):
        return {}
    touched = _touched(change)
    return {name: looks for name, looks in described.items() if name not in touched}


def _touched(change: Change) -> list[str]:
    return [*change.get("changed", ()), *change.get("gone", ())]


def _stale(message: ToolMessage, change: Change) -> list[str]:
    marks = marks_of(message)
    described = marks.get(DESCRIBED)
    if not isinstance(described, dict):
        return []
    if change.get("all"):
        return list(described) or [""]
    names = [name for name in _touched(change) if name in described]
    return names or ([""] if change.get("listing") and marks.get(LISTING) else [])


def _stub(names: Sequence[str]) -> str:
    listed = ", ".join(name for name in names[:MOST_NAMED] if name)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    which = f" ({listed}{more})" if listed else ""
    return json.dumps(
        {"stale": f"left out: the database's schema has changed since{which}; ask again"},
        ensure_ascii=False,
    )
