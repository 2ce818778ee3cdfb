"""What counting costs: one long message, a long history, and one new message in it; beside tiktoken and LangChain.

python -m benchmarks.counting
"""

import statistics
import time
from collections.abc import Callable

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from longtable.memory.tokens import TokenCounter, counter, load_encoding

REPEATS = 7
HISTORY = 5_000


def best_of(run: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """Return the median time of a run in milliseconds; `prepare` is not timed."""
    times = []
    for _ in range(REPEATS):
        prepare()
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def history(size: int) -> list[BaseMessage]:
    """Return a plain conversation of `size` messages."""
    return [
        (AIMessage if i % 2 else HumanMessage)(
            f"message {i}: the average departure delay of carrier {i % 16} was {i * 0.37:.2f} minutes. " * 4
        )
        for i in range(size)
    ]


def main() -> None:
    """Print the table."""
    counter("o200k_base").text("warm")
    encoding = load_encoding("o200k_base")
    prose = ("How many flights left in May, and what was their average delay? " * 200)[:8_000]
    messages = history(HISTORY)
    fresh = TokenCounter("o200k_base")
    rows = [
        ("one message, 8,000 characters, first time", best_of(lambda: fresh.message(HumanMessage(prose)), lambda: fresh._cache.clear())),
        ("  the same by tiktoken alone", best_of(lambda: encoding.encode_ordinary(prose))),
        (f"history of {HISTORY:,} messages, first time", best_of(lambda: fresh.messages(messages), lambda: fresh._cache.clear())),
        ("  the same by tiktoken alone", best_of(lambda: [encoding.encode_ordinary(str(m.content)) for m in messages])),
        (
            f"one new message after {HISTORY:,} counted ones",
            best_of(lambda: fresh.messages([*messages, HumanMessage(f"new {time.time_ns()}")])),
        ),
        ("  the same by count_tokens_approximately", best_of(lambda: count_tokens_approximately(messages))),
    ]
    print(f"counting, median of {REPEATS}, milliseconds")
    for name, milliseconds in rows:
        print(f"  {name:<55} {milliseconds:9.2f}")
    print(f"  ratio first time / one new message: {rows[2][1] / rows[4][1]:.0f}")


if __name__ == "__main__":
    main()
