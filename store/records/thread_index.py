"""The thread index: the store has one small item for each thread, so that a list of threads can be
made without loading a checkpoint.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore

from longtable.base.context import Context
from longtable.base.stored import CHECKPOINT, NODE, THREADS
from longtable.store.records.retired import DAMAGED

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

TITLE_CHARS = 80

Entry = dict[str, Any]


def title_of(text: str) -> str:
    """Return a title made of a text: one line, clipped, without characters that a store refuses."""
    return (
        " ".join(text.split())[:TITLE_CHARS].encode("utf-8", "replace").decode().replace("\x00", "")
    )


def open_turn(
    store: BaseStore,
    thread_id: str,
    *,
    first: str,
    owner: str | None,
    model: str,
    turns: int,
    now: str,
    project: str | None = None,
) -> None:
    """Record in the thread's item that a turn began. The first turn sets title and owner, which do
    not change later; the title is made from the text `first`. The project changes only if another
    project is given.
    """
    known = entry_of(store, thread_id)
    new = {"title": title_of(first), "created": now, "owner": owner}
    with_project = {"project": project} if project else {}
    store.put(
        THREADS,
        thread_id,
        {**(known or new), "updated": now, "turns": turns, "model": model, **with_project},
        index=False,
    )


def close_turn(store: BaseStore, thread_id: str, *, messages: int, checkpoint: str) -> None:
    """Record how many messages the transcript has now, and the id of a stored checkpoint (`""` if
    none is known). Write nothing if the thread was deleted during the turn.
    """
    if known := entry_of(store, thread_id):
        new = {"messages": messages, **({CHECKPOINT: checkpoint} if checkpoint else {})}
        store.put(THREADS, thread_id, {**known, **new}, index=False)


def entry_of(store: BaseStore, thread_id: str) -> Entry:
    """Return a thread's item. Return an empty dict if the item is missing or damaged; the next turn
    then writes a new item.
    """
    item = store.get(THREADS, thread_id)
    return item.value if item and DAMAGED not in item.value else {}


def may_see(thread_owner: str | None, owner: str | None) -> bool:
    """Return whether `owner` may see a thread of `thread_owner`. An owner may see their own
    threads, and threads that belong to nobody (`thread_owner` is None).
    """
    return thread_owner is None or thread_owner == owner


def owner_of(turn: Mapping[str, Any]) -> str | None:
    """Return the owner of a thread, read from `turn`, the state's record of its newest turn. Return
    None if the thread belongs to nobody.
    """
    owner = turn.get("owner")
    return owner if isinstance(owner, str) else None


def names_owner(entry: Entry) -> bool:
    """Return whether an entry of the index says whose a thread is. Otherwise only the thread itself
    does.
    """
    return "owner" in entry and isinstance(entry["owner"], str | None)


def thread_id_of(runtime: "Runtime[Context]") -> str | None:
    """Return the id under which the store keeps the data of a run's thread. Return None if the
    thread has no id.

    If this graph runs as a node of another graph, the id is the thread's id and the node's name.
    """
    info = runtime.execution_info
    if info is None or info.thread_id is None:
        return None
    return NODE.join(
        [info.thread_id, *(part.split(":")[0] for part in info.checkpoint_ns.split("|")[:-1])]
    )


def retitle(store: BaseStore, thread_id: str, *, titles: Collection[str], first: str) -> None:
    """Give a thread a new title, made from the text `first`, if its present title is one of
    `titles`. These are titles made from messages that are no longer in the view.
    """
    known = entry_of(store, thread_id)
    if known.get("title") in titles:
        store.put(THREADS, thread_id, {**known, "title": title_of(first)}, index=False)
