"""List the threads of a store, and its projects. Only the index is read, and no thread."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.stored import THREADS
from longtable.store.persistence import Persistence
from longtable.store.records.item_values import IsWanted, KeyValue, newest_in
from longtable.store.records.retired import DAMAGED
from longtable.store.records.thread_index import Entry, may_see, owner_of
from longtable.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from longtable.graph.thread_state import StoredThreads

MOST_THREADS = 1_000_000
"""The most threads in one listing."""


@dataclass(frozen=True)
class ThreadInfo:
    """One line of the thread list. Times are in ISO 8601, in UTC."""

    thread_id: str
    title: str
    created: str
    updated: str
    turns: int
    messages: int = 0
    """The number of messages in the whole transcript when the last turn ended."""
    model: str = ""
    """The name of the model that answered last, empty if the model does not tell its name."""
    owner: str | None = None
    project: str = ""
    damaged: bool = False
    """Whether the thread's entry in the index cannot be read. All other fields are then empty, but
    the thread itself may be intact.
    """


def list_threads(
    persistence: "Persistence | StoredThreads",
    *,
    limit: int = 100,
    offset: int = 0,
    text: str = "",
    project: str | None = None,
    owner: str | None = None,
    all_owners: bool = False,
) -> list[ThreadInfo]:
    """Return threads of a store, the most recently used first. The first `offset` threads are
    skipped, and at most `limit` are returned.

    `text`: only threads whose title contains all these words, in any case. `project`: only threads
    of this project. `owner`: only threads of this owner and threads without an owner; None means
    only threads without an owner. `all_owners=True` returns the threads of all owners, for
    operators of the store.
    """
    if limit < 0 or offset < 0:
        raise ConfigError(
            f"a page of threads takes no negative limit or offset, found limit={limit},"
            f" offset={offset}"
        )
    is_wanted = wanted_by(text=text, project=project, owner=owner, all_owners=all_owners)
    newest = _newest(persistence, is_wanted, offset + limit)
    return [info_of(thread_id, entry) for thread_id, entry in newest[offset:]]


alist_threads = a_from(list_threads)


def wanted_by(
    *, text: str = "", project: str | None = None, owner: str | None, all_owners: bool = False
) -> IsWanted:
    """Return the function that chooses threads by their entries; see `list_threads`."""
    words = text.casefold().split()

    def is_wanted(_: str, entry: Entry) -> bool:
        return (
            is_visible(entry, owner, all_owners=all_owners)
            and project in (None, str(entry.get("project") or ""))
            and (not words or _names_all(str(entry.get("title") or ""), words))
        )

    return is_wanted


def visible_entries(
    persistence: "Persistence | StoredThreads", owner: str | None, *, all_owners: bool
) -> list[KeyValue]:
    """Return id and entry of each thread that an owner may see, the most recently used first."""
    return _newest(persistence, wanted_by(owner=owner, all_owners=all_owners), MOST_THREADS)


def is_visible(entry: Entry, owner: str | None, *, all_owners: bool) -> bool:
    """Return whether an owner may see a thread, by its entry in the index. The owner of a damaged
    entry is unknown: operators see it, and everybody if threads have no owners.
    """
    if all_owners:
        return True
    return owner is None if DAMAGED in entry else may_see(owner_of(entry), owner)


def _newest(
    persistence: "Persistence | StoredThreads", is_wanted: IsWanted, most: int
) -> list[KeyValue]:
    """Return the wanted entries of the index, the most recently used first."""
    with storage_errors():
        if isinstance(persistence, Persistence):
            store: BaseStore | None = persistence.store
        else:
            store = persistence.optional_store
        return newest_in(store, THREADS, is_wanted, most) if store is not None else []


def _names_all(title: str, words: Sequence[str]) -> bool:
    """Return whether a title contains all these words. The words are in lower case."""
    title = title.casefold()
    return all(word in title for word in words)


@dataclass(frozen=True)
class ProjectInfo:
    """One project; the name "" stands for threads without a project. `updated` is when one of the
    project's threads was last used.
    """

    project: str
    threads: int
    updated: str


def list_projects(
    persistence: "Persistence | StoredThreads",
    *,
    owner: str | None = None,
    all_owners: bool = False,
) -> list[ProjectInfo]:
    """Return the projects of the threads that an owner may see, sorted by name."""
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return projects_of(infos)


alist_projects = a_from(list_projects)


def projects_of(infos: Iterable[ThreadInfo]) -> list[ProjectInfo]:
    """Return the projects of these threads, sorted by name."""
    by_name: dict[str, list[str]] = {}
    for info in infos:
        by_name.setdefault(info.project, []).append(info.updated)
    return [
        ProjectInfo(name, len(updated), max(updated)) for name, updated in sorted(by_name.items())
    ]


def info_of(thread_id: str, entry: Mapping[str, Any]) -> ThreadInfo:
    """Return an entry of the index as a line of the thread list. Fields that an entry of an earlier
    version lacks are empty.
    """
    turns = entry.get("turns")
    messages = entry.get("messages")
    owner = entry.get("owner")
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
