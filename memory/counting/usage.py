"""Add up the tokens of a transcript's model calls. Calls whose tokens are estimates are counted
separately.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NotRequired, cast

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.events import ReportedTokens
from longtable.memory.counting.provider_reports import (
    UNKNOWN,
    charged,
    money,
    reported,
    reported_model,
    token_count,
)
from longtable.memory.counting.tokens import TokenCounter, counter
from longtable.memory.messages.marks import GIVEN, POOLED, marks_of
from longtable.memory.voices import NARRATOR, TEAM, VOICE

By = Literal["hour", "day", "month", "thread", "model", "project", "purpose", "voice"]
FINEST: tuple[By, ...] = ("hour", "day", "month", "thread", "model", "purpose", "voice")

CALL_FIGURES = ("calls", "input", "output", "cached", "reasoning", "cache_written", "estimated")
"""Figures that a compaction keeps of its summariser's calls. Compactions written by earlier
versions lack `cache_written`.
"""


@dataclass(frozen=True, order=True)
class Spent:
    """Tokens of some model calls. Tokens read from the provider's prompt cache (`cached`) and
    written to it are part of the input, reasoning tokens part of the output.
    """

    day: str
    """YYYY-MM-DD in UTC. It is "unknown" if the messages do not tell the day, and empty if rows of
    several days were added up. The same holds for `thread` and `model`.
    """
    thread: str
    model: str
    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cache_written: int = 0
    estimated: int = 0
    """Number of calls without a readable report of the provider. Their tokens were counted here."""
    cost: float | None = None
    """In the currency of the price table; None without a table, or if no call's model has a price.
    """
    unpriced: int = 0
    """Number of calls of models that are not in the price table. `cost` does not include them."""
    project: str = ""
    purpose: str = ""
    """"summary" for calls that wrote memories; empty for calls of turns, or for the sum of both."""
    voice: str = ""
    """Id of the persona that was called; "" without a team, and for summaries."""
    hour: str = ""
    """YYYY-MM-DDTHH in UTC."""
    month: str = ""
    """YYYY-MM."""
    charged: float | None = None
    """The cost that the providers report, in their currency; None if no provider reports one."""


class SummaryCall(ReportedTokens):
    """One call of a summariser, as the record of its compaction keeps it."""

    model: str
    calls: int
    estimated: int
    charged: NotRequired[float | None]


def spent_of(
    messages: Sequence[BaseMessage], *, thread: str, model: str, encoding: str
) -> list[Spent]:
    """Return the tokens of one thread by day and model, the oldest first.

    `messages`: the transcript. `model`: the name to use if an answer does not tell its model.
    `encoding`: the encoding used for estimates.
    """
    count = counter(encoding)
    calls: list[Spent] = []
    before = 0
    for message in messages:
        tokens = count.message(message)
        marks = marks_of(message)
        by_code = "notice" in marks or marks.get(VOICE) == NARRATOR
        if isinstance(message, AIMessage) and not by_code and not marks.get(GIVEN):
            # Unreported: what was counted for the call, else all that came before it.
            sent = token_count(marks.get("sent"))
            counted: Any = reported(message) or {
                "input": before if sent is None else sent,
                "output": tokens,
                "estimated": 1,
            }
            by = reported_model(message) or model or UNKNOWN
            voice = TEAM if marks.get(POOLED) else str(marks.get(VOICE) or "")
            times = _times(marks.get("time"))
            calls.append(
                Spent(
                    thread=thread,
                    model=by,
                    voice=voice,
                    calls=1,
                    charged=charged(message),
                    **times,
                    **counted,
                )
            )
        before += tokens
    return added(calls, FINEST)


def call_usage(
    answer: BaseMessage, request: Sequence[BaseMessage], model: str, count: TokenCounter
) -> SummaryCall:
    """Return the usage of one call of a summariser."""
    known = reported(answer) if isinstance(answer, AIMessage) else None
    tokens = known or ReportedTokens(
        input=count.messages(request),
        output=count.message(answer),
        cached=0,
        cache_written=0,
        reasoning=0,
    )
    by = (reported_model(answer) if isinstance(answer, AIMessage) else "") or model or UNKNOWN
    return SummaryCall(
        model=by, calls=1, estimated=int(known is None), charged=charged(answer), **tokens
    )


def spent_on(records: Iterable[Mapping[str, Any]], *, thread: str) -> list[Spent]:
    """Return the usage of the summariser's calls that made these compactions, by day and model.
    Compactions written by earlier versions do not record their usage.
    """
    rows: list[Spent] = []
    for record in records:
        for call in record.get("spent") or ():
            figures: dict[str, Any] = {
                name: token_count(call.get(name)) or 0 for name in CALL_FIGURES
            }
            rows.append(
                Spent(
                    thread=thread,
                    model=str(call.get("model") or UNKNOWN),
                    purpose="summary",
                    charged=money(call.get("charged")),
                    **_times(record.get("time")),
                    **figures,
                )
            )
    return added(rows, FINEST)


def added(rows: Iterable[Spent], by: Sequence[By]) -> list[Spent]:
    """Add up the rows that agree in the fields `by`. The sums are sorted, and their other text
    fields are empty.
    """
    sums: dict[tuple[str, ...], Spent] = {}
    for row in rows:
        key = tuple(str(getattr(row, name)) for name in by)
        total = sums.get(key) or replace(
            Spent("", "", ""), **cast("Any", dict(zip(by, key, strict=True)))
        )
        figures: Any = {name: getattr(total, name) + getattr(row, name) for name in CALL_FIGURES}
        sums[key] = replace(
            total,
            **figures,
            cost=total.cost if row.cost is None else (total.cost or 0.0) + row.cost,
            charged=total.charged if row.charged is None else (total.charged or 0.0) + row.charged,
            unpriced=total.unpriced + row.unpriced,
        )
    return [sums[key] for key in sorted(sums)]


def _times(time: object) -> dict[str, Any]:
    """Return the hour, day and month of a time in ISO 8601, "unknown" if it is anything else."""
    try:
        hour = datetime.fromisoformat(str(time)).isoformat()[:13]
    except ValueError:
        return dict.fromkeys(("hour", "day", "month"), UNKNOWN)
    return {"hour": hour, "day": hour[:10], "month": hour[:7]}
