"""Calibration of a thread to its provider: tokens that the provider reports per token that we
count, and the input limit that an error of the provider named.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

MOST_TOKENS = 10**12
"""Upper bound of a credible token report. A larger number, or a value that is no number, is
ignored.
"""

LOWEST = 0.5

HIGHEST = 3.0
"""`LOWEST` and `HIGHEST` are the bounds of the ratio. Compared to o200k_base, other tokenizers gave
0.6 (Qwen 3.5, Thai) to 2.7 (cl100k, Hindi) times the tokens, on 13 kinds of text in nine languages.
"""

IMPLAUSIBLE = 2.0
"""A reading more than this many times above `HIGHEST` or below `LOWEST` cannot be about this call
alone. It is not used.
"""

LEAST_COUNTED = 300
"""Calls with fewer counted tokens teach nothing: the text that a server adds weighs more than the
difference between tokenizers.
"""

JUMP = 1.5

READINGS = 3


@dataclass(frozen=True)
class Calibration:
    """A thread's knowledge of its provider: tokens reported per token counted, and the input limit
    that an error of the provider named.

    A reading is the reported input tokens divided by the tokens counted for the same call. The
    ratio follows the last three readings. It rises at once, but at most to 1.5 times their median.
    A larger jump needs a second reading. The reason: a tokenizer's ratio does not double from one
    call to the next, but the report of a server that adds up several calls may. The ratio falls
    with the median. So one wild reading raises the ratio by at most half, and the next good reading
    corrects it. Slow decay, the usual way, would hold one wrong report against a thread for many
    turns.
    """

    ratio: float = 1.0
    samples: int = 0
    """Number of all readings that were used so far."""
    limit: int | None = None
    """The input limit in tokens that an error of the provider named, None if none has. See
    `longtable.nodes.calling.provider_errors.learned_limit`.
    """
    recent: tuple[float, ...] = ()
    """The last readings, oldest first, within the bounds."""

    @property
    def factor(self) -> float:
        """Return the factor by which counted tokens are multiplied for the trigger, at least 1."""
        return max(1.0, self.ratio)

    def learn(self, counted: int, usage: Mapping[str, Any] | None) -> "Calibration":
        """Return the calibration after a call of `counted` tokens whose answer has this
        `usage_metadata`.

        The calibration is unchanged if the usage is missing, broken or zero, if the call is small,
        or if far too few tokens are reported. If far too many are reported (by a server that adds
        up its calls), the oldest reading is dropped. While such reports go on, all old readings
        disappear in this way.
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
        """Return the calibration as plain JSON."""
        return {
            "ratio": self.ratio,
            "samples": self.samples,
            "limit": self.limit,
            "recent": list(self.recent),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> "Calibration":
        """Read the JSON that `as_json` wrote. None gives the defaults. A value that makes no sense
        (a later version may write other values) gives its default.
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
    """Return the least and the most input tokens that a report can mean. Return None if the report
    cannot be used.

    In LangChain, `input_tokens` includes cached tokens, as OpenAI reports them. Some servers leave
    cached tokens out (Anthropic's own protocol). If a report has more cached than input tokens,
    the server certainly leaves them out.
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
