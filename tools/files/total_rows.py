"""Find rows of a table of texts that are totals of other rows: the first cell has a word for a
total, and the figures are sums of rows above.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from longtable.tools.files.column_readings import readings_of, text_literal, value_sql
from longtable.tools.files.column_types import Style

TOTAL = re.compile(
    r"(?i)\W*(?:(?:(?:grand |sub[- ]?|sous-)?totals?(?:"
    r" général)?|(?:gesamt|zwischen)?summe|(?:ins)?gesamt|sums?|somme"
    r"|合计|总计|小计|总额|共计)\b|\*)\W*"
)
"""Matches the first cell of a row of totals. The whole cell must match, because a longer text may
be a name, such as Total SE.
"""
_SUBTOTAL = re.compile(
    r"(?i)(?:sub[- ]?total|sous-total|zwischensumme|小计)\b.*"
    r"|.*\S\W+(?:sub[- ]?total|total|summe|gesamt|ergebnis)\W*"
    r"|.+(?:小计|合计)"
)
"""Matches the first cell of a row of subtotals, which may name the group, such as Subtotal North or
North Total.
"""
_ANY = r"(?i)total|summe|gesamt|sum|somme|ergebnis|合计|总计|小计|总额|共计|^\W*\*\W*$"
MOST_TOTALS = 1_000
"""The most rows that may be totals. If more rows have a word for a total, the word belongs to the
table's own data.
"""
TOLERANCE = 0.005
"""The share by which a total may differ from the sum, because the figures may have been rounded."""

Figures = list[float | None]


@dataclass(frozen=True)
class TotalRow:
    """A row that is a total or may be one. `code` is the code of the note about this row."""

    place: int
    code: str
    words: str

    @property
    def is_left_out(self) -> bool:
        """Return whether the row is certainly a total, so that it is left out of the table."""
        return self.code.endswith("_left_out")


@dataclass
class _Candidate:
    place: int
    first: str
    words: str
    figures: Figures

    @property
    def is_whole(self) -> bool:
        return TOTAL.fullmatch(self.first) is not None


def total_rows(
    root: duckdb.DuckDBPyConnection, end: int, headers: dict[str, str], style: Style | None
) -> list[TotalRow]:
    """Return the rows before the place `end` that are totals or may be totals."""
    places = _places(root, end, headers)
    if not 0 < len(places) <= MOST_TOTALS or end < 2:
        return []
    inside = ", ".join(map(str, places))
    details = f"FROM scratch.body WHERE rowid < {end} AND rowid NOT IN ({inside})"
    numbers = [
        value_sql(name, reading, frozenset())
        for name, reading in readings_of(root, details, headers, style).items()
        if reading.type in ("BIGINT", "DOUBLE")
    ]
    candidates = _candidates(root, inside, list(headers), numbers)
    sums = _sums(root, end, inside, numbers)
    return list(_judged(candidates, sums, end))


def _places(root: duckdb.DuckDBPyConnection, end: int, headers: dict[str, str]) -> list[int]:
    """Return the places of the rows whose first cell has a word for a total."""
    first = f"coalesce({', '.join(headers)}, '')"
    rows = root.execute(
        f"SELECT rowid, {first} FROM scratch.body WHERE rowid < {end} AND"
        f" regexp_matches({first}, {text_literal(_ANY)}) ORDER BY rowid LIMIT {MOST_TOTALS + 1}"
    ).fetchall()
    return [place for place, text in rows if TOTAL.match(text) or _SUBTOTAL.fullmatch(text)]


def _candidates(
    root: duckdb.DuckDBPyConnection, inside: str, names: Sequence[str], numbers: Sequence[str]
) -> list[_Candidate]:
    figures = "".join(f", {number}" for number in numbers)
    rows = root.execute(
        f"SELECT rowid, coalesce({', '.join(names)}), concat_ws(', ', {', '.join(names)}){figures}"
        f" FROM scratch.body WHERE rowid IN ({inside}) ORDER BY rowid"
    ).fetchall()
    return [_Candidate(row[0], row[1], row[2], list(row[3:])) for row in rows]


def _sums(
    root: duckdb.DuckDBPyConnection, end: int, inside: str, numbers: Sequence[str]
) -> dict[int, Figures]:
    """Return the sums of the rows between two candidates. The key is the number of candidates above
    these rows.
    """
    totals = "".join(f", sum({number})" for number in numbers)
    rows = root.execute(
        f"SELECT part{totals} FROM (SELECT *, rowid AS place, count(*) FILTER (rowid IN"
        f" ({inside})) OVER (ORDER BY rowid) AS part FROM scratch.body WHERE rowid < {end})"
        f" WHERE place NOT IN ({inside}) GROUP BY part"
    ).fetchall()
    return {row[0]: list(row[1:]) for row in rows}


def _judged(
    candidates: Sequence[_Candidate], sums: dict[int, Figures], end: int
) -> Iterator[TotalRow]:
    for number, candidate in enumerate(candidates):
        adds = _adds_up(candidate.figures, [sums.get(part) for part in range(number, -1, -1)])
        code = _code(candidate, adds=adds, is_last=candidate.place == end - 1)
        if code:
            yield TotalRow(candidate.place, code, candidate.words)
        if not code.endswith("_left_out"):
            sums[number + 1] = _added(candidate.figures, sums.get(number + 1))


def _code(candidate: _Candidate, *, adds: bool, is_last: bool) -> str:
    if is_last and TOTAL.match(candidate.first):
        if adds and candidate.is_whole:
            return "total_left_out"
        return "total_rows" if adds or candidate.is_whole else ""
    if adds and (candidate.is_whole or _SUBTOTAL.fullmatch(candidate.first)):
        return "subtotals_left_out"
    return "subtotal_rows" if candidate.is_whole else ""


def _adds_up(figures: Figures, parts: Sequence[Figures | None]) -> bool:
    """Return whether the figures of a row are sums of the figures above it. The sums may reach up
    to the nearest total, to an earlier total, or to the first row. False if the row has no figures.
    `parts` are the sums of the rows between totals, the nearest part first.
    """
    above: Figures | None = None
    for part in parts:
        if part is not None:
            above = _added(part, above)
            if _equal(figures, above):
                return True
    return False


def _added(one: Figures, other: Figures | None) -> Figures:
    if other is None:
        return list(one)
    return [(a or 0) + (b or 0) for a, b in zip(one, other, strict=True)]


def _equal(figures: Figures, sums: Figures) -> bool:
    pairs = [(figure, total or 0) for figure, total in zip(figures, sums, strict=True) if figure]
    return bool(pairs) and all(
        abs(figure - total) <= TOLERANCE * abs(figure) for figure, total in pairs
    )
