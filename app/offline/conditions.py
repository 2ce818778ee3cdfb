"""Settle one filter of a draft: find its column, turn it into a condition."""

from dataclasses import replace

from longtable.app.offline.catalog import Column
from longtable.app.offline.chunks import Chunk, Match
from longtable.app.offline.columns import CannotRead, Scope, by_dimension, choose, date_column, entity
from longtable.app.offline.draft import Filter
from longtable.app.offline.joins import distance
from longtable.app.offline.lexicon import (
    FROM_COLUMNS,
    FROM_WORDS,
    MEASURE_UNITS,
    TO_COLUMNS,
    TO_WORDS,
    UNIT_DIMENSIONS,
    VERB_DIMENSIONS,
    VERB_TABLES,
)
from longtable.app.offline.linking import Hit
from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Beats,
    Between,
    Bucket,
    Col,
    ColumnsCompare,
    Compare,
    Cond,
    Like,
    Null,
    Scalar,
    Unit,
    Value,
)
from longtable.app.offline.text import lemma, stem


def settle_filter(scope: Scope, item: Filter) -> tuple[str, tuple[Cond, ...]]:
    """Return the table a filter bears on and its conditions, all to hold; `CannotRead` when it has no column."""
    if item.kind == "time":
        return _time(scope, item)
    table, cond = _single(scope, item)
    return table, (cond,)


def _single(scope: Scope, item: Filter) -> tuple[str, Cond]:
    match item.kind:
        case "value":
            return _value(scope, item)
        case "like":
            column = _column(scope, item, lambda column: not column.has_number_type) or _text_column(scope)
            if column is None:
                raise CannotRead("column", item.text)
            how = {"starts": "starts", "ends": "ends"}.get(item.op, "contains")
            return column.table, Like(_col(column), how, item.text)  # type: ignore[arg-type]  # how is one of the three
        case "null":
            column = _column(scope, item)
            if column is None:
                raise CannotRead("column", item.mention.text if item.mention else "")
            return column.table, Null(_col(column), item.negated)
        case "beats":
            column = _column(scope, item, lambda column: column.is_number) or (None if item.mention else _by_verbs(scope, item.verbs))
            if column is None:
                raise CannotRead("measure", item.dimension or (item.mention.text if item.mention else "average"))
            col = _col(column, number=True)
            return column.table, Beats(col, item.op, Agg(item.func, col))  # type: ignore[arg-type]  # func is avg, min or max
        case "columns":
            return _columns(scope, item)
        case _:
            return _number(scope, item)


def _col(column: Column, *, number: bool = False) -> Col:
    return Col(column.table, column.name, cast=number and not column.has_number_type)


def as_number(column: Column) -> Col:
    """Return the column as a number: cast when its declared type is text."""
    return _col(column, number=True)


def as_col(column: Column) -> Col:
    """Return the column as it is."""
    return _col(column)


def _column(scope: Scope, item: Filter, test: object = None) -> Column | None:
    check = test if callable(test) else None
    if item.mention is not None and (found := choose(scope, item.mention, check)):
        return found
    if item.dimension and (measured := by_dimension(scope, item.dimension, _tables(scope))):
        return measured[0]
    return None


def _text_column(scope: Scope) -> Column | None:
    table = scope.catalog.table(scope.base) if scope.base else None
    return table.names[0] if table and table.names else None


def _tables(scope: Scope) -> tuple[str, ...]:
    return tuple(dict.fromkeys(([scope.base] if scope.base else []) + list(scope.anchors)))


# -- numbers ----------------------------------------------------------------------------------------------------------


def _number(scope: Scope, item: Filter) -> tuple[str, Cond]:
    label = ", ".join(f"{number:g}" if isinstance(number, float) else str(number) for number in item.numbers)
    test = (lambda column: column.is_number) if item.op != "=" or item.kind == "between" else None
    column = _column(scope, item, test)
    if column is None and item.mention is not None and (table := entity(item.mention)):
        home = scope.catalog.table(table)
        column = home.key[0] if home and len(home.key) == 1 and item.op == "=" else None
    if column is None and item.mention is None and not item.dimension:
        column = _by_verbs(scope, item.verbs)
        if column is None and (measured := by_dimension(scope, UNIT_DIMENSIONS.get(lemma(item.unit), ""), _tables(scope))):
            column = measured[0]
    if column is None:
        raise CannotRead("number", item.mention.text if item.mention else "", label)
    best = item.mention is not None and any(
        (hit.table, hit.column) == (column.table, column.name) and hit.score >= item.mention.best - 0.01 for hit in item.mention.hits
    )
    own = best and column.primary and column.table == scope.base
    if column.is_id and item.mention is not None and scope.base and not own and not scope.places and len(_equals(item.mention)) > 1:
        raise CannotRead("keys", *(f"{hit.table}.{hit.column}" for hit in _equals(item.mention)))
    if item.dimension and item.mention is None and (measured := by_dimension(scope, item.dimension, _tables(scope))) and measured[1]:
        raise CannotRead("number", item.dimension, label)
    if item.op == "=" and item.kind != "between":
        values: tuple[Value, ...] = tuple(number if column.has_number_type else str(number) for number in item.numbers)
        col = _col(column)
        return column.table, Compare(col, "=", values[0]) if len(values) == 1 else Among(col, values)
    numbers = tuple(_converted(number, item.unit, column) for number in item.numbers)
    col = _col(column, number=True)
    if item.kind == "between":
        low, high = sorted(numbers)
        return column.table, Between(col, low, high)
    return column.table, Compare(col, item.op, numbers[0])


def _equals(mention: Chunk) -> list[Hit]:
    """Return the columns a bare 'id' may be, when nothing tells one from the others."""
    return [hit for hit in mention.hits if hit.column and hit.score >= mention.best - 0.06] if " " not in mention.text else []


def _by_verbs(scope: Scope, verbs: tuple[str, ...]) -> Column | None:
    stems = {stem(verb) for verb in verbs if len(verb) > 3}
    for name in _tables(scope):
        table = scope.catalog.table(name)
        for column in table.columns if table else ():
            if column.is_number and not column.is_id and stems & {stem(word) for word in column.words}:
                return column
    for verb in verbs:
        if verb in VERB_DIMENSIONS and (found := by_dimension(scope, VERB_DIMENSIONS[verb], _tables(scope))):
            return found[0]
    return None


def _converted(number: float | int | str, unit: str, column: Column) -> float | int:
    """Turn 5 minutes into what the column's own unit makes of them."""
    if isinstance(number, str):
        return float(number)
    own = next((MEASURE_UNITS[lemma(word)] for word in column.words if lemma(word) in MEASURE_UNITS), None)
    asked = MEASURE_UNITS.get(lemma(unit)) if unit else None
    if asked is not None and own is None and lemma(unit) not in ("minute", "min", "day"):
        raise CannotRead("unit", unit)  # a column that does not tell its unit is taken to be in minutes or days at most
    if own is None or asked is None or own == asked:
        return number
    value = number * asked / own
    return int(value) if value == int(value) else value


def _columns(scope: Scope, item: Filter) -> tuple[str, Cond]:
    left = choose(scope, item.mention, lambda column: column.is_number) if item.mention else None
    right = choose(scope, item.other, lambda column: column.is_number) if item.other else None
    if left is None or right is None or left == right:
        raise CannotRead("column", *(chunk.text for chunk in (item.mention, item.other) if chunk))
    return left.table, ColumnsCompare(_col(left, number=True), item.op, _col(right, number=True))


# -- values -----------------------------------------------------------------------------------------------------------


def _value(scope: Scope, item: Filter) -> tuple[str, Cond]:
    shared = set.intersection(*({(m.table, m.column) for m in chunk.matches} for chunk in item.values))
    scored = sorted(
        (
            (_match_score(scope, item, match), index)
            for index, match in enumerate(item.values[0].matches)
            if (match.table, match.column) in shared
        ),
        reverse=True,
        key=lambda pair: (pair[0], -pair[1]),
    )
    if not scored:
        raise CannotRead("value", *(chunk.text for chunk in item.values))
    best = item.values[0].matches[scored[0][1]]
    column = scope.catalog.column(best.table, best.column)
    if column is None:
        raise CannotRead("value", item.values[0].text)
    return best.table, _equality(column, [_found(chunk, best) for chunk in item.values], item)


def _found(chunk: Chunk, best: Match) -> tuple[Chunk, list[Match]]:
    return chunk, [match for match in chunk.matches if (match.table, match.column) == (best.table, best.column)]


def _equality(column: Column, found: list[tuple[Chunk, list[Match]]], item: Filter) -> Cond:
    col = _col(column)
    values: list[Value] = []
    likes: list[Cond] = []
    for chunk, matches in found:
        distinct = list(dict.fromkeys(match.value for match in matches))
        if matches[0].how == "partial" and len(distinct) > 1:
            likes.append(Like(col, "contains", chunk.text))
        else:
            values += distinct
    if likes:
        conds: list[Cond] = likes + ([Among(col, tuple(values))] if values else [])
        return replace(likes[0], negated=item.negated) if len(conds) == 1 and isinstance(likes[0], Like) else AnyOf(tuple(conds))
    if len(values) == 1:
        return Compare(col, "<>" if item.negated else "=", values[0])
    return Among(col, tuple(values), item.negated)


def _match_score(scope: Scope, item: Filter, match: Match) -> float:
    column = scope.catalog.column(match.table, match.column)
    table = scope.catalog.table(match.table)
    if column is None or table is None:
        return -9.0
    score = {"exact": 0.3, "case": 0.28}.get(match.how, 0.0) + scope.worth(match.table, item.values[0].place)
    if item.mention is not None and any((hit.table, hit.column) == (match.table, match.column) for hit in item.mention.hits):
        score += 0.5 * max(hit.score for hit in item.mention.hits if (hit.table, hit.column) == (match.table, match.column))
    words = set(column.words)
    verbs = set(item.verbs)
    if (verbs & FROM_WORDS and words & FROM_COLUMNS and not verbs & TO_WORDS) or (verbs & TO_WORDS and words & TO_COLUMNS):
        score += 0.4
    nearest = next((verb for verb in item.verbs if verb in FROM_WORDS | TO_WORDS), "")
    if nearest and ((nearest in TO_WORDS and words & FROM_COLUMNS) or (nearest in FROM_WORDS and words & TO_COLUMNS)):
        score -= 0.3
    if {stem(verb) for verb in verbs if len(verb) > 3} & {stem(word) for word in words if len(word) > 3}:
        score += 0.3
    if table.kind == "view":
        score -= 0.3
    if column in table.names:
        score += 0.06
    elif column.is_id and column.references:
        score -= 0.02
    return score - (0.1 if len(str(match.value)) > 60 else 0.0)


# -- times ------------------------------------------------------------------------------------------------------------


def _time(scope: Scope, item: Filter) -> tuple[str, tuple[Cond, ...]]:
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
            scope, item.mention, lambda column: column.is_date or (wanted in column.words) or (column.is_number and wanted == "year")
        )
        if column is not None:
            return _scalar(column, unit, not column.is_date, item)
    tables = (home,) if home else (*_verb_tables(scope, item.verbs), *_tables(scope))
    found = date_column(scope, wanted, tables, item.verbs)
    if found is None:
        raise CannotRead("time", *(chunk.text for chunk in item.times))
    return _scalar(found[0], unit, found[1], item)


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
