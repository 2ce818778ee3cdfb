"""A PostgreSQL server that is restarted while a turn is under way."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.faults.files import THREAD, Suffered
from benchmarks.faults.talk import CONTEXT, add, graph_on, say, whole_turns
from longtable.graph import Conversation, build_graph, open_persistence
from longtable.graph.errors import LongtableError
from tests.support.models import ScriptedModel
from tests.support.postgres import PostgresServer


def restarted(server: PostgresServer) -> Suffered:
    """Restart the server between the tool's answer and the model's, and go on with the same open store."""
    again = [True]

    def restarting(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool" and "question 2" in str(messages) and again:
            again.clear()
            server.restart()
        return say(messages)

    saw = ""
    with open_persistence(server.create()) as kept:
        graph = build_graph(model=ScriptedModel(say=restarting), tools=[add]).compile(checkpointer=kept.checkpointer, store=kept.store)
        conversation = Conversation(graph, THREAD, context=CONTEXT)
        conversation.ask("question 1")
        try:
            conversation.ask("question 2")
        except LongtableError as error:
            saw = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            list(conversation.resume())
        Conversation(graph_on(kept), THREAD, context=CONTEXT).ask("question 3")
        there = whole_turns(kept, THREAD)
    return Suffered("PostgreSQL restarted in mid-turn, then resumed", saw, [number for number in (1, 2, 3) if there.count(number) != 1], 3)
