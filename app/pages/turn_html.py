"""The HTML of a turn as a pure function of its events.

A turn's body is a list of parts in the order in which they came. `TurnPainter` turns each event
into changes of parts: a part is added, text is appended to a part, or a part is replaced. A page
that follows a running turn is sent these changes (`changes_html`). `TurnBody` makes the changes
itself, so that a turn looks the same after a reload. No text of a model or of data becomes HTML by
itself.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, cast

from longtable.app.pages.part_html import (
    Part,
    TurnPlace,
    marked_figures,
    note_of,
    query_part,
    result_part,
)
from longtable.app.pages.part_html import part as template_part
from longtable.base.events import Event, QueryFinished, Verified, verified_queries
from longtable.graph.export.export_text import safe_html

TAIL = "</div>"
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_BLOCK_END = re.compile(r"\n[ \t]*\n+")


@dataclass(frozen=True)
class Change:
    """One change of a turn's body: add a part, append to a part, or replace a part."""

    kind: Literal["add", "append", "replace"]
    id: str
    html: str
    """The HTML to add or to append, or what stands in place of the part."""


def complete_block(text: str) -> int:
    """Return the length of the first block of a Markdown text that later text cannot change, with
    the blank lines after it; 0 if there is none. A fence of code is one block.
    """
    for end in _BLOCK_END.finditer(text):
        fences = _FENCE.findall(text[: end.start()])
        if len(fences) % 2 == 0:
            return end.end()
    return 0


class TurnPainter:
    """Turns the events of one turn into changes of its body."""

    def __init__(self, place: TurnPlace) -> None:
        self.place = place
        self._count = 0
        self._tail = ""
        self._tail_id = ""
        self._reasoning = ""
        self._reasoning_id = ""
        self._blocks: list[tuple[str, str]] = []
        self._queries: dict[str, str] = {}
        self._figures: list[str] = []
        self._finished: list[Event] = []

    def take(self, event: Event) -> list[Change]:
        """Return the changes that an event makes."""
        closing: list[Change] = []
        if event["type"] != "token":
            closing += self._close_text()
        if event["type"] != "reasoning":
            closing += self._close_reasoning()
        paint: Painter = _PAINTERS.get(event["type"], TurnPainter._note)
        return [*closing, *paint(self, event)]

    def finish(self) -> list[Change]:
        """Return the changes that complete what is still open, when no further event comes."""
        return [*self._close_text(), *self._close_reasoning()]

    def _next_id(self) -> str:
        self._count += 1
        return f"{self.place.key}-{self._count}"

    def _part(self, name: str, **values: object) -> Change:
        """Return the change that adds a part from the template of that name."""
        part_id = self._next_id()
        whole = template_part(name, Part(self.place, part_id), **values)
        return Change("add", part_id, whole)

    # -- text --------------------------------------------------------------------------------------

    def _token(self, event: Mapping[str, Any]) -> Iterator[Change]:
        text = str(event["text"])
        self._tail += text
        length = complete_block(self._tail)
        if self._tail_id and not length:
            yield Change("append", self._tail_id, escape(text))
            return
        while length:
            yield from self._close_block(self._tail[:length])
            self._tail = self._tail[length:]
            length = complete_block(self._tail)
        yield from self._open_tail()

    def _open_tail(self) -> Iterator[Change]:
        if self._tail.strip():
            self._tail_id = self._next_id()
            yield Change(
                "add",
                self._tail_id,
                f'<div class="tail" id="{self._tail_id}">{escape(self._tail)}{TAIL}',
            )

    def _close_block(self, text: str) -> Iterator[Change]:
        """Yield the change that shows a complete block of Markdown as HTML."""
        if not text.strip():
            return
        kind: Literal["add", "replace"] = "replace" if self._tail_id else "add"
        block_id = self._tail_id or self._next_id()
        self._tail_id = ""
        self._blocks.append((block_id, text))
        yield Change(kind, block_id, self._block(block_id, text))

    def _close_text(self) -> Iterator[Change]:
        yield from self._close_block(self._tail)
        self._tail = ""

    def _block(self, block_id: str, text: str) -> str:
        html = marked_figures(safe_html(text), self._figures, self.place.language)
        repeats = "<table>" in html and bool(self._queries)
        if repeats:
            html = template_part("folded", Part(self.place, block_id), html=html)
        return f'<div class="md" id="{block_id}" dir="auto" hx-ignore>{html}</div>'

    def _reasoning_piece(self, event: Mapping[str, Any]) -> Iterator[Change]:
        if not self._reasoning:
            part = self._part("thinking", text="")
            self._reasoning_id = part.id
            yield part
        self._reasoning += str(event["text"])

    def _close_reasoning(self) -> Iterator[Change]:
        """Yield the change that shows the reasoning, folded. While it comes, a line says so."""
        if self._reasoning:
            part = Part(self.place, self._reasoning_id)
            html = template_part("thinking", part, text=self._reasoning)
            yield Change("replace", part.id, html)
        self._reasoning = ""

    # -- queries and charts ------------------------------------------------------------------------

    def _query_started(self, event: Mapping[str, Any]) -> Iterator[Change]:
        part_id = self._next_id()
        self._queries[str(event["call_id"])] = part_id
        yield Change("add", part_id, query_part(Part(self.place, part_id), event))

    def _query_finished(self, event: QueryFinished) -> Iterator[Change]:
        self._finished.append(event)
        part_id = self._queries.get(event["call_id"])
        kind: Literal["add", "replace"] = "replace" if part_id else "add"
        part_id = part_id or self._next_id()
        self._queries[event["call_id"]] = part_id
        yield Change(kind, part_id, query_part(Part(self.place, part_id), event))
        if event["status"] == "success" and event.get("columns"):
            table_id = self._next_id()
            yield Change("add", table_id, result_part(Part(self.place, table_id), event))

    def _chart(self, event: Mapping[str, Any]) -> Iterator[Change]:
        yield self._part("chart", chart=event)

    # -- what a person is asked --------------------------------------------------------------------

    def _approval(self, event: Mapping[str, Any]) -> Iterator[Change]:
        yield self._part("approval", actions=event["action_requests"], voice=event.get("voice", ""))

    def _input(self, event: Mapping[str, Any]) -> Iterator[Change]:
        yield self._part("question", waiting=event, text=_question_text(event["value"]))

    # -- the rest ----------------------------------------------------------------------------------

    def _voice(self, event: Mapping[str, Any]) -> Iterator[Change]:
        yield self._part("voice", voice=event)

    def _note(self, event: Mapping[str, Any]) -> Iterator[Change]:
        text = note_of(event, self.place.language)
        if text:
            yield self._part("note", kind=event["type"], text=text)

    def _unsupported(self, event: Mapping[str, Any]) -> Iterator[Change]:
        self._figures += event["figures"]
        for block_id, text in self._blocks:
            plain = safe_html(text)
            if marked_figures(plain, event["figures"], self.place.language) != plain:
                yield Change("replace", block_id, self._block(block_id, text))
        if event["figures"] or event.get("failure"):
            yield self._part("flagged", figures=event["figures"], failure=event.get("failure", ""))

    def _answer(self, event: Mapping[str, Any]) -> Iterator[Change]:
        if not self._blocks and event["text"].strip():
            yield from self._close_block(event["text"])
        if event["status"] in ("approval_requested", "input_requested", "steered", ""):
            return
        checked: Sequence[Verified] = verified_queries(self._finished)
        yield self._part("foot", turn=event["turn"], status=event["status"], verified=checked)

    def _failed(self, event: Mapping[str, Any]) -> Iterator[Change]:
        yield self._part("failed", failed=event)


Painter = Callable[[TurnPainter, Any], Iterable[Change]]
_PAINTERS: Mapping[str, Painter] = {
    "token": TurnPainter._token,
    "reasoning": TurnPainter._reasoning_piece,
    "query_started": TurnPainter._query_started,
    "query_finished": TurnPainter._query_finished,
    "chart": TurnPainter._chart,
    "unsupported_numbers": TurnPainter._unsupported,
    "approval_requested": TurnPainter._approval,
    "input_requested": TurnPainter._input,
    "voice_started": TurnPainter._voice,
    "answer": TurnPainter._answer,
    "failed": TurnPainter._failed,
}
"""What makes the changes of each type of event; others become a note, or nothing."""


def _question_text(value: object) -> str:
    """Return the text of a question that a tool asks."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return str(fields.get("question") or fields.get("text") or dict(fields))
    return str(value)


@dataclass
class _BodyPart:
    """A part of a body, with the numbers of the events that made it."""

    html: str
    added: int
    replaced: int
    pieces: list[tuple[int, str]] = field(default_factory=list)
    """What was appended since it was added or replaced."""

    def change_after(self, part_id: str, number: int) -> Change | None:
        """Return the change that brings the part from an event to the newest, None if it has not
        changed.
        """
        if self.added > number:
            return Change("add", part_id, self.html)
        if self.replaced > number:
            return Change("replace", part_id, self.html)
        text = "".join(piece for place, piece in self.pieces if place > number)
        return Change("append", part_id, text) if text else None


class TurnBody:
    """The body of a turn, made of its events one by one. Events may be numbered from 1."""

    def __init__(self, place: TurnPlace) -> None:
        self._painter = TurnPainter(place)
        self._parts: dict[str, _BodyPart] = {}

    def take(self, event: Event, number: int = 1) -> None:
        """Make the changes of an event."""
        for change in self._painter.take(event):
            self.make(change, number)

    def finish(self, number: int = 1) -> None:
        """Complete what is still open, such as the text of an answer that was interrupted."""
        for change in self._painter.finish():
            self.make(change, number)

    def make(self, change: Change, number: int) -> None:
        """Make one change."""
        part = self._parts.get(change.id)
        if part is None:
            self._parts[change.id] = _BodyPart(change.html, number, number)
        elif change.kind == "append":
            part.html = f"{part.html.removesuffix(TAIL)}{change.html}{TAIL}"
            part.pieces.append((number, change.html))
        else:
            part.html = change.html
            part.replaced = number
            part.pieces.clear()

    @property
    def html(self) -> str:
        """Return the body as it is now."""
        return "".join(part.html for part in self._parts.values())

    def changes_after(self, number: int) -> list[Change]:
        """Return the changes that bring a body from an event to the newest, at most one a part: a
        page makes them in any order.
        """
        changes = (part.change_after(name, number) for name, part in self._parts.items())
        return [change for change in changes if change is not None]


def body_html(events: Iterable[Event], place: TurnPlace) -> str:
    """Return the body of a turn with these events."""
    body = TurnBody(place)
    for event in events:
        body.take(event)
    body.finish()
    return body.html


def changes_html(changes: Iterable[Change], place: TurnPlace) -> str:
    """Return the HTML that makes these changes in a page, "" if there are none."""
    return "".join(_partial(change, place) for change in changes)


def _partial(change: Change, place: TurnPlace) -> str:
    targets = {"add": f"body-{place.key}", "append": change.id, "replace": change.id}
    swaps = {"add": "beforeend", "append": "beforeend", "replace": "outerHTML"}
    return partial_html(targets[change.kind], swaps[change.kind], change.html)


def partial_html(target: str, swap: str, html: str) -> str:
    """Return HTML that htmx swaps into the element with the id `target`."""
    return f'<hx-partial hx-target="#{target}" hx-swap="{swap}">{html}</hx-partial>'


def toast_html(text: str) -> str:
    """Return HTML that shows a text for a moment."""
    return partial_html("toast", "innerHTML", f"<p>{escape(text)}</p>")


def sse_data(html: str, id: str, event: str = "") -> str:
    """Return one message of server-sent events."""
    lines = re.split(r"\r\n|\r|\n", html)
    name = f"event: {event}\n" if event else ""
    return f"id: {id}\n{name}" + "".join(f"data: {line}\n" for line in lines) + "\n"
