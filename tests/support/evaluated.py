"""A shop with questions whose gold is known, and models that are right as often as a test wants."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.evaluation.evaluator import Evaluation, OpenDatabase, Subject
from longtable.evaluation.journal import Journal
from longtable.evaluation.question_set import Dialogue, Turn
from longtable.graph import Context, Conversation, Database, ResultStore, build_graph
from tests.support.model_server import ChatRequest, Reply, say
from tests.support.model_server import call as call_reply
from tests.support.models import ScriptedModel, call

GOLD = {
    "How many orders are there?": "SELECT count(*) FROM orders",
    "How many customers are there?": "SELECT count(*) FROM customers",
    "What was the total amount?": "SELECT sum(amount) FROM orders",
    "Who is from city 1?": "SELECT name FROM customers WHERE city = 'city 1'",
    "What did each customer buy?": (
        "SELECT c.name, sum(o.amount) FROM orders o JOIN customers c ON c.id = o.customer_id"
        " GROUP BY c.name"
    ),
    "Which three orders were the largest?": "SELECT id FROM orders ORDER BY amount DESC LIMIT 3",
}
"""Questions with the SQL that answers them. No two have the same rows."""
QUESTIONS = tuple(GOLD)


def make_shop(path: Path) -> Path:
    """Make a SQLite file with 7 customers and 23 orders."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount REAL,"
            " customer_id INTEGER REFERENCES customers (id));"
        )
        customers = [(n, f"name {n}", f"city {n % 3}") for n in range(7)]
        orders = [(n, n * 1.5, n % 7) for n in range(23)]
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?)", customers)
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", orders)
    return path


def single(question: str, *gold: str, **settings: object) -> Dialogue:
    """Return a dialogue of one turn; without `gold`, with that of `GOLD`."""
    turn = Turn(text=question, gold=gold or [GOLD[question]], **settings)  # type: ignore[arg-type]  # by name
    return Dialogue(id=question, turns=[turn])


SINGLES = tuple(single(question) for question in QUESTIONS)

SqlFor = Callable[[str], str]
"""Returns the SQL that a model sends for a question, "" for an answer without SQL."""


def right(question: str) -> str:
    """Return the gold."""
    return GOLD[question]


def beside(question: str) -> str:
    """Return the gold of another question."""
    place = QUESTIONS.index(question)
    return GOLD[QUESTIONS[(place + 1) % len(QUESTIONS)]]


def half(question: str) -> str:
    """Return the gold of every second question, and another question's for the others."""
    return right(question) if QUESTIONS.index(question) % 2 else beside(question)


def model_of(sql_for: SqlFor) -> ScriptedModel:
    """Return a model that sends SQL through run_sql, and answers after its result."""

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("done")
        sql = sql_for(messages[-1].text)
        return call("run_sql", sql=sql) if sql else AIMessage("I cannot do that.")

    return ScriptedModel(say=answer)


def served_by(sql_for: SqlFor) -> Callable[[ChatRequest], Reply]:
    """Return the same model as a step of the model server."""

    def answer(request: ChatRequest) -> Reply:
        last = request.messages[-1]
        if last["role"] == "tool":
            return say("done")
        sql = sql_for(str(last["content"]))
        return call_reply("run_sql", sql=sql) if sql else say("I cannot do that.")

    return answer


@dataclass
class Shop:
    """An open shop: what `Evaluation` asks of the application."""

    file: Path
    folder: Path
    model: BaseChatModel
    database: Database = field(init=False)
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = Database.open(str(self.file))
        results = ResultStore(self.folder / "results")
        built = build_graph(model=self.model, database=self.database, results=results)
        self.graph = built.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
        self._results = results

    def conversation(self, subject: Subject, thread: str) -> Conversation:
        context = Context(model_limit=100_000, max_retries=0)
        return Conversation(self.graph, thread, context=context, results=self._results)

    def reopened(self, file: Path) -> Database:
        return Database.open(str(file))

    @contextmanager
    def open(self, name: str) -> Iterator[OpenDatabase]:
        yield self

    def evaluation(
        self, journal: Journal, dialogues: Sequence[Dialogue] = SINGLES, **settings: object
    ) -> Evaluation:
        """Return a run over the shop, in which waiting takes no time."""
        return Evaluation(
            dialogues=dialogues,
            subjects=[SUBJECT],
            open=self.open,
            journal=journal,
            wait=lambda _, seconds: self.waits.append(seconds),
            clock=iter(range(1_000_000)).__next__,
            **settings,  # type: ignore[arg-type]  # by name
        )


SUBJECT = Subject(model="scripted")
