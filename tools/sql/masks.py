"""What a model is shown in place of masked values."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from longtable.base.errors import QueryFailedError
from longtable.tools.catalog import fold
from longtable.tools.cells import without_labels

MASK = "•••"
"""What a model is shown in place of a masked value."""


@dataclass(frozen=True)
class Masks:
    """What is known of a query's columns before it has run.

    `layout` has an entry for each item of the SELECT list: whether it is masked, None for a `*`. `names` are the folded names
    that masked values go by: they tell the columns of a `*`. `whole`: everything is masked.
    """

    names: frozenset[str] = frozenset()
    layout: tuple[bool | None, ...] = ()
    whole: bool = False

    def __bool__(self) -> bool:
        return self.whole or bool(self.names)

    def of(self, columns: Sequence[str]) -> frozenset[int]:
        """Return the places of the masked columns of a result."""
        every = frozenset(range(len(columns)))
        if not self:
            return frozenset()
        if self.whole:
            return every
        by_name = frozenset(index for index, name in enumerate(columns) if goes_by(name, self.names))
        stars = [index for index, item in enumerate(self.layout) if item is None]
        if not stars:
            told = frozenset(index for index, item in enumerate(self.layout) if item)
            return told if len(self.layout) == len(columns) else every
        first, last = stars[0], stars[-1]
        if any(self.layout[first:last]):  # between two stars a column's place cannot be told
            return every
        ahead = {index for index in range(first) if self.layout[index]}
        behind = {len(columns) - len(self.layout) + index for index in range(last + 1, len(self.layout)) if self.layout[index]}
        clear = {index for index in range(first) if not self.layout[index]}
        clear |= {len(columns) - len(self.layout) + index for index in range(last + 1, len(self.layout)) if not self.layout[index]}
        return frozenset(ahead | behind | (by_name - clear))


NO_MASKS = Masks()
_NUMBERED = re.compile(r"(?:[:_]\d+)+$")


def goes_by(name: str, names: Collection[str]) -> bool:
    """Return whether a name is one of these, be it numbered: of two columns of one name SQLite calls one `name:1`, DuckDB `name_1`."""
    return fold(name) in names or _NUMBERED.sub("", fold(name)) in names


def masked_rows(rows: Sequence[Sequence[object]], masked: Collection[int]) -> list[tuple[object, ...]]:
    """Return the rows as a model may see them; that there is no value is no secret."""
    if not masked:
        return [tuple(row) for row in rows]
    return [tuple(MASK if index in masked and cell is not None else cell for index, cell in enumerate(row)) for row in rows]


_OF_THE_TEXT = re.compile(
    r"(?:Binder|Catalog|Parser) Error: |no such |near \"|ambiguous |misuse of |wrong number of |sub-select |a JOIN clause |syntax error "
    r"|(?:missing FROM-clause|column|relation|table|function|operator|type|aggregate|window|subquery|each UNION|UNION types) "
)
"""How an engine begins when it is the text of a query that it does not take; all else it may say of a value."""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
NOT_TOLD = "the query failed while it ran; what the database says of that is not shown, for it may hold masked values"


def without_values(error: QueryFailedError, sql: str) -> QueryFailedError:
    """Return an engine's error without what it may have taken from the data."""
    if not _OF_THE_TEXT.match(error.reason):
        return QueryFailedError(NOT_TOLD, problem=error.problem)
    known = sql.casefold()
    plain = without_labels(error.reason)
    reason = _QUOTED.sub(lambda match: match[0] if match[0][1:-1].casefold() in known else MASK, plain)
    return QueryFailedError(reason, hint=error.hint, problem=error.problem, line=error.line, column=error.column, nearest=error.nearest)
