"""What a turn costs that recalls earlier messages, as its thread grows.

python -m benchmarks.recall [TURNS ...]     # 100, 1,500 and 5,000 without an argument

The model answers at once, and calls `recall_history` when the question begins with "recall". The
thread is kept in SQLite; with an input limit of 32,000 tokens it is compacted and its messages
retire. Figures are ms of the processor: of a plain turn, of a turn that recalls by words it has
(median of `RUNS`, none of them asked before), of the first one in a graph built anew, and of one
that reads a range by its numbers.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.store.persistence import Persistence

RUNS = 7
SIZES = (100, 1_500, 5_000)
LIMIT = 32_000
WORDS = tuple(
    f"{first}{middle}{last}"
    for first in ("bra", "cho", "dul", "fen", "gri", "hol", "jas", "kem", "lor", "mip")
    for middle in ("an", "ek", "il", "om", "ur", "ath", "ein", "oss")
    for last in ("dor", "fa", "gel", "him", "kor", "lat", "mond", "nis", "pol", "rest")
)


class Recaller(BaseChatModel):
    """Answers in 40 words; calls recall_history with what follows "recall" in the question."""

    encoding: str = "o200k_base"

    @property
    def _llm_type(self) -> str:
        return "recaller"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = str(messages[-1].text)
        answer = AIMessage("It came to " + words(text, 40))
        if messages[-1].type == "human" and text.startswith("recall "):
            query = {"query": text.removeprefix("recall ")}
            call = {"name": "recall_history", "args": query, "id": f"call-{len(messages)}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def words(seed: str, count: int) -> str:
    """Return words that follow from a seed."""
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def opened(persistence: Persistence) -> Conversation:
    """Return the thread in a graph of its own, as a new process would."""
    graph = build_graph(model=Recaller(), summarizer=False).compile(
        checkpointer=persistence.checkpointer, store=persistence.store
    )
    return Conversation(graph, "t", context=Context(model_limit=LIMIT))


def cost(conversation: Conversation, question: str) -> float:
    """Return the ms of the processor that a turn takes."""
    begun = time.process_time()
    conversation.ask(question)
    return (time.process_time() - begun) * 1000


def median_cost(conversation: Conversation, questions: Sequence[str]) -> float:
    """Return the median over questions."""
    return statistics.median([cost(conversation, question) for question in questions])


def measure(persistence: Persistence, turns: int) -> list[float]:
    """Return the costs of a plain turn, of recall, of a graph's first recall, and of a range."""
    conversation = opened(persistence)
    searches = [f"recall {words(f'{turns} query {n}', 3)}" for n in range(RUNS * 2)]
    plain = median_cost(conversation, [words(f"{turns} plain {n}", 40) for n in range(RUNS)])
    cost(conversation, searches[0])
    warm = median_cost(conversation, searches[1 : RUNS + 1])
    first = statistics.median(
        [cost(opened(persistence), search) for search in searches[RUNS + 1 :]]
    )
    ranges = median_cost(conversation, [f"recall m{n}-m{n + 11}" for n in range(3, 3 + RUNS)])
    return [plain, warm, first, ranges]


def main() -> None:
    """Print the table."""
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    print("| ms of the processor | plain turn | recall | first recall of a graph | a range |")
    print("|---|---:|---:|---:|---:|")
    with (
        tempfile.TemporaryDirectory() as folder,
        open_persistence(f"sqlite:///{folder}/chat.db") as persistence,
    ):
        conversation = opened(persistence)
        asked = 0
        for size in sizes:
            while asked < size:
                conversation.ask(f"How did week {asked} go? {words(f'question {asked}', 40)}")
                asked += 1
            figures = " | ".join(f"{figure:.0f}" for figure in measure(persistence, size))
            print(f"| after {size:,} turns | {figures} |", flush=True)


if __name__ == "__main__":
    main()
