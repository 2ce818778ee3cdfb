"""Prices of models, and the cost of calls at these prices."""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from longtable.base.errors import ConfigError
from longtable.memory.counting.provider_reports import MOST_PRICE, money
from longtable.memory.counting.usage import Spent

MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of one model, for a million tokens each.

    If cached tokens have no price of their own, they cost as much as input tokens. If reasoning
    tokens have none, they cost as much as output tokens.
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
        """Return the cost of some calls. Cached tokens are part of the input, reasoning tokens part
        of the output.
        """
        cached = self.input if self.cached is None else self.cached
        reasoning = self.output if self.reasoning is None else self.reasoning
        sums = (spent.input - spent.cached) * self.input + spent.cached * cached
        return (
            sums + (spent.output - spent.reasoning) * self.output + spent.reasoning * reasoning
        ) / MILLION


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return a model's price: under its own name, else under the longest pattern (`gpt-4o*`) that
    fits it; None if no entry fits.
    """
    fitting = [name for name in prices if name == model or fnmatch.fnmatchcase(model, name)]
    return prices[max(fitting, key=lambda name: (name == model, len(name)))] if fitting else None


def price_rows(rows: Iterable[Spent], prices: Mapping[str, Price]) -> list[Spent]:
    """Return rows of one model each with their cost. If a model has no price, the cost of its calls
    is unknown, and its row says so.
    """
    priced = ((row, price_of(row.model, prices)) for row in rows)
    return [
        replace(row, cost=price.of(row)) if price else replace(row, unpriced=row.calls)
        for row, price in priced
    ]
