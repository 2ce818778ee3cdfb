"""Encode the messages between a worker and its caller as frames of msgpack. Decoding them runs no
code.

Values keep their Python types. Only plain values, the classes listed here, and the errors of the
database side can be sent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import RawIOBase
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import ormsgpack

from longtable.base import errors
from longtable.base.errors import ConfigError, DatabaseError, LongtableError, MissingExtraError
from longtable.tools.catalog import Catalog, Column, ForeignKey, Reflected, RowFilter, Table
from longtable.tools.engines.base import FileLimits, LoadNote, QueryLimits, QueryResult, Row
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.sql.verdict import (
    Masks,
    OwnSql,
    Plan,
    Predicate,
    Predicates,
    Probe,
    Scan,
    Verdict,
)

BLOCK_ROWS = 2_000
"""How many rows of a result are sent in one frame. The caller decodes a block while the worker
encodes the next one. Smaller blocks cost more calls, and larger ones do not fit into the caches of
a processor.
"""


@dataclass(frozen=True)
class Rows:
    """The rows of a result. They are encoded column by column, which takes a third of the time of
    encoding each cell.
    """

    rows: Sequence[Row]


@dataclass(frozen=True)
class Block:
    """Rows of a result of which more will follow."""

    rows: Sequence[Row]


@dataclass(frozen=True)
class _Pairs:
    """A dict in which not all keys are text."""

    items: list[list[object]]


_PYTZ = "pytz:"
"""Prefix of a time zone's name if it is a zone of pytz. DuckDB used pytz up to version 2.0.0."""


def _zoned(text: str) -> datetime:
    """Return the time that `_datetime_text` wrote as this text."""
    plain, _, zone = text.partition(" ")
    time_ = datetime.fromisoformat(plain)
    if not zone:
        return time_
    if zone.startswith(_PYTZ):
        import pytz

        return time_.astimezone(pytz.timezone(zone.removeprefix(_PYTZ)))
    return time_.astimezone(ZoneInfo(zone))


def _datetime_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    if zone := getattr(value.tzinfo, "zone", ""):
        return f"{value.isoformat()} {_PYTZ}{zone}"
    if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
        return f"{value.isoformat()} {value.tzinfo.key}"
    return value.isoformat()


def _delta_text(value: timedelta) -> str:
    return f"{value.days} {value.seconds} {value.microseconds}"


_TEXTS: tuple[tuple[Any, Callable[[Any], str], Callable[[str], object]], ...] = (
    (int, str, int),  # of more than 64 bits
    (Decimal, str, Decimal),
    (date, date.isoformat, date.fromisoformat),
    (datetime, _datetime_text, _zoned),
    (time, time.isoformat, time.fromisoformat),
    (timedelta, _delta_text, lambda text: timedelta(*map(int, text.split()))),
    (UUID, str, UUID),
)
"""Types that are sent as text, each with the functions that write and read a value. The place of a
type in this list is its code in a message.
"""
_CODES = {kind: code for code, (kind, *_) in enumerate(_TEXTS)}
_TUPLE, _SET, _OBJECT, _ERROR, _ROWS, _PAIRS, _BLOCK = range(len(_TEXTS), len(_TEXTS) + 7)

_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Catalog, Column, ForeignKey, Reflected, RowFilter, Table, TablePolicy),
        *(FileLimits, LoadNote, QueryLimits, QueryResult),
        *(Masks, OwnSql, Plan, Predicate, Predicates, Probe, Scan, Verdict),
    )
}
_ERRORS: dict[str, type[LongtableError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, DatabaseError | ConfigError | MissingExtraError)
}
_OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


def encode(value: object) -> bytes:
    """Return a value as bytes. Raises `TypeError` if the value has an unknown type or more than
    about 250 levels of nesting.
    """
    try:
        return ormsgpack.packb(value, default=_extension, option=_OPTIONS)
    except TypeError:
        return ormsgpack.packb(_paired(value), default=_extension, option=_OPTIONS)


def decode(data: bytes | bytearray) -> Any:
    """Return the value that `encode` wrote. Raises `ValueError` for other bytes."""
    return ormsgpack.unpackb(data, ext_hook=_read_extension)


def encode_answer(answer: object) -> Iterator[bytes]:
    """Yield an answer in parts. The parts before the last one hold a block of rows each. Raises
    `TypeError` as `encode` does.
    """
    if isinstance(answer, QueryResult | Rows):
        rows = answer.rows
        first = 0
        while len(rows) - first > BLOCK_ROWS:
            yield encode(Block(rows[first : first + BLOCK_ROWS]))
            first += BLOCK_ROWS
        if first:
            answer = replace(answer, rows=list(rows[first:]))
    yield encode(answer)


def decode_answer(parts: Iterable[bytes | bytearray]) -> Any:
    """Return the answer that `encode_answer` wrote, and read no part after it. Raises `ValueError`
    for other bytes.
    """
    rows: list[Row] = []
    for part in parts:
        value = decode(part)
        if isinstance(value, Block):
            rows += value.rows
        elif isinstance(value, QueryResult):
            return replace(value, rows=rows + value.rows)
        else:
            return rows + value if isinstance(value, list) else value
    raise ValueError("the last part of an answer is missing")


def _paired(value: object) -> object:
    if isinstance(value, list):
        return [_paired(item) for item in value]
    if isinstance(value, dict):
        return _Pairs([[key, _paired(item)] for key, item in value.items()])
    return value


def _extension(value: Any) -> ormsgpack.Ext:
    kind = type(value)
    if (code := _CODES.get(kind)) is not None:
        return ormsgpack.Ext(code, _TEXTS[code][1](value).encode())
    if kind is tuple:
        return ormsgpack.Ext(_TUPLE, encode(list(value)))
    if kind is frozenset:
        return ormsgpack.Ext(_SET, encode(list(value)))
    if kind is Rows or kind is Block:
        columns = [_written_column(cells) for cells in zip(*value.rows, strict=True)]
        return ormsgpack.Ext(_ROWS if kind is Rows else _BLOCK, encode(columns))
    if kind is _Pairs:
        return ormsgpack.Ext(_PAIRS, encode(value.items))
    if kind.__name__ in _CLASSES:
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        if kind is QueryResult:
            parts["rows"] = Rows(value.rows)
        return ormsgpack.Ext(_OBJECT, encode([kind.__name__, parts]))
    if isinstance(value, LongtableError):
        name = next(
            parent.__name__ for parent in kind.__mro__ if _ERRORS.get(parent.__name__) is parent
        )
        return ormsgpack.Ext(_ERROR, encode([name, str(value), vars(value)]))
    raise TypeError(f"a {kind.__name__} cannot pass between processes")


def _read_extension(code: int, data: bytes) -> object:
    if code < len(_TEXTS):
        return _TEXTS[code][2](bytes(data).decode())
    value = decode(data)
    if code == _TUPLE:
        return tuple(value)
    if code == _SET:
        return frozenset(value)
    if code == _ROWS:
        return list(zip(*map(_read_column, value), strict=True))
    if code == _BLOCK:
        return Block(list(zip(*map(_read_column, value), strict=True)))
    if code == _PAIRS:
        return dict(value)
    name, *rest = value
    if code == _OBJECT:
        return _CLASSES[name](**rest[0])
    text, parts = rest
    error = _ERRORS[name].__new__(_ERRORS[name], text)
    vars(error).update(parts)
    return error


def _written_column(cells: Sequence[Any]) -> object:
    """Return a column as bytes if msgpack has all of its values. Otherwise return `[code,
    holds_none, cells]`. `code` is the place of the cells' type in `_TEXTS`, None if they are of
    several types. `holds_none`: whether some cells are None.
    """
    try:
        return ormsgpack.packb(list(cells), option=_OPTIONS)  # most columns: no look at each cell
    except TypeError:
        kinds = set(map(type, cells))
    holds_none = type(None) in kinds
    kinds.discard(type(None))
    code = _CODES.get(next(iter(kinds))) if len(kinds) == 1 else None
    if code in (None, _CODES[int]):  # most integers need no text
        return [None, holds_none, list(cells)]
    if code == _CODES[date] or (
        code == _CODES[datetime] and not any(cell is not None and cell.tzinfo for cell in cells)
    ):
        # It writes dates in a quarter of the time.
        return [code, holds_none, ormsgpack.packb(list(cells))]
    return [code, holds_none, _each(_TEXTS[code][1], cells, holds_none)]


def _read_column(column: bytes | list[Any]) -> list[object]:
    if isinstance(column, bytes):
        return cast("list[object]", ormsgpack.unpackb(column))
    code, holds_none, cells = column
    if code is None:
        return cast("list[object]", cells)
    kind, _, read = _TEXTS[code]
    if isinstance(cells, bytes):  # dates, or times of no zone
        return _each(kind.fromisoformat, ormsgpack.unpackb(cells), holds_none)
    return _each(read, cells, holds_none)


def _each(change: Callable[[Any], object], cells: Sequence[Any], holds_none: bool) -> list[object]:
    if holds_none:
        return [None if cell is None else change(cell) for cell in cells]
    return list(map(change, cells))


_SIZE_BYTES = 8


def write_frame(stream: RawIOBase, body: bytes) -> None:
    """Write one frame. Raises `BrokenPipeError` if nobody reads the stream."""
    left = memoryview(len(body).to_bytes(_SIZE_BYTES, "big") + body)
    while left:
        left = left[stream.write(left) or 0 :]


def read_frame(stream: RawIOBase, *, most: int) -> bytearray:
    """Read one frame. Raises `EOFError` at the end of the stream, and for a frame of more than
    `most` bytes.
    """
    size = int.from_bytes(_exactly(stream, _SIZE_BYTES), "big")
    if size > most:
        raise EOFError(f"a frame of {size:,} bytes, {most:,} are allowed")
    return _exactly(stream, size)


def _exactly(stream: RawIOBase, size: int) -> bytearray:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        count = stream.readinto(left)
        if not count:
            raise EOFError("the stream has ended")
        left = left[count:]
    return data
