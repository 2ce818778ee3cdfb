"""Read what stands around digits: magnitude, unit, and the words that make a figure a rough one."""

import math
import re
from dataclasses import dataclass
from typing import Literal

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
