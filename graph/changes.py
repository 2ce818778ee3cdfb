"""Changes that a person makes to a thread. Each is a pure function of the thread's values that
returns the update.
"""

import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langgraph.types import StateUpdate

from longtable.base.context import Context
from longtable.base.errors import (
    ConfigError,
    EditRefusedError,
    EmptyMessageError,
    PinRefusedError,
    UndoTooFarError,
    UnknownMessageError,
    UnknownPinError,
)
from longtable.graph.ratings import RATE, checked_rating
from longtable.graph.thread_state import Update, Values
from longtable.memory.compaction.merging import unmerged
from longtable.memory.counting.tokens import fingerprint
from longtable.memory.messages.marks import EXCLUDED, marked, marks_of
from longtable.memory.messages.rounds import all_calls
from longtable.memory.pins.pins import Pin, make_pin
from longtable.memory.pins.secrets import holds_secret
from longtable.memory.records import Compaction
from longtable.memory.search import Original
from longtable.memory.thread import Edit, EditOperation, Thread
from longtable.memory.topics.topics import Topic, current, versions, visible_versions
from longtable.memory.view import CallPlan
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.closing.failures import FAILED, exclusions, request_in
from longtable.nodes.reducers import read_messages
from longtable.nodes.state import UNDER_WAY, thread_of, turn_of, without_footer, without_key


@dataclass(frozen=True)
class TopicHistory(Topic):
    """A topic in its newest version, together with all its versions, the oldest first."""

    versions: tuple[Topic, ...] = ()


def topic_histories(thread: Thread, retired: Sequence[Compaction]) -> list[TopicHistory]:
    """Return a thread's topics with all their versions. Statements from excluded messages are left
    out.

    `retired` are the compactions that have been moved to the store.
    """
    all_versions = visible_versions(
        replace(thread, compactions=unmerged(retired, thread.compactions))
    )
    histories: list[TopicHistory] = []
    for topic in current(all_versions):
        own = {each.name: getattr(topic, each.name) for each in fields(topic)}
        histories.append(TopicHistory(**own, versions=tuple(versions(all_versions, topic.id))))
    return histories


def _edit(op: EditOperation, **more: Any) -> Edit:
    return cast("Edit", {"id": uuid.uuid4().hex, "op": op, **more})


def number_range(thread: Thread, start: int, limit: int | None) -> tuple[int, int]:
    """Return the first and last message number of a part of the transcript. `start` counts from 1;
    `limit` is the most messages, None for all. Raises `ConfigError` if a number is out of range.
    """
    if start < 1 or (limit is not None and limit < 0):
        raise ConfigError(
            f"history counts from 1 and takes no negative limit, found start={start}, limit={limit}"
        )
    return start, thread.length if limit is None else min(thread.length, start + limit - 1)


def transcript(
    thread: Thread, archived: Sequence[Original], first: int, last: int
) -> list[BaseMessage]:
    """Return the messages `first` to `last` of a thread. `archived` are those of them that are in
    the archive; the others are live. Excluded messages are marked.
    """
    live = thread.messages[max(0, first - 1 - thread.archived) : max(0, last - thread.archived)]
    messages = [*(original.message for original in archived), *live]
    return [
        marked(message, kind=EXCLUDED) if message.id in thread.excluded else message
        for message in messages
    ]


def undo(values: Values, context: Context) -> tuple[str | None, Update]:
    """Drop the newest compaction, and return its id, None if there is none. Raises
    `UndoTooFarError` if the messages that it covers have retired.
    """
    call_plan = call_plan_of(values, context)
    record = call_plan.thread.newest
    if record is None:
        return None, {}
    if "merged" in record:  # what stood before it is in the store
        raise UndoTooFarError(call_plan.thread.archived)
    edit = _edit("undo", record=record["id"])
    before = replace(call_plan.thread, edits=[*call_plan.thread.edits, edit])
    if _lacks_retired(before):
        raise UndoTooFarError(before.archived)
    # The breaker: or the next call would compact the same rounds at once; not where what came back
    # does not fit a call.
    tokens = CallPlan(before, call_plan.call_config).parts.total
    breaker = tokens if tokens <= call_plan.call_config.hard_tokens else None
    return str(record["id"]), {"edits": [edit], "turn": {**turn_of(values), "breaker": breaker}}


def _lacks_retired(thread: Thread) -> bool:
    """Return whether messages have retired that no compaction covers any more."""
    older = thread.live[0]
    return thread.archived > (older["count"] if older else 0)


def rate(values: Values, turn: int, score: int, comment: str, time: str) -> tuple[None, Update]:
    """Rate a turn's answer. A later rating of the turn takes the place of an earlier one. Raises
    the errors of `checked_rating`.
    """
    fields = checked_rating(turn, turn_of(values).get("number", 0), score, comment)
    return None, {"edits": [_edit(RATE, **fields, time=time)]}


def pin(values: Values, text: str) -> tuple[Pin, Update]:
    """Pin a statement. If `text` is the id of an ended pin, this pin becomes active again. Raises
    `EmptyMessageError` for an empty text, `PinRefusedError` for a password or a key.
    """
    if not text.strip():
        raise EmptyMessageError
    turn = turn_of(values).get("number", 0)
    if holds_secret(text):
        raise PinRefusedError("a password, key or token is not pinned: it would go with every call")
    ended = next((pin for pin in thread_of(values).pins if pin.id == text.strip()), None)
    pin = replace(ended, ended="") if ended else make_pin(text, turn=turn)
    return pin, {"edits": [_edit("pin", pin=pin.as_json(), turn=turn)]}


def unpin(values: Values, pin_id: str) -> tuple[None, Update]:
    """End a pin, and all pins with the same words from the same message. Raises `UnknownPinError`
    if there is no such pin.
    """
    pins = thread_of(values).pins
    pin = next((pin for pin in pins if pin.id == pin_id), None)
    if pin is None:
        raise UnknownPinError(pin_id)
    same = [other.id for other in pins if other.id == pin.id or _same_words(other, pin)]
    return None, {"edits": [_edit("unpin", pins=same)]}


def _same_words(one: Pin, other: Pin) -> bool:
    return one.message_id == other.message_id != "" and (
        one.text in other.text or other.text in one.text
    )


def exclude(values: Values, message_id: str, archived: Sequence[Original]) -> tuple[None, Update]:
    """Exclude a message. If the message opened an unfinished or failed turn, exclude all messages
    from it on. `archived` are the retired messages.

    Raises `UnknownMessageError` if there is no such message.
    """
    thread = thread_of(values)
    turn = turn_of(values)
    if turn.get("status") in UNDER_WAY or "failure" in turn:
        request = request_in(thread, turn["number"])
        if request and request[0].id == message_id:  # what followed answers nothing then
            return None, {
                "edits": exclusions(thread, request),
                "turn": {**without_key(turn, "failure"), "status": FAILED},
            }
    originals = [*map(Original, itertools.count(thread.archived + 1), thread.messages), *archived]
    original = next((original for original in originals if original.message.id == message_id), None)
    if original is None:
        raise UnknownMessageError(message_id)
    return None, {
        "edits": [_edit("exclude", message=message_id, number=original.number, turn=original.turn)]
    }


def include(values: Values, message_id: str) -> tuple[None, Update]:
    """Include an excluded message again. Raises `UnknownMessageError` if the message is not
    excluded.
    """
    if message_id not in thread_of(values).excluded:
        raise UnknownMessageError(message_id)
    return None, {"edits": [_edit("include", message=message_id)]}


# -- edits of messages -----------------------------------------------------------------------------


def writes_messages(update: StateUpdate) -> bool:
    """Return whether an update of the state edits messages. The update by which Longtable moves
    messages to the archive does not count.
    """
    return (
        isinstance(update.values, Mapping)
        and "messages" in update.values
        and "archive" not in update.values
    )


def edited(
    channels: Mapping[str, Any], values: Values, retired: Callable[[list[str], int], Sequence[str]]
) -> dict[str, Any]:
    """Return the update with everything that its edits of messages need to take effect, whether the
    edited messages carry Longtable's marks or not.

    A compaction that covers an edited message is undone. A pin ends if its message no longer
    contains its words. Removed messages only leave the state: memory and pins made from them stay.

    `retired(ids, count)` returns which of these ids belong to the first `count` messages, which
    have retired. Raises `EditRefusedError` if an edit concerns them.
    """
    thread = thread_of(values)
    new_messages = read_messages(channels["messages"])
    known = {
        message.id: (number, message)
        for number, message in enumerate(thread.messages, thread.archived + 1)
    }
    messages = [
        _edited(known[each.id][1], each) if each.id in known else each for each in new_messages
    ]
    changed = {
        each.id: each
        for each in messages
        if each.id in known
        and each.type != "remove"
        and fingerprint(without_footer(each)) != fingerprint(known[each.id][1])
    }
    numbers = [known[id_][0] for id_ in changed]
    edits = [
        _edit("undo", record=record["id"])
        for record in thread.compactions
        if numbers and record["count"] >= min(numbers)
    ]
    if thread.archived and (
        (edits and _lacks_retired(replace(thread, edits=[*thread.edits, *edits])))
        or retired(
            [each.id for each in new_messages if each.id and each.id not in known], thread.archived
        )
    ):
        raise EditRefusedError(
            "a message that retired, or shares a memory with one, stays as it is: exclude it, or"
            " fork the thread before it"
        )
    if pins := [
        pin.id
        for pin in thread.pins
        if pin.message_id in changed and pin.text not in changed[pin.message_id].text
    ]:
        edits.append(_edit("unpin", pins=pins))
    return {**channels, "messages": messages, "edits": [*channels.get("edits", ()), *edits]}


def _edited(known: BaseMessage, sent: BaseMessage) -> BaseMessage:
    """Return a known message with the fields that were sent for it. Raises `EditRefusedError` if
    this would separate a call from its answer.
    """
    if isinstance(sent, RemoveMessage) or not marks_of(known):
        return sent
    message = known.model_copy(
        update={
            name: getattr(sent, name)
            for name in sent.model_fields_set & type(known).model_fields.keys()
        }
    )
    if (
        sent.type != known.type
        or _call_ids(message) != _call_ids(known)
        or getattr(message, "tool_call_id", "") != getattr(known, "tool_call_id", "")
    ):
        raise EditRefusedError(
            f"message {known.id!r} must keep its type, the ids of its calls and the id of the call"
            " that it answers"
        )
    return marked(message, **{name: marks_of(known).get(name) for name in ("turn", "time")})


# -- the view in a notebook ------------------------------------------------------------------------


def _call_ids(message: BaseMessage) -> list[str | None]:
    """Return the ids of the tool calls in a message."""
    return [call["id"] for call in all_calls(message)] if isinstance(message, AIMessage) else []
