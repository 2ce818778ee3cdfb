"""Weigh two readings of one question: a second one that says less than the first is not surer, only simpler."""

from longtable.app.offline.audit import conditions
from longtable.app.offline.logic import Agg, AnyOf, Col, Compare, Cond, Null, Query, Scalar, Within
from longtable.app.offline.text import split_name


def says_less(found: Query, first: Query) -> bool:
    """Say whether `found` leaves out what `first` made of the words: a condition, a group, what is listed, the column of a value."""
    fewer = len(_told(found)) - len(_told(first))
    if fewer < 0:
        return not _names_the_lost(found, first)
    if fewer == 0 and (_wanders(found, first) or _drops_the_named(found, first) or _moves_a_value(found, first)):
        return True
    return (
        _counts_the_list(found, first)
        or _lists_the_groups(found, first)
        or _ranks_rows_of_groups(found, first)
        or _only_lists(found, first)
    )


def _told(query: Query) -> list[Cond]:
    """Return its conditions but what is merely present, and what a far way reaches without a word for it."""
    return [cond for cond in conditions(query) if not isinstance(cond, Null | AnyOf) and not _passes_through(cond)]


def _passes_through(cond: Cond) -> bool:
    """An inner query with conditions is told by them; one that only walks over other tables by none."""
    return isinstance(cond, Within) and (bool(cond.query.joins) or any(not isinstance(inner, Null) for inner in conditions(cond.query)))


def _names_the_lost(found: Query, first: Query) -> bool:
    """The word of the lost condition is part of the column that the other orders by: ATM, the number of ATMs."""
    words = {word for item in (*(each.by for each in found.order), *found.aggregates) for word in _words(item)}
    lost = [cond for cond in _told(first) if cond not in _told(found)]
    return bool(lost) and all(isinstance(cond, Compare) and str(cond.value).casefold() in words for cond in lost)


def _words(item: Scalar) -> tuple[str, ...]:
    column = item.arg if isinstance(item, Agg) else item
    return tuple(map(str.casefold, split_name(column.name))) if isinstance(column, Col) else ()


def _tables(query: Query) -> set[str]:
    inner = (cond.query for cond in conditions(query) if isinstance(cond, Within))
    return {name.casefold() for each in (query, *inner) for name in each.tables}


def _wanders(found: Query, first: Query) -> bool:
    """It needs more tables, and has no more conditions to show for it."""
    return len(_tables(found)) > len(_tables(first))


def _drops_the_named(found: Query, first: Query) -> bool:
    """The first lists a name, and not a mere key, of a table that the other does not have."""
    if first.group:
        return False
    shown = {item.table.casefold() for item in first.select if isinstance(item, Col) and not _is_key(item)}
    return bool(shown - _tables(found)) and _tables(found) < _tables(first)


def _is_key(column: Col) -> bool:
    return column.name.casefold().endswith(("id", "no", "cd", "code", "key", "nr"))


def _moves_a_value(found: Query, first: Query) -> bool:
    """The same number is given to another column."""
    ours = {(cond.op, cond.value): cond.left for cond in _told(first) if isinstance(cond, Compare) and isinstance(cond.left, Col)}
    theirs = {(cond.op, cond.value): cond.left for cond in _told(found) if isinstance(cond, Compare) and isinstance(cond.left, Col)}
    return any(theirs[key] != left and isinstance(key[1], int) for key, left in ours.items() if key in theirs)


def _counts_the_list(found: Query, first: Query) -> bool:
    """It gives one number where the first lists things, or counts them by group."""
    one = len(found.select) == 1 and isinstance(found.select[0], Agg) and found.select[0].func == "count" and not found.group
    return one and (bool(first.group) or not first.aggregates)


def _lists_the_groups(found: Query, first: Query) -> bool:
    """It lists rows where the first adds up, or averages, by group."""
    return bool(first.group and first.aggregates) and not (found.group or found.aggregates)


def _ranks_rows_of_groups(found: Query, first: Query) -> bool:
    """It ranks single rows where the first ranks groups by a count or a sum, or lists rows that the first adds up."""
    ranked = any(isinstance(each.by, Agg) and each.by.func in ("count", "sum") for each in first.order) and first.limit is not None
    lists = bool(first.group and first.aggregates) and not (found.aggregates or found.limit or _told(found))
    return (ranked and not found.group) or lists


def _only_lists(found: Query, first: Query) -> bool:
    """Both list all rows of some table: then the first reader's words for it stand."""
    return not any(query.aggregates or query.group or query.limit or _told(query) for query in (found, first))
