"""The version of what a store's file or database holds, and whether it is encrypted: looked at before anything else is."""

import sqlite3
from dataclasses import dataclass
from typing import Protocol

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from longtable.base.errors import NewerStoreError, PersistenceError, StoreKeyError
from longtable.graph.sealing import new_seal, seal_of

SCHEMA = 2
"""1: version 0.1.0, which did not write its number. 2: merged compactions, the inbox, this table."""
TABLE = "CREATE TABLE IF NOT EXISTS longtable_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"


class Meta(Protocol):
    """The table, within a transaction that keeps other processes out."""

    def get(self, name: str) -> str | None:
        """Return a value."""
        ...

    def put(self, name: str, value: str) -> None:
        """Write a value."""
        ...

    def has_threads(self) -> bool:
        """Return whether anything was stored here before."""
        ...


def opened(meta: Meta, key: str | None) -> EncryptedSerializer | None:
    """Check and note the version, and return the serializer of an encrypted store.

    A store of an earlier version is brought up to this one. Raises `NewerStoreError`, `StoreKeyError`.
    """
    try:
        version = int(meta.get("schema") or 1)
    except ValueError as error:
        raise PersistenceError("the conversation store is damaged: its version is no number. Restore it from a copy") from error
    if version > SCHEMA:
        raise NewerStoreError(found=version, known=SCHEMA)
    if version < SCHEMA:  # nothing of version 1 has to be changed to be read
        meta.put("schema", str(SCHEMA))
    proof = meta.get("key")
    if proof is not None:
        if key is None:
            raise StoreKeyError("the store is encrypted: open it with its key")
        return seal_of(key, proof)
    if key is None:
        return None
    if meta.has_threads():
        raise StoreKeyError("the store is not encrypted: open it without a key, or export its threads and import them into a new store")
    serializer, proof = new_seal(key)
    meta.put("key", proof)
    return serializer


@dataclass(frozen=True)
class SqliteMeta:
    """The table in a SQLite file."""

    connection: sqlite3.Connection

    def get(self, name: str) -> str | None:
        """Return a value."""
        row = self.connection.execute("SELECT value FROM longtable_meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def put(self, name: str, value: str) -> None:
        """Write a value."""
        self.connection.execute("INSERT OR REPLACE INTO longtable_meta (name, value) VALUES (?, ?)", (name, value))

    def has_threads(self) -> bool:
        """Return whether anything was stored here before."""
        tables = self.connection.execute("SELECT name FROM sqlite_master WHERE name IN ('checkpoints', 'store')").fetchall()
        return any(self.connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for (table,) in tables)


class ReadOnlyMeta(SqliteMeta):
    """The table in a SQLite file that cannot be written; version 0.1.0 made none."""

    def get(self, name: str) -> str | None:
        """Return a value."""
        there = self.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'longtable_meta'").fetchone()
        return super().get(name) if there else None

    def put(self, name: str, value: str) -> None:
        """Do nothing: the file cannot be written."""


def sqlite_schema(connection: sqlite3.Connection, key: str | None, *, read_only: bool = False) -> EncryptedSerializer | None:
    """Look at a SQLite file: see `opened`. The connection is in autocommit mode."""
    if read_only:
        return opened(ReadOnlyMeta(connection), key)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(TABLE)
        found = opened(SqliteMeta(connection), key)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return found
