"""Facts about one query as plain data: its tables, masks and predicates, and its cost by the
engine's plan. This module imports no parser.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from longtable.base.errors import (
    ConfigError,
    QueryFailedError,
    QueryRefusedError,
    UnknownTableError,
)
from longtable.tools.catalog import fold
from longtable.tools.cells import without_labels
from longtable.tools.engines.dialects import dialect_of

MASK = "•••"
"""The text that a model sees in place of a masked value."""


@dataclass(frozen=True)
class Masks:
    """Which columns of a query's result are masked, according to the text of the query. If `whole`
    is True, all columns are.
    """

    columns: tuple[tuple[str, bool], ...] = ()
    """For each column in order: its name, and whether it is masked. An empty name means that the
    engine chooses the name.
    """
    whole: bool = False

    def __bool__(self) -> bool:
        return self.whole or bool(self.columns)

    def of(self, columns: Sequence[str]) -> frozenset[int]:
        """Return the places of the masked columns among the columns of a result. If these are not
        the expected columns, return all places.
        """
        if not self:
            return frozenset()
        same = not self.whole and len(columns) == len(self.columns)
        if same and all(
            name in ("", fold(found), without_number(found))
            for found, (name, _) in zip(columns, self.columns, strict=True)
        ):
            return frozenset(place for place, (_, masked) in enumerate(self.columns) if masked)
        return frozenset(range(len(columns)))


NO_MASKS = Masks()
_NUMBERED = re.compile(r"(?:[:_]\d+)+$")


def without_number(name: str) -> str:
    """Return a folded name without the number at its end. If two columns have the same name, SQLite
    calls the second `name:1`, DuckDB `name_1`.
    """
    return _NUMBERED.sub("", fold(name))


def masked_rows(
    rows: Sequence[Sequence[object]], masked: Collection[int]
) -> list[tuple[object, ...]]:
    """Return the rows as a model may see them: each value in a masked column is replaced by the
    mask. NULL stays visible even there.
    """
    if not masked:
        return [tuple(row) for row in rows]
    return [_masked_row(row, masked) for row in rows]


def _masked_row(row: Sequence[object], masked: Collection[int]) -> tuple[object, ...]:
    return tuple(
        MASK if index in masked and cell is not None else cell for index, cell in enumerate(row)
    )


_OF_THE_TEXT = re.compile(
    r"(?:Binder|Catalog|Parser) Error: |no such |near \"|ambiguous |misuse of |wrong number of"
    r" |sub-select |a JOIN clause |syntax error "
    r"|(?:missing"
    r" FROM-clause|column|relation|table|function|operator|type|aggregate|window|subquery|each"
    r" UNION|UNION types) "
    r"|(?:Unknown column|Unknown table|Column|Table|FUNCTION|You have an error in your SQL syntax|Not"
    r" unique table|Every derived table|Operand should|Incorrect parameter|Invalid use of group|The"
    r" used SELECT)\b"
    r"|(?:Unknown (?:table )?expression|Function with name|Aggregate function with name|Illegal type"
    r"|There is no supertype|Syntax error:|An incorrect number of|A value of illegal type|Number of"
    r" arguments|Identifier|Ambiguous|Column)\b"
)
"""Matches the start of an engine's error about the text of a query. Any other error may be about a
value.
"""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
NOT_TOLD = (
    "the query failed while it ran; what the database says of that is not shown, for it may hold"
    " values that you may not see"
)


def without_values(error: QueryFailedError, sql: str) -> QueryFailedError:
    """Return an engine's error without any text that may come from the data."""
    if not _OF_THE_TEXT.match(error.reason):
        return QueryFailedError(NOT_TOLD, problem=error.problem)
    known = sql.casefold()
    plain = without_labels(error.reason)
    reason = _QUOTED.sub(
        lambda match: match[0] if match[0][1:-1].casefold() in known else MASK, plain
    )
    return QueryFailedError(
        reason,
        hint=error.hint,
        problem=error.problem,
        line=error.line,
        column=error.column,
        nearest=error.nearest,
    )


Mark = tuple[str, str]
"""Name and kind of the row parameter at one mark of a SQL text."""
Place = tuple[int, int]
"""Line and column, both from 1."""

OVER = "a count is over"
"""Start of the error message of the check that `growth` adds to a query, raised when a count is too
large.
"""


@dataclass(frozen=True)
class Verdict:
    """The decision on one query. `sql` is the text to run, and `tables` are the names of the tables
    that it reads. Both are empty if the query is refused.

    `shown_sql` is the text to show. Unlike `sql`, it names a table with denied columns by its real
    name. `columns` are the columns that the query reads or may read, as `table.column`. `masks`
    tells which columns of the result are hidden from models.
    """

    allowed: bool
    rule: str = ""
    reason: str = ""
    hint: str = ""
    sql: str = ""
    shown_sql: str = ""
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    masks: Masks = NO_MASKS
    marks: tuple[Mark, ...] = ()
    """Name and kind of the row parameter that is bound at each mark of `sql`, in the order of the
    text.
    """
    reads_some_rows: bool = False
    """Whether the query reads a table of which a row filter shows only some rows."""
    crossed: tuple[tuple[str, ...], ...] = ()
    """Tables that the query joins, each row with each, as names of tables for each such FROM. This
    is looked up only if the query reads a filtered table.
    """
    headings: tuple[tuple[str, str], ...] = ()
    """Pairs for result columns without an alias: the name that SQLite gives the column, which is
    its expression as it runs, and the name to show.
    """
    stops_early: bool = False
    """Whether the query stops after the first rows that it finds. The engine's plan may still say
    that the query reads whole tables.
    """
    place: Place | None = None
    """Line and column, counted from 1, of the refused part in the model's text. If no single place
    is at fault, this is the start of the query. None if the query is allowed.
    """
    nearest: tuple[str, ...] = ()

    def raise_if_refused(self) -> None:
        """Raise an error if the query is refused: `UnknownTableError` for a table that does not
        exist or is denied, otherwise `QueryRefusedError`.
        """
        if self.allowed:
            return
        kind = UnknownTableError if self.rule == "table" else QueryRefusedError
        line, column = self.place or (None, None)
        raise kind(
            self.reason,
            rule=self.rule,
            hint=self.hint,
            line=line,
            column=column,
            nearest=self.nearest,
        )


@dataclass(frozen=True)
class OwnSql:
    """SQL of this package as it runs under the policy. `sources` are what is bound at its marks, in
    the order of the text: the number of one of the caller's parameters, counted from 0, or a row
    parameter. None means that the caller's parameters are bound as they are.
    """

    sql: str
    sources: tuple[Mark | int, ...] | None = None


@dataclass(frozen=True)
class Predicate:
    """One predicate on the columns of one table. `text` is its SQL, in which columns are written
    without tables.

    `column` is the column that the predicate compares, "" if it compares something else. `values`
    are the texts that the column is compared with, None if the predicate is not `=`, `IN` or
    `LIKE`.
    """

    text: str
    table: str
    column: str = ""
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Predicates:
    """The predicates of a query that must all hold; those of the outermost query come first.
    `is_total` is True if the query computes only totals over all rows.
    """

    is_total: bool
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class Probe:
    """One check of a query, as SQL that returns one row. The check has a finding if its only figure
    is over 0, or if its two figures differ.

    `text` describes the finding, with {0} and {1} for the figures. An empty `sql` means that the
    finding is already certain. An empty `text` means that the check could not be planned.
    """

    code: str
    text: str = ""
    sql: str = ""


# -- cost ------------------------------------------------------------------------------------------

# The engines' plans say different things. SQLite: which tables are read whole, and within which
# loops. DuckDB: the rows that each step is thought to make. PostgreSQL: that, and a cost in its own
# units (1 is a page read in order).


@dataclass(frozen=True)
class Scan:
    """One table that is read from end to end, and the estimated number of its rows."""

    table: str
    rows: float


@dataclass(frozen=True)
class Plan:
    """The work that a query would do. Numbers of rows are estimates, and most often too high."""

    scans: tuple[Scan, ...] = ()
    pairs: float = 0.0
    """How many pairs of rows are compared by joins that have no usable condition."""
    step_rows: float = 0.0
    """The number of rows of the step that produces the most rows."""
    cost: float | None = None
    """PostgreSQL's own estimate of the cost. None for other engines."""


@dataclass(frozen=True, kw_only=True)
class CostThresholds:
    """Thresholds of cost. A query that exceeds any of them is costly. Each threshold stands for
    about ten seconds of work on an ordinary machine. Raises `ConfigError` for a value that is not a
    whole number of at least 0.
    """

    scan_rows: int = 20_000_000
    """The most rows that full scans read in SQLite."""
    columnar_scan_rows: int = 1_000_000_000
    """The most rows that full scans read in DuckDB. It reads only the columns it needs, on all
    processors.
    """
    pairs: int = 200_000_000
    """The most pairs of rows that are compared in a cross product, and the most rows that one step
    makes.
    """
    postgres_cost: int = 2_000_000
    """The highest cost by PostgreSQL's planner. The default is the cost of reading a table of 100
    million short rows once.
    """

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError(
                    f"CostThresholds.{name} must be a whole number of at least 0, found {value!r}"
                )


Kind = Literal["scan", "pairs", "rows", "cost"]


@dataclass(frozen=True)
class Reason:
    """One threshold that a plan exceeds, and the plan's figure."""

    kind: Kind
    size: float


def reasons(plan: Plan, thresholds: CostThresholds, dialect: str) -> list[Reason]:
    """Return the reasons why a query is costly, the gravest first. Empty if it is not costly."""
    costs = []
    if plan.pairs > thresholds.pairs:
        costs.append(Reason("pairs", plan.pairs))
    elif plan.step_rows > thresholds.pairs:
        costs.append(Reason("rows", plan.step_rows))
    if plan.cost is not None and plan.cost > thresholds.postgres_cost:
        costs.append(Reason("cost", plan.cost))
    read = sum(scan.rows for scan in plan.scans)
    limit = dialect_of(dialect).scan_limit
    if limit and read > getattr(thresholds, limit):
        costs.append(Reason("scan", read))
    return costs


def product(sizes: Iterable[float]) -> float:
    """Multiply numbers of rows; a number below 1 counts as 1. The result never exceeds 1e300, so it
    stays finite.
    """
    result = 1.0
    for size in sizes:
        result = min(result * max(1.0, size), 1e300)
    return result
