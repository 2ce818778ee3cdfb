"""What a process keeps of its newest work, shared by its runs."""

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """At most `most` values by key, the oldest go first. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[Key, Value] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, None where it is not kept."""
        with self._lock:
            return self._made.get(key)

    def pop(self, key: Key) -> Value | None:
        """Return the value of a key and keep it no longer."""
        with self._lock:
            return self._made.pop(key, None)

    def put(self, key: Key, value: Value) -> Value:
        """Keep a value in place of the key's last one, and return it."""
        with self._lock:
            self._made.pop(key, None)
            self._made[key] = value
            while len(self._made) > self._most:
                del self._made[next(iter(self._made))]
        return value
