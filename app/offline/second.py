"""Ask the reader that searches where the first reader declines a question that stands alone."""

from longtable.app.offline.audit import audit
from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Values
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.joins import hints_of
from longtable.app.offline.logic import Query
from longtable.app.offline.lookups import value_texts
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_values import more_texts
from longtable.app.offline.search.reader import search
from longtable.app.offline.understand import draft_again, leans, tokens_of

MOST_TEXTS = 8
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
    found = search(tokens, catalog, values)
    if found is None or (later and found.cost > costs.GOOD_LATER):
        return None
    draft = draft_again(tokens, catalog, values)
    try:
        audit(found.query, draft, catalog, hints_of(draft))
    except CannotRead:
        return None
    return found.query
