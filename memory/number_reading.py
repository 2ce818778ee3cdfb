"""Find the figures that a text claims, and every value each of them may stand for.

A figure is read in all the ways people write numbers (1,234.5; 1 234,5; 1.234,5; １２３; 3.4k; 1250 万; 三百二十; twenty-five;
34 %; 三成; 2.3 times). A reading is an interval: what is written, and what rounds to it.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from longtable.memory.number_masks import mask
from longtable.memory.number_words import CHINESE_LARGE, ENGLISH, NUMERAL, chinese_value, english_value

Kind = Literal["plain", "percent", "points", "times", "seconds"]
MOST_FIGURES = 2_000
MOST_CHARS = 200_000


@dataclass(frozen=True)
class Reading:
    """One value a figure may stand for: what lies from `low` to `high`; percent as written (34), times in seconds."""

    low: float
    high: float
    kind: Kind = "plain"


@dataclass(frozen=True)
class Figure:
    """One figure of a text: where it stands, what it may mean. `parts` is the reading as several figures ("3,4")."""

    text: str
    start: int
    end: int
    readings: tuple[Reading, ...]
    negative: bool = False
    whole: bool = False
    """Written without decimals, magnitude or percent: it may be a count."""
    parts: tuple["Figure", ...] = ()

    @property
    def value(self) -> float:
        """Return the middle of the first reading."""
        return (self.readings[0].low + self.readings[0].high) / 2


# One for one, so that places in the text stay what they are.
_PLAIN = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | dict.fromkeys(
    map(ord, "\u2212\u2010\u2011\uff0d\ufe63"), ord("-")
) | dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000"), ord(" ")) | {ord("’"): ord("'")}

_NUMBER = r"\d{1,3}(?:(?P<sep>[,.' ])\d{3})(?:(?P=sep)\d{3})*(?:[.,]\d+)?(?!\d)|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?(?!\d)|\d+(?:[.,]\d+)?(?:[eE][+-]?\d{1,2}(?!\w))?|\.\d+"
_DIGITS = re.compile(
    r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9][.,])(?P<sign>(?<![A-Za-z0-9.,%)\]-])[-–+](?=[\d.$€£¥￥₹])|负|零下)?"
    r"(?P<currency>(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|CAD|AUD)\s?)\s?-?)?"
    rf"(?P<number>{_NUMBER})",
    re.ASCII,
)
_CHINESE = re.compile(rf"(?<![第周])(?:百分之)?[{NUMERAL}]+(?:点[零〇一二三四五六七八九]+)?")
_SCALES = {
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
_UNIT = re.compile(
    r"\s?(?:(?P<points>percentage[\s-]points?|pp\b|(?:个)?百分点)|(?P<percent>%|percent\b|per\scent\b|pct\b)|(?P<mille>‰)"
    r"|(?P<basis>basis\spoints?|bps\b)|(?P<tenth>成(?P<half>五|半)?(?![功为了立本交员绩人年果长品都]))|(?P<times>-?fold\b|times\b|[x×](?![A-Za-z0-9])|倍)"
    r"|(?P<time>milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|毫秒|秒|分钟|个?小时|天|个?星期|周)(?![A-Za-z]))",
    re.IGNORECASE,
)
_SECONDS = {"ms": 0.001, "mil": 0.001, "毫": 0.001, "s": 1.0, "秒": 1.0, "m": 60.0, "分": 60.0, "h": 3600.0, "小": 3600.0, "d": 86400.0,
            "天": 86400.0, "w": 604800.0, "周": 604800.0, "星": 604800.0}  # fmt: skip
_CLOCK = re.compile(
    r"(?<![\w.])(?P<h>\d+)\s?(?:h|hrs?|hours?|个?小时)(?:\s(?:and\s)?|,\s)?(?P<m>\d{1,2})\s?(?:m|mins?|minutes?|分钟?)(?![A-Za-z])"
    r"|(?<![\w.])(?P<m2>\d+)\s?(?:m|mins?|minutes?|分钟?)(?:\s(?:and\s)?|,\s)?(?P<s2>\d{1,2})\s?(?:s|secs?|seconds?|秒)(?![A-Za-z])",
    re.IGNORECASE,
)
_UP = re.compile(
    r"(?:over|(?:more|greater|higher|larger) than|above|at least|exceed(?:s|ed|ing)?|past|超过|多于|高于|大于|逾|至少|突破|达到?了?)\s?(?:the\s)?$",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"(?:nearly|almost|(?:just\s)?under|(?:less|fewer|lower|smaller) than|below|up to|at most|close to|近|将近|接近|不到|不足|低于|少于|小于|至多)\s?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"(?:about|around|approximately|approx\.?|roughly|some|ca\.?|circa|or so|[~≈]|大?约为?|大概|差不多)\s?$", re.IGNORECASE)
_AFTER = re.compile(r"\s?(?:左右|上下|or so|以上|以下|(?P<more>\+|多(?![少万亿])|余(?![额下])))", re.IGNORECASE)
_YEAR_CLAIM = re.compile(
    r"(?:there (?:are|were)|total(?:s|ed|ing)? (?:of )?|\bhas|\bhave|\bhad|\bholds?|共有?|有|为|达到?)\s?$", re.IGNORECASE
)
_COUNTED = re.compile(r"\s?(?:[人次条个单件元架名位笔架台辆张家所份吨户篇首]|英里|公里|美元|分钟|多)")
_ENUMERATED = re.compile(
    r"(?:\bthe|these|those|\bfirst|\blast|\btop|\bother|\bnext|\bboth|\ball|\bbetween|\bevery|\bor|\bin|\beither|\bno|[前后最这那其头每任首])\s?$",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"[多余]?(?:[个家条次名位种座架班笔件人部国项组行列倍成岁台辆张只款页天年度月周分秒单吨元份户所篇首批届轮级层]|公司|城市|小时)"
)


def figures(text: str, labels: Iterable[str] = ()) -> list[Figure]:
    """Return the figures that `text` claims, in order; `labels` are names from the data that hold digits."""
    plain = mask(text[:MOST_CHARS].translate(_PLAIN), labels)
    found: list[Figure] = []
    taken = bytearray(len(plain))
    for reader in (_clock_figures, _fractions, _digit_figures, _english_figures, _chinese_figures):
        for figure in reader(plain):
            if not any(taken[figure.start : figure.end]):
                taken[figure.start : figure.end] = b"\1" * (figure.end - figure.start)
                found.append(figure)
        if len(found) > MOST_FIGURES:
            break
    return [_as_written(figure, text) for figure in sorted(found, key=lambda figure: figure.start)[:MOST_FIGURES]]


def _as_written(figure: Figure, text: str) -> Figure:
    return Figure(
        text[figure.start : figure.end].strip(), figure.start, figure.end, figure.readings, figure.negative, figure.whole, figure.parts
    )


def _clock_figures(text: str) -> list[Figure]:
    """Read "11 h 35 min" as one figure."""
    found = []
    for match in _CLOCK.finditer(text):
        seconds = int(match["h"]) * 3600 + int(match["m"]) * 60 if match["h"] else int(match["m2"]) * 60 + int(match["s2"])
        half = 30.0 if match["h"] else 0.5
        found.append(Figure(match[0], *match.span(), (Reading(seconds - half, seconds + half, "seconds"),)))
    return found


_FRACTION = re.compile(
    r"\bone (?:in|out of)(?: every)? (?P<of>\w+)\b"
    r"|\b(?P<top>one|two|three|four|five|\d)[\s-](?P<bottom>thirds?|quarters?|fourths?|fifths?|sixths?|tenths?)\b(?!\s+of\s+(?:19|20)\d\d)"
    r"|(?P<under>[一二两三四五六七八九十])分之(?P<above>[一二三四五六七八九])",
    re.IGNORECASE,
)
_PARTS = {"thi": 3, "qua": 4, "fou": 4, "fif": 5, "six": 6, "ten": 10}


def _fractions(text: str) -> list[Figure]:
    """Read "one in five", "two thirds" and 三分之一 as shares that are meant roughly."""
    found = []
    for match in _FRACTION.finditer(text):
        if match["of"]:
            bottom = float(match["of"]) if match["of"].isdigit() else english_value(match["of"]) or 0.0
            top: float | None = 1.0
        elif match["top"]:
            top, bottom = english_value(match["top"]) or float(match["top"] if match["top"].isdigit() else 1), _PARTS[match["bottom"][:3].lower()]
        else:
            top, bottom = chinese_value(match["above"]), chinese_value(match["under"]) or 0.0
        if top and bottom:
            share = 100 * top / bottom
            spread = (0.1, 0.2) if re.match(r"以上|多|强", text[match.end() :]) else (0.1, 0.1)
            found.append(Figure(match[0], *match.span(), (Reading(share * (1 - spread[0]), share * (1 + spread[1]), "percent"),)))
    return found


def _digit_figures(text: str) -> list[Figure]:
    return [figure for match in _DIGITS.finditer(text) if (figure := _digit_figure(text, match)) is not None]


def _digit_figure(text: str, match: re.Match[str]) -> Figure | None:
    raw = match["number"]
    scale, half, end, some = _magnitude(text, match.end())
    values = _values(raw)
    plain_whole = raw.isdigit() and scale == 1
    if plain_whole and not match["currency"] and _is_year(text, match, raw):
        return None
    unit = _UNIT.match(text, end)
    readings: list[Reading] = []
    for value, decimals in values:
        low, high = _rounded(value, 0.5 * 10.0**-decimals, text, match.start(), unit.end() if unit else end, raw, more=some)
        readings += _with_unit(low * scale + half, high * scale + half, unit)
        if scale == 1e6 and text[end - 1] in "m" and not match["currency"]:
            readings += _with_unit(low, high, unit)
    if unit is None and scale == 1 and re.match(r"[A-Za-z]*\d|[A-Za-z]{3,}", text[end:]):
        return None  # "3fa8", "12px2": a name
    stop = unit.end() if unit else end
    negative = "-" in (match["currency"] or "") or match["sign"] in ("-", "–", "负", "零下")
    return Figure(match[0], match.start(), stop, tuple(readings), negative, plain_whole or raw.replace(",", "").isdigit(), _parts(text, match, end, unit))


def _magnitude(text: str, end: int) -> tuple[float, float, int, bool]:
    """Read what multiplies a number: (factor, what is added, end, "some more" said); 1亿2000万 is one number."""
    match = _SCALE.match(text, end)
    if match is None:
        return 1.0, 0.0, end, False
    word = match["word"] or match["letter"] or match["chinese"]
    if match["word"] and len(word) == 1 and word in "kmb" and text[match.start()] == " ":
        return 1.0, 0.0, end, False  # "5 m": metres
    scale, extra, stop = _SCALES[word.lower()], 0.0, match.end()
    while match["chinese"] and (more := re.compile(r"零?(\d+)([万千百])").match(text, stop)):
        extra += int(more[1]) * _SCALES[more[2]]
        stop = more.end()
    return scale, extra, stop, bool(match["some"])


def _values(raw: str) -> list[tuple[float, int]]:
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


def _rounded(value: float, half: float, text: str, start: int, end: int, raw: str, *, more: bool = False) -> tuple[float, float]:
    """Return what may be told as this figure here: rounding, and what "about", "over" and "nearly" allow."""
    before, after = text[max(0, start - 24) : start], _AFTER.match(text, end)
    digits = raw.replace(",", "").replace(" ", "").replace("'", "")
    zeros = len(digits) - len(digits.rstrip("0")) if digits.isdigit() else 0
    unit = max(2 * half, 10.0**zeros if value else 0.0)
    slack = half * (1 + 1e-9) + abs(value) * 1e-12
    if more or (after and after["more"]) or _UP.search(before) or (after and "以上" in after[0]):
        return value - slack, value + max(slack, min(unit, 0.2 * value), 0.1 * value)
    if _DOWN.search(before) or (after and "以下" in after[0]):
        return value - max(slack, min(unit, 0.2 * value), 0.1 * value), value + slack
    if after or _ABOUT.search(before):
        slack = max(slack, min(unit / 2, 0.1 * value))
    return value - slack, value + slack


def _with_unit(low: float, high: float, unit: re.Match[str] | None) -> list[Reading]:
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


def _is_year(text: str, match: re.Match[str], raw: str) -> bool:
    if len(raw) != 4 or not 1800 <= int(raw) <= 2100 or _COUNTED.match(text, match.end()) or _UNIT.match(text, match.end()):
        return False
    return not _YEAR_CLAIM.search(text[max(0, match.start() - 24) : match.start()])


def _parts(text: str, match: re.Match[str], end: int, unit: re.Match[str] | None) -> tuple[Figure, ...]:
    """Return the figures one by one where a comma or blank may stand between figures rather than within one."""
    raw = match["number"]
    if not re.search(r"[, ]", raw) or re.search(r"\d\.\d", raw) or end != match.end():
        return ()
    pieces = []
    for piece in re.finditer(r"\d+", raw):
        value = float(piece[0])
        last = piece.end() == len(raw)
        readings = _with_unit(value - 0.5, value + 0.5, unit if last else None)
        start = match.start("number") + piece.start()
        pieces.append(Figure(piece[0], start, start + len(piece[0]), tuple(readings), whole=True))
    return tuple(pieces)


def _english_figures(text: str) -> list[Figure]:
    found = []
    for match in ENGLISH.finditer(text):
        value = english_value(match[0])
        if value is None or value == 1 or (value <= 12 and _ENUMERATED.search(text[max(0, match.start() - 12) : match.start()])):
            continue
        unit = _UNIT.match(text, match.end())
        half = 0.25 if value % 1 else 0.5
        digits = f"{value:.0f}" if value % 1 == 0 else "1"
        low, high = _rounded(value, half, text, match.start(), match.end(), digits)
        end = unit.end() if unit else match.end()
        found.append(Figure(match[0], match.start(), end, tuple(_with_unit(low, high, unit)), whole=value % 1 == 0 and unit is None))
    return found


def _chinese_figures(text: str) -> list[Figure]:
    return [figure for match in _CHINESE.finditer(text) if (figure := _chinese_figure(text, match)) is not None]


def _chinese_figure(text: str, match: re.Match[str]) -> Figure | None:
    percent = match[0].startswith("百分之")
    raw = match[0].removeprefix("百分之")
    value = chinese_value(raw)
    if value is None or (len(raw) > 1 and raw[0] in CHINESE_LARGE):
        return None
    before, end, scale = text[max(0, match.start() - 12) : match.start()], match.end(), 1.0
    if later := re.compile(r"[多余几]([万亿])").match(text, end):
        scale, end = _SCALES[later[1]], later.end()
    unit = _UNIT.match(text, end)
    if not percent and len(raw) == 1 and not _single_counts(text, raw, end, before, unit):
        return None
    zeros = len(f"{value:.0f}") - len(f"{value:.0f}".rstrip("0")) if value % 1 == 0 else 0
    decimals = len(raw.partition("点")[2])
    low, high = _rounded(value, 0.5 * 10.0**-decimals, text, match.start(), end if not unit else unit.end(), "1" + "0" * zeros, more=scale > 1)
    if percent:
        readings = [Reading(low, high, "percent")]
    else:
        readings = _with_unit(low * scale, high * scale, unit)
    stop = unit.end() if unit and not percent else end
    whole = not percent and unit is None and decimals == 0
    return Figure(match[0], match.start(), stop, tuple(readings), text[match.start() - 1 : match.start()] == "负", whole)


def _single_counts(text: str, raw: str, end: int, before: str, unit: re.Match[str] | None) -> bool:
    """Say whether one numeral alone claims something: 三家 does, 这三家 and 一个 do not."""
    if raw in "百千万亿":
        return False
    if raw == "一":
        return bool(unit and unit["tenth"])
    if _ENUMERATED.search(before):
        return False
    return bool(unit or _MEASURE.match(text, end))


def number_in(cell: object) -> float | None:
    """Return the number that a cell of a result is, also one kept as text ("2328.60", "53.57%"); None for any other."""
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        number = float(cell) if not isinstance(cell, int) or abs(cell) < 10**300 else math.inf
        return number if math.isfinite(number) else None
    if isinstance(cell, str) and len(cell) <= 40 and (match := re.fullmatch(r"\s*([-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*%?\s*", cell)):
        number = float(match[1].replace(",", ""))
        return number if math.isfinite(number) else None
    return None
