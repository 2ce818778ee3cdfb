"""Plan joins along the links of the catalogue: the shortest way, declared keys before guessed ones."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from longtable.app.offline.catalog import Catalog, Link
from longtable.app.offline.draft import Draft
from longtable.app.offline.logic import Col, Join
from longtable.app.offline.text import split_name, stem

_USUAL = frozenset(["current", "main", "primary", "default", "present"])  # of several keys, the one meant when nothing is said


@dataclass(frozen=True)
class Step:
    """One link walked from `here` to `there`; `fans_out` when one row here has many there."""

    here: str
    there: str
    pairs: tuple[tuple[Col, Col], ...]
    fans_out: bool
    link: Link


@dataclass(frozen=True)
class Hints:
    """Words of the question that prefer one key over another (the origin, the destination, the permanent address)."""

    stems: frozenset[str] = frozenset()
    columns: frozenset[tuple[str, str]] = frozenset()

    def cost(self, link: Link) -> float:
        """Return what walking `link` costs."""
        cost = 1.0 if link.sure else 1.15
        own, other = ({stem(word) for word in split_name(name)} for name in (link.many, link.one))
        if any({stem(word) for word in split_name(column)} & own - other for column in link.many_columns):
            cost += 0.01  # friend.friend_id is the friend, not the one who has friends
        if any(_USUAL & set(split_name(column)) for column in link.many_columns):
            cost -= 0.02
        if len(link.many_columns) > 1:
            cost += 0.2
        for column in link.many_columns:
            if (link.many.casefold(), column.casefold()) in self.columns:
                return cost - 0.4
            if any(len(word) > 2 and stem(word) in self.stems - (own - other) for word in split_name(column)):
                cost -= 0.1
        return cost


def hints_of(draft: Draft) -> Hints:
    """Return what the words and mentions of a question say of keys."""
    stems = frozenset(stem(word) for word in draft.words if len(word) > 2)
    columns = frozenset(
        (hit.table.casefold(), hit.column.casefold())
        for c in draft.mentions
        for hit in c.hits
        if hit.column and hit.score >= 0.75 and not (c.hits[0].is_table and c.hits[0].table == hit.table)
    )
    return Hints(stems, columns)


def steps_from(catalog: Catalog, table: str) -> list[Step]:
    """Return every step that leaves `table`."""
    found: list[Step] = []
    for link in catalog.links:
        if link.many == table:
            pairs = tuple((Col(link.many, a), Col(link.one, b)) for a, b in zip(link.many_columns, link.one_columns, strict=True))
            found.append(Step(table, link.one, pairs, False, link))
        if link.one == table:
            pairs = tuple((Col(link.one, b), Col(link.many, a)) for a, b in zip(link.many_columns, link.one_columns, strict=True))
            found.append(Step(table, link.many, pairs, not _unique(catalog, link), link))
    return found


def _unique(catalog: Catalog, link: Link) -> bool:
    """Say whether the many side is unique too: its key is the link itself."""
    table = catalog.table(link.many)
    return table is not None and tuple(column.name for column in table.key if column.primary) == link.many_columns


def path(catalog: Catalog, sources: Iterable[str], target: str, hints: Hints, *, no_fan_out: bool = False) -> tuple[Step, ...] | None:
    """Return the cheapest steps from any of `sources` to `target`, None when there is no way."""
    counter = 0
    queue: list[tuple[float, int, str, tuple[Step, ...]]] = []
    for source in sources:
        queue.append((0.0, counter, source, ()))
        counter += 1
    heapq.heapify(queue)
    done: set[str] = set()
    while queue:
        cost, _, here, steps = heapq.heappop(queue)
        if here == target:
            return steps
        if here in done:
            continue
        done.add(here)
        for step in steps_from(catalog, here):
            if step.link.by_role and (steps or step.there != target):
                continue  # who handled a complaint is no bridge between clients and sales
            if step.there not in done and step.there != here and len(steps) < 6 and not (no_fan_out and step.fans_out):
                counter += 1
                heapq.heappush(
                    queue, (cost + hints.cost(step.link) + (0.05 if step.fans_out else 0.0), counter, step.there, (*steps, step))
                )
    return None


def distance(catalog: Catalog, source: str, target: str) -> int | None:
    """Return the number of joins between two tables."""
    steps = path(catalog, (source,), target, Hints())
    return None if steps is None else len(steps)


def plan(
    catalog: Catalog, base: str, wanted: Iterable[str], hints: Hints, present: tuple[Join, ...] = ()
) -> tuple[tuple[Join, ...], bool] | None:
    """Return the joins that bring in all `wanted` tables, and whether rows of `base` may repeat; None when some cannot be reached."""
    joins = list(present)
    have = [base, *(join.table for join in present)]
    fans = False
    for table in wanted:
        if table in have:
            continue
        steps = path(catalog, have, table, hints)
        if steps is None:
            return None
        for step in steps:
            if step.there not in have:
                joins.append(Join(step.there, step.pairs))
                have.append(step.there)
                fans |= step.fans_out
    return tuple(joins), fans


def rivals(catalog: Catalog, link: Link, hints: Hints) -> list[Link]:
    """Return other keys between the same two tables that the question's words prefer no less than `link`."""
    return [
        other
        for other in catalog.links
        if other != link
        and (other.many, other.one) == (link.many, link.one)
        and other.many != other.one
        and abs(hints.cost(other) - hints.cost(link)) < 1e-6
    ]


def fans_out(catalog: Catalog, base: str, table: str, hints: Hints) -> bool:
    """Say whether one row of `base` may meet several of `table`."""
    steps = path(catalog, (base,), table, hints)
    return steps is not None and any(step.fans_out for step in steps)
