"""What an afternoon's talk with the analyst showed: follow-ups answered wrongly, and questions that are no questions."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longtable.app.offline.decompile import read_sql
from longtable.app.offline.view import MOST_CHARACTERS
from tests.offline.conftest import Chat, sqlite_chat

WORKSHOP = """
CREATE TABLE buyers (id INTEGER PRIMARY KEY, name TEXT, country TEXT, age INTEGER);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, buyer_id INTEGER REFERENCES buyers(id), month INTEGER, sent_at TIMESTAMP, quantity INTEGER, status TEXT);
INSERT INTO buyers VALUES (1,'Ana','Chile',20),(2,'Bo','Chile',40),(3,'Cy','Peru',60);
INSERT INTO orders VALUES (1,1,3,'2014-03-05 10:00:00',2,'open'),(2,1,3,'2014-03-09 10:00:00',-4,'open'),
  (3,1,4,'2014-04-01 09:00:00',7,'shipped'),(4,2,4,'2015-04-02 09:00:00',1,'lost'),(5,3,4,'2015-04-03 09:00:00',3,'open');
"""


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, WORKSHOP) as chat:
        yield chat


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        (["How many orders were sent in March?", "and in April?"], [(3,)]),  # not March of a date and April of a column
        (["How many orders are there?", "by status?"], [("lost", 1), ("open", 3), ("shipped", 1)]),
        (["有多少orders？", "按status呢？"], [("lost", 1), ("open", 3), ("shipped", 1)]),
        (["How many orders per status?", "which status has the most?"], [("open", 3)]),
        (["How many orders per country?", "which country had the fewest?"], [("Peru", 1)]),
        (["How many orders did buyers from Chile place?", "and their average age?"], [(30.0,)]),  # of two buyers, not of four orders
        (["How many orders per country?", "and the average age?"], [("Chile", 30.0), ("Peru", 60.0)]),
        (["What is the average age of the buyers?", "only those with open orders"], [(40.0,)]),
        (["How many orders are there?", "draw it", "and the average quantity?"], [(1.8,)]),
        (["How many orders are there?", "only shipped ones"], [(1,)]),
        (["How many orders have a quantity over -5?"], [(5,)]),
        (["有多少orders的quantity大于-3？"], [(4,)]),
    ],
)
def test_a_follow_up_means_what_it_says(workshop: Chat, questions: list[str], expected: list[tuple[Any, ...]]) -> None:
    answer = ""
    for question in questions:
        answer = workshop.ask(question)
    assert workshop.rows == expected, answer


@pytest.mark.parametrize(
    "piece", ["一", "中国人民", "客户的订单的", "每个", "not ", "word ", "Anna Smith ", "customers with more than ", "?!", "1 "]
)
def test_a_question_of_one_piece_again_and_again_is_done_with_soon(workshop: Chat, piece: str) -> None:
    most = MOST_CHARACTERS // (2 if piece > "\u3400" else 1)
    began = time.process_time()
    workshop.ask((piece * most)[:most])
    assert time.process_time() - began < 5.0


def test_a_question_longer_than_is_read_is_declined_and_blanks_do_not_count(workshop: Chat) -> None:
    assert f"{MOST_CHARACTERS} characters" in workshop.ask("How many orders " + "of Ana " * 200)
    assert f"{MOST_CHARACTERS // 2} 个字符" in workshop.ask("有多少订单" * 90)
    workshop.ask("How many orders" + "\n" * 5_000 + "are there?")
    assert workshop.rows == [(5,)]


def test_sql_nested_deeper_than_python_is_outside_the_logical_form() -> None:
    assert read_sql(f"SELECT a FROM t WHERE {'(' * 3_000}a = 1{')' * 3_000}", "sqlite") is None
