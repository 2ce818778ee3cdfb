"""The built-in analyst draws on request, joins by keys that nobody declared, and asks back about a value that is nearly there."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from longtable.app.offline.charting import wish_of
from longtable.app.offline.model import BuiltInAnalyst
from longtable.graph import Context, Conversation, Database, ResultStore, build_graph
from tests.offline.conftest import SHOP
from tests.support.threads import of_type


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(SHOP)
        connection.execute("CREATE TABLE workshop (id INTEGER PRIMARY KEY, city TEXT)")
        connection.executemany("INSERT INTO workshop VALUES (?, ?)", [(1, "Nice"), (2, "Lille"), (3, "Nice")])
        connection.execute("CREATE TABLE repair (repair_no INTEGER PRIMARY KEY, workshop INTEGER, cost REAL)")
        connection.executemany("INSERT INTO repair VALUES (?, ?, ?)", [(n, 1 + n % 3, n * 10) for n in range(1, 10)])
        connection.commit()
    results = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    graph = build_graph(model=BuiltInAnalyst(), database=Database.open(f"sqlite:///{tmp_path / 'shop.db'}"), results=results)
    return Conversation(graph.compile(checkpointer=InMemorySaver()), "t", context=Context(model_limit=32_000), results=results)


@pytest.mark.parametrize(
    ("question", "mark", "rows"),
    [
        ("Plot the average price per brand", "bar", 3),
        ("Draw a pie chart of the number of bikes per brand", "arc", 3),
        ("Average fee per member as a line chart", "line", 3),
        ("画出每个 brand 的平均 price 的柱状图", "bar", 3),
        ("每个 brand 的 bike 数量，画成饼图", "arc", 3),
    ],
)
def test_a_wish_is_answered_and_drawn(talk: Conversation, question: str, mark: str, rows: int) -> None:
    events = [dict(event) for event in talk.stream(question)]
    [query] = of_type(events, "query_finished")
    assert len(query["rows"]) == rows
    [chart] = of_type(events, "chart")
    drawn = chart["spec"]["mark"]
    assert (drawn["type"] if isinstance(drawn, dict) else drawn) == mark
    assert chart["handle"] == "r1"
    assert "r1" in str(events[-1]["text"])


def test_no_tool_is_called_that_is_not_bound(talk: Conversation, tmp_path: Path) -> None:
    talk.ask("Average price per brand")
    database = Database.open(f"sqlite:///{tmp_path / 'shop.db'}")
    without_results = build_graph(model=BuiltInAnalyst(), database=database).compile(checkpointer=talk.graph.checkpointer)
    later = Conversation(without_results, "t", context=Context(model_limit=32_000))
    assert later.ask("plot it").text == "There is no chart: results are not kept in this run."
    without_database = build_graph(model=BuiltInAnalyst()).compile(checkpointer=InMemorySaver())
    alone = Conversation(without_database, "t", context=Context(model_limit=32_000))
    assert "No database is connected" in alone.ask("How many bikes are there?").text
    assert "没有连接数据库" in alone.ask("有多少自行车？").text


def test_the_last_result_is_drawn_when_it_is_asked_for(talk: Conversation) -> None:
    assert "no result to draw" in talk.ask("plot it").text
    talk.ask("Average price per brand")
    events = [dict(event) for event in talk.stream("now draw that as a pie chart")]
    assert of_type(events, "query_finished") == []
    [chart] = of_type(events, "chart")
    assert chart["handle"] == "r1"
    assert of_type([dict(event) for event in talk.stream("画成柱状图")], "chart")[0]["handle"] == "r1"


def test_what_cannot_be_drawn_is_still_answered(talk: Conversation, tmp_path: Path) -> None:
    graph = build_graph(model=BuiltInAnalyst(), database=Database.open(f"sqlite:///{tmp_path / 'shop.db'}"))
    other = Conversation(graph.compile(checkpointer=InMemorySaver()), "o", context=Context(model_limit=32_000))
    answer = other.ask("Plot the average price per brand")
    assert "Gazelle" in answer.text
    assert "results are not kept" in answer.text


@pytest.mark.parametrize(
    "question",
    [
        "Which plots are larger than 3 hectares?",
        "List the charts",
        "How many charts are there?",
        "有多少图书",
        "show them",
        "显示图",
        "Draw the winners",
    ],
)
def test_a_question_about_charts_is_no_wish_for_one(question: str) -> None:
    assert wish_of(question) is None


def test_a_key_that_nobody_declared_joins(talk: Conversation) -> None:
    answer = talk.ask("What is the total cost of repairs per city?")
    assert answer.queries, answer.text
    assert sorted(map(tuple, answer.queries[-1]["rows"])) == [("Lille", 120.0), ("Nice", 330.0)]


def test_a_slip_is_asked_about_and_never_answered(talk: Conversation) -> None:
    answer = talk.ask("How many bikes of brand Gazele are there?")
    assert answer.queries == []
    assert "Did you mean “Gazelle” (bike.brand)?" in answer.text
