"""Messages that arrive while a run works: they wait in the store and join the run before its next model call.

A sender writes its message, then rings the thread's bell: another token in one small item, so that a run sees with one
look by key whether anything came. What joined is cleared from the inbox only after the state that holds it was stored:
a kill between the two doubles nothing, for the message's id is known by then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Item, PutOp, SearchOp

from longtable.base.context import Context
from longtable.base.events import Steered
from longtable.base.store_keys import BELLS, thread_namespace
from longtable.memory.archive import decode_message, encode_message
from longtable.nodes.thread_index import thread_id_of

MOST = 1_000
"""Letters that are read at once."""

Turn = dict[str, Any]


@dataclass(frozen=True)
class Letter:
    """A message on its way to a thread. `key`: its place in the inbox, as they came."""

    key: str
    message: HumanMessage
    left: bool = False
    """Nobody waits for it: who has the turn goes on with it where no model call takes it in any more."""


def posting(thread_id: str, letter: Letter) -> list[PutOp]:
    """Return what posts a letter: the letter and the bell, in one transaction where the store has them."""
    value = {"message": encode_message(letter.message), "left": letter.left}
    return [PutOp(_namespace(thread_id), letter.key, value, False), PutOp(BELLS, thread_id, {"token": letter.key}, False)]


def waiting_for(thread_id: str, letter: Letter) -> GetOp:
    """Return what reads a letter, None once it has joined."""
    return GetOp(_namespace(thread_id), letter.key)


def bell_of(thread_id: str) -> GetOp:
    """Return what reads a thread's bell."""
    return GetOp(BELLS, thread_id)


def rung(found: object, turn: Mapping[str, Any]) -> str | None:
    """Return the token of a bell that rang since a turn looked, None where it did not."""
    token = str(found.value["token"]) if isinstance(found, Item) else None
    return None if token == turn.get("bell") else token


def inbox_of(thread_id: str) -> SearchOp:
    """Return what reads all letters of a thread."""
    return SearchOp(_namespace(thread_id), limit=MOST)


def letters(thread_id: str, found: Iterable[Any]) -> list[Letter]:
    """Return the letters that `inbox_of` found, in the order they came."""
    # A search also finds what only begins with the name.
    items = sorted((item for item in found if tuple(item.namespace) == _namespace(thread_id)), key=lambda item: str(item.key))
    opened = [(item.key, decode_message(item.value["message"]), bool(item.value["left"])) for item in items]
    return [Letter(key, message, left) for key, message, left in opened if isinstance(message, HumanMessage)]


def clearing(thread_id: str, keys: Iterable[str]) -> list[PutOp]:
    """Return what clears letters."""
    return [PutOp(_namespace(thread_id), key, None) for key in keys]


# -- within a run ---------------------------------------------------------------------------------------------------


def take_in(turn: Turn, runtime: Runtime[Context], *, look: bool = True) -> tuple[list[Letter], Turn]:
    """Return the letters that came since the turn's record looked, in order, known ones too, and the record after it.

    Clears what joined at the step before. `look`: only clear, where nothing may join any more.
    """
    store, thread_id = runtime.store, thread_id_of(runtime)
    if store is None or not thread_id:
        return [], turn
    try:
        if joined := turn.get("joined"):
            store.batch(clearing(thread_id, joined))
            turn = {name: value for name, value in turn.items() if name != "joined"}
        token = rung(store.batch([bell_of(thread_id)])[0], turn) if look else None
        if token is None:
            return [], turn
        (found,) = store.batch([inbox_of(thread_id)])
        came = letters(thread_id, found if isinstance(found, list) else [])
    except Exception:  # the turn goes on without; what waits stays where it is, and is looked for again
        return [], turn
    return came, {**turn, "bell": token, "joined": [letter.key for letter in came]}


def told(message: BaseMessage, turn: int) -> Steered:
    """Return the event of a message that joined, or is to join, a turn."""
    return Steered(type="steered", id=str(message.id), text=str(message.text), turn=turn)


def _namespace(thread_id: str) -> tuple[str, ...]:
    return thread_namespace("inbox", thread_id)
