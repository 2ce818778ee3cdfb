"""Going on from an event: a page that lost the connection is sent what it missed, and no more."""

import re
import threading
from collections.abc import Iterator

import pytest

from tests.app.pages.served_pages import Browser, serving, shown_body
from tests.app.pages.test_turn_pages import SQL, of_model
from tests.app.runner import make_home
from tests.support.model_server import ModelServer, call, open_model_server, say

LONG = "word " * 400


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with open_model_server() as server:
        yield server


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Browser]:
    home = make_home(tmp_path_factory.mktemp("home"))
    with serving(home, **of_model(model), LONGTABLE_APPROVE_SQL="never") as server:
        yield server.browser()


def newest_id(stream: str) -> str:
    ids: list[str] = re.findall(r"^id: (\S+)$", stream, re.MULTILINE)
    return ids[-1]


@pytest.mark.parametrize("way", ["header", "address", "number alone"])
def test_a_reader_goes_on_after_the_event_that_it_has(
    browser: Browser, model: ModelServer, way: str
) -> None:
    held = threading.Event()
    model.script(call("run_sql", sql=SQL), say(f"{LONG}\n\nthen the second half", hold=held))
    thread = browser.new_thread()
    browser.post(f"{thread}/ask", question="How many?")
    first = browser.follow(thread, until="word word")
    known = newest_id(first)
    number = known.rpartition(".")[2]
    held.set()
    if way == "header":
        rest = browser.follow(thread, **{"Last-Event-ID": known})
    else:
        rest = browser.follow(thread, after=known if way == "address" else number)
    assert "SELECT" not in rest
    assert "second half" in rest
    whole = browser.follow(thread)
    assert len(rest) < len(whole)
    assert shown_body(first + rest) == shown_body(whole)
    assert newest_id(rest) == newest_id(whole)


def test_a_page_that_has_events_of_an_earlier_run_is_sent_the_whole_turn(
    browser: Browser, model: ModelServer
) -> None:
    model.script(call("run_sql", sql=SQL), say("the answer"))
    thread = browser.new_thread()
    browser.post(f"{thread}/ask", question="How many?")
    whole = browser.follow(thread)
    key = newest_id(whole).partition("~")[0]
    again = browser.follow(thread, **{"Last-Event-ID": f"{key}~earlier.5"})
    assert shown_body(again) == shown_body(whole)


def test_a_page_of_an_older_turn_is_sent_that_turn_as_it_is_stored(
    browser: Browser, model: ModelServer
) -> None:
    model.script(say("the first answer"), say("the second answer"))
    thread = browser.new_thread()
    browser.post(f"{thread}/ask", question="One?")
    known = newest_id(browser.follow(thread))
    browser.ask(thread, "Two?")
    sent = browser.follow(thread, **{"Last-Event-ID": known})
    assert "the first answer" in sent
    assert "the second answer" not in sent
    assert "event: done" in sent


@pytest.mark.parametrize("known", ["", "x", "t1.x", "999999999", "t1.5", "\u00e9.1"])
def test_an_id_of_no_turn_ends_the_stream_without_a_fault(
    browser: Browser, model: ModelServer, known: str
) -> None:
    model.script(say("yes"))
    thread = browser.new_thread()
    browser.ask(thread, "One?")
    assert "event: done" in browser.follow(thread, after=known)


def test_a_thread_that_does_not_exist_has_an_empty_stream(browser: Browser) -> None:
    sent = browser.follow(browser.new_thread())
    assert "event: done" in sent
    assert "article" not in sent
