"""Checked queries of a knowledge folder, and nao's tests, as questions."""

from pathlib import Path

import pytest

from longtable.evaluation.formats.checked_queries import (
    has_parameters,
    read_knowledge,
    read_nao_test,
)

ORDERS = "-- question: How many orders?\n-- also: Number of orders?\nSELECT count(*) FROM orders\n"


def test_each_wording_of_a_checked_query_is_a_question(tmp_path: Path) -> None:
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "orders.sql").write_text(ORDERS)
    (queries / "month.sql").write_text("-- question: In a month?\nSELECT :month\n")
    (queries / "wrong.sql").write_text("SELECT 1\n")
    found = read_knowledge(tmp_path)
    assert [each.id for each in found.dialogues] == ["orders", "orders/1"]
    assert [each.turns[0].text for each in found.dialogues] == [
        "How many orders?",
        "Number of orders?",
    ]
    assert [each.turns[0].gold for each in found.dialogues] == [["SELECT count(*) FROM orders"]] * 2
    problems = sorted(str(each) for each in found.problems)
    assert problems[0] == f"{tmp_path}/queries/month.sql:1: a query with parameters is not asked"
    assert problems[1].startswith(f"{tmp_path}/queries/wrong.sql:1: ")


@pytest.mark.parametrize(
    ("sql", "has"),
    [
        ("SELECT :month", True),
        ("SELECT x FROM t WHERE a = :b", True),
        ("SELECT '12:30'", False),
        ("SELECT ':month'", False),
        ('SELECT x::int, ":a" -- :month', False),
        ("SELECT a[1:2]", False),
    ],
)
def test_parameters_are_found_outside_texts(sql: str, has: bool) -> None:
    assert has_parameters(sql) is has


def test_a_test_of_nao_is_a_question() -> None:
    text = "name: total\nprompt: What is the total?\nsql: |\n  SELECT sum(amount)\n  FROM orders\n"
    [dialogue] = read_nao_test(text, "tests/total.yml").dialogues
    assert (dialogue.id, dialogue.turns[0].text) == ("total", "What is the total?")
    assert dialogue.turns[0].gold == ["SELECT sum(amount)\nFROM orders"]
    [problem] = read_nao_test("name: total\nprompt: x\n", "tests/total.yml").problems
    assert str(problem).startswith("tests/total.yml: `sql`")
