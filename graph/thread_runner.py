"""Run turns on one thread of a compiled graph: its stream as events, what was interrupted, messages to a turn under way.

Who sent a message to a running turn waits till it has joined the turn. If the turn ended without it, the sender takes the
thread and the message is a turn like any other. A sender that does not wait (`detached`), or cannot, for it reads the very
stream of that turn, leaves the message to who has the thread, who runs it next.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack, aclosing, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.types import Interrupt, StateSnapshot

from longtable.base.context import Context
from longtable.base.errors import ConfigError, NotPrivateError, ThreadBusyError, ThreadNotFoundError, TurnPendingError
from longtable.base.events import AnswerEvent, Event, ModelRetry, ReasoningEvent, Token
from longtable.base.twins import a_from, in_thread
from longtable.graph.damage import UNREADABLE, readable
from longtable.graph.locks import locks_of, pauses
from longtable.graph.persistence import storage_errors
from longtable.graph.thread_state import (
    Graph,
    Update,
    Values,
    has_unstored_work,
    is_at_rest,
    is_pending,
    load_state,
    owner_in,
    reading,
    state_owner,
    waits_for_the_model,
    writing_node,
)
from longtable.graph.waiting import passed_over, waiting_of
from longtable.memory.reasoning import streamed_reasoning
from longtable.memory.stamps import turn_number, unmarked
from longtable.nodes.inbox import (
    InboxMessage,
    delete_ops,
    inbox_messages,
    inbox_op,
    message_op,
    new_token,
    notification_op,
    post_ops,
    steered_event,
)
from longtable.nodes.ingest import check_input
from longtable.nodes.records.thread_index import may_see
from longtable.nodes.state import Input, Turn, call_config_of, next_view, thread_of, turn_of

INTERRUPT = "__interrupt__"
"""Key of what a run stopped with, among a stream's updates."""
MODES = ["messages", "custom", "updates"]
WhenBusy = Literal["queue", "reject", "steer"]
"""What a turn does where another one is under way on the thread: wait for it, raise `ThreadBusyError` at once, or join it."""
TRIES = 30
"""How often a turn is run that others overtake each time."""
Result = TypeVar("Result")


@dataclass
class ThreadRunner:
    """One thread of a compiled graph, as one caller sees it."""

    graph: Graph
    thread_id: str
    config: RunnableConfig
    context: Context
    when_busy: WhenBusy
    locked: bool = False
    """The caller holds the thread already."""
    _last: Turn | None = field(default=None, init=False)
    """The record of the newest turn run here, None where it did not come to its end."""

    # -- the thread -------------------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Return whether a caller waits for a thread that another one has."""
        return self.when_busy != "reject"

    def alone(self) -> AbstractContextManager[None]:
        """Return a block in which no other turn or change of this thread runs, in any process that shares its file."""
        return nullcontext() if self.locked else locks_of(self.graph.checkpointer).locked(self.thread_id, wait=self.waits)

    def aalone(self) -> AbstractAsyncContextManager[None]:
        """Return the same block for an awaited turn."""
        return locks_of(self.graph.checkpointer).alocked(self.thread_id, wait=self.waits)

    def state(self) -> StateSnapshot:
        """Return the thread's state. Raises `ThreadNotFoundError` for another owner's. Every turn and every look begins here."""
        with storage_errors():
            state = load_state(self.graph, self.config)
        if not may_see(state_owner(state), self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        return state

    astate = a_from(state)

    def values(self, state: StateSnapshot | None = None) -> Values:
        """Return the thread's values. Raises `ThreadNotFoundError`."""
        state = state or self.state()
        if state.created_at is None:
            raise ThreadNotFoundError(self.thread_id)
        return state.values

    def resting(self, state: StateSnapshot) -> Values:
        """Return the values of a thread that has no turn under way. Raises `TurnPendingError`."""
        values = self.values(state)
        if is_pending(state):
            raise TurnPendingError(self.thread_id)
        return values

    def change(self, decide: Callable[[Values], tuple[Result, Update]], *, mid_turn: bool = False) -> Result:
        """Write what `decide` makes of the thread's values, as a step of its own. Raises `TurnPendingError` in mid-turn.

        `mid_turn`: also allowed in a turn whose model call failed; that turn then recounts and asks again with the change.
        """
        with storage_errors(), self.alone():
            self.keep_interrupted()
            state = self.state()
            result, update = decide(self.values(state) if mid_turn and waits_for_the_model(state) else self.resting(state))
            if update:
                self.graph.update_state(self.config, update, as_node=writing_node(state, update))
            return result

    def keep_interrupted(self) -> None:
        """Store what a killed run had not stored yet, without calling model or tool.

        New input replaces what is still on its way in: a user message that `ingest` has not taken in, or the result of
        a finished step that has no checkpoint yet, would be dropped.
        """
        for _ in range(4):
            if not has_unstored_work(self.state()):
                return
            self.graph.invoke(cast("Any", None), self.config, context=self.context, interrupt_before="*", durability="sync")

    _akeep_interrupted = a_from(keep_interrupted)

    def _at_rest(self) -> bool:
        """Return whether no turn of the thread was interrupted, without loading its messages. Raises where it is another's."""
        saver = self.graph.checkpointer
        with reading(self.graph, self.thread_id):
            found = saver.get_tuple(self.config) if isinstance(saver, BaseCheckpointSaver) else None
            if found is None:
                return isinstance(saver, BaseCheckpointSaver)
            if not may_see(owner_in(found.checkpoint["channel_values"].get("turn"), found.metadata), self.context.owner):
                raise ThreadNotFoundError(self.thread_id)
            return is_at_rest(found)

    def _pass_over(self) -> None:
        """Close a turn whose queries wait for approval: a new message stands for a decision, and rejects them."""
        if update := passed_over(self.state()):
            self.graph.update_state(self.config, update, as_node="approve")
            self.graph.invoke(cast("Any", None), self.config, context=self.context, interrupt_after=["run_tools"], durability="sync")

    def _make_ready(self) -> None:
        """Bring the thread to rest before a new message."""
        if not self._at_rest():
            self.keep_interrupted()
            self._pass_over()

    _amake_ready = a_from(_make_ready)

    def check_view(self, state: StateSnapshot) -> None:
        """Raise `DamagedThreadError` where no view can be made of the thread."""
        with readable(self.thread_id):
            next_view(state.values, self.context)

    # -- runs -------------------------------------------------------------------------------------------------------

    def run(self, given: Any) -> Iterator[Event]:
        """Run the graph on an input, a command, or None to go on, and yield events, the last an `answer`."""
        reader = _Reader()
        try:
            for mode, payload in self.graph.stream(
                given, self.config, context=self.context, stream_mode=cast("Any", MODES), durability="sync"
            ):
                yield from reader.read(str(mode), payload)
        except UNREADABLE:
            self.check_view(self.state())  # raises where the thread is damaged
            raise
        self._last = reader.turn if reader.answered else None
        yield from reader.end()

    async def arun(self, given: Any) -> AsyncGenerator[Event, None]:
        """Run the graph without blocking: see `run`."""
        reader = _Reader()
        try:
            async for mode, payload in self.graph.astream(
                given, self.config, context=self.context, stream_mode=cast("Any", MODES), durability="sync"
            ):
                for event in reader.read(str(mode), payload):
                    yield event
        except UNREADABLE:
            self.check_view(await self.astate())
            raise
        self._last = reader.turn if reader.answered else None
        for event in reader.end():
            yield event

    def turn(self, message: HumanMessage) -> Iterator[Event]:
        """Run a turn on a thread that is locked, then the messages that others left for it meanwhile."""
        return self.resumed(Input(messages=[message]), [message])

    def aturn(self, message: HumanMessage) -> AsyncGenerator[Event, None]:
        """Run a turn without blocking: see `turn`."""
        return self.aresumed(Input(messages=[message]), [message])

    def resumed(self, given: Any, messages: Sequence[BaseMessage]) -> Iterator[Event]:
        """Go on with a turn on a thread that is locked: see `turn`. `messages`: its user messages, none where not yet stored."""
        yield from self._run_again(given, messages)
        while left := self._left():
            yield from self._run_again(Input(messages=left), left)

    async def aresumed(self, given: Any, messages: Sequence[BaseMessage]) -> AsyncGenerator[Event, None]:
        """Go on with a turn without blocking: see `resumed`."""
        left = messages
        while True:
            async with aclosing(self._arun_again(given, left)) as events:
                async for event in events:
                    yield event
            if not (left := await self._aleft()):
                return
            given = Input(messages=left)

    def compact(self, command: Callable[[], Any]) -> list[Event]:
        """Run a compaction on a thread that is locked, again if another run overtakes it. `command` returns the graph's input."""
        tries = 0
        while True:
            try:
                return list(self.run(command()))
            except ThreadBusyError:
                if not self.waits or (tries := tries + 1) == TRIES:
                    raise
                locks_of(self.graph.checkpointer).relock(self.thread_id)

    async def acompact(self, command: Callable[[], Any]) -> list[Event]:
        """Run a compaction without blocking: see `compact`."""
        tries = 0
        while True:
            try:
                return [event async for event in self.arun(await in_thread(command))]
            except ThreadBusyError:
                if not self.waits or (tries := tries + 1) == TRIES:
                    raise
                await locks_of(self.graph.checkpointer).arelock(self.thread_id)

    def _run_again(self, turn: Any, messages: Sequence[BaseMessage]) -> Iterator[Event]:
        """Run a turn; if another run overtakes it, wait for the thread again and run what is left of it.

        That happens where this process stood still for longer than its lease, where its lease connection was cut, or
        where a bare run of the graph did not wait.
        """
        answer: Event | None = None
        overtaken: ThreadBusyError | None = None
        for tries in range(TRIES):
            try:
                if overtaken is not None:
                    locks_of(self.graph.checkpointer).relock(self.thread_id)
                    self.keep_interrupted()
                    turn, known = rest_of(messages, self.state(), overtaken)
                    if known is not None:
                        if answer is None:
                            yield known
                        return
                    yield _restarted(tries)
                if _has_messages(turn):
                    self._make_ready()
                for event in self.run(turn):
                    answer = event if event["type"] == "answer" else answer
                    yield event
                return
            except ThreadBusyError as error:
                if not self.waits or tries == TRIES - 1:
                    raise
                overtaken = overtaken if overtaken is not None and overtaken.stored else error

    async def _arun_again(self, turn: Any, messages: Sequence[BaseMessage]) -> AsyncGenerator[Event, None]:
        answer: Event | None = None
        overtaken: ThreadBusyError | None = None
        for tries in range(TRIES):
            try:
                if overtaken is not None:
                    await locks_of(self.graph.checkpointer).arelock(self.thread_id)
                    await self._akeep_interrupted()
                    turn, known = rest_of(messages, await self.astate(), overtaken)
                    if known is not None:
                        if answer is None:
                            yield known
                        return
                    yield _restarted(tries)
                if _has_messages(turn):
                    await self._amake_ready()
                async with aclosing(self.arun(turn)) as events:
                    async for event in events:
                        answer = event if event["type"] == "answer" else answer
                        yield event
                return
            except ThreadBusyError as error:
                if not self.waits or tries == TRIES - 1:
                    raise
                overtaken = overtaken if overtaken is not None and overtaken.stored else error

    # -- messages to a turn under way -------------------------------------------------------------------------------

    def steered(self, message: HumanMessage, *, wait: bool) -> Iterator[Event]:
        """Hand a message to the turn under way, or run it as a turn where there is none; `wait` until it was taken in."""
        store, free = self._inbox_store(), self._free(blocks=True)
        if free:
            with ExitStack() as stack:
                if self._entered(stack):
                    yield from self.turn(message)
                    return
        turn = self._checked(message, self.state().values)
        posted = _inbox_message(message, detached=not (wait and free))
        store.batch(post_ops(self.thread_id, posted))
        if posted.detached:
            yield from _on_its_way(message, turn)
            return
        for pause in pauses():
            if store.batch([message_op(self.thread_id, posted)]) == [None]:
                yield from _on_its_way(message, _place(message, self.state().values))
                return
            with ExitStack() as stack:
                if self._entered(stack):
                    if turn := _place(message, self.state().values):
                        store.batch(delete_ops(self.thread_id, [posted.key]))
                        yield from _on_its_way(message, turn)
                    else:
                        yield from self.turn(message)
                    return
            time.sleep(pause)

    async def asteered(self, message: HumanMessage, *, wait: bool) -> AsyncGenerator[Event, None]:
        """Hand a message to the turn under way without blocking: see `steered`."""
        store, free = self._inbox_store(), self._free(blocks=False)
        if free:
            async with AsyncExitStack() as stack:
                if await self._aentered(stack):
                    async with aclosing(self.aturn(message)) as events:
                        async for event in events:
                            yield event
                    return
        turn = self._checked(message, (await self.astate()).values)
        posted = _inbox_message(message, detached=not (wait and free))
        await store.abatch(post_ops(self.thread_id, posted))
        if posted.detached:
            for event in _on_its_way(message, turn):
                yield event
            return
        for pause in pauses():
            if await store.abatch([message_op(self.thread_id, posted)]) == [None]:
                for event in _on_its_way(message, _place(message, (await self.astate()).values)):
                    yield event
                return
            async with AsyncExitStack() as stack:
                if await self._aentered(stack):
                    if turn := _place(message, (await self.astate()).values):
                        await store.abatch(delete_ops(self.thread_id, [posted.key]))
                        for event in _on_its_way(message, turn):
                            yield event
                    else:
                        async with aclosing(self.aturn(message)) as events:
                            async for event in events:
                                yield event
                    return
            await asyncio.sleep(pause)

    def _free(self, *, blocks: bool) -> bool:
        return not locks_of(self.graph.checkpointer).is_mine(self.thread_id, blocks=blocks)

    def _entered(self, stack: ExitStack) -> bool:
        """Take the thread if nobody has it."""
        try:
            stack.enter_context(locks_of(self.graph.checkpointer).locked(self.thread_id, wait=False))
        except ThreadBusyError:
            return False
        return True

    async def _aentered(self, stack: AsyncExitStack) -> bool:
        try:
            await stack.enter_async_context(locks_of(self.graph.checkpointer).alocked(self.thread_id, wait=False))
        except ThreadBusyError:
            return False
        return True

    def _checked(self, message: HumanMessage, values: Values) -> int:
        """Refuse a message that could not be sent word for word, before it is accepted; return the turn it is on its way to.

        It is the running turn's settings that it would be sent under: its limit where that is the smaller, and its openness,
        which a sender who withholds every cell does not join.
        """
        turn = turn_of(values)
        if self.context.privacy == "types" and turn.get("number") and not turn.get("private"):
            raise NotPrivateError
        if values.get("brief"):
            for context in (self.context, self.context.replace(model_limit=None)):
                check_input([message], context, call_config_of(values, context))
        return _number(turn)

    def _inbox_store(self) -> BaseStore:
        if self.graph.store is None:
            raise ConfigError("messages to a running turn wait in a store: compile the graph with it, graph.compile(..., store=...)")
        return self.graph.store

    def _left(self) -> list[BaseMessage]:
        """Return the messages that nobody waits for, where the turn that just ended did not take them in."""
        if self.graph.store is None or self._last is None:
            return []
        if new_token(self.graph.store.batch([notification_op(self.thread_id)])[0], self._last) is None:
            return []
        return _nobodys(self.thread_id, self.graph.store.batch([inbox_op(self.thread_id)])[0])

    _aleft = a_from(_left)


def _inbox_message(message: HumanMessage, *, detached: bool) -> InboxMessage:
    return InboxMessage(f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}", message, detached=detached)


def _nobodys(thread_id: str, found: Any) -> list[BaseMessage]:
    return [posted.message for posted in inbox_messages(thread_id, found or []) if posted.detached]


def _has_messages(given: Any) -> bool:
    return isinstance(given, Mapping) and bool(given["messages"])


def messages_of_turn(state: StateSnapshot) -> list[BaseMessage]:
    """Return the user messages of a thread's newest turn, none while they are on their way in."""
    if any(task.name in {"__start__", "ingest"} for task in state.tasks):
        return []
    number = turn_of(state.values).get("number")
    return [message for message in thread_of(state.values).messages if message.type == "human" and turn_number(message) == number]


def rest_of(messages: Sequence[BaseMessage], state: StateSnapshot, error: ThreadBusyError) -> tuple[Input | None, AnswerEvent | None]:
    """Return what is left of a turn that another run overtook: its input, None to resume it, and the answer it may have by now.

    If other turns came after its messages, these move to the end of the transcript, and what it had written leaves it.
    Raises `error` if they are part of a compaction by now.
    """
    thread, turn = thread_of(state.values), turn_of(state.values)
    places = {message.id: place for place, message in enumerate(thread.messages)}
    if not messages:  # they were still on their way in when the turn was resumed
        if not is_pending(state):
            raise error
        return None, None
    if (first := places.get(messages[-1].id)) is None:
        if error.stored:
            raise error
        return Input(messages=messages), None
    number = turn_number(thread.messages[first])
    written = [message for message in thread.messages if turn_number(message) == number]
    if number == turn.get("number") and is_pending(state):
        return None, None
    last = written[-1]
    if isinstance(last, AIMessage) and not last.tool_calls:
        status = str(turn.get("status", "")) if number == turn.get("number") else "answered"
        return None, AnswerEvent(type="answer", text=str(last.text), status=status, turn=number)
    compacted = thread.chain[-1]["count"] if thread.chain else 0
    if thread.archived + places[written[0].id] < compacted:
        raise error
    removals = [RemoveMessage(id=str(message.id)) for message in written]
    return Input(messages=[*removals, *(unmarked(message) for message in written if message.type == "human")]), None


def _restarted(tries: int) -> ModelRetry:
    """Return the event after which the model is asked again: text that streamed before it is no part of the answer."""
    return ModelRetry(type="model_retry", model="", attempt=tries, wait_s=0.0, code=ThreadBusyError.code)


def _number(turn: Mapping[str, Any] | None) -> int:
    return int((turn or {}).get("number", 0))


def _place(message: HumanMessage, values: Values) -> int:
    """Return the turn that a message has joined, 0 where it has not."""
    return next((turn_number(other) for other in reversed(values.get("messages") or []) if other.id == message.id), 0)


def _on_its_way(message: HumanMessage, turn: int) -> Iterator[Event]:
    yield steered_event(message, turn)
    yield AnswerEvent(type="answer", text="", status="steered", turn=turn)


class _Reader:
    """LangGraph's stream of one run as events."""

    def __init__(self) -> None:
        self.text = ""
        self.streams = self.answered = self.asked = False
        self.waits = ""
        self.turn: Turn = {}

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
            if thought := streamed_reasoning(message):
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
