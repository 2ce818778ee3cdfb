"""Read the columns of a table of texts in DuckDB: how each is read, and the SQL that does it."""

import duckdb

from longtable.tools.engines.column_types import TEXT, Reading, Style, read_as


def text_literal(text: str) -> str:
    """Return a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def readings_of(
    root: duckdb.DuckDBPyConnection, body: str, names: dict[str, str], style: Style | None
) -> dict[str, Reading]:
    """Return how to read each column: decided from some values, and again with each value that does
    not fit.
    """
    values = {
        name: {
            str(cell)
            for (cell,) in root.execute(
                f"SELECT {name} {body} AND {name} IS NOT NULL LIMIT 200"
            ).fetchall()
        }
        for name in names
    }
    readings: dict[str, Reading] = {}
    unsure, fixed = set(names), style
    for _ in range(12):
        readings |= {name: read_as(values[name], names[name], style=style) for name in unsure}
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
        values |= {
            name: (
                values[name].union(
                    str(cell)
                    for (cell,) in root.execute(
                        f"SELECT DISTINCT {name} {body} AND {misfits[name]} LIMIT 200"
                    ).fetchall()
                )
            )
            for name in unsure
        }
        styles: set[Style | None] = {
            reading.style for reading in readings.values() if reading.style
        }
        agreed = fixed or (styles.pop() if len(styles) == 1 else None)
        if agreed != style:
            style, unsure = agreed, unsure | {name for name in names if readings[name].notes}
        if not unsure:
            break
    return readings | dict.fromkeys(unsure, Reading(TEXT))


def _misfit(name: str, reading: Reading) -> str:
    """Return SQL that is true where a value is not of the form that its column is read as."""
    converted = "" if reading.type == TEXT else f" AND ({reading.sql.format(v=name)}) IS NOT NULL"
    known = value_sql(name, Reading(TEXT), reading.missing)
    return (
        f"{known} IS NOT NULL AND NOT (regexp_full_match({name},"
        f" {text_literal(reading.pattern)}){converted})"
    )


def value_sql(name: str, reading: Reading, words: frozenset[str]) -> str:
    """Return SQL for the value of a column as it is read; in a column of text, `words` are missing,
    too.
    """
    words = words if reading.type == TEXT else reading.missing
    value = reading.sql.format(v=name)
    return (
        f"CASE WHEN {name} NOT IN ({', '.join(map(text_literal, sorted(words)))}) THEN {value} END"
        if words
        else value
    )
