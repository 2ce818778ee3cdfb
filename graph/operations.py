"""Operations on the threads of a store: rename, search, delete, prune. No model and no database is needed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from longtable.base.errors import ConfigError, DamagedThreadError, ThreadNotFoundError
from longtable.base.store_keys import BELLS, KINDS, NODE, THREADS, label, thread_namespace
from longtable.graph.damage import Report, log_damaged, skipping
from longtable.graph.export import import_lines
from longtable.graph.listing import MOST_THREADS, ThreadInfo, alist_threads, list_threads
from longtable.graph.persistence import Persistence
from longtable.graph.reading import reader
from longtable.graph.running import is_pending
from longtable.graph.steps import Batch, Drop, Forget, Save, Shelve, Steps, arun, is_there, run
from longtable.graph.transcripts import PAGE, REDUCING, entry_steps, load_steps, save_steps, seen_steps
from longtable.memory.archive import key_of
from longtable.memory.search import Index, Original, excerpt_of, text_of, tokens_of
from longtable.memory.stamps import marks_of
from longtable.nodes.records.thread_index import may_see, owner_of, title_of

if TYPE_CHECKING:
    from longtable.graph.archive_files import ArchiveFiles
    from longtable.tools.results import ResultStore

REDUCED = "reduced"
"""Key in the index: time and number of the last turn before a thread's checkpoints were dropped."""


@dataclass(frozen=True)
class Found:
    """A place in a transcript that answers a search. `number`: the message's, from 1; `score`: BM25's, the higher the better."""

    thread_id: str
    title: str
    turn: int
    number: int
    role: str
    time: str
    excerpt: str
    score: float


# -- one thread -----------------------------------------------------------------------------------------------------


def rename_thread(persistence: Persistence, thread_id: str, title: str, *, owner: str | None = None, all_owners: bool = False) -> str:
    """Give a thread another title and return it, on one line and clipped. Raises `ThreadNotFoundError`, `ConfigError` for a blank one."""
    return run(rename_steps(thread_id, title, owner, all_owners=all_owners), reader(persistence), alone=thread_id)


async def arename_thread(
    persistence: Persistence, thread_id: str, title: str, *, owner: str | None = None, all_owners: bool = False
) -> str:
    """Give a thread another title: see `rename_thread`."""
    return await arun(rename_steps(thread_id, title, owner, all_owners=all_owners), reader(persistence), alone=thread_id)


def delete_thread(
    persistence: Persistence,
    thread_id: str,
    *,
    owner: str | None = None,
    all_owners: bool = False,
    results: "ResultStore | None" = None,
    archive: "ArchiveFiles | None" = None,
) -> None:
    """Delete a thread with all that is stored of it, its results and archive files too where those are given.

    Raises `ThreadNotFoundError`, and `ThreadBusyError` while a turn of it is under way. Killed half way, it can be called again.
    """
    run(delete_steps(thread_id, owner, all_owners=all_owners, results=results, archive=archive), reader(persistence), alone=thread_id)


async def adelete_thread(
    persistence: Persistence,
    thread_id: str,
    *,
    owner: str | None = None,
    all_owners: bool = False,
    results: "ResultStore | None" = None,
    archive: "ArchiveFiles | None" = None,
) -> None:
    """Delete a thread with all that is stored of it: see `delete_thread`."""
    await arun(
        delete_steps(thread_id, owner, all_owners=all_owners, results=results, archive=archive), reader(persistence), alone=thread_id
    )


def import_thread(persistence: Persistence, lines: Iterable[str], *, thread_id: str | None = None, owner: str | None = None) -> str:
    """Store a thread that was exported and return its id. `thread_id`, `owner`: instead of those in the file.

    Raises `ThreadFormatError` for a file that is damaged or of a newer schema, `ThreadExistsError` for an id that is
    taken; nothing is written then. Where people import their own files, give their `owner`.
    """
    whole = import_lines(lines, thread_id=thread_id, owner=owner)
    run(save_steps(whole), reader(persistence), alone=whole.thread_id)
    return whole.thread_id


async def aimport_thread(persistence: Persistence, lines: Iterable[str], *, thread_id: str | None = None, owner: str | None = None) -> str:
    """Store a thread that was exported: see `import_thread`."""
    whole = import_lines(lines, thread_id=thread_id, owner=owner)
    await arun(save_steps(whole), reader(persistence), alone=whole.thread_id)
    return whole.thread_id


def rename_steps(thread_id: str, title: str, owner: str | None, *, all_owners: bool = False) -> Steps[str]:
    """Write a title into the index."""
    if not (made := title_of(title)):
        raise ConfigError("a title needs at least one character that is not white space")
    _, entry = yield from seen_steps(thread_id, owner, all_owners=all_owners)
    if not entry:
        raise ConfigError(f"thread {thread_id!r} has no place in the index: it was run without a store, compile the graph with one")
    yield Batch([PutOp(THREADS, thread_id, {**entry, "title": made}, False)])
    return made


def delete_steps(
    thread_id: str,
    owner: str | None,
    *,
    all_owners: bool = False,
    results: "ResultStore | None" = None,
    archive: "ArchiveFiles | None" = None,
) -> Steps[None]:
    """Delete checkpoints and writes, results and files, then what the store keeps; the index last, so that what is left can be found.

    Checkpoints first: where the store cannot be written, that raises before any file is gone.
    """
    yield from _owned_steps(thread_id, owner, all_owners=all_owners)
    names = [thread_id, *(yield from _nodes(thread_id))] if results is not None else []
    yield Forget(thread_id)
    if results is not None:
        for name in names:
            yield Drop(results, name)
    if archive is not None:
        yield Drop(archive, thread_id)
    for kind in KINDS:
        yield from _clear(("longtable", kind, label(thread_id)))
    yield Batch([PutOp(BELLS, thread_id, None), PutOp(THREADS, thread_id, None)])


def _owned_steps(thread_id: str, owner: str | None, *, all_owners: bool) -> Steps[None]:
    """Raise `ThreadNotFoundError` for a thread that is not there, or is another's; a damaged one is known by what can be read of it.

    Raises `DamagedThreadError` where nothing says whose it is, unless for `all_owners`.
    """
    try:
        yield from seen_steps(thread_id, owner, all_owners=all_owners)
    except DamagedThreadError as error:
        entry = yield from entry_steps(thread_id)
        if not entry and not all_owners:
            what = f"{error.what} and whose it is (name all owners: all_owners=True, --all-owners)"
            raise DamagedThreadError(thread_id, what=what, why=error.why) from error
        if not (all_owners or may_see(owner_of(entry), owner)):
            raise ThreadNotFoundError(thread_id) from error


def reduce_steps(thread_id: str) -> Steps[bool]:
    """Drop the checkpoints behind a thread's present state; tell whether it was done. Transcript and memory stay, whole.

    The whole transcript is in the archive before anything is deleted: killed half way, the next call goes on from there.
    """
    whole, state = yield from load_steps(thread_id, None, all_owners=True)
    if is_there(state) and is_pending(state):
        return False
    length = len(whole.messages)
    for start in range(whole.archived, length, PAGE):
        yield Shelve(thread_id, [Original(i + 1, whole.messages[i]) for i in range(start, min(length, start + PAGE))])
    yield Batch([PutOp(THREADS, thread_id, {**whole.entry, REDUCING: length}, False)])
    yield Forget(thread_id)
    yield from _clear(("longtable", "compactions", label(thread_id)))
    yield Save(thread_id, whole.values)
    entry = {name: value for name, value in whole.entry.items() if name != REDUCING}
    yield Batch([PutOp(THREADS, thread_id, {**entry, REDUCED: _last_use(entry)}, False)])
    for start in range(whole.archived, length, PAGE):  # live again, hence not in the archive
        yield Batch([PutOp(thread_namespace("archive", thread_id), key_of(i + 1), None) for i in range(start, min(length, start + PAGE))])
    return True


def _nodes(thread_id: str) -> Steps[list[str]]:
    """Return under which ids nodes of another graph keep what is theirs on its thread: each result has an entry of the audit."""
    place = ("longtable", "audit", label(thread_id))
    (found,) = yield Batch([ListNamespacesOp((MatchCondition("prefix", place),))])
    below = [namespace[len(place) :] for namespace in found or [] if len(namespace) > len(place)]
    return [NODE.join([thread_id, *map(unquote, names)]) for names in below]


def _clear(namespace: tuple[str, ...]) -> Steps[None]:
    """Delete what is in a namespace and below it: of a thread, and of another graph's nodes on it."""
    before: list[PutOp] = []
    while True:
        (found,) = yield Batch([SearchOp(namespace, limit=PAGE)])
        deletions = [PutOp(tuple(item.namespace), item.key, None) for item in found or [] if isinstance(item, Item)]
        if deletions == before:  # nothing is left, or only what a damaged name keeps from being deleted
            return
        yield Batch(deletions)
        before = deletions


# -- many threads ---------------------------------------------------------------------------------------------------


def prune_threads(
    persistence: Persistence,
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
    """Delete the threads not used for so long and return them, the newest first; their results too where their store is given.

    With `keep_archive` their transcript and memory stay and can be continued; only the checkpoints behind them go. One that
    cannot be read is left then: `on_damaged` is called, by default the log says it.
    """
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    old = stale_threads(infos, older_than=older_than, now=now)
    graph = reader(persistence)
    pruned = []
    for info in old:
        with skipping(on_damaged):
            if run(_prune(info, keep_archive=keep_archive, results=results, archive=archive), graph, alone=info.thread_id):
                pruned.append(info)
    return pruned


async def aprune_threads(
    persistence: Persistence,
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
    """Delete the threads not used for so long: see `prune_threads`."""
    infos = await alist_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    old = stale_threads(infos, older_than=older_than, now=now)
    graph = reader(persistence)
    pruned = []
    for info in old:
        with skipping(on_damaged):
            if await arun(_prune(info, keep_archive=keep_archive, results=results, archive=archive), graph, alone=info.thread_id):
                pruned.append(info)
    return pruned


def stale_threads(infos: Sequence[ThreadInfo], *, older_than: timedelta, now: datetime) -> list[ThreadInfo]:
    """Return those not used for longer than that; never one whose time cannot be read, nor one from the future."""
    if older_than < timedelta(0):
        raise ConfigError(f"an age is not negative, found {older_than}")
    return [info for info in infos if (used := _time(info.updated)) is not None and now - used > older_than]


def _prune(info: ThreadInfo, *, keep_archive: bool, results: "ResultStore | None", archive: "ArchiveFiles | None") -> Steps[bool]:
    # Looked at again: it may have been used, or deleted, since it was listed.
    if not (entry := (yield from entry_steps(info.thread_id))):
        return False
    if entry.get("updated") != info.updated or (keep_archive and entry.get(REDUCED) == _last_use(entry)):
        return False
    if keep_archive:
        return (yield from reduce_steps(info.thread_id))
    yield from delete_steps(info.thread_id, None, all_owners=True, results=results, archive=archive)
    return True


def _last_use(entry: Mapping[str, Any]) -> list[Any]:
    return [entry.get("updated"), entry.get("turns")]


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# -- search ---------------------------------------------------------------------------------------------------------


def search_threads(
    persistence: Persistence,
    query: str,
    *,
    limit: int = 20,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[Found]:
    """Return the turns whose words answer a query best, over all transcripts an owner may see, live and archived.

    Each turn once, by its best message; excluded messages are left out. Reads every transcript: time grows with their sum.
    `on_damaged` is called for each thread that cannot be read; by default the log says it.
    """
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return run(_search(query, infos, limit, on_damaged, all_owners=all_owners), reader(persistence))


async def asearch_threads(
    persistence: Persistence,
    query: str,
    *,
    limit: int = 20,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[Found]:
    """Return the turns whose words answer a query best: see `search_threads`."""
    infos = await alist_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return await arun(_search(query, infos, limit, on_damaged, all_owners=all_owners), reader(persistence))


def _search(query: str, infos: Sequence[ThreadInfo], limit: int, on_damaged: Report, *, all_owners: bool) -> Steps[list[Found]]:
    if limit < 0:
        raise ConfigError(f"a search takes no negative limit, found {limit}")
    if not tokens_of(query):
        return []
    originals: list[Original] = []
    places: list[tuple[ThreadInfo, int]] = []
    for info in reversed(infos):  # the oldest first: of equals the index prefers the newest
        with skipping(on_damaged):
            whole, _ = yield from load_steps(info.thread_id, info.owner, all_owners=all_owners)
            for number, message in enumerate(whole.shown, 1):
                originals.append(Original(len(places) + 1, message))
                places.append((info, number))
    best: dict[tuple[str, int], Found] = {}
    for original, score in Index.build(originals).search(query, len(originals)):
        info, number = places[original.number - 1]
        if len(best) >= limit:
            break
        if (info.thread_id, original.turn) not in best:
            best[info.thread_id, original.turn] = _found(info, number, original, score, query)
    return list(best.values())


def _found(info: ThreadInfo, number: int, original: Original, score: float, query: str) -> Found:
    message = original.message
    return Found(
        thread_id=info.thread_id,
        title=info.title,
        turn=original.turn,
        number=number,
        role=message.type,
        time=str(marks_of(message).get("time", "")),
        excerpt=excerpt_of(text_of(message), query),
        score=round(score, 3),
    )
