"""What one turn costs beside LangGraph and LangChain, and what ours costs as its thread grows.

python -m benchmarks.turn [--quick] [PART ...]     # peers, imported, narrow, grown, sql, crowd

All have a model that answers at once with 300 bytes, and keep threads in SQLite: longtable as
`open_persistence` opens it, the others as `SqliteSaver.from_conn_string` does (it waits for the
disk at each commit: some 2 ms of a turn). A figure is the median of `RUNS` runs, each the median of
a few turns; the systems take turns within a run, so that a busy machine slows all. Where
compactions come in every few turns only, a figure is the mean of many turns. Each goal is compared
with time of the processor.
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from benchmarks.goals import HEAD, row
from longtable.graph import Context, Conversation, Database, build_graph, open_persistence

RUNS = 5
TURNS = 4
"""Turns of one run."""
ROOMY = 2_000_000
NARROW = 32_000
"""Input limits in tokens: one at which nothing is compacted, and one at which much is."""
THREADS = 100
FILLER = "and what of the north and the south and the east and the west " * 5
ROWS = "SELECT city, week, orders, revenue FROM sales LIMIT 20"
AGENT = "create_agent + summarization"
SYSTEMS = ("StateGraph + add_messages", AGENT, "longtable")
NARROW_TURNS = 30
"""Turns whose mean is taken at the narrow limit."""

Ask = Callable[[str], object]


class InstantModel(BaseChatModel):
    """Answers in 300 bytes; asks for one tool call first where it has a tool."""

    call: str = ""
    args: dict[str, Any] = {}  # noqa: RUF012  # pydantic copies defaults
    figure: str = "much"
    encoding: str = "o200k_base"

    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        answer = AIMessage(f"It came to {self.figure} {FILLER[:286]}")
        if self.call and messages[-1].type == "human":
            answer = AIMessage(
                "",
                tool_calls=[{"name": self.call, "args": self.args, "id": f"call-{len(messages)}"}],
            )
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Plain(TypedDict):
    """The state of LangGraph's own examples."""

    messages: Annotated[list[AnyMessage], add_messages]


@contextmanager
def graphs(
    system: str,
    *,
    limit: int = ROOMY,
    model: BaseChatModel | None = None,
    tools: Sequence[BaseTool] = (),
    postgres: str = "",
) -> Iterator[Callable[..., Ask]]:
    """Give a function that opens a thread of one system, which may begin with a transcript, and
    returns how to ask on it. `postgres`: the URL of a database to keep threads in instead of
    SQLite.
    """
    speaker = model or InstantModel()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if system == "longtable":
            url = postgres or f"sqlite:///{folder}/chat.db"
            persistence = stack.enter_context(open_persistence(url))
            ours = build_graph(model=speaker, tools=tools).compile(
                checkpointer=persistence.checkpointer, store=persistence.store
            )

            def open_ours(thread: str = "t", history: Sequence[BaseMessage] = ()) -> Ask:
                context = Context(model_limit=limit)
                if history:
                    messages = [*history, HumanMessage("And in all?")]
                    ours.invoke(
                        {"messages": messages},
                        {"configurable": {"thread_id": thread}},
                        context=context,
                        durability="sync",
                    )
                return Conversation(ours, thread, context=context).ask

            yield open_ours
            return
        saver: BaseCheckpointSaver[Any]
        if postgres:
            saver = stack.enter_context(_postgres_saver(postgres))
        else:
            saver = stack.enter_context(SqliteSaver.from_conn_string(f"{folder}/chat.db"))
        if system == "StateGraph + add_messages":
            builder = StateGraph(Plain)

            def respond(state: Plain) -> dict[str, Any]:
                return {"messages": [speaker.invoke(state["messages"])]}

            builder.add_node("respond", respond)
            theirs: Any = (
                builder.add_edge(START, "respond")
                .add_edge("respond", END)
                .compile(checkpointer=saver)
            )
        else:
            middleware = SummarizationMiddleware(
                InstantModel(), trigger=("tokens", int(limit * 0.6)), keep=("messages", 12)
            )
            theirs = create_agent(speaker, list(tools), middleware=[middleware], checkpointer=saver)

        def open_theirs(thread: str = "t", history: Sequence[BaseMessage] = ()) -> Ask:
            config: Any = {"configurable": {"thread_id": thread}}

            def ask(text: str) -> object:
                return theirs.invoke({"messages": [HumanMessage(text)]}, config)

            if history:
                theirs.invoke({"messages": [*history, HumanMessage("And in all?")]}, config)
            return ask

        yield open_theirs


@contextmanager
def _postgres_saver(url: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open LangGraph's saver on a pool of as many connections as ours has."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg import Connection
    from psycopg.rows import DictRow, dict_row
    from psycopg_pool import ConnectionPool

    from longtable.store.postgres.store_connections import CONNECTIONS, OPTIONS

    with ConnectionPool(
        url,
        connection_class=Connection[DictRow],
        max_size=CONNECTIONS,
        timeout=120,
        kwargs={**OPTIONS, "row_factory": dict_row},
    ) as pool:
        saver = PostgresSaver(pool)
        saver.setup()
        yield saver


@dataclass(frozen=True)
class Cost:
    """ms of a turn: as a person waits, and of the processor, which a busy machine does not
    change.
    """

    wall: float
    processor: float


def run(ask: Ask, turns: int = TURNS) -> Cost:
    """Return the median cost of a few turns."""
    costs = []
    for n in range(turns):
        begun = time.perf_counter()
        processor = time.process_time()
        ask(f"How did week {n} go {FILLER[:280]}?")
        costs.append(
            Cost((time.perf_counter() - begun) * 1000, (time.process_time() - processor) * 1000)
        )
    return _median(costs)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.processor for cost in costs),
    )


def medians(asks: dict[str, Ask]) -> dict[str, Cost]:
    """Return the cost of a turn of each system, measured side by side."""
    runs = [{system: run(ask) for system, ask in asks.items()} for _ in range(RUNS)]
    return {system: _median([each[system] for each in runs]) for system in asks}


def peers(quick: bool) -> None:
    """Print ms a turn of the three systems, and ours over theirs: first as a person waits, then of
    the processor.
    """
    later = 150 if quick else 500
    columns = [_grown(50, ROOMY), _grown(later, ROOMY), _grown(later, NARROW), _imported()]
    goals = {"turn 50": 1.1, f"turn {later}": 0.5, "": 1.0, "1,000 messages imported": 0.6}
    for kind in ("wall", "processor"):
        print(
            f"| ms a turn ({kind}) | turn 50 | turn {later} | turn {later}, compacted at a limit of"
            " 32,000 | 1,000 messages imported |"
        )
        print("|---|---:|---:|---:|---:|")
        figures = [
            {system: getattr(cost, kind) for system, cost in column.items()} for column in columns
        ]
        for system in SYSTEMS:
            print(
                f"| {system} |"
                f" {' | '.join(f'{column[system]:.1f}' if system in column else '' for column in figures)} |"
            )
        for system in SYSTEMS[:2]:
            shares = [
                f"{column['longtable'] / column[system]:.2f}" if system in column else ""
                for column in figures
            ]
            print(f"| longtable over {system} | {' | '.join(shares)} |", flush=True)
        print()
    print(HEAD)
    for (when, goal), column in zip(goals.items(), columns, strict=True):
        if when:  # at the narrow limit a median has no compaction: see `narrow`
            share = column["longtable"].processor / column[AGENT].processor
            print(row(f"{when}, longtable over create_agent", share, goal), flush=True)
    print()


def imported(quick: bool) -> None:
    """Print ms a turn of the three systems after 1,000 messages at once."""
    print(_imported(), quick)


def narrow(quick: bool) -> None:
    """Print ms of turns at a limit of 32,000 with their compactions, ours over create_agent's."""
    later = 100 if quick else 300
    with ExitStack() as stack:
        asks = {
            system: stack.enter_context(graphs(system, limit=NARROW))() for system in SYSTEMS[1:]
        }
        for ask in asks.values():
            run(ask, later)
        costs = dict.fromkeys(asks, 0.0)
        for _ in range(NARROW_TURNS):
            for system, ask in asks.items():
                costs[system] += run(ask, 1).processor / NARROW_TURNS
    for system, cost in costs.items():
        print(f"{system}, turn {later} at a limit of 32,000: {cost:.1f} ms of the processor")
    print(HEAD)
    share = costs["longtable"] / costs[AGENT]
    print(row(f"turn {later} at 32,000, longtable over create_agent", share, 1.0), flush=True)


def _grown(turns: int, limit: int) -> dict[str, Cost]:
    # At a limit, a graph without compaction fails with any model.
    systems = SYSTEMS if limit == ROOMY else SYSTEMS[1:]
    with ExitStack() as stack:
        asks = {system: stack.enter_context(graphs(system, limit=limit))() for system in systems}
        for ask in asks.values():
            run(ask, turns - RUNS * TURNS // 2)
        return medians(asks)


def _imported() -> dict[str, Cost]:
    history = [
        kind(f"{n} {FILLER[:296]}", id=f"{kind.__name__}-{n}")
        for n in range(500)
        for kind in (HumanMessage, AIMessage)
    ]
    with ExitStack() as stack:
        return medians(
            {system: stack.enter_context(graphs(system))(history=history) for system in SYSTEMS}
        )


def grown(quick: bool) -> None:
    """Print ms of our own turns as a thread grows, at a limit of 32,000."""
    with graphs("longtable", limit=NARROW) as opened:
        turns = [50, 200] if quick else [50, 500, 5_000]
        costs = _print_growth("longtable, text", opened(), turns)
    print(HEAD)
    print(row(f"turn {turns[-1]:,} over turn {turns[0]}", costs[-1] / costs[0], 1.2), flush=True)


def sql(quick: bool) -> None:
    """Print the same of turns that each bring a result of 20 rows and 4 columns."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        with closing(sqlite3.connect(f"{folder}/sales.db")) as connection, connection:
            connection.execute(
                "CREATE TABLE sales (city TEXT, week INTEGER, orders INTEGER, revenue REAL)"
            )
            cells = [
                (f"City {n % 7}", n // 7, 100 + n * 37 % 900, n * 1234.56 % 9999)
                for n in range(700)
            ]
            connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", cells)
        database = stack.enter_context(Database.open(f"sqlite:///{folder}/sales.db"))
        persistence = stack.enter_context(open_persistence(f"sqlite:///{folder}/chat.db"))
        speaker = InstantModel(call="run_sql", args={"sql": ROWS}, figure="8,765,432")
        graph = build_graph(model=speaker, database=database).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        conversation = Conversation(graph, "t", context=Context(model_limit=NARROW))
        turns = [50, 200] if quick else [50, 500, 1_000]
        costs = _print_growth("longtable, 20 rows x 4 columns a turn", conversation.ask, turns)
    print(HEAD)
    for turn, cost in zip(turns, costs, strict=True):
        print(row(f"a SQL turn, turn {turn:,}, ms of the processor", cost, 30), flush=True)


def _print_growth(name: str, ask: Ask, turns: Sequence[int]) -> list[float]:
    """Print the cost of a turn as a thread grows. Return ms of the processor at these turns."""
    done = 0
    costs: list[float] = []
    for turn in turns:
        run(ask, turn - done)
        # Compactions come in every few turns only: the mean of many turns has its share of them, a
        # median has none.
        begun = time.perf_counter()
        processor = time.process_time()
        run(ask, 40)
        wall = (time.perf_counter() - begun) * 25
        costs = [
            *costs,
            (time.process_time() - processor) * 25,
        ]
        done = turn + 40
        share = f", {costs[-1] / costs[0]:.2f} of turn {turns[0]}" if len(costs) > 1 else ""
        print(
            f"{name}: turn {turn:,}: {wall:.1f} ms, {costs[-1]:.1f} of the processor{share} (means"
            " of 40)",
            flush=True,
        )
    return costs


def crowd(quick: bool) -> None:
    """Print what a turn costs of 100 conversations at once on SQLite."""
    print(HEAD)
    print(crowd_row("SQLite", 1.2, turns=3 if quick else 10), flush=True)


def crowd_row(
    store: str, goal: float, *, turns: int, create: Callable[[], str] | None = None
) -> str:
    """Measure turns of 100 conversations at once, each turn with a call of one tool. Return the row
    that compares ours with create_agent's. `create` makes a database in PostgreSQL and returns its
    URL.
    """

    @tool
    def look(place: str) -> str:
        """Look a place up."""
        return f"{place}: sunny"

    costs = {}
    for system in SYSTEMS[1:]:
        model = InstantModel(call="look", args={"place": "north"})
        url = create() if create else ""
        with (
            graphs(system, model=model, tools=[look], postgres=url) as opened,
            ThreadPoolExecutor(THREADS) as pool,
        ):
            asks = [opened(f"t{n}") for n in range(THREADS)]
            list(pool.map(lambda ask: run(ask, 1), asks))
            begun = time.perf_counter()
            cpu = time.process_time()
            list(pool.map(lambda ask: run(ask, turns), asks))
            rate = THREADS * turns / (time.perf_counter() - begun)
            costs[system] = (time.process_time() - cpu) * 1000 / THREADS / turns
            print(
                f"{THREADS} conversations at once, {store}, {system}: {rate:.0f} turns a second,"
                f" {costs[system]:.1f} ms of the processor a turn",
                flush=True,
            )
    share = costs["longtable"] / costs[AGENT]
    return row(f"{THREADS} at once on {store}, longtable over create_agent", share, goal)


PARTS = {
    "peers": peers,
    "imported": imported,
    "narrow": narrow,
    "grown": grown,
    "sql": sql,
    "crowd": crowd,
}
USUAL = ("peers", "narrow", "grown", "sql", "crowd")


def main(parts: Sequence[str] = USUAL, *, quick: bool = False) -> None:
    """Measure, print."""
    for part in parts:
        PARTS[part](quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    given = parser.parse_args()
    main(given.parts or USUAL, quick=given.quick)
