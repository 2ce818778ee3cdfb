"""Opening, limits, cancelling, threads, errors: on real files."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    LongtableError,
    QueryCancelledError,
    QueryFailedError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    TooManyRowsError,
)
from longtable.base.url import parse_url
from longtable.tools.database import Cancel, Database, Isolation, QueryLimits, TablePolicy
from longtable.tools.engines.duckdb import DuckdbEngine
from longtable.tools.engines.sqlite import SqliteEngine
from longtable.tools.in_process import InProcess, LocalParser
from longtable.tools.toolset import database_tools
from longtable.tools.workers.runner import MAX_LEFT_BEHIND, Runner, Stop, StoppedError
from tests.support.isolation import opened_by_default
from tests.tools.databases import DENY_VAULT, Place, engine_of, make_file, open_at, spelled, url

HEAVY = {
    "sqlite": "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    "duckdb": (
        "SELECT count(*) FROM range(3000000) a, range(3000000) b WHERE (a.range * b.range) % 11 = 5"
    ),
    "postgres": "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    "mysql": "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d",
    "clickhouse": "SELECT count(*) FROM numbers(1000000000000) WHERE number % 7 = 8",
}
JOINED_TEXT = {
    "mysql": "SELECT group_concat(n SEPARATOR ',') FROM numbers",
}
JOIN_SECONDS = 20
both_ways = pytest.mark.usefixtures("opened_both_ways")
"""For a test of what a worker could change: who holds a file, who waits, who is stopped."""
ODD_NAMES = ["odd name?mode=rwc#%41", "it's a 店", 'quo"te', "main", "temp", "memory", "select"]


# -- opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "not blank"),
        ("shop", "neither a URL"),
        ("shop.odt", "duckdb:///"),
        ("files://", "names no file"),
        ("sqlite:shop.db", "sqlite:///"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("oracle://host/x", "not supported"),
        ("ftp://host/x.db", "unknown"),
        ("mssql://user:hidden@host/shop", "PostgreSQL, MySQL, MariaDB and ClickHouse only"),
        ("mysql://user:hidden@host/", "names no database"),
        ("mysql://user:hidden@host/shop?nonsense=hidden", "unknown parameter 'nonsense'"),
        ("mariadb+pymysql://user:hidden@host/shop?ssl_mode=hid", "ssl_mode .* must be one of"),
        ("mysql://user:hidden@host/shop?ssl_ca=/missing.pem", "certificates"),
        ("mysql://user:hid/den@host:port/shop", "cannot be read"),
        ("postgresql+psycopg://user:hid/den@host:port/shop", "cannot be read"),
        ("postgres://user@hidden@host:1/shop?nonsense=hidden", "cannot be read"),
    ],
)
def test_a_url_that_names_no_supported_database_is_a_config_error(given: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        Database.open(given)
    assert "hidden" not in str(caught.value)


def _missing(folder: Path) -> Path:
    return folder / "missing.db"


def _folder(folder: Path) -> Path:
    (folder / "folder.db").mkdir()
    return folder / "folder.db"


def _inside_a_file(folder: Path) -> Path:
    (folder / "file").write_text("x", encoding="utf-8")
    return folder / "file" / "inside.db"


def _text(folder: Path) -> Path:
    (folder / "text.db").write_text(
        "this is no database at all, only a line of text\n" * 40, encoding="utf-8"
    )
    return folder / "text.db"


def _empty(folder: Path) -> Path:
    (folder / "empty.db").touch()
    return folder / "empty.db"


def _torn(folder: Path) -> Path:
    (folder / "torn.db").write_bytes(b"SQLite format 3\x00" + os.urandom(4_000))
    return folder / "torn.db"


def _torn_duckdb(folder: Path) -> Path:
    (folder / "torn.duckdb").write_bytes(b"12345678DUCK" + os.urandom(20_000))
    return folder / "torn.duckdb"


def _missing_duckdb(folder: Path) -> Path:
    return folder / "missing.duckdb"


@both_ways
@pytest.mark.parametrize(
    "prepare",
    [_missing, _folder, _inside_a_file, _text, _empty, _torn, _torn_duckdb, _missing_duckdb],
)
def test_what_is_not_a_database_is_said_and_nothing_is_made(
    prepare: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = prepare(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DatabaseUnavailableError) as caught, Database.open(str(path)) as database:
        database.catalog()
    assert str(path) in str(caught.value) or "cannot be read" in str(caught.value)
    assert str(path) not in caught.value.user_text()
    assert sorted(tmp_path.rglob("*")) == before


def open_and_look(at: str, *, busy_seconds: float = 5.0) -> None:
    """Open a database as far as it takes to see what is wrong with it: a worker tells that at the
    first call.
    """
    with Database.open(at, busy_seconds=busy_seconds) as database:
        database.catalog()


@both_ways
def test_a_database_of_the_other_kind_is_told_apart(paths: dict[str, Path]) -> None:
    with pytest.raises(
        DatabaseUnavailableError, match="it is a duckdb database, open it as duckdb:///"
    ):
        open_and_look(f"sqlite:///{paths['duckdb']}")
    with pytest.raises(
        DatabaseUnavailableError, match="it is a sqlite database, open it as sqlite:///"
    ):
        open_and_look(f"duckdb:///{paths['sqlite']}")


def test_a_bare_path_and_a_relative_url_open_the_same_file(
    file_dialect: str, paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paths[file_dialect].parent)
    for given in (
        paths[file_dialect].name,
        f"{file_dialect}:///{paths[file_dialect].name}",
        str(paths[file_dialect]),
        url(paths[file_dialect]),
    ):
        with Database.open(given) as database:
            assert (database.name, database.dialect) == ("shop", file_dialect)
            assert database.run("SELECT count(*) FROM people").rows == [(4,)]


@pytest.mark.parametrize(
    ("isolation", "name"), [*(("none", name) for name in ODD_NAMES), ("process", ODD_NAMES[0])]
)
def test_odd_file_names_open(
    file_dialect: str, isolation: Isolation, name: str, tmp_path: Path
) -> None:
    path = make_file(tmp_path, file_dialect, "CREATE TABLE t (x INTEGER)", name=name)
    with opened_by_default(isolation), open_at(path) as database:
        assert database.run("SELECT count(*) FROM main.t").rows == [(0,)]
    assert sorted(tmp_path.iterdir()) == [path]


def test_reading_a_wal_database_leaves_no_file_beside_it(tmp_path: Path) -> None:
    path = make_file(
        tmp_path, "sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);"
    )
    with open_at(path) as database:
        assert database.run("SELECT x FROM t").rows == [(1,)]
    assert sorted(tmp_path.iterdir()) == [path]


@both_ways
def test_what_another_program_writes_is_seen_by_the_next_query(tmp_path: Path) -> None:
    path = make_file(
        tmp_path, "sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);"
    )
    with open_at(path) as database:
        assert database.run("SELECT count(*) FROM t").rows == [(1,)]
        writer = sqlite3.connect(path)
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert database.run("SELECT count(*) FROM t").rows == [(2,)]
        writer.close()
        assert database.run("SELECT count(*) FROM t").rows == [(2,)]


def test_a_link_to_a_wal_database_shows_what_a_writer_has_not_yet_moved_into_it(
    tmp_path: Path,
) -> None:
    path = make_file(
        tmp_path, "sqlite", "PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);"
    )
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.db"
    link.symlink_to(path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("INSERT INTO t VALUES (2)")
    with open_at(link) as database:
        assert database.run("SELECT x FROM t").rows == [(1,), (2,)]
    writer.close()
    assert sorted(tmp_path.rglob("*.db*")) == sorted([path, link])


@both_ways
def test_a_change_of_the_journal_mode_is_noticed(tmp_path: Path) -> None:
    path = make_file(tmp_path, "sqlite", "CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    with open_at(path) as database:
        for mode, rows in (("WAL", 2), ("DELETE", 3), ("WAL", 4)):
            assert database.run("SELECT count(*) FROM t").rows == [(rows - 1,)]
            writer = sqlite3.connect(path, isolation_level=None)
            writer.execute(f"PRAGMA journal_mode={mode}")
            writer.execute("INSERT INTO t VALUES (1)")
            writer.close()
            assert database.run("SELECT count(*) FROM t").rows == [(rows,)]
            assert sorted(tmp_path.iterdir()) == [path]


def test_a_journal_beside_a_database_is_never_touched(tmp_path: Path) -> None:
    path = make_file(tmp_path, "sqlite", "CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    with open_at(path) as database:
        journal = tmp_path / "shop.db-journal"
        journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(1_000))
        for content in (path.read_bytes(), b""):
            path.write_bytes(content)
            with suppress(DatabaseError):
                database.run("SELECT x FROM t")
            assert journal.exists()


@both_ways
def test_a_locked_sqlite_file_is_unavailable_and_usable_again_after(tmp_path: Path) -> None:
    path = make_file(tmp_path, "sqlite", "CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseUnavailableError, match="locked"):
        open_and_look(url(path), busy_seconds=0.1)
    other.execute("ROLLBACK")
    with Database.open(url(path), busy_seconds=0.1) as database:
        assert database.run("SELECT x FROM t").rows == [(1,)]
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseUnavailableError, match="locked"):
            database.run("SELECT x FROM t")
        other.execute("ROLLBACK")
        assert database.run("SELECT x FROM t").rows == [(1,)]
    other.close()


@both_ways
def test_a_duckdb_file_open_for_reading_elsewhere_opens_with_other_limits_too(
    paths: dict[str, Path],
) -> None:
    with (
        open_at(paths["duckdb"]) as one,
        open_at(paths["duckdb"], limits=QueryLimits(memory_bytes=64_000_000)) as two,
    ):
        other = duckdb.connect(str(paths["duckdb"]), read_only=True)
        assert (
            one.run("SELECT count(*) FROM people").rows
            == two.run("SELECT count(*) FROM people").rows
        )
        assert other.execute("SELECT count(*) FROM people").fetchall() == [(4,)]
        other.close()


@both_ways
def test_a_closed_database_says_so(dialect: str, files: dict[str, Place]) -> None:
    database = open_at(files[dialect])
    database.run("SELECT 1")
    database.close()
    with pytest.raises(DatabaseUnavailableError, match="closed"):
        database.run("SELECT 1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": 0},
        {"seconds": -1},
        {"seconds": float("nan")},
        {"rows": 0},
        {"rows": 1.5},
        {"bytes": 10},
        {"memory_bytes": True},
    ],
)
def test_limits_out_of_range_are_config_errors(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        QueryLimits(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_policy_given_as_one_word_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="denied"):
        TablePolicy(denied="vault")  # type: ignore[arg-type]  # wrong on purpose


# -- what a caller's own connection holds ----------------------------------------------------------

WRITE_ELSEWHERE = {
    "sqlite": (
        """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0.1)
connection.executemany("INSERT INTO t VALUES (?)", [(x,) for x in range(700)])
connection.commit()
connection.close()
"""
    ),
    "duckdb": (
        """
import duckdb, sys
with duckdb.connect(sys.argv[1]) as connection:
    connection.execute("INSERT INTO t SELECT * FROM range(700)")
"""
    ),
}


def write_elsewhere(path: Path, dialect: str) -> str:
    """Have another process write 700 rows; return why it could not, nothing when it could."""
    command = [sys.executable, "-c", WRITE_ELSEWHERE[dialect], str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr


def read_in_every_way(database: Database) -> None:
    for _ in range(10):
        database.run("SELECT count(*) FROM t")
    database.refresh()
    for tool in database_tools(database):
        arguments: dict[str, dict[str, object]] = {
            "list_tables": {},
            "describe_tables": {"names": ["t"]},
            "run_sql": {"sql": "SELECT x FROM t"},
        }
        tool.invoke(arguments.get(tool.name, {"text": "1"}))


@both_ways
def test_a_callers_transaction_in_sqlite_keeps_its_lock_and_loses_nothing(tmp_path: Path) -> None:
    path = make_file(tmp_path, "sqlite", "CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    caller = sqlite3.connect(path, isolation_level=None)
    caller.execute("BEGIN IMMEDIATE")
    caller.execute("INSERT INTO t VALUES (2)")
    with open_at(path) as database:
        read_in_every_way(database)
        assert "locked" in write_elsewhere(path, "sqlite")
    with pytest.raises(DatabaseUnavailableError, match="it is a sqlite database"):
        open_and_look(f"duckdb:///{path}")
    assert "locked" in write_elsewhere(path, "sqlite")
    caller.execute("COMMIT")
    assert write_elsewhere(path, "sqlite") == ""
    assert caller.execute("SELECT count(*) FROM t").fetchall() == [(702,)]
    caller.close()


@both_ways
def test_a_callers_lock_on_a_duckdb_file_stays(tmp_path: Path) -> None:
    path = make_file(tmp_path, "duckdb", "CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1);")
    with duckdb.connect(str(path)) as caller:
        for _ in range(3):
            # DuckDB has a file open for writing or reading.
            with pytest.raises(
                DatabaseUnavailableError, match=r"already attached|Conflicting lock"
            ):
                open_and_look(url(path))
            with pytest.raises(DatabaseUnavailableError, match="it is a duckdb database"):
                open_and_look(f"sqlite:///{path}")
        assert "Conflicting lock" in write_elsewhere(path, "duckdb")
        caller.execute("INSERT INTO t VALUES (2)")
    with duckdb.connect(str(path), read_only=True), open_at(path) as database:
        read_in_every_way(database)
        assert "Conflicting lock" in write_elsewhere(path, "duckdb")
        assert database.run("SELECT x FROM t").rows == [(1,), (2,)]


# -- limits and cancelling -------------------------------------------------------------------------


@both_ways
def test_each_limit_has_an_error_of_its_own(dialect: str, files: dict[str, Place]) -> None:
    # MariaDB has no idle connection after a query that was killed.
    seconds = 1.3 if dialect == "mysql" else 0.3
    limits = QueryLimits(seconds=seconds, rows=10, bytes=1_000)
    with open_at(files[dialect], limits=limits) as database:
        with pytest.raises(QueryTimeoutError, match=rf"{seconds} s"):
            database.run(HEAVY[dialect])
        with pytest.raises(TooManyRowsError, match="more than 10 rows"):
            database.run("SELECT n FROM numbers")
        joined = "SELECT string_agg(CAST(n AS VARCHAR), ',') FROM numbers"
        with pytest.raises(ResultTooLargeError, match="1,000 bytes"):
            database.run(JOINED_TEXT.get(dialect, joined))
        assert database.run("SELECT n FROM numbers LIMIT 10").row_count == 10


def test_a_result_of_exactly_the_limit_is_returned(dialect: str, files: dict[str, Place]) -> None:
    with open_at(files[dialect], limits=QueryLimits(rows=2_000)) as database:
        assert database.run("SELECT n FROM numbers").row_count == 2_000


@both_ways
def test_two_million_rows_are_given_up_before_they_are_fetched(files: dict[str, Place]) -> None:
    with (
        open_at(files["duckdb"], limits=QueryLimits(memory_bytes=32_000_000)) as database,
        pytest.raises(TooManyRowsError),
    ):
        database.run(
            "SELECT range, 'some text that is not short at all ' || range FROM range(2000000)"
        )
    with open_at(files["sqlite"]) as database, pytest.raises(TooManyRowsError):
        database.run(
            "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 2000000)"
            " SELECT x, 'some text' FROM t"
        )


@both_ways
def test_a_cancel_stops_the_running_query_and_no_other(
    dialect: str, files: dict[str, Place]
) -> None:
    with open_at(files[dialect], limits=QueryLimits(seconds=60)) as database:
        database.catalog()
        cancel, caught = Cancel(), []

        def work() -> None:
            try:
                database.run(HEAVY[dialect], cancel=cancel)
            except LongtableError as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(5):  # a slow query does not hold up a quick one
            assert database.run("SELECT count(*) FROM people").rows == [(4,)]
        assert thread.is_alive()
        cancel.cancel()
        thread.join(JOIN_SECONDS)
        assert [type(error) for error in caught] == [QueryCancelledError]
        assert database.run("SELECT count(*) FROM people").rows == [(4,)]


def test_a_cancel_before_the_query_means_that_it_never_runs(database: Database) -> None:
    cancel = Cancel()
    cancel.cancel()
    with pytest.raises(QueryCancelledError):
        database.run("SELECT 1", cancel=cancel)


@both_ways
def test_close_cancels_what_runs(dialect: str, files: dict[str, Place]) -> None:
    database = open_at(files[dialect], limits=QueryLimits(seconds=60))
    database.catalog()
    started, caught = threading.Event(), []

    def work() -> None:
        started.set()
        try:
            database.run(HEAVY[dialect])
        except LongtableError as error:
            caught.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    started.wait(JOIN_SECONDS)
    time.sleep(0.3)
    assert thread.is_alive()
    database.close()
    thread.join(JOIN_SECONDS)
    assert not thread.is_alive()
    assert caught in ([QueryCancelledError], [DatabaseUnavailableError])


@both_ways
def test_cancelling_the_task_cancels_the_query(dialect: str, files: dict[str, Place]) -> None:
    with open_at(files[dialect], limits=QueryLimits(seconds=60)) as database:
        tool = {tool.name: tool for tool in database_tools(database)}["run_sql"]

        async def talk() -> str:
            slow = asyncio.create_task(tool.ainvoke({"sql": HEAVY[dialect]}))
            quick = await tool.ainvoke({"sql": "SELECT 1 AS one"})
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            return str(quick)

        # asyncio.run waits for the worker threads: it would take 60 s were the query not stopped.
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(asyncio.run(talk())))
        thread.start()
        thread.join(JOIN_SECONDS)
        assert answers
        assert '"rows":[[1]]' in answers[0]


@both_ways
def test_many_threads_share_one_database(dialect: str, files: dict[str, Place]) -> None:
    answers: list[object] = []

    def work(index: int) -> None:
        answers.append(database.run(f"SELECT {index} + count(*) FROM people").rows[0][0])

    with open_at(files[dialect]) as database:
        threads = [threading.Thread(target=work, args=(index,)) for index in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(JOIN_SECONDS)
    assert sorted(answers, key=str) == sorted((index + 4 for index in range(24)), key=str)


def test_an_engine_that_does_not_stop_is_left_behind_up_to_a_number() -> None:
    runner, release = Runner(), threading.Event()

    def stubborn(_stop: Stop) -> bool:
        return release.wait(JOIN_SECONDS)

    threads = []
    seen: list[type[Exception]] = []

    def ask() -> None:
        try:
            runner.run(stubborn, seconds=0.05)
        except LongtableError as error:
            seen.append(type(error))

    for _ in range(MAX_LEFT_BEHIND):
        threads.append(threading.Thread(target=ask))
        threads[-1].start()
    for thread in threads:
        thread.join(JOIN_SECONDS)
    assert seen == [QueryTimeoutError] * MAX_LEFT_BEHIND
    with pytest.raises(DatabaseUnavailableError, match="have not ended"):
        runner.run(lambda _: 1, seconds=1)
    release.set()
    for _ in range(1_000):
        try:
            assert runner.run(lambda _: 1, seconds=1) == 1
            break
        except DatabaseUnavailableError:
            threading.Event().wait(0.01)
    else:
        pytest.fail("the runner takes no work although all that was left behind has ended")


# -- errors that help ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("SELECT nam FROM people", QueryFailedError, "nearest columns: name"),
        ("SELECT p.salry FROM people p", QueryFailedError, "nearest columns: salary"),
        ("SELECT name FROM people WHERE citi = 'Bern'", QueryFailedError, "nearest columns: city"),
        ("SELECT salary FROM audit", QueryFailedError, "there is such a column in: people.salary"),
        (
            "SELECT qqqqq FROM audit",
            QueryFailedError,
            "columns of audit: created, deleted_at, updates",
        ),
        ("SELECT * FROM peple", QueryRefusedError, "nearest tables: people"),
        ("SELECT * FROM peple", QueryFailedError, "nearest tables: people"),
        ("SELECT * FROM order_details", QueryRefusedError, "nearest tables: Order Details"),
        ("SELECT name FROM people WHERE", QueryRefusedError, "line 1"),
        ("SELECT name\nFORM people WHERE x", QueryRefusedError, "line 2"),
        ("SELECT lenght(name) FROM people", QueryRefusedError, "nearest functions: length"),
    ],
)
def test_an_error_names_what_was_probably_meant(
    sql: str, kind: type[Exception], said: str, database: Database
) -> None:
    with pytest.raises(kind) as caught:
        database.run(sql)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT secrt FROM people",
        "SELECT secret FROM people",
        "SELECT * FROM valt",
        "SELECT * FROM through_vew",
    ],
)
def test_an_error_names_nothing_that_cannot_be_seen(sql: str, database: Database) -> None:
    with pytest.raises((QueryFailedError, QueryRefusedError)) as caught:
        database.run(sql)
    hint = getattr(caught.value, "hint", "")
    assert not any(word in hint for word in ("vault", "secret", "through"))


def test_the_sql_that_ran_is_told_without_comments(database: Database) -> None:
    result = database.run("select name /* secret plan */ from people -- end\nwhere id = 1;")
    assert result.sql == "SELECT name FROM people WHERE id = 1"
    assert result.rows == [("Ada",)]
    assert result.columns == ("name",)
    assert result.types == (
        {
            "sqlite": "TEXT",
            "duckdb": "VARCHAR",
            "postgres": "text",
            "mysql": "TEXT",
            "clickhouse": "String",
        }[database.dialect],
    )


def test_quoted_names_are_shown_so_in_the_sql_and_in_the_headings(
    dialect: str, databases: dict[str, Database]
) -> None:
    sql = (
        'SELECT "Unit Price", MAX("Unit Price") + 1, 2 AS "two times" FROM "Order Details" GROUP'
        " BY 1"
    )
    result = databases[dialect].run(spelled(sql.replace("MAX", "max"), dialect))
    written = sql.replace("MAX", "max") if dialect == "clickhouse" else sql
    assert result.sql == spelled(written, dialect)
    assert result.rows == [(2.5, 3.5, 2)]
    assert result.columns[0::2] == ("Unit Price", "two times")
    assert dialect != "sqlite" or result.columns[1] == 'MAX("Unit Price") + 1'


def test_odd_names_and_a_view_with_text_in_double_quotes_are_read_as_before(tmp_path: Path) -> None:
    script = """
    CREATE TABLE t ("a`b" INT, "c""d" INT, "e]f" INT, "`g`" INT); INSERT INTO t VALUES (1, 2, 3, 4);
    CREATE VIEW v AS SELECT "c""d" AS x, "no column" AS y FROM t WHERE "yes" = 'yes';
    """
    with open_at(make_file(tmp_path, "sqlite", script)) as database:
        result = database.run('SELECT "a`b", "c""d", "e]f", "`g`", "a`b" + `c"d` FROM t')
        assert result.columns == ("a`b", 'c"d', "e]f", "`g`", '"a`b" + "c""d"')
        assert result.rows == [(1, 2, 3, 4, 3)]
        assert database.run('SELECT "x", [y] FROM "v"').rows == [(2, "no column")]


def test_an_internal_error_of_duckdb_is_a_failed_query_and_the_next_one_works(
    paths: dict[str, Path],
) -> None:
    def without_wall() -> duckdb.DuckDBPyConnection:
        root = duckdb.connect(":memory:")
        root.execute(f"ATTACH '{paths['duckdb']}' AS shop (READ_ONLY)")
        return root

    engine = DuckdbEngine(without_wall, alias="shop", memory_bytes=10**9)
    location, limits = parse_url(url(paths["duckdb"])), QueryLimits()
    backend = InProcess(engine, LocalParser(), limits=limits, policy=DENY_VAULT)
    with Database(
        backend, url=url(paths["duckdb"]), location=location, limits=limits, policy=DENY_VAULT
    ) as database:
        before = database.catalog()
        for _ in range(2):
            # The wall refuses it. It has DuckDB 2.0 fail as other texts have other versions, and
            # ends the instance.
            with pytest.raises(QueryFailedError, match="INTERNAL Error"):
                database.read("SELECT * FROM enable_logging(storage_normalize := 1)", seconds=20)
            assert database.run("SELECT count(*) FROM people").rows == [(4,)]
        assert database.refresh() == before


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_walled_session_reads_nothing_before_the_catalogue_says_what_it_may(
    paths: dict[str, Path], kind: str
) -> None:
    limits, stop = QueryLimits(), Stop(seconds=20)
    engine = (
        SqliteEngine(paths[kind], limits=limits, busy_seconds=1)
        if kind == "sqlite"
        else DuckdbEngine.of_file(paths[kind], limits=limits)
    )
    with (
        pytest.raises(QueryRefusedError, match="refused the statement"),
        engine.session(stop, walled=True) as session,
    ):
        session.fetch("SELECT count(*) FROM people", limits=limits, stop=stop)
    engine.close()


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_file_that_another_was_renamed_to_is_read_from_then_on(
    tmp_path: Path, file_dialect: str, isolation: Isolation
) -> None:
    old = "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1);"
    new = "CREATE TABLE t (n INTEGER, m INTEGER); INSERT INTO t VALUES (2, 3);"
    place = make_file(tmp_path, file_dialect, old)
    with Database.open(url(place), isolation=isolation) as database:
        assert database.run("SELECT n FROM t").rows == [(1,)]
        version = database.version
        make_file(tmp_path, file_dialect, new, name="tonight").rename(place)
        assert database.run("SELECT n FROM t").rows == [(2,)]
        [table] = database.refresh().tables
        assert [column.name for column in table.columns] == ["n", "m"]
        assert database.version != version
        assert database.run("SELECT m FROM t").rows == [(3,)]


def test_a_schema_that_takes_too_long_to_read_is_a_timeout(
    paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> object:
        raise StoppedError

    with Database.open(
        url(paths["sqlite"]), isolation="none", limits=QueryLimits(seconds=3)
    ) as database:
        monkeypatch.setattr(engine_of(database), "schema_version", slow)
        for read in (database.catalog, database.refresh):
            with pytest.raises(QueryTimeoutError, match="3 s"):
                read()
