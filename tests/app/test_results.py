"""Results on the command line: kept beside the store, shown again by handle, written to files."""

import csv
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from longtable.app.result_files import save_result
from longtable.app.settings import results_folder
from longtable.graph import ConfigError, ResultStore
from tests.app.runner import Home, make_home

CELLS = [(1, 'tea, "green"', None), (2, "茶\nline", 1.5), (3, "=1+1", 2.5)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    made = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    made.put("t", columns=["id", "name", "x"], types=["INT", "TEXT", "ANY"], rows=CELLS, sql="SELECT 1")
    return made


def test_a_result_is_shown_and_written_in_a_later_chat(home: Home) -> None:
    events = home.events("ask", "How many orders per customer?", "--thread", "t1")
    [query] = [event for event in events if event["type"] == "query_finished"]
    assert query["handle"] == "r1"
    table, file = home.folder / "out.parquet", home.folder / "out file.csv"
    lines = f"/result r1\n/result r1 {file}\n/result R1 {table}\n/result r1 {file}\n/result r9\n/result\n"
    done = home.run("chat", "--thread", "t1", stdin=lines.encode())
    assert "customer 29" in done.stdout
    assert "(30 rows) is written to" in done.stdout
    with file.open(encoding="utf-8", newline="") as opened:
        written = list(csv.reader(opened))
    assert len(written) == 31
    assert written[0] == query["columns"]
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM '{table}'").fetchall() == [(30,)]
    assert "is there already" in done.stderr
    assert "no result 'r9'" in done.stderr
    assert "/result needs a handle: r1" in done.stderr
    assert (home.folder / "threads.db.results").is_dir()


def test_a_forked_thread_keeps_its_results_and_a_deleted_one_leaves_none(home: Home) -> None:
    home.run("ask", "How many orders are there?", "--thread", "t1")
    assert home.run("threads", "fork", "t1", "--turn", "1", "--as", "t2").returncode == 0
    assert home.run("threads", "delete", "t1", "--yes").returncode == 0
    assert len(list((home.folder / "threads.db.results").glob("*/r1/data.parquet"))) == 1
    assert home.run("threads", "prune", "--older-than", "0h", "--yes").returncode == 0
    assert list((home.folder / "threads.db.results").iterdir()) == []


def test_a_store_in_memory_leaves_no_results_behind(home: Home, tmp_path: Path) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    done = home.run("ask", "How many orders are there?", "--store", "memory://", "--json", TMPDIR=str(temporary))
    assert '"handle": "r1"' in done.stdout or '"handle":"r1"' in done.stdout
    assert list(temporary.iterdir()) == []


def test_csv_holds_every_cell_as_text(store: ResultStore, tmp_path: Path) -> None:
    assert save_result(store, "t", "r1", tmp_path / "a.csv") == 3
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as opened:
        assert list(csv.reader(opened))[1:3] == [["1", 'tea, "green"', ""], ["2", "茶\nline", "1.5"]]


@pytest.mark.parametrize(("name", "said"), [("a.txt", "must end in"), ("no/where/a.csv", "cannot be written"), (".csv", "must end in")])
def test_a_file_that_cannot_be_written_is_said(store: ResultStore, tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        save_result(store, "t", "r1", tmp_path / name)


def test_results_lie_beside_the_store_and_a_password_names_no_folder(tmp_path: Path) -> None:
    assert results_folder(f"sqlite:///{tmp_path}/chat.db") == tmp_path / "chat.db.results"
    assert results_folder("memory://") is None
