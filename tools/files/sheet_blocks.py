"""Find where the next table begins on a sheet that has several tables below each other."""

import itertools
from collections import deque
from collections.abc import Iterator, Sequence

from longtable.tools.files.column_types import looks_typed

Row = list[str]
MOST_ABOVE = 100
"""The most rows of the current table that are kept to judge its columns."""
MOST_AHEAD = 50
"""The most rows after a blank row that are looked at to see whether a new table begins."""
FULL = 0.6
"""The share of the widest row's cells that a row must fill to be the header."""


class SheetBlocks:
    """Cut the rows of a sheet into tables. Read each table to its end before asking for the
    next.
    """

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._ahead: deque[Row] = deque()

    def tables(self) -> Iterator[Iterator[Row]]:
        """Yield the tables of the sheet, each as an iterator over its rows."""
        yield self._table()
        while self._look_ahead():
            yield self._table()

    def _table(self) -> Iterator[Row]:
        above: list[Row] = []
        while row := self._next():
            [cells] = row
            if not any(cells) and _begins_table(self._look_ahead(), above):
                return
            if any(cells) and len(above) < MOST_ABOVE:
                above.append(cells)
            yield cells

    def _next(self) -> list[Row]:
        if self._ahead:
            return [self._ahead.popleft()]
        return list(itertools.islice(self._rows, 1))

    def _look_ahead(self) -> list[Row]:
        """Return the next rows that are not blank, without consuming them."""
        missing = MOST_AHEAD - len(self._ahead)
        self._ahead.extend(itertools.islice(self._rows, max(0, missing)))
        return [row for row in self._ahead if any(row)]


def _begins_table(ahead: Sequence[Row], above: Sequence[Row]) -> bool:
    """Return whether the rows after a blank row begin a new table.

    They do if a header of words stands above numbers or dates, and a column under this header had
    only numbers, dates or nothing in the table above.
    """
    if len(ahead) > 1 and len(_places(ahead[0])) == 1:
        ahead = ahead[1:]  # a title
    if len(ahead) < 2:
        return False
    header = ahead[0]
    first = ahead[1]
    places = _places(header)
    if len(places) < 2 or any(looks_typed(header[place]) for place in places):
        return False
    inside = set(_places(first))
    if len(inside) < 2 or not inside <= set(places):
        return False
    if not any(looks_typed(first[place]) for place in inside):
        return False
    body = _body(above)
    return bool(body) and any(_is_other(body, place) for place in places)


def _places(row: Row) -> list[int]:
    return [place for place, cell in enumerate(row) if cell]


def _body(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows below the header of a table; empty if the table has no header of words."""
    most = max((len(_places(row)) for row in rows), default=0)
    full = (at for at, row in enumerate(rows) if len(_places(row)) >= FULL * most)
    head = next(full, 0)
    if most < 2 or any(looks_typed(cell) for cell in rows[head] if cell):
        return []
    return rows[head + 1 :]


def _is_other(rows: Sequence[Row], place: int) -> bool:
    """Return whether a column holds only numbers or dates, or nothing at all."""
    cells = [row[place] for row in rows if place < len(row) and row[place]]
    return all(map(looks_typed, cells))
