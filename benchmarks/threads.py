"""Threads by the thousand: list, usage and search over a store of many. `python -m
benchmarks.threads [THREADS]`.

The threads have two turns each and are copies of one, with texts of their own. Each figure is the
processor time of one call in this process: the first call, which reads every thread, and the
median of the next ones.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

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
from longtable.graph.thread_state import threads_in
from longtable.graph.transcripts import load_thread, save_thread
from tests.support.models import script

THREADS = 10_000
CALLS = 5
WORDS = 3_000
"""The size of the vocabulary: words that occur seldom and often, as in a language."""
GOALS = {"list": 0.05, "usage": 0.2, "search": 0.5}


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


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of the first call, and the median of the next ones."""
    taken: list[float] = []
    for _ in range(CALLS + 1):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return taken[0], statistics.median(taken[1:])


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else THREADS
    chance = random.Random(2)
    with tempfile.TemporaryDirectory() as folder:
        with open_persistence(f"sqlite:///{Path(folder) / 'chat.db'}") as kept:
            fill(kept, count)
        with open_persistence(f"sqlite:///{Path(folder) / 'chat.db'}") as kept:
            calls: dict[str, Callable[[], object]] = {
                "list": lambda: list_threads(kept, limit=100),
                "usage": lambda: usage_of_threads(kept, by=["day"]),
                "search": lambda: search_threads(kept, text(chance)[:40]),
            }
            print(f"| {count:,} threads | first, s | next, s | goal, s | |")
            print("|---|---:|---:|---:|---|")
            for name, call in calls.items():
                first, later = seconds(call)
                met = "met" if later <= GOALS[name] else "missed"
                print(f"| {name} | {first:.2f} | {later:.3f} | {GOALS[name]:g} | {met} |")


if __name__ == "__main__":
    main()
