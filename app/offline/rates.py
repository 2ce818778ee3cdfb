"""Let a time beside money name the column of that rate: 'charging more than 45 an hour' where there is an hourly fee."""

# ruff: noqa: E501, SIM905 - a pattern, or a list of words, reads best on one line

import re
from collections.abc import Callable

from longtable.app.offline.catalog import Catalog, Column
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES
from longtable.app.offline.text import lemma

_I = re.IGNORECASE
_UNITS = {
    "hour": "hourly", "day": "daily", "night": "nightly", "week": "weekly", "month": "monthly", "year": "annual",
}  # fmt: skip
_FORMS = {"yearly": "year", "annually": "year", **{adjective: unit for unit, adjective in _UNITS.items()}}
_ASKED = frozenset("price fee cost rate charge rent".split())
_PAID = frozenset("pay wage salary rate earning".split())
_NOUNS = _ASKED | _PAID
_VERBS = {"cost": _ASKED, "charge": _ASKED, "charging": _ASKED, "rent": _ASKED, "hire": _ASKED, "earn": _PAID, "earning": _PAID, "make": _PAID, "making": _PAID, "paid": _PAID}  # fmt: skip
_COMPARED = r"(?:(?:more than|less than|over|under|above|below|at least|at most|up to|exactly) [$€£]?[\d.,]*\d|between [$€£]?[\d.,]+ and [$€£]?[\d.,]*\d)"
_LOWEST = frozenset(["cheapest", "least expensive", "worst paid", "lowest paid"])


def with_rates(question: str, catalog: Catalog) -> str:
    """Return the question with such a phrase replaced by the name of the one column that it can mean."""
    for unit, adjective in _UNITS.items():
        rated = [c for table in catalog.tables.values() if table.kind == "table" for c in table.columns if _is_rate(c, unit)]
        if rated:
            question = _named(question, unit, adjective, _chooser(question, rated, catalog))
    return question


def _is_rate(column: Column, unit: str) -> bool:
    words = _words(column)
    return column.is_number and not column.is_id and bool(_NOUNS & words) and unit in {_FORMS.get(word, word) for word in words}


def _words(column: Column) -> set[str]:
    return {lemma(each) for word in column.words for each in (word, *ALTERNATIVES.get(word, ()))}


def _chooser(question: str, rated: list[Column], catalog: Catalog) -> Callable[[frozenset[str]], str]:
    """Return what gives the name of the one rate of certain nouns, of a table that the question names if several have one."""
    said = {lemma(word) for word in re.findall(r"[a-z]+", question.lower())}

    def name(nouns: frozenset[str]) -> str:
        fits = [column for column in rated if nouns & _words(column)]
        near = [c for c in fits if (table := catalog.table(c.table)) is not None and said & {lemma(word) for word in table.words}]
        fits = fits if len(fits) == 1 else near
        return fits[0].name if len(fits) == 1 else ""

    return name


def _named(question: str, unit: str, adjective: str, name: Callable[[frozenset[str]], str]) -> str:
    per = rf"(?:an?|per|each|every|by the) {unit}\b"

    def put(nouns: frozenset[str], match: re.Match[str], pattern: str) -> str:
        found = name(nouns)
        return pattern.format(found) if found else match[0]

    def rule(pattern: str, written: Callable[[re.Match[str]], str]) -> None:
        nonlocal question
        question = re.sub(pattern, written, question, flags=_I)

    rule(
        rf"\b(?:that |which |who )?(charg|earn|cost|mak)(?:es?|ing|s)? ({_COMPARED}) {per}",
        lambda m: put(_VERBS[{"charg": "charge", "mak": "make"}.get(m[1].lower(), m[1].lower())], m, f"with {{}} {m[2]}"),
    )
    rule(
        rf"^(?:what|how much) (?:does|do|did|would) (.+?) (cost|charge|earn|make)s? {per}(?=\W*$)",
        lambda m: put(_VERBS[m[2].lower()], m, f"what is the {{}} of {m[1]}"),
    )
    rule(
        rf"\band (?:what|how much) (?:does|do) (?:he|she|it|they|each) (cost|charge|earn|make) {per}",
        lambda m: put(_VERBS[m[1].lower()], m, "and the {}"),
    )
    rule(
        rf"^(?:what|how much) (?:does|do|would) (?:an?|one) {unit} (?:of|with|in|at) (.+?) cost(?=\W*$)",
        lambda m: put(_ASKED, m, f"what is the {{}} of {m[1]}"),
    )
    rule(rf"\b(?:{adjective}|{unit}ly) ({'|'.join(sorted(_NOUNS))})(?=s?\b)", lambda m: put(frozenset([lemma(m[1].lower())]), m, "{}"))
    rule(rf"\b({'|'.join(sorted(_NOUNS))})s? per {unit}\b", lambda m: put(frozenset([lemma(m[1].lower())]), m, "{}"))
    rule(
        rf"\b(cheapest|least expensive|most expensive|dearest) ([a-z]+) (?:to [a-z]+ )?{per}",
        lambda m: put(_ASKED, m, f"{m[2]} with the {'lowest' if m[1].lower() in _LOWEST else 'highest'} {{}}"),
    )
    return question
