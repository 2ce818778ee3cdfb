"""Make one query from filled slots: choose its base table, join the tables whose columns are shown,
and put conditions on other tables into subqueries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, cast

from longtable.analyst.lattice import Draft, Key, Measure, NoReadingError, Rank, Slots, path_cost
from longtable.analyst.lexicon import costs, is_plural, lemma, vocabulary
from longtable.analyst.query import (
    PATTERNS,
    Agg,
    Bucket,
    Col,
    Condition,
    Func,
    Join,
    Order,
    Query,
    Ratio,
    Scalar,
    Unit,
    filled,
    tables_within,
)
from longtable.analyst.schema import Catalog, Column, Step, Table

MOST_SHOWN = 8


@dataclass
class Builder:
    """A query that is being put together from its base table."""

    draft: Draft
    base: str
    joins: list[Join] = field(default_factory=list)
    repeats: bool = False
    """Whether a join repeats rows of the base table."""

    @property
    def tables(self) -> list[str]:
        """Return the base table and the tables joined so far."""
        return [self.base, *(join.table for join in self.joins)]

    def steps(self, table: str, roles: frozenset[str] = frozenset()) -> tuple[Step, ...]:
        """Return the joins that lead from the base table to a table. If the path is long, or
        another key would fit too, its price is added to the reading.
        """
        path = self.draft.catalog.path(self.base, table, roles or self.draft.slots.roles)
        if path is None:
            raise NoReadingError
        if any(step.rivals for step in path):
            self.draft.pay(costs.RIVAL_KEY, table)
        self.draft.pay(max(0.0, path_cost(path) - costs.STEP * 2), table)
        return path

    def join(self, table: str) -> tuple[Step, ...]:
        """Join a table, and return the joins that lead to it. Rows without a partner are kept,
        unless an earlier join repeats rows.
        """
        if table in self.tables:
            return ()
        steps = self.steps(table)
        for step in steps:
            if step.there not in self.tables:
                left = Col(step.here, step.here_column)
                right = Col(step.there, step.there_column)
                self.joins.append(Join(step.there, left, right, outer=step.up and not self.repeats))
                self.repeats |= not step.up
        return steps

    def within(
        self,
        table: str,
        conds: list[Condition],
        roles: frozenset[str] = frozenset(),
        *,
        negated: bool = False,
        grouped: Query | None = None,
    ) -> Condition:
        """Return the condition that matching rows exist in another table. With `negated`, it is the
        condition that none exist.
        """
        steps = self.steps(table, roles)
        if not steps:
            raise NoReadingError
        last = Col(table, steps[-1].there_column)
        inner = Query(table, select=(last,), where=tuple(conds))
        if grouped is not None:
            inner = Query(
                table,
                select=(last,),
                where=(*grouped.where, *conds),
                group=(last,),
                having=grouped.having,
            )
        for step, earlier in zip(reversed(steps[1:]), reversed(steps[:-1]), strict=True):
            back = Col(step.here, earlier.there_column)
            inner = Query(
                step.here,
                select=(back,),
                where=(Condition(Col(step.here, step.here_column), "in", inner),),
            )
        if negated and not steps[0].up:  # one NULL among the rows of NOT IN leaves none
            inner = replace(inner, where=(filled(cast(Col, inner.select[0])), *inner.where))
        return Condition(Col(self.base, steps[0].here_column), "in", inner, negated)

    def conditions(self) -> list[Condition]:
        """Return all conditions of the query. Several conditions on the same other table must hold
        for one and the same row of that table.
        """
        outer: list[Condition] = []
        inner: dict[tuple[str, frozenset[str], bool], list[Condition]] = {}
        for each in self.draft.slots.where:
            way = self.draft.catalog.path(self.base, each.table, each.roles) or ()
            # No row of it, rather than another one.
            apart = each.denied and not all(step.up for step in way)
            cond = opposite(each.cond) if each.denied and not apart else each.cond
            if each.table == self.base:
                outer.append(cond)
            else:
                inner.setdefault((each.table, each.roles, apart), []).append(cond)
        absent = self.draft.slots.absent
        for (table, roles, apart), conds in inner.items():
            if table not in absent:
                outer.append(self.within(table, conds, roles, negated=apart))
        for table, roles in absent.items():
            of_table = [those for (name, *_), those in inner.items() if name == table]
            conds = list(chain.from_iterable(of_table))
            outer.append(self.within(table, conds, roles, negated=True))
        outer = list(dict.fromkeys(outer))
        equal = [cond.left for cond in outer if cond.op == "="]
        if len(set(equal)) < len(equal):
            raise NoReadingError  # one column cannot be two values at once
        return outer

    def unused_tables(self, conditions: list[Condition]) -> list[Condition]:
        """Return conditions for tables that the question only names: each such table must have
        matching rows. A price is added for each of these tables, even if its condition would change
        nothing.
        """
        inside = set(tables_within(conditions))
        more: list[Condition] = []
        for table in dict.fromkeys(self.draft.slots.heads):
            if table in self.tables or table in inside or table in self.draft.slots.absent:
                continue
            steps = self.steps(table)
            self.draft.pay(costs.UNUSED_TABLE, table)
            if not all(step.up for step in steps):
                more.append(self.within(table, []))
        return more


def opposite(cond: Condition) -> Condition:
    """Return the negation of a condition."""
    return replace(cond, op="<>") if cond.op == "=" else replace(cond, negated=True)


def assemble(draft: Draft) -> Query:
    """Return the query that the slots of a draft describe. Raises `NoReadingError` if they describe
    none.
    """
    slots = draft.slots
    ranked = any(rank.measure.func not in ("", "again") for rank in slots.ranks)
    query = (
        _computed(draft)
        if slots.measures or slots.keys or slots.havings or ranked
        else _listed(draft)
    )
    return _as_ratio(draft, query) if slots.ratio else query


def _as_ratio(draft: Draft, query: Query) -> Query:
    """Return the query as a ratio: either the percentage of rows that meet its only condition, or
    the average of its measure over its groups. Raises `NoReadingError` if neither is possible.
    """
    plain = len(query.aggregates) == 1 and not query.having and query.limit is None
    if draft.slots.ratio == "percent" and plain and not query.group and len(query.where) == 1:
        ratio = Ratio("percent", query.aggregates[0], query.aggregates[0], query.where, 100.0)
        return replace(query, select=(ratio,), where=())
    if draft.slots.ratio == "average" and plain and len(draft.slots.keys) == 1:
        groups = cast(Col, query.group[0])
        ratio = Ratio("average", query.aggregates[0], Agg("count", groups, distinct=True))
        if (
            isinstance(groups, Bucket)
            or draft.table(groups.table).part(groups.name.casefold()) is None
        ):
            return Query(
                query.base,
                query.joins,
                (ratio,),
                tuple(dict.fromkeys((*query.where, filled(groups)))),
            )
    raise NoReadingError(
        next((each.text for each in draft.meanings if each.is_op("agg") or each.arg == "share"), "")
    )


def as_scalar(catalog: Catalog, key: Key) -> Scalar:
    """Return the column of a key, or the part of a date. Raises `NoReadingError` if there is no
    such column.
    """
    col = Col(key.table, key.column)
    if catalog.column(key.table, key.column) is None:
        raise NoReadingError
    return Bucket(col, cast(Unit, key.unit)) if key.unit else col


def as_aggregate(measure: Measure, base: str) -> Agg:
    """Return a measure as an aggregate in a query over the table `base`."""
    if not measure.column:
        return Agg("count")
    return Agg(
        cast(Func, measure.func),
        Col(measure.table or base, measure.column),
        measure.func == "count" and measure.distinct,
    )


# -- lists -----------------------------------------------------------------------------------------


def _wants_conditions(draft: Draft) -> bool:
    """Return whether a question has a clause, a comparison, a negation or a time, so that its query
    must have a condition.
    """
    lists = vocabulary().lists
    opened = bool(lists["clause_openers"] & set(draft.words[1:]))
    if opened and any(m.text.lower() in lists["verbs"] for m in draft.meanings):
        return True
    return not draft.base and any(m.is_op("neg", "cmp", "time") for m in draft.meanings)


def _pay_for_repetition(
    draft: Draft, table: Table, items: list[Scalar], where: list[Condition]
) -> None:
    """Add a price if a list would show nothing but what the question itself says."""
    patterns = any(each.is_op("like") for each in draft.meanings)
    pinned = {
        cond.left for cond in where if (cond.op in PATTERNS and not patterns) or cond.op == "="
    }
    own = {_as_col(column) for column in table.names}
    shows_more = draft.slots.shown or draft.slots.ranks
    names_a_person = draft.words[:1] == ["who"] and pinned & own and not shows_more
    if pinned and (names_a_person or set(items) <= pinned):
        unread = [m for m in draft.meanings if m.kind == "filler" and m.cost > costs.GRAMMAR]
        draft.pay(costs.UNKNOWN, " ".join(m.text for m in unread))


def _shown_items(draft: Draft, builder: Builder, *, only_shown: bool) -> list[Scalar]:
    """Join the tables and return the columns that a list shows: first the columns by which a
    person recognises rows, then the columns that were asked for.
    """
    slots = draft.slots
    head = draft.head()
    items: list[Scalar] = []
    if not only_shown and (head in ("", builder.base) or slots.ranks):
        items += map(_as_col, identity(draft, draft.table(builder.base)))
    for key in slots.shown:
        builder.join(key.table)
        items.append(as_scalar(draft.catalog, key))
        items += _pointed_names(builder, key)
    if head and head != builder.base:
        draft.pay(costs.ODD, head)
        builder.join(head)
        items += map(_as_col, identity(draft, draft.table(head)))
    return items


def _listed(draft: Draft) -> Query:
    slots = draft.slots
    asked = draft.asked()
    # The values of a column are asked for, and not rows with it: 'which countries', not 'show the
    # email of'.
    what = any(
        each.is_op("wh") for each in draft.meanings[: None if draft.chinese else max(asked, 0)]
    )
    only_shown = (
        asked >= 0 and draft.meanings[asked].kind in ("column", "unit") and not slots.ranks and what
    )
    builder = Builder(draft, _list_base(draft))
    table = draft.table(builder.base)
    items = _shown_items(draft, builder, only_shown=only_shown)
    order: list[Order] = []
    limit = slots.limit
    for rank in slots.ranks:
        if rank.measure.func == "again":
            raise NoReadingError(draft.words[0])
        builder.join(rank.measure.table)
        col = Col(rank.measure.table, rank.measure.column)
        order.append(Order(col, rank.desc))
        limit = rank.limit if rank.limit is not None else limit
        items.append(col)
    where = builder.conditions()
    where += builder.unused_tables(where)
    where += [
        filled(each.by)
        for each in order
        if limit is not None and not each.desc and isinstance(each.by, Col)
    ]
    if limit is None:
        if not where and _wants_conditions(draft):
            raise NoReadingError(" ".join(m.text for m in draft.meanings if m.kind != "mark"))
        _pay_for_repetition(draft, table, items, where)
    if builder.repeats and not where:
        raise NoReadingError(draft.meanings[0].text)
    distinct = slots.distinct or builder.repeats or (only_shown and not order)
    if not items:
        raise NoReadingError
    return Query(
        builder.base,
        tuple(builder.joins),
        tuple(dict.fromkeys(items)),
        tuple(dict.fromkeys(where)),
        order=tuple(each for each in order if not distinct or each.by in items),
        limit=limit,
        distinct=distinct,
    )


def _list_base(draft: Draft) -> str:
    slots = draft.slots
    head = draft.head()
    mentioned = [
        *(key.table for key in slots.shown),
        *(rank.measure.table for rank in slots.ranks if rank.measure.table),
    ]
    tables = list(dict.fromkeys([name for name in (head, *mentioned) if name]))
    if known := _lowest(draft, tables) or next(iter([*tables, *slots.heads]), draft.base):
        return known
    if slots.where:
        draft.pay(costs.ODD, draft.meanings[0].text)
        return slots.where[0].table
    raise NoReadingError


def _lowest(draft: Draft, tables: list[str]) -> str:
    """Return the table whose rows each have at most one matching row in every other table, "" if
    there is no such table.
    """
    for name in tables:
        ways = [draft.catalog.path(name, other) for other in tables if other != name]
        if all(map(_goes_up, ways)):
            return name
    return ""


def _goes_up(way: tuple[Step, ...] | None) -> bool:
    return way is not None and all(step.up for step in way)


def _as_col(column: Column) -> Col:
    return Col(column.table, column.name)


def identity(draft: Draft, table: Table) -> list[Column]:
    """Return the columns by which a person recognises rows: names; if there are none, dates and
    codes. Columns that the question has conditions on are added. At most eight columns are
    returned.
    """
    asked = [
        column
        for each in draft.slots.where
        if each.table == table.name
        and (column := table.by_name.get(each.column.casefold()))
        and not column.is_condition
    ]
    ranked = [
        column
        for rank in draft.slots.ranks
        if rank.measure.table == table.name
        and (column := table.by_name.get(rank.measure.column.casefold()))
    ]
    readable = [
        column
        for column in table.columns
        if not column.is_binary and not (column.is_number and column.references)
    ]
    if table.names:
        columns = [*table.names, *asked]
        plain = not draft.slots.shown and not asked and not draft.slots.ranks
        columns += (
            [column for column in readable if not column.primary or not column.is_number][
                : MOST_SHOWN - 2
            ]
            if plain
            else []
        )
    else:
        units = map(table.part, ("year", "month", "day"))
        parts = [column for column in units if column is not None]
        dates = parts or [column for column in table.columns if column.is_date][:1]
        codes = [
            column
            for column in readable
            if column.references or (column.primary and not column.is_date)
        ]
        columns = [*dict.fromkeys([*dates, *asked, *ranked])][:MOST_SHOWN] + [
            column for column in [*codes, *readable] if column not in asked
        ]
    return list(dict.fromkeys(columns))[:MOST_SHOWN]


def _pointed_names(builder: Builder, key: Key) -> list[Scalar]:
    """Join the table that a shown foreign key points at, and return the columns that hold names in
    it. Empty if there are none.
    """
    keys = [
        each
        for each in builder.draft.catalog.references
        if (each.many, each.column) == (key.table, key.column)
    ]
    for each in [
        each
        for each in keys
        if each.one not in builder.tables and builder.draft.table(each.one).names
    ][:1]:
        builder.joins.append(Join(each.one, Col(key.table, key.column), Col(each.one, each.target)))
        return [_as_col(column) for column in builder.draft.table(each.one).names]
    return []


# -- numbers ---------------------------------------------------------------------------------------


class _Groups(NamedTuple):
    """The base table and the groups of a computed answer."""

    base: str
    keys: list[Key]
    rest: list[Key]
    """Columns that are shown beside the group keys."""


class _Listed(NamedTuple):
    """The columns of a group that a computed answer shows, and the columns that only tell groups
    apart.
    """

    shown: list[Scalar]
    hidden: list[Scalar]


def _computed(draft: Draft) -> Query:
    slots = draft.slots
    if _counts_groups(slots):
        return _count_of_those(draft, slots.measures[0])
    measures = _all_measures(draft)
    groups = _groups(draft, measures)
    builder = Builder(draft, groups.base)
    listed = _listed_keys(builder, groups)
    for measure in measures:
        builder.join(measure.table or groups.base)
    if builder.repeats:
        measures = [_without_repeats(draft, measure, groups.base) for measure in measures]
    where = builder.conditions()
    where += builder.unused_tables(where)
    limit = next((rank.limit for rank in slots.ranks if rank.limit is not None), slots.limit)
    where += _filled_keys(groups, listed.shown)
    if limit is not None or slots.havings:
        firsts = listed.hidden[:1] or listed.shown[:1]
        where += [filled(item) for item in firsts if isinstance(item, Col)]
    _pay_for_names(draft, groups.base, measures, where)
    aggregates = [as_aggregate(measure, groups.base) for measure in measures]
    having = _havings(builder, groups.base)
    order = [
        Order(_ranked(draft, rank, aggregates, groups.base), rank.desc) for rank in slots.ranks
    ]
    if listed.shown and not order:
        order = [usual_order(draft.catalog, listed.shown[0], aggregates[0])]
    return Query(
        groups.base,
        tuple(builder.joins),
        (*dict.fromkeys(listed.shown), *dict.fromkeys(aggregates)),
        tuple(dict.fromkeys(where)),
        tuple(dict.fromkeys((*listed.hidden, *listed.shown))),
        having,
        tuple(order),
        limit,
    )


def _counts_groups(slots: Slots) -> bool:
    """Return whether the question counts groups, as in "how many customers have over 5 orders"."""
    if len(slots.measures) != 1 or not slots.havings or slots.keys or slots.ranks:
        return False
    measure = slots.measures[0]
    return measure.func == "count" and not measure.column


def _all_measures(draft: Draft) -> list[Measure]:
    """Return the measures that were asked for, followed by those by which groups are filtered or
    ranked.
    """
    slots = draft.slots
    measures = list(slots.measures)
    extra = [having.measure for having in slots.havings] + _ranked_measures(slots)
    measures += [each for each in extra if each not in measures]
    return measures or [_implied(draft)]


def _ranked_measures(slots: Slots) -> list[Measure]:
    return [rank.measure for rank in slots.ranks if rank.measure.func not in ("", "again")]


def _groups(draft: Draft, measures: list[Measure]) -> _Groups:
    """Return the groups of the measures. Raises `NoReadingError` if they are not clear."""
    slots = draft.slots
    keys = list(slots.keys)
    named = [measure.table for measure in measures if measure.table]
    base = _lowest(draft, list(dict.fromkeys(named)))
    if not base:
        raise NoReadingError
    if any(measure.table not in ("", base) for measure in measures):
        draft.pay(costs.ODD, draft.table(base).name)
    base = _link_table(draft, base, keys, measures)
    if not keys and (slots.havings or _ranked_measures(slots)):
        keys = _asked_keys(draft, base, measures)
        if not keys:
            raise NoReadingError
        base = _link_table(draft, base, keys, measures)
    rest = [key for key in slots.shown if key not in keys]
    if not keys and not rest and slots.ranks:
        raise NoReadingError
    if not keys and rest:
        draft.pay(_implied_groups_price(draft, rest), rest[0].column)
        keys = rest
        rest = []
    groups = _Groups(base, keys, rest)
    if _is_guess(slots, groups):
        raise NoReadingError
    return groups


def _is_guess(slots: Slots, groups: _Groups) -> bool:
    """Return whether the groups are only a guess. This is so if a second column would have to be a
    group of its own, or if groups without rows would have to be counted.
    """
    if any(each.limit is not None for each in slots.ranks):
        first = groups.keys[0] if groups.rest else None
        if first and any(first.column or key.table != first.table for key in groups.rest):
            return True
    least = any(each.op in ("<", "<=") and each.measure.func == "count" for each in slots.havings)
    return least and any(not key.column and key.table != groups.base for key in groups.keys)


def _listed_keys(builder: Builder, groups: _Groups) -> _Listed:
    """Join the tables of the group keys and of the columns beside them, and return the listed
    columns.
    """
    draft = builder.draft
    listed = _Listed([], [])
    for key in groups.keys:
        visible, group = key_items(builder, key)
        listed.shown.extend(visible)
        listed.hidden.extend(item for item in group if item not in visible)
    for key in groups.rest:
        is_known = draft.catalog.column(key.table, key.column) is not None
        draft.pay(costs.GUESSED if is_known else costs.ODD, key.column)
        builder.join(key.table)
        listed.shown.append(as_scalar(draft.catalog, key))
    return listed


def _filled_keys(groups: _Groups, shown: Sequence[Scalar]) -> list[Condition]:
    """Return the condition that the first group is not NULL, if it is a column of the base table
    that refers to another table. Otherwise return no condition.
    """
    if not groups.keys or groups.keys[0].column:
        return []
    for key, item in zip(groups.keys, shown, strict=False):
        if key.column or not isinstance(item, Col):
            continue
        if item.table == groups.base and item.table != key.table:
            return [filled(item)]
    return []


def _pay_for_names(
    draft: Draft, base: str, measures: Sequence[Measure], where: Sequence[Condition]
) -> None:
    """Add a price for counting rows with a certain name: "how many albums" with a name more likely
    asks for the albums of an artist.
    """
    names = {_as_col(column) for column in draft.table(base).names}
    named = any(cond.op in ("=", "<>") and cond.left in names for cond in where)
    if named and Measure("count", base) in measures:
        draft.pay(costs.ODD, base)


def _havings(builder: Builder, base: str) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    for each in builder.draft.slots.havings:
        measure = each.measure
        if builder.repeats:
            measure = _without_repeats(builder.draft, measure, base)
        conditions.append(Condition(as_aggregate(measure, base), each.op, each.number))
    return tuple(conditions)


def usual_order(catalog: Catalog, shown: Scalar, computed: Agg) -> Order:
    """Return the order of groups if the question asks for none. Times and numbers are sorted
    upwards; otherwise the group with the largest measure comes first.
    """
    column = catalog.column(shown.table, shown.name) if isinstance(shown, Col) else None
    runs = isinstance(shown, Bucket) or (column is not None and column.is_number)
    return Order(shown) if runs else Order(computed, desc=True)


def _implied_groups_price(draft: Draft, keys: list[Key]) -> float:
    """Return the price of grouping by columns that the question only names beside a number. It is
    highest for columns of numbers, because these are no groups.
    """
    columns = [draft.catalog.column(key.table, key.column) for key in keys]
    if any(column is not None and column.is_measure for column in columns):
        return costs.UNKNOWN
    asked = draft.asked()
    thing = draft.meanings[asked] if asked >= 0 else None
    return (
        costs.GUESSED
        if thing is not None and Key(thing.table, thing.column) == keys[0]
        else costs.EVERY_ROW
    )


def _implied(draft: Draft) -> Measure:
    """Return the measure of each group if the question names none. It is the sum of an amount if
    exactly one is shown, otherwise the count of rows.
    """
    slots = draft.slots
    amounts = [
        key
        for key in slots.shown
        if (column := draft.catalog.column(key.table, key.column)) is not None and column.is_measure
    ]
    if len(amounts) == 1:
        words = {
            lemma(word)
            for word in (
                draft.catalog.column(amounts[0].table, amounts[0].column) or Column("", "")
            ).words
        }
        slots.shown = [key for key in slots.shown if key not in amounts]
        lists = vocabulary().lists
        sums = bool(words & lists["sum_words"]) and not words & lists["single_words"]
        draft.pay(costs.IMPLIED if sums else costs.EVERY_ROW, amounts[0].column)
        return Measure("sum", amounts[0].table, amounts[0].column)
    counted = draft.head() or next((key.table for key in slots.keys), "")
    plural = any(
        each.table == counted and each.kind == "table" and is_plural(each.text.lower().split()[-1])
        for each in draft.meanings
    )
    draft.pay(costs.IMPLIED if plural or draft.chinese else costs.ODD, counted)
    return Measure("count", counted)


def _link_table(draft: Draft, base: str, keys: list[Key], measures: list[Measure]) -> str:
    """Return the table that only links the counted things with the group keys, if there is one;
    otherwise return `base`. Each row of a link table is a pair of the two.
    """
    if len(keys) == 1 and all(measure == Measure("count", base) for measure in measures):
        steps = draft.catalog.path(base, keys[0].table) or ()
        if (
            len(steps) == 2
            and not steps[0].up
            and steps[1].up
            and len(draft.table(steps[0].there).columns) <= 4
        ):
            measures[:] = [Measure("count", steps[0].there)]
            draft.slots.ranks = [
                replace(r, measure=measures[0]) if r.measure == Measure("count", base) else r
                for r in draft.slots.ranks
            ]
            draft.slots.havings = [replace(h, measure=measures[0]) for h in draft.slots.havings]
            draft.slots.heads = [name for name in draft.slots.heads if name != base]
            return steps[0].there
    return base


def _asked_keys(draft: Draft, base: str, measures: list[Measure]) -> list[Key]:
    """Return the things that are ranked or filtered by a measure: the table or column that was
    asked for. Empty if there is none.
    """
    slots = draft.slots
    counted = {
        measure.table for measure in measures if measure.func == "count" and not measure.column
    }
    asked = draft.asked()
    thing = draft.meanings[asked] if asked >= 0 else None
    keys = [
        key
        for key in slots.shown
        if not ((c := draft.catalog.column(key.table, key.column)) is not None and c.is_measure)
    ]
    key = Key(thing.table, thing.column) if thing is not None else Key("")
    if key in keys or (thing is not None and thing.kind == "table" and thing.table not in counted):
        return [key]
    heads = [name for name in (draft.head(), *slots.heads) if name and name not in counted]
    if keys and (not heads or heads[0] == base):
        return keys[:1]
    return [Key(heads[0])] if heads else []


def key_items(builder: Builder, key: Key) -> tuple[list[Scalar], list[Scalar]]:
    """Return the columns that are shown for a group key, and the columns to group by. If the base
    table refers to the thing, it is grouped by the base table's column and shown with its names.
    """
    draft = builder.draft
    if key.column:
        builder.join(key.table)
        items = [
            as_scalar(draft.catalog, key),
            *(_pointed_names(builder, key) if not key.unit else []),
        ]
        return items, items
    table = draft.table(key.table)
    names: list[Scalar] = [_as_col(column) for column in table.names]
    steps = builder.steps(key.table) if key.table != builder.base else ()
    if not steps or not all(step.up for step in steps):
        own: list[Scalar] = [_as_col(column) for column in table.key]
        if not (names or own):
            raise NoReadingError
        builder.join(key.table)
        draft.pay(costs.FAN_OUT if steps else 0.0, key.table)
        return names or own, [*own, *names]
    *_, last = steps
    builder.join(last.here)
    pointing = Col(last.here, last.here_column)
    if names:
        builder.join(key.table)
    return [pointing, *names], [pointing, *names]


def _without_repeats(draft: Draft, measure: Measure, base: str) -> Measure:
    """Return a measure that counts each row only once although a join repeats rows. Raises
    `NoReadingError` for a sum or average, which cannot be corrected.
    """
    key = draft.table(base).key
    if measure.func == "count" and not measure.column and len(key) == 1:
        draft.pay(costs.FAN_OUT, base)
        return Measure("count", base, key[0].name, distinct=True)
    if measure.func in ("min", "max"):
        return measure
    raise NoReadingError


def _ranked(draft: Draft, rank: Rank, aggregates: list[Agg], base: str) -> Scalar:
    """Return the value by which a grouped answer is sorted. Raises `NoReadingError` if it is not an
    aggregate.
    """
    measure = rank.measure
    if measure.func == "again":
        return aggregates[0]
    if measure.func:
        aggregate = as_aggregate(measure, base)
        return next(
            (
                each
                for each in aggregates
                if (each.func, each.arg) == (aggregate.func, aggregate.arg)
            ),
            aggregates[0],
        )
    raise NoReadingError(draft.said(measure.column))


def _count_of_those(draft: Draft, counted: Measure) -> Query:
    """Return a query that counts the rows for which something holds: "how many members have more
    than 2 rentals" is one number.
    """
    slots = draft.slots
    builder = Builder(draft, counted.table)
    conditions: list[Condition] = []
    for having in slots.havings:
        name = having.measure.table
        steps = builder.steps(name)
        if len(steps) != 1 or steps[0].up:
            raise NoReadingError
        own = [each.cond for each in slots.where if each.table == name]
        slots.where = [each for each in slots.where if each.table != name]
        test = Condition(as_aggregate(having.measure, name), having.op, having.number)
        conditions.append(builder.within(name, own, grouped=Query(name, having=(test,))))
    where = builder.conditions()
    where += builder.unused_tables([*where, *conditions])
    return Query(counted.table, tuple(builder.joins), (Agg("count"),), (*where, *conditions))
