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
    """The prices of one model, each for a million tokens.

    `cached` is for tokens read from the provider's prompt cache, `cache_write` for tokens written
    to it; if either is None, these tokens cost as much as input tokens. If `reasoning` is None,
    reasoning tokens cost as much as output tokens.
    """

    input: float
    output: float
    cached: float | None = None
    reasoning: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "reasoning", "cache_write"):
            value = getattr(self, name)
            is_needed = name in ("input", "output")
            if money(value) is None and (value is not None or is_needed):
                raise ConfigError(
                    f"the price of {name} must be a number from 0 to {MOST_PRICE:,.0f} for a"
                    f" million tokens, found {value!r}"
                )

    def of(self, spent: Spent) -> float:
        """Return the cost of the calls in `spent`. Tokens of the prompt cache are part of the
        input, reasoning tokens part of the output.
        """
        cached = self.input if self.cached is None else self.cached
        reasoning = self.output if self.reasoning is None else self.reasoning
        written = self.input if self.cache_write is None else self.cache_write
        rest = spent.input - spent.cached - spent.cache_written
        sums = rest * self.input + spent.cached * cached + spent.cache_written * written
        return (
            sums + (spent.output - spent.reasoning) * self.output + spent.reasoning * reasoning
        ) / MILLION


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return a model's price. The model's own name comes first, then the longest pattern that
    matches it, such as `gpt-4o*`. Return None if there is neither.
    """
    fitting = [name for name in prices if name == model or fnmatch.fnmatchcase(model, name)]
    return prices[max(fitting, key=lambda name: (name == model, len(name)))] if fitting else None


def price_rows(rows: Iterable[Spent], prices: Mapping[str, Price]) -> list[Spent]:
    """Return the rows with their cost. Each row must be about one model. If the model has no price,
    the row's calls are counted in `unpriced` instead.
    """
    priced = ((row, price_of(row.model, prices)) for row in rows)
    return [
        replace(row, cost=price.of(row)) if price else replace(row, unpriced=row.calls)
        for row, price in priced
    ]
