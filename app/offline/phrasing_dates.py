"""Write the dates of an English question as 2024-03-01, and spans of years as between two, before it is cut into chunks."""

import re

from longtable.app.offline.lexicon import MONTHS

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"((?:18|19|20|21)\d\d)"
_I = re.IGNORECASE
_DAY_FIRST = re.compile(rf"\b(?:the )?{_DAY}(?: of)? ({_MONTH})\.?,? {_YEAR}\b", _I)
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? (?:the )?{_DAY},? {_YEAR}\b", _I)
_ISO = r"\d{4}-\d\d-\d\d"
_SHORT = re.compile(
    rf"\b(between|from) (?:(?:the )?{_DAY}(?: of)? ({_MONTH})|({_MONTH})\.? (?:the )?{_DAY}),?"
    rf" (and|to|through|until|till|up to) (({_YEAR[1:-1]})-\d\d-\d\d)\b",
    _I,
)
_SHORTER = re.compile(
    rf"\b(between|from) (?:the )?{_DAY} (and|to|through|until|till|-|–) (?:the )?{_DAY}(?: of)? ({_MONTH})\.?,? {_YEAR}\b", _I
)
_SPAN = re.compile(rf"\b(?:(?:dated|made|in the (?:time|period)) )?from ({_ISO}) (?:to|through|until|till|up to|and) ({_ISO})", _I)
_YEARS = re.compile(
    rf"\b(?:in|during|over|from|between)(?: the)?(?: years?| period)?(?: from| of)? {_YEAR}"
    rf" ?(?:to|through|until|till|and|-|–) ?{_YEAR}\b(?!-)",
    _I,
)


def written_dates(question: str) -> str:
    """Return the question with its whole dates as year-month-day: '1 March 2025' and 'March 1st, 2025' are 2025-03-01."""
    question = _SHORTER.sub(lambda m: f"{m[1]} {_iso(m[6], m[5], m[2])} {m[3]} {_iso(m[6], m[5], m[4])}", question)
    question = _DAY_FIRST.sub(lambda m: _iso(m[3], m[2], m[1]), question)
    question = _MONTH_FIRST.sub(lambda m: _iso(m[3], m[1], m[2]), question)
    question = _SHORT.sub(lambda m: f"{m[1]} {_iso(m[8], m[3] or m[4], m[2] or m[5])} {m[6]} {m[7]}", question)
    question = _SPAN.sub(r"between \1 and \2", question)
    return _YEARS.sub(_years, question)


def _iso(year: str, month: str, day: str) -> str:
    return f"{year}-{MONTHS[month.lower()]:02d}-{int(day):02d}"


def _years(match: re.Match[str]) -> str:
    both = match[0].lower().startswith(("in", "during", "over")) and re.search(r"\d and ", match[0])
    return match[0] if both else f"between {match[1]} and {match[2]}"  # in 2018 and 2020: two years, no span
