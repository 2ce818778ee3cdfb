"""Threads in the browser: the list, the title, forks, files, and whose they are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.pages.thread_pages import schema_questions
from longtable.tools.catalog import Catalog, Column, Table
from tests.app.pages.served_pages import HOSTILE, Browser, Server, serving
from tests.app.pages.test_turn_pages import of_model
from tests.app.runner import Home, make_home
from tests.support.model_server import open_model_server, say

OWNERS = '[web]\nowner_header = "X-User"\nproxies = ["127.0.0.1"]\nhosts = ["chat.example"]\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    (home.folder / "owners.toml").write_text(OWNERS)
    with serving(home, "--config", str(home.folder / "owners.toml")) as running:
        yield running


@pytest.fixture
def ann(server: Server) -> Browser:
    return server.browser(**{"X-User": "ann"})


@pytest.fixture
def bob(server: Server) -> Browser:
    return server.browser(**{"X-User": "bob"})


def test_people_see_their_own_threads_only(ann: Browser, bob: Browser, server: Server) -> None:
    thread = ann.new_thread()
    ann.ask(thread, "How many orders are there?")
    assert "How many orders" in ann.http.get("/threads").text
    assert "How many orders" not in bob.http.get("/threads").text
    bob.open()
    assert "How many orders are there?</div>" not in bob.http.get(thread).text
    for path in ("/export", "/keep?turn=1", "/rename", "/results/r1", "/results/r1.csv"):
        assert bob.http.get(f"{thread}{path}").status_code == 404, path
    actions = ("ask", "retry", "decide", "edit", "exclude", "rate", "rename", "fork", "delete")
    for action in actions:
        answer = bob.post(f"{thread}/{action}", question="Hi", turn="1", score="1", title="x")
        assert answer.status_code == 404, action
    assert "There are" not in bob.follow(thread)
    assert server.browser().http.get(thread).status_code == 401
    assert "How many orders" in ann.open(thread).text


def test_the_model_that_a_thread_chose_is_chosen_after_a_reload(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    with open_model_server() as model:
        options = {**of_model(model), "LONGTABLE_MODEL": ""}
        (tmp_path / "two.toml").write_text(
            '[model]\nname = "openai:one"\nchoices = ["openai:two"]\n'
        )
        with serving(home, "--config", str(tmp_path / "two.toml"), **options) as server:
            browser = server.browser()
            thread = browser.new_thread()
            assert "selected" not in browser.open(f"{thread}?new=1").text
            model.script(say("yes"), say("no"))
            browser.post(f"{thread}/ask", question="Well?", model="openai:two")
            browser.follow(thread)
            assert model.requests[-1].body["model"] == "two"
            assert "<option selected>openai:two</option>" in browser.open(thread).text
            browser.post(f"{thread}/ask", question="And?", model="openai:one")
            browser.follow(thread)
            assert model.requests[-1].body["model"] == "one"
            assert "<option selected>openai:two</option>" not in browser.open(thread).text


def test_a_host_that_the_settings_name_may_call(ann: Browser) -> None:
    assert ann.http.get("/threads", headers={"host": "chat.example"}).status_code == 200
    assert ann.http.get("/threads", headers={"host": "other.example"}).status_code == 421


def test_a_thread_is_renamed_forked_and_deleted(ann: Browser) -> None:
    thread = ann.new_thread()
    ann.ask(thread, "How many orders are there?")
    assert 'name="title"' in ann.http.get(f"{thread}/rename").text
    ann.post(f"{thread}/rename", title=f"Mine {HOSTILE}")
    listed = ann.http.get("/threads", params={"q": "mine"}).text
    assert "Mine &lt;img" in listed
    assert HOSTILE not in listed + ann.open(thread).text
    fork = ann.post(f"{thread}/fork", turn="1").headers["hx-redirect"]
    assert fork != thread
    assert ">30<" in ann.open(fork).text
    assert ann.post(f"{thread}/delete").headers["hx-redirect"] == "/"
    assert ann.http.get(f"{thread}/export").status_code == 404
    assert ann.http.get(f"{fork}/export").status_code == 200


def test_words_are_found_in_titles_and_in_transcripts(ann: Browser) -> None:
    thread = ann.new_thread()
    ann.ask(thread, "What is the average amount of the orders?")
    found = ann.http.get("/threads", params={"q": "average"}).text
    assert thread in found
    assert "Nothing found." in ann.http.get("/threads", params={"q": "zebra"}).text


@pytest.mark.parametrize(
    ("form", "media"),
    [("html", "text/html"), ("markdown", "text/markdown"), ("jsonl", "application/x-ndjson")],
)
def test_a_thread_is_exported_as_a_file(ann: Browser, form: str, media: str) -> None:
    thread = ann.new_thread()
    ann.ask(thread, "How many orders are there?")
    answer = ann.http.get(f"{thread}/export", params={"form": form})
    assert answer.headers["content-type"].startswith(media)
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "How many orders" in answer.text
    assert ann.http.get(f"{thread}/export", params={"form": "exe"}).status_code == 400


def test_turns_come_page_by_page(ann: Browser) -> None:
    thread = ann.new_thread()
    ann.open()
    for number in range(23):
        ann.ask(thread, f"Is this question {number} of many?")
    page = ann.open(thread).text
    assert page.count('<article class="turn"') == 20
    assert f"{thread}/earlier?before=4" in page
    earlier = ann.http.get(f"{thread}/earlier", params={"before": 4}).text
    assert earlier.count('<article class="turn"') == 3
    assert "earlier?before" not in earlier


def test_the_page_speaks_the_browsers_language(ann: Browser) -> None:
    page = ann.http.get("/", headers={"Accept-Language": "zh-CN"}, follow_redirects=True).text
    assert '<html lang="zh">' in page
    assert "新会话" in page
    assert "有多少 orders" in page or "个 customer 有多少" in page


@pytest.mark.parametrize("path", ["/nowhere", "/threads/a/b/c", "/static/none.css"])
def test_an_address_that_leads_nowhere_says_so(ann: Browser, path: str) -> None:
    answer = ann.http.get(path)
    assert answer.status_code == 404
    assert "There is no such conversation." in answer.text


def test_a_thread_id_that_cannot_be_one_is_refused(ann: Browser) -> None:
    assert ann.http.get(f"/threads/{'x' * 200}").status_code == 400


def test_a_question_is_offered_for_the_widest_tables(tmp_path: Path) -> None:
    columns = (Column("order_id", "VARCHAR"), Column("first_name", "VARCHAR"))
    catalog = Catalog((Table("things", "table", ()), Table("big_one", "table", columns)))
    assert schema_questions(catalog, "en") == [
        "How many big one are there per first name?",
        "How many things are there?",
    ]
    assert schema_questions(Catalog(()), "en") == []


def test_a_team_says_its_mode_and_each_voice_its_name(tmp_path: Path) -> None:
    with serving(make_home(tmp_path), "--team") as server:
        browser = server.browser()
        thread = browser.new_thread()
        page = browser.ask(thread, "How many orders are there?")
        assert "Team: workflow" in page
        assert 'class="voice"' in page
