"""Databases and a conversation loop for the analyst's tests: real files, the real tools."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from longtable.analyst.model import BuiltInAnalyst
from longtable.app.demo import TABLES
from longtable.base.errors import DatabaseError
from longtable.tools.database import Database
from longtable.tools.toolset import database_tools

# Flights of the demo's schema. N1 made three, N2 and an unknown plane two each; N1 is no row of
# planes.
FLIGHTS = """
INSERT INTO airlines VALUES ('DL', 'Delta Air Lines Inc.'), ('UA', 'United Air Lines Inc.'), ('B6', 'JetBlue Airways');
INSERT INTO airports VALUES
  ('JFK', 'John F Kennedy Intl', 40.6, -73.8, 13, -5, 'A', 'America/New_York'),
  ('LGA', 'La Guardia', 40.8, -73.9, 22, -5, 'A', 'America/New_York'),
  ('ATL', 'Hartsfield Jackson Atlanta Intl', 33.6, -84.4, 1026, -5, 'A', 'America/New_York'),
  ('LAX', 'Los Angeles Intl', 33.9, -118.4, 126, -8, 'A', 'America/Los_Angeles'),
  ('ZTY', 'Boston Back Bay Station', 42.3, -71.1, 20, -5, 'A', 'America/New_York');
INSERT INTO planes VALUES
  ('N2', 2004, 'Fixed wing multi engine', 'BOEING', '737', 2, 149, NULL, 'Turbo-fan'),
  ('N3', 2012, 'Fixed wing multi engine', 'AIRBUS', 'A320', 2, 182, NULL, 'Turbo-fan');
INSERT INTO weather VALUES
  ('JFK', 2013, 1, 1, 5, 39.0, 28.0, 64.4, 270, 12.6, NULL, 0.0, 1012.0, 10.0, '2013-01-01 05:00'),
  ('LGA', 2013, 7, 1, 5, 80.0, 70.0, 70.0, 200, 8.0, NULL, 1.2, 1008.0, 4.0, '2013-07-01 05:00');
INSERT INTO flights VALUES
  (2013, 1, 1, 517, 515, 2, 830, 819, 11, 'DL', 101, 'N1', 'JFK', 'ATL', 120, 760, 5, 15, '2013-01-01 05:00'),
  (2013, 1, 2, 533, 529, 4, 850, 830, 20, 'DL', 102, 'N1', 'LGA', 'ATL', 121, 762, 5, 29, '2013-01-02 05:00'),
  (2013, 7, 1, 900, 600, 180, 1200, 900, 200, 'UA', 201, 'N1', 'JFK', 'LAX', 330, 2475, 6, 0, '2013-07-01 06:00'),
  (2013, 7, 4, 1010, 600, 250, 1300, 905, 240, 'UA', 202, 'N2', 'JFK', 'LAX', 331, 2475, 6, 0, '2013-07-04 06:00'),
  (2013, 7, 9, 555, 600, -5, 850, 900, -10, 'B6', 301, 'N2', 'JFK', 'LAX', 329, 2475, 6, 0, '2013-07-09 06:00'),
  (2013, 3, 5, 601, 600, 1, 900, 905, -5, 'B6', 302, NULL, 'JFK', 'BQN', 190, 1576, 6, 0, '2013-03-05 06:00'),
  (2013, 3, 6, NULL, 600, NULL, NULL, 905, NULL, 'B6', 303, NULL, 'JFK', 'BQN', NULL, 1576, 6, 0, '2013-03-06 06:00'),
  (2013, 4, 6, 605, 600, 5, 900, 905, -5, 'B6', 304, 'N3', 'JFK', 'BQN', 191, 1576, 6, 0, '2013-04-06 06:00');
"""
SHOP = """
CREATE TABLE artist (artist_id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE album (album_id INTEGER PRIMARY KEY, title TEXT, artist_id INTEGER REFERENCES artist(artist_id));
CREATE TABLE genre (genre_id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE track (
  track_id INTEGER PRIMARY KEY, name TEXT, album_id INTEGER REFERENCES album(album_id), genre_id INTEGER REFERENCES genre(genre_id),
  composer TEXT, milliseconds INTEGER, unit_price REAL);
CREATE TABLE employee (
  employee_id INTEGER PRIMARY KEY, last_name TEXT, first_name TEXT, reports_to INTEGER REFERENCES employee(employee_id),
  birth_date DATE, hire_date DATE);
CREATE TABLE customer (
  customer_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, city TEXT, country TEXT, email TEXT,
  support_rep_id INTEGER REFERENCES employee(employee_id));
CREATE TABLE invoice (
  invoice_id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer(customer_id), invoice_date DATE,
  billing_country TEXT, total REAL);
INSERT INTO artist VALUES (1, 'AC/DC'), (2, 'Accept'), (3, 'Nobody');
INSERT INTO album VALUES (1, 'Let There Be Rock', 1), (2, 'Restless', 2), (3, 'High Voltage', 1);
INSERT INTO genre VALUES (1, 'Rock'), (2, 'Jazz');
INSERT INTO track VALUES
  (1, 'Go Down', 1, 1, 'AC/DC', 331180, 0.99), (2, 'Overdose', 1, 1, NULL, 369319, 0.99), (3, 'Restless', 2, 2, 'Accept', 252051, 1.29),
  (4, 'T.N.T.', 3, 1, 'AC/DC', 214000, 0.99);
INSERT INTO employee VALUES
  (1, 'Adams', 'Andrew', NULL, '1962-02-18', '2002-08-14'), (2, 'Peacock', 'Jane', 1, '1973-08-29', '2004-04-01');
INSERT INTO customer VALUES
  (1, 'Luis', 'Rojas', 'Santiago', 'Chile', 'l@x.cl', 2), (2, 'Leonie', 'Kohler', 'Wien', 'Austria', NULL, 2),
  (3, 'Astrid', 'Gruber', 'Wien', 'Austria', 'a@x.at', 1);
INSERT INTO invoice VALUES
  (1, 1, '2021-01-01', 'Chile', 10.0), (2, 1, '2021-03-01', 'Chile', 5.0),
  (3, 2, '2022-03-02', 'Austria', 7.0), (4, 3, '2022-05-02', 'Austria', 30.0);
"""


@dataclass
class Chat:
    """A conversation with the analyst over real tools."""

    tools: dict[str, BaseTool]
    model: BuiltInAnalyst = field(default_factory=BuiltInAnalyst)
    messages: list[BaseMessage] = field(
        default_factory=lambda: [SystemMessage("You answer questions about a database.")]
    )
    rows: list[tuple[Any, ...]] | None = None
    sql: str = ""

    def ask(self, question: str, *, again: bool = False) -> str:
        """Run one turn; `rows` holds the last query's rows, None when no query ran. `again`: in a
        conversation of its own.
        """
        if again:
            self.messages = self.messages[:1]
        self.messages.append(HumanMessage(question))
        self.rows, self.sql = None, ""
        for _ in range(12):
            answer = self.model.invoke(self.messages)
            self.messages.append(answer)
            if not answer.tool_calls:
                return str(answer.text)
            self.messages += [
                self.run(call["name"], call["args"], str(call["id"])) for call in answer.tool_calls
            ]
        raise AssertionError("no answer within 12 model calls")

    def run(self, name: str, args: dict[str, Any], call_id: str) -> ToolMessage:
        """Run one tool call as the graph would."""
        try:
            message = self.tools[name].invoke(
                {"name": name, "args": args, "id": call_id, "type": "tool_call"}
            )
        except DatabaseError as error:
            content = json.dumps({"error": {"class": error.code, "message": str(error)}})
            return ToolMessage(content, tool_call_id=call_id, name=name, status="error")
        assert isinstance(message, ToolMessage)
        if name == "run_sql":
            self.rows, self.sql = list(message.artifact.rows), args["sql"]
        return message

    def calls(self) -> list[str]:
        """Return the names of the tools called in the newest turn."""
        start = max(
            place
            for place, message in enumerate(self.messages)
            if isinstance(message, HumanMessage)
        )
        return [
            call["name"]
            for message in self.messages[start:]
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        ]


def holds(rows: Sequence[Sequence[Any]] | None, wanted: Sequence[Sequence[Any]]) -> bool:
    """Return whether there are as many rows as wanted, and each wanted one's values stand in a row
    of its own.
    """
    if rows is None or len(rows) != len(wanted):
        return False
    left = [[str(cell) for cell in row] for row in rows]
    for want in wanted:
        found = next((row for row in left if all(str(value) in row for value in want)), None)
        if found is None:
            return False
        left.remove(found)
    return True


@pytest.fixture(scope="session")
def flights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flights") / "flights.duckdb"
    with duckdb.connect(str(path)) as connection:
        for table in TABLES:
            connection.execute(table.create_sql())
            for statement in table.comment_sql():
                connection.execute(statement)
        connection.execute(FLIGHTS)
    return path


@pytest.fixture(scope="session")
def shop_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SHOP)
    return path


def _chat(path: Path) -> Iterator[Chat]:
    """Open a chat about a database file, or about a file or folder of data."""
    with Database.open(str(path)) as database:
        yield Chat({tool.name: tool for tool in database_tools(database)})


chat_about = contextmanager(_chat)


@pytest.fixture
def flights(flights_file: Path) -> Iterator[Chat]:
    yield from _chat(flights_file)


@pytest.fixture
def shop(shop_file: Path) -> Iterator[Chat]:
    yield from _chat(shop_file)
