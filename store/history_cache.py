"""Keep the histories of delta channels that turns loaded, so that a thread's next turn reads and
decodes only what was written since.

What is stored never changes, so the history of a checkpoint stays right as long as it is kept. To
read and decode a thread of 300 messages anew took a third of each turn. A kept history is handed
out again only if its messages are still exactly what was decoded.
"""

import copy
import marshal
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot

from longtable.store.heads import Key

SHARES = "__longtable_shares"
"""Key in the config of a run. If it is true, the run may be handed messages that an earlier run was
handed. Only turns of a `Conversation` set it: one at a time runs on a thread. Other callers get
messages of their own.
"""
MOST_BYTES = 8_000_000
"""How many bytes of histories are kept in all, as `_fingerprint` counts them. In memory their
messages take about four times that. The history that was stored longest ago is dropped first.
"""
_FORMAT = 2
"""The newest format of `marshal` in which equal values always give equal bytes."""

Histories = dict[str, DeltaChannelHistory]
"""For each delta channel, its last whole value before a checkpoint, and the writes since."""


@dataclass(frozen=True)
class CachedHistory:
    """The histories of one checkpoint, as they were loaded."""

    checkpoint_id: str
    histories: Histories
    fingerprints: Mapping[int, bytes]
    """What each value held when it was decoded, by the value's `id`."""

    def covers(self, checkpoint_id: str, channels: Collection[str]) -> bool:
        """Return whether these are the histories of a checkpoint, for all of these channels. A
        channel that the checkpoint itself holds whole has no history.
        """
        return self.checkpoint_id == checkpoint_id and self.histories.keys() >= set(channels)

    @property
    def size(self) -> int:
        """The bytes of all fingerprints."""
        return sum(map(len, self.fingerprints.values()))

    def is_unchanged(self) -> bool:
        """Return whether all values still hold what was decoded."""
        fingerprints = self.fingerprints
        return all(
            _fingerprint(value) == fingerprints[id(value)] for value in _values_of(self.histories)
        )


class HistoryCache:
    """The last loaded history of each thread. OS threads may share the cache.

    Not for an encrypted store, whose texts do not stay in memory.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self.size = 0
        self._kept: dict[Key, CachedHistory] = {}
        self._lock = threading.Lock()

    def get(self, key: Key) -> CachedHistory | None:
        """Return the thread's history. Return None if none is kept, or if somebody changed it."""
        kept = self._kept.get(key)
        return kept if kept is not None and kept.is_unchanged() else None

    def put(self, key: Key, checkpoint_id: str, histories: Histories) -> None:
        """Keep the history of a checkpoint in place of the thread's earlier one. A history with
        anything but messages and plain JSON is not kept.
        """
        earlier = self._kept.get(key)
        known = earlier.fingerprints if earlier is not None else {}
        fingerprints: dict[int, bytes] = {}
        for value in _values_of(histories):
            fingerprint = known.get(id(value)) or _fingerprint(value)
            if fingerprint is None:
                return
            fingerprints[id(value)] = fingerprint
        self._replace(key, CachedHistory(checkpoint_id, histories, fingerprints))

    def drop(self, thread_id: str) -> None:
        """Forget what was loaded of a thread, as when it is deleted."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == thread_id]:
                self.size -= self._kept.pop(key).size

    def _replace(self, key: Key, kept: CachedHistory) -> None:
        with self._lock:
            earlier = self._kept.pop(key, None)
            if earlier is not None:
                self.size -= earlier.size
            self._kept[key] = kept
            self.size += kept.size
            while self.size > self.most:
                oldest = next(iter(self._kept))
                self.size -= self._kept.pop(oldest).size


def may_share(config: RunnableConfig) -> bool:
    """Return whether a run may be handed messages of earlier runs."""
    return bool(config["configurable"].get(SHARES))


def extended(history: DeltaChannelHistory) -> DeltaChannelHistory:
    """Return a history with a list of writes of its own, to which later writes may be added."""
    return {**history, "writes": [*history["writes"]]}


def copies(histories: Mapping[str, DeltaChannelHistory]) -> Histories:
    """Return histories for a run, which may change their lists. The messages are the same."""
    copied: Histories = {}
    for channel, history in histories.items():
        copied[channel] = extended(history)
        if "seed" in history:
            copied[channel]["seed"] = _copied(history["seed"])
    return copied


def _copied(seed: Any) -> Any:
    if isinstance(seed, DeltaSnapshot):
        return seed._replace(value=copy.copy(seed.value))
    return copy.copy(seed)


def _values_of(histories: Histories) -> Iterator[Any]:
    for history in histories.values():
        if "seed" in history:
            yield history["seed"]
        for _, _, value in history["writes"]:
            yield value


def _fingerprint(value: Any) -> bytes | None:
    """Return all that messages or plain JSON hold as bytes. Return None if the value is something
    else, or if somebody put an object into it.
    """
    try:
        return marshal.dumps(_plain(value), _FORMAT)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """Return a value with the fields of messages in place of the messages."""
    if isinstance(value, DeltaSnapshot):
        value = value.value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, BaseMessage):
        return value.__dict__, value.__pydantic_extra__, len(value.__pydantic_fields_set__)
    return value
