"""Questions as people put them: courtesies, dates in words, states of two words, flags, what a value is called in the plural."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.offline.phrasing import plainly
from tests.offline.conftest import Chat, sqlite_chat

LETTINGS = """
CREATE TABLE owner (owner_id INTEGER PRIMARY KEY, owner_name TEXT, joined_on DATE);
CREATE TABLE flat (flat_no INTEGER PRIMARY KEY, flat_name TEXT, owner_id INTEGER REFERENCES owner(owner_id), state TEXT, is_3d TEXT,
  hd_cnt INTEGER, built_dt DATE, has_lift TEXT, monthly_rent REAL);
CREATE TABLE viewing (v_no INTEGER PRIMARY KEY, flat_no INTEGER REFERENCES flat(flat_no), viewed_on DATE, guests INTEGER);
CREATE TABLE tank (tank_no INTEGER PRIMARY KEY, oil_left INTEGER, min_oil INTEGER, filled_on DATE, due_on DATE);
INSERT INTO tank VALUES (1,10,40,'2024-01-05','2024-01-03'),(2,90,40,'2024-02-01','2024-02-09');
CREATE TABLE checkup (chk_no INTEGER PRIMARY KEY, flat_no INTEGER REFERENCES flat(flat_no), chk_dt DATE, result TEXT, amt_due REAL);
INSERT INTO owner VALUES (1,'Ada Lund','2012-05-01'),(2,'Bo Falk','2019-07-15'),(3,'Cy Moe','2021-01-02');
INSERT INTO flat VALUES (1,'Alder',1,'in use','Y',4,'2001-04-01','yes',900),(2,'Birch',1,'on hold','N',2,'2010-09-15','no',700),
  (3,'Cedar',2,'in use','N',7,'2015-06-30','yes',1200);
INSERT INTO viewing VALUES (1,1,'2024-02-01',2),(2,3,'2024-02-03',1),(3,3,'2024-03-03',4);
INSERT INTO checkup VALUES (1,1,'2023-01-10','pass',10.5),(2,2,'2024-03-05','fail',20),(3,3,'2024-03-25','pass',5);
"""


@pytest.fixture
def lettings(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, LETTINGS) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("hired after January 1st, 2015", "hired after 2015-01-01"),
        ("hired between 1 January and 30 June 2024", "hired between 2024-01-01 and 2024-06-30"),
        ("paid on 31/12/2024", "paid on 2024-12-31"),
        ("paid on 03/12/2024", "paid on 03/12/2024"),  # March or December: nobody knows
        ("without a single order", "without any order"),
        ("the price of a single room", "the price of a single room"),
        ("orders month by month", "orders per month"),
    ],
)
def test_phrases_are_put_plainly(question: str, plain: str) -> None:
    assert plainly(question) == plain


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("How many flats are on hold?", {1}),
        ("Names of the in-use flats please", {"Alder", "Cedar"}),
        ("How many 3D flats are there?", {1}),
        ("Which flat has the highest headcount?", {"Cedar"}),
        ("How many failed checkups were there?", {1}),
        ("Number of flats for each owner", {2, 1}),
        ("Which flats were built between 1 January 2005 and December 31, 2012? I'd like their names.", {"Birch"}),
        ("Which owners haven't got a single flat?", {"Cy Moe"}),
        ("Which owners have at least 2 flats, and how many does each have?", {"Ada Lund", 2}),
        ("Owners with at least 1 flat and the number of flats of each", {"Ada Lund", 2, "Bo Falk", 1}),
        ("Flat names without a lift that cost less than 800 a month", {"Birch"}),
        ("Show the flat with the highest monthly rent: name and rent", {"Cedar", 1200}),
        ("Total amount of the passed checkups", {15.5}),
        ("Most viewed flat", {"Cedar"}),
        ("Which flat was viewed most?", {"Cedar"}),
        ("Tanks whose oil left has fallen below their minimum oil", {1}),
        ("Which tanks were filled after their due date?", {1}),
        ("Flat numbers of all flats on hold", {2}),
        ("Which owners have flats with more rent than the average flat?", {"Bo Falk"}),
    ],
)
def test_they_are_answered(lettings: Chat, question: str, values: set[object]) -> None:
    answer = lettings.ask(question)
    assert values <= {cell for row in lettings.rows or [] for cell in row}, answer


def test_a_plural_is_no_part_of_a_longer_value(tmp_path: Path) -> None:
    script = """CREATE TABLE hrg (id INTEGER PRIMARY KEY, kind TEXT, stat TEXT);
        INSERT INTO hrg VALUES (1,'case management','on hold'),(2,'trial','on hold'),(3,'trial','held');"""
    with sqlite_chat(tmp_path, script) as chat:
        assert "cases" in chat.ask("How many cases are on hold?")
        assert chat.rows is None
        chat.ask("How many hearings are on hold?")
        assert chat.rows == [(2,)]
