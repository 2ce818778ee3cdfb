"""Find threads: list, projects and search. Only the search reads checkpoints."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import SearchOp

from longtable.base.errors import ConfigError
from longtable.base.stored import THREADS
from longtable.base.words import tokens_of
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import load_thread
from longtable.memory.messages.marks import marks_of
from longtable.memory.search import Index, Original, text_of
from longtable.store.damage import Report, log_damaged, skip_unreadable
from longtable.store.persistence import Persistence
from longtable.store.records.retired import DAMAGED
from longtable.store.records.thread_index import may_see
from longtable.store.storage_errors import storage_errors
from longtable.tools.excerpts import short_excerpt

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


@dataclass(frozen=True)
class SearchHit:
    """A place in a transcript that matches a search. `number` is the number of the message, counted
    from 1. `score` is BM25's: the higher, the better.
    """

    thread_id: str
    title: str
    turn: int
    number: int
    role: str
    time: str
    excerpt: str
    score: float


def list_threads(
    persistence: Persistence | StoredThreads,
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
        (items,) = threads_in(persistence).batch([SearchOp(THREADS, limit=MOST_THREADS)])
    words = text.casefold().split()
    infos = (info_of(item.key, item.value) for item in items or [] if item.namespace == THREADS)
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
    persistence: Persistence | StoredThreads,
    *,
    owner: str | None = None,
    all_owners: bool = False,
) -> list[ProjectInfo]:
    """Return the projects of the threads that an owner may see, sorted by name."""
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return projects_of(infos)


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


def search_threads(
    persistence: Persistence | StoredThreads,
    query: str,
    *,
    limit: int = 20,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[SearchHit]:
    """Return the turns that match a query best, in all transcripts that an owner may see, both live
    and archived messages.

    Each turn is returned once, with its best message. Excluded messages are left out. Every
    transcript is read, so the time grows with their total length. `on_damaged` is called for each
    thread that cannot be read; by default it writes to the log.
    """
    if limit < 0:
        raise ConfigError(f"a search takes no negative limit, found {limit}")
    if not tokens_of(query):
        return []
    threads = threads_in(persistence)
    infos = list_threads(threads, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    originals: list[Original] = []
    places: list[tuple[ThreadInfo, int]] = []
    for info in reversed(infos):  # the oldest first: of equals the index prefers the newest
        with skip_unreadable(on_damaged):
            whole, _ = load_thread(threads, info.thread_id, info.owner, all_owners=all_owners)
            for number, message in enumerate(whole.shown, 1):
                originals.append(Original(len(places) + 1, message))
                places.append((info, number))
    best: dict[tuple[str, int], SearchHit] = {}
    for original, score in Index.build(originals).search(query, len(originals)):
        info, number = places[original.number - 1]
        if len(best) >= limit:
            break
        if (info.thread_id, original.turn) not in best:
            best[info.thread_id, original.turn] = SearchHit(
                thread_id=info.thread_id,
                title=info.title,
                turn=original.turn,
                number=number,
                role=original.message.type,
                time=str(marks_of(original.message).get("time", "")),
                excerpt=short_excerpt(text_of(original.message), query),
                score=round(score, 3),
            )
    return list(best.values())
