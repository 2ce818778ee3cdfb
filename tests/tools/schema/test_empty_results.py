"""A query that finds nothing says which condition is at fault, and what the column holds
instead.
"""

import json
from typing import Any

import pytest

from longtable.base.errors import QueryCancelledError
from longtable.tools.database import Cancel, Database
from longtable.tools.schema.empty_results import why_empty
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.toolset import database_tools
from tests.tools.databases import Place, open_at


def told(database: Database, sql: str) -> dict[str, Any]:
    run = next(tool for tool in database_tools(database) if tool.name == "run_sql")
    answer: dict[str, Any] = json.loads(
        run.invoke({"name": "run_sql", "args": {"sql": sql}, "id": "1", "type": "tool_call"}).text
    )
    return answer


@pytest.mark.parametrize(
    ("sql", "condition", "help_"),
    [
        (
            "SELECT * FROM people WHERE city = 'bern' AND salary > 10",
            "city = 'bern'",
            {"column": "city", "nearest": ["Bern"]},
        ),
        (
            "SELECT count(*) FROM people p WHERE p.city = 'Bren' AND p.id > 0",
            "city = 'Bren'",
            {"column": "city", "nearest": ["Bern"]},
        ),
        (
            "SELECT sum(salary) FROM people WHERE city IN ('berne', 'genf')",
            "",
            {"column": "city", "nearest": ["Bern", "Genf"]},
        ),
        (
            (
                "SELECT b.name FROM people b JOIN people w ON w.boss_id = b.id WHERE w.name LIKE"
                " '%ada%x'"
            ),
            "",
            {"column": "name"},
        ),
        (
            "SELECT * FROM people WHERE salary > 1000 AND city = 'Bern'",
            "salary > 1000",
            {"column": "salary", "least": 50, "most": 90.5},
        ),
        (
            "SELECT * FROM people WHERE salary BETWEEN 1 AND 2",
            "salary BETWEEN 1 AND 2",
            {"column": "salary", "least": 50, "most": 90.5},
        ),
        ("SELECT 名称 FROM 客户 WHERE 城市 = '上'", "", {"column": "城市", "nearest": ["上海"]}),
        (
            "WITH t AS (SELECT * FROM people WHERE city = 'Genff') SELECT * FROM t WHERE t.id > 0",
            "",
            {"column": "city", "nearest": ["Genf"]},
        ),
    ],
)
def test_the_condition_at_fault_is_told_with_what_the_column_holds(
    sql: str, condition: str, help_: dict[str, Any], database: Database
) -> None:
    if database.dialect == "mysql":
        sql = sql.replace("'bern'", "'berm'").replace("'genf'", "'gemf'")  # = disregards case
        condition = condition.replace("'bern'", "'berm'")
    empty = told(database, sql)["empty"]
    [fault] = empty["at_fault"]
    assert condition in fault["condition"]
    assert {name: fault[name] for name in help_} == help_


def test_a_value_like_no_other_is_told_the_frequent_ones(database: Database) -> None:
    [fault] = told(database, "SELECT * FROM people WHERE city = 'Xanadu'")["empty"]["at_fault"]
    assert fault["frequent"][0] == "Bern"


def test_conditions_that_fail_only_together_are_not_blamed(database: Database) -> None:
    empty = told(database, "SELECT * FROM people WHERE city = 'Genf' AND salary > 80")["empty"]
    assert (empty["conditions_tried"], empty["at_fault"]) == (2, [])
    assert "together" in empty["note"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM people",
        "SELECT count(*) FROM people WHERE city = 'Bern'",
        "SELECT * FROM empty_list",
        "SELECT p.id FROM people p JOIN people b ON p.id = b.boss_id AND p.id = b.id",
        "SELECT name FROM people WHERE id IN (SELECT boss_id FROM people WHERE 1 = 0)",
        "SELECT 0 AS n",
    ],
)
def test_nothing_is_said_of_a_query_that_finds_something_or_compares_nothing(
    sql: str, database: Database
) -> None:
    assert "empty" not in told(database, sql) or not told(database, sql)["empty"]["at_fault"]


def test_what_a_policy_masks_is_not_told(dialect: str, files: dict[str, Place]) -> None:
    with open_at(
        files[dialect], policy=TablePolicy(masked_columns=frozenset({"people.city"}))
    ) as database:
        answer = told(database, "SELECT id FROM people WHERE city = 'berm'")
        [fault] = answer["empty"]["at_fault"]
        assert fault["column"] == "city"
        assert "Bern" not in json.dumps(answer)


def test_looking_for_the_fault_ends_with_the_turn(database: Database) -> None:
    result = database.run("SELECT id FROM people WHERE id > 99")
    cancel = Cancel()
    cancel.cancel()
    with pytest.raises(QueryCancelledError):
        why_empty(database, result, cancel=cancel)
