"""Delete or reduce threads that nobody has used for a while."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from langgraph.store.base import PutOp

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.stored import CHECKPOINT, THREADS, label, thread_namespace
from longtable.graph.listing.thread_list import MOST_THREADS, ThreadInfo, list_threads
from longtable.graph.thread_state import StoredThreads, is_pending, is_stored, threads_in
from longtable.graph.threads import clear, delete, forget_words
from longtable.graph.transcripts import PAGE, REDUCING, archive_messages, index_entry, load_thread
from longtable.store.damage import Report, log_damaged, skip_unreadable
from longtable.store.persistence import Persistence
from longtable.store.records.retired import key_of

if TYPE_CHECKING:
    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.results.result_store import ResultStore

REDUCED = "reduced"
"""Key of a thread's entry in the index: time and number of the last turn before the thread was
reduced.
"""


def reduce(threads: StoredThreads, thread_id: str) -> bool:
    """Drop a thread's older checkpoints and keep only its present state. Return True if this was
    done, False if the thread has an interrupted turn. Transcript and memory stay complete.

    The whole transcript is written to the archive before anything is deleted. If the process is
    killed in between, the next call continues.
    """
    whole, state = load_thread(threads, thread_id, None, all_owners=True)
    if is_stored(state) and is_pending(state):
        return False
    length = len(whole.messages)
    archive_messages(threads, whole, whole.archived, length)
    entry = {name: value for name, value in whole.entry.items() if name != CHECKPOINT}
    threads.batch([PutOp(THREADS, thread_id, {**entry, REDUCING: length}, False)])
    threads.forget(thread_id)
    clear(threads, ("longtable", "compactions", label(thread_id)))
    threads.save(thread_id, whole.values)
    entry.pop(REDUCING, None)
    threads.batch([PutOp(THREADS, thread_id, {**entry, REDUCED: last_use(entry)}, False)])
    for start in range(whole.archived, length, PAGE):  # live again, hence not in the archive
        keys = [key_of(i + 1) for i in range(start, min(length, start + PAGE))]
        threads.batch([PutOp(thread_namespace("archive", thread_id), key, None) for key in keys])
    return True


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
    """Delete the threads that were not used for longer than `older_than`, with their results and
    archive files if their stores are given. Return the threads that were pruned, the newest first.

    With `keep_archive`, transcript and memory stay and can be continued; only older checkpoints are
    deleted. A thread that cannot be read is left as it is, and `on_damaged` is called; by default
    it writes to the log.
    """
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    old = stale_threads(infos, older_than=older_than, now=now)
    threads = threads_in(persistence)
    if not keep_archive:
        forget_words(threads, [info.thread_id for info in old])
    pruned = []
    for info in old:
        with skip_unreadable(on_damaged), threads.alone(info.thread_id):
            if _prune(threads, info, keep_archive=keep_archive, results=results, archive=archive):
                pruned.append(info)
    if not keep_archive:
        # Once more: a search that read one of them before may have added its words since.
        forget_words(threads, [info.thread_id for info in pruned])
    return pruned


def stale_threads(
    infos: Sequence[ThreadInfo], *, older_than: timedelta, now: datetime
) -> list[ThreadInfo]:
    """Return the threads that were not used for longer than `older_than`. A thread whose time
    cannot be read or lies in the future is never returned.
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
        keep_archive and entry.get(REDUCED) == last_use(entry)
    ):
        return False
    if keep_archive:
        return reduce(threads, info.thread_id)
    delete(
        threads,
        info.thread_id,
        None,
        all_owners=True,
        results=results,
        archive=archive,
        has_words=False,
    )
    return True


def last_use(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get("updated"), entry.get("turns")]


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


aprune_threads = a_from(prune_threads)
