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

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.base import BaseStore

from longtable.base.errors import ConfigError, NotPrivateError, ThreadBusyError
from longtable.base.events import AnswerEvent, Event
from longtable.graph.locks import pauses, turns_of
from longtable.graph.running import Values
from longtable.graph.thread_operations import ThreadOperations
from longtable.memory.stamps import turn_number
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
from longtable.nodes.state import Input, frame_of, turn_of


class Steering(ThreadOperations):
    """Run a turn, or steer the one that runs."""

    def _turn(self, message: HumanMessage) -> Iterator[Event]:
        """Run a turn, the thread being this caller's alone, and then what was left here meanwhile."""
        if not self._at_rest():
            self._keep_interrupted()
            self._pass_over()
        given: Sequence[BaseMessage] = [message]
        while given:
            yield from self._run(Input(messages=given))
            given = self._left()

    async def _aturn(self, message: HumanMessage) -> AsyncGenerator[Event, None]:
        if not await self._aat_rest():
            await self._akeep_interrupted()
            await self._apass_over()
        given: Sequence[BaseMessage] = [message]
        while given:
            async with aclosing(self._arun(Input(messages=given))) as events:
                async for event in events:
                    yield event
            given = await self._aleft()

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


def _number(turn: Mapping[str, Any] | None) -> int:
    return int((turn or {}).get("number", 0))


def _place(message: HumanMessage, values: Values) -> int:
    """Return the turn that a message has joined, 0 where it has not."""
    return next((turn_number(other) for other in reversed(values.get("messages") or []) if other.id == message.id), 0)


def _on_its_way(message: HumanMessage, turn: int) -> Iterator[Event]:
    yield steered_event(message, turn)
    yield AnswerEvent(type="answer", text="", status="steered", turn=turn)
