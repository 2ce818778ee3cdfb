"""Chinese and Japanese text as the searches cut it: which characters, and in which pairs.

English words are cut by each search in its own way: the search of messages stems them, the search
of a schema knows plurals alone, and stored word indexes hold the former's stems.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters and Japanese kana, as a part of a character class of a pattern."""

_HAN_TEXT = re.compile(f"[{HAN}]+")


def is_han(text: str) -> bool:
    """Return whether a text is written in Chinese characters or Japanese kana throughout."""
    return _HAN_TEXT.fullmatch(text) is not None


def pairs_of(run: str) -> Iterator[str]:
    """Yield each two characters that follow one another: such text has no blanks between words."""
    return map("".join, pairwise(run))
