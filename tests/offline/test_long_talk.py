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


CHINESE = """
CREATE TABLE 客户 (客户编号 INTEGER PRIMARY KEY, 姓名 TEXT, 城市 TEXT, 年龄 INTEGER);
CREATE TABLE 订单 (订单编号 INTEGER PRIMARY KEY, 客户编号 INTEGER REFERENCES 客户(客户编号), 状态 TEXT, 类别 TEXT, 金额 REAL);
INSERT INTO 客户 VALUES (1,'王伟','北京',20),(2,'李娜','上海',40),(3,'陈强','上海',60);
INSERT INTO 订单 VALUES (1,1,'已取消','办公',10),(2,1,'待付款','办公',20),(3,2,'待付款','运动',40),(4,3,'已发货','运动',80);
"""
LATIN = """
CREATE TABLE clients (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
INSERT INTO clients VALUES (1,'王伟','北京'),(2,'李娜','上海'),(3,'陈强','上海');
"""


@pytest.mark.parametrize(
    ("script", "questions", "expected"),
    [
        (CHINESE, ["北京的客户有多少？", "上海呢？", "他们的平均年龄是多少？"], [(50.0,)]),
        (CHINESE, ["已取消的订单有多少？"], [(1,)]),
        (CHINESE, ["王伟有多少订单？"], [(2,)]),
        (CHINESE, ["状态是待付款的订单总金额是多少？"], [(60.0,)]),
        (CHINESE, ["每个类别的总金额是多少？", "最高的是哪个？"], [("运动", 120.0)]),
        (CHINESE, ["不在北京的客户有多少？"], [(2,)]),
        (LATIN, ["上海的客户有多少？", "北京呢？"], [(1,)]),
    ],
)
def test_values_in_chinese_are_looked_up_as_typed(
    tmp_path: Path, script: str, questions: list[str], expected: list[tuple[Any, ...]]
) -> None:
    answer = ""
    with sqlite_chat(tmp_path, script) as chat:
        for question in questions:
            answer = chat.ask(question)
        assert chat.rows == expected, answer


def test_things_that_no_table_holds_are_not_passed_over_as_an_order(tmp_path: Path) -> None:
    with sqlite_chat(tmp_path, LATIN) as chat:
        chat.ask("How many clients per city?")
        assert "orders" in chat.ask("how many orders are there?")
        assert chat.rows is None


MANY = "".join(
    f"CREATE TABLE {thing}_{part} (id INTEGER PRIMARY KEY, amount REAL, status TEXT);"
    f"INSERT INTO {thing}_{part} VALUES (1,{place}1,'open'),(2,{place}2,'closed');"
    for place, thing in enumerate(["asset", "budget", "claim", "lease", "order", "shipment", "ticket", "vendor"])
    for part in ["header", "line", "item", "log", "note", "plan", "rate"]
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [("total amount of shipment items", [(103.0,)]), ("how many ticket logs are open?", [(1,)])],
)
def test_of_many_tables_alike_the_named_one_is_asked(tmp_path: Path, question: str, expected: list[tuple[Any, ...]]) -> None:
    with sqlite_chat(tmp_path, MANY) as chat:
        chat.ask("How many asset headers are there?")
        answer = chat.ask(question)
        assert chat.rows == expected, answer
