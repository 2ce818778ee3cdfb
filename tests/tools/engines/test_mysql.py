"""What MySQL and MariaDB alone have: grants, sessions that are reset, a server that is told to
stop, TLS, types; on a real MariaDB.
"""

import json
import logging
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    QueryCancelledError,
    QueryFailedError,
    QueryMemoryError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    TooManyRowsError,
    UnknownTableError,
)
from longtable.tools.database import Cancel, Database, QueryLimits, TablePolicy
from longtable.tools.engines.base import Fetched
from longtable.tools.engines.mysql import ONLY_FULL_GROUP_BY, SQL_MODE, MysqlEngine, MysqlSession
from longtable.tools.engines.mysql_connection import read_address, read_version
from longtable.tools.engines.mysql_introspection import names_in_note, read_cost, read_grants
from longtable.tools.workers.runner import Runner, Stop
from tests.support import mariadb
from tests.support.mariadb import MYSQLD, MariadbServer, free_port, mariadb_server
from tests.tools.databases import engine_of, open_at

if not (mariadb.INSTALLED or mariadb.NEEDED):
    pytest.skip(mariadb.REASON, allow_module_level=True)

WAIT_SECONDS = 20
SLOW = "SELECT SUM(SQRT(a.n + b.n + c.n)) FROM numbers a, numbers b, numbers c"
READINGS = (
    (Path(__file__).parents[1] / "sql" / "mysql_readings.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)
NOT_READ = {
    "SELECT N'text', n'text', _utf8mb4'text'",
    'SELECT "name" "x"',
    "SELECT CHAR(65, 66), CHAR(0x41 USING utf8mb4)",
    "SELECT GREATEST(1, 2, 3), LEAST('b', 'a'), GREATEST(1, NULL), INTERVAL(5, 1, 10)",
    (
        "SELECT '2024-02-29' + INTERVAL 1 DAY, '2024-02-29' - INTERVAL 1 YEAR, INTERVAL 2 MONTH +"
        " '2024-01-31'"
    ),
    (
        "SELECT DATE_ADD('2024-01-01', INTERVAL 1.5 DAY), DATE_ADD('2024-01-01 00:00:00', INTERVAL"
        " '1.5' SECOND)"
    ),
}
"""Readings that are refused rather than read wrongly."""
NOT_MARIADB = {"SELECT doc->'$.kind', doc->>'$.kind', doc->>\"$.kind\" FROM nested"}
"""MySQL's operators, which the wall writes as functions that MariaDB has, too."""
NOT_MYSQL = {
    "SELECT 'ab' RLIKE '^a', 'ab' NOT REGEXP '^a', 'Ab' REGEXP BINARY '^a'",
    "SELECT MD5('a'), SHA1(\"a\"), CRC32('a'), TO_BASE64('abc'), FROM_BASE64('YWJj')",
}
"""A collation that MySQL's REGEXP does not take, and functions that left it with 9.0."""
RESERVED = "SELECT price, total_price FROM generated"
"""A query over a table whose name is reserved on MySQL. The wall quotes it."""
TIME_LIMIT = "max_execution_time" if MYSQLD else "max_statement_time"


@pytest.fixture
def place(files: dict[str, str]) -> str:
    return files["mysql"]


@pytest.fixture
def database(databases: dict[str, Database]) -> Database:
    return databases["mysql"]


def eventually(happened: Callable[[], bool]) -> bool:
    """Look again and again, for what takes a moment on the server."""
    until = time.monotonic() + WAIT_SECONDS
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def at_work(database: Database) -> int:
    """Return how many slow queries run in this database."""
    sql = (
        "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Query' AND info LIKE"
        f" 'SELECT SUM(SQRT(%' AND db = '{database.name}'"
    )
    return int(mariadb_server().run(sql)[0][0])


def in_session(
    database: Database,
    act: Callable[[MysqlSession], object],
    *,
    walled: bool = False,
    seconds: float = WAIT_SECONDS,
) -> Any:
    """Do something in a session of the engine, past the wall over the tree."""
    database.catalog()

    def work(stop: Stop) -> object:
        with engine_of(database).session(stop, walled=walled) as session, stop.watch(session):
            assert isinstance(session, MysqlSession)
            return act(session)

    return Runner().run(work, seconds=seconds)


def fetched(database: Database, sql: str, *, walled: bool = False) -> Fetched:
    stop = Stop(seconds=WAIT_SECONDS)
    result = in_session(
        database,
        lambda session: session.fetch(sql, limits=database.limits, stop=stop),
        walled=walled,
    )
    assert isinstance(result, Fetched)
    return result


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scheme", ["mysql", "mariadb", "mysql+pymysql", "mariadb+mariadbconnector"]
)
def test_every_spelling_of_the_scheme_opens_the_database(scheme: str, place: str) -> None:
    with Database.open(scheme + place.removeprefix("mysql")) as database:
        assert (database.dialect, database.run("SELECT count(*) FROM people").rows) == (
            "mysql",
            [(4,)],
        )
        assert database.name in place


@pytest.mark.parametrize(
    ("grant", "right"),
    [
        ("FILE ON *.*", "FILE"),
        ("SUPER ON *.*", "SUPER"),
        ("ALL PRIVILEGES ON *.*", "FILE and SUPER"),
        ("SELECT, PROCESS, FILE ON *.*", "FILE"),
    ],
)
def test_an_account_that_can_reach_files_or_do_anything_is_refused(grant: str, right: str) -> None:
    server = mariadb_server()
    server.create(name="mighty")
    server.run(
        f"DROP USER IF EXISTS mighty@`%`; CREATE USER mighty@`%`; GRANT SELECT ON mighty.* TO mighty@`%`;"
        f" GRANT {grant} TO mighty@`%`"
    )
    with pytest.raises(DatabaseUnavailableError, match=f"the right {right} on the server"):
        Database.open(server.url("mighty", user="mighty"))


def test_a_right_that_a_role_gives_is_seen() -> None:
    server = mariadb_server()
    server.create(name="by_role")
    server.run(
        "CREATE ROLE filer; GRANT FILE ON *.* TO filer; CREATE USER roled@`%`;"
        " GRANT SELECT ON by_role.* TO roled@`%`; GRANT filer TO roled@`%`;"
        f" SET DEFAULT ROLE filer {'TO' if MYSQLD else 'FOR'} roled@`%`"
    )
    with pytest.raises(DatabaseUnavailableError, match="the right FILE"):
        Database.open(server.url("by_role", user="roled"))


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ("SELECT, SHOW VIEW", ""),
        ("SELECT, EXECUTE", ""),
        ("SELECT, INSERT, UPDATE (name)", "(INSERT, UPDATE)"),
        ("ALL PRIVILEGES", "(ALL PRIVILEGES)"),
    ],
)
def test_an_account_that_may_write_is_warned_of(
    rights: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    rights = rights.replace("UPDATE (name)", "UPDATE")
    url = mariadb_server().create("CREATE TABLE t (name TEXT)", rights=rights)
    with caplog.at_level(logging.WARNING, logger="longtable"), Database.open(url):
        pass
    assert len(caplog.records) == bool(said)
    assert said in caplog.text


def test_grants_are_read_as_either_server_writes_them() -> None:
    lines = [
        "GRANT USAGE ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*7B9'",
        "GRANT SELECT (`a`, `file`), INSERT (`b`) ON `shop`.`t` TO `r`@`%`",
        "GRANT `reader`@`%` TO `r`@`%`",
        "GRANT BACKUP_ADMIN,PROCESS ON *.* TO `r`@`%` WITH GRANT OPTION",
    ]
    grants = read_grants(lines)
    assert grants.refused == ()
    assert grants.beyond == ("BACKUP_ADMIN", "INSERT", "PROCESS")
    assert read_grants(["GRANT INSERT, DROP ON `test`.* TO PUBLIC"]).beyond == ()
    assert read_grants(["GRANT INSERT ON `shop`.* TO PUBLIC"]).beyond == ("INSERT",)
    assert read_grants(["GRANT ALL PRIVILEGES ON *.* TO x"]).refused == ("FILE", "SUPER")
    assert read_grants(["GRANT SELECT, FILE ON *.* TO x"]).refused == ("FILE",)


def test_a_wrong_password_a_missing_database_and_a_missing_server_are_told() -> None:
    server = mariadb_server()
    server.create(name="shop")
    server.run("CREATE USER ada@`%` IDENTIFIED BY 's3cr@t'; GRANT SELECT ON shop.* TO ada@`%`")
    with Database.open(server.url("shop", user="ada", password="s3cr@t")) as database:
        assert database.run("SELECT 1").rows == [(1,)]
        assert "s3cr" not in repr(database.url) + str(vars(database))
        assert database.url == f"mysql://ada@127.0.0.1:{server.port}/shop"
    for url, said in (
        (
            server.url("shop", user="ada", password="s3crwrong"),
            "does not admit the account: Access denied",
        ),
        (
            server.url("nowhere", user="ada", password="s3cr@t"),
            "does not admit the account: .*nowhere",
        ),
        (f"mysql://ada:s3cr@127.0.0.1:{free_port()}/shop", "cannot be reached: .*refused"),
        (server.url("shop", user="ada") + "?unix_socket=/missing", "cannot be reached"),
    ):
        with pytest.raises(DatabaseUnavailableError, match=said) as caught:
            Database.open(url)
        assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://u:p@h/", "names no database"),
        ("mysql://u:p@h/x?charset=latin1", "unknown parameter 'charset': known are ssl_mode"),
        ("mysql://u:p@h/x?ssl_mode=maybe", "must be one of DISABLED, PREFERRED"),
        ("mysql://u:p@h:99999/x", "cannot be read"),
    ],
)
def test_a_url_that_cannot_be_read_is_told_with_what_it_may_hold(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_address(url)


def test_a_url_is_read_with_its_escapes_and_defaults() -> None:
    address = read_address(
        "mysql://a%40b:p%2Fw@[::1]/sh%20op?ssl_mode=verify-identity&ssl_ca=/c.pem"
    )
    assert (address.user, address.password, address.host) == ("a@b", "p/w", "::1")
    assert (address.port, address.database) == (3306, "sh op")
    assert (address.mode, address.ca) == ("VERIFY_IDENTITY", "/c.pem")
    assert read_address("mysql://h/x").mode == "PREFERRED"
    assert read_address("mysql://h/x?ssl_ca=/c.pem").mode == "VERIFY_CA"
    assert "p/w" not in repr(address)


def test_without_the_driver_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['pymysql'] = None\n"
        "from longtable.base.errors import ConfigError\n"
        "from longtable.tools.database import Database\n"
        "try: Database.open('mysql://host/x')\n"
        "except ConfigError as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "a MySQL or MariaDB database cannot be opened without the extra `mysql`" in said


# -- versions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("10.11.19-MariaDB-0+deb12u1", "MariaDB", (10, 11, 19)),
        ("5.5.5-10.6.12-MariaDB-log", "MariaDB", (10, 6, 12)),
        ("8.0.36", "MySQL", (8, 0, 36)),
        ("5.7.44-log", "MySQL", (5, 7, 44)),
        ("8.0.11-TiDB-v7.5.0", "MySQL", (8, 0, 11)),
    ],
)
def test_a_version_is_read(text: str, kind: str, number: tuple[int, ...]) -> None:
    version = read_version(text)
    assert (version.kind, version.number) == (kind, number)
    assert version.is_mariadb == (kind == "MariaDB")


def packet(number: int, body: bytes) -> bytes:
    return struct.pack("<I", len(body))[:3] + bytes([number]) + body


def old_server(listener: socket.socket) -> None:
    """Answer one client as MySQL 5.7 does: a greeting, and an OK to whatever logs in."""
    client, _ = listener.accept()
    with client:
        greeting = b"\x0a5.7.44\x00" + struct.pack("<I", 7) + b"abcdefgh\x00"
        greeting += struct.pack("<HBHHB", 0xF7FF & ~0x0800, 33, 2, 0x0008, 21) + b"\x00" * 10
        greeting += b"ijklmnopqrst\x00mysql_native_password\x00"
        client.sendall(packet(0, greeting))
        for number in (2, 1, 1, 1):
            if not client.recv(4_096):
                return
            client.sendall(packet(number, b"\x00\x00\x00\x02\x00\x00\x00"))


def test_mysql_5_7_is_refused_with_what_is_needed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=old_server, args=(listener,), daemon=True)
        thread.start()
        wanted = "MySQL 5.7.44: MySQL 8.0 or MariaDB 10.5 or newer is needed"
        with pytest.raises(DatabaseUnavailableError, match=wanted):
            Database.open(f"mysql://u@127.0.0.1:{port}/x?ssl_mode=DISABLED")
        thread.join(WAIT_SECONDS)


# -- encrypted connections -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate authority, a server's certificate for localhost, and another authority."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        done = subprocess.run(
            ["openssl", *arguments], cwd=folder, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr

    for name in ("ca", "other"):
        openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN=longtable {name}"),
        )
    openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr"),
        *("-subj", "/CN=localhost"),
    )
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    openssl(
        *("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"),
        *("-CAcreateserial", "-days", "2", "-out", "server.pem", "-extfile", "names"),
    )
    return folder


@pytest.fixture(scope="module")
def encrypted(certificates: Path) -> Iterator[str]:
    """A server with TLS; the URL of one of its databases."""
    server = MariadbServer(
        f"--ssl-ca={certificates / 'ca.pem'}",
        f"--ssl-cert={certificates / 'server.pem'}",
        f"--ssl-key={certificates / 'server.key'}",
    )
    try:
        yield server.create("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    finally:
        server.stop()


def cipher(database: Database) -> str:
    rows = in_session(
        database, lambda session: session.link.connection.rows("SHOW STATUS LIKE 'Ssl_cipher'")
    )
    return str(rows[0][1])


@pytest.mark.parametrize(
    ("more", "is_encrypted"),
    [
        ("", True),
        ("?ssl_mode=PREFERRED", True),
        ("?ssl_mode=REQUIRED", True),
        ("?ssl_mode=DISABLED", False),
        ("?ssl_ca={ca}", True),
        ("?ssl_mode=VERIFY_CA&ssl_ca={ca}", True),
    ],
)
def test_a_connection_is_encrypted_as_the_url_asks(
    more: str, is_encrypted: bool, encrypted: str, certificates: Path
) -> None:
    url = encrypted + more.format(ca=certificates / "ca.pem")
    with Database.open(url, isolation="none") as database:
        assert bool(cipher(database)) == is_encrypted
        assert database.run("SELECT a FROM t").rows == [(1,)]


def test_a_certificate_is_checked(encrypted: str, certificates: Path) -> None:
    authority = f"?ssl_mode=VERIFY_IDENTITY&ssl_ca={certificates / 'ca.pem'}"
    with Database.open(encrypted.replace("127.0.0.1", "localhost") + authority) as database:
        assert database.run("SELECT a FROM t").rows == [(1,)]
    for more in (authority, f"?ssl_ca={certificates / 'other.pem'}", "?ssl_mode=VERIFY_CA"):
        with pytest.raises(DatabaseUnavailableError, match="certificate"):
            Database.open(encrypted + more)
    for missing in ("ssl_ca=/missing.pem", f"ssl_cert={certificates / 'ca.pem'}&ssl_key=/missing"):
        with pytest.raises(ConfigError, match="certificates that the MySQL URL names cannot"):
            Database.open(f"{encrypted}?{missing}")


@pytest.mark.skipif(bool(MYSQLD), reason="MySQL always makes itself a certificate")
@pytest.mark.parametrize("mode", ["REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"])
def test_encryption_that_is_asked_for_and_missing_is_told(mode: str, place: str) -> None:
    with pytest.raises(DatabaseUnavailableError, match="SSL is required but the server"):
        Database.open(f"{place}?ssl_mode={mode}")


def test_the_second_connection_that_cancels_is_encrypted_too(
    encrypted: str, certificates: Path
) -> None:
    url = f"{encrypted}?ssl_ca={certificates / 'ca.pem'}"
    with Database.open(url, limits=QueryLimits(seconds=0.4)) as database:
        series = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) "
        with pytest.raises(QueryTimeoutError):
            database.run(f"{series} SELECT MAX(n) FROM r")


# -- the engine's wall -----------------------------------------------------------------------------

PAST_THE_TREE = [
    "DELETE FROM people",
    "UPDATE people SET name = 'x'",
    "INSERT INTO people (id, name) VALUES (9, 'x') RETURNING id",
    "CREATE TABLE copy AS SELECT * FROM people",
    "DROP TABLE people",
    "TRUNCATE people",
    "SELECT 1; DELETE FROM people",
    "SELECT name INTO OUTFILE '/tmp/longtable-mysql-out' FROM people",
    "SELECT name INTO DUMPFILE '/tmp/longtable-mysql-out' FROM people LIMIT 1",
    "SELECT name FROM people FOR UPDATE; COMMIT",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE people",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE people",
    "SELECT * FROM vault",
    "SELECT v.secret FROM vault AS v",
    "SELECT * FROM through_view",
    "SELECT * FROM through_two_views AS people",
    "SELECT * FROM people WHERE EXISTS (SELECT 1 FROM vault)",
    "SELECT * FROM mysql.user",
    "SELECT * FROM mysql.global_priv",
    "DO SLEEP(1)",
    "SET max_statement_time = 0",
    "START TRANSACTION READ WRITE",
    "BEGIN NOT ATOMIC DELETE FROM people; END",
    "EXECUTE IMMEDIATE 'DELETE FROM people'",
    "HANDLER people OPEN",
    "SHOW CREATE TABLE vault",
    "/*! DELETE FROM people */",
    "/*M! DELETE FROM people */",
    "/*!50000 DELETE FROM people */",
    "SELECT * FROM /*! vault */",
]


@pytest.mark.parametrize("sql", PAST_THE_TREE)
def test_the_engine_alone_refuses(sql: str, database: Database) -> None:
    before = mariadb_server().run("SELECT * FROM people ORDER BY id", database=database.name)
    with pytest.raises(DatabaseError):
        fetched(database, sql, walled=True)
    after = mariadb_server().run("SELECT * FROM people ORDER BY id", database=database.name)
    assert after == before
    assert not Path("/tmp/longtable-mysql-out").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "UPDATE t SET a = 2",
        "INSERT INTO t VALUES (2) RETURNING a",
        "REPLACE INTO t VALUES (2)",
        "CREATE TABLE u AS SELECT * FROM t",
        "DROP TABLE t",
        "TRUNCATE t",
        "ALTER TABLE t ADD b INT",
        "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t",
    ],
)
def test_the_transaction_holds_an_account_that_may_write(sql: str, writable: Database) -> None:
    with pytest.raises(DatabaseError):
        fetched(writable, sql, walled=True)
    rows = mariadb_server().run("SELECT * FROM t", database=writable.name)
    tables = mariadb_server().run("SHOW TABLES", database=writable.name)
    assert (rows, tables) == ([(1,)], [("t",)])


@pytest.fixture(scope="module")
def writable() -> Iterator[Database]:
    script = "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)"
    url = mariadb_server().create(script, rights="ALL PRIVILEGES")
    with Database.open(url, isolation="none") as database:
        yield database


def test_a_session_is_reset_after_each_query(database: Database) -> None:
    def leave_traces(session: MysqlSession) -> object:
        connection = session.link.connection
        connection.rows(f"SET @x = 5, SESSION sql_mode = 'ANSI_QUOTES', {TIME_LIMIT} = 0")
        connection.rows("SELECT GET_LOCK('longtable', 0)")
        return connection.rows("SELECT CONNECTION_ID()")[0][0]

    def look(session: MysqlSession) -> object:
        asked = (
            f"SELECT CONNECTION_ID(), @x, @@sql_mode, @@{TIME_LIMIT} > 0,"
            " IS_USED_LOCK('longtable'), @@character_set_results"
        )
        return session.link.connection.rows(asked)[0]

    number = in_session(database, leave_traces)
    seen = in_session(database, look)
    assert seen[0] == number
    modes = f"{ONLY_FULL_GROUP_BY},{SQL_MODE}" if MYSQLD else SQL_MODE
    assert seen[1:] == (None, modes, 1, None, "utf8mb4")


def test_the_server_itself_knows_the_limits(place: str) -> None:
    limits = QueryLimits(seconds=7, memory_bytes=64_000_000, bytes=2_000_000)
    with open_at(place, limits=limits) as database:
        assert isinstance(engine_of(database), MysqlEngine)
        memory = "64000000" if MYSQLD else "@@max_session_mem_used"
        asked = f"SELECT @@{TIME_LIMIT}, {memory}, @@group_concat_max_len, @@lock_wait_timeout"
        row = in_session(
            database, lambda session: session.link.connection.rows(asked)[0], seconds=7
        )
        assert 6 < row[0] / (1_000 if MYSQLD else 1) <= 7
        assert row[1:] == (64_000_000, 2_000_000, 5)


@pytest.mark.skipif(bool(MYSQLD), reason="MySQL has no such limit")
def test_memory_of_the_server_has_its_own_limit_and_error(place: str) -> None:
    with (
        open_at(place, limits=QueryLimits(memory_bytes=16_000_000)) as database,
        pytest.raises(QueryMemoryError, match="16,000,000"),
    ):
        database.run("SELECT a.n FROM numbers a, numbers b ORDER BY RAND() LIMIT 1")


def test_the_note_after_explain_has_every_table_of_a_long_query(database: Database) -> None:
    long = " OR ".join(f"p.name = 'a very long name, number {number}'" for number in range(900))
    sql = f"SELECT p.id FROM people AS p JOIN bosses AS b ON b.id = p.id WHERE {long}"
    notes = in_session(
        database,
        lambda session: (
            session.link.connection.rows(
                f"EXPLAIN {'FORMAT=JSON' if MYSQLD else 'EXTENDED'} {sql}"
            ),
            session.link.connection.rows("SHOW WARNINGS"),
        )[1],
    )
    pairs = names_in_note(str(notes[0][2]))
    assert {name for schema, name in pairs if schema == database.name} == {"people"}
    assert str(notes[0][2]).count("a very long name") == 900
    assert database.run(sql).rows == []


@pytest.fixture(scope="module")
def without_show_view() -> str:
    return mariadb_server().create(
        "CREATE TABLE vault (secret TEXT); CREATE TABLE open_table (a INT);"
        "INSERT INTO vault VALUES ('canary'); CREATE VIEW leak AS SELECT secret FROM vault;",
        rights="SELECT",
    )


def test_a_view_whose_sql_cannot_be_seen_is_hidden_if_anything_is_denied(
    without_show_view: str,
) -> None:
    with Database.open(without_show_view) as database:
        assert database.run("SELECT secret FROM leak").rows == [("canary",)]
        assert database.check_sql("SELECT secret FROM leak").scans == ()
    for policy in (
        TablePolicy(denied=frozenset({"vault"})),
        TablePolicy(denied_columns=frozenset({"vault.secret"})),
        TablePolicy(masked_columns=frozenset({"vault.secret"})),
        TablePolicy(row_filters={"vault": "secret = :own"}),
    ):
        with Database.open(without_show_view, policy=policy, isolation="none") as database:
            assert "leak" not in {table.name for table in database.catalog().tables}
            with pytest.raises(UnknownTableError):
                database.run("SELECT * FROM leak")
            with pytest.raises(QueryRefusedError, match="refused the statement"):
                fetched(database, "SELECT * FROM leak", walled=True)


def test_functions_and_views_of_somebody_else_s_rights_bring_out_nothing(
    database: Database,
) -> None:
    for sql in ("SELECT our_macro()", "SELECT * FROM through_view"):
        with pytest.raises(QueryRefusedError):
            database.run(sql)


def test_no_error_tells_a_value_of_the_data(tmp_path: Path) -> None:
    url = mariadb_server().create(
        "CREATE TABLE t (a INT, secret VARCHAR(40)); INSERT INTO t VALUES (1, 'canary-one'), (2,"
        " 'canary-two'), (3, 'canary-one'); INSERT INTO t SELECT a + 3, secret FROM t;"
    )
    texts = [
        "SELECT COUNT(*), CONCAT(secret, FLOOR(RAND(0) * 2)) AS x FROM t GROUP BY x",
        "SELECT EXTRACTVALUE(1, CONCAT('~', secret)) FROM t",
        "SELECT UPDATEXML(1, CONCAT('~', secret), 1) FROM t",
        "SELECT EXP(secret + 1000) FROM t",
        "SELECT ~0 + (SELECT LENGTH(secret) FROM t LIMIT 1)",
        "SELECT ST_GeomFromText(secret) FROM t",
        "SELECT (SELECT secret FROM t)",
        "SELECT JSON_EXTRACT(secret, '$') FROM t",
        "SELECT CAST(secret AS SIGNED) + 9223372036854775807 + 1 FROM t",
    ]
    said = []
    with Database.open(url, isolation="none") as database:
        for sql in texts:
            try:
                fetched(database, sql)
            except DatabaseError as error:
                said.append(f"{error} {error.__dict__}")
    assert len(said) >= 4
    assert "canary" not in " ".join(said)


# -- what was checked is what ran ------------------------------------------------------------------


def test_there_are_two_hundred_readings() -> None:
    assert len(set(READINGS)) >= 200
    assert set(READINGS) >= NOT_READ | NOT_MARIADB


@pytest.mark.parametrize("sql", READINGS)
def test_what_the_wall_writes_gives_what_the_server_makes_of_the_text(
    sql: str, database: Database
) -> None:
    if sql in NOT_READ:
        with pytest.raises((QueryRefusedError, QueryFailedError)):
            database.run(sql)
        return
    if MYSQLD and sql in NOT_MYSQL:
        with pytest.raises(QueryFailedError):
            database.run(sql)
        return
    if sql in NOT_MARIADB and not MYSQLD:
        assert database.run(sql).rows == [('"bolt"', "bolt", "bolt")]
        return
    alone = fetched(database, sql.replace("generated", "`generated`") if sql == RESERVED else sql)
    result = database.run(sql)
    assert repr(result.rows) == repr(alone.rows)
    assert len(result.columns) == len(alone.columns)


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
        assert eventually(lambda: at_work(database) == 1)
        started = time.monotonic()
        cancel.cancel()
        thread.join(WAIT_SECONDS)
        assert [type(error) for error in caught] == [QueryCancelledError]
        assert eventually(lambda: at_work(database) == 0)
        assert time.monotonic() - started < 5
        assert database.run("SELECT 1").rows == [(1,)]


def test_a_query_over_its_time_ends_in_the_server(place: str) -> None:
    with open_at(place, limits=QueryLimits(seconds=0.3)) as database:
        with pytest.raises(QueryTimeoutError, match=r"0\.3 s"):
            database.run(SLOW)
        assert eventually(lambda: at_work(database) == 0)


def test_rows_are_streamed(place: str) -> None:
    limits = QueryLimits(seconds=30, rows=1_000)
    with open_at(place, limits=limits) as database:
        database.run("SELECT 1")
        tracemalloc.start()
        started = time.monotonic()
        with pytest.raises(TooManyRowsError):
            database.run("SELECT a.n FROM numbers a, numbers b, numbers c")  # 8,000 million
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4_000_000
        assert time.monotonic() - started < 10
        assert eventually(lambda: at_work(database) == 0)
        assert database.run("SELECT 1").rows == [(1,)]


def test_a_row_over_the_limit_is_not_read(place: str) -> None:
    with open_at(place, limits=QueryLimits(bytes=100_000)) as database:
        database.run("SELECT 1")
        wide = ", ".join(f"REPEAT('{letter}', 15000000)" for letter in "abcdefgh")
        tracemalloc.start()
        with pytest.raises(ResultTooLargeError, match="100,000"):
            database.run(f"SELECT {wide}")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000_000
        assert database.run("SELECT 1").rows == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT GROUP_CONCAT(REPEAT('x', 1000)) FROM numbers",
        "SELECT LENGTH(GROUP_CONCAT(REPEAT('x', 1000))) FROM numbers",
        "SELECT REPEAT('x', 17000000)",
        "SELECT LENGTH(REPEAT('x', 17000000))",
        "SELECT name FROM people WHERE REPEAT('x', 17000000) IS NULL",
    ],
)
def test_a_value_that_the_server_cuts_or_leaves_out_is_an_error(sql: str, place: str) -> None:
    with (
        open_at(place, limits=QueryLimits(bytes=1_000_000)) as database,
        pytest.raises(ResultTooLargeError),
    ):
        database.run(sql)


def test_a_recursion_does_not_end_in_silence(database: Database) -> None:
    sql = "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t WHERE x < 9000) SELECT"
    assert database.run(f"{sql} COUNT(*), MAX(x) FROM t").rows == [(9000, 9000)]


def test_a_locked_table_is_told_and_not_waited_for_long(place: str) -> None:
    import pymysql

    with Database.open(place, busy_seconds=0.5) as database:
        database.catalog()
        connection = pymysql.connect(
            unix_socket=str(mariadb_server().folder / "socket"), user="root", database=database.name
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute("LOCK TABLES audit WRITE")
            with pytest.raises(DatabaseUnavailableError, match="locked"):
                database.run("SELECT * FROM audit")
        finally:
            connection.close()
        assert eventually(lambda: database.run("SELECT count(*) FROM audit").rows == [(1,)])


def test_a_server_that_goes_away_is_told_and_one_that_is_back_is_asked() -> None:
    server = MariadbServer("--innodb-flush-log-at-trx-commit=1")
    try:
        rows = ", ".join(f"({number})" for number in range(2_000))
        url = server.create(f"CREATE TABLE t (n INT); INSERT INTO t VALUES {rows}")
        with Database.open(url, limits=QueryLimits(seconds=60)) as database:
            assert database.run("SELECT COUNT(*) FROM t").rows == [(2000,)]
            server.restart()  # idle connections are cut
            assert database.run("SELECT COUNT(*) FROM t").rows == [(2000,)]
            caught: list[BaseException] = []

            def run() -> None:
                try:
                    database.run("SELECT SUM(SQRT(a.n + b.n + c.n + d.n)) FROM t a, t b, t c, t d")
                except DatabaseError as error:
                    caught.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            working = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%AS d%'"
            assert eventually(lambda: int(server.run(working)[0][0]) > 1)
            server.restart()
            thread.join(WAIT_SECONDS)
            assert [type(error) for error in caught] == [DatabaseUnavailableError]
            assert "MySQL server" in str(caught[0])
            assert database.run("SELECT COUNT(*) FROM t").rows == [(2000,)]
    finally:
        server.stop()


# -- values ----------------------------------------------------------------------------------------

ODD = """
SET sql_mode = 'ANSI_QUOTES';
CREATE TABLE odd (
  zero_date DATE, half_date DATE, zero_time DATETIME, zero_stamp TIMESTAMP NULL, large BIGINT UNSIGNED, small TINYINT,
  tiny BIT(1), flags BIT(12), feeling ENUM('sad', 'it''s ok'), tags SET('a', 'b', 'c'), doc JSON, spot POINT, way LINESTRING,
  spent TIME(3), y YEAR, price DECIMAL(30, 10), ratio FLOAT, exact_ratio DOUBLE, raw BLOB, word VARBINARY(9), yes BOOLEAN,
  latin VARCHAR(20) CHARACTER SET latin1, wide TEXT CHARACTER SET utf8mb4, born DATETIME(6)
) CHARACTER SET latin1;
INSERT INTO odd VALUES ('0000-00-00', '2024-00-15', '0000-00-00 00:00:00', '2024-02-29 10:00:00', 18446744073709551615, -128,
  b'1', b'101010101010', 'it''s ok', 'a,c', '{"a": [1, 2.50]}', POINT(1, 2), LINESTRING(POINT(0, 0), POINT(1, 1)),
  '-838:59:58.5', 2024, 12345678901234567890.1234567891, 0.5, 1e300, x'00ff', x'80', TRUE, 'né €', 'né 🍵', '2024-02-29 10:11:12.345678');
INSERT INTO odd (tiny) VALUES (NULL);
"""


def test_every_type_gives_its_own_values() -> None:
    url = mariadb_server().create(ODD)
    with Database.open(url) as database:
        result = database.run("SELECT * FROM odd LIMIT 1")
        row = dict(zip(result.columns, result.rows[0], strict=True))
        types = dict(zip(result.columns, result.types, strict=True))
        # Dates that no calendar has are text, as the server writes them.
        assert (row["zero_date"], row["half_date"]) == ("0000-00-00", "2024-00-15")
        assert row["zero_time"] == "0000-00-00 00:00:00"
        assert row["zero_stamp"] == datetime(2024, 2, 29, 10)
        assert (row["large"], row["small"], row["yes"]) == (2**64 - 1, -128, 1)
        assert (row["tiny"], row["flags"]) == (1, 0b101010101010)
        assert (row["feeling"], row["tags"]) == ("it's ok", "a,c")
        # JSON is a type on MySQL, and text on MariaDB.
        assert row["doc"] == ({"a": [1, Decimal("2.5")]} if MYSQLD else '{"a": [1, 2.50]}')
        assert row["spent"] == -timedelta(hours=838, minutes=59, seconds=58.5)
        assert (row["y"], row["ratio"], row["exact_ratio"]) == (2024, 0.5, 1e300)
        assert row["price"] == Decimal("12345678901234567890.1234567891")
        assert (row["raw"], row["word"]) == (b"\x00\xff", b"\x80")
        assert (row["latin"], row["wide"]) == ("né €", "né 🍵")
        assert row["born"] == datetime(2024, 2, 29, 10, 11, 12, 345678)
        assert isinstance(row["spot"], bytes)
        assert database.run("SELECT ST_AsText(spot), ST_AsText(way) FROM odd LIMIT 1").rows == [
            ("POINT(1 2)", "LINESTRING(0 0,1 1)")
        ]
        assert (types["large"], types["small"], types["feeling"]) == (
            "BIGINT UNSIGNED",
            "TINYINT",
            "ENUM",
        )
        assert (types["tags"], types["flags"], types["spot"]) == ("SET", "BIT", "GEOMETRY")
        assert (types["raw"], types["word"], types["latin"]) == ("BLOB", "VARBINARY", "VARCHAR")
        nulls = database.run("SELECT * FROM odd WHERE large IS NULL").rows
        assert set(nulls[0]) == {None}
        assert database.run("SELECT large - 1, price * 2 FROM odd LIMIT 1").rows == [
            (2**64 - 2, Decimal("24691357802469135780.2469135782"))
        ]


def test_duplicate_names_and_the_order_of_rows_stay(database: Database) -> None:
    result = database.run(
        "SELECT id, id, 1, 2, name AS `1` FROM people p ORDER BY p.id DESC LIMIT 2"
    )
    assert result.columns == ("id", "id", "1", "2", "1")
    assert result.rows == [(4, 4, 1, 2, "Cy"), (3, 3, 1, 2, "Zoë")]


def test_values_of_a_latin1_table_are_found(tmp_path: Path) -> None:
    url = mariadb_server().create(
        "CREATE TABLE t (word VARCHAR(20)) CHARACTER SET latin1; INSERT INTO t VALUES ('né'), ('ne')"
    )
    with Database.open(url) as database:
        assert ("né",) in database.run("SELECT word FROM t WHERE word LIKE 'n%'").rows


# -- the catalogue ---------------------------------------------------------------------------------


def test_the_catalogue_has_comments_keys_views_partitions_and_generated_columns(
    database: Database,
) -> None:
    tables = {table.name: table for table in database.catalog().tables}
    people = tables["people"]
    columns = {column.name: column for column in people.columns}
    assert people.comment == "who works here"
    assert columns["salary"].comment == "thousand francs a year"
    assert (people.primary_key, people.rows_estimate) == (("id",), 4)
    assert [(key.columns, key.table) for key in people.foreign_keys] == [(("boss_id",), "people")]
    assert (columns["name"].nullable, columns["city"].nullable) == (False, True)
    assert (tables["bosses"].kind, tables["bosses"].comment) == ("view", None)
    assert tables["measures"].rows_estimate == 3
    assert not any(name.startswith("measures_") for name in tables)
    generated = {column.name: column for column in tables["generated"].columns}
    assert generated["total_price"].generated_by
    nested = {column.name: column.type for column in tables["nested"].columns}
    assert nested["feeling"] == "enum('sad','ok','happy')"
    assert (nested["large"], nested["flags"]) == ("bigint unsigned", "bit(5)")
    assert tables["Order Details"].sql_name == "`Order Details`"


def test_a_thousand_tables_are_read_in_a_second() -> None:
    script = "".join(
        f"CREATE TABLE t{number} (id INT PRIMARY KEY COMMENT 'the id', name VARCHAR(20),"
        f" feeling ENUM('a', 'b'), ref INT, KEY (ref)) COMMENT 'number {number}';"
        for number in range(1_000)
    )
    url = mariadb_server().create(script)
    with Database.open(url, isolation="none") as database:
        engine = engine_of(database)
        engine.reflect()  # the server opens the tables
        started = time.process_time()
        reflected = engine.reflect()
        assert len(reflected.tables) == 1_000
        assert time.process_time() - started < 1
        started = time.monotonic()
        version = engine.schema_version()
        assert time.monotonic() - started < 1
        assert version == engine.schema_version()


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        ("ALTER TABLE t ADD COLUMN c INT", True),
        ("ALTER TABLE t MODIFY a BIGINT", True),
        ("ALTER TABLE t COMMENT = 'new'", True),
        ("ALTER TABLE t MODIFY a INT COMMENT 'new'", True),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", True),
        ("CREATE TABLE u (a INT)", True),
        ("CREATE OR REPLACE VIEW v AS SELECT a, a + 1 AS b FROM t", True),
        ("CREATE OR REPLACE VIEW v AS SELECT a + 2 AS a FROM t", True),
        ("INSERT INTO t VALUES (2)", False),
        ("ANALYZE TABLE t", False),
    ],
)
def test_the_version_changes_with_the_schema_alone(change: str, changes: bool) -> None:
    url = mariadb_server().create(
        "CREATE TABLE t (a INT); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT a FROM t"
    )
    with Database.open(url, isolation="none") as database:
        before = engine_of(database).schema_version()
        mariadb_server().run(change, database=database.name)
        assert (engine_of(database).schema_version() != before) == changes


def test_only_columns_that_the_account_may_read_are_in_the_catalogue() -> None:
    server = mariadb_server()
    server.create("CREATE TABLE t (a INT, secret INT); CREATE TABLE u (a INT)", name="partly")
    server.run(
        "CREATE USER partly@`%`; GRANT SELECT (a) ON partly.t TO partly@`%`; GRANT INSERT"
        " ON partly.u TO partly@`%`"
    )
    with Database.open(server.url("partly", user="partly")) as database:
        tables = database.catalog().tables
        assert [(t.name, [c.name for c in t.columns]) for t in tables] == [("t", ["a"])]
        with pytest.raises(DatabaseError):
            database.run("SELECT secret FROM t")


# -- cost ------------------------------------------------------------------------------------------


def test_a_cross_product_is_told_before_it_runs(database: Database) -> None:
    plan = database.check_sql("SELECT count(*) FROM numbers a, numbers b, numbers c")
    assert plan.pairs >= 1_000_000_000
    assert plan.step_rows >= 1_000_000_000
    assert plan.cost is None
    joined = database.check_sql("SELECT p.name FROM people p JOIN people b ON b.id = p.boss_id")
    assert joined.pairs < 100
    assert "p" in {scan.table for scan in joined.scans}
    sorted_rows = database.check_sql("SELECT n FROM numbers ORDER BY n")
    assert [scan.rows for scan in sorted_rows.scans] == [2000]


def test_a_plan_of_mysql_8_is_read() -> None:
    def table(name: str, access: str, rows: int, filtered: str = "100.00") -> dict[str, Any]:
        return {
            "table": {
                "table_name": name,
                "access_type": access,
                "rows_examined_per_scan": rows,
                "rows_produced_per_join": rows,
                "filtered": filtered,
                "cost_info": {"read_cost": "1.00", "prefix_cost": "10.10"},
            }
        }

    explained = {
        "query_block": {
            "select_id": 1,
            "cost_info": {"query_cost": "1234.50"},
            "ordering_operation": {
                "using_filesort": True,
                "nested_loop": [
                    table("a", "ALL", 1_000, "10.00"),
                    table("b", "ALL", 500),
                    table("c", "eq_ref", 1),
                ],
            },
        }
    }
    plan = read_cost(json.dumps(explained))
    assert [(scan.table, scan.rows) for scan in plan.scans] == [("a", 1_000), ("b", 500)]
    assert plan.pairs == 100 * 500
    assert plan.step_rows == 50_000
    derived = {
        "query_block": {
            "table": {
                "table_name": "<derived2>",
                "access_type": "ALL",
                "rows": 7,
                "filtered": 100,
                "materialized": {"query_block": {"nested_loop": [table("x", "ALL", 9)]}},
            }
        }
    }
    assert {scan.table for scan in read_cost(json.dumps(derived)).scans} == {"<derived2>", "x"}


INJECTED = [
    """name = '", "table_name": "people", "y": "'""",
    """name = '"}, {"table": {"table_name": "x'""",
    r"""name LIKE '%\_%' OR name = 'a\\b' OR name = 'x"y' OR city = 'it''s'""",
    "name = '\n\t\"' OR name = '\\\\'",
    r"""name = '"table_name": "vault"'""",
]
"""Conditions that MariaDB writes into its plan as they are."""


@pytest.mark.parametrize("condition", INJECTED)
def test_no_condition_writes_a_part_of_the_plan(condition: str, database: Database) -> None:
    assert database.run(f"SELECT id FROM people WHERE {condition}").rows == []
    plan = database.check_sql(f"SELECT id FROM people WHERE {condition}")
    assert [scan.table for scan in plan.scans] == ["people"]
    hidden = condition.replace("name", "secret").replace("city", "secret")
    hidden = hidden.replace("table_secret", "table_name")
    sql = f"SELECT id FROM people WHERE EXISTS (SELECT 1 FROM vault WHERE {hidden})"
    with pytest.raises(QueryRefusedError):
        fetched(database, sql, walled=True)


def test_a_plan_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(QueryFailedError, match="plan of the query cannot be read"):
        read_cost('{"query_block": ')


def test_a_date_is_a_date(database: Database) -> None:
    assert database.run("SELECT created FROM audit").rows == [(date(2024, 1, 15),)]
