"""What `longtable eval` costs beside the turns that it asks: 100 questions to a model that answers
at once, each on a fresh thread with one query, asked plainly and by an evaluation in turn.

python -m benchmarks.evaluation [--quick]

Gold's own runs are measured alone and taken off; no changed copies are made. Threads are in SQLite
and results in files, as the command keeps them. Both take turns after each ten questions, so that
a busy machine slows both. The ratio is the median of `RUNS` runs.
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from longtable.evaluation.evaluator import Evaluation, OpenDatabase, Subject
from longtable.evaluation.gold import GoldRunner
from longtable.evaluation.journal import Journal
from longtable.evaluation.question_set import Dialogue, Turn
from longtable.graph import (
    Context,
    Conversation,
    Database,
    Persistence,
    ResultStore,
    build_graph,
    open_persistence,
)
from tests.support.models import ScriptedModel, call

RUNS = 5
QUESTIONS = 100
SLICE = 10
"""Questions that are asked before the other side takes its turn."""
ROWS = 1_000
MOST_RATIO = 1.3
SUBJECT = Subject(model="instant")


def questions() -> list[Dialogue]:
    """Return questions whose gold has 1 to 20 rows of three columns."""
    dialogues: list[Dialogue] = []
    for number in range(QUESTIONS):
        sql = f"SELECT id, city, revenue FROM sales WHERE id > {number} LIMIT {1 + number % 20}"
        turn = Turn(text=f"Which sales come after {number}?", gold=[sql])
        dialogues.append(Dialogue(id=str(number), turns=[turn]))
    return dialogues


def instant(dialogues: Sequence[Dialogue]) -> ScriptedModel:
    """Return a model that sends gold, with its columns in another order, and then answers."""
    gold = {dialogue.turns[0].text: dialogue.turns[0].gold[0] for dialogue in dialogues}

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("These are the sales.")
        sql = gold[messages[-1].text].replace("id, city, revenue", "revenue, id, city")
        return call("run_sql", sql=sql)

    return ScriptedModel(say=answer)


@dataclass
class Place:
    """One database, store and folder of results: for plain turns, or for an evaluation."""

    database: Database
    file: Path | None
    persistence: Persistence
    results: ResultStore
    model: ScriptedModel

    def __post_init__(self) -> None:
        built = build_graph(model=self.model, database=self.database, results=self.results)
        self._graph = built.compile(
            checkpointer=self.persistence.checkpointer, store=self.persistence.store
        )

    def conversation(self, subject: Subject, thread: str) -> Conversation:  # noqa: ARG002  # one subject
        context = Context(model_limit=1_000_000)
        return Conversation(self._graph, thread, context=context, results=self.results)

    def reopened(self, file: Path) -> Database:
        return Database.open(str(file))


@contextmanager
def place(folder: Path, model: ScriptedModel) -> Iterator[Place]:
    """Open a place in a folder of its own."""
    folder.mkdir()
    file = folder / "sales.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, city TEXT, revenue REAL)")
        rows = [(n, f"city {n % 50}", n * 1.1) for n in range(ROWS)]
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
    with ExitStack() as stack:
        database = stack.enter_context(Database.open(str(file)))
        store = f"sqlite:///{folder / 'threads.db'}"
        persistence = stack.enter_context(open_persistence(store))
        yield Place(database, None, persistence, ResultStore(folder / "results"), model)


def plain(at: Place, dialogues: Sequence[Dialogue], run: str) -> float:
    """Return the seconds of all turns, asked one after the other."""
    began = time.perf_counter()
    for dialogue in dialogues:
        conversation = at.conversation(SUBJECT, f"plain-{run}-{dialogue.id}")
        answer = conversation.ask(dialogue.turns[0].text)
        assert answer.queries[-1]["status"] == "success"
    return time.perf_counter() - began


def evaluated(at: Place, dialogues: Sequence[Dialogue], folder: Path, run: str) -> float:
    """Return the seconds of an evaluation of all questions."""
    named = [
        Dialogue(id=f"{run}-{each.id}", turns=each.turns, tags=each.tags) for each in dialogues
    ]

    @contextmanager
    def opened(name: str) -> Iterator[OpenDatabase]:  # noqa: ARG001  # one database
        yield at

    verdicts: list[str] = []
    began = time.perf_counter()
    with Journal(folder / f"{run}.jsonl", resume=False) as journal:
        Evaluation(
            dialogues=named,
            subjects=[SUBJECT],
            open=opened,
            journal=journal,
            clock=time.monotonic,
            on_turn=lambda result: verdicts.append(result.verdict),
        ).run()
    seconds = time.perf_counter() - began
    assert verdicts == ["right"] * len(dialogues)
    return seconds


def gold_alone(at: Place, dialogues: Sequence[Dialogue]) -> float:
    """Return the seconds of gold's own runs."""
    gold = GoldRunner(at.database)
    began = time.perf_counter()
    for dialogue in dialogues:
        gold.results(dialogue.turns[0])
    return time.perf_counter() - began


def main(arguments: list[str] | None = None) -> None:
    """Print the seconds of each pair and the median of their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pair")
    options = parser.parse_args(arguments if arguments is not None else [])
    dialogues = questions()
    ratios: list[float] = []
    print(f"{QUESTIONS} questions | turns | evaluation | gold alone | ratio")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        model = instant(dialogues)
        asked = stack.enter_context(place(folder / "plain", model))
        scored = stack.enter_context(place(folder / "eval", model))
        plain(asked, dialogues[:5], "warm")
        evaluated(scored, dialogues[:5], folder, "warm")
        for number in range(1 if options.quick else RUNS):
            turns = 0.0
            whole = 0.0
            gold = 0.0
            for start in range(0, QUESTIONS, SLICE):
                some = dialogues[start : start + SLICE]
                turns += plain(asked, some, str(number))
                whole += evaluated(scored, some, folder, f"{number}-{start}")
                gold += gold_alone(scored, some)
            ratios.append((whole - gold) / turns)
            figures = f"{turns:.2f} s | {whole:.2f} s | {gold:.2f} s | {ratios[-1]:.2f}"
            print(f"run {number + 1} | {figures}")
    print(f"median ratio {statistics.median(ratios):.2f}, at most {MOST_RATIO}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
