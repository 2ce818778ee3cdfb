"""Define chunks: operations, mentions of the schema, values, numbers, times, words left over."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from longtable.app.offline.linking import Hit

PRODUCT = "product"  # the arg of a mention that stands for price times quantity
STATE = "state"  # the arg of a value that is a verb: it must be a value of a table that the question names
UNTRUE = "untrue"  # the arg of a mention that denies a column of flags: inactive
LACKING = "lacking"  # the arg of an operation whose own column must be empty: unpaid
OWN_YEAR = "own year"  # the unit of a time that stands like an adjective: the 2021 Chardonnay
AGENT = "agent"  # the arg of a verb that stands for who does it


@dataclass(frozen=True)
class Match:
    """A value found in the database for a text of the question."""

    table: str
    column: str
    value: str | int | float
    how: str  # exact, case, partial
    count: int = 0


Values = Mapping[str, tuple[Match, ...]]


@dataclass
class Chunk:
    """One unit of meaning; `used` once some rule of the parser has taken it up."""

    kind: str  # op, mention, value, number, time, unit, prep, comma, word, filler
    text: str
    word: str = ""
    place: int = 0
    op: str = ""
    arg: str = ""
    hits: tuple[Hit, ...] = ()
    matches: tuple[Match, ...] = ()
    number: float | int = 0
    unit: str = ""
    quoted: bool = False
    name: bool = False
    order: int = 0  # its place among the chunks
    used: bool = field(default=False, compare=False)

    @property
    def best(self) -> float:
        """Return the score of its best link."""
        return self.hits[0].score if self.hits else 0.0

    def is_op(self, *names: str) -> bool:
        """Say whether it is one of these operations."""
        return self.kind == "op" and self.op in names
