"""What a chart is made of: the columns of a result and their kinds, and a spec that is plain
bounded JSON.

A spec holds no data, no address and no expression, and is valid by Vega-Lite's schema.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate
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
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
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
    """One column of a result: its name, kind, and number of different values (as far as
    scanned).
    """

    name: str
    kind: Kind
    distinct: int
    whole: bool = False
    """Only whole numbers."""

    @property
    def path(self) -> str:
        """Return the name as Vega-Lite must be given it: points and brackets would be taken for a
        path.
        """
        return SPECIAL.sub(r"\\\1", self.name)


def fields_of(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]]
) -> dict[str, Field]:
    """Return the columns by name; of equal names the first, and none whose name an object in a
    browser is ruled by.
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
        fields[name] = Field(name, kind, len({str(cell) for cell in cells}), whole)
    return fields


def find(fields: dict[str, Field], name: str, *, place: str) -> Field:
    """Return the column a spec names, escaped or not; raises `ChartSpecError` with the nearest
    names.
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
    """Return a cell as a chart can use it: numbers kept as text become numbers, what is not finite
    is left out.
    """
    if kind == "number":
        return _finite(cell)
    value = json_value(cell)
    return str(value) if isinstance(value, list | dict) else value


def moment(value: Json) -> Json:
    """Return a date as a moment of the reader's own day: a browser takes 2024-01-01 for midnight in
    Greenwich.
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
    """Return whether a cell is a number, also as text: some engines return exact decimals so. A
    leading zero makes it a code.
    """
    if isinstance(cell, str):
        return bool(_NUMBER.fullmatch(cell)) and not re.match(r"[-+]?0\d", cell)
    return isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)


def _declared(kind: str) -> Kind:
    for pattern, field_kind in _TYPE_KINDS:
        if re.search(pattern, kind, re.IGNORECASE):
            return field_kind
    return "text"


MAX_SPEC_CHARS = 20_000
MAX_DEPTH = 24
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


def plain_copy(spec: Mapping[str, object]) -> Spec:
    """Return a deep copy as plain JSON, its size and depth bounded before anything else looks at
    it.
    """
    if not isinstance(spec, Mapping):
        raise ChartSpecError("the spec is not a JSON object", hint="send one Vega-Lite spec")
    try:
        text = json.dumps(spec, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ChartSpecError(
            f"the spec is not JSON ({clip(str(error), 80)})", hint="send one Vega-Lite spec"
        ) from error
    if len(text) > MAX_SPEC_CHARS:
        raise ChartSpecError(
            f"the spec has more than {MAX_SPEC_CHARS:,} characters",
            hint="leave data out: it comes by its handle",
        )
    brackets = ((char in "{[") - (char in "]}") for char in _QUOTED.sub("", text))
    if max(accumulate(brackets)) > MAX_DEPTH:
        raise ChartSpecError(
            f"the spec is nested more than {MAX_DEPTH} deep", hint="draw it in a simpler way"
        )
    copied: Spec = json.loads(text)
    return copied


def drop_data(tree: Spec) -> None:
    """Remove `data` that is only a name; refuse any other."""
    data = tree.get("data")
    if "data" in tree and not (
        data is None
        or (isinstance(data, dict) and set(data) == {"name"} and isinstance(data["name"], str))
    ):
        raise ChartSpecError(
            "data comes by its handle only", place="data", hint="leave `data` out of the spec"
        )
    tree.pop("data", None)


def walk(node: Json, place: str) -> Iterator[tuple[str, Json, str]]:
    """Yield every value under a node with its place and key."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{place}.{key}".lstrip("."), value, key
            yield from walk(value, f"{place}.{key}".lstrip("."))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from walk(value, f"{place}[{number}]")


def check_value(place: str, key: str, value: Json) -> None:
    """Refuse what loads, links, runs or grows without bounds."""
    clipped = clip(place, 80)
    if key in FORBIDDEN_NAMES:
        raise ChartSpecError(f"{key!r} is not allowed", place=clipped, hint="leave it out")
    if key in _REASONS:
        hint = (
            "leave it out; compute it in the SQL instead"
            if "expressions" in _REASONS[key]
            else "leave it out"
        )
        raise ChartSpecError(_REASONS[key], place=clipped, hint=hint)
    parts = (
        value
        if key in ("and", "or") and isinstance(value, list)
        else [value]
        if key in ("filter", "test", "not")
        else []
    )
    if not all(isinstance(part, dict) for part in parts):
        raise ChartSpecError(
            "expressions are not run",
            place=clipped,
            hint='write {"field": "n", "gt": 5}, or filter in the SQL',
        )
    if key in _MOST and isinstance(value, int | float) and not 0 <= value <= _MOST[key]:
        raise ChartSpecError(
            f"{key} is {value:g}", place=clipped, hint=f"it must be from 0 to {_MOST[key]:,}"
        )
    if key in ("tickCount", "bins", "keyvals", "nice") and isinstance(value, dict):
        raise ChartSpecError(
            f"{key} as an object is not supported",
            place=clipped,
            hint="leave it out or give a number",
        )
    if key == "bin" and isinstance(value, dict) and set(value) - {"maxbins", "nice"}:
        raise ChartSpecError(
            "of bin only maxbins is supported", place=clipped, hint='write {"maxbins": 20} or true'
        )
    if (
        isinstance(value, str)
        and re.search(r"://|url\s*\(|javascript:", value, re.IGNORECASE)
        and key not in ("title", "text", "description", "subtitle")
    ):
        raise ChartSpecError("nothing may be loaded", place=clipped, hint="leave the address out")


def validate(tree: Spec) -> None:
    """Validate the spec by altair's copy of the Vega-Lite schema, if the extra `charts` is
    installed.
    """
    try:
        import altair
        from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]  # altair's own dependency
    except ImportError:
        # Text is drawn from what is checked above; a picture is drawn only where this check is
        # made, too.
        return
    names = {
        "layer": "LayerChart",
        "hconcat": "HConcatChart",
        "vconcat": "VConcatChart",
        "concat": "ConcatChart",
    }
    names |= {"repeat": "RepeatChart", "facet": "FacetChart"}
    kind = getattr(altair, next((name for key, name in names.items() if key in tree), "Chart"))
    # The schema wants data; the rows come at drawing.
    try:
        kind.from_dict({**deepcopy(tree), "data": {"name": "result"}}, validate=True)
    except ValidationError as error:
        place = ".".join(map(str, error.absolute_path))
        raise ChartSpecError(
            f"the spec is not valid Vega-Lite: {clip(error.message.splitlines()[0], 160)}",
            place=clip(place, 80),
            hint="mend this part",
        ) from error
