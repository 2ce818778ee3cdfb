"""Expanded CTEs, views and expressions are counted before an engine sees the text; honest chains
run.
"""

import time
from collections.abc import Iterator

import pytest

from longtable.base.errors import QueryRefusedError
from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.database import Database
from longtable.tools.sql.wall import check
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


def doubling(
    count: int, first: str = "SELECT x FROM t", each: str = "SELECT a.x FROM {0} a, {0} b"
) -> str:
    """Write CTEs that name the one before twice, each on a line of its own."""
    later = "".join(f",\na{i} AS ({each.format(f'a{i - 1}')})" for i in range(1, count))
    return f"WITH a0 AS ({first}){later} SELECT count(*) FROM a{count - 1}"


HOSTILE = {
    "tables": (doubling(30), (10, 1)),
    "values": (doubling(30, "SELECT 1 AS x"), (10, 1)),
    "subqueries of a condition": (
        doubling(30, each="SELECT x FROM {0} WHERE x IN (SELECT x FROM {0})"),
        (9, 1),
    ),
    "parts of a union": (
        doubling(30, each="SELECT x FROM {0} UNION ALL SELECT x FROM {0}"),
        (10, 1),
    ),
    "a WITH within one": (f"WITH o AS ({doubling(30)}) SELECT * FROM o", None),
    "uses in FROM": (
        doubling(7).replace("count(*) FROM a6", "1 FROM " + ", ".join(["a6"] * 30)),
        None,
    ),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_ctes_that_double_are_refused_before_the_engine_sees_them(
    text: str, database: Database
) -> None:
    sql, place = HOSTILE[text]
    started = time.process_time()
    with pytest.raises(QueryRefusedError, match="after its CTEs and views are expanded") as caught:
        database.run(sql)
    assert time.process_time() - started < 5
    assert caught.value.rule == "sources"
    assert "fewer times" in caught.value.hint
    assert place is None or (caught.value.line, caught.value.column) == place


def test_sqlite_sees_later_ctes_too(opened: dict[str, Database]) -> None:
    later = ", ".join(f"a{i} AS (SELECT a.n FROM a{i + 1} a, a{i + 1} b)" for i in range(30))
    with pytest.raises(QueryRefusedError, match="more than 1,000 tables"):
        opened["sqlite"].run(f"WITH {later}, a30 AS (SELECT 1 AS n) SELECT n FROM a0")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 WHERE 1 IN people",
        "SELECT 1 WHERE 1 IN main.people",
        "SELECT name FROM people WHERE id NOT IN vault",
    ],
)
def test_a_table_after_in_is_no_way_past_the_count_in_sqlite(
    sql: str, databases: dict[str, Database]
) -> None:
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
        with pytest.raises(QueryRefusedError, match="after its CTEs and views are expanded"):
            database.run(sql)


HONEST = {
    "a chain": doubling(40, each="SELECT x FROM {0} WHERE x > 0"),
    "each used twice": doubling(6),
    "one used often": (
        "WITH a AS (SELECT x FROM t) SELECT count(*) FROM "
        + ", ".join(f"a b{i}" for i in range(10))
    ),
    "recursion": (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT"
        " count(*) FROM n"
    ),
    "subqueries written out": (
        "SELECT count(*) FROM " + "(SELECT p.x FROM (SELECT x FROM t) p, " * 10 + "t" + ") q" * 10
    ),
    "a long union": (
        "SELECT count(*) FROM (" + " UNION ALL ".join(["SELECT x FROM t"] * 100) + ") u"
    ),
}


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_query_of_many_parts_runs(text: str, database: Database) -> None:
    assert database.run(HONEST[text]).rows


def test_counting_takes_time_in_proportion_to_the_text(database: Database) -> None:
    times = []
    for count in (100, 400):
        started = time.process_time()
        assert check(
            doubling(count), dialect=database.dialect, catalog=database.catalog()
        ).rule in ("sources", "table")
        times.append(time.process_time() - started)
    assert times[1] < 5


GROWING = {
    "over CTEs": doubling(30, each="SELECT x + x AS x FROM {0}"),
    "over CTEs of other names": doubling(
        30, "SELECT x AS x0 FROM t", "SELECT y + y AS y FROM (SELECT * FROM {0}) q(y)"
    ),
    "over subqueries": "SELECT x FROM " + "(SELECT x + x AS x FROM " * 20 + "t" + ") q" * 20,
    "over unions": doubling(30, each="SELECT x + x AS x FROM {0} UNION ALL SELECT 1"),
    "a table in brackets": doubling(25, each="SELECT x + x AS x FROM ({0})"),
    "a table in two brackets": doubling(20, each="SELECT x + x AS x FROM (({0}))"),
    "a join in brackets": doubling(
        20, each="SELECT x + x AS x FROM ({0} AS p CROSS JOIN (SELECT 1) AS q)"
    ),
    "a join in brackets after another table": doubling(
        20, each="SELECT x + x AS x FROM (SELECT 1) o JOIN ({0} p CROSS JOIN (SELECT 2) r) ON 1 = 1"
    ),
    "a subquery of the outer column": doubling(
        25, each="SELECT (SELECT o.x + o.x) AS x FROM {0} o"
    ),
    "many items": (
        doubling(13, each="SELECT x + x AS x FROM {0}").replace("count(*)", "x + 1, " * 1_900 + "1")
    ),
    "WHERE": (
        doubling(10, each="SELECT x + x AS x FROM {0}") + " WHERE " + " OR ".join(["x > 1"] * 100)
    ),
    "stars": doubling(6, each="SELECT " + "*, " * 19 + "* FROM {0}"),
    "a named window": (
        f"SELECT {'sum(x) OVER w, ' * 200}1 FROM t WINDOW w AS (ORDER BY {'x + ' * 100}1)"
    ),
    "literals": (
        f"WITH a AS (SELECT x IN ({'1, ' * 2_000}1) AS x FROM t) SELECT {'x, ' * 50}1 FROM a"
    ),
    "uses of one CTE": (
        f"WITH a AS (SELECT x FROM t WHERE {'x > 1 OR ' * 500}x > 1) SELECT 1 FROM a"
        + "".join(f", a b{i}" for i in range(30))
    ),
}
NAMES_OF_ONE_SELECT = (
    "SELECT x AS y0, " + ", ".join(f"y{i} + y{i} AS y{i + 1}" for i in range(25)) + " FROM t"
)


@pytest.mark.parametrize("text", GROWING)
def test_an_expression_that_doubles_from_name_to_name_is_refused(
    text: str, database: Database
) -> None:
    started = time.process_time()
    with pytest.raises(
        QueryRefusedError, match="expands to more than 10,000 column references"
    ) as caught:
        database.run(GROWING[text])
    assert time.process_time() - started < 5
    assert "fewer times" in caught.value.hint


def test_the_names_of_one_select_may_not_double_either_in_duckdb(
    opened: dict[str, Database],
) -> None:
    with pytest.raises(QueryRefusedError, match="expands to more than 10,000 column references"):
        opened["duckdb"].run(NAMES_OF_ONE_SELECT)
    short = "SELECT x AS y0, y0 + y0 AS y1, y1 + y1 AS y2, y2 * 2 AS x FROM t"
    assert opened["duckdb"].run(short).rows == [(1, 2, 4, 8)]


def test_a_chain_of_honest_expressions_runs(database: Database) -> None:
    each = "SELECT CASE WHEN x > 0 THEN x ELSE -x END AS x FROM {0}"
    assert database.run(doubling(8, each=each)).rows == [(1,)]
    assert database.run(doubling(40, each="SELECT x + 1 AS x FROM {0}")).rows == [(1,)]


ALIASES = "SELECT x > 0 AS b0, " + ", ".join(f"b{i} AND b{i} AS b{i + 1}" for i in range(12))


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", f"SELECT x + 1 AS b FROM t WHERE {'b + ' * 9_000}1"),
        ("duckdb", f"{ALIASES} FROM t WHERE {'b12 AND ' * 3_000}true"),
        ("duckdb", f"{ALIASES}, {'b12, ' * 3_000}1 FROM t"),
        ("duckdb", f"{ALIASES}, {'sum(x) OVER w, ' * 20}1 FROM t WINDOW w AS (ORDER BY b9)"),
    ],
)
def test_each_use_of_an_alias_is_counted(
    dialect: str, sql: str, opened: dict[str, Database]
) -> None:
    with pytest.raises(QueryRefusedError, match="expands to more than 10,000 column references"):
        opened[dialect].run(sql)


def test_a_wide_query_over_a_view_of_a_cte_and_many_conditions_run(database: Database) -> None:
    wide = ", ".join(f"x AS c{i}" for i in range(400))
    names = ", ".join(f"c{i}" for i in range(400))
    conditions = " OR ".join(f"x = {i}" for i in range(1_000))
    assert (
        len(
            database.run(
                f"WITH a AS (SELECT {wide} FROM v5), b AS (SELECT * FROM a) SELECT {names} FROM b"
            ).columns
        )
        == 400
    )
    if database.dialect != "sqlite":  # SQLite itself allows a depth of 500
        assert database.run(f"SELECT x FROM t WHERE {conditions}").rows == [(1,)]


def test_the_expressions_of_a_view_are_counted_and_a_long_view_may_be_used_once() -> None:
    table = Table("t", "table", (Column("x", "INTEGER"),))
    views = (
        Table("heavy", "view", (Column("x", "INTEGER"),)),
        Table("long", "view", (Column("x", "INTEGER"),)),
    )
    texts = {
        ("main", "heavy"): f"CREATE VIEW heavy(x) AS SELECT {'t.x + ' * 900}1 FROM t",
        ("main", "long"): f"SELECT {'x + ' * 20_000}1 FROM t",
    }
    catalog = Catalog((table, *views), view_sql=texts)
    for sql, allowed in {
        "SELECT x FROM heavy WHERE x > 0": True,
        f"SELECT {'x, ' * 20}1 FROM heavy": False,
        "SELECT x FROM long": True,
        "SELECT 1 FROM long a, long b": False,
    }.items():
        assert check(sql, dialect="sqlite", catalog=catalog).allowed is allowed, sql
