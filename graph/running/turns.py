"""Turns: run one, finish one that was overtaken, or hand a message to the running turn.

The functions wait only by means of their runner's execution, so the same code serves callers that
block and callers that await.

The sender of a message to a running turn waits until the message has joined the turn. If the turn
ends without it, the sender takes the thread and runs the message as a turn of its own. A sender
that does not wait (`detached`), or that reads the stream of this very turn, leaves the message. The
caller that holds the thread then runs it as the next turn.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.types import Command

from longtable.base.concurrency import complete
from longtable.base.errors import ConfigError, ThreadBusyError, UsedIdError
from longtable.base.events import (
    AnswerEvent,
    Event,
    ThreadWaiting,
)
from longtable.graph.running.overtaken import (
    Rest,
    messages_of_turn,
    rest_of,
    restart_event,
    status_of,
)
from longtable.graph.running.steering import (
    Events,
    alone,
    is_alone,
    steering_events,
    unread_messages,
)
from longtable.graph.running.stream_events import RunReader
from longtable.graph.running.thread_runner import GraphInput, ThreadRunner
from longtable.graph.thread_state import (
    answer_command,
    is_failed,
    is_pending,
    leftover_update,
)
from longtable.memory.messages.marks import turn_number
from longtable.nodes.arriving.incoming import answer_to
from longtable.nodes.arriving.input_checks import Question, check_input
from longtable.nodes.closing.failures import ending_with_failed
from longtable.nodes.state import Input, compacting_update, thread_of, turn_of, values_of
from longtable.nodes.telemetry import log_cause
from longtable.store.leases import GRACE_SECONDS
from longtable.store.storage_errors import storage_errors

TRIES = 30
"""How often a turn is run again if another run overtakes it each time."""
_detached: set[asyncio.Task[None]] = set()
"""Tasks of turns that run on although their reader may have left."""


def iterate(events: Events) -> Iterator[Event]:
    """Yield the events of a turn whose execution is `SYNC`. When this generator is closed, the turn
    is closed too.
    """
    try:
        while True:
            yield complete(cast("Any", anext(events)))
    except StopAsyncIteration:
        return
    finally:
        complete(cast("Any", events.aclose()))


def ask(
    runner: ThreadRunner, question: Question | None, answer: Any, waiting_id: str | None
) -> Events:
    """Run a turn that begins with a question, or continue the waiting turn, as
    `Conversation.stream` does.
    """
    return ending_with_failed(
        _turn_events(runner, question, answer, waiting_id),
        runner.context,
        question.text if question else None,
    )


async def _turn_events(
    runner: ThreadRunner, question: Question | None, answer: Any, waiting_id: str | None
) -> Events:
    if question is not None and answer is not None:
        raise ConfigError(
            "a turn begins with a message or goes on with an answer: give one of the two"
        )
    async with AsyncExitStack() as stack:
        stack.enter_context(storage_errors())
        message = _message(runner, question) if question is not None else None
        if (
            message is not None
            and runner.when_busy == "steer"
            and not await runner.work(partial(_is_known, runner, question))
        ):
            run = steering_events(runner, message, _one_turn, wait=True)
        else:
            if not (runner.waits and await is_alone(runner, stack)):
                if runner.waits:
                    yield ThreadWaiting(type="thread_waiting", thread_id=runner.thread_id)
                await stack.enter_async_context(alone(runner, wait=runner.waits))
            rest = await runner.work(
                partial(
                    _continuation,
                    runner,
                    answer,
                    waiting_id,
                    message,
                    resent=bool(question and question.id),
                )
            )
            if not isinstance(rest, tuple):
                if rest is not None:
                    yield rest
                return
            run = resumed(runner, *rest)
        events = await stack.enter_async_context(aclosing(run))
        async for event in events:
            yield event
    await runner.locks.wait_for_job(runner.thread_id, runner.how, most=GRACE_SECONDS)
    for event in runner.locks.events_of(runner.thread_id):
        yield event


def steer(runner: ThreadRunner, text: str, *, wait: bool) -> Events:
    """Hand a text to the running turn, as `Conversation.steer` does."""
    message = _message(runner, Question(text))
    return steering_events(runner, message, _one_turn, wait=wait)


def _message(runner: ThreadRunner, question: Question) -> HumanMessage:
    """Return a new message. Faults that can be found without counting tokens are raised here,
    before anything is written.
    """
    message = question.message()
    check_input([message], runner.context, None)
    return message


def _is_known(runner: ThreadRunner, question: Question | None) -> bool:
    """Return whether the thread already has a message with this question's id."""
    if question is None or question.id is None:
        return False
    return (
        answer_to(
            question.id, thread_of(values_of(runner.state())), runner.graph.store, runner.thread_id
        )[0]
        is not None
    )


def _continuation(
    runner: ThreadRunner,
    answer: Any,
    waiting_id: str | None,
    message: HumanMessage | None,
    *,
    resent: bool,
) -> tuple[GraphInput, list[BaseMessage]] | AnswerEvent | None:
    """Return the graph's input and the user messages of the turn to run. Return None if there is no
    turn to run.

    If a `message` with the same id was sent before, return its answer, or continue the turn that it
    opened. Otherwise it opens a new turn. Without a message, continue the waiting turn.
    """
    if message is not None and not resent:
        return Input(messages=[message]), [message]
    state = runner.state()
    messages = messages_of_turn(state)
    if message is not None:
        known, earlier = answer_to(
            str(message.id), thread_of(values_of(state)), runner.graph.store, runner.thread_id
        )
        if known is not None and known.content != message.content:
            raise UsedIdError(message_id=str(message.id))
        if earlier is not None and not (
            is_pending(state) and turn_number(earlier) == turn_of(values_of(state)).get("number")
        ):
            return AnswerEvent(
                type="answer",
                text=str(earlier.text),
                status=status_of(earlier),
                turn=turn_number(earlier),
            )
        newest = any(each.id == message.id for each in messages)
        if known is None and not newest:
            return Input(messages=[message]), [message]
        if not newest or not (is_pending(state) or is_failed(state)):
            # Its turn failed: others came after it, or it was excluded.
            message = message.model_copy(update={"id": f"{message.id}/again"})
            return _continuation(runner, answer, waiting_id, message, resent=True)
    if answer is not None:
        return answer_command(state, answer, waiting_id, runner.thread_id), messages
    if is_pending(state):
        return None, messages
    return (Input(messages=[]), messages) if is_failed(state) else None


async def finishing(events: Events) -> Events:
    """Yield the events of a turn that runs in a separate task, so that it goes on if its reader
    leaves.
    """
    unread: asyncio.Queue[Event | None] = asyncio.Queue()

    async def run() -> None:
        try:
            async for event in events:
                unread.put_nowait(event)
        finally:
            unread.put_nowait(None)

    task = asyncio.create_task(run())
    _detached.add(task)  # the loop itself keeps no task alive
    task.add_done_callback(_ended)
    while (event := await unread.get()) is not None:
        yield event
    await task


def _ended(task: asyncio.Task[None]) -> None:
    _detached.discard(task)
    if not task.cancelled():
        # Asked for here: a reader that is gone does not, and asyncio would complain.
        task.exception()


async def resumed(
    runner: ThreadRunner, graph_input: GraphInput, messages: Sequence[BaseMessage]
) -> Events:
    """Run or continue a turn on a locked thread. Then run the messages that other callers left in
    the meantime.

    `messages` are the user messages of the turn, empty if they are not stored yet. The first events
    are those of the compaction after the previous turn. The compaction after this turn starts when
    the caller releases the thread.
    """
    for event in runner.locks.events_of(runner.thread_id):
        yield event
    while True:
        readers: list[RunReader] = []
        rest_after = partial(_next_run, runner, graph_input, messages)
        async with aclosing(_until_done(runner, rest_after, readers)) as events:
            async for event in events:
                yield event
        messages = await runner.work(partial(unread_messages, runner, readers))
        if not messages:
            if (
                readers
                and readers[-1].settled
                and readers[-1].turn.get("prepare")
                and runner.step_after_answer
            ):
                runner.locks.go_on(
                    runner.thread_id,
                    runner.make_room,
                    on_error=partial(log_cause, "prepare_failed"),
                )
            return
        graph_input = Input(messages=[*messages])


def _one_turn(runner: ThreadRunner, message: HumanMessage) -> Events:
    """Run a message as a turn on a locked thread."""
    return resumed(runner, Input(messages=[message]), [message])


async def compaction(runner: ThreadRunner) -> Events:
    """Compact the thread as soon as it is free."""
    async with AsyncExitStack() as stack:
        stack.enter_context(storage_errors())
        await stack.enter_async_context(alone(runner, wait=runner.waits))
        events = await stack.enter_async_context(
            aclosing(_until_done(runner, lambda _: Rest(_compaction(runner)), []))
        )
        async for event in events:
            yield event


def _compaction(runner: ThreadRunner) -> Command[str]:
    """Bring the thread to rest, and return the command that compacts it."""
    runner.keep_interrupted()
    if update := leftover_update(runner.state()):
        runner.write(update, "prepare")
    values = runner.resting(runner.state())
    return Command(goto="compact", update=compacting_update(values))


async def _until_done(
    runner: ThreadRunner,
    rest_after: Callable[[ThreadBusyError | None], Rest],
    readers: list[RunReader],
) -> Events:
    """Run the graph. If another run overtakes it, wait for the thread and run what is left of the
    turn.

    A run is overtaken if this process stood still for longer than its lease, if the connection of
    its lease was cut, or if a bare run of the graph did not wait. Each run appends its reader to
    `readers`.
    """
    overtaken: ThreadBusyError | None = None
    for attempt in range(TRIES):
        try:
            rest = await runner.work(partial(rest_after, overtaken))
            if rest.answer is not None:
                if not any(reader.settled for reader in readers):
                    yield rest.answer
                return
            if overtaken is not None:
                yield restart_event(attempt, in_place=rest.input is None)
            goes_on = not isinstance(rest.input, Mapping)
            made = partial(_reader_within_turn, runner) if goes_on else RunReader
            readers.append(await runner.work(made))
            async with aclosing(runner.run(rest.input, readers[-1])) as events:
                async for event in events:
                    yield event
            return
        except ThreadBusyError as error:
            if not runner.waits or attempt == TRIES - 1:
                raise
            overtaken = overtaken if overtaken is not None and overtaken.stored else error
        await runner.locks.relock(runner.thread_id, runner.how)


def _reader_within_turn(runner: ThreadRunner) -> RunReader:
    """Return the reader for a run that continues a turn."""
    state = runner.state()
    return RunReader(values_of(state), runner.made_by_voices(state))


def _next_run(
    runner: ThreadRunner,
    graph_input: GraphInput,
    messages: Sequence[BaseMessage],
    overtaken: ThreadBusyError | None,
) -> Rest:
    """Bring the thread to rest, and return the input and messages of the next run."""
    rest = Rest(graph_input)
    if overtaken is not None:
        runner.keep_interrupted()
        rest = rest_of(messages, runner.state(), overtaken)
    if isinstance(rest.input, Mapping) and rest.input["messages"]:
        runner.make_ready()
    return rest
