"""Keep original messages and old compactions in a LangGraph store. One call writes many items, in
one transaction if the store has transactions.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ArchiveGapError
from longtable.base.stored import Namespace, thread_namespace
from longtable.memory.compaction.merging import Merge
from longtable.memory.records import Compaction
from longtable.memory.search import Original
from longtable.store.records.retired import BATCH, key_of, key_of_id, put_all, to_item


@dataclass(frozen=True)
class StoreArchive:
    """An `Archive` (see `longtable.store.records.retired`) in a LangGraph store."""

    store: BaseStore

    def put(
        self, namespace: Namespace, items: Sequence[tuple[str, dict[str, Any]]], *, embed: bool
    ) -> None:
        """Write items by key. `embed`: index their "text" by meaning."""
        puts = [PutOp(namespace, key, value, ["text"] if embed else False) for key, value in items]
        for batch in _batches(self.store, puts):
            self.store.batch(batch)

    def get(self, namespace: Namespace, keys: Sequence[str]) -> list[Mapping[str, Any] | None]:
        """Return the item of each key, None if there is none."""
        items = self.store.batch([GetOp(namespace, key) for key in keys])
        return [item.value if isinstance(item, Item) else None for item in items]

    def near(self, namespace: Namespace, query: str, limit: int) -> list[tuple[str, float]]:
        """Return the ids and scores of the messages nearest in meaning to the query, the nearest
        first. Messages of namespaces below this one are left out.
        """
        # A store fills up with items that are not embedded, unscored, and searches below a
        # namespace as well.
        items = self.store.search(namespace, query=query, limit=limit)
        return [
            (item.value["id"], item.score)
            for item in items
            if item.score is not None and item.namespace == namespace
        ]

    def embed(self, thread_id: str, originals: Sequence[Original]) -> None:
        """Make live messages searchable by meaning. Messages that already are searchable are
        skipped. (Retired messages are searchable in the archive.)
        """
        namespace = thread_namespace("recall", thread_id)
        for start in range(0, len(originals), BATCH):
            keyed = {
                key_of_id(str(original.message.id)): original
                for original in originals[start : start + BATCH]
            }
            known = self.get(namespace, list(keyed))
            new = [
                (key, to_item(original))
                for (key, original), there in zip(keyed.items(), known, strict=True)
                if there is None
            ]
            texts = [
                (key, {"id": item["id"], "text": item["text"]})
                for key, item in new
                if item["text"].strip()
            ]
            self.put(namespace, texts, embed=True)


def keep_originals(archive: StoreArchive, thread_id: str, originals: Sequence[Original]) -> None:
    """Write originals to the archive, and index them by meaning if the store has such an index. If
    its embedding server fails, the originals are kept all the same, and can be found by words only.
    """
    try:
        put_all(archive, thread_id, originals, embed=True)
    except Exception:  # embeddings are a help: what was said is kept without them
        put_all(archive, thread_id, originals, embed=False)


def embeds(store: BaseStore) -> bool:
    """Return whether a store was made with an embedding index."""
    return bool(getattr(store, "index_config", None))


def _batches(store: BaseStore, puts: list[PutOp]) -> Iterator[list[PutOp]]:
    """Split `puts` into batches: a single batch for most stores. The store in memory fails if a
    text occurs twice in a batch that it embeds, so for this store no batch has a text twice.
    """
    if not isinstance(store, InMemoryStore) or not store.index_config:
        yield puts
        return
    while puts:
        texts: set[str] = set()
        later: list[PutOp] = []
        batch: list[PutOp] = []
        for op in puts:
            text = str((op.value or {}).get("text"))
            (later if text in texts else batch).append(op)
            texts.add(text)
        yield batch
        puts = later


# -- compactions that retired from a thread's state: one item each, by its place among all of them -


def retire_compactions(store: BaseStore, thread_id: str, merge: Merge) -> bool:
    """Write the compactions that retire, and return True. Write nothing and return False if other
    compactions are stored at these places, by another branch of the thread (time travel).
    """
    stored = _stored_compactions(
        store, thread_id, merge.first, merge.first + len(merge.retired) - 1
    )
    if any(
        item and item["id"] != record["id"]
        for item, record in zip(stored, merge.retired, strict=True)
    ):
        return False
    write_compactions(store, thread_id, merge.first, merge.retired)
    return True


def write_compactions(
    store: BaseStore, thread_id: str, first: int, records: Sequence[Compaction]
) -> None:
    """Write compactions to the places from `first` on. Writing them again changes nothing."""
    # As ASCII text: what a model wrote may hold characters that PostgreSQL refuses in JSON.
    items = [
        (key_of(n), {"id": record["id"], "record": json.dumps(record)})
        for n, record in enumerate(records, first)
    ]
    for start in range(0, len(items), BATCH):
        StoreArchive(store).put(
            thread_namespace("records", thread_id), items[start : start + BATCH], embed=False
        )


def read_compactions(store: BaseStore, thread_id: str, count: int) -> list[Compaction]:
    """Return the first `count` compactions of a thread that retired. Raises `ArchiveGapError` if
    any of them is missing.
    """
    stored = _stored_compactions(store, thread_id, 1, count)
    if missing := [(place, place) for place, item in enumerate(stored, 1) if item is None]:
        raise ArchiveGapError(missing, what="compactions")
    return [json.loads(item["record"]) for item in stored if item is not None]


def _stored_compactions(
    store: BaseStore, thread_id: str, first: int, last: int
) -> list[Mapping[str, Any] | None]:
    keys = [key_of(number) for number in range(first, last + 1)]
    archive = StoreArchive(store)
    namespace = thread_namespace("records", thread_id)
    stored: list[Mapping[str, Any] | None] = []
    for start in range(0, len(keys), BATCH):
        stored += archive.get(namespace, keys[start : start + BATCH])
    return stored
