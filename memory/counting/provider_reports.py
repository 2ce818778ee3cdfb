"""Read a provider's report on one call: tokens, model, cost."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.events import ReportedTokens

UNKNOWN = "unknown"


def reported(message: AIMessage) -> ReportedTokens | None:
    """Return the tokens that a provider reported, None if they are missing or impossible."""
    usage = message.usage_metadata
    if not isinstance(usage, Mapping):
        return None
    sent = token_count(usage.get("input_tokens"))
    received = token_count(usage.get("output_tokens"))
    if sent is None or received is None or not sent + received:
        return None
    details = usage.get("input_token_details")
    cached = min(_detail(details, "cache_read"), sent)
    # langchain-anthropic reports either the sum or its parts, by the lifetime of the cache.
    names = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
    written = sum(_detail(details, name) for name in names)
    reasoning = _detail(usage.get("output_token_details"), "reasoning")
    return {
        "input": sent,
        "output": received,
        "cached": cached,
        "cache_written": min(written, sent - cached),
        "reasoning": min(reasoning, received),
    }


def token_count(value: object) -> int | None:
    """Return the value as a whole number if it can be a count of tokens. Return None for anything
    else, such as negative numbers, text, NaN and True.
    """
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
    """Return the name of the model that an answer reports, empty if it reports none."""
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
    """Return the cost of a call as its provider reports it (OpenRouter's `usage.cost`), None if it
    reports none.
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
    """Return the value as a float if it can be an amount of money. Return None for anything else,
    such as negative numbers, text, NaN and True.
    """
    return (
        float(value)
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= MOST_PRICE
        else None
    )


MOST_PRICE = 1_000_000.0
