"""Check a Vega-Lite spec against a result before anything draws it: never code, never data of its
own, never too much.

A spec that passes holds no data, no URL and no expression; its fields are columns of the result and
fit their types. What SQL can compute, SQL is to compute: expressions and the rarer transforms are
refused, and the message says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from longtable.tools.catalog import nearest
from longtable.tools.cells import Json, clip
from longtable.tools.charts.chart_fields import (
    ChartSpecError,
    Field,
    Spec,
    chart_value,
    check_value,
    drop_data,
    fields_of,
    find,
    moment,
    plain_copy,
    validate,
    walk,
)

MAX_VIEWS = 16
MAX_CATEGORIES = 200
MAX_FACETS = 40

VIEWS = ("layer", "concat", "hconcat", "vconcat")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MARKS = _words(
    "arc area bar boxplot circle errorband errorbar line point rect rule square text tick trail"
)
CHANNELS = _words(
    "x y x2 y2 xOffset yOffset color fill stroke opacity fillOpacity strokeOpacity strokeWidth"
    " strokeDash size shape theta theta2 radius radius2 angle text tooltip detail order row column"
    " facet xError yError xError2 yError2 description key"
)
TRANSFORMS = ("aggregate", "bin", "filter", "fold", "joinaggregate", "stack", "timeUnit", "window")
NUMERIC_AGGREGATES = _words(
    "sum mean average median variance variancep stdev stdevp stderr product q1 q3 ci0 ci1"
)


@dataclass(frozen=True)
class Checked:
    """A spec that may be kept and drawn, and the rows to draw it with; `notes` say what was left
    out or added up.
    """

    spec: Spec
    rows: list[dict[str, Json]]
    notes: tuple[str, ...] = ()


def check_spec(
    spec: Mapping[str, object],
    columns: Sequence[str],
    types: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> Checked:
    """Return the spec made fit to draw, or raise `ChartSpecError`; its schema check needs the extra
    `charts`.
    """
    tree = plain_copy(spec)
    drop_data(tree)
    tree.pop("$schema", None)
    for place, value, key in walk(tree, ""):
        check_value(place, key, value)
    fields = fields_of(columns, types, rows)
    if not rows:
        raise ChartSpecError(
            "the result has no rows", hint="nothing can be drawn: run another query"
        )
    views = list(_views(tree, "spec"))
    if len(views) > MAX_VIEWS:
        raise ChartSpecError(
            f"the spec has {len(views)} views", hint=f"at most {MAX_VIEWS} are drawn"
        )
    for place, view in views:
        _check_view(place, view, fields)
    validate(tree)
    tree_kept, notes = reduced(tree, [view for _, view in views], fields, columns, rows)
    moments = [
        field.name
        for field in fields.values()
        if field.kind == "time" and _is_temporal(tree, field)
    ]
    return Checked(
        tree,
        [row | {name: moment(row[name]) for name in moments if name in row} for row in tree_kept],
        notes,
    )


def _is_temporal(tree: Spec, field: Field) -> bool:
    return any(
        isinstance(value, dict)
        and value.get("field") == field.path
        and (value.get("type") == "temporal" or "timeUnit" in value)
        for _, value, _ in walk(tree, "")
    )


def _views(node: Spec, place: str) -> Iterator[tuple[str, Spec]]:
    """Yield every single view. Raises `ChartSpecError` for a spec that is made of anything else."""
    for key in VIEWS:
        if isinstance(inner := node.get(key), list):
            for number, view in enumerate(inner):
                if not isinstance(view, dict):
                    raise ChartSpecError(
                        "a view is not an object", place=f"{place}.{key}[{number}]"
                    )
                yield from _views(view, f"{place}.{key}[{number}]")
            yield place, node
            return
    if "spec" in node:
        if not isinstance(inner_spec := node["spec"], dict):
            raise ChartSpecError("spec is not an object", place=f"{place}.spec")
        yield from _views(inner_spec, f"{place}.spec")
    elif "mark" not in node:
        raise ChartSpecError(
            "there is no mark", place=place, hint=f"say how to draw: {', '.join(MARKS)}"
        )
    yield place, node


def _check_view(place: str, view: Spec, fields: dict[str, Field]) -> None:
    mark = view.get("mark")
    kind = mark.get("type") if isinstance(mark, dict) else mark
    if mark is not None and kind not in MARKS:
        close = nearest(str(kind), MARKS) or MARKS
        raise ChartSpecError(
            f"there is no mark {clip(str(kind), 40)!r} here",
            place=f"{place}.mark",
            hint=f"use one of {', '.join(close)}",
        )
    known = fields | _made(view, place, fields)
    for outer in ("row", "column", "layer"):
        repeat = view.get("repeat")
        names = (
            repeat
            if isinstance(repeat, list) and outer == "row"
            else repeat.get(outer, [])
            if isinstance(repeat, dict)
            else []
        )
        for name in names if isinstance(names, list) else []:
            find(known, str(name), place=f"{place}.repeat")
    if isinstance(facet := view.get("facet"), dict):
        for channel, definition in {"facet": facet}.items() if "field" in facet else facet.items():
            _check_channel(
                f"{place}.facet",
                channel if channel in ("row", "column") else "facet",
                definition,
                known,
            )
    encoding = view.get("encoding", {})
    if not isinstance(encoding, dict):
        raise ChartSpecError("encoding is not an object", place=f"{place}.encoding")
    for channel, definition in encoding.items():
        if channel not in CHANNELS:
            close = nearest(channel, CHANNELS) or ["x", "y", "color"]
            raise ChartSpecError(
                f"there is no channel {clip(channel, 40)!r}",
                place=f"{place}.encoding",
                hint=f"nearest: {', '.join(close)}",
            )
        for one in definition if isinstance(definition, list) else [definition]:
            _check_channel(
                f"{place}.encoding.{channel}",
                channel,
                one,
                known,
                sized=bool(view.get("width") and view.get("height")),
            )
    if mark is not None and not encoding and "layer" not in view:
        view.setdefault("encoding", {})


def _made(view: Spec, place: str, fields: dict[str, Field]) -> dict[str, Field]:
    """Check the transforms of a view and return the fields they make."""
    new_fields: dict[str, Field] = {}
    transforms = view.get("transform", [])
    for number, step in enumerate(transforms if isinstance(transforms, list) else []):
        where = f"{place}.transform[{number}]"
        kind = next((name for name in TRANSFORMS if isinstance(step, dict) and name in step), None)
        if not isinstance(step, dict) or kind is None:
            raise ChartSpecError(
                "this transform is not supported",
                place=where,
                hint=f"use {', '.join(TRANSFORMS)}, or compute it in the SQL",
            )
        known = fields | new_fields
        for _, value, key in walk(step, where):
            if key in ("field", "stack") and isinstance(value, str):
                find(known, value, place=where)
            if key in ("groupby", "fold") and isinstance(value, list):
                for name in value:
                    find(known, str(name), place=where)
        names = [value for _, value, key in walk(step, where) if key == "as"]
        flat = [name for value in names for name in (value if isinstance(value, list) else [value])]
        new_fields |= {str(name): Field(str(name), "number", 0) for name in flat}
        if kind == "fold":
            label, number_name = (
                (str(flat[0]), str(flat[1])) if len(flat) >= 2 else ("key", "value")
            )
            new_fields |= {
                label: Field(label, "text", 0),
                number_name: Field(number_name, "number", 0),
            }
        if kind == "timeUnit":
            new_fields |= {str(name): Field(str(name), "time", 0) for name in flat}
    return new_fields


def _check_channel(
    place: str, channel: str, definition: Json, fields: dict[str, Field], *, sized: bool = False
) -> None:
    if definition is None or not isinstance(definition, dict):
        return
    for nested in ("condition", "sort"):
        for where, value, key in walk(definition.get(nested), f"{place}.{nested}"):
            if key == "field" and isinstance(value, str):
                find(fields, value, place=where)
    name = definition.get("field")
    if name is None or isinstance(name, dict):
        return
    field = find(fields, str(name), place=place)
    if field.path != field.name:
        definition["field"] = field.path
        definition.setdefault("title", field.name)
    aggregate = definition.get("aggregate")
    if isinstance(aggregate, str) and aggregate in NUMERIC_AGGREGATES and field.kind != "number":
        raise ChartSpecError(
            f"{aggregate} of {field.name!r}, which holds {_holds(field)}",
            place=place,
            hint='use "count" or a column of numbers',
        )
    channel_type = definition.setdefault("type", _type_for(field, definition))
    _check_type(place, str(channel_type), field, definition)
    discrete = channel_type in ("nominal", "ordinal") and not definition.get("bin")
    if channel in ("row", "column", "facet") and field.distinct > MAX_FACETS:
        raise ChartSpecError(
            f"{field.name!r} would make {field.distinct:,} small charts",
            place=place,
            hint=f"at most {MAX_FACETS}: filter in the SQL",
        )
    if (
        discrete
        and channel in ("x", "y", "color", "shape", "theta")
        and field.distinct > MAX_CATEGORIES
        and not sized
    ):
        hint = (
            f"at most {MAX_CATEGORIES}: keep the largest in the SQL (ORDER BY ... LIMIT), or use a"
            " temporal or quantitative type"
        )
        raise ChartSpecError(
            f"{field.name!r} has {field.distinct:,} different values", place=place, hint=hint
        )


def _type_for(field: Field, definition: Spec) -> str:
    if definition.get("aggregate") in ("count", "distinct", "valid", "missing"):
        return "quantitative"
    if definition.get("timeUnit") or field.kind == "time":
        return "temporal"
    return "quantitative" if field.kind == "number" else "nominal"


def _check_type(place: str, channel_type: str, field: Field, definition: Spec) -> None:
    counted = definition.get("aggregate") in ("count", "distinct", "valid", "missing")
    fits = "temporal" if field.kind == "time" else "nominal"
    instead = (
        'use "type": "ordinal"'
        if field.kind == "number"
        else 'use "type": "nominal", or make dates in the SQL'
    )
    faults = (
        (
            channel_type == "quantitative" and field.kind != "number" and not counted,
            "not numbers",
            f'use "type": "{fits}"',
        ),
        (channel_type == "temporal" and field.kind != "time", "not dates", instead),
        (
            definition.get("timeUnit") and field.kind != "time",
            "so it has no timeUnit",
            "leave timeUnit out",
        ),
        (
            definition.get("bin") and field.kind != "number",
            "so it cannot be binned",
            "leave bin out",
        ),
    )
    for is_fault, reason, hint in faults:
        if is_fault:
            raise ChartSpecError(
                f"{field.name!r} holds {_holds(field)}, {reason}", place=place, hint=hint
            )


def _holds(field: Field) -> str:
    return {
        "number": "whole numbers" if field.whole else "numbers",
        "time": "dates",
        "truth": "true and false",
        "text": "text",
    }[field.kind]


MAX_POINTS = 5_000
Points = tuple[list[dict[str, Json]], tuple[str, ...]]
_COMPOSABLE: dict[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}
_SQL = "aggregate in the SQL first (GROUP BY)"


def reduced(
    tree: Spec,
    views: Sequence[Spec],
    fields: dict[str, Field],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> Points:
    """Return at most `MAX_POINTS` rows as objects and what to say about it; may rewrite counts in
    the spec.
    """
    places = {field.name: columns.index(field.name) for field in fields.values()}
    if len(rows) <= MAX_POINTS:
        return [_object(row, places, fields) for row in rows], ()
    if any(view.get("transform") for view in views):
        raise ChartSpecError(
            f"the result has {len(rows):,} rows, too many for transforms", hint=_SQL
        )
    channels = [channel for view in [tree, *views] for channel in _channels(view)]
    if not any("aggregate" in channel or channel.get("bin") for channel in channels):
        return _sampled(rows, places, fields)
    single = len(views) == 1 and "layer" not in tree
    if not single:
        raise ChartSpecError(
            f"the result has {len(rows):,} rows, too many for several views that add up", hint=_SQL
        )
    return _grouped(channels, rows, places, fields)


def _channels(view: Spec) -> list[Spec]:
    encoding = view.get("encoding")
    definitions = encoding.values() if isinstance(encoding, dict) else []
    flat = [
        one
        for definition in definitions
        for one in (definition if isinstance(definition, list) else [definition])
    ]
    return [one for one in flat if isinstance(one, dict) and ("field" in one or "aggregate" in one)]


def _object(
    row: Sequence[object], places: dict[str, int], fields: dict[str, Field]
) -> dict[str, Json]:
    return {
        name: chart_value(row[place] if place < len(row) else None, fields[name].kind)
        for name, place in places.items()
    }


def _sampled(
    rows: Sequence[Sequence[object]], places: dict[str, int], fields: dict[str, Field]
) -> Points:
    step = -(-len(rows) // MAX_POINTS)
    sample = [_object(row, places, fields) for row in rows[::step]]
    return sample, (f"{len(sample):,} of {len(rows):,} rows are drawn, every {step}th",)


def _grouped(
    channels: Sequence[Spec],
    rows: Sequence[Sequence[object]],
    places: dict[str, int],
    fields: dict[str, Field],
) -> Points:
    """Add up by every field that the spec does not add up itself; what it then does to the sums is
    the same.
    """
    keys = list(
        dict.fromkeys(
            _name(channel, fields)
            for channel in channels
            if "aggregate" not in channel and "field" in channel
        )
    )
    rounded = any(channel.get("timeUnit") or channel.get("bin") for channel in channels)
    measures: dict[str, str] = {}
    for channel in channels:
        if "aggregate" not in channel or channel["aggregate"] == "count":
            continue
        kind, name = str(channel["aggregate"]), _name(channel, fields)
        if kind not in _COMPOSABLE and not (kind in ("mean", "average") and not rounded):
            raise ChartSpecError(
                f"the result has {len(rows):,} rows, too many to take {kind} of", hint=_SQL
            )
        if measures.setdefault(name, kind) != kind or name in keys:
            raise ChartSpecError(f"{name!r} is used in two ways over {len(rows):,} rows", hint=_SQL)
    groups: dict[tuple[Json, ...], list[Sequence[object]]] = {}
    for row in rows:
        groups.setdefault(
            tuple(chart_value(row[places[key]], fields[key].kind) for key in keys), []
        ).append(row)
        if len(groups) > MAX_POINTS:
            raise ChartSpecError(f"the result makes more than {MAX_POINTS:,} points", hint=_SQL)
    groups_kept = []
    for group, members in groups.items():
        point: dict[str, Json] = dict(zip(keys, group, strict=True))
        for name, kind in measures.items():
            cells = [chart_value(row[places[name]], "number") for row in members]
            numbers: list[float] = [cell for cell in cells if isinstance(cell, int | float)]
            point[name] = (
                (_COMPOSABLE[kind](numbers) if kind in _COMPOSABLE else sum(numbers) / len(numbers))
                if numbers
                else None
            )
        point[_COUNT] = len(members)
        groups_kept.append(point)
    for channel in channels:
        if channel.get("aggregate") == "count":
            channel |= {"aggregate": "sum", "field": _COUNT, "type": "quantitative"}
            channel.setdefault("title", "count")
    return groups_kept, (f"{len(rows):,} rows were added up to {len(groups_kept):,} points",)


_COUNT = "rows_counted"


def _name(channel: Spec, fields: dict[str, Field]) -> str:
    path = str(channel.get("field"))
    return next((field.name for field in fields.values() if field.path == path), path)
