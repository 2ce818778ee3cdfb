"""The words that the checks know, read from words.toml."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from longtable.tools.schema.schema_index import singular

_FILE = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[\u4e00-\u9fff]+")

PHRASES: dict[str, re.Pattern[str]] = {
    meaning: re.compile(pattern) for meaning, pattern in _FILE["phrases"].items()
}
"""For each meaning, a pattern of words in a question."""
FACTORS: dict[str, int] = _FILE["factors"]
"""Factors that a sum of prices must take into account, by the name of their column. The value is
the one that changes nothing, such as 1 for a quantity.
"""
NAME_WORDS: dict[str, frozenset[str]] = {
    kind: frozenset(words) for kind, words in _FILE["name_words"].items()
}
"""Words in names of columns, by the kind of data that they point to."""


class Unit(NamedTuple):
    """A unit: its size in base units, such as 60 for a minute, and the dimension that it measures;
    see words.toml.
    """

    size: float
    dimension: float


NO_UNIT = Unit(1.0, 1.0)


def _units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for entry in _FILE["units"]:
        unit = Unit(entry["size"], entry["dimension"])
        units |= dict.fromkeys(entry["words"], unit)
    return units


UNITS = _units()
"""The units, by the words for them."""


class DayForm(NamedTuple):
    """One way to write days. `pattern` is a regular expression; `month` and `days` are the numbers
    of its groups for the month and for the first and last day.
    """

    pattern: re.Pattern[str]
    month: int
    days: tuple[int, int]


def _day_forms() -> list[DayForm]:
    written = _FILE["days"]
    forms = []
    for form in written["forms"]:
        text = form["pattern"].replace("MONTH", written["month"]).replace("TO", written["to"])
        month, first, last = form["places"]
        forms.append(DayForm(re.compile(text), month, (first, last)))
    return forms


DAY_FORMS = _day_forms()


def split_name(name: str) -> list[str]:
    """Return the words of a name, as they are written in it."""
    return _WORD.findall(name)


def name_words(name: str) -> list[str]:
    """Return the words of a name in lower case and in the singular."""
    return [singular(word.casefold()) for word in split_name(name)]


def _word_pattern(kind: str) -> re.Pattern[str]:
    """Return a pattern for whole words and for other signs. A sign may be next to other letters."""
    entry = _FILE[kind]
    words = "|".join(entry["words"])
    other = "|".join(entry["other"])
    return re.compile(rf"\b(?:{words})\b|{other}", re.IGNORECASE)


DIFFERENCE = _word_pattern("difference")
"""Matches words for a difference, for growth or for a rest."""
TOTAL = _word_pattern("total")
"""Matches words that make a sentence refer to all rows if it names no row."""
