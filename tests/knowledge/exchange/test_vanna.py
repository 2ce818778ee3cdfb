"""Exports of Vanna's training data become verified queries, whatever wrote the table down."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.knowledge.entries import Place, VerifiedQuery
from longtable.knowledge.exchange.untrusted import MOST_ENTRIES
from longtable.knowledge.exchange.vanna import read_vanna
from longtable.knowledge.query_files import name_for, read_query, write_query
from tests.support.json_values import json_values

DDL = "CREATE TABLE genre (id INT)"
GENRES = "What are the top selling genres?"
SQL = "SELECT genre FROM sales\nORDER BY amount DESC;"
TABLE: dict[str, list[str | None]] = {
    "id": ["1-ddl", "2-sql", "3-doc", "4-sql"],
    "training_data_type": ["ddl", "sql", "documentation", "sql"],
    "question": [None, GENRES, None, "一共有多少订单？"],
    "content": [DDL, SQL, "Use SQLite.", "SELECT count(*) FROM 订单"],
}
ROWS = [
    {key: column[number] for key, column in TABLE.items()} for number in range(len(TABLE["id"]))
]
BY_ROW = {
    key: {str(number): value for number, value in enumerate(column)}
    for key, column in TABLE.items()
}
QUERIES = [
    VerifiedQuery(
        name="what_are_the_top_selling_genres",
        question=GENRES,
        sql="SELECT genre FROM sales\nORDER BY amount DESC",
    ),
    VerifiedQuery(
        name="一共有多少订单", question="一共有多少订单？", sql="SELECT count(*) FROM 订单"
    ),
]


@pytest.mark.parametrize(
    "export",
    [
        ROWS,
        {"data": ROWS},
        {"schema": {"fields": []}, "data": ROWS},
        TABLE,
        BY_ROW,
        {"data": BY_ROW},
        {"type": "df", "id": "training_data", "df": json.dumps(ROWS)},
        {"df": json.dumps(BY_ROW)},
    ],
)
def test_every_way_to_write_the_table_gives_the_same_queries(export: object) -> None:
    queries, problems = read_vanna(json.dumps(export), "training.json")
    assert queries == QUERIES
    assert [problem.message for problem in problems] == [
        "row 1: this is DDL, not a query; it is skipped",
        "row 3: this is documentation, not a query; it is skipped",
    ]
    assert queries[0].place == problems[0].place == Place("training.json")
    assert queries[0].checked_by == ""


@pytest.mark.parametrize(
    "row",
    [
        {"question": GENRES, "sql": SQL},
        {"question": GENRES, "content": SQL, "type": "sql"},
        {"natural_language_question": GENRES, "sql": SQL},
        {"question": "  What are the\ntop selling  genres? ", "sql": None, "content": SQL},
        {"question": GENRES, "content": json.dumps({"question": GENRES, "sql": SQL})},
        {"question": GENRES, "sql": f"-- checked by: Ann Lee\n{SQL}"},
    ],
)
def test_the_rows_of_other_stores_are_understood(row: object) -> None:
    assert read_vanna(json.dumps([row]), "a.json") == (QUERIES[:1], [])


def test_queries_survive_as_files() -> None:
    for query in read_vanna(json.dumps(ROWS), "a.json")[0]:
        read = read_query(write_query(query), f"queries/{query.name}.sql")
        assert isinstance(read, VerifiedQuery)
        assert (read.name, read.question, read.sql) == (query.name, query.question, query.sql)


def test_the_missing_values_of_pandas_are_no_questions() -> None:
    text = f'[{{"question": NaN, "content": "{DDL}"}}, {{"question": "", "content": "{DDL}"}}]'
    queries, problems = read_vanna(text, "a.json")
    assert queries == []
    assert [problem.message for problem in problems] == [
        "row 1: there is no question, as with DDL and documentation; it is skipped",
        "row 2: there is no question, as with DDL and documentation; it is skipped",
    ]


def test_a_question_with_the_same_sql_is_read_once() -> None:
    rows = [
        {"question": GENRES, "content": SQL},
        {"question": GENRES, "content": f"{SQL}\n"},
        {"question": GENRES, "content": "SELECT 1"},
        {"question": "Genres?", "content": SQL},
    ]
    queries, problems = read_vanna(json.dumps(rows), "a.json")
    assert [query.name for query in queries] == [
        "what_are_the_top_selling_genres",
        "what_are_the_top_selling_genres_2",
        "genres",
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (1, "row 1: an object is needed, found a number"),
        (None, "row 1: an object is needed, found null"),
        ({"question": 5, "sql": SQL}, "row 1: `question`: a text is needed, found a number"),
        ({"question": [], "sql": SQL}, "row 1: `question`: a text is needed, found a list"),
        ({"question": GENRES}, "row 1: `sql`: a text is needed, found null"),
        ({"question": GENRES, "sql": {}}, "row 1: `sql`: a text is needed, found an object"),
        ({"question": GENRES, "sql": "-- to do"}, "row 1: `sql`: the SQL is missing"),
        ({"question": " ", "sql": SQL}, "row 1: `question`: the question is missing"),
        ({"question": "x" * 4_001, "sql": SQL}, "row 1: `question`: at most 4,000 characters"),
        ({"question": GENRES, "sql": "x" * 4_001}, "row 1: `sql`: at most 4,000 characters"),
        ({"question": "\ud800", "sql": SQL}, "row 1: `question`: half of a surrogate pair"),
        ({"question": GENRES, "sql": '{"sql": 3}'}, "row 1: `sql`: a text is needed"),
        ({"question": GENRES, "sql": DDL, "training_data_type": "DDL"}, "row 1: this is DDL"),
    ],
)
def test_a_row_that_cannot_be_used_is_a_problem(row: object, message: str) -> None:
    queries, problems = read_vanna(json.dumps([row, ROWS[1]]), "a.json")
    assert queries == QUERIES[:1]
    assert len(problems) == 1
    assert problems[0].message.startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this is no JSON"),
        ("question,content\n", "this is no JSON"),
        ("null", "rows with `question` and `content` or `sql` are needed, found null"),
        ('"SELECT 1"', "found a text"),
        ("{}", "found an object"),
        ('{"data": {}}', "found an object"),
        ('{"data": 3}', "found a number"),
        ('{"df": "no json"}', "`df`: this is no JSON"),
        ('{"question": "a", "content": "b"}', "`question`: a list or an object by row is needed"),
        ('{"question": {}, "content": 3}', "`content`: a list or an object by row is needed"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps({"df": "[" * 100_000}), "nested too deeply"),
        ("[" + "0," * 5_000_000 + "0]", "at most 10,000,000 characters of JSON"),
    ],
)
def test_a_text_that_is_no_export_is_one_problem(text: str, message: str) -> None:
    queries, problems = read_vanna(text, "a.json")
    assert queries == []
    assert len(problems) == 1
    assert message in problems[0].message


def test_an_inner_json_that_is_too_deep_stays_as_it_is() -> None:
    row = {"question": GENRES, "content": '{"a":' * 700}
    assert [query.sql for query in read_vanna(json.dumps([row]), "a.json")[0]] == ['{"a":' * 700]


def test_rows_beyond_the_limit_are_left_out_with_one_problem() -> None:
    rows = [{"question": f"Q{number}", "sql": "SELECT 1"} for number in range(MOST_ENTRIES + 2)]
    queries, problems = read_vanna(json.dumps(rows), "a.json")
    assert len(queries) == MOST_ENTRIES
    assert [problem.message for problem in problems] == [
        "at most 20,000 rows, found 20,002; the first are read"
    ]


def test_many_questions_that_begin_alike_have_names_of_their_own_soon() -> None:
    rows = [
        {"question": f"{'long ' * 20}{number}", "sql": "SELECT 1"} for number in range(MOST_ENTRIES)
    ]
    start = time.process_time()
    queries = read_vanna(json.dumps(rows), "a.json")[0]
    assert time.process_time() - start < 5
    assert len({query.name for query in queries}) == MOST_ENTRIES


@given(st.lists(st.sampled_from(["a", "A", "a 2", "a_2", "a 3", "b", "?"]), max_size=12))
def test_names_are_those_of_name_for(questions: list[str]) -> None:
    rows = [{"question": each, "sql": f"SELECT {n}"} for n, each in enumerate(questions)]
    expected: list[str] = []
    for each in questions:
        expected.append(name_for(each, expected))
    assert [query.name for query in read_vanna(json.dumps(rows), "a.json")[0]] == expected


JSON = json_values(
    ["df", "data", "question", "content", "sql", "type", "training_data_type", "0", "1"]
)


@given(JSON)
def test_no_export_makes_the_reader_raise(export: object) -> None:
    queries, problems = read_vanna(json.dumps(export), "a.json")
    assert all(query.sql and query.question for query in queries)
    assert all(problem.place == Place("a.json") for problem in problems)
