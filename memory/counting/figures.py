"""Find the figures that a text claims, and every value that each may stand for.

A figure is read in all the ways people write digits (1,234.5; 1 234,5; 1.234,5; １２３; 3.4k; 1250
万; 34 %; 3 成; 2.3 times). Each reading is an interval: the written number and all numbers that
round to it. Numbers written as words are not read.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

MOST_FIGURES = 2_000
MOST_CHARS = 200_000

Kind = Literal["plain", "percent", "points", "times", "seconds"]


@dataclass(frozen=True)
class Reading:
    """One value that a figure may stand for, from `low` to `high`. Percentages are as written (34),
    durations in seconds.
    """

    low: float
    high: float
    kind: Kind = "plain"


@dataclass(frozen=True)
class Figure:
    """One figure of a text, its place and its possible values."""

    text: str
    start: int
    end: int
    value: float
    """As written, magnitude applied: 3400000 for "3.4 million", 34 for "34 %"."""
    readings: tuple[Reading, ...]
    negative: bool = False


# -- what looks like a figure and claims nothing ---------------------------------------------------


@dataclass(frozen=True)
class Source:
    """One result that the turn used. `rows` hold JSON-safe cells. `row_count` also counts rows that
    are not in `rows`.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    row_count: int
    sql: str = ""


BLANK = "\ufffc"
"""The character that `mask` writes over parts that claim nothing. It is no digit, letter or
space.
"""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?"
    r"|Dec(?:ember)?)\.?"
)
_CURRENCY_CODES = "USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|CAD|AUD"
# A thing that is counted by its number, not by how many there are.
_NUMBERED = (
    r"(?:messages?|turns?|rows?|lines?|steps?|pages?|notes?|quer(?:y|ies)|figures?|sections?|questions?|options?|items?|chapters?|no\.|nr\.|#"
    r"|gates?|terminals?|flight|room|id|rank(?:s|ed)?|number|hour|week|day|line|column|store|level|grade|class|group|phase)"
)

_PATTERNS = [
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"```.*?(?:```|\Z)", re.DOTALL),
        (r"`(?!\s*[-+$€£¥]?[\d.,\s]+%?\s*`)[^`\n]*`", 0),
        (
            r"https?://\S+|\b[\w.+-]+@[\w-]+\.\w+|(?<![\w/])(?:\.{0,2}/)[\w.-]+(?:/[\w.-]+)+",
            re.ASCII,
        ),
        # citations of messages and results
        (
            r"\[(?:[A-Za-z#][\w:#-]*\d[\w:-]*|\d{1,4})(?:\s*[,;–-]\s*(?:[A-Za-z#]*\d[\w:-]*))*\]",
            re.ASCII,
        ),
        (rf"\b{_NUMBERED}\s?[#:]?\s?\d{{1,6}}\b(?![.,]?\d|\s?%)", re.IGNORECASE | re.ASCII),
        (r"(?:消息|轮次|步骤|编号|序号|排名|第)\s?[#：:]?\s?\d+(?![.,]?\d)", 0),
        # dates and times
        (
            r"(?<!\d)(?:1[5-9]|2[01])\d\d\s?年(?:\s?\d{1,2}\s?月(?:份|\s?\d{1,2}\s?[日号])?|\s?[前后上下]半年)?",
            0,
        ),
        (
            r"(?<!\d)(?<!\d[.,])(?:1[5-9]|2[01])\d\d(?:([-/.])\d{1,2}\1\d{1,2}|[-/]\d\d)"
            r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?Z?)?(?![\d%])",
            0,
        ),
        (r"(?<!\d)(?<!\d[.,])\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d\d)(?!\d)", 0),
        (
            r"(?<!\d)(?<!\d[.,])\d{1,2}\s?(?:[-–—~至到]\s?\d{1,2}\s?)?月(?:份|\s?\d{1,2}\s?(?:[-–—~至到]\s?\d{1,2}\s?)?[日号])?",
            0,
        ),
        (r"(?<!\d)(?<!\d[.,])\d{1,2}\s?[日号](?!均)", 0),
        (
            rf"(?<!\w){_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?![\d,.]\d|\d)(?:\s?[-–]\s?\d{{1,2}})?(?:,?\s+\d{{4}}\b)?",
            0,
        ),
        (rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?!\w)(?:,?\s+\d{{4}}\b)?", 0),
        (rf"(?<!\w){_MONTH},?\s+(?:19|20)\d\d\b", 0),
        (r"\b(?:19|20)\d\d\s?[-–/]\s?(?:(?:19|20)\d\d|\d\d)\b(?![,.]?\d)", re.ASCII),
        (
            r"(?<!\d)\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b\.?)?|\b\d{1,2}\s?[ap]\.?m\b\.?|\b\d{1,2}\s?o'clock",
            re.IGNORECASE,
        ),
        (r"(?<![\d.])\d{1,2}\s?(?:[-–~至到]\s?\d{1,2}\s?)?[点时](?:\d{1,2}\s?分|半|整)?(?!\d)", 0),
        (r"\b(?:1[5-9]|20)\d0s\b", 0),
        # ordinals, list numbers, versions, names
        (r"\b\d+(?:st|nd|rd|th)\b", re.IGNORECASE | re.ASCII),
        (
            (
                r"^[ \t]*(?:[-*>#|][ \t]*)*\(?\d{1,3}[.)](?=\s)|^[ \t]*(?:[-*>#|]["
                r" \t]*)*(?:\d{1,3}[、.)]|[（(]\d{1,3}[）)])(?!\d)"
            ),
            re.MULTILINE,
        ),
        (r"^[ \t]*\|[ \t*]*\d{1,3}[ \t*]*(?=\|)|\d{1,3}\ufe0f?\u20e3", re.MULTILINE),
        (
            r"\b(?:[Tt]op|[Bb]ottom|[Ff]irst|[Ll]ast|[Nn]ext|[Ss]howing|[Bb]est|[Ww]orst|[Ll]argest|[Ll]imit)[\s-]?\d{1,4}\b(?![.,]?\d|\s?%)"
            r"|(?:前|后|近|最[近高低大小多少])\s?\d{1,3}(?![万亿.,\d%])",
            re.ASCII | re.IGNORECASE,
        ),
        (
            r"\bv\d+(?:\.\d+)*\b|(?<!\d)(?<!\d[.,])\d{1,4}(?:\.\d{1,2}){2,}(?![\d])|\b\d{1,2}/\d{1,2}\b",
            re.IGNORECASE | re.ASCII,
        ),
        (
            rf"(?<![A-Za-z0-9_])(?!(?:{_CURRENCY_CODES}|US)\s?\$?\d)[A-Za-z_][A-Za-z_-]*\d[\w-]*(?:\.\d\w*)*",
            re.ASCII,
        ),
        (r"\b[0-9a-f]{8}-[0-9a-f-]{9,}\b|\b(?=[0-9a-f]*[a-f]\d)(?=\d)[0-9a-f]{6,}\b", re.ASCII),
        (r"\b100\s?(?:%|percent\b)", re.IGNORECASE),
        (r"\b(?:p|per|每)\s?1(?:,?0{2,6}\b|[百千万])", re.IGNORECASE),
        (
            r"(?<!\d)(?<!\d[.,])(?:24\s(?:hours?|h)|60\s(?:minutes|seconds)|7\sdays\sa\sweek|12\smonths\sa\syear|52\sweeks|36[56]\s?(?:days|天))",
            0,
        ),
        (
            r"(?<!\d)\d{1,6}\s?(?:h|hrs?|hours?|个?小时)(?:\s(?:and\s)?|,\s)?\d{1,2}\s?(?:m|mins?|minutes?|分钟?)(?![A-Za-z])",
            0,
        ),
        (
            r"(?<!\d)\d{1,6}\s?(?:m|mins?|minutes?|分钟?)(?:\s(?:and\s)?|,\s)?\d{1,2}\s?(?:s|secs?|seconds?|秒)(?![A-Za-z])",
            0,
        ),
    )
]


def mask(text: str, labels: Iterable[str] = ()) -> str:
    """Return the text with every part that claims no figure blanked out, such as a date, a URL or a
    list number. The length stays the same. `labels` are names from the data, which claim nothing.
    """
    patterns = [
        re.compile(rf"(?<![A-Za-z0-9.,]){re.escape(label)}(?![A-Za-z0-9])", re.IGNORECASE)
        for label in labels
    ]
    for pattern in (*patterns, *_PATTERNS):
        # Line breaks stay: they mark what stands at the start of a line.
        text = pattern.sub(lambda match: re.sub(r"[^\n]", BLANK, match[0]), text)
    return text


# -- figures of a text -----------------------------------------------------------------------------

SCALES = {
    "k": 1e3, "m": 1e6, "b": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "hundred": 1e2, "bn": 1e9,
    "mn": 1e6, "mio": 1e6, "mln": 1e6, "tn": 1e12, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7, "crores": 1e7,
    "十": 1e1, "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7, "亿": 1e8, "十亿": 1e9, "百亿": 1e10,
    "千亿": 1e11, "万亿": 1e12, "wan": 1e4, "yi": 1e8,
}  # fmt: skip
_UNITS: dict[str, tuple[Kind, float]] = {
    "points": ("points", 1), "percent": ("percent", 1), "mille": ("percent", 0.1), "basis": ("points", 0.01),
    "tenth": ("percent", 10), "times": ("times", 1), "cents": ("plain", 0.01), "milliseconds": ("seconds", 0.001),
    "seconds": ("seconds", 1), "minutes": ("seconds", 60), "hours": ("seconds", 3600), "days": ("seconds", 86400),
    "weeks": ("seconds", 604800),
}  # fmt: skip
# One for one, so that places in the text stay what they are.
_PLAIN = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys(map(ord, "\u2212\u2010\u2011\uff0d\ufe63"), ord("-"))
    | dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000"), ord(" "))
    | {ord("’"): ord("'"), ord("，"): ord(";")}
)
_FIGURE = re.compile(
    r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9][.,])"
    r"(?P<sign>(?<![A-Za-z0-9.,%)\]\ufffc-])[-–+](?=[\d.$€£¥￥₹])|负|零下)?"
    rf"(?P<currency>(?:US\$|[$€£¥₹]|(?:{_CURRENCY_CODES})\s?)\s?-?)?"
    r"(?P<number>(?>\d{1,3}(?:(?P<sep>[,.'"
    r" ])\d{3})(?:(?P=sep)\d{3})*(?:(?!(?P=sep))[.,]\d+)?(?![\d,]\d|\d)"
    r"|\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?(?!\d)|\d+(?:\.\d+|,\d{1,2}(?![\d,]))?|\.\d+))(?:[eE](?P<power>[+-]?\d{1,2})(?!\w))?"
    r"(?:\s?(?P<word>thousand|million|billion|trillion|hundred|lakhs?|crores?|bn|mn|mio|mln|tn|(?-i:[KMB]))(?![A-Za-z])"
    r"|(?P<letter>[kmb])(?![A-Za-z²³/])"
    r"|\s?(?P<some>[多余几])?\s?(?P<chinese>万亿|千亿|百亿|十亿|千万|百万|十万|[亿万百]|千(?![克米瓦卡字]))(?P<rest>零?\d+[万千百])?)?"
    r"(?:\s?(?:(?P<points>(?:percentage[\s-])?points?|pp\b|(?:个)?百分点)|(?P<percent>%|percent\b|per\scent\b|pct\b)|(?P<mille>‰)"
    r"|(?P<basis>basis\spoints?|bps\b)|(?P<tenth>成(?:(?P<half>五|半)|(?![功为了立本交员绩人年果长品都])))"
    r"|(?P<times>-?fold\b|times\b|[x×](?![A-Za-z0-9])|倍)|(?P<cents>cents?\b|美分)|(?P<milliseconds>milliseconds?|ms|毫秒)(?![A-Za-z])"
    r"|(?P<seconds>seconds?|secs?|s|秒)(?![A-Za-z])|(?P<minutes>minutes?|mins?|分钟)(?![A-Za-z])"
    r"|(?P<hours>hours?|hrs?|h|个?小时)(?![A-Za-z])|(?P<days>days?|d|天)(?![A-Za-z])|(?P<weeks>weeks?|个?星期|周)(?![A-Za-z]))"
    r"|(?![A-Za-z]*\d|[A-Za-z]{3,}))",  # "3fa8", "12px2": a name
    re.IGNORECASE | re.ASCII,
)
_UP = re.compile(
    r"(?:over|(?:more|greater|higher|larger) than|above|at"
    r" least|exceed(?:s|ed|ing)?|超过|多于|高于|大于|逾|至少|突破)\s?(?:the\s)?$",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"(?:nearly|almost|(?:just\s)?under|(?:less|fewer|lower|smaller) than|below|up to|at"
    r" most|close to"
    r"|近|将近|接近|不到|不足|低于|少于|小于|至多)\s?$",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:about|around|approximately|approx\.?|roughly|some|ca\.?|circa|[~≈]|大?约为?|大概|差不多)\s?(?:the\s|an?\s)?$",
    re.IGNORECASE,
)
_ABOUT_AFTER, _UP_AFTER, _DOWN_AFTER = map(
    re.compile,
    (r"\s?(?:左右|上下|or so)", r"\s?(?:\+|以上|多(?![少万亿])|余(?![额下]))", r"\s?以下"),
)
_YEAR_CLAIM = re.compile(
    r"(?:there (?:are|were)|total(?:s|ed|ing)? (?:of"
    r" )?|\bhas|\bhave|\bhad|\bholds?|共有?|有|为|达到?)\s?$",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\s?(?:[人次条个单件元架名位笔架台辆张家所份吨户篇首]|英里|公里|美元|分钟|多)"
)


def figures(text: str, labels: Iterable[str] = ()) -> list[Figure]:
    """Return the figures that `text` claims, in order. `labels` are names from the data that hold
    digits; digits in these names are no figures.
    """
    plain = mask(text[:MOST_CHARS].translate(_PLAIN), labels)
    matches = (match for match in _FIGURE.finditer(plain) if not _is_year(plain, match))
    return [_figure(text, plain, match) for match in islice(matches, MOST_FIGURES)]


def _is_year(text: str, match: re.Match[str]) -> bool:
    bare = match[0].isdigit() and len(match[0]) == 4 and 1800 <= int(match[0]) <= 2100
    return (
        bare
        and not _COUNTED.match(text, match.end())
        and not _YEAR_CLAIM.search(text[max(0, match.start() - 24) : match.start()])
    )


def _figure(text: str, plain: str, match: re.Match[str]) -> Figure:
    scale = SCALES.get(
        (match["word"] or match["letter"] or match["chinese"] or "").lower(), 1.0
    ) * 10.0 ** int(match["power"] or 0)
    last = SCALES[match["rest"][-1]] if match["rest"] else scale  # 1亿2000万
    rest = float(match["rest"].strip("零")[:-1]) * last if match["rest"] else 0.0
    ways = [
        (value * scale + rest, 0.5 * 10.0**-decimals * last)
        for value, decimals in dict.fromkeys(_values(match["number"]))
    ]
    if match["letter"] in ("m", "M") and not match["currency"]:
        ways += [(value / scale, half / scale) for value, half in ways]  # metres
    unit = (
        "percent"
        if plain.endswith("百分之", 0, match.start())
        else next((name for name in _UNITS if match[name]), "")
    )
    kind, factor = _UNITS.get(unit, ("plain", 1.0))
    bounds = [
        _bounds(value + 0.5 * bool(match["half"]), half, plain, match) for value, half in ways
    ]
    readings = [Reading(low * factor, high * factor, kind) for low, high in bounds]
    readings += [
        Reading(low, high)
        for low, high in bounds
        if unit in ("cents", "times") or kind == "seconds"
    ]
    negative = "-" in (match["currency"] or "") or match["sign"] in ("-", "–", "负", "零下")
    digits = text[match.start() : match.end()].strip()
    return Figure(
        digits, *match.span(), ways[0][0] if ways else math.inf, tuple(readings), negative
    )


def _values(raw: str) -> Iterator[tuple[float, int]]:
    """Yield the ways to read digits with points, commas and blanks, each as (value, number of
    decimals). "1,234" gives 1234 and 1.234.
    """
    digits = re.sub("[ ']", "", raw)
    for group, point in (",.", ".,"):
        if re.fullmatch(
            rf"(?:[1-9]\d{{0,2}}(?:[{group}]\d{{2,3}})*[{group}]\d{{3}}|\d*)(?:[{point}]\d+)?",
            digits,
        ):
            whole, _, tail = digits.replace(group, "").partition(point)
            yield float(f"{whole or 0}.{tail or 0}"), len(tail)


def _bounds(value: float, half: float, text: str, match: re.Match[str]) -> tuple[float, float]:
    """Return the lowest and the highest number that this figure may stand for. Rounding and words
    beside the figure, such as "about", "over" and "nearly", widen the range.
    """
    before = text[max(0, match.start() - 24) : match.start()]
    whole = f"{value:.0f}"
    step = 10.0 ** (len(whole) - len(whole.rstrip("0"))) if half == 0.5 and value else 2 * half
    slack = half * (1 + 1e-9) + abs(value) * 1e-12
    wide = max(slack, 0.1 * value, min(step, 0.2 * value))
    some = (
        max(slack, min(step / 2, 0.1 * value))
        if _ABOUT.search(before) or _ABOUT_AFTER.match(text, match.end())
        else slack
    )
    down = _DOWN.search(before) or _DOWN_AFTER.match(text, match.end())
    up = match["some"] or _UP.search(before) or _UP_AFTER.match(text, match.end())
    return value - (wide if down else some), value + (wide if up else some)


_NUMBER_CELL = re.compile(
    r"\s*[$€£¥￥]?\s*([-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*%?\s*"
)


def number_in(cell: object) -> float | None:
    """Return the number in a cell of a result, even if it is stored as text ("2328.60", "53.57%").
    Return None if the cell holds no number.
    """
    if isinstance(cell, str) and len(cell) <= 40 and (match := _NUMBER_CELL.fullmatch(cell)):
        cell = float(match[1].replace(",", ""))
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not abs(cell) < 1e300:
        return None
    return float(cell)


def numbers_in_column(cells: Iterable[object]) -> list[float]:
    """Return the number in each cell, NaN if a cell holds no number."""
    numbers = map(number_in, cells)
    return [math.nan if number is None else number for number in numbers]


def bare_numbers(text: str) -> list[float]:
    """Return all numbers in SQL, JSON or a name, whatever they mean there."""
    return [
        float(digits)
        for digits in re.findall(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,9})?(?![\w.]*\d)", text)
    ]
