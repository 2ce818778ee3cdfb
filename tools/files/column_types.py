"""Decide from the texts of a column whether its values are numbers, dates, truth values or text.

A decision is made from some of the values. It contains a pattern that every value of the column
must match. The caller looks for values that do not match, and asks for a new decision with these
values included. So every row counts, although only a few are looked at here.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

Style = Literal["point", "comma"]
"""The decimal mark of numbers: a point or a comma."""

_MISSING_WORDS = (
    "na n/a #n/a #nv #null! #div/0! #wert! #value! #ref! #bezug! #name? #num! #zahl! #null #spill!"
    " #calc! #getting_data null nan none nil - -- – — . .. ... … ? k.a. s.o. (null) \\n 无"
    " 00.00.0000 0000-00-00 00/00/0000"
)
MISSING = frozenset(_MISSING_WORDS.split())
"""Words for a missing value, in lower case. They are read as missing only if the other values of
the column are not text.
"""

_TEXT_NAME = re.compile(
    r"(?i)(?:^|\b|_)(version|revision|phone|tele(f|ph)on\w*|tel|fax|mobile?|handy|iban|ean|gtin|isbn|plz|zip)(?:\b|_|$)|版本|电话|手机|邮编"
)
_MONEY = r"(?:[$€£¥￥₹]|R\$|US\$|EUR|USD|GBP|CHF|CNY|RMB|JPY|kr|zł|元)"
_UNIT = f"(?:%|{_MONEY})"
_SEPARATORS = " \u00a0\u202f\u2009'\u2019"
_SPACE = f"[{_SEPARATORS[:4]}]?"
MOST_DIGITS = 15
"""The most digits before the decimals that a DOUBLE holds exactly. A column of whole numbers
becomes a BIGINT, which holds 18 digits.
"""


_INDIAN = r"[1-9]\d?(?:,\d{2}){1,6},\d{3}"
"""Numbers in Indian groups of digits, such as 12,34,567. A number with one comma looks the same in
Western groups.
"""


def _number(style: str, unit: str, *, often: str = "?") -> str:
    """Return the pattern of a number with an optional sign, brackets or a minus at the end, and
    with `unit` before or after it. `often` says how often the unit may follow: "?" or "{1}".
    """
    thousands, decimal = (",", r"\.") if style == "point" else (r"\.", ",")
    grouped = rf"[1-9]\d{{0,2}}(?:[{thousands}{_SEPARATORS}]\d{{3}}){{1,{MOST_DIGITS // 3 - 1}}}"
    if style == "point":
        grouped = rf"(?:{grouped}|{_INDIAN})"
    body = rf"(?:(?:0|[1-9]\d{{0,{MOST_DIGITS - 1}}}|{grouped})(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?[0-2]?\d?\d)?"
    sign = rf"[-+−]?{_SPACE}"
    before = "" if often == "{1}" else rf"(?:{unit}{_SPACE})?{sign}\(?"
    return rf"\(?(?:{unit}{_SPACE}-|{sign}{before}{body}{_SPACE}(?:{unit}){often}{_SPACE}-?)\)?"


_NUMBER: dict[Style, str] = {"point": _number("point", _UNIT), "comma": _number("comma", _UNIT)}
_SHORTEST = rf"-?(?:0|[1-9]\d{{0,{MOST_DIGITS - 1}}})(?:\.\d*[1-9]|\.0)?(?:[eE][-+]?[0-2]?\d?\d)?"
_ROUNDED = re.compile(r"-?\d(?:[.,]\d{1,6})?E\+(?:0[89]|1\d)")
_PARTS = {
    "%Y": r"(?:1[5-9]|2\d)\d{2}",
    "%y": r"\d{2}",
    "%d": r"(?:0?[1-9]|[12]\d|3[01])",
    "%m": r"(?:0?[1-9]|1[0-2])",
    "%b": (
        r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
        r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
    ),
    "%H": r"\d{1,2}",
    "%I": r"\d{1,2}",
    "%M": r"\d{2}",
    "%S": r"\d{2}",
    "%p": "[AaPp][Mm]",
}
_DATES = (
    *(
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y年%m月%d日",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
    ),
    *("%d-%b-%Y", "%d %b %Y", "%d %b, %Y", "%b %d, %Y", "%b %d %Y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d-%b-%y", "%d %b %y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_OFFSET = r" ?(?:Z|[-+]\d\d(?::?\d\d)?)"
_PLAIN = {
    r"(?i:true|false)": ("BOOLEAN", "TRY_CAST({v} AS BOOLEAN)"),
    r"-?(?:0|[1-9]\d{0,17})": ("BIGINT", "TRY_CAST({v} AS BIGINT)"),
    r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?": ("TIME", "TRY_CAST({v} AS TIME)"),
    # A sheet has no date without a time.
    r"\d{4}-\d\d-\d\d 00:00:00": ("DATE", "TRY_CAST({v} AS TIMESTAMP)::DATE"),
    _ISO: ("TIMESTAMP", "TRY_CAST({v} AS TIMESTAMP)"),
    _ISO + r" ?(?:Z|[-+]00(?::?00)?)": ("TIMESTAMPTZ", "TRY_CAST({v} AS TIMESTAMPTZ)"),
    # An hour after midnight in Berlin is the day before in UTC.
    _ISO + _OFFSET: (
        "TIMESTAMP",
        f"TRY_CAST(regexp_replace({{v}}, '{_OFFSET}$', '') AS TIMESTAMP)",
    ),
}
"""Unambiguous patterns of values, each with the type of the column and the SQL that converts a
value.
"""


def _pattern(form: str) -> str:
    return re.sub("%[A-Za-z]", lambda part: _PARTS[part[0]], form.replace(".", r"\."))


_FORMS = {date + time: _pattern(date + time) for date, time in product(_DATES, _TIMES)}
_CLEAR_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", *(each for each in _DATES if "%b" in each))


@dataclass(frozen=True)
class Reading:
    """How a column is read. `sql` converts the value `{v}`. Every value that is not missing matches
    `pattern`.
    """

    type: str
    pattern: str = ""
    sql: str = "{v}"
    style: Style | None = None
    missing: frozenset[str] = frozenset()
    stray: frozenset[str] = frozenset()
    """Words in a column of another type, which are read as empty cells in this column only."""
    notes: tuple[tuple[str, str], ...] = ()
    """Notes on the column: pairs of a note's code and an example from the column."""


TEXT = "VARCHAR"


def read_as(
    values: Iterable[str],
    name: str,
    *,
    style: Style | None,
    stray: frozenset[str] = frozenset(),
) -> Reading:
    """Return how to read a column with these values, none of which is empty. `style` is the decimal
    mark found in other columns of the file, None if unknown. Words in `stray` are ignored.
    """
    missing = frozenset(value for value in values if value.lower() in MISSING)
    known = sorted(set(values) - missing - stray)
    if not known or (_TEXT_NAME.search(name) and not any(map(_ROUNDED.fullmatch, known))):
        return Reading(TEXT)
    plain = (
        Reading(kind, form, sql, notes=(("local_times", known[0]),) * form.endswith(_OFFSET))
        for form, (kind, sql) in _PLAIN.items()
        if _all(form, known)
    )
    reading = (
        next(plain, None)
        or _number_reading(known, style)
        or _date_reading(known, style)
        or Reading(TEXT)
    )
    if not reading.notes and reading.type == TEXT and _all(r"[-+\d.,eE' ]+", known):
        return Reading(
            TEXT,
            notes=tuple(
                ("long_numbers", value)
                for value in known
                if sum(map(str.isdigit, value)) > MOST_DIGITS
            )[:1],
        )
    if reading.type == TEXT:
        return reading
    return replace(reading, missing=missing, stray=stray)


def looks_typed(value: str) -> bool:
    """Return whether a value is written like a number, a date or a time."""
    return bool((reading := read_as([value], "", style=None)).notes) or reading.type not in (
        TEXT,
        "BOOLEAN",
    )


def _all(pattern: str, values: Iterable[str]) -> bool:
    return all(map(re.compile(pattern).fullmatch, values))


def _number_reading(values: Sequence[str], style: Style | None) -> Reading | None:
    fitting: list[Style] = [sign for sign in ("point", "comma") if _all(_NUMBER[sign], values)]
    if not fitting or any(re.match(r"\+\d[\d ]{7}", value) for value in values):
        return None
    example = next((value for value in values if set(value) & {".", ","}), "")
    if len(fitting) == 1 or not example:
        return _decimal_reading(values, fitting[0])
    # 1.100 may be 1100, and 1,100 may be 1.1: another column decides.
    sign = "." if "." in example else ","
    pattern = rf"[-−]?[1-9]\d{{0,2}}(?:[{sign}]\d{{3}})?-?"
    if style is None and sign == ",":
        return Reading(TEXT, pattern, notes=(("ambiguous_number", example),))
    note = ("read_thousands" if (sign == ".") == (style == "comma") else "read_decimals", example)
    return _converted(
        values, style or "point", note, pattern=pattern if _all(pattern, values) else ""
    )


def _decimal_reading(values: Sequence[str], style: Style) -> Reading:
    bare = style == "point" and _all(r"-?\d*\.?\d*", values)
    shortest = style == "point" and _all(_SHORTEST, values)
    scales = {len(value.partition(".")[2]) for value in values}
    if bare and not shortest and len(scales) > 1:
        # Programs write all decimals of a column, or none that say nothing: 1.9 beside 1.10 is a
        # version.
        return Reading(
            TEXT,
            notes=(("uneven_decimals", next(value for value in values if value.endswith("0"))),),
        )
    return _converted(
        values,
        style,
        plain=(
            _SHORTEST
            if shortest
            else rf"-?\d{{0,{MOST_DIGITS}}}\.\d{{{max(scales)}}}"
            if bare
            else ""
        ),
    )


def _has_long_decimals(value: str) -> bool:
    return sum(map(str.isdigit, value)) > 19 and "e" not in value.lower()


def _converted(
    values: Sequence[str], style: Style, *notes: tuple[str, str], plain: str = "", pattern: str = ""
) -> Reading:
    units = {found[0] if (found := re.search(_UNIT, value)) else "" for value in values}
    if len(units - {""}) > 1 or units == {"", "%"}:
        return Reading(TEXT, notes=(("mixed_units", ", ".join(sorted(units - {""}))),))
    unit = max(units)
    remarks = list(notes)
    with_unit = [value for value in values if unit and unit in value]
    kind = "percent" if unit == "%" else "currency"
    remarks += [(kind, value) for value in with_unit[:1]]
    remarks += [("rounded", value) for value in values if _ROUNDED.fullmatch(value)][:1]
    long = [value for value in values if _has_long_decimals(value)]
    remarks += [("long_decimals", value) for value in long[:1]]
    if plain:
        return Reading("DOUBLE", plain, "TRY_CAST({v} AS DOUBLE)", notes=tuple(remarks))
    pattern = pattern or _number(style, re.escape(unit), often="{1}" if unit == "%" else "?")
    decimal = "." if style == "point" else ","
    bare = rf"regexp_replace(regexp_replace({{v}}, '{_MONEY}', ''), '[^0-9eE+{decimal}-]', '', 'g')"
    number = (
        f"trim(regexp_replace(replace({bare}, '{decimal}', '.'), '([^eE]|^)-', '\\1', 'g'), '+')"
    )
    negative = "regexp_matches({v}, '^[^0-9]*[-−(]|-$')"
    # Excel's form for accounts writes zero as a dash beside the currency.
    sql = (
        f"CASE WHEN NOT regexp_matches({{v}}, '[0-9]') THEN 0.0 WHEN {negative} THEN"
        f" -TRY_CAST({number} AS DOUBLE) ELSE TRY_CAST({number} AS DOUBLE) END"
    )
    remarks += [("dash_is_zero", value) for value in values if not re.search(r"\d", value)][:1]
    has_sign = any("." in value or "," in value for value in values)
    number_style = style if not notes and has_sign else None
    return Reading("DOUBLE", pattern, sql, number_style, notes=tuple(remarks))


def _date_reading(values: Sequence[str], style: Style | None) -> Reading | None:
    fitting = [form for form, pattern in _FORMS.items() if _all(pattern, values)]
    if not fitting:
        return _mixed_dates(values)
    form = fitting[0]
    pattern = _FORMS[fitting[0]]
    notes = []
    if {"%d", "%m"} <= {fit[:2] for fit in fitting}:
        # No value decides it. In a file with decimal commas days come first, too.
        form = next(fit for fit in fitting if fit.startswith("%d" if style == "comma" else "%m"))
        pattern = _pattern(form.replace("%d", "%m"))
        notes.append(("day_first" if form.startswith("%d") else "month_first", values[0]))
    notes += [("short_years", values[0])] * ("%y" in form)
    kind = "TIMESTAMP" if "%M" in form else "DATE"
    return Reading(kind, pattern, _date_sql([form], kind), notes=tuple(notes))


def _first_fit(form: str, values: Sequence[str]) -> str | None:
    return next((value for value in values if re.fullmatch(_FORMS[form], value)), None)


def _mixed_dates(values: Sequence[str]) -> Reading | None:
    """Return how to read dates that are written in several ways, each of which makes clear what is
    the day and what the month. Return None if a value is not such a date.
    """
    forms = [form for form in _CLEAR_DATES if _first_fit(form, values) is not None]
    pattern = "|".join(_FORMS[form] for form in forms)
    if not forms or not _all(pattern, values):
        return None
    examples = [_first_fit(form, values) or "" for form in forms]
    return Reading(
        "DATE",
        f"(?:{pattern})",
        _date_sql(forms, "DATE"),
        notes=(("mixed_dates", ", ".join(examples)),),
    )


def _date_sql(forms: Sequence[str], kind: str) -> str:
    named = any("%b" in form for form in forms)
    short = r"regexp_replace({v}, '([A-Za-z]{{3}})[A-Za-z]*\.?', '\1')"
    value = short if named else "{v}"
    formats = ", ".join(f"'{form}'" for form in forms)
    return f"CAST(try_strptime({value}, [{formats}]) AS {kind})"
