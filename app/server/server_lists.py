"""Ask a server for many of its threads at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from langgraph_sdk.errors import UnprocessableEntityError

Thread = Mapping[str, Any]
Search = Callable[..., Sequence[Thread]]
"""The server's search for threads. It takes `limit`, `offset`, `select` and `ids`. It raises
`UnprocessableEntityError` for what the server does not know: Aegra does not know `select`.
"""
PAGE = 1_000
"""The most threads of one search."""
AHEAD = 50
"""The number of threads whose values are loaded at once: some megabytes at most."""


def all_threads(search: Search, **options: Any) -> dict[str, Thread]:
    """Return all threads of the server, by thread id."""
    found: dict[str, Thread] = {}
    while True:
        before = len(found)
        page = search(limit=PAGE, offset=before, **options)
        found |= {str(thread["thread_id"]): thread for thread in page}
        if len(page) < PAGE or len(found) == before:
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
        """Return a thread with its values. Return None if the server did not tell them, or if they
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
        return {str(thread["thread_id"]): thread for thread in found}


def _is_uuid(thread_id: str) -> bool:
    """Return whether an id can be that of a server's thread. A search for any other id fails."""
    try:
        return str(UUID(thread_id)) == thread_id
    except ValueError:
        return False
