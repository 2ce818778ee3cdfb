"""The thread facade: ask, stream, look at and change one conversation."""

import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command, StateSnapshot

from longtable.base.events import ActionRequest, ChartShown, ContextUsage, Event, QueryFinished
from longtable.graph.listing import ThreadInfo as ThreadInfo
from longtable.graph.listing import alist_threads as alist_threads
from longtable.graph.listing import list_threads as list_threads
from longtable.graph.persistence import storage_errors
from longtable.graph.running import is_failed, is_pending
from longtable.graph.steering import Steering
from longtable.graph.waiting import Decision, Waiting, decided, replied, waiting_in
from longtable.nodes.ingest import check_input
from longtable.nodes.state import Input
from longtable.nodes.turns.failures import aends_with_failed, ends_with_failed


@dataclass(frozen=True)
class Answer:
    """One turn's result. `status`: "answered", the code of the notice that stands for an answer, or what it waits for:
    "approval_requested" (`Conversation.decide`), "input_requested" (`Conversation.reply`). Or "steered": the message
    joined `turn`, which another caller runs and whose answer goes to them.
    """

    text: str
    status: str
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None
    recalls: int = 0
    """How often originals were brought back for this turn."""
    unsupported_numbers: list[str] = field(default_factory=list)
    """Figures of the text that no result of the turn gives, as written."""
    charts: list[ChartShown] = field(default_factory=list)
    """Charts of the turn: `Conversation.chart(handle, spec)` draws each."""


class Conversation(Steering):
    """One thread of a compiled graph. Use the sync methods with a sync checkpointer, the `a...` ones with an async one.

    A turn that was interrupted (`pending`) is finished by `resume`; a new message instead of a resume drops nothing:
    the interrupted user message stays in the thread. A turn whose queries wait for approval ends with the status
    "approval_requested" and is finished by `decide`; a new message instead rejects them. A turn that the provider
    refuses for its content raises `ProviderRefusedError` and is over: its messages stay in the transcript and leave
    the view; `retry` runs it again.

    Turns of one thread follow one another, in this process and in others that opened the same file: `when_busy` is
    "queue" (wait), "reject" (`ThreadBusyError` at once) or "steer" (join the turn under way before its next model call; where
    none comes, be the next turn). Read a stream to its end, or close it: the thread is its own till then.
    """

    # -- one turn ---------------------------------------------------------------------------------------------------

    def ask(self, text: str) -> Answer:
        """Run one turn and return its answer."""
        return _collect(list(self.stream(text)))

    async def aask(self, text: str) -> Answer:
        """Run one turn and return its answer."""
        return _collect([event async for event in self.astream(text)])

    @ends_with_failed
    def stream(self, text: str) -> Iterator[Event]:
        """Run one turn and yield its events. Raises the typed errors of `longtable.base.errors`."""
        with storage_errors():
            message = self._message(text)
            if self.when_busy == "steer":
                yield from self._steered(message, wait=True)
                return
            with self._alone():
                yield from self._turn(message)

    @aends_with_failed
    async def astream(self, text: str) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events, the last an `answer`. Cancelling the task cancels queries, not the thread."""
        with storage_errors():
            message = self._message(text)
            if self.when_busy == "steer":
                async with aclosing(self._asteered(message, wait=True)) as events:
                    async for event in events:
                        yield event
                return
            async with self._aalone(), aclosing(self._aturn(message)) as events:
                async for event in events:
                    yield event

    def steer(self, text: str, *, wait: bool = True) -> Answer:
        """Say something to the turn under way, whoever runs it: see `when_busy`. Needs a store; nobody there, it is a turn of its own.

        Without `wait` return at once: who has the thread takes the message in, or goes on with it when their turn has ended.
        """
        with storage_errors():
            return _collect(list(self._steered(self._message(text), wait=wait)))

    async def asteer(self, text: str, *, wait: bool = True) -> Answer:
        """Say something to the turn under way: see `steer`."""
        with storage_errors():
            return _collect([event async for event in self._asteered(self._message(text), wait=wait)])

    def pending(self) -> bool:
        """Tell whether a turn was interrupted and waits to be resumed."""
        return is_pending(self._state())

    async def apending(self) -> bool:
        """Tell whether a turn was interrupted and waits to be resumed."""
        return is_pending(await self._astate())

    @ends_with_failed
    def resume(self) -> Iterator[Event]:
        """Finish an interrupted turn and yield its events; nothing when none is pending."""
        with storage_errors(), self._alone():
            if self.pending():
                yield from self._run(None)

    @aends_with_failed
    async def aresume(self) -> AsyncGenerator[Event, None]:
        """Finish an interrupted turn and yield its events; nothing when none is pending."""
        with storage_errors():
            async with self._aalone():
                if await self.apending():
                    async with aclosing(self._arun(None)) as events:
                        async for event in events:
                            yield event

    @ends_with_failed
    def retry(self) -> Iterator[Event]:
        """Run the newest turn again where it failed, and yield its events; nothing where it did not.

        A turn that the provider refused comes back into the view; any other goes on where it was interrupted, as by `resume`.
        """
        with storage_errors(), self._alone():
            if self.pending() or is_failed(self._state()):
                yield from self._run(None if self.pending() else Input(messages=[]))

    @aends_with_failed
    async def aretry(self) -> AsyncGenerator[Event, None]:
        """Run the newest turn again where it failed: see `retry`."""
        with storage_errors():
            async with self._aalone():
                if await self.apending() or is_failed(await self._astate()):
                    given = None if await self.apending() else Input(messages=[])
                    async with aclosing(self._arun(given)) as events:
                        async for event in events:
                            yield event

    # -- what a turn waits for --------------------------------------------------------------------------------------

    def approvals(self) -> list[ActionRequest]:
        """Return the calls that wait for a decision, in order; none where nothing does."""
        return [action for waiting in self.waiting() for action in waiting.actions]

    async def aapprovals(self) -> list[ActionRequest]:
        """Return the calls that wait for a decision, in order; none where nothing does."""
        return [action for waiting in await self.awaiting() for action in waiting.actions]

    def waiting(self) -> list[Waiting]:
        """Return all that the turn waits for: approvals, and what a tool of yours asks by `interrupt`."""
        return waiting_in(self._state())

    async def awaiting(self) -> list[Waiting]:
        """Return all that the turn waits for: see `waiting`."""
        return waiting_in(await self._astate())

    def decide(self, decisions: Sequence[Decision]) -> Answer:
        """Decide on the calls that wait, one decision for each in order, and finish the turn.

        `{"type": "approve"}`, `{"type": "edit", "edited_action": {"name": "run_sql", "args": {"sql": "..."}}}` or
        `{"type": "reject", "message": "why"}`. Raises `WrongDecisionError` and `NothingAskedError`, and then has
        changed nothing.
        """
        return _collect(list(self.stream_decisions(decisions)))

    async def adecide(self, decisions: Sequence[Decision]) -> Answer:
        """Decide on the calls that wait, and finish the turn: see `decide`."""
        return _collect([event async for event in self.astream_decisions(decisions)])

    @ends_with_failed
    def stream_decisions(self, decisions: Sequence[Decision]) -> Iterator[Event]:
        """Decide on the calls that wait, and yield the events of the rest of the turn: see `decide`."""
        yield from self._go_on(lambda state: decided(state, decisions, self.thread_id))

    @aends_with_failed
    async def astream_decisions(self, decisions: Sequence[Decision]) -> AsyncGenerator[Event, None]:
        """Decide on the calls that wait, and yield the events of the rest of the turn: see `decide`."""
        async with aclosing(self._ago_on(lambda state: decided(state, decisions, self.thread_id))) as events:
            async for event in events:
                yield event

    def reply(self, reply: Any, *, waiting_id: str | None = None) -> Answer:
        """Answer what a tool asks by `interrupt`, and finish the turn: the question of this id, else the first.

        Raises `NothingAskedError`.
        """
        return _collect(list(self.stream_reply(reply, waiting_id=waiting_id)))

    async def areply(self, reply: Any, *, waiting_id: str | None = None) -> Answer:
        """Answer what a tool asks, and finish the turn: see `reply`."""
        return _collect([event async for event in self.astream_reply(reply, waiting_id=waiting_id)])

    @ends_with_failed
    def stream_reply(self, reply: Any, *, waiting_id: str | None = None) -> Iterator[Event]:
        """Answer what a tool asks, and yield the events of the rest of the turn: see `reply`."""
        yield from self._go_on(lambda state: replied(state, reply, waiting_id, self.thread_id))

    @aends_with_failed
    async def astream_reply(self, reply: Any, *, waiting_id: str | None = None) -> AsyncGenerator[Event, None]:
        """Answer what a tool asks, and yield the events of the rest of the turn: see `reply`."""
        async with aclosing(self._ago_on(lambda state: replied(state, reply, waiting_id, self.thread_id))) as events:
            async for event in events:
                yield event

    def _go_on(self, command: Callable[[StateSnapshot], Command[str]]) -> Iterator[Event]:
        with storage_errors(), self._alone():
            yield from self._run(command(self._state()))

    async def _ago_on(self, command: Callable[[StateSnapshot], Command[str]]) -> AsyncGenerator[Event, None]:
        with storage_errors():
            async with self._aalone():
                given = command(await self._astate())
                async with aclosing(self._arun(given)) as events:
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
    charts: list[ChartShown] = []
    doubts: list[str] = []
    for event in events:
        if event["type"] == "answer":
            text, status, turn = event["text"], event["status"], event["turn"]
            break  # what follows is of a turn that was left here by others
        if event["type"] == "query_finished":
            queries.append(event)
        elif event["type"] == "chart":
            charts.append(event)
        elif event["type"] == "context_usage":
            usage = event
        elif event["type"] == "recall":
            recalls += 1
        elif event["type"] == "unsupported_numbers":
            doubts = event["figures"]
    return Answer(text, status, turn, queries, usage, recalls, doubts, charts)
