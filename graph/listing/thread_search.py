"""Search what was said in all threads of a store."""

from dataclasses import dataclass

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.words import tokens_of
from longtable.graph.listing.thread_list import MOST_THREADS, ThreadInfo, list_threads
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import load_thread
from longtable.memory.messages.marks import marks_of
from longtable.memory.search import Index, Original, text_of
from longtable.store.damage import Report, log_damaged, skip_unreadable
from longtable.store.persistence import Persistence
from longtable.tools.excerpts import short_excerpt


@dataclass(frozen=True)
class SearchHit:
    """A place in a transcript that matches a search. `number` is the number of the message, counted
    from 1. `score` is BM25's: the higher, the better.
    """

    thread_id: str
    title: str
    turn: int
    number: int
    role: str
    time: str
    excerpt: str
    score: float


def search_threads(
    persistence: Persistence | StoredThreads,
    query: str,
    *,
    limit: int = 20,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[SearchHit]:
    """Return the turns that match a query best, in all transcripts that an owner may see, both live
    and archived messages.

    Each turn is returned once, with its best message. Excluded messages are left out. Every
    transcript is read, so the time grows with their total length. `on_damaged` is called for each
    thread that cannot be read; by default it writes to the log.
    """
    if limit < 0:
        raise ConfigError(f"a search takes no negative limit, found {limit}")
    if not tokens_of(query):
        return []
    threads = threads_in(persistence)
    infos = list_threads(threads, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    originals: list[Original] = []
    places: list[tuple[ThreadInfo, int]] = []
    for info in reversed(infos):  # the oldest first: of equals the index prefers the newest
        with skip_unreadable(on_damaged):
            whole, _ = load_thread(threads, info.thread_id, info.owner, all_owners=all_owners)
            for number, message in enumerate(whole.shown, 1):
                originals.append(Original(len(places) + 1, message))
                places.append((info, number))
    best: dict[tuple[str, int], SearchHit] = {}
    for original, score in Index.build(originals).search(query, len(originals)):
        info, number = places[original.number - 1]
        if len(best) >= limit:
            break
        if (info.thread_id, original.turn) not in best:
            best[info.thread_id, original.turn] = SearchHit(
                thread_id=info.thread_id,
                title=info.title,
                turn=original.turn,
                number=number,
                role=original.message.type,
                time=str(marks_of(original.message).get("time", "")),
                excerpt=short_excerpt(text_of(original.message), query),
                score=round(score, 3),
            )
    return list(best.values())


asearch_threads = a_from(search_threads)
