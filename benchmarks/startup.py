"""The price of a start, beside LangGraph's: processor seconds of whole programs with the workers
they start, and memory after a plain turn. `python -m benchmarks.startup`.

The programs run by turns, and each figure is a median. The demo's database is built before.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 7
PROGRAMS = Path(sys.executable).parent

CREATE_AGENT = """
import sys
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver

model = GenericFakeChatModel(messages=iter([AIMessage("Hello"), AIMessage("Hello")]))
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    agent = create_agent(model, [], checkpointer=saver)
    agent.invoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "t"}})
"""
OURS = """
import sys
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from longtable.graph import Context, Conversation, build_graph, open_persistence

model = GenericFakeChatModel(messages=iter([AIMessage("Hello"), AIMessage("Hello")]))
context = Context(model_limit=8_000)
with open_persistence(f"sqlite:///{sys.argv[1]}") as kept:
    graph = build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store)
    Conversation(graph, "t", context=context).ask("Hi")
"""
MEMORY = """
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")))
"""


@dataclass(frozen=True)
class Program:
    """A program to start. `goal`: processor seconds, None if there is none."""

    name: str
    command: list[str]
    goal: float | None = None


def programs(folder: Path) -> list[Program]:
    """Return the programs that are compared."""
    ours = str(PROGRAMS / "longtable")
    python = [sys.executable, "-W", "ignore"]
    return [
        Program("`python -c pass`", [*python, "-c", "pass"]),
        Program("`langgraph --help`", [str(PROGRAMS / "langgraph"), "--help"]),
        Program("`longtable --help`", [ours, "--help"], 0.3),
        Program("`longtable threads list`, 20 threads", [ours, "threads", "list"], 0.8),
        Program("`longtable chat` to its prompt", [ours, "chat"], 1.5),
        Program("create_agent, one turn", [*python, "-c", CREATE_AGENT, str(folder / "a.db")]),
        Program("build_graph, one turn", [*python, "-c", OURS, str(folder / "b.db")]),
    ]


def processor_seconds(command: list[str], env: dict[str, str]) -> float:
    """Return the processor seconds of a program and of the processes that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def memory_after(script: str, file: Path, env: dict[str, str]) -> float:
    """Return the resident memory of a process after a script, in MiB."""
    command = [sys.executable, "-W", "ignore", "-c", script + MEMORY, str(file)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return float(done.stdout)


def prepare(env: dict[str, str]) -> None:
    """Build the demo's database, and begin 20 threads."""
    ask = [str(PROGRAMS / "longtable"), "ask", "How many flights are there?"]
    for _ in range(20):
        subprocess.run(ask, env=env, check=True, capture_output=True)


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {**os.environ, "XDG_DATA_HOME": name, "XDG_CACHE_HOME": name}
        prepare(env)
        compared = programs(folder)
        seconds: dict[str, list[float]] = {program.name: [] for program in compared}
        for _ in range(ROUNDS):
            for program in compared:
                seconds[program.name].append(processor_seconds(program.command, env))
        print("| start | processor seconds | goal | |\n|---|---:|---:|---|")
        for program in compared:
            median = statistics.median(seconds[program.name])
            goal = "" if program.goal is None else f"{program.goal:g}"
            met = "" if program.goal is None else "met" if median <= program.goal else "missed"
            print(f"| {program.name} | {median:.2f} | {goal} | {met} |")
        theirs = memory_after(CREATE_AGENT, folder / "c.db", env)
        ours = memory_after(OURS, folder / "d.db", env)
        print("\n| memory after a plain turn | MiB | goal | |\n|---|---:|---:|---|")
        print(f"| create_agent | {theirs:.0f} | | |")
        print(f"| build_graph | {ours:.0f} | 130 | {'met' if ours <= 130 else 'missed'} |")


if __name__ == "__main__":
    main()
