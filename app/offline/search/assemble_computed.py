"""Make the query of what is computed: aggregates, what they are given for, and what they are ranked by."""

from dataclasses import replace

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.conditions import as_col, as_number
from longtable.app.offline.joins import Hints
from longtable.app.offline.logic import Agg, Between, Bucket, Col, Compare, Cond, Null, Order, Query, Scalar, Within
from longtable.app.offline.measures import adds_up, identity
from longtable.app.offline.search import costs
from longtable.app.offline.search.joining import (
    Draft,
    NoReading,
    asked_table,
    base_of,
    check_consistent,
    column_of,
    conditions_of,
    is_key,
    pointed_names,
    table_of,
)
from longtable.app.offline.search.model import Having, Key, Measure, Rank
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma


def computed(scene: Scene, hints: Hints) -> Query:
    """Return the query of counts, sums and the like that the slots of a scene make."""
    slots, catalog = scene.slots, scene.catalog
    measures = list(slots.measures)
    if _counts_those(scene, measures):
        return _having_many(scene, hints, measures[0])
    for each in (*(having.measure for having in slots.havings), *(rank.measure for rank in slots.ranks if rank.measure.func)):
        if not any((each.func, each.table, each.column) == (known.func, known.table, known.column) for known in measures):
            measures.append(each)
    keys = list(slots.keys)
    head = asked_table(scene)
    facts = [each.table for each in measures if each.table] or ([head] if head else [key.table for key in keys])
    if not facts:
        raise NoReading("nothing to compute over")
    base = base_of(scene, facts)
    if not measures and (added := _added(scene)) is not None:
        measures = [added]
        base = added.table
    if not measures:
        if not any(key.unit for key in keys):
            slots.pay(costs.IMPLIED_SUM if _given_for_each(scene) else costs.ODD, "counted, though nobody said so")
        if {"revenue", "turnover", "income", "takings"} & set(scene.words):
            raise NoReading("money is not counted")
        measures = [Measure("count", base)]
    measures = [each if each.table else Measure("count", base) for each in measures]
    ranked = list(slots.ranks)
    needs_key = bool(slots.havings or any(rank.measure.func for rank in ranked))
    if not keys:
        keys = _implied_keys(scene, base, measures, needs_key=needs_key)
    if needs_key and not keys:
        raise NoReading("nothing to rank")
    if (
        not needs_key
        and all(not key.column and key.table == base for key in keys)
        and all(each.func in ("avg", "min", "max") for each in measures)
    ):
        keys = []  # the average number of seats per venue: each row is one venue
    draft = Draft(catalog, hints, base)
    group: list[Scalar] = []
    for key in keys:
        draft.join(key.table)
        group += _key_items(catalog, key)
        group += pointed_names(draft, key.table, key.column) if key.column else []
    extra = [link for link in slots.shown if link.kind == "column"]
    for link in extra if keys else ():
        column = column_of(catalog, link.table, link.column)
        if (
            link.table == base
            and table_of(catalog, base).key == (column,)
            and not any(key.table == base and not key.column for key in keys)
        ):
            continue  # each group holds many of these
        if not any(link.table == key.table for key in keys):
            slots.pay(costs.ODD if scene.measures(link) else 0.3, f"shown beside groups {link.column}")
        draft.join(link.table)
        group.append(as_col(column))
    if extra and not keys:
        slots.pay(costs.WIDE, "shown beside a number")
    where = conditions_of(scene, draft)
    if slots.havings or any(rank.limit for rank in ranked):
        where += [Null(item, negated=True) for item in group if isinstance(item, Col) and not is_key(catalog, item)]
    check_consistent(where)
    aggregates = [_aggregate(catalog, each, draft) for each in measures]
    having = tuple(_having(catalog, each, draft) for each in slots.havings)
    order = tuple(Order(_ranked(catalog, rank, draft, group), rank.desc) for rank in ranked)
    limit = next((rank.limit for rank in ranked if rank.limit is not None), slots.limit)
    skip = next((rank.skip for rank in ranked if rank.skip), 0)
    if draft.fans and any(isinstance(each, Agg) and each.func in ("sum", "avg") for each in aggregates):
        slots.pay(1.5, "a join repeats what is added up")
    if group and not order:
        order = tuple(Order(each) for each in group[:1])
    select = (*dict.fromkeys(group), *dict.fromkeys(aggregates))
    return Query(base, tuple(draft.joins), select, tuple(where), tuple(dict.fromkeys(group)), having, order, limit, skip or None)


def _given_for_each(scene: Scene) -> bool:
    """'bookings for each channel': a question that begins with the plural of what is counted."""
    first = next((link for link in scene.links if link.kind != "filler"), None)
    keyed = {key.table for key in scene.slots.keys if not key.column}
    return first is not None and first.kind == "table" and lemma(first.word) != first.word and first.table not in keyed


def _counts_those(scene: Scene, measures: list[Measure]) -> bool:
    """'how many members have more than 2 rentals' is one number: the members for whom it holds."""
    slots = scene.slots
    if len(measures) != 1 or not slots.havings or slots.keys or slots.shown or slots.ranks:
        return False
    asked = measures[0]
    asks = {"which", "who", "list", "show", "whose"} & set(scene.words)
    return (
        asked.func == "count"
        and not asked.column
        and not asks
        and all(each.measure.table not in ("", asked.table) for each in slots.havings)
    )


def _having_many(scene: Scene, hints: Hints, asked: Measure) -> Query:
    draft = Draft(scene.catalog, hints, asked.table)
    conds: list[Cond] = []
    for having in scene.slots.havings:
        steps = draft.steps_to(having.measure.table)
        if len(steps) != 1 or len(steps[0].pairs) != 1:
            raise NoReading("counted over several joins")
        (near, far) = steps[0].pairs[0]
        inner = Draft(scene.catalog, hints, having.measure.table)
        own = tuple(each.cond for each in scene.slots.where if each.table == having.measure.table)
        scene.slots.where = [each for each in scene.slots.where if each.table != having.measure.table]
        found = _having(scene.catalog, having, inner)
        conds.append(Within(near, Query(having.measure.table, (), (far,), own, (far,), (found,))))
    where = conditions_of(scene, draft)
    return Query(asked.table, tuple(draft.joins), (Agg("count"),), (*where, *conds))


_ADDITIVE = frozenset(["amount", "total", "quantity", "cost", "paid", "revenue", "hour", "value", "sum"])


def _added(scene: Scene) -> Measure | None:
    """'amount billed per month': the one amount shown beside groups is added up."""
    slots = scene.slots
    shown = [link for link in slots.shown if scene.measures(link)]
    if len(shown) != 1 or not slots.keys or slots.havings:
        return None
    column = scene.column(shown[0])
    slots.shown = [link for link in slots.shown if link is not shown[0]]
    additive = column is not None and (adds_up(shown[0].text, column) or bool(_ADDITIVE & set(column.words)))
    slots.pay(costs.IMPLIED_SUM if additive else costs.ODD, f"added up {shown[0].column}")
    added = Measure("sum", shown[0].table, shown[0].column, shown[0].start)
    slots.ranks = [
        replace(rank, measure=added) if (rank.measure.table, rank.measure.column) == (added.table, added.column) else rank
        for rank in slots.ranks
    ]
    return added


def _implied_keys(scene: Scene, base: str, measures: list[Measure], *, needs_key: bool) -> list[Key]:
    """Return what a number is given for where nobody said 'per': the thing asked for, or the columns beside it."""
    slots = scene.slots
    head = asked_table(scene)
    columns = [link for link in slots.shown if not (scene.measures(link) and link.table == base)]
    counted = {each.table for each in measures if each.func == "count" and not each.column}
    if needs_key:
        if columns and (head in ("", base) or head in counted or columns[0].start < _place_of(scene, head)):
            slots.shown = [link for link in slots.shown if link not in columns]
            return [Key(link.table, link.column) for link in columns]
        if head and head != base:
            return [Key(head)]
        others = [link.table for link in slots.heads if link.table != base]
        if others:
            return [Key(others[0])]
        if head == base and any(each.func != "count" for each in measures):
            return [Key(head)]
        return []
    wanted = {"which", "each", "their", "list", "show", "names", "name", "every", "with"} & set(scene.words)
    if columns and slots.measures and (wanted or len(columns) > 1 or "and" in scene.words):
        slots.shown = [link for link in slots.shown if link not in columns]
        slots.pay(0.3, "grouped by what is shown")
        return [Key(link.table, link.column) for link in columns]
    if head and head != base and wanted & {"which", "each", "their"}:
        slots.pay(0.3, "grouped by what is asked for")
        return [Key(head)]
    return []


def _place_of(scene: Scene, head: str) -> int:
    return next((link.start for link in scene.links if link.kind == "table" and link.table == head), 99)


def _key_items(catalog: Catalog, key: Key) -> list[Scalar]:
    if not key.column:
        return [*map(as_col, _label(table_of(catalog, key.table)))]
    column = column_of(catalog, key.table, key.column)
    if key.unit:
        return [Bucket(as_col(column), key.unit)]  # type: ignore[arg-type]  # unit is one of Unit
    return [as_col(column)]


def _label(table: Table) -> tuple[Column, ...]:
    found = identity(table)[:8]
    if not found:
        raise NoReading(f"no name of {table.name}")
    return found


def _aggregate(catalog: Catalog, measure: Measure, draft: Draft) -> Agg:
    if measure.func == "count":
        if measure.column:
            column = column_of(catalog, measure.table, measure.column)
            table = table_of(catalog, measure.table)
            if table.key == (column,) and measure.table == draft.base and not draft.fans:
                return Agg("count")
            return Agg("count", as_col(column), distinct=True)
        if measure.table == draft.base and not draft.fans:
            return Agg("count")
        table = table_of(catalog, measure.table)
        if len(table.key) != 1:
            if measure.table == draft.base:
                return Agg("count")
            raise NoReading("no key to count")
        draft.join(measure.table)
        return Agg("count", as_col(table.key[0]), distinct=True)
    draft.join(measure.table)
    column = column_of(catalog, measure.table, measure.column)
    return Agg(measure.func, as_col(column) if column.is_date else as_number(column))  # type: ignore[arg-type]  # one of Func


def _having(catalog: Catalog, having: Having, draft: Draft) -> Cond:
    agg = _aggregate(catalog, having.measure, draft)
    return Between(agg, having.number, having.high) if having.high is not None else Compare(agg, having.op, having.number)


def _ranked(catalog: Catalog, rank: Rank, draft: Draft, group: list[Scalar]) -> Scalar:
    if rank.measure.func:
        measure = rank.measure if rank.measure.table else Measure("count", draft.base)
        return _aggregate(catalog, measure, draft)
    column = column_of(catalog, rank.measure.table, rank.measure.column)
    item = as_number(column) if column.is_number else as_col(column)
    found = [each for each in group if each == as_col(column) or (isinstance(each, Bucket) and each.col == as_col(column))]
    if found:
        return found[0]
    if rank.measure.table in {each.table for each in group if isinstance(each, Col)}:
        return item
    raise NoReading("ranked by what is not there")
