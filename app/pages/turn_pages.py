"""What a person does in a turn: ask, stop, try again, edit, decide, rate and keep."""

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from starlette.responses import HTMLResponse, Response

from longtable.app.pages.page_routes import (
    Begin,
    Stop,
    page_response,
    said,
    toast,
    turn_article,
)
from longtable.app.pages.page_site import PageRequest, key_of, shown_turn, turns_page, unfinished
from longtable.app.pages.page_words import page_word
from longtable.app.pages.part_html import Part, TurnPlace
from longtable.app.pages.part_html import part as template_part
from longtable.app.pages.turn_html import partial_html
from longtable.app.settings.run_settings import check_text, check_thread_id
from longtable.base.errors import ThreadNotFoundError, UnknownTurnError
from longtable.graph.conversation import Conversation
from longtable.graph.ratings import Score
from longtable.graph.running.past_turns import PastTurn
from longtable.graph.transcripts import index_entry
from longtable.memory.messages.marks import turn_number

WAITING = ("approval_requested", "input_requested")
"""Events of a turn that waits for a person."""


def ask(request: PageRequest) -> Begin | Response:
    """Start a turn with a question, or let it join the turn that runs."""
    question = request.field("question").strip().replace("\r\n", "\n")
    if not question:
        return toast("empty_question", request.language, status=422)
    check_text(question)
    check_thread_id(request.thread_id)
    is_shown = bool(request.field("seen").strip()) and not request.is_running
    if is_shown and not index_entry(request.site.threads(), request.thread_id):
        request.stored()  # it was deleted in another tab, or its entry alone is damaged
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


def retry(request: PageRequest) -> Begin | Response:
    """Go on with a turn that failed or was interrupted. If it has gone on since, as in another tab,
    show it as it is now.
    """
    turn = _newest_turn(request.stored())
    answered = any(event["type"] == "answer" for event in turn.events)
    return _as_it_is(request) if answered or request.is_running else _going_on(request)


def decide(request: PageRequest) -> Begin | Response:
    """Go on with a turn that waits for a person: by decisions on its queries, or by an answer. If
    it waits no more, as after a decision in another tab, show it as it is now.
    """
    conversation = request.stored()
    waits = any(event["type"] in WAITING for event in _newest_turn(conversation).events)
    if not waits or request.is_running:
        return _as_it_is(request)
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


def _as_it_is(request: PageRequest) -> Response:
    """Return the newest turn as it is now, and a sentence that says so."""
    shown, _ = turns_page(request)
    return said(page_word("went_on", request.language), turn_article(request, shown[-1]))


def _going_on(request: PageRequest, **more: Any) -> Begin:
    conversation = request.stored()
    turn = _newest_turn(conversation)
    return Begin(
        conversation=conversation,
        id=turn.id,
        shown=turn.question,
        before=unfinished(turn.events),
        **more,
    )


def _newest_turn(conversation: Conversation) -> PastTurn:
    """Return the newest turn of a thread. Raises `ThreadNotFoundError` if it has none."""
    newest = conversation.turns(start=-1)
    if not newest:
        raise ThreadNotFoundError(conversation.thread_id)
    return newest[-1]


def edit(request: PageRequest) -> Begin | Response:
    """Leave the newest turn out, and ask its question in other words."""
    question = request.field("question").strip().replace("\r\n", "\n")
    if not question:
        return toast("empty_question", request.language, status=422)
    check_text(question)
    conversation = request.stored()
    turn = _newest_turn(conversation)
    if request.number("turn", turn.number) != turn.number:
        return toast("edit_late", request.language, status=409)
    ids = _messages_of(conversation, turn.number)
    _exclude(conversation, ids, True)
    back = partial(_exclude, conversation, ids, False)
    shown = shown_turn(_newest_turn(conversation), request.thread_id, request.language)
    left_out = partial_html(f"turn-{shown.key}", "outerHTML", turn_article(request, shown))
    return _asking(request, question, on_refused=back, more_html=left_out)


def edit_form(request: PageRequest) -> Response:
    """Show the newest question to edit, if the page shows it."""
    turn = _newest_turn(request.stored())
    seen = request.field("seen").partition(" ")[0]
    if seen and seen != key_of(turn.id or str(turn.number)):
        return toast("edit_late", request.language, status=409)
    return page_response("edit.html", request, turn=turn, thread_id=request.thread_id)


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
    score = request.number("score", 0)
    turn = request.number("turn", 0)
    # another number than 1 and -1 is refused there
    request.stored().rate(turn, cast("Score", score), request.field("comment"))
    place = Part(TurnPlace(request.thread_id, "", request.language), "")
    html = template_part("rating", place, turn=turn, rating=score)
    changed = partial_html(f"rating-{turn}", "outerHTML", html)
    return said(page_word("rated", request.language), changed)


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
