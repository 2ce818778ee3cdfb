"""Hold a figure against the numbers that the results of a turn vouch for."""

import re
from bisect import bisect_left
from dataclasses import dataclass, field

from longtable.memory.number_forms import Reading
from longtable.memory.number_reading import Figure

_TIME_FACTORS = (1.0, 60.0, 3600.0, 86400.0, 0.001)


@dataclass
class Bag:
    """Numbers to look an interval up in."""

    values: list[float] = field(default_factory=list)
    ready: bool = False

    def add(self, *values: float) -> None:
        """Put numbers in."""
        self.values.extend(values)
        self.ready = False

    def hit(self, low: float, high: float) -> bool:
        """Say whether a number lies from `low` to `high`."""
        if not self.ready:
            self.values, self.ready = sorted(set(self.values)), True
        at = bisect_left(self.values, low)
        return at < len(self.values) and self.values[at] <= high

    def signed(self, reading: Reading, *, negative: bool, factor: float = 1.0) -> bool:
        """Look a figure up: as it is, and below zero too; only below zero when it was written so."""
        low, high = reading.low * factor, reading.high * factor
        return (not negative and self.hit(low, high)) or self.hit(-high, -low)

    def either(self, reading: Reading, *, factor: float = 1.0) -> bool:
        """Look a figure up, whatever its sign: the order of a difference is a matter of wording."""
        return self.signed(reading, negative=False, factor=factor)


@dataclass
class Support:
    """All that a figure is held against."""

    direct: Bag = field(default_factory=Bag)
    rates: Bag = field(default_factory=Bag)
    """Cells that may be percentages as they stand (34)."""
    fractions: Bag = field(default_factory=Bag)
    """Cells that may be shares (0.34)."""
    exact: Bag = field(default_factory=Bag)
    """All cells of large results: for figures of five and more digits."""
    steps: Bag = field(default_factory=Bag)
    rate_steps: Bag = field(default_factory=Bag)
    parts: Bag = field(default_factory=Bag)
    """Shares of a total, and one number of a row by another."""
    compared: Bag = field(default_factory=Bag)
    """One number of a column by another of it: growth, "2.3 times as many"."""
    counts: Bag = field(default_factory=Bag)
    headlines: list[float] = field(default_factory=list)

    def pair(self, a: float, b: float) -> None:
        """Add what one step makes of two numbers that may be of any kind."""
        self.steps.add(a - b, a + b)
        self.compared.add(*both_ways(a, b))
        self.parts.add(*both_ways(a, b))


def both_ways(a: float, b: float) -> list[float]:
    """Return a/b and b/a, as far as there are such."""
    return ([a / b] if b else []) + ([b / a] if a else [])


@dataclass(frozen=True)
class Wording:
    """What the sentence around a figure speaks of."""

    per: bool
    up: bool
    down: bool
    change: bool
    """The figure itself is the size of a change: "grew by 5 %"."""


def vouches(support: Support, reading: Reading, *, figure: Figure, wording: Wording) -> bool:
    """Say whether one reading of a figure is in the results or one step from them."""
    negative = figure.negative
    if reading.kind == "points":
        return support.rates.signed(reading, negative=negative) or _rate_step(support, reading)
    if reading.kind == "percent":
        return _percent(support, reading, negative=negative, wording=wording)
    if reading.kind == "times":
        found = support.compared.hit(reading.low, reading.high) or support.parts.hit(reading.low, reading.high)
        return found or (wording.up and support.compared.hit(reading.low + 1, reading.high + 1))
    if reading.kind == "seconds":
        return any(
            support.direct.signed(reading, negative=negative, factor=1 / factor) or support.steps.either(reading, factor=1 / factor)
            for factor in _TIME_FACTORS
        )
    if support.direct.signed(reading, negative=negative) or support.steps.either(reading):
        return True
    if figure.whole and support.counts.hit(reading.low, reading.high):
        return True
    if len(re.sub(r"\D", "", figure.text)) >= 5 and support.exact.signed(reading, negative=negative):
        return True
    return wording.per and support.parts.signed(reading, negative=negative)


def _percent(support: Support, reading: Reading, *, negative: bool, wording: Wording) -> bool:
    """Look a percentage up: as a cell, a share, and as a growth where the sentence speaks of one."""
    if support.rates.signed(reading, negative=negative) or support.fractions.signed(reading, negative=negative, factor=0.01):
        return True
    low, high = reading.low / 100, reading.high / 100
    if not negative and not wording.change and support.parts.hit(low, high):
        return True
    up, down = wording.up and not negative, wording.down or negative
    if (up or down) and _rate_step(support, reading):
        return True
    grown = support.compared.hit(1 + low, 1 + high) or (low > 1 and support.compared.hit(low, high))
    return (up and grown) or (down and support.compared.hit(1 - high, 1 - low))


def _rate_step(support: Support, reading: Reading) -> bool:
    return support.rate_steps.either(reading) or support.rate_steps.either(reading, factor=0.01)
