"""Compare short texts by the words they share, without a model: English words, numbers, Chinese two characters at a time."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

Words = Mapping[str, float]
"""What a text is about: each term with its weight."""

_PIECE = re.compile(r"[^\W\d_\u3400-\u9fff]{2,}|\d+|[\u3400-\u9fff]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON = """
a about all also an and any are as at be been by can could did do does each every for from get give had has have how i if in
into is it its just let list look many me more most much my no not now number of on one only or our out per please same select
show so some tell than that the their them then there these they this those to total top up us was we were what when where
which while who why will with would you your order group join limit count sum avg min max null true false word words question
questions answer
多少 哪些 哪个 什么 怎么 怎样 如何 请问 列出 显示 告诉 一下 我们 你们 它们 这个 那个 这些 那些 可以 是否 有没 没有 每个 各个 所有
分别 一共 总共 几个 数量 的是 是多 少个 有多 有哪 的数 是什 时候 为什 给我 帮我 看看 最多 最少 个数
"""
_STOP = frozenset(_COMMON.split())
_PARTICLES = frozenset("的了吗呢")


def fold(text: str) -> str:
    """Return a text as two writings of it have it in common: full width, case and white space folded."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def terms(text: str) -> list[str]:
    """Return a text's content words: English ones stemmed lightly, identifiers in parts, Chinese as bigrams."""
    return [term for term, _ in _content(text)]


def keywords(texts: Iterable[str], most: int) -> list[str]:
    """Return the words that name what the texts are about, the most frequent first, each in one of its written forms.

    A pair of Chinese characters must come up twice: of the pairs in a run half are no words.
    """
    seen: Counter[str] = Counter()
    written: dict[str, str] = {}
    for text in texts:
        for term, word in _content(text):
            seen[term] += 1
            written.setdefault(term, word)
    telling = [term for term, n in seen.most_common() if not term.isdigit() and (n > 1 or not _is_chinese(term))]
    return [written[term] for term in telling[:most]]


def _content(text: str) -> Iterator[tuple[str, str]]:
    for piece in _PIECE.findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text))):
        if _is_chinese(piece):
            yield from ((pair, pair) for pair in _bigrams(piece) if pair not in _STOP and not set(pair) & _PARTICLES)
        elif (word := piece.casefold()) not in _STOP:
            yield _stem(word), word


def words(*weighted: tuple[str, float]) -> Words:
    """Return the terms of some texts, each with the weight of the weightiest text it stands in."""
    found: dict[str, float] = {}
    for text, weight in weighted:
        for term in terms(text):
            found[term] = max(found.get(term, 0.0), weight)
    return found


def rarity(texts: Iterable[Words]) -> dict[str, float]:
    """Return how telling each term is among these texts: one that stands in all of them tells little."""
    of = list(texts)
    seen = Counter(term for text in of for term in text)
    return {term: math.log(1 + len(of) / n) for term, n in seen.items()}


def overlap(part: Words, whole: Words, telling: Mapping[str, float]) -> float:
    """Return how much of `part` stands in `whole`, 0 to 1; a text of one word proves little and scores below 0.5."""
    size = sum(weight * telling.get(term, 1.0) for term, weight in part.items())
    shared = sum(min(weight, whole[term]) * telling.get(term, 1.0) for term, weight in part.items() if term in whole)
    return shared / (size + 1.0) if size else 0.0


def _is_chinese(text: str) -> bool:
    return "\u3400" <= text[0] <= "\u9fff"


def _bigrams(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _stem(word: str) -> str:
    for end, instead in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ations", "ate"),
        ("ation", "ate"),
        ("ing", ""),
        ("ed", ""),
        ("es", "e"),
        ("s", ""),
    ):
        if word.endswith(end) and len(word) - len(end) + len(instead) >= 3 and not word.endswith("ss"):
            return (word[: -len(end)] + instead).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word
