"""Conditions on groups, columns compared with columns, values by chance, years as adjectives."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.conftest import Chat, sqlite_chat

FERRIES = """
CREATE TABLE yard_mst (yard_id INTEGER PRIMARY KEY, yard_nm TEXT, mgr_nm TEXT, area_sq_m INTEGER);
CREATE TABLE boat (boat_no INTEGER PRIMARY KEY, boat_name TEXT, yard_id INTEGER REFERENCES yard_mst(yard_id), build_year INTEGER,
  launched_on DATE, hours_run INTEGER, hours_limit INTEGER, kind TEXT);
CREATE TABLE clerk (clerk_id INTEGER PRIMARY KEY, full_name TEXT, yard_id INTEGER REFERENCES yard_mst(yard_id), birth_date DATE,
  hired_on DATE);
CREATE TABLE repair (repair_id INTEGER PRIMARY KEY, boat_no INTEGER REFERENCES boat(boat_no), due_on DATE, finished_on DATE, cost REAL,
  topic TEXT);
INSERT INTO yard_mst VALUES (1,'North Quay','Ada Lund',900),(2,'Mole','Bo Falk',400);
INSERT INTO boat VALUES (1,'Swift',1,2018,'2019-03-01',120,100,'day'),(2,'Tern',1,2021,'2021-06-15',50,100,'night'),
  (3,'Gull',2,2021,'2022-01-10',80,100,'car'),(4,'Kite',1,2019,'2019-09-09',10,100,'car');
INSERT INTO clerk VALUES (1,'Cy Moe',1,'1990-01-01','2010-05-01'),(2,'Di Rae',2,'1985-02-02','2020-07-01');
INSERT INTO repair VALUES (1,1,'2024-01-10','2024-01-20',900,'engine room'),(2,1,'2024-02-10','2024-02-01',700,'hull'),
  (3,2,'2024-03-10','2024-03-05',300,'hull');
"""


@pytest.fixture
def ferries(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, FERRIES) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Which yards have at least 2 boats, and how many?", {"North Quay", 3}),
        ("Which boats cost more than 1000 in repairs altogether?", {"Swift"}),
        ("Which boats have exceeded their hours limit?", {"Swift"}),
        ("Which repairs finished after their due date?", {1}),
        ("Names and hire dates of everyone at the Mole yard", {"Di Rae", "2020-07-01"}),
        ("How many boats were launched between March 1 and June 30, 2021?", {1}),
        ("Who is the manager of the Mole yard?", {"Bo Falk"}),
        ("names of the night and car boats", {"Tern", "Gull", "Kite"}),
        ("What is the smallest and the largest repair cost?", {300, 900}),
    ],
)
def test_groups_bounds_and_dates_are_read(ferries: Chat, question: str, values: set[object]) -> None:
    said = ferries.ask(question)
    assert ferries.rows is not None, said
    found = {cell for row in ferries.rows for cell in row}
    assert values <= found, said
    assert not found & ({"Swift", "Tern", "Gull", "Kite", "Cy Moe", "Ada Lund", "Mole"} - values)


def test_money_spent_is_never_another_number_of_the_thing(ferries: Chat) -> None:
    said = ferries.ask("Which clerk has spent the most on repairs in total?")
    assert ferries.rows is None, said
