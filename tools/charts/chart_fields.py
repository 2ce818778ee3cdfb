"""Find what kind of values the columns of a result hold, as far as a chart needs to know."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from longtable.base.errors import DatabaseError
from longtable.tools.catalog import nearest
from longtable.tools.cells import Json, json_value

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
    """A chart cannot be drawn as it was asked for; the message tells the model what to change."""

    def __init__(self, reason: str, *, place: str = "", hint: str = "") -> None:
        where = f" at {place}" if place else ""
        super().__init__(f"{reason}{where}" + (f": {hint}" if hint else ""))
        self.reason, self.place, self.hint = reason, place, hint


@dataclass(frozen=True)
class Field:
    """One column of a result: its name, kind, and number of different values (as far as scanned)."""

    name: str
    kind: Kind
    distinct: int
    whole: bool = False
    """Only whole numbers."""

    @property
    def path(self) -> str:
        """Return the name as Vega-Lite must be given it: points and brackets would be taken for a path."""
        return SPECIAL.sub(r"\\\1", self.name)


def fields_of(columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, Field]:
    """Return the columns by name; of equal names the first, and none whose name an object in a browser is ruled by."""
    found: dict[str, Field] = {}
    for place, name in enumerate(columns):
        if name in found or name in FORBIDDEN_NAMES:
            continue
        cells = [row[place] for row in rows[:SCANNED_ROWS] if place < len(row) and row[place] is not None]
        kind = _kind(cells) if cells else _declared(types[place] if place < len(types) else "")
        whole = kind == "number" and all(number == int(number) for cell in cells if (number := _finite(cell)) is not None)
        found[name] = Field(name, kind, len({str(cell) for cell in cells}), whole)
    return found


def find(fields: dict[str, Field], name: str, *, place: str) -> Field:
    """Return the column a spec names, escaped or not; raises `ChartSpecError` with the nearest names."""
    if name in fields:
        return fields[name]
    plain = re.sub(r"\\(.)", r"\1", name)
    if plain in fields:
        return fields[plain]
    close = nearest(name, fields) or list(fields)[:10]
    raise ChartSpecError(f"the result has no column {name[:60]!r}", place=place, hint=f"its columns: {', '.join(close)}")


def chart_value(cell: object, kind: Kind) -> Json:
    """Return a cell as a chart can use it: numbers kept as text become numbers, what is not finite is left out."""
    if kind == "number":
        return _finite(cell)
    value = json_value(cell)
    return str(value) if isinstance(value, list | dict) else value


def moment(value: Json) -> Json:
    """Return a date as a moment of the reader's own day: a browser takes 2024-01-01 for midnight in Greenwich."""
    if not isinstance(value, str):
        return value
    whole = value + "-01" if len(value) == 7 else value
    return whole + "T00:00:00" if len(whole) == 10 else whole.replace(" ", "T", 1)


def _finite(cell: object) -> float | int | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int):
        return cell if abs(cell) < 2**53 else float(cell) if abs(cell) < 10**300 else None
    if isinstance(cell, float | Decimal) or (isinstance(cell, str) and _NUMBER.fullmatch(cell.strip())):
        number = float(cell)
        return number if number - number == 0 else None
    return None


def _kind(cells: Sequence[object]) -> Kind:
    if all(isinstance(cell, bool) for cell in cells):
        return "truth"
    if all(isinstance(cell, date | datetime) or (isinstance(cell, str) and _ISO.fullmatch(cell)) for cell in cells):
        return "time"
    return "number" if all(map(_is_number, cells)) else "text"


def _is_number(cell: object) -> bool:
    """Return whether a cell is a number, also as text: some engines return exact decimals so. A leading zero makes it a code."""
    if isinstance(cell, str):
        return bool(_NUMBER.fullmatch(cell)) and not re.match(r"[-+]?0\d", cell)
    return isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)


def _declared(kind: str) -> Kind:
    for pattern, found in _TYPE_KINDS:
        if re.search(pattern, kind, re.IGNORECASE):
            return found
    return "text"
