"""show_chart: a result that is kept, drawn by a Vega-Lite spec that is checked against it; the thread keeps spec and handle.

Drawing as SVG, PNG or a page fetches nothing; fonts are the system's.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Annotated, Any, cast
from xml.etree import ElementTree

from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import BaseModel, ConfigDict, Field

from longtable.base.errors import MissingExtraError
from longtable.tools.cells import Json, dumps
from longtable.tools.charts.chart_fields import ChartSpecError, Spec
from longtable.tools.charts.chart_spec import check_spec
from longtable.tools.charts.chart_text import render_text
from longtable.tools.charts.chart_wish import default_spec
from longtable.tools.database import QueryResult
from longtable.tools.result_tool import FetchRefusedError, ThreadResults

KIND = "chart"
"""Kind of a tool that is handed the thread's results, and whose artifact is a chart."""
MOST_SPEC_CHARS = 8_000


@dataclass(frozen=True)
class Chart:
    """A chart that can be drawn: the spec without data, its rows, and what was left out or added up. Notebooks show it as it is."""

    handle: str
    spec: Spec
    rows: list[dict[str, Json]]
    notes: tuple[str, ...] = ()

    def text(self, width: int = 80) -> str:
        """Return it as lines of text."""
        return render_text(self.spec, self.rows, width)

    def svg(self) -> str:
        """Return it as SVG."""
        return render_svg(self.spec, self.rows)

    def png(self, *, scale: float = 2.0) -> bytes:
        """Return it as PNG."""
        return render_png(self.spec, self.rows, scale=scale)

    def html(self) -> str:
        """Return it as a page of its own that needs no network."""
        return render_html(self.spec, self.rows)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg(), "text/plain": self.text()}
        except MissingExtraError as error:
            return {"text/plain": f"{self.text()}\n{error}"}


class ShowChart(BaseModel):
    """Arguments of show_chart. `results` is the node's, never the model's."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    handle: str = Field(description="Handle of the result, such as r3.")
    wish: str = Field(default="", description='What to draw, in words: "line by month". Enough for most charts.')
    spec: dict[str, Any] | None = Field(default=None, description="Instead: a Vega-Lite spec without data, fields named as the columns.")
    results: Annotated[ThreadResults | None, InjectedToolArg] = None


def chart_of(handle: str, result: QueryResult, *, spec: Mapping[str, object] | None = None, wish: str = "") -> Chart:
    """Return a result as a chart: by a spec, or by a default one from its shape and a wish. Raises `ChartSpecError`."""
    drawn: Mapping[str, object] = spec or default_spec(wish, result.columns, result.types, result.rows)
    checked = check_spec(drawn, result.columns, result.types, result.rows)
    if (size := len(dumps(checked.spec))) > MOST_SPEC_CHARS:
        raise ChartSpecError(f"the spec has {size:,} characters", hint=f"at most {MOST_SPEC_CHARS:,} are kept: draw it in a simpler way")
    return Chart(handle, checked.spec, checked.rows, checked.notes)


def chart_tool() -> BaseTool:
    """Return show_chart; a call's "args" must be given `results`, a `ThreadResults`, before it is invoked. Its artifact is a `Chart`."""

    def show(handle: str, wish: str = "", spec: dict[str, Any] | None = None, results: ThreadResults | None = None) -> tuple[str, Chart]:
        if results is None:
            raise FetchRefusedError("no results are kept in this run: it has no thread, and nothing to draw")
        if spec and not draws_pictures():  # clients may draw the spec of the event: send none that was not checked
            raise ChartSpecError("a spec of your own cannot be checked here", hint='say in `wish` what to draw, as in "line by month"')
        meta = results.store.meta(results.thread_id, handle)
        chart = chart_of(meta.handle, results.store.get(results.thread_id, meta.handle), spec=spec, wish=wish)
        told = {"shown": True, "handle": chart.handle, "points": len(chart.rows), "notes": list(chart.notes), "spec": chart.spec}
        return dumps(told), chart

    return StructuredTool.from_function(
        func=show,
        name="show_chart",
        description="Show the user a chart of a result that run_sql gave a handle.",
        args_schema=ShowChart,
        response_format="content_and_artifact",
        metadata={"kind": KIND},
    )


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


SVG = "http://www.w3.org/2000/svg"
_SHAPES = ("svg", "g", "path", "text", "tspan", "rect", "line", "circle", "ellipse", "polygon", "polyline", "title", "desc")
_FILLS = ("defs", "clipPath", "linearGradient", "radialGradient", "stop")
ELEMENTS = frozenset(f"{{{SVG}}}{name}" for name in (*_SHAPES, *_FILLS))
_LOCAL = re.compile(r"url\((['\"]?)#([^)'\"]+)\1\)")


def embedded_svg(svg: str, prefix: str) -> str | None:
    """Return an SVG drawing as one line of markup, its ids made of a prefix; None where it holds what runs, links or loads."""
    ElementTree.register_namespace("", SVG)
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError:
        return None
    ids = {str(element.get("id")): f"{prefix}-{n}" for n, element in enumerate(root.iter()) if element.get("id")}
    for element in root.iter():
        if element.tag not in ELEMENTS:
            return None
        element.attrib.pop("style", None)  # cursors and blending: nothing that the drawing needs
        made = {name: _attribute(name, value, ids) for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in made.items():
            if value is None:
                return None
            element.set(name, value)
        element.text, element.tail = _line(element.text), _line(element.tail)
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str, ids: Mapping[str, str]) -> str | None:
    """Return an attribute as it may stand, None where it may not: `{` begins the name of a link's, or of another namespace's."""
    if name.startswith("{") or name.lower().startswith("on") or name.lower() in {"href", "src"}:
        return None
    if name == "id":
        return ids[value]
    line = _LOCAL.sub(lambda found: f"url(#{ids.get(found[2], '')})", " ".join(value.split()))
    return None if re.search(r"url\((?!#[\w-])", line, re.IGNORECASE) else line


def _line(text: str | None) -> str | None:
    return " ".join(text.split("\n")) if text else text
