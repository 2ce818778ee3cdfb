"""Limit how many turns an owner may begin in a period. Turns are counted in the threads' store."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from longtable.base.context import MOST_SECONDS, MOST_TURNS
from longtable.base.errors import ConfigError, RateLimitedError
from longtable.base.stored import TURNS

_log = logging.getLogger("longtable.rate_limit")


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """Allow at most `turns` turns of one owner in any period of `seconds`.

    The times of an owner's last turns are kept in the graph's store, or in this process if there is
    no store. Two processes at the same moment may allow one or two turns too many. Turns without an
    owner are counted per thread. A turn whose model could not be asked is not counted. If the store
    fails, turns are allowed, and the log says so. Raises `ConfigError` unless `turns` is 1 to
    10,000 and `seconds` 1 to 31,536,000.
    """

    turns: int = 20
    seconds: int = 3_600
    clock: Callable[[], float] = field(default=time.time, repr=False)
    _lock: threading.Lock = field(
        default_factory=threading.Lock, init=False, repr=False, compare=False
    )
    _memory: InMemoryStore = field(
        default_factory=InMemoryStore, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name, most in (("turns", MOST_TURNS), ("seconds", MOST_SECONDS)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise ConfigError(
                    f"RateLimit.{name} must be a whole number from 1 to {most:,}, found {value!r}"
                )

    def check(self, owner: str | None, thread_id: str, run: str, store: BaseStore | None) -> None:
        """Count a turn that begins. Raises `RateLimitedError` if the owner has no turns left."""
        with self._failing_softly():
            key = turns_key(owner, thread_id)
            store = store or self._memory
            with self._lock:
                now = self.clock()
                times = _times(store, key)
                recent = [each for each in times if now - self.seconds < each[0] <= now][
                    -self.turns :
                ]
                if len(recent) == self.turns:
                    wait = round(max(0.1, recent[0][0] + self.seconds - now), 1)
                    raise RateLimitedError(turns=self.turns, seconds=self.seconds, wait_s=wait)
                store.put(TURNS, key, {"times": [*recent, [now, run]]}, index=False)

    def give_back(
        self, owner: str | None, thread_id: str, run: str, store: BaseStore | None
    ) -> None:
        """Take back the count of a turn that failed before it gave any result."""
        with self._failing_softly():
            key = turns_key(owner, thread_id)
            store = store or self._memory
            with self._lock:
                others = [each for each in _times(store, key) if each[1] != run]
                store.put(TURNS, key, {"times": others}, index=False)

    @contextmanager
    def _failing_softly(self) -> Iterator[None]:
        """Log an error of the store instead of raising it, because a turn that cannot be counted is
        still answered.
        """
        try:
            yield
        except RateLimitedError:
            raise
        except Exception as error:
            _log.warning("turns could not be counted (%s): the turn passes", type(error).__name__)


def turns_key(owner: str | None, thread_id: str) -> str:
    """Return the key under which turns are counted: that of the owner, or of the thread if there is
    no owner.
    """
    return f"owner {owner}" if owner else f"thread {thread_id}"


def _times(store: BaseStore, key: str) -> list[tuple[float, str]]:
    """Return the start times of an owner's last turns, the oldest first, each with the id of the
    turn's run.
    """
    item = store.get(TURNS, key)
    return item.value["times"] if item else []
