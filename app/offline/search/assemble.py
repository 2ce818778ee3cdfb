"""Make one query of filled slots: choose its base, join what it needs, and keep rows from being counted twice."""

from dataclasses import dataclass, field

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.conditions import as_col, as_number
from longtable.app.offline.joins import Hints, Step
from longtable.app.offline.joins import path as way
from longtable.app.offline.logic import Agg, Between, Bucket, Col, Compare, Cond, Join, Null, Order, Query, Scalar, Within
from longtable.app.offline.measures import identity
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Key, Measure, Rank, Slots
from longtable.app.offline.search.scene import Scene


class NoReading(Exception):
    """The slots of a path make no query."""


@dataclass
class Draft:
    """A query being joined together: its base, the joins so far."""

    catalog: Catalog
    hints: Hints
    base: str
    joins: list[Join] = field(default_factory=list)
    fans: bool = False
    steps: int = 0

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the tables joined so far."""
        return (self.base, *(join.table for join in self.joins))

    def steps_to(self, table: str) -> tuple[Step, ...]:
        """Return the joins that lead to a table from those there are."""
        found = way(self.catalog, self.tables, table, self.hints)
        if found is None:
            raise NoReading(f"no way to {table}")
        return found

    def repeats(self, table: str) -> bool:
        """Say whether joining a table would repeat rows."""
        return any(step.fans_out for step in self.steps_to(table))

    def join(self, table: str) -> None:
        """Join a table and what lies between."""
        for step in self.steps_to(table):
            if step.there not in self.tables:
                self.joins.append(Join(step.there, step.pairs))
                self.fans |= step.fans_out
                self.steps += 1


def assemble(scene: Scene, hints: Hints) -> Query:
    """Return the query that the slots of a scene make."""
    slots = scene.slots
    if _computes(slots):
        return _computed(scene, hints)
    return _listed(scene, hints)


def _computes(slots: Slots) -> bool:
    return bool(slots.measures or slots.keys or slots.havings or any(rank.measure.func for rank in slots.ranks))


# -- lists ------------------------------------------------------------------------------------------------------------


def _listed(scene: Scene, hints: Hints) -> Query:
    slots, catalog = scene.slots, scene.catalog
    base = _list_base(scene)
    draft = Draft(catalog, hints, base)
    items: list[Scalar] = []
    asked = _asked(scene)
    table = _table(catalog, base)
    if asked == base or not slots.shown:
        items += map(as_col, identity(table) if slots.shown or slots.ranks or asked != base else _whole(table))
    for link in slots.shown:
        draft.join(link.table)
        items.append(as_col(_column(catalog, link.table, link.column)))
        items += _pointed(draft, link.table, link.column)
    for link in slots.heads:
        if link.table not in (base,) and link.table == asked:
            draft.join(link.table)
            items += map(as_col, identity(_table(catalog, link.table)))
    order: list[Order] = []
    limit = slots.limit
    skip = 0
    for rank in slots.ranks:
        draft.join(rank.measure.table)
        column = _column(catalog, rank.measure.table, rank.measure.column)
        scalar = as_number(column) if column.is_number else as_col(column)
        order.append(Order(scalar, rank.desc))
        if rank.limit is not None:
            limit, skip = rank.limit, rank.skip
        if as_col(column) not in items:
            items.append(as_col(column))
    where = _where(scene, draft)
    if scene.words[:1] == ("who",):
        _who(scene, base, draft)
    _consistent(where)
    nulls = [Null(each.by, negated=True) for each in order if isinstance(each.by, Col) and limit is not None and not each.desc]
    categories = not any(_is_key(catalog, item) for item in items)
    distinct = slots.distinct or draft.fans or (categories and asked != base and not order)
    if not slots.where and not slots.absent and limit is None and _conditioned(scene):
        slots.pay(costs.WIDE, "every row")
    order = [each for each in order if not distinct or each.by in items]
    return Query(
        base, tuple(draft.joins), tuple(dict.fromkeys(items)), (*where, *dict.fromkeys(nulls)), order=tuple(order), limit=limit,
        offset=skip or None, distinct=distinct,
    )  # fmt: skip


def _who(scene: Scene, base: str, draft: Draft) -> None:
    """'who' asks for people, and not for the very one who is named."""
    told = scene.slots.shown or scene.slots.heads or scene.slots.ranks
    if not told and not any(scene.is_people(name) for name in draft.tables):
        scene.slots.pay(costs.ODD, "who of no people")
    table = _table(scene.catalog, base)
    named = [each for each in scene.slots.where if each.table == base and each.column in {column.name for column in table.names}]
    if named and not scene.slots.shown:
        scene.slots.pay(costs.ODD, "the one who is named")


def _conditioned(scene: Scene) -> bool:
    return any(link.is_op("neg", "cmp", "time") for link in scene.links)


def _list_base(scene: Scene) -> str:
    slots = scene.slots
    named = [link.table for link in slots.heads]
    head = _asked(scene)
    spoken = dict.fromkeys([*(link.table for link in slots.shown), *(rank.measure.table for rank in slots.ranks)])
    if head in named or head in spoken:
        return head
    if named:
        return named[0]
    if spoken:
        return _deepest(scene, list(spoken))
    if slots.where:
        return head or slots.where[0].table
    raise NoReading("nothing asked")


def _asked(scene: Scene) -> str:
    """Return the table whose rows are wanted."""
    return scene.head() if any(link.kind == "table" for link in scene.links) or "who" in scene.words[:2] else ""


def _deepest(scene: Scene, tables: list[str]) -> str:
    """Return the table from which the others are reached without repeating rows."""
    for name in tables:
        ways = [way(scene.catalog, (name,), other, Hints()) for other in tables if other != name]
        if all(steps is not None and not any(step.fans_out for step in steps) for steps in ways):
            return name
    return tables[0]


def _whole(table: Table) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if not column.is_binary)[:15]


def _pointed(draft: Draft, table: str, name: str) -> list[Scalar]:
    """Return the names of what a key that is shown points at."""
    for link in draft.catalog.links:
        if link.many == table and link.many_columns == (name,) and link.one != table:
            other = draft.catalog.table(link.one)
            if other is not None and other.names and link.one not in draft.tables:
                draft.joins.append(Join(link.one, ((Col(table, name), Col(link.one, link.one_columns[0])),), outer=True))
                return [*map(as_col, other.names)]
    return []


# -- computed ---------------------------------------------------------------------------------------------------------


def _computed(scene: Scene, hints: Hints) -> Query:
    slots, catalog = scene.slots, scene.catalog
    measures = list(slots.measures)
    if _counts_those(scene, measures):
        return _having_many(scene, hints, measures[0])
    for each in (*(having.measure for having in slots.havings), *(rank.measure for rank in slots.ranks if rank.measure.func)):
        if not any((each.func, each.table, each.column) == (known.func, known.table, known.column) for known in measures):
            measures.append(each)
    keys = list(slots.keys)
    head = _asked(scene)
    facts = [each.table for each in measures if each.table] or ([head] if head else [key.table for key in keys])
    if not facts:
        raise NoReading("nothing to compute over")
    base = _base(scene, facts)
    if not measures and (added := _added(scene)) is not None:
        measures = [added]
        base = added.table
    if not measures:
        if not any(key.unit for key in keys):
            slots.pay(costs.ODD, "counted, though nobody said so")
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
        group += _pointed(draft, key.table, key.column) if key.column else []
    extra = [link for link in slots.shown if link.kind == "column"]
    for link in extra if keys else ():
        column = _column(catalog, link.table, link.column)
        if link.table == base and _table(catalog, base).key == (column,) and not any(key.table == base and not key.column for key in keys):
            continue  # each group holds many of these
        if not any(link.table == key.table for key in keys):
            slots.pay(0.3, f"shown beside groups {link.column}")
        draft.join(link.table)
        group.append(as_col(column))
    if extra and not keys:
        slots.pay(costs.WIDE, "shown beside a number")
    where = _where(scene, draft)
    if slots.havings or any(rank.limit for rank in ranked):
        where += [Null(item, negated=True) for item in group if isinstance(item, Col) and not _is_key(catalog, item)]
    _consistent(where)
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
    where = _where(scene, draft)
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
    slots.pay(costs.IMPLIED_SUM if column is not None and _ADDITIVE & set(column.words) else costs.ODD, f"added up {shown[0].column}")
    return Measure("sum", shown[0].table, shown[0].column, shown[0].start)


def _base(scene: Scene, facts: list[str]) -> str:
    unique = list(dict.fromkeys(facts))
    if len(unique) == 1:
        return unique[0]
    for name in unique:
        ways = [way(scene.catalog, (name,), other, Hints()) for other in unique if other != name]
        if all(steps is not None and not any(step.fans_out for step in steps) for steps in ways):
            return name
    return unique[0]


def _implied_keys(scene: Scene, base: str, measures: list[Measure], *, needs_key: bool) -> list[Key]:
    """Return what a number is given for where nobody said 'per': the thing asked for, or the columns beside it."""
    slots = scene.slots
    head = _asked(scene)
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
        return [*map(as_col, _label(_table(catalog, key.table)))]
    column = _column(catalog, key.table, key.column)
    if key.unit:
        return [Bucket(as_col(column), key.unit)]  # type: ignore[arg-type]  # unit is one of Unit
    return [as_col(column)]


def _label(table: Table) -> tuple[Column, ...]:
    key = table.key if len(table.key) == 1 else ()
    found = tuple(dict.fromkeys((*key, *table.names))) if table.names else identity(table)[:8]
    if not found:
        raise NoReading(f"no name of {table.name}")
    return found


def _aggregate(catalog: Catalog, measure: Measure, draft: Draft) -> Agg:
    if measure.func == "count":
        if measure.column:
            column = _column(catalog, measure.table, measure.column)
            table = _table(catalog, measure.table)
            if table.key == (column,) and measure.table == draft.base and not draft.fans:
                return Agg("count")
            return Agg("count", as_col(column), distinct=True)
        if measure.table == draft.base and not draft.fans:
            return Agg("count")
        table = _table(catalog, measure.table)
        if len(table.key) != 1:
            if measure.table == draft.base:
                return Agg("count")
            raise NoReading("no key to count")
        draft.join(measure.table)
        return Agg("count", as_col(table.key[0]), distinct=True)
    draft.join(measure.table)
    return Agg(measure.func, as_number(_column(catalog, measure.table, measure.column)))  # type: ignore[arg-type]  # one of Func


def _having(catalog: Catalog, having: object, draft: Draft) -> Cond:
    from longtable.app.offline.search.model import Having

    assert isinstance(having, Having)
    agg = _aggregate(catalog, having.measure, draft)
    return Between(agg, having.number, having.high) if having.high is not None else Compare(agg, having.op, having.number)


def _ranked(catalog: Catalog, rank: Rank, draft: Draft, group: list[Scalar]) -> Scalar:
    if rank.measure.func:
        measure = rank.measure if rank.measure.table else Measure("count", draft.base)
        return _aggregate(catalog, measure, draft)
    column = _column(catalog, rank.measure.table, rank.measure.column)
    item = as_number(column) if column.is_number else as_col(column)
    found = [each for each in group if each == as_col(column) or (isinstance(each, Bucket) and each.col == as_col(column))]
    if found:
        return found[0]
    if rank.measure.table in {each.table for each in group if isinstance(each, Col)}:
        return item
    raise NoReading("ranked by what is not there")


# -- conditions -------------------------------------------------------------------------------------------------------


def _where(scene: Scene, draft: Draft) -> list[Cond]:
    """Return the conditions, those on tables that would repeat rows as queries of their own."""
    slots = scene.slots
    conds: list[Cond] = []
    inner: dict[str, list[Cond]] = {}
    for each in slots.where:
        if each.table in draft.tables:
            conds.append(each.cond)
        elif draft.repeats(each.table):
            inner.setdefault(each.table, []).append(each.cond)
        else:
            draft.join(each.table)
            conds.append(each.cond)
    absent = {table for table, _ in slots.absent}
    for table, found in inner.items():
        if table not in absent:
            conds.append(_within(draft, table, found, negated=False))
    for table in dict.fromkeys(absent):
        conds.append(_within(draft, table, inner.get(table, []), negated=True))
    for link in slots.heads:
        if link.table in draft.tables or link.table in absent or link.table in inner or _asked(scene) == link.table:
            continue
        within = [name for cond in conds if isinstance(cond, Within) for name in cond.query.tables]
        if link.table in within or any(step.there in inner for step in draft.steps_to(link.table)):
            continue
        if draft.repeats(link.table):
            conds.append(_within(draft, link.table, [], negated=False))
            slots.pay(costs.LOST_TABLE, f"only with {link.table}")
        else:
            slots.pay(costs.LOST_TABLE, f"for nothing {link.table}")
    slots.pay(costs.STEP * max(0, draft.steps - len(scene.path.tables) + 1), "joins")
    return list(dict.fromkeys(conds))


def _consistent(conds: list[Cond]) -> None:
    """One column cannot be and not be one value, nor be two at once."""
    equal = {(cond.left, cond.op): cond.value for cond in conds if isinstance(cond, Compare)}
    for (left, op), value in equal.items():
        if op == "=" and (equal.get((left, "<>")) == value):
            raise NoReading("a contradiction")
    nulls = {(cond.left, cond.negated) for cond in conds if isinstance(cond, Null)}
    if any((left, not negated) in nulls for left, negated in nulls):
        raise NoReading("a contradiction")
    single = [cond for cond in conds if isinstance(cond, Compare) and cond.op == "="]
    if len({cond.left for cond in single}) < len(single):
        raise NoReading("two values at once")


def _within(draft: Draft, table: str, conds: list[Cond], *, negated: bool) -> Cond:
    steps = list(draft.steps_to(table))
    if not steps:
        raise NoReading("within itself")
    first = steps[0]
    if negated and not conds and len(steps) == 1 and not first.fans_out and len(first.pairs) == 1:
        return Null(first.pairs[0][0])
    (near, far), *more = first.pairs
    if more:
        raise NoReading("a key of several columns")
    joins = tuple(Join(step.there, step.pairs) for step in steps[1:])
    nulls: tuple[Cond, ...] = (Null(far, negated=True),) if negated else ()
    return Within(near, Query(first.there, joins, (far,), (*nulls, *conds)), negated)


def _table(catalog: Catalog, name: str) -> Table:
    found = catalog.table(name)
    if found is None:
        raise NoReading(f"no table {name}")
    return found


def _column(catalog: Catalog, table: str, name: str) -> Column:
    found = catalog.column(table, name)
    if found is None:
        raise NoReading(f"no column {name}")
    return found


def _is_key(catalog: Catalog, item: Scalar) -> bool:
    column = catalog.column(item.table, item.name) if isinstance(item, Col) else None
    table = catalog.table(item.table) if isinstance(item, Col) else None
    return column is not None and table is not None and (table.key == (column,) or column in table.names)
