"""Draw how full the context is over the sixty turns of the flights talk: docs/gauge.png, for the
README.

python -m benchmarks.gauge
"""

import tempfile
from pathlib import Path

import matplotlib as mpl
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.app.demo import ensure_demo
from longtable.graph import Context, Conversation, Database, build_graph
from tests.support.flights_talk import TALK

LIMIT = 16_000
PICTURE = Path(__file__).parents[1] / "docs" / "gauge.png"
PARTS = ("system", "tools", "memory", "messages")


def measure(database: Database) -> tuple[list[dict[str, int]], list[tuple[int, int, int]]]:
    """Return tokens by part at each call, and (call, tokens before, tokens after) of each fold."""
    app = build_graph(model=BuiltInAnalyst(), database=database).compile(
        checkpointer=InMemorySaver()
    )
    conversation = Conversation(app, "gauge", context=Context(model_limit=LIMIT))
    calls: list[dict[str, int]] = []
    folds: list[tuple[int, int, int]] = []
    for turn in TALK:
        for event in conversation.stream(turn.question):
            if event["type"] == "context_usage":
                parts = event["parts"]
                calls.append(
                    {
                        "system": parts["system"],
                        "tools": parts["tools"],
                        "memory": parts["memory"],
                        "messages": parts["messages"],
                    }
                )
            elif event["type"] == "context_compressed":
                calls.pop()  # what was counted before the fold was not sent
                folds.append((len(calls), event["original_tokens"], event["compressed_tokens"]))
    return calls, folds


def draw(calls: list[dict[str, int]], folds: list[tuple[int, int, int]]) -> None:
    """Write the picture."""
    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 3.4), dpi=120)
    colours = ("#7a8ba0", "#b3bfcc", "#d9a441", "#2f7d95")
    axes.stackplot(
        range(len(calls)),
        [[call[part] for call in calls] for part in PARTS],
        labels=PARTS,
        colors=colours,
        step="post",
    )
    axes.axhline(LIMIT, color="#333333", linewidth=1)
    axes.axhline(0.6 * LIMIT, color="#b03030", linewidth=1, linestyle="--")
    axes.text(0.5, LIMIT * 1.015, f"limit {LIMIT:,}", fontsize=8)
    axes.text(0.5, LIMIT * 0.615, "threshold 60 %", fontsize=8, color="#b03030")
    for call, _, _ in folds:
        axes.axvline(call, color="#b03030", linewidth=0.6, alpha=0.5)
    axes.set(
        xlim=(0, len(calls) - 1), ylim=(0, LIMIT * 1.1), xlabel="model call", ylabel="tokens sent"
    )
    axes.set_title(
        f"{len(TALK)} turns, {len(calls)} model calls, {len(folds)} compactions", fontsize=10
    )
    axes.legend(loc="upper right", ncols=4, fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE)


def main() -> None:
    """Measure, print, draw."""
    with (
        tempfile.TemporaryDirectory() as cache,
        Database.open(f"duckdb:///{ensure_demo(Path(cache))}") as database,
    ):
        calls, folds = measure(database)
    totals = [sum(call.values()) for call in calls]
    print(f"gauge: {len(TALK)} turns, {len(calls)} calls, {len(folds)} folds, limit {LIMIT:,}")
    print(
        f"  largest call {max(totals):,} tokens ({max(totals) / LIMIT:.1%}), mean"
        f" {sum(totals) / len(totals):,.0f}"
    )
    print(f"  without folding the last call alone would have {_unfolded(calls, folds):,} tokens")
    draw(calls, folds)


def _unfolded(calls: list[dict[str, int]], folds: list[tuple[int, int, int]]) -> int:
    return sum(calls[-1].values()) + sum(before - after for _, before, after in folds)


if __name__ == "__main__":
    main()
