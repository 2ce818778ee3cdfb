"""Find the column that another of its table is compared with, where the question names only that one: 'below their reorder level'."""

from longtable.app.offline.catalog import Column, Table
from longtable.app.offline.columns import Scope, date_column
from longtable.app.offline.lexicon import UNIT_WORDS
from longtable.app.offline.text import lemma, stem

_STOCKS = frozenset("stock quantity qty hand balance inventory available onhand".split())  # noqa: SIM905
_BOUNDS = frozenset(
    "reorder minimum maximum min max safety limit target price cost ordered sold planned required due allowed life capacity".split()  # noqa: SIM905
)


def opposite(scope: Scope, right: Column, verbs: tuple[str, ...]) -> Column | None:
    """Return what is compared with `right`: the date its verb names, the number that shares a word with it, or the stock of a thing."""
    table = scope.catalog.table(right.table)
    if table is None:
        return None
    if right.is_date:
        found = date_column(scope, "day", (table.name,), verbs, told_by=verbs)
        return found[0] if found is not None and found[0] != right and not found[1] else None
    others = [column for column in table.columns if column.is_number and not column.is_id and column != right]
    own = _stems(right, table)
    kin = [column for column in others if own & _stems(column, table)]
    if not own:  # hours run against an hours limit: only the unit is told
        kin = [column for column in others if set(map(lemma, column.words)) & set(map(lemma, right.words)) - _BOUNDS]
    if len(kin) == 1:
        return kin[0]
    stocks = [column for column in others if _STOCKS & set(map(lemma, column.words)) and not _BOUNDS & set(map(lemma, column.words))]
    return stocks[0] if len(stocks) == 1 and _BOUNDS & set(map(lemma, right.words)) else None


def _stems(column: Column, table: Table) -> set[str]:
    mere = {stem(word) for word in table.words} | {stem(word) for word in _BOUNDS}
    return {stem(word) for word in column.words if lemma(word) not in UNIT_WORDS and len(word) > 2} - mere
