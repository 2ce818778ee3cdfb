"""Check a Vega-Lite spec against a result before anything draws it: the spec may contain no code
and no data, and must stay within limits.

A spec that passes holds no data, no URL and no expression; its fields are columns of the result and
fit the types of these columns. SQL must compute everything that it can: expressions and the rarer
transforms are refused, and the message says so.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate

from longtable.tools.catalog import nearest
from longtable.tools.cells import Json, clip
from longtable.tools.charts.chart_fields import (
    ChartSpecError,
    Fault,
    Field,
    Spec,
    check_value,
    fields_of,
    find,
    moment,
    refuse,
    walk,
    words,
)
from longtable.tools.charts.chart_points import reduced

MAX_VIEWS = 16
MAX_CATEGORIES = 200
MAX_FACETS = 40

VIEWS = ("layer", "concat", "hconcat", "vconcat")
MARKS = words(
    "arc area bar boxplot circle errorband errorbar line point rect rule square text tick trail"
)
CHANNELS = words(
    "x y x2 y2 xOffset yOffset color fill stroke opacity fillOpacity strokeOpacity strokeWidth"
    " strokeDash size shape theta theta2 radius radius2 angle text tooltip detail order row column"
    " facet xError yError xError2 yError2 description key"
)
TRANSFORMS = ("aggregate", "bin", "filter", "fold", "joinaggregate", "stack", "timeUnit", "window")
NUMERIC_AGGREGATES = words(
    "sum mean average median variance variancep stdev stdevp stderr product q1 q3 ci0 ci1"
)


@dataclass(frozen=True)
class Checked:
    """A spec that may be drawn, and the rows to draw it with. `notes` say which rows were left out
    or added up.
    """

    kept: Spec
    """The spec to keep with the thread, which fits the whole result. `spec` fits `rows`: if rows
    were added up, a count in `spec` adds up the numbers of rows.
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
    """Return the spec in a form that can be drawn, or raise `ChartSpecError`. The spec is also
    validated by the Vega-Lite schema, if the extra `charts` is installed.
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
    kept = deepcopy(tree)
    points, notes = reduced(tree, [view for _, view in views], fields, columns, rows)
    moments = [
        field.name
        for field in fields.values()
        if field.kind == "time" and _is_temporal(tree, field)
    ]
    return Checked(
        kept,
        tree,
        [_with_moments(row, moments) for row in points],
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
    """Yield every single view of a spec with its place. Raises `ChartSpecError` if a view is not an
    object or has no mark.
    """
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
    known = fields | _new_fields(view, place, fields)
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
    if mark is not None and "layer" not in view:
        view.setdefault("encoding", {})


def _new_fields(view: Spec, place: str, fields: dict[str, Field]) -> dict[str, Field]:
    """Check the transforms of a view, and return the fields that they make."""
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
        flat: list[Json] = []
        for value in names:
            flat += value if isinstance(value, list) else [value]
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


def _with_moments(row: Mapping[str, Json], names: Iterable[str]) -> dict[str, Json]:
    """Return a row in which the values of these fields have a time of day; see `moment`."""
    times = {name: moment(row[name]) for name in names if name in row}
    return {**row, **times}


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
    channel_type = definition.setdefault("type", _type_for(field, definition))
    is_discrete = channel_type in ("nominal", "ordinal") and not definition.get("bin")
    is_small = field.distinct <= MAX_CATEGORIES or sized
    not_numbers: Fault = (
        aggregate in NUMERIC_AGGREGATES and field.kind != "number",
        f"{aggregate} of {field.name!r}, which holds {_holds(field)}",
        'use "count" or a column of numbers',
    )
    many_charts: Fault = (
        channel in ("row", "column", "facet") and field.distinct > MAX_FACETS,
        f"{field.name!r} would make {field.distinct:,} small charts",
        f"at most {MAX_FACETS}: filter in the SQL",
    )
    many_values: Fault = (
        is_discrete and not is_small and channel in ("x", "y", "color", "shape", "theta"),
        f"{field.name!r} has {field.distinct:,} different values",
        f"at most {MAX_CATEGORIES}: keep the largest in the SQL (ORDER BY ... LIMIT), or use a"
        " temporal or quantitative type",
    )
    type_faults = _type_faults(str(channel_type), field, definition)
    refuse(place, not_numbers, *type_faults, many_charts, many_values)


def _type_for(field: Field, definition: Spec) -> str:
    if definition.get("aggregate") in ("count", "distinct", "valid", "missing"):
        return "quantitative"
    if definition.get("timeUnit") or field.kind == "time":
        return "temporal"
    return "quantitative" if field.kind == "number" else "nominal"


def _type_faults(channel_type: str, field: Field, definition: Spec) -> tuple[Fault, ...]:
    counted = definition.get("aggregate") in ("count", "distinct", "valid", "missing")
    what = f"{field.name!r} holds {_holds(field)}"
    is_number = field.kind == "number"
    is_time = field.kind == "time"
    not_numbers: Fault = (
        channel_type == "quantitative" and not is_number and not counted,
        f"{what}, not numbers",
        f'use "type": "{"temporal" if is_time else "nominal"}"',
    )
    other_type = (
        'use "type": "ordinal"' if is_number else 'use "type": "nominal", or make dates in the SQL'
    )
    not_dates: Fault = (
        channel_type == "temporal" and not is_time,
        f"{what}, not dates",
        other_type,
    )
    no_unit: Fault = (
        definition.get("timeUnit") and not is_time,
        f"{what}, so it has no timeUnit",
        "leave timeUnit out",
    )
    no_bin: Fault = (
        definition.get("bin") and not is_number,
        f"{what}, so it cannot be binned",
        "leave bin out",
    )
    return not_numbers, not_dates, no_unit, no_bin


def _holds(field: Field) -> str:
    return {
        "number": "whole numbers" if field.whole else "numbers",
        "time": "dates",
        "truth": "true and false",
        "text": "text",
    }[field.kind]


MAX_SPEC_CHARS = 20_000
MAX_DEPTH = 24
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def plain_copy(spec: Mapping[str, object]) -> Spec:
    """Return a deep copy of the spec as plain JSON. The size and depth of the spec are checked
    before anything else looks at it. Raises `ChartSpecError`.
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
    """Remove `data` that is null or only a name. Raises `ChartSpecError` for any other `data`."""
    data = tree.get("data")
    if "data" in tree and not (
        data is None
        or (isinstance(data, dict) and set(data) == {"name"} and isinstance(data["name"], str))
    ):
        raise ChartSpecError(
            "data comes by its handle only", place="data", hint="leave `data` out of the spec"
        )
    tree.pop("data", None)


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
