"""Encode retired messages and keep them in a store by number. A message that is read back is
exactly the one that was written.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import Any, Protocol
from uuid import UUID

from langchain_core import messages as kinds
from langchain_core.messages import BaseMessage

from longtable.base.errors import ArchiveFormatError, ArchiveGapError
from longtable.base.stored import Namespace, thread_namespace
from longtable.memory.messages.marks import marks_of
from longtable.memory.search import Original, text_of
from longtable.memory.topics.artifacts import runs

TAG = "%"
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_CLASSES: Mapping[str, type[BaseMessage]] = {
    cls.__name__: cls
    for cls in (
        kinds.HumanMessage,
        kinds.AIMessage,
        kinds.SystemMessage,
        kinds.ToolMessage,
        kinds.FunctionMessage,
        kinds.ChatMessage,
        kinds.HumanMessageChunk,
        kinds.AIMessageChunk,
        kinds.SystemMessageChunk,
        kinds.ToolMessageChunk,
        kinds.FunctionMessageChunk,
        kinds.ChatMessageChunk,
    )
}
_WRITE: Mapping[type, Callable[[Any], Json]] = {
    bytes: lambda value: base64.b64encode(value).decode(),
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    Decimal: str,
    UUID: str,
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "text": lambda value: base64.b64decode(value).decode("utf-8", "surrogatepass"),
    "bytes": base64.b64decode,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "Decimal": Decimal,
    "UUID": UUID,
}
_COLLECTIONS: Mapping[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


def encode_message(message: BaseMessage) -> str:
    """Return a message as JSON text in ASCII. A message of a custom class is written as the
    LangChain class that it extends.

    Raises `ArchiveFormatError` if a field holds a value that is not data, such as an open file or a
    client.
    """
    cls = next(
        (c for c in type(message).__mro__ if c.__name__ in _CLASSES and c is _CLASSES[c.__name__]),
        None,
    )
    if cls is None:
        raise ArchiveFormatError(
            f"message {message.id} is a {type(message).__name__}, which no transcript holds:"
            " remove it"
        )
    fields = {**message.__dict__, **(message.__pydantic_extra__ or {})}
    encoded = {name: _encode(value, (message, name)) for name, value in fields.items()}
    return json.dumps({"class": cls.__name__, "fields": encoded}, separators=(",", ":"))


def decode_message(text: str) -> BaseMessage:
    """Return the message that `encode_message` wrote. Raises `ArchiveFormatError` if the text is
    anything else.
    """
    try:
        stored = json.loads(text)
        return _CLASSES[stored["class"]].model_construct(
            **{name: _decode(value) for name, value in stored["fields"].items()}
        )
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise ArchiveFormatError(
            f"an archived message cannot be read ({type(error).__name__}: {error}): it was changed,"
            " or written by a newer version"
        ) from error


def _encode(value: Any, place: tuple[BaseMessage, str]) -> Json:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return (
            value
            if _is_text(value)
            else _tagged("text", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode())
        )
    if isinstance(value, list):
        return [_encode(item, place) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and _is_text(key) for key in value) and TAG not in value:
            return {key: _encode(item, place) for key, item in value.items()}
        return _tagged(
            "dict", [[_encode(key, place), _encode(item, place)] for key, item in value.items()]
        )
    kind = type(value)
    if kind in _WRITE:
        return _tagged(kind.__name__, _WRITE[kind](value))
    if kind.__name__ in _COLLECTIONS and kind in (tuple, set, frozenset):
        return _tagged(kind.__name__, [_encode(item, place) for item in value])
    message, field = place
    raise ArchiveFormatError(
        f"message {message.id} holds a {kind.__name__} in {field}, which is no data: store plain"
        " values, bytes, dates or decimals there"
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _decode(item) for key, item in value.items()}
    kind = value[TAG]
    inner = value["value"]
    if kind == "dict":
        return {_decode(key): _decode(item) for key, item in inner}
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](_decode(inner))
    return _READ[kind](inner)


def _tagged(kind: str, value: Json) -> Json:
    return {TAG: kind, "value": value}


def _is_text(value: str) -> bool:
    """Return whether a string is valid Unicode text. A string with lone surrogates is not: JSON
    would join two of them to one character.
    """
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


BATCH = 1_000
"""The most items of one call of the store. SQLite binds at most 32,766 values in a statement,
PostgreSQL 65,535, and a put needs five values.
"""
DAMAGED = "longtable_damaged"
"""Key in the value `{DAMAGED: True}`, which stands in place of an item of the store that cannot be
read.
"""
DIGITS = 9
"""Number of digits of a key, so that keys sort in the order of their numbers."""
TEXT_CHARS = 4_000
"""Only this many characters of a message are embedded, because embedding models take at most 8,192
tokens, and a Chinese character is up to two tokens.
"""

Item = dict[str, Any]
"""One archived message. Its keys: number, id, turn, time, text (for readers and for embedding), and
message (the whole message, as `encode_message` writes it).
"""


class Archive(Protocol):
    """The methods that the functions here need of a store. Each call is one transaction if the
    store has transactions.
    """

    def put(self, namespace: Namespace, items: Sequence[tuple[str, Item]], *, embed: bool) -> None:
        """Write items by key; an item that exists is replaced. `embed`: index the items' "text" by
        meaning, if the store can do that.
        """

    def get(self, namespace: Namespace, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        """Return the item of each key, None if there is none."""
        ...


def key_of(number: int) -> str:
    """Return the key under which the message with this number is stored."""
    return f"{number:0{DIGITS}}"


def to_item(original: Original) -> Item:
    """Return a message as plain JSON that any store can keep. Raises `ArchiveFormatError` if the
    message holds a value that is not data.
    """
    message = original.message
    marks = marks_of(original.message)
    return {
        "number": original.number,
        "id": _clean(message.id or ""),
        "turn": original.turn,
        "time": str(marks.get("time", "")),
        "text": _clean(text_of(message)[:TEXT_CHARS]),
        "message": encode_message(message),
    }


def from_item(item: Mapping[str, Any]) -> Original:
    """Return the message of an item, exactly as it was. Raises `ArchiveFormatError` if the item is
    damaged.
    """
    number = item.get("number")
    text = item.get("message")
    if not isinstance(number, int) or not isinstance(text, str):
        raise ArchiveFormatError(
            f"an archived item lacks its number or message (keys {sorted(item)}): it was not"
            " written by this archive"
        )
    return Original(number, decode_message(text))


def put_all(
    archive: Archive, thread_id: str, originals: Sequence[Original], *, embed: bool
) -> None:
    """Write originals by number. Writing an original again changes nothing. If any of them cannot
    be encoded, `ArchiveFormatError` is raised before anything is written.
    """
    for namespace, items, indexed in _puts(thread_id, originals, embed):
        archive.put(namespace, items, embed=indexed)


def numbers_in_archive(archive: Archive, thread_id: str, ids: Sequence[str]) -> list[int]:
    """Return the numbers of those messages among `ids` that are in the archive."""
    items = archive.get(thread_namespace("archived", thread_id), [key_of_id(each) for each in ids])
    return [item["number"] for item in items if item is not None]


def ids_in_archive(archive: Archive, thread_id: str, ids: Sequence[str], count: int) -> list[str]:
    """Return which of these message ids are among the first `count` messages of the archive."""
    items = archive.get(thread_namespace("archived", thread_id), [key_of_id(each) for each in ids])
    return [
        each
        for each, item in zip(ids, items, strict=True)
        if item is not None and item["number"] <= count
    ]


def page(archive: Archive, thread_id: str, first: int, last: int) -> list[Original]:
    """Return the originals from number `first` to `last`, both included, in order. Raises
    `ArchiveGapError` if any is missing.
    """
    batches = [
        archive.get(thread_namespace("archive", thread_id), keys) for keys in _keys(first, last)
    ]
    return _whole(first, batches)


def readable(archive: Archive, thread_id: str, numbers: Sequence[int]) -> list[Original]:
    """Return the originals with these numbers, in the order of `numbers`. Missing and unreadable
    originals are left out.
    """
    namespace = thread_namespace("archive", thread_id)
    originals: list[Original] = []
    for start in range(0, len(numbers), BATCH):
        keys = [key_of(number) for number in numbers[start : start + BATCH]]
        for item in archive.get(namespace, keys):
            with suppress(ArchiveFormatError):
                originals += [from_item(item)] if item is not None else []
    return originals


def _puts(
    thread_id: str, originals: Sequence[Original], embed: bool
) -> Iterator[tuple[Namespace, list[tuple[str, Item]], bool]]:
    """Yield what to write, batch by batch: the namespace, its items, and whether to embed them. The
    ids of messages come before the messages, so that no archived message lacks its id.
    """
    items = list(map(to_item, originals))
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        ids: list[tuple[str, Item]] = [
            (key_of_id(item["id"]), {"number": item["number"]}) for item in batch
        ]
        yield thread_namespace("archived", thread_id), ids, False
        for indexed, group in _by_embedding(batch, embed):
            yield thread_namespace("archive", thread_id), group, indexed


def key_of_id(message_id: str) -> str:
    """Return the key under which a message id is stored: a hash of the id."""
    return hashlib.sha256(_clean(message_id).encode()).hexdigest()[:32]


def _by_embedding(
    items: Sequence[Item], embed: bool
) -> Iterator[tuple[bool, list[tuple[str, Item]]]]:
    """Yield the items in two groups with their keys: those that are not embedded (False), and those
    that are (True). Items without text are never embedded, because embedding servers refuse an
    empty text.
    """
    for indexed in (False, True):
        group = [
            (key_of(item["number"]), item)
            for item in items
            if (embed and bool(item["text"].strip())) is indexed
        ]
        if group:
            yield indexed, group


def _keys(first: int, last: int) -> Iterator[list[str]]:
    for start in range(first, last + 1, BATCH):
        yield [key_of(number) for number in range(start, min(start + BATCH, last + 1))]


def _whole(first: int, batches: Iterable[Sequence[Mapping[str, Any] | None]]) -> list[Original]:
    items = list(chain.from_iterable(batches))
    if missing := runs(number for number, item in enumerate(items, first) if item is None):
        raise ArchiveGapError(missing)
    return [from_item(item) for item in items if item is not None]


def _clean(text: str) -> str:
    """Return the text without characters that a store refuses: NUL (PostgreSQL) and lone surrogates
    (SQLite).
    """
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")
