"""Send messages to a running turn."""

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.base import BaseStore

from longtable.base.errors import ConfigError, NotPrivateError, ThreadBusyError
from longtable.base.events import AnswerEvent, Event
from longtable.graph.running.stream_events import RunReader
from longtable.graph.running.thread_runner import ThreadRunner
from longtable.graph.thread_state import Values
from longtable.memory.messages.marks import turn_number
from longtable.nodes.arriving.inbox import Inbox, InboxMessage, steered_event
from longtable.nodes.arriving.input_checks import check_input
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.state import turn_of, values_of
from longtable.store.leases import GRACE_SECONDS
from longtable.store.locks import pause, pauses
from longtable.store.storage_errors import storage_errors

Events = AsyncGenerator[Event, None]
Run = Callable[[ThreadRunner, HumanMessage], Events]
"""Runs a message as a turn of its own."""


def alone(runner: ThreadRunner, *, wait: bool) -> AbstractAsyncContextManager[None]:
    return runner.locks.alone(runner.thread_id, runner.how, wait=wait)


async def steering_events(
    runner: ThreadRunner, message: HumanMessage, run: Run, *, wait: bool
) -> Events:
    """Hand a message to the running turn, or run it as a turn if no turn is running.

    `wait` says whether to wait until a turn has taken the message in.
    """
    inbox = Inbox(_inbox_store(runner), runner.thread_id)
    thread_id = runner.thread_id
    free = not runner.locks.is_mine(thread_id, blocks=not runner.how.on_loop)
    async with AsyncExitStack() as stack:
        stack.enter_context(storage_errors())
        if not (free and await is_alone(runner, stack)):
            number = _number_to_join(runner, message, values_of(await runner.work(runner.state)))
            key = f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"
            posted = InboxMessage(key, message, detached=not (wait and free))
            await runner.work(lambda: inbox.post(posted))
            joined = posted.detached
            for seconds in () if joined else pauses():
                joined = not await runner.work(lambda: inbox.holds(posted))
                if joined or await is_alone(runner, stack):
                    break
                await pause(seconds, runner.how)
            if not posted.detached:
                number = _turn_with(message, values_of(await runner.work(runner.state)))
            if joined or number:
                if not joined:
                    await runner.work(lambda: inbox.delete([key]))
                yield steered_event(message, number)
                yield AnswerEvent(type="answer", text="", status="steered", turn=number)
                return
        events = await stack.enter_async_context(aclosing(run(runner, message)))
        async for event in events:
            yield event
    await runner.locks.wait_for_job(runner.thread_id, runner.how, most=GRACE_SECONDS)
    for event in runner.locks.events_of(runner.thread_id):
        yield event


async def is_alone(runner: ThreadRunner, stack: AsyncExitStack) -> bool:
    """Lock the thread until `stack` is closed, if nobody else holds it. Return whether it was
    free.
    """
    try:
        await stack.enter_async_context(alone(runner, wait=False))
    except ThreadBusyError:
        return False
    return True


def _turn_with(message: HumanMessage, values: Values) -> int:
    """Return the number of the turn that the message has joined, 0 if it has joined no turn."""
    messages = reversed(values.get("messages") or [])
    return next((turn_number(each) for each in messages if each.id == message.id), 0)


def _number_to_join(runner: ThreadRunner, message: HumanMessage, values: Values) -> int:
    """Return the number of the turn that a message will join. Raise an error if the message cannot
    be sent word for word.

    The message is sent with the settings of the running turn, so the smaller of the two limits
    applies. Raises `NotPrivateError` if the sender withholds all cells from models but the running
    turn shows cells.
    """
    running = turn_of(values)
    context = runner.context
    if context.privacy == "types" and running.get("number") and not running.get("private"):
        raise NotPrivateError
    if values.get("brief"):
        for limited in (context, context.replace(model_limit=None)):
            check_input([message], limited, call_plan_of(values, limited))
    return running.get("number", 0)


def unread_messages(runner: ThreadRunner, readers: Sequence[RunReader]) -> list[BaseMessage]:
    """Return the messages for which nobody waits and which the finished turn did not read."""
    store = runner.graph.store
    if store is None or not readers or not readers[-1].settled:
        return []
    inbox = Inbox(store, runner.thread_id)
    if inbox.new_token(readers[-1].turn) is None:
        return []
    return [each.message for each in inbox.messages() if each.detached]


def _inbox_store(runner: ThreadRunner) -> BaseStore:
    if runner.graph.store is None:
        raise ConfigError(
            "messages to a running turn wait in a store: compile the graph with it,"
            " graph.compile(..., store=...)"
        )
    return runner.graph.store
