"""A process that talks on a thread and is killed with SIGKILL at a given write of the checkpointer.

    python -m tests.support.doomed sqlite:////tmp/x.db POINT

POINT: the number of the write within the second turn, from 0; even: just before it, odd: just after. What was written
is told on standard output: "asked N" before a turn, "answered N" after it.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.graph.running import Graph
from tests.support.models import ScriptedModel, call

CONTEXT = Context(model_limit=8_000)


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


def say(messages: Sequence[BaseMessage]) -> AIMessage:
    """Call the tool once a turn, then answer with the question's number."""
    question = next(m.text for m in reversed(messages) if m.type == "human")
    return AIMessage(f"answer to {question}") if messages[-1].type == "tool" else call("add", a=1, b=2)


def graph_on(checkpointer: Any, store: Any) -> Graph:
    """Return the graph both the doomed process and its heir run."""
    return build_graph(model=ScriptedModel(say=say), tools=[add]).compile(checkpointer=checkpointer, store=store)


class DoomedSaver(SqliteSaver):
    """Kills its own process at the given point; `armed` counts from then on."""

    point = -1
    armed = False
    writes = 0

    def _pass(self) -> None:
        if self.armed:
            if self.writes == self.point:
                os.kill(os.getpid(), signal.SIGKILL)
            self.writes += 1

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self._pass()
        done = super().put(*args, **kwargs)
        self._pass()
        return done

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        self._pass()
        super().put_writes(*args, **kwargs)
        self._pass()


def main(url: str, point: int) -> None:
    """Run two turns; die in the second."""
    with open_persistence(url) as kept:
        assert isinstance(kept.checkpointer, SqliteSaver)
        saver = DoomedSaver(kept.checkpointer.conn)
        saver.point = point
        conversation = Conversation(graph_on(saver, kept.store), "t", context=CONTEXT)
        for turn in (1, 2):
            saver.armed = turn == 2
            print(f"asked {turn}", flush=True)
            conversation.ask(f"question {turn}")
            print(f"answered {turn}", flush=True)
    print(f"survived {saver.writes} writes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
