"""What newcomers asked the demo and Chinook and were answered wrongly: each is right now or
declined, and so are its paraphrases.
"""

from pathlib import Path
from typing import Any

import pytest

from longtable.tools.database import Database
from longtable.tools.toolset import database_tools
from tests.analyst.conftest import Chat, holds

ROOM = Path(__file__).parents[2] / "analyst"
Rows = list[tuple[Any, ...]]

# (database, question before, question, the rows that are right)
ASKED: list[tuple[str, str, str, Rows]] = [
    *(
        ("flights", "", question, [("N1", 3)])
        for question in (
            "Which plane has made the most flights?",
            "Which aircraft flew the most flights?",
            "What plane has the highest number of flights?",
            "Show the plane with the most flights",
        )
    ),
    *(
        ("flights", "", question, [(2,)])
        for question in (
            "How many flights did Delta operate to Atlanta?",
            "Number of Delta flights to Atlanta",
            "How many flights of Delta went to Atlanta?",
            "How many times did Delta fly to Atlanta?",
        )
    ),
    *(
        ("flights", "How many airlines are there?", question, [(5,)])
        for question in (
            "and airports?",
            "what about airports?",
            "and how many airports?",
            "and the airports?",
        )
    ),
    *(
        ("shop", "How many tracks are there?", question, [(2,)])
        for question in (
            "and customers in Wien?",
            "and customers from Wien?",
            "how about customers in Wien?",
            "and Wien customers?",
        )
    ),
    *(
        ("flights", "", question, [("JFK", 2)])
        for question in (
            "Which airports have the most departures delayed more than 2 hours?",
            "Which airport has the most flights with a departure delay above 2 hours?",
            "Which origin has the most flights delayed more than 120 minutes?",
            "Top airport by number of flights with a departure delay over 2 hours",
        )
    ),
    *(
        ("shop", "", question, [])
        for question in (
            "How old are our customers on average?",
            "What is the average age of the customers?",
            "average customer age",
            "On average, how old is a customer?",
        )
    ),
    *(
        ("flights", "", question, [(7, 4, "UA", 202, 250)])
        for question in (
            "show flights from JFK to LAX in July with delay over 3 hours",
            "list July flights from JFK to LAX with a departure delay above 180 minutes",
            "flights from JFK to LAX in July with a departure delay of more than 3 hours",
            "Which flights from JFK to LAX in July had a delay over 180 minutes?",
        )
    ),
    *(
        ("flights", "", question, [(7,)])
        for question in (
            "Rainiest month?",
            "Which month is the rainiest?",
            "wettest month",
            "What was the rainiest month?",
        )
    ),
    *(
        ("shop", "", question, [(4 / 3,)])
        for question in (
            "average number of tracks per album",
            "How many tracks does an album have on average?",
            "What is the mean number of tracks of an album?",
            "average track count per album",
        )
    ),
    *(
        ("flights", "", question, [(4,)])
        for question in (
            "How many flights arrived late?",
            "How many flights were late on arrival?",
            "Number of flights that arrived late",
            "How many flights arrived late at their destination?",
        )
    ),
]


@pytest.mark.parametrize(
    ("database", "before", "question", "right"), ASKED, ids=[each[2] for each in ASKED]
)
def test_each_miss_and_its_paraphrases_are_right_or_declined(
    database: str, before: str, question: str, right: Rows, request: pytest.FixtureRequest
) -> None:
    chat: Chat = request.getfixturevalue(database)
    if before:
        chat.ask(before)
    answer = chat.ask(question)
    assert chat.rows is None or (right and holds(chat.rows, right)), (chat.sql, answer)


@pytest.mark.parametrize(
    ("database", "question", "right"),
    [
        ("flights", "Which plane has made the most flights?", [("N1", 3)]),
        ("flights", "How many flights did Delta operate to Atlanta?", [(2,)]),
        (
            "flights",
            "Which airports have the most departures delayed more than 2 hours?",
            [("JFK", 2)],
        ),
        ("flights", "Rainiest month?", [(7,)]),
        ("shop", "average number of tracks per album", [(4 / 3,)]),
        ("flights", "How many flights arrived late?", [(4,)]),
        (
            "flights",
            "show flights from JFK to LAX in July with delay over 3 hours",
            [(7, 4, "UA", 202, 250)],
        ),
    ],
)
def test_these_are_not_only_declined(
    database: str, question: str, right: Rows, request: pytest.FixtureRequest
) -> None:
    chat: Chat = request.getfixturevalue(database)
    chat.ask(question)
    assert holds(chat.rows, right), chat.sql


def test_a_follow_up_after_a_count_is_a_count(flights: Chat, shop: Chat) -> None:
    flights.ask("How many airlines are there?")
    flights.ask("and airports?")
    assert flights.rows == [(5,)]
    shop.ask("How many tracks are there?")
    shop.ask("and customers in Wien?")
    assert shop.rows == [(2,)]


def test_a_list_of_things_shows_what_they_are_known_by_in_eight_columns_at_most(
    flights: Chat,
) -> None:
    flights.ask("show flights from JFK to LAX in July with delay over 3 hours")
    assert flights.rows is not None
    assert len(flights.rows[0]) <= 8


@pytest.mark.parametrize(
    ("question", "own", "not_said"),
    [
        ("Who is the boss of Jane?", "boss", "manager"),
        ("Which genre is the worst?", "worst", "lowest"),
        ("How many tracks have a purple cover?", "purple", "color"),
        ("What is the shoe size of the drummers?", "shoe", "foot"),
    ],
)
def test_a_decline_quotes_the_users_own_words(
    shop: Chat, question: str, own: str, not_said: str
) -> None:
    first = shop.ask(question).splitlines()[0]
    assert shop.rows is None
    assert own in first
    assert not_said not in first


@pytest.mark.parametrize(
    ("question", "own"),
    [
        ("How many flights went to Boston?", "Boston"),
        ("flights to Boston", "Boston"),
        ("How many Boston flights were there in March?", "Boston"),
        ("What is the average arrival delay of flights to Boston?", "Boston"),
        ("飞往波士顿的航班有多少？", "波士顿"),
    ],
)
def test_a_part_of_a_name_that_no_row_fits_is_a_decline_and_no_zero(
    flights: Chat, question: str, own: str
) -> None:
    """An airport's name holds Boston, but no flight goes there: the flights to Boston land at an
    airport of another name.
    """
    answer = flights.ask(question)
    assert f"“{own}”" in answer.splitlines()[0]
    assert "0" not in answer.splitlines()[0]
    assert "以免答错" in answer or "no answer rather than a wrong one" in answer


def test_a_part_of_a_name_that_the_question_asks_for_may_be_in_no_row(shop: Chat) -> None:
    assert "0 tracks" in shop.ask("How many tracks of genre Jazz contain 'Over'?")


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("sales2023", "day,amount\n2023-01-01,5\n2023-01-02,6\n", "There are 2 rows in sales2023."),
        ("q4_report", "day,amount\n2023-01-01,5\n", "There is 1 row in q4_report."),
        ("odd", "###,amount\n1,5\n2,6\n", "There are 2 odds."),
    ],
)
def test_a_file_with_a_year_in_its_name_or_a_column_without_a_letter_is_counted(
    tmp_path: Path, name: str, text: str, answer: str
) -> None:
    (tmp_path / f"{name}.csv").write_text(text)
    with Database.open(str(tmp_path / f"{name}.csv"), isolation="none") as database:
        chat = Chat({tool.name: tool for tool in database_tools(database)})
        assert chat.ask("How many rows are there?").startswith(answer)


def test_no_question_of_these_stands_in_the_code_or_its_words() -> None:
    room = " ".join(
        path.read_text(encoding="utf-8").lower()
        for path in ROOM.rglob("*")
        if path.suffix in (".py", ".tsv", ".toml")
    )
    for _, _, question, _ in ASKED:
        assert question.lower().rstrip("?") not in room
