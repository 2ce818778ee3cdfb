"""Settle the times of a question: years, months, days, quarters, decades, and spans of them."""

from dataclasses import replace

from longtable.app.offline.catalog import Column
from longtable.app.offline.chunks import OWN_YEAR, Chunk
from longtable.app.offline.columns import CannotRead, Scope, choose, date_column, dated_whole, entity, holds_years
from longtable.app.offline.draft import Filter
from longtable.app.offline.joins import distance
from longtable.app.offline.lexicon import (
    VERB_TABLES,
)
from longtable.app.offline.logic import (
    Among,
    AnyOf,
    Between,
    Bucket,
    Col,
    Compare,
    Cond,
    Scalar,
    Unit,
    Value,
)
from longtable.app.offline.text import stem


def near_tables(scope: Scope) -> tuple[str, ...]:
    """Return the base, then the tables the question names."""
    return tuple(dict.fromkeys(([scope.base] if scope.base else []) + list(scope.anchors)))


def time_filter(scope: Scope, item: Filter) -> tuple[str, tuple[Cond, ...]]:
    """Return the table a time bears on and its conditions."""
    conds = time_conditions(scope, item)
    return _home(conds[0]), tuple(conds)


def _home(cond: Cond) -> str:
    left = cond.conds[0] if isinstance(cond, AnyOf) else cond
    scalar: object = getattr(left, "left", None)
    return scalar.col.table if isinstance(scalar, Bucket) else scalar.table if isinstance(scalar, Col) else ""


def time_conditions(scope: Scope, item: Filter) -> list[Cond]:
    """Return the conditions of a time: one for each unit, or one for a whole date."""
    units: dict[str, list[Chunk]] = {}
    for chunk in item.times:
        units.setdefault(chunk.unit, []).append(chunk)
    if item.op == "=" and units.keys() == {"date"} and _time_scalar(scope, item, "day")[1]:
        units = _cut(units["date"][0])
    if item.op == "between":
        return [_time_between(scope, item)]
    if "date" in units or {"year", "month", "day"} <= units.keys():
        return [_whole_date(scope, item, units)] if not _split(scope, item, units) else _parts(scope, item, units)
    if item.op != "=" and len(units) > 1:
        left, plain = _time_scalar(scope, item, "month")
        if plain or "month" not in units or "year" not in units:
            raise CannotRead("time", *(chunk.text for chunk in item.times))
        return [Compare(left, item.op, f"{units['year'][0].number:04d}-{units['month'][0].number:02d}")]
    return _parts(scope, item, units)


def _cut(date: Chunk) -> dict[str, list[Chunk]]:
    """Return year, month and day of a date, for tables where each is a column of its own."""
    numbers = map(int, date.arg.split("-"))
    return {
        unit: [Chunk("time", date.text, date.word, date.place, unit=unit, number=number)]
        for unit, number in zip(("year", "month", "day"), numbers, strict=True)
    }


def _split(scope: Scope, item: Filter, units: dict[str, list[Chunk]]) -> bool:
    """Say whether year, month and day are columns of their own."""
    return "date" not in units and item.op == "=" and _time_scalar(scope, item, "day")[1]


def _parts(scope: Scope, item: Filter, units: dict[str, list[Chunk]]) -> list[Cond]:
    conds: list[Cond] = []
    home = ""
    for unit, chunks in units.items():
        left, plain = _time_scalar(scope, item, unit, home)
        home = home or (left.col.table if isinstance(left, Bucket) else left.table if isinstance(left, Col) else "")
        numbers = [int(chunk.number) for chunk in chunks]
        if unit == "decade":
            conds.append(Between(left, numbers[0], numbers[0] + 9))
            continue
        text = plain and isinstance(left, Col) and not left.cast and not _number_typed(scope, left)
        values: list[Value] = [str(number) if text else number for number in numbers]
        conds.append(Compare(left, item.op, values[0]) if len(values) == 1 else Among(left, tuple(values)))
    return conds


def _number_typed(scope: Scope, col: Col) -> bool:
    column = scope.catalog.column(col.table, col.name)
    return column is not None and column.has_number_type


def _whole_date(scope: Scope, item: Filter, units: dict[str, list[Chunk]]) -> Cond:
    left, plain = _time_scalar(scope, item, "day")
    if plain:
        raise CannotRead("time", *(chunk.text for chunk in item.times))
    if "date" in units:
        day = units["date"][0].arg
    else:
        day = f"{units['year'][0].number:04d}-{units['month'][0].number:02d}-{units['day'][0].number:02d}"
    return Compare(left, item.op, day)


def _time_between(scope: Scope, item: Filter) -> Cond:
    low, high = item.times
    unit = low.unit
    if low.kind == "number" or high.kind == "number" or low.unit != high.unit:
        if high.unit == "year" or low.unit == "year":
            unit = "year"
        else:
            raise CannotRead("time", low.text, high.text)
    if unit == "date":
        left, _ = _time_scalar(scope, item, "day")
        return Between(left, low.arg, high.arg)
    left, plain = _time_scalar(scope, item, unit)
    if plain and isinstance(left, Col) and not _number_typed(scope, left):
        left = replace(left, cast=True)
    return Between(left, int(low.number), int(high.number))


def _time_scalar(scope: Scope, item: Filter, unit: str, home: str = "") -> tuple[Scalar, bool]:
    wanted = "year" if unit == "decade" else unit
    if item.mention is not None:
        column = choose(
            scope, item.mention, lambda column: column.is_date or (wanted in column.words) or (wanted == "year" and holds_years(column))
        )
        if column is not None:
            return _scalar(column, unit, not column.is_date, item)
    if item.unit == OWN_YEAR:
        homes = (scope.catalog.table(name) for name in near_tables(scope))
        own = [column for table in homes if table is not None for column in table.columns if holds_years(column)]
        if len(own) == 1:
            return _scalar(own[0], unit, True, item)
    tables = (home,) if home else (*_event_beside(scope, item), *_verb_tables(scope, item.verbs), *near_tables(scope))
    found = date_column(scope, wanted, tables, item.verbs, told_by=item.verbs)
    if found is None and (whole := dated_whole(scope.catalog, scope.base)):
        found = date_column(scope, wanted, whole, item.verbs)
    if found is None and (beside := _beside(scope, item.verbs)):
        found = date_column(scope, wanted, (beside,), item.verbs, told_by=item.verbs)
    if found is None:
        raise CannotRead("time", *(chunk.text for chunk in item.times))
    return _scalar(found[0], unit, found[1], item)


def _event_beside(scope: Scope, item: Filter) -> tuple[str, ...]:
    """Return the table of events named just before a time: who guided the departure on that day."""
    order = item.times[0].order
    before = [chunk for chunk in item.near if 0 < order - chunk.order <= 2]
    table = entity(before[-1]) if before else ""
    return (table,) if any(link.many == table and link.one == scope.base for link in scope.catalog.links) else ()


def _beside(scope: Scope, verbs: tuple[str, ...]) -> str:
    """Return the one table next to the base whose date is called like a verb: houses sold in 2024, of the date a listing was sold."""
    linked = {link.many for link in scope.catalog.links if link.one == scope.base}
    stems = {stem(verb) for verb in verbs if len(verb) > 3}
    tables = [table for name in linked if (table := scope.catalog.table(name)) is not None]
    found = [table.name for table in tables if any(column.is_date and stems & set(map(stem, column.words)) for column in table.columns)]
    return found[0] if len(found) == 1 else ""


def _verb_tables(scope: Scope, verbs: tuple[str, ...]) -> tuple[str, ...]:
    """Return tables that the verb before a time speaks of and that link to the base: 'planes that flew in 2013' are of flights."""
    nouns = {VERB_TABLES[verb] for verb in verbs if verb in VERB_TABLES} | {verb for verb in verbs if verb.endswith("ed")}
    if not nouns or not scope.base:
        return ()
    home = scope.catalog.table(scope.base)
    stems = {stem(noun) for noun in nouns}
    if home is None or stems & {stem(word) for column in home.columns for word in column.words}:
        return ()
    found = [table.name for table in scope.catalog.tables.values() if table.described and stems & {stem(word) for word in table.words}]
    return tuple(name for name in found if name != scope.base and distance(scope.catalog, scope.base, name) is not None)


def _scalar(column: Column, unit: str, plain: bool, item: Filter) -> tuple[Scalar, bool]:
    if plain:
        return Col(column.table, column.name, cast=item.op not in ("=", "between") and not column.has_number_type), True
    kinds: dict[str, Unit] = {"month": "month_of_year", "decade": "year"}
    if unit == "month" and item.op != "=" and len({chunk.unit for chunk in item.times}) > 1:
        return Bucket(Col(column.table, column.name), "month"), False
    return Bucket(Col(column.table, column.name), kinds.get(unit, unit)), False  # type: ignore[arg-type]  # unit is one of Unit
