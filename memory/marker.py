"""`[NEED_CONTEXT: keyword]`: how a model that calls no tools asks for earlier messages."""

import re
from dataclasses import dataclass

KEYWORD_CHARS = 200

_SPACE = r"\s{0,8}"
# As soon as the colon is there it is a marker, whatever follows.
_BEGINNING = re.compile(
    rf"[\[［【]{_SPACE}NEED[\s_\-－＿]{{0,3}}CONTEXT{_SPACE}[:：]", re.IGNORECASE
)
_REST = re.compile(rf"([^\]］】\r\n]{{0,{KEYWORD_CHARS}}})[\]］】]?")
_QUOTES = "\"'`“”‘’「」<> "
_PAIRS = {
    "*": "*",
    "_": "_",
    "`": "`",
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "「": "」",
    "[": "]",
    "［": "］",
    "【": "】",
    "(": ")",
    "（": "）",
}


@dataclass(frozen=True)
class Marker:
    """A marker in a text, from `start` up to `end`. The keyword may be empty."""

    keyword: str
    start: int
    end: int


def find(text: str) -> Marker | None:
    """Return the first marker of a text.

    Case, blanks and full-width brackets do not matter. A marker that is not closed ends with its
    line, for nobody is to be shown half of one.
    """
    begun = _BEGINNING.search(text)
    if begun is None:
        return None
    rest = _REST.match(text, begun.end())
    assert rest is not None, "the pattern matches an empty rest"
    return Marker(" ".join(rest[1].split()).strip(_QUOTES), begun.start(), rest.end())


def keywords_in(text: str) -> list[str]:
    """Return the keywords of a text's markers, each once, in order."""
    keywords: list[str] = []
    while marker := find(text):
        keywords.append(marker.keyword)
        text = text[marker.end :]
    return list(dict.fromkeys(keywords))


def without(text: str) -> str:
    """Return a text without its markers and the quotes or emphasis right around them, the white
    space tidied there.
    """
    while marker := find(text):
        before, after = text[: marker.start], text[marker.end :]
        while before and after and _PAIRS.get(before[-1]) == after[0]:
            before, after = before[:-1], after[1:]
        text = _joined(before, after)
    return text


def _joined(before: str, after: str) -> str:
    left, right = before.rstrip(), after.lstrip()
    if not left or not right:
        return left or right
    gap = before[len(left) :] + after[: len(after) - len(right)]
    lines = min(2, gap.count("\n"))
    return left + ("\n" * lines or gap[:1]) + right
