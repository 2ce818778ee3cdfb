"""Write a message as text that restores it exactly.

`langchain_core.messages.messages_from_dict` runs a message's constructor again, which parses calls anew and turns
tuples, bytes and keys that are no text into something else; JSON columns refuse NUL, lone surrogates, NaN and integers
of more than 64 bits. Here the fields are written as they are, as JSON in ASCII; what JSON lacks carries a tag.
"""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from langchain_core import messages as kinds
from langchain_core.messages import BaseMessage

from longtable.base.errors import ArchiveFormatError

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
_COLLECTIONS: Mapping[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def encode_message(message: BaseMessage) -> str:
    """Return a message as JSON text in ASCII. Raises `ArchiveFormatError` for a value that is no data (an open file, a client).

    A message of a class of one's own is written as the LangChain class it extends.
    """
    cls = next((c for c in type(message).__mro__ if c.__name__ in _CLASSES and c is _CLASSES[c.__name__]), None)
    if cls is None:
        raise ArchiveFormatError(f"message {message.id} is a {type(message).__name__}, which no transcript holds: remove it")
    fields = {**message.__dict__, **(message.__pydantic_extra__ or {})}
    written = {name: _encode(value, (message, name)) for name, value in fields.items()}
    return json.dumps({"class": cls.__name__, "fields": written}, separators=(",", ":"))


def decode_message(text: str) -> BaseMessage:
    """Return the message that `encode_message` wrote. Raises `ArchiveFormatError` for anything else."""
    try:
        written = json.loads(text)
        return _CLASSES[written["class"]].model_construct(**{name: _decode(value) for name, value in written["fields"].items()})
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise ArchiveFormatError(
            f"an archived message cannot be read ({type(error).__name__}: {error}): it was changed, or written by a newer version"
        ) from error


def _encode(value: Any, place: tuple[BaseMessage, str]) -> Json:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if _is_text(value) else _tagged("text", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode())
    if isinstance(value, list):
        return [_encode(item, place) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and _is_text(key) for key in value) and TAG not in value:
            return {key: _encode(item, place) for key, item in value.items()}
        return _tagged("dict", [[_encode(key, place), _encode(item, place)] for key, item in value.items()])
    kind = type(value)
    if kind in _WRITE:
        return _tagged(kind.__name__, _WRITE[kind](value))
    if kind.__name__ in _COLLECTIONS and kind in (tuple, set, frozenset):
        return _tagged(kind.__name__, [_encode(item, place) for item in value])
    message, field = place
    raise ArchiveFormatError(
        f"message {message.id} holds a {kind.__name__} in {field}, which is no data: store plain values, bytes, dates or decimals there"
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _decode(item) for key, item in value.items()}
    kind, inner = value[TAG], value["value"]
    if kind == "dict":
        return {_decode(key): _decode(item) for key, item in inner}
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](_decode(inner))
    return _READ[kind](inner)


def _tagged(kind: str, value: Json) -> Json:
    return {TAG: kind, "value": value}


def _is_text(value: str) -> bool:
    """Tell whether a string is Unicode text: JSON would join two lone surrogates to one character."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False
