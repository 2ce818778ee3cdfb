"""Ask the reader that searches: where the first reader declines a question that stands alone, and as a second opinion on its answers."""

from dataclasses import replace

from longtable.app.offline.audit import audit
from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Values
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.draft import Draft
from longtable.app.offline.joins import hints_of
from longtable.app.offline.lexicon_measures import MUCH, SUPERLATIVES
from longtable.app.offline.logic import Agg, Compare, Null, Query
from longtable.app.offline.lookups import value_texts
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_values import more_texts
from longtable.app.offline.search.model import Reading
from longtable.app.offline.search.reader import readings, search
from longtable.app.offline.text import Token, is_chinese, tokenize
from longtable.app.offline.understand import draft_again, leans, tokens_of
from longtable.app.offline.weaker import says_less

MOST_TEXTS = 8
_LATE = frozenset(["first", "last", "recent", "recently", "latest", "earliest"])
_FINAL = frozenset(
    ["rule", "recall", "texts", "keys", "bridge", "contradiction", "rows", "lost_thread", "lost", "failed", "unknown_table", "which"]
)


class SecondReader:
    """The reader that searches, for one question over one schema and the values that were looked up."""

    def __init__(self, question: str, catalog: Catalog, values: Values) -> None:
        self.question, self.catalog, self.values = question, catalog, values
        self.tokens = tokens_of(question, catalog, values)

    def may_search(self, previous: Query | None, error: CannotRead) -> bool:
        """Say whether a declined question may be searched: it stands alone, and nothing final was found against it."""
        if error.reason in _FINAL:
            return False
        return previous is None or not leans(self.tokens, self._draft())

    def further_texts(self, asked: set[str]) -> list[str]:
        """Return the texts to look up before searching; none once such texts were asked for."""
        if asked - set(value_texts(self.tokens, self.catalog)):
            return []
        return [text for text in more_texts(self.tokens, self.values) if text not in asked][:MOST_TEXTS]

    def searched(self, *, later: bool) -> Query | None:
        """Return the query that the search finds, if it is good and stands the audit; in a `later` turn it must be better still."""
        found = self._best_of(search(self.tokens, self.catalog, self.values))
        if found is None or (later and found.cost > costs.GOOD_LATER):
            return None
        late = _LATE & set(_apart_from_orders(self.tokens))
        if late and not is_chinese(self.question) and not _ranks_by_column(found.query):
            return None
        return found.query if self._stands(found.query) else None

    def better(self, query: Query) -> Query:
        """Return the query of the first reader, or that of the search where it is surer and neither knows the first one nor says less."""
        found = readings(self.tokens, self.catalog, self.values)
        if not found or found[0].cost > costs.SURER or found[0].path.unused:
            return query
        best = found[0]
        if _leaves_out(query, best.query):
            return query
        known = any(_means(other.query) == _means(query) for other in found if other.cost - best.cost < costs.NEAR)
        if known and not _drops_a_state(query, best.query):
            return query
        if says_less(best.query, query):
            return query
        return best.query if self._stands(best.query) else query

    def _best_of(self, found: Reading | None) -> Reading | None:
        """Return the better of a reading of the phrases put plainly and one of the words as they were typed."""
        if is_chinese(self.question) or (found is not None and found.cost < costs.SURE):
            return found
        raw = search(tokenize(self.question), self.catalog, self.values)
        return raw if raw is not None and (found is None or raw.cost < found.cost) else found

    def _stands(self, query: Query) -> bool:
        """Say whether the audit of the words lets the query pass."""
        draft = self._draft()
        try:
            audit(query, draft, self.catalog, hints_of(draft))
        except CannotRead:
            return False
        return True

    def _draft(self) -> Draft:
        return draft_again(self.tokens, self.catalog, self.values)


def _apart_from_orders(tokens: list[Token]) -> list[str]:
    """Return the words but the 'first' of an order: highest first, most expensive first."""
    words = [token.word for token in tokens]
    degrees = {*SUPERLATIVES, *MUCH, "biggest", "highest", "lowest"}
    return [word for place, word in enumerate(words) if not (word == "first" and degrees & set(words[max(0, place - 2) : place]))]


def _ranks_by_column(query: Query) -> bool:
    """Say whether an end of some column is taken: what happened first or recently is no count, and not every row."""
    ends = any(isinstance(item, Agg) and item.func in ("min", "max") for item in query.aggregates)
    return ends or any(not isinstance(each.by, Agg) for each in query.order) or bool(query.where)


def _leaves_out(query: Query, other: Query) -> bool:
    """Say whether the other query merely counts where this one shows the groups that it counts, or adds up a measure."""
    counts = bool(other.aggregates) and all(item == Agg("count") for item in other.aggregates) and not other.group
    summed = any(isinstance(item, Agg) and item.func == "sum" for item in query.aggregates)
    return counts and (summed or bool(query.group and query.having))


def _drops_a_state(query: Query, other: Query) -> bool:
    """Say whether the other query is the same with one condition more: machines that are down."""
    more = [cond for cond in other.where if cond not in query.where]
    return len(more) == 1 and isinstance(more[0], Compare) and isinstance(more[0].value, str) and replace(other, where=query.where) == query


def _means(query: Query) -> tuple[object, ...]:
    """Return what tells two queries apart: what they compute, the rows they take, how many, from where; not which columns they show."""
    where = frozenset(cond for cond in query.where if not isinstance(cond, Null))
    nulls = frozenset(cond for cond in query.where if isinstance(cond, Null)) if not (query.order or query.group) else frozenset()
    return where, nulls, frozenset(query.aggregates), query.limit, frozenset(query.having), bool(query.group), frozenset(query.tables)
