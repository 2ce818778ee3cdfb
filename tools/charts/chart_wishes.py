"""Choose a chart from a wish in words: "a pie of sales by city"."""

import re
from collections.abc import Mapping, Sequence

from longtable.tools.cells import Json
from longtable.tools.charts.chart_fields import ChartSpecError, Field, Spec, fields_of

_MARKS = (
    ("histogram", r"histogram|distribut|直方|分布"),
    ("arc", r"\bpie|donut|doughnut|饼|环形|占比图"),
    ("heatmap", r"heat\s?map|热力"),
    ("boxplot", r"box\s?plot|\bbox\b|箱线|箱形"),
    ("line", r"\bline|trend|over time|time series|curve|折线|趋势|曲线|走势"),
    ("area", r"\barea|面积"),
    ("point", r"scatter|\bpoints?\b|\bdots?\b|correlat|relation|\bversus\b|\bvs\b|散点|相关|关系"),
    ("bar", r"\bbars?\b|column chart|columns? graph|柱|条形|排名"),
)

_UNITS = (
    ("yearmonth", r"\bmonth|月", r"^\d{4}-\d\d-\d\d"),
    ("yearquarter", r"\bquarter|季", r"^\d{4}-\d\d-\d\d"),
    ("yearweek", r"\bweek(?!day)|周", r"^\d{4}-\d\d-\d\d"),
    ("year", r"\byear|年", r"^\d{4}-\d\d"),
    ("yearmonthdate", r"\bday|\bdai|\bdate|日|天", r"[T ]\d\d:"),
)

_LABEL = re.compile(r"(?:^|[_\s])(?:id|ids|code|zip|phone)$|(?i:(?:^|_)id)$|[a-z]Id$|编号|序号")
"""Matches names of columns whose whole numbers measure nothing, such as ids and zip codes."""

_PERIOD = re.compile(r"year|month|quarter|week|day|hour|date|年|月|季|周|日|时", re.IGNORECASE)

_CJK = re.compile("[\u3400-\u9fff]")

MOST_SLICES = 12

MOST_SERIES = 12

MOST_MEASURES = 6

MOST_BARS = 60


def default_spec(
    wish: str, columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[object]]
) -> Spec:
    """Return a spec that `check_spec` accepts. Raises `ChartSpecError` if the result has no rows or
    no column to draw.
    """
    fields = list(fields_of(columns, types, rows).values())
    if not rows or not fields:
        raise ChartSpecError(
            "the result has no rows" if fields else "the result has no columns",
            hint="run another query",
        )
    text = wish.casefold()
    mark = next((name for name, pattern in _MARKS if re.search(pattern, text)), "")
    measures, groups = _parts(text, fields)
    if not measures and not groups:
        raise ChartSpecError(
            "the result has no column to draw", hint="select a number with a name or a date"
        )
    mark = mark or _fitting(measures, groups, len(rows))
    return _with_titles(_drawn_as(mark, text, measures, groups), text)


def _drawn_as(mark: str, text: str, measures: Sequence[Field], groups: Sequence[Field]) -> Spec:
    """Return a spec without titles."""
    if mark == "histogram" and measures:
        along = _channel(measures[0], bin=True)
        return {"mark": "bar", "encoding": {"x": along, "y": {"aggregate": "count"}}}
    if mark in ("point", "boxplot", "heatmap"):
        special = _special(mark, measures, groups)
        if special is not None:
            return special
    if mark == "arc":
        return _pie(measures, groups)
    if mark not in ("line", "area", "point"):
        mark = "bar"
    return _along(mark, text, measures, groups)


def _parts(text: str, fields: Sequence[Field]) -> tuple[list[Field], list[Field]]:
    """Return the columns to measure and the columns to group by. Columns that the wish names come
    first.
    """
    numbers = [
        field
        for field in fields
        if field.kind == "number" and not (field.whole and _LABEL.search(field.name))
    ]
    others = [field for field in fields if field.kind != "number" or _PERIOD.search(field.name)]
    by = re.split(r"\bby\b|\bper\b|\bover\b|\bfor each\b|\bagainst\b", text, maxsplit=1)[1:]
    chinese = re.findall(r"[按每各以](.{1,12})", text)
    grouped_by = " ".join([*by, *chinese])
    in_units = _asks_for_units(text, others)

    def worth(field: Field) -> float:
        is_time = field.kind == "time"
        return (
            3.5
            if in_units and is_time
            else 2 * _named(grouped_by, field) + _named(text, field) + 0.5 * is_time
        )

    groups = sorted(others, key=worth, reverse=True)
    numeric_by = [field for field in numbers if _named(grouped_by, field) and field not in groups]
    groups = [*numeric_by, *groups]
    measures = [
        field
        for field in numbers
        if field not in groups[:1] and not (_PERIOD.search(field.name) and field.whole)
    ]
    by_name = [field for field in measures if _named(text, field)]
    return by_name or measures, groups


def _named(text: str, field: Field) -> bool:
    words = [
        word
        for word in re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", field.name).casefold())
        if len(word) > 1
    ]
    return field.name.casefold() in text or any(word.rstrip("s") in text for word in words)


def _asks_for_units(text: str, fields: Sequence[Field]) -> bool:
    """Return whether a wish such as "by month" asks for a unit of a time column. False if the wish
    names no unit, or if it names a column of periods, such as a column `month`.
    """
    has_unit = any(re.search(words, text) for _, words, _ in _UNITS)
    return has_unit and not any(
        _PERIOD.search(field.name) and _named(text, field) for field in fields
    )


def _fitting(measures: Sequence[Field], groups: Sequence[Field], count: int) -> str:
    if groups and measures:
        ordered = groups[0].kind == "time" or (
            groups[0].kind == "number" and _PERIOD.search(groups[0].name)
        )
        return "line" if ordered and count > 2 else "bar"
    if len(measures) > 1:
        return "point"
    return "histogram" if measures and count > 2 else "bar"


def _channel(field: Field, **more: Json) -> dict[str, Json]:
    kind = {"number": "quantitative", "time": "temporal", "truth": "nominal", "text": "nominal"}[
        field.kind
    ]
    title: dict[str, Json] = {"title": field.name} if field.path != field.name else {}
    return {"field": field.path, "type": kind, **title, **more}


def _special(mark: str, measures: Sequence[Field], groups: Sequence[Field]) -> Spec | None:
    if mark == "point" and len(measures) > 1:
        encoding: Spec = {"x": _channel(measures[0]), "y": _channel(measures[1])}
        if groups and groups[0].kind != "time" and groups[0].distinct <= MOST_SERIES:
            encoding["color"] = _channel(groups[0])
        return {"mark": "point", "encoding": encoding}
    if mark == "boxplot" and measures:
        side: Spec = (
            {"x": _channel(groups[0], type="nominal")}
            if groups and groups[0].kind == "text"
            else {}
        )
        return {"mark": "boxplot", "encoding": {**side, "y": _channel(measures[0])}}
    if mark == "heatmap" and len(groups) > 1 and measures:
        sides: Spec = {
            "x": _channel(groups[0], type="ordinal"),
            "y": _channel(groups[1], type="ordinal"),
        }
        return {
            "mark": "rect",
            "encoding": {**sides, "color": _channel(measures[0], aggregate="sum")},
        }
    return None


def _pie(measures: Sequence[Field], groups: Sequence[Field]) -> Spec:
    if not groups:
        raise ChartSpecError("a pie needs a column of names", hint="select a name with each number")
    group = next(
        (other for other in groups if other.kind == "text" and other.distinct <= MOST_SLICES),
        groups[0],
    )
    if group.distinct > MOST_SLICES:
        # More slices than an eye can tell apart.
        return _along("bar", "", measures, groups)
    count: Spec = {"aggregate": "count", "type": "quantitative"}
    encoding: Spec = {
        "theta": _channel(measures[0], aggregate="sum") if measures else count,
        "color": _channel(group, type="nominal"),
    }
    return {"mark": "arc", "encoding": encoding}


def _measures_alone(mark: str, measures: Sequence[Field]) -> Spec:
    """Draw measures without groups: one measure against another, or how often the values of a
    single measure occur.
    """
    if len(measures) > 1 and mark != "bar":
        points: Spec = {"x": _channel(measures[0]), "y": _channel(measures[1])}
        return {"mark": mark, "encoding": points}
    bins: Spec = {"x": _channel(measures[0], bin=True), "y": {"aggregate": "count"}}
    return {"mark": "bar", "encoding": bins}


def _along(mark: str, text: str, measures: Sequence[Field], groups: Sequence[Field]) -> Spec:
    """Draw measures along the first group. The colours stand for the second group, or for the
    measures if there are several and no second group.
    """
    if not groups:
        return _measures_alone(mark, measures)
    group = groups[0]
    along = _channel(group)
    unit = _unit(text, group)
    if unit:
        along["timeUnit"] = unit
    elif group.kind == "number" or (
        group.kind == "time" and mark == "bar" and group.distinct <= MOST_BARS
    ):
        along["type"] = "ordinal"
    series = next(
        (
            other
            for other in groups[1:]
            if other.kind in ("text", "truth") and 1 < other.distinct <= MOST_SERIES
        ),
        None,
    )
    height: dict[str, Json] = {"aggregate": "count", "type": "quantitative"}
    spec: Spec = {}
    colour: Spec = {}
    if len(measures) > 1 and series is None and mark != "bar":
        spec["transform"] = [
            {"fold": [field.path for field in measures[:MOST_MEASURES]], "as": ["measure", "value"]}
        ]
        height = {"field": "value", "type": "quantitative", "aggregate": "sum"}
        colour = {"color": {"field": "measure", "type": "nominal"}}
    elif measures:
        height = _channel(measures[0], aggregate="sum")
    if series is not None:
        colour = {"color": _channel(series)}
    if mark == "bar" and group.kind == "text":
        # Names are read from left to right: bars lie, the longest on top.
        return {
            **spec,
            "mark": "bar",
            "encoding": {"y": {**along, "sort": "-x"}, "x": height, **colour},
        }
    marked: Json = (
        {"type": mark, "point": True} if mark == "line" and group.distinct <= 60 else mark
    )
    return {**spec, "mark": marked, "encoding": {"x": along, "y": height, **colour}}


def _unit(text: str, group: Field) -> str:
    """Return the time unit that the wish names, empty if there is none or the dates are not finer
    than this unit.
    """
    units = (
        unit
        for unit, words, finer in _UNITS
        if re.search(words, text) and re.search(finer, group.sample)
    )
    return next(units, "") if group.kind == "time" else ""


AGGREGATE_NAMES = {
    "avg": ("average {}", "{} 平均值"),
    "mean": ("average {}", "{} 平均值"),
    "median": ("median {}", "{} 中位数"),
    "sum": ("total {}", "{} 合计"),
    "min": ("lowest {}", "{} 最小值"),
    "max": ("highest {}", "{} 最大值"),
    "count": ("count of {}", "{} 计数"),
}
"""Titles in English and Chinese for columns whose name is the SQL of an aggregate, such as
`avg(price)`.
"""

ROW_COUNT = ("count", "数量")

_ROW_COUNT_SQL = re.compile(r"count_star\(\)|count\(\*?\)", re.IGNORECASE)

_AGGREGATE_SQL = re.compile(r"(?:main\.)?(\w+)\((?:\w+\.)?\"?([^\"()*]+)\"?\)")


def column_title(name: str, *, chinese: bool = False) -> str:
    """Return the title of a column: its name or, if the name is the SQL of an aggregate, words for
    it.
    """
    if _ROW_COUNT_SQL.fullmatch(name):
        return ROW_COUNT[chinese]
    match = _AGGREGATE_SQL.fullmatch(name)
    names = AGGREGATE_NAMES.get(match[1].casefold()) if match else None
    return names[chinese].format(match[2].strip()) if match and names else name


def _with_titles(spec: Spec, wish: str) -> Spec:
    """Return the spec with the columns' names on its axes, and a title made of them."""
    chinese = bool(_CJK.search(wish))
    encoding = spec["encoding"]
    channels = encoding if isinstance(encoding, dict) else {}
    for channel in channels.values():
        if isinstance(channel, dict):
            field = channel.get("title", channel.get("field"))
            name = str(field) if field else ROW_COUNT[0] + "()"
            channel["title"] = column_title(name, chinese=chinese)
    return {"title": _chart_title(channels, chinese=chinese), **spec}


def _chart_title(channels: Mapping[str, Json], *, chinese: bool) -> str:
    """Return a title such as "total sales by month and city"."""
    titles = {
        name: str(channel["title"])
        for name, channel in channels.items()
        if isinstance(channel, dict)
    }
    lying = "x" in channels and "y" in channels and _sorts_bars(channels["y"])
    order = ("x", "y", "color") if lying else ("theta", "y", "x", "color")
    if "color" in titles and _adds_up(channels["color"]):
        order = ("color", "x", "y")
    named = [titles[name] for name in order if name in titles]
    if chinese:
        return "，按 ".join([named[0], *named[1:2]]) + "".join(f" 和 {name}" for name in named[2:])
    return " by ".join([named[0], *named[1:2]]) + "".join(f" and {name}" for name in named[2:])


def _sorts_bars(channel: Json) -> bool:
    return isinstance(channel, dict) and "sort" in channel


def _adds_up(channel: Json) -> bool:
    return isinstance(channel, dict) and "aggregate" in channel
