"""Let a dictionary explain what our own Chinese words leave open: kept is only what the schema has a name for, or the data a value."""

from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Final

from longtable.app.offline.cedict import kindred, meanings, words_in
from longtable.app.offline.chinese_cut import RUN, cuts
from longtable.app.offline.chinese_fit import Schema, fit
from longtable.app.offline.lexicon import GENDERS, REVENUE, UNIT_WORDS
from longtable.app.offline.lexicon_measures import DIMENSIONS
from longtable.app.offline.lexicon_zh import LEXICON, PLAIN, STATE_WORDS
from longtable.app.offline.text import lemma

_NAMED: Final = 0.82  # a synonym of a name of two words; nearer by spelling alone is not enough
_NEAR: Final = 0.94
_SURE: Final = 0.75
_HEAD: Final = 0.03
_MOST: Final = 3
_AGENTS: Final = "者员师商"  # 影评 before 人 or 者 is whoever does it, not the thing
_READ_ELSEWHERE: Final = frozenset([*REVENUE, *GENDERS, *UNIT_WORDS, *DIMENSIONS])  # English that needs no name of the schema


def explained(question: str, lexicon: dict[str, str], schema: Schema, found: Container[str]) -> dict[str, str]:
    """Return words of the dictionary with the English that the schema or the data has; what has none there stays whole, unknown."""
    more: dict[str, str] = {}
    for word, whole in _open_words(question, lexicon, schema, found):
        english = linked(word, schema) or next((gloss for gloss in meanings(word) if gloss in found), "") or _by_tail(word, schema)
        if english or (whole and word not in lexicon):
            more[word] = english or f"\0{word}"
    return more


def _by_tail(word: str, schema: Schema) -> str:
    """Return the English of the own word that closes a compound: a 发电站 is a 电站."""
    tails = (word[place:] for place in range(1, len(word) - 1))
    options = (option for tail in tails for option in LEXICON.get(tail, ()) if tail not in PLAIN)
    return next((option for option in options if fit(option, schema) >= _NAMED), "")


def values_of(question: str, lexicon: dict[str, str], schema: Schema) -> list[str]:
    """Return the English values that unexplained words may stand for."""
    words = [word for word, _ in _open_words(question, lexicon, schema, ()) if not linked(word, schema)]
    return [gloss for word in words for gloss in meanings(word)[:_MOST]]


@lru_cache(maxsize=4_096)
def linked(word: str, schema: Schema) -> str:
    """Return the gloss of a word that a name of the schema holds; a gloss of a near word where none of its own does."""
    own = [(fit(gloss, schema) - 0.01 * place, gloss) for place, gloss in enumerate(meanings(word))]
    own += [(fit(head, schema) - _HEAD, head) for gloss in meanings(word) if " " in gloss for head in [gloss.split()[-1]]]
    score, gloss = max(own, default=(0.0, ""))
    if score >= _NAMED:
        return gloss
    score, gloss = max(((fit(gloss, schema), gloss) for gloss in kindred(word) if " " not in gloss), default=(0.0, ""))
    return gloss if score >= _NEAR else ""


def _open_words(question: str, lexicon: dict[str, str], schema: Schema, found: Container[str]) -> Iterator[tuple[str, bool]]:
    """Yield the dictionary's words over what no own word explains, longest first, and whether they keep to the bounds of own words."""
    longest = max(map(len, lexicon), default=1)
    for match in RUN.finditer(question):
        run = match.group(0)
        places = cuts(run, lexicon, longest)
        unknown = {start for start, end in places if run[start:end] not in lexicon}
        open_ = unknown | {each for start, end in places if unnamed(run[start:end], lexicon, schema, found) for each in range(start, end)}
        if not open_:
            continue
        bounds = {place for each in places for place in each}
        for start, end in sorted(words_in(run), key=lambda each: each[0] - each[1]):
            word, after = run[start:end], run[end : end + 1]
            if after and (after in _AGENTS or (after == "人" and run[end : end + 2] not in ("人数", "人次"))):
                continue
            if open_.isdisjoint(range(start, end)) or (word in lexicon and not unnamed(word, lexicon, schema, found)):
                continue
            yield word, start in bounds and end in bounds


def unnamed(word: str, lexicon: dict[str, str], schema: Schema, found: Container[str]) -> bool:
    """Say whether an own word names a thing that neither the schema nor the data has."""
    english = lexicon.get(word, "")
    if not english or not english.isascii() or english.endswith("~") or word in PLAIN or word in STATE_WORDS or "" in LEXICON.get(word, ()):
        return False
    if not english.islower() or english.endswith("ed") or not _READ_ELSEWHERE.isdisjoint(map(lemma, english.split())):
        return False
    return english not in found and fit(english, schema) < _SURE
