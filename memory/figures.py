"""Find the figures that a text claims, and every value each of them may stand for.

A figure is read in all the ways people write digits (1,234.5; 1 234,5; 1.234,5; １２３; 3.4k; 1250 万; 34 %; 3 成; 2.3 times). A
reading is an interval: what is written, and what rounds to it. Numbers written as words are not read.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MOST_FIGURES = 2_000
MOST_CHARS = 200_000

Kind = Literal["plain", "percent", "points", "times", "seconds"]


@dataclass(frozen=True)
class Reading:
    """One value a figure may stand for: what lies from `low` to `high`; percent as written (34), times in seconds."""

    low: float
    high: float
    kind: Kind = "plain"


SCALES = {
    "k": 1e3, "m": 1e6, "b": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "hundred": 1e2, "bn": 1e9,
    "mn": 1e6, "mm": 1e6, "mio": 1e6, "mln": 1e6, "tn": 1e12, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7,
    "十": 1e1, "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7, "亿": 1e8, "十亿": 1e9, "百亿": 1e10,
    "千亿": 1e11, "万亿": 1e12,
}  # fmt: skip
_SCALE = re.compile(
    r"(?:\s?(?P<word>thousand|million|billion|trillion|hundred|lakhs?|crores?|bn|mn|mm|mio|mln|tn|[KMB])(?![A-Za-z])"
    r"|(?P<letter>[kmb])(?![A-Za-z²³/])|\s?(?P<some>[多余几])?\s?(?P<chinese>万亿|千亿|百亿|十亿|千万|百万|十万|[亿万百]|千(?![克米瓦卡字])))",
    re.IGNORECASE,
)
UNIT = re.compile(
    r"\s?(?:(?P<points>percentage[\s-]points?|pp\b|(?:个)?百分点)|(?P<percent>%|percent\b|per\scent\b|pct\b)|(?P<mille>‰)"
    r"|(?P<basis>basis\spoints?|bps\b)|(?P<tenth>成(?P<half>五|半)?(?![功为了立本交员绩人年果长品都]))|(?P<times>-?fold\b|times\b|[x×](?![A-Za-z0-9])|倍)"
    r"|(?P<time>milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|毫秒|秒|分钟|个?小时|天|个?星期|周)(?![A-Za-z]))",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "mil": 0.001, "毫": 0.001, "s": 1.0, "秒": 1.0, "m": 60.0, "分": 60.0, "h": 3600.0, "小": 3600.0, "d": 86400.0,
            "天": 86400.0, "w": 604800.0, "周": 604800.0, "星": 604800.0}  # fmt: skip
_UP = re.compile(
    r"(?:over|(?:more|greater|higher|larger) than|above|at least|exceed(?:s|ed|ing)?|超过|多于|高于|大于|逾|至少|突破)\s?(?:the\s)?$",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"(?:nearly|almost|(?:just\s)?under|(?:less|fewer|lower|smaller) than|below|up to|at most|close to"
    r"|近|将近|接近|不到|不足|低于|少于|小于|至多)\s?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"(?:about|around|approximately|approx\.?|roughly|some|ca\.?|circa|or so|[~≈]|大?约为?|大概|差不多)\s?$", re.IGNORECASE)
_AFTER = re.compile(r"\s?(?:左右|上下|or so|以上|以下|(?P<more>\+|多(?![少万亿])|余(?![额下])))", re.IGNORECASE)


def magnitude(text: str, end: int) -> tuple[float, float, int, bool]:
    """Read what multiplies a number: (factor, what is added, end, "some more" said); 1亿2000万 is one number."""
    match = _SCALE.match(text, end)
    if match is None:
        return 1.0, 0.0, end, False
    word = match["word"] or match["letter"] or match["chinese"]
    if match["word"] and len(word) == 1 and word in "kmb" and text[match.start()] == " ":
        return 1.0, 0.0, end, False  # "5 m": metres
    scale, extra, stop = SCALES[word.lower()], 0.0, match.end()
    while match["chinese"] and (more := re.compile(r"零?(\d+)([万千百])").match(text, stop)):
        extra += int(more[1]) * SCALES[more[2]]
        stop = more.end()
    return scale, extra, stop, bool(match["some"])


def values(raw: str) -> list[tuple[float, int]]:
    """Return the ways to read digits with points, commas and blanks: (value, decimals)."""
    text = raw.replace(" ", "").replace("'", "")
    if "e" in text.lower():
        mantissa, _, power = text.lower().partition("e")
        return [(float(mantissa.replace(",", ".")) * 10.0 ** int(power), len(mantissa.partition(".")[2]) - int(power))]
    points, commas = text.count("."), text.count(",")
    if points and commas:
        decimal = max(text.rfind("."), text.rfind(","))
        whole, tail = re.sub(r"[.,]", "", text[:decimal]), text[decimal + 1 :]
        return [(float(f"{whole}.{tail}"), len(tail))]
    if not points and not commas:
        return [(float(text), 0)]
    mark = "." if points else ","
    groups = text.split(mark)
    thousands = (float("".join(groups)), 0)
    if len(groups) > 2:
        return [thousands]
    decimal_reading = (float(f"{groups[0] or '0'}.{groups[1]}"), len(groups[1]))
    if len(groups[1]) != 3 or len(groups[0]) > 3 or groups[0] in ("", "0"):
        return [decimal_reading]
    return [thousands, decimal_reading] if mark == "," else [decimal_reading, thousands]


def rounded(value: float, half: float, text: str, start: int, end: int, *, more: bool = False) -> tuple[float, float]:
    """Return what may be told as this figure here: rounding, and what "about", "over" and "nearly" allow."""
    if not math.isfinite(value):
        return math.inf, math.inf
    before, after = text[max(0, start - 24) : start], _AFTER.match(text, end)
    digits = f"{value:.0f}"
    unit = 10.0 ** (len(digits) - len(digits.rstrip("0"))) if half == 0.5 and value else 2 * half
    slack = half * (1 + 1e-9) + abs(value) * 1e-12
    if more or (after and after["more"]) or _UP.search(before) or (after and "以上" in after[0]):
        return value - slack, value + max(slack, min(unit, 0.2 * value), 0.1 * value)
    if _DOWN.search(before) or (after and "以下" in after[0]):
        return value - max(slack, min(unit, 0.2 * value), 0.1 * value), value + slack
    if after or _ABOUT.search(before):
        slack = max(slack, min(unit / 2, 0.1 * value))
    return value - slack, value + slack


def with_unit(low: float, high: float, unit: re.Match[str] | None) -> list[Reading]:
    if unit is None:
        return [Reading(low, high)]
    if unit["points"]:
        return [Reading(low, high, "points")]
    if unit["percent"]:
        return [Reading(low, high, "percent")]
    if unit["mille"]:
        return [Reading(low / 10, high / 10, "percent")]
    if unit["basis"]:
        return [Reading(low / 100, high / 100, "points")]
    if unit["tenth"]:
        extra = 5.0 if unit["half"] else 0.0
        return [Reading(low * 10 + extra, high * 10 + extra, "percent")]
    if unit["times"]:
        return [Reading(low, high, "times"), Reading(low, high)]
    factor = _factor(unit["time"])
    return [Reading(low, high), Reading(low * factor, high * factor, "seconds")]


def _factor(unit: str) -> float:
    name = unit.lower().removeprefix("个")
    return next(seconds for start, seconds in _SECONDS.items() if name.startswith(start))


_NUMBER_CELL = re.compile(r"\s*([-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*%?\s*")


def number_in(cell: object) -> float | None:
    """Return the number that a cell of a result is, also one kept as text ("2328.60", "53.57%"); None for any other."""
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        number = float(cell) if not isinstance(cell, int) or abs(cell) < 10**300 else math.inf
        return number if math.isfinite(number) else None
    if isinstance(cell, str) and len(cell) <= 40 and (match := _NUMBER_CELL.fullmatch(cell)):
        number = float(match[1].replace(",", ""))
        return number if math.isfinite(number) else None
    return None


# -- what looks like a figure and claims nothing ----------------------------------------------------------------------

BLANK = "\ufffc"
"""Stands where something was blanked out: no digit, no letter, no space."""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?"
    r"|Dec(?:ember)?)\.?"
)
_CURRENCY_CODES = "USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|CAD|AUD"
# A thing that is counted by its number, not by how many there are.
_NUMBERED = (
    r"(?:messages?|turns?|rows?|lines?|steps?|pages?|notes?|quer(?:y|ies)|figures?|sections?|questions?|options?|items?|chapters?|no\.|nr\.|#"
    r"|gates?|terminals?|flight|room|id)"
)

_PATTERNS = [
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"```.*?(?:```|\Z)", re.DOTALL),
        (r"`(?!\s*[-+$€£¥]?[\d.,\s]+%?\s*`)[^`\n]*`", 0),
        (r"https?://\S+|\b[\w.+-]+@[\w-]+\.\w+|(?<![\w/])(?:\.{0,2}/)[\w.-]+(?:/[\w.-]+)+", re.ASCII),
        # citations of messages and results
        (r"\[(?:[A-Za-z#][\w:#-]*\d[\w:-]*|\d{1,4})(?:\s*[,;–-]\s*(?:[A-Za-z#]*\d[\w:-]*))*\]", re.ASCII),
        (rf"\b{_NUMBERED}\s?#?\s?\d{{1,6}}\b(?![.,]?\d|\s?%)", re.IGNORECASE | re.ASCII),
        (r"(?:消息|轮次|步骤|编号|序号|航班|第)\s?#?\s?\d+", 0),
        # dates and times
        (r"(?<!\d)(?:1[5-9]|2[01])\d\d\s?年(?:\s?\d{1,2}\s?月(?:份|\s?\d{1,2}\s?[日号])?|\s?[前后上下]半年)?", 0),
        (
            r"(?<!\d)(?<!\d[.,])(?:1[5-9]|2[01])\d\d(?:([-/.])\d{1,2}\1\d{1,2}|[-/]\d\d)"
            r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?Z?)?(?![\d%])",
            0,
        ),
        (r"(?<!\d)(?<!\d[.,])\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d\d)(?!\d)", 0),
        (r"(?<!\d)(?<!\d[.,])\d{1,2}\s?月(?:份|\s?\d{1,2}\s?[日号])?", 0),
        (r"(?<!\d)(?<!\d[.,])\d{1,2}\s?[日号](?!均)", 0),
        (rf"(?<!\w){_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?![\d,.]\d|\d)(?:,?\s+\d{{4}}\b)?", 0),
        (rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?!\w)(?:,?\s+\d{{4}}\b)?", 0),
        (rf"(?<!\w){_MONTH},?\s+(?:19|20)\d\d\b", 0),
        (r"\b(?:19|20)\d\d\s?[-–/]\s?(?:(?:19|20)\d\d|\d\d)\b(?![,.]?\d)", re.ASCII),
        (r"(?<!\d)\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b\.?)?|\b\d{1,2}\s?[ap]\.?m\b\.?|\b\d{1,2}\s?o'clock", re.IGNORECASE),
        (r"(?<![\d.])\d{1,2}\s?点(?:\d{1,2}\s?分|半|整)?(?!\d)", 0),
        (r"\b(?:1[5-9]|20)\d0s\b", 0),
        # ordinals, list numbers, versions, names
        (r"\b\d+(?:st|nd|rd|th)\b", re.IGNORECASE | re.ASCII),
        (r"^[ \t]*(?:[-*>#|][ \t]*)*\(?\d{1,3}[.)](?=\s)|^[ \t]*(?:[-*>#|][ \t]*)*(?:\d{1,3}[、.)]|[（(]\d{1,3}[）)])(?!\d)", re.MULTILINE),
        (
            r"\b(?:[Tt]op|[Ff]irst|[Ll]ast|[Nn]ext|[Ss]howing)[\s-]?\d{1,4}\b(?![.,]?\d|\s?%)|(?:前|后|最[近高低大小多少])\s?\d+(?![万亿.\d])",
            re.ASCII,
        ),
        (r"\bv\d+(?:\.\d+)*\b|(?<!\d)(?<!\d[.,])\d{1,4}(?:\.\d{1,2}){2,}(?![\d])|\b24/7\b", re.IGNORECASE | re.ASCII),
        (rf"(?<![A-Za-z0-9_])(?!(?:{_CURRENCY_CODES}|US)\s?\$?\d)[A-Za-z_][A-Za-z_-]*\d[\w-]*(?:\.\d\w*)*", re.ASCII),
        (r"\b[0-9a-f]{8}-[0-9a-f-]{9,}\b|\b(?=[0-9a-f]*[a-f]\d)(?=\d)[0-9a-f]{6,}\b", re.ASCII),
        (r"\b100\s?(?:%|percent\b)", re.IGNORECASE),
        (
            r"(?<!\d)(?<!\d[.,])(?:24\s(?:hours?|h)|60\s(?:minutes|seconds)|7\sdays\sa\sweek|12\smonths\sa\syear|52\sweeks|36[56]\sdays)\b",
            0,
        ),
    )
]


def mask(text: str, labels: Iterable[str] = ()) -> str:
    """Return the text, as long as before, with all that claims nothing blanked out; `labels` are names from the data."""
    for label in labels:
        text = re.sub(rf"(?<![A-Za-z0-9.,]){re.escape(label)}(?![A-Za-z0-9])", _blank, text, flags=re.IGNORECASE)
    for pattern in _PATTERNS:
        text = pattern.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    # Line breaks stay: what stands at the start of a line is told by them.
    return "".join("\n" if char == "\n" else BLANK for char in match[0])


# -- figures of a text -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One figure of a text: where it stands, what it may mean. `parts` is the reading as several figures ("3,4")."""

    text: str
    start: int
    end: int
    value: float
    """As written, magnitude applied: 3400000 for "3.4 million", 34 for "34 %"."""
    readings: tuple[Reading, ...]
    negative: bool = False
    whole: bool = False
    """Written without decimals, magnitude or percent: it may be a count."""
    parts: tuple["Figure", ...] = ()


# One for one, so that places in the text stay what they are.
_PLAIN = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys(map(ord, "\u2212\u2010\u2011\uff0d\ufe63"), ord("-"))
    | dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000"), ord(" "))
    | {ord("’"): ord("'")}
)

_NUMBER = (
    r"\d+(?:\.\d+)?[eE][+-]?\d{1,2}(?!\w)|\d{1,3}(?:(?P<sep>[,.' ])\d{3})(?:(?P=sep)\d{3})*(?:[.,]\d+)?(?!\d)"
    r"|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)?|\.\d+"
)
_DIGITS = re.compile(
    r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9][.,])(?P<sign>(?<![A-Za-z0-9.,%)\]\ufffc-])[-–+](?=[\d.$€£¥￥₹])|负|零下)?"
    r"(?P<currency>(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|CAD|AUD)\s?)\s?-?)?"
    rf"(?P<number>{_NUMBER})",
    re.ASCII,
)
_CLOCK = re.compile(
    r"(?<![\w.])(?P<h>\d+)\s?(?:h|hrs?|hours?|个?小时)(?:\s(?:and\s)?|,\s)?(?P<m>\d{1,2})\s?(?:m|mins?|minutes?|分钟?)(?![A-Za-z])"
    r"|(?<![\w.])(?P<m2>\d+)\s?(?:m|mins?|minutes?|分钟?)(?:\s(?:and\s)?|,\s)?(?P<s2>\d{1,2})\s?(?:s|secs?|seconds?|秒)(?![A-Za-z])",
    re.IGNORECASE,
)
_YEAR_CLAIM = re.compile(
    r"(?:there (?:are|were)|total(?:s|ed|ing)? (?:of )?|\bhas|\bhave|\bhad|\bholds?|共有?|有|为|达到?)\s?$", re.IGNORECASE
)
_COUNTED = re.compile(r"\s?(?:[人次条个单件元架名位笔架台辆张家所份吨户篇首]|英里|公里|美元|分钟|多)")


def figures(text: str, labels: Iterable[str] = ()) -> list[Figure]:
    """Return the figures that `text` claims, in order; `labels` are names from the data that hold digits."""
    plain = mask(text[:MOST_CHARS].translate(_PLAIN), labels)
    found: list[Figure] = []
    taken = bytearray(len(plain))
    for reader in (_clock_figures, _digit_figures):
        for figure in reader(plain):
            if not any(taken[figure.start : figure.end]):
                taken[figure.start : figure.end] = b"\1" * (figure.end - figure.start)
                found.append(figure)
        if len(found) > MOST_FIGURES:
            break
    return [_as_written(figure, text) for figure in sorted(found, key=lambda figure: figure.start)[:MOST_FIGURES]]


def same_figure(a: Figure, b: Figure) -> bool:
    """Return whether two figures may stand for one number: the middle of some reading of one is within a reading of the other."""
    pairs = [pair for one in a.readings for other in b.readings if one.kind == other.kind for pair in ((one, other), (other, one))]
    return a.negative == b.negative and any(one.low <= (other.low + other.high) / 2 <= one.high for one, other in pairs)


def _as_written(figure: Figure, text: str) -> Figure:
    return Figure(
        text[figure.start : figure.end].strip(),
        figure.start,
        figure.end,
        figure.value,
        figure.readings,
        figure.negative,
        figure.whole,
        figure.parts,
    )


def _clock_figures(text: str) -> list[Figure]:
    """Read "11 h 35 min" as one figure."""
    found = []
    for match in _CLOCK.finditer(text):
        seconds = int(match["h"]) * 3600 + int(match["m"]) * 60 if match["h"] else int(match["m2"]) * 60 + int(match["s2"])
        half = 30.0 if match["h"] else 0.5
        found.append(Figure(match[0], *match.span(), float(seconds), (Reading(seconds - half, seconds + half, "seconds"),)))
    return found


def _digit_figures(text: str) -> list[Figure]:
    return [figure for match in _DIGITS.finditer(text) if (figure := _digit_figure(text, match)) is not None]


def _digit_figure(text: str, match: re.Match[str]) -> Figure | None:
    raw = match["number"]
    scale, half, end, some = magnitude(text, match.end())
    found = values(raw)
    plain_whole = raw.isdigit() and scale == 1
    if plain_whole and not match["currency"] and _is_year(text, match, raw):
        return None
    unit = UNIT.match(text, end)
    readings: list[Reading] = []
    for value, decimals in found:
        low, high = rounded(value, 0.5 * 10.0**-decimals, text, match.start(), unit.end() if unit else end, more=some)
        readings += with_unit(low * scale + half, high * scale + half, unit)
        if scale == 1e6 and text[end - 1] in "m" and not match["currency"]:
            readings += with_unit(low, high, unit)
    if unit is None and scale == 1 and re.match(r"[A-Za-z]*\d|[A-Za-z]{3,}", text[end:]):
        return None  # "3fa8", "12px2": a name
    stop = unit.end() if unit else end
    negative = "-" in (match["currency"] or "") or match["sign"] in ("-", "–", "负", "零下")
    value = found[0][0] * scale + half
    return Figure(
        match[0],
        match.start(),
        stop,
        value,
        tuple(readings),
        negative,
        plain_whole or raw.replace(",", "").isdigit(),
        _parts(match, end, unit),
    )


def _is_year(text: str, match: re.Match[str], raw: str) -> bool:
    if len(raw) != 4 or not 1800 <= int(raw) <= 2100 or _COUNTED.match(text, match.end()) or UNIT.match(text, match.end()):
        return False
    return not _YEAR_CLAIM.search(text[max(0, match.start() - 24) : match.start()])


def _parts(match: re.Match[str], end: int, unit: re.Match[str] | None) -> tuple[Figure, ...]:
    """Return the figures one by one where a comma or blank may stand between figures rather than within one."""
    raw = match["number"]
    if not re.search(r"[, ]", raw) or re.search(r"\d\.\d", raw) or re.fullmatch(r"\d{1,3}(?:,\d{3})+", raw) or end != match.end():
        return ()
    pieces = []
    for piece in re.finditer(r"\d+", raw):
        value = float(piece[0])
        last = piece.end() == len(raw)
        readings = with_unit(value - 0.5, value + 0.5, unit if last else None)
        start = match.start("number") + piece.start()
        pieces.append(Figure(piece[0], start, start + len(piece[0]), value, tuple(readings), whole=True))
    return tuple(pieces)
