"""A page of the web chat as a browser holds it: its requests, without pictures and scripts."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape

import httpx

from longtable.app.pages.page_server import KEEP_ALIVE_SECONDS
from tests.app.pages.served_pages import PARTIAL, shown_body

OWNER_HEADER = "X-Forwarded-User"
POLL_S = 4.0
"""A page looks so often for turns of other tabs, as templates/page.html says."""
REQUEST_S = 60.0
_TLS = ssl.create_default_context()  # made once: a client of its own takes 15 ms for it
_LIMITS = httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS / 2)
_TOKEN = re.compile(r'"X-Longtable-Token": "([^"]+)"')
_SEEN = re.compile(r'<input[^>]* id="seen"[^>]* value="([^"]*)"')
_STATIC = re.compile(r'(?:href|src)="(/static/[^"]+)"')
_TEXT = re.compile(r'<div class="md"[^>]*>(.*?)</div>', re.DOTALL)
_DATA = re.compile(r"^data: ?", re.MULTILINE)
_TAG = re.compile(r"<[^>]*>")
_WORDS = ('class="tail"', 'class="md"')


class PageError(Exception):
    """An answer of the server that no person should see. `kind` is the request and the status."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text[:300]}")
        self.kind = kind


@dataclass(frozen=True)
class Followed:
    """What a page was sent of a turn."""

    body: str
    is_over: bool
    first: float | None
    """When the first words of the answer were there, on the clock of `time.monotonic`."""
    end: float

    @property
    def answer(self) -> str:
        """Return the words of the answer."""
        return words_of("".join(_TEXT.findall(self.body)))

    @property
    def waits(self) -> bool:
        """Return whether the turn waits for an approval."""
        return 'class="card approval"' in self.body

    @property
    def failed(self) -> bool:
        """Return whether the page shows that the turn failed or was interrupted."""
        return 'class="card failed"' in self.body


def words_of(html: str) -> str:
    """Return a text without tags and with single blanks, so that texts can be compared."""
    return " ".join(unescape(_TAG.sub(" ", html)).split())


def body_of(stream: str) -> str:
    """Return the body that a page shows after a whole stream. If the turn was over long since, the
    stream brings it as it is stored, in place of the whole turn.
    """
    changes = PARTIAL.findall(_DATA.sub("", stream))
    stored = [html for target, _, html in changes if target.startswith("turn-")]
    return stored[-1] if stored else shown_body(stream)


class OpenPage:
    """One person's page on one thread. `complain` is told what goes wrong beside a turn."""

    def __init__(self, address: str, owner: str, complain: Callable[[Exception], None]) -> None:
        self.http = httpx.AsyncClient(
            base_url=address,
            headers={OWNER_HEADER: owner},
            timeout=REQUEST_S,
            limits=_LIMITS,
            verify=_TLS,
            trust_env=False,
        )
        self.complain = complain
        self.thread = ""
        self.polls = 0
        self._seen = ""
        self._token = ""
        self._polling: asyncio.Task[None] | None = None

    async def open(self) -> str:
        """Open the thread, a new one at first, with all that the page loads; return its HTML."""
        answer = await self._get("page", self.thread or "/")
        self.thread = str(answer.url.path)
        found = _TOKEN.search(unescape(answer.text))
        self._token = found[1] if found else ""
        self._note_seen(answer.text)
        for path in dict.fromkeys(_STATIC.findall(answer.text)):
            await self._get("static", path)
        await self.load_panel()
        self._polling = asyncio.create_task(self._poll())
        return answer.text

    async def close(self) -> None:
        """Close the tab. The thread can be opened again."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
        self._polling = None

    async def ask(self, question: str) -> None:
        """Ask a question. It is acknowledged when this returns."""
        await self.post("ask", question=question, seen=self._seen)

    async def post(self, action: str, **fields: str) -> None:
        """Do something in the thread."""
        headers = {"X-Longtable-Token": self._token, "HX-Request": "true"}
        answer = await self.http.post(f"{self.thread}/{action}", data=fields, headers=headers)
        self._checked(action, answer)

    async def follow(self, seconds: float = REQUEST_S) -> Followed:
        """Follow the turn that runs, to its end or for some seconds."""
        pieces: list[str] = []
        first: float | None = None
        is_over = False
        try:
            async with asyncio.timeout(seconds):
                async with self.http.stream("GET", f"{self.thread}/events") as stream:
                    if stream.status_code != 200:
                        raise PageError(f"events {stream.status_code}", "no stream")
                    async for text in stream.aiter_text():
                        pieces.append(text)
                        if first is None and any(word in text for word in _WORDS):
                            first = time.monotonic()
                        is_over = is_over or "event: done" in text
        except TimeoutError:
            if seconds == REQUEST_S:
                raise
        end = time.monotonic()
        body = body_of("".join(pieces)) if is_over else ""
        return Followed(body, is_over, first, end)

    async def load_list(self) -> None:
        """Load the list of threads, as a page does when a turn begins and ends."""
        await self._get("list", f"/threads?current={self.thread.rpartition('/')[2]}")

    async def load_panel(self) -> None:
        """Load what the model sees, as a page does when it is opened and when a turn is over."""
        await self._get("panel", f"{self.thread}/panel")

    async def newest_turn(self) -> Followed:
        """Open the thread again, and return its newest turn, followed to its end if it runs."""
        html = await self.open()
        article = html.rpartition('<article class="turn')[2]
        if "hx-sse:connect" in article:
            return await self.follow()
        return Followed(article, True, None, time.monotonic())

    async def export(self) -> str:
        """Return the whole thread as JSON lines."""
        return (await self._get("export", f"{self.thread}/export?form=jsonl")).text

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            try:
                answer = await self._get("newer", f"{self.thread}/newer", seen=self._seen)
                self._note_seen(answer.text)
                self.polls += 1
            except (PageError, httpx.HTTPError) as error:
                self.complain(error)

    async def _get(self, kind: str, path: str, **fields: str) -> httpx.Response:
        answer = await self.http.get(path, params=fields or None, follow_redirects=True)
        return self._checked(kind, answer)

    def _checked(self, kind: str, answer: httpx.Response) -> httpx.Response:
        if answer.status_code >= 400:
            raise PageError(f"{kind} {answer.status_code}", words_of(answer.text))
        self._note_seen(answer.text if kind == "ask" else "")
        return answer

    def _note_seen(self, html: str) -> None:
        found = _SEEN.search(html)
        self._seen = unescape(found[1]) if found else self._seen
