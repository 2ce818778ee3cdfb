"""Results on the command line: kept beside the store, shown again by handle, written to files."""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from openpyxl import load_workbook

from longtable.app.console.result_files import save_result
from longtable.app.settings.run_settings import results_folder
from longtable.graph import ConfigError, ResultStore
from tests.app.runner import Home, make_home

CELLS = [(1, 'tea, "green"', None), (2, "茶\nline", 1.5), (3, "=1+1", 2.5)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    made = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    made.put(
        "t", columns=["id", "name", "x"], types=["INT", "TEXT", "ANY"], rows=CELLS, sql="SELECT 1"
    )
    return made


def test_a_result_is_shown_and_written_in_a_later_chat(home: Home) -> None:
    events = home.events("ask", "How many orders per customer?", "--thread", "t1")
    [query] = [event for event in events if event["type"] == "query_finished"]
    assert query["handle"] == "r1"
    table, file = home.folder / "out.parquet", home.folder / "out file.csv"
    lines = (
        f"/result r1\n/result r1 {file}\n/result R1 {table}\n/result r1 {file}\n/result"
        " r9\n/result\n"
    )
    done = home.run("chat", "--thread", "t1", stdin=lines.encode())
    assert "customer 29" in done.stdout
    assert "(30 rows) is written to" in done.stdout
    with file.open(encoding="utf-8", newline="") as opened:
        written = list(csv.reader(opened))
    assert len(written) == 31
    assert written[0] == query["columns"]
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM '{table}'").fetchall() == [(30,)]
    assert "already exists" in done.stderr
    assert "no result 'r9'" in done.stderr
    assert "There is no such result" not in done.stderr
    assert "/result needs a handle: r1" in done.stderr
    assert (home.folder / "threads.db.results").is_dir()


def test_a_forked_thread_keeps_its_results_and_a_deleted_one_leaves_none(home: Home) -> None:
    home.run("ask", "How many orders are there?", "--thread", "t1")
    assert home.run("threads", "fork", "t1", "--turn", "1", "--as", "t2").returncode == 0
    assert home.run("threads", "delete", "t1", "--yes").returncode == 0
    assert len(list((home.folder / "threads.db.results").glob("*/r1/data.parquet"))) == 1
    assert home.run("threads", "prune", "--older-than", "0h", "--yes").returncode == 0
    assert list((home.folder / "threads.db.results").iterdir()) == []


def test_a_result_that_could_not_be_kept_is_told_with_the_reason(home: Home) -> None:
    (home.folder / "threads.db.results").write_text("a file stands in the way")
    asked = home.run("ask", "How many orders are there?", "--thread", "t")
    assert asked.returncode == 0
    assert "not kept, and has no handle" in asked.stdout
    shown = home.run("result", "r1", "--thread", "t")
    assert shown.returncode == 1
    assert "no query has run yet" in shown.stderr or "no result 'r1'" in shown.stderr


def test_a_store_in_memory_leaves_no_results_behind(home: Home, tmp_path: Path) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    done = home.run(
        "ask", "How many orders are there?", "--store", "memory://", "--json", TMPDIR=str(temporary)
    )
    assert '"handle": "r1"' in done.stdout or '"handle":"r1"' in done.stdout
    assert list(temporary.iterdir()) == []


def test_csv_holds_every_cell_as_text(store: ResultStore, tmp_path: Path) -> None:
    assert save_result(store, "t", "r1", tmp_path / "a.csv")[0] == 3
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as opened:
        assert list(csv.reader(opened))[1:3] == [
            ["1", 'tea, "green"', ""],
            ["2", "茶\nline", "1.5"],
        ]


def test_csv_cells_that_a_spreadsheet_would_run_are_counted_and_quoted_on_request(
    store: ResultStore, tmp_path: Path
) -> None:
    rows = [("=1+1", -1), ("@SUM(A1)", 2), ("-5 degrees", None), ("\t=1", 3), ("tea = green", 4)]
    handle = store.put(
        "t", columns=["=head", "n"], types=["TEXT", "INTEGER"], rows=rows, sql="SELECT 3"
    )
    assert save_result(store, "t", handle, tmp_path / "plain.csv") == (5, 5)
    assert save_result(store, "t", handle, tmp_path / "quoted.csv", quote_formulas=True) == (5, 0)
    with (tmp_path / "quoted.csv").open(encoding="utf-8", newline="") as opened:
        read = list(csv.reader(opened))
    assert [row[0] for row in read] == [
        "'=head",
        "'=1+1",
        "'@SUM(A1)",
        "'-5 degrees",
        "'\t=1",
        "tea = green",
    ]
    assert [row[1] for row in read] == ["n", "-1", "2", "", "3", "4"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("a.txt", "must end in"), ("no/where/a.csv", "cannot be written"), (".csv", "must end in")],
)
def test_a_file_that_cannot_be_written_is_said(
    store: ResultStore, tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        save_result(store, "t", "r1", tmp_path / name)


def test_results_lie_beside_the_store_and_a_password_names_no_folder(tmp_path: Path) -> None:
    assert results_folder(f"sqlite:///{tmp_path}/chat.db") == tmp_path / "chat.db.results"
    assert results_folder("memory://") is None


def test_an_excel_file_holds_text_where_a_cell_looks_like_a_formula(
    store: ResultStore, tmp_path: Path
) -> None:
    hostile = ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\x00\x07ok", "茶"]
    rows = [
        (text, 7, datetime(2024, 5, 1, 12, 30), datetime(2024, 5, 1, tzinfo=UTC), None, 2**60, True)
        for text in hostile
    ]
    columns = ["=head", "n", "at", "zoned", "none", "big", "yes"]
    handle = store.put("t", columns=columns, types=["ANY"] * 7, rows=rows, sql="SELECT 2")
    assert save_result(store, "t", handle, tmp_path / "out.xlsx") == (len(hostile), 0)
    sheet = load_workbook(tmp_path / "out.xlsx").worksheets[0]
    read = [[(cell.value, cell.data_type) for cell in row] for row in sheet.iter_rows()]
    assert all(kind != "f" for row in read for _, kind in row)
    assert [row[0][0] for row in read] == [
        "=head",
        "=1+1",
        "+1",
        "-1+cmd|' /C calc'!A0",
        "@SUM(A1)",
        "\t=1",
        "ok",
        "茶",
    ]
    assert [value for value, _ in read[1][1:]] == [
        7,
        datetime(2024, 5, 1, 12, 30),
        "2024-05-01T00:00:00+00:00",
        None,
        str(2**60),
        True,
    ]


def test_result_and_audit_write_what_a_thread_asked_and_got(home: Home) -> None:
    home.run("ask", "How many orders per customer?", "--thread", "t1")
    done = home.run("result", "r1", "--thread", "t1", "--csv")
    assert len(list(csv.reader(done.stdout.splitlines()))) == 31
    file = home.folder / "out.xlsx"
    assert (
        "(30 rows) is written to"
        in home.run("result", "R1", "--thread", "t1", "--xlsx", "-o", str(file)).stdout
    )
    assert load_workbook(file).worksheets[0].max_row == 31
    assert "customer 29" in home.run("result", "r1", "--thread", "t1").stdout
    for args, said in (
        (["r1", "--thread", "t9"], "no thread 't9'"),
        (["r9", "--thread", "t1", "--csv"], "no result 'r9'"),
        (["r1", "--thread", "t1", "--csv", "-o", "x.xlsx"], "choose one of --csv"),
        (["r1", "--thread", "t1", "--owner", "bob", "--store", "memory://"], "in memory"),
    ):
        refused = home.run("result", *args)
        assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr
    [entry] = [json.loads(line) for line in home.run("audit", "--json").stdout.splitlines()]
    assert (entry["thread"], entry["verdict"], entry["rows"], entry["tables"], entry["handle"]) == (
        "t1",
        "run",
        30,
        "orders",
        "r1",
    )
    assert "orders.customer" in entry["columns"]
    heading, line = csv.reader(home.run("audit", "--thread", "t1", "--csv").stdout.splitlines())
    assert dict(zip(heading, line, strict=True))["ran"] == entry["ran"]
    assert "orders" in home.run("audit").stdout
    assert home.run("audit", "--thread", "t9").returncode == 1
    both = home.run("audit", "--csv", "--json")
    assert (both.returncode, json.loads(both.stdout)["hint"]) == (
        1,
        "choose --csv or --json, not both",
    )
