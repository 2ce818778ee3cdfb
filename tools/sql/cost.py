"""What a query would cost, as the engine's own plan tells it, and when that is so much that a person is asked first.

The plans tell different things. SQLite: which tables are read whole, and within which loops. DuckDB: the rows that each
step is thought to make. PostgreSQL: that, and a cost in its own units (1 is a page read in order).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from longtable.base.errors import ConfigError

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Scan:
    """One table that is read from end to end, with its rows as far as they are known."""

    table: str
    rows: float


@dataclass(frozen=True)
class Plan:
    """What a query would do. Numbers of rows are estimates, most often too high."""

    scans: tuple[Scan, ...] = ()
    pairs: float = 0.0
    """Rows that joins without a usable condition would compare, each with each."""
    step_rows: float = 0.0
    """Rows of the step that makes most."""
    cost: float | None = None
    """PostgreSQL's own figure."""


@dataclass(frozen=True, kw_only=True)
class CostThresholds:
    """Over any of these a query is costly; checked when built. Some ten seconds of work each, on one ordinary machine."""

    scan_rows: int = 20_000_000
    """Rows read by full scans of SQLite."""
    columnar_scan_rows: int = 1_000_000_000
    """The same in DuckDB, which reads columns only, and on all processors."""
    pairs: int = 200_000_000
    """Rows compared each with each (a cross product), or made by one step."""
    postgres_cost: int = 2_000_000
    """Planner cost in PostgreSQL: a table of 100 million short rows, read once."""

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError(f"CostThresholds.{name} must be a whole number of at least 0, found {value!r}")


Kind = Literal["scan", "pairs", "rows", "cost"]


@dataclass(frozen=True)
class Reason:
    """One threshold that a plan passes, and the plan's figure."""

    kind: Kind
    size: float


def reasons(plan: Plan, thresholds: CostThresholds, dialect: str) -> list[Reason]:
    """Return why a query is costly, the gravest first; nothing where it is not."""
    found = []
    if plan.pairs > thresholds.pairs:
        found.append(Reason("pairs", plan.pairs))
    elif plan.step_rows > thresholds.pairs:
        found.append(Reason("rows", plan.step_rows))
    if plan.cost is not None and plan.cost > thresholds.postgres_cost:
        found.append(Reason("cost", plan.cost))
    read = sum(scan.rows for scan in plan.scans)
    most = {"sqlite": thresholds.scan_rows, "duckdb": thresholds.columnar_scan_rows}.get(dialect)
    if most is not None and read > most:
        found.append(Reason("scan", read))
    return found


def stops_early(tree: "exp.Expr") -> bool:
    """Return whether a query over tables takes the first rows it meets and stops.

    Its plan may still say that all rows are read.
    """
    # sqlglot takes a tenth of a second to load: this module is read by whoever opens a database.
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or tree.args.get("limit") is None:
        return False
    kept = any(tree.args.get(name) for name in ("where", "group", "having", "order", "distinct", "qualify", "with_"))
    heavy = any(node is not tree for node in tree.find_all(exp.Query)) or tree.find(exp.AggFunc, exp.Window)
    joined = any(join.args.get("on") or join.args.get("using") or join.args.get("method") for join in tree.find_all(exp.Join))
    return not kept and not heavy and not joined


def product(sizes: Iterable[float]) -> float:
    """Multiply, without going past what a float holds."""
    result = 1.0
    for size in sizes:
        result = min(result * max(1.0, size), 1e300)
    return result
