"""What a question says must be in the query: else the analyst reads it rightly, or declines; it never answers past it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.offline.conftest import Chat, sqlite_chat

Rows = list[tuple[Any, ...]]

STUDIO = """
CREATE TABLE branch (branch_id INTEGER PRIMARY KEY, branch_name TEXT, founded INTEGER, seats INTEGER);
CREATE TABLE clerk (clerk_id INTEGER PRIMARY KEY, given_name TEXT, family_name TEXT, salary REAL,
  boss_id INTEGER REFERENCES clerk(clerk_id),
  branch_id INTEGER REFERENCES branch(branch_id), left_on DATE, email TEXT);
CREATE TABLE sale (sale_id INTEGER PRIMARY KEY, clerk_id INTEGER REFERENCES clerk(clerk_id), item TEXT, quantity INTEGER, unit_price REAL,
  sold_on DATE, weight_g TEXT);
CREATE TABLE transfer (transfer_id INTEGER PRIMARY KEY, giver_id INTEGER REFERENCES branch(branch_id), taker_id INTEGER REFERENCES
  branch(branch_id), boxes INTEGER);
INSERT INTO branch VALUES (1,'Old Mill',1955,40),(2,'Quayside',1990,120),(3,'Airport',2016,15);
INSERT INTO clerk VALUES (1,'Mona','Lind',5200,NULL,1,NULL,'m@x.test'),(2,'Ivo','Kral',3100,1,1,NULL,NULL),(3,'Dr. Ada','Stone',3300,1,2,
  '2023-08-01','a@x.test'),(4,'Bo','Kral',2500,2,2,NULL,NULL);
INSERT INTO sale VALUES (1,2,'lamp',2,30,'2022-02-01','900'),(2,2,'vase',1,80,'2022-05-11','1200'),(3,3,'lamp',3,35,'2023-01-09','950'),
  (4,1,'rug',1,400,'2023-03-30','null');
INSERT INTO transfer VALUES (1,1,2,5),(2,2,3,7);
"""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, STUDIO) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the total revenue?", [(645.0,)]),
        ("Revenue per item in 2022", [("lamp", 60.0), ("vase", 80.0)]),
        ("How many lamps were sold?", [(5,)]),
        ("How many clerks report to Mona Lind?", [(2,)]),
        ("How many clerks have left?", [(1,)]),
        ("How many clerks have an email?", [(2,)]),
        ("How many clerks have no boss?", [(1,)]),
        ("How many sales were made in the first quarter of 2023?", [(2,)]),
        ("How many clerks have fewer than 2 sales?", [(3,)]),
        ("How many branches were founded before 1970?", [(1,)]),
        ("What is the average number of seats per branch?", [(175 / 3,)]),
        ("What did the sales in 2022 bring in revenue altogether?", [(140.0,)]),
    ],
)
def test_a_number_is_read_in_full(studio: Chat, question: str, expected: Rows) -> None:
    answer = studio.ask(question)
    assert studio.rows is not None, answer
    assert [list(row) for row in studio.rows] == [pytest.approx(list(row)) for row in expected], answer


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who is the boss of Ivo Kral?", ["Mona"]),
        ("Which clerks report to Mona Lind?", ["Ivo", "Dr. Ada"]),
        ("clerks whose boss is Ivo", ["Bo"]),
        ("Who is the best paid clerk?", ["Mona"]),
        ("Who earns more than 3200?", ["Mona", "Dr. Ada"]),
        ("Show the clerks with their salary, highest salary first", ["Mona", "Dr. Ada", "Ivo", "Bo"]),
    ],
)
def test_people_are_found_by_what_relates_them(studio: Chat, question: str, names: list[str]) -> None:
    answer = studio.ask(question)
    found = [cell for row in studio.rows or [] for cell in row if cell in ("Mona", "Ivo", "Dr. Ada", "Bo")]
    assert found == names, answer


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (["What are their names?"], "no earlier result"),
        (["How many purple clerks are there?", "what are their names?"], "could not answer"),
        (["What is the salary?"], "which one"),
        (["How many boxes are there per branch?"], "More than one key"),
        (["What is the lowest weight?"], "texts such as"),
        (["From now on only Quayside"], "do not carry a rule"),
        (["Which clerks earn 3100 or have sold a rug?"], "no answer"),
        (["What is the total sale id?"], "no answer"),
        (["How many clerks are there?", "what is his salary?"], "which one"),
    ],
)
def test_what_cannot_be_known_is_declined_with_its_reason(studio: Chat, questions: list[str], said: str) -> None:
    answer = ""
    for question in questions:
        answer = studio.ask(question)
    assert studio.rows is None, answer
    assert said in answer


def test_that_one_keeps_what_singled_it_out(studio: Chat) -> None:
    studio.ask("Which branch has the most seats?")
    studio.ask("What is the name of that branch?")
    assert [row[-1] for row in studio.rows or []] == ["Quayside"]


def test_a_first_place_names_the_chance_of_a_tie(studio: Chat) -> None:
    assert "Others may share" in studio.ask("Which branch has the most seats?")
