"""Processes that talk on one thread at the same time and may be killed at any moment; each keeps a
log of what it was told.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.errors import ThreadBusyError
from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.graph.running.thread_runner import WhenBusy
from longtable.graph.thread_state import Graph
from tests.support.models import ScriptedModel

CONTEXT = Context(model_limit=32_000)
LEASE_SECONDS = 0.5


class Log:
    """One line for each thing that happened, safe from a kill."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, what: str, text: str) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{what} {text}\n".encode())
        os.close(handle)

    def lines(self) -> list[tuple[str, str]]:
        """Return what happened so far; a line that is being written is left out."""
        whole = self.path.read_text().splitlines() if self.path.exists() else []
        return [(what, text) for what, _, text in (line.partition(" ") for line in whole) if text]


def graph_on(checkpointer: object, store: object, log: Log) -> Graph:
    """Return a graph whose model says what it was asked."""

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        text = str(next(m.text for m in reversed(messages) if m.type == "human"))
        log.write("model", text)
        time.sleep(0.01)
        return AIMessage(f"answer to {text}")

    return build_graph(model=ScriptedModel(say=say)).compile(checkpointer=checkpointer, store=store)  # type: ignore[arg-type]


def talk(url: str, name: str, numbers: range, when_busy: WhenBusy, path: Path) -> None:
    """Ask the questions `name-number` one after the other, and log what becomes of each."""
    log = Log(path)
    with open_persistence(url, lease_seconds=LEASE_SECONDS) as kept:
        conversation = Conversation(
            graph_on(kept.checkpointer, kept.store, log), "t", context=CONTEXT, when_busy=when_busy
        )
        for number in numbers:
            text = f"{name}-{number}"
            log.write("asked", text)
            try:
                answer = conversation.ask(text)
            except ThreadBusyError as error:
                log.write({False: "refused", True: "stopped", None: "unsure"}[error.stored], text)
                time.sleep(0.1)
            else:
                assert answer.text == f"answer to {text}", answer
                log.write("done", text)
    log.write("finished", name)
