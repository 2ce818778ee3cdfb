"""Read and claim the head of a thread in the very transaction that writes to it: one class for each kind of saver.

The head is the newest checkpoint of a thread and namespace. Beside it stands the writer: the run that wrote last. Two
runs that loaded the same checkpoint differ in nothing else until one of them stores another.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

Saver = BaseCheckpointSaver[Any]
Key = tuple[str, str]
"""Thread id and checkpoint namespace."""

TABLE = """CREATE TABLE IF NOT EXISTS longtable_writers (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, writer TEXT NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns)
)"""
WRITER = "SELECT writer FROM longtable_writers WHERE thread_id = ? AND checkpoint_ns = ?"
HEAD = f"SELECT (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?), ({WRITER})"
CLAIM = "INSERT OR REPLACE INTO longtable_writers (thread_id, checkpoint_ns, writer) VALUES (?, ?, ?)"
CHECKPOINT_IDS = "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC"
FORGET = "DELETE FROM longtable_writers WHERE thread_id = ?"


@dataclass(frozen=True)
class Head:
    """The newest checkpoint of a thread, who wrote last, and the saver whose writes belong to the open transaction."""

    checkpoint_id: str | None
    writer: str | None
    saver: Saver
    claim: Callable[[str], object]
    """Names the writer, in the same transaction."""


class Heads(Protocol):
    """What the guard asks of a saver."""

    def setup(self) -> None:
        """Make what is needed; called again it does nothing."""
        ...

    def writer(self, key: Key) -> str | None:
        """Return the run that wrote last."""
        ...

    def writing(self, key: Key) -> AbstractContextManager[Head]:
        """Hold the thread's head still until the block ends; what the block wrote is kept whole, or not at all when it raises."""
        ...

    def delete(self, thread_id: str) -> None:
        """Delete a thread, and who wrote to it."""
        ...

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        """Return the ids of a thread's checkpoints, newest first, without decoding them; none where the saver cannot do that."""
        ...


class ProcessHeads:
    """Any saver, within one process: a lock, and the writers in memory."""

    def __init__(self, saver: Saver) -> None:
        self.saver = saver
        self.writers: dict[Key, str] = {}
        self.lock = threading.RLock()

    def setup(self) -> None: ...

    def writer(self, key: Key) -> str | None:
        return self.writers.get(key)

    @contextmanager
    def writing(self, key: Key) -> Iterator[Head]:
        with self.lock:
            before = self.writers.get(key)
            try:
                yield Head(self._newest(key), before, self.saver, lambda writer: self.writers.update({key: writer}))
            except BaseException:
                if before is not None:
                    self.writers[key] = before
                else:
                    self.writers.pop(key, None)
                raise

    def delete(self, thread_id: str) -> None:
        self.saver.delete_thread(thread_id)
        self.writers = {key: writer for key, writer in self.writers.items() if key[0] != thread_id}

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        stored = self.saver.storage.get(thread_id, {}).get("", {}) if isinstance(self.saver, InMemorySaver) else {}
        return sorted(stored, reverse=True)

    def _newest(self, key: Key) -> str | None:
        thread_id, namespace = key
        if isinstance(self.saver, InMemorySaver):  # its ids are at hand: nothing to load
            return max(self.saver.storage.get(thread_id, {}).get(namespace, {}), default=None)
        found = self.saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}})
        return found.checkpoint["id"] if found else None


class _WithinTransaction(SqliteSaver):
    """A saver whose writes belong to a transaction that its caller has begun and will end."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002  # whoever began it commits
        """Return a cursor that neither locks nor commits."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


class SqliteHeads:
    """A SQLite file: transactions on the saver's own connection.

    They hold the saver's own lock. With a second lock the transaction began while other threads read on the same
    connection, which SQLite refuses ("database is locked") or mixes up ("another row available").
    """

    def __init__(self, saver: SqliteSaver) -> None:
        self.saver = saver
        self.within = _WithinTransaction(saver.conn, serde=saver.serde)
        self.is_setup = False

    def setup(self) -> None:
        if not self.is_setup:
            with self.saver.cursor() as cursor:
                cursor.execute(TABLE)
            self.is_setup = True

    def writer(self, key: Key) -> str | None:
        self.setup()
        with self.saver.cursor(transaction=False) as cursor:
            row = cursor.execute(WRITER, key).fetchone()
        return row[0] if row else None

    @contextmanager
    def writing(self, key: Key) -> Iterator[Head]:
        with self._transaction() as connection:
            newest, writer = connection.execute(HEAD, (*key, *key)).fetchone()
            yield Head(newest, writer, self.within, lambda name: connection.execute(CLAIM, (*key, name)))

    def delete(self, thread_id: str) -> None:
        with self._transaction() as connection:
            self.within.delete_thread(thread_id)
            connection.execute(FORGET, (thread_id,))

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        with self.saver.cursor(transaction=False) as cursor:
            return [row[0] for row in cursor.execute(CHECKPOINT_IDS, (thread_id,))]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.setup()
        connection = self.saver.conn
        with self.saver.lock:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
