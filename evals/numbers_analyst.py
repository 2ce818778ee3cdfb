"""Try the number check on the built-in analyst's answers over real databases: every figure of them is true, as code wrote them.

`python -m evals.numbers_analyst` prints how many are flagged, and how many are caught when one digit of one figure is changed.
A changed figure that another cell of the result happens to hold cannot be caught.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from langchain_core.messages import ToolMessage

from evals.analyst import HERE, SHARED, own_questions
from evals.databases import open_database
from evals.loop import Answered, Talk
from evals.numbers import Labelled, mutated, score
from longtable.memory.numbers import Source

PLACES = {"chinook": Path("chinook/Chinook_Sqlite.sqlite"), "northwind": Path("northwind/northwind.db")}


def answers() -> Iterator[Labelled]:
    """Yield what the analyst says to its own questions, with the results it said it from."""
    for name, place in PLACES.items():
        path = SHARED / place
        if not path.exists() or not (HERE / "questions" / f"{name}.jsonl").exists():
            print(f"{name}: skipped, {place.name} is not at ../shared/data/{name}")
            continue
        with open_database(path) as tools:
            talk = Talk(tools)
            for question in own_questions(name):
                if not question.then:
                    talk = Talk(tools)
                answered = talk.ask(question.text)
                if sources := tuple(_sources(answered)):
                    yield Labelled(0, question.text, sources, answered.text, ())


def _sources(answered: Answered) -> Iterator[Source]:
    for message in answered.messages:
        if isinstance(message, ToolMessage) and message.name == "run_sql" and message.status == "success":
            told = json.loads(message.text)
            yield Source(told["columns"], told["rows"], told["row_count"], told["sql"])


def main() -> None:
    """Print the table."""
    found = list(answers())
    print("| answers | invented figures caught | true figures flagged | true answers flagged |\n|---|---|---|---|")
    print(score(found).row("the analyst's own"))
    print(score(list(mutated(found))).row("one digit changed"))


if __name__ == "__main__":
    main()
