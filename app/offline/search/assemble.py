"""Make one query of filled slots; those that list rows are made here."""

from longtable.app.offline.catalog import Column, Table
from longtable.app.offline.conditions import as_col, as_number
from longtable.app.offline.joins import Hints
from longtable.app.offline.logic import Col, Null, Order, Query, Scalar
from longtable.app.offline.measures import identity
from longtable.app.offline.search import costs
from longtable.app.offline.search.assemble_computed import computed
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
from longtable.app.offline.search.model import Slots
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma


def assemble(scene: Scene, hints: Hints) -> Query:
    """Return the query that the slots of a scene make."""
    slots = scene.slots
    if _computes(slots):
        return computed(scene, hints)
    return listed(scene, hints)


def _computes(slots: Slots) -> bool:
    return bool(slots.measures or slots.keys or slots.havings or any(rank.measure.func for rank in slots.ranks))


def listed(scene: Scene, hints: Hints) -> Query:
    slots, catalog = scene.slots, scene.catalog
    base = _list_base(scene)
    draft = Draft(catalog, hints, base)
    items: list[Scalar] = []
    asked = asked_table(scene)
    table = table_of(catalog, base)
    if asked == base or not slots.shown or _kind_with(scene, base):
        items += map(as_col, identity(table) if slots.shown or slots.ranks or asked != base else _whole(table))
    for link in slots.shown:
        draft.join(link.table)
        items.append(as_col(column_of(catalog, link.table, link.column)))
        items += pointed_names(draft, link.table, link.column)
    for link in slots.heads:
        if link.table not in (base,) and link.table == asked:
            draft.join(link.table)
            items += map(as_col, identity(table_of(catalog, link.table)))
    order: list[Order] = []
    limit = slots.limit
    skip = 0
    for rank in slots.ranks:
        draft.join(rank.measure.table)
        column = column_of(catalog, rank.measure.table, rank.measure.column)
        scalar = as_number(column) if column.is_number else as_col(column)
        order.append(Order(scalar, rank.desc))
        if rank.limit is not None:
            limit, skip = rank.limit, rank.skip
        if as_col(column) not in items:
            items.append(as_col(column))
    where = conditions_of(scene, draft)
    if scene.words[:1] == ("who",):
        _who(scene, base, draft)
    check_consistent(where)
    nulls = [Null(each.by, negated=True) for each in order if isinstance(each.by, Col) and limit is not None and not each.desc]
    categories = not any(is_key(catalog, item) for item in items)
    distinct = slots.distinct or draft.fans or (categories and asked != base and not order)
    if not slots.where and not slots.absent and limit is None and _conditioned(scene):
        slots.pay(costs.WIDE, "every row")
    order = [each for each in order if not distinct or each.by in items]
    return Query(
        base, tuple(draft.joins), tuple(dict.fromkeys(items)), (*where, *dict.fromkeys(nulls)), order=tuple(order), limit=limit,
        offset=skip or None, distinct=distinct,
    )  # fmt: skip


def _kind_with(scene: Scene, base: str) -> bool:
    """'all lab technicians with their wage': those whom a value in the plural calls are shown beside what they have."""
    called = [each for each in scene.links if each.kind in ("table", "column", "value", "flag")][:1]
    named = bool(called) and called[0].kind == "value" and called[0].table == base and lemma(called[0].word) != called[0].word
    return named and bool({"with", "and", "their", "its"} & set(scene.words[called[0].end : called[0].end + 3]))


def _who(scene: Scene, base: str, draft: Draft) -> None:
    """'who' asks for people, and not for the very one who is named."""
    told = scene.slots.shown or scene.slots.ranks or (scene.slots.heads and scene.named_first())  # who are our suppliers
    meant = any(link.kind == "value" and scene.is_people(link.table) for link in scene.links)  # who is the manager of the shop
    if (not told or meant) and not any(scene.is_people(name) for name in draft.tables):
        scene.slots.pay(costs.ODD, "who of no people")
    table = table_of(scene.catalog, base)
    named = [each for each in scene.slots.where if each.table == base and each.column in {column.name for column in table.names}]
    if named and not scene.slots.shown:
        scene.slots.pay(costs.ODD, "the one who is named")


def _conditioned(scene: Scene) -> bool:
    return any(link.is_op("neg", "cmp", "time") for link in scene.links)


def _list_base(scene: Scene) -> str:
    slots = scene.slots
    named = [link.table for link in slots.heads]
    head = asked_table(scene)
    spoken = dict.fromkeys([*(link.table for link in slots.shown), *(rank.measure.table for rank in slots.ranks)])
    if head in named or head in spoken:
        return head
    if named:
        return named[0]
    if spoken:
        return base_of(scene, list(spoken))
    if slots.where:
        return head or slots.where[0].table
    raise NoReading("nothing asked")


def _whole(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if not column.is_binary)[:15]
