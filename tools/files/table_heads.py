"""Find where a table begins in rows of texts, and whether its first row holds the column names."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from longtable.tools.files.column_types import MISSING, looks_typed
from longtable.tools.files.joined_files import YEAR
from longtable.tools.files.load_target import Notes, Row

FIRST_ROWS = 1_000
HEAD_ROWS = 100
"""`FIRST_ROWS` are searched for the start of a table. Up to `HEAD_ROWS` rows of the table then show
whether its first row holds names.
"""
SHARE_OF_FULLEST = 0.6
MOST_ODD = 0.02
"""Rows much fuller than others are odd if they are at most this share of the others."""
_RULER = re.compile(r"[-=_+|*]*[-=_]{3}[-=_+|*]*")
"""Matches a cell of a separator line, such as `-----`."""


def find_table(rows: Iterable[Row]) -> tuple[Row, Notes, Iterator[Row], int]:
    """Find the table in these rows. Return its column names, notes on guesses, the rows of the
    table, and the number of filled cells seen.

    If no cell is filled, there are no names. If the first row holds no names, each name is empty.
    """
    stripped = itertools.dropwhile(
        lambda row: not any(row), (list(map(str.strip, row)) for row in rows)
    )
    read = list(itertools.islice(stripped, FIRST_ROWS))
    places = [place for place, row in enumerate(read) if any(row) and not is_ruler(row)]
    if not places:
        return [], [], stripped, 0
    width = max(len(read[place]) for place in places)
    head = [read[place] + [""] * (width - len(read[place])) for place in places]
    counts = [sum(map(bool, row)) for row in head]
    first = _first_full(counts)
    joined = _joined_header(head, first)
    notes: Notes = []
    if joined is not None:
        first = joined[0]
        names = joined[1]
        start = places[first + 1] + 1
        notes.append(("header_joined", 2, ""))
    elif _is_header(head[first], body := head[first + 1 : first + HEAD_ROWS]):
        names = [" ".join(name.split()) for name in read[places[first]]]
        start = places[first] + 1
        if _lacks_first_name(head[first], body):
            names = ["", *names][:width]
    else:
        names = [""] * width
        start = places[first]
        notes.append(("no_names", 1, ""))
    notes.append(("lines_left_out", first, " / ".join(map(words_of_row, head[:first]))))
    return names, notes, itertools.chain(read[start:], stripped), sum(counts)


def _first_full(counts: Sequence[int]) -> int:
    """Return the place of the first row that fills at least 60 % as many cells as the fullest row.

    `counts`: the number of filled cells of each row. A row does not count as the fullest if hardly
    another one comes near it: most likely a separator in one of its cells has no quotes.
    """
    for fullest in sorted(set(counts), reverse=True):
        is_full = [count >= SHARE_OF_FULLEST * fullest for count in counts]
        full = sum(is_full)
        others = sum(count > 1 for count in counts) - full
        if full > MOST_ODD * others and not (full == 1 and others > 1):
            return is_full.index(True)
    return 0


def _joined_header(head: Sequence[Row], first: int) -> tuple[int, Row] | None:
    """If the header has two rows, return the place of the upper row and the joined names. Otherwise
    return None.
    """
    for upper in (first - 1, first):
        over = head[upper]
        under = head[min(upper + 1, len(head) - 1)]
        gaps = any(
            low and not top and any(over[:place])
            for place, (top, low) in enumerate(zip(over, under, strict=True))
        )
        columns = _columns(under, head[upper + 2 : upper + HEAD_ROWS])
        if (
            upper >= 0
            and sum(map(bool, over)) > 1
            and gaps
            and (upper == first or len(set(filter(None, under))) < sum(map(bool, under)))
            and not any(map(looks_typed, under))
            and any(name and cells and all(map(looks_typed, cells)) for name, cells in columns)
        ):
            labels = itertools.accumulate(
                zip(over, under, strict=True),
                lambda last, cell: (cell[0] or (cell[1] and last[0]), cell[1]),
            )
            return upper, [" ".join(filter(None, label)) for label in labels]
    return None


def _lacks_first_name(head: Row, body: Sequence[Row]) -> bool:
    """Return whether the first column holds names of rows and has no column name. R writes files in
    this way, and the header is then one cell short.
    """
    return bool(
        not head[-1]
        and all(head[:-1])
        and all(row[-1] for row in body)
        and len({row[0] for row in body}) == len(body) > 1
    )


def words_of_row(row: Row) -> str:
    return ", ".join(filter(None, row))


def is_ruler(row: Row) -> bool:
    """Return whether a row is a separator line, such as `-----`, in all its cells."""
    return any(row) and all(map(_RULER.fullmatch, filter(None, row)))


def _is_header(head: Row, body: Sequence[Row]) -> bool:
    """Return whether a row holds column names. It does not if a column holds only numbers or dates
    from this row down, except that a year may be a name, such as 2023.
    """
    typed = [
        (name, cells)
        for name, cells in _columns(head, body)
        if (cells or not body) and all(map(looks_typed, [name, *cells]))
    ]
    return all(
        body and YEAR.fullmatch(name) and not all(map(YEAR.fullmatch, cells))
        for name, cells in typed
    )


def _columns(head: Row, body: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return the name of each column and the column's cells that are not missing."""
    return [(name, _present(cells)) for name, *cells in zip(head, *body, strict=False)]


def _present(cells: Sequence[str]) -> list[str]:
    return [cell for cell in cells if cell and cell.lower() not in MISSING]
