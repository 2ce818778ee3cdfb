"""Messages that arrive while a turn runs: they wait in the store and join the turn before its next model call.

A sender stores its message and a new notification token for the thread, so that a turn learns with one lookup by key
whether anything arrived. Messages are deleted from the inbox only after the state with them was stored: a kill between
the two doubles nothing, because their ids are known by then.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Item, PutOp, SearchOp

from longtable.base.context import Context
from longtable.base.events import Steered
from longtable.base.store_keys import BELLS, thread_namespace
from longtable.memory.archive import decode_message, encode_message
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import Turn, without_key

MAX_MESSAGES = 1_000
"""Messages read at once."""


@dataclass(frozen=True)
class InboxMessage:
    """A message to a thread. `key` sorts by arrival."""

    key: str
    message: HumanMessage
    detached: bool = False
    """Its sender does not wait: whoever runs the turn continues with it if no model call of that turn takes it in."""


def post_ops(thread_id: str, posted: InboxMessage) -> list[PutOp]:
    """Return the operations that post a message: it and the notification, in one transaction if the store has them."""
    value = {"message": encode_message(posted.message), "left": posted.detached}
    return [
        PutOp(_namespace(thread_id), posted.key, value, False),
        PutOp(BELLS, thread_id, {"token": posted.key}, False),
    ]


def message_op(thread_id: str, posted: InboxMessage) -> GetOp:
    """Return the operation that reads a posted message; its result is None once the message has joined a turn."""
    return GetOp(_namespace(thread_id), posted.key)


def notification_op(thread_id: str) -> GetOp:
    """Return the operation that reads a thread's notification."""
    return GetOp(BELLS, thread_id)


def new_token(item: object, turn: Turn) -> str | None:
    """Return the notification's token if it is newer than the one the turn has seen, else None."""
    token = str(item.value["token"]) if isinstance(item, Item) else None
    return None if token == turn.get("bell") else token


def inbox_op(thread_id: str) -> SearchOp:
    """Return the operation that reads all messages of an inbox."""
    return SearchOp(_namespace(thread_id), limit=MAX_MESSAGES)


def inbox_messages(thread_id: str, items: Iterable[Any]) -> list[InboxMessage]:
    """Return the messages that `inbox_op` read, in order of arrival."""
    # A search also matches namespaces that only begin with this one.
    mine = sorted((item for item in items if tuple(item.namespace) == _namespace(thread_id)), key=lambda item: str(item.key))
    decoded = [(item.key, decode_message(item.value["message"]), bool(item.value["left"])) for item in mine]
    return [InboxMessage(key, message, detached) for key, message, detached in decoded if isinstance(message, HumanMessage)]


def delete_ops(thread_id: str, keys: Iterable[str]) -> list[PutOp]:
    """Return the operations that delete messages from the inbox."""
    return [PutOp(_namespace(thread_id), key, None) for key in keys]


# -- within a turn --------------------------------------------------------------------------------------------------


def receive(turn: Turn, runtime: Runtime[Context], *, look: bool = True) -> tuple[list[InboxMessage], Turn]:
    """Return the messages that arrived since the turn last looked, known ones too, and the turn's new record.

    Deletes the messages that joined at the step before. `look=False` does only that.
    """
    store, thread_id = runtime.store, thread_id_of(runtime)
    if store is None or not thread_id:
        return [], turn
    try:
        if joined := turn.get("joined"):
            store.batch(delete_ops(thread_id, joined))
            turn = without_key(turn, "joined")
        token = new_token(store.batch([notification_op(thread_id)])[0], turn) if look else None
        if token is None:
            return [], turn
        (items,) = store.batch([inbox_op(thread_id)])
        received = inbox_messages(thread_id, items if isinstance(items, list) else [])
    except Exception:  # the turn continues without: the messages stay in the store, and the next step looks again
        return [], turn
    return received, {**turn, "bell": token, "joined": [each.key for each in received]}


def steered_event(message: BaseMessage, turn: int) -> Steered:
    """Return the event of a message that joined a turn, or is about to."""
    return Steered(type="steered", id=str(message.id), text=str(message.text), turn=turn)


def _namespace(thread_id: str) -> tuple[str, ...]:
    return thread_namespace("inbox", thread_id)
