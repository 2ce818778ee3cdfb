"""What a person does in a turn: ask, follow, stop, try again, edit, decide, rate and keep."""

import uuid
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from markupsafe import escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from longtable.app.pages.page_routes import (
    Begin,
    Stop,
    page_html,
    page_response,
    said,
    toast,
    turn_article,
)
from longtable.app.pages.page_site import (
    LiveTurn,
    PageRequest,
    Site,
    key_of,
    shown_turn,
    turns_page,
    unfinished,
)
from longtable.app.pages.page_words import browser_language, page_word
from longtable.app.pages.part_html import Part, TurnPlace
from longtable.app.pages.part_html import part as template_part
from longtable.app.pages.turn_html import (
    TurnPainter,
    body_html,
    partial_html,
    sse_data,
    sse_message,
)
from longtable.app.settings.run_settings import check_text, check_thread_id
from longtable.base.concurrency import in_thread
from longtable.base.errors import ThreadNotFoundError, UnknownTurnError
from longtable.graph.conversation import Conversation
from longtable.graph.ratings import Score
from longtable.graph.transcripts import index_entry
from longtable.memory.messages.marks import turn_number
from longtable.store.records.thread_index import title_of

DONE = "done"
"""Event of the stream after which a page stops following it."""


def ask(request: PageRequest) -> Begin | Response:
    """Start a turn with a question, or let it join the turn that runs."""
    question = request.field("question").strip().replace("\r\n", "\n")
    if not question:
        return toast("empty_question", request.language, status=422)
    check_text(question)
    check_thread_id(request.thread_id)
    return _asking(request, question)


def _asking(request: PageRequest, question: str, **more: Any) -> Begin:
    model = request.field("model")
    known = model in request.site.session.choices
    conversation = request.conversation(**({"model": model} if known else {}))
    message_id = uuid.uuid4().hex
    return Begin(
        conversation=conversation,
        id=message_id,
        shown=question,
        question=question,
        is_new=True,
        **more,
    )


def stop(request: PageRequest) -> Stop:
    """Interrupt the turn that runs."""
    request.stored()
    return Stop(request.thread_id)


def retry(request: PageRequest) -> Begin:
    """Go on with a turn that failed or was interrupted."""
    return _going_on(request)


def decide(request: PageRequest) -> Begin:
    """Go on with a turn that waits for a person: by decisions on its queries, or by an answer."""
    conversation = request.stored()
    waiting_id = request.field("waiting_id")
    if waiting_id:
        return _going_on(request, answer=request.field("answer"), waiting_id=waiting_id)
    texts = [str(text) for text in request.form.getlist("sql")]
    actions = conversation.approvals()
    decisions: list[dict[str, Any]] = []
    for place, action in enumerate(actions):
        sql = texts[place].replace("\r\n", "\n") if place < len(texts) else ""
        before = str(action["args"].get("sql", ""))
        if request.field("decision") != "approve":
            decisions.append({"type": "reject", "message": request.field("reason")})
        elif sql.strip() and sql.strip() != before.strip():
            args = {**action["args"], "sql": sql}
            edited = {"name": action["name"], "args": args}
            decisions.append({"type": "edit", "edited_action": edited})
        else:
            decisions.append({"type": "approve"})
    return _going_on(request, answer=decisions)


def _going_on(request: PageRequest, **more: Any) -> Begin:
    conversation = request.stored()
    newest = conversation.turns(start=-1)
    if not newest:
        raise ThreadNotFoundError(request.thread_id)
    turn = newest[-1]
    return Begin(
        conversation=conversation,
        id=turn.id,
        shown=turn.question,
        before=unfinished(turn.events),
        **more,
    )


def edit(request: PageRequest) -> Begin | Response:
    """Leave the newest turn out, and ask its question in other words."""
    question = request.field("question").strip().replace("\r\n", "\n")
    if not question:
        return toast("empty_question", request.language, status=422)
    check_text(question)
    conversation = request.stored()
    newest = conversation.turns(start=-1)
    if not newest:
        raise ThreadNotFoundError(request.thread_id)
    ids = _messages_of(conversation, newest[-1].number)
    _exclude(conversation, ids, True)
    back = partial(_exclude, conversation, ids, False)
    return _asking(request, question, on_refused=back)


def edit_form(request: PageRequest) -> Response:
    """Show the newest question to edit."""
    newest = request.stored().turns(start=-1)
    question = newest[-1].question if newest else ""
    return page_response("edit.html", request, question=question, thread_id=request.thread_id)


def exclude(request: PageRequest) -> Response:
    """Leave a turn out of what the model sees, or take it in again."""
    conversation = request.stored()
    number = request.number("turn", 0)
    turns = conversation.turns(start=max(1, number), limit=1)
    if number < 1 or not turns:
        newest = conversation.turns(start=-1)
        raise UnknownTurnError(number, turns=newest[-1].number if newest else 0)
    _exclude(conversation, _messages_of(conversation, number), request.field("exclude") == "1")
    turns = conversation.turns(start=number, limit=1)
    shown = shown_turn(turns[0], request.thread_id, request.language)
    return HTMLResponse(turn_article(request, shown))


def _messages_of(conversation: Conversation, turn: int) -> list[str]:
    return [str(each.id) for each in conversation.history() if turn_number(each) == turn]


def _exclude(conversation: Conversation, message_ids: Sequence[str], out: bool) -> None:
    for message_id in message_ids:
        if out:
            conversation.exclude(message_id)
        else:
            conversation.include(message_id)


def rate(request: PageRequest) -> Response:
    """Keep whether an answer was right."""
    score: Score = 1 if request.field("score") == "1" else -1
    request.stored().rate(request.number("turn", 0), score, request.field("comment"))
    return toast("rated", request.language)


def keep_form(request: PageRequest) -> Response:
    """Show the question and the SQL that would be kept as a checked query."""
    turn = request.number("turn", 0) or None
    question, sql = request.stored().kept_pair(turn)
    return page_response(
        "keep.html",
        request,
        question=question,
        sql=sql,
        turn=turn,
        thread_id=request.thread_id,
    )


def keep(request: PageRequest) -> Response:
    """Keep a question and its SQL, as they are or corrected, as a checked query."""
    turn = request.number("turn", 0) or None
    conversation = request.stored()
    _, sql = conversation.kept_pair(turn)
    corrected = request.field("sql").replace("\r\n", "\n").strip()
    query = conversation.keep(
        turn,
        request.field("question").strip() or None,
        sql=corrected if corrected and corrected != sql.strip() else None,
        by=request.owner or "",
    )
    return said(page_word("kept", request.language, name=query.name or query.question))


# -- following a turn ------------------------------------------------------------------------------


async def follow(http: Request) -> Response:
    """Send what happens in the turn of a thread, from its first event on, as server-sent events."""
    site: Site = http.app.state.site
    thread_id = str(http.path_params["thread_id"])
    language = browser_language(http)
    live = site.live.get(thread_id)
    is_again = bool(http.headers.get("last-event-id"))
    if live is None or live.owner != http.state.owner:
        live = None
    page = PageRequest(http, site, http.state.owner, language, await http.form())
    stream = _messages(page, live, is_again)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _messages(
    request: PageRequest, live: LiveTurn | None, is_again: bool
) -> AsyncGenerator[str, None]:
    """Yield the messages of one follower. If nothing of the turn is in memory any more, as after a
    restart, they are the whole turn as it is stored.
    """
    thread_id = request.thread_id
    number = 0
    ending = ""
    key = key_of(live.id) if live is not None else ""
    place = TurnPlace(thread_id, key, request.language)
    painter = TurnPainter(place)
    if live is not None:
        if is_again:
            before = body_html(live.before, TurnPlace(thread_id, f"{key}b", request.language))
            yield sse_data(partial_html(f"body-{key}", "innerHTML", before), 0)
        async for number, event in request.site.running.follow(thread_id):
            ending = event["type"]
            message = sse_message(painter.take(event), place, number)
            if message:
                yield message
    if live is None or not number:
        yield sse_data(await in_thread(_stored_turn, request), 1)
    elif ending not in ("answer", "failed"):
        part = template_part("interrupted", Part(place, f"{key}-end"))
        yield sse_data(partial_html(f"body-{key}", "beforeend", part), number + 1)
    over = partial_html("stop", "innerHTML", "")
    if live is not None:
        button = page_html("edit_button.html", request, thread_id=thread_id)
        over += partial_html(f"tools-{key}", "innerHTML", button)
    title = await in_thread(title_of_thread, request, live)
    over += partial_html("title", "innerHTML", escape(title))
    yield sse_data(over, number + 1)
    yield sse_data(DONE, number + 2, DONE)


def _stored_turn(request: PageRequest) -> str:
    """Return the newest turn of a thread, in the place of the one that a page follows. Return "" if
    there is none.
    """
    shown: Sequence[Any] = ()
    try:
        shown, _ = turns_page(request)
    except ThreadNotFoundError:
        return ""
    if not shown:
        return ""
    article = turn_article(request, shown[-1])
    return partial_html(f"turn-{shown[-1].key}", "outerHTML", article)


def title_of_thread(request: PageRequest, live: LiveTurn | None) -> str:
    """Return the title of a thread; until it is stored, that of the question."""
    entry = index_entry(request.site.threads(), request.thread_id)
    title = str(entry.get("title") or "")
    return title or title_of(live.question if live is not None else "")
