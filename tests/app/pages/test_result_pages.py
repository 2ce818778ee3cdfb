"""Results in the browser: pages, order, files and charts."""

import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import duckdb
import openpyxl
import pytest

from tests.app.pages.served_pages import Browser, Server, serving
from tests.app.pages.test_turn_pages import of_model
from tests.app.runner import Home, make_home
from tests.support.model_server import call, open_model_server, say

ROWS = 450
SPEC = '{"mark":"bar","encoding":{"x":{"field":"name","type":"nominal"},"y":{"field":"n","type":"quantitative","aggregate":"sum"}}}'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = make_home(tmp_path_factory.mktemp("home"))
    with closing(sqlite3.connect(home.folder / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE things (n INTEGER, name TEXT, odd TEXT)")
        rows = [
            (None if number == 7 else ROWS - number, f"thing {number % 5}", "=1+1")
            for number in range(ROWS)
        ]
        connection.executemany("INSERT INTO things VALUES (?, ?, ?)", rows)
    return home


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    with open_model_server() as model:
        model.script(
            call("run_sql", sql="SELECT n, name, odd FROM things"),
            call("show_chart", handle="r1", spec=json.loads(SPEC)),
            say("There they are."),
        )
        with serving(home, **of_model(model)) as running:
            yield running


@pytest.fixture(scope="module")
def browser(server: Server) -> Browser:
    return server.browser()


@pytest.fixture(scope="module")
def thread(browser: Browser) -> str:
    thread = browser.new_thread()
    page = browser.ask(thread, "Show the things")
    assert "There they are." in page
    assert "200 of 450 shown" in page
    return thread


def cells(html: str) -> list[str]:
    return [row.split("</td>")[0] for row in html.split('<td class="num">')[1:]]


def test_more_rows_come_200_at_a_time(browser: Browser, thread: str) -> None:
    second = browser.http.get(f"{thread}/results/r1", params={"page": 2, "part": "p-1"}).text
    assert second.count("<tr>") == 200
    assert "400 of 450 shown" in second
    third = browser.http.get(f"{thread}/results/r1", params={"page": 3, "part": "p-1"}).text
    assert third.count("<tr>") == 50
    assert "<button" not in third


@pytest.mark.parametrize(("sort", "first"), [(1, "1"), (-1, "450")])
def test_the_whole_result_is_sorted_and_nothing_comes_last(
    browser: Browser, thread: str, sort: int, first: str
) -> None:
    table = browser.http.get(f"{thread}/results/r1", params={"sort": sort, "part": "p-1"}).text
    assert cells(table)[0] == first
    assert "aria-sort" in table
    last = browser.http.get(f"{thread}/results/r1", params={"sort": sort, "page": 3}).text
    assert cells(last)[-1] == '<span class="null">∅</span>'


def test_files_hold_the_whole_result_and_no_formula(browser: Browser, thread: str) -> None:
    text = browser.http.get(f"{thread}/results/r1.csv").text
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == ROWS + 1
    assert rows[1] == ["450", "thing 0", "'=1+1"]
    sheet = openpyxl.load_workbook(
        io.BytesIO(browser.http.get(f"{thread}/results/r1.xlsx").content)
    ).active
    assert sheet is not None
    assert sheet.max_row == ROWS + 1
    assert sheet["C2"].data_type == "s"


def test_a_parquet_file_is_read_by_others(browser: Browser, thread: str, home: Home) -> None:
    file = home.folder / "r1.parquet"
    file.write_bytes(browser.http.get(f"{thread}/results/r1.parquet").content)
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM '{file}'").fetchone() == (ROWS,)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("results/r9", 404),
        ("results/r9.csv", 404),
        ("results/r1.exe", 400),
        ("results/r1?sort=9", 400),
        ("charts/r1.gif", 400),
        ("charts/r1.svg?spec=[]", 400),
        ("charts/r1.svg?spec={", 400),
        ("charts/r9.svg", 404),
    ],
)
def test_what_is_not_there_says_so(browser: Browser, thread: str, path: str, status: int) -> None:
    answer = browser.http.get(f"{thread}/{path}")
    assert answer.status_code == status
    assert "<h1>" in answer.text


def test_a_chart_is_a_picture_that_runs_nothing(browser: Browser, thread: str) -> None:
    pytest.importorskip("vl_convert")
    page = browser.open(thread).text
    assert 'class="chart"' in page
    picture = browser.http.get(f"{thread}/charts/r1.svg", params={"spec": SPEC})
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "<svg" in picture.text
    png = browser.http.get(f"{thread}/charts/r1.png", params={"spec": SPEC}).content
    assert png.startswith(b"\x89PNG")
