"""Open the threads in a PostgreSQL server: a saver and a store on one pool of connections."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row, tuple_row

from longtable.base.errors import ConfigError
from longtable.store.encryption import META_TABLE, Meta, checked_serializer
from longtable.store.heads import TABLE
from longtable.store.history_cache import HistoryCache
from longtable.store.leases import setup_lease
from longtable.store.loading import MessageSerializer
from longtable.store.postgres.advisory_leases import AdvisoryLease as AdvisoryLease
from longtable.store.postgres.postgres_heads import execute_of
from longtable.store.postgres.postgres_items import RetryingStore
from longtable.store.postgres.postgres_saver import LoadingPostgresSaver
from longtable.store.postgres.store_connections import OPTIONS, Rows, open_pool

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"


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


@contextmanager
def open_threads(
    url: str, lease: AdvisoryLease, key: str | None
) -> Iterator[tuple[PostgresSaver, PostgresStore]]:
    """Open a saver and a store on one connection pool, and create their tables. Data are encrypted
    if `key` is given.
    """
    serde = _set_up(url, lease, key)
    with open_pool(url) as pool:
        saver = LoadingPostgresSaver(pool, serde=serde or MessageSerializer())
        if serde is None:
            saver.cache = HistoryCache()
        yield saver, RetryingStore(pool)


def _set_up(url: str, lease: AdvisoryLease, key: str | None) -> EncryptedSerializer | None:
    with setup_lease(lease), Rows.connect(url, row_factory=dict_row, **OPTIONS) as connection:
        # Before anything else is made: a store of a later version is left as it is.
        with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(META_TABLE)
            serde = checked_serializer(Meta(execute_of(cursor), TABLES), key)
        PostgresSaver(connection).setup()
        PostgresStore(connection).setup()
        connection.execute(TABLE)
    return serde
