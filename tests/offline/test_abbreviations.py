"""Names as companies abbreviate them: the analyst reads VENUE_NM, perf_dt and CAP_M3D as people say them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.offline.text import likeness, split_name
from tests.offline.conftest import Chat, sqlite_chat

YARD = """
CREATE TABLE EMP (EMP_ID INTEGER PRIMARY KEY, EMP_NM TEXT, HIRE_DT DATE, SUPV_ID INTEGER REFERENCES EMP(EMP_ID));
CREATE TABLE HALL (HALL_CD TEXT PRIMARY KEY, HALL_NM TEXT, TWN TEXT, SEAT_CAP INTEGER, HEATED_YN CHAR(1));
CREATE TABLE BKG (BKG_NO INTEGER PRIMARY KEY, HALL_CD TEXT REFERENCES HALL(HALL_CD), EMP_ID INTEGER REFERENCES EMP(EMP_ID), BKG_DT DATE,
  QTY INTEGER, AMT_EUR REAL, PAY_METH TEXT, DUE_DT DATE, PAID_DT DATE);
INSERT INTO EMP VALUES (1,'Ida Holm','2015-03-01',NULL),(2,'Jon Berg','2019-06-01',1),(3,'Kim Dahl','2012-01-15',1);
INSERT INTO HALL VALUES ('A','North Hall','Ghent',120,'Y'),('B','Mill','Ghent',60,'N'),('C','Barn','Bruges',300,'N');
INSERT INTO BKG VALUES (1,'A',2,'2023-02-01',10,250.0,'cash','2023-03-01','2023-03-05'),
  (2,'A',2,'2024-02-01',3,75.0,'card','2024-03-01','2024-02-20'),(3,'B',3,'2024-05-01',4,100.0,'cash','2024-06-01',NULL);
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, YARD) as chat:
        yield chat


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("perf_dt", ("perf", "date")),
        ("CAP_M3D", ("capacity", "m3")),
        ("AREA_KM2", ("area", "sqkm")),
        ("mthPay", ("month", "pay")),
        ("LST_NM", ("last", "name")),
        ("order_no", ("order", "no")),
    ],
)
def test_abbreviations_are_spelled_out(name: str, words: tuple[str, ...]) -> None:
    assert split_name(name) == words


@pytest.mark.parametrize(("word", "short"), [("production", "prod"), ("product", "prod"), ("director", "dir"), ("client", "clnt")])
def test_what_has_several_readings_is_found_by_each(word: str, short: str) -> None:
    assert likeness(word, short) >= 0.9


def test_three_consonants_abbreviate_what_begins_and_ends_like_them() -> None:
    assert likeness("hearings", "hrg") >= 0.8
    assert not likeness("heritage", "hrg")
    assert not likeness("housing", "hrg")


@pytest.mark.parametrize(("word", "short"), [("pickups", "pkup"), ("contamination", "cntm"), ("complaint", "cmplt")])
def test_a_word_is_known_by_the_letters_that_are_left_of_it(word: str, short: str) -> None:
    assert likeness(word, short) >= 0.9
    assert not likeness("staffing", "sting")


@pytest.mark.parametrize(
    ("question", "cells"),
    [
        ("Which employee was hired first?", ["Kim Dahl"]),
        ("Who reports to Ida Holm?", ["Jon Berg", "Kim Dahl"]),
        ("List the halls in Ghent and how many seats each has", ["North Hall", "120", "Mill", "60"]),
        ("Which halls have no booking?", ["Barn"]),
        ("How many tickets were booked in 2024?", ["7"]),
        ("Total amount by payment method", ["cash", "350.0", "card", "75.0"]),
        ("How many bookings were paid after the due date?", ["1"]),
        ("What is the average amount of cash bookings compared with card bookings?", ["cash", "175.0", "card", "75.0"]),
        ("Which halls are heated?", ["North Hall"]),
        ("How many bookings were paid late?", ["1"]),
        ("Total tickets booked by employee", ["Jon Berg", "13", "Kim Dahl", "4"]),
        ("哪位员工入职最早?", ["Kim Dahl"]),
        ("用现金付款的订单一共有多少笔,总金额是多少?", ["2", "350.0"]),
    ],
)
def test_a_question_in_plain_words_finds_its_columns(yard: Chat, question: str, cells: list[str]) -> None:
    answer = yard.ask(question)
    shown = [str(cell) for row in yard.rows or [] for cell in row]
    assert set(cells) <= set(shown), answer
    assert len(yard.rows or []) <= len(cells), answer


@pytest.mark.parametrize("question", ["Which employees are still ill?", "List the halls no longer insured"])
def test_what_nothing_records_is_declined(yard: Chat, question: str) -> None:
    answer = yard.ask(question)
    assert yard.rows is None, answer
