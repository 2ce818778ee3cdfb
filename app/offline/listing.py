"""Make the query that lists rows: which columns stand for what was asked."""

from longtable.app.offline.catalog import Column, Table
from longtable.app.offline.chunks import AGENT, Chunk
from longtable.app.offline.columns import CannotRead, by_dimension, choose, date_column, entity
from longtable.app.offline.conditions import as_col
from longtable.app.offline.lexicon import PEOPLE
from longtable.app.offline.lexicon_places import PLACES, SITES
from longtable.app.offline.logic import (
    Col,
    Null,
    Query,
    Scalar,
)
from longtable.app.offline.measures import MANY_COLUMNS, Measures, identity
from longtable.app.offline.subject import is_people
from longtable.app.offline.text import lemma, likeness


class Listing(Measures):
    """Lists of rows."""

    def listing(self, base: str, *, everything: bool = True) -> Query:
        table = self.catalog.table(base)
        if table is None:
            raise CannotRead("nothing")
        agents = any(chunk.arg == AGENT for chunk in self.draft.targets)
        asks_who = self.draft.words[:1] in (("who",), ("whom",), ("who's",))
        keyed = asks_who and any(not entity(c) and self.pointed(self.shown(c)) is not None for c in self.draft.targets)
        keyed |= asks_who and any(self.is_role(c) for c in self.draft.targets if not entity(c))
        who = asks_who and not agents and not self.fixed and not keyed
        if who and not is_people(table) and self.people_tables():
            raise CannotRead("nothing")
        items: list[Scalar] = []
        columns = [chunk for chunk in self.draft.targets if not entity(chunk)]
        for index, chunk in enumerate(self.draft.targets):
            if other := entity(chunk):
                if other == base and index and (named := self.own_name(chunk, table)):
                    items += named
                if other != base:
                    self.need(other)
                    if index and self.together(chunk):
                        home = self.catalog.table(other)
                        items += [as_col(each) for each in (home.names or home.key)] if home else []
                continue
            for column in self.expanded(chunk):
                self.need(column.table)
                items.append(as_col(column))
                if asks_who and (person := self.pointed(column)) is not None:
                    self.need(person.name)
                    items += map(as_col, person.names)
        whose = self.draft.words[:1] == ("whose",)
        if (asks_who or whose) and is_people(table) and columns and not any(as_col(name) in items for name in table.names):
            items = [*map(as_col, table.names), *items]  # who works here, and in what role
        for chunk in self.draft.groups:
            other = entity(chunk)
            home = self.catalog.table(other) if other else None
            items = [*(as_col(each) for each in (home.names or home.key if home else ())), *items]
            if other:
                self.need(other)
        for dimension in self.draft.asks:
            items.append(self.asked(base, dimension))
        if "when" in self.draft.words and not columns and (found := date_column(self.scope, "year", (base,), self.draft.words)):
            items = [*(as_col(each) for each in table.names or identity(table)), as_col(found[0])]
        if "where" in self.draft.words and not columns:
            items = [*(as_col(each) for each in table.names), *self.places(table)]
        before = self.draft.words[max(0, columns[0].order - 3) : columns[0].order] if columns else ()
        if columns and (bool({"their", "its"} & set(before)) or self.shown_with(columns[0], base)):
            known = table.names if table.names_itself else identity(table)
            items = [*map(as_col, known), *items]
        unique = list(dict.fromkeys(items))
        if not columns and not unique:
            unique = self.whole(table, everything) if everything else list(map(as_col, identity(table)))
        elif not columns and not self.draft.asks and "when" not in self.draft.words and "where" not in self.draft.words:
            unique = list(dict.fromkeys([*map(as_col, identity(table)), *unique]))
        order = self.sorts(base, [])
        limit = self.draft.limit
        if limit is not None and not order and self.draft.limit_desc is not None and not self.draft.sups:
            raise CannotRead("order")
        distinct = self.draft.distinct or (
            self.draft.which and bool(columns) and not self.draft.sups and not order and not any(self.identifies(item) for item in unique)
        )
        told = [each for each in unique if isinstance(each, Col) and each.table == base] if distinct and len(unique) == 1 else []
        empty = [each for each in told if (seen := self.catalog.column(base, each.name)) and None in seen.samples]
        where = tuple(Null(each, negated=True) for each in empty)  # which coatings there are: none is no coating
        return Query(base, select=tuple(unique), where=where, order=order, limit=limit, distinct=distinct)

    def is_role(self, chunk: Chunk) -> bool:
        """Say whether a column names someone by what they do: the manager of a depot."""
        column = self.shown(chunk)
        doer = lemma(chunk.word).endswith(("er", "or", "ist", "ant", "ian", "head", "contact", "chief", "captain")) or chunk.word in PEOPLE
        return doer and lemma(chunk.word) not in ("number", "order", "letter", "color") and not (column.is_number or column.is_date)

    def pointed(self, column: Column) -> Table | None:
        """Return the people that a key stands for: who is the lead attorney."""
        for link in self.catalog.links:
            if link.many == column.table and link.many_columns == (column.name,) and is_people(other := self.catalog.table(link.one)):
                return other
        return None

    def places(self, table: Table) -> list[Scalar]:
        """Return what tells where something is: its own place, or the shop, depot or branch it belongs to."""
        own = _places(table)
        if own and not {"work", "works", "worked", "working"} & set(self.draft.words):
            keys = [link for link in self.catalog.links if link.many == table.name and link.many_columns == (own[0].name,)]
            home = self.catalog.table(keys[0].one) if len(own) == len(keys) == 1 else None
            if home is not None and home.names:  # a city code: the city
                self.need(home.name)
                return [*map(as_col, own), *map(as_col, home.names)]
            return list(map(as_col, own))
        homes = [other for link in self.catalog.links if link.many == table.name and (other := self.catalog.table(link.one)) is not None]
        homes = [
            other for other in dict.fromkeys(homes) if other.names and (_places(other) or SITES & {lemma(word) for word in other.words})
        ]
        if len(homes) != 1 and not own:
            raise CannotRead("column", "where")
        if len(homes) != 1:
            return list(map(as_col, own))
        self.need(homes[0].name)
        return [*map(as_col, homes[0].names), *map(as_col, _places(homes[0]))]

    def own_name(self, chunk: Chunk, table: Table) -> list[Scalar]:
        """'which licences end in 2025? title and end date': of things called titles, their name, where columns are listed beside it."""
        columns = [each for each in self.draft.targets if not entity(each)]
        alone = " " not in chunk.text and lemma(chunk.text.lower()) == chunk.text.lower()
        joined = {"and", ","} & set(self.draft.words[chunk.order + 1 : chunk.order + 2])
        return [as_col(each) for each in table.names if lemma(chunk.word) in each.words] if columns and alone and joined else []

    def identifies(self, item: Scalar) -> bool:
        if not isinstance(item, Col):
            return False
        column = self.catalog.column(item.table, item.name)
        table = self.catalog.table(item.table)
        return column is not None and table is not None and (column in table.key or column in table.names)

    def together(self, chunk: Chunk) -> bool:
        """Say whether a second entity is to be shown too: 'albums and their artists', 'tracks with their genre'."""
        before = self.draft.words[max(0, chunk.order - 2) : chunk.order]
        if before == ("with", "the") and lemma(chunk.word) == chunk.word:
            return True  # jobs with the unit
        if before[-1:] == (",",) and self.draft.words[chunk.order + 1 : chunk.order + 2] in ((",",), ("and",)):
            return True  # booking number, advertiser and net amount
        return bool({"and", "their", "its", "corresponding", "respective"} & set(before))

    def shown_with(self, chunk: Chunk, base: str) -> bool:
        """Say whether a column is to be shown beside the thing itself, named before it: 'the keepers with their wage'."""
        first = self.draft.targets[0]
        between = set(self.draft.words[first.order + 1 : chunk.order])
        return entity(first) == base and first.order < chunk.order and bool({"with", "and", ",", "plus"} & between)

    def shown(self, chunk: Chunk) -> Column:
        return self.expanded(chunk)[0]

    def expanded(self, chunk: Chunk) -> list[Column]:
        """Return the columns of a mention; 'names' of people may be first and last name."""
        column = choose(self.scope, chunk)
        if column is not None and (whole := self.whole_day(column.table, chunk)):
            return whole
        words = chunk.text.lower().split()
        if "of" in words and lemma(words[0]) == "name":
            words = words[:1]  # names of students
        if lemma(words[-1]) in ("name", "fullname") and not {"first", "last", "middle", "given", "family", "user", "company"} & set(words):
            home = self.named(chunk, column)
            exact = column is not None and home is not None and column.table == home.name and _best(chunk, column) >= 0.98
            if home is not None and home.names and not exact:
                return list(dict.fromkeys((*home.names, *home.namesakes)))
        if column is None:
            raise CannotRead("column", chunk.text)
        return [column]

    def named(self, chunk: Chunk, column: Column | None) -> Table | None:
        prefix = [word for word in chunk.text.lower().split()[:-1] if word not in ("full", "the", "s")]
        for name in (*self.scope.anchors, *([self.scope.base] if self.scope.base else [])):
            table = self.catalog.table(name)
            if table is not None and prefix and any(likeness(prefix[-1], word) >= 0.85 for word in table.words):
                return table
        if not prefix and (owner := self.beside(chunk)):
            return self.catalog.table(owner)
        nearest = sorted(self.scope.places, key=lambda pair: (abs(pair[1] - chunk.place), pair[1] < chunk.place))
        name = nearest[0][0] if nearest else self.scope.base
        return self.catalog.table(name) if name and not prefix else (self.catalog.table(column.table) if column else None)

    def beside(self, chunk: Chunk) -> str:
        """'names and birth dates of all our Beagles': the name is of whom the other columns are, where only one table has them."""
        others = [each for each in self.draft.targets if each is not chunk and each.hits and not entity(each) and each.best >= 0.8]
        others = [each for each in others if abs(each.order - chunk.order) <= 3 and lemma(each.word) != "name"]
        homes = {hit.table for each in others for hit in each.hits if hit.score >= each.best - 0.12}
        home = self.catalog.table(next(iter(homes))) if len(homes) == 1 else None
        return home.name if home is not None and home.names_itself else ""

    def asked(self, base: str, dimension: str) -> Col:
        found = by_dimension(self.scope, dimension, tuple(dict.fromkeys((base, *self.scope.anchors))))
        if found is None:
            raise CannotRead("dimension", dimension)
        return as_col(found[0])

    def whole(self, table: Table, everything: bool) -> list[Scalar]:
        shown = [column for column in table.columns if not column.is_binary]
        if everything and len(shown) <= MANY_COLUMNS:
            return [] if len(shown) == len(table.columns) else list(map(as_col, shown))
        return list(map(as_col, identity(table)))


def _best(chunk: Chunk, column: Column) -> float:
    return max((hit.score for hit in chunk.hits if hit.column == column.name), default=0.0)


def _places(table: Table) -> list[Column]:
    return [column for column in table.columns if PLACES & set(column.words) and not column.is_number]
