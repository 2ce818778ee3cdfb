"""Say how a value of the data may be written in a question: 'passed' for pass, 'in-force' for in force, 'Co-Is' for Co-I."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from longtable.app.offline.lexicon import FILLERS, MONTHS, PREPOSITIONS, WEEKDAYS
from longtable.app.offline.text import Token, lemma

_STANDING = frozenset(["in", "on", "under", "at", "off", "out", "up", "not"])
_BE = frozenset(
    ["is", "are", "was", "were", "be", "been", "still", "currently", "now", "already", "or", "and", "that", "which", "put", "as"]
)
_DETERMINERS = frozenset(
    ["the", "a", "an", "our", "my", "your", "their", "its", "this", "that", "these", "those", "all", "any", "each", "every"]
)


@lru_cache(maxsize=10_000)
def forms(word: str) -> tuple[str, ...]:
    """Return other forms of one lower-case word that a column may hold: passed, pass; annually, annual; ski, skis."""
    found: list[str] = []
    found += _of_doer(lemma(word))
    if word.endswith("s") and word[:-1] != lemma(word) and not word.endswith("ss"):
        found.append(word[:-1])  # cheques
    if "-" in word:
        found += [word.replace("-", " "), word.replace("-", "")]
    if lemma(word) != word:
        found.append(lemma(word))
        found += [word[:-1]] if word.endswith("ies") and len(word) > 4 else []  # collies
    if word.endswith("ied") and len(word) > 5:
        found.append(word[:-3] + "y")
    elif word.endswith("ed") and len(word) > 4:
        found += [word[:-2], word[:-1]]
        found += [word[:-3]] if word[-3] == word[-4] else []
    elif word.endswith("ally") and len(word) > 6:
        found += [word[:-2], word[:-4]]
    elif word.endswith("ly") and len(word) > 5:
        found.append(word[:-2])
    elif not word.endswith("s") and len(word) > 2 and word.isalpha():
        found.append(word + "s")
    return tuple(dict.fromkeys(found))


def _of_doer(word: str) -> list[str]:
    """Return what a person's calling or an adjective of matter is named after: electrician, electrical; plumber, plumbing; wooden, wood."""
    for ending, others in _CALLINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return [word.removesuffix(ending) + other for other in others]
    return []


_CALLINGS = (
    ("ician", ("ical", "ics")), ("ist", ("ics", "y")), ("ier", ("ing",)), ("er", ("ing", "ery")), ("en", ("",)),
)  # fmt: skip


def written(part: Sequence[Token]) -> Iterator[str]:
    """Yield how the words of `part` may be written in the data, as typed first."""
    words = [token.word for token in part]
    text = " ".join(words)
    yield text
    yield " ".join([*words[:-1], lemma(words[-1])])
    if len(part) == 1 and part[0].kind in ("word", "code"):
        yield from forms(words[0])
    elif part[0].kind == "number":
        yield "-".join(words[:2]) + "".join(f" {word}" for word in words[2:])
    elif "-" in text:
        yield text.replace("-", " ")
    elif len(part) == 2:
        yield "-".join(words)


def standing(tokens: list[Token], loose: list[bool]) -> Iterator[str]:
    """Yield states of two or three words that begin with a small one: 'in force', 'on hold', 'out of stock'."""
    for place, token in enumerate(tokens[:-1]):
        following = tokens[place + 1]
        if token.kind != "word" or token.word not in _STANDING or following.kind != "word" or following.text[:1].isupper():
            continue
        if token.word == "up" and following.word == "to" and place + 2 < len(tokens) and tokens[place + 2].kind == "word":
            yield f"up to {tokens[place + 2].word}"
        if token.word == "out" and following.word == "of" and place + 2 < len(tokens):
            yield f"out of {tokens[place + 2].word}"
        if following.word in _DETERMINERS or following.word in PREPOSITIONS or following.word in MONTHS or following.word in WEEKDAYS:
            continue
        if following.word in FILLERS and place and tokens[place - 1].word in _BE:
            yield following.word  # are on hold: HOLD
        if loose[place + 1] or (following.word in FILLERS and place and (tokens[place - 1].word in _BE or _ends(tokens, place + 2))):
            yield f"{token.word} {following.word}"


def _ends(tokens: list[Token], place: int) -> bool:
    """Say whether a clause ends at `place`: jobs on hold."""
    return place >= len(tokens) or tokens[place].kind in ("comma", "stop")


def is_standing(part: Sequence[Token]) -> bool:
    """Say whether words may be such a state, though each of them says nothing by itself."""
    return len(part) in (2, 3) and part[0].word in _STANDING and part[-1].word not in PREPOSITIONS
