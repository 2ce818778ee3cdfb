"""Settle a draft on the catalogue: choose base, columns and joins, and make it one query."""

from dataclasses import replace
from itertools import pairwise

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import PRODUCT, Chunk
from longtable.app.offline.columns import CannotRead, choose, entity, is_for, priced_quantity
from longtable.app.offline.conditions import as_col
from longtable.app.offline.draft import Draft
from longtable.app.offline.havings import settle_havings
from longtable.app.offline.joins import plan
from longtable.app.offline.kin import kin
from longtable.app.offline.lexicon import MONEY_VERBS, PAID, REVENUE, UNITS, VERB_TABLES
from longtable.app.offline.linking import Hit
from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Col,
    Compare,
    Cond,
    Null,
    Query,
    Share,
    Within,
)
from longtable.app.offline.measures import adds_up, amounts_of, tables_of_scalar
from longtable.app.offline.subqueries import Subqueries
from longtable.app.offline.text import lemma, split_name, stem


def settle(draft: Draft, catalog: Catalog) -> Query:
    """Return the query a draft asks for; `CannotRead` when something in it has no place."""
    related = kin(draft, catalog)
    if left := unused(draft, catalog):
        raise CannotRead("words", *left)
    settler = Settler(draft, catalog)
    if related is not None:
        settler.fixed = related[0]
        settler.scope = replace(settler.scope, base=related[0], anchors=tuple(dict.fromkeys((related[0], *settler.scope.anchors))))
        settler.extra.append(related[1])
    return settler.query()


def unused(draft: Draft, catalog: Catalog) -> list[str]:
    """Return the words that nothing took up; adverbs that tell keys apart ('permanently' for a permanent address) are taken."""
    keys = {stem(word) for link in catalog.links for column in link.many_columns for word in split_name(column)}
    return [word for word in draft.leftover if not (word.endswith("ly") and stem(word) in keys)]


def _root(word: str) -> str:
    return stem({"paid": "pay", "spent": "spend", "sold": "sell"}.get(word, word))


def is_additive(chunk: Chunk, catalog: Catalog) -> bool:
    """Say whether a mention names an amount that is added up when grouped: volume per beer, hours by project."""
    hit = chunk.hits[0]
    column = catalog.column(hit.table, hit.column) if hit.numeric else None
    return column is not None and adds_up(chunk.text, column)


class Settler(Subqueries):
    """Settle one draft; `start` may hold an earlier query whose rows it goes on from."""

    def query(self) -> Query:
        self.times_done()
        settle_havings(self.draft, self.catalog)
        self.draft.targets = [chunk for chunk in self.draft.targets if not self.leads_to_value(chunk)]
        self.revenue()
        if self.draft.spent:
            self.spending()
        for chunk in list(self.draft.targets):
            if (
                chunk.text.lower().startswith("total ")
                and chunk.hits
                and chunk.hits[0].numeric
                and "total" not in split_name(chunk.hits[0].column)
            ):
                if not self.draft.counts or self.draft.groups:
                    raise CannotRead("sum", chunk.text)
                self.draft.aggs.append(("sum", chunk))  # how many are there, and what is their total amount
                self.draft.targets = [each for each in self.draft.targets if each is not chunk]
        base = self.fixed or self.base()
        self.scope = replace(self.scope, base=base)
        self.flags(base)
        self.done(base)
        shaped = self.shape(base)
        return self.finish(shaped)

    def leads_to_value(self, chunk: Chunk) -> bool:
        """'the equipment assigned to Ana': the key between a thing and a value of what it points at is not shown."""
        column = choose(self.scope, chunk) if chunk.hits and not entity(chunk) and chunk is not self.draft.targets[0] else None
        values = [value for item in self.draft.filters for value in item.values if 0 < value.order - chunk.order <= 2]
        homes = {match.table for value in values for match in value.matches}
        ways = [link for link in self.catalog.links if column is not None and link.many_columns == (column.name,)]
        return any(link.many == column.table and link.one in homes for link in ways if column is not None)

    def times_done(self) -> None:
        """'customers who ordered more than four times': what is counted is the table that the verb speaks of."""
        subject = next((chunk for chunk in self.draft.targets if entity(chunk)), None)
        for item in self.draft.havings:
            if item.counted is None and item.verbs and subject is not None:
                done = self.child_by_verb(entity(subject), item.verbs, done=True)
                self.draft.targets = [chunk for chunk in self.draft.targets if chunk is subject or chunk.word not in item.verbs]
                item.counted = Chunk("mention", done, done.lower(), subject.place + 1, hits=(Hit(done, "", 1.0),), order=subject.order + 1)

    def revenue(self) -> None:
        """'revenue per brand': revenue is a sum unless another number is asked for."""
        found = [chunk for chunk in self.draft.targets if lemma(chunk.word) in REVENUE and chunk.hits and chunk.hits[0].numeric]
        shown = any(entity(chunk) for chunk in self.draft.targets) or {"their", "its"} & set(self.draft.words)
        if not self.draft.groups and shown:
            found = []  # the clients and their income: shown, not added up
        found += [chunk for chunk in self.draft.targets if chunk not in found and self.is_total(chunk)]
        found = found[:1]
        if (self.draft.groups or "together" in self.draft.words) and not found:
            found = self.amounts()
        if found and not self.draft.computes and not self.draft.sups:
            self.draft.aggs += [("sum", chunk) for chunk in found]
            self.draft.targets = [chunk for chunk in self.draft.targets if chunk not in found]
            self.draft.groups = [chunk for chunk in self.draft.groups if not self.is_own_span(chunk, found[0])]

    def amounts(self) -> list[Chunk]:
        """'fees per client', 'hours and costs by project': amounts that are added up, where no other number stands beside them."""
        found = [chunk for chunk in self.draft.targets if not entity(chunk) and chunk.hits and chunk.hits[0].numeric]
        joined = all({"and", ","} & set(self.draft.words[first.order : second.order]) for first, second in pairwise(found))
        return found if joined and all(is_additive(chunk, self.catalog) for chunk in found) else []

    def is_own_span(self, group: Chunk, amount: Chunk) -> bool:
        """'what do we pay in rent per month', of a monthly rent: no group, but what the amount is for."""
        column = self.catalog.column(amount.hits[0].table, amount.hits[0].column)
        return column is not None and lemma(group.text.lower()) in UNITS and is_for(column, lemma(group.text.lower()))

    def is_total(self, chunk: Chunk) -> bool:
        """'the total payments of each student', 'total order amount by method': a sum, unless what has it is listed."""
        words = {lemma(word) for word in chunk.text.lower().split()}
        if not chunk.hits or not chunk.hits[0].numeric or "total" not in words:
            return False
        listed = [entity(each) for each in self.draft.targets if each is not chunk and not each.word.endswith("ed")]
        return bool(PAID & words) or not any(name == chunk.hits[0].table for name in listed)

    def spending(self) -> None:
        """'how much did Ana spend on orders': the one sum of money of the tables named; a column asked for is enough of an answer."""
        self.draft.spent = False
        if all(func == "sum" and (chunk is None or entity(chunk)) for func, chunk in self.draft.aggs) and (found := self.paid_column()):
            self.draft.aggs = [("sum", found)]
            return
        homes = [entity(chunk) for func, chunk in self.draft.aggs if func == "sum" and chunk is not None and entity(chunk)]
        if (
            len(homes) == len(self.draft.aggs) == 1
            and (table := self.catalog.table(homes[0])) is not None
            and len(found_ := amounts_of(table)) == 1
        ):
            self.draft.aggs = [("sum", Chunk("mention", found_[0].name, hits=(Hit(table.name, found_[0].name, 1.0, numeric=True),)))]
            return
        shown = [chunk for chunk in self.draft.targets if not entity(chunk)]
        if len(shown) == 1 and not (self.draft.aggs or self.draft.sups) and self.is_turnover(shown[0]):
            self.draft.aggs = [("sum", shown[0])]
            self.draft.targets = [chunk for chunk in self.draft.targets if chunk is not shown[0]]
        if self.draft.aggs or self.draft.sups or shown:
            return
        for name in (*self.spent_on(), *self.scope.anchors, *self.paid_into()):
            table = self.catalog.table(name)
            pair = priced_quantity(table) if table is not None else None
            sums = amounts_of(table) if table is not None else []
            if pair is not None or len(sums) == 1:
                column = pair[0] if pair is not None else sums[0]
                hit = Hit(name, column.name, 1.0, numeric=True)
                self.draft.aggs.append(("sum", Chunk("mention", column.name, arg=PRODUCT if pair else "", hits=(hit,))))
                return
        raise CannotRead("measure", "how much")

    def spent_on(self) -> list[str]:
        """'spent on repairs of machines': the table of that kind of events, with its one amount, and not that of the machines."""
        values = [value for item in self.draft.filters for value in item.values]
        values = [value for value in values if self.draft.words[max(0, value.order - 1)] in ("on", "for")]
        homes = {match.table for value in values for match in value.matches}
        children = {link.many for link in self.catalog.links if link.one in self.scope.anchors}
        found = [name for name in homes & children if (table := self.catalog.table(name)) is not None and len(amounts_of(table)) == 1]
        return found if len(found) == 1 else []

    def is_turnover(self, chunk: Chunk) -> bool:
        """'how much did we bring in on freight in March': what we did is told of many rows, and its amounts are added up."""
        done = {("did", "we"), ("have", "we"), ("do", "we"), ("has", "been"), ("was", "it")} & set(pairwise(self.draft.words))
        column = self.catalog.column(chunk.hits[0].table, chunk.hits[0].column) if chunk.hits and chunk.hits[0].numeric else None
        table = self.catalog.table(column.table) if column is not None else None
        return bool(done) and table is not None and column is not None and (adds_up(chunk.text, column) or column in amounts_of(table))

    def paid_column(self) -> Chunk | None:
        """Return the one amount that the verb names: 'how much have we paid on claims' of an amount paid."""
        verbs = {_root(word) for word in self.draft.words if word in MONEY_VERBS}
        named = [(name, each) for name in self.scope.anchors if (table := self.catalog.table(name)) for each in amounts_of(table)]
        others = [(table.name, each) for table in self.catalog.tables.values() if table.kind == "table" for each in amounts_of(table)]
        told = [(name, each) for name, each in others if verbs & set(map(_root, each.words))]
        if self.draft.groups and not any(verbs & set(map(_root, each.words)) for _, each in named) and len(told) == 1:
            return Chunk("mention", told[0][1].name, hits=(Hit(told[0][0], told[0][1].name, 1.0, numeric=True),))
        for name in self.scope.anchors:
            table = self.catalog.table(name)
            sums = amounts_of(table) if table is not None else []
            found = [each for each in sums if verbs & set(map(_root, each.words))]
            if not found and table is not None and verbs & set(map(stem, table.words)):
                if len(sums) != 1:
                    raise CannotRead("measure", "how much")
                found = sums  # how much did we bill: the one amount of the bills
            if len(found) == 1:
                return Chunk("mention", found[0].name, hits=(Hit(name, found[0].name, 1.0, numeric=True),))
        return None

    def paid_into(self) -> list[str]:
        """Return the tables that record what the verb speaks of: 'how much has Ana paid'."""
        stems = {stem(VERB_TABLES[word]) for word in self.draft.words if word in VERB_TABLES}
        named = [table.name for table in self.catalog.tables.values() if table.kind == "table" and stems & set(map(stem, table.words))]
        if named:
            return named
        homes = {match.table for item in self.draft.filters for value in item.values for match in value.matches}
        homes = homes or {entity(chunk) for chunk in self.draft.groups} - {""}  # how much have we paid every supplier
        if len(homes) == 1 and (table := self.catalog.table(next(iter(homes)))) is not None and len(amounts_of(table)) == 1:
            return [table.name]  # how much did we spend on brakes: the jobs of that kind have a cost
        children = {link.many for link in self.catalog.links if link.one in homes}
        money = [name for name in children if (table := self.catalog.table(name)) is not None and amounts_of(table)]
        return money if len(money) == 1 else []

    def shape(self, base: str) -> Query:
        draft = self.draft
        own = [
            item
            for item in draft.havings
            if (item.counted is None and not item.verbs)
            or (item.counted is not None and (entity(item.counted) or self.column(item.counted).table) == base)
        ]
        subjects = [chunk for chunk in draft.targets if not entity(chunk)]
        if own and len(own) == len(draft.havings) and subjects and not draft.computes and not draft.sups and not draft.groups:
            draft.groups, draft.targets = subjects[:1], subjects[1:]
            self.extra += self.known(subjects[0], base)
            return self.grouped(base, [self.group_agg(own[0])])
        if (
            draft.limit is not None
            and draft.limit_desc is not None
            and not (draft.sorts or draft.computes or draft.sups or draft.groups)
            and subjects
        ):
            first = self.column(subjects[0])
            if not first.is_number and not first.primary and not first.is_date:
                draft.groups, draft.targets = subjects[:1], [chunk for chunk in draft.targets if chunk is not subjects[0]]
                return self.grouped(base, [Agg("count")])
        if not draft.computes and not draft.sups and not draft.groups:
            self.added_up()
        if not draft.computes and not draft.sups and (measured := [sorting for sorting in draft.sorts if sorting.func]):
            return self.ranked_by(base, measured[0])
        if draft.percent and not draft.groups:
            return self.share(base)
        if draft.sups:
            ranked = self.superlative(base)
            if draft.rank and (ranked.limit != 1 or not ranked.order):
                raise CannotRead("order")
            return replace(ranked, offset=draft.rank) if draft.rank else ranked
        if draft.computes:
            if draft.havings and draft.groups and not entity(draft.groups[0]):
                self.extra += self.known(draft.groups[0], base)
            return self.computed(base)
        if draft.groups and not self.attribute_groups():
            return self.grouped(base, [Agg("count")])
        return self.listing(base)

    def finish(self, query: Query) -> Query:
        """Add conditions and joins; a condition on many rows of one becomes a subquery where a join would count twice."""
        settled = self.filters()
        settled = self.either_or(settled)
        settled = self.both(query, settled)
        if self.apart:  # rows of each are looked for by themselves: none of their columns can be shown
            kept = tuple(item for item in query.select if not self.apart & set(tables_of_scalar(item)))
            if query.select and not kept:
                raise CannotRead("words", "both")
            query = replace(query, select=kept)
        conds: list[Cond] = []
        joins = list(query.joins)
        summing = any((isinstance(item, Agg) and item.func in ("sum", "avg")) or isinstance(item, Share) for item in query.select)
        shown = {table for item in (*query.select, *query.group) for table in tables_of_scalar(item)}
        conds += self.extra
        mere = [name for name in self.join_only if summing and name not in shown and name != query.base and self.fans(query.base, name)]
        wanted = [name for name in self.join_only if name != query.base and name not in mere]
        inner_tables: dict[str, list[Cond]] = {}
        for place, (table, found) in enumerate(settled):
            if (chosen := self.by_role(query.base, table, place, found)) is not None:
                conds.append(chosen)
                continue
            counted = [item.counted for item in self.draft.havings if item.counted is not None]
            if table != query.base and table in [entity(chunk) for chunk in counted]:
                inner_tables.setdefault(table, []).extend(found)
            elif table != query.base and table not in wanted and summing and self.fans(query.base, table):
                conds.append(self.within(query.base, table, found))
            else:
                conds += found
                if table and table != query.base:
                    wanted.append(table)
        conds += [
            self.within(query.base, name, ()) for name in mere if not any(isinstance(c, Within) and name in c.query.tables for c in conds)
        ]
        conds += [cond for item in self.draft.havings for cond in [self.having(query, item, inner_tables)]]
        needed = tuple(self.join_only)
        conds += [cond for inner in self.draft.absent for cond in self.negated(query, inner)]
        wanted += [name for name in self.join_only if name not in (query.base, *needed, *wanted)]  # what is denied may stand elsewhere
        planned = plan(self.catalog, query.base, wanted, self.hints, tuple(join for join in joins if join.table not in wanted))
        if planned is None:
            raise CannotRead("join", query.base, *wanted)
        all_joins, fans = planned
        if all_joins and not query.select and (home := self.catalog.table(query.base)) is not None:
            query = replace(query, select=tuple(map(as_col, home.columns)))
        result = replace(query, joins=all_joins, where=(*query.where, *conds, *self.present(query)))
        return self.without_repeats(result, fans)

    def added_up(self) -> None:
        """'top 5 customers by total charge': an amount of the many rows of each is added up before it ranks them."""
        subject = next((chunk for chunk in self.draft.targets if chunk.hits), None)
        for sorting in self.draft.sorts[:1]:
            if subject is None or sorting.chunk is None or sorting.func or not sorting.chunk.hits or entity(sorting.chunk):
                continue
            column = choose(self.scope, sorting.chunk, lambda column: column.is_number and not column.is_id)
            if column is None:
                continue
            table = entity(subject) or self.names_row(subject, column.table)
            total = "total" in sorting.chunk.text.lower().split()
            ranked = self.draft.limit is not None or total
            if (table and table != column.table and ranked and self.fans(table, column.table)) or (
                not table and total and (kind := self.column(subject)).table == column.table and not kind.primary
            ):
                sorting.func = "sum"

    def names_row(self, chunk: Chunk, other: str) -> str:
        """Return the table whose rows a column names, where it is not `other`: the route names stand for the routes."""
        column = self.column(chunk)
        home = self.catalog.table(column.table)
        return home.name if home is not None and home.name != other and (column in home.names or home.key == (column,)) else ""

    def known(self, chunk: Chunk, base: str) -> list[Cond]:
        """'allergens that appear on 4 ingredients': what is missing is no allergen."""
        column = self.column(chunk)
        return [Null(as_col(column), negated=True)] if column.table == base and not column.primary else []

    def either_or(self, settled: list[tuple[str, tuple[Cond, ...]]]) -> list[tuple[str, tuple[Cond, ...]]]:
        """Join by OR what the question joins by 'or' or 'either' across conditions."""
        words = self.draft.words
        if len(settled) < 2 or "or" not in words or not (self.draft.alternative or "either" in words):
            return settled
        if any(len(item.values) > 1 or len(item.numbers) > 1 or len(item.times) > 1 for item in self.draft.filters):
            return settled
        if len({table for table, _ in settled}) == 1 and len(settled) == 2:
            return [(settled[0][0], (AnyOf(tuple(cond for _, conds in settled for cond in conds)),))]
        raise CannotRead("or")

    def both(self, query: Query, settled: list[tuple[str, tuple[Cond, ...]]]) -> list[tuple[str, tuple[Cond, ...]]]:
        """'both 2014 and 2015' on the many side: one subquery for each."""
        if "both" not in self.draft.words:
            return settled
        kept: list[tuple[str, tuple[Cond, ...]]] = []
        for table, conds in settled:
            if table == query.base or not self.fans(query.base, table):
                kept.append((table, conds))
                continue
            self.apart.add(table)
            if table in self.join_only:
                self.join_only.remove(table)
            for cond in conds:
                singles = [Compare(cond.left, "=", value) for value in cond.values] if isinstance(cond, Among) else [cond]
                kept += [(query.base, (self.within(query.base, table, (single,)),)) for single in singles]
        return kept

    def present(self, query: Query) -> tuple[Cond, ...]:
        """Keep rows without the ordered value out of a superlative."""
        if (
            self.draft.sups
            and query.limit is not None
            and len(query.order) == 1
            and isinstance(query.order[0].by, Col)
            and not query.order[0].desc
        ):
            return (Null(replace(query.order[0].by, cast=False), negated=True),)
        if self.draft.sups and query.limit is not None and query.group:  # the most frequent of what is not there is no answer
            keys = [key for key in query.group if isinstance(key, Col) and key.table == query.base]
            columns = [column for key in keys if (column := self.catalog.column(key.table, key.name)) is not None and not column.primary]
            return tuple(Null(as_col(column), negated=True) for column in columns[:1])
        return ()

    def without_repeats(self, query: Query, fans: bool) -> Query:
        """Count each row of the base once where joins repeat it."""
        if not fans:
            return query
        table = self.catalog.table(query.base)
        key = table.key if table is not None else ()
        if query.aggregates:
            if len(key) != 1:
                return query
            select = tuple(Agg("count", as_col(key[0]), distinct=True) if item == Agg("count") else item for item in query.select)
            order = tuple(
                replace(each, by=Agg("count", as_col(key[0]), distinct=True)) if each.by == Agg("count") else each for each in query.order
            )
            return replace(query, select=select, order=order)
        others = {item.table for item in query.select if isinstance(item, Col)} | {
            each.by.table for each in query.order if isinstance(each.by, Col)
        }
        return (
            query
            if query.group or others - {query.base}
            else replace(query, distinct=True, select=query.select or tuple(map(as_col, table.columns if table else ())))
        )
