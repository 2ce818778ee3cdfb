"""Tell spans of time from parts of a date: '2 hours' are no hour of the day."""

from collections.abc import Iterable
from itertools import pairwise

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.lexicon import NUMBERS
from longtable.app.offline.logic import Between, Col, Compare, Cond

_PARTS = frozenset(["month", "day", "hour", "minute", "second"])


def no_span_is_a_part(conds: Iterable[Cond], words: tuple[str, ...], catalog: Catalog) -> None:
    """Raise `CannotRead` where a number of hours is compared with the column of the hour, beside a date or its other parts."""
    spans = {word.removesuffix("s") for before, word in pairwise(words) if before in NUMBERS or before[:1].isdigit() if word.endswith("s")}
    columns = [cond.left for cond in conds if isinstance(cond, Compare | Between) and isinstance(cond.left, Col)]
    for column in columns:
        part = column.name.lower()
        table = catalog.table(column.table) if part in _PARTS & spans else None
        if table is not None and any(other.is_date or other.name.lower() in _PARTS - {part} for other in table.columns):
            raise CannotRead("unit", f"{part}s")
