"""A part goes away in mid-turn: the page says so in one sentence, and nothing is lost."""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.pages.served_pages import Server, serving
from tests.app.pages.test_turn_pages import SQL, of_model
from tests.app.runner import Home, make_home
from tests.support.model_server import (
    ChatRequest,
    ModelServer,
    Reply,
    call,
    open_model_server,
    say,
)

UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with open_model_server() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def server(home: Home, model: ModelServer) -> Iterator[Server]:
    log = {"LONGTABLE_LOG": "text", "LONGTABLE_LOG_LEVEL": "ERROR"}
    with serving(home, **of_model(model), **log, LONGTABLE_APPROVE_SQL="never") as running:
        yield running


def children_of(process: int) -> list[int]:
    """Return the processes that a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def test_a_database_that_goes_away_in_mid_turn_fails_its_query_alone(
    home: Home, model: ModelServer, server: Server
) -> None:
    browser = server.browser()
    thread = browser.new_thread()
    model.script(call("run_sql", sql=SQL), say("Here they are."))
    browser.ask(thread, "Show orders")
    shop = home.folder / "shop.db"
    away = home.folder / "away.db"

    def loses_it(_: ChatRequest) -> Reply:
        shop.rename(away)
        for worker in children_of(server.process.pid):
            os.kill(worker, signal.SIGKILL)
        return call("run_sql", sql="SELECT count(*) FROM orders WHERE amount > 3")

    model.script(loses_it, say("I cannot reach the database."))
    page = browser.ask(thread, "How many over three?")
    assert "Query failed" in page
    assert "I cannot reach the database." in page
    assert "customer 7" in page, "the earlier result is kept"
    assert browser.open("/").status_code == 200
    away.rename(shop)
    model.script(call("run_sql", sql="SELECT count(*) FROM orders"), say("There are 30."))
    assert "There are 30." in browser.ask(thread, "And now?")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_disk_that_is_full_in_mid_turn_loses_neither_question_nor_thread(
    model: ModelServer, server: Server, language: str
) -> None:
    browser = server.browser(**{"accept-language": language})
    words = {"en": "its disk is full", "zh": "磁盘是否已满"}[language]
    thread = browser.new_thread()
    model.script(say("The first answer."))
    browser.ask(thread, "One?")

    def fills_the_disk(_: ChatRequest) -> Reply:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (100, UNLIMITED))
        return say("An answer without room.")

    model.script(fills_the_disk)
    browser.post(f"{thread}/ask", question="Two?")
    stream = browser.follow(thread)
    assert words in stream
    assert 'role="alert"' in stream
    asks = {"question": "Three?"}
    rates = {"turn": "1", "score": "1"}
    for path, fields in (("ask", asks), ("rate", rates)):
        refused = browser.post(f"{thread}/{path}", **fields)
        assert refused.status_code == 500
        assert words in refused.text
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
    page = browser.open(thread).text
    assert "The first answer." in page
    assert "Two?" in page
    assert "Three?" not in page
    model.script(say("Now there is room."))
    assert browser.post(f"{thread}/retry").status_code == 200
    browser.follow(thread)
    assert "Now there is room." in browser.open(thread).text
    server.process.terminate()
    assert server.process.stdout is not None
    assert server.process.stdout.read().count("run failed: page_failed") == len(("ask", "rate"))


def test_a_thread_whose_uploaded_file_went_away_is_still_read(
    home: Home, model: ModelServer, server: Server
) -> None:
    browser = server.browser()
    file = {"file": ("towns.csv", b"town,people\nOslo,700\n", "text/csv")}
    thread = browser.new_thread()
    headers = {"X-Longtable-Token": browser.token}
    assert browser.http.post(f"{thread}/upload", files=file, headers=headers).status_code == 204
    model.script(say("About Oslo."))
    browser.ask(thread, "Where?")
    for path in home.folder.rglob("towns.csv"):
        path.unlink()
    assert "About Oslo." in browser.open(thread).text
