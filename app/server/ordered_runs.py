"""Runs of one thread in an order, on a server that gives them none.

Aegra starts a run as soon as it arrives, on any instance. Two runs at once on one thread would
begin at the same checkpoint, and one of them would be lost or fail.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from longtable.base.concurrency import ASYNC
from longtable.store.persistence import locks_beside


class OrderedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph whose runs on one thread wait for each other, in all processes of a server
    that keeps checkpoints in PostgreSQL, with LangGraph's own checkpointer over a pool.

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
        locks = locks_beside(self.checkpointer)
        thread_id = (config or {}).get("configurable", {}).get("thread_id")
        async with AsyncExitStack() as stack:
            if locks is not None and thread_id is not None:
                await stack.enter_async_context(locks.alone(str(thread_id), ASYNC, wait=True))
            parts: Any = super().astream(input, config, **options)
            await stack.enter_async_context(aclosing(parts))
            async for part in parts:
                yield part
