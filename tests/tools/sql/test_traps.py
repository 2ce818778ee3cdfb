"""What sqlglot and an engine read differently is refused, with what to write instead."""

import pytest

from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.sql.wall import check

CATALOG = Catalog(
    (
        Table("people", "table", (Column("id", "int"), Column("name", "text")), quote="`"),
        Table("days", "table", (Column("day", "date"),), quote="`"),
    ),
    exact_case=True,
)


def verdict_of(sql: str, dialect: str = "mysql") -> tuple[str, str, str]:
    verdict = check(sql, dialect=dialect, catalog=CATALOG)
    return verdict.rule, verdict.reason, verdict.hint


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("WITH People AS (SELECT 1 AS id) SELECT * FROM people", "differ only in case"),
        ("SELECT * FROM people AS P JOIN days AS p", "differ only in case"),
        ("SELECT * FROM people AS days JOIN days AS Days", "differ only in case"),
        ("SELECT day + INTERVAL 1.5 DAY FROM days", "interval of 1.5 DAY can be read in two"),
        ("SELECT DATE_ADD(day, INTERVAL '.5' HOUR) FROM days", "interval of .5 HOUR"),
        ("SELECT DATE_SUB(day, INTERVAL 2.5 MONTH) FROM days", "interval of 2.5 MONTH"),
        ('SELECT "name" FROM people', "'name' in double quotes is a text here"),
        ('SELECT id FROM people WHERE "NAME" = 1', "'NAME' in double quotes is a text here"),
        ("SELECT main.lower(name) FROM people", "the function 'lower' is not allowed"),
        ("SELECT STRUCT(1, 2)", "STRUCT is not allowed"),
        ("SELECT 0x41", "can be read in two ways"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(sql: str, said: str) -> None:
    rule, reason, hint = verdict_of(sql)
    assert rule
    assert said in reason
    assert hint


@pytest.mark.parametrize(
    "sql",
    [
        "WITH t AS (SELECT id FROM people) SELECT t.id FROM t JOIN people ON people.id = t.id",
        "SELECT day + INTERVAL 2 DAY, day + INTERVAL '1.5' SECOND FROM days",
        "SELECT DATE_ADD(day, INTERVAL '1:30' HOUR_MINUTE), DATE_ADD(day, INTERVAL 3 DAY) FROM days",
        "SELECT name FROM people WHERE name = \"Ada\" OR name <=> 'Bo'",
        "SELECT LOWER(name) FROM people AS p WHERE p.id = 1 AND p.name <> 'p'",
    ],
)
def test_what_can_be_read_in_one_way_alone_runs(sql: str) -> None:
    assert verdict_of(sql) == ("", "", "")


def test_a_call_with_more_arguments_than_its_form_has_is_refused() -> None:
    verdict = check("SELECT name REGEXP 'a' FROM people", dialect="mysql", catalog=CATALOG)
    assert verdict.sql == "SELECT name REGEXP 'a' FROM people"
    rule, reason, _ = verdict_of("SELECT REGEXP_LIKE(name, 'a', 'c') FROM people")
    assert rule == "syntax"
    assert "no exact form" in reason


def test_what_is_a_trap_in_one_dialect_is_none_in_another() -> None:
    people = "SELECT * FROM people AS P JOIN days AS p ON 1 = 1"
    for sql in ('SELECT "name" FROM people', people):
        rule, _, _ = verdict_of(sql, "duckdb")
        assert rule == ""
