"""A process that talks on a thread and is killed with SIGKILL at a given write of the checkpointer.

What was written is told on standard output: "asked N" before a turn, "answered N" after it.
"""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import Op, PutOp
from langgraph.store.sqlite import SqliteStore

from longtable.base.errors import ProviderRefusedError
from longtable.graph import CompactionPolicy, Context, Conversation, build_graph, open_persistence
from longtable.graph.thread_state import Graph
from longtable.store.heads import SqliteHeads, _WithinTransaction
from longtable.store.saver_guard import GuardedSaver
from tests.support import forked
from tests.support.models import ScriptedModel, call

CONTEXT = Context(model_limit=8_000)
TIGHT = Context(model_limit=2_500)
FOLDING = CompactionPolicy(retire_after=12, keep_rounds=2, min_messages=4)
"""With TIGHT: every few turns something is folded after the answer, and something retires."""


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


class BadRequest(Exception):
    """A provider's 400."""

    status_code = 400


def say(messages: Sequence[BaseMessage]) -> AIMessage:
    """Call the tool once a turn, then answer with the question's number; refuse whatever holds
    "poison".
    """
    if any("poison" in m.text for m in messages):
        raise BadRequest("The prompt was flagged.")
    question = next(m.text for m in reversed(messages) if m.type == "human")
    return (
        AIMessage(f"answer to {question}") if messages[-1].type == "tool" else call("add", a=1, b=2)
    )


def graph_on(checkpointer: Any, store: Any, policy: CompactionPolicy | None = None) -> Graph:
    """Return the graph both the doomed process and its heir run."""
    return build_graph(model=ScriptedModel(say=say), tools=[add], policy=policy).compile(
        checkpointer=checkpointer, store=store
    )


def question(turn: int, *, tight: bool) -> str:
    """Return the question of a turn."""
    return f"question {turn}" + (" w" * 60 if tight else "")


class Doom:
    """Kills its own process at the given write; `armed` counts from then on."""

    point = -1
    armed = False
    writes = 0

    def pass_(self) -> None:
        """Count one more place where a process may die."""
        if self.armed:
            if self.writes == self.point:
                os.kill(os.getpid(), signal.SIGKILL)
            self.writes += 1


DOOM = Doom()


class DoomedSaver(_WithinTransaction):
    """Passes before and after each write."""

    def put(self, *args: Any, **kwargs: Any) -> Any:
        DOOM.pass_()
        done = super().put(*args, **kwargs)
        DOOM.pass_()
        return done

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        DOOM.pass_()
        super().put_writes(*args, **kwargs)
        DOOM.pass_()


def doomed_saver(connection: sqlite3.Connection) -> GuardedSaver:
    """Return the guarded saver of a file; what it writes within its transactions is counted."""
    guarded = GuardedSaver(SqliteSaver(connection))
    assert isinstance(guarded.heads, SqliteHeads)
    guarded.heads.within = DoomedSaver(connection, serde=guarded.serde)
    return guarded


class DoomedStore(SqliteStore):
    """Passes before and after each batch that writes."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        writes = any(isinstance(op, PutOp) for op in ops)
        if writes:
            DOOM.pass_()
        done = super().batch(ops)
        if writes:
            DOOM.pass_()
        return done


def run(url: str, point: int, which: int | str = 2) -> subprocess.CompletedProcess[str]:
    """Run the process to its end.

    `point`: the number of the write within the doomed turn, from 0; even: just before it, odd: just
    after. `which`: the doomed turn; "steered": the second, which a message joins while its tool
    works; "refused": the second, whose message the provider refuses; "asked": the second, whose
    events nobody reads.
    """
    done = forked.run(_talk, url, point, which)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def _talk(url: str, point: int, which: int | str) -> None:
    """Run turns; die in the last."""
    steered = which == "steered"
    doomed = int(which) if isinstance(which, int) else 2
    tight = doomed > 2
    with open_persistence(url) as kept:
        assert isinstance(kept.checkpointer, GuardedSaver)
        assert isinstance(kept.checkpointer.inner, SqliteSaver)
        assert isinstance(kept.store, SqliteStore)
        DOOM.point = point
        store = DoomedStore(kept.store.conn) if tight or steered else kept.store
        graph = graph_on(
            doomed_saver(kept.checkpointer.inner.conn), store, FOLDING if tight else None
        )
        conversation = Conversation(graph, "t", context=TIGHT if tight else CONTEXT)
        for turn in range(1, doomed + 1):
            DOOM.armed = turn == doomed
            print(f"asked {turn}", flush=True)
            if which == "refused" and turn == doomed:
                with suppress(ProviderRefusedError):
                    conversation.ask("poison")
                continue
            if which == "asked":
                conversation.ask(question(turn, tight=tight))
                continue
            for event in conversation.stream(question(turn, tight=tight)):
                if event["type"] in {"answer", "context_compressed", "messages_retired"}:
                    print(f"{event['type']} {turn}", flush=True)
                if steered and turn == doomed and event["type"] == "tool_started":
                    steered = False
                    conversation.steer("steered")
                    print("accepted", flush=True)
            print(f"answered {turn}", flush=True)
    print(f"survived {DOOM.writes} writes", flush=True)
