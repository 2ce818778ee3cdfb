"""Follow-ups: the slots of the query before are there at no cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.graph import Context, Conversation, Database, build_graph
from longtable.memory.compaction.ledger import LedgerLine, render_ledger
from longtable.memory.summary.summary_text import Finding
from tests.analyst.conftest import Chat, holds

Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize(
    ("questions", "rows"),
    [
        (["How many invoices in 2021?", "and in 2022?"], [(2,)]),
        (["How many invoices in 2021?", "same for 2022"], [(2,)]),
        (["How many invoices are there?", "and by year?"], [(2021, 2), (2022, 2)]),
        (["How many customers are there?", "only from Wien"], [(2,)]),
        (["How many customers live in Wien?", "how about Santiago?"], [(1,)]),
        (["How many invoices are from Austria?", "and the average total?"], [(18.5,)]),
        (["What is the average total of invoices?", "and the maximum?"], [(30.0,)]),
        (["How many tracks cost more than 1?", "and less than 1?"], [(3,)]),
        (["How many albums per artist?", "only the first 1"], [("AC/DC", 2)]),
        (["How many customers live in Wien?", "who are they?"], [("Leonie",), ("Astrid",)]),
        (["How many customers live in Wien?", "how many of them have invoices?"], [(2,)]),
        (
            ["How many customers live in Wien?", "who are they?", "sort them by first name"],
            [("Leonie",), ("Astrid",)],
        ),
        (["How many orders are there?", "and how many customers?"], [(3,)]),
        (
            ["Which customer spent the most money?", "what is her email?"],
            [("Astrid", 30.0, "a@x.at")],
        ),
        (["Top 1 billing countries by total sales", "and the worst?"], [("Chile", 15.0)]),
        (["How many customers are there?", "how many of them have an email?"], [(2,)]),
        (["What is the most expensive track price?", "and the cheapest?"], [(0.99,)]),
        (["有多少customer?", "只看Wien"], [(2,)]),
        (["How many invoices in 2021?", "2022年呢?"], [(2,)]),
    ],
)
def test_a_follow_up_edits_the_query_before(shop: Chat, questions: list[str], rows: Rows) -> None:
    answer = ""
    for question in questions:
        answer = shop.ask(question)
    assert holds(shop.rows, rows), (shop.sql, answer)


def test_sorting_by_the_number_turns_the_order(shop: Chat) -> None:
    shop.ask("How many tracks per genre?")
    shop.ask("sort by that in ascending order")
    assert [row[-1] for row in shop.rows or []] == [1, 3]


def test_a_whole_question_stands_alone(shop: Chat) -> None:
    shop.ask("How many customers live in Wien?")
    shop.ask("How many tracks are there?")
    assert shop.rows == [(4,)]


def test_nothing_goes_on_from_a_declined_question(shop: Chat) -> None:
    shop.ask("How many tracks are there?")
    shop.ask("How many tracks have a purple cover?")
    answer = shop.ask("and in 2021?")
    assert shop.rows is None
    assert "earlier result" in answer


def test_a_follow_up_that_cannot_be_read_is_declined_with_its_word(shop: Chat) -> None:
    shop.ask("How many customers are there?")
    answer = shop.ask("only the purple ones")
    assert shop.rows is None
    assert "purple" in answer


def test_a_follow_up_runs_its_query_at_once(shop: Chat) -> None:
    shop.ask("How many customers are there?")
    shop.ask("and by country?")
    assert shop.calls() == ["run_sql"]


FOUND = Finding("How many invoices were issued in 2021?", "There are 2 invoices.")
RAN = "SELECT COUNT(*) FROM invoice WHERE CAST(STRFTIME('%Y', invoice_date) AS INTEGER) = 2021"


def folded() -> SystemMessage:
    """Return a system message with the memory of one round: what was found, and the query that
    found it.
    """
    ledger = render_ledger([LedgerLine(turn=1, question=FOUND.question, sql=RAN)], "en")
    return SystemMessage(
        "You answer questions.\n<memory>\nMemory.\n## Facts and"
        f" findings\n{FOUND.line('en')}\n\n{ledger}\n</memory>"
    )


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What was the answer when I asked about the invoices of 2021?", "2 invoices"),
        ("Remind me how many invoices there were in 2021", "2 invoices"),
        ("What did I ask first?", FOUND.question),
        ("你还记得invoices 2021是多少吗?", "2 invoices"),
    ],
)
def test_a_compacted_turn_is_recalled_from_the_memory(shop: Chat, question: str, said: str) -> None:
    shop.messages[0] = folded()
    assert said in shop.ask(question)
    assert shop.calls() == []


def test_a_follow_up_after_a_compaction_goes_on_from_the_ledger(shop: Chat) -> None:
    shop.messages[0] = folded()
    shop.ask("and in 2022?")
    assert shop.rows == [(2,)]


def test_what_was_never_asked_is_not_recalled(shop: Chat) -> None:
    shop.messages[0] = folded()
    assert "2 invoices" not in shop.ask("What did you say about the weather in Porto?")


@pytest.fixture(scope="module")
def long_talk(shop_file: Path) -> Iterator[Conversation]:
    """Yield a conversation whose first round has left the memory, too."""
    with Database.open(f"sqlite:///{shop_file}", isolation="none") as database:
        graph = build_graph(model=BuiltInAnalyst(), database=database).compile(
            checkpointer=InMemorySaver()
        )
        conversation = Conversation(graph, "thread", context=Context(model_limit=8_000))
        conversation.ask("How many customers live in Wien?")
        for price in range(60):
            conversation.ask(f"How many tracks cost more than {price / 10}?")
        yield conversation


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What was the answer when I asked about customers in Wien?", "2 customers"),
        ("你还记得customer Wien是多少吗?", "2 customers"),
        ("What did I ask first?", "How many customers live in Wien?"),
        (
            "What was the answer when I asked about the weather in Porto?",
            "I find nothing about this",
        ),
    ],
)
def test_what_the_memory_no_longer_holds_is_recalled_from_the_originals(
    long_talk: Conversation, question: str, said: str
) -> None:
    answer = long_talk.ask(question)
    assert said in answer.text
    assert long_talk.history()[-2].name == "recall_history"
    assert not answer.queries


def test_own_questions_are_recalled_without_a_query(shop: Chat) -> None:
    shop.ask("How many tracks are there?")
    assert "How many tracks are there?" in shop.ask("我第一个问题是什么?")
    assert shop.rows is None
    assert shop.calls() == []


def test_a_place_that_may_be_either_end_is_declined(flights: Chat) -> None:
    flights.ask("How many flights went from La Guardia to Atlanta?")
    assert flights.rows == [(1,)]
    flights.ask("what about Los Angeles?")
    assert flights.rows is None, flights.sql
    flights.ask("How many flights went from La Guardia to Atlanta?", again=True)
    flights.ask("and to Los Angeles?")
    assert flights.rows == [(0,)]


def test_a_value_found_in_the_database_before_is_nothing_in_this_one(
    flights: Chat, shop: Chat
) -> None:
    flights.ask("How many flights went to Los Angeles?")
    looked = next(
        n
        for n, message in enumerate(flights.messages)
        if "find_values" in str(getattr(message, "tool_calls", ""))
    )
    shop.messages = [*flights.messages[:2], *flights.messages[looked:]]
    shop.messages = [
        message
        for message in shop.messages
        if getattr(message, "name", "") not in ("list_tables", "describe_tables")
    ]
    shop.ask("how many customers in Los Angeles")
    assert shop.rows is None


def test_a_thread_goes_on_with_another_database_without_the_query_before(
    flights: Chat, shop: Chat
) -> None:
    flights.ask("How many airports are there?")
    query = next(
        n
        for n, message in enumerate(flights.messages)
        if "run_sql" in str(getattr(message, "tool_calls", ""))
    )
    shop.messages = [*flights.messages[:2], *flights.messages[query:]]
    shop.ask("and how many in Chile?")
    assert "airports" not in shop.sql


@pytest.mark.parametrize(
    ("questions", "rows"),
    [
        (
            ["Which carrier has the worst average arrival delay?", "and the best?"],
            [("B6", -20 / 3)],
        ),
        (["How many flights from JFK in July?", "and how many in January arrived late?"], [(1,)]),
        (["How many flights are there?", "how many with a departure time?"], [(7,)]),
        (["How many flights are there?", "how many with a tail number?"], [(6,)]),
        (["How many flights are there?", "and how many to Los Angeles?"], [(3,)]),
        (["How many flights are there?", "and how many to Los Angeles on time?"], None),
    ],
)
def test_a_follow_up_on_flights_uses_every_word_or_declines(
    flights: Chat, questions: list[str], rows: Rows | None
) -> None:
    for question in questions:
        flights.ask(question)
    assert flights.rows is None if rows is None else holds(flights.rows, rows), flights.sql


@pytest.mark.parametrize(
    "question",
    [
        "average departure time of the flights",
        "total of hours flown",
        "average hour of the flights",
    ],
)
def test_a_time_of_day_is_not_averaged_nor_proposed(flights: Chat, question: str) -> None:
    answer = flights.ask(question)
    assert flights.rows is None, flights.sql
    assert "time" not in answer.partition("for example")[2]
