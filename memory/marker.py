"""`[NEED_CONTEXT: keyword]`: how a model that calls no tools asks for earlier messages. Found, taken out, held back."""

import re
from dataclasses import dataclass

DRAFT_CHARS = 160
"""Characters of an answer that are not shown before it is sure that no marker follows a short draft."""
KEYWORD_CHARS = 200
LOOSE_CHARS = 256
"""Most blanks, quotes and emphasis before a marker that are held back with it."""

_SPACE = r"\s{0,8}"
# Each step of a marker's beginning, in order: as soon as the colon is there it is a marker, whatever follows.
_STEPS = [r"[\[［【]", _SPACE, *"NEED", r"[\s_\-－＿]{0,3}", *"CONTEXT", _SPACE, r"[:：]"]
_BEGINNING = re.compile("".join(_STEPS), re.IGNORECASE)
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
_LOOSE = {*_PAIRS, *_PAIRS.values()}
"""What may be tidied away with a marker that follows it, besides white space."""


def _unfinished() -> re.Pattern[str]:
    """Return a pattern of a text's end that could still become a marker: any number of its steps, then nothing."""
    pattern = r"\Z"
    for step in reversed(_STEPS[1:]):
        pattern = rf"(?:\Z|{step}{pattern})" if step.startswith("[") or len(step) == 1 else rf"{step}{pattern}"
    return re.compile(_STEPS[0] + pattern, re.IGNORECASE)


_UNFINISHED = _unfinished()


@dataclass(frozen=True)
class Marker:
    """A marker in a text, from `start` up to `end`. The keyword may be empty."""

    keyword: str
    start: int
    end: int


def find(text: str) -> Marker | None:
    """Return the first marker of a text.

    Case, blanks and full-width brackets do not matter. A marker that is not closed ends with its line, for nobody is to
    be shown half of one.
    """
    begun = _BEGINNING.search(text)
    if begun is None:
        return None
    rest = _REST.match(text, begun.end())
    assert rest is not None, "the pattern matches an empty rest"
    return Marker(" ".join(rest[1].split()).strip(_QUOTES), begun.start(), rest.end())


def without(text: str) -> str:
    """Return a text without its markers and the quotes or emphasis right around them, the white space tidied there."""
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


class MarkerScanner:
    """Show a streamed answer, but no marker and no short draft before one, however the pieces are cut.

    While no marker was seen, the first `DRAFT_CHARS` characters wait; past them all flows but an end that could begin a
    marker, with the blanks and quotes before it. Once a marker was seen nothing more is shown.
    """

    def __init__(self, draft_chars: int = DRAFT_CHARS) -> None:
        self._draft_chars = draft_chars
        self._shown: list[str] = []
        self._held = ""
        self._seen = False
        self._length = 0

    def feed(self, piece: str) -> str:
        """Take a piece and return what may be shown now."""
        self._held += piece
        self._length += len(piece)
        self._seen = self._seen or _BEGINNING.search(self._held) is not None
        if self._seen or self._length <= self._draft_chars:
            return ""
        until = _safe(self._held)
        released, self._held = self._held[:until], self._held[until:]
        self._shown.append(released)
        return released

    def close(self) -> tuple[str, Marker | None]:
        """Return what was not shown, without markers, and the first marker of the whole; no piece may be fed after."""
        shown, whole = "".join(self._shown), self.whole
        tidy = without(whole)
        # Only where taking markers out makes a new one of what stood around them is the shown part not the beginning.
        return (tidy[len(shown) :] if tidy.startswith(shown) else without(self._held)), find(whole)

    @property
    def whole(self) -> str:
        """Return all that was fed."""
        return "".join(self._shown) + self._held


def _safe(text: str) -> int:
    """Return up to where no character can still belong to a marker, or be tidied away with one."""
    begun = _UNFINISHED.search(text)
    until = begun.start() if begun else len(text)
    # Of a long run of blanks only the end waits: what is held stays short, and each piece costs the same.
    while until > len(text) - LOOSE_CHARS and until and (text[until - 1] in _LOOSE or text[until - 1].isspace()):
        until -= 1
    return until
