"""Load threads from a SQLite store faster than LangGraph does."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
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
from longtable.store.shared_values import SIZES, SharedValues

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

    `shared`: messages that turns share, None if each load decodes all of its own.
    """

    shared: SharedValues | None = None

    @classmethod
    def with_shared(cls) -> "MessageSerializer":
        """Return a serializer whose turns share messages. Not for an encrypted store, whose texts
        do not stay in memory.
        """
        serializer = cls()
        serializer.shared = SharedValues()
        return serializer

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value that `data` encodes."""
        kind, stored = data
        if kind != "msgpack":
            return super().loads_typed(data)
        return self._shared(stored)

    def _unpacked(self, stored: bytes) -> Any:
        return ormsgpack.unpackb(
            stored, ext_hook=self._extension, option=ormsgpack.OPT_NON_STR_KEYS
        )

    def _shared(self, stored: bytes) -> Any:
        """Return the value of these bytes, that of an earlier turn if it is kept."""
        shared = self.shared.for_load() if self.shared is not None else None
        if shared is None or len(stored) not in SIZES:
            return self._unpacked(stored)
        known = shared.get(stored)
        return known if known is not None else shared.put(stored, self._unpacked(stored))

    def _extension(self, code: int, stored: bytes) -> Any:
        if code == EXT_PYDANTIC_V2:
            shared = self.shared.for_load() if self.shared is not None else None
            if shared is not None and (known := shared.get(stored)) is not None:
                return known
            try:
                module, name, fields, _ = self._unpacked(stored)
                kind, names = _FIELDS[module, name]
                if fields.keys() == names:
                    message = _message(kind, fields, names)
                    return message if shared is None else shared.put(stored, message)
            except (KeyError, TypeError, ValueError, AttributeError):  # another class, or damaged
                pass
        elif (
            code == EXT_PYDANTIC_V1
            and (parts := self._unpacked(stored))[0] == LongtableError.__module__
        ):
            return parts[2]  # what a step failed with: LangGraph keeps it for people to look at
        elif code == EXT_DELTA_SNAPSHOT:
            return self._langgraphs(code, _EMPTY_LIST)._replace(value=self._shared(stored))
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


class LoadingSaver(SqliteSaver):
    """LangGraph's saver for SQLite, except that it decodes fewer checkpoints to load a thread.

    A delta channel is rebuilt from the last checkpoint that holds the channel whole, and the writes
    since. LangGraph decodes each checkpoint on the way back, some 100 per turn, and searches for
    the writes of each channel separately. A checkpoint's metadata says which delta channels it does
    not hold whole; this saver decodes only checkpoints that may hold a wanted channel.
    """

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `BaseCheckpointSaver`."""
        try:
            return self._history(config, channels)
        except sqlite3.OperationalError:  # a table of an early version, opened for reading
            return super().get_delta_channel_history(config=config, channels=channels)

    def _history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        key = (
            str(config["configurable"]["thread_id"]),
            config["configurable"].get("checkpoint_ns", ""),
        )
        histories: dict[str, DeltaChannelHistory] = {
            channel: {"writes": []} for channel in channels
        }
        chain: dict[str, None] = {}
        unseeded = {channel: f'"{channel}":' for channel in channels}
        last = dict.fromkeys(channels, 0)
        with self.cursor(transaction=False) as cursor:
            cursor.execute(_ANCESTORS, (*key, get_checkpoint_id(config), *key))
            next(cursor, None)  # what was written on top of the checkpoint itself is not part of it
            for checkpoint_id, counters in cursor:
                if checkpoint_id in chain:
                    break
                chain[checkpoint_id] = None
                if not all(name in counters for name in unseeded.values()):
                    whole = self._values(key, checkpoint_id)
                    for channel in whole.keys() & unseeded.keys():
                        histories[channel]["seed"] = whole[channel]
                        last[channel] = len(chain)
                        del unseeded[channel]
                    if not unseeded:
                        break
            writes = cursor.execute(
                _WRITES, (json.dumps([*chain]), *key, json.dumps(channels))
            ).fetchall()
        for place, _, task_id, _, channel, kind, value in sorted(writes, key=_oldest_first):
            if channel in unseeded or place < last[channel]:
                histories[channel]["writes"].append(
                    (task_id, channel, self.serde.loads_typed((kind, value)))
                )
        return histories

    def _values(self, key: tuple[str, str], checkpoint_id: str) -> Mapping[str, Any]:
        stored = self.conn.execute(_CHECKPOINT, (*key, checkpoint_id)).fetchone()
        return self.serde.loads_typed(stored).get("channel_values") or {}


def _oldest_first(write: Sequence[Any]) -> Any:
    place, path, task_id, idx, *_ = write
    return -place, writes_sort_key(path, task_id, idx)


# -- what a damaged store still holds: a row that cannot be read names its thread and hides no other
