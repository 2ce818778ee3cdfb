"""Work that several runs of a process may want at once is done by the first; the others wait for what it makes."""

import asyncio
import threading
from collections.abc import Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Flights(Generic[Key, Value]):
    """Who is at work on what. Safe to share between threads and event loops."""

    def __init__(self) -> None:
        self._under_way: dict[Key, Future[Value | None]] = {}
        self._lock = threading.Lock()

    def begin(self, key: Key) -> "Future[Value | None] | None":
        """Return None where the caller is the first and must `land`; else what to wait for."""
        with self._lock:
            if key in self._under_way:
                return self._under_way[key]
            self._under_way[key] = Future()
            return None

    def wait(self, key: Key) -> Value | None:
        """Wait until nobody else is at work: return what was made, or None where the caller must do it, and then `land`."""
        while (other := self.begin(key)) is not None:
            if (made := other.result()) is not None:
                return made
        return None

    async def wait_async(self, key: Key) -> Value | None:
        """Do the same without blocking the event loop."""
        while (other := self.begin(key)) is not None:
            # A future of its own for each who waits: cancelling one cancels no other's.
            if (made := await asyncio.shield(asyncio.wrap_future(other))) is not None:
                return made
        return None

    def land(self, key: Key, made: Value | None) -> None:
        """Hand over what was made, None where the work was broken off: then the next who waits does it."""
        with self._lock:
            under_way = self._under_way.pop(key)
        under_way.set_result(made)
