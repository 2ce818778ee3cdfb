"""Run the graph on one thread: load and change its state, and read the stream of a run as events
and their answer.
"""

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.types import Command, StateSnapshot

from longtable.base.concurrency import SYNC, Execution, in_event_loop, in_thread
from longtable.base.context import Context
from longtable.base.errors import (
    DamagedThreadError,
    ThreadNotFoundError,
    TurnPendingError,
)
from longtable.base.events import (
    Event,
)
from longtable.graph.running.stream_events import RunReader
from longtable.graph.thread_state import (
    Graph,
    StoredThreads,
    Update,
    Values,
    check_lost,
    has_unstored_work,
    is_at_rest,
    is_later,
    is_pending,
    is_stored,
    load_state,
    made_by_voices,
    owner_in,
    reading,
    rejection,
    state_owner,
    waits_for_the_model,
    writing_node,
)
from longtable.nodes.call_plans import next_view
from longtable.nodes.state import (
    Input,
    State,
    values_of,
)
from longtable.store.damage import UNREADABLE, readable
from longtable.store.history_cache import SHARES
from longtable.store.locks import Background, ThreadLocks, locks_of
from longtable.store.records.thread_index import entry_of, may_see, owner_of
from longtable.store.saver_guard import TOGETHER
from longtable.store.storage_errors import storage_errors
from longtable.tools.charts.pictures import Chart

if TYPE_CHECKING:
    from longtable.graph.wiring.step import Step

PREPARE = "prepare"
"""The node that prepares room in the context for the next turn."""
MOST_AT_ONCE = 32
"""The most tasks of one run that LangGraph runs at the same time."""
MODES = ["messages", "custom", "updates"]
"""What LangGraph streams of a run whose events are read while it runs."""
WhenBusy = Literal["queue", "reject", "steer"]
"""What a turn does if another turn holds the thread: wait, raise `ThreadBusyError`, or join the
other turn.
"""
Result = TypeVar("Result")
GraphInput = Input | Command[Any] | None
"""The input of a run. None resumes the turn where it stopped."""


@dataclass
class ThreadRunner:
    """One thread of a compiled graph, with the settings of one caller."""

    graph: Graph
    thread_id: str
    config: RunnableConfig
    context: Context
    when_busy: WhenBusy
    locked: bool = False
    """Whether the caller already holds the thread's lock."""
    how: Execution = SYNC
    live: bool = True
    """Whether the caller reads the events of a run while it runs. If not, LangGraph runs each node
    in the caller's own OS thread, which saves a fifth of a short turn.
    """

    # -- the thread ---------------------------------------------------------------------------

    @property
    def locks(self) -> ThreadLocks:
        """Return the locks of the graph's checkpointer."""
        return locks_of(self.graph.checkpointer)

    @property
    def waits(self) -> bool:
        """Return whether the caller waits if another caller holds the thread."""
        return self.when_busy != "reject"

    def alone(self) -> AbstractContextManager[None]:
        """Return a context manager. Inside it no other turn or change of this thread runs, in any
        process.
        """
        if self.locked:
            return nullcontext()
        return self.locks.locked(self.thread_id, wait=self.waits)

    @storage_errors()
    def state(self, *, shared: bool = False) -> StateSnapshot:
        """Return the thread's state. Raises `ThreadNotFoundError` if the thread belongs to another
        owner, `LostMessagesError` if messages are gone. `shared`: the messages may be those of the
        turn before, so they are not for callers.
        """
        entry = self._entry()  # before the state: others may write while it is read
        state = load_state(self.graph, self._sharing if shared else self.config)
        theirs = state_owner(state) if is_stored(state) else owner_of(entry)
        if not may_see(theirs, self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        check_lost(StoredThreads(self.graph), self.thread_id, state, entry)
        return state

    @property
    def _sharing(self) -> RunnableConfig:
        """The config of a read or write within this thread's lock."""
        return {**self.config, "configurable": {**self.config["configurable"], SHARES: True}}

    def _entry(self) -> Mapping[str, Any]:
        """Return the thread's entry in the index. It is empty if there is none, if the store fails,
        or if the config names a particular checkpoint.
        """
        if self.graph.store is not None and "checkpoint_id" not in self.config["configurable"]:
            with suppress(Exception):
                return entry_of(self.graph.store, self.thread_id)
        return {}

    def values(self, state: StateSnapshot | None = None) -> Values:
        """Return the thread's values. Raises `ThreadNotFoundError` if there is no such thread."""
        state = state or self.state()
        if state.created_at is None:
            raise ThreadNotFoundError(self.thread_id)
        return values_of(state)

    def resting(self, state: StateSnapshot) -> Values:
        """Return the values of a thread. Raises `TurnPendingError` if it has an unfinished turn."""
        values = self.values(state)
        if is_pending(state):
            raise TurnPendingError(self.thread_id)
        return values

    def change(
        self, decide: Callable[[Values], tuple[Result, Update]], *, mid_turn: bool = False
    ) -> Result:
        """Write the update that `decide` makes from the thread's values, as a separate step. Return
        the result of `decide`.

        Raises `TurnPendingError` if a turn is unfinished. With `mid_turn`, the change is also
        allowed if the turn's model call failed. The turn then counts its next call again, so that
        the call contains the change.
        """
        with storage_errors(), self.alone():
            self.keep_interrupted()
            state = self.state()
            open_turn = mid_turn and waits_for_the_model(state)
            result, update = decide(self.values(state) if open_turn else self.resting(state))
            if update:
                self.write(update, writing_node(state, update))
            return result

    def keep_interrupted(self) -> None:
        """Store the work that a killed run had done but not stored, without calling a model or a
        tool.

        New input would drop this work: a user message that `ingest` has not taken in, or the result
        of a finished step that has no checkpoint yet.
        """
        for _ in range(4):
            state = self.state()
            if not has_unstored_work(state):
                self._keep_voices(state)
                return
            self._go_on(interrupt_before="*")

    def _keep_voices(self, state: StateSnapshot) -> None:
        """Store the updates of voices that a killed run had asked at the same time. Their step did
        not end, so new input would drop these updates.
        """
        if made := self.made_by_voices(state):
            ahead = {**(values_of(state).get("ahead") or {}), **made}
            self.write({"ahead": ahead}, "estimate")

    def made_by_voices(self, state: StateSnapshot) -> dict[str, Update]:
        """Return the updates of voices that were asked at the same time, by voice, if their step
        did not end. Empty if the next step does not ask voices.
        """
        saver = self.graph.checkpointer
        if "respond" not in state.next or not isinstance(saver, BaseCheckpointSaver):
            return {}
        newest = saver.get_tuple(self.config)
        return made_by_voices(newest) if newest is not None else {}

    def _go_on(self, **until: Any) -> None:
        self.graph.invoke(
            cast("Any", None), self.config, context=self.context, durability="sync", **until
        )

    def write(self, update: Update, node: str) -> None:
        """Write an update as if `node` had returned it."""
        self.graph.update_state(self.config, update, as_node=node)

    def _at_rest(self) -> bool:
        """Return whether the thread has no interrupted turn. The thread's messages are not loaded.

        Raises `ThreadNotFoundError` if the thread belongs to another owner.
        """
        saver = self.graph.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):
            return False
        with reading(self.graph, self.thread_id):
            entry = self._entry()  # before the checkpoint: others may write while it is read
            newest = saver.get_tuple(self.config)
            if is_later(entry, newest and newest.checkpoint["id"]):
                self.state()  # raises, and says how many messages are gone
            if newest is None:
                return True
            turn = newest.checkpoint["channel_values"].get("turn")
            if not may_see(owner_in(turn, newest.metadata), self.context.owner):
                raise ThreadNotFoundError(self.thread_id)
            return is_at_rest(self.graph, newest)

    def make_ready(self) -> None:
        """Bring the thread to rest, so that it can take a new message. Queries that wait for
        approval are rejected.
        """
        if self._at_rest():
            return
        self.keep_interrupted()
        if update := rejection(self.state()):
            self.write(update, "approve")
            self._go_on(interrupt_after=["run_tools"])

    # -- after the answer -----------------------------------------------------------------------

    @property
    def step_after_answer(self) -> "Step | None":
        """Return the step `prepare` if it can run after the answer was sent, and may wait for a
        model. Otherwise return None.

        The step cannot run after the answer if the saver or store is bound to an event loop,
        because the loop may end first.
        """
        from longtable.graph.wiring.step import Step

        node = self.graph.nodes.get(PREPARE)
        if node is None or not isinstance(node.bound, Step) or not node.bound.may_wait:
            return None
        bound = hasattr(self.graph.checkpointer, "loop") or isinstance(
            self.graph.store, AsyncBatchedBaseStore
        )
        return None if bound else node.bound

    def make_room(self, job: Background) -> None:
        """Run the step `prepare` that a run left undone. Do nothing if another turn came first or
        the job was dropped.
        """
        state = self.state(shared=True)
        step = self.step_after_answer
        if state.next != (PREPARE,) or step is None:
            return
        info = ExecutionInfo(
            checkpoint_id="", checkpoint_ns="", task_id="", thread_id=self.thread_id
        )
        runtime = Runtime(
            context=self.context,
            store=self.graph.store,
            stream_writer=job.events.append,
            execution_info=info,
        )
        update = step.outside(cast("State", state.values), runtime)
        # A run of the bare graph takes no lock, and a process that slept has lost its own: a write
        # would end that run.
        newest = self.state(shared=True).config["configurable"]["checkpoint_id"]
        if not job.dropped and newest == state.config["configurable"]["checkpoint_id"]:
            self.graph.update_state(self._sharing, cast("Update", update), as_node=PREPARE)

    # -- runs ---------------------------------------------------------------------------------

    async def work(self, call: Callable[[], Result]) -> Result:
        """Run a blocking call in the way that fits `how`."""
        return await self.how.call(call, lambda: in_thread(call))

    async def run(self, graph_input: GraphInput, reader: RunReader) -> AsyncGenerator[Event, None]:
        """Run the graph and yield events; the last one is an `answer`."""
        run: Any = self.graph.astream if self.how.on_loop else self.graph.stream
        # LangGraph's own bound is the machine's cores and four: a team would wait for places.
        config = RunnableConfig(**{"max_concurrency": MOST_AT_ONCE, **self.config})
        marks: dict[str, Any] = {SHARES: True}
        until: dict[str, Any] = {}
        if self.step_after_answer:
            until["interrupt_before"] = [*self.graph.interrupt_before_nodes, PREPARE]
        emitted: deque[Any] = deque()
        if self._collects:
            config["callbacks"] = [_Streaming()]
            stops = [*self.graph.interrupt_before_nodes, *self.graph.interrupt_after_nodes]
            marks[TOGETHER] = not self.how.on_loop and not stops
            until |= {"stream_mode": ["updates"], "collect": emitted.append}
        else:
            until |= {"stream_mode": MODES}
        config["configurable"] = {**config["configurable"], **marks}
        stream = run(graph_input, config, context=self.context, durability="sync", **until)
        for event in reader.begin():
            yield event
        try:
            # The loop closes LangGraph's own generator; closed twice at a loop's end it is left
            # open.
            parts = (
                nullcontext(_cancel_once(stream))
                if self.how.on_loop
                else aclosing(_as_async(stream))
            )
            async with parts as items:
                async for mode, payload in items:
                    for event in chain(_collected(reader, emitted), reader.read(mode, payload)):
                        yield event
        except UNREADABLE:
            await self.work(self._check_view)
            raise
        if not reader.settled and reader.waits is None:
            await self.work(self._check_end)
        for event in chain(_collected(reader, emitted), reader.end()):
            yield event

    @property
    def _collects(self) -> bool:
        """Return whether the events of a run's nodes are collected instead of streamed. They are
        not if an event loop runs in this OS thread: a tool could not start its own loop there.
        """
        from longtable.graph.wiring.editing import Editable

        free = self.how.on_loop or not in_event_loop()
        return not self.live and free and isinstance(self.graph, Editable)

    def _check_end(self) -> None:
        """Raise `DamagedThreadError` if a turn did not end although no node is left to run."""
        if not self.state().next:
            raise DamagedThreadError(
                self.thread_id, what="its newest checkpoint", why="a turn came to no end"
            )

    def _check_view(self) -> None:
        """Raise `DamagedThreadError` if no view can be made from the thread's state."""
        with readable(self.thread_id):
            next_view(self.state().values, self.context)


class _Streaming(BaseCallbackHandler):
    """Let models stream their answers, as they do if LangGraph streams the run's messages. So a
    provider is sent the same request whether or not somebody reads the events. LangChain streams if
    a handler has the two methods that tap the output.
    """

    ignore_chain = True
    ignore_retriever = True
    run_inline = True

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Do nothing. Without this method, LangChain would join all messages to one text and call
        `on_llm_start`.
        """

    def tap_output_iter(self, run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:  # noqa: ARG002
        """Return the output as it is."""
        return output

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:  # noqa: ARG002
        """Return the output as it is."""
        return output


def _collected(reader: RunReader, emitted: deque[Any]) -> Iterator[Event]:
    """Yield the events that nodes have emitted since the last call."""
    while emitted:
        yield from reader.read("custom", emitted.popleft())


async def _as_async(parts: Iterable[Any]) -> AsyncGenerator[Any, None]:
    for part in parts:
        yield part


async def _cancel_once(parts: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """Yield the parts of a run, and run each step in a separate task. If the reader is cancelled,
    this task is cancelled only once, so that it can close what it has open.

    A reader in a cancel scope of anyio, such as a stream of Starlette, is cancelled again at each
    `await`. This kept LangGraph's loop from cancelling its tasks, and the run went on writing
    without the thread's lock.
    """
    context = copy_context()
    while True:
        step = asyncio.create_task(anext(parts, parts), context=context)
        try:
            part = await asyncio.shield(step)
        finally:
            step.cancel()  # one that is done takes no notice
            while not step.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([step])
        if part is parts:  # its end
            return
        yield part


DrawChart = Callable[[str, Mapping[str, object]], Chart]
"""Draws the result of a handle by a spec, as `Conversation.chart` does."""
