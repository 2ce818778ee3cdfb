"""LangGraph's store for PostgreSQL, which outlives a restart of the server."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from langgraph.store.base import Op, PutOp
from langgraph.store.base import Result as StoreResult
from langgraph.store.postgres import PostgresStore
from psycopg.rows import DictRow, tuple_row
from psycopg_pool import ConnectionPool

from longtable.base.concurrency import a_from
from longtable.base.stored import Namespace
from longtable.store.heads import retry_once
from longtable.store.records.item_values import IsWanted, KeyValue, decoded, first_wanted

VALUES = "SELECT key, value::text FROM store WHERE prefix = %s"
NEWEST_VALUES = f"""{VALUES}
    ORDER BY coalesce(value->>'updated', '') COLLATE "C" DESC, key COLLATE "C" DESC"""
PAGE = 1_000
"""The most rows that are fetched at once of an ordered list."""


class RetryingStore(PostgresStore):
    """A store that retries an operation once after a lost connection, such as in a restart of the
    server. Retrying is safe, because operations only read, or have the same effect if done twice.
    """

    _reading = threading.local()

    def batch(self, ops: Iterable[Op]) -> list[StoreResult]:
        """See `BaseStore`."""
        listed = list(ops)
        self._reading.now = not any(isinstance(op, PutOp) for op in listed)
        try:
            return retry_once(lambda: PostgresStore.batch(self, listed))
        finally:
            self._reading.now = False

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[DictRow]]:
        # A pipeline that only reads has no transaction to keep together, and costs half as much
        # again.
        reads = getattr(self._reading, "now", False)
        with super()._cursor(pipeline=pipeline and not reads) as cursor:
            yield cursor

    abatch: Any = a_from(batch)

    def values_in(self, namespace: Namespace) -> Iterator[KeyValue]:
        """See `longtable.store.records.item_values`."""

        def read() -> list[tuple[str, str]]:
            with (
                self._connection() as connection,
                connection.cursor(row_factory=tuple_row) as cursor,
            ):
                return cursor.execute(VALUES, (".".join(namespace),)).fetchall()

        return decoded(retry_once(read))

    def newest_in(self, namespace: Namespace, is_wanted: IsWanted, most: int) -> list[KeyValue]:
        """See `longtable.store.records.item_values`."""

        def read() -> list[KeyValue]:
            with (
                self._connection() as connection,
                connection.transaction(),
                connection.cursor("longtable_newest", row_factory=tuple_row) as cursor,
            ):
                # The server keeps the rows that nobody fetches.
                cursor.itersize = max(1, min(most, PAGE))
                cursor.execute(NEWEST_VALUES, (".".join(namespace),))
                return first_wanted(cursor, is_wanted, most)

        return retry_once(read)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        assert isinstance(self.conn, ConnectionPool), "open_threads makes it of a pool"
        with self.conn.connection() as connection:
            yield connection
