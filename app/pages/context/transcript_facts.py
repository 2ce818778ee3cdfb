"""What the panel needs of each message of a transcript: a few numbers instead of its words.

Archived messages do not change, so their facts are read once for each thread and kept.
"""

from collections.abc import Iterable
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from longtable.graph.thread_state import StoredThreads
from longtable.memory.counting.provider_reports import reported, token_count
from longtable.memory.messages.marks import GIVEN, mark_of, turn_number
from longtable.memory.voices import NARRATOR, VOICE
from longtable.store.records.retired import page
from longtable.store.records.retired_store import StoreArchive

PAGE = 1_000
"""How many archived messages are read at once."""
MOST_THREADS = 100
"""Threads whose facts are kept; of more, the one that was shown longest ago is forgotten."""


class MessageFacts(NamedTuple):
    """One message: its id, its turn, and whether it answers a call of this thread's model."""

    id: str | None
    turn: int
    is_call: bool
    tokens: int | None
    """Tokens of that call, None if they are unknown."""


def facts_of(message: BaseMessage) -> MessageFacts:
    """Return the facts of a message."""
    is_call = _is_call(message)
    tokens = _size(message) if is_call else None
    return MessageFacts(message.id, turn_number(message), is_call, tokens)


def _is_call(message: BaseMessage) -> bool:
    """Return whether a message is the answer of this thread's model."""
    by_code = mark_of(message, "notice") is not None or mark_of(message, VOICE) == NARRATOR
    return isinstance(message, AIMessage) and not by_code and not mark_of(message, GIVEN)


def _size(message: BaseMessage) -> int | None:
    """Return the tokens of the call that a message answers, None if they are unknown."""
    counted = token_count(mark_of(message, "sent"))
    if counted is not None or not isinstance(message, AIMessage):
        return counted
    report = reported(message)
    return report["input"] if report else None


class ArchiveFacts:
    """The facts of archived messages, by thread. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[MessageFacts, ...]] = {}

    def of(self, threads: StoredThreads, thread_id: str, count: int) -> tuple[MessageFacts, ...]:
        """Return the facts of the first `count` messages, all of them archived. Only those that
        were archived since the last time are read.
        """
        if not count:
            return ()
        archive = StoreArchive(threads.store)
        kept = self._kept.pop(thread_id, ())
        if kept:
            # Another thread of the same id may have taken the place of a deleted one.
            newest = min(len(kept), count)
            (message,) = _messages(archive, thread_id, newest, newest)
            kept = kept[:newest] if message.id == kept[newest - 1].id else ()
        facts = list(kept)
        for first in range(len(kept) + 1, count + 1, PAGE):
            last = min(count, first + PAGE - 1)
            facts += map(facts_of, _messages(archive, thread_id, first, last))
        self._keep(thread_id, tuple(facts))
        return tuple(facts)

    def _keep(self, thread_id: str, facts: tuple[MessageFacts, ...]) -> None:
        self._kept[thread_id] = facts
        for oldest in list(self._kept)[:-MOST_THREADS]:
            self._kept.pop(oldest, None)


def _messages(
    archive: StoreArchive, thread_id: str, first: int, last: int
) -> Iterable[BaseMessage]:
    return (original.message for original in page(archive, thread_id, first, last))
