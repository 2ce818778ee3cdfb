"""Compactions that retired from a thread's state, in the store: one item each, by its place among all of them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from longtable.base.errors import ArchiveGapError
from longtable.base.store_keys import thread_namespace
from longtable.memory.archive import BATCH, key_of
from longtable.memory.merging import Merge
from longtable.memory.thread import Compaction


def retire(store: BaseStore, thread_id: str, merge: Merge) -> bool:
    """Write what retires; False where another branch of the thread (time travel) has its own records at these places."""
    for batch in gets(thread_id, merge.first, merge.first + len(merge.retired) - 1):
        if _taken(store.batch(batch), merge):
            return False
    for writes in puts(thread_id, merge.first, merge.retired):
        store.batch(writes)
    return True


def puts(thread_id: str, first: int, records: Sequence[Compaction]) -> Iterator[list[PutOp]]:
    """Yield what writes them, in batches; writing one again changes nothing."""
    for start in range(0, len(records), BATCH):
        batch = enumerate(records[start : start + BATCH], first + start)
        # As ASCII text: what a model wrote may hold characters that PostgreSQL refuses in JSON.
        yield [PutOp(_namespace(thread_id), key_of(n), {"id": record["id"], "record": json.dumps(record)}, False) for n, record in batch]


def gets(thread_id: str, first: int, last: int) -> Iterator[list[GetOp]]:
    """Yield what reads those from place `first` to `last`, in batches."""
    for start in range(first, last + 1, BATCH):
        yield [GetOp(_namespace(thread_id), key_of(number)) for number in range(start, min(last + 1, start + BATCH))]


def read(found: Iterable[Any]) -> list[Compaction]:
    """Return the records that `gets` found, from the first. Raises `ArchiveGapError` where one is missing."""
    items = [item.value if isinstance(item, Item) else None for item in found]
    if missing := [(place, place) for place, item in enumerate(items, 1) if item is None]:
        raise ArchiveGapError(missing, what="compactions")
    return [json.loads(item["record"]) for item in items if item is not None]


def _namespace(thread_id: str) -> tuple[str, ...]:
    return thread_namespace("records", thread_id)


def _taken(found: Sequence[Any], merge: Merge) -> bool:
    there = (item.value["id"] if isinstance(item, Item) else None for item in found)
    return any(id_ not in (None, record["id"]) for id_, record in zip(there, merge.retired, strict=True))
