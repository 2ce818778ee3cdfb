"""Make the queries for the most and the least: of a column, of a count, of a sum."""

from collections.abc import Iterator
from dataclasses import replace

from longtable.app.offline.catalog import Column, Table
from longtable.app.offline.chunks import PRODUCT, Chunk
from longtable.app.offline.columns import CannotRead, by_dimension, choose, entity, holds_years, priced_quantity
from longtable.app.offline.conditions import as_col, as_number, settle_filter
from longtable.app.offline.draft import Superlative
from longtable.app.offline.groups import Groups
from longtable.app.offline.joins import distance, path
from longtable.app.offline.lexicon import EARNING, PAID, PARTICIPLES, PEOPLE, VERB_TABLES
from longtable.app.offline.linking import Hit
from longtable.app.offline.logic import (
    Agg,
    Order,
    Query,
    Scalar,
)
from longtable.app.offline.measures import AMOUNTS, BILLS, adds_up, amounts_of, identity
from longtable.app.offline.text import lemma, split_name, stem

_APPEARS = frozenset(
    ["used", "appear", "appears", "appeared", "occur", "occurs", "occurred", "happen", "happens", "comes", "chosen", "represented"]
)
_MONEYED = frozenset(["paid", "spent", "earned", "cost", "sold"])


class Superlatives(Groups):
    """Rankings."""

    def superlative(self, base: str) -> Query:
        if len(self.draft.sups) == 2 and (extremes := self.extremes(base)) is not None:
            return extremes
        sup = self.draft.sups[0]
        if len(self.draft.sups) > 1 and not all(each.chunk is not None and each.kind == "plain" for each in self.draft.sups):
            raise CannotRead("words", *(each.dimension or each.kind for each in self.draft.sups[1:]))
        if sup.kind == "frequent":
            return self.frequent(base, sup)
        desc = sup.sign == "max"
        if sup.chunk is not None and sup.chunk.arg == PRODUCT:
            sup.func = "sum"
        if sup.kind == "most" and sup.chunk is None and not self.draft.computes and _APPEARS & set(self.draft.words) and self.draft.targets:
            return self.frequent(base, sup)
        if sup.kind == "most" and sup.chunk is None and not self.draft.computes and (home := self.counted_value()):
            self.scope = replace(self.scope, base=home)
            return self.most(home, sup, desc)
        if sup.kind == "most" and sup.chunk is None and (done := self.table_of_verb()):
            self.scope = replace(self.scope, base=done)
            return self.most(done, sup, desc)
        if self.counted(sup):
            return self.most(base, sup, desc)
        if sup.func:
            chunk = sup.chunk
            arg = None if sup.func == "count" else self.measure(chunk, sup.func) if chunk else self.lone_measure(base, sup.func)
            agg = Agg(sup.func, arg)  # type: ignore[arg-type]  # func is one of Func
            return self.ranked_groups(base, agg, desc)
        if self.draft.computes:
            return self.ranked_computed(base, desc)
        column, turned = self.sup_column(base, sup)
        desc ^= turned
        self.need(column.table)
        col = as_number(column) if column.is_number else as_col(column)
        subjects = [chunk for chunk in self.draft.targets if self.subject(chunk, column)]
        added = column.is_number and adds_up(sup.chunk.text if sup.chunk is not None else "money", column)
        if self.draft.groups and self.is_asked(self.draft.groups[0]):
            added |= sup.kind == "most" and column.is_number  # in which month did we take the most money
            return self.ranked_groups(column.table, Agg("sum", col) if added else Agg("max" if desc else "min", col), desc)
        if self.draft.groups:
            return self.grouped(base, [Agg("max" if desc else "min", col)])
        if (
            not subjects
            and not self.draft.which
            and not self.draft.asks
            and not (sup.dimension and (sup.kind == "first" or sup.chunk is not None))
            and not self.draft.limit
        ):
            extra = tuple(
                Agg("max" if each.sign == "max" else "min", as_number(self.column(each.chunk, number=True)) if each.chunk else col)
                for each in self.draft.sups[1:]
            )
            return Query(column.table if not self.draft.targets else base, select=(Agg("max" if desc else "min", col), *extra))
        if sup.kind == "most" and subjects and self.is_kind(subjects[0], column):
            self.draft.groups, self.draft.targets = subjects[:1], [chunk for chunk in self.draft.targets if chunk not in subjects[:1]]
            return self.ranked_groups(column.table, Agg("sum", self.product(column) if self.multiplied else col), desc)
        if sup.kind == "most" and subjects and (rolled := self.rolled(column, subjects[0], desc)) is not None:
            return rolled
        if not subjects and self.draft.which and {"who", "whom", "whose"} & set(self.draft.words):
            if sup.kind == "most" and added and (people := self.people_of(base, column)) is not None:
                self.draft.groups = [people]
                return self.ranked_groups(column.table, Agg("sum", self.product(column) if self.multiplied else col), desc)
            if base != column.table:
                return self.person(base, column, desc)
        if len(subjects) in (1, 2) and self.draft.which and (owner := self.owner(subjects, column)):
            self.draft.targets = [chunk for chunk in self.draft.targets if chunk not in subjects]
            return self.person(owner, column, desc)
        if any(entity(chunk) for chunk in subjects):  # the measured column comes along anyhow: the thing itself is asked for
            self.draft.targets = [chunk for chunk in self.draft.targets if chunk in subjects]
        listing = self.listing(base if self.fixed else self.subject_table(subjects, column), everything=False)
        items = listing.select if col in listing.select else (*listing.select, col)
        return replace(listing, select=items, order=(Order(col, desc),), limit=self.draft.limit or 1)

    def is_asked(self, chunk: Chunk) -> bool:
        """Say whether a cut of time is what the question asks for: 'which month had the highest sales'."""
        return chunk.kind == "unit" and self.draft.words[max(0, chunk.order - 1)] in ("which", "what")

    def people_of(self, base: str, column: Column) -> Chunk | None:
        """'who has put in the most hours', 'who gave the most money': the people, or the column of names, that many rows belong to."""
        table = self.catalog.table(column.table)
        if base != column.table:
            steps = path(self.catalog, (column.table,), base, self.hints, no_fan_out=True)
            return Chunk("mention", base, base.lower(), hits=(Hit(base, "", 1.0),)) if steps and len(steps) <= 2 else None
        if table is None or PEOPLE & set(map(lemma, table.words)):
            return None
        named = [each for each in table.columns if "name" in each.words and PEOPLE & set(map(lemma, each.words))]
        return Chunk("mention", named[0].name, "name", hits=(Hit(table.name, named[0].name, 1.0),)) if len(named) == 1 else None

    def counted_value(self) -> str:
        """'the most houses': return the table of a value that stands where what is counted does, empty when none does."""
        for item in self.draft.filters:
            if item.values and self.draft.words[max(0, item.values[0].order - 1)] in ("most", "fewest", "least"):
                return settle_filter(self.scope, item)[0]
        return ""

    def is_kind(self, chunk: Chunk, measured: Column) -> bool:
        """Say whether a subject is a kind that many rows of the measured table share: the method of payments."""
        column = self.column(chunk) if not entity(chunk) else None
        table = self.catalog.table(measured.table)
        if column is None or table is None or column.table != measured.table or not measured.is_number:
            return False
        return not (column.is_number or column.is_date or column in table.names or column in table.key)

    def extremes(self, base: str) -> Query | None:
        """'the lowest and highest budget', 'the oldest and the newest': both ends of one column."""
        first, second = self.draft.sups
        chunk = second.chunk or first.chunk
        if (
            {first.sign, second.sign} != {"min", "max"}
            or (first.chunk is not None and second.chunk is not None)
            or chunk is None
            or entity(chunk)
            or first.dimension
            or second.dimension
            or first.func
            or second.func
            or {first.kind, second.kind} - {"plain", "dimension"}
        ):
            return None
        col = as_number(self.column(chunk, number=True))
        self.need(col.table)
        self.draft.sups = []
        aggregates: list[Scalar] = [Agg("min" if each.sign == "min" else "max", col) for each in (first, second)]
        if self.draft.groups:
            return self.grouped(base, aggregates)
        return Query(col.table, select=tuple(aggregates))

    def person(self, people: str, column: Column, desc: bool) -> Query:
        """'who got the best score': the row with the best, and the person it belongs to."""
        table = self.catalog.table(people)
        steps = path(self.catalog, (column.table,), people, self.hints, no_fan_out=True)
        if table is None or steps is None or len(steps) > 2:  # people so far away are no answer to 'who'
            raise CannotRead("nothing")
        self.scope = replace(self.scope, base=column.table)
        self.need(people)
        col = as_number(column) if column.is_number else as_col(column)
        select = (*map(as_col, identity(table)), col)
        return Query(column.table, select=select, order=(Order(col, desc),), limit=self.draft.limit or 1)

    def owner(self, subjects: list[Chunk], column: Column) -> str:
        """'which customer has the account with the highest balance': the one asked for, where the other is only what is ranked."""
        first, second = entity(subjects[0]), entity(subjects[1]) if subjects[1:] else column.table
        steps = (
            path(self.catalog, (column.table,), first, self.hints, no_fan_out=True) if first and second == column.table != first else None
        )
        return first if steps and "and" not in self.draft.words and "," not in self.draft.words else ""

    def subject(self, chunk: Chunk, column: Column) -> bool:
        return bool(chunk.hits) and (bool(entity(chunk)) or self.column(chunk) != column)

    def subject_table(self, subjects: list[Chunk], column: Column) -> str:
        tables = [entity(chunk) or self.column(chunk).table for chunk in subjects]
        base = tables[0] if tables else column.table
        if base != column.table:
            steps = path(self.catalog, (base,), column.table, self.hints)
            if steps is not None and any(step.fans_out for step in steps):
                base = column.table  # order the many rows, name the one each belongs to
        self.scope = replace(self.scope, base=base)
        return base

    def sup_column(self, base: str, sup: Superlative) -> tuple[Column, bool]:
        if self.draft.sorts and self.draft.sorts[0].chunk is not None:
            column = self.column(self.draft.sorts[0].chunk)
            self.draft.sorts = []
            return column, False
        if sup.chunk is not None and not entity(sup.chunk):
            named = choose(
                self.scope, sup.chunk, lambda column: (column.is_number or column.is_date) and not (sup.dimension and column.is_id)
            )
            if named is not None:
                return named, sup.dimension in ("age", "tenure") and (named.is_date or holds_years(named))
        if sup.dimension:
            tables: tuple[str, ...] = tuple(
                dict.fromkeys(
                    (
                        *([entity(sup.chunk)] if sup.chunk is not None and entity(sup.chunk) else []),
                        *(entity(c) for c in self.draft.targets if entity(c)),
                        base,
                        *self.scope.anchors,
                    )
                )
            )
            found = by_dimension(self.scope, sup.dimension, tables)
            if found is None and sup.dimension == "size":
                found = by_dimension(self.scope, "quality", tables)
            if found is not None and sup.dimension == "size" and found[0].table not in tables and self.fans(tables[0], found[0].table):
                raise CannotRead("dimension", sup.dimension)  # the largest order is no matter of one of its lines
            if found is not None:
                return found
            raise CannotRead("dimension", sup.dimension)
        if sup.chunk is not None and (bill := self.billed(entity(sup.chunk))) is not None:
            return bill, False
        if sup.chunk is not None:
            raise CannotRead("measure", sup.chunk.text)
        spent = sup.kind == "most" and {"spent", "spend", "spends", "paid", "pay", "pays", "cost", "costs", "charge", "charges"} & set(
            self.draft.words
        )
        if spent and (paid := self.paid_by_verb()) is not None:
            return paid, False
        if spent and (found := by_dimension(self.scope, "price", (base,))) is not None:
            table = self.catalog.table(found[0].table)
            pair = priced_quantity(table) if table is not None else None
            self.multiplied = pair is not None and found[0] in pair
            return found
        earned = sup.kind == "most" and EARNING & set(self.draft.words)
        if earned and (found := by_dimension(self.scope, "pay", (base,))) is not None:
            return found
        if sup.kind != "most" and (found := by_dimension(self.scope, "height", (base,))) is not None:
            return found
        raise CannotRead("measure", "highest" if sup.sign == "max" else "lowest")

    def paid_by_verb(self) -> Column | None:
        """'which client paid us the most': the one amount of the one table of what the verb speaks of."""
        stems = {stem(VERB_TABLES[word]) for word in self.draft.words if word in VERB_TABLES}
        found = [table for table in self.catalog.tables.values() if table.kind == "table" and stems & set(map(stem, table.words))]
        amounts = amounts_of(found[0]) if len(found) == 1 else []
        return amounts[0] if len(amounts) == 1 else None

    def billed(self, name: str) -> Column | None:
        """'the highest bill': the one amount of a table of bills, claims or payments."""
        table = self.catalog.table(name) if name else None
        if table is None or not (PAID | BILLS) & {lemma(word) for word in table.words}:
            return None
        found = [each for each in table.columns if each.is_number and not each.is_id and AMOUNTS & {lemma(word) for word in each.words}]
        found = [each for each in found if "unit" not in each.words] or found
        return found[0] if len(found) == 1 else None

    def frequent(self, base: str, sup: Superlative) -> Query:
        chunk = sup.chunk or next(iter(self.draft.targets), None)
        if chunk is None:
            raise CannotRead("nothing")
        self.draft.targets = [each for each in self.draft.targets if each is not chunk and not entity(each)]
        self.draft.groups = [chunk]
        table = entity(chunk)
        if table:
            others = [name for name in self.scope.anchors if name != table and distance(self.catalog, name, table) is not None]
            base = others[0] if others else self.child_of(table, chunk)
            self.scope = replace(self.scope, base=base)
        if self.draft.limit is None:
            self.draft.limit, self.draft.limit_desc = 1, sup.sign == "max"
        else:
            self.draft.limit_desc = sup.sign == "max"
        return self.grouped(base, [Agg("count")])

    def table_of_verb(self) -> str:
        """Return the table that records what 'flew the most', 'borrowed the most' speak of, empty when no verb names one."""
        verbs = [word for word in self.draft.words if word in VERB_TABLES or (word.endswith("ed") and len(word) > 4)]
        stems = {stem(VERB_TABLES.get(verb, verb)) for verb in verbs if not _MONEYED & {verb}}
        found = [table.name for table in self.catalog.tables.values() if table.kind == "table" and stems & set(map(stem, table.words))]
        found = [name for name in found if stems & {stem("".join(split_name(name)))}] or found
        subjects = [entity(chunk) or self.column(chunk).table for chunk in self.draft.targets if chunk.hits]
        return found[0] if len(found) == 1 and subjects and found[0] not in subjects[:1] else ""

    def child_of(self, table: str, chunk: Chunk) -> str:
        children = [link.many for link in self.catalog.links if link.one == table]
        if len(set(children)) != 1:
            verbs = {stem(word) for word in self.draft.words if word.endswith("ed") or word in PARTICIPLES}
            homes = [home for name in dict.fromkeys(children) if (home := self.catalog.table(name)) is not None]
            told = [home.name for home in homes if verbs & {stem(word) for words in _names(home) for word in words}]
            if len(told) == 1:  # watched most often: of the viewings, with their minutes watched
                self.draft.targets = [each for each in self.draft.targets if stem(each.word) not in verbs]
                return told[0]
            raise CannotRead("popular", chunk.text, *sorted(set(children)))
        return children[0]

    def most(self, base: str, sup: Superlative, desc: bool) -> Query:
        targets = [chunk for chunk in (*self.draft.groups, *self.draft.targets) if entity(chunk) != base]
        if not targets:
            raise CannotRead("group", sup.chunk.text if sup.chunk else "")
        self.draft.groups, self.draft.targets = targets[:1], targets[1:]
        return self.ranked_groups(base, Agg("count"), desc)

    def rolled(self, column: Column, subject: Chunk, desc: bool) -> Query | None:
        """'the customer who spent the most': sum the many rows of each subject."""
        table = entity(subject)
        steps = path(self.catalog, (column.table,), table, self.hints, no_fan_out=True) if table else None
        if not table or table == column.table or not steps:
            return None
        self.scope = replace(self.scope, base=column.table)
        self.draft.groups, self.draft.targets = [subject], [chunk for chunk in self.draft.targets if chunk is not subject]
        return self.ranked_groups(column.table, Agg("sum", self.product(column) if self.multiplied else as_number(column)), desc)


def _names(table: Table) -> Iterator[tuple[str, ...]]:
    """Yield the words of a table's name and of its columns' names."""
    yield table.words
    yield from (column.words for column in table.columns)
