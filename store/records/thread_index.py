"""The thread index: one small item a thread in the store, so that listing loads no checkpoint."""

from collections.abc import Collection, Mapping
from typing import Any

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context
from longtable.base.stored import CHECKPOINT, NODE, THREADS
from longtable.store.records.retired import DAMAGED

TITLE_CHARS = 80

Entry = dict[str, Any]


def title_of(text: str) -> str:
    """Return a text as a title: one line, clipped, fit to be stored."""
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
    """Record that a turn began. The title is made from the `first` text. Title and owner do not
    change later; the project changes only if another one is given.
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
    """Record how many messages the transcript has now, and `checkpoint`, if one is known to be
    stored. Write nothing if the thread was deleted during the turn.
    """
    if known := entry_of(store, thread_id):
        new = {"messages": messages, **({CHECKPOINT: checkpoint} if checkpoint else {})}
        store.put(THREADS, thread_id, {**known, **new}, index=False)


def entry_of(store: BaseStore, thread_id: str) -> Entry:
    """Return a thread's item, empty if it is missing or damaged. The next turn then writes a new
    one.
    """
    item = store.get(THREADS, thread_id)
    return item.value if item and DAMAGED not in item.value else {}


def may_see(thread_owner: str | None, owner: str | None) -> bool:
    """Return whether `owner` may see a thread: an owner sees their own threads and those that
    belong to nobody.
    """
    return thread_owner is None or thread_owner == owner


def owner_of(turn: Mapping[str, Any]) -> str | None:
    """Return the owner of a thread from its turn's record, None if it belongs to nobody."""
    owner = turn.get("owner")
    return owner if isinstance(owner, str) else None


def thread_id_of(runtime: Runtime[Context]) -> str | None:
    """Return the id under which a run's thread keeps its data outside the checkpoints, None if it
    has no id.

    A node of another graph has an id of its own below the thread's.
    """
    info = runtime.execution_info
    if info is None or info.thread_id is None:
        return None
    return NODE.join(
        [info.thread_id, *(part.split(":")[0] for part in info.checkpoint_ns.split("|")[:-1])]
    )


def retitle(store: BaseStore, thread_id: str, *, titles: Collection[str], first: str) -> None:
    """Name a thread after the text `first` if its title was made from a message that is no longer
    in the view.
    """
    known = entry_of(store, thread_id)
    if known.get("title") in titles:
        store.put(THREADS, thread_id, {**known, "title": title_of(first)}, index=False)
