"""Gold runs behind the walls, and its order is read from its outermost query."""

from pathlib import Path

import pytest

from longtable.evaluation.gold import GoldRunner, order_of
from longtable.evaluation.matching import Order
from longtable.evaluation.question_set import Turn
from longtable.graph import Database
from tests.support.evaluated import make_shop


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("SELECT a, b FROM t", None),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", None),
        ("WITH x AS (SELECT a FROM t ORDER BY a) SELECT a FROM x", None),
        ("SELECT a, b FROM t ORDER BY b DESC", Order((1,))),
        ("SELECT a, count(*) AS n FROM t GROUP BY a ORDER BY n", Order((1,))),
        ("SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*) DESC, a", Order((1, 0))),
        ("SELECT a FROM t ORDER BY 1", Order((0,))),
        ("SELECT a FROM t ORDER BY c", Order()),
        ("SELECT * FROM t ORDER BY a", Order()),
        ("SELECT a FROM t ORDER BY T1.a", Order((0,))),
        ("SELECT T1.a, T2.b FROM t T1, t T2 ORDER BY t2.B", Order((1,))),
        ("SELECT T1.a, T2.a FROM t T1, t T2 ORDER BY T2.a", Order((1,))),
        ("SELECT T1.a, T2.a FROM t T1, t T2 ORDER BY T3.a", Order()),
        ("SELECT a AS x, b FROM t ORDER BY T.a", Order((0,))),
        ("SELECT a, count(T.b) FROM t GROUP BY a ORDER BY COUNT(b)", Order((1,))),
        ("SELECT a, b FROM t ORDER BY b COLLATE NOCASE", Order((1,))),
        ("SELECT a FROM t UNION SELECT b FROM u ORDER BY a", Order((0,))),
        ("SELECT FROM ORDER", None),
    ],
)
def test_the_order_is_that_of_the_outermost_query(sql: str, order: Order | None) -> None:
    assert order_of(sql, "sqlite") == order


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("SELECT * FROM t ORDER BY B", Order((1,))),
        ("SELECT t.*, 1 AS c FROM t ORDER BY c, T.a", Order((2, 0))),
        ("SELECT * FROM t ORDER BY 2", Order((1,))),
        ("SELECT * FROM t ORDER BY 9", Order()),
        ("SELECT * FROM t ORDER BY d", Order()),
        ("SELECT * FROM t ORDER BY a + b", Order()),
        ("SELECT * FROM t, u ORDER BY twice", Order()),
    ],
)
def test_a_star_stands_for_the_columns_of_the_result(sql: str, order: Order) -> None:
    assert order_of(sql, "sqlite", ["a", "b", "c", "twice", "twice"]) == order


def test_a_turn_may_say_whether_order_counts(tmp_path: Path) -> None:
    with Database.open(str(make_shop(tmp_path / "shop.db"))) as database:
        gold = GoldRunner(database)
        sql = "SELECT id FROM orders ORDER BY id"
        turns = [Turn(text="?", gold=[sql], ordered=ordered) for ordered in (None, False, True)]
        orders = [gold.results(turn)[0].order for turn in turns]
        assert orders == [Order((0,)), None, Order((0,))]
        plain = Turn(text="?", gold=["SELECT id FROM orders"], ordered=True)
        assert gold.results(plain)[0].order == Order()


def test_gold_that_fails_or_writes_is_a_fault(tmp_path: Path) -> None:
    with Database.open(str(make_shop(tmp_path / "shop.db"))) as database:
        gold = GoldRunner(database)
        [fault] = gold.faults(Turn(text="?", gold=["SELECT gone FROM orders"]))
        assert "gold fails: no such column: gone" in fault
        assert gold.faults(Turn(text="?", gold=["DELETE FROM orders"]))
        many = Turn(text="?", gold=["SELECT id, amount FROM orders ORDER BY id"], figures=True)
        assert gold.faults(Turn(text="?", gold=["SELECT count(*) FROM orders"], figures=True)) == []
        assert gold.faults(many) == []
        wide = Turn(text="?", gold=["SELECT a.id, b.id FROM orders a, orders b"], figures=True)
        assert "at most 50 numbers" in gold.faults(wide)[0]


def test_texts_in_double_quotes_are_read_as_sqlite_reads_them(tmp_path: Path) -> None:
    with Database.open(str(make_shop(tmp_path / "shop.db"))) as database:
        gold = GoldRunner(database)
        sql = 'SELECT "name" FROM customers\nWHERE city = "city 1" AND name <> "it\'s ""x"""'
        result = gold.result(sql)
        assert result.rows == [["name 1"], ["name 4"]]
        assert result.sql == sql.replace('"city 1"', "'city 1'").replace(
            '"it\'s ""x"""', "'it''s \"x\"'"
        )
        assert "no such column: gone" in gold.result("SELECT gone FROM customers").fault
        assert "there is no table 'gone'" in gold.result('SELECT 1 FROM "gone"').fault
