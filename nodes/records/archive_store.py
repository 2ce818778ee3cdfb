"""Originals in a LangGraph store: many items a call, each call one transaction where the store has them; and in files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import LongtableError, Reason
from longtable.base.store_keys import Namespace
from longtable.memory.archive import put_all
from longtable.memory.compaction import Job, Outcome
from longtable.memory.search import Original


@dataclass(frozen=True)
class StoreArchive:
    """See `longtable.memory.archive.Archive`."""

    store: BaseStore

    def put(self, namespace: Namespace, items: Sequence[tuple[str, dict[str, Any]]], *, embed: bool) -> None:
        """Write items by key."""
        for puts in _batches(self.store, _puts(namespace, items, embed=embed)):
            self.store.batch(puts)

    def get(self, namespace: Namespace, keys: Sequence[str]) -> list[Mapping[str, Any] | None]:
        """Return the item of each key, None where there is none."""
        return _values(self.store.batch([GetOp(namespace, key) for key in keys]))

    def near(self, namespace: Namespace, query: str, limit: int) -> list[Mapping[str, Any]]:
        """Return items by meaning, none where the store has no embedding index."""
        if not embeds(self.store):
            return []
        return _scored(self.store.search(namespace, query=query, limit=limit), namespace)


def keep_originals(archive: StoreArchive, thread_id: str, originals: Sequence[Original]) -> None:
    """Write originals to the archive, by meaning too where the store can; by words alone where its embedding server is down."""
    try:
        put_all(archive, thread_id, originals, embed=True)
    except Exception:  # embeddings are a help: what was said is kept without them
        put_all(archive, thread_id, originals, embed=False)


def embeds(store: BaseStore) -> bool:
    """Return whether a store was made with an embedding index."""
    return bool(getattr(store, "index_config", None))


def _puts(namespace: Namespace, items: Sequence[tuple[str, dict[str, Any]]], *, embed: bool) -> list[PutOp]:
    return [PutOp(namespace, key, value, ["text"] if embed else False) for key, value in items]


def _values(found: Sequence[Any]) -> list[Mapping[str, Any] | None]:
    return [item.value if isinstance(item, Item) else None for item in found]


def _batches(store: BaseStore, puts: list[PutOp]) -> Iterator[list[PutOp]]:
    """Yield one batch; for the store in memory as many as its embedding needs: it fails where a text stands twice in one."""
    if not isinstance(store, InMemoryStore) or not store.index_config:
        yield puts
        return
    while puts:
        texts: set[str] = set()
        later: list[PutOp] = []
        batch: list[PutOp] = []
        for put in puts:
            text = str((put.value or {}).get("text"))
            (later if text in texts else batch).append(put)
            texts.add(text)
        yield batch
        puts = later


def _scored(found: Sequence[SearchItem], namespace: Namespace) -> list[Mapping[str, Any]]:
    # A store fills up with items that are not embedded, unscored, and searches below a namespace as well.
    return [item.value for item in found if item.score is not None and item.namespace == namespace]


class Files(Protocol):
    """Where the files go: `longtable.graph.archive_files.ArchiveFiles`."""

    @property
    def encrypts(self) -> bool:
        """Whether files are encrypted."""
        ...

    def keep(self, thread_id: str, originals: Sequence[Original], *, compaction: str, time: datetime) -> str:
        """Write what a compaction covers, once, and return the file's key."""
        ...


def archived(files: Files | None, outcome: Outcome, job: Job, thread_id: str | None, store: BaseStore | None) -> Outcome:
    """Return the outcome with the key of the file that holds what was compacted, or with the reason why there is none."""
    start, end = job.plan.start, job.plan.end
    if files is None or outcome.record is None or not thread_id or start == end:
        return outcome
    if getattr(store, "encrypts", False) and not files.encrypts:
        return _without_file(outcome, "the store is encrypted and the archive is not: give it the key, ArchiveFiles(folder, key=...)")
    thread = job.thread
    originals = [Original(thread.archived + i + 1, thread.messages[i]) for i in range(start, end)]
    try:
        key = files.keep(thread_id, originals, compaction=outcome.record["id"], time=datetime.fromisoformat(job.time))
    except Exception as error:  # the transcript keeps all, with and without the file
        return _without_file(outcome, str(error) if isinstance(error, LongtableError) else type(error).__name__)
    return replace(outcome, archive=key)


def _without_file(outcome: Outcome, why: str) -> Outcome:
    return replace(outcome, reasons=[*outcome.reasons, Reason(code="archive_failed", message=f"no archive file was written: {why}")])
