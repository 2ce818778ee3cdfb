"""Draw a checked chart as lines of text: bars with labels, or a grid of points for two numbers.

Views of a larger chart are drawn one below the other.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean, median

from longtable.tools.cells import Json, clean, clip
from longtable.tools.charts.chart_fields import Spec

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
"""The aggregates that bars can show. A chart of any other aggregate has no text form."""
_EIGHTHS = " ▏▎▍▌▋▊▉"


def render_text(spec: Spec, rows: Sequence[Mapping[str, Json]], width: int = 80) -> str:
    """Return the chart as lines of at most `width` terminal cells. The views of a larger chart are
    drawn one below the other.
    """
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
            paths = [_plain(str(name)) for name in names]
            pairs = product(rows, paths)
            rows = [{**row, key: path, value: row.get(path)} for row, path in pairs]
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
"""The labels of one bar: one text for each key that the bars are grouped by."""


def _as_drawn(
    totals: Mapping[Labels, float | None], keys: Sequence[Spec], measure: str
) -> list[Labels]:
    """Return the bars in the order in which a picture shows them, from the left or from the top."""
    ordered = list(totals)
    for place, key in reversed([*enumerate(keys)]):  # the first key counts most
        names = _domain(totals, place, key, measure)
        ordered.sort(key=lambda labels, names=names, place=place: names.index(labels[place]))  # type: ignore[misc]
    return ordered


def _domain(
    totals: Mapping[Labels, float | None], place: int, key: Spec, measure: str
) -> list[str]:
    """Return the different values of one key in the order of its axis, by the rules of Vega-Lite's
    `sort`.
    """
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
    """Return a sort key for a label. Labels that begin with a number come first, by the number's
    value.
    """
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
    low_x = min(x for x, _ in points)
    high_x = max(x for x, _ in points)
    low_y = min(y for _, y in points)
    high_y = max(y for _, y in points)
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
    """Return the width of a text in terminal cells: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _fit(text: str, cells: int) -> str:
    while _cells(text) > cells:
        text = text[:-2] + "…" if len(text) > 1 else ""
    return text + " " * (cells - _cells(text))
