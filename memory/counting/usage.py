"""Tokens and price of a transcript's model calls, as the provider reported them; estimates are
marked as such.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, NotRequired, cast

from langchain_core.messages import AIMessage, BaseMessage
from typing_extensions import TypedDict

from longtable.base.errors import ConfigError
from longtable.memory.counting.tokens import TokenCounter, counter
from longtable.memory.messages.marks import GIVEN, POOLED, marks_of
from longtable.memory.voices import NARRATOR, TEAM, VOICE

UNKNOWN = "unknown"
By = Literal["hour", "day", "month", "thread", "model", "project", "purpose", "voice"]
FINEST: tuple[By, ...] = ("hour", "day", "month", "thread", "model", "purpose", "voice")


@dataclass(frozen=True, order=True)
class Spent:
    """Tokens of some model calls. Cached ones are part of the input, reasoning ones of the
    output.
    """

    day: str
    """YYYY-MM-DD in UTC, "unknown" where no message says; "" where days were added up. Thread and
    model likewise.
    """
    thread: str
    model: str
    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    estimated: int = 0
    """Calls whose provider reported nothing that can be read: their tokens are counted, not
    reported.
    """
    cost: float | None = None
    """In the currency of the price table; None without one, or where no call's model has a
    price.
    """
    unpriced: int = 0
    """Calls of models that the price table does not know: they are not in `cost`."""
    project: str = ""
    purpose: str = ""
    """"summary" for the calls that wrote memories; "" for those of turns, or where both were added
    up.
    """
    voice: str = ""
    """Id of the persona that was called; "" without a team, and for summaries."""
    hour: str = ""
    """YYYY-MM-DDTHH in UTC."""
    month: str = ""
    """YYYY-MM."""
    charged: float | None = None
    """What the providers themselves say that the calls cost, in their currency; None where none
    says so.
    """


class ReportedTokens(TypedDict):
    """Tokens of a call as its provider reported them; cached ones are part of the input, reasoning
    ones of the output.
    """

    input: int
    output: int
    cached: int
    reasoning: int


class SummaryCall(ReportedTokens):
    """One call of a summariser, as its compaction keeps it."""

    model: str
    calls: int
    estimated: int
    charged: NotRequired[float | None]


def spent_of(
    messages: Sequence[BaseMessage], *, thread: str, model: str, encoding: str
) -> list[Spent]:
    """Return what each day and model took in one thread, the oldest first.

    `messages`: the transcript; `model`: the name where an answer does not tell; `encoding`: what
    estimates are counted with.
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


def reported(message: AIMessage) -> ReportedTokens | None:
    """Return the tokens a provider reported, None where they are missing or cannot be."""
    usage = message.usage_metadata
    if not isinstance(usage, Mapping):
        return None
    sent = token_count(usage.get("input_tokens"))
    received = token_count(usage.get("output_tokens"))
    if sent is None or received is None or not sent + received:
        return None
    cached = _detail(usage.get("input_token_details"), "cache_read")
    reasoning = _detail(usage.get("output_token_details"), "reasoning")
    return {
        "input": sent,
        "output": received,
        "cached": min(cached, sent),
        "reasoning": min(reasoning, received),
    }


def call_usage(
    answer: BaseMessage, request: Sequence[BaseMessage], model: str, count: TokenCounter
) -> SummaryCall:
    """Return what one call of a summariser took."""
    known = reported(answer) if isinstance(answer, AIMessage) else None
    tokens = known or ReportedTokens(
        input=count.messages(request), output=count.message(answer), cached=0, reasoning=0
    )
    by = (reported_model(answer) if isinstance(answer, AIMessage) else "") or model or UNKNOWN
    return SummaryCall(
        model=by, calls=1, estimated=int(known is None), charged=charged(answer), **tokens
    )


def spent_on(records: Iterable[Mapping[str, Any]], *, thread: str) -> list[Spent]:
    """Return what the summariser's calls of these compactions took, by day and model; those of
    earlier versions do not tell.
    """
    rows: list[Spent] = []
    for record in records:
        for call in record.get("spent") or ():
            figures: dict[str, Any] = {
                name: token_count(call.get(name)) or 0
                for name in ("calls", "input", "output", "cached", "reasoning", "estimated")
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
    """Add rows up by these fields, in their order; the others are empty."""
    sums: dict[tuple[str, ...], Spent] = {}
    for row in rows:
        key = tuple(str(getattr(row, name)) for name in by)
        total = sums.get(key) or replace(
            Spent("", "", ""), **cast("Any", dict(zip(by, key, strict=True)))
        )
        sums[key] = replace(
            total,
            calls=total.calls + row.calls,
            input=total.input + row.input,
            output=total.output + row.output,
            cached=total.cached + row.cached,
            reasoning=total.reasoning + row.reasoning,
            estimated=total.estimated + row.estimated,
            cost=total.cost if row.cost is None else (total.cost or 0.0) + row.cost,
            charged=total.charged if row.charged is None else (total.charged or 0.0) + row.charged,
            unpriced=total.unpriced + row.unpriced,
        )
    return [sums[key] for key in sorted(sums)]


def token_count(value: object) -> int | None:
    """Return a count of tokens, None for what is none: negative, text, NaN, True."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
        else None
    )


def _detail(details: object, name: str) -> int:
    return (token_count(details.get(name)) or 0) if isinstance(details, Mapping) else 0


def reported_model(message: AIMessage) -> str:
    """Return the name of the model that an answer says it came from, "" where it does not."""
    metadata: Any = (
        message.response_metadata if isinstance(message.response_metadata, Mapping) else {}
    )
    return next(
        (
            name
            for key in ("model_name", "model")
            if isinstance(name := metadata.get(key), str) and name
        ),
        "",
    )


def charged(message: BaseMessage) -> float | None:
    """Return what a call cost by its provider's own account (OpenRouter's `usage.cost`), None where
    it does not say.
    """
    usages = [
        message.response_metadata,
        *(message.response_metadata.get(name) for name in ("token_usage", "usage")),
    ]
    return next(
        (
            cost
            for usage in usages
            if isinstance(usage, Mapping) and (cost := money(usage.get("cost"))) is not None
        ),
        None,
    )


def money(value: object) -> float | None:
    """Return an amount of money, None for what is none: negative, text, NaN, True."""
    return (
        float(value)
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= MOST_PRICE
        else None
    )


def _times(time: object) -> dict[str, Any]:
    """Return the hour, day and month of a time."""
    try:
        hour = datetime.fromisoformat(str(time)).isoformat()[:13]
    except ValueError:
        return dict.fromkeys(("hour", "day", "month"), UNKNOWN)
    return {"hour": hour, "day": hour[:10], "month": hour[:7]}


MILLION = 1_000_000
MOST_PRICE = 1_000_000.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of one model, for a million tokens each.

    Without a price of its own a cached token costs what one of input does, a reasoning one what one
    of output does.
    """

    input: float
    output: float
    cached: float | None = None
    reasoning: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "reasoning"):
            value = getattr(self, name)
            if money(value) is None and not (value is None and name in ("cached", "reasoning")):
                raise ConfigError(
                    f"the price of {name} must be a number from 0 to {MOST_PRICE:,.0f} for a"
                    f" million tokens, found {value!r}"
                )

    def of(self, spent: Spent) -> float:
        """Return what some calls cost. Cached tokens are part of the input, reasoning ones of the
        output.
        """
        cached = self.input if self.cached is None else self.cached
        reasoning = self.output if self.reasoning is None else self.reasoning
        sums = (spent.input - spent.cached) * self.input + spent.cached * cached
        return (
            sums + (spent.output - spent.reasoning) * self.output + spent.reasoning * reasoning
        ) / MILLION


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return a model's price: under its own name, else under the longest pattern (`gpt-4o*`) that
    fits it; None where there is none.
    """
    fitting = [name for name in prices if name == model or fnmatch.fnmatchcase(model, name)]
    return prices[max(fitting, key=lambda name: (name == model, len(name)))] if fitting else None


def price_rows(rows: Iterable[Spent], prices: Mapping[str, Price]) -> list[Spent]:
    """Return rows of one model each with what they cost; calls of a model without a price cost
    nothing that is known, and say so.
    """
    priced = ((row, price_of(row.model, prices)) for row in rows)
    return [
        replace(row, cost=price.of(row)) if price else replace(row, unpriced=row.calls)
        for row, price in priced
    ]
