"""Turn errors of PostgreSQL and its driver into this package's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from longtable.base.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    LongtableError,
    Problem,
    QueryFailedError,
    QueryMemoryError,
    QueryRefusedError,
    ResultTooLargeError,
    TempSpaceError,
)
from longtable.tools.engines.base import FailedAtError, QueryLimits, refusal
from longtable.tools.sql.verdict import OVER
from longtable.tools.workers.runner import StoppedError

_STOPPED = {"25P04"}  # transaction_timeout, of PostgreSQL 17
_LOCKED = "a table is locked by another session: wait until that has finished, then ask again"
_ERRORS: dict[str, Callable[[QueryLimits], DatabaseError]] = {
    **dict.fromkeys(("42501", "25006", "2F003"), lambda _: refusal("what the catalogue shows")),
    "53200": lambda limits: QueryMemoryError(limit=limits.memory_bytes),
    "53400": lambda limits: TempSpaceError(limit=limits.temp_bytes),
    "54000": lambda limits: ResultTooLargeError(limit=limits.bytes, what="one value"),
    "55P03": lambda _: DatabaseUnavailableError(_LOCKED),
    "57014": lambda _: QueryFailedError(
        "the query was cancelled on the server by someone else", hint="ask again"
    ),
}
"""For some SQLSTATEs, a function that makes this package's error from the limits."""
_GONE = ("08", "57P", "58", "XX", "53300", "53100", "25P03", "F0")
_PROBLEMS: dict[str, Problem] = {
    "42601": "syntax", "42703": "unknown_name", "42P01": "unknown_name", "42704": "unknown_name", "3F000": "unknown_name",
    "42702": "ambiguous", "42725": "ambiguous", "42804": "type", "42846": "type", "42P18": "type", "42P22": "type", "42883": "type",
    "22P02": "type", "22007": "type", "22008": "type", "22003": "type", "22018": "type",
}  # fmt: skip
ROW_TOO_LARGE = "longtable: a row is too large"


@contextmanager
def translated(
    *,
    limits: QueryLimits,
    sql: str = "",
    before: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Raise errors of the driver as this package's errors. `before` is the number of characters
    that the server read before `sql`, such as those of `EXPLAIN`.
    """
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, limits, sql, before, stopped()) from error
    except MemoryError as error:
        raise ResultTooLargeError(limit=limits.bytes) from error


def _translate(
    error: psycopg.Error, limits: QueryLimits, sql: str, before: int, stopped: bool
) -> LongtableError | StoppedError:
    state = error.sqlstate or ""
    text = error.diag.message_primary or str(error).strip().split("\n", 1)[0]
    if state in _STOPPED or (state == "57014" and (stopped or "timeout" in text)):
        return StoppedError()
    if ROW_TOO_LARGE in text:
        return ResultTooLargeError(limit=limits.bytes, what="one row")
    if OVER in text:
        return QueryRefusedError(
            "a count in the query is too large",
            rule="growth",
            hint=text.partition('"')[2].rstrip('"'),
        )
    if make := _ERRORS.get(state):
        return make(limits)
    if state.startswith(_GONE) or (isinstance(error, psycopg.OperationalError) and not state):
        return DatabaseUnavailableError(f"the PostgreSQL server cannot be asked: {text}")
    position = error.diag.statement_position
    at = int(position) - 1 - before if position else -1
    return FailedAtError(
        text, problem=_problem(state, text), offset=at if 0 <= at < len(sql) else None
    )


def _problem(state: str, text: str) -> Problem:
    # A function of no arguments that fit is a matter of types; the names that may be called are
    # known to the AST wall.
    return _PROBLEMS.get(state, "syntax" if "syntax error" in text else "other")
