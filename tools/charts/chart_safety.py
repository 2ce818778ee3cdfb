"""Check that a spec is bounded JSON without data, addresses or expressions, and valid by Vega-Lite's schema."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy

from longtable.tools.cells import Json, clip
from longtable.tools.charts.chart_fields import FORBIDDEN_NAMES, ChartSpecError, Spec

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
    """Return a deep copy as plain JSON, its size and depth bounded before anything else looks at it."""
    if not isinstance(spec, Mapping):
        raise ChartSpecError("the spec is not a JSON object", hint="send one Vega-Lite spec")
    size = 0
    todo: list[tuple[object, int]] = [(spec, 1)]
    while todo:
        node, depth = todo.pop()
        inner = list(node.values()) if isinstance(node, Mapping) else list(node) if isinstance(node, list | tuple) else []
        size += 1 + (len(node) if isinstance(node, str) else len(inner))
        if depth > MAX_DEPTH:
            raise ChartSpecError(f"the spec is nested more than {MAX_DEPTH} deep", hint="draw it in a simpler way")
        if size > MAX_SPEC_CHARS:
            raise ChartSpecError(f"the spec has more than {MAX_SPEC_CHARS:,} characters", hint="leave data out: it comes by its handle")
        todo += [(item, depth + 1) for item in inner]
    try:
        text = json.dumps(spec, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ChartSpecError(f"the spec is not JSON ({clip(str(error), 80)})", hint="send one Vega-Lite spec") from error
    if len(text) > MAX_SPEC_CHARS:
        raise ChartSpecError(f"the spec has more than {MAX_SPEC_CHARS:,} characters", hint="leave data out: it comes by its handle")
    copied: Spec = json.loads(text)
    return copied


def drop_data(tree: Spec) -> None:
    """Remove `data` that is only a name; refuse any other."""
    data = tree.get("data")
    if "data" in tree and not (data is None or (isinstance(data, dict) and set(data) == {"name"} and isinstance(data["name"], str))):
        raise ChartSpecError("data comes by its handle only", place="data", hint="leave `data` out of the spec")
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
    shown = clip(place, 80)
    if key in FORBIDDEN_NAMES:
        raise ChartSpecError(f"{key!r} is not allowed", place=shown, hint="leave it out")
    if key in _REASONS:
        hint = "leave it out; compute it in the SQL instead" if "expressions" in _REASONS[key] else "leave it out"
        raise ChartSpecError(_REASONS[key], place=shown, hint=hint)
    parts = value if key in ("and", "or") and isinstance(value, list) else [value] if key in ("filter", "test", "not") else []
    if not all(isinstance(part, dict) for part in parts):
        raise ChartSpecError("expressions are not run", place=shown, hint='write {"field": "n", "gt": 5}, or filter in the SQL')
    if key in _MOST and isinstance(value, int | float) and not 0 <= value <= _MOST[key]:
        raise ChartSpecError(f"{key} is {value:g}", place=shown, hint=f"it must be from 0 to {_MOST[key]:,}")
    if key in ("tickCount", "bins", "keyvals", "nice") and isinstance(value, dict):
        raise ChartSpecError(f"{key} as an object is not supported", place=shown, hint="leave it out or give a number")
    if key == "bin" and isinstance(value, dict) and set(value) - {"maxbins", "nice"}:
        raise ChartSpecError("of bin only maxbins is supported", place=shown, hint='write {"maxbins": 20} or true')
    if (
        isinstance(value, str)
        and re.search(r"://|url\s*\(|javascript:", value, re.IGNORECASE)
        and key not in ("title", "text", "description", "subtitle")
    ):
        raise ChartSpecError("nothing may be loaded", place=shown, hint="leave the address out")


def validate(tree: Spec) -> None:
    """Validate the spec by altair's copy of the Vega-Lite schema, if the extra `charts` is installed."""
    try:
        import altair
        from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]  # altair's own dependency
    except ImportError:
        return  # text is drawn from what is checked above; a picture is drawn only where this check is made, too
    names = {"layer": "LayerChart", "hconcat": "HConcatChart", "vconcat": "VConcatChart", "concat": "ConcatChart"}
    names |= {"repeat": "RepeatChart", "facet": "FacetChart"}
    kind = getattr(altair, next((name for key, name in names.items() if key in tree), "Chart"))
    # The schema wants data; the rows come at drawing.
    try:
        kind.from_dict({**deepcopy(tree), "data": {"name": "result"}}, validate=True)
    except ValidationError as error:
        place = ".".join(map(str, error.absolute_path))
        raise ChartSpecError(
            f"the spec is not valid Vega-Lite: {clip(error.message.splitlines()[0], 160)}", place=clip(place, 80), hint="mend this part"
        ) from error
