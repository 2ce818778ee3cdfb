"""The threads of a store: rename, move, import and delete them. Neither a model nor a database is
needed.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from longtable.base.concurrency import a_from
from longtable.base.context import Context
from longtable.base.errors import ConfigError, DamagedThreadError, ThreadNotFoundError
from longtable.base.stored import (
    BELLS,
    KINDS,
    NODE,
    SPENDING,
    THREADS,
    TURNS,
    USAGE,
    label,
    thread_namespace,
)
from longtable.graph.export.thread_file import import_lines
from longtable.graph.listing.thread_list import MOST_THREADS, ThreadInfo, info_of
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import (
    PAGE,
    find_thread,
    index_entry,
    load_thread,
    save_thread,
    spent_in,
    usage_key,
)
from longtable.memory.counting.usage import FINEST, Spent, added
from longtable.nodes.arriving.rate_limit import turns_key
from longtable.nodes.closing.spending import rows_of
from longtable.store.persistence import Persistence
from longtable.store.records.search_index import SearchIndex
from longtable.store.records.thread_index import may_see, owner_of, title_of

if TYPE_CHECKING:
    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.results.result_store import ResultStore

# -- one thread ------------------------------------------------------------------------------------


def rename_thread(
    persistence: Persistence | StoredThreads,
    thread_id: str,
    title: str,
    *,
    owner: str | None = None,
    all_owners: bool = False,
) -> str:
    """Give a thread a new title. Return the title as it was stored: on one line, and cut if it is
    too long. Raises `ThreadNotFoundError`, and `ConfigError` for a blank title.
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
    """Move a thread to another project; "" means no project. Raises `ThreadNotFoundError`, and
    `ConfigError` for a text that cannot be the name of a project.
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
    """Rename a thread, move it to a project, or both in one write. Return the thread's line of the
    list. Raises the errors of `rename_thread` and `move_thread`.
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
    """Delete a thread with everything stored for it. Its results and archive files are deleted too
    if their stores are given.

    Raises `ThreadNotFoundError`, and `ThreadBusyError` while a turn of the thread is running. If
    the process is killed in between, call it again.
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
    """Store a thread that was exported, and return its id. If given, `thread_id` and `owner`
    replace those of the file.

    Raises `ThreadFormatError` for a file that is damaged or has a newer schema, `ThreadExistsError`
    if the id is taken; in both cases nothing is written. If people import their own files, pass
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
    """Check a title and a project and write them into the index. None leaves the title or project
    as it is. Return the thread's line of the list.
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
    has_words: bool = True,
) -> None:
    """Delete a thread's checkpoints and writes, its results and files, and then its data in the
    store. Its entry in the index is deleted last, so that leftovers can still be found.

    The thread's usage is kept without its id. Checkpoints are deleted first. So if the database
    cannot be written, the error is raised before any file is deleted. `has_words`: the search index
    may hold its words.
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
    if has_words:
        forget_words(threads, [thread_id])
    for kind in KINDS:
        clear(threads, ("longtable", kind, label(thread_id)))
    threads.batch(
        [
            PutOp(BELLS, thread_id, None),
            PutOp(SPENDING, thread_id, None),
            PutOp(TURNS, turns_key(None, thread_id), None),
            PutOp(THREADS, thread_id, None),
        ]
    )
    if has_words:
        # Once more: a search that read the thread before may have added its words since.
        forget_words(threads, [thread_id])


def forget_words(threads: StoredThreads, thread_ids: Sequence[str]) -> None:
    """Delete the words of threads from the search index. A thread that stays is indexed anew by the
    next search.
    """
    store = threads.optional_store
    if store is not None and thread_ids:
        SearchIndex(store).forget(thread_ids)


def _kept_spending(threads: StoredThreads, thread_id: str) -> list[Spent]:
    """Return the usage of turns that is stored for a thread apart from its messages, for a thread
    that a server deleted.
    """
    (items,) = threads.batch([SearchOp(thread_namespace("spent", thread_id), limit=MOST_THREADS)])
    rows: list[Spent] = []
    for item in items or []:
        rows += rows_of(item.value)
    return added(rows, (*FINEST, "project"))


def check_owner(
    threads: StoredThreads, thread_id: str, owner: str | None, *, all_owners: bool
) -> None:
    """Raise `ThreadNotFoundError` for a thread that does not exist or belongs to another owner. For
    a damaged thread, the owner is taken from the parts that can be read.

    Raises `DamagedThreadError` if no part names the owner, unless `all_owners` is True.
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
    """Return the ids under which embedded nodes keep results for this thread. They are found in the
    audit, which has an entry for each result.
    """
    place = ("longtable", "audit", label(thread_id))
    (namespaces,) = threads.batch([ListNamespacesOp((MatchCondition("prefix", place),))])
    below = [
        namespace[len(place) :] for namespace in namespaces or [] if len(namespace) > len(place)
    ]
    return [NODE.join([thread_id, *map(unquote, names)]) for names in below]


def clear(threads: StoredThreads, namespace: tuple[str, ...]) -> None:
    """Delete everything in a namespace and in the namespaces below it. The latter belong to nodes
    of other graphs on the same thread.
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
