"""The threads of a store: list, search, rename, import, delete and prune them. No model and no
database is needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from longtable.base.concurrency import a_from
from longtable.base.context import Context
from longtable.base.errors import ConfigError, DamagedThreadError, ThreadNotFoundError
from longtable.base.stored import (
    BELLS,
    CHECKPOINT,
    KINDS,
    NODE,
    THREADS,
    TURNS,
    USAGE,
    label,
    thread_namespace,
)
from longtable.graph.export.thread_file import import_lines
from longtable.graph.thread_state import StoredThreads, is_pending, is_stored, threads_in
from longtable.graph.transcripts import (
    PAGE,
    REDUCING,
    archive_messages,
    find_thread,
    index_entry,
    load_thread,
    save_thread,
    spent_in,
    usage_key,
)
from longtable.memory.counting.usage import FINEST, Spent, added
from longtable.memory.messages.marks import marks_of
from longtable.memory.search import Index, Original, text_of, tokens_of
from longtable.nodes.arriving.rate_limit import turns_key
from longtable.nodes.closing.spending import rows_of
from longtable.store.damage import Report, log_damaged, skip_unreadable
from longtable.store.persistence import Persistence
from longtable.store.records.retired import DAMAGED, key_of
from longtable.store.records.thread_index import may_see, owner_of, title_of
from longtable.store.storage_errors import storage_errors

if TYPE_CHECKING:
    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.results.result_store import ResultStore
from longtable.tools.excerpts import short_excerpt

REDUCED = "reduced"
"""Key in the index: time and number of the last turn before a thread's checkpoints were dropped."""
MOST_THREADS = 1_000_000
"""Of one listing: the index is read in one query, for its own order is by whole seconds and pages
of it would overlap.
"""


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
    """Whether its entry in the list cannot be read; all other fields are then empty. The thread
    itself may be intact.
    """


@dataclass(frozen=True)
class SearchHit:
    """A place in a transcript that answers a search. `number`: the message's, from 1; `score`:
    BM25's, the higher the better.
    """

    thread_id: str
    title: str
    turn: int
    number: int
    role: str
    time: str
    excerpt: str
    score: float


# -- the list --------------------------------------------------------------------------------------


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
    """Return threads of a store, the most recently used first: `limit` of them after the first
    `offset`.

    `text`: only those with all these words in their title, whatever the case. `project`: only its
    own. `owner`: theirs and nobody's; without one only nobody's. `all_owners` is for those who run
    the store.
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
        info
        for info in visible
        if project in (None, info.project) and all(word in info.title.casefold() for word in words)
    )
    return sorted(matching, key=lambda info: (info.updated, info.thread_id), reverse=True)[
        offset : offset + limit
    ]


alist_threads = a_from(list_threads)


@dataclass(frozen=True)
class ProjectInfo:
    """One project: "" for threads without one. `updated`: when one of its threads was last used."""

    project: str
    threads: int
    updated: str


def list_projects(
    persistence: Persistence | StoredThreads,
    *,
    owner: str | None = None,
    all_owners: bool = False,
) -> list[ProjectInfo]:
    """Return the projects of the threads that an owner may see, by name."""
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return projects_of(infos)


def projects_of(infos: Iterable[ThreadInfo]) -> list[ProjectInfo]:
    """Return the projects of these threads, by name."""
    by_name: dict[str, list[str]] = {}
    for info in infos:
        by_name.setdefault(info.project, []).append(info.updated)
    return [
        ProjectInfo(name, len(updated), max(updated)) for name, updated in sorted(by_name.items())
    ]


alist_projects = a_from(list_projects)


def info_of(thread_id: str, entry: Mapping[str, Any]) -> ThreadInfo:
    """Return an item of the index as a line of the list; an item of an earlier version lacks some
    of it.
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


# -- one thread ------------------------------------------------------------------------------------


def rename_thread(
    persistence: Persistence | StoredThreads,
    thread_id: str,
    title: str,
    *,
    owner: str | None = None,
    all_owners: bool = False,
) -> str:
    """Give a thread another title and return it, on one line and clipped. Raises
    `ThreadNotFoundError`, `ConfigError` for a blank one.
    """
    return change_thread(
        persistence, thread_id, title=title, owner=owner, all_owners=all_owners
    ).title


def move_thread(
    persistence: Persistence | StoredThreads,
    thread_id: str,
    project: str,
    *,
    owner: str | None = None,
    all_owners: bool = False,
) -> None:
    """Move a thread to another project, "" for none. Raises `ThreadNotFoundError`, `ConfigError`
    for a name that cannot be one.
    """
    change_thread(persistence, thread_id, project=project, owner=owner, all_owners=all_owners)


def change_thread(
    persistence: Persistence | StoredThreads,
    thread_id: str,
    *,
    title: str | None = None,
    project: str | None = None,
    owner: str | None = None,
    all_owners: bool = False,
) -> ThreadInfo:
    """Rename a thread, move it, or both in one write; return its line of the list. Raises what
    `rename_thread` and `move_thread` raise.
    """
    threads = threads_in(persistence)
    with threads.alone(thread_id):
        return change(
            threads, thread_id, title=title, project=project, owner=owner, all_owners=all_owners
        )


def delete_thread(
    persistence: Persistence | StoredThreads,
    thread_id: str,
    *,
    owner: str | None = None,
    all_owners: bool = False,
    results: "ResultStore | None" = None,
    archive: "ArchiveFiles | None" = None,
) -> None:
    """Delete a thread with all that is stored of it, its results and archive files too where those
    are given.

    Raises `ThreadNotFoundError`, and `ThreadBusyError` while a turn of it is under way. Killed half
    way, it can be called again.
    """
    threads = threads_in(persistence)
    with threads.alone(thread_id):
        delete(threads, thread_id, owner, all_owners=all_owners, results=results, archive=archive)


def import_thread(
    persistence: Persistence | StoredThreads,
    lines: Iterable[str],
    *,
    thread_id: str | None = None,
    owner: str | None = None,
) -> str:
    """Store a thread that was exported and return its id. `thread_id`, `owner`: instead of those in
    the file.

    Raises `ThreadFormatError` for a file that is damaged or of a newer schema, `ThreadExistsError`
    for an id that is taken; nothing is written then. Where people import their own files, give
    their `owner`.
    """
    whole = import_lines(lines, thread_id=thread_id, owner=owner)
    threads = threads_in(persistence)
    with threads.alone(whole.thread_id):
        save_thread(threads, whole)
    return whole.thread_id


arename_thread = a_from(rename_thread)
adelete_thread = a_from(delete_thread)
aimport_thread = a_from(import_thread)


def change(
    threads: StoredThreads,
    thread_id: str,
    *,
    title: str | None,
    project: str | None,
    owner: str | None,
    all_owners: bool = False,
) -> ThreadInfo:
    """Check and write title and project into the index, None for what stays; return the thread's
    line of the list.
    """
    new_title = title_of(title) if title is not None else None
    if new_title == "":
        raise ConfigError(
            "a title needs at least one character that is not white space", says="title_blank"
        )
    new_project = Context(project=project).project or "" if project is not None else None
    _, entry = find_thread(threads, thread_id, owner, all_owners=all_owners)
    if not entry:
        raise ConfigError(
            f"thread {thread_id!r} has no place in the index: it was run without a store, compile"
            " the graph with one",
            says="not_indexed",
        )
    fields = {
        name: value
        for name, value in (("title", new_title), ("project", new_project))
        if value is not None
    }
    threads.batch([PutOp(THREADS, thread_id, {**entry, **fields}, False)])
    return info_of(thread_id, {**entry, **fields})


def delete(
    threads: StoredThreads,
    thread_id: str,
    owner: str | None,
    *,
    all_owners: bool = False,
    results: "ResultStore | None" = None,
    archive: "ArchiveFiles | None" = None,
) -> None:
    """Delete checkpoints and writes, results and files, then what the store keeps; the index last,
    so that what is left can be found.

    What it took stays, without its id. Checkpoints first: where the store cannot be written, that
    raises before any file is gone.
    """
    check_owner(threads, thread_id, owner, all_owners=all_owners)
    with suppress(DamagedThreadError):
        whole, _ = load_thread(threads, thread_id, None, all_owners=True)
        rows = [replace(row, thread="deleted") for row in spent_in(whole)]
        rows = rows or _kept_spending(threads, thread_id)
        if rows:
            value = {"owner": owner_of(whole.entry), "rows": list(map(asdict, rows))}
            threads.batch([PutOp(USAGE, usage_key(whole), value, False)])
    names = [thread_id, *_embedded_ids(threads, thread_id)] if results is not None else []
    threads.forget(thread_id)
    if results is not None:
        for name in names:
            results.delete(name)
    if archive is not None:
        archive.delete(thread_id)
    for kind in KINDS:
        _clear(threads, ("longtable", kind, label(thread_id)))
    threads.batch(
        [
            PutOp(BELLS, thread_id, None),
            PutOp(TURNS, turns_key(None, thread_id), None),
            PutOp(THREADS, thread_id, None),
        ]
    )


def _kept_spending(threads: StoredThreads, thread_id: str) -> list[Spent]:
    """Return what the turns of a thread took that a server deleted."""
    (items,) = threads.batch([SearchOp(thread_namespace("spent", thread_id), limit=MOST_THREADS)])
    rows: list[Spent] = []
    for item in items or []:
        rows += rows_of(item.value)
    return added(rows, (*FINEST, "project"))


def check_owner(
    threads: StoredThreads, thread_id: str, owner: str | None, *, all_owners: bool
) -> None:
    """Raise `ThreadNotFoundError` for a thread that is not there, or is another's; a damaged one is
    known by what can be read of it.

    Raises `DamagedThreadError` where nothing says whose it is, unless for `all_owners`.
    """
    try:
        find_thread(threads, thread_id, owner, all_owners=all_owners)
    except DamagedThreadError as error:
        entry = index_entry(threads, thread_id)
        if not entry and not all_owners:
            what = f"{error.what} and whose it is (name all owners: all_owners=True, --all-owners)"
            raise DamagedThreadError(thread_id, what=what, why=error.why) from error
        if not (all_owners or may_see(owner_of(entry), owner)):
            raise ThreadNotFoundError(thread_id) from error


def _embedded_ids(threads: StoredThreads, thread_id: str) -> list[str]:
    """Return under which ids nodes of another graph keep what is theirs on its thread: each result
    has an entry of the audit.
    """
    place = ("longtable", "audit", label(thread_id))
    (namespaces,) = threads.batch([ListNamespacesOp((MatchCondition("prefix", place),))])
    below = [
        namespace[len(place) :] for namespace in namespaces or [] if len(namespace) > len(place)
    ]
    return [NODE.join([thread_id, *map(unquote, names)]) for names in below]


def _clear(threads: StoredThreads, namespace: tuple[str, ...]) -> None:
    """Delete what is in a namespace and below it: of a thread, and of another graph's nodes on
    it.
    """
    before: list[PutOp] = []
    while True:
        (items,) = threads.batch([SearchOp(namespace, limit=PAGE)])
        deletions = [
            PutOp(tuple(item.namespace), item.key, None)
            for item in items or []
            if isinstance(item, Item)
        ]
        if deletions == before:
            # Nothing is left, or only what a damaged name keeps from being deleted.
            return
        threads.batch(deletions)
        before = deletions


def reduce(threads: StoredThreads, thread_id: str) -> bool:
    """Drop the checkpoints before a thread's present state; return whether it was done. Transcript
    and memory stay, whole.

    The whole transcript is in the archive before anything is deleted: killed half way, the next
    call goes on from there.
    """
    whole, state = load_thread(threads, thread_id, None, all_owners=True)
    if is_stored(state) and is_pending(state):
        return False
    length = len(whole.messages)
    archive_messages(threads, whole, whole.archived, length)
    entry = {name: value for name, value in whole.entry.items() if name != CHECKPOINT}
    threads.batch([PutOp(THREADS, thread_id, {**entry, REDUCING: length}, False)])
    threads.forget(thread_id)
    _clear(threads, ("longtable", "compactions", label(thread_id)))
    threads.save(thread_id, whole.values)
    entry.pop(REDUCING, None)
    threads.batch([PutOp(THREADS, thread_id, {**entry, REDUCED: _last_use(entry)}, False)])
    for start in range(whole.archived, length, PAGE):  # live again, hence not in the archive
        keys = [key_of(i + 1) for i in range(start, min(length, start + PAGE))]
        threads.batch([PutOp(thread_namespace("archive", thread_id), key, None) for key in keys])
    return True


# -- many threads ----------------------------------------------------------------------------------


def prune_threads(
    persistence: Persistence | StoredThreads,
    *,
    older_than: timedelta,
    now: datetime,
    keep_archive: bool = False,
    owner: str | None = None,
    all_owners: bool = False,
    results: "ResultStore | None" = None,
    archive: "ArchiveFiles | None" = None,
    on_damaged: Report = log_damaged,
) -> list[ThreadInfo]:
    """Delete the threads not used for so long and return them, the newest first; their results too
    where their store is given.

    With `keep_archive` their transcript and memory stay and can be continued; only the checkpoints
    behind them go. One that cannot be read is left then: `on_damaged` is called, by default the log
    says it.
    """
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    old = stale_threads(infos, older_than=older_than, now=now)
    threads = threads_in(persistence)
    pruned = []
    for info in old:
        with skip_unreadable(on_damaged), threads.alone(info.thread_id):
            if _prune(threads, info, keep_archive=keep_archive, results=results, archive=archive):
                pruned.append(info)
    return pruned


aprune_threads = a_from(prune_threads)


def stale_threads(
    infos: Sequence[ThreadInfo], *, older_than: timedelta, now: datetime
) -> list[ThreadInfo]:
    """Return those not used for longer than that; never one whose time cannot be read, nor one from
    the future.
    """
    if older_than < timedelta(0):
        raise ConfigError(f"an age is not negative, found {older_than}")
    return [
        info
        for info in infos
        if (used := _time(info.updated)) is not None and now - used > older_than
    ]


def _prune(
    threads: StoredThreads,
    info: ThreadInfo,
    *,
    keep_archive: bool,
    results: "ResultStore | None",
    archive: "ArchiveFiles | None",
) -> bool:
    # Looked at again: it may have been used, or deleted, since it was listed.
    if not (entry := index_entry(threads, info.thread_id)):
        return False
    if entry.get("updated") != info.updated or (
        keep_archive and entry.get(REDUCED) == _last_use(entry)
    ):
        return False
    if keep_archive:
        return reduce(threads, info.thread_id)
    delete(threads, info.thread_id, None, all_owners=True, results=results, archive=archive)
    return True


def _last_use(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get("updated"), entry.get("turns")]


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# -- search ----------------------------------------------------------------------------------------


def search_threads(
    persistence: Persistence | StoredThreads,
    query: str,
    *,
    limit: int = 20,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[SearchHit]:
    """Return the turns whose words answer a query best, over all transcripts an owner may see, live
    and archived.

    Each turn once, by its best message; excluded messages are left out. Reads every transcript:
    time grows with their sum. `on_damaged` is called for each thread that cannot be read; by
    default the log says it.
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


asearch_threads = a_from(search_threads)
