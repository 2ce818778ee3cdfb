"""Read the head of a thread and name its writer, in the same transaction that writes to it.

The head is the newest checkpoint of a thread and namespace. The name of the run that wrote last is
kept beside it. Only this name tells apart two runs that loaded the same checkpoint, until one of
them stores another.
"""

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

Saver = BaseCheckpointSaver[Any]
Key = tuple[str, str]
"""Thread id and checkpoint namespace."""
Result = TypeVar("Result")

TABLE = """CREATE TABLE IF NOT EXISTS longtable_writers (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, writer TEXT NOT NULL, PRIMARY KEY (thread_id, checkpoint_ns)
)"""
WRITER = "SELECT writer FROM longtable_writers WHERE thread_id = ? AND checkpoint_ns = ?"
HEAD = f"""SELECT (SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
    ORDER BY checkpoint_id DESC LIMIT 1), ({WRITER})"""
CLAIM = """INSERT INTO longtable_writers (thread_id, checkpoint_ns, writer) VALUES (?, ?, ?)
    ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE SET writer = excluded.writer"""
CHECKPOINT_IDS = (
    "SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY"
    " checkpoint_id DESC"
)
FORGET = "DELETE FROM longtable_writers WHERE thread_id = ?"

_SERVER_GONE = {"57P01", "57P02", "57P03"}
"""SQLSTATEs that say that PostgreSQL was shut down, crashed, or is starting up."""


@dataclass(frozen=True)
class Head:
    """The newest checkpoint of a thread, the run that wrote last, and the saver whose writes belong
    to the open transaction.
    """

    checkpoint_id: str | None
    writer: str | None
    saver: Saver
    claim: Callable[[str], object]
    """Names the writer, in the same transaction."""


# -- savers ---------------------------------------------------------------------------------------


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
        claimed: list[str] = []
        with self.lock:
            yield Head(self._newest(key), self.writers.get(key), self.saver, claimed.append)
            self.writers.update((key, name) for name in claimed)

    def delete(self, thread_id: str) -> None:
        self.saver.delete_thread(thread_id)
        self.writers = {key: writer for key, writer in self.writers.items() if key[0] != thread_id}

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        stored = (
            self.saver.storage.get(thread_id, {}).get("", {})
            if isinstance(self.saver, InMemorySaver)
            else {}
        )
        return sorted(stored, reverse=True)

    def _newest(self, key: Key) -> str | None:
        thread_id, namespace = key
        if isinstance(self.saver, InMemorySaver):  # its ids are at hand: nothing to load
            return max(self.saver.storage.get(thread_id, {}).get(namespace, {}), default=None)
        newest = self.saver.get_tuple(
            {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
        )
        return newest.checkpoint["id"] if newest else None


Execute = Callable[[str, Sequence[str]], Any]
"""Runs one of the statements above with its parameters, and returns the cursor."""


class SqlHeads(ABC):
    """A saver in a database; the writers are in a table beside the saver's own."""

    @abstractmethod
    def setup(self) -> None:
        """Create missing tables."""

    def writer(self, key: Key) -> str | None:
        """Return the run that wrote last."""
        with self._reading() as execute:
            row = execute(WRITER, key).fetchone()
        return row[0] if row else None

    @contextmanager
    def writing(self, key: Key) -> Iterator[Head]:
        """Lock the thread's head until the block ends. Everything written in the block is stored,
        or nothing if it raises.
        """
        with self._transaction(" ".join(key)) as (execute, saver):
            newest, writer = execute(HEAD, (*key, *key)).fetchone()
            yield Head(newest, writer, saver, lambda name: execute(CLAIM, (*key, name)))

    def delete(self, thread_id: str) -> None:
        """Delete a thread, and the records of its writers."""
        with self._transaction(thread_id) as (execute, saver):
            saver.delete_thread(thread_id)
            execute(FORGET, (thread_id,))

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        """Return the ids of a thread's checkpoints, newest first, without decoding them; empty if
        the saver cannot do this.
        """
        with self._reading() as execute:
            return [row[0] for row in execute(CHECKPOINT_IDS, (thread_id,))]

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Execute]:
        """Yield a function that runs statements that only read."""

    @abstractmethod
    def _transaction(self, name: str) -> AbstractContextManager[tuple[Execute, Saver]]:
        """Begin a transaction that excludes others with the same `name`. Yield a function that runs
        statements in it, and the saver that writes in it.
        """


Heads = ProcessHeads | SqlHeads
"""The heads that the guard uses."""


class _WithinTransaction(SqliteSaver):
    """A saver whose writes belong to a transaction that its caller has begun and will end."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002  # its caller commits
        """Return a cursor that neither locks nor commits."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


class SqliteHeads(SqlHeads):
    """A SQLite file: transactions on the saver's own connection.

    They hold the saver's own lock. With a separate lock, the transaction began while other threads
    read on the same connection, which SQLite refuses ("database is locked") or mixes up ("another
    row available").
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

    @contextmanager
    def _reading(self) -> Iterator[Execute]:
        self.setup()
        with self.saver.cursor(transaction=False) as cursor:
            yield cursor.execute

    @contextmanager
    def _transaction(self, name: str) -> Iterator[tuple[Execute, Saver]]:  # noqa: ARG002  # a file has one writer at a time
        self.setup()
        connection = self.saver.conn
        with self.saver.lock:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection.execute, self.within
                connection.commit()
            except BaseException:
                connection.rollback()
                raise


def retry_once(call: Callable[[], Result]) -> Result:
    """Retry an idempotent call once after a lost PostgreSQL connection. The pool waits until the
    server is back.
    """
    try:
        return call()
    except Exception as error:
        if not is_lost_connection(error):
            raise
    return call()


def is_lost_connection(error: Exception) -> bool:
    """Return whether an error says that a PostgreSQL connection broke. The server may or may not
    have stored the data that was sent.
    """
    classes = [cls for cls in type(error).__mro__ if cls.__name__ == "OperationalError"]
    if not any(cls.__module__.partition(".")[0] == "psycopg" for cls in classes) or type(
        error
    ).__module__.startswith("psycopg_pool"):
        return False  # the pool gave up: the caller has waited long enough
    state = getattr(error, "sqlstate", None)
    return state is None or state.startswith("08") or state in _SERVER_GONE
