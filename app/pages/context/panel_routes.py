"""The routes of the panel, under /threads/{thread_id}/panel. Each answers with a fragment of HTML.

Whose thread it is and whether a form was forged, the page's own middleware checks.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from longtable.app.pages.context.panel_data import (
    PanelData,
    PanelThread,
    originals,
    panel_data,
    panel_thread,
    removed_pins,
)
from longtable.app.pages.context.panel_html import PanelPage, panel_word, panel_words
from longtable.app.pages.context.transcript_facts import ArchiveFacts
from longtable.app.pages.page_guard import MOST_FIELD_BYTES, body_is_too_large
from longtable.app.pages.page_words import browser_language
from longtable.app.settings.run_settings import check_text
from longtable.base.concurrency import in_thread
from longtable.base.errors import (
    ConfigError,
    InputError,
    LongtableError,
    MessageTooLongError,
    PinRefusedError,
    Reason,
    ThreadBusyError,
    ThreadNotFoundError,
    TurnPendingError,
    UndoTooFarError,
    UnknownPinError,
)
from longtable.graph.conversation import Conversation
from longtable.graph.running.answers import CompactionEvent
from longtable.memory.pins.pins import Pin
from longtable.nodes.compacting.compaction_events import NOTHING_LEFT

PANEL = "/threads/{thread_id}/panel"
CHANGED = "context-changed"
"""Event in the page after a command, at which opened parts of the panel are read again."""
MOST_ORIGINALS = 100
"""Most messages that one request opens."""
STATUS: tuple[tuple[type[LongtableError], int], ...] = (
    (ThreadNotFoundError, 404),
    (UnknownPinError, 404),
    (ThreadBusyError, 409),
    (TurnPendingError, 409),
    (UndoTooFarError, 409),
    (PinRefusedError, 422),
    (InputError, 422),
    (ConfigError, 400),
)
"""Errors that the panel answers with a sentence and a status. Others are the page's to answer."""
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")

Values = Mapping[str, str]
"""The parameters of a request's path and the fields of its form."""
Draw = Callable[["Opened", PanelPage, Values, str], str]
"""Returns the HTML of an answer. The last argument is a note on what a command did."""


@dataclass(frozen=True)
class Opened:
    """A conversation whose panel is asked for, and what is known of archived messages."""

    conversation: Conversation
    archive: ArchiveFacts

    def thread(self) -> PanelThread:
        """Read the thread. Raises `ThreadNotFoundError` before the first turn."""
        return panel_thread(self.conversation, self.archive)

    def data(self) -> PanelData | None:
        """Return what the panel shows, None before the first call."""
        return panel_data(self.thread(), self.conversation.context)


@dataclass(frozen=True)
class Command:
    """A change of the thread. `argument` reads and checks the request in a worker thread, `run`
    makes the change, `note` returns words about its outcome in a language.
    """

    argument: Callable[[Opened, Values], str]
    run: Callable[[Conversation, str], Awaitable[Any]]
    note: Callable[[Any, str], str]


def panel_routes(conversation_of: Callable[[Request], Conversation]) -> list[Route]:
    """Return the routes of the panel.

    `conversation_of` returns the conversation that a request names; it raises
    `ThreadNotFoundError` if the person may not see it. It is called in a worker thread.
    """

    archive = ArchiveFacts()

    def route(method: str, path: str, draw: Draw, command: Command | None = None) -> Route:
        async def endpoint(request: Request) -> Response:
            language = browser_language(request)
            thread_id = str(request.path_params["thread_id"])
            page = PanelPage(language, thread_id)
            headers: dict[str, str] = {}
            try:
                body = b""
                if request.method == "POST":
                    _check_size(request)
                    body = await request.body()
                fields = dict(parse_qsl(body.decode("utf-8", "replace")))
                values = {**fields, **request.path_params}
                conversation = await in_thread(conversation_of, request)
                opened = Opened(conversation, archive)
                note = ""
                if command is not None:
                    argument = await in_thread(command.argument, opened, values)
                    note = command.note(await command.run(conversation, argument), language)
                    headers = {"HX-Trigger": CHANGED}
                html = await in_thread(draw, opened, page, values, note)
                return HTMLResponse(html, headers=headers)
            except LongtableError as error:
                return _problem(error, page, request.method)

        return Route(f"{PANEL}{path}", endpoint, methods=[method])

    return [
        route("GET", "", _draw_panel),
        route("GET", "/next-call", _draw_next_call),
        route("GET", "/memory", _draw_memory),
        route("GET", "/originals/{range}", _draw_originals),
        route("POST", "/compact-preview", _draw_preview),
        *(route("POST", path, _draw_panel, command) for path, command in COMMANDS.items()),
    ]


def _check_size(request: Request) -> None:
    """Raise `ConfigError` for a large form, before it is read."""
    if body_is_too_large(request.headers, MOST_FIELD_BYTES):
        raise ConfigError(
            f"a form has at most {MOST_FIELD_BYTES:,} bytes",
            name="form",
            wanted=f"at most {MOST_FIELD_BYTES:,} bytes",
        )


def _problem(error: LongtableError, page: PanelPage, method: str) -> Response:
    """Return the sentence about an error. After a command it goes into the panel's note, so that
    the panel stays. Raises the error again if it is the page's to answer.
    """
    status = next((status for kind, status in STATUS if isinstance(error, kind)), None)
    if status is None:
        raise error
    headers = {"HX-Retarget": "#panel-note"} if method == "POST" else {}
    return HTMLResponse(page.problem(error.user_text(page.language)), status, headers)


# -- what is shown ---------------------------------------------------------------------------------


def _draw_panel(opened: Opened, page: PanelPage, _: Values, note: str) -> str:
    try:
        return page.panel(opened.data(), note=note)
    except ThreadNotFoundError:  # a new thread: nothing is stored before its first question
        return page.panel(None, note=note)


def _draw_next_call(opened: Opened, page: PanelPage, _: Values, __: str) -> str:
    return page.next_call(opened.data())


def _draw_memory(opened: Opened, page: PanelPage, _: Values, __: str) -> str:
    return page.memory(opened.data())


def _draw_originals(opened: Opened, page: PanelPage, values: Values, _: str) -> str:
    asked = _RANGE.fullmatch(values["range"])
    first = int(asked[1]) if asked else 0
    last = int(asked[2]) if asked else 0
    if not 1 <= first <= last:
        raise ConfigError(
            f"a range of messages is FIRST-LAST, counted from 1, found {values['range'][:40]!r}",
            name="originals/",
            wanted="FIRST-LAST",
        )
    count = min(last - first + 1, MOST_ORIGINALS)
    messages = opened.conversation.history(start=first, limit=count)
    is_cut = len(messages) == MOST_ORIGINALS
    return page.originals(
        originals(messages, first), more=last - first + 1 - count if is_cut else 0
    )


def _draw_preview(opened: Opened, page: PanelPage, _: Values, __: str) -> str:
    return page.preview(opened.conversation.compact(preview=True))


# -- what is changed -------------------------------------------------------------------------------


def _no_argument(_: Opened, __: Values) -> str:
    return ""


def _new_pin(opened: Opened, values: Values) -> str:
    """Return the words to pin."""
    text = values.get("text", "")
    check_text(text)
    conversation = opened.conversation
    most = conversation.context.max_message_chars
    if len(text) > most:
        raise MessageTooLongError(size=len(text), limit=most)
    if any(pin.id == text.strip() for pin in conversation.pins()):
        raise InputError("this is the id of a pin: restore it in the list of pins")
    return text


def _pin_id(_: Opened, values: Values) -> str:
    return values["pin_id"]


def _ended_pin(opened: Opened, values: Values) -> str:
    """Return what `Conversation.pin` takes to restore a pin: the id of a pin that words of the user
    ended, the words of one that a person removed. Raises `UnknownPinError`.
    """
    pin_id = values["pin_id"]
    if any(pin.id == pin_id for pin in opened.conversation.pins()):
        return pin_id
    removed = removed_pins(opened.thread().thread)
    text = next((pin.text for pin in removed if pin.id == pin_id), None)
    if text is None:
        raise UnknownPinError(pin_id)
    return text


def compaction_note(event: CompactionEvent | None, language: str) -> str:
    """Return words about the outcome of a compaction that a person asked for."""
    if event is None:
        return panel_word(language, "nothing_to_compact")
    if event["type"] == "context_compressed":
        key = "rows_shrunk" if event.get("kind") == "results" else "compacted"
        sizes = {"before": event["original_tokens"], "after": event["compressed_tokens"]}
        return panel_word(language, key, count=event["messages"], **sizes)
    if event["reasons"][0]["code"] in NOTHING_LEFT:
        return panel_word(language, "nothing_to_compact")
    reasons = dict.fromkeys(reason_text(reason, language) for reason in event["reasons"])
    return panel_word(language, "not_compacted", reasons="; ".join(reasons))


def reason_text(reason: Reason, language: str) -> str:
    """Return why a compaction was skipped, in words of the page's language if it has some."""
    key = f"skipped_{reason['code']}"
    if language == "en" or key not in panel_words():
        return reason["message"]
    return panel_word(language, key)


def _undo_note(dropped: str | None, language: str) -> str:
    return panel_word(language, "undone" if dropped else "nothing_to_undo")


def _pinned_note(_: Pin, language: str) -> str:
    return panel_word(language, "pinned")


COMMANDS: Mapping[str, Command] = {
    "/compact": Command(_no_argument, lambda thread, _: thread.acompact(), compaction_note),
    "/undo": Command(_no_argument, lambda thread, _: thread.aundo(), _undo_note),
    "/pins": Command(_new_pin, lambda thread, text: thread.apin(text), _pinned_note),
    "/pins/{pin_id}/end": Command(
        _pin_id,
        lambda thread, pin_id: thread.aunpin(pin_id),
        lambda _, language: panel_word(language, "pin_ended"),
    ),
    "/pins/{pin_id}/restore": Command(
        _ended_pin,
        lambda thread, argument: thread.apin(argument),
        lambda _, language: panel_word(language, "pin_restored"),
    ),
}
"""What a person may change, by the path below the panel's."""
