"""Tell whether a thread has changed since something was computed from it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from langgraph.store.base import SearchOp

from longtable.base.stored import SPENT
from longtable.graph.listing.thread_list import MOST_THREADS
from longtable.graph.thread_state import StoredThreads
from longtable.store.records.item_values import KeyValue

OnIndexed = Callable[[int, int], None]
"""Called with the number of threads that were read for an index, and of those to be read."""


def states_of(threads: StoredThreads, entries: Sequence[KeyValue]) -> Mapping[str, str]:
    """Return for each thread a text that changes with each change of the thread: its newest
    checkpoint, or on a server the time of its last change. If neither is known, the text says what
    the store knows of the thread's last turn, and of the calls that its turns made.

    A node of another graph's thread has no checkpoint of its own, and is left out.
    """
    known = threads.states()
    if known is not None:
        return known
    (items,) = threads.batch([SearchOp(SPENT, limit=MOST_THREADS)])
    calls: Counter[str] = Counter()
    for item in items or []:
        with suppress(KeyError, TypeError):  # an item that cannot be read
            calls[item.value["thread"]] += sum(row["calls"] for row in item.value["rows"])
    states: dict[str, str] = {}
    for thread_id, entry in entries:
        last_turn = [entry.get(name) for name in ("updated", "turns", "messages")]
        states[thread_id] = " ".join(map(str, (*last_turn, calls[thread_id])))
    return states
