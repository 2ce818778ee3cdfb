"""Ask one turn through the real conversation, wait for rate limits, and return what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtable.base.errors import (
    ConfigError,
    LongtableError,
    PersistenceError,
    ProviderAuthError,
    ProviderQuotaError,
    ProviderRateLimitedError,
    ProviderUnavailableError,
)
from longtable.evaluation.scoring import Reply
from longtable.tools.cells import json_rows

if TYPE_CHECKING:
    from longtable.graph import Conversation

MOST_WAITS = 8
"""How often one turn waits for a provider that limits its rate."""
MOST_WAITS_AWAY = 4
"""How often one turn waits for a provider that is not there: in all half a minute."""
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 120.0
MOST_RETRY_AFTER_S = 900.0
"""A provider that asks to wait longer ends the run."""
FATAL = (ConfigError, PersistenceError, ProviderAuthError, ProviderQuotaError)
"""Errors that every other turn would meet too: they end the run, which `--resume` continues."""
Sleep = Callable[[float], object]
"""Waits for some seconds."""


@dataclass
class _Seen:
    """What the events of a turn told so far."""

    status: str = ""
    text: str = ""
    turn: int = 0
    query: Any = None
    chart: str = ""

    def add(self, event: Any) -> None:
        """Take in one event."""
        if event["type"] == "query_finished" and "rows" in event:
            self.query = event
        elif event["type"] == "chart":
            self.chart = event["handle"]
        elif event["type"] == "answer":
            self.status = event["status"]
            self.text = event["text"]
            self.turn = event["turn"]


def ask(conversation: "Conversation", text: str, message_id: str, *, sleep: Sleep) -> Reply:
    """Run one turn, and return what came of it. A turn that was cut off goes on, and one that was
    answered before is not asked again, because the message keeps its id.

    Raises the errors of `FATAL`, and an error of a provider that stays away: they end the run.
    """
    seen = _Seen()
    for number in range(MOST_WAITS + 1):
        try:
            for event in conversation.stream(text, id=message_id):
                seen.add(event)
        except (ProviderRateLimitedError, ProviderUnavailableError) as error:
            wait = wait_of(error, number)
            limited = isinstance(error, ProviderRateLimitedError)
            most = MOST_WAITS if limited else MOST_WAITS_AWAY
            if number == most or wait > MOST_RETRY_AFTER_S:
                raise
            sleep(wait)
        except FATAL:
            raise
        except LongtableError as error:
            return _reply(seen, error=f"{error.code}: {error}")
        else:
            break
    return _with_rows(conversation, seen)


def wait_of(error: ProviderRateLimitedError | ProviderUnavailableError, number: int) -> float:
    """Return how many seconds to wait: what the provider says, else twice as long each time."""
    doubled = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**number)
    return doubled if error.retry_after is None else max(error.retry_after, 0.0)


def _with_rows(conversation: "Conversation", seen: _Seen) -> Reply:
    """Return the reply with the rows of its newest query: those of an event, of the result that a
    chart shows, or the result that was kept before this process began.
    """
    if seen.query is not None:
        return _reply(seen)
    handle = seen.chart or _kept_handle(conversation, seen.turn)
    if not handle:
        return _reply(seen)
    try:
        result = conversation.result(handle)
    except LongtableError as error:
        return _reply(seen, error=f"{error.code}: {error}")
    return Reply(
        status=seen.status,
        text=seen.text,
        sql=result.sql,
        columns=result.columns,
        rows=json_rows(result.rows),
    )


def _kept_handle(conversation: "Conversation", turn: int) -> str:
    """Return the handle of the newest result of a turn, "" if it has none."""
    handles: Sequence[str] = [
        entry.handle
        for entry in conversation.audit()
        if entry.turn == turn and entry.verdict == "run"
    ]
    return handles[-1] if handles else ""


def _reply(seen: _Seen, error: str = "") -> Reply:
    query = seen.query or {}
    return Reply(
        status=seen.status,
        text=seen.text,
        sql=query.get("sql", ""),
        columns=query.get("columns", ()),
        rows=query.get("rows"),
        error=error,
    )
