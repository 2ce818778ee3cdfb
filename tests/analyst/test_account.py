"""The account of a question's words: what no part of the query answers for is declined."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.account import unanswered_by
from longtable.analyst.lexicon import is_chinese, tokenize
from longtable.analyst.model import BuiltInAnalyst
from longtable.analyst.zh import translate
from longtable.graph import Conversation, Database, build_graph
from longtable.tools.database import QueryLimits
from longtable.tools.results.result_store import ResultStore
from tests.analyst.conftest import Chat, holds

Rows = list[tuple[Any, ...]]


def _ask(chat: Chat, questions: Sequence[str]) -> str:
    return [chat.ask(question) for question in questions][-1].splitlines()[0]


@pytest.mark.parametrize(
    ("questions", "own"),
    [
        (["which carrier has the most delays?"], "delays"),
        (["which carrier is the most punctual?"], "most punctual"),
        (["which month has the worst arrival delay?"], "worst"),
        (["show the delays by carrier"], "delays"),
        (["average distance per carrier, worst first"], "worst"),
        (["flights by carrier", "cheapest first"], "cheapest"),
        (["flights by carrier, alphabetically"], "alphabetically"),
        (["各航空公司的平均距离", "最差的在前"], "最差"),
    ],
)
def test_a_word_of_the_question_that_nothing_answers_for_is_quoted(
    flights: Chat, questions: list[str], own: str
) -> None:
    answer = _ask(flights, questions)
    assert flights.rows is None, flights.sql
    assert own in answer


@pytest.mark.parametrize(
    ("questions", "own"),
    [
        (["how many tracks sold by genre"], "sold"),
        (["artists by number of albums"], "by"),
        (["customers in Wien or over 20"], "20"),
        (["employees by hire date, oldest first"], "oldest"),
    ],
)
def test_no_part_of_a_question_about_the_shop_is_passed_over(
    shop: Chat, questions: list[str], own: str
) -> None:
    answer = _ask(shop, questions)
    assert shop.rows is None, shop.sql
    assert own in answer


@pytest.mark.parametrize(
    ("questions", "rows"),
    [
        (["make a pie chart of flights by carrier"], [("B6", 4), ("DL", 2), ("UA", 2)]),
        (["average arrival delay by carrier", "worst first"], [("UA", 220.0), ("DL", 15.5)]),
        (["average arrival delay by carrier, best first"], [("B6", -20 / 3), ("DL", 15.5)]),
        (["各航空公司的平均到达延误", "最差的在前"], [("UA", 220.0), ("DL", 15.5)]),
        (["how many flights in March?", "flights per month"], [(1, 2), (3, 2), (4, 1), (7, 3)]),
        (["how many flights in March?", "which month had the most?"], [(7, 3)]),
        (["三月有多少航班？", "每月航班"], [(1, 2), (3, 2), (4, 1), (7, 3)]),
        (["which carrier has the most flights?", "and the fewest?"], [(2,)]),
        (["average delay of UA flights", "and of Delta?"], [(3.0,)]),
    ],
)
def test_extremes_groups_and_directions_are_answered(
    flights: Chat, questions: list[str], rows: Rows
) -> None:
    answer = _ask(flights, questions)
    assert flights.rows is not None, answer
    assert holds(flights.rows[: len(rows)], rows) or holds(flights.rows, rows), flights.sql


@pytest.mark.parametrize(
    ("questions", "rows"),
    [
        (["how many in genre Rock?"], [(3,)]),
        (["流派Rock有多少？"], [(3,)]),
        (["how many in album Let There Be Rock?"], [(2,)]),
        (["how many customers in Wien?", "by city"], [("Santiago", 1), ("Wien", 2)]),
        (["which genre has the most tracks?", "最少的呢？"], [("Jazz", 1)]),
        (["单价最高的2个曲目"], [("Restless", 1.29), ("Go Down", 0.99)]),
    ],
)
def test_what_stands_in_a_value_is_what_points_at_it(
    shop: Chat, questions: list[str], rows: Rows
) -> None:
    answer = _ask(shop, questions)
    assert holds(shop.rows, rows), (shop.sql, answer)


def test_albums_by_somebody_are_by_a_person_and_not_by_a_title(shop: Chat) -> None:
    """Accept is an artist and the composer of a track."""
    shop.ask("how many albums by Accept?")
    assert shop.rows == [(1,)]
    assert "artist" in shop.sql


def test_they_are_nobody_where_nothing_was_said_before(flights: Chat) -> None:
    answer = _ask(flights, ["which carrier is the nicest?", "how much distance did they fly?"])
    assert flights.rows is None, flights.sql
    assert "they" in answer


@pytest.fixture
def drawing(tmp_path: Path) -> Iterator[Conversation]:
    """Yield a conversation that can draw, over a table with more rows than a query may return."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, amount REAL)")
        rows = [(n, f"city {n % 3}", n / 2) for n in range(200)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    results = ResultStore(tmp_path / "results", clock=lambda: datetime(2024, 1, 1, tzinfo=UTC))
    address = f"sqlite:///{tmp_path / 'shop.db'}"
    limits = QueryLimits(rows=150)
    with Database.open(address, isolation="none", limits=limits) as database:
        graph = build_graph(model=BuiltInAnalyst(), database=database, results=results)
        app = graph.compile(checkpointer=InMemorySaver())
        yield Conversation(app, "thread", results=results)


def test_a_chart_is_drawn_of_a_whole_result_alone(drawing: Conversation) -> None:
    assert drawing.ask("how many orders per city?").charts == []
    assert len(drawing.ask("as a bar chart").charts) == 1
    answer = drawing.ask("draw a chart of the orders")
    assert answer.charts == []
    assert "There is no chart" in answer.text


def test_a_fragment_after_a_decline_has_nothing_to_go_on_from(flights: Chat) -> None:
    flights.ask("which carrier is the nicest?")
    answer = flights.ask("from JFK only")
    assert flights.rows is None, flights.sql
    assert "refers to" in answer


@pytest.mark.parametrize(
    ("question", "sql", "words"),
    [
        ("which carrier has the most delays?", "SELECT DISTINCT carrier FROM flights", "most"),
        ("make a pie chart of flights by origin", "SELECT * FROM flights LIMIT 100", "by"),
        ("average delay, worst first", "SELECT carrier, AVG(d) FROM f GROUP BY 1", "worst first"),
        ("哪个航空公司的航班最多？", "SELECT carrier FROM flights", "最多"),
        ("how many in 'Rock'?", "SELECT COUNT(*) FROM genre", "Rock"),
        ("albums by Iron Maiden", "SELECT title FROM album WHERE artist_id = 90", ""),
        ("albums made by artists from Wien", "SELECT title FROM album", ""),
        ("flights of at most 2 hours", "SELECT flight FROM flights WHERE air_time <= 120", ""),
        ("most flights", "SELECT carrier, COUNT(*) FROM f GROUP BY 1 ORDER BY 2 DESC LIMIT 1", ""),
    ],
)
def test_a_colleague_finds_words_that_no_part_of_the_sql_answers_for(
    question: str, sql: str, words: str
) -> None:
    tokens = translate(question, None) if is_chinese(question) else tokenize(question)
    assert unanswered_by(tokens, sql) == words
