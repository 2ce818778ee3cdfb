"""Read the undamaged parts of damaged threads, and report which threads are damaged."""

import json
import logging
import re
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, cast

import orjson

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
"""The exceptions that are raised by decoding damaged data, or later by reading values that were
decoded wrongly.
"""

Report = Callable[[DamagedThreadError], object]
"""A function that an operation over many threads calls for each thread that cannot be read. The
operation then continues with the next thread.
"""

_log = logging.getLogger("longtable.store")

EPOCH = "1970-01-01 00:00:00"

TIMES = ("created_at", "updated_at")

text_factory = partial(str, encoding="utf-8", errors="replace")
"""Text factory for SQLite connections, which replaces bytes that are not UTF-8. With Python's
default, one such byte makes a whole query fail.
"""


@contextmanager
def readable(thread_id: str, what: str = "its state") -> Iterator[None]:
    """Turn errors of damaged data within the block into `DamagedThreadError`. `what`: the data that
    the block reads.
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
    """Return whether LangGraph's serializer raised the error. `NotImplementedError` from the
    serializer means an unknown type, and so damage; from other code it means a missing method.
    """
    names = [
        call_config.f_globals.get("__name__", "")
        for call_config, _ in traceback.walk_tb(error.__traceback__)
    ]
    return str(names[-1]).startswith("langgraph.checkpoint.serde")


@contextmanager
def skip_unreadable(on_damaged: Report) -> Iterator[None]:
    """Suppress the error if the thread that the block reads is gone, busy or damaged, and report a
    damaged thread to `on_damaged`. This is for operations over many threads.
    """
    try:
        yield
    except (ThreadNotFoundError, ThreadBusyError):  # deleted, or used again, since it was listed
        pass
    except DamagedThreadError as error:
        on_damaged(error)


def log_damaged(error: DamagedThreadError) -> None:
    """Log a warning about a damaged thread. This is the default `Report`."""
    _log.warning("%s", error)


def item_value(text: object) -> dict[str, Any]:
    """Return the value of an item of the store, `{DAMAGED: True}` if the value cannot be read."""
    try:
        value = json_value(cast("str", text))
    except UNREADABLE:
        value = None
    return value if isinstance(value, dict) else {DAMAGED: True}


_LONG = re.compile(r"\d{19}")
_LONG_BYTES = re.compile(rb"\d{19}")


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. What orjson refuses, such as half a character, is read by
    Python, and so are long integers, which orjson rounds without an error.
    """
    is_long = _LONG_BYTES.search(text) if isinstance(text, bytes) else _LONG.search(text)
    if not is_long:
        with suppress(ValueError):
            return orjson.loads(text)
    return json.loads(text.decode() if isinstance(text, bytes) else text)


def item_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with unreadable times replaced by `EPOCH`, because one bad time would make
    LangGraph's whole query fail.
    """
    places = _time_places(cursor.description)
    if all(_is_time(row[place]) for place in places):
        return row
    cells = list(row)
    for place in places:
        if not _is_time(cells[place]):
            cells[place] = EPOCH
    return tuple(cells)


@lru_cache(maxsize=16)
def _time_places(description: tuple[tuple[Any, ...], ...]) -> tuple[int, ...]:
    """Return the places of the columns that hold times."""
    return tuple(place for place, column in enumerate(description) if column[0] in TIMES)


def _is_time(cell: object) -> bool:
    try:
        return isinstance(cell, str) and bool(datetime.fromisoformat(cell))
    except ValueError:
        return False
