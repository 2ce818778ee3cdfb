"""Draw a checked chart as SVG or PNG, offline."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import cast
from xml.etree import ElementTree

from longtable.base.errors import MissingExtraError
from longtable.tools.cells import Json
from longtable.tools.charts.chart_fields import ChartSpecError, Spec, words
from longtable.tools.charts.drawing import render_text

MAX_SIDE = 6_000
"""The largest width and height of a drawing, in pixels before scaling."""


@dataclass(frozen=True)
class Chart:
    """A chart that can be drawn: the spec without data, its rows, and notes on rows that were left
    out or added up. Notebooks display it directly.
    """

    handle: str
    spec: Spec
    rows: list[dict[str, Json]]
    notes: tuple[str, ...] = ()

    def text(self, width: int = 80) -> str:
        """Return the chart as lines of text."""
        return render_text(self.spec, self.rows, width)

    def svg(self) -> str:
        """Return the chart as SVG."""
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
        """Return the chart as PNG. `scale` is the number of pixels for each pixel of the spec, from
        0.1 to 4.
        """
        return bytes(_converter().svg_to_png(self.svg(), scale=max(0.1, min(scale, 4.0))))

    def html(self) -> str:
        """Return the chart as an HTML page of about 0.9 MB. The page contains the libraries that it
        needs, so it works without a network.
        """
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
    """Return whether the extra `charts` is installed. Without the extra, charts are drawn as text
    only.
    """
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
    """Return an SVG drawing as one line of markup, with `prefix` put before its ids. Return None if
    the text is not SVG, or contains anything that runs, links or loads.
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
    """Return the value of an attribute in its allowed form, None if the attribute is not allowed. A
    name that begins with `{` belongs to a link or to another namespace.
    """
    if name.startswith("{") or name.lower().startswith("on") or name.lower() in {"href", "src"}:
        return None
    if name == "id":
        return ids[value]
    line = _LOCAL.sub(lambda found: f"url(#{ids.get(found[2], '')})", " ".join(value.split()))
    return None if re.search(r"url\((?!#[\w-])", line, re.IGNORECASE) else line


def _line(text: str | None) -> str | None:
    return " ".join(text.split("\n")) if text else text
