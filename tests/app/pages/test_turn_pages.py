"""A person's turns over HTTP: `longtable web` in a process, a scripted model behind it."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.pages.served_pages import HOSTILE, Browser, Server, serving, shown_body
from tests.app.runner import Home, make_home
from tests.support.model_server import Fault, ModelServer, call, open_model_server, say

SQL = "SELECT customer, amount FROM orders ORDER BY id"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with open_model_server() as server:
        yield server


@pytest.fixture(scope="module")
def server(home: Home, model: ModelServer) -> Iterator[Server]:
    with serving(home, **of_model(model), LONGTABLE_APPROVE_SQL="never") as running:
        yield running


def of_model(model: ModelServer) -> dict[str, str]:
    return {
        "LONGTABLE_MODEL": "openai:scripted",
        "LONGTABLE_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "unused",
        "LONGTABLE_SUMMARIZER": "code",
        "LONGTABLE_MODEL_LIMIT": "16000",
    }


@pytest.fixture
def browser(server: Server) -> Browser:
    return server.browser()


def test_a_question_is_streamed_and_a_reload_shows_the_same(
    browser: Browser, model: ModelServer
) -> None:
    model.script(call("run_sql", sql=SQL), say(f"**There** are 30 orders. {HOSTILE}"))
    thread = browser.new_thread()
    answer = browser.post(f"{thread}/ask", question=f"How many? {HOSTILE}")
    assert answer.headers["hx-push-url"] == thread
    assert HOSTILE not in answer.text
    stream = browser.follow(thread)
    shown = shown_body(stream)
    assert "<strong>There</strong>" in shown
    assert "30 rows" in shown
    page = browser.open(thread).text
    assert HOSTILE not in page
    for part in ("<strong>There</strong>", "30 rows", 'class="sql-word">SELECT', "customer 7"):
        assert part in page
    assert "How many?" in browser.http.get("/threads").text


def test_a_second_reader_follows_from_the_first_event_and_a_closed_tab_ends_nothing(
    browser: Browser, server: Server, model: ModelServer
) -> None:
    held = threading.Event()
    model.script(say("one two three", hold=held))
    thread = browser.new_thread()
    browser.post(f"{thread}/ask", question="Count")
    browser.follow(thread, until="one")  # and goes away
    other = server.browser()
    page = other.open(thread).text
    assert "Count" in page
    assert f'hx-sse:connect="{thread}/events"' in page
    held.set()
    assert "three" in shown_body(other.follow(thread))
    assert "three" in browser.open(thread).text


def test_a_turn_is_stopped_and_goes_on(browser: Browser, model: ModelServer) -> None:
    held = threading.Event()
    model.script(say("first half second half", hold=held), say("the whole answer"))
    thread = browser.new_thread()
    browser.post(f"{thread}/ask", question="Tell")
    browser.follow(thread, until="first")
    assert browser.post(f"{thread}/stop").status_code == 200
    held.set()
    page = browser.open(thread).text
    assert "This answer was interrupted." in page
    assert browser.post(f"{thread}/retry").status_code == 200
    assert "the whole answer" in browser.follow(thread)
    assert "interrupted" not in browser.open(thread).text


def test_what_is_typed_while_it_answers_joins_the_turn(
    browser: Browser, model: ModelServer
) -> None:
    held = threading.Event()
    model.script(
        call("run_sql", sql="SELECT count(*) FROM orders"),
        say("thirty of them it was", hold=held),
        say("and in May ten"),
    )
    thread = browser.new_thread()
    browser.post(f"{thread}/ask", question="How many?")
    browser.follow(thread, until="thirty")
    assert browser.post(f"{thread}/ask", question="And in May?").status_code == 200
    held.set()
    assert "You added: And in May?" in browser.follow(thread)
    page = browser.open(thread).text
    assert '<div class="asked" dir="auto">And in May?</div>' in page
    assert "You added: And in May?" not in page, "it is a turn of its own"


def test_a_failure_says_what_to_do_and_is_tried_again(browser: Browser, model: ModelServer) -> None:
    model.script(Fault(status=401, body={"error": {"message": "bad key"}}), say("now it works"))
    thread = browser.new_thread()
    page = browser.ask(thread, "Hello")
    assert 'role="alert"' in page
    assert "Try again" in page
    browser.post(f"{thread}/retry")
    browser.follow(thread)
    page = browser.open(thread).text
    assert "now it works" in page
    assert 'role="alert"' not in page


def test_the_last_question_is_edited_and_the_old_one_left_out(
    browser: Browser, model: ModelServer
) -> None:
    model.script(say("about March"), say("about May"))
    thread = browser.new_thread()
    browser.ask(thread, "How many in March?")
    assert "How many in March?" in browser.http.get(f"{thread}/edit").text
    browser.post(f"{thread}/edit", question="How many in May?")
    browser.follow(thread)
    sent = model.requests[-1].messages
    assert "How many in May?" in str(sent)
    assert "How many in March?" not in str(sent)
    page = browser.open(thread).text
    assert "Left out of what the model sees" in page


def test_the_old_turn_is_folded_at_once_and_only_the_newest_is_edited(
    browser: Browser, model: ModelServer
) -> None:
    model.script(say("about March"), say("about May"))
    thread = browser.new_thread()
    browser.ask(thread, "How many in March?")
    sent = browser.post(f"{thread}/edit", question="How many in May?", turn="1").text
    old = re.search(
        r'hx-target="#turn-\w+" hx-swap="outerHTML">(.*?)</hx-partial>', sent, re.DOTALL
    )
    assert old
    assert re.search(r"<details>.*How many in March\?.*</details>", old[1], re.DOTALL)
    browser.follow(thread)
    assert old[1].strip() in browser.open(thread).text
    late = browser.post(f"{thread}/edit", question="How many in June?", turn="1")
    assert late.status_code == 409
    assert "Another question has been asked since" in late.text
    assert "How many in May?" in browser.http.get(f"{thread}/edit").text


def test_a_turn_is_left_out_and_taken_in_again(browser: Browser, model: ModelServer) -> None:
    model.script(say("yes"), say("sure"), say("of course"))
    thread = browser.new_thread()
    browser.ask(thread, "The code word is heron.")
    assert "Take in again" in browser.post(f"{thread}/exclude", turn="1", exclude="1").text
    browser.ask(thread, "What is it?")
    assert "heron" not in str(model.requests[-1].messages)
    assert "Leave out" in browser.post(f"{thread}/exclude", turn="1", exclude="0").text
    browser.ask(thread, "And now?")
    assert "heron" in str(model.requests[-1].messages)
    assert browser.post(f"{thread}/exclude", turn="9", exclude="1").status_code == 404


def test_an_answer_is_rated(browser: Browser, model: ModelServer) -> None:
    model.script(say("yes"))
    thread = browser.new_thread()
    browser.ask(thread, "Right?")
    assert "Thank you" in browser.post(f"{thread}/rate", turn="1", score="-1").text
    for turn, score in (("5", "1"), ("1", "7"), ("1", ""), ("1", "good")):
        answer = browser.post(f"{thread}/rate", turn=turn, score=score)
        assert answer.status_code in (400, 422), (turn, score)
    assert '"score":-1' in browser.http.get(f"{thread}/export?form=jsonl").text
    page = browser.open(thread).text
    assert re.findall(r'"score": (-?1).*?aria-pressed="(\w+)"', page) == [
        ("1", "false"),
        ("-1", "true"),
    ]
    changed = browser.post(f"{thread}/rate", turn="1", score="1").text
    assert re.search(r'hx-target="#rating-1".*"score": 1.*?aria-pressed="true"', changed, re.DOTALL)


@pytest.mark.parametrize("question", ["", "  \n ", "a\0b"])
def test_an_empty_question_is_refused(browser: Browser, question: str) -> None:
    thread = browser.new_thread()
    assert browser.post(f"{thread}/ask", question=question).status_code == 422
    assert browser.http.get(f"{thread}/export").status_code == 404


def test_a_post_without_the_token_changes_nothing(browser: Browser) -> None:
    thread = browser.new_thread()
    assert browser.http.post(f"{thread}/ask", data={"question": "Hi"}).status_code == 403
    assert browser.http.get(f"{thread}/export").status_code == 404


def test_approvals_are_there_after_a_reload_and_gone_once_decided(
    tmp_path: Path, model: ModelServer
) -> None:
    home = make_home(tmp_path)
    with serving(home, **of_model(model), LONGTABLE_APPROVE_SQL="always") as server:
        browser = server.browser()
        model.script(
            call("run_sql", sql=SQL), say("five orders"), call("run_sql", sql=SQL), say("no")
        )
        thread = browser.new_thread()
        page = browser.ask(thread, "Show orders")
        assert 'value="approve"' in page
        assert page == browser.open(thread).text
        browser.post(f"{thread}/decide", decision="approve", sql=f"{SQL} LIMIT 5")
        browser.follow(thread)
        page = browser.open(thread).text
        assert "five orders" in page
        assert "5 rows" in page
        assert 'value="approve"' not in page
        browser.ask(thread, "Again")
        browser.post(f"{thread}/decide", decision="reject", sql=SQL)
        browser.follow(thread)
        assert "rejected by" in browser.open(thread).text


def test_a_server_that_is_killed_in_mid_turn_goes_on_with_it_after_a_restart(
    tmp_path: Path, model: ModelServer
) -> None:
    home = make_home(tmp_path)
    held = threading.Event()
    model.script(call("run_sql", sql=SQL), say("half of it", hold=held), say("all of it"))
    with serving(home, stops="kill", **of_model(model)) as server:
        browser = server.browser()
        thread = browser.new_thread()
        browser.post(f"{thread}/ask", question="Tell me")
        browser.follow(thread, until="half")
    held.set()
    with serving(home, **of_model(model)) as server:
        browser = server.browser()
        page = browser.open(thread).text
        assert "Tell me" in page
        assert "30 rows" in page
        assert "interrupted" in page
        stored = browser.follow(thread)
        assert "30 rows" in stored
        assert browser.post(f"{thread}/retry").status_code == 200
        browser.follow(thread)
        assert "all of it" in browser.open(thread).text


def seen_in(html: str) -> str:
    """Return what a page remembers of the turns that it shows."""
    found: list[str] = re.findall(r'id="seen" name="seen" value="([^"]*)"', html)
    return found[-1]


def test_a_page_is_sent_the_turns_that_another_page_began(
    browser: Browser, model: ModelServer
) -> None:
    model.script(say("the first answer"), say("the second answer"))
    thread = browser.new_thread()
    page = browser.ask(thread, "One?")
    seen = seen_in(page)
    same = browser.http.get(f"{thread}/newer", params={"seen": seen})
    assert "<article" not in same.text
    looked = seen_in(same.text)
    assert browser.http.get(f"{thread}/newer", params={"seen": looked}).status_code == 204
    browser.ask(thread, "Two?")
    newer = browser.http.get(f"{thread}/newer", params={"seen": looked}).text
    assert "the second answer" in newer
    assert "the first answer" not in newer
    assert newer.count("<article") == 1
    assert seen_in(newer).split(" ")[0] != seen
    stale = browser.http.get(f"{thread}/edit", params={"seen": seen})
    assert (stale.status_code, "Two?" in stale.text) == (409, False)
    assert "Two?" in browser.http.get(f"{thread}/edit", params={"seen": seen_in(newer)}).text


def test_a_page_is_sent_the_turn_that_runs_in_another_page(
    browser: Browser, model: ModelServer
) -> None:
    held = threading.Event()
    model.script(say("one"), say("two and more", hold=held))
    thread = browser.new_thread()
    seen = seen_in(browser.ask(thread, "One?"))
    browser.post(f"{thread}/ask", question="Two?")
    newer = browser.http.get(f"{thread}/newer", params={"seen": seen}).text
    assert "Two?" in newer
    assert "/events" in newer
    joined = browser.post(f"{thread}/ask", question="And three?", seen=seen)
    assert "Two?" in joined.text
    held.set()
    browser.follow(thread)


def test_a_question_to_a_thread_that_was_deleted_is_refused(
    browser: Browser, model: ModelServer
) -> None:
    model.script(say("one"))
    thread = browser.new_thread()
    seen = seen_in(browser.ask(thread, "One?"))
    browser.post(f"{thread}/delete")
    asked = browser.post(f"{thread}/ask", question="Two?", seen=seen)
    assert asked.status_code == 404
    assert browser.http.get(f"{thread}/newer", params={"seen": seen}).status_code == 204
