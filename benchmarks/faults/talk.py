"""A process that talks on a thread until it is killed and logs what it was told, and its heir, who
looks at what is left.
"""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from longtable.base.errors import LongtableError
from longtable.graph import Context, Conversation, Persistence, build_graph, open_persistence
from longtable.graph.thread_state import Graph
from longtable.nodes.state import Input
from tests.support.models import ScriptedModel, call

Durability = Literal["sync", "async", "exit"]
CONTEXT = Context(model_limit=16_000)
LEASE_SECONDS = 0.3


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def say(messages: Sequence[BaseMessage]) -> AIMessage:
    """Call the tool once a turn, then answer with the question."""
    question = next(m.text for m in reversed(messages) if m.type == "human")
    return (
        AIMessage(f"answer to {question}") if messages[-1].type == "tool" else call("add", a=1, b=2)
    )


def graph_on(persistence: Persistence) -> Graph:
    """Return the graph that all of them run: four supersteps of work, one tool call a turn."""
    return build_graph(model=ScriptedModel(say=say), tools=[add]).compile(
        checkpointer=persistence.checkpointer, store=persistence.store
    )


class Log:
    """One line for each thing that happened, safe from a kill."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, what: str) -> None:
        """Append a line."""
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{what}\n".encode())
        os.close(handle)

    def lines(self) -> list[str]:
        """Return what happened so far."""
        return self.path.read_text().splitlines() if self.path.exists() else []


def talk(url: str, thread: str, durability: Durability, boundary: int | None, path: Path) -> None:
    """Run turn 1, and turn 2 up to a superstep, then die; without a boundary, run until killed from
    outside.
    """
    log = Log(path)
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    with open_persistence(url, lease_seconds=LEASE_SECONDS) as persistence:
        graph = graph_on(persistence)
        for turn in (1, 2):
            log.write(f"asked {turn}")
            turn_input = Input(messages=[HumanMessage(f"question {turn}", id=f"{thread}-{turn}")])
            steps = graph.stream(
                turn_input, config, context=CONTEXT, stream_mode="updates", durability=durability
            )
            for number, _ in enumerate(steps):
                if turn == 2 and number == boundary:
                    os.kill(os.getpid(), signal.SIGKILL)
            log.write(f"answered {turn}")


@dataclass(frozen=True)
class Left:
    """What is left of a thread whose process was killed in its second turn."""

    lost: list[str]
    """What the process was told is kept, or its heir after it, and is not there once, whole and in
    order.
    """
    resumed: bool
    stored: bool
    """Whether the killed turn's question is there."""


def inherit(persistence: Persistence, thread: str, lines: Sequence[str]) -> Left:
    """Open the thread, finish what was interrupted, ask once more, and look."""
    conversation = Conversation(graph_on(persistence), thread, context=CONTEXT)
    resumed = conversation.pending()
    conversation.resume()
    conversation.ask("question 3")
    texts = [str(m.text) for m in conversation.history()]
    stored = "question 2" in texts
    expected = [
        turn
        for turn in (1, 2, 3)
        if turn == 3 or f"answered {turn}" in lines or (turn == 2 and stored)
    ]
    exact = [
        text
        for turn in expected
        for text in (f"question {turn}", "", "3", f"answer to question {turn}")
    ]
    return Left([] if texts == exact else [f"{thread}: {texts}"], resumed, stored)


def ask_until_it_fails(
    persistence: Persistence, thread: str, first: int, most: int
) -> tuple[list[int], LongtableError | None]:
    """Ask numbered questions; return which were answered, and the typed error that ended it."""
    conversation = Conversation(graph_on(persistence), thread, context=CONTEXT)
    answered: list[int] = []
    for number in range(first, first + most):
        try:
            conversation.ask(f"question {number}")
        except LongtableError as error:
            return answered, error
        answered.append(number)
    return answered, None


def whole_turns(persistence: Persistence, thread: str) -> list[int]:
    """Return the numbers of the questions that are answered in a thread, in order."""
    texts = [
        str(m.text) for m in Conversation(graph_on(persistence), thread, context=CONTEXT).history()
    ]
    return [
        int(text.removeprefix("answer to question "))
        for text in texts
        if text.startswith("answer to question ")
    ]
