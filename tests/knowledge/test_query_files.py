"""A verified query is a file: SQL below a comment that says what it answers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtable.knowledge.entries import Problem, VerifiedQuery, one_line
from longtable.knowledge.query_files import bare_sql, name_for, read_query, write_query

TEXT = """-- question: How many orders came in a month?
-- also: Orders of a month
-- ALSO: 某月有多少订单？
-- checked by: Ann Lee
-- checked on: 2026-11-27

SELECT count(*)
FROM orders -- the table of orders
WHERE month = :month;
"""


def test_a_file_is_read() -> None:
    query = read_query(TEXT, "queries/orders_of_a_month.sql")
    assert query == VerifiedQuery(
        name="orders_of_a_month",
        question="How many orders came in a month?",
        wordings=["Orders of a month", "某月有多少订单？"],
        sql="SELECT count(*)\nFROM orders -- the table of orders\nWHERE month = :month",
        checked_by="Ann Lee",
        checked_on="2026-11-27",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1", "queries/x.sql:1: the first comment needs one line `-- question: ...`"),
        ("-- question:\nSELECT 1", "needs one line `-- question: ...`"),
        ("-- question: a?\n-- question: b?\nSELECT 1", "needs one line `-- question: ...`"),
        ("-- question: a?\n\n", "queries/x.sql:3: the SQL is missing below the comment"),
        ("", "needs one line `-- question: ...`"),
        ("-- question: a?\n-- checked on: May\nSELECT 1", "needs a day such as 2026-11-27"),
        (f"-- question: {'a' * 1_001}\nSELECT 1", "a question may have 1,000 characters"),
        ("-- question: a?\n" + "-- also: b\n" * 51 + "SELECT 1", "may have 50 other wordings"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(text: str, said: str) -> None:
    problem = read_query(text, "queries/x.sql")
    assert isinstance(problem, Problem)
    assert said in str(problem)


@given(st.text(min_size=1), st.lists(st.text(min_size=1), max_size=3))
def test_what_is_written_reads_back_alike(question: str, wordings: list[str]) -> None:
    says = [f"q {' '.join(text.split())}".strip() for text in (question, *wordings)]
    query = VerifiedQuery(name="x", question=says[0], wordings=says[1:], sql="SELECT 1")
    assert read_query(write_query(query), "queries/x.sql") == query


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("a\u2028b\u2029c\x0bd\x0ce\rf\x85g\x1ch\r\ni\n\n-- question: j\n;\n")
def test_the_texts_of_kept_sql_stay_as_they_are(literal: str) -> None:
    quoted = literal.replace("'", "''")
    sql = f"SELECT '{quoted}' AS x,\n'{quoted}'"
    query = VerifiedQuery(name="x", question="q", sql=sql)
    text = write_query(query).encode().decode("utf-8-sig")
    read = read_query(text, "queries/x.sql")
    assert isinstance(read, VerifiedQuery)
    assert read.sql == sql


@given(st.text())
def test_bare_sql_is_bare_already(sql: str) -> None:
    assert bare_sql(bare_sql(sql)) == bare_sql(sql)


@given(st.text(), st.text())
def test_a_value_of_the_head_stays_on_its_line(question: str, by: str) -> None:
    query = VerifiedQuery(name="x", question=f"q{question}", sql="SELECT 1", checked_by=f"b{by}")
    read = read_query(write_query(query), "queries/x.sql")
    assert isinstance(read, VerifiedQuery)
    assert (read.question, read.checked_by) == (one_line(f"q{question}"), one_line(f"b{by}"))
    assert (read.wordings, read.sql) == ([], "SELECT 1")


@pytest.mark.parametrize(
    ("question", "taken", "name"),
    [
        ("How many orders?", (), "how_many_orders"),
        ("How many orders?", ("how_many_orders",), "how_many_orders_2"),
        ("../../etc/passwd", (), "etc_passwd"),
        ("五月有多少订单？", (), "五月有多少订单"),
        ("???", (), "query"),
        ("a" * 500, (), "a" * 60),
    ],
)
def test_a_name_is_made_of_the_question(question: str, taken: tuple[str, ...], name: str) -> None:
    assert name_for(question, taken) == name


def test_comments_above_the_sql_do_not_become_the_head_of_the_file() -> None:
    sql = "\n-- checked by: The Board\n-- question: Other?\n\nSELECT 1 -- one\n-- end"
    query = VerifiedQuery(name="x", question="How many?", sql=sql)
    read = read_query(write_query(query), "queries/x.sql")
    assert isinstance(read, VerifiedQuery)
    assert (read.question, read.checked_by) == ("How many?", "")
    assert read.sql == "SELECT 1 -- one\n-- end"
