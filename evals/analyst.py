"""Measure the built-in analyst: `python -m evals.analyst` prints a table of data sets, right, wrong and declined."""

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evals.databases import open_database
from evals.loop import Answered, Talk
from evals.match import same_strict, same_tolerant

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data"


@dataclass(frozen=True)
class Question:
    """One question with the SQL that answers it; `then` marks a follow-up of the one before. Empty SQL: a decline is right."""

    id: str
    text: str
    sql: str
    then: bool = False
    lang: str = "en"
    kind: str = ""


@dataclass
class Score:
    """Counts of one data set."""

    name: str
    asked: int = 0
    strict: int = 0
    right: int = 0
    wrong: int = 0
    declined: int = 0
    calls: int = 0
    first_asked: int = 0
    first_right: int = 0
    misses: list[str] = field(default_factory=list)

    def add(self, question: Question, outcome: str, answered: Answered) -> None:
        """Book one outcome: strict, right, wrong or declined."""
        self.asked += 1
        self.calls += answered.calls
        self.strict += outcome == "strict"
        self.right += outcome in ("strict", "right")
        self.wrong += outcome == "wrong"
        self.declined += outcome == "declined"
        self.first_asked += not question.then
        self.first_right += not question.then and outcome in ("strict", "right")
        if outcome in ("wrong", "declined"):
            self.misses.append(
                f"[{outcome}] {question.id}: {question.text}\n    gold {question.sql}\n    "
                f"said {answered.sql or answered.text.splitlines()[0]}"
            )


def judge(question: Question, answered: Answered, gold_at: Path) -> str:
    """Return strict, right, wrong or declined."""
    if not question.sql:
        return "strict" if not answered.sql else "wrong"
    if not answered.sql:
        return "declined"
    gold, got = _rows(gold_at, question.sql), _rows(gold_at, answered.sql)
    ordered = "order by" in question.sql.lower() and "limit 1" not in question.sql.lower()
    if same_strict(gold, got, ordered=ordered):
        return "strict"
    return "right" if same_tolerant(gold, got, ordered=ordered) else "wrong"


def _rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    if path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path), read_only=True) as duck:
            return duck.execute(sql).fetchall()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        return connection.execute(sql).fetchall()


def own_questions(name: str) -> list[Question]:
    """Read evals/questions/<name>.jsonl."""
    lines = (HERE / "questions" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [
        Question(row["id"], row["question"], row["sql"], bool(row.get("then")), row.get("lang", "en"), row.get("kind", "")) for row in rows
    ]


def run(path: Path, questions: list[Question], score: Score) -> None:
    """Ask all questions of one database; a follow-up goes on in the same conversation."""
    with open_database(path) as tools:
        talk = Talk(tools)
        for question in questions:
            if not question.then:
                talk = Talk(tools)
            answered = talk.ask(question.text)
            score.add(question, judge(question, answered, path), answered)


def cosql(database: str) -> list[Question]:
    """Return the dialogues of one CoSQL database as questions; clarifications inside a turn keep the last part that asks."""
    questions: list[Question] = []
    for dialogue in json.loads((SHARED / "cosql" / "dialogues.json").read_text(encoding="utf-8")):
        if dialogue["db_id"] != database:
            continue
        for place, turn in enumerate(dialogue["turns"]):
            questions.append(Question(f"{dialogue['id']}.{place}", spoken(turn["utterance"]), turn["query"], then=place > 0))
    return questions


def spoken(utterance: str) -> str:
    """Return what the user asked in a turn that holds a clarification: 'question | clarifying | answer'."""
    parts = [part.strip() for part in utterance.split(" | ")]
    if len(parts) < 3:
        return utterance
    return parts[-1] if len(parts[-1].split()) > 4 else parts[0]


def runnable(path: Path, question: Question) -> bool:
    """Say whether the gold SQL runs at all."""
    try:
        _rows(path, question.sql)
    except sqlite3.Error:
        return False
    return True


def datasets(wanted: set[str]) -> Iterator[Score]:
    """Run each data set that is there and was asked for."""
    for name, path in (("chinook", SHARED / "chinook" / "Chinook_Sqlite.sqlite"), ("northwind", SHARED / "northwind" / "northwind.db")):
        if (wanted and name not in wanted) or not (HERE / "questions" / f"{name}.jsonl").exists():
            continue
        if not path.exists():
            print(f"{name}: skipped, {path.name} is not at ../shared/data/{name}", file=sys.stderr)
            continue
        score = Score(name)
        run(path, own_questions(name), score)
        yield score
    yield from unseen(wanted)
    if not wanted or "cosql" in wanted:
        yield from _cosql_scores()


def unseen(wanted: set[str]) -> Iterator[Score]:
    """Run the schemas made for this measurement."""
    for script in sorted((HERE / "schemas").glob("*.sql")):
        name = script.stem
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.db"
            with sqlite3.connect(path) as connection:
                connection.executescript(script.read_text(encoding="utf-8"))
            connection.close()
            score = Score(name)
            run(path, own_questions(name), score)
            yield score


def _cosql_scores() -> Iterator[Score]:
    folder = SHARED / "cosql" / "databases"
    if not folder.exists():
        print("cosql: skipped, it is not at ../shared/data/cosql", file=sys.stderr)
        return
    score = Score("cosql")
    for path in sorted(folder.glob("*.sqlite")):
        run(path, [question for question in cosql(path.stem) if runnable(path, question)], score)
    yield score


def main(arguments: list[str] | None = None) -> None:
    """Print the table; with --misses also each miss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", help="chinook, northwind, cosql or a schema of evals/schemas; all if none is named")
    parser.add_argument("--misses", action="store_true", help="print each wrong or declined question")
    options = parser.parse_args(arguments)
    print("| data set | questions | right | strictly | wrong | declined | right % | first turns % | model calls |")
    print("|---|---|---|---|---|---|---|---|---|")
    for score in datasets(set(options.datasets)):
        first = 100 * score.first_right / max(1, score.first_asked)
        print(
            f"| {score.name} | {score.asked} | {score.right} | {score.strict} | {score.wrong} | {score.declined} "
            f"| {100 * score.right / max(1, score.asked):.0f} "
            f"| {first:.0f} ({score.first_right}/{score.first_asked}) | {score.calls / max(1, score.asked):.1f} |"
        )
        if options.misses:
            print("\n".join(score.misses))


if __name__ == "__main__":
    main()
