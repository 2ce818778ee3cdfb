"""Messages that arrive while a turn runs: they wait in the store and join the turn before its next
model call.

A sender stores its message and a new notification token for the thread. So a turn learns with one
lookup by key whether anything arrived. A message is deleted from the inbox only after the state
that holds it was stored. If the process is killed between these two steps, no message is
duplicated, because the state already has its id.
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
"""Most messages that are read from an inbox at once."""


@dataclass(frozen=True)
class InboxMessage:
    """A message to a thread. Its `key` sorts messages in the order of arrival."""

    key: str
    message: HumanMessage
    detached: bool = False
    """True if the message's sender does not wait. If no model call of the running turn takes the
    message in, the runner of that turn then answers it in a further turn.
    """


@dataclass(frozen=True)
class Inbox:
    """The messages that wait for one thread."""

    store: BaseStore
    thread_id: str

    @property
    def namespace(self) -> Namespace:
        """Return the namespace in which the store keeps these messages."""
        return thread_namespace("inbox", self.thread_id)

    def post(self, posted: InboxMessage) -> None:
        """Store a message and a notification of it, in one transaction if the store has
        transactions.
        """
        value = {"message": encode_message(posted.message), "left": posted.detached}
        notification = PutOp(BELLS, self.thread_id, {"token": posted.key}, False)
        self.store.batch([PutOp(self.namespace, posted.key, value, False), notification])

    def holds(self, posted: InboxMessage) -> bool:
        """Return whether a posted message still waits, because no turn has taken it in."""
        return self.store.get(self.namespace, posted.key) is not None

    def new_token(self, turn: Turn) -> str | None:
        """Return the token of the newest notification, None if the turn has seen it already or
        there is none.
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
    """Return the messages in the inbox, and the turn's new record. The list is empty if nothing
    arrived since the turn last looked; otherwise it may also hold messages that the state has.

    This first deletes the messages that joined the turn in the previous step. With `look=False`, it
    does nothing else.
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
    """Return the event of a message that joined a turn, or is about to join it."""
    return Steered(type="steered", id=str(message.id), text=str(message.text), turn=turn)
