"""Define what the parser makes of a question before it is settled on tables: a draft of roles filled by chunks."""

from dataclasses import dataclass, field

from longtable.app.offline.chunks import Chunk


@dataclass
class Filter:
    """One condition as read: what it bears on is a mention, a dimension, or still to be found."""

    kind: str  # compare, between, like, null, value, time, beats, columns
    op: str = "="
    mention: Chunk | None = None
    other: Chunk | None = None
    dimension: str = ""
    numbers: tuple[float | int | str, ...] = ()
    values: tuple[Chunk, ...] = ()
    times: tuple[Chunk, ...] = ()
    text: str = ""
    unit: str = ""
    func: str = ""
    negated: bool = False
    both: bool = False
    near: tuple[Chunk, ...] = ()  # chunks around it that may name the column
    verbs: tuple[str, ...] = ()  # verbs and prepositions just before it


@dataclass
class Having:
    """A condition on a count (or another aggregate) per row of the answer."""

    op: str
    number: float | int
    counted: Chunk | None
    high: float | int | None = None
    func: str = "count"
    verbs: tuple[str, ...] = ()  # "rented more than once": what is counted is in the verb


@dataclass
class Superlative:
    """The one (or few) with the most or least of something."""

    sign: str  # max, min
    kind: str  # plain, most, frequent, dimension, first
    dimension: str = ""
    chunk: Chunk | None = None
    func: str = ""


@dataclass
class Sorting:
    """One sort key as read."""

    chunk: Chunk | None = None
    func: str = ""
    dimension: str = ""
    desc: bool | None = None


@dataclass
class Draft:
    """The roles of a question's chunks."""

    counts: list[Chunk | None] = field(default_factory=list)
    aggs: list[tuple[str, Chunk | None]] = field(default_factory=list)
    targets: list[Chunk] = field(default_factory=list)
    groups: list[Chunk] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    havings: list[Having] = field(default_factory=list)
    absent: list["Draft"] = field(default_factory=list)
    sups: list[Superlative] = field(default_factory=list)
    sorts: list[Sorting] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)  # dimensions asked for: how old
    desc: bool | None = None
    limit: int | None = None
    limit_desc: bool | None = None
    rank: int = 0  # how many come before: 1 for the second most expensive
    distinct: bool = False
    percent: bool = False
    spread: bool = False
    spent: bool = False  # 'how much': money, or an amount that is yet to be found
    rest: bool = False
    pron: bool = False
    never: bool = False
    money: bool = False  # 'the total amount of': what is added up is an amount
    back: bool = False  # 'those', 'that shop': speaks of rows that an earlier question found
    alternative: bool = False  # an 'or' between conditions or columns
    listing: bool = False
    which: bool = False
    leftover: list[str] = field(default_factory=list)
    mentions: list[Chunk] = field(default_factory=list)  # all of them, for context
    words: tuple[str, ...] = ()  # every word of the question

    @property
    def computes(self) -> bool:
        """Say whether it asks for a number over rows."""
        return bool(self.counts or self.aggs or self.percent or self.spread or self.spent)
