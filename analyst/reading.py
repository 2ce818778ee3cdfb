"""Read a question, alone or as a continuation of the previous query. What is taken over from the
previous query costs nothing. The cheapest reading wins.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from longtable.analyst.account import judged, unanswered
from longtable.analyst.assemble import (
    Builder,
    as_aggregate,
    as_scalar,
    assemble,
    identity,
    key_items,
    usual_order,
)
from longtable.analyst.conditions import (
    fill_lateness,
    fill_negations,
    fill_numbers,
    fill_patterns,
    fill_terms,
    fill_values,
)
from longtable.analyst.lattice import Draft, Measure, NoReadingError, Path, Slots, cheapest_paths
from longtable.analyst.lexicon import Token, costs, vocabulary
from longtable.analyst.links import Values, all_meanings
from longtable.analyst.measures import fill_functions, fill_groups, fill_ranks, fill_rest
from longtable.analyst.query import Agg, Bucket, Col, Condition, Order, Query, Scalar
from longtable.analyst.schema import Catalog
from longtable.analyst.times import fill_periods

_RULES = (
    fill_terms,
    fill_patterns,
    fill_periods,
    fill_ranks,
    fill_numbers,
    fill_lateness,
    fill_functions,
    fill_groups,
    fill_negations,
    fill_values,
    fill_rest,
)


@dataclass(frozen=True)
class Reading:
    """The reading of a whole question: its query (None if it has none), its price, and those of the
    user's words that had a price, the most expensive first.
    """

    query: Query | None
    cost: float
    blamed: tuple[str, ...] = ()


def read_question(
    tokens: list[Token],
    catalog: Catalog,
    values: Values,
    prior: Query | None = None,
    *,
    chinese: bool = False,
) -> Reading:
    """Return the cheapest reading of a question. Its query is None if the question cannot be
    read.
    """
    meanings = all_meanings(tokens, catalog, values)
    leads, elliptical = goes_on(tokens)
    ways: list[tuple[Query | None, float, list[Path]]] = []
    if prior is None or not leads:
        further = costs.PRIOR if prior is not None and elliptical else 0.0
        ways.append((None, further, cheapest_paths(meanings, len(tokens), catalog)))
    if prior is not None and catalog.table(prior.base) is not None:
        from_base = cheapest_paths(meanings, len(tokens), catalog, frozenset({prior.base}))
        paths = [*from_base, *cheapest_paths(meanings, len(tokens), catalog)]
        ways.append((prior, 0.0 if leads or elliptical else costs.PRIOR, paths))
    readings: list[Reading] = []
    for before, further, paths in ways:
        for path in paths:
            priced = replace(path, cost=path.cost + further)
            readings.append(_read(priced, tokens, catalog, before, chinese=chinese))
    return min(
        readings,
        key=lambda each: (each.query is None, each.cost),
        default=Reading(None, costs.UNKNOWN_NAME),
    )


def goes_on(tokens: list[Token]) -> tuple[bool, bool]:
    """Return two flags: whether a question says itself that it continues the previous one, and
    whether it is too short to be read alone.
    """
    words = [token.word for token in tokens if token.kind not in ("comma", "stop")]
    phrases = vocabulary().phrases
    pronouns = any(
        phrases.get((word,), ("",))[0] == "pron"
        and word not in ("its", "their", "his", "her", "ones", "it")
        for word in words
    )
    about = words[:2] in (["what", "about"], ["how", "about"])
    asks = operations_in(tokens) & {"count", "wh", "list", "howmuch", "howadj"}
    return (
        pronouns or about or words[:1] in ([word] for word in vocabulary().lists["leads"])
    ), not asks and len(words) <= 7


def is_fragment(tokens: list[Token]) -> bool:
    """Return whether a question only adds a condition or a group: "from JFK only", "by
    manufacturer".
    """
    _, elliptical = goes_on(tokens)
    return elliptical and bool(tokens) and tokens[0].word in vocabulary().lists["fragment_openers"]


def operations_in(tokens: list[Token]) -> set[str]:
    """Return the names of all operations that the words of a question may mean."""
    words = [token.word for token in tokens if token.kind not in ("comma", "stop")]
    phrases = vocabulary().phrases
    operations: set[str] = set()
    for start in range(len(words)):
        spans = [tuple(words[start : start + size]) for size in (1, 2, 3)]
        operations |= {phrases[span][0] for span in spans if span in phrases}
    return operations


def _read(
    path: Path, tokens: list[Token], catalog: Catalog, prior: Query | None, *, chinese: bool
) -> Reading:
    draft = Draft(path, tokens, catalog, chinese=chinese, prior=prior)
    query: Query | None = None
    try:
        for rule in _RULES:
            rule(draft)
        found = judged(draft, assemble(draft) if prior is None else go_on(draft, prior))
        if words := unanswered(draft, found):
            raise NoReadingError(words)
        query = found
    except NoReadingError as error:
        draft.pay(costs.UNKNOWN, str(error))
    blamed = [text for _, text in sorted(draft.blamed, key=lambda each: -each[0]) if text]
    return Reading(query, draft.cost, tuple(dict.fromkeys(blamed)))


def go_on(draft: Draft, prior: Query) -> Query:
    """Return the previous query, changed as the slots of the question say. Raises `NoReadingError`
    if nothing changes or the change is not clear.
    """
    slots = draft.slots
    pointing = any(each.is_op("pron") for each in draft.meanings)
    other = "" if pointing else _other_table(slots, prior)
    if other:
        return _on_other_table(draft, prior, other)
    slots.heads = [name for name in slots.heads if name != prior.base]
    builder = Builder(draft, prior.base, list(prior.joins) if not slots.keys else [])
    new = builder.conditions()
    new += builder.unused_tables(new)
    pointed = any(each.roles for each in slots.where)
    pairs = itertools.product(prior.where, new)
    if not pointed and any(_is_ambiguous(old, cond) for old, cond in pairs):
        raise NoReadingError  # from there, or to it?
    query = replace(prior, where=_merged(prior.where, new), joins=tuple(builder.joins))
    changed = bool(new)
    if slots.keys:
        query = _regrouped(draft, builder, query)
        changed = True
    if slots.measures:
        query = _remeasured(draft, query)
        changed = True
    elif slots.shown or (
        pointing
        and not slots.ranks
        and any(each.is_op("wh", "list") for each in draft.meanings)
        and prior.aggregates
    ):
        query = _listed(draft, builder, query)
        changed = True
    if slots.ranks:
        query = _reordered(draft, builder, query)
        changed = True
    if slots.limit is not None:
        query = replace(query, limit=slots.limit)
        changed = True
    if not changed or slots.ratio or (slots.measures and slots.shown):
        # What is shown beside a number is rather a condition.
        raise NoReadingError
    return query


def _other_table(slots: Slots, prior: Query) -> str:
    """Return the table that a question counts or names, "" if this is the table of the previous
    query.
    """
    counted = [each.table for each in slots.measures if each.func == "count" and not each.column]
    if slots.measures and not counted:
        return ""
    table = next(iter(counted or slots.heads), "")
    return "" if table == prior.base else table


def _on_other_table(draft: Draft, prior: Query, table: str) -> Query:
    """Return the previous query moved to another table: if it counted rows, the rows of this table
    are counted; if it listed rows, they are listed.
    """
    slots = draft.slots
    if not slots.measures and not slots.ranks:
        if prior.aggregates == (Agg("count"),) and not prior.group:
            slots.measures.append(Measure("count", table))
            slots.heads = [name for name in slots.heads if name != table]
        elif prior.aggregates:
            raise NoReadingError
    draft.prior = None
    return assemble(draft)


def _is_ambiguous(old: Condition, new: Condition) -> bool:
    """Return whether two conditions lead to the same table by different keys, such as origin and
    destination.
    """
    if old.query is None or new.query is None or old.query.base != new.query.base:
        return False
    return _subject(old) != _subject(new)


def _merged(old: Iterable[Condition], new: list[Condition]) -> tuple[Condition, ...]:
    """Return the old and the new conditions together. A new condition replaces old conditions on
    the same column or table.
    """
    replaced = {_subject(cond) for cond in new}

    def stays(cond: Condition) -> bool:
        return _subject(cond) not in replaced and not any(_contradicts(cond, each) for each in new)

    return tuple(dict.fromkeys((*filter(stays, old), *new)))


def _contradicts(old: Condition, new: Condition) -> bool:
    """Return whether both conditions fix the same foreign key: one by its value, the other by the
    row that it points at.
    """
    if old.left != new.left or old.negated or new.negated:
        return False
    return bool(old.query) != bool(new.query) and {old.op, new.op} <= {"=", "in"}


def _without_pins(where: tuple[Condition, ...], group: Sequence[Scalar]) -> tuple[Condition, ...]:
    """Remove conditions that fix a group key to one value: after a question about March, "per
    month" means all months.
    """
    groups = {_same_date(item) for item in group}
    return tuple(cond for cond in where if not (_pins_one(cond) and _pinned(cond) & groups))


def _pinned(cond: Condition) -> set[Scalar]:
    inner = cond.query.where if cond.query else ()
    return {_same_date(each.left) for each in (cond, *inner)}


def _pins_one(cond: Condition) -> bool:
    """Return whether a condition allows only one value of a column."""
    if cond.query:
        return not cond.negated and any(map(_pins_one, cond.query.where))
    return cond.op == "=" and not cond.negated


def _same_date(item: Scalar) -> Scalar:
    """Return a month of one year as a month of any year, and any other item unchanged. Questions
    call both by the same name.
    """
    if isinstance(item, Bucket) and item.unit == "month":
        return replace(item, unit="month_of_year")
    return item


def _subject(cond: Condition) -> object:
    """Return what a condition is about: a column, a part of a date, or a column of another
    table.
    """
    if cond.query:
        inner = cond.query.where[-1] if cond.query.where else None
        return (
            cond.left,
            cond.query.base,
            _subject(inner) if inner is not None and not cond.negated else None,
        )
    return cond.left


def _regrouped(draft: Draft, builder: Builder, query: Query) -> Query:
    columns: list[Scalar] = []
    group: list[Scalar] = []
    for key in draft.slots.keys:
        visible, grouped = key_items(builder, key)
        columns += visible
        group += grouped
    aggregates = query.aggregates or (Agg("count"),)
    if builder.repeats:
        raise NoReadingError
    where = tuple(cond for cond in query.where if not (cond.is_filled and cond.left in query.group))
    where = _without_pins(where, group)
    select = (*dict.fromkeys(columns), *aggregates)
    return Query(
        query.base,
        tuple(builder.joins),
        select,
        where,
        tuple(dict.fromkeys(group)),
        order=(usual_order(draft.catalog, columns[0], aggregates[0]),),
    )


def _remeasured(draft: Draft, query: Query) -> Query:
    measures = draft.slots.measures
    few = query.limit is not None and not query.group  # a number over the few rows that were picked
    if few or query.having or any(measure.table not in ("", query.base) for measure in measures):
        raise NoReadingError
    aggregates = tuple(as_aggregate(measure, query.base) for measure in measures)
    plain = tuple(item for item in query.select if not isinstance(item, Agg)) if query.group else ()
    order = (
        tuple(
            Order(aggregates[0], each.desc) if isinstance(each.by, Agg) else each
            for each in query.order
        )
        if query.group
        else ()
    )
    return replace(
        query,
        select=(*plain, *aggregates),
        order=order,
        distinct=False,
        joins=query.joins if query.group else (),
    )


def _listed(draft: Draft, builder: Builder, query: Query) -> Query:
    if query.group:
        columns = tuple(as_scalar(draft.catalog, key) for key in draft.slots.shown)
        if (
            not columns
            or not query.joins
            or any(key.table != query.joins[-1].table for key in draft.slots.shown)
        ):
            raise NoReadingError
        # More of the same things.
        return replace(query, select=(*query.select, *columns), group=(*query.group, *columns))
    items: list[Scalar] = (
        [Col(column.table, column.name) for column in identity(draft, draft.table(query.base))]
        if query.aggregates or not query.select
        else list(query.select)
    )
    for key in draft.slots.shown:
        builder.join(key.table)
        items.append(as_scalar(draft.catalog, key))
    return replace(
        query,
        select=tuple(dict.fromkeys(items)),
        joins=tuple(builder.joins),
        distinct=query.distinct or builder.repeats,
    )


def _reordered(draft: Draft, builder: Builder, query: Query) -> Query:
    order: list[Order] = []
    limit = query.limit
    select = list(query.select)
    for rank in draft.slots.ranks:
        measure = rank.measure
        by: Scalar
        if measure.func == "again" or (
            query.group and measure.func == "count" and not measure.column
        ):
            if not query.aggregates or not query.group:
                raise NoReadingError
            by = query.aggregates[0]
        elif measure.func:
            raise NoReadingError
        else:
            by = Col(measure.table, measure.column)
            if query.group:
                by = next(
                    (
                        item
                        for item in query.select
                        if item == by
                        or (isinstance(item, Agg | Bucket) and by in vars(item).values())
                    ),
                    by,
                )
                if by not in query.select:
                    raise NoReadingError
            else:
                if query.aggregates:
                    raise NoReadingError
                builder.join(measure.table)
                select += [by] if by not in select else []
        order.append(Order(by, rank.desc))
        limit = rank.limit if rank.limit is not None else limit
    return replace(
        query, order=tuple(order), limit=limit, select=tuple(select), joins=tuple(builder.joins)
    )
