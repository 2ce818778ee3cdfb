"""Hold one path while its links are put into slots, with what is asked of neighbouring links again and again."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.columns import Scope
from longtable.app.offline.lexicon import PEOPLE
from longtable.app.offline.search.lattice import Distances
from longtable.app.offline.search.model import Link, Path, Slots
from longtable.app.offline.text import Token, lemma

_REACHED = frozenset(["phone", "tel", "telephone", "email", "mobile", "birth", "born", "gender"])


@dataclass
class Scene:
    """The links of one path in order, those used up, and the slots filled so far."""

    path: Path
    tokens: list[Token]
    catalog: Catalog
    distances: Distances
    links: list[Link] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    slots: Slots = field(default_factory=Slots)

    def __post_init__(self) -> None:
        self.links = list(self.path.links)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of the question in lower case."""
        return tuple(token.word for token in self.tokens)

    def open(self, *kinds: str) -> Iterator[tuple[int, Link]]:
        """Yield the links of these kinds that nothing used, with their places."""
        for place, link in enumerate(self.links):
            if place not in self.used and link.kind in kinds:
                yield place, link

    def after(self, place: int, *, over: tuple[str, ...] = (), most: int = 4) -> int:
        """Return the place of the next link that says something, -1 at a mark or after too many words; words in `over` are passed too."""
        for other in range(place + 1, min(len(self.links), place + 1 + most)):
            link = self.links[other]
            if link.kind == "mark" and link.text != ",":
                return -1
            if link.kind == "filler" or (link.kind == "op" and link.op in over) or link.kind == "unused":
                continue
            return other
        return -1

    def before(self, place: int, *, over: tuple[str, ...] = (), most: int = 4) -> int:
        """Return the place of the link before that says something, -1 at a mark, the beginning or after too many words."""
        for other in range(place - 1, max(-1, place - 1 - most), -1):
            link = self.links[other]
            if link.kind == "mark":
                return -1
            if link.kind == "filler" or (link.kind == "op" and link.op in over) or link.kind == "unused":
                continue
            return other
        return -1

    def table(self, name: str) -> Table | None:
        """Return a table."""
        return self.catalog.table(name)

    def column(self, link: Link) -> Column | None:
        """Return the column of a link."""
        return self.catalog.column(link.table, link.column) if link.column else None

    def measures(self, link: Link) -> bool:
        """Say whether a link is a column of numbers that can be added up or compared."""
        column = self.column(link) if link.kind == "column" else None
        return column is not None and column.is_number and not column.is_id

    def is_people(self, name: str) -> bool:
        """Say whether a table holds people."""
        table = self.table(name)
        return table is not None and any(lemma(word) in PEOPLE for word in table.words)

    def use(self, *places: int) -> None:
        """Mark links as used."""
        self.used |= {place for place in places if place >= 0}

    def become(self, place: int, **changes: object) -> None:
        """Change the link at a place."""
        self.links[place] = replace(self.links[place], **changes)  # type: ignore[arg-type]  # fields of Link

    def agent(self) -> str:
        """Return the people that 'who' asks for though nobody named them: those nearest to what is named."""
        people = [table.name for table in self.catalog.tables.values() if table.kind == "table" and self.is_people(table.name)]
        far = sorted(
            (near, name) for name in people for table in self.path.tables if (near := self.distances.between(table, name)) is not None
        )
        if not far:
            named = {link.one for link in self.catalog.links if link.many in self.path.tables}
            reached = [
                name for name in named if (table := self.table(name)) and _REACHED & {word for c in table.columns for word in c.words}
            ]
            return reached[0] if len(reached) == 1 else ""  # who has more than 5 plots: those of the plots who can be called
        if far[0][0] > 2 or (len(far) > 1 and far[1][0] == far[0][0]):
            return ""
        return far[0][1]

    def named_first(self) -> bool:
        """Say whether a table is named right after the first word: who are the leads."""
        asked = self.after(0, most=5)
        return asked >= 0 and self.links[asked].kind == "table"

    def owned(self, place: int) -> int:
        """Return the last of tables that stand side by side: of 'the shop's subscriptions' the subscriptions."""
        while place + 1 < len(self.links) and self.links[place + 1].kind == "table":
            place += 1
        return place

    def fact(self) -> str:
        """Return the table of what is counted or computed, where it is known."""
        for link in self.links:
            if link.op and link.kind in ("column", "table"):
                return link.table
        if self.slots.measures:
            return self.slots.measures[0].table
        return next((link.table for link in self.links if self.measures(link)), "")

    def tables(self) -> tuple[str, ...]:
        """Return the tables that the question speaks of: those named first, then those of columns and values."""
        named = [link.table for link in self.links if link.kind == "table"]
        others = [link.table for link in self.links if link.table]
        return tuple(dict.fromkeys((*named, *others)))

    def head(self) -> str:
        """Return the table that the question is about: counted, asked for with which and who, or named first."""
        if self.words[:1] in (("who",), ("whom",)):
            people = [link.table for link in self.links if link.kind == "table" and self.is_people(link.table)]
            spoken = people or self.named_first() or any(self.is_people(table) for table in self.path.tables)
            if not spoken and (agent := self.agent()):
                return agent
        asked = -1
        for place, link in enumerate(self.links):
            if link.is_op("count", "wh", "list", "howmuch") or (link.is_op("agg") and asked < 0):
                asked = place
                following = self.after(place, over=("distinct", "most", "sup", "top"), most=5)
                if following >= 0 and self.links[following].kind == "value":
                    following = self.after(following, most=3)
                if following >= 0 and self.links[following].kind == "table":
                    return self.links[self.owned(following)].table
        named = [link.table for _, link in enumerate(self.links) if link.kind == "table"]
        if named:
            return named[0]
        if "who" in self.words[:2] or "whom" in self.words[:2]:
            people = [table for table in self.path.tables if self.is_people(table)]
            if people:
                return sorted(people)[0]
            if agent := self.agent():
                return agent
        shown = [link.table for link in self.links if link.kind == "column"] or [link.table for link in self.links if link.table]
        return shown[0] if shown else ""

    def scope(self) -> Scope:
        """Return where the columns of adjectives and dates are looked for."""
        return Scope(self.catalog, self.head(), self.tables())
