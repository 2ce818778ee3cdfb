"""Sample a limited part of a table within a time budget: values for the search, and statistics of
its columns.
"""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from longtable.base.errors import DatabaseError, QueryCancelledError, QueryTimeoutError
from longtable.tools.catalog import Column, Table
from longtable.tools.cells import Json, clean, preview_cell
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.workers.runner import Cancel

TEXT = re.compile(r"CHAR|CLOB|TEXT|STRING|^$|^ENUM|^JSONB?$|^UUID$", re.IGNORECASE)
NUMBER = re.compile(
    r"(?<!PO)INT(?!ERVAL|\d*(MULTI)?RANGE)|DEC|NUM(?!RANGE|MULTI)|REAL|FLOA|DOUB", re.IGNORECASE
)
NESTED = re.compile(
    r"\[|^STRUCT|^MAP|^UNION|^ARRAY|^TUPLE|^NESTED|^VARIANT|^DYNAMIC|^AGGREGATE|BLOB|BIT|BYTEA"
    r"|GEOMETRY",
    re.IGNORECASE,
)
_TIME = re.compile(r"^(DATE|TIME|YEAR)", re.IGNORECASE)
_NO_EQUALITY = re.compile(r"^(JSON$|XML|POINT|LINE|LSEG|BOX|PATH|POLYGON|CIRCLE)", re.IGNORECASE)

TABLE_SECONDS = 0.5
SAMPLED_ROWS = 10_000
PARTS = 10
MOST_COLUMNS = 60
FEW_VALUES = 8
MOST_TOLD_APART = 100
VALUE_CHARS = 40
NAME_ROWS = 200
NAME_VALUES = 12
NAME_COLUMNS = 12
NAME_CHARS = 60
"""Limits on the sample of a table for the search: rows, values of one column, columns, and
characters of one value.
"""


class Reader(Protocol):
    """The part of a `Database` that sampling needs."""

    @property
    def dialect(self) -> str:
        """Return the SQL dialect."""
        ...

    def read(
        self,
        sql: str,
        params: Sequence[object] = (),
        *,
        seconds: float,
        cancel: Cancel | None = None,
    ) -> list[tuple[object, ...]]:
        """Run SQL of this package and return its rows."""
        ...


@dataclass
class Budget:
    """The seconds that one call of a tool may spend on optional facts."""

    seconds: float

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left, 0 if all are spent."""
        return max(0.0, self._until - time.monotonic())


@dataclass(frozen=True)
class Statistics:
    """The statistics of columns, by column name, in the form that a tool's answer shows. They were
    computed from `rows` rows. `whole` is True if these are all rows of the table.
    """

    rows: int
    whole: bool
    columns: Mapping[str, Mapping[str, Json]]


def rows_in_time(
    database: Reader, sql: str, *, seconds: float, cancel: Cancel | None
) -> list[tuple[object, ...]] | None:
    """Return the rows of a query. Return an empty list if the query fails, None if it takes too
    long.
    """
    try:
        return database.read(sql, seconds=seconds, cancel=cancel)
    except QueryCancelledError:
        raise
    except QueryTimeoutError:
        return None
    except DatabaseError:
        return []


def value_samples(
    database: Reader, table: Table, seconds: float, cancel: Cancel | None
) -> dict[str, list[str]] | None:
    """Return a few values of each text column of a table. Return an empty dict if the table has no
    text columns, None if there was not enough time. A column is without values if the table cannot
    be read.
    """
    columns = [
        column for column in table.columns if TEXT.search(column.type) and _comparable(column)
    ][:NAME_COLUMNS]
    if not columns:
        return {}
    text = dialect_of(database.dialect).text_type
    picked = ", ".join(
        f"substr(CAST({table.sql_column(column.name)} AS {text}), 1, {NAME_CHARS + 1})"
        for column in columns
    )
    sql = f"SELECT {picked} FROM {table.sql_name} LIMIT {NAME_ROWS}"
    rows = rows_in_time(database, sql, seconds=max(0.05, seconds), cancel=cancel)
    if rows is None:
        return None
    samples = {}
    for place, column in enumerate(columns):
        samples[column.name] = _short(row[place] for row in rows)
    return samples


def _short(cells: Iterable[object]) -> list[str]:
    values: dict[str, None] = {}
    for cell in cells:
        if isinstance(cell, str) and 0 < len(cell) <= NAME_CHARS and len(values) < NAME_VALUES:
            values[clean(cell)] = None
    return list(values)


def statistics(
    database: Reader, table: Table, rows: int | None, budget: Budget, cancel: Cancel | None
) -> Statistics | None:
    """Return for each column the number of different values and of NULLs, the range, and the values
    themselves if there are only a few. Return None if nothing could be computed in time.

    `rows` is the number of rows of the table, None if it is unknown.
    """
    columns = [column for column in table.columns if _comparable(column)][:MOST_COLUMNS]
    if not columns:
        return None
    whole = rows is not None and rows <= (dialect_of(database.dialect).whole_rows or SAMPLED_ROWS)
    for source in [table.sql_name] if whole else _samples(database.dialect, table, columns, rows):
        if budget.left <= 0:
            return None
        try:
            seconds = min(TABLE_SECONDS, budget.left)
            row = database.read(
                _aggregates(source, table, columns), seconds=seconds, cancel=cancel
            )[0]
            if not row[0] and not whole:
                continue  # a sample may by chance hold nothing
            values = _few_values(
                database, source, columns, row, max(0.05, min(TABLE_SECONDS, budget.left)), cancel
            )
        except QueryCancelledError:
            raise
        except DatabaseError:
            # No rowid, a view, a type without an order, or too slow: the next source is simpler.
            continue
        findings = {
            column.name: _findings(place, row, values) for place, column in enumerate(columns)
        }
        return Statistics(row[0] if isinstance(row[0], int) else 0, whole, findings)
    return None


def _comparable(column: Column) -> bool:
    return (
        not column.masked
        and not NESTED.search(column.type)
        and not _NO_EQUALITY.search(column.type)
    )


def _has_range(column: Column) -> bool:
    return bool(NUMBER.search(column.type) or _TIME.search(column.type))


def _samples(dialect: str, table: Table, columns: Sequence[Column], rows: int | None) -> list[str]:
    """Return the sources of a sample to read instead of a large table, the best first: rows from
    all over the table, otherwise its first rows. Each is SQL for a FROM clause.
    """
    names = ", ".join(table.sql_column(column.name) for column in columns)
    first = f"(SELECT {names} FROM {table.sql_name} LIMIT {SAMPLED_ROWS}) AS sampled"
    share = min(100.0, 120.0 * SAMPLED_ROWS / rows) if rows else 1.0
    if table.kind == "view":
        return [first]
    if dialect_of(dialect).row_ids:
        last = f"(SELECT max(rowid) FROM {table.sql_name})"
        parts = [
            f"SELECT * FROM (SELECT {names} FROM {table.sql_name} WHERE rowid > {last} * {part} /"
            f" {PARTS} AND rowid <= {last} * {part + 1} / {PARTS} LIMIT {SAMPLED_ROWS // PARTS})"
            for part in range(PARTS)
        ]
        return [f"({' UNION ALL '.join(parts)}) AS sampled", first]
    some = dialect_of(dialect).sample.format(f"{share:.4f}")
    return [f"(SELECT {names} FROM {table.sql_name} {some}) AS sampled", first]


def _aggregates(source: str, table: Table, columns: Sequence[Column]) -> str:
    parts = ["count(*)"]
    for column in columns:
        name = table.sql_column(column.name)
        ends = (f"min({name})", f"max({name})") if _has_range(column) else ("NULL", "NULL")
        parts += [f"count({name})", f"count(DISTINCT {name})", *ends]
    return f"SELECT {', '.join(parts)} FROM {source}"


def _few_values(
    database: Reader,
    source: str,
    columns: Sequence[Column],
    row: Sequence[object],
    seconds: float,
    cancel: Cancel | None,
) -> dict[int, list[Json]]:
    """Return the values of each text column that has only a few different values, by the column's
    place.
    """
    places = [
        place
        for place, column in enumerate(columns)
        if TEXT.search(column.type) and _between(row[4 * place + 2], 1, FEW_VALUES)
    ]
    if not places:
        return {}
    rules = dialect_of(database.dialect)
    parts: list[str] = []
    for number in places:
        name = rules.quoted(columns[number].name)
        parts.append(
            f"SELECT * FROM (SELECT DISTINCT {number} AS place, CAST({name} AS {rules.text_type})"
            f" FROM {source} WHERE {name} IS NOT NULL LIMIT {FEW_VALUES}) AS v{number}"
        )
    values: dict[int, list[Json]] = {place: [] for place in places}
    for place, value in sorted(
        database.read(" UNION ALL ".join(parts), seconds=seconds, cancel=cancel), key=str
    ):
        if isinstance(place, int):
            values[place].append(preview_cell(value, VALUE_CHARS))
    return values


def _between(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and least <= value <= most


def _findings(
    place: int, row: Sequence[object], values: Mapping[int, list[Json]]
) -> dict[str, Json]:
    rows = row[0]
    filled, distinct, low, high = row[4 * place + 1 : 4 * place + 5]
    # Each word is paid for again in every call: no distinct count beside the values themselves, nor
    # of what is measured.
    measured = low is not None and not _between(distinct, 0, MOST_TOLD_APART)
    findings: dict[str, Json] = (
        {} if measured or place in values else {"distinct": preview_cell(distinct)}
    )
    if isinstance(rows, int) and isinstance(filled, int) and rows > filled:
        findings["nulls"] = rows - filled
    if low is not None:
        findings["range"] = [preview_cell(low, VALUE_CHARS), preview_cell(high, VALUE_CHARS)]
    if place in values:
        findings["values"] = list(values[place])
    return findings
