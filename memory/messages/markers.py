"""The marker `[NEED_CONTEXT: keyword]` by which a model without tools asks for originals."""

import re
from dataclasses import dataclass

KEYWORD_CHARS = 200

_SPACE = r"\s{0,8}"

_EMPHASIS = r"[*_`]{0,3}"

_ANY_CASE = r"NEED[\s_\\\-－＿]{0,3}CONTEXT"

_AS_TOLD = r"(?:NEED\\?[_＿]CONTEXT|(?-i:NEED[\s_\\\-－＿]{0,3}CONTEXT))"


# As soon as the colon is there it is a marker, whatever follows. In square brackets any writing is
# one; elsewhere only the words as they were told: "I need context: ..." is what an answer says.
_BEGINNING = re.compile(
    rf"(?:(?P<square>[\[［【]){_SPACE}{_EMPHASIS}{_SPACE}{_ANY_CASE}"
    rf"|(?P<other>[(（<＜{{｛〔〖「『《〈]){_SPACE}{_EMPHASIS}{_AS_TOLD}"
    rf"|(?P<emphasis>{_EMPHASIS})(?<![A-Za-z0-9]){_AS_TOLD})"
    rf"{_EMPHASIS}{_SPACE}(?(other)[:：>＞]|[:：])(?P<ended>{_EMPHASIS})",
    re.IGNORECASE,
)

_SQUARE = "]］】"

_CLOSING = {
    "(": ")）",
    "（": ")）",
    "<": "<>＞",
    "＜": "<>＞",
    "{": "}｝",
    "｛": "}｝",
    "〔": "〕",
    "〖": "〗",
    "「": "」",
    "『": "』",
    "《": "》",
    "〈": "〉",
}
"""Closing brackets of a marker, by the kind of its opening bracket."""

_BARE = re.compile(rf"((?:(?![.!?](?:\s|$)|[。！？\r\n]).){{0,{KEYWORD_CHARS}}})")
"""A marker without brackets ends with its sentence."""

_QUOTES = "\"'`*“”‘’「」<> "


@dataclass(frozen=True)
class Marker:
    """A marker in a text, from `start` up to `end`. The keyword may be empty."""

    keyword: str
    start: int
    end: int


def find(text: str) -> Marker | None:
    """Return the first marker of a text.

    Case, blanks and the kind of brackets do not matter. A marker whose bracket is not closed ends
    with its line. A marker without brackets ends with its sentence.
    """
    begun = _BEGINNING.search(text)
    if begun is None:
        return None
    rest = _rest_of(begun).match(text, begun.end())
    assert rest is not None, "the pattern matches an empty rest"
    return Marker(" ".join(rest[1].split()).strip(_QUOTES), begun.start(), rest.end())


def _rest_of(begun: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern of what follows the beginning of a marker: the keyword and the end."""
    if begun["emphasis"] and not begun["ended"]:
        closing = begun["emphasis"][0]
    elif begun["emphasis"] is not None:
        return _BARE
    else:
        closing = _SQUARE if begun["square"] else _CLOSING[begun["other"]]
    closing = re.escape(closing)
    return re.compile(rf"([^{closing}\r\n]{{0,{KEYWORD_CHARS}}})(?:</?{_AS_TOLD}>|[{closing}]*)")


def keywords_in(text: str) -> list[str]:
    """Return the keywords of a text's markers, each once, in order."""
    keywords: list[str] = []
    while marker := find(text):
        keywords.append(marker.keyword)
        text = text[marker.end :]
    return list(dict.fromkeys(keywords))
