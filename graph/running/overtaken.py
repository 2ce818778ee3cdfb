"""What is left to run of a turn that another run overtook."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langgraph.types import StateSnapshot

from longtable.base.errors import ThreadBusyError
from longtable.base.events import AnswerEvent, AnswerStatus, ModelRetry, Notice
from longtable.graph.running.thread_runner import GraphInput
from longtable.graph.thread_state import is_pending
from longtable.memory.messages.marks import marks_of, turn_number, unmarked
from longtable.nodes.state import Input, thread_of, turn_of, values_of


@dataclass(frozen=True)
class Rest:
    """What is left to run of a turn that another run overtook."""

    input: GraphInput = None
    """The input of the next run. None means that the turn goes on from its newest checkpoint."""
    answer: AnswerEvent | None = None
    """The answer of the turn if it already has one. Then nothing is left to run."""


def rest_of(messages: Sequence[BaseMessage], state: StateSnapshot, error: ThreadBusyError) -> Rest:
    """Return how a turn that another run overtook must go on. Pure.

    If other turns came after the turn's messages, these messages move to the end of the transcript,
    and what the turn had written is removed. Raises `error` if the messages have become part of a
    compaction.
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
        status: AnswerStatus = newest.get("status", "") if is_newest else status_of(last)
        answer = AnswerEvent(type="answer", text=str(last.text), status=status, turn=number)
        return Rest(answer=answer)
    compacted = thread.chain[-1]["count"] if thread.chain else 0
    if thread.archived + places[of_turn[0].id] < compacted:
        raise error
    removals = [RemoveMessage(id=str(message.id)) for message in of_turn]
    again = [unmarked(message) for message in of_turn if message.type == "human"]
    return Rest(Input(messages=[*removals, *again]))


def status_of(answer: BaseMessage) -> Notice | Literal["answered"]:
    """Return how an earlier turn ended, by the marks of its answer."""
    notice: Notice | None = marks_of(answer).get("notice")
    return notice or "answered"


def restart_event(attempt: int, *, in_place: bool) -> ModelRetry:
    """Return the event which says that the text streamed before it is not part of the answer."""
    code = ThreadBusyError.code
    event = ModelRetry(type="model_retry", model="", attempt=attempt, wait_s=0.0, code=code)
    return {**event, "in_place": True} if in_place else event


def messages_of_turn(state: StateSnapshot) -> list[BaseMessage]:
    """Return the user messages of a thread's newest turn. Empty if the thread has not taken them in
    yet.
    """
    if any(task.name in {"__start__", "ingest"} for task in state.tasks):
        return []
    number = turn_of(values_of(state)).get("number")
    messages = thread_of(values_of(state)).messages
    return [each for each in messages if each.type == "human" and turn_number(each) == number]
