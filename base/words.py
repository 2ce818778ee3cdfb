"""Words of English and Chinese text, for every search: of messages, of schemas and of knowledge.

The search of a schema knows only plurals of English words; the others stem them, and stored word
indexes hold these stems.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters and Japanese kana, as the inner part of a regex character class."""

_HAN_TEXT = re.compile(f"[{HAN}]+")
_RUNS = re.compile(
    rf"(?P<han>[{HAN}]+)|(?P<number>\d+(?:,\d{{3}})*(?:\.\d+)?(?![^\W_{HAN}]|_))|(?P<word>(?:(?![{HAN}])\w)+)"
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
"""Words that say nothing about the subject of a text. They are left out of a query unless it has no
others.
"""


def is_han(text: str) -> bool:
    """Return whether all characters of a text are Chinese characters or Japanese kana."""
    return _HAN_TEXT.fullmatch(text) is not None


def pairs_of(run: str) -> Iterator[str]:
    """Return each pair of neighbouring characters in a run of Chinese or Japanese text. Pairs stand
    for words, because such text has no blanks between words.
    """
    return map("".join, pairwise(run))


def fold(text: str) -> str:
    """Return a text with full-width characters, case and white space normalised, so that variants
    of the same text become equal.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def tokens_of(text: str) -> list[str]:
    """Return a text's terms, in lower case and normal width.

    English words are lightly stemmed. Numbers lose their thousands commas. Identifiers are terms as
    a whole and in parts, split at case, underscores and digits. Chinese text gives its single
    characters and its pairs of neighbouring characters.
    """
    tokens: list[str] = []
    for run in _RUNS.finditer(_SUFFIX.sub("", unicodedata.normalize("NFKC", text))):
        word = run.group()
        if run.lastgroup == "han":
            tokens += word
            tokens += pairs_of(word)
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
    """Return an English word without its plural ending, -ing, -ed and a last e, so that the forms
    of a word become equal. Words that are not English stay as they are.

    This follows Harman's S stemmer and the first step of Porter's. A stem need not be a word.
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
