"""Ask the reader that searches where the first reader declines a question that stands alone."""

from longtable.app.offline.audit import audit
from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Values
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.joins import hints_of
from longtable.app.offline.logic import Query
from longtable.app.offline.search.link_values import more_texts
from longtable.app.offline.search.reader import search
from longtable.app.offline.understand import draft_again, leans, tokens_of

MOST_TEXTS = 8
_FINAL = frozenset(["rule", "recall", "texts", "keys", "bridge", "contradiction", "rows", "lost_thread", "lost", "failed", "unknown_table", "which"])


def may_search(question: str, catalog: Catalog, values: Values, previous: Query | None, error: CannotRead) -> bool:
    """Say whether a declined question may be searched: it stands alone, and nothing final was found against it."""
    if error.reason in _FINAL:
        return False
    if previous is None:
        return True
    tokens = tokens_of(question, catalog, values)
    return not leans(tokens, draft_again(tokens, catalog, values))


def further_texts(question: str, catalog: Catalog, values: Values) -> list[str]:
    """Return the texts to look up before searching."""
    return more_texts(tokens_of(question, catalog, values), values)[:MOST_TEXTS]


def searched(question: str, catalog: Catalog, values: Values) -> Query | None:
    """Return the query that the search finds, if it is good and stands the audit."""
    tokens = tokens_of(question, catalog, values)
    found = search(tokens, catalog, values)
    if found is None:
        return None
    draft = draft_again(tokens, catalog, values)
    try:
        audit(found.query, draft, catalog, hints_of(draft))
    except CannotRead:
        return None
    return found.query
