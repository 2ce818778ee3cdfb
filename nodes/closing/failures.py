"""Report a failed run to the person in one sentence, and close a turn whose request the provider
refused for its content.

The developer's text goes to the log, never to a server's clients.
"""

import sys
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.errors import GraphBubbleUp

from longtable.base.context import Context
from longtable.base.errors import LongtableError, ProviderRefusedError, RunFailedError, client_error
from longtable.base.events import Event, Failed
from longtable.memory.messages.marks import GIVEN, marks_of, turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.memory.summary.summary_text import language_of
from longtable.memory.thread import REFUSED, Edit, Thread
from longtable.nodes.state import (
    UNDER_WAY,
    Failure,
    Now,
    Turn,
    Update,
    without_key,
)
from longtable.nodes.telemetry import log_failure
from longtable.store.records.failed_turns import failure_edit, forget_failure, keep_failure

_REPORTED = "_reported"
"""Name of an attribute that is set on an error for which the event `failed` was sent."""


@contextmanager
def reporting(now: Now) -> Iterator[None]:
    """Send the event `failed` if a node fails within the block. On a server, then replace the
    original error by one that holds only what a client may read.
    """
    try:
        yield
    except (GraphBubbleUp, RunFailedError):
        # An interrupt; a failure that a graph within this one reported.
        raise
    except Exception as error:
        if _is_retried(error):
            raise
        event = failed_event(error, _language(now))
        now.runtime.stream_writer(event)
        if now.runtime.server_info is None:
            error.__dict__[_REPORTED] = True
            raise
        log_failure(event["code"], error)
        # A server shows and logs causes, keys and all.
        raise client_error(error, event["text"], event["code"]) from None


def _language(now: Now) -> str:
    turn = now.turn
    refused = turn["refusal"]["language"] if turn.get("status") == "refused" else ""
    return now.context.language or refused or now.language


def note_failure(now: Now, error: Exception) -> None:
    """Note in the store why the running turn failed. An input that was refused opened no turn, and
    an interrupt is no failure. If the store fails too, that is logged: the turn's own error counts.
    """
    store = now.runtime.store
    if isinstance(error, GraphBubbleUp | RunFailedError) or _is_retried(error):
        return
    if store is None or not now.thread_id or not failed_or_open(now.turn):
        return
    event = failed_event(error, _language(now))
    try:
        keep_failure(store, now.thread_id, now.turn.get("number", 0), event)
    except Exception as second:
        log_failure("failure_not_kept", second)


def noted_failure(now: Now) -> list[Edit]:
    """Return the edit that keeps why the previous turn failed, as a list of one, and delete the
    note. The list is empty if the turn did not fail.
    """
    store = now.runtime.store
    if store is None or not now.thread_id or not failed_or_open(now.turn):
        return []
    number = now.turn.get("number", 0)
    try:
        edit = failure_edit(store, now.thread_id, number)
        if edit is not None:
            forget_failure(store, now.thread_id, number)
    except Exception as error:  # the new turn does not need it
        log_failure("failure_not_read", error)
        return []
    return [edit] if edit is not None else []


def failed_or_open(turn: Turn) -> bool:
    """Return whether a turn has no answer: it can be continued, or it failed."""
    return turn.get("status") in (*UNDER_WAY, FAILED)


def failed_event(error: Exception, language: str) -> Failed:
    """Return the event `failed` for an error, with a sentence for the person."""
    known = error if isinstance(error, LongtableError) else LongtableError()
    wait = getattr(error, "retry_after", getattr(error, "wait_s", None)) if known is error else None
    return Failed(type="failed", code=known.code, text=known.user_text(language), retry_after=wait)


async def ending_with_failed(
    events: AsyncGenerator[Event, None], context: Context, text: str | None
) -> AsyncGenerator[Event, None]:
    """Yield the events of a turn. If the turn fails outside the nodes, such as in the store, yield
    the event `failed` as the last event, as nodes do.

    `text`: what the user wrote. Its language is the language of the failure's sentence, unless
    `context` sets a language.
    """
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except Exception as error:
        if not _is_reported(error):
            yield failed_event(error, context.language or language_of([HumanMessage(text or "")]))
        raise


def _is_reported(error: BaseException | None) -> bool:
    """Return whether a node sent the event `failed` for this error or for one of its causes."""
    return error is not None and (_REPORTED in vars(error) or _is_reported(error.__cause__))


def _is_retried(error: Exception) -> bool:
    """Return whether Agent Server runs the turn again after an error of this class."""
    worker = sys.modules.get("langgraph_api.worker_runtime")
    return isinstance(error, getattr(worker, "ALL_RETRIABLE_EXCEPTIONS", ()))


# -- a request that the provider refused for its content -------------------------------------------
#
# The turn's messages leave the view, so that no later call meets them again. If earlier refused
# messages are already out of the view and the call is still refused, nothing more is removed: the
# cause is elsewhere. Unanswered messages right before the turn may be the cause: the call is
# repeated without them, and they stay out if that helps. What is left out follows from the
# transcript and the edits alone; the turn's record holds only what the next step has to know.

ASK_AGAIN: Literal["again"] = "again"
"""Status of a turn that asks the model once more, without the unanswered messages before the turn.
"""
FAILED: Literal["failed"] = "failed"
"""Status of a turn that was closed because the provider refused its content. The turn's record
holds the reason in `failure` until the turn is tried again.
"""
_NEXT = {
    True: (
        "its messages stay in the transcript and leave the view: resume() or /retry runs the turn"
        " again"
    ),
    False: (
        "a call without those refused before was refused, too: exclude() or /exclude an earlier"
        " message, or use another model"
    ),
}


def close_refused(now: Now, error: ProviderRefusedError) -> Update:
    """Return the update after a provider refused the content of a call.

    If there are unanswered messages right before the turn, the model is asked once more without
    them. Otherwise, or if that was refused too, the turn is closed as failed.
    """
    thread = now.thread
    turn = without_key(now.turn, "without")
    number = turn.get("number", 0)
    tried = now.turn.get("without")
    earlier = _unanswered_before(thread, number)
    suspects = [message for message in earlier if message.id not in thread.excluded]
    if suspects and tried is None:
        ids = [message.id for message in suspects]
        return {
            "edits": exclusions(thread, suspects, why=REFUSED),
            "turn": {**turn, "status": ASK_AGAIN, "without": ids},
        }
    tried = tried or []
    elsewhere = any(message.id in thread.refused and message.id not in tried for message in earlier)
    request = [] if elsewhere else request_in(thread, number)
    failure: Failure = {"message": f"{error}; {_NEXT[bool(request)]}", "left_out": bool(request)}
    return {
        "edits": [*inclusions(tried), *exclusions(thread, request, why=REFUSED)],
        "turn": {**turn, "status": FAILED, "failure": failure},
    }


def failure_of(turn: Turn) -> ProviderRefusedError:
    """Return the error of a turn that was closed as failed."""
    failure = turn.get("failure", Failure(message="", left_out=False))
    return ProviderRefusedError(failure["message"], content=True, left_out=failure["left_out"])


def retry_update(thread: Thread, turn: Turn) -> Update:
    """Return the update that runs a failed turn again. The turn's messages come back into the view,
    and the turn continues with the model call that was refused.
    """
    back = inclusions(
        message.id
        for message in request_in(thread, turn.get("number", 0))
        if message.id in thread.refused
    )
    return {
        "edits": back,
        "turn": {**without_key(turn, "failure"), "status": "running", "calls": 0, "overflows": 0},
    }


def request_in(thread: Thread, number: int) -> list[BaseMessage]:
    """Return the messages of a turn: the request and what followed. Earlier conversation that the
    caller handed in with the request is left out.
    """
    own = [message for message in thread.messages if turn_number(message) == number]
    handed_in = [place for place, message in enumerate(own) if marks_of(message).get(GIVEN) is True]
    return own[handed_in[-1] + 1 :] if handed_in else own


def exclusions(thread: Thread, messages: Sequence[BaseMessage], *, why: str = "") -> list[Edit]:
    """Return the edits that exclude these messages. `why`: the reason that the edits state."""
    ids = {message.id for message in messages}
    edits: list[Edit] = []
    for number, message in enumerate(thread.messages, thread.archived + 1):
        if message.id in ids:
            turn = turn_number(message)
            edits.append(
                {
                    "id": uuid.uuid4().hex,
                    "op": "exclude",
                    "message": message.id,
                    "number": number,
                    "turn": turn,
                }
            )
            if why:
                edits[-1]["why"] = why
    return edits


def inclusions(ids: Iterable[str | None]) -> list[Edit]:
    """Return the edits that include excluded messages again."""
    return [{"id": uuid.uuid4().hex, "op": "include", "message": id_} for id_ in ids]


def _unanswered_before(thread: Thread, number: int) -> list[BaseMessage]:
    """Return the messages of all unanswered turns that come directly before turn `number`, oldest
    first.
    """
    before = [message for message in thread.messages if turn_number(message) < number]
    start = len(before)
    while start and not _is_answer(before[start - 1]):
        turn = turn_number(before[start - 1])
        while start and turn_number(before[start - 1]) == turn:
            start -= 1
    return before[start:]


def _is_answer(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not all_calls(message)
