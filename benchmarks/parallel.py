"""Many threads at once in one process: two hundred complete on few connections, and a turn of a
hundred is compared with create_agent's, on both stores. `python -m benchmarks.parallel`.
"""

import asyncio
import tempfile
import time

from langchain_core.messages import AIMessage

from benchmarks.goals import HEAD
from benchmarks.turn import crowd_row
from longtable.graph import Context, Conversation, build_graph, open_persistence
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server, stop_postgres_server

THREADS = 200
TURNS = 3


async def talk(url: str) -> float:
    """Run the turns of all threads side by side; return the seconds. Raises what any of them
    raises.
    """
    async with open_persistence(url) as persistence:
        model = ScriptedModel(say=lambda sent: AIMessage(f"answer to {sent[-1].text}"))
        app = build_graph(model=model).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )

        async def one(name: str) -> None:
            conversation = Conversation(app, name, context=Context(model_limit=16_000))
            for turn in range(TURNS):
                assert (
                    await conversation.aask(f"{name} {turn}")
                ).text == f"answer to {name} {turn}"
            assert len(await conversation.ahistory()) == 2 * TURNS

        begun = time.perf_counter()
        await asyncio.gather(*(one(f"t{n}") for n in range(THREADS)))
        return time.perf_counter() - begun


def main() -> None:
    """Measure, print."""
    print(f"| {THREADS} threads at once, {TURNS} turns each | seconds | turns a second |")
    print("|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        stores = {"SQLite": f"sqlite:///{folder}/chat.db", "PostgreSQL": postgres_server().create()}
        try:
            for name, url in stores.items():
                seconds = asyncio.run(talk(url))
                print(f"| {name} | {seconds:.1f} | {THREADS * TURNS / seconds:.0f} |", flush=True)
            rows = [
                crowd_row("SQLite", 1.2, turns=10),
                crowd_row("PostgreSQL", 1.3, turns=10, create=postgres_server().create),
            ]
            print("\n".join([HEAD, *rows]), flush=True)
        finally:
            stop_postgres_server()


if __name__ == "__main__":
    main()
