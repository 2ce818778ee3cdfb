"""Words that a column of a table nobody named would meet by chance, prices per a unit, denied lists, each of one kind of people."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.conftest import Chat, sqlite_chat

STUDIO = """
CREATE TABLE person (person_id INTEGER PRIMARY KEY, full_name TEXT, job TEXT, hourly_rate REAL, born DATE, country TEXT,
  start_year INTEGER);
CREATE TABLE kiln (kiln_id INTEGER PRIMARY KEY, kiln_name TEXT, capacity INTEGER, opened DATE);
CREATE TABLE glaze (glaze_cd TEXT PRIMARY KEY, glaze_name TEXT, maker TEXT, food_safe TEXT, litre_cost REAL, storage_days INTEGER, kind
  TEXT, launched INTEGER);
CREATE TABLE piece (piece_id INTEGER PRIMARY KEY, model TEXT, glaze_cd TEXT REFERENCES glaze(glaze_cd),
  potter INTEGER REFERENCES person(person_id), fired_date DATE, weight REAL, stage TEXT, glaze_count INTEGER, price REAL,
  kiln_id INTEGER REFERENCES kiln(kiln_id));
CREATE TABLE batch (batch_id INTEGER PRIMARY KEY, batch_number TEXT);
CREATE TABLE firing (firing_id INTEGER PRIMARY KEY, kiln_id INTEGER REFERENCES kiln(kiln_id),
  person_id INTEGER REFERENCES person(person_id), batch_id INTEGER REFERENCES batch(batch_id), fired_on DATE, hours REAL, remark TEXT);
INSERT INTO person VALUES (1,'Ada Lund','kiln operator',20,'1980-02-03','Norway',2001),(2,'Bo Falk','potter',25,'1990-05-06','Sweden',2002),
  (3,'Cy Moe','kiln operator',21,'1985-01-01','Norway',2003),
  (4,'Di Poe','packer',15,'1999-09-09','Denmark',2004),
  (5,'Ed Ray','packer',15,'1998-08-08','Italy',2005);
INSERT INTO kiln VALUES (1,'Old',9,'1999-01-01'),(2,'New',40,'2020-01-01');
INSERT INTO glaze VALUES ('A','Ash','Kama','yes',7,30,'matt',2001),('B','Bone','Kama','no',5,90,'gloss',2002),
  ('C','Clay','Rill','yes',9,10,'gloss',2003);
INSERT INTO piece VALUES (1,'Jug','A',2,'2023-03-04',2,'sold',2,50,1),(2,'Mug','B',2,'2024-05-06',1,'sold',1,20,2),
  (3,'Vase','A',2,'2024-07-08',3,'shelf',2,80,2);
INSERT INTO batch VALUES (1,'X-7'),(2,'Y-8');
INSERT INTO firing VALUES (1,1,1,1,'2024-01-02',8,'cracked'),(2,2,1,2,'2024-02-03',9,'fine'),(3,2,3,2,'2024-02-04',4,'fine');
"""


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, STUDIO) as talk:
        yield talk


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("Total weight of the sold pieces per fired year", {(2023, 2), (2024, 1)}),
        ("List all kiln operators, along with their date of birth", {("Ada Lund", "1980-02-03"), ("Cy Moe", "1985-01-01")}),
        ("How many people are not potters?", {(4,)}),
        ("Show all Kama glazes with litre cost", {("Ash", 7), ("Bone", 5)}),
        ("Pieces fired in 2024, counted by stage", {("sold", 1), ("shelf", 1)}),
        ("How many people live outside Norway, Sweden and Denmark?", {(1,)}),
        ("Which glaze is the cheapest per litre?", {("B", "Bone", 5)}),
        ("Which glaze keeps longest in storage, and for how many days?", {("B", "Bone", 90)}),
        ("Which kiln has been open the longest?", {(1, "Old", "1999-01-01")}),
        ("Which kiln holds the most people?", {(2, "New", 40)}),
        ("How many hours did people put in during February 2024?", {(13,)}),
        ("count the firings done by each kiln operator", {(1, "Ada Lund", 2), (3, "Cy Moe", 1)}),
        ("I need the batch number and fired date for each firing with the remark 'cracked'", {(1, "X-7", "2024-01-02")}),
    ],
)
def test_a_column_of_a_table_nobody_named_gives_way(chat: Chat, question: str, rows: set[tuple[object, ...]]) -> None:
    said = chat.ask(question)
    assert chat.rows is not None, said
    assert len(chat.rows) == len(rows), said
    assert all(any(set(wanted) <= set(row) for row in chat.rows) for wanted in rows), said
