"""An adversary who knows the walls learns nothing of hidden rows: not from answers, errors, plans,
facts about the schema, nor from the time that a refusal takes.

Each question is asked of two databases whose hidden rows differ, and of one without any: whatever
is seen must be the same. A solver that even knows the hidden numbers asks 200 questions in which a
right guess and a wrong one would differ, if any hidden row were looked at.
"""

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from longtable.base.errors import DatabaseError
from longtable.tools.cells import dumps
from longtable.tools.check_tool import check_query
from longtable.tools.database import Database
from longtable.tools.schema.schema_card import schema_card
from longtable.tools.schema.schema_tools import describe_tables, find_columns, list_tables
from longtable.tools.schema.values import find_values
from longtable.tools.sql.verdict import CostThresholds, reasons
from longtable.tools.toolset import run_sql
from tests.tools.databases import DIALECTS
from tests.tools.sql.row_filters.rows_database import (
    COSTLY,
    HIDDEN,
    NORTH,
    hidden_secrets,
    make_rows,
    open_rows,
)

QUERIES = 200


@dataclass(frozen=True)
class Views:
    """Databases as one person sees them: two with other hidden rows, one without any."""

    one: Database
    other: Database
    none: Database
    costly: Database
    """The first, with a filter that engines would like to test last."""

    @property
    def each(self) -> tuple[Database, ...]:
        return self.one, self.other, self.none, self.costly


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Views]]:
    with ExitStack() as stack:
        found: dict[str, Views] = {}
        for dialect in DIALECTS:
            secrets: tuple[list[int], ...] = (
                hidden_secrets(1),
                [*hidden_secrets(2), *range(500)],
                [],
            )
            places = [
                make_rows(
                    tmp_path_factory.mktemp(dialect), dialect, each, hidden_note=f"bad{place}"
                )
                for place, each in enumerate(secrets)
            ]
            opened = [open_rows(place) for place in places]
            one, other, none = (stack.enter_context(database).bound(NORTH) for database in opened)
            costly = stack.enter_context(open_rows(places[0], COSTLY)).bound(NORTH)
            found[dialect] = Views(one, other, none, costly)
        yield found


@pytest.fixture
def views(dialect: str, every: dict[str, Views]) -> Views:
    return every[dialect]


ERRORS = {
    "sqlite": "abs(CASE WHEN {} THEN -9223372036854775808 ELSE 1 END)",
    "duckdb": "CASE WHEN {} THEN error('hit') ELSE '1' END",
    "postgres": "CASE WHEN {} THEN CAST(note || 'x' AS INTEGER) ELSE 1 END",
    "mysql": "9223372036854775807 + (CASE WHEN {} THEN 1 ELSE 0 END)",
    "clickhouse": "CASE WHEN {} THEN toInt32(concat(note, 'x')) ELSE 1 END",
}
DIVISIONS = {
    "sqlite": "1",
    "duckdb": "CAST(note AS INTEGER)",
    "postgres": "1 / (secret - {0})",
    "mysql": "9223372036854775807 + (secret = {0})",
    "clickhouse": "intDiv(1, secret - {0})",
}
HEAVY = {
    "sqlite": (
        "(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 400000) SELECT"
        " count(*) FROM r)"
    ),
    "duckdb": "levenshtein(repeat(note || 'ab', 1500), repeat('ba' || note, 1500))",
    "postgres": "(SELECT count(*) FROM generate_series(1, 600000) g WHERE g % 7 = 3)",
    "mysql": "length(replace(repeat(concat(note, 'ab'), 20000), 'a', 'bb'))",
    "clickhouse": "length(replaceAll(repeat(concat(note, 'ab'), 20000), 'a', 'bb'))",
}
GUESSES = [
    "SELECT count(*) FROM orders WHERE secret = {0}",
    "SELECT count(*) FROM orders WHERE secret BETWEEN {0} AND {0}",
    "SELECT id FROM orders WHERE secret > {0} - 1 AND secret < {0} + 1",
    "SELECT count(*) FROM orders WHERE 1 / (secret - {0}) >= 0",
    "SELECT count(*) FROM orders WHERE {error} IS NOT NULL",
    "SELECT count(*) FROM orders WHERE {error} IS NOT NULL AND secret > 0",
    "SELECT count(*) FROM (SELECT {0} AS secret) AS k NATURAL JOIN orders WHERE {error} IS NULL",
    "SELECT count(*) FROM orders o JOIN items i ON {error} IS NOT NULL",
    "SELECT count(*) FROM items i LEFT JOIN orders o ON o.secret = {0} AND i.id = 1 WHERE o.id > 0",
    "SELECT max(CASE WHEN secret = {0} THEN total ELSE -1 END) FROM orders",
    "SELECT id FROM orders ORDER BY CASE WHEN secret = {0} THEN 0 ELSE 1 END, id LIMIT 1",
    "SELECT count(DISTINCT secret) FROM orders WHERE secret IN ({0}, 1)",
    "SELECT EXISTS (SELECT 1 FROM orders WHERE secret = {0})",
    "SELECT count(*) FROM (SELECT secret FROM orders INTERSECT SELECT {0}) AS t",
    "SELECT count(*) FROM (SELECT {0} AS secret EXCEPT SELECT secret FROM orders) AS t",
    "SELECT count(*) FROM (SELECT {0} AS secret UNION SELECT secret FROM orders) AS t",
    "SELECT (SELECT count(*) FROM orders WHERE secret = {0}) AS n, {0} - {0} AS z",
    "SELECT sum(x) FROM (SELECT {error} IS NULL AS y, 1 AS x FROM orders) AS t WHERE y",
    "SELECT count(*) FROM orders GROUP BY secret = {0}",
    "SELECT count(*) OVER (PARTITION BY secret = {0}) FROM orders LIMIT 1",
    "WITH o AS (SELECT * FROM orders WHERE secret = {0}) SELECT count(*) FROM o",
    "SELECT count(*) FROM orders WHERE total > 1 AND {division} > -1 AND secret = {0}",
    "SELECT min(abs(secret - {0})) > 99999 FROM orders",
]
"""Questions with a guess {0} of a hidden number."""


def filled(form: str, dialect: str, guess: int) -> str:
    error = ERRORS[dialect].format(f"secret = {guess}")
    division = DIVISIONS[dialect].format(guess)
    return form.replace("{error}", error).replace("{division}", division).replace("{0}", str(guess))


def answered(database: Database, sql: str) -> str:
    """Return all that a model and a person see of a query that ran: its answer, or its error."""
    try:
        answer, _ = run_sql(database, sql)
    except DatabaseError as error:
        return f"{type(error).__name__} {error} {error.problem} {error.line} {error.column}"
    return dumps({**answer, "ms": 0})


def seen(database: Database, sql: str) -> str:
    """Return all that is seen of a query: its answer, and which costs a person is told."""
    told = answered(database, sql)
    try:
        low = CostThresholds(scan_rows=31, columnar_scan_rows=31, pairs=31, postgres_cost=2)
        plan = database.check_sql(sql)
        told += repr(reasons(plan, low, database.dialect))
    except DatabaseError as error:
        told += f"{type(error).__name__} {error}"
    return told


def questions(dialect: str, secrets: Sequence[int], wrong: Sequence[int]) -> list[tuple[str, str]]:
    """Return pairs of a question with the right guess of a hidden number, and with a wrong one of
    as many digits.
    """
    pairs: list[tuple[str, str]] = []
    for number in range(QUERIES):
        row = number % HIDDEN
        form = GUESSES[(number // HIDDEN + row) % len(GUESSES)]
        pairs.append((filled(form, dialect, secrets[row]), filled(form, dialect, wrong[row])))
    return pairs


def test_a_solver_learns_none_of_twenty_hidden_rows_in_200_queries(
    views: Views, dialect: str
) -> None:
    secrets = hidden_secrets(1)
    rng = random.Random(7)
    wrong = [rng.randint(100_000, 999_999) for _ in secrets]
    learned: set[int] = set()
    asked = 0
    for number, (right, other) in enumerate(questions(dialect, secrets, wrong)):
        asked += 1
        row = number % HIDDEN
        one = answered(views.costly, right).replace(str(secrets[row]), "GUESS")
        two = answered(views.costly, other).replace(str(wrong[row]), "GUESS")
        if one != two:
            learned.add(row)
    assert asked == QUERIES
    assert learned == set()


def test_the_same_solver_learns_visible_rows(views: Views, dialect: str) -> None:
    """The questions do tell: where the filter lets a row through, most of them tell it."""
    telling = [
        form
        for form in GUESSES
        if answered(views.one, filled(form, dialect, 17)).replace("17", "GUESS")
        != answered(views.one, filled(form, dialect, 99)).replace("99", "GUESS")
    ]
    assert len(telling) >= len(GUESSES) - 4


MORE = [
    "SELECT * FROM orders",
    "SELECT count(*), min(id), max(id), avg(total) FROM orders",
    "SELECT DISTINCT region FROM orders",
    "SELECT CAST(note AS INTEGER) FROM orders ORDER BY id",
    "SELECT count(*) FROM orders WHERE CAST(note AS INTEGER) > 0",
    "SELECT count(*) FROM orders o JOIN items i ON CAST(o.note AS INTEGER) = i.id",
    "SELECT count(*) FROM orders a, orders b",
    "SELECT count(*) FROM orders a, orders b, orders c WHERE a.id > 0",
    "SELECT count(*) FROM orders a LEFT JOIN orders b ON a.secret = b.secret + 1",
    "SELECT i.id, o.id FROM items i LEFT JOIN orders o ON i.order_id = o.id ORDER BY 1",
    "SELECT region, count(*) FROM orders GROUP BY region ORDER BY 1",
    "SELECT r.region, count(o.id) FROM regions r LEFT JOIN orders o USING (region) GROUP BY 1 ORDER BY 1",
    "SELECT * FROM all_orders",
    "SELECT * FROM large_orders",
    "SELECT nothing FROM orders",
    "SELECT * FROM order",
    "SELECT rowid FROM orders",
    "SELECT ctid FROM orders",
    "SELECT count(*) FROM orders WHERE region = 'south'",
    "SELECT count(*) FROM orders WHERE note LIKE 'bad%'",
    "SELECT total FROM orders WHERE 1 / (total - 4) > 5",
    "SELECT sum(id * 100000000) FROM orders",
    "SELECT id FROM orders ORDER BY secret DESC LIMIT 1",
    "SELECT id FROM orders LIMIT 1 OFFSET 30",
]


@pytest.mark.parametrize("sql", MORE)
def test_whatever_is_hidden_all_is_seen_alike(views: Views, sql: str) -> None:
    one, *others = (seen(database, sql) for database in views.each)
    assert others == [one, one, one]


def test_facts_about_the_schema_are_of_visible_rows(views: Views) -> None:
    def facts(database: Database) -> str:
        parts = [
            list_tables(database),
            list_tables(database, "bad"),
            describe_tables(database, ["orders", "items"]),
            find_columns(database, "bad0"),
            find_columns(database, "south"),
            find_values(database, "bad0"),
            find_values(database, "south", "orders"),
            find_values(database, "nort"),
            find_values(database, "30", "orders", "id"),
            schema_card(database, tokens=900, count=len).text,
        ]
        return dumps(parts)

    one, *others = (facts(database) for database in views.each)
    assert others == [one, one, one]
    assert '"rows":30' in one
    assert "30 rows" in one
    assert "bad" not in one.replace('"bad0"', "")


def test_checks_of_a_query_count_visible_rows(views: Views) -> None:
    sql = "SELECT sum(o.total) FROM orders o JOIN items i ON i.order_id = o.id"

    def told(database: Database) -> tuple[object, ...]:
        report = check_query(database, sql, "What is the total of all orders?")
        return report.findings, report.ok, report.not_checked

    one, *others = (told(database) for database in views.each)
    assert others == [one, one, one]


def test_the_time_of_a_query_does_not_tell_a_hidden_row(views: Views, dialect: str) -> None:
    secret = hidden_secrets(1)[3]
    form = "SELECT count(*) FROM orders WHERE CASE WHEN secret = {} THEN " + HEAVY[dialect]
    form += " > {} ELSE 1 = 1 END"

    def seconds(guess: int) -> float:
        times = []
        for turn in range(7):
            sql = form.format(guess, turn)  # another text each time: nothing is cached
            started = time.perf_counter()
            views.costly.run(sql)
            times.append(time.perf_counter() - started)
        return min(times)  # other programs only add to it

    visible = seconds(7)
    hidden = seconds(secret)
    absent = seconds(secret + 1)
    assert abs(hidden - absent) < 0.5 * abs(visible - absent) or visible < absent + 0.01


def test_the_plan_of_a_filtered_table_is_made_of_visible_counts(views: Views) -> None:
    plan = views.one.check_sql("SELECT count(*) FROM orders a, orders b")
    assert [(scan.table, scan.rows) for scan in plan.scans] == [("orders", 30.0)]
    assert plan.pairs == 900.0
    assert plan.cost is None
    assert not re.search(r"50|530", repr(plan))
