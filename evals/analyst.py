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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from evals.match import same_tolerant
from longtable.analyst.model import BuiltInAnalyst
from longtable.app.demo import ensure_demo
from longtable.app.settings.run_settings import cache_folder
from longtable.graph import Answer, Context, Conversation, Database, build_graph
from longtable.tools.results.result_store import ResultStore

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


def judge(
    question: Question,
    rows: Sequence[Sequence[Any]] | None,
    gold: Sequence[Sequence[Sequence[Any]]],
) -> str:
    """Return right, wrong or declined; `rows` is None where no query answered, `gold` the rows of
    each accepted query.
    """
    if not question.gold:
        return "right" if rows is None else "wrong"
    if rows is None:
        return "declined"
    return (
        "right"
        if any(same_tolerant(each, rows, ordered=question.kind == "ordered_rows") for each in gold)
        else "wrong"
    )


def ask(questions: Sequence[Question], path: Path) -> Iterator[tuple[Question, str, str]]:
    """Ask all questions of one database in order; yield each with its outcome and the SQL that
    ran.
    """
    conversations: dict[str, Conversation] = {}
    with Database.open(str(path)) as database, tempfile.TemporaryDirectory() as folder:
        results = ResultStore(Path(folder))
        app = build_graph(model=BuiltInAnalyst(), database=database, results=results).compile(
            checkpointer=InMemorySaver()
        )
        for question in questions:
            conversation = conversations.get(question.after or "") or Conversation(
                app, question.id, context=Context(model_limit=LIMIT), results=results
            )
            conversations[question.id] = conversation
            answer = conversation.ask(question.question)
            rows = answered_rows(conversation, answer)
            try:
                gold = [select(path, sql) for sql in question.gold]
            except sqlite3.Error:
                continue  # a gold query of CoSQL that does not run
            ran = [query["sql"] for query in answer.queries if "rows" in query]
            told = ran[-1] if ran else answer.text.splitlines()[0]
            yield question, judge(question, rows, gold), told


def answered_rows(conversation: Conversation, answer: Answer) -> Sequence[Sequence[Any]] | None:
    """Return the rows of the newest query, else those that a chart draws again, else None."""
    ran = [query["rows"] for query in answer.queries if "rows" in query]
    if ran:
        return ran[-1]
    if answer.charts:
        return conversation.result(answer.charts[-1]["handle"]).rows
    return None


def select(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a gold query, dates as results write them."""
    if path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path), read_only=True) as duck:
            rows = duck.execute(sql).fetchall()
        return [tuple(map(_plain, row)) for row in rows]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return connection.execute(sql).fetchall()


def _plain(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date) else cell


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
            results = [
                each
                for db in dict.fromkeys(q.db for q in asked)
                if db in files
                for each in ask([q for q in asked if q.db == db], files[db])
            ]
            counts = Counter(outcome for _, outcome, _ in results)
            print(
                f"| {name} | {len(results)} | "
                + " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
                + " |",
                flush=True,
            )
            for question, outcome, text in results if options.misses else ():
                if outcome != "right":
                    print(f"[{outcome}] {question.id}: {question.question}\n    {text}")


if __name__ == "__main__":
    main()
