"""What a thread learns of its provider: tokens reported per token counted, and the limit that an
error named.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

MOST_TOKENS = 10**12
"""No report of tokens is as large as this: larger numbers, and what is none, teach nothing."""

LOWEST = 0.5

HIGHEST = 3.0
"""Bounds of the ratio. Against o200k_base, on 13 kinds of text in nine languages: 0.6 (Qwen 3.5,
Thai) to 2.7 (cl100k, Hindi).
"""

IMPLAUSIBLE = 2.0
"""A reading this many times outside the bounds is about something else than this call."""

LEAST_COUNTED = 300
"""Tokens below which a call teaches nothing: what a server adds of its own outweighs the
tokenizer.
"""

JUMP = 1.5

READINGS = 3


@dataclass(frozen=True)
class Calibration:
    """What a thread has learned about its provider: tokens reported per token counted, and the
    limit an error named.

    A reading is the reported input tokens over what was counted for the same call. The ratio
    follows the last three. It rises at once, to half as much again as their median; the rest of a
    larger jump waits for a second reading: a tokenizer does not double from one call to the next, a
    server that adds up several calls does. It falls with the median. So one wild reading raises it
    by at most half, and the next good one puts it right; slow decay, the usual way, would hold one
    wrong report against a thread for many turns.
    """

    ratio: float = 1.0
    samples: int = 0
    """Readings taken in, ever."""
    limit: int | None = None
    """Tokens, from a provider's error; see
    `longtable.nodes.calling.provider_errors.learned_limit`.
    """
    recent: tuple[float, ...] = ()
    """The last readings, oldest first, within the bounds."""

    @property
    def factor(self) -> float:
        """Return what counted tokens are multiplied by for the trigger: never less than 1."""
        return max(1.0, self.ratio)

    def learn(self, counted: int, usage: Mapping[str, Any] | None) -> "Calibration":
        """Return what is known after a call of `counted` tokens whose answer has this
        `usage_metadata`.

        Unchanged when nothing can be learned: no usage or a broken one, zero, a small call, far too
        few tokens. Far too many (a server that adds up its calls) take the oldest reading with
        them: trust wears off while they last.
        """
        reported = _reported(usage)
        if reported is None or counted < LEAST_COUNTED:
            return self
        low = reported[0] / counted
        high = reported[1] / counted
        if high < LOWEST / IMPLAUSIBLE:
            return self
        if low > HIGHEST * IMPLAUSIBLE:
            return self._with(self.recent[1:])
        # Where it is open whether cached tokens are part of the input, anything between may be
        # true: keep what is known.
        known = statistics.median_low(self.recent) if self.recent else 1.0
        reading = _bounded(min(max(known, low), high))
        return replace(self._with((*self.recent, reading)[-READINGS:]), samples=self.samples + 1)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "ratio": self.ratio,
            "samples": self.samples,
            "limit": self.limit,
            "recent": list(self.recent),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> "Calibration":
        """Return what `as_json` wrote; None, or what a later version wrote otherwise, is read as
        far as it makes sense.
        """
        value = value or {}
        stored = value.get("recent")
        readings = stored if isinstance(stored, list | tuple) else ()
        recent = [_bounded(each) for each in readings if _is_number(each)]
        ratio = value.get("ratio")
        return cls(
            ratio=_bounded(ratio) if _is_number(ratio) else 1.0,
            samples=_count(value.get("samples")) or 0,
            limit=_count(value.get("limit")),
            recent=tuple(recent[-READINGS:]),
        )

    def _with(self, recent: tuple[float, ...]) -> "Calibration":
        if not recent:
            return replace(self, ratio=1.0, recent=())
        middle = statistics.median_low(recent)
        return replace(
            self, ratio=_bounded(min(max(middle, recent[-1]), middle * JUMP)), recent=recent
        )


def _count(value: object) -> int | None:
    """Return a whole number above 0, None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return None


def _reported(usage: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return the least and the most input tokens a report can mean, None when it says nothing.

    LangChain's `input_tokens` includes cached ones (OpenAI); some servers leave them out
    (Anthropic's own protocol). More cached than input tokens: they are left out, for sure.
    """
    if not isinstance(usage, Mapping):
        return None
    tokens = usage.get("input_tokens")
    if not _is_number(tokens) or tokens < 1:
        return None
    details = usage.get("input_token_details")
    cache_figures = (
        [details.get(name) for name in ("cache_read", "cache_creation")]
        if isinstance(details, Mapping)
        else []
    )
    cached = sum(int(each) for each in cache_figures if _is_number(each) and each > 0)
    most = int(tokens) + cached
    return (most if cached > tokens else int(tokens)), most


def _bounded(ratio: float) -> float:
    return round(min(max(ratio, LOWEST), HIGHEST), 4)


def _is_number(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_TOKENS
    )
