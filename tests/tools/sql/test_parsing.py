"""No text takes the parser long, and none is written out longer than it may be asked; legal texts
are not touched.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlglot.parser import Parser

from longtable.base.errors import ConfigError, QueryFailedError, QueryRefusedError
from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.database import Database
from longtable.tools.sql.parsing import (
    MAX_DEPTH,
    MAX_SQL_CHARS,
    RefusedError,
    require_plain_classes,
    tokens_of,
)
from longtable.tools.sql.wall import check
from tests.tools.databases import DIALECTS

SECONDS = 5.0
"""Each text takes under half a second alone; the machine of the tests is busy. Without a limit they
take hours.
"""
CATALOG = Catalog((Table("t", "table", (Column("x", "INTEGER"), Column("y", "VARCHAR"))),))


def nested(opening: str, depth: int, closing: str = ")") -> str:
    return "SELECT " + opening * depth + "1" + closing * depth


HOSTILE = {
    "a word for a type": nested("DATE (", 25),
    "a type with a size": nested("DECIMAL(", 25),
    "a row": nested("ROW(1, ", 25),
    "a struct": nested("{'a': ", 25, "}"),
    "a map": nested("MAP {1: ", 25, "}"),
    "a list": nested("[", 25, "]"),
    "an array": nested("ARRAY[", 25, "]"),
    "a type of FROM": "SELECT * FROM " + "STRUCT(" * 25 + "1" + ")" * 25,
    "brackets that are not closed": "SELECT " + "TIMESTAMP(" * 25,
    "many copies": "SELECT " + ("DATE (" * 8 + "1" + ")" * 8 + ",") * 600 + "1",
    "a type within a name": 'SELECT CAST(1 AS "' + "DATE(" * 18 + ")" * 18 + '")',
    "a type within a name, after ::": 'SELECT 1::"' + "DATE(" * 18 + ")" * 18 + '"',
    "a type within types": "SELECT CAST(1 AS " + "STRUCT(a " * 25 + "INT" + ")" * 25 + ")",
    "subscripts": "SELECT y" + "[1]" * 8_000 + " FROM t",
    "subscripts of a long list": "SELECT ([" + ",".join("1" * 8_000) + "])" + "[1]" * 29,
    "a call that is written with its argument three times": (
        "SELECT " + "instr(1, 2, " * 29 + "1" + ")" * 29
    ),
    "brackets within brackets": nested("(", 10_000),
    "words": "SELECT " + "1," * 20_000 + "1",
    "quotes": "SELECT " + "'" * 45_001,
    "tags": "SELECT " + " ".join(f"$a{i}$" for i in range(6_000)),
    "comments": "SELECT " + "/*" * 20_000,
    "conditions in a row": "SELECT 1 FROM t WHERE " + "x OR " * 9_900 + "x",
    "fields in a row": "SELECT " + "x->" * 4_000 + "x FROM t",
    "collations in a row": "SELECT " + "x COLLATE " * 4_800 + "x FROM t",
    "keys in a row": "SELECT " + "x?" * 4_000 + "x FROM t",
    "many CTEs": (
        "WITH a0 AS (SELECT x FROM t)"
        + "".join(
            f", a{i} AS (SELECT x FROM a{i - 1} WHERE x IN (SELECT x FROM t))"
            for i in range(1, 330)
        )
        + " SELECT x FROM a329"
    ),
}

OF_NO_DIALECT = {"conditions in a row", "many CTEs", "many copies", "fields in a row"}
"""Texts of the size that may just be asked: each takes 1 to 2 s, and the same in each dialect."""


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (dialect, text)
        for dialect in DIALECTS
        for text in HOSTILE
        if dialect == "duckdb" or text not in OF_NO_DIALECT
    ],
)
def test_a_text_made_to_take_the_parser_long_is_refused_at_once(dialect: str, text: str) -> None:
    started = time.process_time()
    verdict = check(HOSTILE[text], dialect=dialect, catalog=CATALOG)
    assert time.process_time() - started < SECONDS
    if not verdict.allowed:
        assert verdict.reason
        assert verdict.hint
        assert verdict.place is not None


def test_a_list_that_is_too_long_is_not_called_nested() -> None:
    verdict = check(
        f"SELECT 1 FROM t WHERE x IN ({','.join(['12345'] * 8_500)})",
        dialect="sqlite",
        catalog=CATALOG,
    )
    assert (verdict.rule, verdict.hint) == ("length", "send a shorter query")


@pytest.mark.parametrize("opening", ["DATE (", "DECIMAL(", "STRUCT(", "TIMESTAMP("])
def test_the_reason_says_what_to_write_instead(opening: str) -> None:
    verdict = check(nested(opening, 20), dialect="duckdb", catalog=CATALOG)
    assert (verdict.allowed, verdict.rule) == (False, "depth")
    assert "brackets" in verdict.reason
    assert "fewer nested brackets" in verdict.hint


DEEP = {
    "calls": "SELECT " + "abs(" * 20 + "id" + ")" * 20 + " FROM people",
    "pairs of calls": "SELECT " + "coalesce(round(" * 10 + "id" + "), 0)" * 10 + " FROM people",
    "casts": "SELECT " + "CAST(" * 20 + "id" + " AS INTEGER)" * 20 + " FROM people",
    "dates": "SELECT " + "date(" * 6 + "created" + ")" * 6 + " FROM audit",
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 20 + "people" + ") q" * 20,
    "values": "SELECT " + "(SELECT " * 20 + "max(id) FROM people" + ")" * 20,
    "IN": "SELECT id FROM people" + " WHERE id IN (SELECT id FROM people" * 20 + ")" * 20,
    "CASE": "SELECT " + "CASE WHEN id = 1 THEN 1 ELSE " * 20 + "0" + " END" * 20 + " FROM people",
    "CASE in brackets": (
        "SELECT " + "CASE WHEN id = 1 THEN 1 ELSE (" * 20 + "0" + ") END" * 20 + " FROM people"
    ),
    "conditions": (
        "SELECT id FROM people WHERE " + "id = 1 AND (id = 2 OR (" * 10 + "id = 3" + "))" * 10
    ),
    "a chain": (
        "WITH a0 AS (SELECT id FROM people)"
        + "".join(f", a{i} AS (SELECT id FROM a{i - 1} WHERE id > 0)" for i in range(1, 40))
        + " SELECT count(*) FROM a39"
    ),
    "a long list": f"SELECT id FROM people WHERE id IN ({', '.join(map(str, range(2_000)))})",
}


TOO_DEEP_FOR_SQLITE = {"subqueries", "values", "IN", "CASE in brackets"}
"""Its own parser ends at some 16 of them."""


@pytest.mark.parametrize("text", DEEP)
def test_an_honest_text_that_is_deep_or_long_runs(text: str, database: Database) -> None:
    if database.dialect == "sqlite" and text in TOO_DEEP_FOR_SQLITE:
        with pytest.raises(QueryFailedError, match="parser stack overflow"):
            database.run(DEEP[text])
    elif database.dialect == "mysql" and text == "CASE in brackets":
        # sqlglot's parser has one level more for XOR in each bracket.
        with pytest.raises(QueryRefusedError, match="nested too deeply"):
            database.run(DEEP[text])
    else:
        assert database.run(DEEP[text]).columns


def test_the_bracket_that_is_too_deep_is_the_place() -> None:
    verdict = check(
        "SELECT\n" + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        dialect="sqlite",
        catalog=CATALOG,
    )
    assert verdict.place == (2, MAX_DEPTH + 1)
    assert check(nested("(", MAX_DEPTH), dialect="sqlite", catalog=CATALOG).allowed


@pytest.mark.parametrize(
    "unit",
    ["'", '"', "$$", "$a", "/*", "--", "E'", "0x", "1e", "@", "<", "\\", "[", "NOT NULL ", "é"],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_reading_words_takes_time_in_proportion(unit: str, dialect: str) -> None:
    started = time.process_time()
    with suppress(RefusedError):
        tokens_of(f"SELECT {unit * MAX_SQL_CHARS}"[:MAX_SQL_CHARS], dialect)
    assert time.process_time() - started < SECONDS


def test_hostile_calls_that_are_cancelled_leave_the_threads_to_others(
    databases: dict[str, Database],
) -> None:
    async def talk() -> float:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(6))
        calls = [
            asyncio.create_task(asyncio.to_thread(databases["duckdb"].run, nested("DATE (", 25)))
            for _ in range(6)
        ]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        started = time.perf_counter()
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), SECONDS) == 1
        return time.perf_counter() - started

    assert asyncio.run(talk()) < SECONDS


@pytest.mark.parametrize("unit", ["x,", "+", "x.", "(", "12345,"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("characters", [MAX_SQL_CHARS, 2 * MAX_SQL_CHARS])
def test_a_text_past_the_caps_is_refused_in_a_twentieth_of_a_second(
    unit: str,
    dialect: str,
    characters: int,
) -> None:
    seconds = []
    for number in range(3):  # the fastest of three: the machine of the tests is busy
        text = f"SELECT {number} {unit * characters}"[: characters + (unit == "12345,")]
        started = time.process_time()
        verdict = check(text, dialect=dialect, catalog=CATALOG)
        seconds.append(time.process_time() - started)
        assert verdict.rule in ("length", "depth")
    assert min(seconds) < 0.05


def test_a_list_of_numbers_counts_as_it_is_sent(database: Database) -> None:
    numbers = ",".join(map(str, range(1_000, 10_000)))
    assert len(numbers) < MAX_SQL_CHARS
    sql = f"SELECT count(*) FROM numbers WHERE n IN ({numbers})"
    assert database.run(sql).rows[0][0] in (1_000, 1_001)
    with pytest.raises(QueryFailedError) as caught:
        database.run(f"SELECT count(*) FROM numbers WHERE n IN ({numbers}) AND nn = 1")
    assert caught.value.problem == "unknown_name"
    assert (caught.value.line, caught.value.column) == (1, len(sql) + 6)


def test_compiled_classes_of_sqlglot_are_named_and_not_taken_for_bad_sql() -> None:
    require_plain_classes(Parser)
    compiled = type("Parser", (Parser,), {"parse": len})  # built in, as a compiled method is
    with pytest.raises(ConfigError, match="pip uninstall sqlglotc"):
        require_plain_classes(compiled)
