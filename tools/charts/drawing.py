"""Draw a checked chart: with characters (bars with their labels, a grid of points for two numbers),
or as SVG, PNG or a page.

Drawing fetches nothing; fonts are the system's.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from statistics import fmean, median
from types import ModuleType
from typing import cast
from xml.etree import ElementTree

from longtable.base.errors import MissingExtraError
from longtable.tools.cells import Json, clean, clip
from longtable.tools.charts.chart_fields import ChartSpecError, Spec, words

MAX_LINES = 40
GRID_LINES = 12
TOTALS: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": fmean,
    "average": fmean,
    "median": median,
    "min": min,
    "max": max,
    "count": sum,
    "distinct": sum,  # each row that counts is a 1
}
"""What bars can be made of; a chart of another aggregate has no text form."""
_EIGHTHS = " ▏▎▍▌▋▊▉"


def render_text(spec: Spec, rows: Sequence[Mapping[str, Json]], width: int = 80) -> str:
    """Return lines of at most `width` cells; views of a larger chart follow one another."""
    width = max(30, width)
    title = spec.get("title")
    heading = (
        [clip(clean(title).replace("\n", " "), width)] if isinstance(title, str) and title else []
    )
    blocks = [block for view in _single_views(spec) if (block := _view(view, rows, width))]
    return "\n".join([*heading, "\n\n".join(blocks) or "(no text form of this chart)"])


def _single_views(node: Spec) -> Iterable[Spec]:
    for key in ("layer", "concat", "hconcat", "vconcat"):
        if isinstance(inner := node.get(key), list):
            for view in inner:
                if isinstance(view, dict):
                    shared = node.get("encoding")
                    own = view.get("encoding")
                    both = {
                        **(shared if isinstance(shared, dict) else {}),
                        **(own if isinstance(own, dict) else {}),
                    }
                    yield from _single_views({**view, "encoding": both} if key == "layer" else view)
            return
    if isinstance(inner_spec := node.get("spec"), dict):
        yield from _single_views(inner_spec)
    else:
        yield node


def _view(view: Spec, rows: Sequence[Mapping[str, Json]], width: int) -> str:
    encoding = view.get("encoding")
    if not isinstance(encoding, dict):
        return ""
    rows = _folded(view, rows)
    channels = {name: value for name, value in encoding.items() if isinstance(value, dict)}
    measure = next(
        (
            channels[name]
            for name in ("theta", "y", "x", "size", "color")
            if name in channels and _is_measure(channels[name])
        ),
        None,
    )
    others = [
        {**channels[name], "channel": name}
        for name in ("x", "y", "row", "column", "facet", "color", "detail")
        if channels.get(name) not in (None, measure)
    ]
    numbers = [one for one in others if _is_measure(one) and not one.get("bin")]
    if measure is None:
        return ""
    if numbers and "aggregate" not in measure:
        return _grid(rows, numbers[0], measure, width)
    mark = view.get("mark")
    if (mark.get("type") if isinstance(mark, dict) else mark) == "boxplot":
        measure = {**measure, "aggregate": "median"}
    return _bars(
        rows,
        [one for one in others if "field" in one and not (_is_measure(one) and not one.get("bin"))],
        measure,
        width,
    )


def _is_measure(channel: Spec) -> bool:
    return "aggregate" in channel or (
        channel.get("type") == "quantitative" and not channel.get("bin")
    )


def _folded(view: Spec, rows: Sequence[Mapping[str, Json]]) -> Sequence[Mapping[str, Json]]:
    steps = view.get("transform")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and isinstance(names := step.get("fold"), list):
            target = step.get("as")
            key, value = (
                (str(target[0]), str(target[1]))
                if isinstance(target, list) and len(target) == 2
                else ("key", "value")
            )
            rows = [
                {**row, key: _plain(str(name)), value: row.get(_plain(str(name)))}
                for row in rows
                for name in names
            ]
    return rows


def _plain(path: str) -> str:
    return "".join(
        char for at, char in enumerate(path) if char != "\\" or path[at - 1 : at] == "\\"
    )


def _bars(
    rows: Sequence[Mapping[str, Json]], keys: Sequence[Spec], measure: Spec, width: int
) -> str:
    groups: dict[Labels, list[float]] = {}
    counted: set[tuple[Labels, Json]] = set()
    kind = str(measure.get("aggregate", "sum"))
    field = _plain(str(measure.get("field", "")))
    if kind not in TOTALS:
        return ""
    for row in rows:
        label = tuple(_label(row, key, rows) for key in keys)
        numbers = groups.setdefault(label, [])
        value = row.get(field)
        if kind == "count" or (
            kind == "distinct" and value is not None and (label, value) not in counted
        ):
            counted.add((label, value))
            numbers.append(1.0)
        elif kind == "distinct":
            continue
        elif isinstance(value, int | float):
            # NULL is no number: it neither adds to a sum nor lowers a mean
            numbers.append(float(value))
    by_labels = {
        labels: TOTALS[kind](numbers) if numbers or kind == "distinct" else None
        for labels, numbers in groups.items()
    }
    totals = [
        (" · ".join(labels), by_labels[labels]) for labels in _as_drawn(by_labels, keys, field)
    ]
    first = totals[:MAX_LINES]
    names = max((_cells(label) for label, _ in first), default=0)
    names = min(names, width // 3)
    labels = [
        "–" if value is None else f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
        for _, value in first
    ]
    room = max(5, width - names - max(map(len, labels), default=0) - 3)
    most = max((abs(value or 0.0) for _, value in first), default=0.0) or 1.0
    lines = [
        f"{_fit(label, names)} {_bar(abs(value or 0.0) / most, room, negative=(value or 0.0) < 0)}"
        f" {text}"
        for (label, value), text in zip(first, labels, strict=True)
    ]
    if len(totals) > len(first):
        lines.append(f"... {len(totals) - len(first):,} more")
    return "\n".join(lines)


Labels = tuple[str, ...]
"""What a bar is called, a text for each key."""


def _as_drawn(
    totals: Mapping[Labels, float | None], keys: Sequence[Spec], measure: str
) -> list[Labels]:
    """Return the bars in the order of the picture: from the left, or from the top."""
    ordered = list(totals)
    for place, key in reversed([*enumerate(keys)]):  # the first key counts most
        names = _domain(totals, place, key, measure)
        ordered.sort(key=lambda labels, names=names, place=place: names.index(labels[place]))  # type: ignore[misc]
    return ordered


def _domain(
    totals: Mapping[Labels, float | None], place: int, key: Spec, measure: str
) -> list[str]:
    """Return a key's different values as its axis has them, see Vega-Lite's `sort`."""
    names = list(dict.fromkeys(labels[place] for labels in totals))
    sort = key.get("sort", "ascending")
    if sort is None:
        return names
    names.sort(key=_sortable)
    if isinstance(sort, list):
        first = [str(name) for name in sort]
        return sorted(names, key=lambda name: first.index(name) if name in first else len(first))
    order = sort.get("order", "ascending") if isinstance(sort, dict) else str(sort)
    if _sorts_by_measure(sort, measure):
        sums = dict.fromkeys(names, 0.0)
        for labels, total in totals.items():
            sums[labels[place]] += total or 0.0
        names.sort(key=lambda name: sums[name])
    falls = order == "descending" or str(order).startswith("-")
    # The values of a scale that is no list of names grow upwards.
    rises = key.get("channel") == "y" and (
        key.get("type") in ("temporal", "quantitative") or bool(key.get("bin"))
    )
    return names[::-1] if falls != rises else names


def _sorts_by_measure(sort: Json, measure: str) -> bool:
    if isinstance(sort, dict):
        return "encoding" in sort or _plain(str(sort.get("field", ""))) == measure
    return str(sort).removeprefix("-") in ("x", "y", "theta", "color", "size")


def _label(row: Mapping[str, Json], key: Spec, rows: Sequence[Mapping[str, Json]]) -> str:
    name = _plain(str(key.get("field")))
    value = row.get(name)
    if key.get("bin") and isinstance(value, int | float):
        numbers = [number for other in rows if isinstance(number := other.get(name), int | float)]
        low = min(numbers)
        high = max(numbers)
        step = (high - low) / 10 or 1.0
        place = min(9, int((value - low) / step))
        return f"{low + place * step:,.4g} to {low + (place + 1) * step:,.4g}"
    text = "" if value is None else clean(str(value)).replace("\n", " ").removesuffix("T00:00:00")
    unit = str(key.get("timeUnit", ""))
    if unit == "yearquarter" and text[5:7].isdigit():
        return f"{text[:4]}-Q{(int(text[5:7]) + 2) // 3}"
    return text[: {"year": 4, "yearmonth": 7, "yearmonthdate": 10}.get(unit, 200)]


def _sortable(label: str) -> tuple[bool, float, str]:
    """Return what numbers are sorted by as numbers, before other texts."""
    try:
        return False, float(label.split(" ")[0].replace(",", "")), label
    except ValueError:
        return True, 0.0, label


def _bar(share: float, room: int, *, negative: bool) -> str:
    eighths = round(share * room * 8)
    text = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    text = text or ("▏" if share else "")
    return ("-" + text if negative else text).ljust(room)


def _grid(rows: Sequence[Mapping[str, Json]], across: Spec, up: Spec, width: int) -> str:
    names = _plain(str(across.get("field"))), _plain(str(up.get("field")))
    points = [
        (x, y)
        for row in rows
        if isinstance(x := row.get(names[0]), int | float)
        and isinstance(y := row.get(names[1]), int | float)
    ]
    if not points:
        return ""
    low_x, high_x, low_y, high_y = (
        choose(point[axis] for point in points) for axis in (0, 1) for choose in (min, max)
    )
    top = f"{high_y:,.6g}"
    bottom = f"{low_y:,.6g}"
    margin = max(len(top), len(bottom))
    room = width - margin - 2
    cells = [[" "] * room for _ in range(GRID_LINES)]
    for x, y in points:
        column = round((x - low_x) / ((high_x - low_x) or 1) * (room - 1))
        line = round((high_y - y) / ((high_y - low_y) or 1) * (GRID_LINES - 1))
        cells[line][column] = "●" if cells[line][column] == " " else "█"
    margins = [top, *[""] * (GRID_LINES - 2), bottom]
    lines = [
        f"{text:>{margin}} │{''.join(line)}".rstrip()
        for text, line in zip(margins, cells, strict=True)
    ]
    left = f"{low_x:,.6g}"
    right = f"{high_x:,.6g}"
    gap = max(1, room - len(left) - len(right))
    heading = clip(f"{names[1]} against {names[0]}", width)
    floor = f"{' ' * margin} └{'─' * room}"
    return "\n".join(
        [heading, *lines, floor[:width], f"{' ' * margin}  {left}{' ' * gap}{right}"[:width]]
    )


def _cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _fit(text: str, cells: int) -> str:
    while _cells(text) > cells:
        text = text[:-2] + "…" if len(text) > 1 else ""
    return text + " " * (cells - _cells(text))


MAX_SIDE = 6_000
"""Most pixels of a drawing's side before scaling."""


@dataclass(frozen=True)
class Chart:
    """A chart that can be drawn: the spec without data, its rows, and what was left out or added
    up. Notebooks show it as it is.
    """

    handle: str
    spec: Spec
    rows: list[dict[str, Json]]
    notes: tuple[str, ...] = ()

    def text(self, width: int = 80) -> str:
        """Return it as lines of text."""
        return render_text(self.spec, self.rows, width)

    def svg(self) -> str:
        """Return it as SVG."""
        try:
            svg = cast(str, _converter().vegalite_to_svg(self._with_data(), allowed_base_urls=[]))
        except ValueError as error:
            raise ChartSpecError(
                f"the chart cannot be drawn ({str(error).strip().splitlines()[0][:160]})",
                hint="draw it in a simpler way",
            ) from error
        sides = re.match(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg)
        if sides is None or max(float(sides[1]), float(sides[2])) > MAX_SIDE:
            size = f"{float(sides[1]):,.0f} x {float(sides[2]):,.0f}" if sides else "not finite"
            raise ChartSpecError(
                f"the chart would be {size} pixels",
                hint=f"at most {MAX_SIDE:,} a side: fewer categories or small charts",
            )
        return svg

    def png(self, *, scale: float = 2.0) -> bytes:
        """Return it as PNG; `scale` is pixels for each pixel of the spec, at most 4."""
        return bytes(_converter().svg_to_png(self.svg(), scale=max(0.1, min(scale, 4.0))))

    def html(self) -> str:
        """Return it as a page (some 0.9 MB) that needs no network: the libraries are in it."""
        vega = _converter().javascript_bundle("window.vegaEmbed = vegaEmbed;")
        # `<` is written so that no cell can end the script.
        text = json.dumps(self._with_data(), ensure_ascii=False)
        text = (
            text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        )
        options = (
            '{"actions":false,"renderer":"svg","loader":{"load":() => Promise.reject(new'
            ' Error("nothing is loaded"))}}'
        )
        policy = (
            "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src"
            " 'unsafe-inline'; img-src data:"
        )
        return (
            '<!DOCTYPE html>\n<html><head><meta charset="UTF-8"><meta'
            ' http-equiv="Content-Security-Policy"'
            f' content="{policy}"><title>Chart</title></head><body><div id="chart"></div>\n<script'
            f' type="module">{vega}\nvegaEmbed("#chart", {text},'
            f" {options});</script></body></html>\n"
        )

    def _with_data(self) -> dict[str, object]:
        return {**self.spec, "data": {"values": [dict(row) for row in self.rows]}}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg(), "text/plain": self.text()}
        except MissingExtraError as error:
            return {"text/plain": f"{self.text()}\n{error}"}


def draws_pictures() -> bool:
    """Return whether the extra `charts` is installed; without it a chart is drawn as text alone."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def _converter() -> ModuleType:
    if not draws_pictures():  # altair, too: its schema check comes before every picture
        raise MissingExtraError("no picture of this chart can be drawn", "charts")
    return import_module("vl_convert")


SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = words(
    "svg g path text tspan rect line circle ellipse polygon polyline title desc"
    " defs clipPath linearGradient radialGradient stop"
)
ELEMENTS = frozenset(f"{{{SVG}}}{name}" for name in _ELEMENTS)
_LOCAL = re.compile(r"url\((['\"]?)#([^)'\"]+)\1\)")


def embedded_svg(svg: str, prefix: str) -> str | None:
    """Return an SVG drawing as one line of markup, its ids made of a prefix; None where it holds
    what runs, links or loads.
    """
    ElementTree.register_namespace("", SVG)
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return None
    ids = {
        str(element.get("id")): f"{prefix}-{n}"
        for n, element in enumerate(root.iter())
        if element.get("id")
    }
    for element in root.iter():
        if element.tag not in ELEMENTS:
            return None
        element.attrib.pop("style", None)  # cursors and blending: nothing that the drawing needs
        attributes = {name: _attribute(name, value, ids) for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            if value is None:
                return None
            element.set(name, value)
        element.text = _line(element.text)
        element.tail = _line(element.tail)
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str, ids: Mapping[str, str]) -> str | None:
    """Return an attribute as it may stand, None where it may not: `{` begins the name of a link's,
    or of another namespace's.
    """
    if name.startswith("{") or name.lower().startswith("on") or name.lower() in {"href", "src"}:
        return None
    if name == "id":
        return ids[value]
    line = _LOCAL.sub(lambda found: f"url(#{ids.get(found[2], '')})", " ".join(value.split()))
    return None if re.search(r"url\((?!#[\w-])", line, re.IGNORECASE) else line


def _line(text: str | None) -> str | None:
    return " ".join(text.split("\n")) if text else text
