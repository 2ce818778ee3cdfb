"""What is read out of one query, the wall's decision first, without the parser: for a process that parses no text."""

from dataclasses import dataclass

from longtable.base.errors import QueryRefusedError, UnknownTableError
from longtable.tools.sql.masks import NO_MASKS, Masks

Place = tuple[int, int]
"""Line and column, both from 1."""

OVER = "a count is over"
"""How the error begins that the text of a checked query has the engine raise when a count is too large."""


@dataclass(frozen=True)
class Verdict:
    """The decision on one query. `sql` is the text to run, `tables` the names it reads; both are empty when refused.

    `shown_sql` is the text to show: `sql` with each table that has denied columns under its own name. `columns` are those it
    reads, as `table.column`; in doubt, one too many. `masks` says which columns of the result no model sees.
    """

    allowed: bool
    rule: str = ""
    reason: str = ""
    hint: str = ""
    sql: str = ""
    shown_sql: str = ""
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    masks: Masks = NO_MASKS
    headings: tuple[tuple[str, str], ...] = ()
    """SQLite's names for columns without one, which are their expression, with the name to show."""
    stops_early: bool = False
    """Whether the query takes the first rows that it meets, whatever its plan says of their sizes."""
    place: Place | None = None
    """Line and column, from 1, of what was refused in the text as asked; the start of the query where that is no one place."""
    nearest: tuple[str, ...] = ()

    def raise_if_refused(self) -> None:
        """Raise `QueryRefusedError`, or `UnknownTableError` for a table that does not exist or is denied."""
        if self.allowed:
            return
        kind = UnknownTableError if self.rule == "table" else QueryRefusedError
        line, column = self.place or (None, None)
        raise kind(self.reason, rule=self.rule, hint=self.hint, line=line, column=column, nearest=self.nearest)


@dataclass(frozen=True)
class Predicate:
    """One predicate that looks at one table: `text` is it without the names that tables go by in the query.

    `column` is what it compares, "" where that is no plain column; `values` the texts that it compares with, None where it
    is no `=`, `IN` or `LIKE`.
    """

    text: str
    table: str
    column: str = ""
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Predicates:
    """The predicates that all must hold, those of the outermost query first. `is_total`: it is a total over all rows."""

    is_total: bool
    predicates: tuple[Predicate, ...]
