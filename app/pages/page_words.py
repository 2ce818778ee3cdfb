"""The words of the web chat, in English and Chinese."""

import tomllib
from pathlib import Path
from typing import Literal

from starlette.requests import Request

Language = Literal["en", "zh"]
WORDS: dict[str, dict[str, str]] = tomllib.loads(
    (Path(__file__).parent / "page_words.toml").read_text(encoding="utf-8")
)


def page_word(key: str, language: str, **values: object) -> str:
    """Return the words of a key in this language, with `values` filled in."""
    words = WORDS[key]
    return words.get(language, words["en"]).format(**values)


def preferred_language(header: str) -> Language:
    """Return the language that a browser's Accept-Language header asks for first, of the two that
    the page speaks; English if it names neither.
    """
    ranked: list[tuple[float, int, Language]] = []
    for place, item in enumerate(header.split(",")[:20]):
        name, _, weight = item.strip().partition(";q=")
        spoken: Language | None = {"en": "en", "zh": "zh"}.get(name[:2].lower())  # type: ignore[assignment]  # one of two
        if spoken is not None:
            ranked.append((-_weight(weight), place, spoken))
    return min(ranked)[2] if ranked else "en"


def browser_language(request: Request) -> Language:
    """Return the language in which a request is answered: the one that its browser asks for."""
    return preferred_language(request.headers.get("accept-language", ""))


def _weight(text: str) -> float:
    """Return the weight of a language, from 0 to 1; 1 if none is written, 0 if it is no number."""
    if not text:
        return 1.0
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else 0.0
