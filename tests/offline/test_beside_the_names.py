"""What stands beside the names of a schema: clipped names, values in another order, nouns and verbs that only keep a column company."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.conftest import Chat, sqlite_chat

RENTALS = """
CREATE TABLE hirer (hirer_id INTEGER PRIMARY KEY, hirer_nm TEXT, loy_tier TEXT, tel_no TEXT, mbr_dt DATE);
CREATE TABLE xtra (xtra_cd TEXT PRIMARY KEY, xtra_desc TEXT, day_prc REAL);
CREATE TABLE rntl (rntl_id INTEGER PRIMARY KEY, hirer_id INTEGER REFERENCES hirer(hirer_id), pick_dt DATE, tot_amt REAL, copies INTEGER);
CREATE TABLE rntl_xtra (rntl_id INTEGER REFERENCES rntl(rntl_id), xtra_cd TEXT REFERENCES xtra(xtra_cd), amt REAL);
CREATE TABLE site (site_id INTEGER PRIMARY KEY, site_nm TEXT, spots INTEGER, pack TEXT, coating TEXT, wish TEXT);
CREATE TABLE staff (staff_id INTEGER PRIMARY KEY, staff_nm TEXT, hire_dt DATE);
CREATE TABLE cmpl (cmpl_id INTEGER PRIMARY KEY, hirer_id INTEGER REFERENCES hirer(hirer_id), handled_by INTEGER, cmpl_dt DATE);
INSERT INTO hirer VALUES (1,'Alder','gold','111','2015-01-01'),(2,'Birch',NULL,'222','2018-01-01'),(3,'Cedar','gold','333','2020-01-01');
INSERT INTO xtra VALUES ('A','Child seat',9),('B','Roof box',5),('C','Snow chains',7);
INSERT INTO rntl VALUES (1,1,'2024-01-01',400,1),(2,1,'2024-02-01',300,1),(3,2,'2024-03-01',500,1),(4,2,'2024-04-01',60,4);
INSERT INTO rntl_xtra VALUES (1,'B',100),(2,'B',80),(3,'A',90);
INSERT INTO site VALUES (1,'North',40,'keg 30 l',NULL,'quiet room'),(2,'South',90,'keg 50 l','matt','nut-free kitchen'),
  (3,'West',10,'can 2 l','gloss','quiet room'),(4,'East',20,'keg 30 l','matt','late lunch');
INSERT INTO staff VALUES (1,'Ana Lund','2019-05-05'),(2,'Bo Falk','2020-01-01'),(3,'Cy Moe','2021-03-01');
INSERT INTO cmpl VALUES (1,1,2,'2024-01-01'),(2,2,3,'2024-01-02'),(3,2,2,'2024-01-03');
"""
NAMES = {"Alder", "Birch", "Cedar", "Child seat", "Roof box", "Snow chains", "North", "South", "West", "East"}


@pytest.fixture
def rentals(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, RENTALS) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("Which extras cost more than 6 a day?", {"Child seat", "Snow chains"}),
        ("Which extra has brought in the most money?", {"Roof box"}),
        ("Extras that were never booked on any rental", {"Snow chains"}),
        ("Which site has the most parking spots?", {"South"}),
        ("Which sites have the nut-free kitchen?", {"South"}),
        ("Who has more than 1 rental?", {"Alder", "Birch"}),
        ("Which hirers have rentals adding up to more than 600?", {"Alder"}),
        ("Which hirers became members after 2016?", {"Birch", "Cedar"}),
    ],
)
def test_names_are_found_by_what_stands_beside_them(rentals: Chat, question: str, values: set[str]) -> None:
    said = rentals.ask(question)
    assert {cell for row in rentals.rows or [] for cell in row} & NAMES == values, said


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many sites take the 30 l keg?", {(2,)}),
        ("Which coatings are there?", {("matt",), ("gloss",)}),
        ("How many complaints has Bo Falk handled?", {(2,)}),
        ("How many hirers are there in each loyalty tier? Leave out those who have none.", {("gold", 2)}),
        ("How many rentals have 3 copies or more?", {(1,)}),
    ],
)
def test_rows_are_found_by_what_stands_beside_the_names(rentals: Chat, question: str, rows: set[tuple[object, ...]]) -> None:
    said = rentals.ask(question)
    assert {tuple(row) for row in rentals.rows or []} == rows, said


RECEIPTS = """
CREATE TABLE Receipt (ReceiptID INTEGER PRIMARY KEY, ReceiptNo TEXT, CarrierName TEXT, Cost REAL, Began DATE, Ended DATE, Status TEXT);
INSERT INTO Receipt VALUES (1,'R-10','Sable & Finch',5,'2019-01-01','2020-01-01','open'),
  (2,'R-20','Sable Lines',9,'2019-06-01',NULL,'closed'),(3,'R-30','Sable Lines',7,'2018-06-01','2021-01-01','closed'),
  (4,'R-40','Finch Rail',1,'2018-07-01',NULL,'closed');
"""


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("List the receipt numbers of Sable & Finch", {"R-10"}),
        ("Which receipt had the highest cost?", {"R-20"}),
        ("Receipt number of every receipt without an end date", {"R-20", "R-40"}),
        ("Receipt numbers of the receipts that have an end date", {"R-10", "R-30"}),
        ("状态为 open 的收据有哪些？", {"R-10"}),
        ("哪些收据是在 2019 年 1 月 1 日或之后开始的？", {"R-10", "R-20"}),
        ("哪些收据是2019年以后（含2019年）开始的？", {"R-10", "R-20"}),
    ],
)
def test_a_number_beside_a_key_a_firm_of_two_names_and_an_end_date(tmp_path: Path, question: str, values: set[str]) -> None:
    with sqlite_chat(tmp_path, RECEIPTS) as chat:
        said = chat.ask(question)
        assert {cell for row in chat.rows or [] for cell in row if str(cell).startswith("R-")} == values, said
