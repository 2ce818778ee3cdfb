"""Files of people's own: kept by owner, opened eight at a time, deleted with the thread."""

import gzip
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from longtable.app.pages.uploads import (
    Uploaded,
    UploadRefusedError,
    Uploads,
    safe_name,
    url_of,
)
from longtable.base.errors import LongtableError, TooManyTurnsError
from longtable.graph.thread_state import Graph
from longtable.tools.database import Database
from tests.app.pages.served_pages import HOSTILE, Browser, Server, serving
from tests.app.runner import Home, make_home

CSV = b"city,people\nRome,3\nOslo,4\n"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("sales.csv", "sales.csv"),
        ("Sales 2024.CSV.GZ", "Sales_2024.csv.gz"),
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\data\\shop.db", "shop.db"),
        (f"{HOSTILE}.json", "img_src_x_onerror_alert_1.json"),
        ("销售.xlsx", "销售.xlsx"),
        ("....sqlite", "data.sqlite"),
        ("a" * 300 + ".parquet", "a" * 60 + ".parquet"),
    ],
)
def test_a_name_is_kept_without_what_could_lead_elsewhere(name: str, kept: str) -> None:
    assert safe_name(name) == kept


@pytest.mark.parametrize("name", ["", "a", "a.exe", "a.html", "a.csv.exe", "a.db.gz", ".csv/"])
def test_a_file_of_another_kind_is_refused(name: str) -> None:
    with pytest.raises(UploadRefusedError):
        safe_name(name)


def open_csv(url: str) -> Uploaded:
    return Uploaded(Database.open(url, isolation="none"), cast("Graph", None))


def uploads_in(folder: Path, **more: Any) -> Uploads:
    options: dict[str, Any] = {"most_bytes": 1_000, "is_busy": lambda _: False, **more}
    return Uploads(folder, open_csv, **options)


def keep(uploads: Uploads, thread: str, owner: str | None = None, data: bytes = CSV) -> Uploaded:
    return uploads.keep(thread, owner, "towns.csv", io.BytesIO(data))


def test_a_file_belongs_to_its_owner_and_goes_with_its_thread(tmp_path: Path) -> None:
    uploads = uploads_in(tmp_path)
    opened = keep(uploads, "t", "ann")
    assert opened.database.run("SELECT sum(people) FROM towns").rows == [(7,)]
    assert uploads.of("t", "ann") is opened
    assert uploads.of("t", "bob") is None
    assert uploads.of("t", None) is None
    uploads.copy("t", "fork", "ann")
    uploads.delete("t", "ann")
    assert uploads.of("t", "ann") is None
    assert uploads.of("fork", "ann") is not None
    uploads.close()


@pytest.mark.parametrize("thread", ["..", "../x", ".", "a/b", "会"])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, thread: str) -> None:
    uploads = uploads_in(tmp_path / "in" / "side")
    keep(uploads, thread, "..")
    [file] = tmp_path.rglob("towns.csv")
    assert file.is_relative_to(tmp_path / "in" / "side")
    uploads.close()


def test_the_oldest_idle_database_is_closed_first(tmp_path: Path) -> None:
    busy = {"t1"}
    uploads = uploads_in(tmp_path, most_open=2, is_busy=lambda thread: thread in busy)
    first = keep(uploads, "t1")
    second = keep(uploads, "t2")
    keep(uploads, "t3")
    assert uploads.of("t1", None) is first
    assert uploads.of("t2", None) is not second  # opened again, in the place of t3
    busy |= {"t2"}
    with pytest.raises(TooManyTurnsError):
        uploads.of("t3", None)
    uploads.close()


@pytest.mark.parametrize("data", [CSV * 100, b""])
def test_a_file_that_cannot_be_asked_is_not_kept(tmp_path: Path, data: bytes) -> None:
    uploads = uploads_in(tmp_path)
    with pytest.raises(LongtableError):
        keep(uploads, "t", data=data)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_disk_that_takes_nothing_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "all").write_text("no folder")
    with pytest.raises(LongtableError, match="cannot be kept"):
        keep(uploads_in(tmp_path), "t")


def test_a_sqlite_file_is_asked_as_it_is(tmp_path: Path) -> None:
    assert url_of(tmp_path / "x.db").startswith("sqlite:////")
    assert url_of(tmp_path / "x.csv").startswith("files:////")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    (home.folder / "small.toml").write_text("[web]\nupload_megabytes = 1\n")
    with serving(home, "--config", str(home.folder / "small.toml")) as running:
        yield running


def send(browser: Browser, thread: str, name: str, data: bytes) -> Any:
    headers = {"X-Longtable-Token": browser.token, "HX-Request": "true"}
    return browser.http.post(f"{thread}/upload", files={"file": (name, data)}, headers=headers)


def test_a_thread_asks_its_own_file_also_after_a_restart(home: Home, tmp_path: Path) -> None:
    with serving(home) as server:
        browser = server.browser()
        thread = browser.new_thread()
        new = send(browser, thread, "towns.csv", CSV).headers["hx-redirect"]
        assert new == f"{thread}?new=1"
        page = browser.open(new).text
        assert "over towns." in page
        assert "There are 2" in browser.ask(thread, "How many towns are there?")
        assert "There are 30" in browser.ask(browser.new_thread(), "How many orders are there?")
        assert send(browser, thread, "towns.csv", CSV).status_code == 409
    with serving(home) as server:
        browser = server.browser()
        assert "There are 2" in browser.open(thread).text
        fork = browser.post(f"{thread}/fork").headers["hx-redirect"]
        browser.post(f"{thread}/delete")
        assert "7" in browser.ask(fork, "What is the sum of the people of the towns?")


def test_a_sqlite_file_is_uploaded(server: Server, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection, connection:
        connection.execute("CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT)")
        connection.executemany("INSERT INTO birds (name) VALUES (?)", [("wren",), ("rook",)])
    browser = server.browser()
    thread = browser.new_thread()
    send(browser, thread, "own.db", (tmp_path / "own.db").read_bytes())
    assert "There are 2" in browser.ask(thread, "How many birds are there?")


@pytest.mark.parametrize(
    ("name", "data", "status", "said"),
    [
        ("a.exe", b"MZ", 400, ""),
        ("a.csv", b"x" * 1_500_000, 400, ""),
        ("a.csv", b"x" * 4_000_000, 413, ""),
        ("a.csv.gz", gzip.compress(b"a,b\n" * 1_000_000, mtime=0), 400, ""),
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], 422, "cannot be asked"),
        ("a.xlsx", b"no workbook", 422, "a.xlsx"),
        ("a.csv", b'a,b\n"open,1\n2,3\n', 422, "never closed"),
        ("a.db", b"no database at all", 422, "is not a sqlite database"),
        ("", b"", 422, ""),
    ],
)
def test_a_bad_upload_is_a_sentence_and_keeps_nothing(
    server: Server, home: Home, name: str, data: bytes, status: int, said: str
) -> None:
    browser = server.browser()
    thread = browser.new_thread()
    answer = send(browser, thread, name, data)
    assert answer.status_code == status, answer.text
    assert "toast" in answer.text
    assert said in answer.text
    assert str(home.folder) not in answer.text
    assert "shop" in browser.open(f"{thread}?new=1").text
