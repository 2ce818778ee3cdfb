"""Choose among the English words that a Chinese one may stand for: the one that the schema has a name for."""

from longtable.app.offline.lexicon_abbreviations import EXPANDED
from longtable.app.offline.lexicon_measures import UNIT_NAMES
from longtable.app.offline.lexicon_zh import ENGLISH
from longtable.app.offline.text import lemma, likeness, stem

Schema = tuple[tuple[str, ...], ...]
"""The words of each table's and column's name."""

_SMALL = frozenset(["not", "of", "on", "at", "in", "the"])


def fitting(options: tuple[str, ...], schema: Schema, found: frozenset[str] = frozenset()) -> str:
    """Return the option that the schema has a name for, or the data a value, the likeliest where several or none fit."""
    if len(options) == 1:
        return options[0]
    fits = [(fit(option, schema) - 0.02 * place, option) for place, option in enumerate(options)]
    best = max(fits, key=lambda each: each[0])
    held = next((option for option in options if option.lower() in found), "")
    if best[0] >= (0.9 if held else 0.75):
        return best[1]
    return held or (options[-1] if options[-1] == "" else options[0])


def fit(option: str, schema: Schema) -> float:
    """Return how well one name of the schema holds all words of an option: 0 to 1, and a little more for each word after the first."""
    words = [word for word in option.removeprefix("how many ").rstrip(" ~").split() if word not in _SMALL]
    if not words or option in ("how many", "which", "each"):
        return 0.0
    best = max((_held(words, name) for name in schema if name), default=0.0)
    return best + 0.03 * (len(words) - 1) if best else 0.0


def _held(words: list[str], name: tuple[str, ...]) -> float:
    """Compare the words of an option with a name: what closes the name counts for more than what only begins it."""
    score = min(max(_like(word, part) for part in name) for word in words)
    if not score:
        return 0.0
    core = [part for part in name if lemma(part) not in _LIGHT] or list(name)
    heads = score if len(core) == 1 else _like(words[-1], core[-1])
    return score - 0.02 * (len(name) - len(words)) - (0.04 if heads < 0.75 else 0.0)


def _like(word: str, part: str) -> float:
    """Compare two words; the home of homework is another word, not a short one of it, as delay is of delayed."""
    begun = word.startswith(part) and part in ENGLISH and part not in EXPANDED and stem(word) != stem(part)
    return 0.0 if begun and word != part else likeness(word, part)


_LIGHT = UNIT_NAMES | frozenset(
    ["id", "no", "number", "code", "name", "amount", "value", "date", "tbl", "master", "header", "count", "dim", "fact", "in", "on", "at"]
)


def is_name(word: str, schema: Schema) -> bool:
    return bool(word) and word.isascii() and word.islower() and fit(word, schema) >= 0.85
