"""Edit the query before: a follow-up adds or swaps a filter, group, measure, order or limit."""

from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.columns import CannotRead, choose, entity
from longtable.app.offline.conditions import as_col, settle_filter
from longtable.app.offline.decompile import NotReadable, negate
from longtable.app.offline.draft import Draft, Filter
from longtable.app.offline.joins import path, plan
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
    Within,
)
from longtable.app.offline.reshape import Reshape
from longtable.app.offline.settle import Settler, unused


def follow(previous: Query, draft: Draft, catalog: Catalog) -> Query:
    """Return `previous` as the draft of the follow-up edits it; `CannotRead` when some word of it has no place."""
    if left := unused(draft, catalog):
        raise CannotRead("words", *left)
    return _Editor(previous, draft, catalog).edit()


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
        touched = False
        if draft.filters or draft.absent or draft.havings or self.settler.extra:
            query, touched = self.filtered(query), True
        if draft.targets or draft.asks:
            query, touched = self.retargeted(query), True
        if draft.groups:
            query, touched = self.regrouped(query), True
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

    def keys_of(self, key: Col) -> Query:
        """Return the earlier query reduced to the keys of its rows."""
        if self.previous.group and key not in self.previous.group:
            raise CannotRead("rows")
        return replace(self.previous, select=(key,), distinct=False)

    def filtered(self, query: Query) -> Query:
        conds: list[Cond] = list(self.settler.extra)
        for item in self.draft.filters:
            preferred = self.preferred(item)
            conds += preferred if preferred is not None else settle_filter(self.settler.scope, item)[1]
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
        return self.settler.without_repeats(joined, planned[1] or self.fans(joined))

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


def _left(cond: Cond) -> object:
    if isinstance(cond, Compare | Among | Between | Like | Null | Beats):
        return replace(cond.left, cast=False) if isinstance(cond.left, Col) else cond.left
    return None


def _merged(old: tuple[Cond, ...], new: tuple[Cond, ...]) -> tuple[Cond, ...]:
    """Replace conditions on the same column, add the others."""
    lefts = [left for cond in new if (left := _left(cond)) is not None]
    lefts += [left for cond in old if isinstance(left := _left(cond), Bucket) and _part(left) in lefts]
    return (*(cond for cond in old if _left(cond) not in lefts and cond not in new), *new)


def _part(bucket: Bucket) -> Col:
    """Return the column that holds a part of a date by itself, where a table has one: month, beside the month of its date."""
    return Col(bucket.col.table, bucket.unit.removesuffix("_of_year"))


def _joined(old: tuple, new: tuple) -> tuple:  # type: ignore[type-arg]  # both are tuples of Join
    return (*old, *(join for join in new if join.table not in {each.table for each in old}))


__all__ = ["choose", "follow"]
