"""What ClickHouse alone has: settings of a request, the server's own reading of a text, accounts,
cancelling by a query's id, nested columns; on chdb behind ClickHouse's HTTP interface.
"""

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    QueryCancelledError,
    QueryFailedError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    UnknownTableError,
)
from longtable.tools.database import Cancel, Database, QueryLimits, TablePolicy
from longtable.tools.engines.base import Fetched
from longtable.tools.sql.verdict import CostThresholds, reasons
from longtable.tools.toolset import run_sql
from longtable.tools.workers.runner import Runner, Stop
from tests.support import clickhouse
from tests.support.clickhouse import ClickhouseServer, clickhouse_server
from tests.support.mariadb import free_port
from tests.tools.databases import engine_of, open_at

if not (clickhouse.INSTALLED or clickhouse.NEEDED):
    pytest.skip(clickhouse.REASON, allow_module_level=True)

from clickhouse_connect.driver.exceptions import ProgrammingError

from longtable.tools.engines.clickhouse.clickhouse import ClickhouseSession
from longtable.tools.engines.clickhouse.clickhouse_connection import OLDEST, read_address
from longtable.tools.engines.clickhouse.clickhouse_errors import reason_of, translated
from longtable.tools.engines.clickhouse.clickhouse_introspection import (
    SyntaxTree,
    rights_beyond_reading,
)

WAIT_SECONDS = 20
SLOW = "SELECT count(*) FROM numbers(1000000000000) WHERE number % 7 = 8"
READINGS = (
    (Path(__file__).parents[2] / "sql" / "clickhouse_readings.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)
NOT_READ = {
    "SELECT intDiv(7, 2), intDiv(-7, 2), modulo(-7, 2), 7 MOD 2",
    "SELECT 7 DIV 2",
    "SELECT -7 DIV 2",
    "SELECT 1 IN (1), 'a' IN ('a'), 1 IN [1, 2], 1 IN tuple(1, 2)",
    "SELECT toDateTime('2024-01-15 10:00:00') + INTERVAL 1.5 HOUR",
    "SELECT timestamp_add(DATE '2024-01-15', INTERVAL 1 DAY)",
    "SELECT name, city FROM people ORDER BY id LIMIT 1 BY city LIMIT 2",
    "SELECT number FROM numbers(3) ORDER BY number WITH FILL FROM 0 TO 5",
    "SELECT x'4142', X'41', b'0101'",
    "SELECT finalizeAggregation(sumState(id)) FROM people",
}
"""Texts that the server would run, and that are refused rather than read wrongly."""


@pytest.fixture
def place(files: dict[str, str]) -> str:
    return files["clickhouse"]


@pytest.fixture
def database(databases: dict[str, Database]) -> Database:
    return databases["clickhouse"]


def eventually(happened: Callable[[], bool]) -> bool:
    """Look again and again, for what takes a moment on the server."""
    until = time.monotonic() + WAIT_SECONDS
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def at_work() -> int:
    """Return how many slow queries run on the server."""
    sql = "SELECT count() FROM system.processes WHERE query LIKE '%1000000000000%' AND NOT query LIKE '%processes%'"
    return int(clickhouse_server().run(sql)[0][0])


def fetched(database: Database, sql: str, *, walled: bool = False) -> Fetched:
    """Run a text past the wall over the tree."""
    database.catalog()

    def work(stop: Stop) -> Fetched:
        with engine_of(database).session(stop, walled=walled) as session, stop.watch(session):
            assert isinstance(session, ClickhouseSession)
            return session.fetch(sql, limits=database.limits, stop=stop)

    return Runner().run(work, seconds=WAIT_SECONDS)


# -- opening ---------------------------------------------------------------------------------------


def test_a_url_is_read_with_its_escapes_and_defaults() -> None:
    plain = read_address("clickhouse://me:a%40b@db.example/sho%20p")
    assert (plain.host, plain.port, plain.user, plain.password) == ("db.example", 8123, "me", "a@b")
    assert (plain.database, plain.tls, plain.max_rows_to_read) == ("sho p", False, None)
    assert "a@b" not in repr(plain)
    secure = read_address("clickhouses://db.example/shop?verify=false&max_rows_to_read=1000")
    assert (secure.port, secure.tls, secure.verify, secure.user) == (8443, True, False, "default")
    assert secure.max_rows_to_read == 1000


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("clickhouse://me:secret@host:8123/", "names no database"),
        ("clickhouse://me:secret@host/db?sslmode=on", "unknown parameter 'sslmode'"),
        ("clickhouse://me:secret@host:99999/db", "cannot be read"),
        ("clickhouse://me:secret@host/db?ca=/x.pem", "clickhouses://"),
        ("clickhouses://me:secret@host/db?ca=/missing/x.pem", "no readable file"),
        ("clickhouses://me:secret@host/db?verify=perhaps", "must be true or false"),
        ("clickhouse://me:secret@host/db?max_rows_to_read=many", "whole number of at least 1"),
    ],
)
def test_a_url_that_cannot_be_read_is_told_with_what_it_may_hold(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        Database.open(url)
    assert "secret" not in str(caught.value)


def test_a_wrong_password_a_missing_database_and_a_missing_server_are_told(place: str) -> None:
    server = clickhouse_server()
    server.account("guarded", password="hidden word")
    name = place.rpartition("/")[2]
    told = []
    for url in (
        server.url(name, user="guarded", password="other word"),
        server.url("no_such_database", user="guarded", password="hidden word"),
        f"clickhouse://me:word@127.0.0.1:{free_port()}/x",
    ):
        with pytest.raises(DatabaseUnavailableError) as caught:
            Database.open(url)
        told.append(str(caught.value))
    assert "does not admit the account 'guarded'" in told[0]
    assert "no database 'no_such_database'" in told[1]
    assert "cannot be reached" in told[2]
    assert "9000" in told[2]
    assert not any("word" in text.replace("password", "") for text in told)
    with Database.open(server.url(name, user="guarded", password="hidden word")) as database:
        assert database.run("SELECT 1").rows == [(1,)]
        assert "hidden" not in database.url + repr(database)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_a_connection_is_encrypted_and_its_certificate_is_checked(tmp_path: Path) -> None:
    for name in ("server", "other"):
        command = (
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / f"{name}.crt")),
        )
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        whole = (tmp_path / "key.pem").read_text() + (tmp_path / f"{name}.crt").read_text()
        (tmp_path / f"{name}.pem").write_text(whole)
    server = ClickhouseServer(str(tmp_path / "server.pem"))
    try:
        place = server.create("CREATE TABLE t (x Int32) ENGINE = MergeTree ORDER BY x")
        for more in (f"?ca={tmp_path / 'server.crt'}", "?verify=false"):
            with Database.open(place + more) as database:
                assert database.run("SELECT count() FROM t").rows == [(0,)]
                cancel = Cancel()
                threading.Timer(0.3, cancel.cancel).start()
                with pytest.raises(QueryCancelledError):
                    database.run(SLOW, cancel=cancel)
        for more in ("", f"?ca={tmp_path / 'other.crt'}"):
            with pytest.raises(DatabaseUnavailableError, match="cannot be reached"):
                Database.open(place + more)
    finally:
        server.stop()


@pytest.mark.parametrize("readonly", [1, 2])
def test_an_account_whose_profile_is_read_only_is_told_what_to_change(
    readonly: int, place: str
) -> None:
    server = clickhouse_server()
    server.account(f"reader{readonly}", readonly=readonly)
    with pytest.raises(DatabaseUnavailableError, match=f"readonly = {readonly}.*without readonly"):
        Database.open(server.url(place.rpartition("/")[2], user=f"reader{readonly}"))


def test_an_account_that_may_do_more_than_read_is_warned_of(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = clickhouse_server()
    name = place.rpartition("/")[2]
    server.account("writer", grants=[f"GRANT SELECT, INSERT ON {name}.* TO writer"])
    with caplog.at_level(logging.WARNING, logger="longtable"):
        Database.open(place).close()
        assert not caplog.records
        Database.open(server.url(name, user="writer")).close()
    assert "may do more than read (INSERT)" in caplog.text


def test_grants_are_read_as_the_server_writes_them() -> None:
    lines = [
        "GRANT SHOW, SELECT ON shop.* TO reader",
        "GRANT SELECT(id, name) ON shop.people TO reader",
        "GRANT analyst TO reader",
        "GRANT dictGet ON shop.* TO reader",
    ]
    assert rights_beyond_reading(lines) == ()
    assert rights_beyond_reading(["GRANT SELECT, FILE, URL ON *.* TO x WITH GRANT OPTION"]) == (
        "FILE",
        "URL",
    )


def test_an_old_server_is_refused_with_what_is_needed(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "longtable.tools.engines.clickhouse.clickhouse_connection.OLDEST", (9999, 1)
    )
    with pytest.raises(DatabaseUnavailableError, match=r"ClickHouse 9999\.1 or newer is needed"):
        Database.open(place)
    assert OLDEST == (24, 8)


def test_without_the_driver_the_error_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['clickhouse_connect'] = None\n"
        "from longtable.base.errors import MissingExtraError\n"
        "from longtable.tools.database import Database\n"
        "try: Database.open('clickhouse://me@127.0.0.1/x', isolation='none')\n"
        "except MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "a ClickHouse database cannot be opened without the extra `clickhouse`" in done.stdout


# -- the engine's own wall -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 SETTINGS max_threads = 1",
        "SELECT 1 SETTINGS readonly = 0",
        "SET readonly = 0",
        "SELECT * FROM file('/etc/passwd', 'CSV', 'a String')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
        "SELECT * FROM remote('127.0.0.1:1', 'system.one')",
        "INSERT INTO people VALUES (9, 'x', 'y', 1, 1)",
        "CREATE TEMPORARY TABLE x (a Int8)",
        "DROP TABLE people",
        "ALTER TABLE people DELETE WHERE 1",
    ],
)
def test_the_server_itself_refuses_what_is_no_reading(sql: str, database: Database) -> None:
    with pytest.raises((QueryRefusedError, QueryFailedError)):
        fetched(database, sql)
    assert fetched(database, "SELECT count() FROM people").rows == [(4,)]


def test_each_request_is_read_only_with_limits_of_its_own(database: Database) -> None:
    names = ("readonly", "max_memory_usage", "max_result_rows", "join_use_nulls", "max_threads")
    items = ", ".join(f"toString(getSetting('{name}'))" for name in names)
    row = fetched(database, f"SELECT {items}").rows[0]
    limits = database.limits
    assert row[:4] == ("1", str(limits.memory_bytes), str(limits.rows), "true")
    [[seconds]] = fetched(database, "SELECT toString(getSetting('max_execution_time'))").rows
    assert 0 < float(str(seconds)) <= WAIT_SECONDS


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT secret FROM vault",
        "SELECT 1 FROM people WHERE 'x' IN vault",
        "SELECT in((1, 'x'), vault) FROM people",
        "SELECT * FROM system.tables",
        "SELECT * FROM system.one",
        "SELECT * FROM default.people",
        "SELECT * FROM merge(currentDatabase(), 'vault')",
        "SELECT * FROM view(SELECT secret FROM vault)",
        "SELECT * FROM (SELECT * FROM (SELECT secret FROM vault))",
        "SELECT * FROM people SETTINGS max_threads = 1",
        "SELECT file('/etc/passwd')",
        "SELECT sleep(0.1)",
        "SELECT getSetting('readonly')",
        "SELECT arrayMap(x -> sleep(0.1), [1])",
        "WITH (SELECT max(secret) FROM vault) AS m SELECT m",
        "SELECT dictGet('d', 'a', 1)",
        "SELECT joinGet('vault', 'secret', 1)",
    ],
)
def test_the_server_s_own_reading_of_a_text_is_checked(sql: str, database: Database) -> None:
    with pytest.raises((QueryRefusedError, QueryFailedError)) as caught:
        fetched(database, sql, walled=True)
    assert "combination" not in str(caught.value)


def test_names_in_a_syntax_tree_cannot_be_written_by_an_alias() -> None:
    lines = [
        "SelectQuery (children 2)",
        " ExpressionList (children 2)",
        "  Function in (alias a",
        "TableIdentifier people) (children 1)",
        "   ExpressionList (children 2)",
        "    Literal UInt64_1",
        "    Identifier vault",
        "  Function toInt32 (alias b) (children 1)",
        " TablesInSelectQuery (children 1)",
        "  TableIdentifier shop.people (alias p)",
    ]
    tree = SyntaxTree([*lines[:2], "  Function in (alias a) (children 1)", *lines[4:]])
    assert tree.tables == {"vault", "shop.people"}
    assert tree.functions == {"in", "toint32"}
    # A line break in an alias can only add names, never take one away.
    assert SyntaxTree(lines).tables >= {"shop.people"}


def test_a_setting_that_the_account_s_profile_fixes_is_told() -> None:
    with (
        pytest.raises(DatabaseUnavailableError, match="take the constraint on this setting"),
        translated(limits=QueryLimits()),
    ):
        raise ProgrammingError("Setting max_memory_usage is readonly")


def test_an_error_tells_no_hidden_name_and_no_text_that_ran(database: Database) -> None:
    for sql in ("SELECT secre FROM people", "SELECT id FROM people WHERE vaul = 1"):
        with pytest.raises(QueryFailedError) as caught:
            database.run(sql)
        told = str(caught.value)
        assert "vault" not in told.replace("vaul =", "")
        assert "Maybe you meant" not in told
        assert "scope" not in told
    text = (
        "Received ClickHouse exception, code: 60, server response: Code: 60. DB::Exception: Unknown"
        " table expression identifier 'x'. Maybe you meant shop.vault?. In scope SELECT * FROM x"
        " WHERE region = 'north'. (UNKNOWN_TABLE) (version 26.9.2.1 (official build))"
    )
    assert reason_of(text) == "Unknown table expression identifier 'x'"
    syntax = "Code: 62. DB::Exception: Syntax error: failed at position 8 ('north'): 'north') rest"
    assert reason_of(syntax) == "Syntax error: failed at position 8"
    column = "Code: 215. DB::Exception: Column `a` is not under aggregate. In query SELECT 'north'"
    assert reason_of(column) == "Column `a` is not under aggregate"


# -- what was checked is what ran ------------------------------------------------------------------


def test_there_are_three_hundred_readings() -> None:
    assert len(set(READINGS)) >= 300
    assert set(READINGS) >= NOT_READ


def test_what_the_wall_writes_gives_what_the_server_makes_of_the_text(database: Database) -> None:
    unlike: dict[str, tuple[object, object]] = {}
    compared = 0
    for sql in READINGS:
        try:
            alone = fetched(database, sql)
        except DatabaseError:
            continue  # the server reads it as no query
        if sql in NOT_READ:
            with pytest.raises((QueryRefusedError, QueryFailedError)):
                database.run(sql)
            continue
        try:
            result = database.run(sql)
        except DatabaseError as error:
            unlike[sql] = (alone.rows, error)
            continue
        compared += 1
        theirs = list(map(repr, alone.rows))
        ours = list(map(repr, result.rows))
        if "ORDER BY" not in sql:  # rows of a union come in any order
            theirs.sort()
            ours.sort()
        if (ours, len(result.columns)) != (theirs, len(alone.columns)):
            unlike[sql] = (theirs, ours)
    assert unlike == {}
    assert compared >= 280


def test_an_alias_that_would_be_read_in_two_ways_is_refused(database: Database) -> None:
    for sql, said in (
        ("SELECT z AS y, name AS z FROM people", "used before the item"),
        ("SELECT (SELECT z) AS y, name AS z FROM people", "used before the item"),
        ("SELECT (id AS x) + 1 FROM people", "stands within an expression"),
        ("WITH 1 AS x SELECT x", "queries only"),
        ("SELECT id FROM people WHERE id IN (boss_id)", "a single name after IN"),
        ("SELECT id FROM people ARRAY JOIN [1] AS x", "arrayJoin"),
        ("SELECT people.id FROM people p", "has the alias 'p'"),
        ("SELECT 1 UNION ALL SELECT 2 ORDER BY 1", "for this SELECT alone"),
        ("SELECT 1 SETTINGS max_threads = 1", "SETTINGS is not allowed"),
        ("SELECT 1 UNION ALL SELECT 2 SETTINGS max_threads = 1", "SETTINGS is not allowed"),
        ("SELECT 1 FORMAT JSON", "FORMAT is not allowed"),
        ("SELECT id FROM people PREWHERE id = 1", "PREWHERE is not allowed"),
        ("SELECT id FROM people SAMPLE 0.1 PREWHERE id = 1", "is not allowed"),
        ("SELECT id FROM people PASTE JOIN people AS q", "PASTE JOIN"),
    ):
        with pytest.raises(QueryRefusedError, match=said):
            database.run(sql)


# -- limits, cancelling and a server that goes away ------------------------------------------------


def test_cancelling_kills_the_query_in_the_server(place: str) -> None:
    with open_at(place, limits=QueryLimits(seconds=60)) as database:
        database.catalog()
        cancel = Cancel()
        caught: list[BaseException] = []

        def run() -> None:
            try:
                database.run(SLOW, cancel=cancel)
            except DatabaseError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert eventually(lambda: at_work() == 1)
        cancel.cancel()
        thread.join(WAIT_SECONDS)
        assert [type(error) for error in caught] == [QueryCancelledError]
        assert eventually(lambda: at_work() == 0)
        assert database.run("SELECT count() FROM people").rows == [(4,)]


def test_a_query_over_its_time_ends_in_the_server(place: str) -> None:
    with open_at(place, limits=QueryLimits(seconds=0.5)) as database:
        with pytest.raises(QueryTimeoutError):
            database.run(SLOW)
        assert eventually(lambda: at_work() == 0)


def test_a_value_over_the_limit_is_not_read(place: str) -> None:
    with (
        open_at(place, limits=QueryLimits(bytes=20_000)) as database,
        pytest.raises(ResultTooLargeError),
    ):
        database.run("SELECT repeat('x', 1000000)")


def test_the_operator_s_limit_of_rows_is_told(place: str) -> None:
    with (
        Database.open(f"{place}?max_rows_to_read=100") as database,
        pytest.raises(QueryFailedError, match="more rows than the server lets"),
    ):
        database.run("SELECT max(n) FROM numbers")


def test_a_server_that_goes_away_is_told_and_one_that_is_back_is_asked() -> None:
    server = ClickhouseServer()
    try:
        place = server.create("CREATE TABLE t (x Int32) ENGINE = MergeTree ORDER BY x")
        name = place.rpartition("/")[2]
        with Database.open(place) as database:
            assert database.run("SELECT count() FROM t").rows == [(0,)]
            server.restart()
            server.account(f"{name}_reader")
            assert database.run("SELECT count() FROM t").rows == [(0,)]
            server.stop()
            with pytest.raises(DatabaseUnavailableError, match="cannot be asked"):
                database.run("SELECT count() FROM t")
    finally:
        server.stop()


# -- the catalogue ---------------------------------------------------------------------------------

ODD = """
CREATE TABLE people (id Int32, name LowCardinality(Nullable(String)) COMMENT 'as spoken', mood Enum8('sad' = 1, 'ok' = 2),
  twice Int32 ALIAS id * 2, thrice Int32 MATERIALIZED id * 3, gone Int32 EPHEMERAL, marks Nested(kind String, size Int8)
) ENGINE = MergeTree ORDER BY id COMMENT 'who works here';
INSERT INTO people (id, name, mood, marks.kind, marks.size) VALUES (1, 'Ada', 'ok', ['a'], [1]);
CREATE TABLE hidden_part (id Int32, secret String) ENGINE = MergeTree ORDER BY id;
INSERT INTO hidden_part VALUES (1, 'canary');
CREATE TABLE all_parts AS hidden_part ENGINE = Merge(currentDatabase(), '^hidden_part$');
CREATE TABLE buffered AS hidden_part ENGINE = Buffer(currentDatabase(), 'hidden_part', 1, 10, 100, 10, 100, 10, 100);
CREATE VIEW names AS SELECT id, name FROM people;
CREATE MATERIALIZED VIEW counted ENGINE = MergeTree ORDER BY mood AS SELECT mood, count() AS n FROM people GROUP BY mood;
CREATE VIEW asked AS SELECT id FROM people WHERE id = {wanted:Int32};
CREATE TABLE states (id Int32, total AggregateFunction(sum, Int32)) ENGINE = MergeTree ORDER BY id;
INSERT INTO states SELECT 1, sumState(toInt32(5));
"""


def test_the_catalogue_has_comments_views_generated_and_nested_columns() -> None:
    place = clickhouse_server().create(ODD)
    with Database.open(place) as database:
        tables = {table.name: table for table in database.catalog().tables}
        people = tables["people"]
        assert (people.kind, people.comment, people.rows_estimate) == ("table", "who works here", 1)
        assert [(each.name, each.type, each.nullable) for each in people.columns] == [
            ("id", "Int32", False),
            ("name", "String", True),
            ("mood", "Enum8", False),
            ("thrice", "Int32", False),
            ("marks.kind", "Array(String)", False),
            ("marks.size", "Array(Int8)", False),
            ("twice", "Int32", False),
        ]
        assert people.columns[1].comment == "as spoken"
        assert [each.generated_by for each in people.columns[3::3]] == ["id * 3", "id * 2"]
        assert (tables["names"].kind, tables["counted"].kind) == ("view", "view")
        assert "asked" not in tables  # it has a parameter
        assert not any(name.startswith(".inner") for name in tables)
        row = database.run("SELECT * FROM people").rows[0]
        assert row == (1, "Ada", "ok", 3, ["a"], [1], 2)
        assert database.run("SELECT n FROM counted").rows == []


def test_a_table_that_reads_a_hidden_one_is_hidden_too() -> None:
    place = clickhouse_server().create(ODD)
    policy = TablePolicy(denied=frozenset({"hidden_part"}))
    with Database.open(place, policy=policy) as database:
        names = {table.name for table in database.catalog().tables}
        assert not names & {"hidden_part", "all_parts", "buffered"}
        for name in ("hidden_part", "all_parts", "buffered"):
            with pytest.raises(UnknownTableError):
                database.run(f"SELECT secret FROM {name}")
    masked = TablePolicy(masked_columns=frozenset({"hidden_part.secret"}))
    with Database.open(place, policy=masked) as database:
        told = json.dumps(
            [run_sql(database, f"SELECT * FROM {name}")[0] for name in ("all_parts", "hidden_part")]
        )
        assert "canary" not in told


@pytest.mark.parametrize(
    "policy",
    [
        TablePolicy(denied=frozenset({"orders"})),
        TablePolicy(masked_columns=frozenset({"orders.secret"})),
        TablePolicy(denied_columns=frozenset({"orders.secret"})),
        TablePolicy(row_filters={"orders": "id = :id"}),
    ],
)
def test_a_view_that_is_stored_in_a_hidden_table_is_hidden_too(policy: TablePolicy) -> None:
    script = """
CREATE TABLE raw (id Int32, secret String) ENGINE = MergeTree ORDER BY id;
CREATE TABLE orders (id Int32, secret String) ENGINE = MergeTree ORDER BY id;
CREATE MATERIALIZED VIEW "stored AS one" TO orders AS SELECT id, secret FROM raw;
INSERT INTO orders VALUES (1, 'canary');
"""
    place = clickhouse_server().create(script)
    with Database.open(place) as database:
        assert database.run('SELECT secret FROM "stored AS one"').rows == [("canary",)]
    with Database.open(place, policy=policy) as database:
        assert "stored AS one" not in {table.name for table in database.catalog().tables}
        with pytest.raises((UnknownTableError, QueryRefusedError)):
            database.run('SELECT secret FROM "stored AS one"')


def test_what_a_table_reads_is_known_however_it_is_written() -> None:
    script = """
CREATE TABLE orders (id Int32, secret String) ENGINE = MergeTree ORDER BY id;
INSERT INTO orders VALUES (1, 'canary');
CREATE TABLE every AS orders ENGINE = Merge(REGEXP('^db'), '^orders$');
CREATE TABLE none_known AS orders ENGINE = Merge(currentDatabase(), '^nothing$');
"""
    place = clickhouse_server().create(script)
    policy = TablePolicy(denied=frozenset({"orders"}))
    with Database.open(place, policy=policy) as database:
        assert not {table.name for table in database.catalog().tables}


def test_states_of_an_aggregate_are_no_values() -> None:
    place = clickhouse_server().create(ODD)
    with Database.open(place) as database:
        with pytest.raises(QueryFailedError, match="finalizeAggregation"):
            database.run("SELECT total FROM states")
        assert database.run("SELECT finalizeAggregation(total) FROM states").rows == [(5,)]


NESTED = """
CREATE TABLE staff (id Int32, marks Nested(kind String, secret String), home Tuple(city String, street String))
  ENGINE = MergeTree ORDER BY id;
INSERT INTO staff VALUES (1, ['a'], ['canary'], ('Bern', 'canary street'));
"""
USES = [
    "SELECT marks.secret FROM staff",
    "SELECT `marks.secret` FROM staff",
    "SELECT s.marks.secret FROM staff s",
    "SELECT marks FROM staff",
    "SELECT s.marks FROM staff s",
    "SELECT * FROM staff",
    "SELECT arrayJoin(marks.secret) FROM staff",
    "SELECT arrayMap(x -> x, marks.secret) FROM staff",
    "SELECT tupleElement(marks, 'secret') FROM staff",
    "SELECT marks.1 FROM staff",
    "SELECT marks.secret.size0 + 5470 FROM staff",
    "SELECT marks.secret.size0 + 5470 AS n FROM staff",
    "SELECT s.marks.secret.size0 FROM staff s WHERE s.marks.secret.size0 = 1",
    "SELECT `marks.secret.size0` + 5470 FROM staff",
    "SELECT `home.street` FROM staff",
    "SELECT s.`home.street` FROM staff s",
    "SELECT `home.2` FROM staff",
    "SELECT `s.home.street` FROM staff s",
    "SELECT `staff.home.street` FROM staff",
    "SELECT arrayJoin(marks) FROM staff",
    "SELECT COLUMNS('secret') FROM staff",
    "SELECT home FROM staff",
    "SELECT home.street FROM staff",
    "SELECT s.home.2 FROM staff s",
    "SELECT tupleElement(home, 'street') FROM staff",
    "SELECT untuple(home) FROM staff",
]


@pytest.mark.parametrize("kind", ["masked_columns", "denied_columns"])
def test_parts_of_a_nested_column_and_of_a_tuple_can_be_closed(kind: str) -> None:
    place = clickhouse_server().create(NESTED)
    closed = frozenset({"staff.marks.secret", "staff.home"})
    policy = TablePolicy(**{kind: closed})  # type: ignore[arg-type]
    with Database.open(place, policy=policy) as database:
        for sql in USES:
            try:
                told = json.dumps(run_sql(database, sql)[0])
            except DatabaseError as error:
                told = str(error)
            assert "canary" not in told, sql
            assert "5471" not in told, sql
        assert database.run("SELECT id, marks.kind FROM staff").rows == [(1, ["a"])]


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        ("ALTER TABLE t ADD COLUMN y Int32", True),
        ("ALTER TABLE t COMMENT COLUMN x 'new'", True),
        ("ALTER TABLE t MODIFY COMMENT 'new'", True),
        ("CREATE TABLE u (x Int32) ENGINE = MergeTree ORDER BY x", True),
        ("INSERT INTO t VALUES (1)", False),
    ],
)
def test_the_version_changes_with_the_schema_alone(change: str, changes: bool) -> None:
    server = clickhouse_server()
    place = server.create("CREATE TABLE t (x Int32) ENGINE = MergeTree ORDER BY x")
    with Database.open(place) as database:
        engine = engine_of(database)
        before = engine.schema_version()
        server.run(change, database=place.rpartition("/")[2])
        assert (engine.schema_version() != before) is changes


# -- cost ------------------------------------------------------------------------------------------


def kinds(database: Database, sql: str) -> list[str]:
    low = CostThresholds(columnar_scan_rows=1_000, pairs=1_000_000)
    return [reason.kind for reason in reasons(database.check_sql(sql), low, database.dialect)]


def test_the_cost_is_told_before_the_query_runs(database: Database) -> None:
    assert kinds(database, "SELECT name FROM people WHERE id = 1") == []
    assert kinds(database, "SELECT max(n) FROM numbers") == ["scan"]
    assert kinds(database, "SELECT count(*) FROM numbers a, numbers b WHERE a.n > b.n") == [
        "pairs",
        "scan",
    ]
    assert kinds(database, "SELECT count(*) FROM numbers a JOIN people b ON a.n = b.id") == ["scan"]
    assert kinds(database, "SELECT n FROM numbers LIMIT 5") == []


def test_a_large_table_is_not_costly_by_its_size_alone() -> None:
    script = """
    CREATE TABLE big (n Int32) ENGINE = MergeTree ORDER BY n;
    INSERT INTO big SELECT number FROM numbers(25000000);
    """
    with Database.open(clickhouse_server().create(script)) as large:
        plan = large.check_sql("SELECT sum(n * n) FROM big")
        assert [(scan.table, scan.rows) for scan in plan.scans] == [("big", 25_000_000)]
        pruned = large.check_sql("SELECT sum(n * n) FROM big WHERE n < 10").scans
        assert sum(scan.rows for scan in pruned) < 20_000


def test_a_subquery_that_the_plan_would_run_makes_a_query_costly(database: Database) -> None:
    sql = "SELECT name FROM people WHERE id > (SELECT count() FROM numbers(1000000000000) WHERE number % 7 = 8)"
    started = time.monotonic()
    assert kinds(database, sql) == ["scan"]
    assert time.monotonic() - started < WAIT_SECONDS


def test_a_filter_is_not_tested_after_the_query_s_own_condition() -> None:
    script = """
    CREATE TABLE orders (id Int32, region String, note String) ENGINE = MergeTree ORDER BY note;
    INSERT INTO orders VALUES (1, 'north', '1'), (2, 'south', 'bad');
    """
    place = clickhouse_server().create(script)
    policy = TablePolicy(row_filters={"orders": "region = :region"})
    with Database.open(place, policy=policy) as database:
        north = database.bound({"region": "north"})
        for sql in (
            "SELECT count() FROM orders WHERE toInt32(note) > 0",
            "SELECT count() FROM orders WHERE note <> 'x' AND toInt32(note) > 0",
            "SELECT sum(toInt32(note)) FROM orders",
            "SELECT count() FROM orders GROUP BY toInt32(note)",
            "SELECT count() FROM orders a JOIN orders b ON toInt32(a.note) = toInt32(b.note)",
        ):
            assert north.run(sql).rows == [(1,)], sql
        south = database.bound({"region": "south"})
        with pytest.raises(QueryFailedError):
            south.run("SELECT count() FROM orders WHERE toInt32(note) > 0")
        hostile: Any = "north' OR 1 = 1 --\\"
        assert database.bound({"region": hostile}).run("SELECT count() FROM orders").rows == [(0,)]
