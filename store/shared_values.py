"""Keep the messages and records that were decoded for turns, so that a thread's next turn decodes
only what is new.

What is stored never changes, so the stored bytes are the key. To decode a message takes 2 us, and
leaves some ten objects to Python's garbage collector, whose full collections took a third of a long
thread's turns. A kept value is handed out again only if it is still exactly what was decoded.
"""

import marshal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.messages import BaseMessage

MOST_BYTES = 8_000_000
"""How many stored bytes are kept in all. In memory their values take about four times that. What
was kept first is dropped first.
"""
SIZES = range(100, 65_536)
"""How many bytes a record has that is kept as a whole. A smaller one is decoded faster than it is
found; a larger one is most likely a list of messages, which are kept one by one.
"""
_FORMAT = 2
"""The newest format of `marshal` in which equal values always give equal bytes."""

_shares: ContextVar[bool] = ContextVar("longtable_shares", default=False)


@contextmanager
def sharing(*, shares: bool) -> Iterator[None]:
    """Within the block, what is loaded may be that of an earlier load (`shares`). Only turns of a
    `Conversation` share: one at a time runs on a thread. Callers get messages of their own.
    """
    token = _shares.set(shares)
    try:
        yield
    finally:
        _shares.reset(token)


class SharedValues:
    """Decoded messages and plain JSON by the bytes in which they are stored. OS threads may share
    it.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self.size = 0
        self._kept: dict[bytes, tuple[Any, bytes]] = {}
        self._lock = threading.Lock()

    def for_load(self) -> "SharedValues | None":
        """Return these values if the present load shares them."""
        return self if _shares.get() else None

    def get(self, stored: bytes) -> Any:
        """Return the value of these bytes, None if none is kept or if somebody changed it."""
        known = self._kept.get(stored)
        if known is None or _fingerprint(known[0]) != known[1]:
            return None
        return known[0]

    def put(self, stored: bytes, value: Any) -> Any:
        """Keep a value that was just decoded, and return it. What is neither a message nor plain
        JSON is not kept.
        """
        fingerprint = _fingerprint(value)
        if fingerprint is None:
            return value
        with self._lock:
            if self._kept.pop(stored, None) is None:
                self.size += len(stored)
            self._kept[stored] = (value, fingerprint)
            while self.size > self.most:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
                self.size -= len(oldest)
        return value


def _fingerprint(value: Any) -> bytes | None:
    """Return all that a message or plain JSON holds as bytes. Return None if it is something else,
    or if somebody put an object into it, or into a message a field that its class does not have.
    """
    if isinstance(value, BaseMessage):
        fields = value.__dict__
        if value.__pydantic_extra__ or len(value.__pydantic_fields_set__) != len(fields):
            return None
        value = fields
    try:
        return marshal.dumps(value, _FORMAT)
    except ValueError:
        return None
