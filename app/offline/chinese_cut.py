"""Cut a run of Chinese into words by least cost."""

import itertools
import re
from collections.abc import Container
from typing import Final

RUN: Final = re.compile(r"[\u3400-\u9fff]+")
"""A run of Chinese signs."""


def cuts(run: str, lexicon: Container[str], longest: int) -> list[tuple[int, int]]:
    """Return where each word of a run begins and ends: the fewest words, long ones first; single characters where none fits."""
    best: list[tuple[float, int]] = [(0.0, 0)]  # cost up to each place, and where its last word begins
    for end in range(1, len(run) + 1):
        ways = [(best[end - 1][0] + _UNKNOWN, end - 1)]
        for start in range(max(0, end - longest), end):
            if (word := run[start:end]) in lexicon:
                ways.append((best[start][0] + _cost(word), start))
        best.append(min(ways))
    places = [len(run)]
    while places[-1]:
        places.append(best[places[-1]][1])
    return list(itertools.pairwise(reversed(places)))


def segment(run: str, lexicon: dict[str, str]) -> list[str]:
    """Split a run of Chinese into the fewest words, long ones first; what is not in the lexicon stays as one unknown word."""
    words: list[str] = []
    for start, end in cuts(run, lexicon, max(map(len, lexicon), default=1)):
        word = run[start:end]
        if word in lexicon:
            words += [lexicon[word]] if lexicon[word] else []
        elif words and words[-1].startswith("\0") and run[start - 1 : start] == words[-1][-1:] and run[:start].endswith(words[-1][1:]):
            words[-1] += word
        else:
            words.append(f"\0{word}")
    return words


_UNKNOWN = 3.0


def _cost(word: str) -> float:
    """Weigh a word of the lexicon: fewer and longer ones are better, and what only ends in a particle gives way."""
    if len(word) == 1:
        return 1.3
    return 1.0 - 0.01 * len(word) ** 2 + (0.15 if word[-1] in "的了过" else 0.0)
