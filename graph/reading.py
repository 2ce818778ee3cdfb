"""Read and change stored threads where no model and no database are at hand."""

from typing import Any

from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph

from longtable.base.context import Context
from longtable.base.errors import ConfigError
from longtable.graph.persistence import Persistence
from longtable.graph.running import Graph
from longtable.nodes.state import Input, State

NODES = ("ingest", "estimate", "compact", "respond", "approve", "run_tools", "settle", "prepare")
"""Those of `build_graph`: with the same names, what an interrupted turn still has to do is seen here too."""


def reader(persistence: Persistence) -> Graph:
    """Return a graph over a store's threads that runs no turn: a `Conversation` on it reads, edits, forks and exports."""
    graph = StateGraph(State, context_schema=Context, input_schema=Input)
    for name in NODES:
        graph.add_node(name, RunnableLambda(_runs_nothing))
    graph.add_edge(START, "ingest")
    return graph.compile(checkpointer=persistence.checkpointer, store=persistence.store)


def _runs_nothing(_: State) -> dict[str, Any]:
    raise ConfigError("this graph only reads threads: build one with build_graph(model=...) to run a turn")
