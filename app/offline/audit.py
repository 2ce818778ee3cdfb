"""Hold a query against the question it was made of: what the question says must be in the query, or it is not run."""

import itertools
import re
from collections.abc import Iterator

from longtable.app.offline.catalog import Catalog, Column, Link
from longtable.app.offline.columns import CannotRead, entity
from longtable.app.offline.draft import Draft
from longtable.app.offline.joins import Hints, distance, rivals
from longtable.app.offline.lexicon import VERB_TABLES
from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Between,
    Bucket,
    Col,
    Compare,
    Cond,
    Like,
    Null,
    Query,
    Scalar,
    Share,
    Spread,
    Within,
)
from longtable.app.offline.text import stem
from longtable.app.offline.time_spans import no_span_is_a_part

_DIGITS = re.compile(r"\d[\d\s.+-]*")


def audit(query: Query, draft: Draft, catalog: Catalog, hints: Hints, before: Query | None = None) -> None:
    """Raise `CannotRead` when the query leaves out, or contradicts, what was asked; joins of the query `before` are taken as they are."""
    known = before.joins if before is not None else ()
    for join in query.joins:
        if join not in known:
            _joins_by_one_key(join.pairs, catalog, hints)
    _bridges_are_told(query, draft, catalog)
    _no_contradiction(query)
    for cond in conditions(query):
        _fits_its_column(cond, catalog)
    for item in computed(query):
        _is_measure(item, draft, catalog)
        _counts_no_dates(item, draft, catalog)
        _adds_up_once(item, query, catalog)
    _groups_hold_several(query, catalog)
    _ranks_what_it_joins(query, catalog)
    _shows_what_is_asked(query, draft)
    _measures_do_not_group(query, draft, catalog)
    _says_still(query, draft)
    _denies_something(query, draft)
    _says_what_was_done(query, draft, catalog)
    _joins_for_something(query, draft)
    _no_row_meets_itself(query, catalog)
    _says_all(query, draft)
    _values_are_near(query, draft, catalog)
    no_span_is_a_part(conditions(query), draft.words, catalog)


def _values_are_near(query: Query, draft: Draft, catalog: Catalog) -> None:
    """A common word that is a value of a table nobody named, three joins away or more, was most likely no value at all."""
    named = {hit.table for chunk in draft.mentions for hit in chunk.hits if hit.score >= 0.72}
    for value in (value for item in draft.filters for value in item.values):
        if value.name or value.quoted or not value.text.islower() or " " in value.text:
            continue
        if draft.words[max(0, value.order - 1)] in ("in", "from", "at", "for", "by"):
            continue  # in usa: a place
        homes = {match.table for match in value.matches}
        if homes & named or query.base in homes:
            continue
        far = [distance(catalog, query.base, home) for home in homes]
        if far and all(each is not None and each >= 3 for each in far):
            raise CannotRead("words", value.text)


def conditions(query: Query) -> Iterator[Cond]:
    """Yield every single condition, those of inner queries too."""
    for cond in (*query.where, *query.having):
        yield from _flat(cond)


def _flat(cond: Cond) -> Iterator[Cond]:
    if isinstance(cond, AnyOf):
        for each in cond.conds:
            yield from _flat(each)
        return
    yield cond
    if isinstance(cond, Within):
        yield from conditions(cond.query)


def computed(query: Query) -> Iterator[Scalar]:
    """Yield every aggregate of the query and of its inner ones."""
    yield from query.aggregates
    yield from (each.by for each in query.order)
    for cond in conditions(query):
        left = getattr(cond, "left", None)
        if isinstance(left, Agg):
            yield left
        if isinstance(cond, Within):
            yield from cond.query.aggregates


def casts(query: Query) -> list[Col]:
    """Return the columns of texts that the query orders or compares as numbers."""
    scalars: list[object] = [*(each.by for each in query.order), *(item.arg for item in computed(query) if isinstance(item, Agg))]
    scalars += [getattr(cond, "left", None) for cond in conditions(query)]
    return [item for item in dict.fromkeys(scalars) if isinstance(item, Col) and item.cast]


def _no_contradiction(query: Query) -> None:
    """One column cannot equal two values at once, nor a count."""
    equal = [cond for cond in (*query.where, *query.having) if isinstance(cond, Compare) and cond.op == "="]
    for first, second in itertools.combinations(equal, 2):
        if first.left == second.left and first.value != second.value:
            raise CannotRead("contradiction", str(first.value), str(second.value))


def _fits_its_column(cond: Cond, catalog: Catalog) -> None:
    """A bare number is no value of a column of texts."""
    if not isinstance(cond, Compare) or not isinstance(cond.left, Col) or cond.left.cast or not isinstance(cond.value, str):
        return
    column = catalog.column(cond.left.table, cond.left.name)
    if column is None or column.has_number_type or not _DIGITS.fullmatch(cond.value) or cond.op not in ("=", "<>"):
        return
    if not _holds_digits(column):
        raise CannotRead("number", column.name, cond.value)


def _holds_digits(column: Column) -> bool:
    seen = [str(value) for value in column.samples if value is not None]
    return not seen or any(_DIGITS.fullmatch(value.strip()) for value in seen)


def _groups_hold_several(query: Query, catalog: Catalog) -> None:
    """A group of one row of the base each has no count worth comparing."""
    table = catalog.table(query.base)
    key = [Col(query.base, column.name) for column in table.columns if column.primary] if table is not None else []
    alone = bool(key) and all(each in query.group for each in key)
    if alone and not query.joins and any(isinstance(cond, Compare | Between) and cond.left == Agg("count") for cond in query.having):
        raise CannotRead("group", query.base)
    if alone and any(isinstance(each, Bucket) for each in query.group) and Agg("count") in query.select and not query.joins:
        raise CannotRead("group", query.base)  # each group is one row: a word was taken for the key
    for item in query.select:
        if isinstance(item, Agg) and item.func in ("sum", "avg") and item.arg in query.group:
            raise CannotRead("group", query.base)
    for item in query.select:
        if isinstance(item, Agg) and item.func == "count" and isinstance(item.arg, Col) and item.distinct:
            fixed = [cond for cond in query.where if isinstance(cond, Compare) and cond.op == "=" and cond.left == item.arg]
            if fixed:
                raise CannotRead("count", item.arg.name)


def _ranks_what_it_joins(query: Query, catalog: Catalog) -> None:
    """Where rows are ranked by a column of the base, a table of many rows each that is joined for nothing says a sum was meant."""
    if query.limit is None or query.aggregates or not query.order:
        return
    used = {col.table for col in _columns_of(query)}
    inner = {col.table for join in query.joins for pair in join.pairs for col in pair if col.table != join.table}
    for join in query.joins:
        many = any(link.many == join.table and link.one in query.tables for link in catalog.links)
        if many and not join.outer and join.table not in used and join.table not in inner:
            raise CannotRead("join", query.base, join.table)


def _shows_what_is_asked(query: Query, draft: Draft) -> None:
    """'which vehicle has the highest mileage' is answered by vehicles."""
    if not draft.which or not query.select or not query.joins:
        return
    asked = next((place for place, word in enumerate(draft.words) if word in ("which", "what")), None)
    thing = next((chunk for chunk in draft.mentions if asked is not None and chunk.order == asked + 1), None)
    table = entity(thing) if thing is not None else ""
    shown = {col.table for item in (*query.select, *query.group) for col in _cols(item)}
    keys = {right.table for join in query.joins for left, right in join.pairs if left in query.select} | {
        left.table for join in query.joins for left, right in join.pairs if right in query.select
    }
    if table and table not in shown | keys and any(join.table == table for join in query.joins):
        raise CannotRead("words", thing.text if thing is not None else table)


def _cols(item: object) -> Iterator[Col]:
    if isinstance(item, Col):
        yield item
    for name in ("arg", "col", "left", "right"):
        if isinstance(inner := getattr(item, name, None), Col):
            yield inner
    yield from getattr(getattr(item, "arg", None), "factors", ())


def _measures_do_not_group(query: Query, draft: Draft, catalog: Catalog) -> None:
    """An amount is a group only where the question says by, per or each: else it was to be added up."""
    if draft.groups or draft.sups or not query.aggregates:
        return
    for key in query.group:
        column = catalog.column(key.table, key.name) if isinstance(key, Col) else None
        if column is not None and column.is_number and not column.is_id and _MONEY & set(column.words):
            raise CannotRead("sum", column.name)


_MONEY = frozenset(["amount", "total", "price", "cost", "revenue", "fee", "salary", "paid", "eur", "usd", "gbp"])


def _joins_for_something(query: Query, draft: Draft) -> None:
    """'total hours by attorney': a table joined to a sum and used nowhere should have been its group."""
    if not query.aggregates or query.group or query.having or not {"by", "per", "each", "every"} & set(draft.words):
        return
    used = {col.table for col in _columns_of(query)} | {col.table for cond in query.where for col in _cols(cond)}
    used |= {cond.keys.table for cond in query.where if isinstance(cond, Within)}
    bound = [col.table for join in query.joins for pair in join.pairs for col in pair]
    for join in query.joins:
        if join.table not in used and not any(isinstance(cond, AnyOf) for cond in query.where) and bound.count(join.table) == 1:
            raise CannotRead("group", join.table)


def _says_still(query: Query, draft: Draft) -> None:
    """'still open': a condition must say so."""
    told = {"still", "left", "longer", "inactive"} & set(draft.words)
    if told and not any(conditions(query)) and not query.group:
        raise CannotRead("words", *sorted(told))


_DENYING = frozenset(["except", "excluding", "without", "never", "nobody"])
_FALSE = frozenset(["0", "n", "no", "f", "false", "none"])


def _denies_something(query: Query, draft: Draft) -> None:
    """'excluding the cancelled ones', 'never': some condition must deny."""
    told = _DENYING & set(draft.words)
    if told and not any(_denies(cond) for cond in conditions(query)):
        raise CannotRead("words", *sorted(told))


def _denies(cond: Cond) -> bool:
    if isinstance(cond, Like | Among | Within | Null):
        return cond.negated or isinstance(cond, Null)
    if isinstance(cond, Compare):
        return cond.op in ("<>", "<", "<=") or str(cond.value).casefold() in _FALSE
    return not isinstance(cond, Between)


def _says_what_was_done(query: Query, draft: Draft, catalog: Catalog) -> None:
    """'what did Ana order' is not answered by Ana herself."""
    if draft.words[:1] != ("what",) or draft.words[1:2] not in (("did",), ("has",), ("have",)) or query.joins or query.aggregates:
        return
    table = catalog.table(query.base)
    names = {column.name for column in table.names} if table is not None else set()
    named = [cond for cond in query.where if isinstance(cond, Compare) and isinstance(cond.left, Col) and cond.left.name in names]
    if named and len(named) == len(query.where) and len(query.select) != 1 and not draft.targets:
        raise CannotRead("words", next((word for word in reversed(draft.words) if word.isalpha()), "what"))


def _joins_by_one_key(pairs: tuple[tuple[Col, Col], ...], catalog: Catalog, hints: Hints) -> None:
    """Where two keys lead to one table (origin, destination) the question's words must tell which is meant."""
    sides = {(left.table, left.name, right.table, right.name) for left, right in pairs}
    for link in catalog.links:
        ways = set(zip(link.many_columns, link.one_columns, strict=True))
        walked = {(link.many, a, link.one, b) for a, b in ways}, {(link.one, b, link.many, a) for a, b in ways}
        if sides in walked and (others := rivals(catalog, link, hints)):
            raise CannotRead("keys", *(column for each in (link, *others) for column in each.many_columns))


def _bridges_are_told(query: Query, draft: Draft, catalog: Catalog) -> None:
    """Where two tables are joined through one that nobody named, and another would do as well, the answer could be either."""
    named = {entity(chunk) or hit.table for chunk in draft.mentions for hit in chunk.hits[:1]}
    roots = {stem(VERB_TABLES.get(word, word)) for word in draft.words if len(word) > 3}
    used = {scalar.table for scalar in _columns_of(query)}
    for join in query.joins:
        table = catalog.table(join.table)
        if table is None or join.table in named or join.table in used or roots & set(map(stem, table.words)):
            continue
        ends = {col.table for each in query.joins for pair in each.pairs for col in pair if join.table in (pair[0].table, pair[1].table)}
        ends -= {join.table}
        if len(ends) != 2 or not _between(catalog, join.table, ends):
            continue
        others = [other.name for other in catalog.tables.values() if other.name not in query.tables and _between(catalog, other.name, ends)]
        if others:
            raise CannotRead("bridge", join.table, *others)


def _between(catalog: Catalog, table: str, ends: set[str]) -> bool:
    """Say whether a table holds keys of both ends."""
    return ends <= {link.one for link in catalog.links if link.many == table}


def _columns_of(query: Query) -> Iterator[Col]:
    """Yield the columns that a query shows, groups, orders and compares."""
    conds: list[object] = [getattr(cond, "left", None) for cond in (*query.where, *query.having)]
    for item in (*query.select, *query.group, *(each.by for each in query.order), *conds):
        if isinstance(item, Col):
            yield item
        elif isinstance(inner := getattr(item, "arg", None) or getattr(item, "col", None), Col):
            yield inner


def _no_row_meets_itself(query: Query, catalog: Catalog) -> None:
    """'which students are friends with Kyle': a table between rows of one table needs that table twice."""
    pairs = [(link.many, link.one) for link in catalog.links]
    between = [join.table for join in query.joins if pairs.count((join.table, query.base)) > 1]
    named = any(isinstance(cond, Compare) and isinstance(cond.left, Col) and cond.left.table == query.base for cond in query.where)
    if between and named and not query.aggregates:
        raise CannotRead("join", query.base, query.base)


def _is_measure(item: Scalar, draft: Draft, catalog: Catalog) -> None:
    """Keys are not added up; they are averaged only by name."""
    if not isinstance(item, Agg) or not isinstance(item.arg, Col) or item.func not in ("sum", "avg"):
        return
    column = catalog.column(item.arg.table, item.arg.name)
    if column is not None and column.is_id and (item.func == "sum" or not {"id", "ids"} & set(draft.words)):
        raise CannotRead("measure", column.name)


def _counts_no_dates(item: Scalar, draft: Draft, catalog: Catalog) -> None:
    """Different dates are counted only where dates are asked for: else a verb was taken for its date."""
    column = catalog.column(item.arg.table, item.arg.name) if isinstance(item, Agg) and isinstance(item.arg, Col) else None
    asked = {"date", "dates", "day", "days", "different", "distinct", "unique"} & set(draft.words) or draft.distinct
    measured = column is not None and (
        column.is_date or (column.has_number_type and {"hour", "amount", "price", "cost"} & set(column.words))
    )
    if column is not None and isinstance(item, Agg) and item.func == "count" and item.distinct and measured and not asked:
        raise CannotRead("count", column.name)


def _adds_up_once(item: Scalar, query: Query, catalog: Catalog) -> None:
    """A sum over rows that a join repeats for the groups would count them again and again."""
    if not isinstance(item, Agg) or item.func != "sum" or not isinstance(item.arg, Col) or not query.group:
        return
    home = item.arg.table
    for join in query.joins:
        repeats = any(link.one == home and link.many == join.table and _walks(join.pairs, link) for link in catalog.links)
        if repeats and join.table != home:
            raise CannotRead("measure", item.arg.name)


def _walks(pairs: tuple[tuple[Col, Col], ...], link: Link) -> bool:
    walked = {(left.table, left.name, right.table, right.name) for left, right in pairs}
    ways = set(zip(link.many_columns, link.one_columns, strict=True))
    return walked in ({(link.many, a, link.one, b) for a, b in ways}, {(link.one, b, link.many, a) for a, b in ways})


def _says_all(query: Query, draft: Draft) -> None:
    """What was to be computed is computed, and 'or' is there as one."""
    inner = [cond.query for cond in conditions(query) if isinstance(cond, Within)]
    aggregates = [item for item in computed(query) if isinstance(item, Agg | Spread | Share)]
    for func, chunk in draft.aggs:
        ordered = func in ("min", "max") and any(each.limit is not None for each in (query, *inner))
        if func != "spread" and not ordered and not any(isinstance(item, Agg) and item.func == func for item in aggregates):
            raise CannotRead("words", chunk.text if chunk is not None else {"avg": "average", "sum": "total"}.get(func, func))
    averaged = ("avg", None) in draft.aggs  # how many days is it down on average
    if (
        draft.counts
        and not averaged
        and not any((isinstance(item, Agg) and item.func in ("count", "sum")) or isinstance(item, Share) for item in aggregates)
    ):
        raise CannotRead("count", *(chunk.text for chunk in draft.counts if chunk is not None))
    several = any(isinstance(cond, Among | Between | Like) for cond in conditions(query)) or any(
        isinstance(cond, AnyOf) for each in (query, *inner) for cond in each.where
    )
    if draft.alternative and not several:
        raise CannotRead("or")
