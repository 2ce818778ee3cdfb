"""Sums that no word asks for, groups told in passing, how often, what sold best, averages of how long."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.conftest import Chat, sqlite_chat

ORCHARD = """
CREATE TABLE picker (picker_id INTEGER PRIMARY KEY, picker_name TEXT, gender TEXT);
CREATE TABLE orchard (orchard_id INTEGER PRIMARY KEY, orchard_name TEXT, region TEXT, yearly_rent REAL);
CREATE TABLE picking (picking_id INTEGER PRIMARY KEY, picker_id INTEGER REFERENCES picker(picker_id),
  orchard_id INTEGER REFERENCES orchard(orchard_id), picked_on DATE, crates INTEGER, weight_kg REAL, hours REAL, variety TEXT);
CREATE TABLE stall (stall_id INTEGER PRIMARY KEY, stall_name TEXT, payment_days INTEGER);
CREATE TABLE product (product_id INTEGER PRIMARY KEY, product_name TEXT);
CREATE TABLE sale (sale_id INTEGER PRIMARY KEY, stall_id INTEGER REFERENCES stall(stall_id),
  product_id INTEGER REFERENCES product(product_id), sold_on DATE, weekday TEXT, quantity INTEGER, unit_price REAL, paid_amount REAL);
CREATE TABLE tour (tour_id INTEGER PRIMARY KEY, tour_name TEXT, village TEXT, min_age INTEGER, walking_minutes INTEGER, attendees INTEGER);
INSERT INTO picker VALUES (1,'Ada Lund','F'),(2,'Bo Falk','M'),(3,'Cy Moe','F');
INSERT INTO orchard VALUES (1,'Hill','North',500),(2,'Brook','North',300),(3,'Lane','South',200);
INSERT INTO picking VALUES (1,1,1,'2023-05-01',4,40,5,'plum'),(2,1,2,'2023-05-02',6,60,2,'pear'),(3,1,3,'2023-06-03',1,9,1,'plum'),
  (4,2,1,'2023-06-04',8,80,6,'plum'),(5,3,3,'2023-06-05',2,20,3,'pear');
INSERT INTO stall VALUES (1,'Gate',10),(2,'Quay',30);
INSERT INTO product VALUES (1,'Cider'),(2,'Jam');
INSERT INTO sale VALUES (1,1,1,'2023-07-01','Monday',1,9,9),(2,1,1,'2023-07-08','Monday',1,9,9),(3,2,2,'2023-08-01','Friday',7,2,14),
  (4,2,1,'2023-08-02','Monday',1,30,30);
INSERT INTO tour VALUES (1,'Dawn walk','Oke',7,90,12),(2,'Cellar walk','Oke',18,30,30),(3,'River walk','Elm',7,60,5);
"""


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, ORCHARD) as talk:
        yield talk


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        # an amount given for each is added up
        ("Crates picked per orchard", {("Hill", 12), ("Brook", 6), ("Lane", 3)}),
        ("kilos picked by variety, high to low", {("plum", 129), ("pear", 80)}),
        ("hours by picker", {("Ada Lund", 8), ("Bo Falk", 6), ("Cy Moe", 3)}),
        ("How many people came to our tours in each village?", {("Oke", 42), ("Elm", 5)}),
        ("how much have we paid every stall", {("Gate", 18), ("Quay", 44)}),
        ("Which month had the highest sales?", {("2023-08", 44)}),
        ("Who has put in the most hours?", {("Ada Lund", 8)}),
        ("Which product sold best?", {("Jam", 7)}),
        # counts by what is told in passing
        ("Pickings for each orchard and variety", {("Hill", "plum", 2), ("Brook", "pear", 1), ("Lane", "plum", 1), ("Lane", "pear", 1)}),
        ("pickers by gender", {("F", 2), ("M", 1)}),
        ("picker numbers by gender", {("F", 2), ("M", 1)}),
        ("Which weekday is the busiest for sales?", {("Monday", 3)}),
        ("number of pickings per orchard, only orchards with more than one", {("Hill", 2), ("Lane", 2)}),
        ("Who are our two biggest pickers by number of pickings?", {("Ada Lund", 3)}),
        # averages of how long
        ("how long does a tour take on average", {(60.0,)}),
        ("what's the typical quantity for every product?", {("Cider", 1.0), ("Jam", 7.0)}),
    ],
)
def test_what_is_given_for_each_is_added_up_counted_or_averaged(chat: Chat, question: str, rows: set[tuple[object, ...]]) -> None:
    said = chat.ask(question)
    assert chat.rows is not None, said
    for wanted in rows:
        assert any(set(wanted) <= set(row) for row in chat.rows), said


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which pickers have picked more than two times?", {"Ada Lund"}),
        ("pickers who picked three times or more", {"Ada Lund"}),
        ("Which stalls have racked up two or more sales?", {"Gate", "Quay"}),
        ("Which pickers have dealt with at least 2 orchards?", {"Ada Lund"}),
    ],
)
def test_how_often_is_a_number_of_rows(chat: Chat, question: str, names: set[str]) -> None:
    said = chat.ask(question)
    assert chat.rows is not None, said
    assert {cell for row in chat.rows for cell in row} & {"Ada Lund", "Bo Falk", "Cy Moe", "Gate", "Quay"} == names


def test_a_yearly_rent_is_given_per_year_already(chat: Chat) -> None:
    said = chat.ask("What do we pay in rent per year for all orchards together?")
    assert chat.rows == [(1000.0,)], said


def test_units_are_no_unit_price(chat: Chat) -> None:
    said = chat.ask("Units in the cellar for every product")
    assert chat.rows is None, said
