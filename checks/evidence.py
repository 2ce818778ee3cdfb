"""Numbers that figures of an answer are looked up in."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

Place = Sequence[float]
"""The numbers of a row, or of a sum or mean over rows: each measure, then what two give together.
NaN for a missing number.
"""


class Evidence:
    """Numbers to look figures up in, and ratios, which are for "34 %" and "2.3 times" only."""

    def __init__(self, numbers: Iterable[float] = (), ratios: Iterable[float] = ()) -> None:
        self.numbers = list(numbers)
        self.ratios = list(ratios)

    def compare(self, a: Place, b: Place, signs: Iterable[int] = (-1, 1)) -> None:
        """Add the ratios of two places, and their difference (sign -1) and sum (1)."""
        for x, y in zip(a, b, strict=False):
            self.numbers += [x + sign * y for sign in signs]
            self.ratios += quotients(x, y)

    def sort(self) -> "Evidence":
        """Make ready for look-ups, and return itself."""
        self.numbers = sorted(set(filter(math.isfinite, self.numbers)))
        self.ratios = sorted(set(filter(math.isfinite, self.ratios)))
        return self


def quotients(x: float, y: float) -> list[float]:
    """Return x / y and y / x, NaN for a division by zero."""
    return [quotient(x, y), quotient(y, x)]


def quotient(x: float, y: float) -> float:
    """Return x / y, NaN if y is zero."""
    return x / y if y else math.nan


def as_shares(numbers: Iterable[float]) -> list[float]:
    """Return what percentages may stand for numbers: .34 or 34."""
    shares: list[float] = []
    for number in numbers:
        shares += [number, number / 100]
    return shares


def count_between(ordered: Sequence[float], one: float, other: float) -> int:
    """Return how many of the sorted numbers are from one bound to the other, in either order."""
    return bisect_right(ordered, max(one, other)) - bisect_left(ordered, min(one, other))
