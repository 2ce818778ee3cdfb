"""Make text safe for a terminal, and tell its language."""

import json
import re
from collections.abc import Mapping
from typing import Any

# C0 but tab and line feed, DEL, C1 (0x9b opens an escape sequence too), marks that reorder text, what has no width, hidden tags,
# halves of surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def clean(text: str) -> str:
    """Return text without control characters: each is shown as its picture (␛ for escape), so nothing hides."""
    return _UNSAFE.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return "" if code == 0x0D else chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def clean_line(text: str, most: int = 500) -> str:
    """Return text as one safe line of at most `most` characters."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def json_line(data: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return one line of JSON in which every unsafe character is escaped, with `ascii_only` every one beyond ASCII."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(data, ensure_ascii=ascii_only))


def language_of(text: str) -> str:
    """Return "zh" for text with Chinese characters, else "en"."""
    return "zh" if _CJK.search(text) else "en"
