"""Tables of rewriting rules: a pattern and what to put for it, applied in their order."""

import re
from collections.abc import Callable, Iterable

Plain = str | Callable[[re.Match[str]], str]
Rules = tuple[tuple[re.Pattern[str], Plain], ...]


def compiled(rows: Iterable[tuple[str, Plain]], flags: re.RegexFlag = re.IGNORECASE) -> Rules:
    """Compile a table; the case of letters does not count unless `flags` say so."""
    return tuple((re.compile(pattern, flags), plain) for pattern, plain in rows)


def rewritten(question: str, rules: Rules) -> str:
    """Apply the rules, one after the other, each wherever it fits."""
    for pattern, plain in rules:
        question = pattern.sub(plain, question)
    return question
