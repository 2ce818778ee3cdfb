"""Run a compiled graph on one thread: its stream as events, its state, what was interrupted, what a person changes."""

import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt, StateSnapshot

from longtable.base.context import Context
from longtable.base.errors import ConfigError, ThreadNotFoundError, TurnPendingError
from longtable.base.events import AnswerEvent, Event, ReasoningEvent, Token
from longtable.base.store_keys import NODE
from longtable.graph.archive_files import checked_archive
from longtable.graph.damage import UNREADABLE, check_values, readable
from longtable.graph.guard import GuardedSaver
from longtable.graph.locks import turns_of
from longtable.graph.persistence import storage_errors
from longtable.graph.waiting import passed_over, waiting_of
from longtable.memory.reasoning import reasoning_told
from longtable.nodes.records.thread_index import may_see, owner_of
from longtable.nodes.state import Input, State, next_view, turn_of
from longtable.nodes.turns.refusals import FAILED

if TYPE_CHECKING:
    from pathlib import Path

    from longtable.graph.archive_files import ArchiveFiles
    from longtable.tools.results import ResultStore

Graph = CompiledStateGraph[State, Context, Input, State]
OWNER = "longtable_owner"
"""Key of the owner in a checkpoint's metadata."""
INTERRUPT = "__interrupt__"
"""Key of what a run stopped with, among a stream's updates."""
CLOSED = ("refused", FAILED)
"""Status of a turn that ended in an error, and is not to be resumed."""
MODES = ["messages", "custom", "updates"]
Values = Mapping[str, Any]
Update = dict[str, Any]
WhenBusy = Literal["queue", "reject", "steer"]
"""What a turn does where another one is under way on the thread: wait for it, raise `ThreadBusyError` at once, or join it."""
Result = TypeVar("Result")


class Runner:
    """One thread of a compiled graph. The methods without `a` want a sync checkpointer, the others an async one."""

    def __init__(
        self,
        graph: Graph,
        thread_id: str | None = None,
        *,
        context: Context | None = None,
        when_busy: WhenBusy = "queue",
        results: "ResultStore | None" = None,
        archive: "ArchiveFiles | Path | str | None" = None,
    ) -> None:
        if graph.checkpointer is None:
            raise ConfigError("a Conversation needs a graph compiled with a checkpointer: graph.compile(checkpointer=...)")
        if when_busy not in ("queue", "reject", "steer"):
            raise ConfigError(f"when_busy must be 'queue', 'reject' or 'steer', found {when_busy!r}")
        if thread_id and NODE in thread_id:  # what is kept under such an id is a node's of another thread
            raise ConfigError(f"a thread id holds no {NODE!r}, found {thread_id[:80]!r}: take the id of the thread itself")
        self.graph = graph
        self.when_busy = when_busy
        self.thread_id = thread_id or uuid.uuid4().hex[:12]
        self.context = context or Context()
        self.results = results
        self.archive = checked_archive(archive)
        self._last: Mapping[str, Any] | None = None
        """The record of the newest turn run here, None where it did not come to its end."""
        self.config: RunnableConfig = {"configurable": {"thread_id": self.thread_id}}
        if self.context.owner:  # kept with each checkpoint: of a first message that no node has seen yet, nothing else says whose it is
            self.config["metadata"] = {OWNER: self.context.owner}

    @property
    def _waits(self) -> bool:
        return self.when_busy != "reject"

    def _alone(self) -> AbstractContextManager[None]:
        """Return a block in which no other turn or change of this thread runs, in any process that shares its file."""
        return turns_of(self.graph.checkpointer).turn(self.thread_id, wait=self._waits)

    def _aalone(self) -> AbstractAsyncContextManager[None]:
        return turns_of(self.graph.checkpointer).aturn(self.thread_id, wait=self._waits)

    def _run(self, given: Any) -> Iterator[Event]:
        reader = _Reader()
        try:
            for mode, payload in self.graph.stream(
                given, self.config, context=self.context, stream_mode=cast("Any", MODES), durability="sync"
            ):
                yield from reader.read(str(mode), payload)
        except UNREADABLE:
            self._check_view(self._state())  # raises where the thread is damaged
            raise
        self._last = reader.turn if reader.answered else None
        yield from reader.end()

    async def _arun(self, given: Any) -> AsyncGenerator[Event, None]:
        reader = _Reader()
        try:
            async for mode, payload in self.graph.astream(
                given, self.config, context=self.context, stream_mode=cast("Any", MODES), durability="sync"
            ):
                for event in reader.read(str(mode), payload):
                    yield event
        except UNREADABLE:
            self._check_view(await self._astate())
            raise
        self._last = reader.turn if reader.answered else None
        for event in reader.end():
            yield event

    def _at_rest(self) -> bool:
        """Tell that no turn of the thread was interrupted, without loading its messages. Raises where it is another's."""
        saver = self.graph.checkpointer
        with _reading(self.graph, self.thread_id):
            return isinstance(saver, BaseCheckpointSaver) and self._rests(saver.get_tuple(self.config))

    async def _aat_rest(self) -> bool:
        saver = self.graph.checkpointer
        with _reading(self.graph, self.thread_id):
            return isinstance(saver, BaseCheckpointSaver) and self._rests(await saver.aget_tuple(self.config))

    def _rests(self, found: CheckpointTuple | None) -> bool:
        if found is None:
            return True
        if not may_see(_owner(found.checkpoint["channel_values"].get("turn"), found.metadata), self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        # Of a step that is due the edges to its node were written last; what a step wrote without an end is pending.
        updated = found.checkpoint.get("updated_channels")
        due = updated is None or any(name.startswith("branch:to:") for name in updated)
        return not (due or found.pending_writes or found.metadata.get("source") == "input")

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

    def _pass_over(self) -> None:
        """Close a turn whose queries wait for approval: a new message stands for a decision, and rejects them."""
        if update := passed_over(self._state()):
            self.graph.update_state(self.config, update, as_node="approve")
            self.graph.invoke(cast("Any", None), self.config, context=self.context, interrupt_after=["run_tools"], durability="sync")

    async def _apass_over(self) -> None:
        if update := passed_over(await self._astate()):
            await self.graph.aupdate_state(self.config, update, as_node="approve")
            given = cast("Any", None)
            await self.graph.ainvoke(given, self.config, context=self.context, interrupt_after=["run_tools"], durability="sync")

    def _change(self, decide: Callable[[Values], tuple[Result, Update]], *, mid_turn: bool = False) -> Result:
        """Write what `decide` makes of the thread's values, as a step of its own. Raises `TurnPendingError` in mid-turn.

        `mid_turn`: also allowed in a turn whose model call failed; that turn then recounts and asks again with the change.
        """
        with storage_errors(), self._alone():
            self._keep_interrupted()
            state = self._state()
            result, update = decide(self._values(state) if mid_turn and _waits_for_the_model(state) else self._resting(state))
            if update:
                self.graph.update_state(self.config, update, as_node=_step_for(state, update))
            return result

    async def _achange(self, decide: Callable[[Values], tuple[Result, Update]], *, mid_turn: bool = False) -> Result:
        with storage_errors():
            async with self._aalone():
                await self._akeep_interrupted()
                state = await self._astate()
                result, update = decide(self._values(state) if mid_turn and _waits_for_the_model(state) else self._resting(state))
                if update:
                    await self.graph.aupdate_state(self.config, update, as_node=_step_for(state, update))
                return result

    def _state(self) -> StateSnapshot:
        with storage_errors():
            return self._seen(load_state(self.graph, self.config))

    async def _astate(self) -> StateSnapshot:
        with storage_errors():
            return self._seen(await aload_state(self.graph, self.config))

    def _seen(self, state: StateSnapshot) -> StateSnapshot:
        """Return the state if the thread is this context's owner's or nobody's. Every turn and every look begins here."""
        if not may_see(state_owner(state), self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        return state

    def _check_view(self, state: StateSnapshot) -> None:
        with readable(self.thread_id):
            next_view(state.values, self.context)

    def _values(self, state: StateSnapshot) -> Values:
        if state.created_at is None:
            raise ThreadNotFoundError(self.thread_id)
        return state.values

    def _resting(self, state: StateSnapshot) -> Values:
        """Return the values of a thread that has no turn under way."""
        values = self._values(state)
        if is_pending(state):
            raise TurnPendingError(self.thread_id)
        return values


def load_state(graph: Graph, config: RunnableConfig) -> StateSnapshot:
    """Return a thread's state. Raises `DamagedThreadError` where it cannot be read."""
    thread_id = config["configurable"]["thread_id"]
    with _reading(graph, thread_id):
        state = graph.get_state(config)
    with readable(thread_id):
        check_values(state.values)
    return state


async def aload_state(graph: Graph, config: RunnableConfig) -> StateSnapshot:
    """Return a thread's state: see `load_state`."""
    thread_id = config["configurable"]["thread_id"]
    with _reading(graph, thread_id):
        state = await graph.aget_state(config)
    with readable(thread_id):
        check_values(state.values)
    return state


def _reading(graph: Graph, thread_id: str) -> AbstractContextManager[None]:
    """Raise `DamagedThreadError` for what cannot be decoded; errors of a caller's own saver pass, they may be its bugs."""
    return readable(thread_id) if isinstance(graph.checkpointer, GuardedSaver) else nullcontext()


def is_pending(state: StateSnapshot) -> bool:
    """Tell whether a turn was interrupted; what was only being prepared for the next turn is nobody's loss."""
    # A refusal, of an input or by the provider, is raised by the last step, which stays undone then.
    closed = {"prepare", "settle"} if turn_of(state.values).get("status") in CLOSED else {"prepare"}
    return any(task.name not in closed for task in state.tasks)


def is_failed(state: StateSnapshot) -> bool:
    """Return whether the newest turn was closed as failed and can be run again."""
    return "failure" in turn_of(state.values)


def _waits_for_the_model(state: StateSnapshot) -> bool:
    """Return whether an unfinished turn stands before a model call: what a person changes then goes into that call."""
    unfinished = [task for task in state.tasks if task.name != "prepare"]
    return all(task.name in {"estimate", "respond"} and not task.interrupts for task in unfinished)


def _step_for(state: StateSnapshot, update: Update) -> str:
    """Return the node after which a change counts as written: a turn that goes on is counted next, else nothing is."""
    closes = update.get("turn", {}).get("status") in CLOSED
    return "ingest" if is_pending(state) and not closes else "prepare"


def left_over(state: StateSnapshot) -> Update | None:
    """Return the update that closes what a resting thread has left to do, None where that is nothing: another step would meet it.

    A refused input leaves the step that told so, a killed process what was being prepared for the next turn.
    """
    if not state.tasks or is_pending(state):
        return None
    turn = turn_of(state.values)
    turn.pop("refusal", None)
    return {"turn": {**turn, "status": FAILED if "failure" in turn else "answered"}}


def state_owner(state: StateSnapshot) -> str | None:
    """Return a stored thread's owner, None where it belongs to nobody."""
    return _owner(state.values.get("turn"), state.metadata)


def _owner(turn: Any, metadata: Mapping[str, Any] | None) -> str | None:
    known = dict(turn or {})
    return owner_of(known if known.get("number") else {"owner": (metadata or {}).get(OWNER)})


def _unstored(state: StateSnapshot) -> bool:
    return any(task.name in {"__start__", "ingest"} or task.result is not None for task in state.tasks)


class _Reader:
    """Turns LangGraph's stream into events."""

    def __init__(self) -> None:
        self.text = ""
        self.streams = self.answered = self.asked = False
        self.waits = ""
        self.turn: Mapping[str, Any] = {}

    def read(self, mode: str, payload: Any) -> Iterator[Event]:
        if mode == "custom":
            self.asked |= payload["type"] == "approval_requested"
            yield payload
        elif mode == "messages":
            message, metadata = payload
            streamed = isinstance(message, AIMessageChunk)
            self.streams |= streamed
            # What was streamed comes once more whole where a server repeats its ids.
            wanted = streamed or (isinstance(message, AIMessage) and not self.streams)
            if metadata.get("langgraph_node") != "respond" or not wanted:
                return
            if thought := reasoning_told(message):
                yield ReasoningEvent(type="reasoning", text=thought)
            if message.text:
                yield Token(type="token", text=str(message.text))
        else:
            for node, update in payload.items():
                if node == INTERRUPT:
                    yield from self._waits(update)
                    continue
                self._update(node, update)
                if node == "settle":  # what follows prepares the next turn: the answer does not wait for it
                    yield self._answer()

    def _waits(self, interrupts: Sequence[Interrupt]) -> Iterator[Event]:
        for waiting in waiting_of(interrupts):
            self.waits = self.waits or waiting.event["type"]
            if not (self.asked and waiting.actions):  # it was told when the calls were looked at
                yield waiting.event

    def _update(self, node: str, update: Any) -> None:
        if not isinstance(update, Mapping):
            return
        self.turn = update.get("turn", self.turn)
        if node in {"respond", "settle"}:
            for message in update.get("messages", ()):
                self.text = str(message.text)

    def end(self) -> Iterator[Event]:
        if not self.answered:
            yield self._answer()

    def _answer(self) -> AnswerEvent:
        self.answered = True
        status = self.waits or str(self.turn.get("status", ""))
        return AnswerEvent(type="answer", text=self.text, status=status, turn=int(self.turn.get("number", 0)))
