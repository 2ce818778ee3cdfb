"""Decode each stored value once a process: what is stored under a hash never changes.

Loading a thread decodes all its messages at each turn; a copy of a decoded message takes half the time.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

KEPT_BYTES = 16 * 2**20
"""Stored bytes whose values are kept; decoded they take some five times as much memory."""
LEAST_BYTES = 256
"""A smaller value is decoded faster than it is found."""
PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


class _OtherTypeError(Exception):
    """A value of a class that is not known to be copied whole."""


class DecodingCache(JsonPlusSerializer):
    """A serializer that keeps what it decoded, by the hash of the stored bytes, and hands out copies.

    Forks, deletions and other processes need no rule: other bytes have another hash. Every dict, list and message of a copy is
    its own, so a caller who changes one changes nothing else. Do not use it for encrypted stores: it would keep their text.
    """

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        super().__init__()
        self._values = _Values(kept_bytes)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> JsonPlusSerializer:
        """Return a serializer that restores these classes, too; it keeps values of its own, for they may be of other classes."""
        clone = super().with_msgpack_allowlist(extra_allowlist)
        if isinstance(clone, DecodingCache) and clone is not self:
            clone._values = _Values(self._values.most)
        return clone

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value, decoded now or copied."""
        kind, stored = data
        if kind != "msgpack" or not LEAST_BYTES <= len(stored) <= self._values.most // 4:
            return super().loads_typed(data)
        key = blake2b(stored, digest_size=16).digest()
        known = self._values.get(key)
        if known is not None:
            return copied(known.value)
        value = super().loads_typed(data)
        with contextlib.suppress(_OtherTypeError):
            self._values.put(key, _Kept(copied(value), len(stored)))
        return value


@dataclass(frozen=True)
class _Kept:
    value: Any
    size: int


class _Values:
    """Values by key, as many as `most` stored bytes, those used last. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._size = 0
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> _Kept | None:
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
            return kept

    def put(self, key: bytes, kept: _Kept) -> None:
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = kept
            self._size += kept.size
            while self._size > self.most:
                self._size -= self._kept.popitem(last=False)[1].size


def copied(value: Any) -> Any:
    """Return a copy of which every dict, list, tuple and message is its own. Raises `_OtherTypeError` for what may be none of these."""
    kind = value.__class__
    if kind in PLAIN:
        return value
    if kind is dict:
        return {key: each if each.__class__ in PLAIN else copied(each) for key, each in value.items()}
    if kind is list:
        return [copied(each) for each in value]
    if issubclass(kind, BaseMessage):
        return _message(value, kind)
    if issubclass(kind, tuple):  # a snapshot of a delta channel is a named one
        return kind(*map(copied, value)) if hasattr(value, "_fields") else tuple(map(copied, value))
    raise _OtherTypeError(kind.__name__)


def _message(message: BaseMessage, kind: type[BaseMessage]) -> BaseMessage:
    # As pydantic's own `__copy__` does it, which takes three times as long.
    made = kind.__new__(kind)
    set_ = object.__setattr__
    set_(made, "__dict__", {name: each if each.__class__ in PLAIN else copied(each) for name, each in message.__dict__.items()})
    set_(made, "__pydantic_fields_set__", set(message.__pydantic_fields_set__))
    set_(made, "__pydantic_extra__", copied(message.__pydantic_extra__))
    set_(made, "__pydantic_private__", message.__pydantic_private__)
    return made
