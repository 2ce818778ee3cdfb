"""How handlers of pages are run and answered: forms are read, errors become a sentence, and a turn
that a handler asks for is started.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import escape
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from longtable.app.pages.page_guard import MOST_FIELD_BYTES, body_is_too_large
from longtable.app.pages.page_site import (
    LiveTurn,
    PageRequest,
    ShownTurn,
    Site,
    key_of,
    live_turn,
    turns_page,
)
from longtable.app.pages.page_words import browser_language, page_word
from longtable.app.pages.part_html import templates
from longtable.app.pages.turn_html import partial_html, toast_html
from longtable.app.server.requests import status_of
from longtable.base.concurrency import in_thread
from longtable.base.errors import LongtableError, ThreadNotFoundError
from longtable.base.events import Event
from longtable.graph.conversation import Conversation
from longtable.graph.transcripts import index_entry
from longtable.graph.wiring.row_sources import reading_for
from longtable.nodes.telemetry import log_failure
from longtable.store.records.thread_index import title_of

MOST_FIELDS = 200


@dataclass(frozen=True, kw_only=True)
class Begin:
    """What a handler returns to start a turn. `id` is that of the question's message; `before` are
    the events that the turn had already.
    """

    conversation: Conversation
    id: str
    shown: str
    """The question, as the page shows it."""
    question: str | None = None
    answer: Any = None
    waiting_id: str | None = None
    before: Sequence[Event] = ()
    is_new: bool = False
    """Whether the turn is a new one, not a turn that goes on."""
    more_html: str = ""
    """What the page is sent besides the turn, once it has begun."""
    on_refused: Callable[[], None] | None = None
    """Called if the turn was not accepted, to take back what was changed for it."""


@dataclass(frozen=True)
class Stop:
    """What a handler returns to interrupt the turn of a thread."""

    thread_id: str


Handler = Callable[[PageRequest], Response | Begin | Stop]


def page_html(name: str, request: PageRequest, **values: object) -> str:
    """Return a page from the template of that name."""
    common = {
        "language": request.language,
        "token": request.http.state.token,
        "path": address_of,
    }
    return templates().get_template(name).render({**common, **values})


def page_response(
    name: str, request: PageRequest, *, status: int = 200, **values: object
) -> HTMLResponse:
    """Return a page as the answer to a request."""
    return HTMLResponse(page_html(name, request, **values), status)


def address_of(thread_id: str) -> str:
    """Return the address of a thread."""
    return f"/threads/{quote(thread_id, safe='')}"


def turn_article(request: PageRequest, turn: ShownTurn) -> str:
    """Return a whole turn: the question, the answer, and what can be done with it."""
    return page_html("turn.html", request, turn=turn, thread_id=request.thread_id)


def newer_turns(request: PageRequest) -> Response:
    """Return the turns that began after the newest one that a page shows, as in another tab.
    `seen` of the form names that one, and what the index said of the thread at the last look; as
    long as the index says the same, nothing else is read.
    """
    newest_key, _, state_before = request.field("seen").partition(" ")
    entry = index_entry(request.site.threads(), request.thread_id)
    index_state = ",".join(str(entry.get(name, "")) for name in ("updated", "turns", "messages"))
    live = request.site.live.get(request.thread_id) if request.is_running else None
    is_other = live is not None and key_of(live.id) != newest_key
    if not is_other and (index_state == state_before or not entry):
        return Response(status_code=204)
    try:
        if not is_other and (live is not None or _is_newest(request, newest_key)):
            return HTMLResponse(seen_html(newest_key, index_state))
        shown, _ = turns_page(request)
    except ThreadNotFoundError:
        return Response(status_code=204)
    keys = [turn.key for turn in shown]
    fresh = shown[keys.index(newest_key) + 1 :] if newest_key in keys else shown
    newest = keys[-1] if keys else newest_key
    html = ""
    if fresh:
        html = "".join(turn_article(request, turn) for turn in fresh)
        if (
            newest_key and newest_key not in keys
        ):  # the page is older than all that is shown of the thread
            html = partial_html("turns", "innerHTML", html)
        html += _newest_tools(request, fresh[-1])
        if not newest_key:
            html += partial_html("empty", "delete", "")
    return HTMLResponse(html + seen_html(newest, index_state))


def _is_newest(request: PageRequest, key: str) -> bool:
    """Return whether a thread's newest turn has this key. Read only that turn, with its results,
    not the whole page.
    """
    newest = request.conversation().turns(start=-1)
    return bool(newest) and key_of(newest[-1].id or str(newest[-1].number)) == key


def _newest_tools(request: PageRequest, turn: ShownTurn) -> str:
    """Return what only the newest turn has: a button to stop it, or one to edit its question."""
    none = '<hx-partial hx-target=".asked-tools" hx-swap="innerHTML"></hx-partial>'
    stop = page_html("stop.html", request, thread_id=request.thread_id) if turn.runs else ""
    html = none + partial_html("stop", "innerHTML", stop)
    if turn.runs or turn.excluded:
        return html
    button = page_html("edit_button.html", request, thread_id=request.thread_id)
    return html + partial_html(f"tools-{turn.key}", "innerHTML", button)


def seen_html(key: str, index_state: str = "") -> str:
    """Return what the page remembers: its newest turn, and what the index says of the thread."""
    value = escape(f"{key} {index_state}")
    html = f'<input type="hidden" id="seen" name="seen" value="{value}">'
    return partial_html("seen", "outerHTML", html)


def title_of_thread(request: PageRequest, live: LiveTurn | None) -> str:
    """Return the title of a thread; until it is stored, that of the question."""
    entry = index_entry(request.site.threads(), request.thread_id)
    title = str(entry.get("title") or "")
    return title or title_of(live.question if live is not None else "")


def toast(key: str, language: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """Return an answer that shows one sentence for a moment, and changes nothing else."""
    return said(page_word(key, language, **values), status=status)


def said(text: str, more_html: str = "", *, status: int = 200) -> HTMLResponse:
    """Return an answer that shows a text for a moment, and what else it changes."""
    return HTMLResponse(more_html + toast_html(text), status)


def redirect(address: str) -> Response:
    """Return an answer after which the page goes to another address."""
    return Response(status_code=204, headers={"HX-Redirect": address})


def error_page(request: PageRequest, error: LongtableError) -> Response:
    """Return an error as a sentence: for a moment if a part of a page asked, else as a page."""
    status = status_of(error)
    if status >= 500:
        log_failure("page_failed", error)
    text = error.user_text(request.language)
    if isinstance(error, ThreadNotFoundError):
        text = page_word("not_found", request.language)
    if request.http.headers.get("hx-request"):
        return said(text, status=status)
    return page_response("message.html", request, status=status, text=text)


def routed(site: Site, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that runs a handler in a worker thread, and starts or stops the turn that it
    asks for.
    """

    async def route(http: Request) -> Response:
        language = browser_language(http)
        form = FormData()
        if http.method == "POST":
            is_upload = http.url.path.endswith("/upload")
            megabytes = site.upload_megabytes if is_upload else 0
            if body_is_too_large(http.headers, MOST_FIELD_BYTES + megabytes * 1_000_000):
                key = "upload_too_large" if is_upload else "form_too_large"
                return toast(key, language, status=413, size=megabytes)
            form = await http.form(
                max_files=1, max_fields=MOST_FIELDS, max_part_size=MOST_FIELD_BYTES
            )
        request = PageRequest(http, site, http.state.owner, language, form)
        try:
            with reading_for(site.session.conversation.graph, request.owner):
                answer = await in_thread(handler, request)
            if isinstance(answer, Begin):
                answer = await _begun(request, answer)
            elif isinstance(answer, Stop):
                await site.running.stop(answer.thread_id)
                answer = toast("stopped", language)
        except LongtableError as error:
            answer = error_page(request, error)
        finally:
            await form.close()
        return answer

    return route


async def _begun(request: PageRequest, begin: Begin) -> Response:
    """Start a turn, and return the HTML that follows it. A question that joins a turn that runs
    shows itself there.
    """
    site = request.site
    thread_id = begin.conversation.thread_id
    joins = site.running.running(thread_id)
    if joins and not site.is_running(thread_id, request.owner):
        raise ThreadNotFoundError(thread_id)
    site.forget_finished()
    live = LiveTurn(request.owner, begin.id, begin.shown, begin.before)
    if not joins:
        site.live[thread_id] = live
    try:
        await site.running.start(
            begin.conversation,
            begin.question,
            id=begin.id if begin.is_new else None,
            answer=begin.answer,
            waiting_id=begin.waiting_id,
        )
    except BaseException:
        if not joins:
            site.live.pop(thread_id, None)
        if begin.on_refused is not None:
            await in_thread(begin.on_refused)
        raise
    if joins:
        return await in_thread(newer_turns, request)
    shown = live_turn(live, thread_id, request.language)
    article = await in_thread(turn_article, request, shown)
    html = article + _newest_tools(request, shown) + begin.more_html + seen_html(shown.key)
    if begin.is_new:
        html += partial_html("empty", "delete", "")
    address = {"HX-Push-Url": address_of(thread_id)} if begin.is_new else {}
    return HTMLResponse(html, headers=address)


def http_error(http: Request, error: Exception) -> Response:
    """Return the page for an address that leads nowhere, and for a form that cannot be read."""
    assert isinstance(error, HTTPException)
    language = browser_language(http)
    key = "not_found" if error.status_code == 404 else "bad_request"
    state = http.scope.setdefault("state", {})
    state.setdefault("token", "")
    request = PageRequest(http, http.app.state.site, None, language, FormData())
    text = page_word(key, language)
    if http.headers.get("hx-request"):
        return said(text, status=error.status_code)
    return page_response("message.html", request, status=error.status_code, text=text)
