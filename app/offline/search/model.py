"""Define what the search works on: links of spans to meanings, slots that links fill, and readings with their cost."""

from dataclasses import dataclass, field
from typing import Literal

from longtable.app.offline.logic import Cond, Query, Value

Kind = Literal["table", "column", "value", "flag", "number", "time", "unit", "op", "mark", "filler", "unused"]


@dataclass(frozen=True)
class Link:
    """One meaning of the words from `start` to `end`, and what it costs to take it."""

    start: int
    end: int
    kind: Kind
    cost: float
    text: str
    table: str = ""
    column: str = ""
    values: tuple[Value, ...] = ()
    op: str = ""
    arg: str = ""
    number: float | int = 0
    unit: str = ""
    role: tuple[str, str] = ("", "")
    """The key (table, column) whose name led to a table: the manager of a project is an employee by mgr_no."""

    @property
    def word(self) -> str:
        """Return its last word in lower case."""
        return self.text.lower().split()[-1] if self.text else ""

    def is_op(self, *names: str) -> bool:
        """Say whether it is one of these operations."""
        return self.kind == "op" and self.op in names


@dataclass(frozen=True)
class Path:
    """A question cut into links, with what they cost together and the tables they speak of."""

    links: tuple[Link, ...] = ()
    cost: float = 0.0
    tables: frozenset[str] = frozenset()

    @property
    def unused(self) -> tuple[str, ...]:
        """Return the words that no link explains."""
        return tuple(link.text for link in self.links if link.kind == "unused")


@dataclass(frozen=True)
class Where:
    """A condition on rows of one table, at its place in the question; `denied` once a negation has turned it."""

    table: str
    cond: Cond
    place: int
    column: str = ""
    op: str = "="


@dataclass(frozen=True)
class Measure:
    """What is computed: an aggregate of a column, or a count of rows of a table (column empty)."""

    func: str
    table: str = ""
    column: str = ""
    place: int = 0


@dataclass(frozen=True)
class Having:
    """A condition on a measure per row of the answer."""

    measure: Measure
    op: str
    number: float | int
    high: float | int | None = None


@dataclass(frozen=True)
class Rank:
    """An order of the answer by a column or a measure; `limit` when only the first are wanted, `skip` how many come before them."""

    measure: Measure
    desc: bool
    limit: int | None = None
    skip: int = 0
    told: bool = True


@dataclass(frozen=True)
class Key:
    """What the answer is grouped by: a table's rows, a column, or a date cut to a unit."""

    table: str
    column: str = ""
    unit: str = ""
    place: int = 0


@dataclass
class Slots:
    """What the links of one path fill: the typed parts of a query before tables are joined."""

    heads: list[Link] = field(default_factory=list)
    shown: list[Link] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    where: list[Where] = field(default_factory=list)
    havings: list[Having] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    absent: list[tuple[str, int]] = field(default_factory=list)
    either: bool = False
    distinct: bool = False
    limit: int | None = None
    cost: float = 0.0
    notes: list[str] = field(default_factory=list)

    def pay(self, cost: float, note: str) -> None:
        """Add to what the reading costs, and say for what."""
        if cost:
            self.cost += cost
            self.notes.append(f"{note} {cost:.2f}")


@dataclass(frozen=True)
class Reading:
    """A whole reading: its query, its cost and what the cost is made of."""

    query: Query
    cost: float
    path: Path
    notes: tuple[str, ...] = ()
