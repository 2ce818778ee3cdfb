"""What is known of a stored result without its rows, and the errors for missing results."""

from collections.abc import Sequence
from dataclasses import dataclass

from longtable.base.errors import DatabaseError


class UnknownResultError(DatabaseError):
    """The thread never had a result of this handle."""

    def __init__(self, handle: str, *, known: Sequence[str]) -> None:
        there = f"there are {', '.join(known[-10:])}" if known else "no query has run yet"
        super().__init__(f"this conversation has no result {handle[:40]!r}: {there}")
        self.handle, self.known = handle, tuple(known)


class ResultGoneError(DatabaseError):
    """The rows of a result were dropped to stay within the quota; `sql` makes them again."""

    def __init__(self, handle: str, *, sql: str) -> None:
        super().__init__(f"the rows of {handle} are no longer kept (quota): run its SQL again: {sql}")
        self.handle, self.sql = handle, sql


@dataclass(frozen=True, kw_only=True)
class ResultMeta:
    """What is known of a result without its rows. `names` are its columns in SQL over handles: `columns`, each one once."""

    handle: str
    sql: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    row_count: int
    bytes: int
    created: str
    """Time in ISO 8601."""
    masked: tuple[int, ...] = ()
    """Indexes of the columns whose values no model sees."""
