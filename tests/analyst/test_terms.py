"""The built-in analyst uses the terms of a company's glossary like names of the schema."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.analyst.schema import Catalog, Column, Table
from longtable.analyst.terms import GlossaryTerm, terms_in, with_terms
from longtable.graph import Context, Conversation, Database, KnowledgeFolder, build_graph
from longtable.knowledge.entries import Term
from longtable.knowledge.material import Found, material_text

SCHEMA = """
CREATE TABLE customer (customer_id INTEGER PRIMARY KEY, name TEXT, country TEXT, company TEXT);
CREATE TABLE product (product_id INTEGER PRIMARY KEY, name TEXT, price REAL);
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(customer_id),
  order_date DATE, shipped_date DATE);
CREATE TABLE order_line (line_id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders(order_id),
  product_id INTEGER REFERENCES product(product_id), price REAL, quantity INTEGER);
INSERT INTO customer VALUES (1, 'Ann', 'Chile', 'Acme'), (2, 'Bob', 'Chile', NULL), (3, 'Cyd', 'Peru', 'Orbit');
INSERT INTO product VALUES (1, 'Lamp', 80), (2, 'Pen', 2);
INSERT INTO orders VALUES (1, 1, '2024-02-01', '2024-02-03'), (2, 1, '2024-03-01', NULL),
  (3, 2, '2023-05-05', '2023-05-06'), (4, 3, '2024-06-01', NULL);
INSERT INTO order_line VALUES (1, 1, 1, 80, 1), (2, 1, 2, 2, 10), (3, 2, 2, 2, 5), (4, 3, 1, 80, 2), (5, 4, 2, 2, 1);
"""
GLOSSARY = """
[[term]]
term = "house account"
synonyms = ["house accounts", "公司户"]
meaning = "A customer who buys for a company."
sql = "customer.company IS NOT NULL"

[[term]]
term = "on the dock"
synonyms = ["dock orders"]
meaning = "Not shipped yet."
sql = "orders.shipped_date IS NULL"

[[term]]
term = "net take"
synonyms = ["实收"]
meaning = "Nine tenths of price times quantity."
sql = "SUM(order_line.price * order_line.quantity) * 0.9"

[[term]]
term = "line worth"
meaning = "Price times quantity of one line."
sql = "order_line.price * order_line.quantity"

[[term]]
term = "top drawer"
synonyms = ["top drawer goods"]
meaning = "A product of 50 or more."
sql = "product.price >= 50"

[[term]]
term = "voucher"
synonyms = ["vouchers"]
meaning = "What we call an order."
sql = "orders.order_id"

[[term]]
term = "buyer"
synonyms = ["buyers"]
meaning = "The customer of an order."
sql = "customer.customer_id = orders.customer_id"

[[term]]
term = "faraway thing"
meaning = "SQL over two tables, which is not used."
sql = "customer.country = product.name"
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("terms")
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.executescript(SCHEMA)
    (folder / "knowledge").mkdir()
    (folder / "knowledge" / "glossary.toml").write_text(GLOSSARY, encoding="utf-8")
    with Database.open(str(folder / "shop.db"), isolation="none") as database:
        hooks = [KnowledgeFolder(folder / "knowledge")]
        graph = build_graph(model=BuiltInAnalyst(), database=database, hooks=hooks)
        yield graph.compile(checkpointer=InMemorySaver())


def asked(shop: Any, *questions: str) -> tuple[Sequence[Sequence[Any]] | None, str]:
    """Return the rows of the last question's answer, None if it was declined, and its text."""
    conversation = Conversation(shop, questions[0], context=Context(model_limit=32_000))
    *earlier, last = questions
    for question in earlier:
        conversation.ask(question)
    answer = conversation.ask(last)
    rows = [query["rows"] for query in answer.queries if "rows" in query]
    return (rows[-1] if rows else None), answer.text


@pytest.mark.parametrize(
    ("questions", "rows"),
    [
        (["How many house accounts do we have?"], [[2]]),
        (["How many house accounts are in Chile?"], [[1]]),
        (["How many orders are on the dock?"], [[2]]),
        (["How many dock orders were there in 2024?"], [[2]]),
        (["What is the total net take?"], [[0.9 * 272]]),
        (["What is the average line worth?"], [[272 / 5]]),
        (["公司户有多少个？"], [[2]]),
        (["总实收是多少？"], [[0.9 * 272]]),
        (["How many house accounts do we have?", "and in Peru?"], [[1]]),
        (["How many top drawer goods are there?"], [[1]]),
    ],
)
def test_a_term_is_used_as_the_glossary_says(
    shop: Any, questions: list[str], rows: list[list[Any]]
) -> None:
    found, text = asked(shop, *questions)
    assert found is not None, text
    assert [[pytest.approx(cell) for cell in row] for row in rows] == [list(row) for row in found]


def test_a_measure_is_grouped_and_sorted(shop: Any) -> None:
    found, text = asked(shop, "What is the net take per product, highest first?")
    assert found is not None, text
    assert [row[-2:] for row in map(list, found)] == [
        ["Lamp", pytest.approx(216)],
        ["Pen", pytest.approx(28.8)],
    ]


def test_rows_that_a_term_names_are_listed_without_a_column_for_the_condition(shop: Any) -> None:
    found, text = asked(shop, "List the house accounts")
    assert found is not None, text
    assert sorted(row[0] for row in found) == ["Ann", "Cyd"]
    assert 1 not in found[0]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which customers have no dock orders?", ["Bob"]),
        ("Which house accounts are not from Chile?", ["Cyd"]),
        ("Which orders are not on the dock?", [1, 3]),
        ("orders without top drawer goods", [2, 4]),
    ],
)
def test_a_term_is_negated_as_a_whole(shop: Any, question: str, names: list[Any]) -> None:
    found, text = asked(shop, question)
    assert found is not None, text
    assert [next(cell for cell in row if cell in names) for row in found] == names


def test_a_share_of_rows_that_a_term_names(shop: Any) -> None:
    assert asked(shop, "What share of the orders are on the dock?")[0] == [[50.0]]


def test_the_average_of_a_total_is_declined(shop: Any) -> None:
    found, text = asked(shop, "average net take per product")
    assert found is None
    assert "average" in text


@pytest.mark.parametrize(
    "question",
    ["How many faraway things are there?", "How many whatnots are house accounts?"],
)
def test_a_word_that_no_term_explains_is_declined(shop: Any, question: str) -> None:
    found, text = asked(shop, question)
    assert found is None, text


def test_the_lines_of_the_material_are_read_back() -> None:
    terms = [
        Term(
            term="net take",
            synonyms=["net", "实收"],
            meaning="After tax: all of it.",
            sql="SUM(a.b) * 0.9",
        ),
        Term(term="dock", sql="a.c IS NULL"),
        Term(term="mood", meaning="No SQL here."),
    ]
    assert terms_in(material_text(Found(terms))) == (
        GlossaryTerm(("net take", "net", "实收"), "SUM(a.b) * 0.9"),
        GlossaryTerm(("dock",), "a.c IS NULL"),
    )


@pytest.mark.parametrize(
    ("sql", "kind", "column", "func"),
    [
        ("a.n", "column", "n", ""),
        ("n", "column", "n", ""),
        ("a.n * 2", "column", "(a.n * 2)", ""),
        ("SUM(a.n)", "measure", "n", "sum"),
        ("0.5 * SUM(n)", "measure", "((n) * 0.5)", "sum"),
        ("AVG(a.n * 2) / 4.0", "measure", "(CAST((a.n * 2) AS REAL) / 4.0)", "avg"),
        ("a.n > 2 AND a.t IS NULL", "condition", "(a.n > 2 AND a.t IS NULL)", ""),
        ("a.id IN (SELECT b.a_id FROM b)", "condition", "(a.id IN (SELECT b.a_id FROM b))", ""),
        ("b.a_id = a.id", "table", "", ""),
    ],
)
def test_the_sql_of_a_term_says_what_it_is(sql: str, kind: str, column: str, func: str) -> None:
    (term,) = with_terms(_catalog(), (GlossaryTerm(("x",), sql),)).terms
    assert (term.kind, term.column, term.func) == (kind, column, func)
    assert term.table == "a"


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "1 = 1",
        "a.missing > 1",
        "SUM(a.n) / COUNT(*)",
        "SUM(a.n) / 3",
        "COUNT(*)",
        "SUM(SUM(a.n))",
        "SUM(DISTINCT a.n)",
        "SUM(a.n) OVER ()",
        "ROW_NUMBER() OVER (ORDER BY a.n)",
        "a.n > b.a_id",
        "a.n FROM a",
        "a.n, a.t",
        "a.n; DROP TABLE a",
        "(" * 500,
        "zebra",
    ],
)
def test_sql_that_cannot_be_used_leaves_the_term_out(sql: str) -> None:
    catalog = with_terms(_catalog(), (GlossaryTerm(("x",), sql),))
    assert catalog.terms == ()
    assert all(not table.computed for table in catalog.tables.values())


def _catalog() -> Catalog:
    a = Table(
        "a",
        columns=(
            Column("a", "id", "INTEGER", primary=True),
            Column("a", "n", "REAL"),
            Column("a", "t"),
        ),
    )
    b = Table(
        "b",
        columns=(
            Column("b", "b_id", "INTEGER", primary=True),
            Column("b", "a_id", references="a.id"),
        ),
    )
    return Catalog("sqlite", {"a": a, "b": b})


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("How many orders are not dock orders?", 2),
        ("How many orders are dock orders?", 2),
        ("How many customers are not house accounts?", 1),
        ("How many customers are not 公司户?", 1),
    ],
)
def test_not_before_a_term_of_the_counted_table_turns_the_term_round(
    shop: Any, question: str, count: int
) -> None:
    found, text = asked(shop, question)
    assert found == [[count]], text


def test_an_answer_names_the_term(shop: Any) -> None:
    assert "net take" in asked(shop, "What is the total net take?")[1]
    assert "customer.company" not in asked(shop, "How many house accounts do we have?")[1]
