"""Runs of one thread in an order, on a server that gives them none.

Aegra starts a run as soon as it arrives, on any instance. Two runs at once on one thread would
begin at the same checkpoint, and one of them would be lost or fail.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import cache
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from longtable.base.concurrency import ASYNC
from longtable.store.locks import ThreadLocks


class OrderedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs on one thread wait for each other, in all processes of a server
    that keeps checkpoints in PostgreSQL, in LangGraph's own checkpointer over a pool.

    With any other checkpointer its runs wait for nothing: Agent Server brings its own, and orders
    runs itself.
    """

    @classmethod
    def of(cls, graph: CompiledStateGraph[Any, Any, Any, Any]) -> Self:
        """Return a copy of a compiled graph that orders its runs."""
        return cls(**vars(graph))

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Run the graph as LangGraph does, once no other run works on the thread."""
        parts: Any = super().astream(input, config, **options)
        locks = _locks_of(self.checkpointer)
        thread_id = (config or {}).get("configurable", {}).get("thread_id")
        if locks is None or thread_id is None:
            async for part in parts:
                yield part
            return
        async with locks.alone(str(thread_id), ASYNC, wait=True), aclosing(parts):
            async for part in parts:
                yield part


def _locks_of(checkpointer: object) -> ThreadLocks | None:
    """Return the locks in the database of a checkpointer, None if it has no pool of PostgreSQL
    connections.
    """
    url = getattr(getattr(checkpointer, "conn", None), "conninfo", None)
    return _locks_at(url) if isinstance(url, str) else None


@cache
def _locks_at(url: str) -> ThreadLocks:
    from longtable.store.postgres_store import AdvisoryLease

    return ThreadLocks(AdvisoryLease(url))
