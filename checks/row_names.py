"""Find the names by which an answer may call a row of a result: the text of a cell, or a date in
other words.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from longtable.memory.counting.figures import number_in

_MONTHS = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_QUARTERS = (
    ("Q1", "第1季度", "一季度", "first quarter"),
    ("Q2", "第2季度", "二季度", "second quarter"),
    ("Q3", "第3季度", "三季度", "third quarter"),
    ("Q4", "第4季度", "四季度", "fourth quarter"),
)
_HALVES = (("first half", "H1", "上半年"), ("second half", "H2", "下半年"))
_WHEN = re.compile(
    r"=((?:1[5-9]|20)\d\d)[年度]*(?:[-/.](\d\d)(?:[-/.](\d\d).*)?|-?Q([1-4]))?$|(?:month|月)[^=]*=(\d\d?)月?$|=(\d\d?)月$"
    r"|(?:quarter|季)[^=]*=Q?([1-4])$|=Q([1-4])$",
    re.IGNORECASE,
)
"""Matches the text `column=cell` if the cell is a date or part of a date."""
_ENDING = re.compile(r"(?:特别行政区|自治区|[市省县区部]|(?<=[a-z]{3})s|(?<=^[A-Z]{2})[A-Z])$")
"""Matches endings that a short form of a name leaves out, such as 市 in 北京市."""
_AFTER = (
    "(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember|day|sday|nesday|rsday|urday)?s?(?![A-Za-z0-9])"
)

RowsByName = dict[str, dict[str, set[int]]]
"""For each name, the rows that it may mean, by the kind of the name. The kind is a column, or a
part of the dates in a column, such as their year.
"""


class _Form(NamedTuple):
    """One name of a row. `of` is the kind of the name: a column, or a part of the dates in a
    column.
    """

    of: str
    text: str


def is_name(cell: object) -> TypeGuard[str]:
    """Return whether a cell is a text that may serve as a name of its row."""
    return isinstance(cell, str) and 2 <= len(cell) <= 200 and number_in(cell) is None


def names_in_column(cells: Iterable[object]) -> set[str]:
    """Return the cells of a column that may serve as names of their rows."""
    return set(filter(is_name, cells))


def rows_by_name(
    cells: Sequence[Sequence[object]], columns: Sequence[str], folded: str
) -> RowsByName:
    """Return the names of rows that a folded text contains, each with its rows. `cells` holds one
    list for each column.

    The longest name comes first, so that New York is not read as York.
    """
    rows: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for column, name in zip(cells, columns, strict=True):
        known = {
            cell: _forms_in(folded, cell, name) for cell in column if isinstance(cell, str | int)
        }
        for at, cell in enumerate(column):
            for form in known[cell] if isinstance(cell, str | int) else ():
                rows[form.text][form.of].add(at)
    return dict(sorted(rows.items(), key=lambda named: -len(named[0])))


def name_pattern(names: Mapping[str, object]) -> re.Pattern[str]:
    """Return a pattern that matches any of these names. Each name is a group of the pattern, in
    order.
    """
    return re.compile("|".join(map(_pattern, names)) or r"(?!)")


def _pattern(name: str) -> str:
    flag = "" if len(name) <= 3 or name in _MONTHS else "i"
    after = _AFTER if name[-1].isascii() else ""
    return rf"(?<![A-Za-z0-9])((?{flag}:{re.escape(name)})){after}"


def _forms_in(folded: str, cell: str | int, column: str) -> list[_Form]:
    return [form for form in _forms(cell, column) if form.text.casefold() in folded]


def _forms(cell: str | int, column: str) -> list[_Form]:
    """Return the names by which an answer may call a row with this cell."""
    forms = _date_forms(cell, column)
    if is_name(cell):
        forms += [_Form(column, text) for text in _name_forms(cell)]
    return [form for form in forms if len(form.text) > 1]


def _date_forms(cell: str | int, column: str) -> list[_Form]:
    when = _WHEN.search(f"{column}={cell}")
    if when is None:
        return []
    month = int(when[2] or when[5] or when[6] or 0) % 13
    day = int(when[3] or 0)
    quarter = int(when[4] or when[7] or when[8] or (month + 2) // 3)
    name = _MONTHS[month]
    forms = [_Form(f"{column}year", when[1] or "")]
    if day:
        days = (f"{name} {day}", f"{name[:3]} {day}", f"{day} {name}", f"{month}月{day}日")
        forms += [_Form(f"{column}day", text) for text in days]
    if month:
        forms += [_Form(f"{column}month", text) for text in (name, name[:3], f"{month}月")]
    if quarter:
        half = _HALVES[quarter > 2]
        forms += [_Form(f"{column}quarter", text) for text in _QUARTERS[quarter - 1]]
        forms += [_Form(f"{column}half", text) for text in half]
    return forms


def _name_forms(cell: str) -> list[str]:
    """Return the forms of a name: the name itself, its short form, its initials, and all its words
    of three or more letters without the last word.
    """
    words = cell.split()
    initials = "".join(word[0] for word in words) if cell.istitle() else ""
    return [cell, _ENDING.sub("", cell), initials, *(word for word in words[:-1] if len(word) > 2)]
