"""What counting costs: one long message, a long history, and one new message in it; beside tiktoken
and LangChain.

Then each tokenizer: the time to load it, its speed, and its tokens for four kinds of text against
o200k_base.

python -m benchmarks.counting
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from longtable.memory.counting.tokenizers import PACKAGES, load_encoding
from longtable.memory.counting.tokens import TokenCounter, counter

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
            f"message {i}: the average departure delay of carrier {i % 16} was {i * 0.37:.2f}"
            " minutes. " * 4
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
        (
            "one message, 8,000 characters, first time",
            best_of(lambda: fresh.message(HumanMessage(prose)), lambda: fresh._cache.clear()),
        ),
        ("  the same by tiktoken alone", best_of(lambda: encoding.encode_ordinary(prose))),
        (
            f"history of {HISTORY:,} messages, first time",
            best_of(lambda: fresh.messages(messages), lambda: fresh._cache.clear()),
        ),
        (
            "  the same by tiktoken alone",
            best_of(lambda: [encoding.encode_ordinary(str(m.content)) for m in messages]),
        ),
        (
            f"one new message after {HISTORY:,} counted ones",
            best_of(lambda: fresh.messages([*messages, HumanMessage(f"new {time.time_ns()}")])),
        ),
        (
            "  the same by count_tokens_approximately",
            best_of(lambda: count_tokens_approximately(messages)),
        ),
    ]
    print(f"counting, median of {REPEATS}, milliseconds")
    for name, milliseconds in rows:
        print(f"  {name:<55} {milliseconds:9.2f}")
    print(f"  ratio first time / one new message: {rows[2][1] / rows[4][1]:.0f}")
    tokenizers()


TEXTS = {
    "prose": "How many flights left in May, and what was their average delay? ",
    "Chinese": "每个航空公司的平均出发延误是多少？金额默认用人民币，保留两位小数。",
    "JSON": '["UA",5,517,2013,"EWR",1400.25,"2013-01-01T05:00:00"],',
    "table": "| 2013-01-01 | UA | 1545 | 227.00 | 1400 |\n",
}


def tokenizers() -> None:
    """Print each tokenizer's time to load, its speed in characters, and its counts as ratios."""
    base = counter("o200k_base")
    print(
        f"\n  {'tokenizer':<12}{'load ms':>9}{'M chars/s':>11}"
        + "".join(f"{name:>9}" for name in TEXTS)
    )
    for encoding in ("o200k_base", "cl100k_base", *PACKAGES):
        load = best_of(partial(TokenCounter, encoding))
        ours = counter(encoding)
        long = "".join(text * 500 for text in TEXTS.values())
        speed = len(long) / best_of(partial(ours.text, long)) / 1000
        ratios = "".join(
            f"{ours.text(text * 100) / base.text(text * 100):>9.2f}" for text in TEXTS.values()
        )
        print(
            f"  {encoding:<12}{load:>9.0f}{speed:>11.1f}{ratios}"
            + ("  (not installed: estimated)" if ours.estimated else "")
        )


if __name__ == "__main__":
    main()
