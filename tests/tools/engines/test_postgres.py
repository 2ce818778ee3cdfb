"""What PostgreSQL alone has: roles, schemas, a pool, a server that is told to stop; on a real
server.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from longtable.base.errors import (
    ConfigError,
    ConnectionWaitError,
    DatabaseError,
    DatabaseUnavailableError,
    QueryCancelledError,
    QueryFailedError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    TempSpaceError,
    TooManyRowsError,
    UnknownTableError,
)
from longtable.tools.database import Cancel, Database, QueryLimits, TablePolicy
from longtable.tools.engines import connection_pool
from longtable.tools.engines.postgres import PostgresEngine
from longtable.tools.engines.postgres_introspection import read_plan
from tests.support.postgres import postgres_server
from tests.tools.databases import Place, engine_of, open_at
from tests.tools.test_catalog import call

WAIT_SECONDS = 20
SLOW = "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d"
AT_WORK = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'longtable' AND state ="
    " 'active' AND query LIKE 'FETCH%'"
)


@pytest.fixture
def place(files: dict[str, Place]) -> str:
    return str(files["postgres"])


def eventually(happened: Callable[[], bool]) -> bool:
    """Look again and again, for what takes a moment on the server."""
    until = time.monotonic() + WAIT_SECONDS
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def at_work(place: str) -> int:
    return int(postgres_server().run(place, AT_WORK)[0][0])


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[Exception]]:
    caught: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, caught


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"]
)
def test_every_spelling_of_the_scheme_opens_the_database(scheme: str, place: str) -> None:
    with Database.open(scheme + place.removeprefix("postgresql")) as database:
        assert (database.dialect, database.run("SELECT count(*) FROM people").rows) == (
            "postgres",
            [(4,)],
        )
        assert database.name == place.partition("/db")[2].partition("?")[0].join(("db", ""))


def test_no_password_is_shown_anywhere(place: str) -> None:
    url = place.replace("postgres:@", "postgres@").replace(
        "postgresql://postgres@", "postgresql://postgres:s3cr%40t@"
    )
    with Database.open(url) as database:
        assert "s3cr" not in repr(database.url) + str(vars(database))
        assert database.url.startswith("postgresql://postgres@")
    for wrong in (
        "postgresql://u:s3cr@t@127.0.0.1:1/x",
        "postgresql://u:s3cr/t@127.0.0.1:1/x",
        "postgresql://u:s3crt@127.0.0.1:1/x?s3cr=1",
    ):
        with pytest.raises((ConfigError, DatabaseUnavailableError)) as caught:
            Database.open(wrong)
        assert "s3cr" not in str(caught.value).replace("?s3cr", "")


def test_a_server_that_is_not_there_and_a_database_that_is_not_there_are_told(place: str) -> None:
    with pytest.raises(DatabaseUnavailableError, match="cannot be reached"):
        Database.open("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(DatabaseUnavailableError, match="does not exist"):
        Database.open(postgres_server().url("nowhere"))


def test_without_the_driver_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from longtable.base.errors import ConfigError\n"
        "from longtable.tools.database import Database\n"
        "try: Database.open('postgresql://host/x')\n"
        "except ConfigError as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "pip install -e '.[postgres]'" in said


def test_the_driver_is_loaded_for_postgresql_only() -> None:
    code = (
        "import sys, longtable.tools.database, longtable.tools.sql.wall; print('psycopg' in"
        " sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()
        == "False"
    )


# -- stopping and waiting --------------------------------------------------------------------------


def test_cancelling_a_run_cancels_the_query_in_the_server(place: str) -> None:
    with open_at(place, limits=QueryLimits(seconds=60)) as database:
        database.catalog()
        cancel = Cancel()
        thread, caught = in_thread(lambda: database.run(SLOW, cancel=cancel))
        assert eventually(lambda: at_work(place) == 1)
        cancel.cancel()
        thread.join(WAIT_SECONDS)
        assert [type(error) for error in caught] == [QueryCancelledError]
        assert eventually(lambda: at_work(place) == 0)
        assert database.run("SELECT 1").rows == [(1,)]


def test_a_query_over_its_time_ends_in_the_server(place: str) -> None:
    with open_at(place, limits=QueryLimits(seconds=0.3)) as database:
        with pytest.raises(QueryTimeoutError, match=r"0\.3 s"):
            database.run(SLOW)
        assert eventually(lambda: at_work(place) == 0)


def test_the_server_itself_knows_the_limits(place: str) -> None:
    with open_at(place, limits=QueryLimits(seconds=7)) as database:
        engine = engine_of(database)
        assert isinstance(engine, PostgresEngine)
        names = (
            "transaction_read_only",
            "default_transaction_read_only",
            "transaction_isolation",
            "search_path",
            "temp_file_limit",
        )
        asked = ", ".join(
            f"current_setting('{name}')" for name in (*names, "statement_timeout", "lock_timeout")
        )
        found = database.read(f"SELECT {asked}, current_user", seconds=7)[0]
        assert found[:5] == ("on", "on", "repeatable read", "public, pg_temp", "976562kB")
        assert str(found[5]) == "7s" or 6_000 < int(str(found[5]).removesuffix("ms")) < 7_000
        assert found[6:] == ("5s", "pg_read_all_data")


def test_too_slow_is_not_waited_for_a_connection(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database.open(place, limits=QueryLimits(seconds=60), busy_seconds=0.2) as database:
        database.catalog()
        cancel = Cancel()
        threads = [
            in_thread(lambda: database.run(SLOW, cancel=cancel))[0]
            for _ in range(connection_pool.MAX_CONNECTIONS)
        ]
        assert eventually(lambda: at_work(place) == connection_pool.MAX_CONNECTIONS)
        with pytest.raises(ConnectionWaitError, match="was not started") as caught:
            database.run("SELECT 1")
        assert caught.value.connections == connection_pool.MAX_CONNECTIONS
        assert not isinstance(caught.value, QueryTimeoutError)
        cancel.cancel()
        for thread in threads:
            thread.join(WAIT_SECONDS)
        assert database.run("SELECT 1").rows == [(1,)]


def test_a_wait_for_a_connection_can_be_cancelled(place: str) -> None:
    with Database.open(place, limits=QueryLimits(seconds=60), busy_seconds=60) as database:
        database.catalog()
        first, second = Cancel(), Cancel()
        threads = [
            in_thread(lambda: database.run(SLOW, cancel=first))[0]
            for _ in range(connection_pool.MAX_CONNECTIONS)
        ]
        assert eventually(lambda: at_work(place) == connection_pool.MAX_CONNECTIONS)
        waiting, caught = in_thread(lambda: database.run("SELECT 1", cancel=second))
        second.cancel()
        waiting.join(WAIT_SECONDS)
        assert [type(error) for error in caught] == [QueryCancelledError]
        first.cancel()
        for thread in threads:
            thread.join(WAIT_SECONDS)


def test_connections_are_used_again_and_few(place: str) -> None:
    with open_at(place) as database:
        backends = {database.read("SELECT pg_backend_pid()", seconds=5)[0][0] for _ in range(10)}
        assert len(backends) == 1
        threads = [
            in_thread(
                lambda: database.run("SELECT count(*) FROM numbers a, numbers b WHERE a.n = b.n")
            )
            for _ in range(30)
        ]
        for thread, caught in threads:
            thread.join(WAIT_SECONDS)
            assert caught == []
        mine = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'longtable' AND datname"
            " = current_database()"
        )
        # The session's own Database has some.
        assert int(postgres_server().run(place, mine)[0][0]) <= 2 * connection_pool.MAX_CONNECTIONS


def test_a_connection_that_the_server_closed_is_replaced(place: str) -> None:
    with open_at(place) as database:
        backend = database.read("SELECT pg_backend_pid()", seconds=5)[0][0]
        postgres_server().run(place, f"SELECT pg_terminate_backend({backend}, 5000)")
        assert database.run("SELECT 1").rows == [(1,)]


def test_a_locked_table_is_told_and_not_waited_for_long(place: str) -> None:
    with psycopg.connect(place) as other, Database.open(place, busy_seconds=0.2) as database:
        database.catalog()
        other.execute("LOCK TABLE audit IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseUnavailableError, match="locked"):
            database.run("SELECT * FROM audit")
        other.rollback()
        assert database.run("SELECT count(*) FROM audit").rows == [(1,)]


def test_large_rows_are_stopped_in_the_server(place: str) -> None:
    with open_at(place, limits=QueryLimits(bytes=100_000)) as database:
        for sql in (
            "SELECT string_agg(repeat('x', 10000), '') AS s FROM numbers",
            "SELECT array_agg(n) || array_agg(-n) FROM numbers, people p",
        ):
            with pytest.raises(ResultTooLargeError, match="100,000"):
                database.run(sql)
        with pytest.raises(ResultTooLargeError, match="the result is larger"):
            database.run("SELECT repeat('x', 9000) FROM numbers LIMIT 100")


def test_temporary_space_has_its_own_limit_and_error(place: str) -> None:
    with (
        open_at(place, limits=QueryLimits(temp_bytes=1_000_000)) as database,
        pytest.raises(TempSpaceError, match="1,000,000") as caught,
    ):
        database.run(
            "SELECT a.n FROM numbers a, numbers b ORDER BY a.n * b.n LIMIT 1 OFFSET 3000000"
        )
    assert caught.value.code == "temp_space"


def test_two_million_rows_are_given_up_before_they_are_fetched(place: str) -> None:
    with open_at(place) as database, pytest.raises(TooManyRowsError):
        database.run(
            "SELECT a.n, b.n, 'some text that is not short at all' FROM numbers a, numbers b"
        )


# -- the engine's wall -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1) AS a; SELECT (1",
        "DELETE FROM people",
        "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
        "/*/* nested */ SELECT */ DELETE FROM people",
        "SELECT * INTO copy FROM people",
        "SELECT * FROM people FOR UPDATE",
        "SELECT * FROM vault",
        "SELECT * FROM through_two_views",
        "SELECT count(*) FROM pg_class",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT name FROM people WHERE pg_sleep(10) IS NOT NULL",
        "SELECT * FROM pg_ls_dir('.')",
        "SELECT name, (SELECT lo_import('/etc/passwd')) FROM people",
        "SELECT 'x' WHERE set_config('statement_timeout', '0', true) = '0'",
        "SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t(x int)",
        "SELECT nextval('counter')",
        "TRUNCATE people",
    ],
)
def test_the_engine_alone_refuses(sql: str, databases: dict[str, Database]) -> None:
    database = databases["postgres"]
    database.catalog()
    from longtable.tools.workers.runner import Stop

    stop = Stop(seconds=5)
    with pytest.raises(DatabaseError), engine_of(database).session(stop, walled=True) as session:
        session.fetch(sql, limits=database.limits, stop=stop)


def test_a_plan_tells_what_is_read_called_and_written() -> None:
    plan = read_plan(
        [
            {
                "Plan": {
                    "Node Type": "Nested Loop",
                    "Output": ["upper(p.name)", "lo_get('1'::oid)", "'pg_sleep(1)'::text"],
                    "Plans": [
                        {
                            "Node Type": "Seq Scan",
                            "Schema": "public",
                            "Relation Name": "people",
                            "Filter": "(\"pg_ls_dir\"(p.x) = E'\\'a(')",
                        },
                        {
                            "Node Type": "Foreign Scan",
                            "Relations": '(public.far) INNER JOIN ("Odd"."Name")',
                        },
                        {"Node Type": "LockRows"},
                        {"Node Type": "Function Scan", "Function Name": "dblink"},
                    ],
                }
            }
        ]
    )
    assert plan.relations == {("public", "people"), ("public", "far"), ("Odd", "Name")}
    assert plan.denied_functions == ["dblink", "lo_get", "pg_ls_dir"]
    assert plan.writes


def test_what_a_query_sets_does_not_outlive_it(place: str) -> None:
    with Database.open(place) as database:
        for sql in ("SELECT set_config('work_mem', '1GB', false)", "SELECT pg_advisory_lock(77)"):
            database.read(sql, seconds=5)
        assert database.read("SELECT current_setting('work_mem')", seconds=5)[0][0] != "1GB"
        assert postgres_server().run(
            place, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77"
        ) == [(0,)]


# -- roles, schemas, names -------------------------------------------------------------------------

ROLES = """
CREATE TABLE open_table (id int, shown text, hidden text);
INSERT INTO open_table VALUES (1, 'seen', 'unseen');
CREATE TABLE closed_table (id int);
CREATE SCHEMA locked;
CREATE TABLE locked.inside (id int);
CREATE TABLE guarded (owner text, what text);
INSERT INTO guarded VALUES ('reader', 'mine'), ('other', 'theirs');
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON guarded USING (owner = current_user);
CREATE ROLE reader LOGIN;
GRANT SELECT (id, shown) ON open_table TO reader;
GRANT SELECT ON guarded TO reader;
"""


@pytest.fixture(scope="module")
def for_roles(files: dict[str, Place]) -> str:
    url = postgres_server().create(ROLES, name="roles")
    return postgres_server().url("roles", user="reader") if url else ""


def test_a_role_sees_what_it_may_read(for_roles: str) -> None:
    with Database.open(for_roles) as database:
        assert {
            table.name: [column.name for column in table.columns]
            for table in database.catalog().tables
        } == {
            "open_table": ["id", "shown"],
            "guarded": ["owner", "what"],
        }
        assert call(database, "describe_tables", names=["open_table"])["tables"][0][
            "sample_rows"
        ] == [[1, "seen"]]
        assert database.run("SELECT what FROM guarded").rows == [("mine",)]
        with pytest.raises(QueryRefusedError):
            database.run("SELECT * FROM open_table")
        with pytest.raises(QueryRefusedError):
            database.run("SELECT hidden FROM open_table")


def test_a_superuser_gets_an_error_rather_than_rows_that_a_policy_leaves_out(
    for_roles: str,
) -> None:
    with Database.open(postgres_server().url("roles")) as database, pytest.raises(DatabaseError):
        database.run("SELECT what FROM guarded")


SCHEMAS = """
CREATE SCHEMA a; CREATE SCHEMA b; CREATE SCHEMA "Odd.Schema";
CREATE TABLE a.t (x text); INSERT INTO a.t VALUES ('from a');
CREATE TABLE b.t (x text); INSERT INTO b.t VALUES ('from b');
CREATE TABLE public.t (x text); INSERT INTO public.t VALUES ('from public');
CREATE TABLE b.only (x text); INSERT INTO b.only VALUES ('only b');
CREATE TABLE public."dot.ted" (x text);
CREATE TABLE "Odd.Schema"."Odd" (x text);
CREATE TABLE public.pg_class (x text);
"""


def test_names_mean_what_the_search_path_says(files: dict[str, Place]) -> None:
    url = postgres_server().create(SCHEMAS, search_path="b, public")
    with Database.open(url) as database:
        names = [table.name for table in database.catalog().tables]
        assert names == [
            "t",
            "only",
            "public.t",
            '"dot.ted"',
            "public.pg_class",
            '"Odd.Schema".Odd',
            "a.t",
        ]
        assert database.run("SELECT x FROM t").rows == [("from b",)]
        assert database.run("SELECT x FROM a.t UNION ALL SELECT x FROM public.t").rows == [
            ("from a",),
            ("from public",),
        ]
        assert database.run('SELECT x FROM "dot.ted"').rows == []
        assert database.run('SELECT x FROM "Odd.Schema"."Odd"').columns == ("x",)
        assert [
            row["name"] for row in call(database, "describe_tables", names=["a.t", "b.t"])["tables"]
        ] == ["a.t", "t"]
        with pytest.raises(UnknownTableError):
            database.run("SELECT * FROM pg_class")
    with (
        Database.open(url, policy=TablePolicy(denied=frozenset({"b.t"}))) as database,
        pytest.raises(UnknownTableError),
    ):
        database.run("SELECT x FROM t")  # public.t is seen, but this is not what the name means


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM Mixed", 'needs its quotes: "Mixed"'),
        ('SELECT FirstName FROM "Mixed"', 'needs its quotes: "FirstName"'),
        ('SELECT m.firstname FROM "Mixed" m', 'needs its quotes: "FirstName"'),
        ("SELECT round(salary, 2) FROM people", "CAST(x AS numeric)"),
        ("SELECT p.salry FROM people p", "nearest columns: salary"),
        ("SELECT main.people.name FROM main.people", "there is no table 'people'"),
    ],
)
def test_an_error_tells_what_postgresql_wants(
    sql: str, said: str, databases: dict[str, Database]
) -> None:
    with pytest.raises(QueryFailedError) as caught:
        databases["postgres"].run(sql)
    assert said in str(caught.value)


# -- the catalogue ---------------------------------------------------------------------------------


def test_partitions_inheritance_views_enums_and_domains_are_known(
    databases: dict[str, Database],
) -> None:
    catalog = databases["postgres"].catalog()
    kinds = {table.name: table.kind for table in catalog.tables}
    assert kinds["measures"] == "table"
    assert not {"measures_2023", "measures_2024"} & kinds.keys()
    assert (kinds["by_city"], kinds["bosses"], kinds["safe_box"]) == ("view", "view", "table")
    nested, measures, people = (
        catalog.find("nested"),
        catalog.find("measures"),
        catalog.find("public.people"),
    )
    assert nested is not None
    assert measures is not None
    assert people is not None
    assert [column.type for column in nested.columns] == [
        "text[]",
        "ENUM mood('sad', 'ok', 'happy')",
        "text (domain email)",
        "jsonb",
        "numeric(10,2)",
        "interval",
        "timestamp with time zone",
    ]
    assert (measures.rows_estimate, people.comment, people.columns[3].comment) == (
        3,
        "who works here",
        "thousand francs a year",
    )


@pytest.mark.parametrize(
    ("denied", "hidden"),
    [("measures_2023", "measures"), ("safe_box", "safe"), ("people", "by_city")],
)
def test_what_reads_a_denied_table_along_is_hidden(denied: str, hidden: str, place: str) -> None:
    with Database.open(place, policy=TablePolicy(denied=frozenset({denied}))) as database:
        assert database.catalog().find(hidden) is None
        with pytest.raises(QueryRefusedError):
            database.run(f"SELECT * FROM {hidden}")


def test_four_hundred_tables_take_as_many_queries_as_four(files: dict[str, Place]) -> None:
    script = "".join(
        f"CREATE TABLE t{index} (id int PRIMARY KEY, up int REFERENCES t{max(0, index - 1)} (id), n"
        " text);"
        for index in range(400)
    )
    with Database.open(postgres_server().create(script)) as database:
        seen: list[str] = []
        original = psycopg.RawCursor.execute

        def counting(self: Any, query: Any, *rest: Any, **more: Any) -> Any:
            seen.append(str(query))
            return original(self, query, *rest, **more)

        psycopg.RawCursor.execute = counting  # type: ignore[method-assign]  # to count what the driver is asked
        try:
            tables = database.catalog().tables
        finally:
            psycopg.RawCursor.execute = original  # type: ignore[method-assign]  # back again
        assert len(tables) == 400
        assert sum(len(table.foreign_keys) for table in tables) == 400
        assert len(seen) < 15


def test_large_tables_are_estimated_and_small_ones_counted(files: dict[str, Place]) -> None:
    script = (
        "CREATE TABLE large AS SELECT generate_series(1, 150000) AS n; CREATE TABLE small AS SELECT"
        " 1 AS n; ANALYZE; DELETE FROM small;"
    )
    with Database.open(postgres_server().create(script)) as database:
        large, small = call(database, "list_tables")["tables"]
        assert (large["rows"], large["rows_estimate"]) == (None, 150_000)
        assert small["rows"] == 0


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "cell"),
    [
        ("9007199254740993::bigint", "9007199254740993"),
        ("1.50::numeric", 1.5),
        ("12345678901234567890.123456789::numeric", "12345678901234567890.123456789"),
        ("'NaN'::numeric", "NaN"),
        ("'Infinity'::numeric", "Infinity"),
        ("'-Infinity'::float8", "-Infinity"),
        ("'nan'::real", "NaN"),
        ("12.5::money", "$12.50"),
        ("date '2024-02-29'", "2024-02-29"),
        ("'infinity'::date", "infinity"),
        ("'-infinity'::timestamptz", "-infinity"),
        ("'0044-03-15 BC'::date", "0044-03-15 BC"),
        ("'20000-01-01'::timestamp", "20000-01-01 00:00:00"),
        ("timestamp '2024-02-29 10:11:12.5'", "2024-02-29T10:11:12.500000"),
        ("timestamptz '2024-02-29 10:00+00' AT TIME ZONE 'UTC'", "2024-02-29T10:00:00"),
        ("timestamptz '2024-02-29 10:00+00' = timestamptz '2024-02-29 12:00+02'", True),
        ("time '10:11:12'", "10:11:12"),
        ("time '24:00'", "24:00:00"),
        ("timetz '10:11:12+02'", "10:11:12+02:00"),
        ("interval '1 day 2 hours'", "1 day, 2:00:00"),
        ("interval '1 year 2 months 3 days'", "1 year 2 mons 3 days"),
        ("interval '100000000 days'", "100000000 days, 0:00:00"),
        (
            '\'{"a": [1, 2.50, null], "b": {"c": true}}\'::jsonb',
            {"a": [1, 2.5, None], "b": {"c": True}},
        ),
        ("'12345678901234567890.5'::jsonb", "12345678901234567890.5"),
        ("'\"text\"'::json", "text"),
        ("ARRAY[1, NULL, 3]", [1, None, 3]),
        ("ARRAY[['a', 'b'], ['c', 'd']]", [["a", "b"], ["c", "d"]]),
        ("ARRAY['infinity'::date, '2024-01-01']", ["infinity", "2024-01-01"]),
        ("ARRAY[]::int[]", []),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        ("'abc'::bytea", "<3 bytes>"),
        ("'10.0.0.1/8'::inet", "10.0.0.1/8"),
        ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
        ("'08:00:2b:01:02:03'::macaddr", "08:00:2b:01:02:03"),
        ("'[1,5)'::int4range", "[1,5)"),
        ("'[2024-01-01,)'::daterange", "[2024-01-01,)"),
        ("'{[1,2),[5,6)}'::int4multirange", "{[1,2),[5,6)}"),
        ("point '(1,2)'", "(1,2)"),
        ("B'101'", "101"),
        ("to_tsvector('a cat')", "'cat':2"),
        ("ROW(1, 'a')", ["1", "a"]),
        ("'ok'::mood", "ok"),
        ("'a@b'::email", "a@b"),
        ("true", True),
        ("NULL", None),
        ("'a'::\"char\"", "a"),
        ("'\x1b[31mred\x07'", "red"),
    ],
)
def test_values_of_every_kind_come_through(
    sql: str, cell: object, databases: dict[str, Database]
) -> None:
    assert call(databases["postgres"], "run_sql", sql=f"SELECT {sql} AS x")["rows"] == [[cell]]


def test_a_result_without_rows_still_has_its_columns(databases: dict[str, Database]) -> None:
    result = databases["postgres"].run("SELECT id, name FROM people WHERE false")
    assert (result.columns, result.types, result.rows) == (("id", "name"), ("integer", "text"), [])


def test_columns_may_share_a_name(databases: dict[str, Database]) -> None:
    result = databases["postgres"].run("SELECT id, id, 1, 2 FROM people ORDER BY id DESC LIMIT 1")
    assert (result.columns, result.rows) == (("id", "id", "?column?", "?column?"), [(4, 4, 1, 2)])


def test_rows_keep_their_order(databases: dict[str, Database]) -> None:
    rows = databases["postgres"].run("SELECT n FROM numbers ORDER BY n % 7, n DESC").rows
    assert rows == sorted(((n,) for n in range(1, 2_001)), key=lambda row: (row[0] % 7, -row[0]))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"text": "OK", "table": "nested"}, ("nested", "feeling", "ok", "case")),
        ({"text": "ADA@"}, ("nested", "mail", "ada@example.com", "partial")),
        ({"text": "bolt"}, ("nested", "doc", '{"kind": "bolt"}', "partial")),
        ({"text": "9.99", "column": "price"}, ("nested", "price", 9.99, "exact")),
        ({"text": "2024-05", "table": "measures"}, ("measures", "taken", "2024-05-05", "partial")),
        ({"text": "1 day", "table": "nested"}, ("nested", "spent", "1 day", "exact")),
    ],
)
def test_find_values_reads_postgresql_types(
    arguments: dict[str, str], found: tuple[object, ...], databases: dict[str, Database]
) -> None:
    answer = call(databases["postgres"], "find_values", **arguments)
    match = answer["matches"][0]
    assert (match["table"], match["column"], match["value"], match["match"]) == found
    assert "incomplete" not in answer
