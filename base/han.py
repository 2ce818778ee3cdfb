"""Split Chinese and Japanese text for the searches: which characters count, and in which pairs.

Each search treats English words in its own way. The search of messages stems them, and stored word
indexes hold these stems. The search of a schema knows only plurals.
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
    """Yield each pair of neighbouring characters, because such text has no blanks between words."""
    return map("".join, pairwise(run))
