"""Plans of turns: run one, run what is left of one that was overtaken, hand a message to the running one.

A plan yields events and steps; `ThreadRunner.play` and `aplay` carry it out.

Whoever sent a message to a running turn waits until it has joined the turn. If the turn ended without it, the sender
takes the thread and the message is a turn like any other. A sender that does not wait (`detached`), or that reads the
very stream of that turn, leaves the message to whoever has the thread, and they run it next.
"""

import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateSnapshot

from longtable.base.errors import ConfigError, NotPrivateError, ThreadBusyError
from longtable.base.events import AnswerEvent, Event, ModelRetry
from longtable.graph.locks import pauses
from longtable.graph.thread_runner import (
    GraphInput,
    Lock,
    Pause,
    Plan,
    Relock,
    Run,
    Step,
    ThreadRunner,
    Work,
)
from longtable.graph.thread_state import Values, answer_command, is_failed, is_pending, leftover_update
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
from longtable.nodes.state import Input, call_config_of, thread_of, turn_of

TRIES = 30
"""How often a turn is run that others overtake each time."""


@dataclass(frozen=True)
class Rest:
    """What is left of a turn that another run overtook."""

    input: GraphInput = None
    """None: the turn goes on where it stands."""
    answer: AnswerEvent | None = None
    """The answer that the turn has by now; nothing is left to run."""


def ask(runner: ThreadRunner, text: str | None, answer: Any, waiting_id: str | None, *, blocks: bool) -> Plan:
    """Run a turn that begins with a text, or go on with what waits; see `Conversation.stream`."""
    if text is not None and answer is not None:
        raise ConfigError("a turn begins with a message or goes on with an answer: give one of the two")
    message = _message(runner, text) if text is not None else None
    if message is not None and runner.when_busy == "steer":
        yield from _steered_in(runner, message, wait=True, blocks=blocks)
        return
    yield Lock(wait=runner.waits)
    if message is not None:
        yield from turn(runner, message)
    elif (rest := (yield Work(partial(_continuation, runner, answer, waiting_id)))) is not None:
        yield from resumed(runner, *rest)


def steer(runner: ThreadRunner, text: str, *, wait: bool, blocks: bool) -> Plan:
    """Hand a text to the running turn; see `Conversation.steer`."""
    return _steered_in(runner, _message(runner, text), wait=wait, blocks=blocks)


def _message(runner: ThreadRunner, text: str) -> HumanMessage:
    """Return a new message. What needs no count is refused here, so that nothing at all is written."""
    message = HumanMessage(text, id=str(uuid.uuid4()))
    check_input([message], runner.context, None)
    return message


def _continuation(runner: ThreadRunner, answer: Any, waiting_id: str | None) -> tuple[GraphInput, list[BaseMessage]] | None:
    """Return the graph's input and the user messages of the turn that waits, None where none does."""
    state = runner.state()
    messages = messages_of_turn(state)
    if answer is not None:
        return answer_command(state, answer, waiting_id, runner.thread_id), messages
    if is_pending(state):
        return None, messages
    return (Input(messages=[]), messages) if is_failed(state) else None


def turn(runner: ThreadRunner, message: HumanMessage) -> Plan:
    """Run a turn on a locked thread, then the messages that others left for it meanwhile."""
    return resumed(runner, Input(messages=[message]), [message])


def resumed(runner: ThreadRunner, graph_input: GraphInput, messages: Sequence[BaseMessage]) -> Plan:
    """Go on with a turn on a locked thread: see `turn`.

    `messages`: the user messages of the turn, none where they are not yet stored.
    """
    while True:
        run = yield from _until_done(runner, partial(_next_run, runner, graph_input, messages))
        if run is None or not (messages := (yield Work(partial(_left, runner, run)))):
            return
        graph_input = Input(messages=[*messages])


def compaction(runner: ThreadRunner) -> Plan:
    """Compact once the thread is free."""
    yield Lock(wait=runner.waits)
    yield from _until_done(runner, lambda _: Rest(_compaction(runner)))


def _compaction(runner: ThreadRunner) -> Command[str]:
    """Bring the thread to rest and return the command that compacts it."""
    runner.keep_interrupted()
    if update := leftover_update(runner.state()):
        runner.write(update, "prepare")
    values = runner.resting(runner.state())
    return Command(goto="compact", update={"turn": {**turn_of(values), "status": "compacting"}})


def _until_done(runner: ThreadRunner, rest_after: Callable[[ThreadBusyError | None], Rest]) -> Generator[Event | Step, Any, Run | None]:
    """Run the graph; if another run overtakes it, wait for the thread and run what is left.

    Return the last run, None where another process has answer_command meanwhile.

    That happens where this process stood still for longer than its lease, where its lease connection was cut, or where a
    bare run of the graph did not wait.
    """
    overtaken: ThreadBusyError | None = None
    runs: list[Run] = []
    for attempt in range(TRIES):
        try:
            rest = yield Work(partial(rest_after, overtaken))
            if rest.answer is not None:
                if not any(run.reader.settled for run in runs):
                    yield rest.answer
                return None
            if overtaken is not None:
                yield _restarted(attempt, in_place=rest.input is None)
            runs.append(Run(rest.input))
            yield runs[-1]
            return runs[-1]
        except ThreadBusyError as error:
            if not runner.waits or attempt == TRIES - 1:
                raise
            overtaken = overtaken if overtaken is not None and overtaken.stored else error
        yield Relock()
    return None


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

    If other turns came after its messages, these move to the end of the transcript, and what it had written leaves it.
    Raises `error` if they are part of a compaction by now.
    """
    thread, newest = thread_of(state.values), turn_of(state.values)
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
    written = [message for message in thread.messages if turn_number(message) == number]
    last = written[-1]
    if isinstance(last, AIMessage) and not last.tool_calls:
        status = str(newest.get("status", "")) if is_newest else "answer_command"
        answer = AnswerEvent(type="answer", text=str(last.text), status=status, turn=number)
        return Rest(answer=answer)
    compacted = thread.chain[-1]["count"] if thread.chain else 0
    if thread.archived + places[written[0].id] < compacted:
        raise error
    removals = [RemoveMessage(id=str(message.id)) for message in written]
    again = [unmarked(message) for message in written if message.type == "human"]
    return Rest(Input(messages=[*removals, *again]))


def _restarted(attempt: int, *, in_place: bool) -> ModelRetry:
    """Return the event after which text that streamed before it is no part of the answer."""
    code = ThreadBusyError.code
    event = ModelRetry(type="model_retry", model="", attempt=attempt, wait_s=0.0, code=code)
    return {**event, "in_place": True} if in_place else event


def messages_of_turn(state: StateSnapshot) -> list[BaseMessage]:
    """Return the user messages of a thread's newest turn, none while they are on their way in."""
    if any(task.name in {"__start__", "ingest"} for task in state.tasks):
        return []
    number = turn_of(state.values).get("number")
    messages = thread_of(state.values).messages
    return [each for each in messages if each.type == "human" and turn_number(each) == number]


# -- messages to a running turn -------------------------------------------------------------------


def _steered_in(runner: ThreadRunner, message: HumanMessage, *, wait: bool, blocks: bool) -> Plan:
    """Hand a message to the running turn, or run it as a turn where there is none.

    `wait`: until it was taken in. `blocks`: the caller waits without letting its event loop run.
    """
    store, thread_id = _inbox_store(runner), runner.thread_id
    free = not runner.locks.is_mine(thread_id, blocks=blocks)
    if free and (yield from _lock_free_thread()):
        yield from turn(runner, message)
        return
    number = _checked(runner, message, (yield Work(runner.state)).values)
    key = f"{time.time_ns():020}-{uuid.uuid4().hex[:12]}"
    posted = InboxMessage(key, message, detached=not (wait and free))
    yield Work(lambda: store.batch(post_ops(thread_id, posted)))
    if posted.detached:
        yield from _steered(message, number)
        return
    for seconds in pauses():
        joined = (yield Work(lambda: store.batch([message_op(thread_id, posted)]))) == [None]
        if joined or (yield from _lock_free_thread()):
            break
        yield Pause(seconds)
    messages = (yield Work(runner.state)).values.get("messages") or []
    number = next((turn_number(each) for each in reversed(messages) if each.id == message.id), 0)
    if not (joined or number):  # the turn ended without it
        yield from turn(runner, message)
        return
    if not joined:
        yield Work(lambda: store.batch(delete_ops(thread_id, [posted.key])))
    yield from _steered(message, number)


def _lock_free_thread() -> Generator[Step, Any, bool]:
    """Take the thread if nobody has it; return whether it was free."""
    try:
        yield Lock(wait=False)
    except ThreadBusyError:
        return False
    return True


def _steered(message: HumanMessage, number: int) -> Iterator[Event]:
    yield steered_event(message, number)
    yield AnswerEvent(type="answer", text="", status="steered", turn=number)


def _checked(runner: ThreadRunner, message: HumanMessage, values: Values) -> int:
    """Refuse a message that could not be sent word for word; return the turn it will join.

    It would be sent under the settings of the running turn: under its limit where that is the smaller. A sender who
    withholds every cell does not join a turn that does not.
    """
    running, context = turn_of(values), runner.context
    if context.privacy == "types" and running.get("number") and not running.get("private"):
        raise NotPrivateError
    if values.get("brief"):
        for limited in (context, context.replace(model_limit=None)):
            check_input([message], limited, call_config_of(values, limited))
    return running.get("number", 0)


def _left(runner: ThreadRunner, run: Run) -> list[BaseMessage]:
    """Return the messages nobody waits for that the turn which just ended did not take in."""
    store = runner.graph.store
    if store is None or not run.reader.settled:
        return []
    notification = store.batch([notification_op(runner.thread_id)])[0]
    if new_token(notification, run.reader.turn) is None:
        return []
    items: Any = store.batch([inbox_op(runner.thread_id)])[0]
    posted = inbox_messages(runner.thread_id, items or [])
    return [each.message for each in posted if each.detached]


def _inbox_store(runner: ThreadRunner) -> BaseStore:
    if runner.graph.store is None:
        raise ConfigError("messages to a running turn wait in a store: compile the graph with it, graph.compile(..., store=...)")
    return runner.graph.store
