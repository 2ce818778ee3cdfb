"""Read the values of a ClickHouse result, exactly.

The server writes each row as a line of JSON, after a line of names and a line of types. JSON has
fewer kinds of values than ClickHouse, so each value is read by its type: decimals and times come as
texts, the keys of a map as texts, and numbers with all their digits.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

from longtable.base.errors import QueryFailedError
from longtable.tools.engines.base import Row

FORMAT = "JSONCompactEachRowWithNamesAndTypes"
FORMAT_SETTINGS = {
    "date_time_output_format": "iso",
    "output_format_json_quote_64bit_integers": "0",
    "output_format_json_quote_decimals": "1",
    "output_format_json_quote_denormals": "1",
    "output_format_decimal_trailing_zeros": "1",
    "output_format_json_named_tuples_as_objects": "1",
    "output_format_json_validate_utf8": "0",
}
"""Settings with which the lines of `FORMAT` say all of a value."""
MICROSECONDS = 6
"""The digits of a second that Python's times have. A longer time is a text."""

Convert = Callable[[object], object]


@dataclass(frozen=True)
class ColumnType:
    """A type: its name, and the types or literals in its brackets as texts."""

    name: str
    parts: tuple[str, ...] = ()


def read_type(text: str) -> ColumnType:
    """Read a type, such as `Map(String, Array(UInt8))`."""
    name, bracket, rest = text.strip().partition("(")
    if not bracket:
        return ColumnType(name)
    return ColumnType(name, tuple(_parts(rest.rstrip()[:-1])))


def _parts(text: str) -> list[str]:
    """Split a list at its commas, except those within brackets and quotes."""
    parts: list[str] = []
    depth = 0
    start = 0
    for match in re.finditer(r"'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|[(),]", text, re.DOTALL):
        if match[0] == "(":
            depth += 1
        elif match[0] == ")":
            depth -= 1
        elif match[0] == "," and depth == 0:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return [part for part in [*parts, text[start:].strip()] if part]


_WRAPPERS = ("Nullable", "LowCardinality")


def shown_type(text: str) -> str:
    """Return a type as people read it: without the wrappers of NULL and of a dictionary, and
    without the values of enums.
    """
    kind = read_type(text)
    if kind.name in _WRAPPERS:
        return shown_type(kind.parts[0])
    if kind.name.startswith("Enum"):
        return kind.name
    if kind.name in ("Array", "Map", "Tuple", "Nested", "Variant"):
        return f"{kind.name}({', '.join(map(_shown_part, kind.parts))})"
    return text.strip()


def _shown_part(text: str) -> str:
    name, kind = _named(text)
    return f"{name} {shown_type(kind)}" if name else shown_type(kind)


_NAMED = re.compile(r"(?P<name>`(?:[^`\\]|\\.)*`|\w+)\s+(?P<kind>\S.*)", re.DOTALL)


def _named(text: str) -> tuple[str, str]:
    """Return name and type of a part of a tuple, "" if it has no name."""
    match = _NAMED.fullmatch(text)
    return (match["name"], match["kind"]) if match else ("", text)


def is_nullable(text: str) -> bool:
    """Return whether values of a type may be NULL."""
    kind = read_type(text)
    if kind.name == "LowCardinality":
        return is_nullable(kind.parts[0])
    return kind.name in ("Nullable", "Variant", "Dynamic")


class Values:
    """Reads the values of one server, whose time zone is that of times without one."""

    def __init__(self, server_zone: tzinfo) -> None:
        self._zone = server_zone

    def converter(self, text: str, *, column: str) -> Convert:
        """Return what makes a value of a type from its JSON. Raises `QueryFailedError` for a type
        that has no values of its own.
        """
        kind = read_type(text)
        if kind.name == "AggregateFunction":
            raise QueryFailedError(
                f"the column {column!r} holds states of an aggregate function, which are no values",
                problem="type",
                hint=f"finish them by finalizeAggregation, or by the function with -Merge, such as"
                f" {kind.parts[0].partition('(')[0]}Merge({column})",
            )
        if kind.name in _WRAPPERS:
            return _unless_none(self.converter(kind.parts[0], column=column))
        if kind.name == "SimpleAggregateFunction":
            return self.converter(kind.parts[-1], column=column)
        if kind.name in ("Array", "Map", "Tuple", "Nested"):
            return self._nested(kind, column)
        return self._plain(kind)

    def _plain(self, kind: ColumnType) -> Convert:
        if kind.name.startswith("Decimal"):
            return lambda value: Decimal(str(value))
        if re.fullmatch(r"U?Int\d+", kind.name):
            return lambda value: int(str(value))
        if "Float" in kind.name:
            return lambda value: float(str(value))
        if kind.name in ("Date", "Date32"):
            return lambda value: date.fromisoformat(str(value))
        if kind.name in ("DateTime", "DateTime32", "DateTime64"):
            return self._time(kind)
        return _fixed if kind.name == "FixedString" else _text_or_bytes

    def _time(self, kind: ColumnType) -> Convert:
        names = [part.strip("'") for part in kind.parts if part.startswith("'")]
        zone = ZoneInfo(names[0].replace("\\", "")) if names else None

        def convert(value: object) -> object:
            text, _, fraction = str(value).removesuffix("Z").partition(".")
            micros = int(fraction[:MICROSECONDS].ljust(MICROSECONDS, "0"))
            instant = datetime.fromisoformat(text).replace(microsecond=micros, tzinfo=UTC)
            local = instant.astimezone(zone or self._zone)
            found = local if zone else local.replace(tzinfo=None)
            if len(fraction) <= MICROSECONDS:
                return found
            shown = found.replace(microsecond=0).isoformat(sep=" ")
            return f"{shown[:19]}.{fraction}{shown[19:]}"

        return convert

    def _nested(self, kind: ColumnType, column: str) -> Convert:
        if kind.name == "Array":
            return _list_of(self.converter(kind.parts[0], column=column))
        if kind.name == "Map":
            return _map_of(*(self.converter(part, column=column) for part in kind.parts))
        pairs = [_named(part) for part in kind.parts]
        inner = [self.converter(type_text, column=column) for _, type_text in pairs]
        each = _tuple_of(inner)
        return _list_of(each) if kind.name == "Nested" else each


def _unless_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _list_of(convert: Convert) -> Convert:
    return lambda value: [convert(item) for item in value] if isinstance(value, list) else value


def _map_of(key: Convert, item: Convert) -> Convert:
    return lambda value: (
        {key(name): item(inner) for name, inner in value.items()}
        if isinstance(value, dict)
        else value
    )


def _tuple_of(converts: Sequence[Convert]) -> Convert:
    def convert(value: object) -> object:
        if isinstance(value, dict):
            pairs = zip(value.items(), converts, strict=True)
            return {name: one(inner) for (name, inner), one in pairs}
        if isinstance(value, list):
            return tuple(one(inner) for inner, one in zip(value, converts, strict=True))
        return value

    return convert


def _text_or_bytes(value: object) -> object:
    """Return a text, or its bytes if it is no UTF-8."""
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape")
    return value


def _fixed(value: object) -> object:
    """Return a text of a fixed length without the zeros at its end, with which ClickHouse fills
    it.
    """
    return _text_or_bytes(value.rstrip("\0") if isinstance(value, str) else value)


class Reader:
    """Reads the lines of one result."""

    def __init__(self, names: bytes, types: bytes, values: Values) -> None:
        self.columns: tuple[str, ...] = tuple(map(str, _line(names)))
        kinds = [str(kind) for kind in _line(types)]
        self.types: tuple[str, ...] = tuple(map(shown_type, kinds))
        self._converts = [
            values.converter(kind, column=name)
            for kind, name in zip(kinds, self.columns, strict=True)
        ]

    def row(self, line: bytes) -> Row:
        """Return one row."""
        cells = zip(self._converts, _line(line), strict=True)
        return tuple(convert(cell) for convert, cell in cells)


def _line(line: bytes) -> list[object]:
    found: list[object] = json.loads(line.decode("utf-8", "surrogateescape"))
    return found
