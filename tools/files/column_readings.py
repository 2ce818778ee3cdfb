"""Decide how DuckDB must read each column of a table of texts, and write the SQL for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb

from longtable.tools.files.column_types import MISSING, TEXT, Reading, Style, read_as

MOST_STRAY = 0.001
"""The highest share of words in a column of numbers or dates at which these words are read as empty
cells. Above it, the column stays text.
"""
MOST_WORDS = 0.1
"""The highest share of words at which a column that stays text still gets a note that its other
values are numbers or dates.
"""
MOST_NAMED = 5
"""The most words that a note quotes."""
NO_WORDS = frozenset[str]()


def text_literal(text: str) -> str:
    """Return a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class _Strays:
    """The words in a column of numbers or dates that has a few of them: values without a digit, how
    many cells have such a value, and their share of the filled cells.
    """

    words: frozenset[str]
    count: int
    share: float


def readings_of(
    root: duckdb.DuckDBPyConnection, body: str, names: dict[str, str], style: Style | None
) -> dict[str, Reading]:
    """Return how to read each column. If a long column of numbers or dates has very few words in
    it, they are read as empty cells.
    """
    readings = _decided(root, body, names, style, {})
    texts = [name for name in names if readings[name] == Reading(TEXT)]
    strays = _strays(root, body, texts)
    if not strays:
        return readings
    words = {name: each.words for name, each in strays.items()}
    agreed = {reading.style for reading in readings.values() if reading.style}
    style = style or (agreed.pop() if len(agreed) == 1 else None)
    again = _decided(root, body, {name: names[name] for name in strays}, style, words)
    for name, reading in again.items():
        if reading.type not in (TEXT, "BOOLEAN"):
            readings[name] = _with_strays(reading, strays[name])
    return readings


def _with_strays(reading: Reading, strays: _Strays) -> Reading:
    """Return how to read a column of numbers or dates that has some words in it."""
    example = ", ".join(sorted(strays.words)[:MOST_NAMED])
    if strays.share > MOST_STRAY:
        return Reading(TEXT, notes=(("words_among", example),))
    note = ("stray_words", f"{example} ({strays.count:,})")
    return replace(reading, notes=(*reading.notes, note))


def _strays(root: duckdb.DuckDBPyConnection, body: str, names: Sequence[str]) -> dict[str, _Strays]:
    """Return the values without a digit of each column in which they are at most `MOST_WORDS` of
    the cells.
    """
    strays: dict[str, _Strays] = {}
    missing = ", ".join(map(text_literal, sorted(MISSING)))
    for name in names:
        word = f"NOT regexp_matches({name}, '[0-9]') AND lower({name}) NOT IN ({missing})"
        [(filled, count)] = root.execute(
            f"SELECT count({name}), count(*) FILTER ({word}) {body}"
        ).fetchall()
        if 0 < count <= MOST_WORDS * filled:
            rows = root.execute(f"SELECT DISTINCT {name} {body} AND {word} LIMIT 1001").fetchall()
            words = frozenset(str(value) for (value,) in rows)
            if len(words) <= 1_000:
                strays[name] = _Strays(words, count, count / filled)
    return strays


def _decided(
    root: duckdb.DuckDBPyConnection,
    body: str,
    names: dict[str, str],
    style: Style | None,
    stray: dict[str, frozenset[str]],
) -> dict[str, Reading]:
    """Decide how to read each column from some of its values. Then look for values that do not fit,
    and decide again with these values too. `stray` gives, for each column, words to ignore.
    """

    def cells(sql: str) -> set[str]:
        return {str(cell) for (cell,) in root.execute(f"{sql} LIMIT 200").fetchall()}

    values = {name: cells(f"SELECT {name} {body} AND {name} IS NOT NULL") for name in names}
    readings: dict[str, Reading] = {}
    unsure = set(names)
    fixed = style
    for _ in range(12):
        readings |= {
            name: read_as(values[name], names[name], style=style, stray=stray.get(name, NO_WORDS))
            for name in unsure
        }
        misfits = {
            name: _misfit(name, readings[name])
            for name in names
            if name in unsure and readings[name].pattern
        }
        counts = root.execute(
            "SELECT count(*),"
            f" {', '.join(f'count(*) FILTER ({misfit})' for misfit in misfits.values())} {body}"
        ).fetchall()[0][1:]
        unsure = {name for name, count in zip(misfits, counts, strict=False) if count}
        for name in unsure:
            values[name] |= cells(f"SELECT DISTINCT {name} {body} AND {misfits[name]}")
        styles: set[Style | None] = {
            reading.style for reading in readings.values() if reading.style
        }
        agreed = fixed or (styles.pop() if len(styles) == 1 else None)
        if agreed != style:
            style = agreed
            unsure = unsure | {name for name in names if readings[name].notes}
        if not unsure:
            break
    return readings | dict.fromkeys(unsure, Reading(TEXT))


def _misfit(name: str, reading: Reading) -> str:
    """Return SQL that is true for a value that does not fit the reading chosen for its column."""
    converted = "" if reading.type == TEXT else f" AND ({reading.sql.format(v=name)}) IS NOT NULL"
    known = value_sql(name, Reading(TEXT), reading.missing | reading.stray)
    return (
        f"{known} IS NOT NULL AND NOT (regexp_full_match({name},"
        f" {text_literal(reading.pattern)}){converted})"
    )


def value_sql(name: str, reading: Reading, words: frozenset[str]) -> str:
    """Return SQL that reads a value of a column. In a column of text, `words` are read as missing
    values; any other column has its own missing words.
    """
    words = words if reading.type == TEXT else reading.missing | reading.stray
    value = reading.sql.format(v=name)
    return (
        f"CASE WHEN {name} NOT IN ({', '.join(map(text_literal, sorted(words)))}) THEN {value} END"
        if words
        else value
    )
