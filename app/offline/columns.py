"""Choose the column that a mention, an adjective or a time bears on, in the company of the question's tables."""

from collections.abc import Callable
from dataclasses import dataclass

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.joins import distance
from longtable.app.offline.lexicon import PARTICIPLES, UNITS
from longtable.app.offline.lexicon_events import LIGHT_VERBS, events, events_of
from longtable.app.offline.lexicon_measures import DIMENSIONS
from longtable.app.offline.linking import Hit
from longtable.app.offline.text import lemma, likeness, split_name, stem

Test = Callable[[Column], bool]


class CannotRead(Exception):
    """The question cannot be settled; `words` are what could not be used, `reason` a code that wording explains."""

    def __init__(self, reason: str, *words: str) -> None:
        super().__init__(reason, *words)
        self.reason, self.words = reason, words


@dataclass(frozen=True)
class Scope:
    """Where to look: the catalogue, the base table once known, the tables the question names in order."""

    catalog: Catalog
    base: str = ""
    anchors: tuple[str, ...] = ()
    places: tuple[tuple[str, int], ...] = ()  # (table, place of its mention)
    done: frozenset[str] = frozenset()  # stems of participles: of two prices the one 'we sold' it for

    def worth(self, table: str, place: int | None = None) -> float:
        """Return how near a table is to what the question speaks of."""
        worth = 0.0
        if table in self.anchors:
            worth += 0.2
        if table == self.base:
            worth += 0.18
        if place is not None:
            gaps = [abs(place - other) for name, other in self.places if name == table]
            worth += max(0.0, 0.12 - 0.03 * min(gaps)) if gaps else 0.0
        roots = [self.base] if self.base else list(self.anchors)
        for root in roots[:1]:
            if root != table:
                far = distance(self.catalog, root, table)
                worth -= 0.05 * far if far is not None else 0.5
        return worth


def entity(chunk: Chunk) -> str:
    """Return the table a mention stands for, empty when it is a column."""
    tables = [hit for hit in chunk.hits if hit.is_table]
    columns = [hit for hit in chunk.hits if not hit.is_table]
    if not tables or tables[0].score < 0.72:
        return ""
    return tables[0].table if not columns or tables[0].score >= columns[0].score - 0.06 else ""


def choose(scope: Scope, chunk: Chunk, test: Test | None = None) -> Column | None:
    """Return the column a mention stands for: the best link, weighed by how near its table is."""
    best: tuple[float, Column] | None = None
    exact = bool(chunk.hits) and chunk.hits[0].numeric and chunk.best >= 1.0
    for hit in chunk.hits:
        if exact and hit.numeric and hit.score < 0.8 and not likeness(chunk.word, split_name(hit.column)[-1]):
            continue  # bottles is the number of them, no bottle price
        column = scope.catalog.column(hit.table, hit.column) if not hit.is_table else None
        if column is None or (test is not None and not test(column)):
            continue
        if hit.words > 1 and hit.score < 0.97 and _told_by(scope.catalog, hit, chunk.hits):
            continue  # the batch number is that of the batch, though the test has a batch_id
        table = scope.catalog.table(hit.table)
        score = (
            hit.score
            + scope.worth(hit.table, chunk.place)
            - (0.1 if table is not None and table.kind == "view" and hit.table not in scope.anchors else 0.0)
        )
        if (
            table is not None
            and table.key == (column,)
            and not scope.base
            and hit.own < hit.words + 1
            and lemma(chunk.word) in ("id", "code", "number")
        ):
            score += 0.05
        if any(
            other.score >= hit.score - 0.01
            and any(
                (link.many, link.many_columns, link.one, link.one_columns) == (other.table, (other.column,), hit.table, (hit.column,))
                for link in scope.catalog.links
            )
            for other in chunk.hits
            if other.column
        ):
            score += 0.03  # what others point at stands for itself
        score += 0.015 if table is not None and table.names else 0.0
        score += 0.04 if scope.done and scope.done & set(map(stem, column.words)) else 0.0
        score += 0.004 * min(3, sum(link.many == hit.table for link in scope.catalog.links))  # of equals, the table that joins most
        if best is None or score > best[0] + 1e-9:
            best = (score, column)
    return best[1] if best else None


def _told_by(catalog: Catalog, key: Hit, hits: tuple[Hit, ...]) -> bool:
    """Say whether a column of the table that a key points at has the whole name, where the key is only like it."""
    homes = {link.one for link in catalog.links if link.many == key.table and link.many_columns == (key.column,)}
    return any(hit.table in homes - {key.table} and hit.column and hit.score >= 0.97 and hit.own == hit.words for hit in hits)


def by_dimension(scope: Scope, dimension: str, tables: tuple[str, ...]) -> tuple[Column, bool] | None:
    """Return the column that an adjective measures in `tables` (first table first), and whether its direction is turned."""
    if not dimension:
        return None
    near = sorted(
        (far, name) for name in scope.catalog.tables if tables and (far := _distance(scope, tables[0], name)) is not None and 0 < far <= 2
    )
    for name in dict.fromkeys((*tables, *(scope.catalog.tables[key].name for _, key in near))):
        table = scope.catalog.table(name)
        if table is None:
            continue
        for word in DIMENSIONS.get(dimension, (dimension,)):
            turned, plain = word.startswith("-"), word.lstrip("-")
            found = _measures(table, plain, dimension, turned)
            if found:
                return found[0], turned
    return None


_MONEYED = frozenset(["price", "value", "sale", "revenue", "turnover", "profit", "money", "pay"])
_HEADS = frozenset(
    "hour minute second day week month year count number quantity point percent percentage kg kilogram mile kilometer".split()  # noqa: SIM905
)


def is_time_or_count(column: Column) -> bool:
    """Say whether a column's name ends in what is no money, though it may begin with a word of money: total_hours, payment_days."""
    return lemma(column.words[-1]) in _HEADS and "per" not in column.words if column.words else False


def is_for(column: Column, unit: str) -> bool:
    """Say whether a column's name tells for what time it holds: rent_mth is the rent for a month, annual_fee that for a year."""
    return any(likeness(unit, word) >= 0.93 or UNITS.get(word) == unit for word in column.words)


def _distance(scope: Scope, source: str, target: str) -> int | None:
    table = scope.catalog.tables[target]
    return distance(scope.catalog, source, table.name) if table.described and table.kind == "table" else None


def _measures(table: Table, word: str, dimension: str, turned: bool) -> list[Column]:
    wants_date = dimension == "date" or turned
    found = []
    for column in table.columns:
        if column.is_id and not column.is_date:
            continue
        if dimension in _MONEYED and is_time_or_count(column):
            continue
        bounds = len(column.words) > 1 and column.words[0] in ("min", "max", "minimum", "maximum")
        names = [lemma(each) for each in column.words[bounds:]]  # min_players holds no minutes
        hit = any(each == word or likeness(word, each) >= 0.93 for each in names) or (len(word) > 3 and column.name.lower().endswith(word))
        dated = column.is_date or (holds_years(column) if dimension == "tenure" else column.is_number)
        if hit and (dated if wants_date else column.is_number):
            found.append(column)
    if not found and wants_date and word in ("date", "time"):
        found = [column for column in table.columns if column.is_date]
    own = {lemma(each) for each in table.words}
    return sorted(found, key=lambda column: (not own & {lemma(each) for each in column.words}, len(column.words)))


def date_column(
    scope: Scope, unit: str, tables: tuple[str, ...], verbs: tuple[str, ...], *, told_by: tuple[str, ...] = ()
) -> tuple[Column, bool] | None:
    """Return the column a time bears on, and whether it holds the unit itself as a number (else it is a date).

    `told_by` are verbs that stand at the time itself: no date of another event will do for them.
    """
    stems = {stem(verb) for verb in verbs if len(verb) > 2} | {_BORN.get(verb, verb) for verb in verbs}
    told = frozenset(kind for verb in verbs for kind in events(verb))
    said = [verb for verb in told_by if verb not in LIGHT_VERBS and (verb.endswith("ed") or verb in PARTICIPLES)]
    strict = frozenset(kind for verb in said for kind in events(verb))
    best: tuple[float, Column, bool] | None = None
    for rank, name in enumerate(tables):
        table = scope.catalog.table(name)
        if table is None:
            continue
        own = {lemma(word) for word in table.words}
        for place, column in enumerate(table.columns):
            words = {lemma(word) for word in column.words}
            plain = unit in words and not column.is_id and (column.is_number or unit == "year")
            plain |= unit == "year" and bool(stems & {stem(word) for word in words}) and holds_years(column)
            if (
                not plain
                and not (column.is_date and unit != "hour")
                and not (column.is_date and unit == "hour" and "TIME" in column.type.upper())
            ):
                continue
            kinds = events_of(column.words)
            if strict and kinds and not kinds & told:
                continue  # who signed up in 2023 was not born then
            score = (1.0 if plain else 0.8) - 0.6 * rank - 0.01 * place - (0.05 * (len(words) - 1) if plain else 0.0)
            score += 0.5 if stems & ({stem(word) for word in words} - {unit}) else 0.0
            score += 0.3 if kinds & told else 0.0
            score += 0.3 if {stem(verb) for verb in said} & {stem(word) for word in words} else 0.0  # enrolments completed in May
            score -= 0.5 if kinds & _LIFE and not (kinds & told or own & words) else 0.0  # nobody rents on the day of birth
            score += 0.15 if own & words or (len(words) == 1) else 0.0
            if best is None or score > best[0]:
                best = (score, column, plain)
    return (best[1], best[2]) if best else None


def dated_whole(catalog: Catalog, part: str) -> tuple[str, ...]:
    """Return the one table with a date that an undated one is a part of: the sale of its lines; none where several might be."""
    table = catalog.table(part)
    if table is None or any(column.is_date for column in table.columns):
        return ()
    wholes = {link.one for link in catalog.links if link.many == table.name and link.one != table.name}
    dated = [other for name in wholes if (other := catalog.table(name)) is not None and any(column.is_date for column in other.columns)]
    own = {lemma(word) for word in table.words}
    named = [other for other in dated if own & {lemma(word) for word in other.words}]
    return tuple(other.name for other in (named or dated)) if len(named or dated) == 1 else ()


def holds_years(column: Column) -> bool:
    """Say whether a column of numbers holds years, as far as its samples tell."""
    seen = [value for value in column.samples if value is not None]
    years = bool(seen) and all(isinstance(each, int) and 1000 <= each <= 2100 for each in seen)
    return years and column.has_number_type and not column.is_id


_LIFE = frozenset(["birth", "death"])
_BORN = {
    "born": "birth",
    "founded": "found",
    "built": "build",
    "made": "make",
    "begun": "begin",
    "died": "death",
    "aired": "air",
    "left": "leave",
}


def priced_quantity(table: Table) -> tuple[Column, Column] | None:
    """Return the price and the quantity of a table that has one of each."""
    numbers = [column for column in table.columns if (column.is_number or not table.described) and not column.is_id]
    prices = [column for column in numbers if {"price", "cost", "rate", "fee"} & {lemma(word) for word in column.words}]
    prices = [
        column
        for column in prices
        if not {"total", "subtotal", "sum", "line", "amount", "net", "gross"} & {lemma(word) for word in column.words}
    ]
    quantities = [column for column in numbers if {"quantity", "qty", "unit", "ton", "piece"} & {lemma(word) for word in column.words}]
    quantities = [column for column in quantities if column not in prices]
    return (prices[0], quantities[0]) if len(prices) == 1 and len(quantities) == 1 else None
