"""Settle one filter of a draft: find its column, turn it into a condition."""

import re
from dataclasses import replace

from longtable.app.offline.catalog import Column
from longtable.app.offline.chunks import Chunk, Match
from longtable.app.offline.columns import CannotRead, Scope, by_dimension, choose, entity
from longtable.app.offline.conditions_time import near_tables, time_filter
from longtable.app.offline.draft import Filter
from longtable.app.offline.lexicon import FROM_COLUMNS, FROM_WORDS, MEASURE_UNITS, MONEY_VERBS, PEOPLE, TO_COLUMNS, TO_WORDS
from longtable.app.offline.lexicon_measures import UNIT_DIMENSIONS, UNIT_NAMES, VERB_DIMENSIONS
from longtable.app.offline.linking import Hit
from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Beats,
    Between,
    Col,
    ColumnsCompare,
    Compare,
    Cond,
    Like,
    Null,
    Value,
)
from longtable.app.offline.opposite import opposite
from longtable.app.offline.text import lemma, stem


def settle_filter(scope: Scope, item: Filter) -> tuple[str, tuple[Cond, ...]]:
    """Return the table a filter bears on and its conditions, all to hold; `CannotRead` when it has no column."""
    if item.kind == "time":
        return time_filter(scope, item)
    table, cond = _single(scope, item)
    return table, (cond,)


def _single(scope: Scope, item: Filter) -> tuple[str, Cond]:
    match item.kind:
        case "value":
            return _value(scope, item)
        case "like":
            home = scope.catalog.table(entity(item.mention)) if item.mention is not None else None
            named = home.names[0] if home is not None and home.names else None  # services that start with: their names, no codes
            column = named or _column(scope, item, lambda column: not column.has_number_type) or _text_column(scope)
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
    if item.dimension and (measured := by_dimension(scope, item.dimension, near_tables(scope))):
        return measured[0]
    return None


def _text_column(scope: Scope) -> Column | None:
    table = scope.catalog.table(scope.base) if scope.base else None
    return table.names[0] if table and table.names else None


# -- numbers ----------------------------------------------------------------------------------------------------------


def _number(scope: Scope, item: Filter) -> tuple[str, Cond]:
    label = ", ".join(f"{number:g}" if isinstance(number, float) else str(number) for number in item.numbers)
    ranged = item.op != "=" or item.kind == "between"
    test = (lambda column: column.is_number and not (column.is_id and _no_key(item))) if ranged else None
    column = _column(scope, item, test)
    if column is None and item.mention is not None and (table := entity(item.mention)):
        home = scope.catalog.table(table)
        column = home.key[0] if home and len(home.key) == 1 and item.op == "=" else None
    if column is None and item.mention is None and not item.dimension:
        column = _by_verbs(scope, item.verbs)
        if column is None and (measured := by_dimension(scope, UNIT_DIMENSIONS.get(lemma(item.unit), ""), near_tables(scope))):
            column = measured[0]
    if column is None and item.mention is None and not item.dimension and not item.unit and (item.op != "=" or item.kind == "between"):
        column = _age(scope, item) or _lone_amount(scope)
    if column is None:
        raise CannotRead("number", item.mention.text if item.mention else "", label)
    best = item.mention is not None and any(
        (hit.table, hit.column) == (column.table, column.name) and hit.score >= item.mention.best - 0.01 for hit in item.mention.hits
    )
    own = best and column.primary and column.table == scope.base
    if column.is_id and item.mention is not None and scope.base and not own and not scope.places and len(_equals(item.mention)) > 1:
        raise CannotRead("keys", *(f"{hit.table}.{hit.column}" for hit in _equals(item.mention)))
    if item.dimension and item.mention is None and (measured := by_dimension(scope, item.dimension, near_tables(scope))) and measured[1]:
        raise CannotRead("number", item.dimension, label)
    if item.op == "=" and item.kind != "between":
        values: tuple[Value, ...] = tuple(number if column.has_number_type else str(number) for number in item.numbers)
        col = _col(column)
        return column.table, Compare(col, "=", values[0]) if len(values) == 1 else Among(col, values)
    numbers = tuple(converted(number, item.unit, column) for number in item.numbers)
    col = _col(column, number=True)
    if item.kind == "between":
        low, high = sorted(numbers)
        return column.table, Between(col, low, high)
    return column.table, Compare(col, item.op, numbers[0])


def _no_key(item: Filter) -> bool:
    """'sales above 10000' are of some amount, 'order numbers above 10000' of a key."""
    said = set(item.mention.text.lower().replace("_", " ").split()) if item.mention is not None else set()
    return not said & {"id", "ids", "number", "numbers", "no", "code", "codes", "nr"}


def _age(scope: Scope, item: Filter) -> Column | None:
    """Return the age of people: 'drivers over fifty'."""
    table = scope.catalog.table(scope.base) if scope.base else None
    ages = [column for column in (table.columns if table is not None else ()) if column.is_number and "age" in column.words]
    people = table is not None and bool(PEOPLE & set(map(lemma, table.words)))
    old = all(isinstance(number, int) and 10 <= number < 100 for number in item.numbers) and not MONEY_VERBS & set(item.verbs)
    return ages[0] if people and old and len(ages) == 1 else None


def _lone_amount(scope: Scope) -> Column | None:
    """Return the one amount of the base: 'transactions over 1000'."""
    table = scope.catalog.table(scope.base) if scope.base else None
    found = [c for c in (table.columns if table else ()) if c.is_number and not c.is_id and _AMOUNTS & set(map(lemma, c.words))]
    plain = [c for c in found if not _NO_AMOUNTS & set(map(lemma, c.words))]
    return plain[0] if len(plain) == 1 else None


_AMOUNTS = frozenset("amount total price value cost fee fare rent tuition salary wage pay premium rate charge".split())  # noqa: SIM905
_NO_AMOUNTS = frozenset("vat tax discount percent percentage interest hour minute day night month count quantity weight".split())  # noqa: SIM905


_KILOS = {"kg": 1.0, "kilo": 1.0, "kilogram": 1.0, "g": 0.001, "gram": 0.001, "ton": 1000.0, "tonne": 1000.0}
_SCALES = {
    "m": 1_000_000,
    "mn": 1_000_000,
    "mio": 1_000_000,
    "million": 1_000_000,
    "millions": 1_000_000,
    "k": 1_000,
    "thousand": 1_000,
    "thousands": 1_000,
}


def _equals(mention: Chunk) -> list[Hit]:
    """Return the columns a bare 'id' may be, when nothing tells one from the others."""
    return [hit for hit in mention.hits if hit.column and hit.score >= mention.best - 0.06] if " " not in mention.text else []


def _by_verbs(scope: Scope, verbs: tuple[str, ...]) -> Column | None:
    stems = {stem(verb) for verb in verbs if len(verb) > 3}
    for name in near_tables(scope):
        table = scope.catalog.table(name)
        for column in table.columns if table else ():
            if column.is_number and not column.is_id and stems & {stem(word) for word in column.words}:
                return column
    for verb in verbs:
        if verb in VERB_DIMENSIONS and (found := by_dimension(scope, VERB_DIMENSIONS[verb], near_tables(scope))):
            return found[0]
    return None


def converted(number: float | int | str, unit: str, column: Column) -> float | int:
    """Turn 5 minutes into what the column's own unit makes of them."""
    if isinstance(number, str):
        return float(number)
    scale = next((_SCALES[word] for word in column.words[-1:] if word in _SCALES), 1)
    if scale > 1 and number >= scale:
        number = number / scale if number % scale else number // scale  # 10 million in a column of millions
    heavy = next((_KILOS[lemma(word)] for word in column.words if lemma(word) in _KILOS), None)
    if heavy is not None and lemma(unit) in _KILOS and heavy != _KILOS[lemma(unit)]:
        weight = number * _KILOS[lemma(unit)] / heavy
        return int(weight) if weight == int(weight) else weight  # 18 tons in a column of kilograms
    said = re.findall(r"\bin (\w+)", column.comment.lower())
    own = next((MEASURE_UNITS[lemma(word)] for word in (*column.words, *said) if lemma(word) in MEASURE_UNITS), None)
    asked = MEASURE_UNITS.get(lemma(unit)) if unit else None
    if asked is not None and own is None and lemma(unit) not in ("minute", "min", "day"):
        raise CannotRead("unit", unit)  # a column that does not tell its unit is taken to be in minutes or days at most
    if own is None or asked is None or own == asked:
        return number
    value = number * asked / own
    return int(value) if value == int(value) else value


def _counterpart(scope: Scope, limit: Column, near: tuple[Chunk, ...]) -> Column | None:
    """Return what is held against a limit: the stock against the reorder level, the shots done against the life in shots."""
    table = scope.catalog.table(limit.table)
    columns = [c for c in (table.columns if table is not None else ()) if c.is_number and not c.is_id and c != limit]
    named = {(hit.table, hit.column) for chunk in near for hit in chunk.hits[:1] if hit.column}
    told = [column for column in columns if (column.table, column.name) in named]
    if not told:
        units = UNIT_NAMES | {"per"}
        told = [column for column in columns if set(map(lemma, column.words)) & set(map(lemma, limit.words)) - units]
    return told[0] if len(told) == 1 else None


def _columns(scope: Scope, item: Filter) -> tuple[str, Cond]:
    if item.mention is None and item.other is not None:
        bound = choose(scope, item.other, lambda column: column.is_number or column.is_date)
        free = opposite(scope, bound, item.verbs) if bound is not None else None
        if bound is None or free is None:
            raise CannotRead("column", item.other.text)
        number = not bound.is_date
        return free.table, ColumnsCompare(_col(free, number=number), item.op, _col(bound, number=number))
    left = choose(scope, item.mention, lambda column: column.is_number) if item.mention else None
    right = choose(scope, item.other, lambda column: column.is_number) if item.other else None
    if left is None and right is not None and item.mention is None:
        left = _counterpart(scope, right, item.near)
    if left is None and right is None and item.mention is not None and item.other is not None:
        dated = choose(scope, item.mention, lambda column: column.is_date), choose(scope, item.other, lambda column: column.is_date)
        if dated[0] is not None and dated[1] is not None and dated[0] != dated[1]:
            return dated[0].table, ColumnsCompare(_col(dated[0]), item.op, _col(dated[1]))
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
