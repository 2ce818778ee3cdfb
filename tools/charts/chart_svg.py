"""Make a drawn chart fit to stand within somebody's document: only shapes and text, names that clash with no other chart's."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

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
