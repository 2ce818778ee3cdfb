"""A few connections to one PostgreSQL server, shared between threads, and psycopg's errors as ours."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg

from longtable.base.errors import (
    ConfigError,
    ConnectionWaitError,
    DatabaseUnavailableError,
    LongtableError,
    Problem,
    QueryFailedError,
    QueryMemoryError,
    QueryRefusedError,
    ResultTooLargeError,
    TempSpaceError,
)
from longtable.tools.engines.base import FailedAtError, QueryLimits
from longtable.tools.engines.postgres_introspection import RawConnection, register_loaders
from longtable.tools.query_runner import Stop, StoppedError
from longtable.tools.sql.verdict import OVER

MAX_CONNECTIONS = 6
LOOK_EVERY_SECONDS = 0.05
CONNECT_SECONDS = 10
OLDEST_VERSION = 120_000

# A network that went silent must not hold a thread for hours.
KEEPALIVE: dict[str, str | int] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}


def connector(server: str, *, seconds: float) -> Callable[[], RawConnection]:
    """Return what opens one connection to the server of this URL; raise `ConfigError` for a URL that libpq cannot read."""
    try:
        given = {key: value for key, value in psycopg.conninfo.conninfo_to_dict(server).items() if value is not None}
    except psycopg.Error:
        # What libpq says may quote the password: it is not repeated, nor kept as the cause, which a log would show.
        raise ConfigError("the PostgreSQL URL cannot be read: check its host, port and parameters") from None
    settings = KEEPALIVE | {"connect_timeout": CONNECT_SECONDS, "fallback_application_name": "longtable"} | given
    settings["client_encoding"] = "utf8"
    # Not for the walled transaction, which says it all again, but for whatever should run outside of one.
    first = f"-c default_transaction_read_only=on -c statement_timeout={round(seconds * 1000) + 1}"
    options = f"{settings.get('options', '')} {first}".strip()

    def connect() -> RawConnection:
        try:
            try:
                connection = _open({**settings, "options": options})
            except psycopg.OperationalError as error:
                if "startup parameter" not in str(error):
                    raise
                connection = _open(settings)  # a pooler such as PgBouncer, which passes no options on
        except psycopg.Error as error:
            raise DatabaseUnavailableError(f"the PostgreSQL server cannot be reached: {_what_failed(error)}") from error
        version = connection.info.server_version
        if version < OLDEST_VERSION:
            connection.close()
            raise DatabaseUnavailableError(
                f"the server is PostgreSQL {version // 10_000}: version {OLDEST_VERSION // 10_000} or newer is needed"
            )
        return connection

    return connect


def _open(settings: dict[str, str | int]) -> RawConnection:
    text = psycopg.conninfo.make_conninfo("", **settings)
    connection: RawConnection = psycopg.connect(text, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor)
    register_loaders(connection)
    return connection


def _what_failed(error: psycopg.Error) -> str:
    return str(error).strip().split("\n", 1)[0]


class Link:
    """One connection out of the pool, for one query at a time."""

    def __init__(self, connection: RawConnection, *, fresh: bool) -> None:
        self.connection, self.fresh = connection, fresh
        self.interrupted = False
        self._last = 0.0

    def interrupt(self) -> None:
        """Ask the server to stop what runs; asked again and again, it asks a few times a second."""
        self.interrupted = True
        if time.monotonic() - self._last < 0.2:
            return
        self._last = time.monotonic()
        with suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=1.0)


class Pool:
    """The connections; safe to share between threads."""

    def __init__(self, connect: Callable[[], RawConnection], *, wait_seconds: float, size: int = MAX_CONNECTIONS) -> None:
        self._connect, self._wait_seconds, self._size = connect, wait_seconds, size
        self._changed = threading.Condition()
        self._idle: list[RawConnection] = []
        self._out = 0
        self._closed = False

    @contextmanager
    def link(self, stop: Stop) -> Iterator[Link]:
        """Lend a connection; one that was interrupted, or left in an unknown state, is closed rather than used again."""
        link = self._take(stop)
        keep = False
        try:
            yield link
            keep = not link.interrupted
        finally:
            self._give_back(link.connection, keep=keep)

    def close(self) -> None:
        """Close what is idle; what is at work is closed when it comes back."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for connection in idle:
            connection.close()

    def _take(self, stop: Stop) -> Link:
        began = time.monotonic()
        until = min(began + self._wait_seconds, stop.deadline)
        with self._changed:
            while not self._idle and self._out >= self._size and not self._closed:
                now = time.monotonic()
                if now >= until:
                    raise ConnectionWaitError(waited_s=now - began, connections=self._size)
                if stop():
                    raise StoppedError
                self._changed.wait(min(until - now, LOOK_EVERY_SECONDS))
            if self._closed:
                raise DatabaseUnavailableError("the database was closed: open it again")
            self._out += 1
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            return Link(connection, fresh=False)
        try:
            return Link(self._connect(), fresh=True)
        except BaseException:
            self._freed()
            raise

    def replace(self, link: Link) -> None:
        """Give the link a new connection for one that the server has closed meanwhile."""
        link.connection.close()
        link.connection, link.fresh = self._connect(), True

    def _give_back(self, connection: RawConnection, *, keep: bool) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        keep = keep and not connection.closed and connection.info.transaction_status == idle
        with self._changed:
            if keep and not self._closed:
                self._idle.append(connection)
            else:
                keep = False
        if not keep:
            connection.close()
        self._freed()

    def _freed(self) -> None:
        with self._changed:
            self._out -= 1
            self._changed.notify()


ROW_TOO_LARGE = "longtable: a row is too large"

_STOPPED = {"25P04"}  # transaction_timeout, of PostgreSQL 17
_REFUSED = {"42501", "25006", "2F003"}
_GONE = ("08", "57P", "58", "XX", "53300", "53100", "25P03", "F0")


@contextmanager
def translated(*, limits: QueryLimits, sql: str = "", before: int = 0, stopped: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Raise typed errors; `before` is the number of characters that stood before `sql` in what the server read."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, limits, sql, before, stopped()) from error
    except MemoryError as error:
        raise ResultTooLargeError(limit=limits.bytes) from error


def _translate(error: psycopg.Error, limits: QueryLimits, sql: str, before: int, stopped: bool) -> LongtableError | StoppedError:
    state, text = error.sqlstate or "", error.diag.message_primary or str(error).strip().split("\n", 1)[0]
    if state in _STOPPED or (state == "57014" and (stopped or "timeout" in text)):
        return StoppedError()
    if ROW_TOO_LARGE in text:
        return ResultTooLargeError(limit=limits.bytes, what="one row")
    if OVER in text:
        return QueryRefusedError("a count in the query is too large", rule="growth", hint=text.partition('"')[2].rstrip('"'))
    if state == "53200":
        return QueryMemoryError(limit=limits.memory_bytes)
    if state == "53400":
        return TempSpaceError(limit=limits.temp_bytes)
    if state == "54000":
        return ResultTooLargeError(limit=limits.bytes, what="one value")
    if state in _REFUSED:
        return QueryRefusedError("the database refused the statement", rule="engine", hint="only what the catalogue shows can be read")
    if state == "55P03":
        return DatabaseUnavailableError("a table is locked by another session: wait until that has finished, then ask again")
    if state == "57014":
        return QueryFailedError("the query was cancelled on the server by someone else", hint="ask again")
    if state.startswith(_GONE) or (isinstance(error, psycopg.OperationalError) and not state):
        return DatabaseUnavailableError(f"the PostgreSQL server cannot be asked: {text}")
    position = error.diag.statement_position
    at = int(position) - 1 - before if position else -1
    return FailedAtError(text, problem=_problem(state, text), offset=at if 0 <= at < len(sql) else None)


_PROBLEMS: dict[str, Problem] = {
    "42601": "syntax", "42703": "unknown_name", "42P01": "unknown_name", "42704": "unknown_name", "3F000": "unknown_name",
    "42702": "ambiguous", "42725": "ambiguous", "42804": "type", "42846": "type", "42P18": "type", "42P22": "type", "42883": "type",
    "22P02": "type", "22007": "type", "22008": "type", "22003": "type", "22018": "type",
}  # fmt: skip


def _problem(state: str, text: str) -> Problem:
    # A function of no arguments that fit is a matter of types; the names that may be called are known to the AST wall.
    return _PROBLEMS.get(state, "syntax" if "syntax error" in text else "other")
