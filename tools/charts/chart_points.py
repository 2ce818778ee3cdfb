"""The points that a chart draws: the rows themselves or, if there are too many, groups of rows
added up.
"""

from collections.abc import Callable, Sequence
from itertools import chain

from longtable.tools.cells import Json
from longtable.tools.charts.chart_fields import ChartSpecError, Field, Spec, chart_value

MAX_POINTS = 5_000

Points = tuple[list[dict[str, Json]], tuple[str, ...]]

_COMPOSABLE: dict[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}

_COUNT = "rows_counted"

_SQL = "aggregate in the SQL first (GROUP BY)"


def reduced(
    tree: Spec,
    views: Sequence[Spec],
    fields: dict[str, Field],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> Points:
    """Return at most `MAX_POINTS` rows as objects, and notes on what was left out or added up. If
    rows are added up, counts in the spec are rewritten to add up the counted rows.
    """
    places = {field.name: columns.index(field.name) for field in fields.values()}
    if len(rows) <= MAX_POINTS:
        return [_object(row, places, fields) for row in rows], ()
    if any(view.get("transform") for view in views):
        raise ChartSpecError(
            f"the result has {len(rows):,} rows, too many for transforms", hint=_SQL
        )
    channels = list(chain.from_iterable(map(_channels, [tree, *views])))
    if not any("aggregate" in channel or channel.get("bin") for channel in channels):
        step = -(-len(rows) // MAX_POINTS)
        sample = [_object(row, places, fields) for row in rows[::step]]
        return sample, (f"{len(sample):,} of {len(rows):,} rows are drawn, every {step}th",)
    if len(views) > 1 or "layer" in tree:
        raise ChartSpecError(
            f"the result has {len(rows):,} rows, too many for several views that add up", hint=_SQL
        )
    return _grouped(channels, rows, places, fields)


def _channels(view: Spec) -> list[Spec]:
    encoding = view.get("encoding")
    definitions = encoding.values() if isinstance(encoding, dict) else []
    flat: list[Json] = []
    for definition in definitions:
        flat += definition if isinstance(definition, list) else [definition]
    return [one for one in flat if isinstance(one, dict) and ("field" in one or "aggregate" in one)]


def _object(
    row: Sequence[object], places: dict[str, int], fields: dict[str, Field]
) -> dict[str, Json]:
    return {
        name: chart_value(row[place] if place < len(row) else None, fields[name].kind)
        for name, place in places.items()
    }


def _grouped(
    channels: Sequence[Spec],
    rows: Sequence[Sequence[object]],
    places: dict[str, int],
    fields: dict[str, Field],
) -> Points:
    """Add up the rows, grouped by every field that the spec does not aggregate. The spec gives the
    same chart of these sums as it would give of the rows.
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
        kind = str(channel["aggregate"])
        name = _name(channel, fields)
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
    points = []
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
        points.append(point)
    for channel in channels:
        if channel.get("aggregate") == "count":
            channel |= {"aggregate": "sum", "field": _COUNT, "type": "quantitative"}
            channel.setdefault("title", "count")
    return points, (f"{len(rows):,} rows were added up to {len(points):,} points",)


def _name(channel: Spec, fields: dict[str, Field]) -> str:
    path = str(channel.get("field"))
    return next((field.name for field in fields.values() if field.path == path), path)
