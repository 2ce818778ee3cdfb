"""What the pages that follow a running turn are sent, painted once for all of them.

A `TurnFeed` reads the turn's events, keeps the body that they make, and numbers its updates as the
events are numbered. A page that has the turn up to a number is sent what came after it; a page that
has nothing of it is sent the body as it is now, and then what comes.
"""

import asyncio
from collections.abc import AsyncIterator

from longtable.app.pages.part_html import Part, TurnPlace
from longtable.app.pages.part_html import part as template_part
from longtable.app.pages.turn_html import Change, TurnBody, changes_html, partial_html, sse_data
from longtable.base.events import Event

GOES_ON = ("query_started", "reasoning", "steered", "token", "tool_started")
"""Events after which a turn needs another answer."""
DONE = "done"
"""Event of the stream after which a page stops following it."""


class TurnFeed:
    """The updates of one turn in one language, for any number of pages. All methods belong to one
    event loop.

    `before`: the HTML of what the turn had before it was continued. `run` names the run whose
    events are numbered. `number` is that of the newest update, 0 before the first.
    """

    def __init__(self, place: TurnPlace, before: str = "", *, run: str = "") -> None:
        self.place = place
        self.before = before
        self.run = run
        self.number = 0
        self.is_over = False
        self.is_answered = False
        """Whether the turn has come to an answer or a failure; without either it was
        interrupted.
        """
        self.task: asyncio.Task[None] | None = None
        """What reads the turn into the feed."""
        self._body = TurnBody(place)
        self._end = ""
        self._changed = asyncio.Event()

    def take(self, number: int, event: Event) -> None:
        """Take in an event of the turn, and wake the readers."""
        if event["type"] in ("answer", "failed"):
            self.is_answered = True
        elif event["type"] in GOES_ON:
            self.is_answered = False
        self._body.take(event, number)
        self._wake(number)

    def end(self, html: str) -> None:
        """Take in what a page is sent at the end, and let the readers go once they have it."""
        number = self.number + 1
        self._body.finish(number)
        if not self.is_answered:
            part = Part(self.place, f"{self.place.key}-end")
            interrupted = template_part("interrupted", part)
            self._body.make(Change("add", part.id, interrupted), number)
        self._end = html
        self.is_over = True
        self._wake(number)

    def _wake(self, number: int) -> None:
        self.number = number
        self._changed.set()
        self._changed = asyncio.Event()

    def _position(self, number: int) -> str:
        """Return the place in the stream of events from which a page can go on."""
        run = f"~{self.run}" if self.run else ""
        return f"{self.place.key}{run}.{number}"

    def after(self, number: int) -> str:
        """Return the HTML that brings a page from an event to the newest one. If `number` is 0, it
        is the whole body.
        """
        if number:
            return changes_html(self._body.changes_after(number), self.place) + self._end
        whole = self.before + self._body.html
        if whole:
            whole = partial_html(f"body-{self.place.key}", "innerHTML", whole)
        return whole + self._end

    async def messages(self, after: int = 0, *, pause: float = 0.0) -> AsyncIterator[str]:
        """Yield what came after an event as messages of server-sent events, until the turn is over.
        `pause`: seconds between two of them, in which changes gather.
        """
        number = after
        while not self.is_over or number < self.number:
            changed = self._changed
            if number >= self.number:
                await changed.wait()
                continue
            html = self.after(number)
            number = self.number
            if html:
                yield sse_data(html, self._position(number))
            await asyncio.sleep(0.0 if self.is_over else pause)
        yield sse_data(DONE, self._position(self.number), DONE)
