"""Questions over clipped names: f_nm and l_nm, a complaint called cmpl, flags and measures said in one breath, totals of another table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.offline.phrasing import plainly
from tests.offline.conftest import Chat, sqlite_chat

GARAGE = """
CREATE TABLE bay (bay_id INTEGER PRIMARY KEY, bay_nm TEXT, town TEXT, area_m2 INTEGER, floors INTEGER, opened INTEGER);
CREATE TABLE emp (emp_id INTEGER PRIMARY KEY, f_nm TEXT, l_nm TEXT, bay_id INTEGER REFERENCES bay(bay_id), fork_lic TEXT, mob_no TEXT);
CREATE TABLE clnt (cl_id INTEGER PRIMARY KEY, cl_nm TEXT, bay_id INTEGER REFERENCES bay(bay_id), since_dt DATE);
CREATE TABLE matter (mat_id INTEGER PRIMARY KEY, cl_id INTEGER REFERENCES clnt(cl_id), risk_flg TEXT, hrs REAL, work_dt DATE);
CREATE TABLE cmpl (cm_id INTEGER PRIMARY KEY, cl_id INTEGER REFERENCES clnt(cl_id), sev TEXT, recv_dt DATE);
CREATE TABLE part (part_no TEXT PRIMARY KEY, part_desc TEXT, supp_nm TEXT, cl_id INTEGER REFERENCES clnt(cl_id), qty INTEGER);
CREATE TABLE scrap_sale (sale_id INTEGER PRIMARY KEY, cl_id INTEGER REFERENCES clnt(cl_id), sale_amt REAL, wt_kg REAL, vat_amt REAL);
CREATE TABLE inv (inv_no INTEGER PRIMARY KEY, cl_id INTEGER REFERENCES clnt(cl_id), inv_dt DATE, paid_dt DATE, amt REAL);
INSERT INTO bay VALUES (1,'Elm','Ripon',90,9,2001),(2,'Oak','Selby',400,2,2003),(3,'Yew','Leeds',200,1,2002);
INSERT INTO emp VALUES (1,'Ann','Birk',1,'Y','07'),(2,'Bob','Cole',1,'N',NULL),(3,'Cat','Dunn',2,'Y','08');
INSERT INTO clnt VALUES (1,'Acorn',1,'2009-01-05'),(2,'Bolt',1,'2015-06-01'),(3,'Cog',2,'2020-03-02');
INSERT INTO matter VALUES (1,1,'Y',7.5,'2024-03-01'),(2,1,'Y',2.5,'2024-03-09'),(3,2,'N',4,'2024-03-10');
INSERT INTO cmpl VALUES (1,1,'high','2024-01-01'),(2,1,'low','2024-01-02'),(3,1,'high','2024-02-01'),(4,3,'high','2024-02-03');
INSERT INTO part VALUES ('P1','Washer','Zed Ltd',1,4),('P2','Gasket',NULL,1,6),('P3','Washer','Zed Ltd',2,70);
INSERT INTO scrap_sale VALUES (1,1,600,11,60),(2,1,700,12,70),(3,2,800,30,80);
INSERT INTO inv VALUES (1,1,'2024-01-01','2024-01-09',500),(2,2,'2024-01-02',NULL,900),(3,3,'2024-02-02',NULL,40);
"""


@pytest.fixture
def garage(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, GARAGE) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("List first and last names of employees for whom we have no mobile number", [("Bob", "Cole")]),
        ("How many complaints are there per severity?", [("high", 3), ("low", 1)]),
        ("How many cases does each client have?", [(1, "Acorn", 2), (2, "Bolt", 1)]),
        ("Show the names and towns of bays in Ripon or Selby", [("Elm", "Ripon"), ("Oak", "Selby")]),
        ("Show the largest bay by floor area", [(2, "Oak", 400)]),
        ("How many invoices have no payment date?", [(2,)]),
        ("How many people at the Elm bay have a fork licence?", [(1,)]),
        ("Bays with at least 2 employees, and how many they have", [(1, "Elm", 2)]),
        ("What quantity of Washer has been used in total?", [(74,)]),
        ("How many risk hours were worked in March 2024?", [(10,)]),
        ("Total weight collected by each client", [(1, "Acorn", 23), (2, "Bolt", 30)]),
        ("Which matters are flagged as risk? matter id please", [(1,), (2,)]),
        ("Invoice numbers and amounts for invoices between 400 and 600", [(1, 500)]),
    ],
)
def test_clipped_names_are_read(garage: Chat, question: str, rows: list[tuple[object, ...]]) -> None:
    said = garage.ask(question)
    assert garage.rows is not None, said
    assert {frozenset(row) for row in garage.rows} == {frozenset(row) for row in rows}, said


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Which clients brought in more than 1000 in sales?", {"Acorn"}),
        ("Whose since date is before 2010?", {"Acorn"}),
        ("Who has been our client for the longest time?", {"Acorn"}),
        ("Which clients have had more than 2 complaints across their bays?", {"Acorn"}),
        ("Who has been a client since before 2016? Sort by date, earliest first", {"Acorn", "Bolt"}),
    ],
)
def test_clients_are_found_by_what_belongs_to_them(garage: Chat, question: str, named: set[object]) -> None:
    said = garage.ask(question)
    assert garage.rows is not None, said
    assert {cell for row in garage.rows for cell in row} & {"Acorn", "Bolt", "Cog"} == named, said


def test_a_part_is_called_by_its_description_and_not_by_its_supplier(garage: Chat) -> None:
    said = garage.ask("Which part has the highest quantity? Part and quantity")
    assert garage.rows is not None, said
    assert "Zed Ltd" not in {cell for row in garage.rows for cell in row}


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("Which parts don't have a supplier entered?", "Which parts don't have a supplier?"),
        ("bays opened in 2002, name plus town", "bays opened in 2002, name and town"),
        ("How many cases fall under each group?", "How many cases per each group?"),
        ("bays sorted from most floors to fewest", "bays, sorted by floors descending"),
        ("cases per group, starting with the group that has the most", "cases per group descending"),
        ("Whose permit expires in 2026, and on what date?", "Whose permit expires in 2026 and the expiry date?"),
        ("clients and tell me when their contract started", "clients and their contract start date"),
        ("bays that can't hold more than 3 cars", "bays with at most 3 cars"),
        ("Which part has nothing on hand?", "Which part has 0 on hand?"),
        ("bays in Texas (TX)", "bays in TX"),
        ("reps and when they were hired", "reps and the hired date"),
        ("Which bay has the most matters overall, and how many?", "Which bay has the most matters?"),
    ],
)
def test_tails_of_questions_are_put_plainly(question: str, plain: str) -> None:
    assert plainly(question) == plain
