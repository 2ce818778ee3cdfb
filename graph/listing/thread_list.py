"""List the threads of a store, and its projects. Only the index is read, and no thread."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langgraph.store.base import SearchItem, SearchOp

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.stored import THREADS
from longtable.store.persistence import Persistence
from longtable.store.records.retired import DAMAGED
from longtable.store.records.thread_index import may_see
from longtable.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from longtable.graph.thread_state import StoredThreads

MOST_THREADS = 1_000_000
"""The most threads in one listing. The index is read in one query, because its own order is by
whole seconds, so that pages of it would overlap.
"""


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
    with storage_errors():
        infos = _index(persistence)
    words = text.casefold().split()
    # The owner of a damaged entry is unknown: show it to operators, and where threads have no
    # owners.
    visible = (
        info
        for info in infos
        if all_owners or (owner is None if info.damaged else may_see(info.owner, owner))
    )
    matching = (
        info for info in visible if project in (None, info.project) and _names_all(info, words)
    )
    return sorted(matching, key=lambda info: (info.updated, info.thread_id), reverse=True)[
        offset : offset + limit
    ]


alist_threads = a_from(list_threads)


def _index(persistence: "Persistence | StoredThreads") -> list[ThreadInfo]:
    """Return the lines of all threads in the index."""
    source = persistence.store if isinstance(persistence, Persistence) else persistence
    (items,) = source.batch([SearchOp(THREADS, limit=MOST_THREADS)])
    found = cast("list[SearchItem]", items or [])
    return [info_of(item.key, item.value) for item in found if item.namespace == THREADS]


def _names_all(info: ThreadInfo, words: Sequence[str]) -> bool:
    """Return whether the title of a thread contains all these words. The words are in lower
    case.
    """
    title = info.title.casefold()
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
