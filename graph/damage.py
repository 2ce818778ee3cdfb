"""Read what a damaged store still holds: a row that cannot be read names its thread and hides no other."""

import json
import logging
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.errors import (
    ArchiveFormatError,
    ArchiveGapError,
    DamagedThreadError,
    LongtableError,
    ThreadBusyError,
    ThreadNotFoundError,
)
from longtable.memory.archive import DAMAGED
from longtable.nodes.state import thread_of, turn_of

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
"""What decoding raises, and what reading raises later of values that were decoded to something else."""
Report = Callable[[DamagedThreadError], object]
"""What an operation over many threads does about one that it cannot read; it goes on with the others."""
_log = logging.getLogger("longtable.store")
EPOCH = "1970-01-01 00:00:00"
TIMES = ("created_at", "updated_at")

text_factory = partial(str, encoding="utf-8", errors="replace")
"""For SQLite connections: by default one byte that is no UTF-8 makes a whole query fail."""


@contextmanager
def readable(thread_id: str, what: str = "its state") -> Iterator[None]:
    """Raise `DamagedThreadError` where what is stored of a thread cannot be decoded, or is not what was stored."""
    try:
        yield
    except (*UNREADABLE, NotImplementedError) as error:
        if isinstance(error, NotImplementedError) and not _is_of_serializer(error):
            raise
        why = str(error) if isinstance(error, LongtableError) else type(error).__name__  # other messages may quote what was said
        raise DamagedThreadError(thread_id, what=what, why=why) from error


def _is_of_serializer(error: Exception) -> bool:
    """Return whether LangGraph's serializer raised it: an unknown type there is damage, a missing method elsewhere is not."""
    names = [call_config.f_globals.get("__name__", "") for call_config, _ in traceback.walk_tb(error.__traceback__)]
    return str(names[-1]).startswith("langgraph.checkpoint.serde")


@contextmanager
def skip_unreadable(on_damaged: Report) -> Iterator[None]:
    """Leave the block where its thread is gone, busy or damaged; report a damaged one. For operations over many threads."""
    try:
        yield
    except (ThreadNotFoundError, ThreadBusyError):  # deleted, or used again, since it was listed
        pass
    except DamagedThreadError as error:
        on_damaged(error)


def log_damaged(error: DamagedThreadError) -> None:
    """Write a warning to the log, where the caller gave nothing else to do."""
    _log.warning("%s", error)


def check_values(values: Mapping[str, Any]) -> None:
    """Raise `ValueError` or the like where a thread's state lacks what every state has: msgpack also decodes damaged bytes."""
    if unsound := [message for message in values.get("messages") or [] if not is_sound(message)]:
        raise ValueError(f"{len(unsound)} messages lack what every message has")
    thread, turn = thread_of(values), turn_of(values)
    ids = [item["id"] for item in (*thread.compactions, *thread.edits)]
    numbers = [thread.archived, turn.get("number", 0), *(record[name] for record in thread.compactions for name in ("turn", "count"))]
    if not all(isinstance(each, str) for each in ids) or not all(isinstance(each, int) for each in numbers):
        raise ValueError("a record of the thread lacks its id or numbers")
    _ = (thread.chain, thread.excluded, thread.pins)


def is_sound(message: BaseMessage) -> bool:
    """Return whether a message has what every message has, of the right types."""
    calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    return bool(
        isinstance(message.id, str)
        and message.id
        and isinstance(message.content, str | list)
        and isinstance(message.additional_kwargs, dict)
        and isinstance(message.response_metadata, dict)
        and all(isinstance(call, dict) and {"name", "args", "id"} <= call.keys() for call in calls)
    )


def item_value(text: object) -> dict[str, Any]:
    """Return the value of an item of the store, or the mark of one that cannot be read."""
    try:
        value = json.loads(cast("str | bytes", text))
    except UNREADABLE:
        value = None
    return value if isinstance(value, dict) else {DAMAGED: True}


def item_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of the store with times that can be read: LangGraph parses them, and one that fails fails the query."""
    names = [column[0] for column in cursor.description]
    return tuple(EPOCH if name in TIMES and not _is_time(cell) else cell for name, cell in zip(names, row, strict=True))


def _is_time(cell: object) -> bool:
    try:
        return isinstance(cell, str) and bool(datetime.fromisoformat(cell))
    except ValueError:
        return False
