"""A row filter stands at each place where its table is read, in each engine."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from decimal import Decimal

import pytest
import sqlglot

from longtable.base.errors import DatabaseError, QueryRefusedError, RowParameterError
from longtable.tools.catalog import Catalog, Column, RowFilter, Table
from longtable.tools.database import Database, TablePolicy
from longtable.tools.engines.dialects import DIALECTS as RECORDS
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.row_filters.fences import Fences, _Names, with_named_marks
from longtable.tools.sql.wall import VERDICTS, check, own_sql
from tests.tools.databases import DIALECTS, Place, spelled, url
from tests.tools.sql.row_filters.rows_database import NORTH, VISIBLE, make_rows, open_rows
from tests.tools.sql.sql_texts import ALLOWED, BOTH_ALLOWED
from tests.tools.sql.sql_texts_clickhouse import NOT_CLICKHOUSE
from tests.tools.sql.sql_texts_mysql import NOT_MYSQL


@pytest.fixture(scope="module")
def rows_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    with ExitStack() as stack:
        yield {
            dialect: stack.enter_context(
                open_rows(make_rows(tmp_path_factory.mktemp(dialect), dialect))
            )
            for dialect in DIALECTS
        }


def schema_of(database: Database) -> str:
    return QUALIFIED.get(database.dialect) or database.name


@pytest.fixture
def north(dialect: str, rows_databases: dict[str, Database]) -> Database:
    return rows_databases[dialect].bound(NORTH)


COUNTS = [
    "SELECT count(*) FROM orders",
    "SELECT count(*) FROM orders AS o",
    "SELECT count(o.id) FROM orders o WHERE o.total >= 0",
    "SELECT count(*) FROM (SELECT * FROM orders) AS t",
    "WITH o AS (SELECT * FROM orders) SELECT count(*) FROM o",
    "WITH orders AS (SELECT * FROM orders) SELECT count(*) FROM orders",
    "WITH a AS (SELECT id FROM orders), b AS (SELECT id FROM a) SELECT count(*) FROM b",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM"
    " orders)) SELECT max(n) FROM r",
    "SELECT (SELECT count(*) FROM orders)",
    "SELECT max((SELECT count(*) FROM orders WHERE i.id > 0)) FROM items i",
    "SELECT sum(CASE WHEN id IN (SELECT id FROM orders) THEN 1 ELSE 0 END) FROM orders",
    "SELECT count(*) FROM orders WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = orders.id)",
    "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id",
    "SELECT count(*) FROM orders a JOIN orders b USING (id)",
    "SELECT count(*) FROM orders a NATURAL JOIN orders b",
    "SELECT count(b.id) FROM items i CROSS JOIN orders b WHERE i.id = 1",
    "SELECT count(b.id) FROM items i, orders b WHERE i.id = 1",
    "SELECT count(DISTINCT o.id) FROM orders o LEFT JOIN items i ON i.order_id = o.id",
    "SELECT count(o.id) FROM (SELECT 1 AS one) x LEFT JOIN orders o ON 1 = 1",
    "SELECT count(*) FROM (SELECT id FROM orders UNION SELECT id FROM orders) AS t",
    "SELECT count(*) FROM (SELECT id FROM orders INTERSECT SELECT id FROM orders) AS t",
    "SELECT count(*) FROM (SELECT id FROM orders EXCEPT SELECT 0) AS t",
    "SELECT count(*) FROM (SELECT id FROM orders UNION ALL SELECT id FROM orders WHERE 1 = 0) AS t",
    "SELECT max(c) FROM (SELECT count(*) OVER () AS c FROM orders) AS t",
    "SELECT count(*) FROM orders GROUP BY region ORDER BY 1 LIMIT 1",
    "SELECT count(*) FROM orders HAVING count(*) > 0",
    "SELECT count(*) FILTER (WHERE o.id > 0) FROM orders o",
    "SELECT count(DISTINCT region) * 30 FROM orders",
    'SELECT count(*) FROM "orders"',
]
QUALIFIED = {"sqlite": "main", "duckdb": "main", "postgres": "public"}
"""The name of the schema; MySQL's is the database's."""
MORE = {
    "sqlite": ["SELECT count(*) FROM ORDERS", "SELECT count(*) FROM (orders)"],
    "duckdb": [
        "FROM orders SELECT count(*)",
        "SELECT count(*) FROM orders SEMI JOIN regions USING (region)",
        "SELECT count(*) FROM orders a ASOF JOIN orders b ON a.id >= b.id",
        "SELECT count(*) FROM regions r, LATERAL (SELECT id FROM orders o WHERE o.region = r.region)"
        " AS l",
        "SELECT count(*) FROM orders POSITIONAL JOIN orders AS b",
        "SELECT sum(id) FROM (PIVOT orders ON region IN ('north') USING count(id) AS id) AS p"
        " WHERE false OR 30 = 30",
        "SELECT count(COLUMNS('id')) FROM orders",
    ],
    "mysql": [
        "SELECT count(*) FROM (orders)",
        "SELECT STRAIGHT_JOIN count(*) FROM orders a, orders b WHERE a.id = b.id",
        "SELECT count(*) FROM orders FORCE INDEX (orders_by_secret) WHERE secret > 0",
    ],
    "clickhouse": [
        "FROM orders SELECT count()",
        "SELECT count() FROM orders LEFT SEMI JOIN regions USING (region)",
        "SELECT count() FROM orders a ASOF JOIN orders b ON a.region = b.region AND a.id >= b.id",
        "SELECT length(groupArray(id)) FROM orders",
        "SELECT count(COLUMNS('^id')) FROM orders",
        "SELECT uniqExact(secret) FROM (SELECT * FROM orders)",
        "SELECT count() FROM orders WHERE id GLOBAL IN (SELECT id FROM orders)",
    ],
    "postgres": [
        "SELECT count(*) FROM ONLY orders",
        "SELECT count(*) FROM regions r CROSS JOIN LATERAL (SELECT id FROM orders o WHERE o.region ="
        " r.region) AS l",
        "SELECT count(orders) FROM orders",
        "SELECT count(*) FROM orders WHERE orders = orders",
        "SELECT json_array_length(json_agg(o)) FROM orders o",
    ],
}


def scalar(database: Database, sql: str) -> object:
    return database.run(sql).rows[0][0]


@pytest.mark.parametrize("sql", COUNTS)
def test_only_rows_that_meet_the_filter_are_counted(north: Database, sql: str) -> None:
    if "FILTER" in sql and north.dialect == "mysql":
        pytest.skip("MySQL has no FILTER")
    if north.dialect == "clickhouse" and ("max((" in sql or "= orders.id" in sql):
        pytest.skip("no correlated subquery in an aggregate, and `orders` would mean o there")
    assert scalar(north, sql) == VISIBLE


def test_forms_of_one_engine_count_only_these_rows(north: Database, dialect: str) -> None:
    qualified = f"SELECT count(*) FROM {schema_of(north)}.orders"
    texts = [text for text in MORE[dialect] if "PIVOT" not in text]
    assert [scalar(north, text) for text in [qualified, *texts]] == [VISIBLE] * (len(texts) + 1)


def test_columns_named_with_their_schema_are_found(north: Database, dialect: str) -> None:
    schema = schema_of(north)
    sql = f"SELECT max({schema}.orders.total) FROM {schema}.orders WHERE {schema}.orders.id > 3"
    assert scalar(north, sql) == 2 * VISIBLE


def test_a_correlated_subquery_sees_only_these_rows(north: Database) -> None:
    sql = (
        "SELECT i.id, (SELECT count(*) FROM orders o WHERE o.id = i.order_id) FROM items i ORDER BY"
        " i.id"
    )
    none = None if north.dialect == "clickhouse" else 0  # there a count of no rows is NULL then
    assert north.run(sql).rows == [(1, 1), (2, 1), (3, none), (4, none)]


def test_a_hidden_table_is_not_named_by_the_view_that_reads_it(
    dialect: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = TablePolicy(
        allowed=frozenset({"all_orders", "items"}), row_filters={"orders": "region = :region"}
    )
    with open_rows(make_rows(tmp_path_factory.mktemp("allowed"), dialect), policy) as database:
        with pytest.raises(QueryRefusedError, match="it reads a table, of which"):
            database.run("SELECT count(*) FROM all_orders")
        assert [table.name for table in database.catalog().tables] == ["items"]


def test_a_pivot_sees_only_these_rows(rows_databases: dict[str, Database]) -> None:
    sql = (
        "SELECT * FROM (PIVOT (SELECT region, id FROM orders) ON region IN ('north', 'south') USING"
        " count(id)) AS p"
    )
    assert rows_databases["duckdb"].bound(NORTH).run(sql).rows == [(VISIBLE, 0)]


def test_outer_joins_find_no_hidden_row(north: Database) -> None:
    sql = "SELECT i.id, o.secret FROM items i LEFT JOIN orders o ON o.id = i.order_id ORDER BY i.id"
    assert north.run(sql).rows == [(1, 1), (2, 2), (3, None), (4, None)]


def test_another_parameter_shows_other_rows(
    dialect: str, rows_databases: dict[str, Database]
) -> None:
    database = rows_databases[dialect]
    counts = {
        region: scalar(database.bound({"region": region}), "SELECT count(*) FROM orders")
        for region in ("north", "south", "east", "north' OR '1'='1")
    }
    assert counts == {"north": 30, "south": 20, "east": 0, "north' OR '1'='1": 0}


def test_a_missing_parameter_refuses_queries_of_the_table_alone(
    dialect: str, rows_databases: dict[str, Database]
) -> None:
    database = rows_databases[dialect]
    assert scalar(database, "SELECT count(*) FROM items") == 4
    for seen in (database, database.bound({}), database.bound({"other": 1, "region": None})):
        with pytest.raises(RowParameterError, match="'region' is missing"):
            seen.run("SELECT count(*) FROM items WHERE order_id IN (SELECT id FROM orders)")
        with pytest.raises(RowParameterError, match="'region' is missing"):
            seen.read("SELECT count(*) FROM orders", seconds=5)


def test_a_parameter_of_another_type_refuses(north: Database) -> None:
    with pytest.raises(RowParameterError, match=r"'region' must be a text, found int"):
        north.bound({"region": 7}).run("SELECT 1 FROM orders")


def test_views_over_a_filtered_table_are_closed_with_the_reason(north: Database) -> None:
    assert {table.name for table in north.catalog().tables} == {
        *("orders", "items", "regions", "heads")
    }
    for view in ("all_orders", "large_orders"):
        with pytest.raises(QueryRefusedError, match=f"the view '{view}' cannot be read") as caught:
            north.run(f"SELECT count(*) FROM {view}")
        assert caught.value.rule == "rows"
    assert scalar(north, "SELECT count(*) FROM heads") == 2


def test_a_view_with_a_filter_of_its_own_is_read_under_it(
    dialect: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    filters = {"orders": "region = :region", "all_orders": "region = :region AND total < 11"}
    place = make_rows(tmp_path_factory.mktemp("views"), dialect)
    with open_rows(place, TablePolicy(row_filters=filters)) as database:
        north = database.bound(NORTH)
        assert scalar(north, "SELECT count(*) FROM all_orders") == 5
        with pytest.raises(QueryRefusedError, match="large_orders"):
            north.run("SELECT count(*) FROM large_orders")


def test_a_filter_may_have_no_parameter(
    dialect: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = make_rows(tmp_path_factory.mktemp("fixed"), dialect)
    with open_rows(place, TablePolicy(row_filters={"orders": "total < 10"})) as database:
        assert scalar(database, "SELECT count(*) FROM orders") == 14
        mark = "$1::int" if RECORDS[dialect].numbered_marks else "?"
        own = f'SELECT count(*) FROM "orders" WHERE "total" > {mark}'
        assert database.read(spelled(own, dialect), [4], seconds=5) == [(7,)]


def test_a_filter_may_read_a_denied_and_a_masked_column(
    dialect: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = TablePolicy(
        row_filters={"orders": "orders.region = :region AND total <= :most"},
        denied_columns=frozenset({"orders.region"}),
        masked_columns=frozenset({"orders.total"}),
    )
    place = make_rows(tmp_path_factory.mktemp("columns"), dialect)
    with open_rows(place, policy) as database:
        north = database.bound({"region": "north", "most": 20})
        assert scalar(north, "SELECT count(*) FROM orders") == 10
        result = north.run("SELECT * FROM orders ORDER BY id LIMIT 1")
        assert result.columns == ("id", "secret", "total", "note")
        assert result.shown(result.rows) == [(1, 1, "•••", "1")]
        with pytest.raises(DatabaseError, match="region"):
            north.run("SELECT region FROM orders")
        own = spelled('SELECT "id" FROM "orders" WHERE "id" > 8', dialect)
        assert north.read(own, seconds=5) == [(9,), (10,)]


def test_the_shown_sql_and_headings_hold_no_filter(north: Database) -> None:
    result = north.run("SELECT (SELECT max(total) FROM orders), (SELECT 1) AS x FROM items LIMIT 1")
    assert result.rows == [(60, 1)]
    assert "region" not in result.sql + " ".join(result.columns)
    assert north.run(result.sql).rows == result.rows


def test_a_text_that_looks_like_a_mark_stays_a_text(north: Database) -> None:
    sql = "SELECT count(*), '? $1 :region longtable_row0z' AS t FROM orders WHERE note <> '?$1'"
    assert north.run(sql).rows == [(VISIBLE, "? $1 :region longtable_row0z")]


@pytest.mark.parametrize("mark", ["?", "$1", ":region", "@region", "?1"])
def test_a_model_writes_no_marks_itself(north: Database, mark: str) -> None:
    with pytest.raises(DatabaseError):
        north.run(f"SELECT count(*) FROM orders WHERE region = {mark} OR note = {mark}")


def test_our_own_parameters_and_those_of_rows_keep_their_places(north: Database) -> None:
    rules = RECORDS[north.dialect]
    one, two = ("$1::int", "$2::int") if rules.numbered_marks else ("?", "?")
    sql = (
        f'SELECT {one} AS a, count(*) FROM "orders" AS x WHERE "id" < {two} AND "id" IN (SELECT "id"'
        ' FROM "orders")'
    )
    own = spelled(sql, north.dialect)
    assert north.read(own, [7, 11], seconds=5) == [(7, 10)]


def test_a_sample_of_a_filtered_table_is_refused(north: Database, dialect: str) -> None:
    samples = {
        "duckdb": "SELECT count(*) FROM orders TABLESAMPLE reservoir(5 ROWS)",
        "postgres": "SELECT count(*) FROM orders TABLESAMPLE BERNOULLI (50)",
    }
    if dialect in samples:
        with pytest.raises(QueryRefusedError, match="sample cannot stand beside 'orders'"):
            north.run(samples[dialect])


def test_a_verdict_holds_no_value_and_serves_every_person(
    dialect: str, rows_databases: dict[str, Database]
) -> None:
    database = rows_databases[dialect]
    VERDICTS.clear()
    sql = "SELECT count(*) FROM orders WHERE total > 3"
    verdict = check(sql, dialect=dialect, catalog=database.catalog())
    assert verdict.marks == (("region", "text"),)
    assert "north" not in verdict.sql
    assert scalar(database.bound(NORTH), sql) != scalar(database.bound({"region": "south"}), sql)


TABLE = Table("t", "table", (Column("a", "INTEGER"), Column("b", "TEXT")))
CATALOG = Catalog(
    (TABLE,), row_filters={("main", "t"): RowFilter("b = :b", (("b", "text"),), ("b",))}
)


def test_a_read_without_its_fence_is_never_written() -> None:
    fences = Fences(
        CATALOG,
        "duckdb",
        resolve=lambda node: TABLE if node.name == "t" else None,
        render=lambda node: node.sql("duckdb"),
        heading=lambda node: node.sql("duckdb"),
    )
    tree = sqlglot.parse_one("SELECT a FROM t WHERE a > 1", dialect="duckdb")
    put = fences.put(tree)
    assert put is not None
    assert put.sql.count("?") == 1
    # What is written is what was built: a filter that is lost on the way is seen.
    lost = sqlglot.parse_one(put.sql.replace('"b" = ?', "TRUE"), dialect="duckdb")
    whole = sqlglot.parse_one(put.sql, dialect="duckdb")
    assert fences._taken_apart(lost, _Names("", ())) != fences._taken_apart(whole, _Names("", ()))
    with pytest.raises(RefusedError, match="without its row filter"):
        fences._taken_apart(tree, _Names("", ()))


def test_marks_in_texts_and_names_are_no_marks() -> None:
    sql, names = with_named_marks("SELECT '?', \"?\", ? FROM t WHERE a = ?", "sqlite")
    assert sql == "SELECT '?', \"?\", longtable_own0z FROM t WHERE a = longtable_own1z"
    assert names == ["longtable_own0z", "longtable_own1z"]
    sql, names = with_named_marks("SELECT $2::text, '$1' FROM t WHERE a = $1", "postgres")
    assert sql == "SELECT longtable_own1z::text, '$1' FROM t WHERE a = longtable_own0z"
    assert names == ["longtable_own0z", "longtable_own1z"]


def test_own_sql_without_a_filtered_table_keeps_its_marks() -> None:
    own = own_sql(
        "SELECT 1 FROM (SELECT 2 AS x) AS s WHERE x = ?", dialect="duckdb", catalog=CATALOG
    )
    assert own.sources is None
    assert "?" in own.sql


EVERY_TABLE = (
    "people",
    "order",
    "audit",
    "Order Details",
    "客户",
    "empty_list",
    "numbers",
    "bosses",
)
OF_ONE = {
    "sqlite": ("generated", "keyed"),
    "duckdb": ("nested", "sales.items"),
    "postgres": ("nested", "Mixed", "sales.items", "measures", "safe", "by_city"),
    "mysql": (),
    "clickhouse": ("generated", "nested", "Mixed"),
}
MOMENTS = re.compile(r"\bSAMPLE\b|TABLESAMPLE|now\(\)|age\(|current_|random|clock_|\browid\b", re.I)
WHOLE_ROWS = ("SELECT p FROM people p",)
"""A row of a subquery has no type of its own, so PostgreSQL sends its parts."""


def test_a_filter_that_every_row_meets_changes_no_answer(
    dialect: str, databases: dict[str, Database], files: dict[str, Place]
) -> None:
    filters: dict[str, str] = dict.fromkeys([*EVERY_TABLE, *OF_ONE[dialect]], "1 = 1")
    policy = TablePolicy(denied=frozenset({"vault"}), row_filters=filters)
    changed: dict[str, tuple[object, object]] = {}
    asked = 0
    with Database.open(url(files[dialect]), policy=policy, isolation="none") as filtered:
        unlike = {"mysql": NOT_MYSQL, "clickhouse": NOT_CLICKHOUSE}.get(dialect, {})
        both = [spelled(sql, dialect) for sql in BOTH_ALLOWED if sql not in unlike]
        for sql in [*both, *ALLOWED[dialect]]:
            if MOMENTS.search(sql) or sql in WHOLE_ROWS:
                continue
            asked += 1
            plain = sorted(map(repr, databases[dialect].run(sql).rows))
            if (rows := sorted(map(repr, filtered.run(sql).rows))) != plain:
                changed[sql] = (plain, rows)
    assert changed == {}
    assert asked > 60


def test_numbers_of_rows_are_refused(rows_databases: dict[str, Database]) -> None:
    north = rows_databases["sqlite"].bound(NORTH)
    for sql in ("SELECT max(rowid) FROM orders", "SELECT id FROM orders o WHERE o._rowid_ = 3"):
        with pytest.raises(QueryRefusedError, match="only some of its rows are seen"):
            north.run(sql)
    assert scalar(north, "SELECT max(rowid) FROM items") == 4


def test_workers_bind_the_values_too(
    dialect: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = TablePolicy(
        row_filters={"orders": "region = :region AND total >= :least AND total < :most"}
    )
    place = make_rows(tmp_path_factory.mktemp("workers"), dialect)
    with Database.open(url(place), policy=policy, isolation="process") as database:
        seen = database.bound({"region": "north", "least": Decimal(4), "most": 10.5})
        assert scalar(seen, "SELECT count(*) FROM orders") == 4
        own = spelled('SELECT max("id") FROM "orders"', dialect)
        assert seen.read(own, seconds=5) == [(5,)]
        assert seen.check_sql("SELECT * FROM orders a, orders b").pairs == 16.0
        with pytest.raises(
            RowParameterError, match="'most' must be a number, found date"
        ) as caught:
            database.bound({"region": "north", "least": 1, "most": date(2024, 1, 31)}).run(
                "SELECT 1 FROM orders"
            )
        assert caught.value.name == "most"
        with pytest.raises(RowParameterError, match="'region' is missing"):
            database.run("SELECT 1 FROM orders")
