"""The same question in other words: who works where, what one costs, what somebody bought, callings, states, what nobody did."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.offline.phrasing import plainly
from longtable.app.offline.value_forms import forms
from tests.offline.conftest import Chat, sqlite_chat

REPAIRS = """
CREATE TABLE depot (depot_cd TEXT PRIMARY KEY, depot_nm TEXT, city TEXT, manager_nm TEXT,
  parking_spaces INTEGER);
CREATE TABLE emp (emp_no INTEGER PRIMARY KEY, emp_nm TEXT, depot_cd TEXT REFERENCES depot(depot_cd), job_ttl TEXT,
  hire_dt DATE, sal_amt REAL);
CREATE TABLE cust (cust_no INTEGER PRIMARY KEY, cust_nm TEXT, tel TEXT, depot_cd TEXT REFERENCES depot(depot_cd));
CREATE TABLE prod (prod_cd TEXT PRIMARY KEY, prod_nm TEXT, kind TEXT, list_prc REAL, total_hrs INTEGER);
CREATE TABLE ord (ord_no INTEGER PRIMARY KEY, cust_no INTEGER REFERENCES cust(cust_no), stat TEXT, opened_dt DATE, paid_by TEXT);
CREATE TABLE ord_ln (ord_no INTEGER REFERENCES ord(ord_no), prod_cd TEXT REFERENCES prod(prod_cd), qty INTEGER,
  PRIMARY KEY (ord_no, prod_cd));
CREATE TABLE firm_partner (firm_no INTEGER PRIMARY KEY, trade TEXT, firm_nm TEXT);
CREATE TABLE town (town_cd TEXT PRIMARY KEY, town_name TEXT);
CREATE TABLE crate (crate_no TEXT PRIMARY KEY, weight_kg REAL, town_cd TEXT REFERENCES town(town_cd));
CREATE TABLE driver (driver_id INTEGER PRIMARY KEY, driver_name TEXT, age INTEGER);
INSERT INTO town VALUES ('LDS','Leeds'),('YRK','York');
INSERT INTO crate VALUES ('C1',640,'YRK'),('C2',1500,'LDS');
INSERT INTO driver VALUES (1,'Jan Roe',58),(2,'Kim Dew',33);
INSERT INTO depot VALUES ('D1','Canal Yard','Leeds','Una Frost',0),('D2','Mill Lane','York','Ned Park',12);
INSERT INTO emp VALUES (1,'Ada Lund','D1','fitter','2015-02-01',31000),(2,'Bo Falk','D2','clerk','2020-06-01',26000);
INSERT INTO cust VALUES (11,'Iris Moe','555-1','D1'),(12,'Tim Roy',NULL,'D1'),(13,'Lea Sand','555-3','D2');
INSERT INTO prod VALUES ('P1','Oak Table','table',420,9),('P2','Reed Chair','chair',90,3),('P3','Tall Lamp','lamp',60,1);
INSERT INTO ord VALUES (101,11,'in repair','2024-01-05','cheque'),(102,12,'open','2024-02-01','card'),(103,11,'done','2024-03-01','card');
INSERT INTO ord_ln VALUES (101,'P1',1),(101,'P3',2),(102,'P2',4),(103,'P3',1);
INSERT INTO firm_partner VALUES (1,'electrical','Volt & Co'),(2,'plumbing','Drip Ltd');
"""


@pytest.fixture
def repairs(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, REPAIRS) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Who works at Canal Yard?", {"Ada Lund"}),
        ("how many people are there at the Mill Lane depot", {1}),
        ("Which of our colleagues were hired before 2018?", {"Ada Lund"}),
        ("who runs Mill Lane?", {"Ned Park"}),
        ("How much does the Oak Table cost?", {420}),
        ("what does a Reed Chair cost?", {90}),
        ("tables and chairs under 100", {"Reed Chair"}),
        ("What did Iris Moe buy?", {"Oak Table", "Tall Lamp"}),
        ("Which orders are being repaired?", {101}),
        ("orders still open at Canal Yard", {102}),
        ("Orders paid by cheque", {101}),
        ("the electricians we work with", {"Volt & Co"}),
        ("which products start with the word reed?", {"Reed Chair"}),
        ("depots without parking spaces", {"Canal Yard"}),
        ("customers without a phone: how many are there?", {1}),
        ("customers not in York", {"Iris Moe", "Tim Roy"}),
        ("crates lighter than 1 ton", {"C1"}),
        ("Where is crate C2?", {"Leeds"}),
        ("drivers over fifty", {"Jan Roe"}),
    ],
)
def test_other_words_find_the_same_answer(repairs: Chat, question: str, values: set[object]) -> None:
    answer = repairs.ask(question)
    cells = {cell for row in repairs.rows or [] for cell in row}
    assert values <= cells, answer
    assert not _OTHERS.get(question, frozenset()) & cells


_OTHERS: dict[str, set[object]] = {
    "Who works at Canal Yard?": {"Bo Falk"},
    "tables and chairs under 100": {"Oak Table", "Tall Lamp"},
    "What did Iris Moe buy?": {"Reed Chair"},
    "orders still open at Canal Yard": {101},
    "Orders paid by cheque": {102},
    "depots without parking spaces": {"Mill Lane"},
}


def test_what_somebody_did_is_not_answered_by_the_one_who_did_it(repairs: Chat) -> None:
    answer = repairs.ask("What did Iris Moe say?")
    assert repairs.rows is None, answer


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("beds no one has slept in", "beds nobody has slept in"),
        ("tests that nobody has reviewed", "tests never reviewed"),
        ("halls that nobody manages", "halls without a manager"),
        ("visits that were called off", "visits that were cancelled"),
        ("Open claims in Hull: how many?", "how many Open claims in Hull?"),
        ("films longer than an hour and a half", "films longer than 1.5 hours"),
        ("who've never paid", "who have never paid"),
    ],
)
def test_what_is_said_in_two_words_is_put_plainly(asked: str, plain: str) -> None:
    assert plainly(asked) == plain


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("orthodontists", "orthodontics"),
        ("cardiologist", "cardiology"),
        ("electricians", "electrical"),
        ("plumbers", "plumbing"),
        ("wooden", "wood"),
        ("cheques", "cheque"),
    ],
)
def test_a_calling_is_named_after_its_trade(word: str, value: str) -> None:
    assert value in forms(word)
