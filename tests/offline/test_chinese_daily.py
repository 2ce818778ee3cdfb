"""Ask the built-in analyst in Chinese about a boatyard and the jobs it takes: words of everyday trades, and the phrases around them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.conftest import Chat, sqlite_chat

YARD = """
CREATE TABLE depot (depot_id INTEGER PRIMARY KEY, depot_name TEXT, state TEXT, storage_capacity INTEGER);
CREATE TABLE boat (boat_id INTEGER PRIMARY KEY, boat_name TEXT, boat_owner TEXT, depot_id INTEGER REFERENCES depot(depot_id));
CREATE TABLE job_type (job_type_id INTEGER PRIMARY KEY, description TEXT, callout_fee REAL);
CREATE TABLE job (job_id INTEGER PRIMARY KEY, boat_id INTEGER REFERENCES boat(boat_id), job_type_id INTEGER,
  booked_on DATE, done_on DATE, net_amount REAL, payment_method TEXT, voucher_code TEXT,
  FOREIGN KEY(job_type_id) REFERENCES job_type(job_type_id));
INSERT INTO depot VALUES (1,'Quayside','VIC',900),(2,'Riverbend','VIC',400),(3,'Hillcrest','NSW',650);
INSERT INTO boat VALUES (1,'Heron','Ada Brandt',1),(2,'Gannet','Per Holm',1),(3,'Teal','Ada Brandt',2);
INSERT INTO job_type VALUES (1,'Hull wash',40),(2,'Engine check',95);
INSERT INTO job VALUES (1,1,1,'2023-12-20','2024-01-04',120,'cash',NULL),(2,2,2,'2024-02-01','2024-02-09',310,'card','SUN5'),
  (3,1,2,'2024-12-28','2025-01-03',80,'cash',NULL);
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, YARD) as chat:
        yield chat


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("储存容量最大的站点叫什么名字？", {"Quayside"}),
        ("每个州有多少个站点？", {"VIC", 2, "NSW", 1}),
        ("每位船主各有多少艘船？", {"Ada Brandt", 2, "Per Holm", 1}),
        ("每个站点的储存容量是多少？", {"Quayside", 900, "Riverbend", 400, "Hillcrest", 650}),
        ("上门费最高的工作类型是什么？", {"Engine check", 95}),
        ("2024年完成了多少个工单？", {2}),
        ("用cash付款的工单净额一共是多少？", {200}),
        ("每种支付方式有多少个工单？", {"cash", 2, "card", 1}),
    ],
)
def test_words_of_everyday_trades_are_read(yard: Chat, question: str, expected: set[object]) -> None:
    answer = yard.ask(question)
    assert expected <= {value for row in yard.rows or [] for value in row}, answer
