"""Find the words of a question that no part of its query answers.

A reading may skip a word, or read it as part of a column's name, so the finished query is checked
too. For example, a superlative needs an order with a limit, or a minimum or maximum. "By X" needs X
as a group or as a sort key. The sort key must fit a direction such as "cheapest first".
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from longtable.analyst.lattice import Draft, Meaning, NoReadingError
from longtable.analyst.lexicon import Token, is_plural, lemma, likeness, vocabulary
from longtable.analyst.query import (
    Agg,
    Bucket,
    Col,
    Condition,
    Order,
    Query,
    Ratio,
    Scalar,
    tables_within,
)
from longtable.analyst.schema import Catalog, Column

EXTREMES = ("most", "sup", "frequent", "top")
"""Operations that ask for the rows at one end of an order, such as "most" or "top 5"."""
_NAMED = 0.97
"""The likeness from which a word counts as part of a column's name."""
_PARTICIPLES = ("ed", "en", "ld", "lt", "ung", "ade", "ght", "ept")
_LONGEST_PHRASE = 5
_SEVERAL = 2
_MOSTLY = 0.5
"""The share of capitalised words from which a question counts as written in title case."""


def unanswered(draft: Draft, query: Query) -> str:
    """Return the first words of the question that no part of the query answers, "" if there are
    none.
    """
    checks: tuple[Callable[[Draft, Query], str], ...] = (
        _extreme,
        _groups,
        _direction,
        _values,
        _alternatives,
        _passed_phrases,
        _broken_name,
        _own_count,
    )
    return next((words for check in checks if (words := check(draft, query))), "")


# -- superlatives ----------------------------------------------------------------------------------


def _extreme(draft: Draft, query: Query) -> str:
    if not _has_extreme(query):
        return next(_superlatives(draft), "")
    if query.group or not _asks_for_groups(draft, query):
        return ""
    compared = [each for each in draft.path.meanings if _compares_groups(each)]
    return compared[0].text if compared else ""


def _asks_for_groups(draft: Draft, query: Query) -> bool:
    """Return whether each thing that is asked for has many rows in the query's base table, as a
    carrier has many flights.
    """
    place = draft.asked()
    if place < 0 and draft.words[0] in ("which", "what"):
        place = draft.after(0)
    thing = draft.path.meanings[place] if place >= 0 else None
    if thing is None or thing.kind not in ("table", "column", "unit"):
        return False
    if thing.kind == "unit":
        return True
    column = draft.column(thing)
    if column is None:
        return thing.table != query.base
    dated = bool(set(column.words) & set(vocabulary().maps["periods"]))
    return dated or not (column in draft.table(query.base).names or column.is_measure)


def _compares_groups(each: Meaning) -> bool:
    """Return whether a superlative compares totals or averages over many rows, as "most", "worst"
    and "most punctual" do.
    """
    if each.is_op("sup"):
        return each.arg.partition(":")[2] in vocabulary().lists["worse"]
    return each.is_op("most", "top")


def _superlatives(draft: Draft) -> Iterator[str]:
    """Yield the superlatives of a question. If a superlative is among words that were read as a
    name, it is yielded only if the name does not contain this word.
    """
    for each in draft.path.meanings:
        if each.is_op(*EXTREMES):
            yield each.text
        elif each.kind in ("table", "column", "flag"):
            words = [draft.tokens[place].word for place in range(each.start, each.end)]
            yield from (
                word for word in words if _is_extreme(word) and not _in_name(draft, each, word)
            )


def _is_extreme(word: str) -> bool:
    operation, _ = vocabulary().phrases.get((word,), ("", ""))
    return operation in EXTREMES


def _in_name(draft: Draft, each: Meaning, word: str) -> bool:
    column = draft.column(each)
    if each.must or (column is not None and column.spoken):
        return True
    names = column.words if column is not None else draft.table(each.table).words
    return any(likeness(word, name) >= _NAMED for name in names)


def _has_extreme(query: Query) -> bool:
    """Return whether a query selects the rows at one end of an order, or computes a minimum or
    maximum.
    """
    if query.order and query.limit is not None:
        return True
    if any(agg.func in ("min", "max") for agg in query.aggregates):
        return True
    values = [cond.value for cond in (*query.where, *query.having)]
    inner = [value for value in values if isinstance(value, Query)]
    extremes = [value for value in values if isinstance(value, Agg) and value.func != "avg"]
    return bool(extremes) or any(map(_has_extreme, inner))


# -- groups ----------------------------------------------------------------------------------------


def _groups(draft: Draft, query: Query) -> str:
    """Return "by X" if the query neither groups nor sorts by X, otherwise ""."""
    meanings = draft.path.meanings
    for place, each in enumerate(meanings):
        if each.end - each.start > 1 or draft.words[each.start] != "by":
            continue
        following = draft.after(place, over=("wh", "list", "distinct"), most=4)
        if following < 0:
            continue
        thing = meanings[following]
        if _is_passive(draft, each.start) and thing.table in _tables_in(query):
            continue
        if not _is_grouped(draft, query, following):
            return f"{each.text} {thing.text}"
    return ""


def _tables_in(query: Query) -> set[str]:
    """Return the tables of a query's subqueries."""
    return set(tables_within(query.where))


def _is_passive(draft: Draft, start: int) -> bool:
    """Return whether a participle comes before "by", as in "sold by". Then "by" names who did it,
    and not a group.
    """
    word = draft.words[start - 1] if start else ""
    return word in vocabulary().lists["verbs"] and word.endswith(_PARTICIPLES)


def _is_grouped(draft: Draft, query: Query, place: int) -> bool:
    thing = draft.path.meanings[place]
    sorted_by = [order.by for order in query.order]
    if thing.is_op("count", "agg", "money", "dimension"):
        return bool(sorted_by)
    if thing.kind not in ("table", "column", "unit"):
        return True
    following = draft.path.meanings[place + 1 : place + 2]
    if any(each.kind in ("value", "part", "number") for each in following):
        return True  # by customer 5
    if query.group:
        return True
    if thing.kind == "column":
        own = [col for by in sorted_by if (col := _column_in(by)) is not None]
        is_sorted = any((col.table, col.name) == (thing.table, thing.column) for col in own)
        return is_sorted or _is_row_of_its_own(draft, query, thing)
    return is_plural(thing.text.lower()) and thing.table in _conditioned(query)


def _is_row_of_its_own(draft: Draft, query: Query, thing: Meaning) -> bool:
    """Return whether a column is selected and is the whole key of the base table, as in "price by
    id".
    """
    table = draft.catalog.table(thing.table) if thing.table == query.base else None
    keys = [column.name for column in table.key] if table else []
    selected = [item.name for item in query.select if isinstance(item, Col)]
    return keys == [thing.column] and thing.column in selected


def _conditioned(query: Query) -> set[str]:
    """Return the tables on whose rows a query has conditions, including conditions in
    subqueries.
    """
    inner = [cond.query for cond in query.where if cond.query and cond.query.where]
    own = {col.table for cond in query.where if (col := _column_in(cond.left)) is not None}
    return own.union(*(each.tables for each in inner))


def _column_in(item: Scalar) -> Col | None:
    if isinstance(item, Agg):
        return _column_in(item.arg) if item.arg is not None else None
    if isinstance(item, Bucket):
        return item.col
    return None if isinstance(item, Ratio) else item


# -- directions ------------------------------------------------------------------------------------


def judged(draft: Draft, query: Query) -> Query:
    """Return the query, sorted as "best" or "worst" means for its measure: the best delays are the
    lowest. Words such as "oldest" are applied too. Raises `NoReadingError` if nothing says which
    end of the order is good.
    """
    query = _measured_first(draft, query)
    words = [each for each in draft.path.meanings if each.is_op("top", "dir")]
    judging = [each for each in words if draft.words[each.start] in ("best", "worst")]
    if not judging or not query.order:
        return query
    first, *rest = query.order
    good = _goodness(draft.catalog, query, first.by)
    if not good:
        raise NoReadingError(judging[-1].text)
    best_first = draft.words[judging[-1].start] == "best"
    return replace(query, order=(Order(first.by, best_first == (good > 0)), *rest))


def _measured_first(draft: Draft, query: Query) -> Query:
    """Return the query, sorted as a direction says. For "oldest first", the highest age or the
    earliest birthday comes first.
    """
    for each in draft.path.meanings:
        sign, dimension = _superlative_of(draft, each) if each.is_op("dir") else ("", "")
        col = _column_in(query.order[0].by) if query.order else None
        column = draft.catalog.column(col.table, col.name) if col is not None else None
        words = {lemma(word) for word in column.words} if column is not None else set()
        fits = [
            word for word in vocabulary().dimensions.get(dimension, ()) if word.lstrip("-") in words
        ]
        if fits:
            first, *rest = query.order
            grows = not fits[0].startswith("-")
            query = replace(query, order=(Order(first.by, (sign == "max") == grows), *rest))
    return query


def _superlative_of(draft: Draft, each: Meaning) -> tuple[str, str]:
    """Return the sign and the dimension of the superlative that a direction begins with: max and
    price for "most expensive first". For "largest first" the dimension is "", because anything may
    be large.
    """
    words = draft.words[each.start : each.end]
    for size in (2, 1):
        operation, argument = vocabulary().phrases.get(tuple(words[:size]), ("", ""))
        if operation == "sup":
            sign, _, dimension = argument.partition(":")
            return sign, "" if dimension in ("size", "height") else dimension
    return "", ""


def _goodness(catalog: Catalog, query: Query, by: Scalar) -> int:
    """Return 1 if more of this measure is better, -1 if less is better, 0 if nothing tells."""
    lists = vocabulary().lists
    col = _column_in(by)
    column = catalog.column(col.table, col.name) if col is not None else None
    counts = isinstance(by, Agg) and by.func == "count"
    if column is None or counts:
        return -1 if _counts_faults(catalog, query) else 1
    words = {lemma(word) for word in column.words}
    if words & lists["worse"]:
        return -1
    return 1 if words & lists["better"] else 0


def _counts_faults(catalog: Catalog, query: Query) -> bool:
    """Return whether the rows of a query are those with a fault, such as flights with a delay over
    0.
    """
    columns = [
        catalog.column(col.table, col.name)
        for cond in query.where
        if cond.op in (">", ">=") and isinstance(col := cond.left, Col)
    ]
    return any(_is_fault(column) for column in columns if column is not None)


def _is_fault(column: Column) -> bool:
    return bool({lemma(word) for word in column.words} & vocabulary().lists["worse"])


def _direction(draft: Draft, query: Query) -> str:
    """Return a direction, such as "cheapest first", that the query's sort key does not fit,
    otherwise "".
    """
    for each in draft.path.meanings:
        if each.is_op("dir") and query.order and not _is_of(draft, query.order[0].by, each):
            return each.text
    for before, each in itertools.pairwise(draft.path.meanings):
        if before.is_op(*EXTREMES) and each.is_op("first"):
            return f"{before.text} {each.text}"  # oldest first is one direction
    return ""


def _is_of(draft: Draft, by: Scalar, each: Meaning) -> bool:
    """Return whether a direction fits a sort key: "cheapest first" fits only a price. Most
    directions fit any key.
    """
    text = each.text.lower()
    col = _column_in(by)
    column = draft.catalog.column(col.table, col.name) if col is not None else None
    computed = isinstance(by, Agg)
    if "alphabet" in text or text == "a to z":
        return not computed and column is not None and not column.is_number
    if text.startswith("chronolog") or text.endswith("chronological order"):
        return isinstance(by, Bucket) or (column is not None and not computed)
    _, dimension = _superlative_of(draft, each)
    if not dimension:
        return True
    fits = {word.lstrip("-") for word in vocabulary().dimensions.get(dimension, ())}
    words = {lemma(word) for word in column.words} if column is not None else set()
    counts = isinstance(by, Agg) and by.func == "count"
    dated = column is not None and column.is_date and dimension in ("date", "age")
    return not counts and (bool(words & fits) or dated)


# -- values and names ------------------------------------------------------------------------------


def _values(draft: Draft, query: Query) -> str:
    """Return the first value of the question that is in no condition of the query, "" if there is
    none.
    """
    literals = {str(literal).casefold() for _, literal in _conditions(query)}
    for each in draft.path.meanings:
        if each.kind == "value" and str(each.value).casefold() not in literals:
            return each.text
    return ""


def _conditions(query: Query) -> Iterator[tuple[Condition, object]]:
    """Yield each value in the conditions of a query and its subqueries, together with its
    condition.
    """
    conditions: list[Condition] = [*query.where, *query.having]
    for item in query.select:
        conditions += item.where if isinstance(item, Ratio) else ()
    for cond in conditions:
        if isinstance(cond.value, Query):
            yield from _conditions(cond.value)
        elif isinstance(cond.value, tuple):
            yield from ((cond, value) for value in cond.value)
        elif not cond.is_filled:
            yield cond, cond.value


def _alternatives(draft: Draft, query: Query) -> str:
    """Return "or" if the question has this word but all conditions of the query must hold at once,
    otherwise "".
    """
    either = [each for each in draft.path.meanings if each.kind == "filler"]
    words = [each.text for each in either if draft.words[each.start] == "or"]
    conditions = [cond for cond, _ in _conditions(query)]
    if not words or len(conditions) < _SEVERAL:
        return ""
    return "" if any(isinstance(cond.value, tuple) for cond in conditions) else words[0]


def _passed_phrases(draft: Draft, query: Query) -> str:
    """Return a phrase such as "number of" or "in all" if the reading skipped each of its words and
    the query computes nothing, otherwise "".
    """
    if query.aggregates or query.having or any(isinstance(each, Ratio) for each in query.select):
        return ""
    fillers = {each.start for each in draft.path.meanings if each.kind == "filler"}
    for start in sorted(fillers):
        for size in (3, 2):
            operation, _ = vocabulary().phrases.get(
                tuple(draft.words[start : start + size]), ("", "")
            )
            if operation in ("count", "agg") and fillers >= set(range(start, start + size)):
                return " ".join(token.text for token in draft.tokens[start : start + size])
    return ""


def _broken_name(draft: Draft, query: Query) -> str:
    """Return a run of capitalised words if the query uses only some of them, otherwise "". For
    example, Let There Be *Rock* is a title, not the genre Rock.
    """
    del query
    words = [token for token in draft.tokens if token.kind == "word" and token.text.isascii()]
    capitals = [token for token in words if token.text[0].isupper()]
    if draft.chinese or len(capitals) > _MOSTLY * len(words):
        return ""
    run: list[Meaning] = []
    for each in (*draft.path.meanings, None):
        if each is not None and all(draft.tokens[n].is_name for n in range(each.start, each.end)):
            run.append(each)
            continue
        kinds = {other.kind for other in run}
        if "filler" in kinds and kinds & {"value", "part"}:
            return " ".join(other.text for other in run)
        run = []
    return ""


# -- counts that say nothing -----------------------------------------------------------------------


def _own_count(draft: Draft, query: Query) -> str:
    """Return the words of a count that is 1 for every row, such as genres counted by genre,
    otherwise "".
    """
    if Agg("count") not in query.aggregates or query.joins:
        return ""
    key = draft.table(query.base).key
    single = Col(key[0].table, key[0].name) if len(key) == 1 else None
    if single is not None and single in query.group:
        return draft.said(query.base) or query.base
    return ""


# -- the SQL of others -----------------------------------------------------------------------------

_ORDERS = re.compile(r"\b(?:ORDER\s+BY|MAX|MIN|RANK|DENSE_RANK|ROW_NUMBER|FIRST_VALUE)\b", re.I)
_GROUPS = re.compile(r"\b(?:GROUP\s+BY|ORDER\s+BY|PARTITION\s+BY)\b", re.I)


def unanswered_by(tokens: Sequence[Token], sql: str) -> str:
    """Return the first words of a question that nothing in the text of an SQL query answers, "" if
    there are none. The function does not know the schema, so it finds less than `unanswered`.
    """
    place = 0
    while place < len(tokens):
        operation, size = _operation_at(tokens, place)
        words = " ".join(token.text for token in tokens[place : place + size])
        if tokens[place].kind == "quoted" and tokens[place].word not in sql.casefold():
            return words
        if operation in (*EXTREMES, "dir", "order") and not _ORDERS.search(sql):
            return words
        groups = operation == "each" or (operation == "by" and _names_a_group(tokens, place))
        if groups and not _GROUPS.search(sql):
            return words
        place += size
    return ""


def _operation_at(tokens: Sequence[Token], place: int) -> tuple[str, int]:
    """Return the operation of the longest phrase that begins at a place, and the number of its
    words. Return "" and 1 if there is none.
    """
    for size in range(min(_LONGEST_PHRASE, len(tokens) - place), 0, -1):
        part = tokens[place : place + size]
        operation, _ = vocabulary().phrases.get(tuple(token.word for token in part), ("", ""))
        if operation and all(token.kind in ("word", "symbol") for token in part):
            return operation, size
    return "", 1


def _names_a_group(tokens: Sequence[Token], place: int) -> bool:
    """Return whether "by" at a place is followed by a plain word and does not come after a
    participle.
    """
    before = tokens[place - 1].word if place else ""
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    if following is None or following.kind != "word" or following.is_name:
        return False
    return not (before in vocabulary().lists["verbs"] and before.endswith(_PARTICIPLES))


__all__ = ["judged", "unanswered", "unanswered_by"]
