"""The HTML of the parts of a turn: a query, a table, a chart, a note. Pure functions of values.

The markup stands in `templates/parts.html`; every value is escaped there.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from longtable.app.pages.page_words import WORDS, page_word
from longtable.base.events import ChartShown, QueryFinished
from longtable.tools.cells import dumps

TEMPLATES = Path(__file__).parent / "templates"
PAGE_ROWS = 200
"""Rows of a result in one page of its table."""
_SQL = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*')|(?P<name>\"[^\"]*\")"
    r"|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>\b[A-Za-z_]\w*\b)",
    re.DOTALL,
)
_WORDS = """
all and as asc between by case cast cross desc distinct else end except exists extract
false filter first from full group having in inner intersect interval is join last lateral
left like limit not null nulls offset on or order outer over partition qualify recursive
right rows select then true union unnest using values when where window with
"""
_KEYWORDS = frozenset(_WORDS.split())
_TAG = re.compile(r"(<[^>]*>)")


@dataclass(frozen=True)
class TurnPlace:
    """Where a turn is shown. `key` is part of the ids in it, and differs between turns."""

    thread_id: str
    key: str
    language: str
    rating: int = 0
    """What a person said of the answer: 1 for right, -1 for wrong, 0 for nothing."""


@dataclass(frozen=True)
class Part:
    """One part of a turn's body, by the id of its element."""

    place: TurnPlace
    id: str

    @property
    def language(self) -> str:
        """Return the language of the page."""
        return self.place.language

    @property
    def address(self) -> str:
        """Return the address of the thread."""
        return f"/threads/{quote(self.place.thread_id, safe='')}"


class Macro(Protocol):
    """A macro of a template."""

    def __call__(self, part: Part, **values: object) -> str: ...


def new_environment() -> Environment:
    """Return an environment over all templates. Values are escaped, and an unknown name is an
    error.
    """
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def templates() -> Environment:
    """Return the templates of the pages."""
    found = new_environment()
    found.globals["word"] = page_word
    found.globals["chart_query"] = chart_query
    found.filters["sql"] = coloured_sql
    found.filters["cell"] = cell_text
    return found


def part(name: str, where: Part, **values: object) -> str:
    """Return a part of a turn from the macro of that name in `parts.html`."""
    macro: Macro = getattr(templates().get_template("parts.html").module, name)
    return str(macro(where, **values)).strip()


def coloured_sql(sql: str) -> Markup:
    """Return SQL with elements around its keywords, texts, numbers and comments."""
    pieces: list[str] = []
    end = 0
    for token in _SQL.finditer(sql):
        pieces.append(str(escape(sql[end : token.start()])))
        kind = token.lastgroup or ""
        if kind == "word" and token.group().lower() not in _KEYWORDS:
            kind = ""
        text = str(escape(token.group()))
        pieces.append(f'<span class="sql-{kind}">{text}</span>' if kind else text)
        end = token.end()
    pieces.append(str(escape(sql[end:])))
    return Markup("".join(pieces))


def cell_text(cell: object) -> str:
    """Return a cell of a result as text; JSON for nested values, "" for NULL."""
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else dumps(cell)


def numeric_columns(rows: Sequence[Sequence[object]], count: int) -> list[bool]:
    """Return for each of `count` columns whether its first value is a number."""
    found: list[bool] = []
    for place in range(count):
        values = (row[place] for row in rows if row[place] is not None)
        first = next(values, None)
        found.append(isinstance(first, int | float) and not isinstance(first, bool))
    return found


def query_part(where: Part, event: Mapping[str, Any]) -> str:
    """Return a query as a folded step. `event`: `query_started` or `query_finished`."""
    return part("query", where, query=event)


def result_part(where: Part, event: QueryFinished) -> str:
    """Return the result of a query as a table with its first rows."""
    columns = event.get("columns", [])
    rows = event.get("rows", [])[:PAGE_ROWS]
    return part(
        "result",
        where,
        handle=event.get("handle", ""),
        columns=columns,
        numeric=numeric_columns(rows, len(columns)),
        rows=rows,
        row_count=event.get("row_count", len(rows)),
        gone=event.get("gone", "") or event.get("not_kept", ""),
    )


def chart_query(chart: ChartShown) -> str:
    """Return the query of a chart's address: its spec, which is checked again when it is drawn."""
    return urlencode({"spec": json.dumps(chart["spec"], ensure_ascii=False, separators=(",", ":"))})


def marked_figures(html: str, figures: Sequence[str], language: str) -> str:
    """Return HTML in which these figures are marked as found in no result. Tags stay as they
    are.
    """
    if not figures:
        return html
    found = "|".join(re.escape(str(escape(figure))) for figure in sorted(figures, key=len)[::-1])
    pattern = re.compile(rf"(?<![\w.,])(?:{found})(?![\w]|[.,]\d)")
    mark = Markup('<mark class="flag" title="{}">').format(page_word("flag_reason", language))
    pieces = _TAG.split(html)
    for place in range(0, len(pieces), 2):
        pieces[place] = pattern.sub(lambda each: f"{mark}{each.group()}</mark>", pieces[place])
    return "".join(pieces)


def note_of(event: Mapping[str, Any], language: str) -> str:
    """Return one sentence about an event of a turn that is neither text, query nor chart; "" for an
    event that a person is not told of.
    """
    kind = str(event["type"])
    values: dict[str, object] = {}
    if kind == "context_compressed":
        kind = "compacted_results" if event.get("kind") == "results" else "compacted"
        kind = "compaction_undone" if event.get("undone") else kind
        values = {
            "messages": f"{event['messages']:,}",
            "before": f"{event['original_tokens']:,}",
            "after": f"{event['compressed_tokens']:,}",
            "writer": event["writer"],
        }
    elif kind == "recall":
        values = {"found": event["found"], "turns": ", ".join(map(str, event["turns"]))}
        kind = kind if event["found"] else ""
    elif kind == "context_passed":
        names = list(chain.from_iterable(each["cites"][:5] for each in event["passed"]))
        values = {"names": ", ".join(names)}
        kind = kind if names else ""
    elif kind == "pins_changed":
        values = {"texts": " · ".join(each["text"] for each in event["pinned"])}
        kind = kind if event["pinned"] else ""
    elif kind == "schema_changed":
        tables = [*event["changed"], *event["new"], *event["gone"]]
        values = {"tables": ", ".join(tables[:10])}
    elif kind in ("steered", "model_fallback", "model_retry", "tool_finished", "thread_waiting"):
        values = dict(event)
        values.pop("type", None)
    elif kind == "unknown_mentions":
        values = {"words": ", ".join(event["words"]), "known": ", ".join(event["known"])}
    return page_word(f"note_{kind}", language, **values) if f"note_{kind}" in WORDS else ""
