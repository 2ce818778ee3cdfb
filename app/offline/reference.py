"""Check what a question takes for granted: the rows it points back at, the one row it speaks of."""

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.columns import CannotRead, entity
from longtable.app.offline.draft import Draft
from longtable.app.offline.logic import Beats, Col, Cond, Query, Within
from longtable.app.offline.text import lemma

_ALL = frozenset(["all", "every", "each", "any", "list", "different", "distinct", "various", "possible", "available", "per", "by"])


def alone(query: Query, draft: Draft, catalog: Catalog) -> Query:
    """Return the query of a question that stands alone; `CannotRead` when it asks for the one X of a table that has many."""
    table = catalog.table(query.base)
    if table is None or (table.rows or 0) < 2 or not speaks_of_one(draft):
        return query
    narrowed = query.where or query.group or query.aggregates or query.having or query.limit is not None
    if narrowed or draft.sups or draft.sorts or draft.filters or draft.absent or draft.groups:
        return query
    raise CannotRead("which", *(chunk.text for chunk in draft.targets))


def is_yes_or_no(draft: Draft) -> bool:
    """Say whether a question about earlier rows wants yes or no ('are those still open?'): their columns are no answer."""
    asks = draft.words[:1] in (("are",), ("is",), ("was",), ("were",), ("do",), ("does",), ("did",), ("has",), ("have",))
    return (
        asks
        and draft.back
        and "there" not in draft.words[:3]
        and not ((draft.filters and draft.words[1] not in ("he", "she", "it")) or draft.absent or draft.havings or draft.computes)
    )


def speaks_of_one(draft: Draft) -> bool:
    """Say whether a question asks for single attributes: 'what is the production code', not 'what are the names'."""
    words = draft.words
    asked = next((words[place : place + 2] for place, word in enumerate(words) if word in ("what", "what's", "whats", "tell")), ())
    if not draft.targets or all(entity(chunk) for chunk in draft.targets) or _ALL & set(words):
        return False
    if not asked or not (asked[0] in ("what's", "whats") or {"is", "was", "'s", "me"} & set(words[: words.index(asked[0]) + 3])):
        return False
    return all(lemma(word) == word for chunk in draft.targets for word in chunk.text.lower().split())


def speaks_of_many(draft: Draft, previous: Query, catalog: Catalog) -> bool:
    """Say whether 'his' or 'her' speaks of one where the query before did not single one out."""
    if not {"he", "him", "his", "she", "her"} & set(draft.words) or previous.limit == 1:
        return False
    wheres = [cond for each in (previous, *(cond.query for cond in previous.where if isinstance(cond, Within))) for cond in each.where]
    for cond in wheres:
        left = getattr(cond, "left", None)
        column = catalog.column(left.table, left.name) if isinstance(left, Col) else None
        table = catalog.table(left.table) if isinstance(left, Col) else None
        if column is not None and table is not None and (column in table.names or not column.is_number):
            return False
    return not any(each.limit == 1 for each in (cond.query for cond in previous.where if isinstance(cond, Within)))


def keeps(previous: Query, query: Query) -> bool:
    """Say whether what narrowed the rows before still narrows them."""
    inner = [cond.query for cond in query.where if isinstance(cond, Within)]
    if any(each.limit == previous.limit and each.base == previous.base and each.where == previous.where for each in inner):
        return True
    if previous.limit is not None and query.limit is None and not query.aggregates:
        return False
    if previous.having and not query.having:
        return False
    lefts = [_left(cond) for cond in query.where]
    return all(cond in query.where or (_left(cond) is not None and _left(cond) in lefts) for cond in previous.where)


def _left(cond: Cond) -> Col | None:
    left = getattr(cond, "left", None)
    return left if isinstance(left, Col) and not isinstance(cond, Beats) else None
