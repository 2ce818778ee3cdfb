"""Runs of one thread in an order, on a server that gives them none.

Aegra starts a run as soon as it arrives, on any instance. Two runs at once on one thread would
begin at the same checkpoint, and one of them would be lost or fail.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any, Self

from langgraph.graph.state import CompiledStateGraph

from longtable.base.concurrency import ASYNC
from longtable.graph.wiring.editing import Editable
from longtable.store.persistence import locks_beside


class OrderedGraph(Editable):
    """A compiled graph whose runs on one thread wait for each other, in all processes of a server
    that keeps checkpoints in PostgreSQL, with LangGraph's own checkpointer over a pool.

    With any other checkpointer its runs wait for nothing: Agent Server brings its own, and orders
    runs itself.
    """

    @classmethod
    def of(cls, graph: CompiledStateGraph[Any, Any, Any, Any]) -> Self:
        """Return a shallow copy of a compiled graph of `build_graph` that orders its runs."""
        ordered = cls.__new__(cls)
        vars(ordered).update(vars(graph))
        return ordered

    async def astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Run the graph as it is, once no other run works on the thread."""
        config = kwargs["config"] if "config" in kwargs else dict(enumerate(args)).get(1)
        thread_id = (config or {}).get("configurable", {}).get("thread_id")
        locks = locks_beside(self.checkpointer)
        async with AsyncExitStack() as stack:
            if locks is not None and thread_id is not None:
                await stack.enter_async_context(locks.alone(str(thread_id), ASYNC, wait=True))
            parts = super().astream(*args, **kwargs)
            await stack.enter_async_context(aclosing(parts))
            async for part in parts:
                yield part
