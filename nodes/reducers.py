"""The reducers of the state: they merge the messages or records of many writes into one list."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
    convert_to_messages,
    message_chunk_to_message,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import ValidationError

from longtable.memory.counting.tokens import fingerprint
from longtable.memory.messages.marks import is_copy, marks_of
from longtable.memory.messages.marks import merged as merged_fields

ROLES = {"user", "human", "assistant", "ai", "system", "tool"}
_MESSAGES: tuple[type[BaseMessage], ...] = (
    HumanMessage,
    AIMessage,
    SystemMessage,
    ToolMessage,
    RemoveMessage,
)
_CHUNKS: tuple[type[BaseMessage], ...] = (
    HumanMessageChunk,
    AIMessageChunk,
    SystemMessageChunk,
    ToolMessageChunk,
)
_CLASSES = {kind.model_fields["type"].default: kind for kind in (*_MESSAGES, *_CHUNKS)}
"""Message classes by the `type` that their dicts hold."""


def merge_messages(state: list[BaseMessage], writes: Sequence[Any]) -> list[BaseMessage]:
    """Insert or replace messages by id, in order. This is the reducer of the channel `messages`.

    The result is deterministic and does not depend on how writes are batched, because a delta
    channel replays its writes: `merge(merge(s, a), b) == merge(s, a + b)`.

    LangGraph adds ids to messages; a message without an id (a bare string or tuple) gets an id made
    from its place and content. A message with the id of an accepted message is dropped as a
    duplicate, unless it bears the same stamp: then it is an edit, and is merged into the accepted
    message field by field. `RemoveMessage` removes a message, or with `REMOVE_ALL_MESSAGES` all
    messages before it. Removing an unknown id is no error, because the removal may be a replay.
    """
    try:
        merged = {message.id: message for message in state}
    except AttributeError:  # a server restores dicts
        merged = {message.id: message for message in map(_message, state)}
    for message in chain.from_iterable(map(read_messages, writes)):
        if isinstance(message, RemoveMessage):
            merged = {} if message.id == REMOVE_ALL_MESSAGES else merged
            merged.pop(message.id, None)
            continue
        if not message.id:
            message = message.model_copy(update={"id": _made_id(message, merged)})
        known = merged.get(message.id)
        if known is None or not marks_of(known):
            merged[message.id] = message
        elif is_copy(message, known):
            merged[message.id] = merged_fields(known, message)
    return list(merged.values())


def read_messages(write: Any) -> list[BaseMessage]:
    """Return the messages of one write, which may have any form that LangGraph accepts."""
    messages = map(_message, _items(write))
    return [
        message_chunk_to_message(each) if isinstance(each, BaseMessageChunk) else each
        for each in messages
    ]


def _message(item: Any) -> BaseMessage:
    """Return a message, or make one from a dict, a text or a pair. A server stores its messages as
    dicts.

    LangChain's `convert_to_messages` knows only some fields of a dict and puts the rest (such as
    `usage_metadata`) into `additional_kwargs`. Here only keys that are no fields of the message are
    put there, because `additional_kwargs` count towards a request's size.
    """
    if isinstance(item, BaseMessage):
        return item
    kind = (
        _CLASSES.get(str(item.get("type")))
        if isinstance(item, dict) and "content" in item and "role" not in item
        else None
    )
    if kind is None:
        if not isinstance(item, dict | str | list | tuple):  # a damaged row
            raise ValueError(
                "a message must be a message, a dict, a text or a pair, found"
                f" {type(item).__name__}"
            )
        return convert_to_messages([item])[0]
    fields = {name: value for name, value in item.items() if name in kind.model_fields}
    others = {name: value for name, value in item.items() if name not in fields}
    try:
        extra = {**others, **(item.get("additional_kwargs") or {})}
        return kind(
            **{
                **fields,
                "content": "" if item["content"] is None else item["content"],
                "additional_kwargs": extra,
            }
        )
    except (ValidationError, TypeError):
        # A client's, in another shape: tool calls as OpenAI has them.
        return convert_to_messages([item])[0]


def _made_id(message: BaseMessage, known: Mapping[str | None, BaseMessage]) -> str:
    place = len(known)
    while (new_id := f"at-{place}-{fingerprint(message).hex()[:12]}") in known:
        place += 1  # a removal made the count repeat: never overwrite what is there
    return new_id


def _items(write: Any) -> Sequence[Any]:
    # A bare ("user", "hi") comes back from a checkpoint as ["user", "hi"]: both are one message.
    if isinstance(write, list | tuple):
        pair = (
            len(write) == 2 and all(isinstance(part, str) for part in write) and write[0] in ROLES
        )
        return [tuple(write)] if pair else list(write)
    return [write]


def append_records(state: list[Any], writes: Sequence[Any]) -> list[Any]:
    """Append records by id; a record with a known id is ignored. This is the reducer of
    `compactions` and `edits`. A record that `replaces` other records takes their place in the list.
    """
    merged: dict[str, Any] = {record["id"]: record for record in state}
    for record in chain.from_iterable(map(_items, writes)):
        if replaced := set(record.get("replaces", ())):
            before = next((i for i, id_ in enumerate(merged) if id_ in replaced), len(merged))
            rest = [other for id_, other in merged.items() if id_ not in replaced]
            merged = {each["id"]: each for each in [*rest[:before], record, *rest[before:]]}
        else:
            merged.setdefault(record["id"], record)
    return list(merged.values())


def keep_latest(state: dict[str, Any], writes: Sequence[Any]) -> dict[str, Any]:
    """Return the newest value. This is the reducer of channels that seldom change. Such channels
    are delta channels, which are written only when their value changes.
    """
    return writes[-1] if writes else state
