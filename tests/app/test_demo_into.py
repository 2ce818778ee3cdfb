"""The demo in a database of each engine: whole, with keys and comments, and never over a table."""

from pathlib import Path

import pytest

from longtable.app.demo import TABLES, Step, ensure_demo
from longtable.app.demo_into import load_demo
from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.tools.database import Database
from tests.app.runner import make_home
from tests.app.test_demo import data as data  # a fixture
from tests.support.clickhouse import clickhouse_server
from tests.support.mariadb import mariadb_server
from tests.support.postgres import postgres_server
from tests.tools.databases import DIALECTS, FILE_DIALECTS


@pytest.fixture
def demo(tmp_path: Path, data: Path) -> Path:
    return ensure_demo(tmp_path / "cache", data=data)


def empty_database(dialect: str, folder: Path) -> tuple[str, str]:
    """Return two URLs of an empty database: for whoever writes, and for whoever reads."""
    if dialect == "postgres":
        url = postgres_server().create()
        return url, url
    if dialect == "mysql":
        server = mariadb_server()
        reader = server.create()
        name = reader.rpartition("/")[2]
        server.run(f"CREATE OR REPLACE USER writer@`%`; GRANT ALL ON `{name}`.* TO writer@`%`")
        return server.url(name, user="writer"), reader
    if dialect == "clickhouse":
        url = clickhouse_server().create()
        return url, url
    url = f"{dialect}:///{folder / 'empty'}.{'db' if dialect == 'sqlite' else 'duckdb'}"
    return url, url


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_demo_is_whole_in_every_engine(dialect: str, tmp_path: Path, demo: Path) -> None:
    writer, reader = empty_database(dialect, tmp_path)
    steps: list[Step] = []
    shown = load_demo(demo, writer, on_step=steps.append)
    assert "password" not in shown
    assert [step.table for step in steps] == [table.name for table in TABLES]
    assert steps[-1].done < steps[-1].total
    with Database.open(reader) as database:
        tables = {table.name: table for table in database.catalog().tables}
        assert set(tables) == {table.name for table in TABLES}
        flights = tables["flights"]
        if dialect != "clickhouse":  # which has neither
            assert {key.table for key in flights.foreign_keys} == {"airlines", "airports"}
            assert tables["airlines"].primary_key == ("carrier",)
        if dialect != "sqlite":
            assert flights.comment
            assert all(column.comment for column in flights.columns)
        rows = database.run(
            "SELECT f.carrier, a.name, f.dep_time, f.hour, f.time_hour FROM flights f JOIN airlines"
            " a ON a.carrier = f.carrier ORDER BY f.day"
        ).rows
        assert [row[:4] for row in rows] == [
            ("UA", "United", 2317, 23),
            ("AA", "American", None, 5),
        ]
        assert str(rows[0][4]) == "2013-01-01 23:00:00"
        assert database.run("SELECT temp FROM weather").rows == [(39.02,)]
        assert database.run("SELECT name FROM airports WHERE faa = 'IAH'").rows == [
            ("Houston, O'Hare",)
        ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_database_that_has_a_table_is_left_as_it_is(
    dialect: str, tmp_path: Path, demo: Path
) -> None:
    writer, reader = empty_database(dialect, tmp_path)
    load_demo(demo, writer)
    with pytest.raises(ConfigError, match="is not empty, it has '"):
        load_demo(demo, writer)
    with Database.open(reader) as database:
        assert database.run("SELECT count(*) FROM flights").rows == [(2,)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_load_that_fails_leaves_nothing(dialect: str, tmp_path: Path, demo: Path) -> None:
    writer, reader = empty_database(dialect, tmp_path)

    def fail(step: Step) -> None:
        if step.table == "flights":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_demo(demo, writer, on_step=fail)
    if dialect in FILE_DIALECTS:
        assert not Path(writer.partition(":///")[2]).exists()
    else:
        with Database.open(reader) as database:
            assert database.catalog().tables == ()
    load_demo(demo, writer)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("files:///{folder}", "names data files"),
        ("{folder}/x.csv", "names data files"),
        ("oracle://host/x", "not supported"),
        ("mysql://u:hidden@127.0.0.1:1/x", "cannot be reached"),
        ("postgresql://u:hidden@127.0.0.1:1/x", "cannot be loaded into the database 'x'"),
        ("sqlite:////missing/folder/x.db", "cannot be loaded into the database 'x'"),
    ],
)
def test_what_cannot_be_written_is_told(url: str, said: str, tmp_path: Path, demo: Path) -> None:
    with pytest.raises((ConfigError, DatabaseUnavailableError), match=said) as caught:
        load_demo(demo, url.format(folder=tmp_path))
    assert "hidden" not in str(caught.value)


def test_an_account_that_may_not_write_is_told(demo: Path) -> None:
    if "mysql" not in DIALECTS:
        pytest.skip("needs MariaDB")
    reader = mariadb_server().create()
    with pytest.raises(DatabaseUnavailableError, match="may create tables"):
        load_demo(demo, reader)


def test_the_command_loads_it_and_prints_the_url(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    url = f"sqlite:///{tmp_path}/demo.db"
    done = home.run("demo", "--into", url)
    assert done.stdout.strip() == url
    with Database.open(url) as database:
        assert database.run("SELECT count(*) FROM flights").rows == [(336_776,)]
    again = home.run("demo", "--into", url)
    assert again.returncode != 0
    assert "is not empty" in again.stderr
