"""Turns: run one, run what is left of one that was overtaken, hand a message to the running one.

Each function waits by the execution of its runner only: it serves callers that block and callers
that await.

Whoever sent a message to a running turn waits until it has joined the turn. If the turn ended
without it, the sender takes the thread and the message is a turn like any other. A sender that does
not wait (`detached`), or that reads the very stream of that turn, leaves the message to whoever has
the thread, and they run it next.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateSnapshot

from longtable.base.concurrency import complete
from longtable.base.errors import ConfigError, NotPrivateError, ThreadBusyError, UsedIdError
from longtable.base.events import (
    AnswerEvent,
    AnswerStatus,
    Event,
    ModelRetry,
    Notice,
    ThreadWaiting,
)
from longtable.graph.running.thread_runner import GraphInput, RunReader, ThreadRunner
from longtable.graph.thread_state import (
    Values,
    answer_command,
    is_failed,
    is_pending,
    leftover_update,
)
from longtable.memory.messages.marks import marks_of, turn_number, unmarked
from longtable.nodes.arriving.inbox import Inbox, InboxMessage, steered_event
from longtable.nodes.arriving.input_checks import Question, check_input
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.closing.failures import ending_with_failed
from longtable.nodes.ingest import answer_to
from longtable.nodes.state import Input, compacting_update, thread_of, turn_of, values_of
from longtable.nodes.telemetry import log_cause
from longtable.store.leases import GRACE_SECONDS
from longtable.store.locks import pause, pauses
from longtable.store.storage_errors import storage_errors

Events = AsyncGenerator[Event, None]
TRIES = 30
"""How often a turn is run that others overtake each time."""
_detached: set[asyncio.Task[None]] = set()
"""Turns that go on without their readers."""


@dataclass(frozen=True)
class Rest:
    """What is left of a turn that another run overtook."""

    input: GraphInput = None
    """None: the turn goes on where it stands."""
    answer: AnswerEvent | None = None
    """The answer that the turn has by now; nothing is left to run."""


def iterate(events: Events) -> Iterator[Event]:
    """Yield from a turn whose execution is `SYNC`; close it with this generator."""
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
    """Run a turn that begins with a question, or go on with what waits; see
    `Conversation.stream`.
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
            run = _steering_events(runner, message, wait=True)
        else:
            if not (runner.waits and await _is_alone(runner, stack)):
                if runner.waits:
                    yield ThreadWaiting(type="thread_waiting", thread_id=runner.thread_id)
                await stack.enter_async_context(_alone(runner, wait=runner.waits))
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
    """Hand a text to the running turn; see `Conversation.steer`."""
    return _steering_events(runner, _message(runner, Question(text)), wait=wait)


def _alone(runner: ThreadRunner, *, wait: bool) -> AbstractAsyncContextManager[None]:
    return runner.locks.alone(runner.thread_id, runner.how, wait=wait)


def _message(runner: ThreadRunner, question: Question) -> HumanMessage:
    """Return a new message. What needs no count is refused here, so that nothing at all is
    written.
    """
    message = question.message()
    check_input([message], runner.context, None)
    return message


def _is_known(runner: ThreadRunner, question: Question | None) -> bool:
    """Return whether a question was sent before."""
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
    """Return the graph's input and the user messages of the turn that waits, None where none does.

    With a `message` that may have been sent before: its answer; else the turn that it opened, or a
    new one.
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
                status=_status_of(earlier),
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
    """Yield a turn's events; the turn goes on when its reader is gone, in a task of its own."""
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
    """Run a turn, or go on with one, on a locked thread, then the messages that others left for it
    meanwhile.

    `messages`: the user messages of the turn, none where they are not yet stored. What was made
    ahead after the last turn is told first; what is to be made ahead after this one goes on when
    the caller has left the thread.
    """
    for event in runner.locks.events_of(runner.thread_id):
        yield event
    while True:
        readers: list[RunReader] = []
        rest_after = partial(_next_run, runner, graph_input, messages)
        async with aclosing(_until_done(runner, rest_after, readers)) as events:
            async for event in events:
                yield event
        messages = await runner.work(partial(_unread_messages, runner, readers))
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


async def compaction(runner: ThreadRunner) -> Events:
    """Compact once the thread is free."""
    async with AsyncExitStack() as stack:
        stack.enter_context(storage_errors())
        await stack.enter_async_context(_alone(runner, wait=runner.waits))
        events = await stack.enter_async_context(
            aclosing(_until_done(runner, lambda _: Rest(_compaction(runner)), []))
        )
        async for event in events:
            yield event


def _compaction(runner: ThreadRunner) -> Command[str]:
    """Bring the thread to rest and return the command that compacts it."""
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
    """Run the graph; if another run overtakes it, wait for the thread and run what is left.

    That happens where this process stood still for longer than its lease, where its lease
    connection was cut, or where a bare run of the graph did not wait. Each run appends its reader
    to `readers`.
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
                yield _restart_event(attempt, in_place=rest.input is None)
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
    """Return the reader of a run that goes on with a turn."""
    state = runner.state()
    return RunReader(values_of(state), runner.made_by_voices(state))


def _next_run(
    runner: ThreadRunner,
    graph_input: GraphInput,
    messages: Sequence[BaseMessage],
    overtaken: ThreadBusyError | None,
) -> Rest:
    """Bring the thread to rest and return what is to be run next."""
    rest = Rest(graph_input)
    if overtaken is not None:
        runner.keep_interrupted()
        rest = rest_of(messages, runner.state(), overtaken)
    if isinstance(rest.input, Mapping) and rest.input["messages"]:
        runner.make_ready()
    return rest


def rest_of(messages: Sequence[BaseMessage], state: StateSnapshot, error: ThreadBusyError) -> Rest:
    """Return what is left of a turn that another run overtook. Pure.

    If other turns came after its messages, these move to the end of the transcript, and what it had
    written leaves it. Raises `error` if they are part of a compaction by now.
    """
    thread = thread_of(values_of(state))
    newest = turn_of(values_of(state))
    places = {message.id: place for place, message in enumerate(thread.messages)}
    if not messages:  # they were still on their way in when the turn was resumed
        if not is_pending(state):
            raise error
        return Rest()
    if (first := places.get(messages[-1].id)) is None:
        if error.stored:
            raise error
        return Rest(Input(messages=[*messages]))
    number = turn_number(thread.messages[first])
    is_newest = number == newest.get("number")
    if is_newest and is_pending(state):
        return Rest()
    of_turn = [message for message in thread.messages if turn_number(message) == number]
    last = of_turn[-1]
    if isinstance(last, AIMessage) and not last.tool_calls:
        status: AnswerStatus = newest.get("status", "") if is_newest else _status_of(last)
        answer = AnswerEvent(type="answer", text=str(last.text), status=status, turn=number)
        return Rest(answer=answer)
    compacted = thread.chain[-1]["count"] if thread.chain else 0
    if thread.archived + places[of_turn[0].id] < compacted:
        raise error
    removals = [RemoveMessage(id=str(message.id)) for message in of_turn]
    again = [unmarked(message) for message in of_turn if message.type == "human"]
    return Rest(Input(messages=[*removals, *again]))


def _status_of(answer: BaseMessage) -> Notice | Literal["answered"]:
    """Return how an earlier turn ended, as its answer says."""
    notice: Notice | None = marks_of(answer).get("notice")
    return notice or "answered"


def _restart_event(attempt: int, *, in_place: bool) -> ModelRetry:
    """Return the event after which text that streamed before it is no part of the answer."""
    code = ThreadBusyError.code
    event = ModelRetry(type="model_retry", model="", attempt=attempt, wait_s=0.0, code=code)
    return {**event, "in_place": True} if in_place else event


def messages_of_turn(state: StateSnapshot) -> list[BaseMessage]:
    """Return the user messages of a thread's newest turn, none while they are on their way in."""
    if any(task.name in {"__start__", "ingest"} for task in state.tasks):
        return []
    number = turn_of(values_of(state)).get("number")
    messages = thread_of(values_of(state)).messages
    return [each for each in messages if each.type == "human" and turn_number(each) == number]


# -- messages to a running turn -------------------------------------------------------------------


async def _steering_events(runner: ThreadRunner, message: HumanMessage, *, wait: bool) -> Events:
    """Hand a message to the running turn, or run it as a turn where there is none.

    `wait`: until it was taken in.
    """
    inbox = Inbox(_inbox_store(runner), runner.thread_id)
    thread_id = runner.thread_id
    free = not runner.locks.is_mine(thread_id, blocks=not runner.how.on_loop)
    async with AsyncExitStack() as stack:
        stack.enter_context(storage_errors())
        if not (free and await _is_alone(runner, stack)):
            number = _number_to_join(runner, message, values_of(await runner.work(runner.state)))
            key = f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"
            posted = InboxMessage(key, message, detached=not (wait and free))
            await runner.work(lambda: inbox.post(posted))
            joined = posted.detached
            for seconds in () if joined else pauses():
                joined = not await runner.work(lambda: inbox.holds(posted))
                if joined or await _is_alone(runner, stack):
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
        events = await stack.enter_async_context(
            aclosing(resumed(runner, Input(messages=[message]), [message]))
        )
        async for event in events:
            yield event
    await runner.locks.wait_for_job(runner.thread_id, runner.how, most=GRACE_SECONDS)
    for event in runner.locks.events_of(runner.thread_id):
        yield event


async def _is_alone(runner: ThreadRunner, stack: AsyncExitStack) -> bool:
    """Take the thread until the stack is left, if nobody has it; return whether it was free."""
    try:
        await stack.enter_async_context(_alone(runner, wait=False))
    except ThreadBusyError:
        return False
    return True


def _turn_with(message: HumanMessage, values: Values) -> int:
    """Return the number of the turn that the message has joined, 0 where it has not."""
    messages = reversed(values.get("messages") or [])
    return next((turn_number(each) for each in messages if each.id == message.id), 0)


def _number_to_join(runner: ThreadRunner, message: HumanMessage, values: Values) -> int:
    """Refuse a message that could not be sent word for word; return the turn it will join.

    It would be sent under the settings of the running turn: under its limit where that is the
    smaller. A sender who withholds every cell does not join a turn that does not.
    """
    running = turn_of(values)
    context = runner.context
    if context.privacy == "types" and running.get("number") and not running.get("private"):
        raise NotPrivateError
    if values.get("brief"):
        for limited in (context, context.replace(model_limit=None)):
            check_input([message], limited, call_plan_of(values, limited))
    return running.get("number", 0)


def _unread_messages(runner: ThreadRunner, readers: Sequence[RunReader]) -> list[BaseMessage]:
    """Return the messages nobody waits for that the turn which just ended did not take in."""
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
