"""Read the head of a thread and record its writer, in the same transaction that writes to the
thread.

The head is the newest checkpoint of a thread and namespace. Beside it, the name of the last write
is kept: which run wrote, and how often. If two runs have loaded the same checkpoint, only this name
shows that one of them has written, until it stores a new checkpoint.
"""

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
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
NEWEST = (
    "SELECT thread_id, max(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY"
    " thread_id"
)
FORGET = "DELETE FROM longtable_writers WHERE thread_id = ?"

_SERVER_GONE = {"57P01", "57P02", "57P03"}
"""SQLSTATEs that say that PostgreSQL was shut down, crashed, or is starting up."""


class HeadMovedError(Exception):
    """A write was sent together with the comparison of the head, and the head was another one. What
    was written is rolled back.
    """


@dataclass(frozen=True)
class Expected:
    """The head that a run expects, and the name of the write that takes its place."""

    checkpoint_id: str | None
    writer: str | None
    name: str


def key_of(config: RunnableConfig) -> Key:
    """Return the thread and namespace that a config names."""
    configurable = config["configurable"]
    return str(configurable["thread_id"]), str(configurable.get("checkpoint_ns", ""))


def lock_name(key: Key) -> str:
    """Return the name of the lock that whoever writes in a thread's namespace holds."""
    return " ".join(key)


@dataclass(frozen=True)
class Head:
    """The head of a thread within an open transaction.

    `checkpoint_id`: the newest checkpoint. `writer`: the name of the last write, None if there is
    none. `saver`: the saver whose writes belong to the transaction.
    """

    checkpoint_id: str | None
    writer: str | None
    saver: Saver
    claim: Callable[[str], object]
    """Function that records a new writer in the same transaction."""


# -- savers ---------------------------------------------------------------------------------------


class ProcessHeads:
    """The heads of threads in any saver, guarded within this process only. It uses a lock, and
    keeps the writers in memory.
    """

    def __init__(self, saver: Saver) -> None:
        self.saver = saver
        self.writers: dict[Key, str] = {}
        self.lock = threading.RLock()

    def setup(self) -> None: ...

    def writer(self, key: Key) -> str | None:
        return self.writers.get(key)

    @contextmanager
    def writing(self, key: Key, expected: Expected | None = None) -> Iterator[Head]:  # noqa: ARG002  # nothing is sent anywhere
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

    def newest_checkpoints(self) -> dict[str, str] | None:
        if not isinstance(self.saver, InMemorySaver):
            return None
        stored = {key: spaces.get("", {}) for key, spaces in self.saver.storage.items()}
        return {thread_id: max(ids) for thread_id, ids in stored.items() if ids}

    def _newest(self, key: Key) -> str | None:
        thread_id, namespace = key
        if isinstance(self.saver, InMemorySaver):  # its ids are at hand: nothing to load
            return max(self.saver.storage.get(thread_id, {}).get(namespace, {}), default=None)
        newest = self.saver.get_tuple(
            {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
        )
        return newest.checkpoint["id"] if newest else None


Execute = Callable[[str, Sequence[str]], Any]
"""Function that runs one of the SQL statements above with its parameters, and returns the cursor.
"""


class SqlHeads(ABC):
    """The heads of threads in a saver that uses a database. The writers are in a table beside the
    saver's own tables.
    """

    @abstractmethod
    def setup(self) -> None:
        """Create missing tables."""

    def writer(self, key: Key) -> str | None:
        """Return the name of the last write to a thread, None if there is none."""
        with self._reading() as execute:
            row = execute(WRITER, key).fetchone()
        return row[0] if row else None

    @contextmanager
    def writing(self, key: Key, expected: Expected | None = None) -> Iterator[Head]:  # noqa: ARG002  # see PostgresHeads
        """Lock the thread's head until the block ends. What the block writes is stored as a whole;
        if the block raises, nothing is stored.

        With the `expected` head, PostgreSQL compares it in the pipeline that writes, which saves a
        round trip. Raises `HeadMovedError` at the end of the block if the head is another one.
        """
        with self._transaction(lock_name(key)) as (execute, saver):
            newest, writer = execute(HEAD, (*key, *key)).fetchone()
            yield Head(newest, writer, saver, lambda name: execute(CLAIM, (*key, name)))

    def delete(self, thread_id: str) -> None:
        """Delete a thread and the record of its writer. Waits until a write of it is over."""
        with self._transaction(lock_name((thread_id, ""))) as (execute, saver):
            saver.delete_thread(thread_id)
            execute(FORGET, (thread_id,))

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        """Return the ids of a thread's checkpoints, newest first, without decoding them."""
        with self._reading() as execute:
            return [row[0] for row in execute(CHECKPOINT_IDS, (thread_id,))]

    def newest_checkpoints(self) -> dict[str, str] | None:
        """Return the id of the newest checkpoint of each thread, without decoding one."""
        with self._reading() as execute:
            return {str(row[0]): str(row[1]) for row in execute(NEWEST, ())}

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Execute]:
        """Yield a function that runs SQL statements. The statements may only read."""

    @abstractmethod
    def _transaction(self, name: str) -> AbstractContextManager[tuple[Execute, Saver]]:
        """Begin a transaction that excludes other transactions with the same `name`. Yield a
        function that runs SQL statements in the transaction, and a saver that writes in it.
        """


Heads = ProcessHeads | SqlHeads
"""The classes through which the saver guard reads and compares heads."""


class _WithinTransaction(SqliteSaver):
    """A SQLite saver whose writes belong to a transaction that the caller begins and ends."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002  # its caller commits
        """Return a cursor that neither locks nor commits."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


class SqliteHeads(SqlHeads):
    """The heads of threads in a SQLite file, read in transactions on the saver's own connection.

    The transactions hold the saver's own lock. With a separate lock, a transaction could begin
    while other OS threads read on the same connection. SQLite refuses that ("database is locked")
    or mixes up the results ("another row available").
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
    """Make a call, and make it once more if a PostgreSQL connection was lost. The call must be
    idempotent. In the second call, the pool waits until the server is back.
    """
    try:
        return call()
    except Exception as error:
        if not is_lost_connection(error):
            raise
    return call()


def is_lost_connection(error: Exception) -> bool:
    """Return whether an error says that a PostgreSQL connection broke. If so, it is not known
    whether the server stored the data that was sent.
    """
    classes = [cls for cls in type(error).__mro__ if cls.__name__ == "OperationalError"]
    if not any(cls.__module__.partition(".")[0] == "psycopg" for cls in classes) or type(
        error
    ).__module__.startswith("psycopg_pool"):
        return False  # the pool gave up: the caller has waited long enough
    state = getattr(error, "sqlstate", None)
    return state is None or state.startswith("08") or state in _SERVER_GONE
