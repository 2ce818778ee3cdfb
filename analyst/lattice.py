"""Cut a question into meanings with prices, in the cheapest ways, by a beam search over its
words.
"""

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
    """A period of time. Only the parts that the question names are set. `weekday` is 0 for Sunday,
    and -1 if it is not set.
    """

    year: int = 0
    month: int = 0
    day: int = 0
    quarter: int = 0
    weekday: int = -1


@dataclass(frozen=True)
class Meaning:
    """One meaning of the words from `start` up to, but without, `end`, and its price."""

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
    must: str = ""
    """The computed column that must be true, for rows that a company's term names."""

    def is_op(self, *names: str) -> bool:
        """Return whether this meaning is one of the named operations."""
        return self.kind == "op" and self.op in names


@dataclass(frozen=True)
class Path:
    """A whole question cut into meanings, with their total price and the tables that they belong
    to.
    """

    meanings: tuple[Meaning, ...] = ()
    cost: float = 0.0
    tables: frozenset[str] = frozenset()


def cheapest_paths(
    meanings: Iterable[Meaning], size: int, catalog: Catalog, prior: frozenset[str] = frozenset()
) -> list[Path]:
    """Return the cheapest ways to cut a question of `size` words into meanings. `prior` are tables
    that belong to the question from the start.
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
    """Return the price of adding one more table to the tables of a path."""
    if not tables or table in tables:
        return 0.0
    prices: list[float] = []
    for other in tables:
        ways = (catalog.path(other, table), catalog.path(table, other))
        prices += [costs.TABLE + path_cost(way) for way in ways if way is not None]
    return min(prices, default=costs.APART)


def path_cost(steps: tuple[Step, ...]) -> float:
    """Return the price of a way to join tables. Each join after the first has a price, and so does
    a step down after a step up.
    """
    zigzag = any(first.up and not second.up for first, second in itertools.pairwise(steps))
    return costs.STEP * max(0, len(steps) - 1) + (costs.ZIGZAG if zigzag else 0.0)


class NoReadingError(Exception):
    """The meanings of a path give no query. The text of the error is the user's words that prevent
    it.
    """


# -- slots -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Where:
    """A condition on rows of one table. `roles` tell which key leads to the table. `denied` is True
    if the condition is negated.
    """

    table: str
    column: str
    cond: Condition
    roles: frozenset[str] = frozenset()
    denied: bool = False


@dataclass(frozen=True)
class Measure:
    """An aggregate of a column. If `column` is empty, it is a count of the table's rows."""

    func: str
    table: str = ""
    column: str = ""
    distinct: bool = False


@dataclass(frozen=True)
class Having:
    """A condition on a measure, such as "more than 5 orders", which must hold for each row of the
    answer.
    """

    measure: Measure
    op: str
    number: float | int


@dataclass(frozen=True)
class Key:
    """A group key of the answer: the rows of a table, a column, or a part of a date."""

    table: str
    column: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Rank:
    """An order by a measure, or by a column if the measure has no function. `limit` is how many of
    the first rows are wanted, None for all.
    """

    measure: Measure
    desc: bool
    limit: int | None = None


@dataclass
class Slots:
    """The parts of a query, by kind, before tables are joined."""

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
    """Words that tell which key leads to the counted rows: 'the most arrivals' are counted at the
    destination.
    """
    ratio: str = ""
    """"percent" for the percentage of rows that meet the conditions, "average" for the average of a
    count or sum over the group keys, otherwise "".
    """


@dataclass
class Draft:
    """A path whose meanings are being put into slots. It has helpers that look at neighbouring
    meanings.
    """

    path: Path
    tokens: list[Token]
    catalog: Catalog
    chinese: bool = False
    prior: Query | None = None
    """The previous query if the question continues it, otherwise None."""
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
        """Add to the price of the reading, and remember which of the user's words cause this
        price.
        """
        if cost > 0:
            self.cost += cost
            self.blamed.append((cost, self.said(text)))

    def said(self, name: str) -> str:
        """Return the user's words for a table or column. If the user has no words for a column or
        other text, return the text itself; for a table, return "".
        """
        words = [
            each.text for each in self.path.meanings if name and name in (each.table, each.column)
        ]
        return words[0] if words else "" if self.catalog.table(name) is not None else name

    @property
    def base(self) -> str:
        """Return the base table of the previous query, "" if the question is read alone."""
        return self.prior.base if self.prior is not None else ""

    @property
    def words(self) -> list[str]:
        """Return the words of the question in lower case; those of a Chinese question are in
        English.
        """
        return [token.word for token in self.tokens]

    def open(self, *kinds: str) -> list[tuple[int, Meaning]]:
        """Return the meanings of these kinds that have not been used yet, with their places."""
        return [
            (n, each)
            for n, each in enumerate(self.meanings)
            if n not in self.used and each.kind in kinds
        ]

    def use(self, *places: int, price: float = 0.0, text: str = "") -> None:
        """Mark meanings as used. Add a price if their use is doubtful."""
        self.used |= {place for place in places if place >= 0}
        self.pay(price, text)

    def change(self, place: int, **changes: Any) -> None:
        """Replace fields of the meaning at a place."""
        self.meanings[place] = replace(self.meanings[place], **changes)

    def after(self, place: int, *, over: tuple[str, ...] = (), most: int = 5) -> int:
        """Return the place of the next meaning that is not a filler, -1 if there is none within
        `most` places. Operations in `over` are skipped.
        """
        return self._look(range(place + 1, min(len(self.meanings), place + 1 + most)), over)

    def before(self, place: int, *, over: tuple[str, ...] = (), most: int = 5) -> int:
        """Return the place of the previous meaning that is not a filler, -1 if there is none within
        `most` places. Operations in `over` are skipped.
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
        """Return the column that a meaning names, None if it names none."""
        return self.catalog.column(each.table, each.column) if each.column else None

    def table(self, name: str) -> Table:
        """Return the table with this name, which must exist."""
        table = self.catalog.table(name)
        assert table is not None, name
        return table

    def is_measure(self, place: int) -> bool:
        """Return whether the meaning at a place is a column of numbers that can be added up or
        compared.
        """
        column = (
            self.column(self.meanings[place])
            if place >= 0 and self.meanings[place].kind == "column"
            else None
        )
        return column is not None and column.is_measure

    def is_unread_sale(self, verb: str) -> bool:
        """Return whether `verb` means buying or selling although the question uses no table of
        sales, as in 'sold the most tracks'. The reading then ignores the sales that the verb means.
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
        """Return the tables that the question uses: the table it is about, the tables it names,
        those of its columns and values, and the table of the previous query.
        """
        others = [each.table for each in self.meanings if each.table]
        return [
            name for name in dict.fromkeys((self.head(), *self.named(), *others, self.base)) if name
        ]

    def asked(self) -> int:
        """Return the place of the thing that the question asks for, -1 if no word asks for a
        thing.
        """
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
        """Return words that tell which key leads to the table of the meaning at `place`, such as
        from, to or arriving. Empty if the question has none.
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
