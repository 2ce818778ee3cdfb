"""What CTEs and views come to is counted before an engine sees the text; honest chains run."""

import time
from collections.abc import Iterator

import pytest

from longtable.graph.errors import QueryRefusedError
from longtable.tools.database import Database
from longtable.tools.guard import check
from tests.tools.databases import DIALECTS, make, open_at

TABLE = "CREATE TABLE t (x INTEGER);\nINSERT INTO t VALUES (1);\n"
VIEWS = "CREATE VIEW v0 AS SELECT x FROM t;\n" + "".join(
    f"CREATE VIEW v{i} AS SELECT a.x FROM v{i - 1} a, v{i - 1} b;\n" for i in range(1, 10)
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    folder = tmp_path_factory.mktemp("views")
    found = {dialect: open_at(make(folder, dialect, TABLE + VIEWS)) for dialect in DIALECTS}
    yield found
    for database in found.values():
        database.close()


@pytest.fixture
def database(dialect: str, opened: dict[str, Database]) -> Database:
    return opened[dialect]


def doubling(count: int, first: str = "SELECT x FROM t", each: str = "SELECT a.x FROM {0} a, {0} b") -> str:
    """Write CTEs that name the one before twice, each on a line of its own."""
    later = "".join(f",\na{i} AS ({each.format(f'a{i - 1}')})" for i in range(1, count))
    return f"WITH a0 AS ({first}){later} SELECT count(*) FROM a{count - 1}"


HOSTILE = {
    "tables": (doubling(30), (10, 1)),
    "values": (doubling(30, "SELECT 1 AS x"), (10, 1)),
    "subqueries of a condition": (doubling(30, each="SELECT x FROM {0} WHERE x IN (SELECT x FROM {0})"), (9, 1)),
    "parts of a union": (doubling(30, each="SELECT x FROM {0} UNION ALL SELECT x FROM {0}"), (10, 1)),
    "a WITH within one": (f"WITH o AS ({doubling(30)}) SELECT * FROM o", None),
    "uses in FROM": (doubling(7).replace("count(*) FROM a6", "1 FROM " + ", ".join(["a6"] * 30)), None),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_ctes_that_double_are_refused_before_the_engine_sees_them(text: str, database: Database) -> None:
    sql, place = HOSTILE[text]
    started = time.perf_counter()
    with pytest.raises(QueryRefusedError, match="once its CTEs and views are put in") as caught:
        database.run(sql)
    assert time.perf_counter() - started < 5
    assert caught.value.rule == "sources"
    assert "fewer times" in caught.value.hint
    assert place is None or (caught.value.line, caught.value.column) == place


def test_sqlite_sees_later_ctes_too(opened: dict[str, Database]) -> None:
    later = ", ".join(f"a{i} AS (SELECT a.n FROM a{i + 1} a, a{i + 1} b)" for i in range(30))
    with pytest.raises(QueryRefusedError, match="millions of tables"):
        opened["sqlite"].run(f"WITH {later}, a30 AS (SELECT 1 AS n) SELECT n FROM a0")


@pytest.mark.parametrize(
    "sql", ["SELECT 1 WHERE 1 IN people", "SELECT 1 WHERE 1 IN main.people", "SELECT name FROM people WHERE id NOT IN vault"]
)
def test_a_table_after_in_is_no_way_past_the_count_in_sqlite(sql: str, databases: dict[str, Database]) -> None:
    with pytest.raises(QueryRefusedError, match="after IN") as caught:
        databases["sqlite"].run(sql)
    assert "SELECT column FROM table" in caught.value.hint


def test_views_that_double_are_refused_and_small_ones_run(database: Database) -> None:
    assert database.run("SELECT x FROM v5").rows == [(1,)]
    for sql in (
        "SELECT x FROM v9",
        "SELECT x FROM (SELECT x FROM v9) q",
        "SELECT 1 FROM v6 a, v6 b, v6 c, v6 d, v6 e, v6 f, v6 g, v6 h",
        "WITH a AS (SELECT 1 FROM v6, v6 b) SELECT 1 FROM a, a b, a c, a d",
    ):
        with pytest.raises(QueryRefusedError, match="once its CTEs and views are put in"):
            database.run(sql)


HONEST = {
    "a chain": doubling(40, each="SELECT x FROM {0} WHERE x > 0"),
    "each used twice": doubling(6),
    "one used often": "WITH a AS (SELECT x FROM t) SELECT count(*) FROM " + ", ".join(f"a b{i}" for i in range(10)),
    "recursion": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT count(*) FROM n",
    "subqueries written out": "SELECT count(*) FROM " + "(SELECT p.x FROM (SELECT x FROM t) p, " * 10 + "t" + ") q" * 10,
    "a long union": "SELECT count(*) FROM (" + " UNION ALL ".join(["SELECT x FROM t"] * 100) + ") u",
}


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_query_of_many_parts_runs(text: str, database: Database) -> None:
    assert database.run(HONEST[text]).rows


def test_counting_takes_time_in_proportion_to_the_text(database: Database) -> None:
    times = []
    for count in (100, 400):
        started = time.perf_counter()
        assert check(doubling(count), dialect=database.dialect, catalog=database.catalog()).rule in ("sources", "table")
        times.append(time.perf_counter() - started)
    assert times[1] < 5


GROWING = {
    "over CTEs": doubling(30, each="SELECT x + x AS x FROM {0}"),
    "over CTEs of other names": doubling(30, "SELECT x AS x0 FROM t", "SELECT y + y AS y FROM (SELECT * FROM {0}) q(y)"),
    "over subqueries": "SELECT x FROM " + "(SELECT x + x AS x FROM " * 20 + "t" + ") q" * 20,
    "over unions": doubling(30, each="SELECT x + x AS x FROM {0} UNION ALL SELECT 1"),
}
NAMES_OF_ONE_SELECT = "SELECT x AS y0, " + ", ".join(f"y{i} + y{i} AS y{i + 1}" for i in range(25)) + " FROM t"


@pytest.mark.parametrize("text", GROWING)
def test_an_expression_that_doubles_from_name_to_name_is_refused(text: str, database: Database) -> None:
    with pytest.raises(QueryRefusedError, match="once the expressions it names are put in") as caught:
        database.run(GROWING[text])
    assert "fewer times" in caught.value.hint


def test_the_names_of_one_select_may_not_double_either_in_duckdb(opened: dict[str, Database]) -> None:
    with pytest.raises(QueryRefusedError, match="once the expressions it names are put in"):
        opened["duckdb"].run(NAMES_OF_ONE_SELECT)
    short = "SELECT x AS y0, y0 + y0 AS y1, y1 + y1 AS y2, y2 * 2 AS x FROM t"
    assert opened["duckdb"].run(short).rows == [(1, 2, 4, 8)]


def test_a_chain_of_honest_expressions_runs(database: Database) -> None:
    each = "SELECT CASE WHEN x > 0 THEN x ELSE -x END AS x FROM {0}"
    assert database.run(doubling(8, each=each)).rows == [(1,)]
    assert database.run(doubling(40, each="SELECT x + 1 AS x FROM {0}")).rows == [(1,)]
