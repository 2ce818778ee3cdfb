"""Facts about one query as plain data: tables, masks, predicates, and its cost by the engine's
plan. This module imports no parser.
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

MASK = "•••"
"""The text that a model is shown in place of a masked value."""


@dataclass(frozen=True)
class Masks:
    """Which columns of a query's result are masked, according to its text. `whole`: all of them
    are.
    """

    columns: tuple[tuple[str, bool], ...] = ()
    """The name of each column and whether it is masked, in order. If a name is empty, the engine
    chooses it.
    """
    whole: bool = False

    def __bool__(self) -> bool:
        return self.whole or bool(self.columns)

    def of(self, columns: Sequence[str]) -> frozenset[int]:
        """Return the places of the masked columns of a result; all places if the result has other
        columns than expected.
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
    """Return a folded name without its number: if two columns have one name, SQLite calls one of
    them `name:1`, DuckDB `name_1`.
    """
    return _NUMBERED.sub("", fold(name))


def masked_rows(
    rows: Sequence[Sequence[object]], masked: Collection[int]
) -> list[tuple[object, ...]]:
    """Return the rows as a model may see them. NULL is shown even in a masked column."""
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
)
"""How an engine's error begins if it is about the text of a query. Any other error may be about a
value.
"""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
NOT_TOLD = (
    "the query failed while it ran; what the database says of that is not shown, for it may hold"
    " masked values"
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


Place = tuple[int, int]
"""Line and column, both from 1."""

OVER = "a count is over"
"""Prefix of the error that our injected check raises when a count is too large."""


@dataclass(frozen=True)
class Verdict:
    """The decision on one query. `sql` is the text to run, `tables` the names it reads; both are
    empty when refused.

    `shown_sql` is the text to show: `sql` with each table that has denied columns under its own
    name. `columns` are the columns it reads, as `table.column`; in doubt a column is included.
    `masks` says which columns of the result are hidden from models.
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
    headings: tuple[tuple[str, str], ...] = ()
    """Pairs for columns without a name: SQLite's name, which is the column's expression, and the
    name to show.
    """
    stops_early: bool = False
    """Whether the query stops after the first rows that it finds, even if its plan says that it
    reads whole tables.
    """
    place: Place | None = None
    """Line and column, from 1, of the refused part in the text as asked; the start of the query if
    no single place is at fault.
    """
    nearest: tuple[str, ...] = ()

    def raise_if_refused(self) -> None:
        """Raise `QueryRefusedError`, or `UnknownTableError` for a table that does not exist or is
        denied.
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
class Predicate:
    """One predicate that looks at one table. `text` is its SQL without the names that tables have
    in the query.

    `column` is the column it compares, "" if that is not a plain column. `values` are the texts
    that it compares with, None if it is not `=`, `IN` or `LIKE`.
    """

    text: str
    table: str
    column: str = ""
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Predicates:
    """The predicates of a query that must all hold, the outermost query's first. `is_total`: the
    query is a total over all rows.
    """

    is_total: bool
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True)
class Probe:
    """One check of a query: SQL that returns one row. The check finds something if its one figure
    is over 0, or if its two figures differ.

    `text` says what was found, with {0} and {1} for the figures. Without SQL, the finding is known
    already. Without text, the check failed.
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
    """One table that is read from end to end, with its number of rows if that is known."""

    table: str
    rows: float


@dataclass(frozen=True)
class Plan:
    """The work that a query would do. Numbers of rows are estimates, most often too high."""

    scans: tuple[Scan, ...] = ()
    pairs: float = 0.0
    """Pairs of rows that joins without a usable condition would compare."""
    step_rows: float = 0.0
    """Rows of the step that produces the most."""
    cost: float | None = None
    """PostgreSQL's own cost estimate."""


@dataclass(frozen=True, kw_only=True)
class CostThresholds:
    """A query over any of these thresholds is costly. The values are checked when an object is
    built. Each threshold is some ten seconds of work on an ordinary machine.
    """

    scan_rows: int = 20_000_000
    """Rows read by full scans of SQLite."""
    columnar_scan_rows: int = 1_000_000_000
    """The same in DuckDB, which reads only the columns it needs, on all processors."""
    pairs: int = 200_000_000
    """Rows compared each with each (a cross product), or made by one step."""
    postgres_cost: int = 2_000_000
    """Planner cost in PostgreSQL: a table of 100 million short rows, read once."""

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
    """One threshold that a plan passes, and the plan's figure."""

    kind: Kind
    size: float


def reasons(plan: Plan, thresholds: CostThresholds, dialect: str) -> list[Reason]:
    """Return the reasons why a query is costly, the gravest first; empty if it is not."""
    costs = []
    if plan.pairs > thresholds.pairs:
        costs.append(Reason("pairs", plan.pairs))
    elif plan.step_rows > thresholds.pairs:
        costs.append(Reason("rows", plan.step_rows))
    if plan.cost is not None and plan.cost > thresholds.postgres_cost:
        costs.append(Reason("cost", plan.cost))
    read = sum(scan.rows for scan in plan.scans)
    most = {"sqlite": thresholds.scan_rows, "duckdb": thresholds.columnar_scan_rows}.get(dialect)
    if most is not None and read > most:
        costs.append(Reason("scan", read))
    return costs


def product(sizes: Iterable[float]) -> float:
    """Multiply, without exceeding the largest float."""
    result = 1.0
    for size in sizes:
        result = min(result * max(1.0, size), 1e300)
    return result
