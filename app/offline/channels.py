"""Find the ways in which people come, order and pay: 'by phone', 'in cash', 'through the website'."""

from longtable.app.offline.lexicon_places import CHANNELS
from longtable.app.offline.text import Token, lemma

_BY = frozenset(["by", "via", "through", "over", "using", "with", "in", "on", "at"])


def channels(tokens: list[Token]) -> list[int]:
    """Return the places of words that stand as a way, after 'by' and the like or joined by 'or' to what does."""
    found: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind != "word" or lemma(token.word) not in CHANNELS:
            continue
        before = place - 1
        while before >= 0 and tokens[before].word in ("the", "a", "an", "our"):
            before -= 1
        left = tokens[before].word if before >= 0 else ""
        near = tokens[max(0, before - 3) : max(0, before)]
        joined = left in ("or", "and", "nor") and (before - 1 in found or any(each.word in _BY for each in near))
        if left in _BY or joined:
            found.append(place)
    return found
