"""Draw a checked spec: SVG, PNG, a page of its own. Offline: nothing is fetched, and fonts are those of the system."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import cast

from longtable.base.errors import MissingExtraError
from longtable.tools.cells import Json
from longtable.tools.charts.chart_fields import ChartSpecError, Spec

MAX_SIDE = 6_000
"""Most pixels of a drawing's side before scaling."""


def render_svg(spec: Spec, rows: Sequence[Mapping[str, Json]]) -> str:
    """Return the chart as SVG."""
    try:
        svg = cast(str, _converter().vegalite_to_svg(_whole(spec, rows), allowed_base_urls=[]))
    except ValueError as error:
        raise ChartSpecError(
            f"the chart cannot be drawn ({str(error).strip().splitlines()[0][:160]})", hint="draw it in a simpler way"
        ) from error
    sides = re.match(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg)
    if sides is None or max(float(sides[1]), float(sides[2])) > MAX_SIDE:
        size = f"{float(sides[1]):,.0f} x {float(sides[2]):,.0f}" if sides else "not finite"
        raise ChartSpecError(f"the chart would be {size} pixels", hint=f"at most {MAX_SIDE:,} a side: fewer categories or small charts")
    return svg


def render_png(spec: Spec, rows: Sequence[Mapping[str, Json]], *, scale: float = 1.0) -> bytes:
    """Return the chart as PNG; `scale` is pixels for each pixel of the spec, at most 4."""
    return bytes(_converter().svg_to_png(render_svg(spec, rows), scale=max(0.1, min(scale, 4.0))))


def render_html(spec: Spec, rows: Sequence[Mapping[str, Json]]) -> str:
    """Return a page (some 0.9 MB) that shows the chart without a network: the libraries are in it."""
    vega = _converter().javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # `<` is written so that no cell can end the script.
    text = (
        json.dumps(_whole(spec, rows), ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )
    options = '{"actions":false,"renderer":"svg","loader":{"load":() => Promise.reject(new Error("nothing is loaded"))}}'
    policy = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="UTF-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<title>Chart</title></head><body><div id="chart"></div>\n<script type="module">{vega}\n'
        f'vegaEmbed("#chart", {text}, {options});</script></body></html>\n'
    )


def _whole(spec: Spec, rows: Sequence[Mapping[str, Json]]) -> dict[str, object]:
    return {**spec, "data": {"values": [dict(row) for row in rows]}}


def draws_pictures() -> bool:
    """Return whether the extra `charts` is installed; without it a chart is drawn as text alone."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def _converter() -> ModuleType:
    if not draws_pictures():  # altair, too: its schema check comes before every picture
        raise MissingExtraError("no picture of this chart can be drawn", "charts")
    return import_module("vl_convert")
