"""What all pages of one server share: the open session, the running turns, and who asks."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse
from typing import Any
from uuid import uuid4

from starlette.datastructures import FormData
from starlette.requests import Request

from longtable.app.pages.part_html import Part, TurnPlace, part
from longtable.app.pages.turn_feed import TurnFeed
from longtable.app.pages.turn_html import body_html
from longtable.app.pages.uploads import Uploads
from longtable.app.session import Session
from longtable.base.errors import ThreadNotFoundError
from longtable.base.events import Event
from longtable.graph.conversation import Conversation
from longtable.graph.running.past_turns import PastTurn
from longtable.graph.running.running_turns import RunningTurns
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import find_thread
from longtable.tools.several.databases import Databases

PAST_TURNS = 20
"""Turns that a page shows at first, and more of them at a time."""
OPEN = ("approval_requested", "input_requested", "failed", "answer", "unsupported_numbers")
"""Events of a turn's end, which a turn that goes on has no more."""


@dataclass(frozen=True)
class LiveTurn:
    """A turn that runs here: its owner, its question, and what it had before it was continued."""

    owner: str | None
    id: str
    """Id of the question's message."""
    question: str
    before: Sequence[Event] = ()
    run: str = field(default_factory=lambda: uuid4().hex[:8])
    """Tells this run from others of the same turn: each numbers its events from 1."""
    feeds: dict[str, TurnFeed] = field(default_factory=dict)
    """What its pages are sent, by language."""


@dataclass
class Site:
    """The parts of one server of pages. `session` is open as long as the server runs."""

    session: Session
    running: RunningTurns = field(default_factory=RunningTurns)
    live: dict[str, LiveTurn] = field(default_factory=dict)
    """By thread. An entry stays after its turn, until another turn begins."""
    upload_megabytes: int = 100
    mode: str = ""
    """The mode of the team that answers, "" if one model answers."""
    has_panel: bool = False
    """Whether there is a right side, which shows what the model sees."""
    uploads: Uploads | None = None
    """The files of people's own; None if the server takes none."""
    project: str | None = None

    def threads(self) -> StoredThreads:
        """Return the threads of the store."""
        return threads_in(self.session.persistence)

    def conversation(self, thread_id: str, owner: str | None, **changes: Any) -> Conversation:
        """Return the conversation of a thread. `changes` are fields of its context."""
        ours = self.session.conversation
        uploaded = self.uploads.of(thread_id, owner) if self.uploads else None
        conversation = Conversation(
            uploaded.graph if uploaded else ours.graph,
            thread_id,
            context=ours.context.replace(channel="web", owner=owner, **changes),
            when_busy="steer",
            results=ours.results,
            archive=ours.archive,
        )
        conversation.knowledge = None if uploaded else ours.knowledge
        return conversation

    def databases(self, thread_id: str, owner: str | None) -> Databases:
        """Return the databases that a thread asks."""
        uploaded = self.uploads.of(thread_id, owner) if self.uploads else None
        return Databases.of_one(uploaded.database) if uploaded else self.session.databases

    def forget_finished(self) -> None:
        """Forget turns that are over: the threads have them."""
        over = [thread_id for thread_id in self.live if not self.running.running(thread_id)]
        for thread_id in over:
            del self.live[thread_id]

    def is_running(self, thread_id: str, owner: str | None) -> bool:
        """Return whether a turn of the thread runs here, and is the owner's."""
        live = self.live.get(thread_id)
        return live is not None and live.owner == owner and self.running.running(thread_id)


@dataclass(frozen=True)
class PageRequest:
    """One request to a page: who asks, in which language, and what a form sent."""

    http: Request
    site: Site
    owner: str | None
    language: str
    form: FormData

    @property
    def thread_id(self) -> str:
        """Return the id of the thread in the address."""
        return str(self.http.path_params["thread_id"])

    def conversation(self, **changes: Any) -> Conversation:
        """Return the conversation of the thread in the address, which need not exist yet. Its
        methods raise `ThreadNotFoundError` for a thread of somebody else. Its notices are in the
        language of the page, unless the settings name one.
        """
        named = self.site.session.conversation.context.language
        language = {"language": named or self.language}
        return self.site.conversation(self.thread_id, self.owner, **{**language, **changes})

    def stored(self, **changes: Any) -> Conversation:
        """Return the conversation of a thread that exists. Raises `ThreadNotFoundError`."""
        if not self.is_running:
            find_thread(self.site.threads(), self.thread_id, self.owner)
        return self.conversation(**changes)

    @property
    def is_running(self) -> bool:
        """Return whether a turn of the thread runs here, and is the owner's."""
        return self.site.is_running(self.thread_id, self.owner)

    def field(self, name: str) -> str:
        """Return a field of the form or of the address as text, "" if it was not sent."""
        value = self.form.get(name, self.http.query_params.get(name, ""))
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int) -> int:
        """Return a whole number that was sent, `default` if it was not, or is none."""
        text = self.field(name)
        sign = -1 if text.startswith("-") else 1
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) < 10
        return sign * int(digits) if is_number else default


@dataclass(frozen=True)
class ShownTurn:
    """A turn as a page shows it."""

    key: str
    question: str
    number: int
    time: str
    excluded: bool
    body: str
    runs: bool
    last: bool = False


def shown_turn(turn: PastTurn, thread_id: str, language: str) -> ShownTurn:
    """Return a past turn as a page shows it. Pure."""
    key = key_of(turn.id or str(turn.number))
    place = TurnPlace(thread_id, key, language, turn.rating)
    body = body_html(filterfalse(partial(_opens, turn), turn.events), place)
    if turn.status in ("running", "") and not turn.excluded:
        body += part("interrupted", Part(place, f"{key}-end"))
    return ShownTurn(
        key=key,
        question=turn.question,
        number=turn.number,
        time=turn.time,
        excluded=turn.excluded,
        body=body,
        runs=False,
    )


def _opens(turn: PastTurn, event: Event) -> bool:
    """Return whether an event tells of the turn's own question: one that was sent while another
    turn ran and then became a turn of its own. It stands above the turn.
    """
    return event["type"] == "steered" and event["id"] == turn.id


def live_turn(live: LiveTurn, thread_id: str, language: str) -> ShownTurn:
    """Return a turn that runs as a page shows it: what it had before, and an element that follows
    it. Pure.
    """
    key = key_of(live.id)
    before = body_html(live.before, TurnPlace(thread_id, f"{key}b", language))
    return ShownTurn(
        key=key,
        question=live.question,
        number=0,
        time="",
        excluded=False,
        body=before,
        runs=True,
    )


def key_of(text: str) -> str:
    """Return a turn's key in ids of the page: letters and digits of the message's id."""
    return "t" + "".join(letter for letter in text if letter.isascii() and letter.isalnum())[:40]


def turns_page(request: PageRequest, *, before: int | None = None) -> tuple[list[ShownTurn], int]:
    """Return the newest turns of a thread, or those before a number, and the number of the first
    turn that is shown (1 if there are no earlier ones). Raises `ThreadNotFoundError`.
    """
    thread_id = request.thread_id
    live = request.site.live[thread_id] if request.is_running and before is None else None
    start = -PAST_TURNS if before is None else max(1, before - PAST_TURNS)
    limit = None if before is None else max(0, before - start)
    past: list[PastTurn] = []
    try:
        past = request.conversation().turns(start=start, limit=limit)
    except ThreadNotFoundError:
        if live is None:
            raise
    if live is not None and past and past[-1].id == live.id:
        past = past[:-1]
    shown = [shown_turn(turn, thread_id, request.language) for turn in past]
    if live is not None:
        shown.append(live_turn(live, thread_id, request.language))
    if shown and before is None:
        shown[-1] = replace(shown[-1], last=True)
    return shown, past[0].number if past else 1


def unfinished(events: Sequence[Event]) -> list[Event]:
    """Return the events of a turn without those of its end, for a turn that goes on."""
    return [event for event in events if event["type"] not in OPEN]
