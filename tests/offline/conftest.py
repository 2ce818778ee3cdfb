"""Databases and a conversation loop for the analyst's tests: real SQLite and DuckDB files, the real tools."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from longtable.app.offline.model import BuiltInAnalyst
from longtable.graph.errors import DatabaseError
from longtable.tools.database import Database
from longtable.tools.toolset import database_tools

SHOP = """
CREATE TABLE town (town_id INTEGER PRIMARY KEY, town_name TEXT, country TEXT);
CREATE TABLE member (
  member_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, sex TEXT, birth_date DATE, town_id INTEGER REFERENCES town(town_id));
CREATE TABLE bike (bike_id INTEGER PRIMARY KEY, brand TEXT, price REAL, weight_kg REAL, electric TEXT, stock INTEGER);
CREATE TABLE rental (
  rental_id INTEGER PRIMARY KEY, member_id INTEGER REFERENCES member(member_id), bike_id INTEGER REFERENCES bike(bike_id),
  rental_date DATE, minutes INTEGER, fee REAL, returned_on DATE);
INSERT INTO town VALUES (1,'Lyon','France'),(2,'Porto','Portugal'),(3,'Ghent','Belgium');
INSERT INTO member VALUES
  (1,'Ana','Silva','F','1990-05-01',2),(2,'Luc','Petit','M','1975-02-11',1),
  (3,'Eva','Maes','F','2001-09-30',3),(4,'Rui','Costa','M','1988-12-24',2);
INSERT INTO bike VALUES (1,'Gazelle',900,17.5,'no',3),(2,'Trek',2400,21,'yes',0),(3,'Gazelle',1200,16,'no',5),(4,'Cube',3100,23.5,'yes',
  2);
INSERT INTO rental VALUES
  (1,1,1,'2021-03-02',60,6,'2021-03-02'),(2,1,2,'2021-03-20',30,9,'2021-03-20'),(3,2,1,'2021-04-05',120,12,'2021-04-06'),
  (4,3,3,'2022-01-15',45,5,'2022-01-15'),(5,1,4,'2022-03-08',90,20,NULL),(6,3,2,'2022-03-09',15,4.5,NULL);
"""
TRIPS = """
CREATE TABLE operator (code VARCHAR PRIMARY KEY, name VARCHAR);
CREATE TABLE harbour (hid VARCHAR PRIMARY KEY, name VARCHAR, depth INTEGER);
CREATE TABLE trip (
  year INTEGER, month INTEGER, day INTEGER, code VARCHAR REFERENCES operator(code), origin VARCHAR REFERENCES harbour(hid),
  dest VARCHAR,
  dep_delay INTEGER, arr_delay INTEGER, distance INTEGER, vessel VARCHAR);
INSERT INTO operator VALUES ('NS','North Star Lines'),('BW','Blue Wave Ferries');
INSERT INTO harbour VALUES ('AAR','Aarhus Port',9),('KIE','Kiel Port',11),('OSL','Oslo Port',14);
INSERT INTO trip VALUES
  (2020,1,1,'NS','AAR','KIE',5,2,200,'V1'),(2020,1,9,'BW','KIE','OSL',60,70,700,NULL),(2020,2,3,'NS','AAR','OSL',0,-4,450,'V2'),
  (2020,2,4,'NS','OSL','AAR',130,99,450,'V1'),(2020,3,5,'BW','KIE','AAR',NULL,NULL,200,'V3');
"""


@dataclass
class Chat:
    """A conversation with the analyst over real tools."""

    tools: dict[str, BaseTool]
    model: BuiltInAnalyst = field(default_factory=BuiltInAnalyst)
    messages: list[BaseMessage] = field(default_factory=lambda: [SystemMessage("You answer questions about a database.")])
    spoil: Callable[[ToolMessage], ToolMessage] = field(default=lambda message: message)
    rows: list[tuple[Any, ...]] | None = None

    def ask(self, question: str) -> str:
        """Run one turn; `rows` holds the last query's rows, None when no query ran."""
        self.messages.append(HumanMessage(question))
        self.rows = None
        for _ in range(12):
            answer = self.model.invoke(self.messages)
            self.messages.append(answer)
            if not answer.tool_calls:
                return str(answer.text)
            self.messages += [self.spoil(self.run(call["name"], call["args"], str(call["id"]))) for call in answer.tool_calls]
        raise AssertionError("no answer within 12 model calls")

    def run(self, name: str, args: dict[str, Any], call_id: str) -> ToolMessage:
        """Run one tool call as the graph would."""
        try:
            message = self.tools[name].invoke({"name": name, "args": args, "id": call_id, "type": "tool_call"})
        except DatabaseError as error:
            content = json.dumps({"error": {"class": error.code, "message": str(error)}})
            return ToolMessage(content, tool_call_id=call_id, name=name, status="error")
        assert isinstance(message, ToolMessage)
        if name == "run_sql":
            self.rows = list(message.artifact.rows)
        return message

    def calls(self) -> list[str]:
        """Return the names of the tools called in the newest turn."""
        start = max(place for place, message in enumerate(self.messages) if isinstance(message, HumanMessage))
        return [call["name"] for message in self.messages[start:] if isinstance(message, AIMessage) for call in message.tool_calls]


def chat_over(database: Database) -> Chat:
    """Return a conversation over an open database."""
    return Chat({tool.name: tool for tool in database_tools(database)})


@contextmanager
def sqlite_chat(folder: Path, script: str) -> Iterator[Chat]:
    """Yield a conversation over a new SQLite file that the script fills."""
    path = folder / "data.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    with Database.open(str(path)) as database:
        yield chat_over(database)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Chat]:
    with sqlite_chat(tmp_path, SHOP) as chat:
        yield chat


@pytest.fixture
def trips(tmp_path: Path) -> Iterator[Chat]:
    path = tmp_path / "trips.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TRIPS)
    with Database.open(str(path)) as database:
        yield chat_over(database)
