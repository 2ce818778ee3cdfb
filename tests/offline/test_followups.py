"""Follow-ups: edits of the query before, seen in the tool calls of the view."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from longtable.memory.ledger import LedgerLine
from longtable.memory.ledger_view import render_ledger
from longtable.memory.summary import Finding
from tests.offline.conftest import Chat, sqlite_chat

Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        (["How many rentals in 2021?", "and in 2022?"], [(3,)]),
        (["How many rentals in 2021?", "same for 2022"], [(3,)]),
        (["How many rentals are there?", "and by year?"], [(2021, 3), (2022, 3)]),
        (["How many members are there?", "only from Porto"], [(2,)]),
        (["How many members live in Porto?", "how about Ghent?"], [(1,)]),
        (["How many members live in Porto?", "what about the others?"], [(2,)]),
        (["How many bikes of Gazelle are there?", "and the average price?"], [(1050.0,)]),
        (["What is the average price of bikes?", "and the maximum?"], [(3100.0,)]),
        (["What is the average price of bikes?", "and the average weight?"], [(19.5,)]),
        (["How many bikes cost more than 1000?", "and more than 2000?"], [(2,)]),
        (["Number of bikes per brand", "sort by that", "only the first 1"], [("Gazelle", 2)]),
        (["How many members live in Porto?", "how many of them have rentals?"], [(1,)]),
        (["有多少个member?", "只看Porto"], [(2,)]),
        (["How many rentals in 2021?", "2022年呢?"], [(3,)]),
    ],
)
def test_a_follow_up_edits_the_query_before(shop: Chat, questions: list[str], expected: Rows) -> None:
    answer = ""
    for question in questions:
        answer = shop.ask(question)
    assert shop.rows == expected, answer


def test_who_are_they_lists_the_rows_counted(shop: Chat) -> None:
    shop.ask("How many members live in Porto?")
    shop.ask("who are they?")
    assert {row[1] for row in shop.rows or []} == {"Ana", "Rui"}


def test_order_is_turned(shop: Chat) -> None:
    shop.ask("Number of bikes per brand")
    shop.ask("sort by that")
    first = list(shop.rows or [])
    shop.ask("in ascending order")
    assert [row[-1] for row in shop.rows or []] == sorted(row[-1] for row in first)


def test_a_follow_up_that_cannot_be_read_is_declined(shop: Chat) -> None:
    shop.ask("How many members are there?")
    answer = shop.ask("only the purple ones")
    assert shop.rows is None
    assert "purple" in answer


def test_a_follow_up_costs_few_calls_because_the_catalogue_is_in_view(shop: Chat) -> None:
    shop.ask("How many members are there?")
    shop.ask("and by sex?")
    assert shop.calls() == ["run_sql"]


Folded = tuple[Finding, str]


def folded(*rounds: Folded) -> SystemMessage:
    """Return a system message with the memory of these rounds: what was found, and the query that found it."""
    found = "\n".join(finding.line("en") for finding, _ in rounds)
    ran = render_ledger([LedgerLine(turn=n, question=finding.question, sql=sql) for n, (finding, sql) in enumerate(rounds, 1)], "en")
    return SystemMessage(f"You answer questions.\n<memory>\nMemory.\n## Facts and findings\n{found}\n\n{ran}\n</memory>")


RENTALS = (
    Finding("How many rentals were made in 2021?", "There are 3 rentals."),
    "SELECT COUNT(*) FROM rental WHERE CAST(STRFTIME('%Y', rental_date) AS INTEGER) = 2021",
)
PRICE = (Finding("What is the average price of bikes?", "The average price is 1,900."), "SELECT AVG(price) FROM bike")


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("What was the answer when I asked about the rentals?", "3 rentals"),
        ("What did you say about the average price?", "1,900"),
        ("Remind me how many rentals there were in 2021", "3 rentals"),
        ("你还记得average price是多少吗?", "1,900"),
    ],
)
def test_a_folded_turn_is_answered_from_the_memory(shop: Chat, question: str, number: str) -> None:
    shop.messages[0] = folded(RENTALS, PRICE)
    assert number in shop.ask(question)
    assert shop.calls() == []


def test_what_was_never_asked_is_not_recalled(shop: Chat) -> None:
    shop.messages[0] = folded(RENTALS, PRICE)
    assert "1,900" not in shop.ask("What did you say about the weather in Porto?")


def test_a_folded_query_is_taken_up_again_with_a_change(shop: Chat) -> None:
    shop.messages[0] = folded(PRICE, RENTALS)
    shop.ask("The same as when I asked about the rentals in 2021 but for 2022")
    assert shop.rows == [(3,)]


def test_a_follow_up_goes_on_from_the_memory_when_its_turn_was_folded(shop: Chat) -> None:
    shop.messages[0] = folded(PRICE, RENTALS)
    shop.ask("and in 2022?")
    assert shop.rows == [(3,)]


def test_an_answer_in_view_is_recalled(shop: Chat) -> None:
    shop.ask("How many bikes are there?")
    shop.ask("What is the average fee of rentals?")
    assert "4 bikes" in shop.ask("What did you say about how many bikes there are?")


def test_a_memory_in_a_human_message_is_no_question(shop: Chat) -> None:
    block = str(folded(RENTALS).content).split("\n", 1)[1]
    shop.messages.append(HumanMessage(block))
    assert "3 rentals" in shop.ask("Remind me about the rentals in 2021")


VOYAGES = """
CREATE TABLE voyage (year INTEGER, month INTEGER, origin TEXT, distance INTEGER, left_at TIMESTAMP);
INSERT INTO voyage VALUES (2013,3,'JFK',2400,'2013-03-02 08:00:00'),(2013,3,'LGA',700,'2013-03-05 08:00:00'),
  (2013,4,'JFK',2500,'2013-04-01 08:00:00'),(2013,4,'JFK',300,'2013-04-09 08:00:00');
"""


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        (["How many voyages left JFK in March?"], [(1,)]),
        (["How many voyages left JFK in March?", "and in April?"], [(2,)]),
        (["How many voyages were there in March 2013?", "and in April?"], [(2,)]),
        (["How many voyages were there between March and April?"], [(4,)]),
        (["How many voyages were longer than 2000 miles?"], [(2,)]),
    ],
)
def test_a_month_in_a_column_of_its_own_beside_a_date_is_one_month(tmp_path: Path, questions: list[str], expected: Rows) -> None:
    with sqlite_chat(tmp_path, VOYAGES) as chat:
        answers = [chat.ask(question) for question in questions]
    assert chat.rows == expected, answers


DELAYS = """
CREATE TABLE voyage (id INTEGER PRIMARY KEY, hour INTEGER, left_at TIMESTAMP, delay_minutes INTEGER, built INTEGER);
INSERT INTO voyage VALUES (1,8,'2013-03-02 08:00:00',150,1978),(2,9,'2013-03-05 09:00:00',30,1990),(3,1,'2013-03-06 01:00:00',5,2012);
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many voyages were delayed by more than 2 hours?", [(1,)]),
        ("How many voyages took longer than 5 hours?", [(0,)]),  # not those that left after five
        ("How many voyages have an hour over 8?", [(1,)]),
        ("How many voyages are older than 1980?", [(1,)]),
    ],
)
def test_a_span_of_hours_is_no_hour_of_the_day(tmp_path: Path, question: str, expected: Rows) -> None:
    with sqlite_chat(tmp_path, DELAYS) as chat:
        answer = chat.ask(question)
    assert chat.rows == expected, answer
