"""Convert database values to plain JSON that is safe to show to a model or on a terminal."""

import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

CELL_CHARS = 120
SAFE_INTEGER = 2**53
"""The largest integer that is written as a JSON number. Most readers lose digits of larger ones."""

# What a terminal obeys: whole escape sequences, so that no "[31m" is left of them.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*["
    " -/]*[@-~]|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?|\x1b[ -/]*[0-~]?"
)
# C0 and C1 but tab and newline; what has no width, turns text direction around or ends a line in
# some programs only; tags and variation selectors, which can carry a hidden text; private line
# marks; halves of surrogate pairs.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
    # Joiners, but where Persian, the scripts of India and emoji are written with them.
    "|(?<![\u0600-\u0dff\u0f00-\u109f\u1780-\u17ff\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])[\u200c\u200d]"
)

# PostgreSQL's names its enum, and its list may be cut; DuckDB's has no name and may stand within
# other types.
_LISTED = re.compile(r"^(ENUM [^(]*)\(.*\)", re.IGNORECASE | re.DOTALL)
_LABELS = re.compile(r"\b(ENUM)\((?:\s*'(?:[^']|'')*'\s*,?)*\)", re.IGNORECASE)


def clean(text: str) -> str:
    """Remove invisible characters and escape sequences, which a terminal would obey."""
    return _UNSEEN.sub(
        "", _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text or "\x9d" in text else text
    )


def without_labels(kind: str) -> str:
    """Return a type's name without the values that an enum lists: `ENUM mood('sad', 'ok')` is
    `ENUM mood`.
    """
    return _LABELS.sub(r"\1", _LISTED.sub(r"\1", kind))


def clip(text: str, chars: int = CELL_CHARS) -> str:
    """Cut a text to `chars` characters. If something was cut, the last character is `…`."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def json_value(value: object) -> Json:
    """Return the JSON form of one cell. Nothing is lost, except that bytes become a text with their
    number, such as `<2,048 bytes>`.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return int(value) if abs(value) <= SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(Decimal(value))  # NaN, Infinity
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value):,} bytes>"
    if isinstance(value, dict):
        return {
            clean(key) if isinstance(key, str) else dumps(json_value(key)): json_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(item) for item in value]
    return clean(str(value))


def json_rows(rows: Iterable[Sequence[object]]) -> list[list[Json]]:
    """Return the JSON form of whole rows."""
    plain: list[list[Json]] = []
    for row in rows:
        plain.append([json_value(cell) for cell in row])
    return plain


def preview_cell(value: object, chars: int = CELL_CHARS) -> Json:
    """Return the JSON form of one cell, clipped to `chars` characters. A list or dict that is too
    long becomes clipped text.
    """
    if isinstance(value, str):
        # Cleaning megabytes to show a line would be waste.
        return clip(clean(value[: 10 * chars]), chars)
    plain = json_value(value)
    if isinstance(plain, str):
        return clip(plain, chars)
    if isinstance(plain, list | dict):
        text = dumps(plain)
        return plain if len(text) <= chars else clip(text, chars)
    return plain


def preview_rows(rows: Iterable[Sequence[object]]) -> list[list[Json]]:
    """Return the rows with every cell clipped."""
    return [list(map(preview_cell, row)) for row in rows]


def dumps(value: object) -> str:
    """Write compact JSON. Letters beyond ASCII stay as they are. Invisible characters are escaped
    rather than removed, because a name that contains them must stay usable.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _decimal(value: Decimal) -> Json:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        return int(value) if abs(value) <= SAFE_INTEGER else format(value, "f")
    near = float(value)
    return near if Decimal(repr(near)) == value else format(value, "f")


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    colours: Sequence[str] = (),
    below: str = "",
) -> str:
    """Return an HTML table in which every cell is escaped, so that it shows as plain text.
    `colours` are the colours beside the rows' first cells; `below` is a line of text under the
    table.
    """
    styles = [f' style="border-left:12px solid {colour}"' for colour in colours]
    lines = []
    for place, row in enumerate(rows):
        style = styles[place] if styles else ""
        lines.append(f"<tr>{_html_cells(row, style)}</tr>")
    head = "".join(f"<th>{_safe(column)}</th>" for column in columns)
    note = f"<p>{_safe(below)}</p>" if below else ""
    return (
        "<table"
        f' style="text-align:left"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>{note}'
    )


def _html_cells(row: Sequence[object], style: str) -> str:
    """Return the cells of a row; `style` is the style of the first cell."""
    styles = [style, *[""] * len(row)]
    cells = zip(styles, row, strict=False)
    return "".join(f"<td{own}>{_safe(cell)}</td>" for own, cell in cells)


def _safe(value: object) -> str:
    return html.escape(clean(str(value)), quote=True).replace("\n", "<br>")
