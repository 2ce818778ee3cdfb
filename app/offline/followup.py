"""Edit the query before: a follow-up adds or swaps a filter, group, measure, order or limit."""

import itertools
from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.columns import CannotRead, choose, entity
from longtable.app.offline.conditions import as_col, settle_filter
from longtable.app.offline.decompile import NotReadable, negate
from longtable.app.offline.draft import Draft, Filter
from longtable.app.offline.joins import path, plan
from longtable.app.offline.lexicon import PARTICIPLES
from longtable.app.offline.logic import (
    Agg,
    Among,
    Beats,
    Between,
    Bucket,
    Col,
    Compare,
    Cond,
    Like,
    Null,
    Query,
    Scalar,
    Spread,
    Unit,
    Within,
)
from longtable.app.offline.reshape import Reshape
from longtable.app.offline.settle import Settler, unused
from longtable.app.offline.text import split_name

_PARTS: dict[str, Unit] = {"year": "year", "quarter": "quarter", "month": "month_of_year"}


def follow(previous: Query, draft: Draft, catalog: Catalog) -> Query:
    """Return `previous` as the draft of the follow-up edits it; `CannotRead` when some word of it has no place."""
    if left := unused(draft, catalog):
        raise CannotRead("words", *left)
    if None in draft.counts and ("how", "orders") in itertools.pairwise(draft.words):
        raise CannotRead("words", "orders")  # things that this schema has not, and not how to sort
    return _Editor(previous, draft, catalog).edit()


def asks_an_end(previous: Query, draft: Draft, catalog: Catalog) -> bool:
    """'which country has the most?' after customers per country: the group at one end."""
    settler = Settler(draft, catalog, previous.base)
    named = [as_col(column) for chunk in draft.targets if not entity(chunk) for column in settler.expanded(chunk)]
    bare = bool(draft.sups) and not any(sup.chunk or sup.dimension for sup in draft.sups) and not (draft.groups or draft.computes)
    return bare and bool(previous.group and previous.aggregates) and bool(named) and set(named) <= set(previous.group)


class _Editor(Reshape):
    def edit(self) -> Query:
        draft = self.draft
        self.settler.revenue()
        if draft.rest:
            return self.others()
        if self.is_new_subject():
            return self.moved()
        self.settler.flags(self.previous.base)
        query = self.previous
        if asks_an_end(query, draft, self.catalog):
            return self.joined(self.ranked(self.filtered(query)))
        touched = False
        if draft.filters or draft.absent or draft.havings or self.settler.extra:
            query, touched = self.filtered(query), True
        if draft.targets or draft.asks:
            query, touched = self.retargeted(query), True
        if draft.groups:
            query, touched = self.regrouped(query), True
            query = self.ranked(query) if draft.sups and not draft.computes else query
        elif draft.computes:
            query, touched = self.remeasured(query), True
        elif draft.sups:
            query, touched = self.ranked(query), True
        if draft.sorts:
            query, touched = self.sorted(query), True
        if draft.limit is not None:
            query, touched = self.limited(query), True
        if not touched and draft.pron and (draft.which or draft.listing):
            query, touched = self.listed(query), True
        if not touched:
            raise CannotRead("nothing")
        return self.joined(query)

    # -- the kinds of edit ------------------------------------------------------------------------------------------

    def others(self) -> Query:
        """'the others': the rows after the limit, or those for which the last filter does not hold."""
        if self.previous.limit is not None and self.previous.order:
            return replace(self.previous, offset=self.previous.limit, limit=100 if self.previous.limit < 100 else self.previous.limit)
        if not self.previous.where:
            raise CannotRead("others")
        try:
            return replace(self.previous, where=(*self.previous.where[:-1], negate(self.previous.where[-1])))
        except NotReadable as error:
            raise CannotRead("others") from error

    def is_new_subject(self) -> bool:
        """'How many of those students own pets', 'their albums': another table comes in as the thing asked for."""
        subjects = [chunk for chunk in (*self.draft.counts, *self.draft.targets) if chunk is not None]
        tables = [entity(chunk) for chunk in subjects if entity(chunk)]
        return bool(tables) and any(table != self.previous.base for table in tables)

    def moved(self) -> Query:
        """Answer the new question among the rows of the query before."""
        draft = self.draft
        if draft.words[0] in ("only", "just") and not draft.counts:
            return self.narrowed()
        counts = [entity(chunk) for chunk in draft.counts if chunk is not None and entity(chunk)]
        targets = [entity(chunk) for chunk in draft.targets if entity(chunk)]
        own = self.previous.base
        base = own if own in (*counts, *targets) or (draft.counts and draft.counts[0] is None) else (counts or targets)[0]
        settler = Settler(draft, self.catalog, base)
        query = settler.query()
        if base == own and not self.previous.group and self.previous.limit is None:
            return self.joined(
                replace(query, where=_merged(self.previous.where, query.where), joins=_joined(self.previous.joins, query.joins))
            )
        steps = path(self.catalog, (base,), own, settler.hints)
        home = self.catalog.table(own)
        if steps is None or home is None or len(home.key) != 1:
            raise CannotRead("join", base, own)
        key = as_col(home.key[0])
        if not steps:
            return replace(query, where=(*query.where, Within(key, self.keys_of(key))))
        planned = plan(self.catalog, base, [own], settler.hints, query.joins)
        if planned is None:
            raise CannotRead("join", base, own)
        conds: tuple[Cond, ...] = (
            (Within(key, self.keys_of(key)),) if self.previous.group or self.previous.limit is not None else self.previous.where
        )
        missing = [table for table in _tables_of(conds) if table not in (base, *(join.table for join in planned[0]))]
        more = plan(self.catalog, base, missing, settler.hints, planned[0])
        return replace(query, joins=more[0] if more else planned[0], where=_merged(conds, query.where))

    def narrowed(self) -> Query:
        """'only those with shipped orders': the same rows, where another table has some of theirs."""
        other, own = entity(self.draft.targets[0]), self.previous.base
        links = [link for link in self.catalog.links if (link.many, link.one) == (other, own) and len(link.many_columns) == 1]
        if len(links) != 1 or len(self.draft.targets) != 1:
            raise CannotRead("join", own, other)
        [key], [of] = links[0].one_columns, links[0].many_columns
        keys = replace(Settler(self.draft, self.catalog, other).query(), select=(Col(other, of),), distinct=False, order=())
        return self.joined(replace(self.previous, where=(*self.previous.where, Within(Col(own, key), keys))))

    def keys_of(self, key: Col) -> Query:
        """Return the earlier query reduced to the keys of its rows."""
        if self.previous.group and key not in self.previous.group:
            raise CannotRead("rows")
        return replace(self.previous, select=(key,), distinct=False)

    def filtered(self, query: Query) -> Query:
        conds: list[Cond] = list(self.settler.extra)
        for item in self.draft.filters:
            preferred = self.preferred(item)
            conds += preferred if preferred is not None else self.dated(item, settle_filter(self.settler.scope, item)[1])
        conds += [cond for inner in self.draft.absent for cond in self.settler.negated(query, inner)]
        conds += [self.settler.having(query, item, {}) for item in self.draft.havings if item.counted is not None or item.verbs]
        for having in self.draft.havings:
            if having.counted is None and not having.verbs:
                raise CannotRead("number", f"{having.number:g}")
        return replace(query, where=_merged(query.where, tuple(conds)))

    def preferred(self, item: object) -> list[Cond] | None:
        """Let a value take the column that the last filter was on, when it is a value of that column."""
        if isinstance(item, Filter) and item.kind == "compare" and item.mention is None and not item.dimension:
            return self.compared(item)
        values = getattr(item, "values", ())
        if not values:
            return None
        for cond in reversed(self.previous.where):
            left = getattr(cond, "left", None)
            if not isinstance(left, Col) or isinstance(cond, Within | Null):
                continue
            found = [[m for m in chunk.matches if (m.table, m.column) == (left.table, left.name)] for chunk in values]
            if all(found) and not getattr(item, "mention", None):
                chosen = [matches[0].value for matches in found]
                negated = bool(getattr(item, "negated", False))
                return [Compare(left, "<>" if negated else "=", chosen[0]) if len(chosen) == 1 else Among(left, tuple(chosen), negated)]
        return None

    def compared(self, item: Filter) -> list[Cond] | None:
        """'and more than 120?': a bare number goes to the column that was last compared with one."""
        for cond in reversed(self.previous.where):
            if isinstance(cond, Compare) and isinstance(cond.left, Col) and isinstance(cond.value, int | float) and len(item.numbers) == 1:
                return [Compare(cond.left, item.op, item.numbers[0])]
            if isinstance(cond, Between) and isinstance(cond.left, Col) and len(item.numbers) == 1:
                return [Compare(cond.left, item.op, item.numbers[0])]
        return None

    def dated(self, item: Filter, conds: tuple[Cond, ...]) -> list[Cond]:
        """'and in April?': a time that names no date of its own bears on the date of before, not on a second column beside it."""
        dates = [each for each in (*map(_left, self.previous.where), *self.previous.group) if isinstance(each, Bucket)]
        named = item.mention is not None or any(verb in PARTICIPLES or verb.endswith("ed") for verb in item.verbs)
        if item.kind != "time" or named or not dates:
            return list(conds)
        return [_of_date(cond, dates[0].col) for cond in conds]

    # -- joins ------------------------------------------------------------------------------------------------------

    def joined(self, query: Query) -> Query:
        """Bring in the tables that new parts speak of."""
        spoken = [*self.settler.join_only, *_tables_of((*query.where, *query.having)), *map(_table, (*query.select, *query.group))]
        wanted = [table for table in dict.fromkeys(spoken) if table and table not in query.tables]
        planned = plan(self.catalog, query.base, wanted, self.settler.hints, query.joins)
        if planned is None:
            raise CannotRead("join", query.base, *wanted)
        joined = replace(query, joins=planned[0])
        if not wanted and not query.joins:
            return joined
        return self.weighed_once(self.settler.without_repeats(joined, planned[1] or self.fans(joined)))

    def weighed_once(self, query: Query) -> Query:
        """Average or add up each row once where joins repeat it: the age of customers, not one age for each of their orders."""
        folded = [item for item in query.select if isinstance(item, Agg) and item.func in ("avg", "sum")]
        homes = {item.arg.table for item in folded if isinstance(item.arg, Col)}
        home = homes.pop() if len(homes) == 1 else ""
        table = self.catalog.table(home)
        repeated = any(link.one == home and link.many in query.tables and link.many != home for link in self.catalog.links)
        alone = len(folded) == len(query.aggregates) and query.limit is None and not query.having
        if table is None or not repeated or not alone or len(table.key) != 1:
            return query
        if {home} >= {*_tables_of(query.where), *map(_table, query.group)} and (query.where or query.group or query.base == home):
            return replace(query, base=home, joins=()) if all(item.func == "avg" for item in folded) or query.base == home else query
        if query.group or not (query.base == home or self.draft.pron):
            return query
        key = as_col(table.key[0])
        return Query(home, select=query.select, where=(Within(key, replace(query, select=(key,), order=())),))

    def fans(self, query: Query) -> bool:
        """Say whether the joins repeat rows of the base: some join meets many rows."""
        for join in query.joins:
            for link in self.catalog.links:
                if (
                    link.many == join.table
                    and {right.name for _, right in join.pairs} == set(link.many_columns)
                    and link.one in query.tables
                ):
                    return True
        return False


def _table(item: Scalar) -> str:
    match item:
        case Col(table=table):
            return table
        case Bucket(col=col) | Spread(arg=col):
            return col.table
        case Agg(arg=Col(table=table)):
            return table
        case _:
            return ""


def _tables_of(conds: tuple[Cond, ...]) -> list[str]:
    found: list[str] = []
    for cond in conds:
        if isinstance(cond, Within):
            found.append(cond.keys.table)
        elif (left := getattr(cond, "left", None)) is not None:
            found.append(_table(left))
        else:
            found += _tables_of(getattr(cond, "conds", ()))
    return found


def _of_date(cond: Cond, date: Col) -> Cond:
    """Return a condition on a part of a date as one on the same part of `date`."""
    if not isinstance(cond, Compare | Among | Between):
        return cond
    left = cond.left
    if isinstance(left, Bucket):
        return replace(cond, left=replace(left, col=date))
    unit = next((_PARTS[word] for word in split_name(left.name) if word in _PARTS), None) if isinstance(left, Col) else None
    if unit is None or isinstance(getattr(cond, "value", None), str):
        return cond
    return replace(cond, left=Bucket(date, unit))


def _left(cond: Cond) -> object:
    if isinstance(cond, Compare | Among | Between | Like | Null | Beats):
        return replace(cond.left, cast=False) if isinstance(cond.left, Col) else cond.left
    return None


def _merged(old: tuple[Cond, ...], new: tuple[Cond, ...]) -> tuple[Cond, ...]:
    """Replace conditions on the same column, add the others."""
    lefts = [left for cond in new if (left := _left(cond)) is not None]
    return (*(cond for cond in old if _left(cond) not in lefts and cond not in new), *new)


def _joined(old: tuple, new: tuple) -> tuple:  # type: ignore[type-arg]  # both are tuples of Join
    return (*old, *(join for join in new if join.table not in {each.table for each in old}))


__all__ = ["asks_an_end", "choose", "follow"]
