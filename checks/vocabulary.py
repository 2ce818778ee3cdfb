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
"""Patterns of words in a question, by meaning."""
FACTORS: dict[str, int] = _FILE["factors"]
"""Columns that a sum of prices must take into account, each with the value that changes nothing."""
NAME_WORDS: dict[str, frozenset[str]] = {
    kind: frozenset(words) for kind, words in _FILE["name_words"].items()
}
"""Parts of column names, by the kind of data that they announce."""


class Unit(NamedTuple):
    """The size of a unit in its base unit, and the dimension that it measures; see words.toml."""

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
"""The units by their words."""


class DayForm(NamedTuple):
    """One way to write a day, and the groups of its month and its days."""

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
    """Return the words of a name as written."""
    return _WORD.findall(name)


def name_words(name: str) -> list[str]:
    """Return the words of a name, folded and singular."""
    return [singular(word.casefold()) for word in split_name(name)]


def _word_pattern(kind: str) -> re.Pattern[str]:
    """Return the pattern of a list of whole words, and of signs, which may be next to other
    letters.
    """
    entry = _FILE[kind]
    words = "|".join(entry["words"])
    other = "|".join(entry["other"])
    return re.compile(rf"\b(?:{words})\b|{other}", re.IGNORECASE)


DIFFERENCE = _word_pattern("difference")
"""Words of a difference, growth or rest."""
TOTAL = _word_pattern("total")
"""Words that make a sentence one about all rows, if it names no row."""
