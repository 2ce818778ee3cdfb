"""What a sentence implies: sums nobody names, money by the hour, who never did, orders told by a phrase, the thing shown beside its key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.conftest import Chat, sqlite_chat

TOURS = """
CREATE TABLE branch (branch_id INTEGER PRIMARY KEY, branch_nm TEXT, manager_name TEXT, rent_mth REAL);
CREATE TABLE guide (guide_id INTEGER PRIMARY KEY, full_name TEXT, languages TEXT, hired_on DATE, hrly_fee REAL, email TEXT);
CREATE TABLE client (client_id INTEGER PRIMARY KEY, client_name TEXT, kind TEXT, joined_on DATE, credit_limit REAL);
CREATE TABLE trip (trip_id INTEGER PRIMARY KEY, guide_id INTEGER REFERENCES guide(guide_id),
  client_id INTEGER REFERENCES client(client_id),
  trip_date DATE, hours REAL, seats_taken INTEGER, state TEXT);
CREATE TABLE payment (payment_id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES client(client_id),
  paid_on DATE, amount REAL, method TEXT);
CREATE TABLE bill (bill_id INTEGER PRIMARY KEY, client_id INTEGER REFERENCES client(client_id),
  paid_on DATE, amount REAL, method TEXT);
CREATE TABLE gear (gear_id INTEGER PRIMARY KEY, gear_name TEXT, category TEXT, buy_dt DATE, buy_amt REAL, unit_price REAL,
  assigned_to INTEGER REFERENCES guide(guide_id));
INSERT INTO branch VALUES (1,'Harbour','Di Rae',900),(2,'Hill','Ed Orr',700);
INSERT INTO guide VALUES (1,'Ana Lund','English, Italian','2019-05-05',50,'ana@post.example'),
  (2,'Bo Falk','English','2020-01-01',40,'bo@mail.example'),
  (3,'Cy Moe','English, French','2021-03-01',60,NULL);
INSERT INTO client VALUES (1,'Alder','trade','2020-01-01',500),(2,'Birch','trade','2021-01-01',300),(3,'Cedar','school','2022-01-01',100);
INSERT INTO trip VALUES (1,1,1,'2024-05-05',6,4,'held'),(2,1,2,'2024-06-01',7,9,'held'),
  (3,2,1,'2024-06-02',3,5,'on hold'),(4,3,2,'2024-07-01',2,2,'held');
INSERT INTO payment VALUES (1,1,'2024-01-10',60,'card'),(2,1,'2024-02-11',70,'cash'),(3,2,'2024-02-12',80,'card');
INSERT INTO bill VALUES (1,1,'2024-01-10',60,'card'),(2,1,NULL,500,'card'),(3,2,'2024-02-12',80,'cash');
INSERT INTO gear VALUES (1,'Long rope','rope','2024-03-01',20,9,1),
  (2,'Boots','boot','2023-01-01',90,30,2),(3,'Tent','camp','2022-01-01',50,70,NULL);
"""
NAMES = {"Ana Lund", "Bo Falk", "Cy Moe", "Alder", "Birch", "Cedar", "Long rope", "Boots", "Tent"}


def answers(chat: Chat, question: str, values: set[object]) -> None:
    said = chat.ask(question)
    found = {cell for row in chat.rows or [] for cell in row}
    assert values <= found, said
    assert not (found & NAMES) - values, said


@pytest.fixture
def tours(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, TOURS) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Seats taken by client kind", {"trade", 20}),
        ("hours by guide", {"Ana Lund", 13.0, "Bo Falk", 3.0, "Cy Moe", 2.0}),
        ("Which clients have paid more than 100 in total?", {"Alder"}),
        ("Guides who have logged more than 10 hours on trips", {"Ana Lund"}),
        ("In which month of 2024 did we receive the most money in payments?", {"2024-02", 150}),
        ("Which client paid us the most in total, and how much was it?", {"Alder", 130}),
        ("Payment revenue by client kind", {"trade", 210}),
        ("Total of paid bills", {140}),
        ("bill total by method for the paid ones", {"card", 60, "cash", 80}),
    ],
)
def test_what_is_added_up_need_not_be_said(tours: Chat, question: str, values: set[object]) -> None:
    answers(tours, question, values)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Names of the guides charging more than 45 an hour", {"Ana Lund", "Cy Moe"}),
        ("What does Bo Falk charge per hour?", {40}),
        ("What is the average hourly fee of the guides?", {50}),
        ("What do we pay in rent per month for all branches together?", {1600}),
        ("the cheapest guide to hire per hour", {"Bo Falk"}),
    ],
)
def test_a_time_beside_money_names_the_rate_and_no_group(tours: Chat, question: str, values: set[object]) -> None:
    answers(tours, question, values)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Which clients have never paid anything?", {"Cedar"}),
        ("Number of trips per guide, leaving out the ones on hold", {"Ana Lund", 2, "Cy Moe", 1}),
        ("How many pieces of gear are not assigned to anyone?", {1}),
        ("Give me the gear assigned to Ana Lund", {"Long rope"}),
        ("Show me the guides who speak Italian", {"Ana Lund"}),
        ("guides with a mail.example email address", {"Bo Falk"}),
        ("Who guided the trip on 2024-05-05?", {"Ana Lund"}),
        ("list gear in the rope or boot category with its unit price", {"Long rope", 9, "Boots", 30}),
        ("Names of gear that contain the word rope, with the unit price", {"Long rope", 9}),
        ("Which gear has the highest purchase price?", {"Boots", 90}),
        ("Who manages the Hill branch?", {"Ed Orr"}),
    ],
)
def test_who_what_and_which_are_found(tours: Chat, question: str, values: set[object]) -> None:
    answers(tours, question, values)


def test_an_order_from_an_end_on_is_no_single_row(tours: Chat) -> None:
    said = tours.ask("All trade clients with their credit limit, from the lowest limit up")
    assert tours.rows == [("Birch", 300), ("Alder", 500)], said
