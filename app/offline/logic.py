"""Define the logical form of a question: a small, typed subset of SQL that can be edited and rendered."""

from dataclasses import dataclass
from typing import Literal

Value = str | int | float
Func = Literal["count", "sum", "avg", "min", "max"]
Unit = Literal["year", "month", "month_of_year", "quarter", "day", "hour", "weekday", "decade"]


@dataclass(frozen=True)
class Col:
    """A column of a table of the query."""

    table: str
    name: str
    cast: bool = False  # text that holds numbers, to be compared as such


@dataclass(frozen=True)
class Bucket:
    """A date column cut to a unit."""

    col: Col
    unit: Unit


@dataclass(frozen=True)
class Product:
    """A product of columns, such as price times quantity; `less` is a share taken off."""

    factors: tuple[Col, ...]
    less: Col | None = None


@dataclass(frozen=True)
class Agg:
    """An aggregate; `arg` None counts rows."""

    func: Func
    arg: "Col | Product | None" = None
    distinct: bool = False


@dataclass(frozen=True)
class Spread:
    """The difference of the largest and the smallest value."""

    arg: Col


@dataclass(frozen=True)
class Share:
    """The percentage of rows for which all of `conds` hold, or of all groups' rows when `conds` is empty."""

    conds: tuple["Cond", ...] = ()


Scalar = Col | Bucket | Agg | Spread | Share | Product


@dataclass(frozen=True)
class Compare:
    """left op value; `op` one of = <> < <= > >=."""

    left: Scalar
    op: str
    value: Value


@dataclass(frozen=True)
class Between:
    """left between two values, both included."""

    left: Scalar
    low: Value
    high: Value


@dataclass(frozen=True)
class Among:
    """left is one of the values, or none of them."""

    left: Scalar
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True)
class Like:
    """left matches a pattern (contains, starts, ends), whatever its case."""

    left: Col
    how: Literal["contains", "starts", "ends"]
    text: str
    negated: bool = False


@dataclass(frozen=True)
class Null:
    """left is missing (or, negated, present)."""

    left: Col
    negated: bool = False


@dataclass(frozen=True)
class Beats:
    """left op (SELECT agg FROM table): above the average."""

    left: Col
    op: str
    agg: Agg


@dataclass(frozen=True)
class Within:
    """keys [not] in a subquery."""

    keys: Col
    query: "Query"
    negated: bool = False


@dataclass(frozen=True)
class AnyOf:
    """At least one of the conditions holds."""

    conds: tuple["Cond", ...]


@dataclass(frozen=True)
class ColumnsCompare:
    """Two columns compared with each other."""

    left: Col
    op: str
    right: Col


Cond = Compare | Between | Among | Like | Null | Beats | Within | AnyOf | ColumnsCompare


@dataclass(frozen=True)
class Join:
    """table joined on pairs (column already there, column of the new table)."""

    table: str
    pairs: tuple[tuple[Col, Col], ...]
    outer: bool = False


@dataclass(frozen=True)
class Order:
    """One sort key."""

    by: Scalar
    desc: bool = False


@dataclass(frozen=True)
class Query:
    """One SELECT. An empty `select` means all columns."""

    base: str
    joins: tuple[Join, ...] = ()
    select: tuple[Scalar, ...] = ()
    where: tuple[Cond, ...] = ()
    group: tuple[Scalar, ...] = ()
    having: tuple[Cond, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None
    distinct: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables of FROM and JOIN, in order."""
        return (self.base, *(join.table for join in self.joins))

    @property
    def aggregates(self) -> tuple[Scalar, ...]:
        """Return what it computes over rows."""
        return tuple(item for item in self.select if isinstance(item, Agg | Spread | Share))
