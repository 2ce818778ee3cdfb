"""Threads in PostgreSQL: connection pool, saver, store, the heads of threads for the saver guard,
and advisory locks as leases.
"""

import copy
import itertools
import logging
import selectors
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, get_checkpoint_id, writes_sort_key
from langgraph.checkpoint.postgres import PostgresSaver as PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import Op, PutOp
from langgraph.store.base import Result as StoreResult
from langgraph.store.postgres import PostgresStore
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg.types.json import set_json_loads
from psycopg_pool import ConnectionPool

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.stored import Namespace
from longtable.store.damage import json_value
from longtable.store.encryption import META_TABLE, Meta, checked_serializer
from longtable.store.heads import (
    TABLE,
    Execute,
    Expected,
    Head,
    HeadMovedError,
    Key,
    Saver,
    SqlHeads,
    key_of,
    retry_once,
)
from longtable.store.history_cache import (
    CachedHistory,
    Histories,
    HistoryCache,
    copies,
    extended,
    shares,
)
from longtable.store.leases import Lease, setup_lease
from longtable.store.loading import MessageSerializer
from longtable.store.records.item_values import IsWanted, KeyValue, decoded, first_wanted

CONNECT_SECONDS = 10
CONNECTIONS = 8
LOOK_SECONDS = 0.02
PING_SECONDS = 10.0
"""Seconds after which a process that holds leases sends the server a query over their connection,
to see whether the connection broke.
"""
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
VALUES = "SELECT key, value::text FROM store WHERE prefix = %s"
NEWEST_VALUES = f"""{VALUES}
    ORDER BY coalesce(value->>'updated', '') COLLATE "C" DESC, key COLLATE "C" DESC"""
PAGE = 1_000
"""The most rows that are fetched at once of an ordered list."""

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"


_SINCE = """WITH RECURSIVE ancestors(checkpoint_id, parent, counters, place) AS (
    SELECT checkpoint_id, parent_checkpoint_id, NULL::jsonb, 0 FROM checkpoints
    WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.metadata->'counters_since_delta_snapshot', place + 1
    FROM ancestors a JOIN checkpoints c ON c.checkpoint_id = a.parent
    WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND a.checkpoint_id <> %s AND place < 100
) SELECT a.checkpoint_id, a.counters, a.place, w.task_path, w.task_id, w.idx, w.channel, w.type, w.blob
FROM ancestors a LEFT JOIN checkpoint_writes w ON w.thread_id = %s AND w.checkpoint_ns = %s
    AND w.checkpoint_id = a.checkpoint_id AND w.channel = ANY(%s)
WHERE a.place > 0"""
"""SQL for the checkpoints between two of a thread, newest first, and their writes to some channels.
Each row has JSON that counts, for each delta channel, the steps since it was last stored whole.
"""


def _execute(cursor: psycopg.Cursor[Any]) -> Execute:
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
        try:
            with (
                self._connection() as connection,
                connection.pipeline(),
                connection.transaction(),
                connection.cursor(row_factory=tuple_row) as cursor,
            ):
                cursor.execute(ALONE, (f"longtable head {' '.join(key)}",))
                names = (expected.writer, expected.checkpoint_id, expected.name)
                cursor.execute(CLAIM_IF, (*key, *key, *key, *names))
                saver = _InPipeline(connection, serde=self.saver.serde)
                yield Head(expected.checkpoint_id, expected.writer, saver, lambda _: None)
        except (psycopg.errors.NotNullViolation, psycopg.errors.PipelineAborted) as error:
            raise HeadMovedError from error

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        with self._connection() as connection, connection.cursor(row_factory=tuple_row) as cursor:
            yield _execute(cursor)

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
            yield _execute(cursor), bound

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


class LoadingPostgresSaver(PostgresSaver):
    """LangGraph's saver for PostgreSQL, except that turns read only what was written since the
    checkpoint from which the turn before began.
    """

    cache: HistoryCache | None = None
    """The histories that turns loaded, None if each load reads all."""

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `BaseCheckpointSaver`."""
        cache = self.cache if shares(config) else None
        checkpoint_id = get_checkpoint_id(config)
        if cache is None or not checkpoint_id or not channels:
            return super().get_delta_channel_history(config=config, channels=channels)
        key = key_of(config)
        known = cache.get(key)
        histories = self._since(known, key, checkpoint_id, channels) if known is not None else None
        if histories is None:
            histories = dict(super().get_delta_channel_history(config=config, channels=channels))
        cache.put(key, checkpoint_id, histories)
        return copies(histories)

    def _since(
        self, known: CachedHistory, key: Key, checkpoint_id: str, channels: Sequence[str]
    ) -> Histories | None:
        """Return the histories of a checkpoint that comes after a known one. Return None if it does
        not, or if a channel was stored whole in between.
        """
        if not known.histories.keys() >= set(channels):
            return None
        histories = {channel: extended(known.histories[channel]) for channel in channels}
        if known.checkpoint_id == checkpoint_id:
            return histories
        with self._cursor() as cursor:
            cursor.execute(
                _SINCE, (*key, checkpoint_id, *key, known.checkpoint_id, *key, [*channels])
            )
            rows = cursor.fetchall()
        if not any(row["checkpoint_id"] == known.checkpoint_id for row in rows):
            return None
        between = [row for row in rows if row["checkpoint_id"] != known.checkpoint_id]
        if not all((row["counters"] or {}).keys() >= set(channels) for row in between):
            return None
        for row in sorted((row for row in rows if row["channel"] is not None), key=_oldest_first):
            value = self.serde.loads_typed((row["type"], row["blob"]))
            channel = row["channel"]
            histories[channel]["writes"].append((row["task_id"], channel, value))
        return histories


def _oldest_first(row: Mapping[str, Any]) -> Any:
    return -row["place"], writes_sort_key(row["task_path"], row["task_id"], row["idx"])


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
                if _has_input(connection.fileno()) or time.monotonic() - self.used > PING_SECONDS:
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


def check_url(url: str) -> str:
    """Return the URL. Raises `ConfigError` if libpq cannot read it. The error does not repeat
    libpq's message, which may quote the password.
    """
    try:
        psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise ConfigError(
            "the store's PostgreSQL URL cannot be read: check its host, port and parameters"
        ) from None
    return url


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


@contextmanager
def open_threads(
    url: str, lease: AdvisoryLease, key: str | None
) -> Iterator[tuple[PostgresSaver, PostgresStore]]:
    """Open a saver and a store on one connection pool, and create their tables. Data are encrypted
    if `key` is given.
    """
    serde = _set_up(url, lease, key)
    kwargs = {**OPTIONS, "row_factory": dict_row}

    def alive(connection: Rows) -> None:
        """Raise `psycopg.Error` if a connection that the pool is about to hand out is dead, such as
        after a restart of the server. The pool then opens another connection.
        """
        if _has_input(connection.fileno()):
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
            kwargs=kwargs,
            check=alive,
            open=True,
        ) as pool,
    ):
        saver = LoadingPostgresSaver(pool, serde=serde or MessageSerializer())
        if serde is None:
            saver.cache = HistoryCache()
        yield (
            saver,
            RetryingStore(pool),
        )


def _has_input(socket: int) -> bool:
    """Return whether there is unread input from the server although nothing was asked. Most likely
    this is the end of the connection. The check needs no round trip to the server.
    """
    with getattr(selectors, "PollSelector", selectors.SelectSelector)() as waiting:
        waiting.register(socket, selectors.EVENT_READ)
        return bool(waiting.select(0))


def _set_up(url: str, lease: AdvisoryLease, key: str | None) -> EncryptedSerializer | None:
    with setup_lease(lease), Rows.connect(url, row_factory=dict_row, **OPTIONS) as connection:
        # Before anything else is made: a store of a later version is left as it is.
        with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(META_TABLE)
            serde = checked_serializer(Meta(_execute(cursor), TABLES), key)
        PostgresSaver(connection).setup()
        PostgresStore(connection).setup()
        connection.execute(TABLE)
    return serde
