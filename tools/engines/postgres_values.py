"""Turn PostgreSQL's values into Python's, and leave as the server's text what Python has no value for.

`infinity`, dates before our era and `24:00:00` would stop the whole result; an interval of months would turn into a
number of days; ranges and addresses have types of the driver's own, which nobody outside expects.
"""

import json
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.types import datetime as dates
from psycopg.types.string import TextLoader

RawConnection = psycopg.Connection[tuple[Any, ...]]

_AS_TEXT = [
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
    *("inet", "cidr"),
]


def _text(data: Buffer) -> str:
    return bytes(data).decode("utf-8", "replace")


class _OrText(Loader):
    """Read a value as the class after this one does, or as text where Python has no such value."""

    def load(self, data: Buffer) -> Any:
        try:
            return super().load(data)  # type: ignore[safe-super]  # the next class has a body
        except (psycopg.DataError, psycopg.NotSupportedError, OverflowError):
            return _text(data)


class IntervalLoader(_OrText, dates.IntervalLoader):
    """A timedelta, or the text of what has months and years: these have no fixed length."""

    def load(self, data: Buffer) -> Any:
        raw = bytes(data)
        return _text(raw) if b"mon" in raw or b"year" in raw else super().load(raw)


class JsonLoader(Loader):
    """Plain Python values, numbers without loss; the text where it is nested too deeply."""

    def load(self, data: Buffer) -> Any:
        text = _text(data)
        try:
            return json.loads(text, parse_float=Decimal)
        except (RecursionError, ValueError):  # ValueError: a whole number of more digits than Python reads
            return text


_DATES: dict[str, type[Loader]] = {
    "date": dates.DateLoader,
    "time": dates.TimeLoader,
    "timetz": dates.TimetzLoader,
    "timestamp": dates.TimestampLoader,
    "timestamptz": dates.TimestamptzLoader,
}
_LOADERS: dict[str, type[Loader]] = {
    **{name: type(f"{name}OrText", (_OrText, loader), {}) for name, loader in _DATES.items()},
    "interval": IntervalLoader,
    "json": JsonLoader,
    "jsonb": JsonLoader,
    **dict.fromkeys(_AS_TEXT, TextLoader),
}


def register(context: AdaptContext) -> None:
    """Make the connection read values this way; in arrays too."""
    adapters = context.adapters
    assert adapters is not None
    for name, loader in _LOADERS.items():
        adapters.register_loader(name, loader)
