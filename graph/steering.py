"""Messages to a thread whose turn is under way: into its inbox, and from there into the turn, or a turn of their own.

Who sent a message waits till it has joined the turn. Where that came to its end without, the sender takes the thread
and the message is a turn like any other. One that does not wait (`left`), or cannot, as it reads the very stream of
that turn, leaves the message to who has the thread: it goes on with it once its turn has ended.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from longtable.base.errors import ConfigError, NotPrivateError, ThreadBusyError
from longtable.base.events import AnswerEvent, Event, ModelRetry
from longtable.graph.locks import pauses, turns_of
from longtable.graph.running import Values, is_pending
from longtable.graph.thread_operations import ThreadOperations
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
from longtable.nodes.state import Input, frame_of, thread_of, turn_of

TRIES = 10
"""How often a turn is run that others overtake each time."""


class Steering(ThreadOperations):
    """Run a turn, or steer the one that runs."""

    def _turn(self, message: HumanMessage) -> Iterator[Event]:
        """Run a turn on a thread that is locked, then the messages that others left for it meanwhile."""
        messages: Sequence[BaseMessage] = [message]
        while messages:
            yield from self._run_again(messages)
            messages = self._left()

    async def _aturn(self, message: HumanMessage) -> AsyncGenerator[Event, None]:
        messages: Sequence[BaseMessage] = [message]
        while messages:
            async with aclosing(self._arun_again(messages)) as events:
                async for event in events:
                    yield event
            messages = await self._aleft()

    def _run_again(self, messages: Sequence[BaseMessage]) -> Iterator[Event]:
        """Run a turn; if another run overtakes it, wait for the thread again and run what is left of it.

        That happens where this process stood still for longer than its lease, where its lease connection was cut, or
        where a bare run of the graph did not wait.
        """
        turn: Input | None = Input(messages=messages)
        answer: Event | None = None
        for tries in range(1, TRIES + 1):
            try:
                if turn is not None and not self._at_rest():
                    self._keep_interrupted()
                    self._pass_over()
                for event in self._run(turn):
                    answer = event if event["type"] == "answer" else answer
                    yield event
                return
            except ThreadBusyError as error:
                if not self._waits or tries == TRIES:
                    raise
                turns_of(self.graph.checkpointer).again(self.thread_id)
                self._keep_interrupted()
                turn, known = rest_of(messages, self._state(), error)
            if known is not None:
                if answer is None:
                    yield known
                return
            yield _restarted(tries)

    async def _arun_again(self, messages: Sequence[BaseMessage]) -> AsyncGenerator[Event, None]:
        turn: Input | None = Input(messages=messages)
        answer: Event | None = None
        for tries in range(1, TRIES + 1):
            try:
                if turn is not None and not await self._aat_rest():
                    await self._akeep_interrupted()
                    await self._apass_over()
                async with aclosing(self._arun(turn)) as events:
                    async for event in events:
                        answer = event if event["type"] == "answer" else answer
                        yield event
                return
            except ThreadBusyError as error:
                if not self._waits or tries == TRIES:
                    raise
                await turns_of(self.graph.checkpointer).aagain(self.thread_id)
                await self._akeep_interrupted()
                turn, known = rest_of(messages, await self._astate(), error)
            if known is not None:
                if answer is None:
                    yield known
                return
            yield _restarted(tries)

    def _steered(self, message: HumanMessage, *, wait: bool) -> Iterator[Event]:
        store = self._inbox_store()
        if self._free():
            with ExitStack() as stack:
                if self._entered(stack):
                    yield from self._turn(message)
                    return
        turn = self._checked(message, self._state().values)
        posted = self._inbox_message(message, wait=wait)
        store.batch(post_ops(self.thread_id, posted))
        if posted.detached:
            yield from _on_its_way(message, turn)
            return
        for pause in pauses():
            if store.batch([message_op(self.thread_id, posted)]) == [None]:
                yield from _on_its_way(message, _place(message, self._state().values))
                return
            with ExitStack() as stack:
                if self._entered(stack):
                    if turn := _place(message, self._state().values):
                        store.batch(delete_ops(self.thread_id, [posted.key]))
                        yield from _on_its_way(message, turn)
                    else:
                        yield from self._turn(message)
                    return
            time.sleep(pause)

    async def _asteered(self, message: HumanMessage, *, wait: bool) -> AsyncGenerator[Event, None]:
        store = self._inbox_store()
        if self._free():
            async with AsyncExitStack() as stack:
                if await self._aentered(stack):
                    async with aclosing(self._aturn(message)) as events:
                        async for event in events:
                            yield event
                    return
        turn = self._checked(message, (await self._astate()).values)
        posted = self._inbox_message(message, wait=wait)
        await store.abatch(post_ops(self.thread_id, posted))
        if posted.detached:
            for event in _on_its_way(message, turn):
                yield event
            return
        for pause in pauses():
            if await store.abatch([message_op(self.thread_id, posted)]) == [None]:
                for event in _on_its_way(message, _place(message, (await self._astate()).values)):
                    yield event
                return
            async with AsyncExitStack() as stack:
                if await self._aentered(stack):
                    if turn := _place(message, (await self._astate()).values):
                        await store.abatch(delete_ops(self.thread_id, [posted.key]))
                        for event in _on_its_way(message, turn):
                            yield event
                    else:
                        async with aclosing(self._aturn(message)) as events:
                            async for event in events:
                                yield event
                    return
            await asyncio.sleep(pause)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _free(self) -> bool:
        return not turns_of(self.graph.checkpointer).mine(self.thread_id)

    def _entered(self, stack: ExitStack) -> bool:
        """Take the thread if nobody has it."""
        try:
            stack.enter_context(turns_of(self.graph.checkpointer).turn(self.thread_id, wait=False))
        except ThreadBusyError:
            return False
        return True

    async def _aentered(self, stack: AsyncExitStack) -> bool:
        try:
            await stack.enter_async_context(turns_of(self.graph.checkpointer).aturn(self.thread_id, wait=False))
        except ThreadBusyError:
            return False
        return True

    def _inbox_message(self, message: HumanMessage, *, wait: bool) -> InboxMessage:
        return InboxMessage(f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}", message, detached=not wait or not self._free())

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
                check_input([message], context, frame_of(values, context))
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

    async def _aleft(self) -> list[BaseMessage]:
        if self.graph.store is None or self._last is None:
            return []
        if new_token((await self.graph.store.abatch([notification_op(self.thread_id)]))[0], self._last) is None:
            return []
        return _nobodys(self.thread_id, (await self.graph.store.abatch([inbox_op(self.thread_id)]))[0])


def _nobodys(thread_id: str, found: Any) -> list[BaseMessage]:
    return [posted.message for posted in inbox_messages(thread_id, found or []) if posted.detached]


def rest_of(messages: Sequence[BaseMessage], state: StateSnapshot, error: ThreadBusyError) -> tuple[Input | None, AnswerEvent | None]:
    """Return what is left of a turn that another run overtook: its input, None to resume it, and the answer it may have by now.

    If other turns came after its messages, these move to the end of the transcript, and what it had written leaves it.
    Raises `error` if they are part of a compaction by now.
    """
    thread, turn = thread_of(state.values), turn_of(state.values)
    places = {message.id: place for place, message in enumerate(thread.messages)}
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
