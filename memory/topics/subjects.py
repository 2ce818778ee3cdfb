"""Compare texts by their content words."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping

from longtable.base.words import stem, tokens_of

Words = Mapping[str, float]
"""The subject of a text: each of its terms with its weight."""

_COMMON = """
a about all also an and any are as at be been by can could did do does each every for from get give
had has have how i if in into is it its just let list look many me more most much my no not now
number of on one only or our out per please same select show so some tell than that the their them
then there these they this those to total top up us was we were what when where which while who why
will with would you your order group join limit count sum avg min max null true false word words
question questions answer 多少 哪些 哪个 什么 怎么 怎样 如何 请问 列出 显示 告诉 一下 我们 你们 它们 这个 那个 这些 那些 可以 是否 有没 没有 每个 各个
所有 分别 一共 总共 几个 数量 的是 是多 少个 有多 有哪 的数 是什 时候 为什 给我 帮我 看看 最多 最少 个数
"""
_STOP = frozenset(stem(word) for word in _COMMON.split())
_PARTICLES = frozenset("的了吗呢")


def terms(text: str) -> list[str]:
    """Return a text's content words: lightly stemmed English words, identifiers as a whole and in
    parts, and pairs of neighbouring Chinese characters. Common words are left out.
    """
    # The digits of an identifier (q46) are no word beside it.
    all_terms = (
        term
        for before, term in itertools.pairwise(["", *tokens_of(text)])
        if not (term.isdigit() and before.endswith(term))
    )
    return [
        term
        for term in all_terms
        if len(term) > 1 and term not in _STOP and not _PARTICLES.intersection(term)
    ]


def keywords(texts: Iterable[str], most: int) -> list[str]:
    """Return the words that name the subject of the texts, the most frequent first.

    A pair of Chinese characters must occur twice, because half of the pairs in a run of characters
    are no words.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(term for term in terms(text) if not term.isdigit())
    return [term for term, n in counts.most_common() if n > 1 or term.isascii()][:most]


def words(*weighted: tuple[str, float]) -> Words:
    """Return the terms of some texts with their weights. A term has the largest weight of the texts
    that hold it.
    """
    weights: dict[str, float] = {}
    for text, weight in weighted:
        for term in terms(text):
            weights[term] = max(weights.get(term, 0.0), weight)
    return weights


def rarity(texts: Iterable[Words]) -> dict[str, float]:
    """Return a factor for each term of these texts: the fewer texts hold the term, the larger the
    factor.
    """
    whole = list(texts)
    counts = Counter(itertools.chain.from_iterable(whole))
    return {term: math.log(1 + len(whole) / n) for term, n in counts.items()}


def overlap(part: Words, whole: Words, telling: Mapping[str, float]) -> float:
    """Return the share of `part` that is in `whole`, from 0 to 1. Each term counts by its weight
    times its factor in `telling`. The share is reduced if `part` has little weight in total, such
    as a single word, because so little proves nothing.
    """
    size = sum(weight * telling.get(term, 1.0) for term, weight in part.items())
    shared = sum(
        min(weight, whole[term]) * telling.get(term, 1.0)
        for term, weight in part.items()
        if term in whole
    )
    return shared / (size + 1.0) if size else 0.0
