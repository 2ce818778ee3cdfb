"""Ask the reader that searches: where the first reader declines a question that stands alone, and as a second opinion on its answers."""

from longtable.app.offline.audit import audit
from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Values
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.joins import hints_of
from longtable.app.offline.logic import Agg, Null, Query
from longtable.app.offline.lookups import value_texts
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_values import more_texts
from longtable.app.offline.search.model import Reading
from longtable.app.offline.search.reader import readings, search
from longtable.app.offline.text import is_chinese, tokenize
from longtable.app.offline.understand import draft_again, leans, tokens_of
from longtable.app.offline.weaker import says_less

MOST_TEXTS = 8
_LATE = frozenset(["first", "last", "recent", "recently", "latest", "earliest"])
_FINAL = frozenset(
    ["rule", "recall", "texts", "keys", "bridge", "contradiction", "rows", "lost_thread", "lost", "failed", "unknown_table", "which"]
)


def may_search(question: str, catalog: Catalog, values: Values, previous: Query | None, error: CannotRead) -> bool:
    """Say whether a declined question may be searched: it stands alone, and nothing final was found against it."""
    if error.reason in _FINAL:
        return False
    if previous is None:
        return True
    tokens = tokens_of(question, catalog, values)
    return not leans(tokens, draft_again(tokens, catalog, values))


def further_texts(question: str, catalog: Catalog, values: Values, asked: set[str]) -> list[str]:
    """Return the texts to look up before searching; none once such texts were asked for."""
    tokens = tokens_of(question, catalog, values)
    if asked - set(value_texts(tokens, catalog)):
        return []
    return [text for text in more_texts(tokens, values) if text not in asked][:MOST_TEXTS]


def searched(question: str, catalog: Catalog, values: Values, *, later: bool) -> Query | None:
    """Return the query that the search finds, if it is good and stands the audit; in a `later` turn it must be better still."""
    tokens = tokens_of(question, catalog, values)
    found = best_of(search(tokens, catalog, values), question, catalog, values)
    if found is None or (later and found.cost > costs.GOOD_LATER):
        return None
    if _LATE & {token.word for token in tokens} and not is_chinese(question) and not _ranks_by_column(found.query):
        return None
    draft = draft_again(tokens, catalog, values)
    try:
        audit(found.query, draft, catalog, hints_of(draft))
    except CannotRead:
        return None
    return found.query


def _ranks_by_column(query: Query) -> bool:
    """Say whether an end of some column is taken: what happened first or recently is no count, and not every row."""
    ends = any(isinstance(item, Agg) and item.func in ("min", "max") for item in query.aggregates)
    return ends or any(not isinstance(each.by, Agg) for each in query.order) or bool(query.where)


def best_of(found: Reading | None, question: str, catalog: Catalog, values: Values) -> Reading | None:
    """Return the better of a reading of the phrases put plainly and one of the words as they were typed."""
    if is_chinese(question) or (found is not None and found.cost < costs.SURE):
        return found
    raw = search(tokenize(question), catalog, values)
    return raw if raw is not None and (found is None or raw.cost < found.cost) else found


def better(question: str, catalog: Catalog, values: Values, query: Query) -> Query:
    """Return the query of the first reader, or that of the search where it is surer and neither knows the first one nor says less."""
    tokens = tokens_of(question, catalog, values)
    found = readings(tokens, catalog, values)
    if not found or found[0].cost > costs.SURER or found[0].path.unused:
        return query
    best = found[0]
    if _leaves_out(query, best.query):
        return query
    if any(_means(other.query) == _means(query) for other in found if other.cost - best.cost < costs.NEAR):
        return query
    if says_less(best.query, query):
        return query
    draft = draft_again(tokens, catalog, values)
    try:
        audit(best.query, draft, catalog, hints_of(draft))
    except CannotRead:
        return query
    return best.query


def _leaves_out(query: Query, other: Query) -> bool:
    """Say whether the other query merely counts where this one shows the groups that it counts, or adds up a measure."""
    counts = bool(other.aggregates) and all(item == Agg("count") for item in other.aggregates) and not other.group
    summed = any(isinstance(item, Agg) and item.func == "sum" for item in query.aggregates)
    return counts and (summed or bool(query.group and query.having))


def _means(query: Query) -> tuple[object, ...]:
    """Return what tells two queries apart: what they compute, the rows they take, how many, from where; not which columns they show."""
    where = frozenset(cond for cond in query.where if not isinstance(cond, Null))
    nulls = frozenset(cond for cond in query.where if isinstance(cond, Null)) if not (query.order or query.group) else frozenset()
    return where, nulls, frozenset(query.aggregates), query.limit, frozenset(query.having), bool(query.group), frozenset(query.tables)
