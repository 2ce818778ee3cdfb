"""Connections to a PostgreSQL server: opened with deadlines, kept in a pool, never shared."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg

from longtable.base.errors import ConfigError, ConnectionWaitError, DatabaseUnavailableError
from longtable.tools.engines.postgres_introspection import RawConnection, register_loaders
from longtable.tools.workers.runner import Stop, StoppedError

MAX_CONNECTIONS = 6
LOOK_EVERY_SECONDS = 0.05
CONNECT_SECONDS = 10
OLDEST_VERSION = 120_000
# A network that went silent must not hold a thread for hours.
KEEPALIVE: dict[str, str | int] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def connector(server: str, *, seconds: float) -> Callable[[], RawConnection]:
    """Return a function that opens one connection to the server of this URL. Raises `ConfigError`
    for a URL that libpq cannot read.
    """
    try:
        from_url = {
            key: value
            for key, value in psycopg.conninfo.conninfo_to_dict(server).items()
            if value is not None
        }
    except psycopg.Error:
        # What libpq says may quote the password: it is not repeated, nor kept as the cause, which a
        # log would show.
        raise ConfigError(
            "the PostgreSQL URL cannot be read: check its host, port and parameters"
        ) from None
    settings = (
        KEEPALIVE
        | {"connect_timeout": CONNECT_SECONDS, "fallback_application_name": "longtable"}
        | from_url
    )
    settings["client_encoding"] = "utf8"
    # Not for the walled transaction, which says it all again, but for whatever should run outside
    # of one.
    first = f"-c default_transaction_read_only=on -c statement_timeout={round(seconds * 1000) + 1}"
    options = f"{settings.get('options', '')} {first}".strip()

    def connect() -> RawConnection:
        try:
            try:
                connection = _open({**settings, "options": options})
            except psycopg.OperationalError as error:
                if "startup parameter" not in str(error):
                    raise
                # A pooler such as PgBouncer, which passes no options on.
                connection = _open(settings)
        except psycopg.Error as error:
            raise DatabaseUnavailableError(
                f"the PostgreSQL server cannot be reached: {what_failed(error)}"
            ) from error
        version = connection.info.server_version
        if version < OLDEST_VERSION:
            connection.close()
            raise DatabaseUnavailableError(
                f"the server is PostgreSQL {version // 10_000}: version {OLDEST_VERSION // 10_000}"
                " or newer is needed"
            )
        return connection

    return connect


def _open(settings: dict[str, str | int]) -> RawConnection:
    text = psycopg.conninfo.make_conninfo("", **settings)
    connection: RawConnection = psycopg.connect(
        text, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
    )
    register_loaders(connection)
    return connection


def what_failed(error: psycopg.Error) -> str:
    return str(error).strip().split("\n", 1)[0]


class Link:
    """One connection on loan from the pool, for one query at a time."""

    def __init__(self, connection: RawConnection, *, fresh: bool) -> None:
        self.connection = connection
        self.fresh = fresh
        self.interrupted = False
        self._last = 0.0

    def interrupt(self) -> None:
        """Ask the server to stop the running statement. However often this is called, the server is
        asked at most five times a second.
        """
        self.interrupted = True
        if time.monotonic() - self._last < 0.2:
            return
        self._last = time.monotonic()
        with suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=1.0)


class Pool:
    """The pool of connections. Threads may share it."""

    def __init__(
        self,
        connect: Callable[[], RawConnection],
        *,
        wait_seconds: float,
        size: int = MAX_CONNECTIONS,
    ) -> None:
        self._connect = connect
        self._wait_seconds = wait_seconds
        self._size = size
        self._changed = threading.Condition()
        self._idle: list[RawConnection] = []
        self._out = 0
        self._closed = False

    @contextmanager
    def link(self, stop: Stop) -> Iterator[Link]:
        """Lend a connection. When it comes back, it is closed rather than used again if it was
        interrupted or is in an unknown state.
        """
        link = self._take(stop)
        keep = False
        try:
            yield link
            keep = not link.interrupted
        finally:
            self._give_back(link.connection, keep=keep)

    def close(self) -> None:
        """Close the idle connections. A connection that is at work is closed when it comes back."""
        with self._changed:
            self._closed = True
            idle = self._idle
            self._idle = []
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
        """Replace the link's connection, which the server has closed, with a new connection."""
        link.connection.close()
        link.connection = self._connect()
        link.fresh = True

    def _give_back(self, connection: RawConnection, *, keep: bool) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        keep = keep and not connection.closed and connection.info.transaction_status == idle
        with self._changed:
            keep = keep and not self._closed
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        self._freed()

    def _freed(self) -> None:
        with self._changed:
            self._out -= 1
            self._changed.notify()
