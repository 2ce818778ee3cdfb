"""The analyst on a real PostgreSQL server: its SQL follows the dialect that list_tables names."""

from collections.abc import Iterator

import pytest

from longtable.tools.database import Database
from longtable.tools.toolset import database_tools
from tests.offline.conftest import SHOP, Chat
from tests.support.postgres import postgres_server

CAPITALS = """
CREATE TABLE "Invoice" ("InvoiceId" int PRIMARY KEY, "Country" text, "Total" numeric(10, 2));
INSERT INTO "Invoice" VALUES (1, 'Peru', 5.5), (2, 'Peru', 4.5), (3, 'Chile', 7);
"""


@pytest.fixture(scope="module")
def url() -> str:
    return postgres_server().create(SHOP + CAPITALS)


@pytest.fixture
def chat(url: str) -> Iterator[Chat]:
    with Database.open(url) as database:
        yield Chat({tool.name: tool for tool in database_tools(database)})


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many members are there?", [(4,)]),
        ("Rentals by month", [("2021-03", 2), ("2021-04", 1), ("2022-01", 1), ("2022-03", 2)]),
        ("How many rentals per year?", [(2021, 3), (2022, 3)]),
        ("rentals per weekday", [(1, 1), (2, 2), (3, 1), (6, 2)]),
        ("rentals by quarter", [(1, 5), (2, 1)]),
        ("average price by brand", [("Cube", 3100), ("Gazelle", 1050), ("Trek", 2400)]),
        ("how many members from Portugal?", [(2,)]),
        ("average total by country of the invoices", [("Chile", 7), ("Peru", 5)]),
        ("How many rentals in March 2021?", [(2,)]),
    ],
)
def test_a_question_is_answered_with_the_servers_own_sql(question: str, rows: list[tuple[object, ...]], chat: Chat) -> None:
    chat.ask(question)
    assert chat.rows == rows


def test_a_part_of_a_name_is_found_whatever_its_case(chat: Chat) -> None:
    chat.ask("brands containing gaz")
    assert [row[0] for row in chat.rows or []] == [1, 3]


def test_a_follow_up_reads_the_sql_before_it(chat: Chat) -> None:
    chat.ask("Rentals by month")
    chat.ask("and per year?")
    assert chat.rows == [(2021, 3), (2022, 3)]
    chat.ask("and by quarter?")
    assert chat.rows == [(1, 5), (2, 1)]
