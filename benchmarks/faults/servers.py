"""A PostgreSQL server that is restarted while a turn is under way."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.faults.files import THREAD, Suffered
from benchmarks.faults.talk import CONTEXT, add, say, whole_turns
from longtable.base.errors import LongtableError
from longtable.graph import Conversation, build_graph, open_persistence
from tests.support.models import ScriptedModel
from tests.support.postgres import PostgresServer

TRIES = 6


def restarted(server: PostgresServer) -> Suffered:
    """Restart the server between the tool's answer and the model's, and go on with the same open
    store.
    """
    again = [True]

    def restarting(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool" and "question 2" in str(messages) and again:
            again.clear()
            server.restart()
        return say(messages)

    errors: list[str] = []
    with open_persistence(server.create()) as persistence:
        graph = build_graph(model=ScriptedModel(say=restarting), tools=[add]).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        conversation = Conversation(graph, THREAD, context=CONTEXT)
        conversation.ask("question 1")
        for number in (2, 3):
            for _ in range(TRIES):
                try:
                    if number == 2 and errors:
                        conversation.resume()
                    else:
                        conversation.ask(f"question {number}")
                    break
                except LongtableError as error:
                    errors.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
        there = whole_turns(persistence, THREAD)
    return Suffered(
        "PostgreSQL restarted in mid-turn, then resumed",
        _said(errors),
        [number for number in (1, 2, 3) if there.count(number) != 1],
        3,
    )


def _said(errors: list[str]) -> str:
    return f"{errors[0]} ({len(errors)} times)" if errors else ""
