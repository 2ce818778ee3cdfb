"""Choose what a question is about: the base table, and the columns its mentions stand for."""

import itertools
from dataclasses import replace

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.chunks import UNTRUE, Chunk
from longtable.app.offline.columns import CannotRead, Scope, by_dimension, choose, entity
from longtable.app.offline.conditions import as_col, settle_filter
from longtable.app.offline.draft import Draft, Filter, Superlative
from longtable.app.offline.joins import distance, hints_of, path
from longtable.app.offline.lexicon import EARNING, PARTICIPLES, PEOPLE
from longtable.app.offline.logic import (
    Compare,
    Cond,
    Null,
)
from longtable.app.offline.text import lemma, likeness, split_name, stem

_PERSONAL = frozenset(["birth", "dob", "birthdate", "birthday", "gender", "salary", "wage", "nationality", "hire", "hired"])


_HELD = frozenset("customer client member patient student guest subscriber tenant donor passenger resident employee pupil".split())  # noqa: SIM905


_OPENERS = frozenset("list show the all our which what me give find name".split())  # noqa: SIM905
_AT = frozenset("on in at from of for with without who that".split())  # noqa: SIM905


class Subject:
    """Hold a draft with the catalogue; choose its base table."""

    def __init__(self, draft: Draft, catalog: Catalog, base: str = "") -> None:
        self.draft, self.catalog = draft, catalog
        anchors = [table for chunk in draft.mentions if (table := entity(chunk))]
        places = [(entity(c), c.place) for c in draft.mentions if entity(c)]
        places += [(c.hits[0].table, c.place) for c in draft.mentions if not entity(c) and " of " in c.text and c.best >= 0.9]
        for value in (value for item in draft.filters for value in item.values):
            homes = {match.table for match in value.matches}
            places += [(home, value.place) for home in homes if len(homes) == 1]
        self.scope = Scope(catalog, base, tuple(dict.fromkeys(anchors)), tuple(places), done_in(draft.words))
        self.hints = hints_of(draft)
        self.fixed = base
        self.extra: list[Cond] = []
        self.join_only: list[str] = []
        self.multiplied = False  # the money is a price times a quantity
        self.apart: set[str] = set()  # tables asked of in queries of their own

    def column(self, chunk: Chunk, *, number: bool = False) -> Column:
        found = choose(self.scope, chunk, (lambda column: column.is_number) if number else None)
        if found is None:
            raise CannotRead("measure" if number else "column", chunk.text)
        return found

    def shown(self, chunk: Chunk) -> Column:
        """Return the column that a mention to be shown stands for."""
        return self.column(chunk)

    def need(self, table: str) -> None:
        if table not in self.join_only:
            self.join_only.append(table)

    def fans(self, base: str, table: str) -> bool:
        steps = path(self.catalog, (base,), table, self.hints)
        return steps is not None and any(step.fans_out for step in steps)

    def filters(self) -> list[tuple[str, tuple[Cond, ...]]]:
        return [settle_filter(self.scope, item) for item in self.draft.filters]

    def base(self) -> str:
        """Return the table whose rows are counted, measured or listed."""
        draft = self.draft
        if role := self.role_asked():
            return role
        if (
            {"who", "whom"} & set(draft.words)
            and not draft.computes
            and not draft.targets
            and not any(is_people(self.catalog.table(name)) for name in self.scope.anchors)
        ):
            return self.people()
        self.vote()
        if not draft.computes and not draft.sups and (home := self.called()):
            return home
        for sup in draft.sups:
            if sup.chunk is not None and sup.kind in ("most", "plain") and (table := self.counted(sup)):
                return table
        for chunk in draft.counts:
            if chunk is not None:
                return entity(chunk) or self.column(chunk).table
            for item in draft.filters:
                if item.values and item.kind == "value" and draft.words[max(0, item.values[0].order - 1)] == "how":
                    return self.valued(item)  # how many girls
        for func, chunk in draft.aggs:
            if chunk is not None:
                return entity(chunk) or self.column(chunk, number=func in ("avg", "sum", "spread")).table
        if draft.words[:1] == ("who",) and not any(is_people(self.catalog.table(name)) for name in self.scope.anchors):
            for chunk in draft.targets:
                if not entity(chunk) and chunk.best >= 0.75 and is_people(self.catalog.table(home := self.shown(chunk).table)):
                    return home
        for chunk in (*draft.targets, *draft.groups):
            if chunk.hits and chunk.kind != "unit":
                return entity(chunk) or self.shown(chunk).table
        for sup in draft.sups:
            if sup.chunk is not None and sup.chunk.hits:
                return entity(sup.chunk) or self.column(sup.chunk).table
        if not draft.mentions and draft.filters and draft.filters[0].values:
            return self.valued(draft.filters[0])
        if self.scope.anchors:
            return self.scope.anchors[0]
        for item in draft.filters:
            if item.mention is not None and item.mention.hits:
                return item.mention.hits[0].table
            if item.values:
                return self.valued(item)
        tables = [table for table in self.catalog.tables.values() if table.kind == "table"]
        if len(tables) == 1 and (draft.computes or draft.sups or draft.asks):
            return tables[0].name
        raise CannotRead("nothing")

    def called(self) -> str:
        """Return the table of what a value in the plural calls at the head of the question: 'women on the student plan'."""
        words = self.draft.words
        for item in self.draft.filters:
            value = item.values[0] if item.kind == "value" and item.values else None
            if value is None or value.name or value.quoted or lemma(value.word) == value.word or not set(words[: value.order]) <= _OPENERS:
                continue
            table = self.valued(item) if words[value.order + 1 : value.order + 2] and words[value.order + 1] in _AT else ""
            others = [name for name in self.scope.anchors if name != table]
            if table and others and not any(self.fans(table, name) for name in others):
                return table
        return ""

    def role_asked(self) -> str:
        """'who is the manager of the Elm shop': the people whose job is that value."""
        first = [value for item in self.draft.filters for value in item.values if value.order <= 3]
        if self.draft.words[:1] != ("who",) or self.draft.words[1:2] not in (("is",), ("are",), ("was",)) or not first:
            return ""
        homes = {match.table for match in first[0].matches if is_people(self.catalog.table(match.table))}
        named = any(is_people(self.catalog.table(name)) for name in self.scope.anchors)
        return homes.pop() if len(homes) == 1 and not named and not first[0].name else ""

    def valued(self, item: Filter) -> str:
        """Return the table that a lone value stands for: its own, or where it only labels ('how many suites'), the one it labels."""
        table, conds = settle_filter(self.scope, item)
        match = next(
            (m for m in item.values[0].matches if m.table == table and any(getattr(cond, "value", None) == m.value for cond in conds)), None
        )
        children = {link.many for link in self.catalog.links if link.one == table}
        if not self.draft.computes or match is None or match.count != 1 or not children:
            return table
        if len(children) > 1:
            raise CannotRead("count", item.values[0].text)
        return children.pop()

    def vote(self) -> None:
        """Where the question names no table, let all its mentions and values vote for one."""
        if self.scope.anchors:
            return
        votes: dict[str, float] = {}
        for chunk in (*self.draft.mentions, *(value for item in self.draft.filters for value in item.values)):
            best: dict[str, float] = {}
            for hit in chunk.hits:
                best[hit.table] = max(best.get(hit.table, 0.0), hit.score)
            for match in chunk.matches:
                best[match.table] = max(best.get(match.table, 0.0), 0.9)
            for table, score in best.items():
                votes[table] = votes.get(table, 0.0) + score
        voted = False
        for each in self.catalog.tables.values():
            if each.name in votes and any(column.is_date and self.scope.done & set(map(stem, column.words)) for column in each.columns):
                voted = True
                votes[each.name] += 0.3  # litres brewed: of what has a date of brewing
        top = max(votes.values(), default=0.0)
        winners = [table for table, score in votes.items() if score >= top - 0.05]
        if len(winners) == 1 and (voted or len(self.draft.mentions) > 1 or any(item.values for item in self.draft.filters)):
            self.scope = replace(self.scope, anchors=(winners[0],))

    def people_tables(self) -> list[str]:
        return [table.name for table in self.catalog.tables.values() if is_people(table) and table.kind == "table"]

    def people(self) -> str:
        """Return the table of people that an open 'who' asks for: the only one, or the one the conditions are on."""
        tables = self.people_tables()
        measured = ["pay"] if EARNING & set(self.draft.words) else []
        measured += [sup.dimension for sup in self.draft.sups if sup.dimension] + [
            item.dimension for item in self.draft.filters if item.dimension
        ]
        if len(tables) > 1 and measured:
            found = {name: by_dimension(self.scope, measured[0], (name,)) for name in tables}
            own = [name for name, measure in found.items() if measure is not None and measure[0].table == name]
            tables = own or [name for name in tables if found[name] is not None] or tables
        stems = {stem(word) for word in self.draft.words if len(word) > 3 and not word.endswith("est")} - {"most"}
        if len(tables) > 1:
            tables = [
                name
                for name in tables
                if any(column.is_date and stems & set(map(stem, column.words)) for column in self.catalog.table(name).columns)  # type: ignore[union-attr]  # the names are of tables
            ] or tables
        homes = [settle_filter(self.scope, item)[0] for item in self.draft.filters if item.values or item.mention is not None]
        homes += [self.column(sup.chunk).table for sup in self.draft.sups if sup.chunk is not None and not entity(sup.chunk)]
        homes += [entity(sup.chunk) for sup in self.draft.sups if sup.chunk is not None and entity(sup.chunk)]
        near = [name for name in tables if name in homes] or self.nearest(tables, homes)
        if len(near) != 1:
            raise CannotRead("nothing")
        return near[0]

    def nearest(self, tables: list[str], homes: list[str]) -> list[str]:
        """Return those of `tables` the fewest joins away from the tables of the conditions."""
        far = {name: distance(self.catalog, homes[0], name) for name in tables} if homes else {}
        reached = [each for each in far.values() if each is not None]
        return [name for name in tables if far.get(name) == min(reached)] if reached else tables

    def counted(self, sup: Superlative) -> str:
        """Return the table whose rows a superlative counts ('the most albums'), empty when it measures a column."""
        chunk = sup.chunk
        if chunk is None or sup.dimension:
            return ""
        table = entity(chunk)
        measure = [
            hit
            for hit in chunk.hits
            if not hit.is_table and (column := self.catalog.column(hit.table, hit.column)) and column.is_number and not column.is_id
        ]
        if sup.kind == "plain":
            return table if sup.func == "count" else ""
        if measure and (not table or (measure[0].score > 0.9 and measure[0].table != table)):
            return ""
        return table or ("" if measure else self.column(chunk).table)

    def flags(self, base: str) -> None:
        """'which products are discontinued', 'full time employees': a column of flags beside the thing itself is a condition."""
        for chunk in [chunk for chunk in self.draft.targets if not entity(chunk)]:
            column = choose(self.scope, chunk)
            yes = column.truth if column is not None and column.table in (base, *self.scope.anchors) else None
            if column is not None and column.table in (base, *self.scope.anchors) and yes is None and self.is_had(chunk):
                self.draft.targets = [each for each in self.draft.targets if each is not chunk]
                amount = column.is_number and not column.is_id
                self.extra.append(Compare(as_col(column), ">", 0) if amount else Null(as_col(column), negated=True))
                self.need(column.table)
                continue
            if column is not None and column.is_date and column.table in (base, *self.scope.anchors) and self.is_past(chunk):
                self.draft.targets = [each for each in self.draft.targets if each is not chunk]
                self.extra.append(Null(as_col(column), negated=True))
                self.need(column.table)
                continue
            asked = chunk.arg == UNTRUE or self.is_adjective(chunk) or self.asked_which(chunk)
            if column is None or yes is None or not (self.scope.anchors or self.before_value(chunk)) or not asked:
                continue
            self.draft.targets = [each for each in self.draft.targets if each is not chunk]
            self.extra.append(Compare(as_col(column), "<>" if chunk.arg == UNTRUE else "=", yes))
            self.need(column.table)

    def is_had(self, chunk: Chunk) -> bool:
        """'who have an email', 'with a discount': to have one is the condition."""
        before = self.draft.words[max(0, chunk.order - 2) : chunk.order]
        return before[-1:] in (("a",), ("an",), ("any",)) and before[:1] in (("have",), ("has",), ("had",), ("with",))

    def is_past(self, chunk: Chunk) -> bool:
        """'which plants have been retired': the column is the participle."""
        word, before = chunk.text.lower(), self.draft.words[chunk.order - 1] if chunk.order else ""
        return (word.endswith("ed") or word in PARTICIPLES) and before in ("been", "have", "has", "had", "are", "were", "is", "was")

    def done(self, base: str) -> None:
        """'members who have left', 'orders that have been shipped': the date of it is there."""
        table = self.catalog.table(base)
        words = self.draft.words
        if table is None or any(item.kind == "time" for item in self.draft.filters) or self.draft.absent:
            return
        for place, (before, verb) in enumerate(itertools.pairwise(words)):
            ends = place + 2 >= len(words) or words[place + 2] in ("?", ".", ",", "and", "or")
            if before in ("were", "was", "are", "is") and not ends:
                continue  # shipped to France, shipped by a carrier: told by what follows
            if before not in ("have", "has", "had", "been", "were", "was", "are", "is", "got") or not (
                verb.endswith("ed") or verb in PARTICIPLES
            ):
                continue
            stems = {stem(verb), verb}
            found = [column for column in table.columns if column.is_date and stems & {*column.words, *map(stem, column.words)}]
            if len(found) == 1:
                self.extra.append(Null(as_col(found[0]), negated=True))

    def asked_which(self, chunk: Chunk) -> bool:
        """'which routes run at night': of things asked for by 'which', a flag told after them is a condition."""
        things = [each for each in self.draft.targets if entity(each) and each.order < chunk.order]
        between = set(self.draft.words[things[0].order + 1 : chunk.order]) if things else set()
        return self.draft.which and bool(things) and not {"and", "with", "whether", "if", ","} & between

    def before_value(self, chunk: Chunk) -> bool:
        return any(value.order == chunk.order + 1 for item in self.draft.filters for value in item.values)

    def is_adjective(self, chunk: Chunk) -> bool:
        words = self.draft.words
        if (
            chunk.hits
            and chunk.hits[0].own < chunk.hits[0].words
            and any(likeness(chunk.word, word) >= 0.9 for word in split_name(chunk.hits[0].table))
        ):
            return True  # 'active clients': the thing itself is in the mention
        before = words[max(0, chunk.order - 2) : chunk.order]
        if before[-1:] == ("as",):
            return True  # flagged as hazardous
        if before[-1:] in (("a",), ("an",)):
            before = words[max(0, chunk.order - 3) : chunk.order]  # which are at an airport
        following = [c for c in self.draft.mentions if c.order == chunk.order + 1]
        if self.before_value(chunk) and chunk.hits and self.draft.words[max(0, chunk.order - 1)] not in ("and", ","):
            return True  # list part-time associates
        return bool({"are", "is", "was", "were", "be", "have", "has", "with", "had"} & set(before)) or any(entity(c) for c in following)


def done_in(words: tuple[str, ...]) -> frozenset[str]:
    """Return the stems of the participles of a question."""
    return frozenset(stem(word) for word in words if (word.endswith("ed") and len(word) > 4) or word in PARTICIPLES)


def is_people(table: Table | None) -> bool:
    """Say whether a table holds people: by its name, or by what it knows of them."""
    if table is None:
        return False
    if any(lemma(word) in PEOPLE for word in table.words) or len(table.names) > 1:
        return True
    if table.names and "full" in table.names[0].words:
        return True
    if table.names and _HELD & {lemma(word) for word in table.names[0].words}:
        return True  # accounts by customer name
    return bool(table.names) and any(_PERSONAL & set(column.words) for column in table.columns)
