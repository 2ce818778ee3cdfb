"""Blank out what looks like a figure and claims nothing: dates, ordinals, list numbers, versions, citations, names."""

import re
from collections.abc import Iterable

BLANK = "\ufffc"
"""Stands where something was blanked out: no digit, no letter, no space."""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?"
    r"|Dec(?:ember)?)\.?"
)
_NUMERAL = "[零〇一二三四五六七八九十]"
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
        (rf"{_NUMERAL}{{1,3}}月(?:份|{_NUMERAL}{{1,3}}[日号])?", 0),
        (rf"(?:周|星期|礼拜)[一二三四五六日天]|{_NUMERAL}{{4}}年|第\s?{_NUMERAL}+|{_NUMERAL}+季度|[上下]半年", 0),
        (rf"(?<!\w){_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?![\d,.]\d|\d)(?:,?\s+\d{{4}}\b)?", 0),
        (rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?!\w)(?:,?\s+\d{{4}}\b)?", 0),
        (rf"(?<!\w){_MONTH},?\s+(?:19|20)\d\d\b", 0),
        (r"\b(?:19|20)\d\d\s?[-–/]\s?(?:(?:19|20)\d\d|\d\d)\b(?![,.]?\d)", re.ASCII),
        (r"(?<!\d)\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b\.?)?|\b\d{1,2}\s?[ap]\.?m\b\.?|\b\d{1,2}\s?o'clock", re.IGNORECASE),
        (r"(?<![\d.])\d{1,2}\s?点(?:\d{1,2}\s?分|半|整)?(?![\d零一二三四五六七八九])", 0),
        (r"\b(?:1[5-9]|20)\d0s\b", 0),
        # ordinals, list numbers, versions, names
        (r"\b\d+(?:st|nd|rd|th)\b", re.IGNORECASE | re.ASCII),
        (r"^[ \t]*(?:[-*>#|][ \t]*)*\(?\d{1,3}[.)](?=\s)|^[ \t]*(?:[-*>#|][ \t]*)*(?:\d{1,3}[、.)]|[（(]\d{1,3}[）)])(?!\d)", re.MULTILINE),
        (rf"^[ \t]*(?:\*\*)?[（(]?{_NUMERAL}{{1,3}}[、.）)]", re.MULTILINE),
        (
            r"\b(?:[Tt]op|[Ff]irst|[Ll]ast|[Nn]ext|[Ss]howing)[\s-]?\d{1,4}\b(?![.,]?\d|\s?%)|(?:前|后|最[近高低大小多少])\s?(?:\d+|[一二两三四五六七八九十]+)(?![万亿.\d])",
            re.ASCII,
        ),
        (r"\bv\d+(?:\.\d+)*\b|(?<!\d)(?<!\d[.,])\d{1,4}(?:\.\d{1,2}){2,}(?![\d])|\b24/7\b", re.IGNORECASE | re.ASCII),
        (rf"(?<![A-Za-z0-9_])(?!(?:{_CURRENCY_CODES}|US)\s?\$?\d)[A-Za-z_]+[A-Za-z_-]*\d[\w-]*(?:\.\d\w*)*", re.ASCII),
        (r"\b[0-9a-f]{8}-[0-9a-f-]{9,}\b|\b(?=[0-9a-f]*[a-f]\d)(?=\d)[0-9a-f]{6,}\b", re.ASCII),
        (r"\b(?:one|1)\s(?:hundred\s)?percent\b|\b100\s?%|百分之百", re.IGNORECASE),
        (
            r"(?<!\d)(?<!\d[.,])(?:24\s(?:hours?|h)|60\s(?:minutes|seconds)|7\sdays\sa\sweek|12\smonths\sa\syear|52\sweeks|36[56]\sdays)\b",
            0,
        ),
        (r"十分(?!之|钟)|千万(?:别|不要)|万一|千方百计|百货|千[克米瓦卡字]|一[些样定般直共起旦下旁边致切]|唯一|统一|同一|(?<!分)之一", 0),
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
