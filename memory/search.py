"""Find original messages by their words (BM25, English and Chinese), with an excerpt around the
first match.
"""

import itertools
import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.rounds import all_calls
from longtable.memory.stamps import EXCLUDED, RECALLED, kind_of, speaker_of, turn_number

K1, B = 1.2, 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009; Lucene's defaults)."""

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUNS = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<number>\d+(?:,\d{{3}})*(?:\.\d+)?(?![^\W_{_HAN}]|_))|(?P<word>(?:(?![{_HAN}])\w)+)"
)
_PARTS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SUFFIX = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)

_ENGLISH = (
    "a an and are as at be been but by can could did do does for from had has have he her how i if"
    " in into is it its me my no not of on or our please she so than that the their them then there"
    " these they this those to us was we were what when where which who whom whose why will with"
    " would you your"
)
_CHINESE = (
    "的 了 是 在 和 与 有 吗 呢 吧 啊 我 你 他 她 它 们 这 那 就 也 都 很 请 把 被 什么 怎么 多少"
    " 哪些 哪个 一下 我们 你们 之前"
)
STOP = frozenset(f"{_ENGLISH} {_CHINESE}".split())
"""Words that say nothing of a message's matter: a query is searched without them, unless it has no
others.
"""


@dataclass(frozen=True)
class Original:
    """One message as it was said, with its place in the transcript, from 1."""

    number: int
    message: BaseMessage

    @property
    def turn(self) -> int:
        """Return the turn it was said in, 0 where no turn has accepted it."""
        return turn_number(self.message)


Hits = list[tuple[Original, float]]


@dataclass(frozen=True)
class Index:
    """An inverted index: for each term the messages that hold it, and how often. Build once, search
    from any thread.
    """

    originals: tuple[Original, ...]
    postings: "Mapping[str, tuple[array[int], array[int]]]"
    lengths: "array[int]"
    """Tokens of each message."""

    @classmethod
    def build(cls, originals: Iterable[Original]) -> "Index":
        """Index originals, in one pass. Messages that only bring earlier ones back and excluded
        ones are left out.
        """
        return cls((), {}, array("l")).extended(originals)

    def extended(self, originals: Iterable[Original]) -> "Index":
        """Return an index that also holds these originals, which come after its own; this one stays
        as it is.
        """
        added = (
            original
            for original in originals
            if kind_of(original.message) not in {RECALLED, EXCLUDED}
        )
        new = sorted(added, key=lambda original: original.number)
        postings = {
            term: (places[:], counts[:]) for term, (places, counts) in self.postings.items()
        }
        lengths = self.lengths[:]
        for place, original in enumerate(new, len(self.originals)):
            terms = Counter(
                tokens_of(f"{speaker_of(original.message)} {text_of(original.message)}")
            )
            lengths.append(terms.total())
            for term, times in terms.items():
                if term not in postings:
                    postings[term] = array("l"), array("l")
                places, counts = postings[term]
                places.append(place)
                counts.append(times)
        return type(self)((*self.originals, *new), postings, lengths)

    def search(self, query: str, limit: int) -> Hits:
        """Return the originals that share a term with the query, the best first, the newest first
        among equals.
        """
        scores: dict[int, float] = {}
        average = sum(self.lengths) / max(1, len(self.lengths)) or 1.0
        for term in self._wanted(query):
            places, counts = self.postings[term]
            weight = math.log(1 + (len(self.originals) - len(places) + 0.5) / (len(places) + 0.5))
            for place, times in zip(places, counts, strict=True):
                share = (
                    times * (K1 + 1) / (times + K1 * (1 - B + B * self.lengths[place] / average))
                )
                scores[place] = scores.get(place, 0.0) + weight * share
        best = sorted(scores.items(), key=lambda hit: (-hit[1], -hit[0]))
        return [(self.originals[place], score) for place, score in best[: max(0, limit)]]

    def _wanted(self, query: str) -> list[str]:
        """Return the query's terms that are indexed. A Chinese character counts alone only where no
        pair with it does.
        """
        terms = set(tokens_of(query))
        known = sorted(terms & self.postings.keys())
        telling = [term for term in known if term not in STOP] or known
        paired = {
            character
            for term in {*telling, *(terms & STOP)}
            if re.fullmatch(f"[{_HAN}]{{2}}", term)
            for character in term
        }
        return [term for term in telling if term not in paired]


def in_turns(
    originals: Iterable[Original], from_turn: int | None = None, to_turn: int | None = None
) -> list[Original]:
    """Return the originals of these turns, both ends included; None leaves an end open."""
    low = -math.inf if from_turn is None else from_turn
    high = math.inf if to_turn is None else to_turn
    return [original for original in originals if low <= original.turn <= high]


def text_of(message: BaseMessage) -> str:
    """Return what a message can be found by: its text, and the names and arguments of its calls."""
    text = str(message.text)
    calls = all_calls(message) if isinstance(message, AIMessage) else []
    if not calls:
        return text
    call_lines = [f"{call['name']}: {', '.join(map(str, call['args'].values()))}" for call in calls]
    return "\n".join([text, *call_lines] if text else call_lines)


def fold(text: str) -> str:
    """Return a text with full width, case and white space folded: equal for two writings of the
    same.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def tokens_of(text: str) -> list[str]:
    """Return a text's terms, whatever the case and width.

    English words lightly stemmed, numbers without thousands commas, identifiers whole and split on
    case, underscores and digits, Chinese as pairs of characters and single characters.
    """
    tokens: list[str] = []
    for run in _RUNS.finditer(_SUFFIX.sub("", unicodedata.normalize("NFKC", text))):
        word = run.group()
        if run.lastgroup == "han":
            tokens += word
            tokens += map("".join, itertools.pairwise(word))
        elif run.lastgroup == "number":
            tokens.append(word.replace(",", ""))
        else:
            tokens += _word(word)
    return tokens


@lru_cache(maxsize=16_384)
def _word(word: str) -> tuple[str, ...]:
    parts = [part for part in _PARTS.findall(word) if len(part) > 1 or len(word) == 1]
    if parts == [word]:
        return (stem(word.casefold()),)
    return (word.casefold(), *(stem(part.casefold()) for part in parts))


def stem(word: str) -> str:
    """Take plural, -ing, -ed and a last e off an English word, so that its forms meet; other words
    stay as they are.

    After Harman's S stemmer and the first step of Porter's; forms need only meet each other, not be
    words.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and re.search("[aeiouy]", base):
            word = f"{base}e" if re.fullmatch("[^aeiou]*[aeiouy][^aeiouwxy]", base) else base
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "aeious":
        word = word[:-1]
    return word[:-1] if len(word) > 5 and word.endswith("e") else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and word[-2] not in "suio":
        return word[:-1]
    return word
