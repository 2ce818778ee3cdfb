"""Connections to the store's SQLite file: one of them writes at a time, while others may read."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.store.base import Op, PutOp, Result
from langgraph.store.sqlite import SqliteStore

from longtable.base.concurrency import a_from
from longtable.base.stored import Namespace
from longtable.store.records.item_values import IsWanted, KeyValue, decoded, first_wanted

BUSY_TIMEOUT_MS = 10_000
BEGIN_READING = "BEGIN DEFERRED"
VALUES = "SELECT key, value FROM store WHERE prefix = ?"
NEWEST_VALUES = f"""{VALUES} ORDER BY
    coalesce(iif(json_valid(value), json_extract(value, '$.updated'), NULL), '') DESC, key DESC"""


class WriteConnection(sqlite3.Connection):
    """A connection that begins each transaction as a write transaction. Connections that share a
    `write_lock` run their write transactions one at a time.

    There are two reasons. LangGraph's own store first reads and later writes in the same
    transaction. If another connection writes in between, SQLite refuses the later write at once
    ("database is locked"), whatever the timeout; 40 OS threads at once were enough for this. Also,
    SQLite picks the next writer by chance: among 200 OS threads, one waited longer than the
    timeout.
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
        """End the transaction even if the block fails: roll back and release the write lock. A
        transaction left open after a failed commit (such as on a full disk) would block all
        writers.
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
    """LangGraph's SQLite store with two changes: its async methods work, and it can read while
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

    def values_in(self, namespace: Namespace) -> Iterator[KeyValue]:
        """See `longtable.store.records.item_values`."""
        with self._rows(VALUES, namespace) as rows:
            found = list(rows)
        return decoded(found)

    def newest_in(self, namespace: Namespace, is_wanted: IsWanted, most: int) -> list[KeyValue]:
        """See `longtable.store.records.item_values`."""
        with self._rows(NEWEST_VALUES, namespace) as rows:
            return first_wanted(rows, is_wanted, most)

    @contextmanager
    def _rows(self, query: str, namespace: Namespace) -> Iterator[Iterator[tuple[str, Any]]]:
        with self._cursor(transaction=False) as cursor:
            cursor.row_factory = None
            yield cursor.execute(query, (".".join(namespace),))

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
    """Return a new subclass of `WriteConnection`. Each store has its own, so that the connections
    of one store share one `write_lock`.
    """
    return type("StoreConnection", (WriteConnection,), {"write_lock": threading.Lock()})
