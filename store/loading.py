"""Load threads from a SQLite store faster than LangGraph does."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, get_checkpoint_id, writes_sort_key
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.sqlite import SqliteSaver

from longtable.base.errors import (
    LongtableError,
)
from longtable.store.heads import key_of
from longtable.store.history_cache import (
    CachedHistory,
    Histories,
    HistoryCache,
    copies,
    extended,
    may_share,
)

_FIELDS = {
    (kind.__module__, kind.__name__): (kind, set(kind.model_fields))
    for kind in (AIMessage, HumanMessage, SystemMessage, ToolMessage)
}
"""For the names under which a message is stored, its class and the names of all its fields."""
_EMPTY_LIST = ormsgpack.packb([])
_METADATA = "CAST(c.metadata AS TEXT)"
_ANCESTORS = f"""WITH RECURSIVE ancestors(checkpoint_id, parent, counters) AS (
    SELECT checkpoint_id, parent_checkpoint_id, NULL FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id,
        iif(json_valid({_METADATA}), json_extract({_METADATA}, '$.counters_since_delta_snapshot'), NULL)
    FROM ancestors a CROSS JOIN checkpoints c ON c.checkpoint_id = a.parent WHERE c.thread_id = ? AND c.checkpoint_ns = ?
) SELECT checkpoint_id, coalesce(counters, '') FROM ancestors"""
"""SQL for a checkpoint and all checkpoints before it, newest first. Each row has JSON that counts,
for each delta channel, the steps since it was last stored whole.
"""
_WRITES = """SELECT chain.key, w.task_path, w.task_id, w.idx, w.channel, w.type, w.value FROM json_each(?) chain
    CROSS JOIN writes w ON w.checkpoint_id = chain.value
    WHERE w.thread_id = ? AND w.checkpoint_ns = ? AND w.channel IN (SELECT value FROM json_each(?))"""
_CHECKPOINT = (
    "SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND"
    " checkpoint_id = ?"
)


class MessageSerializer(JsonPlusSerializer):
    """LangGraph's serializer, except that it does not validate messages again.

    A message that holds exactly the fields of its class is rebuilt from these fields. It was valid
    when it was written, and to validate it again took more than half of the time: 8.2 us for a
    message of 300 bytes, against 3.6 us without. LangGraph decodes everything else: subclasses,
    messages with fields of another version, damaged bytes.
    """

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value that `data` encodes."""
        kind, stored = data
        if kind != "msgpack":
            return super().loads_typed(data)
        return self._unpacked(stored)

    def _unpacked(self, stored: bytes) -> Any:
        return ormsgpack.unpackb(
            stored, ext_hook=self._extension, option=ormsgpack.OPT_NON_STR_KEYS
        )

    def _extension(self, code: int, stored: bytes) -> Any:
        if code == EXT_PYDANTIC_V2:
            try:
                module, name, fields, _ = self._unpacked(stored)
                kind, names = _FIELDS[module, name]
                if fields.keys() == names:
                    return _message(kind, fields, names)
            except (KeyError, TypeError, ValueError, AttributeError):  # another class, or damaged
                pass
        elif (
            code == EXT_PYDANTIC_V1
            and (parts := self._unpacked(stored))[0] == LongtableError.__module__
        ):
            return parts[2]  # what a step failed with: LangGraph keeps it for people to look at
        elif code == EXT_DELTA_SNAPSHOT:
            return self._langgraphs(code, _EMPTY_LIST)._replace(value=self._unpacked(stored))
        return self._langgraphs(code, stored)

    def _langgraphs(self, code: int, stored: bytes) -> Any:
        """Return the value of an extension as LangGraph decodes it."""
        return super().loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(code, stored))))


def _message(kind: type[BaseMessage], fields: dict[str, Any], names: set[str]) -> BaseMessage:
    """Return the message that pydantic's `model_construct` would make, in a quarter of the time."""
    message = kind.__new__(kind)
    set_ = object.__setattr__
    set_(message, "__dict__", fields)
    set_(message, "__pydantic_fields_set__", names.copy())
    set_(message, "__pydantic_extra__", {})
    set_(message, "__pydantic_private__", None)
    return message


@dataclass
class _Ancestry:
    """The checkpoints before one, newest first, as far back as its delta channels need."""

    chain: dict[str, None] = field(default_factory=dict)
    seeds: dict[str, Any] = field(default_factory=dict)
    """The last whole value of a channel."""
    ends: dict[str, int] = field(default_factory=dict)
    """How many checkpoints of the chain have writes that came after this value."""
    known: CachedHistory | None = None
    """The history of the last checkpoint of the chain, if it is kept."""

    def histories(self, channels: Sequence[str]) -> Histories:
        """Return the histories without the writes of the chain."""
        histories: Histories = {}
        for channel in channels:
            if channel in self.seeds:
                histories[channel] = {"writes": [], "seed": self.seeds[channel]}
            elif self.known is not None:
                histories[channel] = extended(self.known.histories[channel])
            else:
                histories[channel] = {"writes": []}
        return histories


class LoadingSaver(SqliteSaver):
    """LangGraph's saver for SQLite, except that it decodes fewer checkpoints to load a thread.

    A delta channel is rebuilt from the last checkpoint that holds the channel whole, and the writes
    since. LangGraph decodes each checkpoint on the way back, some 100 per turn, and searches for
    the writes of each channel separately. A checkpoint's metadata says which delta channels it does
    not hold whole; this saver decodes only checkpoints that may hold a wanted channel. Turns go
    back only to the checkpoint from which the turn before began.
    """

    cache: HistoryCache | None = None
    """The histories that turns loaded, None if each load reads all."""

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `BaseCheckpointSaver`."""
        try:
            return self._history(config, channels)
        except sqlite3.OperationalError:  # a table of an early version, opened for reading
            return super().get_delta_channel_history(config=config, channels=channels)

    def _history(self, config: RunnableConfig, channels: Sequence[str]) -> Histories:
        key = key_of(config)
        checkpoint_id = get_checkpoint_id(config) or ""
        cache = self.cache if may_share(config) else None
        known = cache.get(key) if cache is not None else None
        if known is not None and known.covers(checkpoint_id, channels):
            return copies({channel: known.histories[channel] for channel in channels})
        with self.cursor(transaction=False) as cursor:
            ancestry = self._ancestry(cursor, key, checkpoint_id, channels, known)
            writes = cursor.execute(
                _WRITES, (json.dumps([*ancestry.chain]), *key, json.dumps(channels))
            ).fetchall()
        histories = ancestry.histories(channels)
        for place, _, task_id, _, channel, kind, value in sorted(writes, key=_oldest_first):
            if place < ancestry.ends.get(channel, len(ancestry.chain)):
                histories[channel]["writes"].append(
                    (task_id, channel, self.serde.loads_typed((kind, value)))
                )
        if cache is None:
            return histories
        cache.put(key, checkpoint_id, histories)
        return copies(histories)

    def _ancestry(
        self,
        cursor: sqlite3.Cursor,
        key: tuple[str, str],
        checkpoint_id: str,
        channels: Sequence[str],
        known: CachedHistory | None,
    ) -> _Ancestry:
        ancestry = _Ancestry()
        unseeded = {channel: f'"{channel}":' for channel in channels}
        cursor.execute(_ANCESTORS, (*key, checkpoint_id, *key))
        next(cursor, None)  # what was written on top of the checkpoint itself is not part of it
        for ancestor, counters in cursor:
            if ancestor in ancestry.chain:
                break
            ancestry.chain[ancestor] = None
            if not all(name in counters for name in unseeded.values()):
                whole = self._values(key, ancestor)
                for channel in whole.keys() & unseeded.keys():
                    ancestry.seeds[channel] = whole[channel]
                    ancestry.ends[channel] = len(ancestry.chain)
                    del unseeded[channel]
            if not unseeded:
                break
            if known is not None and known.covers(ancestor, unseeded):
                ancestry.known = known
                break
        return ancestry

    def _values(self, key: tuple[str, str], checkpoint_id: str) -> Mapping[str, Any]:
        stored = self.conn.execute(_CHECKPOINT, (*key, checkpoint_id)).fetchone()
        return self.serde.loads_typed(stored).get("channel_values") or {}


def _oldest_first(write: Sequence[Any]) -> Any:
    place, path, task_id, idx, *_ = write
    return -place, writes_sort_key(path, task_id, idx)


# -- what a damaged store still holds: a row that cannot be read names its thread and hides no other
