"""Cut a question into priced meanings in the cheapest ways: a beam over its words."""

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from longtable.analyst.lexicon import Token, costs, lemma, stem, vocabulary
from longtable.analyst.query import Condition, Query
from longtable.analyst.schema import Catalog, Column, Step, Table, Value

WIDTH = 40
BEST = 12

Thing = Literal["table", "column", "value", "part", "flag"]
Kind = Literal[Thing, "number", "time", "unit", "op", "mark", "filler", "unknown"]


@dataclass(frozen=True)
class Period:
    """A period of time. Only the parts that the question names are set; `weekday` counts from
    Sunday.
    """

    year: int = 0
    month: int = 0
    day: int = 0
    quarter: int = 0
    weekday: int = -1


@dataclass(frozen=True)
class Meaning:
    """One meaning of the words from `start` to `end`, and its price."""

    start: int
    end: int
    kind: Kind
    cost: float
    text: str
    table: str = ""
    column: str = ""
    value: Value = ""
    op: str = ""
    arg: str = ""
    number: float | int = 0
    period: Period | None = None

    def is_op(self, *names: str) -> bool:
        """Return whether the meaning is one of these operations."""
        return self.kind == "op" and self.op in names


@dataclass(frozen=True)
class Path:
    """A question cut into meanings, their price together and the tables that they speak of."""

    meanings: tuple[Meaning, ...] = ()
    cost: float = 0.0
    tables: frozenset[str] = frozenset()


def cheapest_paths(
    meanings: Iterable[Meaning], size: int, catalog: Catalog, prior: frozenset[str] = frozenset()
) -> list[Path]:
    """Return the cheapest ways to cut a question of `size` words into meanings; the tables of
    `prior` are there already.
    """
    starts: dict[int, list[Meaning]] = defaultdict(list)
    for meaning in meanings:
        starts[meaning.start].append(meaning)
    beams: list[list[Path]] = [[] for _ in range(size + 1)]
    beams[0] = [Path(tables=prior)]
    for place in range(size):
        for known in _cheapest(beams[place], WIDTH):
            for meaning in starts[place]:
                further = table_cost(catalog, known.tables, meaning.table) if meaning.table else 0.0
                tables = known.tables | {meaning.table} if meaning.table else known.tables
                beams[meaning.end].append(
                    Path((*known.meanings, meaning), known.cost + meaning.cost + further, tables)
                )
    return _cheapest(beams[size], BEST)


def _cheapest(paths: list[Path], width: int) -> list[Path]:
    return sorted(paths, key=lambda path: (path.cost, len(path.meanings)))[:width]


@lru_cache(maxsize=20_000)
def table_cost(catalog: Catalog, tables: frozenset[str], table: str) -> float:
    """Return the cost of one more table beside those that the path has."""
    if not tables or table in tables:
        return 0.0
    prices: list[float] = []
    for other in tables:
        ways = (catalog.path(other, table), catalog.path(table, other))
        prices += [costs.TABLE + path_cost(way) for way in ways if way is not None]
    return min(prices, default=costs.APART)


def path_cost(steps: tuple[Step, ...]) -> float:
    """Return the cost of a path: each join after the first costs, and so does a step down after a
    step up.
    """
    zigzag = any(first.up and not second.up for first, second in itertools.pairwise(steps))
    return costs.STEP * max(0, len(steps) - 1) + (costs.ZIGZAG if zigzag else 0.0)


class NoReadingError(Exception):
    """A path makes no query; the error's text is the user's words that prevent it."""


# -- slots -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Where:
    """A condition on rows of one table. `roles` say which key leads to the table; `denied` negates
    it.
    """

    table: str
    column: str
    cond: Condition
    roles: frozenset[str] = frozenset()
    denied: bool = False


@dataclass(frozen=True)
class Measure:
    """An aggregate of a column; a count of the table's rows if `column` is empty."""

    func: str
    table: str = ""
    column: str = ""
    distinct: bool = False


@dataclass(frozen=True)
class Having:
    """A condition on a measure for each row of the answer."""

    measure: Measure
    op: str
    number: float | int


@dataclass(frozen=True)
class Key:
    """A group key of the answer: a table's rows, a column, or a part of a date."""

    table: str
    column: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Rank:
    """An order by a measure or a column (no function), with a limit if only the first are
    wanted.
    """

    measure: Measure
    desc: bool
    limit: int | None = None


@dataclass
class Slots:
    """The typed parts of a query before tables are joined."""

    heads: list[str] = field(default_factory=list)
    shown: list[Key] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    where: list[Where] = field(default_factory=list)
    havings: list[Having] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    absent: dict[str, frozenset[str]] = field(default_factory=dict)
    limit: int | None = None
    distinct: bool = False
    roles: frozenset[str] = frozenset()
    """Which key leads to the counted rows: 'the most arrivals' are at the destination."""
    ratio: str = ""
    """"percent": the share of rows for which the conditions hold; "average": of counts or sums for
    each key.
    """


@dataclass
class Draft:
    """One path while its meanings are put into slots, with helpers that look at neighbouring
    meanings.
    """

    path: Path
    tokens: list[Token]
    catalog: Catalog
    chinese: bool = False
    prior: Query | None = None
    """The query before, if the question continues it."""
    meanings: list[Meaning] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    slots: Slots = field(default_factory=Slots)
    cost: float = 0.0
    blamed: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meanings = list(self.path.meanings)
        self.cost = self.path.cost
        self.blamed = [(each.cost, each.text) for each in self.meanings if each.cost > costs.VERB]

    def pay(self, cost: float, text: str) -> None:
        """Add to the price of the reading, and note the user's words that it is paid for."""
        if cost > 0:
            self.cost += cost
            self.blamed.append((cost, self.said(text)))

    def said(self, name: str) -> str:
        """Return the user's words for a table or column; the text itself if it is no name of the
        schema.
        """
        words = [
            each.text for each in self.path.meanings if name and name in (each.table, each.column)
        ]
        return words[0] if words else "" if self.catalog.table(name) is not None else name

    @property
    def base(self) -> str:
        """Return the table of the query before, "" if the question is read alone."""
        return self.prior.base if self.prior is not None else ""

    @property
    def words(self) -> list[str]:
        """Return the words of the question in lower case and English."""
        return [token.word for token in self.tokens]

    def open(self, *kinds: str) -> list[tuple[int, Meaning]]:
        """Return the meanings of these kinds that nothing used, with their places."""
        return [
            (n, each)
            for n, each in enumerate(self.meanings)
            if n not in self.used and each.kind in kinds
        ]

    def use(self, *places: int, price: float = 0.0, text: str = "") -> None:
        """Mark meanings as used; add a price if their use is doubtful."""
        self.used |= {place for place in places if place >= 0}
        self.pay(price, text)

    def change(self, place: int, **changes: Any) -> None:
        """Change the meaning at a place."""
        self.meanings[place] = replace(self.meanings[place], **changes)

    def after(self, place: int, *, over: tuple[str, ...] = (), most: int = 5) -> int:
        """Return the place of the next meaning that says something, -1 if there is none nearby.
        Operations in `over` are skipped.
        """
        return self._look(range(place + 1, min(len(self.meanings), place + 1 + most)), over)

    def before(self, place: int, *, over: tuple[str, ...] = (), most: int = 5) -> int:
        """Return the place of the previous meaning that says something, -1 if there is none
        nearby.
        """
        return self._look(range(place - 1, max(-1, place - 1 - most), -1), over)

    def _look(self, places: range, over: tuple[str, ...]) -> int:
        for place in places:
            each = self.meanings[place]
            if each.kind == "mark":
                return -1
            if each.kind not in ("filler", "unknown") and not each.is_op(*over):
                return place
        return -1

    def column(self, each: Meaning) -> Column | None:
        """Return the column of a meaning."""
        return self.catalog.column(each.table, each.column) if each.column else None

    def table(self, name: str) -> Table:
        """Return a table that is known to exist."""
        table = self.catalog.table(name)
        assert table is not None, name
        return table

    def is_measure(self, place: int) -> bool:
        """Return whether the meaning at a place is a column of numbers to compute with."""
        column = (
            self.column(self.meanings[place])
            if place >= 0 and self.meanings[place].kind == "column"
            else None
        )
        return column is not None and column.is_measure

    def is_unread_sale(self, verb: str) -> bool:
        """Return whether a verb of buying speaks of a table of sales that the question does not
        use: 'sold the most tracks'.
        """
        lists = vocabulary().lists
        if verb not in lists["events.order"] or any(
            each.is_op("money") or each.kind == "time" for each in self.meanings
        ):
            return False
        sales = [
            table.name
            for table in self.catalog.plain
            if set(map(lemma, table.words)) & lists["events.order"]
        ]
        return bool(sales) and not set(sales) & {*self.spoken(), *self.slots.absent}

    def named(self) -> list[str]:
        """Return the tables that the question names, in order."""
        return list(dict.fromkeys(each.table for each in self.meanings if each.kind == "table"))

    def spoken(self) -> list[str]:
        """Return the tables of the question: its head, the tables it names, the tables of its
        columns and values, and the table of the query before.
        """
        others = [each.table for each in self.meanings if each.table]
        return [
            name for name in dict.fromkeys((self.head(), *self.named(), *others, self.base)) if name
        ]

    def asked(self) -> int:
        """Return the place of the meaning that the question asks for, -1 if no word asks."""
        for place, each in enumerate(self.meanings):
            if each.is_op("count", "wh", "list") or (each.is_op("agg") and not self.chinese):
                following = self.after(
                    place,
                    over=("distinct", "most", "sup", "top", "wh", "list", "count", "neg", "late"),
                    most=6,
                )
                while following >= 0 and self.meanings[following].kind in (
                    "value",
                    "part",
                    "flag",
                    "number",
                ):
                    following = self.after(following, most=3)
                if following >= 0 and self.meanings[following].kind in ("table", "column", "unit"):
                    while (
                        following + 1 < len(self.meanings)
                        and self.meanings[following].kind
                        == self.meanings[following + 1].kind
                        == "table"
                    ):
                        following += 1
                    return following
                if self.chinese and (
                    earlier := [
                        n
                        for n in range(place)
                        if self.meanings[n].kind in ("table", "column", "unit")
                    ]
                ):
                    return earlier[-1]
        return -1

    def _holds_people(self, table: str) -> bool:
        lemmas = map(lemma, self.table(table).words)
        return not vocabulary().lists["people"].isdisjoint(lemmas)

    def head(self) -> str:
        """Return the table that the question is about, "" if it names no table."""
        asked = self.asked()
        if asked >= 0 and self.meanings[asked].kind == "table":
            return self.meanings[asked].table
        if self.words[:1] in (["who"], ["whom"]):
            people = [name for name in self.named() if self._holds_people(name)]
            if people:
                return people[0]
        named = self.named()
        if self.chinese and named:
            return named[-1] if asked < 0 else named[0]
        return named[0] if named else ""

    def roles(self, place: int) -> frozenset[str]:
        """Return the words that tell which key leads to the table of the meaning at `place`: from,
        to, arriving.
        """
        lists = vocabulary().lists
        for other in range(place - 1, max(-1, place - 4), -1):
            words = set(self.meanings[other].text.lower().split()) | set(
                self.words[self.meanings[other].start : self.meanings[other].end]
            )
            if words & lists["to_words"]:
                return frozenset(map(stem, lists["to_names"]))
            if words & lists["from_words"]:
                return frozenset(map(stem, lists["from_names"]))
            if self.meanings[other].kind not in ("filler", "op", "column"):
                break
        return frozenset()
