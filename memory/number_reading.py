"""Find the figures that a text claims, and every value each of them may stand for.

A figure is read in all the ways people write numbers (1,234.5; 1 234,5; 1.234,5; １２３; 3.4k; 1250 万; 三百二十; twenty-five;
34 %; 三成; 2.3 times). A reading is an interval: what is written, and what rounds to it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from longtable.memory.number_forms import SCALES, UNIT, Reading, magnitude, rounded, values, with_unit
from longtable.memory.number_masks import mask
from longtable.memory.number_words import CHINESE_LARGE, ENGLISH, NUMERAL, chinese_value, english_value

MOST_FIGURES = 2_000
MOST_CHARS = 200_000


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
    r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9][.,])(?P<sign>(?<![A-Za-z0-9.,%)\]-])[-–+](?=[\d.$€£¥￥₹])|负|零下)?"
    r"(?P<currency>(?:US\$|[$€£¥₹]|(?:USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|CAD|AUD)\s?)\s?-?)?"
    rf"(?P<number>{_NUMBER})",
    re.ASCII,
)
_CHINESE = re.compile(rf"(?<![第周])(?:百分之)?[{NUMERAL}]+(?:点[零〇一二三四五六七八九]+)?")
_CLOCK = re.compile(
    r"(?<![\w.])(?P<h>\d+)\s?(?:h|hrs?|hours?|个?小时)(?:\s(?:and\s)?|,\s)?(?P<m>\d{1,2})\s?(?:m|mins?|minutes?|分钟?)(?![A-Za-z])"
    r"|(?<![\w.])(?P<m2>\d+)\s?(?:m|mins?|minutes?|分钟?)(?:\s(?:and\s)?|,\s)?(?P<s2>\d{1,2})\s?(?:s|secs?|seconds?|秒)(?![A-Za-z])",
    re.IGNORECASE,
)
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
            top, bottom = (
                english_value(match["top"]) or float(match["top"] if match["top"].isdigit() else 1),
                _PARTS[match["bottom"][:3].lower()],
            )
        else:
            top, bottom = chinese_value(match["above"]), chinese_value(match["under"]) or 0.0
        if top and bottom:
            share = 100 * top / bottom
            spread = (0.1, 0.2) if re.match(r"以上|多|强", text[match.end() :]) else (0.1, 0.1)
            found.append(Figure(match[0], *match.span(), share, (Reading(share * (1 - spread[0]), share * (1 + spread[1]), "percent"),)))
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


def _english_figures(text: str) -> list[Figure]:
    found = []
    for match in ENGLISH.finditer(text):
        value = english_value(match[0])
        if value is None or value == 1 or (value <= 12 and _ENUMERATED.search(text[max(0, match.start() - 12) : match.start()])):
            continue
        unit = UNIT.match(text, match.end())
        half = 0.25 if value % 1 else 0.5
        low, high = rounded(value, half, text, match.start(), match.end())
        end = unit.end() if unit else match.end()
        found.append(Figure(match[0], match.start(), end, value, tuple(with_unit(low, high, unit)), whole=value % 1 == 0 and unit is None))
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
        scale, end = SCALES[later[1]], later.end()
    unit = UNIT.match(text, end)
    if not percent and len(raw) == 1 and not _single_counts(text, raw, end, before, unit):
        return None
    decimals = len(raw.partition("点")[2])
    low, high = rounded(value, 0.5 * 10.0**-decimals, text, match.start(), unit.end() if unit else end, more=scale > 1)
    readings = [Reading(low, high, "percent")] if percent else with_unit(low * scale, high * scale, unit)
    stop = unit.end() if unit and not percent else end
    whole = not percent and unit is None and decimals == 0
    return Figure(match[0], match.start(), stop, value * scale, tuple(readings), text[match.start() - 1 : match.start()] == "负", whole)


def _single_counts(text: str, raw: str, end: int, before: str, unit: re.Match[str] | None) -> bool:
    """Say whether one numeral alone claims something: 三家 does, 这三家 and 一个 do not."""
    if raw in "百千万亿":
        return False
    if raw == "一":
        return bool(unit and unit["tenth"])
    if _ENUMERATED.search(before):
        return False
    return bool(unit or _MEASURE.match(text, end))
