"""Excerpts of a long text around the words of a search."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from longtable.base.words import pairs_of

MOST_SPOTS = 2_000
"""The most occurrences of words that are looked at. So a megabyte of one repeated word costs no
more time than a page of text.
"""

# Not `HAN`: it takes in the signs between two ranges of that, and leaves rare characters out.
_HAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"

_RUNS = re.compile(rf"[{_HAN}]+|(?:(?![{_HAN}])\w)+")


def words_of(query: str) -> list[str]:
    """Return the words of a query to look for. Longer words lose up to three letters at the end, so
    that "delayed" finds "delays"; Chinese text becomes pairs of characters.
    """
    words: list[str] = []
    for run in _RUNS.findall(query):
        if re.match(f"[{_HAN}]", run):
            words += list(pairs_of(run)) or [run]
        else:
            # "delayed" is to be found where "delays" stands
            words.append(run[: max(4, len(run) - 3)] if run.isalpha() else run)
    return list(dict.fromkeys(words))


def excerpt(
    text: str, words: Sequence[str], size: int, *, start: int | None = None, name: str
) -> str:
    """Return at most `size` characters of a text, with marks that say how many characters were left
    out before and after them.

    The excerpt begins at character `start`. If `start` is None, it begins where most of the words
    are close together. The mark at the end says how to read on, such as `m12+800`: `name`, and the
    place of the next character.
    """
    if start is None:
        start = 0 if len(text) <= size else _densest(text, words, size)
    start = min(start, len(text))
    end = min(len(text), start + size)
    before = f"[… {start:,} characters …] " if start else ""
    after = (
        f" [… {len(text) - end:,} more characters: ask for {name}+{end} …]"
        if end < len(text)
        else ""
    )
    return f"{before}{text[start:end]}{after}"


def short_excerpt(text: str, query: str, chars: int = 200) -> str:
    """Return at most `chars` characters of a text on one line, around the place where most words of
    the query are. The sign … marks each cut.
    """
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    start = _densest(line, words_of(query), chars)
    end = min(len(line), start + chars - 2)
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _densest(text: str, words: Sequence[str], size: int) -> int:
    """Return where to begin an excerpt of `size` characters, so that it shows as many different
    words as possible, with some text before them. If several places are equally good, return the
    first.
    """
    if not words:
        return 0
    pattern = re.compile(
        "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE
    )
    spots = [
        (match.start(), match.end(), match.group().casefold())
        for match in islice(pattern.finditer(text), MOST_SPOTS)
    ]
    if not spots:
        return 0
    reach = size * 3 // 4
    inside: Counter[str] = Counter()
    best = 0
    place = spots[0][0]
    end = 0
    for first, (begin, _, word) in enumerate(spots):
        while end < len(spots) and (end <= first or spots[end][1] <= begin + reach):
            inside[spots[end][2]] += 1
            end += 1
        if len(inside) > best:
            best = len(inside)
            place = begin
        inside[word] -= 1
        if not inside[word]:
            del inside[word]
    return max(0, min(place - size // 4, len(text) - size))
