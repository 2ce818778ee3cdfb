"""Cut the part out of a text that answers a query."""

import re

from longtable.memory.search import STOP, tokens_of

CHARS = 200
_WORD = re.compile(r"\S+")
_PIECE = re.compile(r"[\u3000-\U0003ffff]{1,6}|[^\u3000-\U0003ffff]+")


def excerpt_of(text: str, query: str, chars: int = CHARS) -> str:
    """Return at most so many characters of a text on one line, around where most of the query's words are; … marks a cut."""
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    asked = set(tokens_of(query))
    wanted = (asked - STOP) or asked
    hits = [(place.start(), found) for place in _words(line) if (found := wanted.intersection(tokens_of(place.group())))]
    start = max(0, _best(hits, chars) - chars // 4)
    end = min(len(line), start + chars - 2)
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _words(line: str) -> list[re.Match[str]]:
    """Return the line's words, those of text without blanks, as Chinese is, in pieces of a few characters."""
    return [piece for word in _WORD.finditer(line) for piece in _PIECE.finditer(line, word.start(), word.end())]


def _best(hits: list[tuple[int, set[str]]], chars: int) -> int:
    """Return where the window begins that holds most different words, the first of equals."""
    best, most = 0, 0
    for i, (start, _) in enumerate(hits):
        inside: set[str] = set()
        for place, found in hits[i:]:
            if place - start > chars // 2:
                break
            inside |= found
        if len(inside) > most:
            best, most = start, len(inside)
    return best
