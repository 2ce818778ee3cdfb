"""Split a question into tokens, compare words with names, and hold the general vocabulary. The
vocabulary is in the files of `data/`, which are read on first use.
"""

import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

_TOKEN = re.compile(
    r"""
    "(?P<q1>[^"]+)" | “(?P<q2>[^”]+)” | (?<![\w])'(?P<q3>[^']+(?:'[a-z][^']*)*)'(?!\w) | ‘(?P<q4>[^’]+)’
  | 「(?P<q5>[^」]+)」 | 《(?P<q6>[^》]+)》
  | (?P<date>\d{4}-\d{1,2}-\d{1,2})
  | (?P<number>\$?(?!0\d)(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+))(?P<suffix>st|nd|rd|th|k|m|%)?(?![A-Za-z\d])
  | (?P<code>0\d[\w\-]*|\d+[A-Za-z][\w\-]*)
  | (?P<symbol><=|>=|!=|<>|<|>|=|≥|≤)
  | (?P<word>[^\W\d_][\w]*(?:[.&\-/][^\W_][\w]*)*(?:['’](?!s\b)[^\W\d_]+)?|_\w+)
  | (?P<clitic>['’]s\b)
  | (?P<comma>[,;，；、])
  | (?P<stop>[.?!。？！:：])
    """,
    re.VERBOSE,
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_ENDINGS = (
    "ments",
    "ations",
    "ation",
    "ating",
    "ated",
    "ates",
    "ate",
    "ment",
    "ings",
    "ing",
    "ions",
    "ion",
    "ally",
    "ers",
    "ors",
    "ed",
    "er",
    "or",
    "al",
    "ly",
    "es",
    "e",
    "s",
    "y",
)


@dataclass(frozen=True)
class Token:
    """One word, number, quoted text or punctuation mark. `text` is what the user wrote; `word` is
    the same in lower case and in English.
    """

    text: str
    word: str
    kind: str
    start: int = 0
    number: float | int = 0

    @property
    def is_name(self) -> bool:
        """Return whether the token is written like a proper name or a code."""
        capital = (
            self.text.isupper() and len(self.text) > 1
            if self.start == 0
            else self.text[:1].isupper()
        )
        return self.kind in ("quoted", "code") or (self.kind == "word" and capital)


def is_chinese(text: str) -> bool:
    """Return whether the text holds Chinese characters."""
    return bool(_CHINESE.search(text))


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text`. Characters that belong to no token are left out."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        quoted = next((match.group(f"q{n}") for n in range(1, 7) if match.group(f"q{n}")), None)
        if quoted is not None:
            tokens.append(Token(quoted.strip(), quoted.strip().lower(), "quoted", match.start()))
        elif match.group("number"):
            tokens.append(_number(match))
        elif kind := next(
            (
                kind
                for kind in ("date", "code", "symbol", "word", "comma", "stop")
                if match.group(kind)
            ),
            "",
        ):
            piece = match.group(kind)
            tokens.append(Token(piece, piece.lower().replace("’", "'"), kind, match.start()))
    return tokens


def _number(match: re.Match[str]) -> Token:
    suffix = match.group("suffix") or ""
    plain = match.group("number").replace(",", "").lstrip("$")
    value: float | int = float(plain) if "." in plain else int(plain)
    value *= {"k": 1_000, "m": 1_000_000}.get(suffix, 1)
    kind = "ordinal" if suffix in ("st", "nd", "rd", "th") else "number"
    return Token(
        match.group(0), plain, kind, match.start(), int(value) if value == int(value) else value
    )


# -- vocabulary ------------------------------------------------------------------------------------


def _read(name: str) -> str:
    return (resources.files("longtable.analyst") / "data" / name).read_text(encoding="utf-8")


class _Costs(dict[str, float]):
    def __getattr__(self, name: str) -> float:
        return self[name]


costs = _Costs(tomllib.loads(_read("prices.toml")))
"""Every price that the search uses, by its name. The file explains each of them."""


def read_lines(name: str) -> list[list[str]]:
    """Return the lines of a data file, each as a list of its fields. Lines that begin with # are
    comments and are left out.
    """
    return [
        line.split("\t") for line in _read(name).splitlines() if line and not line.startswith("#")
    ]


@dataclass(frozen=True)
class Unit:
    """A unit of measure. `dimension` is what it measures; `factor` is its size in the base unit of
    this dimension.
    """

    name: str
    dimension: str
    factor: float


@dataclass(frozen=True)
class Vocabulary:
    """The general vocabulary. It has no names of any schema."""

    phrases: dict[tuple[str, ...], tuple[str, str]]
    synonyms: dict[str, frozenset[str]]
    irregular: dict[str, str]
    abbreviations: dict[str, tuple[str, ...]]
    dimensions: dict[str, tuple[str, ...]]
    units: dict[str, Unit]
    lists: dict[str, frozenset[str]]
    maps: dict[str, dict[str, str]]
    aliases: dict[str, tuple[str, ...]]

    def events_of(self, word: str) -> set[str]:
        """Return the kinds of events that a word means, such as birth, start or order."""
        return {
            name
            for name, words in self.lists.items()
            if name.startswith("events.") and (word in words or lemma(word) in words)
        }


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary. The data files are read only once."""
    raw: dict[str, str] = tomllib.loads(_read("words.toml"))
    maps = {name: _pairs(words) for name, words in raw.items() if "=" in words}
    others: dict[str, set[str]] = defaultdict(set)
    for line in read_lines("synonyms.tsv"):
        row = line[0].split()
        for word in row:
            others[word].update(row)
    synonyms = {word: frozenset(row) - {word} for word, row in others.items()}
    units: dict[str, Unit] = {}
    for name, dimension, factor, forms in read_lines("units.tsv"):
        unit = Unit(name, dimension, float(factor))
        units |= dict.fromkeys((name, *forms.split()), unit)
    aliases: dict[str, tuple[str, ...]] = {}
    for names in read_lines("aliases.tsv"):
        aliases |= dict.fromkeys(names, tuple(names))
    return Vocabulary(
        _phrases(),
        synonyms,
        dict(read_lines("irregular.tsv")),
        {short: tuple(words.split("|")) for short, words in read_lines("abbreviations.tsv")},
        {name: tuple(words.split()) for name, words in read_lines("dimensions.tsv")},
        units,
        {name: frozenset(words.split()) for name, words in raw.items() if name not in maps},
        maps,
        aliases,
    )


def _pairs(words: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in words.split())


def _phrases() -> dict[tuple[str, ...], tuple[str, str]]:
    table: dict[tuple[str, ...], tuple[str, str]] = {}
    for dimension, *forms in read_lines("degrees.tsv"):
        for sign, (plain, more, most) in (("max", forms[:3]), ("min", forms[3:])):
            high, low = (">", "<") if sign == "max" else ("<", ">")
            other = "min" if sign == "max" else "max"
            table |= {
                (most,): ("sup", f"{sign}:{dimension}"),
                (more, "than"): ("cmp", f"{high}:{dimension}"),
            }
            table |= {
                ("most", plain): ("sup", f"{sign}:{dimension}"),
                ("least", plain): ("sup", f"{other}:{dimension}"),
            }
            table |= {
                ("more", plain, "than"): ("cmp", f"{high}:{dimension}"),
                ("less", plain, "than"): ("cmp", f"{low}:{dimension}"),
            }
            table |= {
                ("how", plain): ("howadj", dimension),
                (more,): ("cmp", f"{high}:{dimension}"),
            }
    for op, arg, phrases in read_lines("phrases.tsv"):
        table |= {tuple(phrase.split()): (op, arg) for phrase in phrases.split(",")}
    return {words: meaning for words, meaning in table.items() if "-" not in words}


# -- words -----------------------------------------------------------------------------------------


@lru_cache(maxsize=20_000)
def lemma(word: str) -> str:
    """Return the singular of an English word, by rules and a list of irregular words."""
    irregular = vocabulary().irregular
    if word in irregular:
        return irregular[word]
    if len(word) <= 3 or not word.isascii() or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zes")) or (
        word.endswith("uses") and len(word) > 5 and word[-5] not in "aoe"
    ):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


def is_plural(word: str) -> bool:
    """Return whether a word is a plural."""
    return lemma(word) != word


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a rough stem of a word. It is the same for related words such as departed, departure
    and departing.
    """
    base = lemma(word)
    if base.endswith("ure") and len(base) > 6:
        base = base[:-3]
    for suffix in _ENDINGS:
        if base.endswith(suffix) and len(base) - len(suffix) >= 3:
            base = base[: -len(suffix)]
            break
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiousl":
        base = base[:-1]
    return base[:-1] + "y" if base.endswith("i") and len(base) > 4 else base


@lru_cache(maxsize=20_000)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of an identifier in lower case, as they are written. It is split at
    camelCase, underscores, blanks and digits.
    """
    spaced = re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return tuple(word.lower() for word in re.findall(r"[^\W\d_]+|\d+", spaced))


@lru_cache(maxsize=20_000)
def expanded(name: str) -> tuple[str, ...]:
    """Return the words of an identifier, with abbreviations spelled out: `dep_dt` becomes
    (departure, date).
    """
    table = vocabulary().abbreviations
    parts = [table.get(part, (part,))[0] for part in split_name(name)]
    return tuple(" ".join(parts).split())


@lru_cache(maxsize=200_000)
def likeness(word: str, name: str) -> float:
    """Return how alike a word of the question and one word of a schema's name are, from 0 to 1."""
    vocab = vocabulary()
    first = lemma(word)
    second = lemma(name)
    shorter = len(second) <= len(first) - 2
    if first == second:
        return 1.0
    if first in vocab.abbreviations.get(second, ()) or second in vocab.abbreviations.get(first, ()):
        return 0.97
    if shorter and len(second) >= 3 and second == _without_vowels(first):
        return 0.95
    # dest, precip, temp: the schema abbreviates
    if shorter and len(second) >= 4 and first.startswith(second) and second not in vocab.synonyms:
        return 0.93
    if stem(first) == stem(second) and len(stem(first)) >= 4:
        return 0.9
    if second in vocab.synonyms.get(first, ()):
        return 0.88
    if len(first) >= 4 and second.startswith(first) and len(first) >= 0.5 * len(second):
        return 0.8
    return 0.0


def _without_vowels(word: str) -> str:
    """Return a word in a short form that names often have: without vowels after the first letter,
    and with double letters written once.
    """
    consonants = word[:1] + re.sub(r"[aeiou]", "", word[1:])
    return re.sub(r"(.)\1", r"\1", consonants)


def abbreviates(words: tuple[str, ...], compact: str) -> bool:
    """Return whether `compact` consists of the beginnings of all `words` in order, as `tailnum`
    does for (tail, number).
    """
    vocab = vocabulary()
    if len(words) < 2 or any(
        word.startswith(compact) or word in vocab.lists["grammar"] for word in words
    ):
        return False
    if any(vocab.phrases.get((word,), ("",))[0] in ("most", "sup", "top") for word in words):
        return False  # the most delays are no model
    return _cut(words, compact, whole=False, short=2)


def _cut(words: tuple[str, ...], compact: str, *, whole: bool, short: int) -> bool:
    """Return whether the beginnings of the words make up `compact`. It must contain at least one of
    the words in full (`whole`), or at least two letters of each word (`short` is the fewest so
    far).
    """
    if not words:
        return compact == "" and (whole or short >= 2)
    first, *rest = words
    for size in range(1, len(first) + 1):
        if not compact.startswith(first[:size]):
            return False
        is_whole = whole or size == len(first)
        if _cut(tuple(rest), compact[size:], whole=is_whole, short=min(short, size)):
            return True
    return False
