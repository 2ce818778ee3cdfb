"""Count a thread's messages and digest their ids, to notice rows that vanish from a store.

The messages are rebuilt from many rows of a store. If some rows are missing, the rest looks like
any other thread. The tally is stored in each checkpoint, so it says which messages the rows must
give. It covers the messages that a step has seen; messages that a caller wrote since come after
them.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from typing_extensions import TypedDict

from longtable.base.errors import LostMessagesError
from longtable.nodes.reducers import merge_messages, read_messages


class Tally(TypedDict):
    """The first messages of a thread's state: how many, and the CRC-32 of their ids in order.

    A CRC can be continued, so a turn only adds its own messages. It guards against damage, not
    against attackers.
    """

    count: int
    digest: int


def tally_of(messages: Sequence[BaseMessage]) -> Tally:
    """Return the tally of messages."""
    return extended(Tally(count=0, digest=0), messages)


def extended(tally: Tally, messages: Sequence[BaseMessage]) -> Tally:
    """Return the tally of its messages and those after them."""
    lines = "".join(f"{message.id}\n" for message in messages)
    digest = zlib.crc32(lines.encode("utf-8", "replace"), tally["digest"])
    return Tally(count=tally["count"] + len(messages), digest=digest)


def is_whole(tally: Tally, messages: Sequence[BaseMessage]) -> bool:
    """Return whether messages begin with those of the tally."""
    return tally_of(messages[: tally["count"]]) == tally


def check_whole(thread_id: str, values: Mapping[str, Any]) -> None:
    """Raise `LostMessagesError` if messages of a thread's state are gone; a state without a tally
    is of an earlier version, and is not compared.
    """
    tally = cast("Tally | None", values.get("tally"))
    messages = values.get("messages") or []
    if tally is not None and not is_whole(tally, messages):
        raise LostMessagesError(thread_id, wanted=tally["count"], found=len(messages))


def tally_after(tally: Tally | None, before: Sequence[BaseMessage], written: object) -> Tally:
    """Return the tally of a state once messages were `written` to those `before`.

    If the state lacks messages the tally stays as it is, so that the next load also notices the
    loss. Messages without an id are left to the next step: LangGraph gives them one.
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
    """Return the tally of a state from which a caller's input takes messages out; None if it takes
    none, or the state has no tally.
    """
    tally = cast("Tally | None", values.get("tally"))
    removals = [each for each in read_messages(written) if isinstance(each, RemoveMessage)]
    if tally is None or not removals:
        return None
    return tally_after(tally, values.get("messages") or [], removals)
