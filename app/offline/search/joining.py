"""Join what a query needs, and keep rows from being counted twice: conditions elsewhere become queries of their own."""

from dataclasses import dataclass, field

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.conditions import as_col
from longtable.app.offline.joins import Hints, Step
from longtable.app.offline.joins import path as way
from longtable.app.offline.logic import Col, Compare, Cond, Join, Null, Query, Scalar, Within
from longtable.app.offline.search import costs
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


def base_of(scene: Scene, tables: list[str]) -> str:
    """Return the table from which the others are reached without repeating rows."""
    unique = list(dict.fromkeys(tables))
    for name in unique:
        ways = [way(scene.catalog, (name,), other, Hints()) for other in unique if other != name]
        if all(steps is not None and not any(step.fans_out for step in steps) for steps in ways):
            return name
    return unique[0]


def asked_table(scene: Scene) -> str:
    """Return the table whose rows are wanted."""
    return scene.head() if any(link.kind == "table" for link in scene.links) or "who" in scene.words[:2] else ""


def pointed_names(draft: Draft, table: str, name: str) -> list[Scalar]:
    """Return the names of what a key that is shown points at."""
    for link in draft.catalog.links:
        if link.many == table and link.many_columns == (name,) and link.one != table:
            other = draft.catalog.table(link.one)
            if other is not None and other.names and link.one not in draft.tables:
                draft.joins.append(Join(link.one, ((Col(table, name), Col(link.one, link.one_columns[0])),), outer=True))
                return [*map(as_col, other.names)]
    return []


def conditions_of(scene: Scene, draft: Draft) -> list[Cond]:
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
            conds.append(within(draft, table, found, negated=False))
    for table in dict.fromkeys(absent):
        conds.append(within(draft, table, inner.get(table, []), negated=True))
    for link in slots.heads:
        if link.table in draft.tables or link.table in absent or link.table in inner or asked_table(scene) == link.table:
            continue
        inside = [name for cond in conds if isinstance(cond, Within) for name in cond.query.tables]
        if link.table in inside or any(step.there in inner for step in draft.steps_to(link.table)):
            continue
        if draft.repeats(link.table):
            conds.append(within(draft, link.table, [], negated=False))
            slots.pay(costs.LOST_TABLE, f"only with {link.table}")
        else:
            slots.pay(costs.LOST_TABLE, f"for nothing {link.table}")
    slots.pay(costs.STEP * max(0, draft.steps - len(scene.path.tables) + 1), "joins")
    return list(dict.fromkeys(conds))


def check_consistent(conds: list[Cond]) -> None:
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


def within(draft: Draft, table: str, conds: list[Cond], *, negated: bool) -> Cond:
    """Return the condition that rows of another table exist, or do not."""
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


def table_of(catalog: Catalog, name: str) -> Table:
    """Return a table that must be there."""
    found = catalog.table(name)
    if found is None:
        raise NoReading(f"no table {name}")
    return found


def column_of(catalog: Catalog, table: str, name: str) -> Column:
    """Return a column that must be there."""
    found = catalog.column(table, name)
    if found is None:
        raise NoReading(f"no column {name}")
    return found


def is_key(catalog: Catalog, item: Scalar) -> bool:
    """Say whether an item is the key or the name of its table."""
    column = catalog.column(item.table, item.name) if isinstance(item, Col) else None
    table = catalog.table(item.table) if isinstance(item, Col) else None
    return column is not None and table is not None and (table.key == (column,) or column in table.names)
