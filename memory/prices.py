"""What tokens cost, by a table the user sets: per million of input, cached input, output and reasoning."""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from longtable.base.errors import ConfigError
from longtable.memory.spent import Spent

MILLION = 1_000_000
MOST_PRICE = 1_000_000.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of one model, for a million tokens each.

    Without a price of its own a cached token costs what one of input does, a reasoning one what one of output does.
    """

    input: float
    output: float
    cached: float | None = None
    reasoning: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached", "reasoning"):
            value = getattr(self, name)
            if value is None and name in ("cached", "reasoning"):
                continue
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST_PRICE:
                raise ConfigError(f"the price of {name} must be a number from 0 to {MOST_PRICE:,.0f} for a million tokens, found {value!r}")

    def of(self, spent: Spent) -> float:
        """Return what some calls cost. Cached tokens are part of the input, reasoning ones of the output."""
        cached = self.input if self.cached is None else self.cached
        reasoning = self.output if self.reasoning is None else self.reasoning
        sums = (spent.input - spent.cached) * self.input + spent.cached * cached
        return (sums + (spent.output - spent.reasoning) * self.output + spent.reasoning * reasoning) / MILLION


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return a model's price: under its own name, else under the longest pattern (`gpt-4o*`) that fits it; None where there is none."""
    if model in prices:
        return prices[model]
    fitting = [name for name in prices if fnmatch.fnmatchcase(model, name)]
    return prices[max(fitting, key=len)] if fitting else None


def priced(rows: Iterable[Spent], prices: Mapping[str, Price]) -> list[Spent]:
    """Return rows of one model each with what they cost; calls of a model without a price cost nothing that is known, and say so."""
    made: list[Spent] = []
    for row in rows:
        price = price_of(row.model, prices)
        made.append(replace(row, unpriced=row.calls) if price is None else replace(row, cost=price.of(row)))
    return made
