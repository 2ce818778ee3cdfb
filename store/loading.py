"""Load threads from a store: quickly, and as far as one that is damaged can still be read."""

import json
import logging
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, cast

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
    ArchiveFormatError,
    ArchiveGapError,
    DamagedThreadError,
    LongtableError,
    ThreadBusyError,
    ThreadNotFoundError,
)
from longtable.store.records.retired import DAMAGED

_FIELDS = {
    (kind.__module__, kind.__name__): (kind, frozenset(kind.model_fields))
    for kind in (AIMessage, HumanMessage, SystemMessage, ToolMessage)
}
_EMPTY_LIST = ormsgpack.packb([])
_METADATA = "CAST(c.metadata AS TEXT)"
_ANCESTORS = f"""WITH RECURSIVE ancestors(checkpoint_id, parent, counters) AS (
    SELECT checkpoint_id, parent_checkpoint_id, NULL FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id,
        iif(json_valid({_METADATA}), json_extract({_METADATA}, '$.counters_since_delta_snapshot'), NULL)
    FROM ancestors a CROSS JOIN checkpoints c ON c.checkpoint_id = a.parent WHERE c.thread_id = ? AND c.checkpoint_ns = ?
) SELECT checkpoint_id, coalesce(counters, '') FROM ancestors"""
"""A checkpoint, then those before it, newest first, each with how long ago the delta channels were
stored whole, as JSON.
"""
_WRITES = """SELECT chain.key, w.task_path, w.task_id, w.idx, w.channel, w.type, w.value FROM json_each(?) chain
    CROSS JOIN writes w ON w.checkpoint_id = chain.value
    WHERE w.thread_id = ? AND w.checkpoint_ns = ? AND w.channel IN (SELECT value FROM json_each(?))"""
_CHECKPOINT = (
    "SELECT type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND"
    " checkpoint_id = ?"
)


class MessageSerializer(JsonPlusSerializer):
    """LangGraph's serializer, except that messages which hold exactly their class's fields are
    rebuilt from these fields.

    They were valid when they were written, and to validate them again took more than half of the
    time: 8.2 us for a message of 300 bytes, 3.6 without. All else (subclasses, fields of another
    version, damaged bytes) is decoded by LangGraph.
    """

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value."""
        kind, stored = data
        return self._unpacked(stored) if kind == "msgpack" else super().loads_typed(data)

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
                    return _message(kind, fields)
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


def _message(kind: type[BaseMessage], fields: dict[str, Any]) -> BaseMessage:
    """Return a message as pydantic's `model_construct` makes it, in a quarter of its time."""
    message = kind.__new__(kind)
    set_ = object.__setattr__
    set_(message, "__dict__", fields)
    set_(message, "__pydantic_fields_set__", set(fields))
    set_(message, "__pydantic_extra__", {})
    set_(message, "__pydantic_private__", None)
    return message


class LoadingSaver(SqliteSaver):
    """LangGraph's saver for SQLite, except that it decodes only those earlier checkpoints that may
    hold a channel whole.

    A checkpoint's metadata says which delta channels it does not hold whole. LangGraph decodes each
    checkpoint on the way, some 100 at a turn, and looks for the writes of each channel on their
    own.
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

UNREADABLE = (
    ValueError,  # also what JSON, msgpack, encodings and ciphers raise
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ArchiveFormatError,
    ArchiveGapError,
)
"""What decoding raises, and what reading raises later of values that were decoded to something
else.
"""
Report = Callable[[DamagedThreadError], object]
"""What an operation over many threads does about one that it cannot read; it goes on with the
others.
"""
_log = logging.getLogger("longtable.store")
EPOCH = "1970-01-01 00:00:00"
TIMES = ("created_at", "updated_at")

text_factory = partial(str, encoding="utf-8", errors="replace")
"""For SQLite connections: by default one byte that is no UTF-8 makes a whole query fail."""


@contextmanager
def readable(thread_id: str, what: str = "its state") -> Iterator[None]:
    """Raise `DamagedThreadError` where what is stored of a thread cannot be decoded, or is not what
    was stored.
    """
    try:
        yield
    except (*UNREADABLE, NotImplementedError) as error:
        if isinstance(error, NotImplementedError) and not _is_of_serializer(error):
            raise
        # Other messages may quote what was said.
        why = str(error) if isinstance(error, LongtableError) else type(error).__name__
        raise DamagedThreadError(thread_id, what=what, why=why) from error


def _is_of_serializer(error: Exception) -> bool:
    """Return whether LangGraph's serializer raised it: an unknown type there is damage, a missing
    method elsewhere is not.
    """
    names = [
        call_config.f_globals.get("__name__", "")
        for call_config, _ in traceback.walk_tb(error.__traceback__)
    ]
    return str(names[-1]).startswith("langgraph.checkpoint.serde")


@contextmanager
def skip_unreadable(on_damaged: Report) -> Iterator[None]:
    """Leave the block where its thread is gone, busy or damaged; report a damaged one. For
    operations over many threads.
    """
    try:
        yield
    except (ThreadNotFoundError, ThreadBusyError):  # deleted, or used again, since it was listed
        pass
    except DamagedThreadError as error:
        on_damaged(error)


def log_damaged(error: DamagedThreadError) -> None:
    """Write a warning to the log, where the caller gave nothing else to do."""
    _log.warning("%s", error)


def item_value(text: object) -> dict[str, Any]:
    """Return the value of an item of the store, or the mark of one that cannot be read."""
    try:
        value = json.loads(cast("str | bytes", text))
    except UNREADABLE:
        value = None
    return value if isinstance(value, dict) else {DAMAGED: True}


def item_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of the store with times that can be read: LangGraph parses them, and one that
    fails fails the query.
    """
    names = [column[0] for column in cursor.description]
    return tuple(
        EPOCH if name in TIMES and not _is_time(cell) else cell
        for name, cell in zip(names, row, strict=True)
    )


def _is_time(cell: object) -> bool:
    try:
        return isinstance(cell, str) and bool(datetime.fromisoformat(cell))
    except ValueError:
        return False
