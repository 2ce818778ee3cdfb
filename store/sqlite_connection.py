"""Connections to the store's SQLite file: one writer at a time, readers beside it."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.store.base import Op, PutOp, Result
from langgraph.store.sqlite import SqliteStore

from longtable.base.concurrency import a_from

BUSY_TIMEOUT_MS = 10_000
BEGIN_READING = "BEGIN DEFERRED"


class WriteConnection(sqlite3.Connection):
    """A connection that begins each transaction as a write transaction. Connections that share a
    `write_lock` run them one at a time.

    LangGraph's own store reads first and writes later in a transaction. If another connection has
    written in between, SQLite refuses the write at once ("database is locked"), whatever the
    timeout; 40 threads at once were enough for this. And SQLite picks the next writer by chance:
    with 200 threads, one waited longer than the timeout.
    """

    write_lock: threading.Lock
    begun = False

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """See `sqlite3.Connection`."""
        if sql in ("COMMIT", "ROLLBACK"):
            with self._ending():
                return super().execute(sql)
        if self.begun or sql == BEGIN_READING or not sql.startswith("BEGIN"):
            return super().execute(sql, parameters)
        self.write_lock.acquire()
        self.begun = True
        try:
            return super().execute("BEGIN IMMEDIATE")
        except BaseException:
            self._end()
            raise

    def commit(self) -> None:
        """See `sqlite3.Connection`."""
        with self._ending():
            super().commit()

    def rollback(self) -> None:
        """See `sqlite3.Connection`."""
        with self._ending():
            super().rollback()

    def close(self) -> None:
        """See `sqlite3.Connection`."""
        super().close()
        self._end()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the transaction in any case: a transaction left open after a failed commit (full
        disk) blocks every writer.
        """
        try:
            yield
        except BaseException:
            super().rollback()
            raise
        finally:
            self._end()

    def _end(self) -> None:
        if self.begun:
            self.begun = False
            self.write_lock.release()


class LockedStore(SqliteStore):
    """LangGraph's store, except that its async methods work, too, and that it can read while
    another program writes.
    """

    _reading = threading.local()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """See `SqliteStore.batch`."""
        every = list(ops)
        if any(isinstance(op, PutOp) for op in every):
            return super().batch(every)
        self._reading.now = True
        try:
            return super().batch(every)
        finally:
            self._reading.now = False

    abatch: Any = a_from(batch)

    @contextmanager
    def _cursor(self, *, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        reads = transaction and getattr(self._reading, "now", False)
        with super()._cursor(transaction=transaction and not reads) as cursor:
            if reads:
                cursor.execute(BEGIN_READING)
            try:
                yield cursor
            finally:
                if reads:
                    cursor.execute("COMMIT")


def write_connections() -> type[sqlite3.Connection]:
    """Return a class of its own for each store: its connections share one `write_lock`."""
    return type("StoreConnection", (WriteConnection,), {"write_lock": threading.Lock()})
