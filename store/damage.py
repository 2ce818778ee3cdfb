"""Read the undamaged parts of damaged threads, and report which threads are damaged."""

import json
import logging
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, cast

from longtable.base.errors import (
    ArchiveFormatError,
    ArchiveGapError,
    DamagedThreadError,
    LongtableError,
    ThreadBusyError,
    ThreadNotFoundError,
)
from longtable.store.records.retired import DAMAGED

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
"""The exceptions raised by decoding, and by later reading values that were decoded to something
wrong.
"""

Report = Callable[[DamagedThreadError], object]
"""Called by an operation over many threads for a thread that it cannot read; it then goes on with
the others.
"""

_log = logging.getLogger("longtable.store")

EPOCH = "1970-01-01 00:00:00"

TIMES = ("created_at", "updated_at")

text_factory = partial(str, encoding="utf-8", errors="replace")
"""Text factory for SQLite connections: by default, one byte that is not UTF-8 makes a whole query
fail.
"""


@contextmanager
def readable(thread_id: str, what: str = "its state") -> Iterator[None]:
    """Raise `DamagedThreadError` if the stored data of a thread cannot be decoded, or is no longer
    the data that was stored.
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
    """Return whether LangGraph's serializer raised the error: an unknown type there is damage, but
    a missing method elsewhere is not.
    """
    names = [
        call_config.f_globals.get("__name__", "")
        for call_config, _ in traceback.walk_tb(error.__traceback__)
    ]
    return str(names[-1]).startswith("langgraph.checkpoint.serde")


@contextmanager
def skip_unreadable(on_damaged: Report) -> Iterator[None]:
    """Leave the block quietly if its thread is gone, busy or damaged, and report a damaged thread.
    For operations over many threads.
    """
    try:
        yield
    except (ThreadNotFoundError, ThreadBusyError):  # deleted, or used again, since it was listed
        pass
    except DamagedThreadError as error:
        on_damaged(error)


def log_damaged(error: DamagedThreadError) -> None:
    """Write a warning to the log: the default if the caller gave no handler."""
    _log.warning("%s", error)


def item_value(text: object) -> dict[str, Any]:
    """Return the value of an item of the store, or a mark if it cannot be read."""
    try:
        value = json.loads(cast("str | bytes", text))
    except UNREADABLE:
        value = None
    return value if isinstance(value, dict) else {DAMAGED: True}


def item_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace unreadable times in a row, because one bad value would make LangGraph's whole query
    fail.
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
