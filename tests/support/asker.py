"""A process that asks on a stored thread, its model and summariser a server.

python -m tests.support.asker STORE_URL BASE_URL FIRST LAST

Without LAST it ends after the answer that a summary follows. The store "none" is a saver that
nobody closes.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from longtable.graph import Context, Conversation, MemoryTools, build_graph, open_persistence
from tests.support.model_server import client_of

CONTEXT = Context(model_limit=3_000)
QUESTION = "q{n} " + "w " * 82


@contextmanager
def opened(store: str) -> Iterator[dict[str, Any]]:
    """Open what the graph is compiled with."""
    if store == "none":
        yield {"checkpointer": InMemorySaver()}
        return
    with open_persistence(store, lease_seconds=1) as kept:
        yield {"checkpointer": kept.checkpointer, "store": kept.store}


def main(store: str, base_url: str, first: int, last: int | None) -> None:
    """Print "answered N" after each answer, "closed" when the store is closed."""
    with opened(store) as parts:
        conversation = Conversation(
            build_graph(model=client_of(base_url), memory_tools=MemoryTools(recall=False)).compile(
                **parts
            ),
            "t",
            context=CONTEXT,
        )
        for n in count(first):
            conversation.ask(QUESTION.format(n=n))
            print(f"answered {n}", flush=True)
            if n == last or (
                last is None and conversation.graph.get_state(conversation.config).next
            ):
                break
    print("closed", flush=True)


if __name__ == "__main__":
    main(
        sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None
    )
