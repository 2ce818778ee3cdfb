"""The heads of threads in PostgreSQL, for the saver guard."""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg_pool import ConnectionPool

from longtable.store.heads import (
    TABLE,
    Execute,
    Expected,
    Head,
    HeadMovedError,
    Key,
    Saver,
    SqlHeads,
    lock_name,
)

ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
CLAIM_IF = """WITH head AS (SELECT
    (SELECT writer FROM longtable_writers WHERE thread_id = %s AND checkpoint_ns = %s) AS writer,
    (SELECT checkpoint_id FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s
        ORDER BY checkpoint_id DESC LIMIT 1) AS checkpoint_id
) INSERT INTO longtable_writers (thread_id, checkpoint_ns, writer)
SELECT %s, %s, CASE WHEN writer IS NOT DISTINCT FROM %s AND checkpoint_id IS NOT DISTINCT FROM %s THEN %s END FROM head
ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE SET writer = excluded.writer"""
"""SQL that records a new writer if the head is the expected one. Otherwise the name is null, which
the column refuses: the transaction fails.
"""
OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
MOVED = (psycopg.errors.NotNullViolation, psycopg.errors.PipelineAborted)
"""How `CLAIM_IF` fails, and what comes after it in the pipeline."""


def execute_of(cursor: psycopg.Cursor[Any]) -> Execute:
    """Return a function that runs a statement with `?` for its parameters."""
    return lambda sql, parameters: cursor.execute(sql.replace("?", "%s").encode(), parameters)


class _InPipeline(PostgresSaver):
    """A PostgreSQL saver whose writes belong to a pipeline that the caller begins and ends."""

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[DictRow]]:  # noqa: ARG002  # its caller sends
        assert isinstance(self.conn, psycopg.Connection)
        with self.conn.cursor(binary=True, row_factory=dict_row) as cursor:
            yield cursor


class PostgresHeads(SqlHeads):
    """The heads of threads in a PostgreSQL database. The saver writes over the same connection, and
    in the same transaction, in which the head was compared.
    """

    def __init__(self, saver: PostgresSaver) -> None:
        self.saver = saver

    def setup(self) -> None:
        with self._connection() as connection:
            connection.execute(TABLE)

    @contextmanager
    def writing(self, key: Key, expected: Expected | None = None) -> Iterator[Head]:
        """See `SqlHeads.writing`. With the `expected` head, the transaction's statements go in one
        pipeline, and nothing waits for the answers in between.
        """
        if expected is None or not self.saver.supports_pipeline:
            with super().writing(key) as head:
                yield head
            return
        moved: psycopg.Error | None = None
        with self._connection() as connection:
            try:
                with connection.pipeline(), connection.cursor(row_factory=tuple_row) as cursor:
                    try:
                        yield from self._claimed(cursor, key, expected)
                    except MOVED as error:
                        moved = error  # the pipeline ends without it, or psycopg logs its end
            except MOVED as error:
                moved = error
            finally:
                if connection.info.transaction_status in OPEN:
                    connection.rollback()
        if moved is not None:
            raise HeadMovedError from moved

    def _claimed(self, cursor: psycopg.Cursor[Any], key: Key, expected: Expected) -> Iterator[Head]:
        """Yield the expected head within a transaction that fails if another is there.

        `Connection.transaction` would begin pipelines of its own, and wait for the answers at each
        end of them.
        """
        cursor.execute("BEGIN")
        cursor.execute(ALONE, (f"longtable head {lock_name(key)}",))
        names = (expected.writer, expected.checkpoint_id, expected.name)
        cursor.execute(CLAIM_IF, (*key, *key, *key, *names))
        saver = _InPipeline(cursor.connection, serde=self.saver.serde)
        yield Head(expected.checkpoint_id, expected.writer, saver, lambda _: None)
        cursor.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        with self._connection() as connection, connection.cursor(row_factory=tuple_row) as cursor:
            yield execute_of(cursor)

    @contextmanager
    def _transaction(self, name: str) -> Iterator[tuple[Execute, Saver]]:
        with (
            self._connection() as connection,
            connection.transaction(),
            connection.cursor(row_factory=tuple_row) as cursor,
        ):
            cursor.execute(ALONE, (f"longtable head {name}",))
            bound = copy.copy(self.saver)
            bound.conn = connection
            bound.lock = threading.Lock()
            yield execute_of(cursor), bound

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        if isinstance(self.saver.conn, ConnectionPool):
            with self.saver.conn.connection() as connection:
                yield connection
        else:
            with self.saver.lock:
                # One connection: nothing of the saver's may run within a transaction of another
                # thread.
                yield self.saver.conn
