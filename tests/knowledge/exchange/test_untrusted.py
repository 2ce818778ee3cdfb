"""JSON and texts of other programs: what is no JSON, or too much of it, is said and not raised."""

import pytest

from longtable.knowledge.entries import Problem, VerifiedQuery
from longtable.knowledge.exchange.untrusted import (
    MOST_CHARS,
    MOST_JSON_CHARS,
    fault_of_text,
    kind_of,
    read_json,
)
from longtable.knowledge.query_files import bare_sql, read_query, write_query


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "this is no JSON"),
        ('{\n"a": }', 2, "this is no JSON"),
        ("name: yaml", 1, "this is no JSON"),
        ("[" * 100_000, 0, "nested too deeply"),
        ('{"a":' * 100_000, 0, "nested too deeply"),
        ("9" * 5_000, 0, "too many digits"),
        ("[" + " " * MOST_JSON_CHARS + "]", 0, "10,000,000 characters"),
    ],
)
def test_what_cannot_be_read_is_a_problem_with_its_line(text: str, line: int, says: str) -> None:
    problem = read_json(text, "a.json")
    assert isinstance(problem, Problem)
    assert says in problem.message
    assert problem.place.file == "a.json"
    assert problem.place.line == line


def test_numbers_that_are_no_json_are_missing_values() -> None:
    assert read_json("[NaN, Infinity, -Infinity, 1]", "a.json") == [None, None, None, 1]


def test_a_byte_order_mark_does_no_harm() -> None:
    assert read_json("\ufeff[]", "a.json") == []


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("订单", ""),
        ("x" * MOST_CHARS, ""),
        ("x" * (MOST_CHARS + 1), "at most 4,000 characters, found 4,001"),
        ("\ud83d", "half of a surrogate pair is no character"),
        (None, "a text is needed, found null"),
        (3, "a text is needed, found a number"),
    ],
)
def test_a_text_is_short_enough_and_can_be_written(value: object, fault: str) -> None:
    assert fault_of_text(value) == fault


def test_kinds_have_the_names_of_json() -> None:
    values: list[object] = [None, True, 1, 1.5, "", [], {}]
    names = ["null", "true or false", "a number", "a number", "a text", "a list", "an object"]
    assert [kind_of(value) for value in values] == names
    assert kind_of(b"") == "bytes"


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("SELECT 1;\n", "SELECT 1"),
        ("\n-- one\n  -- two\n\nSELECT 1 -- three\n", "SELECT 1 -- three"),
        ("/* one */ SELECT 1 ; ;", "/* one */ SELECT 1"),
        ("-- nothing else", ""),
        (";", ""),
    ],
)
def test_sql_loses_comments_above_it_and_its_semicolon(sql: str, plain: str) -> None:
    assert bare_sql(sql) == plain


def test_imported_sql_cannot_say_who_checked_it() -> None:
    sql = bare_sql("-- checked by: Ann Lee\n\u2028-- question: Another?\nSELECT 1")
    query = VerifiedQuery(name="a", question="How many?", sql=sql)
    assert read_query(write_query(query), "queries/a.sql") == VerifiedQuery(
        name="a", question="How many?", sql="SELECT 1", wordings=[]
    )
