"""Messages that arrive while a turn runs: they wait in the store and join the turn before its next
model call.

A sender stores its message and a new notification token for the thread, so that a turn learns with
one lookup by key whether anything arrived. Messages are deleted from the inbox only after the state
with them was stored: a kill between the two doubles nothing, because their ids are known by then.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from longtable.base.context import Context
from longtable.base.events import Steered
from longtable.base.stored import BELLS, Namespace, thread_namespace
from longtable.nodes.state import Turn, without_key
from longtable.store.records.retired import decode_message, encode_message
from longtable.store.records.thread_index import thread_id_of

MAX_MESSAGES = 1_000
"""Messages read at once."""


@dataclass(frozen=True)
class InboxMessage:
    """A message to a thread. `key` sorts by arrival."""

    key: str
    message: HumanMessage
    detached: bool = False
    """Its sender does not wait: whoever runs the turn continues with it if no model call of that
    turn takes it in.
    """


@dataclass(frozen=True)
class Inbox:
    """The messages that wait for one thread."""

    store: BaseStore
    thread_id: str

    @property
    def namespace(self) -> Namespace:
        """Return where the store keeps them."""
        return thread_namespace("inbox", self.thread_id)

    def post(self, posted: InboxMessage) -> None:
        """Post a message and the notification, in one transaction if the store has them."""
        value = {"message": encode_message(posted.message), "left": posted.detached}
        notification = PutOp(BELLS, self.thread_id, {"token": posted.key}, False)
        self.store.batch([PutOp(self.namespace, posted.key, value, False), notification])

    def holds(self, posted: InboxMessage) -> bool:
        """Return whether a posted message still waits: no turn has taken it in."""
        return self.store.get(self.namespace, posted.key) is not None

    def new_token(self, turn: Turn) -> str | None:
        """Return the notification's token if it is newer than the one the turn has seen, else
        None.
        """
        item = self.store.get(BELLS, self.thread_id)
        token = str(item.value["token"]) if item is not None else None
        return None if token == turn.get("bell") else token

    def messages(self) -> list[InboxMessage]:
        """Return the messages in order of arrival."""
        # A search also matches namespaces that only begin with this one.
        items = self.store.search(self.namespace, limit=MAX_MESSAGES)
        mine = sorted(
            (each for each in items if tuple(each.namespace) == self.namespace),
            key=lambda each: each.key,
        )
        decoded = [
            (each.key, decode_message(each.value["message"]), bool(each.value["left"]))
            for each in mine
        ]
        return [
            InboxMessage(key, one, left)
            for key, one, left in decoded
            if isinstance(one, HumanMessage)
        ]

    def delete(self, keys: Iterable[str]) -> None:
        """Delete messages."""
        self.store.batch([PutOp(self.namespace, key, None) for key in keys])


# -- within a turn ---------------------------------------------------------------------------------


def receive(
    turn: Turn, runtime: Runtime[Context], *, look: bool = True
) -> tuple[list[InboxMessage], Turn]:
    """Return the messages that arrived since the turn last looked, known ones too, and the turn's
    new record.

    Deletes the messages that joined at the step before. `look=False` does only that.
    """
    store = runtime.store
    thread_id = thread_id_of(runtime)
    if store is None or not thread_id:
        return [], turn
    inbox = Inbox(store, thread_id)
    try:
        if joined := turn.get("joined"):
            inbox.delete(joined)
            turn = without_key(turn, "joined")
        token = inbox.new_token(turn) if look else None
        if token is None:
            return [], turn
        received = inbox.messages()
    except Exception:
        # The turn continues without: the messages stay in the store, and the next step looks again.
        return [], turn
    return received, {**turn, "bell": token, "joined": [each.key for each in received]}


def steered_event(message: BaseMessage, turn: int) -> Steered:
    """Return the event of a message that joined a turn, or is about to."""
    return Steered(type="steered", id=str(message.id), text=str(message.text), turn=turn)
