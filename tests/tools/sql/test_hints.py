"""What is wrong with a query is told as data, the same on all engines: what kind of fault, where as
it was asked, what was meant.
"""

from pathlib import Path

import pytest

from longtable.base.errors import (
    DatabaseError,
    QueryFailedError,
    QueryRefusedError,
    ResultTooLargeError,
)
from longtable.tools.database import Database, QueryLimits
from tests.tools.databases import Place, open_at, spelled

FAULTS: list[tuple[str, str, tuple[int, int] | None, tuple[str, ...]]] = [
    ("SELECT name\nFORM people WHERE x", "syntax", (2, 6), ()),
    ("SELECT * FROM people WHERE (id = 1", "syntax", (1, 34), ()),
    ("SELECT id\n  FROM peple", "unknown_name", (2, 8), ("people",)),
    ("SELECT id,\n  salry FROM people", "unknown_name", (2, 3), ("salary",)),
    (
        "SELECT b.name, p.salry FROM people p JOIN people b ON b.id = p.boss_id",
        "unknown_name",
        (1, 18),
        ("salary",),
    ),
    ("SELECT count(*) FROM people WHERE \"citi\" = 'Bern'", "unknown_name", (1, 35), ("city",)),
    ('SELECT count(*) FROM people WHERE name = "J. Smith"', "unknown_name", (1, 42), ()),
    (
        'WITH p AS (SELECT id,\n "citi" FROM people) SELECT * FROM p',
        "unknown_name",
        (2, 2),
        ("city",),
    ),
    ('SELECT name FROM people ORDER BY "nme"', "unknown_name", (1, 34), ("name",)),
    ('SELECT count(*) FROM people GROUP BY "nme"', "unknown_name", (1, 38), ("name",)),
    ("SELECT max(id) FROM people HAVING max(\"nme\") = 'x'", "unknown_name", (1, 39), ("name",)),
    ('SELECT sum(id) OVER (PARTITION BY "nme") FROM people', "unknown_name", (1, 35), ("name",)),
    ("SELECT name FROM people p /* all */ ,\n people q", "ambiguous", (1, 8), ()),
    ("-- all\nDELETE FROM people", "refused", (2, 1), ()),
    ("SELECT id FROM people;\n  DROP TABLE people", "refused", (2, 3), ()),
    ("SELECT *\nINTO copy FROM people", "refused", (2, 1), ()),
    ("SELECT id FROM people WHERE id = ?", "refused", (1, 34), ()),
    ("SELECT '" + "x" * 50_000 + "'", "refused", (1, 50_001), ()),
    ("SELECT id,\n " + "(" * 3_000 + "1" + ")" * 3_000, "refused", (2, 32), ()),
    ("SELECT id \x00 FROM people", "syntax", (1, 11), ()),
    ("SELECT lenght(name) FROM people", "refused", (1, 8), ("length",)),
    ("SELECT n FROM numbers UNION SELECT n, n FROM numbers", "other", None, ()),
]


@pytest.mark.parametrize(("sql", "problem", "place", "nearest"), FAULTS)
def test_an_error_tells_its_class_its_place_and_the_nearest_names(
    sql: str,
    problem: str,
    place: tuple[int, int] | None,
    nearest: tuple[str, ...],
    database: Database,
) -> None:
    if database.dialect == "clickhouse" and problem == "ambiguous":
        assert database.run(sql).columns == ("name",)  # it takes the first table's
        return
    with pytest.raises(DatabaseError) as caught:
        database.run(spelled(sql, database.dialect))
    error = caught.value
    if database.dialect == "clickhouse" and problem == "refused":
        place = None  # sqlglot reads the text in another way
    if database.dialect == "clickhouse" and "J. Smith" in sql:
        problem = "refused"  # a name with a dot
    assert error.problem == (
        "syntax" if problem == "other" and database.dialect == "postgres" else problem
    )
    if place is not None:
        assert (error.line, error.column) == place
    assert error.nearest[: len(nearest)] == nearest


def test_of_text_in_double_quotes_it_is_said_that_text_stands_in_single_ones(
    database: Database,
) -> None:
    if database.dialect == "mysql":
        assert database.run('SELECT id FROM people WHERE name = "O\'Neil"').rows == []
        with pytest.raises(QueryRefusedError, match="name in backticks, and a text in single"):
            database.run('SELECT "name" FROM people p')
        return
    with pytest.raises(QueryFailedError) as caught:
        database.run('SELECT id FROM people WHERE name = "O\'Neil"')
    assert caught.value.hint.endswith("if text is meant, it stands in single quotes: 'O''Neil'")
    with pytest.raises(QueryFailedError) as caught:
        database.run('SELECT p."nme" FROM people p')
    assert caught.value.hint == "nearest columns: name"


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT name,\n name + 1 FROM people", None),
        ("SELECT id FROM people\nWHERE id = 'abc'", (2, 12)),
        ("SELECT round(name, name) FROM people", None),
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_value_of_the_wrong_type_is_told_as_one(
    sql: str, place: tuple[int, int] | None, dialect: str, databases: dict[str, Database]
) -> None:
    with pytest.raises(DatabaseError) as caught:
        databases[dialect].run(sql)
    assert caught.value.problem == "type"
    assert place is None or (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT name,\n repeat(name, 3), repeat('x', 4000000000) FROM people", (2, 19)),
        ("SELECT repeat(/* in */ repeat('x', 10000), 10000)", (1, 24)),
        ("SELECT upper(name),\n format(name, id) FROM people", (2, 2)),
    ],
)
def test_of_calls_that_grow_the_one_at_fault_is_told(
    sql: str, place: tuple[int, int], dialect: str, databases: dict[str, Database]
) -> None:
    with pytest.raises(QueryRefusedError) as caught:
        databases[dialect].run(sql)
    assert (caught.value.rule, caught.value.line, caught.value.column) == ("growth", *place)


def test_an_argument_that_is_no_json_is_a_type_error_in_sqlite(
    databases: dict[str, Database],
) -> None:
    with pytest.raises(DatabaseError) as caught:
        databases["sqlite"].run("SELECT json_extract(name, '$.a') FROM people")
    assert caught.value.problem == "type"


@pytest.mark.parametrize(
    ("limits", "sql", "problem"),
    [
        (
            QueryLimits(seconds=0.2),
            "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
            "too_slow",
        ),
        (QueryLimits(rows=3), "SELECT n FROM numbers", "too_big"),
    ],
)
def test_what_is_too_much_is_told_as_slow_or_big(
    limits: QueryLimits, sql: str, problem: str, dialect: str, files: dict[str, Place]
) -> None:
    with open_at(files[dialect], limits=limits) as database, pytest.raises(DatabaseError) as caught:
        database.run(sql)
    assert caught.value.problem == problem


def test_a_result_over_its_bytes_is_too_big(paths: dict[str, Path]) -> None:
    with (
        open_at(paths["duckdb"], limits=QueryLimits(bytes=1_000)) as database,
        pytest.raises(ResultTooLargeError) as caught,
    ):
        database.run("SELECT n, n, n FROM numbers")
    assert caught.value.problem == "too_big"
