"""The thread facade: ask, stream, look at and change one conversation."""

import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

from langchain_core.messages import HumanMessage

from longtable.graph.events import ContextUsage, Event, QueryFinished
from longtable.graph.listing import ThreadInfo as ThreadInfo
from longtable.graph.listing import alist_threads as alist_threads
from longtable.graph.listing import list_threads as list_threads
from longtable.graph.persistence import storage_errors
from longtable.graph.running import is_pending
from longtable.graph.state import Input
from longtable.graph.thread_operations import ThreadOperations
from longtable.nodes.ingest import check_input


@dataclass(frozen=True)
class Answer:
    """One turn's result. `status`: "answered", or the code of the notice that stands for an answer."""

    text: str
    status: str
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None
    recalls: int = 0
    """How often originals were brought back for this turn."""
    unsupported_numbers: list[str] = field(default_factory=list)
    """Figures of the text that no result of the turn gives, as written."""


class Conversation(ThreadOperations):
    """One thread of a compiled graph. Use the sync methods with a sync checkpointer, the `a...` ones with an async one.

    A turn that was interrupted (`pending`) is finished by `resume`; a new message instead of a resume drops nothing:
    the interrupted user message stays in the thread.

    Turns of one thread follow one another, in this process and in others that opened the same file: `when_busy` is
    "queue" (wait) or "reject" (`ThreadBusyError` at once). Read a stream to its end, or close it: the thread is its own till then.
    """

    # -- one turn ---------------------------------------------------------------------------------------------------

    def ask(self, text: str) -> Answer:
        """Run one turn and return its answer."""
        return _collect(list(self.stream(text)))

    async def aask(self, text: str) -> Answer:
        """Run one turn and return its answer."""
        return _collect([event async for event in self.astream(text)])

    def stream(self, text: str) -> Iterator[Event]:
        """Run one turn and yield its events. Raises the typed errors of `longtable.graph.errors`."""
        with storage_errors():
            message = self._message(text)
            with self._alone():
                self._keep_interrupted()
                yield from self._run(Input(messages=[message]))

    async def astream(self, text: str) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events, the last an `answer`. Cancelling the task cancels queries, not the thread."""
        with storage_errors():
            message = self._message(text)
            async with self._aalone():
                await self._akeep_interrupted()
                async with aclosing(self._arun(Input(messages=[message]))) as events:
                    async for event in events:
                        yield event

    def pending(self) -> bool:
        """Tell whether a turn was interrupted and waits to be resumed."""
        return is_pending(self._state())

    async def apending(self) -> bool:
        """Tell whether a turn was interrupted and waits to be resumed."""
        return is_pending(await self._astate())

    def resume(self) -> Iterator[Event]:
        """Finish an interrupted turn and yield its events; nothing when none is pending."""
        with storage_errors(), self._alone():
            if self.pending():
                yield from self._run(None)

    async def aresume(self) -> AsyncGenerator[Event, None]:
        """Finish an interrupted turn and yield its events; nothing when none is pending."""
        with storage_errors():
            async with self._aalone():
                if await self.apending():
                    async with aclosing(self._arun(None)) as events:
                        async for event in events:
                            yield event

    def _message(self, text: str) -> HumanMessage:
        """Return the new message; refuse what needs no count here, so that nothing at all is written (`ingest` counts)."""
        message = HumanMessage(text, id=str(uuid.uuid4()))
        check_input([message], self.context, None)
        return message


def _collect(events: list[Event]) -> Answer:
    text, status, turn, usage, recalls = "", "", 0, None, 0
    queries: list[QueryFinished] = []
    doubts: list[str] = []
    for event in events:
        if event["type"] == "answer":
            text, status, turn = event["text"], event["status"], event["turn"]
        elif event["type"] == "query_finished":
            queries.append(event)
        elif event["type"] == "context_usage":
            usage = event
        elif event["type"] == "recall":
            recalls += 1
        elif event["type"] == "unsupported_numbers":
            doubts = event["figures"]
    return Answer(text, status, turn, queries, usage, recalls, doubts)
