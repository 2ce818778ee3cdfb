"""List the threads of a store from its index, newest first: no checkpoint is read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import Item

from longtable.base.errors import ConfigError
from longtable.base.store_keys import THREADS
from longtable.graph.persistence import Persistence, storage_errors
from longtable.memory.archive import DAMAGED
from longtable.nodes.records.thread_index import may_see

MOST_THREADS = 1_000_000
"""Of one listing: the index is read in one query, for its own order is by whole seconds and pages of it would overlap."""


@dataclass(frozen=True)
class ThreadInfo:
    """One line of the thread list. Times are ISO 8601, UTC."""

    thread_id: str
    title: str
    created: str
    updated: str
    turns: int
    messages: int = 0
    """Of the whole transcript, when its last turn ended."""
    model: str = ""
    """Which answered last; empty where it does not say."""
    owner: str | None = None
    project: str = ""
    damaged: bool = False
    """Whether its entry in the list cannot be read; all other fields are then empty. The thread itself may be intact."""


def list_threads(
    persistence: Persistence,
    *,
    limit: int = 100,
    offset: int = 0,
    text: str = "",
    project: str | None = None,
    owner: str | None = None,
    all_owners: bool = False,
) -> list[ThreadInfo]:
    """Return threads of a store, the most recently used first: `limit` of them after the first `offset`.

    `text`: only those with all these words in their title, whatever the case. `project`: only its own. `owner`: theirs and nobody's;
    without one only nobody's. `all_owners` is for those who run the store.
    """
    with storage_errors():
        found = persistence.store.search(THREADS, limit=MOST_THREADS)
    return _page(_infos(found, text, project, owner, all_owners=all_owners), limit, offset)


async def alist_threads(
    persistence: Persistence,
    *,
    limit: int = 100,
    offset: int = 0,
    text: str = "",
    project: str | None = None,
    owner: str | None = None,
    all_owners: bool = False,
) -> list[ThreadInfo]:
    """Return threads of a store: see `list_threads`."""
    with storage_errors():
        found = await persistence.store.asearch(THREADS, limit=MOST_THREADS)
    return _page(_infos(found, text, project, owner, all_owners=all_owners), limit, offset)


def info_of(thread_id: str, entry: Mapping[str, Any]) -> ThreadInfo:
    """Return an item of the index as a line of the list; an item of an earlier version lacks some of it."""
    turns, messages, owner = entry.get("turns"), entry.get("messages"), entry.get("owner")
    return ThreadInfo(
        thread_id=thread_id,
        title=str(entry.get("title") or ""),
        created=str(entry.get("created") or ""),
        updated=str(entry.get("updated") or ""),
        turns=turns if isinstance(turns, int) else 0,
        messages=messages if isinstance(messages, int) else 0,
        model=str(entry.get("model") or ""),
        owner=owner if isinstance(owner, str) else None,
        project=str(entry.get("project") or ""),
        damaged=DAMAGED in entry,
    )


def _infos(items: Iterable[Item], text: str, project: str | None, owner: str | None, *, all_owners: bool) -> list[ThreadInfo]:
    words = text.casefold().split()
    infos = (info_of(item.key, item.value) for item in items if item.namespace == THREADS)
    # The owner of a damaged entry is unknown: show it to operators, and where threads have no owners.
    seen = [info for info in infos if all_owners or (owner is None if info.damaged else may_see(info.owner, owner))]
    wanted = [
        info for info in seen if project in (None, info.project) and (not words or all(word in info.title.casefold() for word in words))
    ]
    return sorted(wanted, key=lambda info: (info.updated, info.thread_id), reverse=True)


def _page(infos: list[ThreadInfo], limit: int, offset: int) -> list[ThreadInfo]:
    if limit < 0 or offset < 0:
        raise ConfigError(f"a page of threads takes no negative limit or offset, found limit={limit}, offset={offset}")
    return infos[offset : offset + limit]
