"""Forty files as people's programs export them, written blind: each loads right, or says what it
could not.

`evals/blind/README.md` tells how to read what each of them must come to.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.tools.catalog import Table
from longtable.tools.database import Database, FileLimits, QueryLimits
from longtable.tools.engines.base import LoadNote

BLIND = Path(__file__).parents[3] / "evals" / "blind"
FOLDER = BLIND / "exports"
EXPORTS: list[dict[str, Any]] = json.loads((BLIND / "exports.json").read_text(encoding="utf-8"))


def plain(header: str) -> str:
    return " ".join(header.split("#")[0].split())


def pair(
    must: Sequence[str], table: Sequence[str], values: Mapping[str, list[object]], *, index: bool
) -> dict[str, str] | None:
    """Return which loaded column each wanted one is, in order; None where one is missing or too
    many.
    """
    must = [
        f"{name}#{must[: place + 1].count(name)}" if name and name in must[:place] else name
        for place, name in enumerate(must)
    ]
    pairs: dict[str, str] = {}
    left = list(table)
    for place, want in enumerate(must):
        while left and all(cell is None for cell in values[left[0]]) and plain(want) not in left[0]:
            left.pop(0)
        if index and place == 0 and len(left) == len(must) - 1:
            continue
        if not left:
            return None
        name = left.pop(0)
        if want and name != want and " ".join(name.split()) != plain(want):
            again = "#" in want and name.startswith(plain(want))
            joined = " Plan" in want or " Ist" in want or " Actual" in want
            if not again and not (joined and all(part in name for part in want.split())):
                return None
        pairs[want] = name
    return pairs if all(cell is None for name in left for cell in values[name]) else None


def same(kind: str, want: object, cell: object) -> bool:
    if want is None or cell is None:
        return want is None and cell in (None, "")
    if kind == "numbers":
        number = isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)
        return number and abs(float(str(cell)) - float(str(want))) <= 1e-9 * max(
            1.0, abs(float(str(want)))
        )
    if kind == "dates":
        if isinstance(cell, datetime):
            return cell.replace(tzinfo=None) == datetime.fromisoformat(str(want)).replace(
                tzinfo=None
            )
        return isinstance(cell, date) and cell.isoformat() == want
    if kind == "booleans":
        return cell is want or (
            not isinstance(cell, bool) and (isinstance(cell, str) or cell == want)
        )
    # A number, time or date is right only where it looks as the file has it.
    return isinstance(cell, str | int | time | date) and str(cell).replace("\r\n", "\n") == want


def faults(
    database: Database, table: Table, must: Mapping[str, Any], notes: Sequence[LoadNote]
) -> tuple[list[str], list[str]]:
    """Return what is wrong with a table in silence, and what it says that it could not."""
    rows = database.run(f"SELECT * FROM {table.sql_name}").rows
    names = [column.name for column in table.columns]
    values = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    noted = {note.column for note in notes}
    codes = {note.code for note in notes}
    wrong: list[str] = []
    said: list[str] = []
    if len(rows) != must["rows"]:
        total = must.get("total_row") and "total_rows" in codes and len(rows) == must["rows"] + 1
        (said if total else wrong).append(f"{len(rows)} rows, not {must['rows']}")
    pairs = pair(must["columns"], names, values, index=must.get("index_column", False))
    if pairs is None:
        return [*wrong, f"columns {names}, not {must['columns']}"], said
    for kind in ("numbers", "dates", "texts", "booleans"):
        for column, wanted in must.get(kind, {}).items():
            cells = values[pairs[column]][: len(wanted)] if column in pairs else []
            off = [
                (want, cell)
                for want, cell in zip(wanted, cells, strict=False)
                if not same(kind, want, cell)
            ]
            if len(cells) != len(wanted) or off:
                (said if pairs.get(column) in noted else wrong).append(
                    f"{kind} {column}: {off[:3]}"
                )
    for column, question in must.get("ambiguous", {}).items():
        if pairs.get(column, column) not in noted:
            wrong.append(f"{column}: in silence {question}")
    return wrong, said


def verdict(entry: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return `right`, `said` or `wrong`, and why."""
    path = FOLDER / entry["file"]
    try:
        database = Database.open(
            str(FOLDER / "sales_hive" if "sales_hive" in entry["file"] else path),
            files=FileLimits(memory_bytes=500_000_000),
            limits=QueryLimits(seconds=60),
            isolation="none",
        )
    except (DatabaseUnavailableError, ConfigError) as error:
        return "said" if entry["or_note"] else "wrong", [str(error)]
    with database:
        tables = list(database.catalog().tables)
        must = entry["must"]
        sheets = [must, *must.get("more_sheets", [])]
        if len(tables) != len(sheets):
            return "wrong", [f"{len(tables)} tables"]
        wrong, said = [], []
        for sheet in sheets:
            table = (
                tables[0]
                if len(sheets) == 1
                else next(t for t in tables if f"sheet {sheet['sheet']}" in str(t.comment))
            )
            here = faults(
                database,
                table,
                sheet,
                [note for note in database.notes if note.table in ("", table.name)],
            )
            wrong += here[0]
            said += here[1]
    if wrong or (said and not entry["or_note"]):
        return "wrong", wrong + said
    return ("said", said) if said else ("right", [])


@pytest.mark.parametrize("entry", EXPORTS, ids=[entry["file"] for entry in EXPORTS])
def test_an_exported_file_loads_right_or_says_what_it_could_not(entry: dict[str, Any]) -> None:
    found, why = verdict(entry)
    assert found in ("right", "said"), why


@pytest.mark.parametrize("folder", ["sales_csv", "sales_parquet"])
def test_files_that_differ_by_a_year_are_one_table_that_says_which(folder: str) -> None:
    together = next(entry["together"] for entry in EXPORTS if entry["file"].startswith(folder))
    with Database.open(str(FOLDER / folder), isolation="none") as database:
        [table] = database.catalog().tables
        assert [column.name for column in table.columns][: len(together["columns"])] == together[
            "columns"
        ]
        [which] = [
            column.name for column in table.columns if column.name not in together["columns"]
        ]
        counts = database.run(
            f'SELECT "{which}", count(*) FROM {table.sql_name} GROUP BY 1 ORDER BY 1'
        ).rows
        assert sum(int(str(count)) for _, count in counts) == together["rows"]
        assert ["2023" in str(counts[0][0]), "2024" in str(counts[1][0]), len(counts)] == [
            True,
            True,
            2,
        ]
        assert "files_joined" in {note.code for note in database.notes}
