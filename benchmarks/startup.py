"""Start-up: `longtable --help`, and what the first answer costs beside the model and the query.
`python -m benchmarks.startup`.

Each line is the median of several processes; the ratio to a bare `python -c pass` holds on other
machines, too.
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

RUNS = 5
HELP_SECONDS = 0.5
FIRST_ANSWER_SECONDS = 2.0

# What the first answer stands on, in the order it is needed; each step is timed inside one process.
STEPS = """
import sys, time
start = time.perf_counter()
def step(name):
    global start
    now = time.perf_counter()
    print(f"{name}\\t{now - start:.4f}")
    start = now
import langgraph.graph, langchain_core.language_models
step("import langgraph and langchain-core")
import sqlglot, duckdb
step("import sqlglot and duckdb")
from longtable.analyst.model import BuiltInAnalyst
model = BuiltInAnalyst()
step("import the built-in analyst")
from longtable.graph import Conversation, Database, build_graph, open_persistence
step("import longtable")
database = Database.open(sys.argv[1])
step("open the database")
with open_persistence("memory://") as kept:
    graph = build_graph(model=model, database=database).compile(checkpointer=kept.checkpointer, store=kept.store)
    step("build and compile the graph")
    talk = Conversation(graph, "t")
    talk.ask("How many orders are there?")
    step("first turn (loads the token ranks)")
    talk.ask("How many orders are there?")
    step("second turn")
"""


@dataclass(frozen=True)
class Startup:
    """Medians in seconds."""

    bare: float
    help: float
    ask: float
    steps: dict[str, float]


def measure(runs: int = RUNS) -> Startup:
    """Measure each start in processes of its own, in a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        url = _shop(Path(folder))
        env = {
            **os.environ,
            "XDG_DATA_HOME": folder,
            "XDG_CACHE_HOME": folder,
            "LONGTABLE_DATABASE": url,
        }
        program = str(Path(sys.executable).parent / "longtable")
        rounds = [_steps(url, env) for _ in range(runs)]
        return Startup(
            bare=_median([sys.executable, "-c", "pass"], env, runs),
            help=_median([program, "--help"], env, runs),
            ask=_median([program, "ask", "How many orders are there?"], env, runs),
            steps={name: statistics.median(each[name] for each in rounds) for name in rounds[0]},
        )


def _shop(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n / 2) for n in range(100)])
    return f"sqlite:///{folder / 'shop.db'}"


def _median(command: list[str], env: dict[str, str], runs: int) -> float:
    # The first run compiles and fills caches.
    subprocess.run(command, env=env, check=True, capture_output=True)
    return statistics.median(_seconds(command, env) for _ in range(runs))


def _seconds(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return time.perf_counter() - start


def _steps(url: str, env: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", STEPS, url],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    return {
        name: float(seconds)
        for name, _, seconds in (line.partition("\t") for line in done.stdout.splitlines())
    }


def main() -> None:
    """Print the table."""
    startup = measure()
    print("| start-up | seconds | times `python -c pass` | aim |")
    print("|---|---:|---:|---:|")
    print(f"| `python -c pass` | {startup.bare:.3f} | 1 | |")
    print(
        f"| `longtable --help` | {startup.help:.3f} | {startup.help / startup.bare:.0f} | under"
        f" {HELP_SECONDS} s |"
    )
    label = "`longtable ask`, built-in analyst, small SQLite file"
    print(
        f"| {label} | {startup.ask:.3f} | {startup.ask / startup.bare:.0f} | under"
        f" {FIRST_ANSWER_SECONDS:g} s |"
    )
    for name, seconds in startup.steps.items():
        print(f"| of this: {name} | {seconds:.3f} | | |")


if __name__ == "__main__":
    main()
