"""Measure the built-in analyst: `python -m evals.analyst` prints a table of question sets with
right, wrong and declined.

A set is a file of JSON lines: id, db, lang, after (the id of the question that it goes on from, or
null), question, gold (accepted SQL; empty where a decline is right) and kind (value, rows,
ordered_rows or decline). `newcomers`, `strangers` and `blind` were written by people who had not
seen the code; the sets of `questions/` are those that it was tuned on. A chart is judged by the
rows that it draws.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from longtable.app.commands.eval_run import EvalRun
from longtable.app.demo import ensure_demo
from longtable.app.models import BUILT_IN
from longtable.app.settings.run_settings import Settings, cache_folder
from longtable.app.settings.settings_tables import ModelTable
from longtable.evaluation.evaluator import Subject
from longtable.evaluation.question_set import Dialogue, Turn
from longtable.evaluation.turn_results import TurnResult

HERE = Path(__file__).parent
BLIND = {
    "newcomers": HERE / "newcomers.jsonl",
    "strangers": HERE / "strangers.jsonl",
    "blind": HERE / "blind" / "analyst.jsonl",
}
"""Sets written by people who had not seen the code."""
OUTCOMES = ("right", "wrong", "declined")
LIMIT = 32_000


@dataclass(frozen=True)
class Question:
    """One question and the SQL that answers it; without SQL a decline is right."""

    id: str
    db: str
    question: str
    gold: tuple[str, ...]
    kind: str
    lang: str = "en"
    after: str | None = None


def read_questions(path: Path) -> list[Question]:
    """Read a set from its JSON lines."""
    rows = [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    return [
        Question(
            r["id"],
            r["db"],
            r["question"],
            tuple(r["gold"]),
            r["kind"],
            r.get("lang", "en"),
            r.get("after"),
        )
        for r in rows
    ]


def cosql(folder: Path) -> list[Question]:
    """Return the dialogues of CoSQL as questions; of a turn with a clarification the last part that
    asks.
    """
    questions: list[Question] = []
    file = folder / "cosql" / "dialogues.json"
    for dialogue in json.loads(file.read_text(encoding="utf-8")) if file.exists() else ():
        last = None
        for place, turn in enumerate(dialogue["turns"]):
            parts = [part.strip() for part in turn["utterance"].split(" | ")]
            utterances = (
                turn["utterance"]
                if len(parts) < 3
                else parts[-1]
                if len(parts[-1].split()) > 4
                else parts[0]
            )
            kind = (
                "ordered_rows"
                if "order by" in turn["query"].lower() and "limit 1" not in turn["query"].lower()
                else "rows"
            )
            name = f"{dialogue['id']}.{place}"
            questions.append(
                Question(name, dialogue["db_id"], utterances, (turn["query"],), kind, after=last)
            )
            last = name
    return questions


def dialogues_of(questions: Sequence[Question], files: Mapping[str, Path]) -> list[Dialogue]:
    """Return the questions as dialogues: one that goes on from another is a turn after it."""
    roots: dict[str, str] = {}
    turns: dict[str, list[Turn]] = {}
    names: dict[str, str] = {}
    for question in questions:
        root = roots.get(question.after or "", question.id)
        roots[question.id] = root
        names.setdefault(root, question.db)
        turn = Turn(
            text=question.question,
            gold=question.gold,
            expects="result" if question.gold else "refusal",
            ordered=question.kind == "ordered_rows",
            extra_columns=True,
        )
        turns.setdefault(root, []).append(turn)
    return [
        Dialogue(id=root, turns=each, database=str(files[names[root]]))
        for root, each in turns.items()
        if names[root] in files
    ]


def ask(dialogues: Sequence[Dialogue]) -> list[TurnResult]:
    """Ask the analyst as `longtable eval` does, without changed copies, and return the results that
    could be scored.
    """
    settings = {BUILT_IN: Settings(model=ModelTable(limit=LIMIT))}
    subject = Subject(model=BUILT_IN)
    with (
        tempfile.TemporaryDirectory() as folder,
        EvalRun.opened(Path(folder), settings, dialogues, [subject], resume=False) as run,
    ):
        run.ask(jobs=1, copies=0, on_turn=lambda _: None, on_wait=lambda _: None)
        return [result for result in run.results() if result.verdict != "unscored"]


def outcome_of(result: TurnResult) -> str:
    """Return right, wrong or declined."""
    if result.verdict == "right":
        return "right"
    return "declined" if result.check == "no query" else "wrong"


@contextmanager
def databases(data: Path) -> Iterator[dict[str, Path]]:
    """Yield the file of each database that is there: the demo, the schemas made here, and those of
    the folder of shared data.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {"demo": ensure_demo(cache_folder())}
        for script in sorted((HERE / "schemas").glob("*.sql")):
            files[script.stem] = Path(folder) / f"{script.stem}.db"
            with sqlite3.connect(files[script.stem]) as connection:
                connection.executescript(script.read_text(encoding="utf-8"))
            connection.close()
        shared = {
            "chinook": data / "chinook" / "Chinook_Sqlite.sqlite",
            "northwind": data / "northwind" / "northwind.db",
        }
        shared |= {path.stem: path for path in (data / "cosql" / "databases").glob("*.sqlite")}
        yield files | {name: path for name, path in shared.items() if path.exists()}


def main(arguments: list[str] | None = None) -> None:
    """Print the table; with --misses also each question that was not answered right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sets",
        nargs="*",
        help=(
            "newcomers, strangers, blind, a file of evals/questions without its ending, or cosql;"
            " all if none is named"
        ),
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=HERE.parent.parent / "shared" / "data",
        help="folder with chinook, northwind and cosql",
    )
    parser.add_argument(
        "--misses", action="store_true", help="print each wrong or declined question"
    )
    options = parser.parse_args(arguments)
    tuned = {
        path.stem: read_questions(path) for path in sorted((HERE / "questions").glob("*.jsonl"))
    }
    blind = {name: read_questions(path) for name, path in BLIND.items()}
    sets = blind | tuned | {"cosql": cosql(options.data)}
    print("| set | questions | right | wrong | declined |\n|---|---:|---:|---:|---:|")
    with databases(options.data) as files:
        for name in options.sets or [name for name, questions in sets.items() if questions]:
            asked = sets[name]
            if missing := sorted({question.db for question in asked} - set(files)):
                print(
                    f"{name}: {', '.join(missing)} not found in {options.data}: those questions are"
                    " left out",
                    file=sys.stderr,
                )
            results = ask(dialogues_of(asked, files))
            counts = Counter(map(outcome_of, results))
            cells = [str(counts[outcome]) for outcome in OUTCOMES]
            print(f"| {name} | {len(results)} | {' | '.join(cells)} |", flush=True)
            for result in results if options.misses else ():
                if result.verdict != "right":
                    told = result.sql or result.text.splitlines()[0]
                    about = f"[{outcome_of(result)}] {result.dialogue}, turn {result.turn}"
                    print(f"{about} ({result.check}): {result.question}\n    {told}")


if __name__ == "__main__":
    main()
