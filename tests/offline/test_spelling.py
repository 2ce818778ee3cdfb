"""Abbreviations that no table of them explains: the question's own words spell them out, for the whole schema."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.offline.spelling import misfit
from tests.offline.conftest import Chat, sqlite_chat

GREENHOUSE = """
CREATE TABLE grwr (grwr_id INTEGER PRIMARY KEY, grwr_nm TEXT, fl_srchg REAL);
CREATE TABLE plt_grp (grp_cd TEXT PRIMARY KEY, grp_nm TEXT);
CREATE TABLE plt (plt_id INTEGER PRIMARY KEY, plt_nm TEXT, grp_cd TEXT REFERENCES plt_grp(grp_cd), grwr_id INTEGER REFERENCES grwr(grwr_id),
  sale_prc REAL, ld_dys INTEGER, crdt_lmt REAL);
CREATE TABLE PART_MSTR (PART_NO TEXT PRIMARY KEY, PART_DESC TEXT, BIN TEXT);
INSERT INTO grwr VALUES (1,'Vale',4.5),(2,'Moss',6.0);
INSERT INTO plt_grp VALUES ('T','Tree'),('H','Herb');
INSERT INTO plt VALUES (1,'Rubber Plant','T',1,30,9,100),(2,'Mint','H',2,4,2,200),(3,'Sage','H',2,5,41,300);
INSERT INTO PART_MSTR VALUES ('P1','Washer','A4'),('P2','Gasket','B1');
"""


@pytest.fixture
def greenhouse(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, GREENHOUSE) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many different plants do we sell?", [(3,)]),
        ("Which plant is the most expensive?", [("Rubber Plant",)]),
        ("How many plants are there in each group?", [("Tree", 1), ("Herb", 2)]),
        ("Which plants have lead days over 40?", [("Sage",)]),
        ("What is the fuel surcharge of Moss?", [(6.0,)]),
        ("What is the average credit limit?", [(200.0,)]),
        ("Which part is in bin B1?", [("Gasket",)]),
    ],
)
def test_the_words_of_a_question_spell_the_schema_out(greenhouse: Chat, question: str, rows: list[tuple[object, ...]]) -> None:
    said = greenhouse.ask(question)
    assert greenhouse.rows is not None, said
    assert len(greenhouse.rows) == len(rows), said
    assert all(any(set(row) <= set(other) for other in greenhouse.rows) for row in rows), said


def test_an_answer_says_the_word_of_the_question(greenhouse: Chat) -> None:
    assert "3 plants" in greenhouse.ask("How many plants are there?")


@pytest.mark.parametrize(("word", "short", "close"), [
    ("plant", "plt", True), ("buyer", "buyr", True), ("credit", "crdt", True), ("homework", "home", False), ("capacity", "city", False),
    ("starting", "stat", False), ("plant", "plc", False),
])  # fmt: skip
def test_letters_tell_which_word_they_abbreviate(word: str, short: str, close: bool) -> None:
    assert (misfit(word, short) <= 0.45) is close


DEPOT = """
CREATE TABLE CUSTMAST (CUSTNO INTEGER PRIMARY KEY, CUSTNAME TEXT, CUSTCITY TEXT, CREDLIM REAL);
CREATE TABLE SLSREP (REPNO INTEGER PRIMARY KEY, REPNAME TEXT, HIREDT DATE);
CREATE TABLE ORDHDR (ORDNO INTEGER PRIMARY KEY, CUSTNO INTEGER REFERENCES CUSTMAST(CUSTNO), REPNO INTEGER REFERENCES SLSREP(REPNO),
  ORDDATE DATE, ORDSTAT TEXT, CURR TEXT);
CREATE TABLE ORDDTL (ORDNO INTEGER REFERENCES ORDHDR(ORDNO), LINENO INTEGER, ORDQTY INTEGER, LINEAMT REAL, PRIMARY KEY (ORDNO, LINENO));
INSERT INTO CUSTMAST VALUES (1,'Carr','Toledo',500),(2,'Erie','Akron',900);
INSERT INTO SLSREP VALUES (1,'Vera','2010-01-01'),(2,'Walt','2020-01-01');
INSERT INTO ORDHDR VALUES (7,1,1,'2023-02-01','HOLD','USD'),(8,1,1,'2023-03-01','OPEN','EUR'),(9,2,1,'2024-03-01','OPEN','EUR');
INSERT INTO ORDDTL VALUES (7,1,3,30),(7,2,1,5),(8,1,4,40),(9,1,2,20);
"""


@pytest.fixture
def depot(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, DEPOT) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Which customers are in Toledo?", [("Carr",)]),
        ("Credit limit of Erie", [(900.0,)]),
        ("Which sales rep has no orders?", [("Walt",)]),
        ("Names of sales reps and when they were hired", [("Vera", "2010-01-01"), ("Walt", "2020-01-01")]),
        ("How many orders are on hold?", [(1,)]),
        ("How many orders in EUR were placed in 2023?", [(1,)]),
        ("Total line amount by month in 2023", [("2023-02", 35.0), ("2023-03", 40.0)]),
    ],
)
def test_names_written_together_are_cut_into_their_words(depot: Chat, question: str, rows: list[tuple[object, ...]]) -> None:
    said = depot.ask(question)
    assert depot.rows is not None, said
    assert len(depot.rows) == len(rows), said
    assert all(any(set(row) <= set(other) for other in depot.rows) for row in rows), said


def test_the_first_three_by_what_nothing_measures_are_no_answer(depot: Chat) -> None:
    said = depot.ask("top 1 customers by miles")
    assert depot.rows is None, said
