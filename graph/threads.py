"""The thread facade: ask, stream, look at and compact one conversation; list them all."""

import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import SearchItem
from langgraph.types import Command, StateSnapshot

from longtable.graph.context import Context
from longtable.graph.errors import ConfigError, ThreadNotFoundError, TurnPendingError
from longtable.graph.events import AnswerEvent, ContextCompressed, ContextUsage, Event, QueryFinished, Token
from longtable.graph.persistence import Persistence, storage_errors
from longtable.graph.state import Input, State, next_view, thread_of, turn_of
from longtable.nodes.ingest import THREADS, check_input

Graph = CompiledStateGraph[State, Context, Input, State]
MODES = ["messages", "custom", "updates"]
MOST_THREADS = 10_000


@dataclass(frozen=True)
class Answer:
    """One turn's result. `status`: "answered", or the code of the notice that stands for an answer."""

    text: str
    status: str
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None


@dataclass(frozen=True)
class ThreadInfo:
    """One line of the thread list. Times are ISO 8601, UTC."""

    thread_id: str
    title: str
    created: str
    updated: str
    turns: int


class Conversation:
    """One thread of a compiled graph. Use the sync methods with a sync checkpointer, the `a...` ones with an async one.

    A turn that was interrupted (`pending`) is finished by `resume`; a new message instead of a resume drops nothing:
    the interrupted user message stays in the thread.
    """

    def __init__(self, graph: Graph, thread_id: str | None = None, *, context: Context | None = None) -> None:
        if graph.checkpointer is None:
            raise ConfigError("a Conversation needs a graph compiled with a checkpointer: graph.compile(checkpointer=...)")
        self.graph = graph
        self.thread_id = thread_id or uuid.uuid4().hex[:12]
        self.context = context or Context()
        self.config: RunnableConfig = {"configurable": {"thread_id": self.thread_id}}

    # -- one turn ---------------------------------------------------------------------------------------------------

    def ask(self, text: str) -> Answer:
        """Run one turn and return its answer."""
        return _collect(list(self.stream(text)))

    async def aask(self, text: str) -> Answer:
        """Run one turn and return its answer."""
        return _collect([event async for event in self.astream(text)])

    def stream(self, text: str) -> Iterator[Event]:
        """Run one turn and yield its events, the last an `answer`. Raises the typed errors of `longtable.graph.errors`."""
        with storage_errors():
            message = self._message(text)
            self._keep_interrupted()
            yield from self._run(Input(messages=[message]))

    async def astream(self, text: str) -> AsyncIterator[Event]:
        """Run one turn and yield its events, the last an `answer`. Cancelling the task cancels queries, not the thread."""
        with storage_errors():
            message = self._message(text)
            await self._akeep_interrupted()
            async for event in self._arun(Input(messages=[message])):
                yield event

    def pending(self) -> bool:
        """Tell whether a turn was interrupted and waits to be resumed."""
        return _pending(self._state())

    async def apending(self) -> bool:
        """Tell whether a turn was interrupted and waits to be resumed."""
        return _pending(await self._astate())

    def resume(self) -> Iterator[Event]:
        """Finish an interrupted turn and yield its events; nothing when none is pending."""
        with storage_errors():
            if self.pending():
                yield from self._run(None)

    async def aresume(self) -> AsyncIterator[Event]:
        """Finish an interrupted turn and yield its events; nothing when none is pending."""
        with storage_errors():
            if await self.apending():
                async for event in self._arun(None):
                    yield event

    # -- looking at the thread --------------------------------------------------------------------------------------

    def history(self) -> list[BaseMessage]:
        """Return the whole transcript in order. Raises `ThreadNotFoundError`."""
        return _transcript(self._values(self._state()))

    async def ahistory(self) -> list[BaseMessage]:
        """Return the whole transcript in order. Raises `ThreadNotFoundError`."""
        return _transcript(self._values(await self._astate()))

    def view(self) -> list[BaseMessage]:
        """Return exactly what the next model call would be sent. Raises `ThreadNotFoundError`."""
        return next_view(self._values(self._state()), self.context)

    async def aview(self) -> list[BaseMessage]:
        """Return exactly what the next model call would be sent. Raises `ThreadNotFoundError`."""
        return next_view(self._values(await self._astate()), self.context)

    def compact(self) -> ContextCompressed | None:
        """Fold now, also under the threshold; None when there is nothing to fold.

        Raises `ThreadNotFoundError`, and `TurnPendingError` while an interrupted turn waits.
        """
        with storage_errors():
            self._keep_interrupted()
            return _compressed(list(self._run(self._fold_now(self._state()))))

    async def acompact(self) -> ContextCompressed | None:
        """Fold now, also under the threshold; None when there is nothing to fold.

        Raises `ThreadNotFoundError`, and `TurnPendingError` while an interrupted turn waits.
        """
        with storage_errors():
            await self._akeep_interrupted()
            command = self._fold_now(await self._astate())
            return _compressed([event async for event in self._arun(command)])

    # -- inside -----------------------------------------------------------------------------------------------------

    def _run(self, given: Any) -> Iterator[Event]:
        reader = _Reader()
        for mode, payload in self.graph.stream(given, self.config, context=self.context, stream_mode=cast("Any", MODES), durability="sync"):
            yield from reader.read(str(mode), payload)
        yield from reader.end()

    async def _arun(self, given: Any) -> AsyncIterator[Event]:
        reader = _Reader()
        async for mode, payload in self.graph.astream(
            given, self.config, context=self.context, stream_mode=cast("Any", MODES), durability="sync"
        ):
            for event in reader.read(str(mode), payload):
                yield event
        for event in reader.end():
            yield event

    def _message(self, text: str) -> HumanMessage:
        """Return the new message; refuse what needs no count here, so that nothing at all is written (`ingest` counts)."""
        message = HumanMessage(text, id=str(uuid.uuid4()))
        check_input([message], self.context, None)
        return message

    def _keep_interrupted(self) -> None:
        """Store what a killed run had not stored yet, without calling model or tool.

        New input replaces what is still on its way in: a user message that `ingest` has not taken in, or the result of
        a finished step that has no checkpoint yet, would be dropped.
        """
        for _ in range(4):
            state = self._state()
            if not _unstored(state):
                return
            self.graph.invoke(cast("Any", None), self.config, context=self.context, interrupt_before="*", durability="sync")

    async def _akeep_interrupted(self) -> None:
        for _ in range(4):
            state = await self._astate()
            if not _unstored(state):
                return
            await self.graph.ainvoke(cast("Any", None), self.config, context=self.context, interrupt_before="*", durability="sync")

    def _fold_now(self, state: StateSnapshot) -> Command[str]:
        values = self._values(state)
        if state.tasks:
            raise TurnPendingError(self.thread_id)
        return Command(goto="compact", update={"turn": {**turn_of(values), "status": "compacting"}})

    def _state(self) -> StateSnapshot:
        with storage_errors():
            return self.graph.get_state(self.config)

    async def _astate(self) -> StateSnapshot:
        with storage_errors():
            return await self.graph.aget_state(self.config)

    def _values(self, state: StateSnapshot) -> Mapping[str, Any]:
        if state.created_at is None:
            raise ThreadNotFoundError(self.thread_id)
        return state.values


def list_threads(persistence: Persistence, *, limit: int = 100) -> list[ThreadInfo]:
    """Return the newest threads of a store, newest first."""
    with storage_errors():
        return _infos(persistence.store.search(THREADS, limit=MOST_THREADS), limit)


async def alist_threads(persistence: Persistence, *, limit: int = 100) -> list[ThreadInfo]:
    """Return the newest threads of a store, newest first."""
    with storage_errors():
        return _infos(await persistence.store.asearch(THREADS, limit=MOST_THREADS), limit)


class _Reader:
    """Turns LangGraph's stream into events."""

    def __init__(self) -> None:
        self.text = ""
        self.streams = False
        self.turn: Mapping[str, Any] = {}

    def read(self, mode: str, payload: Any) -> Iterator[Event]:
        if mode == "custom":
            yield payload
        elif mode == "messages":
            message, metadata = payload
            streamed = isinstance(message, AIMessageChunk)
            self.streams |= streamed
            # What was streamed comes once more whole where a server repeats its ids.
            wanted = streamed or (isinstance(message, AIMessage) and not self.streams)
            if metadata.get("langgraph_node") == "respond" and wanted and message.text:
                yield Token(type="token", text=str(message.text))
        else:
            for node, update in payload.items():
                self._update(node, update)

    def _update(self, node: str, update: Any) -> None:
        if not isinstance(update, Mapping):
            return
        self.turn = update.get("turn", self.turn)
        if node in {"respond", "settle"}:
            for message in update.get("messages", ()):
                self.text = str(message.text)

    def end(self) -> Iterator[Event]:
        yield AnswerEvent(type="answer", text=self.text, status=str(self.turn.get("status", "")), turn=int(self.turn.get("number", 0)))


def _collect(events: list[Event]) -> Answer:
    text, status, turn, usage = "", "", 0, None
    queries: list[QueryFinished] = []
    for event in events:
        if event["type"] == "answer":
            text, status, turn = event["text"], event["status"], event["turn"]
        elif event["type"] == "query_finished":
            queries.append(event)
        elif event["type"] == "context_usage":
            usage = event
    return Answer(text, status, turn, queries, usage)


def _pending(state: StateSnapshot) -> bool:
    return bool(state.tasks) and turn_of(state.values).get("status") != "refused"


def _unstored(state: StateSnapshot) -> bool:
    return any(task.name in {"__start__", "ingest"} or task.result is not None for task in state.tasks)


def _transcript(values: Mapping[str, Any]) -> list[BaseMessage]:
    return list(thread_of(values)[0])


def _compressed(events: list[Event]) -> ContextCompressed | None:
    return next((event for event in events if event["type"] == "context_compressed"), None)


def _infos(items: Iterable[SearchItem], limit: int) -> list[ThreadInfo]:
    found = [ThreadInfo(thread_id=item.key, **item.value) for item in items]
    return sorted(found, key=lambda info: info.updated, reverse=True)[:limit]
