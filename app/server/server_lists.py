"""Ask a server for many of its threads at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any
from uuid import UUID

from langgraph_sdk.errors import UnprocessableEntityError

Thread = Mapping[str, Any]
Search = Callable[..., Sequence[Thread]]
"""The server's search for threads; see `ThreadsClient.search` for what it takes. It raises
`UnprocessableEntityError` for what the server does not know: Aegra does not know `select`.
"""
PAGE = 1_000
"""The most threads of one search."""
NEWEST = 100
"""The number of threads that are looked at for changes since the last request."""
FIELDS = ["thread_id", "metadata", "updated_at"]
BY_CREATION = {"sort_by": "created_at", "sort_order": "asc"}
"""An order in which no thread that is read already changes its place."""
BY_CHANGE = {"sort_by": "updated_at", "sort_order": "desc"}
AHEAD = 50
"""The number of threads whose values are loaded at once: a megabyte or so, if a thread has twenty
messages.
"""


def all_threads(search: Search, **options: Any) -> dict[str, Thread]:
    """Return all threads of the server, by thread id.

    A page begins with the last thread of the page before. If another one is there, a thread was
    deleted meanwhile, and others took places that were read already: then all are read again.
    """
    found: dict[str, Thread] = {}
    while True:
        page = _by_id(search(limit=PAGE, offset=max(0, len(found) - 1), **options))
        if found and found.keys().isdisjoint(page):
            found = {}
            continue
        before = len(found)
        found |= page
        if len(page) < PAGE or len(found) == before:
            return found


class KnownThreads:
    """The threads of a server, kept from request to request. The first request reads them all, a
    later one those that have changed. A thread has the fields of `FIELDS`.
    """

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.lock = Lock()

    def current(self, search: Search, count: Callable[[], int]) -> Mapping[str, Thread]:
        """Return the threads as they are now. `count` tells how many the server has. Raises
        `UnprocessableEntityError` for a server that does not know `select`.
        """
        with self.lock:
            newest = _by_id(search(limit=NEWEST, select=FIELDS, **BY_CHANGE))
            found = newest
            if len(newest) == NEWEST:
                found = {**self.threads, **newest}
                oldest = next(reversed(newest))
                is_known = self.threads.get(oldest) == newest[oldest]
                if not is_known or len(found) != count():  # further ones changed, or are gone
                    found = all_threads(search, select=FIELDS, **BY_CREATION)
            self.threads = found
            return found


class ThreadsAhead:
    """The values of threads that are read one by one, loaded many at a time: to load the state of
    one thread takes `langgraph dev` as long as the values of hundreds.
    """

    def __init__(self, search: Search, thread_ids: Iterable[str]) -> None:
        self.search = search
        self.waiting = dict.fromkeys(filter(_is_uuid, thread_ids))
        """The threads to be loaded, in the order in which they are read."""
        self.loaded: dict[str, Thread] = {}

    def take(self, thread_id: str) -> Thread | None:
        """Return a thread with its values. Return None if the server did not return it, or if they
        may be older than the thread's state, because a run is at work.
        """
        if thread_id in self.waiting:
            self.loaded = self._next(thread_id)
        thread = self.loaded.pop(thread_id, None)
        return thread if thread is not None and thread["status"] != "busy" else None

    def _next(self, thread_id: str) -> dict[str, Thread]:
        del self.waiting[thread_id]
        ids = [thread_id, *islice(self.waiting, AHEAD - 1)]
        for each in ids[1:]:
            del self.waiting[each]
        fields = ["thread_id", "status", "updated_at", "values"]
        try:
            found = self.search(ids=ids, limit=len(ids), select=fields)
        except UnprocessableEntityError:
            self.waiting.clear()
            return {}
        return _by_id(found)


def _by_id(threads: Sequence[Thread]) -> dict[str, Thread]:
    return {str(thread["thread_id"]): thread for thread in threads}


def _is_uuid(thread_id: str) -> bool:
    """Return whether an id can be that of a server's thread. A search for any other id fails."""
    try:
        return str(UUID(thread_id)) == thread_id
    except ValueError:
        return False
