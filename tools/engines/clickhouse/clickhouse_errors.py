"""Tell ClickHouse's errors as this package's errors, without what they quote of the data."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clickhouse_connect.driver.exceptions import ClickHouseError, ProgrammingError
from urllib3.exceptions import HTTPError

from longtable.base.errors import (
    DatabaseUnavailableError,
    LongtableError,
    Problem,
    QueryFailedError,
    QueryMemoryError,
    ResultTooLargeError,
    TempSpaceError,
    TooManyRowsError,
)
from longtable.tools.engines.base import FailedAtError, QueryLimits, refusal
from longtable.tools.engines.clickhouse.clickhouse_connection import NOT_ADMITTED, TooMuchReadError
from longtable.tools.workers.runner import StoppedError

TIMED_OUT = (159, 160)
CANCELLED = 394
TOO_MANY_TO_READ = (158, 307)
TOO_LARGE = 396
MEMORY = (173, 241)
REFUSED = (164, 497)
GONE = frozenset({81, 202, 209, 210, 236, 279, 425, *NOT_ADMITTED})
_PROBLEMS: dict[int, Problem] = {
    62: "syntax",
    **dict.fromkeys((8, 10, 16, 46, 47, 60, 63), "unknown_name"),
    **dict.fromkeys((179, 207, 352), "ambiguous"),
    **dict.fromkeys((34, 35, 36, 42, 43, 44, 48, 50, 53, 70, 179, 184, 215, 386), "type"),
}
_AFTER = re.compile(
    r"[:.,]? (?:in scope|in query|while executing|while processing|maybe you meant|expected one of"
    r"|you can|stack trace)\b|: while ",
    re.IGNORECASE,
)
"""The start of what an error says beyond its reason: the text as it runs, with row filters and
their values, and names that are like the unknown one, which may be hidden.
"""
_REST = re.compile(r"(failed at position \d+) .*$", re.DOTALL)
"""What follows the place of a syntax error: the rest of the text."""
_HEAD = re.compile(r"^.*?Code: (?P<code>\d+)\. (?:DB::)+\w*Exception: ", re.DOTALL)
_TAIL = re.compile(r"\s*\([A-Z][A-Z0-9_]+\)\s*(?:\(version .*)?$", re.DOTALL)
_POSITION = re.compile(r"failed at position (?P<at>\d+)")
_UNKNOWN = re.compile(
    r"(?:Unknown (?:table )?expression(?: or function)? identifier|Function with name|Missing"
    r" columns:|Table|identifier) [`'](?P<word>[^`']+)"
)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_FIXED = " is readonly"
"""What the driver says of a setting that a constraint of the account's profile fixes."""
_TEMPORARY = "temporary files"
_MAX_ROWS = "max rows"


@contextmanager
def translated(
    *, limits: QueryLimits, sql: str = "", stopped: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Raise errors of the driver as this package's errors."""
    try:
        yield
    except ClickHouseError as error:
        raise _translate(error, limits, sql, stopped()) from error
    except (TooMuchReadError, MemoryError) as error:
        raise ResultTooLargeError(limit=limits.bytes) from error
    except (HTTPError, OSError) as error:
        if stopped():
            raise StoppedError from error
        raise _gone(str(error)) from error


def _gone(text: str) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(f"the ClickHouse server cannot be asked: {text[:300]}")


def reason_of(text: str) -> str:
    """Return the reason in an error's text."""
    plain = _TAIL.sub("", _HEAD.sub("", text))
    if found := _AFTER.search(plain):
        plain = plain[: found.start()]
    return _REST.sub(r"\1", plain).strip().rstrip(".:")


def _translate(
    error: ClickHouseError, limits: QueryLimits, sql: str, stopped: bool
) -> LongtableError | StoppedError:
    text = str(error)
    found = _HEAD.match(text)
    code = getattr(error, "code", None) or (int(found["code"]) if found else 0)
    if code in TIMED_OUT or (stopped and (code == CANCELLED or not code)):
        return StoppedError()
    if code == CANCELLED:
        return QueryFailedError(
            "the query was cancelled on the server by someone else", hint="ask again"
        )
    if code == TOO_LARGE:
        return _too_large(text, limits)
    if code in MEMORY:
        return QueryMemoryError(limit=limits.memory_bytes)
    if code in TOO_MANY_TO_READ:
        return QueryFailedError(
            "the query reads more rows than the server lets this account read",
            problem="too_big",
            hint="narrow it by a condition on the columns by which the table is sorted",
        )
    if code in REFUSED:
        return refusal("what the catalogue shows")
    if isinstance(error, ProgrammingError) and _FIXED in text:
        return DatabaseUnavailableError(
            f"the account's profile does not let longtable set its limits ({text[:200]}): take the"
            " constraint on this setting from the account"
        )
    if code in GONE or not code:
        return _gone(reason_of(text))
    reason = reason_of(text)
    problem = _PROBLEMS.get(code, "other")
    if problem == "other":
        reason = _QUOTED.sub("'…'", reason)
    return FailedAtError(reason, problem=problem, offset=_offset(reason, sql), word=_word(reason))


def _too_large(text: str, limits: QueryLimits) -> LongtableError:
    if _TEMPORARY in text:
        return TempSpaceError(limit=limits.temp_bytes)
    if _MAX_ROWS in text:
        return TooManyRowsError(limit=limits.rows)
    return ResultTooLargeError(limit=limits.bytes)


def _offset(reason: str, sql: str) -> int | None:
    """Return the number of the character at which the server could not read the text. The server
    counts bytes.
    """
    found = _POSITION.search(reason)
    if found is None:
        return None
    before = sql.encode()[: int(found["at"]) - 1]
    return len(before.decode("utf-8", "ignore"))


def _word(reason: str) -> str:
    found = _UNKNOWN.search(reason)
    return found["word"].rpartition(".")[2] if found else ""
