"""The stream of a running turn, which a page follows as server-sent events.

Each message has an id, KEY~RUN.NUMBER: the turn, its run, and the number of the newest event that
it brings. A page that lost the connection goes on from there, by the header Last-Event-ID or by
`?after=`. If the turn was continued meanwhile, it is another run, and the page is sent all of it.
"""

import asyncio

from markupsafe import escape
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import StreamingResponse

from longtable.app.pages.page_routes import page_html, title_of_thread, turn_article
from longtable.app.pages.page_site import LiveTurn, PageRequest, ShownTurn, Site, key_of, turns_page
from longtable.app.pages.page_words import browser_language
from longtable.app.pages.part_html import TurnPlace
from longtable.app.pages.turn_feed import TurnFeed
from longtable.app.pages.turn_html import body_html, partial_html
from longtable.base.concurrency import in_thread
from longtable.base.errors import LongtableError, ThreadNotFoundError
from longtable.nodes.telemetry import log_failure

PAUSE_SECONDS = 0.03
"""Time between two messages to one page: what comes in it is sent as one."""


async def follow(http: Request) -> StreamingResponse:
    """Send what happens in the turn of a thread, after the event that a page has already."""
    site: Site = http.app.state.site
    language = browser_language(http)
    request = PageRequest(http, site, http.state.owner, language, FormData())
    live = site.live.get(request.thread_id)
    key, run, number = position_of(http)
    if live is not None and live.owner == request.owner and key in ("", key_of(live.id)):
        feed = feed_of(request, live)
        if run and run != feed.run:
            number = 0
    else:
        feed = await in_thread(_stored_feed, request, key)
        number = 0
    messages = feed.messages(number, pause=PAUSE_SECONDS)
    return StreamingResponse(messages, media_type="text/event-stream")


def position_of(http: Request) -> tuple[str, str, int]:
    """Return the turn, its run and the number of the newest event that a page has; empty and 0 if
    it says nothing.
    """
    text = http.headers.get("last-event-id") or http.query_params.get("after", "")
    turn, _, digits = text.rpartition(".")
    key, _, run = turn.partition("~")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < 10
    return key, run, int(digits) if is_number else 0


def feed_of(request: PageRequest, live: LiveTurn) -> TurnFeed:
    """Return what the pages of a language that follow a turn are sent. The first page that asks
    for it starts it.
    """
    feed = live.feeds.get(request.language)
    if feed is None:
        key = key_of(live.id)
        before = body_html(live.before, TurnPlace(request.thread_id, f"{key}b", request.language))
        place = TurnPlace(request.thread_id, key, request.language)
        feed = TurnFeed(place, before, run=live.run)
        live.feeds[request.language] = feed
        feed.task = asyncio.create_task(_filled(feed, request, live))
    return feed


async def _filled(feed: TurnFeed, request: PageRequest, live: LiveTurn) -> None:
    """Read a turn into its feed. If nothing of the turn is in memory any more, the feed is the turn
    as it is stored.
    """
    count = 0
    end = ""
    try:
        async for number, event in request.site.running.follow(request.thread_id):
            feed.take(number, event)
            count = number
        end = await in_thread(_end_html, request, live)
        if not count:
            feed.is_answered = True
            end = await in_thread(_stored_turn, request, feed.place.key) + end
    except LongtableError as error:  # the store is away: the page has what was told
        log_failure("page_not_completed", error)
    finally:
        feed.end(end)


def _stored_feed(request: PageRequest, key: str) -> TurnFeed:
    """Return what a page is sent of a turn that another process ran, or that is no longer the
    newest.
    """
    feed = TurnFeed(TurnPlace(request.thread_id, key, request.language))
    html = _stored_turn(request, key)
    if not request.is_running:
        html += partial_html("stop", "innerHTML", "")
    feed.is_answered = True
    feed.end(html)
    return feed


def _stored_turn(request: PageRequest, key: str) -> str:
    """Return a turn of a thread as it is stored, in the place of the one that a page follows;
    without a key the newest. Return "" if there is none.
    """
    shown: list[ShownTurn] = []
    try:
        shown, _ = turns_page(request)
    except ThreadNotFoundError:
        return ""
    same = [turn for turn in shown if key in ("", turn.key) and not turn.runs]
    if not same:
        return ""
    return partial_html(f"turn-{same[-1].key}", "outerHTML", turn_article(request, same[-1]))


def _end_html(request: PageRequest, live: LiveTurn) -> str:
    """Return what a page is sent when its turn is over: no button to stop it, one to edit the
    question, and the title.
    """
    button = page_html("edit_button.html", request, thread_id=request.thread_id)
    title = title_of_thread(request, live)
    return "".join(
        [
            partial_html("stop", "innerHTML", ""),
            partial_html(f"tools-{key_of(live.id)}", "innerHTML", button),
            partial_html("title", "innerHTML", escape(title)),
        ]
    )
