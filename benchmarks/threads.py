"""Threads by the thousand: list, usage and search over a store of many.

python -m benchmarks.threads [THREADS [THREADS_ON_SERVER]]

The threads on SQLite and PostgreSQL have two turns each and are copies of one, with texts of their
own. Those of `langgraph dev` have one turn each; filling it takes longer the more it has. Each
figure is seconds of one call: the first call, which reads every thread, and the median of the next
ones. On SQLite it is processor time; elsewhere, where another process works as well, it is what a
person waits. The goals are those for 10,000 threads.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import httpx
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.goals import HEAD, row
from benchmarks.routes import OWNER, TIMEOUT
from benchmarks.routes import fill as fill_server
from longtable.graph import (
    Context,
    Conversation,
    Persistence,
    build_graph,
    list_threads,
    open_persistence,
    search_threads,
    usage_of_threads,
)
from longtable.graph.reports import audit_of_threads
from longtable.graph.thread_state import threads_in
from longtable.graph.transcripts import load_thread, save_thread
from tests.app.test_studio import running
from tests.support.models import script
from tests.support.postgres import postgres_server, stop_postgres_server

THREADS = 10_000
ON_SERVER = 1_000
CALLS = 5
WORDS = 3_000
"""The size of the vocabulary: words that occur seldom and often, as in a language."""
GOALS = {"list": 0.05, "usage": 0.2, "search": 0.5}

Calls = Mapping[str, Callable[[], object]]
Clock = Callable[[], float]


def text(chance: random.Random) -> str:
    """Return a text of 5 to 40 words, most of them frequent ones."""
    places = (int(WORDS * chance.random() ** 3) for _ in range(chance.randint(5, 40)))
    return " ".join(f"word{place}" for place in places)


def fill(kept: Persistence, count: int) -> None:
    """Write threads of two turns with texts of their own."""
    chance = random.Random(1)
    model = script(AIMessage("ANSWER"))
    graph = build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store)
    pattern = Conversation(graph, "pattern", context=Context(model_limit=8_000))
    pattern.ask("QUESTION")
    pattern.ask("QUESTION")
    threads = threads_in(kept)
    whole, _ = load_thread(threads, "pattern", None)
    for number in range(count):
        messages: list[BaseMessage] = []
        for message in whole.messages:
            change = {"content": text(chance), "id": f"{number}-{message.id}"}
            messages.append(message.model_copy(update=change))
        mine = replace(whole, thread_id=f"t{number}", messages=messages)
        save_thread(threads, mine)


def seconds(call: Callable[[], object], clock: Clock) -> tuple[float, float]:
    """Return the time of the first call, and the median of the next ones."""
    taken: list[float] = []
    for _ in range(CALLS + 1):
        start = clock()
        call()
        taken.append(clock() - start)
    return taken[0], statistics.median(taken[1:])


def rows(store: str, calls: Calls, clock: Clock) -> Iterator[str]:
    """Yield the rows of a table for the calls on a store."""
    for name, call in calls.items():
        first, later = seconds(call, clock)
        yield row(f"{store}: {name}, first, s", first, None)
        yield row(f"{store}: {name}, s", later, GOALS.get(name))


def rows_at(url: str, name: str, count: int, clock: Clock) -> Iterator[str]:
    """Fill the store at a URL, open it again, and yield its rows."""
    with open_persistence(url) as kept:
        fill(kept, count)
    chance = random.Random(2)
    with open_persistence(url) as kept:
        calls: Calls = {
            "list": lambda: list_threads(kept, limit=100),
            "usage": lambda: usage_of_threads(kept, by=["day"]),
            "search": lambda: search_threads(kept, text(chance)[:40]),
            "audit": lambda: audit_of_threads(kept),
        }
        yield from rows(f"{name}, {count:,} threads", calls, clock)


def rows_on_server(folder: Path, count: int) -> Iterator[str]:
    """Fill `langgraph dev`, and yield the rows of its routes."""
    with running(folder, {"scripted": "tests.support.served:graph"}) as url:
        asyncio.run(fill_server(url, count))
        with httpx.Client(base_url=f"{url}/longtable", headers=OWNER, timeout=TIMEOUT) as http:

            def get(path: str) -> None:
                http.get(path).raise_for_status()

            calls: Calls = {
                "list": lambda: get("threads"),
                "usage": lambda: get("usage?by=day"),
                "search": lambda: get("search?q=north"),
                "audit": lambda: get("audit"),
            }
            yield from rows(f"HTTP, {count:,} threads", calls, time.perf_counter)


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else THREADS
    on_server = int(sys.argv[2]) if len(sys.argv) > 2 else ON_SERVER
    print(HEAD)
    with tempfile.TemporaryDirectory(prefix="longtable-threads-") as name:
        folder = Path(name)
        for line in rows_at(f"sqlite:///{folder}/chat.db", "SQLite", count, time.process_time):
            print(line, flush=True)
        try:
            url = postgres_server().create()
            for line in rows_at(url, "PostgreSQL", count, time.perf_counter):
                print(line, flush=True)
        finally:
            stop_postgres_server()
        for line in rows_on_server(folder, on_server):
            print(line, flush=True)


if __name__ == "__main__":
    main()
