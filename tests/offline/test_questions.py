"""Questions over databases the analyst has never seen: the rows must be right, or it must decline."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from longtable.tools.database import Database
from longtable.tools.toolset import database_tools
from tests.offline.conftest import Chat

Rows = list[tuple[Any, ...]]


def values(rows: Rows | None) -> list[str]:
    """Return all cells as text, rows in order."""
    return [str(cell) for row in rows or [] for cell in row]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many rentals are there?", [(6,)]),
        ("How many members live in Porto?", [(2,)]),
        ("How many female members are there?", [(2,)]),
        ("What is the average price of bikes?", [(1900.0,)]),
        ("Average price of Gazelle bikes", [(1050.0,)]),
        ("What is the total fee?", [(56.5,)]),
        ("What is the highest price?", [(3100.0,)]),
        ("How many different brands are there?", [(3,)]),
        ("How many rentals were made in 2022?", [(3,)]),
        ("How many rentals in March?", [(4,)]),
        ("How many rentals in March 2022?", [(2,)]),
        ("How many rentals took longer than 1 hour?", [(2,)]),
        ("How many rentals have a fee between 5 and 10?", [(3,)]),
        ("How many rentals have not been returned?", [(2,)]),
        ("How many bikes are electric?", [(2,)]),
        ("How many bikes have no stock?", [(1,)]),
        ("How many members have no rentals?", [(1,)]),
        ("How many members have more than 2 rentals?", [(1,)]),
        ("How many bikes cost more than the average?", [(2,)]),
        ("What is the difference between the highest and the lowest price?", [(2200.0,)]),
        ("What percentage of bikes are from Trek?", [(25.0,)]),
        ("有多少个会员?", [(4,)]),
        ("2022年有多少rental?", [(3,)]),
        ("价格超过1000的bike有多少?", [(3,)]),
    ],
)
def test_a_number_is_right(shop: Chat, question: str, expected: Rows) -> None:
    answer = shop.ask(question)
    assert shop.rows == expected, answer


@pytest.mark.parametrize(
    ("question", "cells"),
    [
        ("Which bike is the most expensive?", ["4", "Cube"]),
        ("What is the heaviest bike?", ["Cube", "23.5"]),
        ("Who is the oldest member?", ["Luc", "Petit"]),
        ("Which member has the most rentals?", ["Ana", "Silva", "3"]),
        ("Which member paid the most?", ["Ana", "Silva", "35.0"]),
        ("Which town has the fewest members?", ["1"]),
        ("Which brand has the highest average price?", ["Cube", "3100.0"]),
        ("Which members have never rented a bike?", ["Rui", "Costa"]),
        ("Members without rentals", ["Rui", "Costa"]),
        ("Show the first and last name of members from Belgium", ["Eva", "Maes"]),
        ("What is the brand of bike 2?", ["Trek"]),
        ("Which members rented a Cube?", ["Ana", "Silva"]),
        ("Rentals per year", ["2021", "3", "2022", "3"]),
        ("Bikes whose brand starts with 'G'", ["Gazelle", "900.0", "1200.0"]),
        ("Which bikes are not from Gazelle?", ["Trek", "Cube"]),
        ("List the 2 cheapest bikes", ["900.0", "1200.0"]),
        ("List all brands in descending order", ["Trek", "Gazelle", "Cube"]),
        ("每个品牌有多少bike?", ["Gazelle", "2"]),
        ("最贵的bike是什么?", ["Cube"]),
    ],
)
def test_rows_hold_what_was_asked(shop: Chat, question: str, cells: list[str]) -> None:
    answer = shop.ask(question)
    assert set(cells) <= set(values(shop.rows)), answer


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("Which bikes are not from Gazelle?", "Gazelle"),
        ("Members without rentals", "Ana"),
        ("Show the names of members from Porto or Ghent", "Luc"),
    ],
)
def test_a_filter_is_applied(shop: Chat, question: str, absent: str) -> None:
    shop.ask(question)
    assert shop.rows
    assert absent not in values(shop.rows)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many trips left AAR?", [(2,)]),
        ("How many trips to AAR?", [(2,)]),
        ("How many trips from KIE to OSL?", [(1,)]),
        ("What is the average departure delay?", [(48.75,)]),
        ("Average arrival delay of North Star Lines", [(97 / 3,)]),
        ("How many trips were delayed more than 30 minutes?", [(2,)]),
        ("How many trips without a vessel?", [(1,)]),
        ("How many trips have no departure delay?", [(1,)]),
        ("What was the worst departure delay?", [(130,)]),
        ("Trips per month", [(1, 2), (2, 2), (3, 1)]),
        ("How many trips went to Oslo?", [(2,)]),
        ("二月有多少trip?", [(2,)]),
        ("从AAR出发的trip有多少?", [(2,)]),
    ],
)
def test_duckdb_with_roles_and_abbreviations(trips: Chat, question: str, expected: Rows) -> None:
    answer = trips.ask(question)
    assert trips.rows is not None, answer
    assert [list(row) for row in trips.rows] == [pytest.approx(list(row)) for row in expected], answer


def test_a_group_brings_the_name_its_key_stands_for(trips: Chat) -> None:
    trips.ask("Which code has the most trips?")
    assert trips.rows == [("NS", "North Star Lines", 3)]


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("How many purple bikes are there?", "purple"),
        ("How many cancelled rentals are there?", "cancelled"),
        ("How many members live in Atlantis?", "Atlantis"),
        ("Which bikes are happy?", "happy"),
        ("What is the shoe size of the members?", "shoe"),
        ("How many rentals were made by customers of Gringotts?", "Gringotts"),
        ("红色的bike有多少?", "红色"),
    ],
)
def test_a_word_without_use_is_declined_and_named(shop: Chat, question: str, word: str) -> None:
    answer = shop.ask(question)
    assert shop.rows is None
    assert word in answer
    assert answer.count("\n- ") == 3


@pytest.mark.parametrize("question", ["Delete all bikes", "please drop the table rental", "删除所有会员"])
def test_writing_is_declined(shop: Chat, question: str) -> None:
    answer = shop.ask(question)
    assert shop.calls() == []
    assert "read" in answer or "读取" in answer


@pytest.mark.parametrize("question", ["hello", "thanks!", "你好"])
def test_small_talk_needs_no_tool(shop: Chat, question: str) -> None:
    assert shop.ask(question)
    assert shop.calls() == []


def test_tables_and_one_table_are_described(shop: Chat) -> None:
    assert "rental" in shop.ask("What tables are there?")
    assert "weight_kg" in shop.ask("Describe the table bike")


def test_the_examples_of_a_decline_can_be_answered(shop: Chat) -> None:
    decline = shop.ask("Sing me a song")
    examples = [line[2:] for line in decline.splitlines() if line.startswith("- ")]
    assert len(examples) == 3
    for example in examples:
        assert shop.ask(example)
        assert shop.rows, example


def test_a_result_too_large_is_shown_in_part_and_said_so(tmp_path: Any, shop: Chat) -> None:
    del tmp_path

    def too_many(question: str) -> str:
        run = shop.run

        def limited(name: str, args: dict[str, Any], call_id: str) -> Any:
            message = run(name, args, call_id)
            if name == "run_sql" and "LIMIT" not in args["sql"]:
                message.content, message.status = '{"error":{"class":"too_many_rows","message":"more than 3 rows"}}', "error"
            return message

        shop.run = limited  # type: ignore[method-assign]  # this database is small: the limit is acted
        return shop.ask(question)

    answer = too_many("List all rentals")
    assert "only 100 of its rows" in answer
    assert "in all" not in answer
    assert shop.rows is not None


def test_a_schema_of_many_pages_is_searched_and_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with sqlite3.connect(path) as connection:
        for number in range(180):
            connection.execute(
                f"CREATE TABLE archive_{number:03d} (archive_{number:03d}_id INTEGER PRIMARY KEY, payload TEXT, size_{number} REAL)"
            )
        connection.execute("CREATE TABLE zebra_keeper (keeper_id INTEGER PRIMARY KEY, keeper_name TEXT)")
        connection.execute("CREATE TABLE zebra (zebra_id INTEGER PRIMARY KEY, name TEXT, keeper_id INTEGER REFERENCES zebra_keeper)")
        connection.executemany("INSERT INTO zebra_keeper VALUES (?, ?)", [(1, "Imani"), (2, "Otto")])
        connection.executemany("INSERT INTO zebra VALUES (?, ?, ?)", [(1, "Zig", 1), (2, "Zag", 1), (3, "Zog", 2)])
    connection.close()
    with Database.open(str(path)) as database:
        chat = Chat({tool.name: tool for tool in database_tools(database)})
        chat.ask("How many zebras does each keeper have?")
        assert {str(cell) for row in chat.rows or [] for cell in row} >= {"Imani", "Otto", "1", "2"}
        calls = [call for message in chat.messages if isinstance(message, AIMessage) for call in message.tool_calls]
        assert sum(len(call["args"]["names"]) for call in calls if call["name"] == "describe_tables") <= 12
