"""Encrypt the stored data of threads: checkpoints, the writes of tasks, and the values of the
store. Ids, kinds and times stay readable.

LangGraph's EncryptedSerializer encrypts, with AES in EAX mode. The key is derived from a passphrase
and a salt; the salt is kept beside the data.
"""

import base64
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import BaseStore, Item, Op, PutOp, Result

from longtable.base.concurrency import a_from
from longtable.base.errors import (
    ConfigError,
    MissingExtraError,
    NewerStoreError,
    PersistenceError,
    StoreKeyError,
)
from longtable.base.stored import Namespace
from longtable.store.damage import UNREADABLE
from longtable.store.loading import MessageSerializer
from longtable.store.records.item_values import IsWanted, KeyValue, newest_of, values_in
from longtable.store.records.retired import DAMAGED

LEAST_CHARS = 16
"""The least number of characters of a passphrase."""
SEALED = "sealed"
_WORD = "longtable"
UNDECODABLE = (*UNREADABLE, NotImplementedError)
"""The exceptions that a serializer raises if it cannot decode data. It raises
`NotImplementedError` for an unknown type.
"""
_SCRYPT = {"n": 2**14, "r": 8, "p": 1}


def check_key(key: str | None) -> str | None:
    """Return the passphrase, or None if none is given. Raises `ConfigError` if the passphrase is
    too short; the message does not contain the passphrase.
    """
    if key is not None and len(key) < LEAST_CHARS:
        raise ConfigError(
            f"the key of a store has at least {LEAST_CHARS} characters, found {len(key)}"
        )
    return key


def new_encryption(key: str) -> tuple[EncryptedSerializer, str]:
    """Return the serializer of a new store, and a proof of its key. The proof is a text by which
    `encryption_of` recognises the right key; it must be kept beside the encrypted data.
    """
    salt = os.urandom(16)
    serializer = _serializer(key, salt)
    return serializer, json.dumps({"salt": salt.hex(), "word": encrypted(serializer, _WORD)})


def encryption_of(key: str, proof: str) -> EncryptedSerializer:
    """Return the serializer of an existing store, which has this proof (see `new_encryption`).
    Raises `StoreKeyError` if the proof was made with another key.
    """
    try:
        stored = json.loads(proof)
        serializer = _serializer(key, bytes.fromhex(stored["salt"]))
        word = decrypted(serializer, stored["word"])
    except UNDECODABLE:
        word = None
    if word != _WORD:
        raise StoreKeyError("the key is not the one this store was encrypted with: give that one")
    return serializer


class EncryptedStore(BaseStore):
    """A store that encrypts its values. Therefore it cannot be searched by meaning."""

    encrypts = True

    def __init__(self, inner: BaseStore, serializer: SerializerProtocol) -> None:
        self.inner = inner
        self.serializer = serializer

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; see `BaseStore`. An item that cannot be decrypted has the value
        `{DAMAGED: True}`.
        """
        results = self.inner.batch(list(map(self._encrypt, ops)))
        return list(map(self._decrypt, results))

    abatch: Any = a_from(batch)

    def values_in(self, namespace: Namespace) -> Iterator[KeyValue]:
        """See `longtable.store.records.item_values`."""
        return ((key, self._value(value)) for key, value in values_in(self.inner, namespace))

    def newest_in(self, namespace: Namespace, is_wanted: IsWanted, most: int) -> list[KeyValue]:
        """See `longtable.store.records.item_values`. All values are decrypted: their order is
        encrypted with them.
        """
        return newest_of(self.values_in(namespace), is_wanted, most)

    def _encrypt(self, op: Op) -> Op:
        if not isinstance(op, PutOp) or op.value is None:
            return op
        return op._replace(value={SEALED: encrypted(self.serializer, op.value)}, index=False)

    def _decrypt(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self._decrypt(item) for item in result]
        if isinstance(result, Item) and SEALED in result.value:
            result = copy(result)
            result.value = self._value(result.value)
        return result

    def _value(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a stored value decrypted, `{DAMAGED: True}` if it cannot be decrypted."""
        if SEALED not in value:
            return value
        try:
            plain: dict[str, Any] = decrypted(self.serializer, value[SEALED])
        except UNDECODABLE:
            return {DAMAGED: True}
        return plain


def _serializer(key: str, salt: bytes) -> EncryptedSerializer:
    derived = hashlib.scrypt(key.encode(), salt=salt, dklen=32, **_SCRYPT)
    try:
        return EncryptedSerializer.from_pycryptodome_aes(MessageSerializer(), key=derived)
    except ImportError as error:
        raise MissingExtraError("an encrypted store cannot be opened", "encryption") from error


def encrypted(serializer: SerializerProtocol, value: Any) -> str:
    """Encrypt a value, and return it as text."""
    kind, data = serializer.dumps_typed(value)
    return f"{kind}:{base64.b64encode(data).decode()}"


def decrypted(serializer: SerializerProtocol, text: str) -> Any:
    """Return the value that `encrypted` turned into this text. Raises `ValueError` if the text was
    encrypted with another key.
    """
    kind, _, data = text.partition(":")
    return serializer.loads_typed((kind, base64.b64decode(data)))


# -- the version of a store, and whether it is encrypted ------------------------------------------

SCHEMA = 2
"""The version of a store's format. 1: release 0.1.0, which did not write this number. 2: adds
merged compactions, the inbox and this table.
"""
META_TABLE = (
    "CREATE TABLE IF NOT EXISTS longtable_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
)


@dataclass(frozen=True)
class Meta:
    """The table with a store's version and the proof of its key. It is used within a transaction
    that keeps other processes out.
    """

    execute: Callable[[str, Sequence[str]], Any]
    """Function that runs a statement with `?` for its parameters. The rows are tuples."""
    tables_query: str
    """SQL that lists the names of the database's tables."""
    writable: bool = True

    def get(self, name: str) -> str | None:
        """Return a value, None if it is missing. A store of version 0.1.0 has no such table."""
        if "longtable_meta" not in self._tables():
            return None
        row = self.execute("SELECT value FROM longtable_meta WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def put(self, name: str, value: str) -> None:
        """Write a value. Does nothing if the store cannot be written."""
        put = """INSERT INTO longtable_meta (name, value) VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
        if self.writable:
            self.execute(put, (name, value))

    def is_complete(self, key: str | None) -> bool:
        """Return whether `checked_serializer` has nothing to write."""
        has_key = key is None or self.get("key") is not None
        return has_key and self.get("schema") == str(SCHEMA)

    def has_threads(self) -> bool:
        """Return whether the database holds any checkpoint or item of a store."""
        there = {"checkpoints", "store"} & self._tables()
        return any(self.execute(f"SELECT 1 FROM {table} LIMIT 1", ()).fetchone() for table in there)

    def _tables(self) -> set[str]:
        return {row[0] for row in self.execute(self.tables_query, ())}


def checked_serializer(meta: Meta, key: str | None) -> EncryptedSerializer | None:
    """Check the store's version and key. Return the serializer of an encrypted store, None if the
    store is not encrypted.

    A store of an earlier version is marked with the present version. A new store with a `key` gets
    a proof of the key. Raises `NewerStoreError` if a later version wrote the store, `StoreKeyError`
    if the key is wrong or missing, or if there is a key but the store is not encrypted.
    """
    try:
        version = int(meta.get("schema") or 1)
    except ValueError as error:
        raise PersistenceError(
            "the conversation store is damaged: its version is no number. Restore it from a copy"
        ) from error
    if version > SCHEMA:
        raise NewerStoreError(found=version, known=SCHEMA)
    if version < SCHEMA:  # nothing of version 1 has to be changed to be read
        meta.put("schema", str(SCHEMA))
    proof = meta.get("key")
    if proof is not None:
        if key is None:
            raise StoreKeyError("the store is encrypted: open it with its key")
        return encryption_of(key, proof)
    if key is None:
        return None
    if meta.has_threads():
        raise StoreKeyError(
            "the store is not encrypted: open it without a key, or export its threads and import"
            " them into a new store"
        )
    serializer, proof = new_encryption(key)
    meta.put("key", proof)
    return serializer


SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def sqlite_serializer(
    connection: sqlite3.Connection, key: str | None, *, read_only: bool = False
) -> EncryptedSerializer | None:
    """Check a SQLite file as `checked_serializer` does. The connection must be in autocommit mode.
    A write transaction is begun only if there is something to write.
    """
    meta = Meta(connection.execute, SQLITE_TABLES, writable=not read_only)
    if read_only or meta.is_complete(key):
        return checked_serializer(meta, key)
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(META_TABLE)
        serializer = checked_serializer(meta, key)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return serializer
