"""Count a thread's messages and digest their ids, to notice rows that vanish from a store.

The messages are rebuilt from many rows of a store. If some rows are missing, the rest still looks
like a thread. Therefore each checkpoint has a tally of the messages that its step has seen. When
the thread is loaded, the messages rebuilt from the rows must begin with these messages. Messages
that a caller wrote since then come after them.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from typing_extensions import TypedDict

from longtable.base.errors import LostMessagesError
from longtable.nodes.reducers import merge_messages, read_messages


class Tally(TypedDict):
    """A tally of the first messages in a thread's state. `count`: how many they are. `digest`: the
    CRC-32 of their ids in order.

    A CRC can be continued, so that a turn only needs to add its own messages. It guards against
    damage, not against attackers.
    """

    count: int
    digest: int


def tally_of(messages: Sequence[BaseMessage]) -> Tally:
    """Return the tally of messages."""
    return extended(Tally(count=0, digest=0), messages)


def extended(tally: Tally, messages: Sequence[BaseMessage]) -> Tally:
    """Return a tally extended by the messages that follow those it covers."""
    lines = "".join(f"{message.id}\n" for message in messages)
    digest = zlib.crc32(lines.encode("utf-8", "replace"), tally["digest"])
    return Tally(count=tally["count"] + len(messages), digest=digest)


def is_whole(tally: Tally, messages: Sequence[BaseMessage]) -> bool:
    """Return whether `messages` begin with the messages that the tally covers."""
    return tally_of(messages[: tally["count"]]) == tally


def check_whole(thread_id: str, values: Mapping[str, Any]) -> None:
    """Raise `LostMessagesError` if messages of a thread's state are gone. A state without a tally
    was written by an earlier version and is not checked.
    """
    tally = cast("Tally | None", values.get("tally"))
    messages = values.get("messages") or []
    if tally is not None and not is_whole(tally, messages):
        raise LostMessagesError(thread_id, wanted=tally["count"], found=len(messages))


def tally_after(tally: Tally | None, before: Sequence[BaseMessage], written: object) -> Tally:
    """Return the tally of the messages after a write. `before`: the messages before the write.
    `written`: the write, in any form that the reducer accepts.

    If a write removes messages from a state that has lost messages, the tally stays as it is, so
    that the next load also notices the loss. Messages without an id are not counted yet: LangGraph
    gives them an id, and the next step counts them.
    """
    messages = read_messages(written)
    removals = [message for message in messages if isinstance(message, RemoveMessage)]
    named = all(message.id for message in messages)
    after = merge_messages([*before], [messages if named else removals])
    if tally is None:
        return tally_of(after)
    if removals:
        return tally_of(after) if is_whole(tally, before) else tally
    return extended(tally, after[tally["count"] :])


def tally_after_removals(values: Mapping[str, Any], written: object) -> Tally | None:
    """Return the tally of the messages that remain after a caller's input (`written`) removes some.
    Return None if the input removes no message, or if the state has no tally.
    """
    tally = cast("Tally | None", values.get("tally"))
    removals = [each for each in read_messages(written) if isinstance(each, RemoveMessage)]
    if tally is None or not removals:
        return None
    return tally_after(tally, values.get("messages") or [], removals)
