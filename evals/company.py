"""Measure what a glossary is worth: `python -m evals.company` asks questions in a company's own
words, first without and then with a knowledge folder that explains them.

Both sets in `blind/knowledge/` were written by people who had not seen the code. The first was
read before the analyst could use terms; the second was not.

Asked are the built-in analyst, and a scripted model that knows the SQL of a question but sends it
only if each term of the question stands in the call with its SQL. So the script measures what is
found and handed over, the analyst also what it makes of it.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from evals.analyst import HERE, LIMIT, databases
from longtable.analyst.model import BuiltInAnalyst
from longtable.base.words import fold
from longtable.evaluation.gold import GoldRunner
from longtable.evaluation.matching import Rows, difference
from longtable.graph import Context, Conversation, Database, KnowledgeFolder, build_graph
from longtable.knowledge.entries import Term
from longtable.knowledge.glossary import read_glossary
from longtable.tools.results.result_store import ResultStore

SETS = HERE / "blind" / "knowledge"
DATA = HERE.parent.parent / "shared" / "data"
OUTCOMES = ("right", "wrong", "declined")


@dataclass(frozen=True)
class CompanyQuestion:
    """A question in a company's own words, and the SQL that answers it."""

    id: str
    db: str
    question: str
    gold_sql: str


def read_set(ending: str) -> list[CompanyQuestion]:
    """Return the questions of a set. `ending`: "" for the first, "_2" for the second."""
    lines = (SETS / f"company_questions{ending}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [CompanyQuestion(r["id"], r["db"], r["question"], r["gold_sql"]) for r in rows]


def glossary_of(db: str, ending: str) -> list[Term]:
    """Return the terms of a database's glossary."""
    return read_glossary((SETS / f"{db}_glossary{ending}.toml").read_text(encoding="utf-8"))[0]


def terms_of(question: str, terms: Sequence[Term]) -> list[Term]:
    """Return the terms that a question names. A term inside a longer one is not named."""
    folded = fold(question)
    named: list[tuple[str, Term]] = []
    for term in terms:
        spelled = [fold(name) for name in (term.term, *term.synonyms) if fold(name) in folded]
        if spelled:
            named.append((max(spelled, key=len), term))
    return [
        term
        for name, term in named
        if not any(name != longer and name in longer for longer, _ in named)
    ]


class ScriptedModel(BaseChatModel):
    """Sends the SQL of a question if each of its terms stands in the call, else declines."""

    golds: dict[str, str]
    terms: list[Term]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        """Bind nothing: it knows one tool."""
        del tools
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _next(self, messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("Here it is.")
        sent = "\n".join(str(message.text) for message in messages)
        asked = [str(each.text) for each in messages if isinstance(each, HumanMessage)][-1]
        named = terms_of(asked, self.terms)
        if not named or not all(f"SQL: {term.sql}" in sent for term in named):
            return AIMessage("A word of this question is not known.")
        call = {"name": "run_sql", "args": {"sql": self.golds[asked]}, "id": "call_1"}
        return AIMessage("", tool_calls=[call])


def outcomes(
    questions: Sequence[CompanyQuestion], path: Path, model: BaseChatModel, folder: Path | None
) -> Iterator[tuple[CompanyQuestion, str, str]]:
    """Ask each question in a thread of its own; yield it with its outcome and the SQL that ran."""
    with Database.open(str(path)) as database, tempfile.TemporaryDirectory() as scratch:
        results = ResultStore(Path(scratch))
        hooks = [KnowledgeFolder(folder)] if folder is not None else []
        graph = build_graph(model=model, database=database, results=results, hooks=hooks)
        app = graph.compile(checkpointer=InMemorySaver())
        runner = GoldRunner(database)
        for question in questions:
            context = Context(model_limit=LIMIT)
            conversation = Conversation(app, question.id, context=context, results=results)
            answer = conversation.ask(question.question)
            ran = [query for query in answer.queries if "rows" in query]
            told = ran[-1]["sql"] if ran else answer.text.splitlines()[0]
            gold = runner.result(question.gold_sql).rows
            yield question, _judged(ran[-1]["rows"] if ran else None, gold), told


def _judged(rows: Rows | None, gold: Rows) -> str:
    """Return the outcome. The order of rows is not judged: the sets do not say where it counts."""
    if rows is None:
        return "declined"
    return "wrong" if difference(gold, rows, extra_columns=True) else "right"


def counts_of(
    asked: Sequence[CompanyQuestion],
    files: dict[str, Path],
    ending: str,
    *,
    model: str,
    known: bool,
) -> tuple[Counter[str], list[str]]:
    """Return how many questions were right, wrong and declined, and a line for each other one."""
    counts: Counter[str] = Counter()
    misses: list[str] = []
    for db in ("chinook", "northwind"):
        questions = [each for each in asked if each.db == db]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            shutil.copy(SETS / f"{db}_glossary{ending}.toml", folder / "glossary.toml")
            golds = {each.question: each.gold_sql for each in questions}
            answering = (
                BuiltInAnalyst()
                if model == "analyst"
                else ScriptedModel(golds=golds, terms=glossary_of(db, ending))
            )
            for question, outcome, told in outcomes(
                questions, files[db], answering, folder if known else None
            ):
                counts[outcome] += 1
                if outcome != "right":
                    misses.append(f"[{outcome}] {question.id}: {question.question}\n    {told}")
    return counts, misses


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--misses", action="store_true", help="those of the first set, by the analyst"
    )
    options = parser.parse_args(arguments)
    print("| set | asked | knowledge | right | wrong | declined |\n|---|---|---|---:|---:|---:|")
    with databases(options.data) as files:
        for ending in ("", "_2"):
            asked = read_set(ending)
            for model in ("analyst", "scripted model"):
                for known in (False, True):
                    counts, misses = counts_of(asked, files, ending, model=model, known=known)
                    cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
                    name = f"company questions{ending}"
                    print(
                        f"| {name} | {model} | {'with' if known else 'without'} | {cells} |",
                        flush=True,
                    )
                    if options.misses and known and not ending and model == "analyst":
                        print("\n".join(misses))


if __name__ == "__main__":
    main()
