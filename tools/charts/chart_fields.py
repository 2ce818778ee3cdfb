"""The parts of a chart: the columns of a result with their kinds, the values of its cells as a
chart uses them, and the check of each value in a spec.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from longtable.base.errors import DatabaseError
from longtable.tools.catalog import nearest
from longtable.tools.cells import Json, clip, json_value

Kind = Literal["number", "time", "truth", "text"]
Spec = dict[str, Json]
SCANNED_ROWS = 2_000
SPECIAL = re.compile(r"([\\.\[\]'\"])")
FORBIDDEN_NAMES = frozenset({"__proto__", "constructor", "prototype"})
_ISO = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])(?:-\d\d(?:[T ]\d\d:\d\d.*)?)?")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TYPE_KINDS: tuple[tuple[str, Kind], ...] = (
    (r"bool", "truth"),
    (r"date|time", "time"),
    (r"int|num|dec|real|doub|float|serial|money", "number"),
)


class ChartSpecError(DatabaseError):
    """A chart cannot be drawn as asked; the message tells the model what to change."""

    def __init__(self, reason: str, *, place: str = "", hint: str = "") -> None:
        where = f" at {place}" if place else ""
        super().__init__(f"{reason}{where}" + (f": {hint}" if hint else ""))
        self.reason = reason
        self.place = place
        self.hint = hint


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


Fault = tuple[object, str, str]
"""A possible fault: a value that is true if the fault is there, its description, and the advice to
the model.
"""


def refuse(place: str, *faults: Fault) -> None:
    """Raise `ChartSpecError` for the first fault that is there; do nothing if there is none."""
    for is_wrong, reason, hint in faults:
        if is_wrong:
            raise ChartSpecError(reason, place=place, hint=hint)


@dataclass(frozen=True)
class Field:
    """One column of a result. `distinct` is the number of its different values among the first
    `SCANNED_ROWS` rows.
    """

    name: str
    kind: Kind
    distinct: int
    whole: bool = False
    """Whether all values are whole numbers."""
    sample: str = ""
    """The first value that is not NULL, as text."""

    @property
    def path(self) -> str:
        """Return the column's name as Vega-Lite needs it. Dots, brackets and quotes are escaped,
        because Vega-Lite would read a name that contains them as a path.
        """
        return SPECIAL.sub(r"\\\1", self.name)


def fields_of(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]]
) -> dict[str, Field]:
    """Return the columns by name. If several columns have the same name, only the first is
    returned. Names that JavaScript reserves are left out.
    """
    fields: dict[str, Field] = {}
    for place, name in enumerate(columns):
        if name in fields or name in FORBIDDEN_NAMES:
            continue
        cells = [
            row[place] for row in rows[:SCANNED_ROWS] if place < len(row) and row[place] is not None
        ]
        kind = _kind(cells) if cells else _declared(types[place] if place < len(types) else "")
        whole = kind == "number" and all(
            number == int(number) for cell in cells if (number := _finite(cell)) is not None
        )
        texts = list(map(str, cells))
        fields[name] = Field(name, kind, len(set(texts)), whole, texts[0] if texts else "")
    return fields


def find(fields: dict[str, Field], name: str, *, place: str) -> Field:
    """Return the column that a spec names; the name may be escaped. Raises `ChartSpecError` with
    the nearest names if there is no such column.
    """
    if name in fields:
        return fields[name]
    plain = re.sub(r"\\(.)", r"\1", name)
    if plain in fields:
        return fields[plain]
    close = nearest(name, fields) or list(fields)[:10]
    raise ChartSpecError(
        f"the result has no column {name[:60]!r}",
        place=place,
        hint=f"its columns: {', '.join(close)}",
    )


def chart_value(cell: object, kind: Kind) -> Json:
    """Return a cell as a chart can use it. In a column of numbers, a number kept as text becomes a
    number, and a value that is not a finite number becomes None.
    """
    if kind == "number":
        return _finite(cell)
    value = json_value(cell)
    return str(value) if isinstance(value, list | dict) else value


def moment(value: Json) -> Json:
    """Add a time of day to a date that has none. A browser would read a bare 2024-01-01 as midnight
    UTC, but reads a date with a time as local time.
    """
    if not isinstance(value, str):
        return value
    whole = value + "-01" if len(value) == 7 else value
    return whole + "T00:00:00" if len(whole) == 10 else whole.replace(" ", "T", 1)


def _finite(cell: object) -> float | int | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int):
        return cell if abs(cell) < 2**53 else float(cell) if abs(cell) < 10**300 else None
    if isinstance(cell, float | Decimal) or (
        isinstance(cell, str) and _NUMBER.fullmatch(cell.strip())
    ):
        number = float(cell)
        return number if number - number == 0 else None
    return None


def _kind(cells: Sequence[object]) -> Kind:
    if all(isinstance(cell, bool) for cell in cells):
        return "truth"
    if all(
        isinstance(cell, date | datetime) or (isinstance(cell, str) and _ISO.fullmatch(cell))
        for cell in cells
    ):
        return "time"
    return "number" if all(map(_is_number, cells)) else "text"


def _is_number(cell: object) -> bool:
    """Return whether a cell is a number, or a text that holds a number: some engines return exact
    decimals as text. A text with a leading zero, such as 007, is a code and not a number.
    """
    if isinstance(cell, str):
        return bool(_NUMBER.fullmatch(cell)) and not re.match(r"[-+]?0\d", cell)
    return isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)


def _declared(name: str) -> Kind:
    kinds = (kind for pattern, kind in _TYPE_KINDS if re.search(pattern, name, re.IGNORECASE))
    return next(kinds, "text")


MAX_PIXELS = 2_000
_REASONS = {
    "url": "nothing may be loaded",
    "href": "nothing may be linked",
    "src": "nothing may be loaded",
    "expr": "expressions are not run",
    "signal": "expressions are not run",
    "signals": "expressions are not run",
    "labelExpr": "expressions are not run",
    "calculate": "expressions are not run",
    "params": "parameters are not supported",
    "bind": "parameters are not supported",
    "usermeta": "settings of a page are not supported",
    "datasets": "data comes by its handle only",
    "data": "data comes by its handle only",
    "lookup": "data comes by its handle only",
    "projection": "maps are not supported",
    "customFormatTypes": "expressions are not run",
}
_MOST = {"width": MAX_PIXELS, "height": MAX_PIXELS, "step": 200, "maxbins": 200, "tickCount": 200, "padding": 500, "offset": 500,
         "size": 10_000, "fontSize": 200, "strokeWidth": 200, "columns": 20, "spacing": 500, "labelLimit": 2_000, "limit": 2_000,
         "innerRadius": MAX_PIXELS, "outerRadius": MAX_PIXELS, "radius": MAX_PIXELS}  # fmt: skip


def walk(node: Json, place: str) -> Iterator[tuple[str, Json, str]]:
    """Yield each value under a node, at any depth, as (place, value, key)."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{place}.{key}".lstrip("."), value, key
            yield from walk(value, f"{place}.{key}".lstrip("."))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from walk(value, f"{place}[{number}]")


def check_value(place: str, key: str, value: Json) -> None:
    """Refuse a value that loads, links or runs something, or grows without bounds."""
    if key in _MOST and isinstance(value, int | float) and not 0 <= value <= _MOST[key]:
        raise ChartSpecError(
            f"{key} is {value:g}",
            place=clip(place, 80),
            hint=f"it must be from 0 to {_MOST[key]:,}",
        )
    reason = _REASONS.get(key, "")
    conditions = [value] if key in ("filter", "test", "not") else []
    if key in ("and", "or") and isinstance(value, list):
        conditions = value
    forbidden: Fault = (key in FORBIDDEN_NAMES, f"{key!r} is not allowed", "leave it out")
    hint = "leave it out; compute it in the SQL instead" if "expressions" in reason else ""
    unsupported: Fault = (reason, reason, hint or "leave it out")
    expression: Fault = (
        not all(isinstance(condition, dict) for condition in conditions),
        "expressions are not run",
        'write {"field": "n", "gt": 5}, or filter in the SQL',
    )
    an_object: Fault = (
        key in ("tickCount", "bins", "keyvals", "nice") and isinstance(value, dict),
        f"{key} as an object is not supported",
        "leave it out or give a number",
    )
    other_bin: Fault = (
        key == "bin" and isinstance(value, dict) and set(value) - {"maxbins", "nice"},
        "of bin only maxbins is supported",
        'write {"maxbins": 20} or true',
    )
    address: Fault = (
        isinstance(value, str)
        and re.search(r"://|url\s*\(|javascript:", value, re.IGNORECASE)
        and key not in ("title", "text", "description", "subtitle"),
        "nothing may be loaded",
        "leave the address out",
    )
    short = clip(place, 80)
    refuse(short, forbidden, unsupported, expression, an_object, other_bin, address)
