"""Advisory locks of a PostgreSQL server as leases."""

import time
from typing import Any

import psycopg

from longtable.store.leases import Lease
from longtable.store.postgres.store_connections import CONNECT_SECONDS, has_input

LOOK_SECONDS = 0.02
PING_SECONDS = 10.0
"""Seconds after which a process that holds leases sends the server a query over their connection,
to see whether the connection broke.
"""


class AdvisoryLease(Lease):
    """Leases as advisory locks of one connection. The server releases these locks at once if the
    process is gone.
    """

    def __init__(self, url: str) -> None:
        super().__init__(LOOK_SECONDS)
        self.url = url
        self.connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self.locked: set[str] = set()
        """The conversation threads that this connection has locked. There may be fewer than in
        `held`, if an earlier connection broke and another process then took a lock.
        """
        self.used = 0.0

    def _take(self, thread_id: str) -> bool:
        try:
            return self._lock(thread_id)
        except psycopg.OperationalError:
            if self.connection is None or not self.connection.closed:
                raise
            return self._lock(thread_id)  # the server was restarted, or the connection cut

    def _release(self, thread_id: str) -> None:
        if self.connection is None or thread_id not in self.locked:
            return
        self.locked.discard(thread_id)
        try:
            self.connection.execute(
                "SELECT pg_advisory_unlock(hashtextextended(%s, 1))", (thread_id,)
            )
        except psycopg.OperationalError:  # a connection that broke has released all
            if not self.connection.closed:
                raise

    def _renew(self) -> None:
        for _ in range(2):  # again over a new connection: other processes try for the lock, too
            try:
                connection = self._open()
                # A query now and then: a proxy cuts connections that stay idle, some of them
                # without a word.
                if has_input(connection.fileno()) or time.monotonic() - self.used > PING_SECONDS:
                    self.used = time.monotonic()
                    connection.execute("SELECT 1")
                for thread_id in self.held - self.locked:
                    self._lock(thread_id)
            except psycopg.Error:
                self.interval = min(2 * self.interval, LOOK_SECONDS * 50)  # the server is down
            else:
                self.interval = LOOK_SECONDS
                return

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()

    def _lock(self, thread_id: str) -> bool:
        connection = self._open()
        if thread_id not in self.locked:
            row = connection.execute(
                "SELECT pg_try_advisory_lock(hashtextextended(%s, 1))", (thread_id,)
            ).fetchone()
            if row and row[0]:
                self.locked.add(thread_id)
        return thread_id in self.locked

    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self.connection is None or self.connection.closed:
            self.locked.clear()
            self.connection = psycopg.connect(
                self.url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                tcp_user_timeout=1_000 * CONNECT_SECONDS,
            )
        return self.connection
