"""Connections to the server of a store: their options, a pool of them, and its outages."""

import itertools
import logging
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import set_json_loads
from psycopg_pool import ConnectionPool

from longtable.store.damage import json_value

CONNECT_SECONDS = 10
CONNECTIONS = 8
WAIT_SECONDS = 120.0
"""How many seconds a turn waits for a connection if many threads work at once."""
OPTIONS: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": 0,
    "connect_timeout": CONNECT_SECONDS,
}
Rows = psycopg.Connection[DictRow]

_log = logging.getLogger("longtable.store")
_POOL_LOG = logging.getLogger("psycopg.pool")
_NUMBERS = itertools.count(1)


@contextmanager
def open_pool(url: str) -> Iterator["ConnectionPool[Rows]"]:
    """Open a pool of connections, whose rows are dictionaries."""

    def alive(connection: Rows) -> None:
        """Raise `psycopg.Error` if a connection that the pool is about to hand out is dead, such as
        after a restart of the server. The pool then opens another connection.
        """
        if has_input(connection.fileno()):
            try:
                pool.check_connection(connection)
            except psycopg.Error:
                # All at once: found one by one the wait for the next would double each time.
                pool.check()
                raise

    def configure(connection: Rows) -> None:
        """Prepare a connection that the pool has opened."""
        set_json_loads(json_value, connection)
        outage.connected(connection)

    outage = StoreOutage(f"longtable-store-{next(_NUMBERS)}")
    with (
        outage.watching(),
        ConnectionPool(
            url,
            name=outage.pool_name,
            configure=configure,
            connection_class=Rows,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=WAIT_SECONDS,
            kwargs={**OPTIONS, "row_factory": dict_row},
            check=alive,
            open=True,
        ) as pool,
    ):
        yield pool


class StoreOutage(logging.Filter):
    """Log once that the store's server cannot be reached, and once that it can be reached again.

    This replaces the warnings of psycopg's pool, which logs a warning for each connection and each
    attempt: 230 lines for 35 lost connections that no turn noticed.
    """

    def __init__(self, pool_name: str) -> None:
        super().__init__()
        self.pool_name = pool_name
        self._away = False
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record. False if it is a warning of this pool."""
        ours = any(
            isinstance(value, psycopg.Connection) or self.pool_name in str(value)
            for value in record.args or ()
        )
        if record.levelno < logging.WARNING or not ours:
            return True
        if str(record.msg).startswith("error connecting"):
            self._now(away=True)
        return False

    def connected(self, _: object) -> None:
        """Take note of a connection that was opened."""
        self._now(away=False)

    def _now(self, *, away: bool) -> None:
        with self._lock:
            changed = away != self._away
            self._away = away
        if changed and away:
            _log.warning("the conversation store's server cannot be reached; it is tried again")
        elif changed:
            _log.warning("the conversation store's server can be reached again")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Replace the pool's warnings within the block."""
        _POOL_LOG.addFilter(self)
        try:
            yield
        finally:
            _POOL_LOG.removeFilter(self)


def has_input(socket: int) -> bool:
    """Return whether there is unread input from the server although nothing was asked. Most likely
    this is the end of the connection. The check needs no round trip to the server.
    """
    with getattr(selectors, "PollSelector", selectors.SelectSelector)() as waiting:
        waiting.register(socket, selectors.EVENT_READ)
        return bool(waiting.select(0))
