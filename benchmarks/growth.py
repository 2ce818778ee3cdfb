"""What a turn costs as its thread grows: bytes stored and milliseconds, over thousands of turns;
with docs/growth.png.

python -m benchmarks.growth [TURNS] [STORE ...]     # 5,000 turns; sqlite, postgres, plain, agent

Two messages of some 300 bytes a turn. `plain`: LangGraph's own `add_messages` and SqliteSaver,
without memory, stopped at a tenth of the turns; `agent`: LangChain's `create_agent` with
`SummarizationMiddleware`, at half. Bytes are those of the file with its journal, or of the
database; times are of the whole turn.
"""

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from longtable.graph import Context, Conversation, build_graph, open_persistence
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server, stop_postgres_server

TURNS = 5_000
POINTS = 50
SHARES = {"plain": 10, "agent": 2}
"""A peer's turns are fewer by this: the bytes of `add_messages` grow with the square of them."""
LIMIT = 16_000
PICTURE = Path(__file__).parents[1] / "docs" / "growth.png"
LABELS = {
    "sqlite": "longtable, SQLite",
    "postgres": "longtable, PostgreSQL",
    "plain": "StateGraph + add_messages, SQLite",
    "agent": "create_agent + summarization, SQLite",
}
FILLER = "and what of the north and the south and the east and the west " * 5


@dataclass
class Growth:
    """One store: turns so far, bytes stored by then, and the median ms of a turn since the point
    before.
    """

    store: str
    turns: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    opening: float = 0.0
    """ms to open the whole thread anew and read its view; the median of several."""


@dataclass(frozen=True)
class Place:
    """Where a thread is kept: one turn of it, its size in bytes, and opening it anew."""

    ask: Callable[[str], object]
    size: Callable[[], int]
    open: Callable[[], float]


def measure(store: str, turns: int) -> Growth:
    """Run so many turns on one thread."""
    growth = Growth(store)
    step = max(1, turns // POINTS)
    with {"sqlite": sqlite, "postgres": postgres, "plain": plain, "agent": agent}[store]() as place:
        for start in range(0, turns, step):
            times = []
            for n in range(start, start + step):
                begun = time.perf_counter()
                place.ask(f"How did week {n} go {FILLER[:280]}?")
                times.append((time.perf_counter() - begun) * 1000)
            growth.turns.append(start + step)
            growth.bytes.append(place.size())
            growth.ms.append(round(statistics.median(times), 2))
        growth.opening = round(statistics.median(place.open() for _ in range(5)), 1)
    return growth


def model() -> ScriptedModel:
    """Return a model that answers in 300 characters."""
    return ScriptedModel(say=lambda _: AIMessage(f"It went well {FILLER[:290]}"))


@contextmanager
def sqlite() -> Iterator[Place]:
    """Keep the thread in a SQLite file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _kept(f"sqlite:///{folder}/chat.db", lambda: _files(Path(folder))) as place,
    ):
        yield place


@contextmanager
def postgres() -> Iterator[Place]:
    """Keep the thread in a PostgreSQL database, on a server of its own."""
    try:
        url = postgres_server().create()
        with _kept(
            url,
            lambda: int(
                postgres_server().run(url, "SELECT pg_database_size(current_database())")[0][0]
            ),
        ) as place:
            yield place
    finally:
        stop_postgres_server()


@contextmanager
def _kept(url: str, size: Callable[[], int]) -> Iterator[Place]:
    speaker = model()

    def opened() -> float:
        begun = time.perf_counter()
        with open_persistence(url) as again:
            other = build_graph(model=model()).compile(
                checkpointer=again.checkpointer, store=again.store
            )
            assert Conversation(other, "t", context=Context(model_limit=LIMIT)).view()
        return (time.perf_counter() - begun) * 1000

    with open_persistence(url) as persistence:
        graph = build_graph(model=speaker).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        conversation = Conversation(graph, "t", context=Context(model_limit=LIMIT))

        def ask(text: str) -> None:
            speaker.sent.clear()
            conversation.ask(text)

        yield Place(ask, size, opened)


class Plain(TypedDict):
    """The state of LangGraph's own examples."""

    messages: Annotated[list[AnyMessage], add_messages]


@contextmanager
def plain() -> Iterator[Place]:
    """Keep the thread as LangGraph's examples do; each call is sent the newest 20 messages."""

    def compiled(speaker: ScriptedModel, saver: SqliteSaver) -> Any:
        def respond(state: Plain) -> dict[str, Any]:
            return {"messages": [speaker.invoke(state["messages"][-20:])]}

        builder = StateGraph(Plain).add_node("respond", respond)
        return (
            builder.add_edge(START, "respond").add_edge("respond", END).compile(checkpointer=saver)
        )

    with _peer(compiled) as place:
        yield place


@contextmanager
def agent() -> Iterator[Place]:
    """Keep the thread as LangChain's agent does, with its summarisation at the same threshold."""

    def compiled(speaker: ScriptedModel, saver: SqliteSaver) -> Any:
        summaries = SummarizationMiddleware(
            model(), trigger=("tokens", int(LIMIT * 0.6)), keep=("messages", 12)
        )
        return create_agent(speaker, [], middleware=[summaries], checkpointer=saver)

    with _peer(compiled) as place:
        yield place


@contextmanager
def _peer(compiled: Callable[[ScriptedModel, SqliteSaver], Any]) -> Iterator[Place]:
    speaker = model()
    config: Any = {"configurable": {"thread_id": "t"}}
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteSaver.from_conn_string(f"{folder}/chat.db") as saver,
    ):
        saver.conn.execute("PRAGMA synchronous=NORMAL")
        graph = compiled(speaker, saver)

        def ask(text: str) -> None:
            speaker.sent.clear()
            graph.invoke({"messages": [HumanMessage(text)]}, config, durability="sync")

        def opened() -> float:
            begun = time.perf_counter()
            assert graph.get_state(config).values["messages"]
            return (time.perf_counter() - begun) * 1000

        yield Place(ask, lambda: _files(Path(folder)), opened)


def _files(folder: Path) -> int:
    for path in folder.glob("*.db"):
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    return sum(path.stat().st_size for path in folder.iterdir())


def draw(growths: list[Growth]) -> None:
    """Write the picture: bytes and time of a turn, over the turns."""
    mpl.use("agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), dpi=120)
    for growth in growths:
        steps = [0, *growth.turns]
        each = [
            (b - a) / (v - u) / 1024
            for a, b, u, v in zip(
                [0, *growth.bytes], growth.bytes, steps, growth.turns, strict=False
            )
        ]
        left.plot(growth.turns, each, label=LABELS[growth.store])
        right.plot(growth.turns, growth.ms, label=LABELS[growth.store])
    left.set(yscale="log", xlabel="turn", ylabel="KiB stored by a turn")
    right.set(xlabel="turn", ylabel="ms a turn", ylim=(0, None))
    left.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE)


def main(turns: int = TURNS, stores: Sequence[str] = tuple(LABELS)) -> None:
    """Measure, print, draw."""
    growths = [measure(store, turns // SHARES.get(store, 1)) for store in stores]
    print(
        "| one thread | turns | MiB | KiB a turn: first tenth | last tenth | ms a turn: first tenth"
        " | last tenth | ms to open |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for growth in growths:
        tenth = max(1, len(growth.turns) // 10)
        first = growth.bytes[tenth - 1] / growth.turns[tenth - 1]
        last = (growth.bytes[-1] - growth.bytes[-tenth - 1]) / (
            growth.turns[-1] - growth.turns[-tenth - 1]
        )
        times = [statistics.mean(part) for part in (growth.ms[:tenth], growth.ms[-tenth:])]
        print(
            f"| {LABELS[growth.store]} | {growth.turns[-1]:,} | {growth.bytes[-1] / 2**20:,.0f} |"
            f" {first / 1024:,.0f} | {last / 1024:,.0f} | {times[0]:.1f} | {times[1]:.1f} |"
            f" {growth.opening:.0f} |"
        )
    draw(growths)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else TURNS, sys.argv[2:] or tuple(LABELS))
