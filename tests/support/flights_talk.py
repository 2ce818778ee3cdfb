"""Sixty turns over the flights data, each with the SQL that checks its answer against DuckDB
directly.

`sql` gives the rows the answer's query must return; None where the answer comes from memory: then
`recalls` names the earlier turn (from 1) whose figure must be in the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longtable.base.events import QueryFinished


@dataclass(frozen=True)
class Turn:
    """One question and what its answer is held against."""

    question: str
    sql: str | None
    recalls: int = 0


def _count(where: str = "TRUE") -> str:
    return f"SELECT count(*) FROM flights WHERE {where}"


TALK: tuple[Turn, ...] = (
    Turn("How many flights are there?", _count()),
    Turn("How many flights left JFK in January?", _count("origin = 'JFK' AND month = 1")),
    Turn("and in February?", _count("origin = 'JFK' AND month = 2")),
    Turn("How many airlines are there?", "SELECT count(*) FROM airlines"),
    Turn("What is the average departure delay?", "SELECT avg(dep_delay) FROM flights"),
    Turn("and the maximum?", "SELECT max(dep_delay) FROM flights"),
    Turn("How many flights per month?", "SELECT month, count(*) FROM flights GROUP BY month"),
    Turn(
        "Which carrier has the most flights?",
        "SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY 2 DESC LIMIT 1",
    ),
    Turn(
        "What are the top 5 destinations by number of flights?",
        "SELECT dest, count(*) FROM flights GROUP BY dest ORDER BY 2 DESC LIMIT 5",
    ),
    Turn(
        "How many planes were made by BOEING?",
        "SELECT count(*) FROM planes WHERE manufacturer = 'BOEING'",
    ),
    Turn("How about AIRBUS?", "SELECT count(*) FROM planes WHERE manufacturer = 'AIRBUS'"),
    Turn("What is the longest distance of a flight?", "SELECT max(distance) FROM flights"),
    Turn("How many flights have no tail number?", _count("tailnum IS NULL")),
    Turn("二月有多少航班？", _count("month = 2")),
    Turn(
        "每个航空公司的平均出发延误是多少？",
        "SELECT carrier, avg(dep_delay) FROM flights GROUP BY carrier",
    ),
    Turn("How many airports are there?", "SELECT count(*) FROM airports"),
    Turn("What is the highest altitude of an airport?", "SELECT max(alt) FROM airports"),
    Turn("How many flights went to LAX?", _count("dest = 'LAX'")),
    Turn("and to SFO?", _count("dest = 'SFO'")),
    Turn(
        "What is the average air time of flights to LAX?",
        "SELECT avg(air_time) FROM flights WHERE dest = 'LAX'",
    ),
    Turn("How many flights have a departure delay over 60?", _count("dep_delay > 60")),
    Turn("only those from EWR", _count("dep_delay > 60 AND origin = 'EWR'")),
    Turn(
        "What is the average arrival delay per origin?",
        "SELECT origin, avg(arr_delay) FROM flights GROUP BY origin",
    ),
    Turn(
        "How many planes have more than 300 seats?", "SELECT count(*) FROM planes WHERE seats > 300"
    ),
    Turn(
        "What is the average number of seats of planes made by EMBRAER?",
        "SELECT avg(seats) FROM planes WHERE manufacturer = 'EMBRAER'",
    ),
    Turn("How many manufacturers are there?", "SELECT count(DISTINCT manufacturer) FROM planes"),
    Turn("What is the total distance of all flights?", "SELECT sum(distance) FROM flights"),
    Turn("How many flights left in December?", _count("month = 12")),
    Turn("and from LGA?", _count("month = 12 AND origin = 'LGA'")),
    Turn(
        "Which month has the most flights?",
        "SELECT month, count(*) FROM flights GROUP BY month ORDER BY 2 DESC LIMIT 1",
    ),
    Turn("How many flights did carrier UA have?", _count("carrier = 'UA'")),
    Turn("same for DL", _count("carrier = 'DL'")),
    Turn("What is the lowest temperature in the weather table?", "SELECT min(temp) FROM weather"),
    Turn(
        "What is the average wind speed per origin?",
        "SELECT origin, avg(wind_speed) FROM weather GROUP BY origin",
    ),
    Turn("How many planes were made in 2004?", "SELECT count(*) FROM planes WHERE year = 2004"),
    Turn("and in 2005?", "SELECT count(*) FROM planes WHERE year = 2005"),
    Turn("How many flights were longer than 2000 miles?", _count("distance > 2000")),
    Turn("What is the shortest distance of a flight?", "SELECT min(distance) FROM flights"),
    Turn("三月从JFK出发的航班有多少？", _count("month = 3 AND origin = 'JFK'")),
    Turn("How many different destinations are there?", "SELECT count(DISTINCT dest) FROM flights"),
    Turn("How many flights went to ORD?", _count("dest = 'ORD'")),
    Turn(
        "What is the average distance per carrier?",
        "SELECT carrier, avg(distance) FROM flights GROUP BY carrier",
    ),
    Turn(
        "How many flights were there in July from JFK to LAX?",
        _count("month = 7 AND origin = 'JFK' AND dest = 'LAX'"),
    ),
    Turn(
        "How many airports have an altitude above 5000?",
        "SELECT count(*) FROM airports WHERE alt > 5000",
    ),
    Turn("What is the maximum number of engines of a plane?", "SELECT max(engines) FROM planes"),
    Turn("How many planes have 4 engines?", "SELECT count(*) FROM planes WHERE engines = 4"),
    Turn("How many flights per origin?", "SELECT origin, count(*) FROM flights GROUP BY origin"),
    Turn(
        "What is the average departure delay in June?",
        "SELECT avg(dep_delay) FROM flights WHERE month = 6",
    ),
    Turn("and in July?", "SELECT avg(dep_delay) FROM flights WHERE month = 7"),
    Turn(
        "How many flights have a departure delay between 10 and 20?",
        _count("dep_delay BETWEEN 10 AND 20"),
    ),
    Turn("How many flights did carrier AA have in May?", _count("carrier = 'AA' AND month = 5")),
    Turn("What is the highest wind speed?", "SELECT max(wind_speed) FROM weather"),
    Turn("How many flights went to BOS?", _count("dest = 'BOS'")),
    Turn("What is the average visibility in the weather table?", "SELECT avg(visib) FROM weather"),
    Turn("How many flights left EWR in October?", _count("origin = 'EWR' AND month = 10")),
    Turn("and in November?", _count("origin = 'EWR' AND month = 11")),
    Turn("What was the answer when I asked about planes made by BOEING?", None, recalls=10),
    Turn("What did you say about flights that have no tail number?", None, recalls=13),
    Turn("Remind me: how many planes have more than 300 seats?", None, recalls=24),
    Turn("之前问的二月航班有多少？", None, recalls=14),
)


def figures(text: str) -> set[float]:
    """Return the numbers in a text, without thousands separators."""
    return {float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)}


def answers(queries: Sequence[QueryFinished], gold: Sequence[tuple[object, ...]]) -> bool:
    """Tell whether one of a turn's queries returned the gold rows: each gold row's values are in a
    row of its own.
    """
    return any("rows" in query and _agree(query["rows"], gold) for query in queries)


def _agree(rows: Sequence[Sequence[object]], gold: Sequence[Sequence[object]]) -> bool:
    return len(rows) == len(gold) and all(
        any(_holds(row, wanted) for row in rows) for wanted in gold
    )


def _holds(row: Sequence[object], wanted: Sequence[object]) -> bool:
    return all(any(_same(cell, value) for cell in row) for value in wanted)


def _same(cell: object, value: object) -> bool:
    if isinstance(value, int | float) and isinstance(cell, int | float):
        return abs(cell - value) <= 1e-9 * max(1.0, abs(value)) or round(value, 2) == cell
    return str(cell) == str(value)
