"""How far one message walks through the house: the calls from one module of ours to another.

`python -m benchmarks.walk` follows the second turn of a thread, with one query, on a SQLite store
and with a worker process. `sys.setprofile` sees each call of the caller's process; a hop is a call
of a function of one module by a function of another, both ours. Generators count when they begin
and each time they go on. The figures do not depend on how busy the machine is.
"""

import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from benchmarks.turn import ROWS, InstantModel
from longtable.graph import Context, Conversation, Database, build_graph, open_persistence

ROOT = Path(__file__).parents[1]
GUESTS = {"tests", "benchmarks", "evals", "docs"}
WATCHED = {
    "turn_of": "the turn is read from the state",
    "CompactionPolicy.from_json": "the policy is read from JSON",
    "Calibration.from_json": "the calibration is read from JSON",
}
"""Functions by their qualified name, and what a call of one means."""
SHOWN = 15


class Walk:
    """The calls of one run, as a profiler sees them."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.hops: Counter[tuple[str, str]] = Counter()
        self.functions: Counter[str] = Counter()
        self.active = False
        self._known: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call."""
        if event != "call" or not self.active:
            return
        module = self._module_of(frame)
        if module is None:
            return
        self.modules.add(module)
        self.functions[frame.f_code.co_qualname] += 1
        caller = frame.f_back and self._module_of(frame.f_back)
        if caller and caller != module:
            self.hops[caller, module] += 1

    def _module_of(self, frame: FrameType) -> str | None:
        """Return the path of our module in which a frame runs, None for other people's."""
        path = frame.f_code.co_filename
        if path not in self._known:
            self._known[path] = _own_module(path)
        return self._known[path]


def _own_module(path: str) -> str | None:
    try:
        inside = Path(path).resolve().relative_to(ROOT)
    except ValueError:
        return None
    if path.startswith("<") or inside.parts[0] in GUESTS or inside.parts[0].startswith("."):
        return None
    return str(inside)


@contextmanager
def profiled(walk: Walk) -> Iterator[None]:
    """Have a walk see the calls of this thread and of those that begin meanwhile."""
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def write_sales(path: Path) -> None:
    """Write a small database of sales."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE sales (city TEXT, week INTEGER, orders INT, revenue REAL)")
        cells = [(f"City {n % 7}", n // 7, 100 + n * 37 % 900, n * 7.5) for n in range(700)]
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", cells)


def second_turn(folder: Path) -> Walk:
    """Follow the second turn of a thread: a question, a query, an answer."""
    write_sales(folder / "sales.db")
    model = InstantModel(call="run_sql", args={"sql": ROWS}, figure="8,765,432")
    walk = Walk()
    with (
        open_persistence(f"sqlite:///{folder / 'chat.db'}") as persistence,
        Database.open(f"sqlite:///{folder / 'sales.db'}") as database,
        profiled(walk),
    ):
        graph = build_graph(model=model, database=database).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        conversation = Conversation(graph, "walk", context=Context(model_limit=32_000))
        conversation.ask("What came in by week?")
        walk.active = True
        conversation.ask("And once more?")
        walk.active = False
    return walk


def main() -> None:
    """Print the figures of one turn."""
    with tempfile.TemporaryDirectory() as folder:
        walk = second_turn(Path(folder))
    print("| one turn with one query, SQLite store, worker process | |")
    print("|---|---:|")
    print(f"| modules | {len(walk.modules)} |")
    print(f"| hops from one module to another | {walk.hops.total():,} |")
    for name, meaning in WATCHED.items():
        print(f"| {meaning} (`{name}`) | {walk.functions[name]} |")
    print()
    print("The most hops:")
    for (caller, called), count in walk.hops.most_common(SHOWN):
        print(f"{count:5}  {caller} -> {called}")


if __name__ == "__main__":
    main()
