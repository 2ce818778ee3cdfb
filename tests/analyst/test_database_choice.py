"""The built-in analyst over several databases: it answers from the one that has the table, and asks
back if several have it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.graph import Conversation, ResultStore, build_graph
from longtable.knowledge.folder import KnowledgeFolder
from longtable.tools.database import Database
from longtable.tools.several.late import open_or_defer

SHOP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, month INTEGER, total REAL);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5);
INSERT INTO customers VALUES (1, 'Ada');
"""
WEB = """
CREATE TABLE visits (id INTEGER PRIMARY KEY, day TEXT, pages INTEGER);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO visits VALUES (1, '2026-01-01', 7), (2, '2026-01-02', 9);
INSERT INTO customers VALUES (1, 'ada@web'), (2, 'bo@web');
"""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    for name, script in (("shop", SHOP), ("web", WEB)):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            connection.executescript(script)
    return {name: f"sqlite:///{tmp_path}/{name}.db" for name in ("shop", "web")}


@pytest.fixture
def databases(places: dict[str, str]) -> Iterator[dict[str, Database]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(Database.open(url)) for name, url in places.items()}


def talk(databases: dict[str, Database], folder: Path, **more: object) -> Conversation:
    graph = build_graph(
        model=BuiltInAnalyst(),
        database=databases,
        results=ResultStore(folder / "results", isolation="none"),
        **more,  # type: ignore[arg-type]  # hooks
    ).compile(checkpointer=InMemorySaver())
    return Conversation(graph, "t")


def asked_in(conversation: Conversation, question: str) -> tuple[str, list[str]]:
    answer = conversation.ask(question)
    return answer.text, [query.get("database", "") for query in answer.queries]


def test_the_database_that_has_the_table_answers(
    databases: dict[str, Database], tmp_path: Path
) -> None:
    conversation = talk(databases, tmp_path)
    text, asked = asked_in(conversation, "How many orders are there?")
    assert "3 orders" in text
    assert "From the database shop." in text
    assert asked == ["shop"]
    text, asked = asked_in(conversation, "What is the average pages of the visits?")
    assert "8" in text
    assert asked == ["web"]


def test_a_follow_up_asks_the_database_of_the_question_before(
    databases: dict[str, Database], tmp_path: Path
) -> None:
    conversation = talk(databases, tmp_path)
    assert asked_in(conversation, "How many orders are there in month 1?")[1] == ["shop"]
    text, asked = asked_in(conversation, "and in month 2?")
    assert asked == ["shop"], text
    assert "1 order" in text


@pytest.mark.parametrize("answer", ["web", "in the web database", "Web!"])
def test_if_several_have_it_the_person_is_asked_which(
    databases: dict[str, Database], tmp_path: Path, answer: str
) -> None:
    conversation = talk(databases, tmp_path)
    text, asked = asked_in(conversation, "How many customers are there?")
    assert "More than one database has this: shop, web. Which one do you mean?" in text
    assert asked == []
    text, asked = asked_in(conversation, answer)
    assert "2 customers" in text
    assert asked == ["web"]


@pytest.mark.parametrize(
    ("question", "database", "count"),
    [
        ("How many customers are there in web?", "web", "2"),
        ("shop: how many customers are there?", "shop", "1"),
        ("How many customers are there in the database shop?", "shop", "1"),
        ("web数据库里有多少 customers？", "web", "2"),
    ],
)
def test_a_question_may_name_the_database(
    databases: dict[str, Database], tmp_path: Path, question: str, database: str, count: str
) -> None:
    text, asked = asked_in(talk(databases, tmp_path), question)
    assert asked == [database], text
    assert count in text


def test_what_none_has_is_declined_and_small_talk_asks_none(
    databases: dict[str, Database], tmp_path: Path
) -> None:
    conversation = talk(databases, tmp_path)
    text, asked = asked_in(conversation, "How many submarines are there?")
    assert "submarines" in text
    assert asked == []
    assert "Hello" in asked_in(conversation, "hello")[0]
    tables = asked_in(conversation, "what tables are there?")[0]
    assert "shop: " in tables
    assert "visits" in tables


def test_a_database_that_is_down_is_named_and_the_other_one_answers(
    places: dict[str, str], tmp_path: Path
) -> None:
    with (
        Database.open(places["web"]) as web,
        open_or_defer(f"sqlite:///{tmp_path}/gone.db") as gone,
    ):
        conversation = talk({"gone": gone, "web": web}, tmp_path)
        assert asked_in(conversation, "How many visits are there?")[1] == ["web"]
        text, _ = asked_in(conversation, "How many submarines are there?")
        assert "submarines" in text
        fresh = talk({"gone": gone, "web": web}, tmp_path)
        text, _ = asked_in(fresh, "How many submarines are there?")
        assert "The database gone cannot be reached now" in text


def test_a_checked_query_and_a_term_are_asked_where_they_belong(
    databases: dict[str, Database], tmp_path: Path
) -> None:
    folder = tmp_path / "knowledge"
    (folder / "queries").mkdir(parents=True)
    sql = "SELECT count(*) AS n FROM customers WHERE name LIKE '%web'"
    head = "-- question: How many web accounts?\n-- checked by: Ann\n-- database: web\n"
    (folder / "queries/accounts.sql").write_text(f"{head}{sql}\n")
    (folder / "glossary.toml").write_text(
        '[[term]]\nterm = "long visit"\nsynonyms = ["deep visit"]\nsql = "visits.pages > 8"\n'
        'database = "web"\n\n[[term]]\nterm = "big order"\nsql = "orders.total > 15"\n'
    )
    conversation = talk(databases, tmp_path, hooks=[KnowledgeFolder(folder)])
    answer = conversation.ask("How many web accounts?")
    [query] = answer.queries
    assert (query["database"], query["rows"]) == ("web", [[2]])
    assert query["verified"]["checked_by"] == "Ann"
    text, asked = asked_in(conversation, "How many long visits are there?")
    assert asked == ["web"], text
    text, asked = asked_in(conversation, "How many big orders are there?")
    assert asked == ["shop"], text
    assert "1" in text


def test_a_thread_that_began_with_one_database_goes_on(
    databases: dict[str, Database], tmp_path: Path
) -> None:
    saver = InMemorySaver()
    results = ResultStore(tmp_path / "results", isolation="none")
    for database, question in (
        (databases["shop"], "How many orders are there in month 1?"),
        (databases, "and in month 2?"),
        (databases, "How many visits are there?"),
    ):
        graph = build_graph(model=BuiltInAnalyst(), database=database, results=results)
        conversation = Conversation(graph.compile(checkpointer=saver), "t")
        answer = conversation.ask(question)
        assert [query["status"] for query in answer.queries] == ["success"], answer.text
    assert answer.queries[0]["database"] == "web"
