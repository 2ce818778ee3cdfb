"""Decide how to read each column of a table of texts in DuckDB, and write the SQL for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb

from longtable.tools.files.column_types import MISSING, TEXT, Reading, Style, read_as

MOST_STRAY = 0.001
"""Highest share of words in a column of numbers at which they are still read as empty."""
MOST_WORDS = 0.1
"""Highest share of words at which a note still says that the other values are numbers."""
MOST_NAMED = 5
"""The most words that a note names."""
NO_WORDS = frozenset[str]()


def text_literal(text: str) -> str:
    """Return a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class _Strays:
    """Values without a digit in a column of text in which nearly all other values have one."""

    words: frozenset[str]
    count: int
    share: float


def readings_of(
    root: duckdb.DuckDBPyConnection, body: str, names: dict[str, str], style: Style | None
) -> dict[str, Reading]:
    """Return how to read each column. Few words in a long column of numbers are read as empty."""
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
    """Return how to read a column of numbers or dates with some words in it."""
    example = ", ".join(sorted(strays.words)[:MOST_NAMED])
    if strays.share > MOST_STRAY:
        return Reading(TEXT, notes=(("words_among", example),))
    note = ("stray_words", f"{example} ({strays.count:,})")
    return replace(reading, notes=(*reading.notes, note))


def _strays(root: duckdb.DuckDBPyConnection, body: str, names: Sequence[str]) -> dict[str, _Strays]:
    """Return the values without a digit of each column that has a few of them."""
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
    """Decide from some of its values how to read each column, then decide again with the values
    that do not fit. `stray`: words of a column that are ignored.
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
    """Return SQL that is true for a value that does not have the form decided for its column."""
    converted = "" if reading.type == TEXT else f" AND ({reading.sql.format(v=name)}) IS NOT NULL"
    known = value_sql(name, Reading(TEXT), reading.missing | reading.stray)
    return (
        f"{known} IS NOT NULL AND NOT (regexp_full_match({name},"
        f" {text_literal(reading.pattern)}){converted})"
    )


def value_sql(name: str, reading: Reading, words: frozenset[str]) -> str:
    """Return SQL that reads a value of a column. In a column of text, `words` count as missing,
    too.
    """
    words = words if reading.type == TEXT else reading.missing | reading.stray
    value = reading.sql.format(v=name)
    return (
        f"CASE WHEN {name} NOT IN ({', '.join(map(text_literal, sorted(words)))}) THEN {value} END"
        if words
        else value
    )
