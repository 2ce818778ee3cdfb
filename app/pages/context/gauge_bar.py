"""The size of the next call by part, as one bar with a mark at the threshold."""

from dataclasses import dataclass
from typing import Literal

from longtable.memory.call_config import CallConfig
from longtable.memory.view import View

BAR_UNITS = 1_000
"""Width of the whole bar, which stands for the model's limit, in units of its drawing."""

PartName = Literal["system", "tools", "memory", "messages", "passed"]


@dataclass(frozen=True)
class BarPart:
    """One part of the next call. `x` and `width` are in units of the drawing (see `BAR_UNITS`)."""

    name: PartName
    tokens: int
    """Estimated tokens of the provider, as `Gauge.total`."""
    x: float
    width: float


@dataclass(frozen=True)
class Gauge:
    """The next call and its limit, in estimated tokens of the provider."""

    parts: tuple[BarPart, ...]
    total: int
    limit: int
    fraction: float
    """total / limit; over 1 if the call does not fit."""
    threshold: float
    """Share of the limit over which a compaction is due."""
    threshold_tokens: int
    mark_x: float
    """Where the threshold is, in units of the drawing."""
    kept_free: int
    """Tokens below the threshold that are kept free for material of context providers."""
    shrunk: int
    left_out: int
    """Numbers of results that were shortened and of messages left out, so that the call fits."""
    estimated: bool
    """Whether the counts are estimates, because the tokenizer's data could not be read."""

    @property
    def level(self) -> Literal["calm", "near", "over"]:
        """Return how near the call is to the threshold; "near" from three quarters of it on."""
        if self.fraction >= self.threshold:
            return "over"
        return "near" if self.fraction >= 0.75 * self.threshold else "calm"


def gauge_of(view: View, call_config: CallConfig) -> Gauge:
    """Return the gauge of a call. Pure."""
    factor = call_config.factor
    limit = call_config.limit
    counted = view.parts
    total = round(counted.total * factor)
    threshold = call_config.policy.threshold
    return Gauge(
        parts=_bar(view, call_config),
        total=total,
        limit=limit,
        fraction=total / limit,
        threshold=threshold,
        threshold_tokens=int(limit * threshold),
        mark_x=round(BAR_UNITS * threshold, 1),
        kept_free=round(call_config.free_for_material * factor),
        shrunk=view.shrunk,
        left_out=view.left_out,
        estimated=call_config.counter.estimated,
    )


def _bar(view: View, call_config: CallConfig) -> tuple[BarPart, ...]:
    """Return the parts side by side. A bar of a call over the limit ends at the limit."""
    tokens: dict[PartName, int] = {
        "system": view.parts.system,
        "tools": view.parts.tools,
        "memory": view.parts.memory,
        "messages": view.parts.messages,
        "passed": view.parts.passed,
    }
    parts: list[BarPart] = []
    x = 0.0
    for name, count in tokens.items():
        size = round(count * call_config.factor)
        width = min(BAR_UNITS - x, BAR_UNITS * size / call_config.limit)
        if size or name in ("memory", "messages"):
            parts.append(BarPart(name, size, round(x, 1), round(width, 1)))
        x += width
    return tuple(parts)
