"""Open the place where threads are kept: a checkpointer and a store together."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from longtable.base.concurrency import a_from, end_idle_threads, in_thread
from longtable.base.errors import ConfigError, MissingExtraError, PersistenceError
from longtable.base.redaction import redacted
from longtable.base.url import parse_url
from longtable.store.damage import item_row, item_value, text_factory
from longtable.store.encryption import (
    EncryptedStore,
    check_key,
)
from longtable.store.history_cache import HistoryCache
from longtable.store.leases import CLOSED, LEASE_SECONDS, SqliteLease
from longtable.store.loading import LoadingSaver, MessageSerializer
from longtable.store.locks import ThreadLocks, wait_or_drop
from longtable.store.saver_guard import GuardedSaver
from longtable.store.sqlite_connection import BUSY_TIMEOUT_MS, LockedStore
from longtable.store.sqlite_setup import set_up
from longtable.store.storage_errors import storage_errors

CLOSE_SECONDS = 2.0
"""How many seconds the closing of a store waits for calls that still use its connections."""
POSTGRES = "postgresql://"


class _Parts(NamedTuple):
    checkpointer: BaseCheckpointSaver[Any]
    store: BaseStore


class Persistence:
    """The checkpointer and the store for `graph.compile(checkpointer=..., store=...)`. Either
    `open_persistence` opens both, or you pass two that you opened yourself.
    """

    url: str = ""
    path: Path | None = None
    """The file of a SQLite store."""
    key: str | None = None

    def __init__(self, checkpointer: BaseCheckpointSaver[Any], store: BaseStore) -> None:
        self._parts = _Parts(checkpointer, store)

    @property
    def checkpointer(self) -> BaseCheckpointSaver[Any]:
        """Return the checkpointer. If it comes from `open_persistence`, the first use of
        `checkpointer` or `store` opens both, and use after `close` raises `PersistenceError`.
        """
        return self._open().checkpointer

    @property
    def store(self) -> BaseStore:
        """Return the store; see `checkpointer`."""
        return self._open().store

    def _open(self) -> _Parts:
        return self._parts

    def close(self) -> None:
        """Close what `open_persistence` opened; what you opened yourself stays open. If a thread's
        summary is still being written, wait for it, but at most 2 seconds.
        """
        self.__exit__(None, None, None)

    aclose = a_from(close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    async def __aenter__(self) -> Self:
        try:
            return await in_thread(self.__enter__)
        except asyncio.CancelledError:  # it may be open by now
            await in_thread(self.__exit__, None, None, None)
            raise

    async def __aexit__(self, *error: Any) -> None:
        await in_thread(self.__exit__, *error)


def open_persistence(
    url: str, *, lease_seconds: float = LEASE_SECONDS, key: str | None = None
) -> Persistence:
    """Open "sqlite:///file.db" (relative), "sqlite:////abs/file.db", "postgresql://..." or
    "memory://".

    Use the result as a context manager. Or use its `checkpointer` and `store`, which open it at the
    first use, and call `close` at the end. A missing file and its folder are created. A file that
    cannot be written is opened for reading. Several processes may share one file or database.

    `lease_seconds`: for a file, how long a process that was killed during a turn still keeps other
    processes off the thread. (A database server notices at once that a process is gone.) `key`: a
    passphrase with which checkpoints and the store's values are encrypted (extra `encryption`).
    Thread ids, names of tables, kinds and times are not encrypted. A store is encrypted from its
    beginning or not at all.

    Raises `ConfigError` for any other URL; `PersistenceError` if a file cannot be opened, is not a
    store, is empty or is locked; `StoreKeyError` if the key is wrong; and `NewerStoreError` if a
    later version wrote the store.
    """
    if not lease_seconds > 0:
        raise ConfigError(f"lease_seconds must be above 0, found {lease_seconds!r}")
    return _UrlPersistence(url, lease_seconds=lease_seconds, key=check_key(key))


class _UrlPersistence(Persistence):
    """Open the store at a URL at its first use."""

    def __init__(self, url: str, *, lease_seconds: float, key: str | None) -> None:
        self.url = url
        self.path = _path(url)
        self.lease_seconds = lease_seconds
        self.key = key
        self._opening: AbstractContextManager[_Parts] | None = None
        self._opened: _Parts | None = None

    def __repr__(self) -> str:
        return f"<Persistence {redacted(self.url)}>"

    def _open(self) -> _Parts:
        if self._opening is None and self._opened is not None:
            raise PersistenceError(CLOSED)
        return cast("_Parts", self.__enter__()._opened)

    def __enter__(self) -> Self:
        if self._opening is not None:
            return self
        if self.url.startswith(POSTGRES):
            opening = _postgres(self.url, self.key)
        elif self.path is None:
            opening = _memory()
        else:
            lease = SqliteLease(self.path, seconds=self.lease_seconds, busy_ms=BUSY_TIMEOUT_MS)
            opening = _sqlite(self.path, lease, self.key)
        with storage_errors():
            self._opened = opening.__enter__()
        self._opening = opening
        return self

    def __exit__(self, *error: Any) -> None:
        opening = self._opening
        self._opening = None
        if opening is None:
            return
        try:
            opening.__exit__(*error)
        finally:
            end_idle_threads()


def _path(url: str) -> Path | None:
    if url == "memory://":
        return None
    if url.startswith(POSTGRES) and len(url) > len(POSTGRES):
        parse_url(url)  # its errors repeat no password; libpq's would
        return None
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return Path(url.removeprefix("sqlite:///")).expanduser()
    problem = (
        f"scheme {url.partition('://')[0]!r}"
        if "://" in url
        else f"{url!r}: write sqlite:///{url or 'file.db'}"
    )
    raise ConfigError(
        f"a store URL is sqlite:///path, postgresql://... or memory://, found {problem}"
    )


@contextmanager
def _memory() -> Iterator[_Parts]:
    saver = GuardedSaver(InMemorySaver())
    try:
        yield _Parts(saver, InMemoryStore())
    finally:
        wait_or_drop(saver.locks)


@contextmanager
def _sqlite(path: Path, lease: SqliteLease, key: str | None) -> Iterator[_Parts]:
    file = set_up(path, lease, key)
    checkpoints = sqlite3.connect(file.uri, uri=True, check_same_thread=False, factory=file.factory)
    items = sqlite3.connect(
        file.uri, uri=True, check_same_thread=False, isolation_level=None, factory=file.factory
    )
    locks: list[threading.Lock] = []
    threads = ThreadLocks(file.lease)
    try:
        for connection in (checkpoints, items):
            connection.text_factory = text_factory
            for pragma in file.pragmas:
                connection.execute(pragma)
        items.row_factory = item_row
        saver = LoadingSaver(checkpoints, serde=file.serde or MessageSerializer())
        if file.serde is None:
            saver.cache = HistoryCache()
        store = LockedStore(items, deserializer=item_value)
        locks += [store.lock, saver.lock]
        yield _Parts(GuardedSaver(saver, locks=threads), _encrypted(store, file.serde))
    finally:
        wait_or_drop(threads)
        lease.close()
        # A call that was cancelled may still be at work in a thread, and SQLite crashes when closed
        # under it. A list that was left half read never frees its lock.
        free = [lock for lock in locks if lock.acquire(timeout=CLOSE_SECONDS)]
        items.close()
        checkpoints.close()
        for lock in free:
            lock.release()


@contextmanager
def _postgres(url: str, key: str | None) -> Iterator[_Parts]:
    module = _postgres_module()
    lease = module.AdvisoryLease(module.check_url(url))
    threads = ThreadLocks(lease)
    try:
        with ExitStack() as stack:
            with storage_errors():
                saver, store = stack.enter_context(module.open_threads(url, lease, key))
            try:
                yield _Parts(GuardedSaver(saver, locks=threads), _encrypted(store, saver.serde))
            finally:
                wait_or_drop(threads)
    finally:
        lease.close()


def locks_beside(checkpointer: object) -> ThreadLocks | None:
    """Return the locks on threads in the database of a checkpointer that `open_persistence` did not
    open. They hold for all processes. Return None if it has no pool of connections to PostgreSQL.
    """
    url = getattr(getattr(checkpointer, "conn", None), "conninfo", None)
    return locks_at(url) if isinstance(url, str) else None


@cache
def locks_at(url: str) -> ThreadLocks:
    """Return this process's locks on threads in a PostgreSQL database, open until it ends."""
    return ThreadLocks(_postgres_module().AdvisoryLease(url))


def _postgres_module() -> ModuleType:
    try:
        return import_module("longtable.store.postgres.postgres_threads")
    except ImportError as error:
        raise MissingExtraError("threads in PostgreSQL cannot be opened", "postgres") from error


def _encrypted(store: BaseStore, serde: SerializerProtocol | None) -> BaseStore:
    return EncryptedStore(store, serde) if isinstance(serde, EncryptedSerializer) else store
