"""Find out how the text of a file is encoded.

UTF-8 and UTF-16 are found by their own rules. Latin encodings are told apart by the letters that
languages use. Chinese, Japanese, Korean, Cyrillic and Greek are found by charset-normalizer.
"""

import re
from contextlib import suppress
from pathlib import Path

from charset_normalizer import from_bytes

HEAD_BYTES = 1_000_000
"""How many bytes at the start of a file decide its encoding if the file is not UTF-8."""
MOST_SAMPLE = 50_000
"""The most bytes that are examined, all from lines with bytes beyond ASCII."""
MOST_CONTROL = 0.01
"""The share of control characters above which a file is not text."""
LIKELY_CHAOS = 0.1
"""Limit on `chaos`, charset-normalizer's measure of disorder. Below this limit an encoding may be
the right one.
"""
LEAST_PAIRED = 0.5
"""In Chinese, Korean and most Japanese text, bytes beyond ASCII come in pairs; in Latin text they
come alone. At least this share of the bytes must come in pairs for such an East Asian encoding.
"""
FEW_BYTES = 8
"""With fewer bytes beyond ASCII than this, only Chinese and Latin text are told apart."""
BROKEN = "UTF-8 with wrong bytes"

_CODECS = {
    "": "utf-8-sig",
    BROKEN: "utf-8-sig",
    "Windows-1252": "cp1252",
    "Windows-1250": "cp1250",
    "Windows-1254": "cp1254",
    "Windows-1251": "cp1251",
    "Windows-1253": "cp1253",
    "Shift-JIS": "cp932",
    "EUC-JP": "euc_jp",
    "EUC-KR": "cp949",
    "Big5": "big5",
    "GB18030": "gb18030",
}
"""Python's names of encodings that have another name for people."""

_EAST_ASIAN = ("Shift-JIS", "EUC-JP", "EUC-KR", "Big5", "GB18030")
_OTHER_SCRIPTS = ("Windows-1251", "Windows-1253")

# What each language writes beyond ASCII, in small letters. The first line decides a draw.
_LETTERS = {
    "Windows-1252": (
        "äöüß",
        "àâæçéèêëîïôœùûüÿ",
        "áéíñóúü¿¡ªº",
        "àáâãçéêíóôõúüªº",
        "àèéìíòóùú",
        "åäöé",
        "æøåéäö",
        "áðéíóúýþæö",
        "éëïóöü",
    ),
    "Windows-1250": (
        "ąćęłńóśźż",
        "áčďéěíňóřšťúůýž",
        "áäčďéíĺľňóôŕšťúýž",
        "áéíóöőúüű",
        "čćđšž",
        "ăâîşţ",
    ),
    "Windows-1254": ("çğıöşüâîûİ",),
}
_KANA = re.compile(r"[\u3040-\u30ff]")
"""Matches Japanese letters. The same bytes may also be rare syllables of Korean."""
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x19\x1c-\x1f\x7f\ufffd]")
"""Matches control characters, and what cannot be decoded."""
_SIGNS = "°²³µ£€§±·×½¼¾´¨"
"""Signs that are not letters. If a sign stands just before a letter, it is more likely a letter
that was written in another encoding.
"""
_SIGN = re.compile(rf"[{_SIGNS}](?![^\W\d_])|[–—…‘’‚“”„«»©®™\u00a0]")


class NoTextError(ValueError):
    """The bytes of a file are not text."""


def codec_of(encoding: str) -> str:
    """Return Python's name of an encoding."""
    return _CODECS.get(encoding, encoding)


def encoding_of(file: Path) -> str:
    """Return the name of a text file's encoding, "" for UTF-8. Raises `NoTextError` if the file is
    not text.
    """
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or 4 * head.count(b"\0") > len(head):
        encoding = _utf_16(head)
        decoded = head.decode(codec_of(encoding), "replace")
        _require_text(len(_NO_TEXT.findall(decoded)), len(decoded))
        return encoding
    _require_text(len(re.findall(rb"[\x00-\x08\x0e-\x19\x1c-\x1f\x7f]", head)), len(head))
    with suppress(UnicodeError), file.open(encoding="utf-8") as text:
        while text.read(1_000_000):
            pass
        return ""
    signs = head.decode("utf-8", "replace")
    if signs.count("\ufffd") <= 3 * sum("\x7f" < sign < "\ufffd" for sign in signs):
        return BROKEN
    return _eight_bit(_sample(head))


def _require_text(controls: int, length: int) -> None:
    """Raise `NoTextError` if too many of the characters are control characters."""
    if controls > MOST_CONTROL * length:
        raise NoTextError(
            f"it is no text: {controls:,} of its first {length:,} characters are control characters."
            " Save it as CSV again, or give it the ending of what it is"
        )


def _utf_16(head: bytes) -> str:
    if head.startswith(b"\0"):
        return "UTF-16-BE"
    return "UTF-16" if head[0] > 0xF0 else "UTF-16-LE"


def _sample(head: bytes) -> bytes:
    """Return up to about `MOST_SAMPLE` bytes of the lines that have bytes beyond ASCII."""
    lines = [line for line in head.splitlines(keepends=True) if not line.isascii()]
    sample = b""
    for line in lines:
        sample += line
        if len(sample) >= MOST_SAMPLE:
            break
    return sample


def _eight_bit(sample: bytes) -> str:
    """Return the encoding that explains the bytes best. If several Latin encodings are equally
    good, Windows-1252 wins.
    """
    explained = {name: _explained(sample, name) for name in _LETTERS}
    latin = max(explained, key=lambda name: explained[name])
    beyond = len(re.findall(rb"[\x80-\xff]", sample))
    if explained[latin] == beyond:
        return latin
    names = (*_EAST_ASIAN, *_OTHER_SCRIPTS)
    codecs = {codec_of(name): name for name in names}
    matches = list(from_bytes(sample, cp_isolation=[*codecs, *map(codec_of, _LETTERS)]))
    pairs = re.findall(rb"[\x80-\xff]{2}", sample)
    paired = 2 * len(pairs) >= LEAST_PAIRED * beyond
    likely = [
        match
        for match in matches
        if match.chaos < LIKELY_CHAOS
        and (paired or codecs.get(match.encoding) not in _EAST_ASIAN or _KANA.search(str(match)))
    ]
    # Short texts of Chinese may be Korean as well: the one that was always read wins.
    likely.sort(key=lambda match: (-len(_KANA.findall(str(match))), match.encoding != "gb18030"))
    best = likely[0] if likely else None
    name = codecs.get(best.encoding, "") if best else ""
    if (name not in _EAST_ASIAN or beyond < FEW_BYTES) and _is_chinese(sample):
        return "GB18030"
    return name or latin


def _explained(sample: bytes, name: str) -> int:
    """Return how many characters beyond ASCII this encoding explains: signs, and letters of the one
    language that fits best.
    """
    text = sample.decode(codec_of(name), "replace")
    signs = len(_SIGN.findall(text))
    beyond = [letter for letter in text if letter > "\x7f"]
    counts = []
    for own in _LETTERS[name]:
        alphabet = own + own.upper()
        counts.append(sum(letter in alphabet for letter in beyond))
    return signs + max(counts)


def _is_chinese(sample: bytes) -> bool:
    """Return whether at least half of the bytes beyond ASCII are common Chinese characters, which
    are pairs of bytes from the first level of GB 2312.
    """
    pairs = re.findall(rb"[\xa1-\xfe]{2}", sample)
    common = [pair for pair in pairs if pair[0] <= 0xA3 or 0xB0 <= pair[0] <= 0xD7]
    return 4 * len(common) >= len(re.findall(rb"[\x80-\xff]", sample)) > 0
