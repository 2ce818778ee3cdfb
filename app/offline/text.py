"""Split a question into tokens and compare words: lemmas, stems, abbreviations, small typos."""

import re
from dataclasses import dataclass
from functools import lru_cache

from longtable.app.offline.lexicon import ABBREVIATIONS, IRREGULAR, SYNONYMS_OF
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES, EXPANDED, SQUARED
from longtable.app.offline.lexicon_zh import ENGLISH

_TOKEN = re.compile(
    r"""
    "(?P<q1>[^"]+)" | “(?P<q2>[^”]+)” | (?<![\w])'(?P<q3>[^']+(?:'[a-z][^']*)*)'(?!\w) | ‘(?P<q4>[^’]+)’
  | 「(?P<q5>[^」]+)」 | 《(?P<q6>[^》]+)》
  | (?P<date>\d{4}-\d{1,2}-\d{1,2})
  | (?P<season>(?:19|20)\d\d/\d{2}(?:\d\d)?(?![\d/]))
  | (?P<number>(?:(?<![^\s<>=于过到是为])-(?!\d{4}-\d))?
      (?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+))(?P<suffix>st|nd|rd|th|k|m|%|s)?(?![A-Za-z\d])
  | (?P<code>\d+[A-Za-z][\w\-]*)
  | (?P<symbol><=|>=|!=|<>|<|>|=|≥|≤)
  | (?P<title>(?:Dr|Mr|Mrs|Ms|Prof|St|[A-Z])\.(?=\s[^\W\d_a-z]))
  | (?P<firm>[A-Z][\w]*(?:\s&\s[A-Z][\w]*)+)
  | (?P<word>[^\W\d_][\w]*(?:[.&\-/][^\W_][\w]*)*(?:['’](?!s\b)[^\W\d_]+)?|_\w+)
  | (?P<clitic>['’]s\b)
  | (?P<comma>[,;，；、])
  | (?P<stop>[.?!。？！:：])
    """,
    re.VERBOSE,
)
_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Token:
    """One word, number, quoted text or mark of the question; `word` is lower case, `start` its place in the text."""

    text: str
    word: str
    kind: str
    start: int

    @property
    def is_name(self) -> bool:
        """Say whether it is written like a proper name or a code."""
        capital = self.text.isupper() and len(self.text) > 1 if self.start == 0 else self.text[:1].isupper()
        return self.kind in ("quoted", "code") or (self.kind == "word" and capital)


def is_chinese(text: str) -> bool:
    """Say whether the text holds Chinese characters."""
    return bool(_CJK.search(text))


def tokenize(text: str) -> list[Token]:
    """Split `text`; characters that belong to no token are dropped."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        tokens.extend(_token(match))
    return tokens


def _token(match: re.Match[str]) -> list[Token]:
    for group in ("q1", "q2", "q3", "q4", "q5", "q6"):
        if (quoted := match.group(group)) is not None:
            return [Token(quoted.strip(), quoted.strip().lower(), "quoted", match.start())]
    if (number := match.group("number")) is not None:
        return [_number(number, match.group("suffix") or "", match)]
    if (title := match.group("title")) is not None:
        return [Token(title, title.lower(), "word", match.start())]
    if (firm := match.group("firm")) is not None:  # Finch & Alder
        return [Token(firm, firm.lower(), "word", match.start())]
    if (season := match.group("season")) is not None:
        return [Token(season, season, "code", match.start())]
    for kind in ("date", "code", "symbol", "word", "comma", "stop"):
        if (found := match.group(kind)) is not None:
            return [Token(found, found.lower().replace("’", "'"), kind, match.start())]
    return []  # the clitic 's says nothing of its own


def _number(number: str, suffix: str, match: re.Match[str]) -> Token:
    plain = number.replace(",", "")
    if suffix == "s" and len(plain) == 4:
        return Token(match.group(0), plain, "decade", match.start())
    if suffix in ("k", "m"):
        value = float(plain) * (1_000 if suffix == "k" else 1_000_000)
        return Token(match.group(0), f"{value:g}" if value < 1e6 else str(int(value)), "number", match.start())
    return Token(match.group(0), plain, "ordinal" if suffix in ("st", "nd", "rd", "th") else "number", match.start())


@lru_cache(maxsize=20_000)
def lemma(word: str) -> str:
    """Return the singular of an English word, by rule."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= 3 or not word.isascii() or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith("uses") and len(word) > 5 and word[-5] not in "aoe":
        return word[:-2]  # campuses, bonuses
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


_SUFFIXES = (
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


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Return a rough stem, for words of one family (departed, departure, departing)."""
    base = lemma(word)
    if base.endswith("ure") and len(base) > 6:
        base = base[:-3]
    for suffix in _SUFFIXES:
        if base.endswith(suffix) and len(base) - len(suffix) >= (3 if suffix in ("ed", "ing", "e") else 4):
            base = base[: -len(suffix)]
            break
    if base.endswith("olut"):
        base = base[:-2] + "v"  # resolution, resolved
    if base.endswith("cript"):
        base = base[:-2] + "b"  # prescription, prescribed
    if len(base) > 4 and base[-1] == base[-2] and base[-1] not in "aeiousl":
        base = base[:-1]
    return base[:-1] + "y" if base.endswith("i") and len(base) > 4 else base


_INITIAL_NAMES = {"f": "first", "l": "last", "m": "middle"}  # f_nm, l_nm


@lru_cache(maxsize=20_000)
def split_name(name: str) -> tuple[str, ...]:
    """Split an identifier into lower-case words, and spell out what is abbreviated: perf_dt is (perf, date)."""
    words = tuple(part for word in parts_of(name) for part in _expanded(word).split())
    return (_INITIAL_NAMES[words[0]], "name") if len(words) == 2 and words[1] == "name" and words[0] in _INITIAL_NAMES else words


def _expanded(part: str) -> str:
    if part in EXPANDED or not part.endswith("s") or len(part) < 3:
        return EXPANDED.get(part, part)
    return f"{EXPANDED[part[:-1]]}s" if part[:-1] in EXPANDED and part not in ALTERNATIVES else part  # dys: days


@lru_cache(maxsize=20_000)
def parts_of(name: str) -> tuple[str, ...]:
    """Split an identifier into lower-case words as they are written: camelCase, underscores, blanks, digits."""
    name = _SQUARED.sub(lambda match: f"_{SQUARED[match.group(1).lower()].replace('3', '³')}_", name)
    return tuple(part.replace("³", "3") for part in _parts(name))


_SQUARED = re.compile(rf"(?<![^\W\d_])({'|'.join(sorted(SQUARED, key=len, reverse=True))})(?![^\W_])", re.IGNORECASE)


def _parts(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name)
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", spaced)
    return tuple(word.lower() for word in re.findall(r"m³|[^\W\d_]+|\d+", spaced))


@lru_cache(maxsize=200_000)
def likeness(word: str, name: str) -> float:
    """Compare a word of the question with one word of a schema name: 0 to 1."""
    first, second = lemma(word), lemma(name)
    if first == second:
        return 1.0
    if second in ABBREVIATIONS.get(first, ()):
        return 0.97
    if first in ALTERNATIVES.get(second, ()) or EXPANDED.get(first) == second:
        return 0.97
    if second == skeleton(first) and len(second) >= 3 and second not in IRREGULAR:
        return 0.95  # rsdnt, clnt: the vowels left out
    if len(second) >= 4 and (
        _squeezed(first, second) or skeleton(first).startswith(second) or _thinned(first, second) or _begun(first, second)
    ):
        return 0.9  # cmplt of complaint, cntm of contamination, pkup of pickup
    if len(second) == 3 and first[-1] == second[-1] and second not in EXPANDED and second not in ALTERNATIVES and _squeezed(first, second):
        return 0.86  # hrg of hearing: the table does not know it, and both ends agree
    if any(other in SYNONYMS_OF.get(first, ()) for other in ALTERNATIVES.get(second, ())):
        return 0.86  # residents: pop
    if len(second) >= 3 and len(first) >= len(second) + 2 and first.startswith(second) and "-" not in first and not _is_word(second):
        return 0.93  # dept, dep, temp, precip: the schema abbreviates
    if len(first) >= 3 and len(first) >= 0.5 * len(second) and second.startswith(first) and len(first) >= 4:
        return 0.8
    if stem(first) == stem(second) and len(stem(first)) >= 4:
        return 0.9
    if second in SYNONYMS_OF.get(first, ()):
        return 0.88
    return 0.8 if _one_typo(first, second) else 0.0


@lru_cache(maxsize=20_000)
def skeleton(word: str) -> str:
    """Return a word without the vowels after its first letter, doubled letters once."""
    bare = word[:1] + re.sub(r"[aeiou]", "", word[1:])
    return re.sub(r"(.)\1", r"\1", bare) if bare != word else ""


def _squeezed(word: str, short: str) -> bool:
    """Say whether `short`, consonants only, keeps the order and most of the consonants of `word`."""
    bare = skeleton(word)
    if not bare or set(short) & set("aeiou") or short[0] != bare[0] or len(short) < 0.6 * len(bare) or len(short) >= len(bare):
        return False
    rest = iter(bare)
    return all(letter in rest for letter in short)


def _thinned(word: str, short: str) -> bool:
    """Say whether `short` is `word` with its first vowel and some other letters left out before its last, none added."""
    if (word[0], word[-1]) != (short[0], short[-1]) or not 0.6 * len(word) <= len(short) < len(word) - 1:
        return False
    if word[1] not in "aeiou" or short[1] in "aeiou":
        return False
    rest = iter(word)
    return all(letter in rest for letter in short)


def _begun(word: str, short: str) -> bool:
    """Say whether `short` begins like `word` and goes on with its consonants alone: netwk of network."""
    if len(short) < 5 or short[:3] != word[:3] or word.startswith(short) or set(short[3:]) & set("aeiou") or len(short) < 0.6 * len(word):
        return False
    rest = iter(word[3:])
    return len(short) < len(word) and all(letter in rest for letter in short[3:])


def _is_word(start: str) -> bool:
    # "carrier" does not abbreviate to "car", nor "format" to "for": only prefixes that are no word of their own
    return start in {
        "car",
        "for",
        "cat",
        "pro",
        "per",
        "sea",
        "art",
        "act",
        "man",
        "pet",
        "one",
        "int",
        "cost",
        "year",
        "name",
        "user",
    }


@lru_cache(maxsize=50_000)
def _one_typo(first: str, second: str) -> bool:
    if min(len(first), len(second)) < 5 or abs(len(first) - len(second)) > 1 or not (first.isalpha() and second.isalpha()):
        return False
    if first in ENGLISH and second in ENGLISH:
        return False  # a store is no slip of the pen for a score
    allowed = 1 if min(len(first), len(second)) < 9 else 2
    return _distance(first, second, allowed) <= allowed and first[0] == second[0]


def _distance(first: str, second: str, limit: int) -> int:
    """Edit distance with transpositions, cut off past `limit`."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


_SMALL = frozenset(
    [
        "in",
        "at",
        "on",
        "for",
        "to",
        "from",
        "with",
        "and",
        "or",
        "the",
        "a",
        "an",
        "is",
        "are",
        "per",
        "each",
        "every",
        "total",
        "average",
        "all",
    ]
)


def abbreviates(words: tuple[str, ...], compact: str) -> bool:
    """Say whether `compact` is made of prefixes of all `words` in order: tailnum of (tail, number), mpg of (miles, per, gallon)."""
    if len(words) < 2 or _SMALL & set(words) or any(word.startswith(compact) for word in words):
        return False  # coaches charging: the coach alone says it
    return any(_is_solid(words, sizes) for sizes in _cuts(words, compact))


def _cuts(words: tuple[str, ...], compact: str) -> list[tuple[int, ...]]:
    """Return every way to cut `compact` into prefixes of the words, as sizes."""
    if not words:
        return [()] if compact == "" else []
    return [
        (size, *rest)
        for size in range(len(words[0]), 0, -1)
        if compact.startswith(words[0][:size])
        for rest in _cuts(words[1:], compact[size:])
    ]


def _is_solid(words: tuple[str, ...], sizes: tuple[int, ...]) -> bool:
    # initials need three words; one letter alone needs a whole word beside it (lname, dewp); else two letters of each, four in all
    if len(words) >= 3 and all(size == 1 for size in sizes):
        return True
    whole = any(size == len(word) for size, word in zip(sizes, words, strict=True))
    return sum(sizes) >= 4 and (whole or all(size >= 2 for size in sizes))
