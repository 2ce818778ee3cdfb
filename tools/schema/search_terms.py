"""Split names and texts into terms that can be searched: English by case, underscores and digits, Chinese by pairs of characters."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from rapidfuzz import process
from rapidfuzz.distance import OSA

HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUNS = re.compile(rf"[{HAN}]+|(?:(?![{HAN}_])\w)+")
_PARTS = re.compile(r"[A-Z]{2,}(?=s(?![^\W\d_A-Z]))|[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_MOST_WORDS = 4
_MOST_CHARS = 2_000
"""Of one text: what is searched are names and comments, not books."""


def terms(text: str) -> Iterator[str]:
    """Yield a text's terms, whatever the case and width, plurals as singulars.

    `CustomerID`, `customer_id` and `customer id` share `customer` and `id`; the first two also share `customerid`.
    """
    for chunk in unicodedata.normalize("NFKC", text[:_MOST_CHARS]).split():
        yield from _chunk(chunk)


@lru_cache(maxsize=65_536)
def _chunk(chunk: str) -> tuple[str, ...]:
    found: list[str] = []
    parts: list[str] = []
    for run in _RUNS.findall(chunk):
        if is_han(run):
            found += [first + second for first, second in pairwise(run)]
            found += run
        else:
            # "IDs" is cut into "ID" and a lone "s".
            parts += [singular(part.casefold()) for part in _PARTS.findall(run) if part != "s" or run == "s"]
    whole = ["".join(parts)] if len(parts) > 1 else []
    return (*found, *parts, *whole)


def is_han(text: str) -> bool:
    """Say whether a text is written in Chinese characters or Japanese kana throughout."""
    return re.fullmatch(f"[{HAN}]+", text) is not None


def singular(word: str) -> str:
    """Take the plural's ending off an English word in small letters; other words stay as they are."""
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] not in "sui" else word


def other_numbers(text: str) -> list[str]:
    """Return how a text may be written in the other number: a word of it in the singular and in the plural; in small letters.

    The last word first; of a long text, only the last few.
    """
    folded = text.casefold().strip()
    words = list(re.finditer(r"(?<![^\W\d_])[a-z]{3,}(?![^\W\d_])", folded))[-_MOST_WORDS:]
    forms = [(word, form) for word in reversed(words) for form in dict.fromkeys((singular(word[0]), plural(singular(word[0]))))]
    return [folded[: word.start()] + form + folded[word.end() :] for word, form in forms if form != word[0]]


def plural(word: str) -> str:
    """Return the regular plural of an English word in small letters."""
    if word.endswith("y") and word[-2:-1] not in set("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


def slips(text: str, candidates: Sequence[str], most: int, limit: int) -> list[tuple[int, int]]:
    """Return which candidates differ from the text by at most `most` letters (one too few, too many, wrong, or two swapped).

    Each as its place and its distance, the nearest first.
    """
    found = process.extract(text, candidates, scorer=OSA.distance, score_cutoff=most, limit=limit)
    return [(place, int(distance)) for _, distance, place in found]
