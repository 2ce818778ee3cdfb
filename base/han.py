"""Recognise Chinese and Japanese text, and split it into pairs of characters, for all searches.

English words are not handled here, because each search treats them differently. The search of
messages stems them, and stored word indexes hold the stems. The search of a schema only removes
plural endings.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters and Japanese kana, as the inner part of a regex character class."""

_HAN_TEXT = re.compile(f"[{HAN}]+")


def is_han(text: str) -> bool:
    """Return whether all characters of a text are Chinese characters or Japanese kana."""
    return _HAN_TEXT.fullmatch(text) is not None


def pairs_of(run: str) -> Iterator[str]:
    """Return each pair of neighbouring characters in a run of Chinese or Japanese text. Pairs stand
    for words, because such text has no blanks between words.
    """
    return map("".join, pairwise(run))
