"""Tell whether a thread has changed since something was computed from it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from langgraph.store.base import SearchOp

from longtable.base.stored import SPENT
from longtable.graph.listing.thread_list import MOST_THREADS, ThreadInfo
from longtable.graph.thread_state import StoredThreads


def states_of(threads: StoredThreads, infos: Sequence[ThreadInfo]) -> Mapping[str, str]:
    """Return for each thread a text that changes with each change of the thread: its newest
    checkpoint. If the checkpointer cannot tell it, as on a server, the text says what the store
    knows of the thread's last turn, and of the calls that its turns made.

    A node of another graph's thread has no checkpoint of its own, and is left out.
    """
    newest = threads.newest_checkpoints()
    if newest is not None:
        return newest
    (items,) = threads.batch([SearchOp(SPENT, limit=MOST_THREADS)])
    calls: Counter[str] = Counter()
    for item in items or []:
        with suppress(KeyError, TypeError):  # an item that cannot be read
            calls[item.value["thread"]] += sum(row["calls"] for row in item.value["rows"])
    states: dict[str, str] = {}
    for info in infos:
        known = (info.updated, info.turns, info.messages, calls[info.thread_id])
        states[info.thread_id] = " ".join(map(str, known))
    return states
