"""Whole threads as values: load a thread with all its stored parts, save it, and copy its first
turns.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.store.base import GetOp, PutOp
from langgraph.types import StateSnapshot

from longtable.base.errors import (
    DamagedThreadError,
    LostMessagesError,
    ThreadExistsError,
    ThreadNotFoundError,
    TurnPendingError,
    UnknownTurnError,
)
from longtable.base.stored import THREADS
from longtable.graph.thread_state import (
    StoredThreads,
    check_lost,
    is_pending,
    is_stored,
    state_owner,
)
from longtable.memory.compaction.merging import unmerged
from longtable.memory.counting.usage import Spent, spent_of, spent_on
from longtable.memory.messages.marks import EXCLUDED, marked, turn_number
from longtable.memory.records import Compaction
from longtable.memory.search import Original
from longtable.memory.thread import Edit, Thread
from longtable.nodes.closing.failures import failed_or_open
from longtable.nodes.state import (
    State,
    Turn,
    Update,
    thread_of,
    turn_of,
    values_of,
    with_tally,
)
from longtable.store.damage import readable
from longtable.store.records.failed_turns import failure_edit
from longtable.store.records.retired import page
from longtable.store.records.retired_store import StoreArchive, keep_originals, write_compactions
from longtable.store.records.thread_index import entry_of, may_see, owner_of, title_of
from longtable.store.records.word_index import WordIndex
from longtable.store.storage_errors import storage_errors

PAGE = 1_000
"""How many archived messages are read at once."""
REDUCING = "reducing"
"""Key of a thread's entry in the index: the number of messages in the archive while the thread's
checkpoints are being dropped.
"""
CHANNELS = ("learned", "brief", "usage")
"""Further channels of a thread's state, besides transcript and memory, that stay after a turn."""

Json = dict[str, Any]


@dataclass(frozen=True)
class ThreadRecord:
    """One thread with everything that is stored for it."""

    thread_id: str
    entry: Json
    """The thread's entry in the index."""
    messages: Sequence[BaseMessage]
    """The whole transcript: first the archived messages, then the live ones."""
    archived: int
    compactions: Sequence[Compaction] = ()
    """The compactions in the thread's state."""
    retired: Sequence[Compaction] = ()
    """The compactions that were moved to the store. They are merged into the first of
    `compactions`.
    """
    edits: Sequence[Edit] = ()
    turn: Turn = field(default_factory=Turn)
    channels: Mapping[str, Json] = field(default_factory=dict)

    @property
    def thread(self) -> Thread:
        """Return the thread in the form that the memory works with."""
        return Thread(self.messages[self.archived :], self.compactions, self.edits, self.archived)

    @property
    def values(self) -> State:
        """Return the state that stores the live part of the thread."""
        archive = {"archive": {"count": self.archived}} if self.archived else {}
        turn = {"turn": self.turn} if self.turn else {}
        lists = {
            "messages": list(self.messages[self.archived :]),
            "compactions": list(self.compactions),
            "edits": list(self.edits),
        }
        live = {name: value for name, value in lists.items() if value}
        update = cast("Update", {**live, **archive, **turn, **self.channels})
        return cast("State", with_tally({}, update))

    @property
    def shown(self) -> list[BaseMessage]:
        """Return the transcript, with excluded messages marked."""
        excluded = self.thread.excluded
        return [
            marked(message, kind=EXCLUDED) if message.id in excluded else message
            for message in self.messages
        ]


@storage_errors()
def find_thread(
    threads: StoredThreads,
    thread_id: str,
    owner: str | None,
    *,
    all_owners: bool = False,
    checkpoint_id: str | None = None,
    lossy: bool = False,
    entry: Json | None = None,
) -> tuple[StateSnapshot, Json]:
    """Return the state of a thread and its entry in the index. The entry is empty if it is damaged.
    `entry`: the entry, if it was read before.

    Raises `ThreadNotFoundError` if the thread does not exist or belongs to another owner. Raises
    `DamagedThreadError` if it cannot be read or has lost messages; with `lossy`, lost messages are
    accepted.
    """
    known = entry
    entry = index_entry(threads, thread_id) if known is None else known
    state = threads.load(thread_id, checkpoint_id)  # after the entry: others may write meanwhile
    if known is not None and not is_stored(state):
        entry = index_entry(threads, thread_id)  # it may have been deleted since
    theirs = state_owner(state) or owner_of(entry)
    if not (is_stored(state) or entry) or not (all_owners or may_see(theirs, owner)):
        raise ThreadNotFoundError(thread_id)
    if not lossy:
        check_lost(threads, thread_id, state, {} if checkpoint_id else entry)
    return state, entry


def index_entry(threads: StoredThreads, thread_id: str) -> Json:
    """Return the entry of a thread in the index. It is empty if there is none, if it is damaged, or
    if there is no store.
    """
    return (
        dict(entry_of(threads.optional_store, thread_id))
        if threads.optional_store is not None
        else {}
    )


@storage_errors()
def load_thread(
    threads: StoredThreads,
    thread_id: str,
    owner: str | None,
    *,
    all_owners: bool = False,
    checkpoint_id: str | None = None,
    lossy: bool = False,
    entry: Json | None = None,
) -> tuple[ThreadRecord, StateSnapshot]:
    """Read a whole thread, as it is now or as it was at a checkpoint. Raises the errors of
    `find_thread`.
    """
    state, entry = find_thread(
        threads,
        thread_id,
        owner,
        all_owners=all_owners,
        checkpoint_id=checkpoint_id,
        lossy=lossy,
        entry=entry,
    )
    with readable(thread_id, "what is kept of it in the store"):
        return _whole(threads, thread_id, state, entry), state


def _whole(
    threads: StoredThreads, thread_id: str, state: StateSnapshot, entry: Json
) -> ThreadRecord:
    thread = thread_of(values_of(state))
    # A thread that was being reduced when the process died has no state: its archive holds all, the
    # index says how much.
    archived = thread.archived if is_stored(state) else int(entry.get(REDUCING) or 0)
    messages: list[BaseMessage] = []
    for first in range(1, archived + 1, PAGE):
        originals = page(
            StoreArchive(threads.store), thread_id, first, min(archived, first + PAGE - 1)
        )
        messages += [original.message for original in originals]
    return ThreadRecord(
        thread_id=thread_id,
        entry=entry,
        messages=[*messages, *thread.messages],
        archived=archived,
        retired=threads.retired_compactions(thread_id, thread),
        compactions=thread.compactions,
        edits=[*thread.edits, *unfinished_failure(threads, thread_id, turn_of(values_of(state)))],
        turn=turn_of(values_of(state)),
        channels={name: dict(state.values[name]) for name in CHANNELS if state.values.get(name)},
    )


def unfinished_failure(threads: StoredThreads, thread_id: str, turn: Turn) -> list[Edit]:
    """Return the edit that says why the newest turn failed, as a list of one. The list is empty if
    it did not fail.
    """
    store = threads.optional_store
    if store is None or not failed_or_open(turn):
        return []
    edit = failure_edit(store, thread_id, turn.get("number", 0))
    return [edit] if edit is not None else []


def spent_in(whole: ThreadRecord) -> list[Spent]:
    """Return the usage of one thread, by hour and model."""
    brief = whole.channels.get("brief") or {}
    model = str(brief.get("model") or whole.entry.get("model") or "")
    rows = spent_of(
        whole.messages,
        thread=whole.thread_id,
        model=model,
        encoding=str(brief.get("encoding") or "o200k_base"),
    )
    rows += spent_on(unmerged(whole.retired, whole.compactions), thread=whole.thread_id)
    return [replace(row, project=str(whole.entry.get("project") or "")) for row in rows]


def usage_key(whole: ThreadRecord) -> str:
    """Return the key under which the usage of a deleted thread is stored. It does not contain the
    thread's id, because another thread may get the same id.
    """
    first = whole.messages[0].id if whole.messages else whole.entry.get("created")
    text = f"{whole.thread_id}\n{first}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def save_thread(threads: StoredThreads, whole: ThreadRecord) -> None:
    """Write a thread that does not exist yet: first the archive, then the state, then the entry in
    the index. Raises `ThreadExistsError` if the id is taken.
    """
    (item,) = threads.batch([GetOp(THREADS, whole.thread_id)])
    if is_stored(threads.load(whole.thread_id)) or item is not None:
        raise ThreadExistsError(whole.thread_id)
    archive_messages(threads, whole, 0, whole.archived)
    if whole.archived:
        originals = [Original(n, message) for n, message in enumerate(whole.messages, 1)]
        words = WordIndex(threads.store, whole.thread_id)
        words.write(1, originals[: whole.archived])
    if whole.retired:
        write_compactions(threads.store, whole.thread_id, 1, whole.retired)
    if whole.values:
        threads.save(whole.thread_id, whole.values)
    if whole.entry:
        threads.batch([PutOp(THREADS, whole.thread_id, whole.entry, False)])


def archive_messages(threads: StoredThreads, whole: ThreadRecord, start: int, end: int) -> None:
    """Write the messages from place `start` up to, but without, place `end` of the transcript to
    the archive, in pages. Places count from 0.
    """
    for first in range(start, end, PAGE):
        originals = [
            Original(i + 1, whole.messages[i]) for i in range(first, min(end, first + PAGE))
        ]
        keep_originals(StoreArchive(threads.store), whole.thread_id, originals)


def fork_thread(
    threads: StoredThreads,
    thread_id: str,
    new_id: str,
    turn: int | None,
    owner: str | None,
    now: str,
) -> set[str]:
    """Copy the first turns of a thread to a new thread. Return the ids of the new thread's
    compactions.
    """
    with threads.alone(new_id):
        try:
            whole, state = load_thread(threads, thread_id, owner)
        except DamagedThreadError as error:
            whole, state = _most_readable(threads, thread_id, owner, error)
            if turn is None and last_turn(whole) - is_pending(state) < 1:
                raise
        fork = fork_of(whole, new_id, turn, pending=is_pending(state), owner=owner, now=now)
        save_thread(threads, fork)
    return {str(record["id"]) for record in fork.compactions}


def _most_readable(
    threads: StoredThreads, thread_id: str, owner: str | None, error: DamagedThreadError
) -> tuple[ThreadRecord, StateSnapshot]:
    """Return a damaged thread as it was when it was last complete. If messages were lost but the
    rest is longer than that, return the rest. Raises `error` if neither can be read.
    """
    if not isinstance(error, LostMessagesError):
        return _last_readable(threads, thread_id, owner, error)
    rest = load_thread(threads, thread_id, owner, lossy=True)
    try:
        earlier = _last_readable(threads, thread_id, owner, error)
    except DamagedThreadError:
        return rest
    return max(earlier, rest, key=lambda found: len(found[0].messages))


def _last_readable(
    threads: StoredThreads, thread_id: str, owner: str | None, error: DamagedThreadError
) -> tuple[ThreadRecord, StateSnapshot]:
    """Return a thread as it was at its newest readable checkpoint. Raises `error` if no checkpoint
    can be read.

    A damaged row makes all checkpoints unreadable from there to the next full snapshot of the
    channel. So a readable checkpoint is searched for with doubling steps, and then by bisection.
    """
    ids = threads.checkpoint_ids(thread_id)
    damaged = 0
    place = 1
    newest: tuple[ThreadRecord, StateSnapshot] | None = None
    while newest is None or place - damaged > 1:
        middle = (damaged + place) // 2 if newest else min(place, len(ids) - 1)
        if middle <= damaged:
            raise error
        try:
            newest = load_thread(threads, thread_id, owner, checkpoint_id=ids[middle])
            place = middle
        except DamagedThreadError:
            damaged = middle
            place = place if newest else 2 * middle
    return newest


def last_turn(whole: ThreadRecord) -> int:
    """Return the number of the newest turn, whether finished or not; 0 if there is no turn."""
    return int(
        whole.turn.get("number")
        or max((turn_number(message) for message in whole.messages), default=0)
    )


def fork_of(
    whole: ThreadRecord,
    new_id: str,
    turn: int | None,
    *,
    pending: bool,
    owner: str | None,
    now: str,
) -> ThreadRecord:
    """Return a thread as it was after a turn, with the changes that the person has made to these
    messages since then.

    The memory is also as it was then: later compactions are left out, so that rounds which were
    word for word at that time are so again. `turn=None` means the last finished turn. Raises
    `UnknownTurnError`, and `TurnPendingError` for a turn that is not finished.
    """
    last = last_turn(whole)
    turn = last - pending if turn is None else turn
    if not 1 <= turn <= last:
        raise UnknownTurnError(turn, turns=last)
    if turn == last and pending:
        raise TurnPendingError(whole.thread_id)
    length = next(
        (i for i, message in enumerate(whole.messages) if turn_number(message) > turn),
        len(whole.messages),
    )
    messages = whole.messages[:length]
    compactions = unmerged(whole.retired, whole.compactions)
    records = [
        record for record in compactions if record["turn"] <= turn and record["count"] <= length
    ]
    ids = {record["id"] for record in records}
    edits = [edit for edit in whole.edits if _concerns(edit, turn, length, ids)]
    chain = Thread(messages, records, edits).chain
    # Retired by then was what the compaction before the live one covers; the live one's originals
    # stay, for undo.
    archived = min(whole.archived, chain[-2]["count"] if len(chain) > 1 else 0)
    channels = {
        name: value for name, value in whole.channels.items() if name != "usage" or turn == last
    }
    return ThreadRecord(
        thread_id=new_id,
        entry=_fork_entry(whole, turn, length, owner=owner, now=now),
        messages=messages,
        archived=archived,
        compactions=records,
        edits=edits,
        turn=_fork_turn(whole, turn, messages, owner=owner, is_newest=turn == last),
        channels=channels,
    )


def _fork_entry(
    whole: ThreadRecord, turn: int, length: int, *, owner: str | None, now: str
) -> dict[str, Any]:
    """Return the entry of the fork in the index."""
    entry: dict[str, Any] = {
        "created": now,
        "updated": now,
        "model": whole.entry.get("model", ""),
        "title": title_of(f"{str(whole.entry.get('title', ''))[:70]} ↳ {turn}"),
        "turns": turn,
        "messages": length,
        "owner": owner,
        "origin": {"thread": whole.thread_id, "turn": turn},
    }
    if project := whole.entry.get("project"):
        entry["project"] = project
    return entry


def _fork_turn(
    whole: ThreadRecord,
    number: int,
    messages: Sequence[BaseMessage],
    *,
    owner: str | None,
    is_newest: bool,
) -> Turn:
    """Return the record of the fork's newest turn, as a turn that is over."""
    turn: Turn = {
        "number": number,
        "status": "answered",
        "calls": 0,
        "overflows": 0,
        "breaker": None,
    }
    if is_newest and "failure" in whole.turn:
        turn = {**turn, "status": whole.turn["status"], "failure": whole.turn["failure"]}
    if messages:
        turn["last"] = messages[-1].id
    if owner:
        turn["owner"] = owner
    if whole.turn.get("private"):
        turn["private"] = True
    return turn


def _concerns(edit: Edit, turn: int, length: int, records: set[str]) -> bool:
    """Return whether a person's change concerns the first messages of a thread, or pins and
    compactions made from these messages.
    """
    match edit["op"]:
        case "pin":
            return int(edit["pin"].get("turn", 0)) <= turn
        case "rate" | "flag" | "fail":
            return int(edit.get("turn", 0)) <= turn
        case "unpin":  # by a person: without effect where there is nothing to take back
            return int(edit.get("turn", 0)) <= turn
        case "exclude":
            return int(edit["number"]) <= length
        case "undo":
            return edit["record"] in records
        case _:
            return True
