"""Ten people at once on one process: each sees their own threads, and nobody waits for another."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.app.pages.served_pages import Server, serving
from tests.app.pages.test_thread_pages import OWNERS
from tests.app.pages.test_turn_pages import of_model
from tests.app.runner import make_home
from tests.support.model_server import ChatRequest, ModelServer, Reply, open_model_server, say

PEOPLE = 10


def answer(request: ChatRequest) -> Reply:
    return say(f"This is for {request.messages[-1]['content']}")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with open_model_server() as server:
        server.always(answer)
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Server]:
    home = make_home(tmp_path_factory.mktemp("home"))
    (home.folder / "owners.toml").write_text(OWNERS)
    with serving(home, "--config", str(home.folder / "owners.toml"), **of_model(model)) as running:
        yield running


def test_ten_people_at_once_see_their_own_threads_only(server: Server) -> None:
    browsers = [server.browser(**{"X-User": f"person{number}"}) for number in range(PEOPLE)]
    begins = threading.Barrier(PEOPLE)

    def talk(number: int) -> tuple[str, str]:
        browser = browsers[number]
        thread = browser.new_thread()
        begins.wait(20)
        browser.ask(thread, f"secret-{number}-one")
        page = browser.ask(thread, f"secret-{number}-two")
        return thread, page

    with ThreadPoolExecutor(PEOPLE) as pool:
        done = list(pool.map(talk, range(PEOPLE)))
    assert len({thread for thread, _ in done}) == PEOPLE
    for number, (_, page) in enumerate(done):
        assert f"This is for secret-{number}-one" in page
        assert f"This is for secret-{number}-two" in page
        others = [other for other in range(PEOPLE) if other != number]
        assert not any(f"secret-{other}-" in page for other in others)
        listed = browsers[number].http.get("/threads").text
        assert f"secret-{number}-one" in listed
        assert not any(f"secret-{other}-" in listed for other in others)
        found = browsers[number].http.get("/threads?q=secret").text
        assert not any(f"secret-{other}-" in found for other in others)


def test_every_address_of_somebody_elses_thread_is_not_found(server: Server) -> None:
    ann = server.browser(**{"X-User": "ann"})
    bob = server.browser(**{"X-User": "bob"})
    thread = ann.new_thread()
    ann.ask(thread, "my own question")
    bob.open()
    unknown = bob.new_thread()
    gets = ["", "/earlier?before=2", "/panel", "/panel/next-call", "/panel/originals/1-2"]
    for path in gets:
        theirs = bob.http.get(f"{thread}{path}")
        assert theirs.status_code in (200, 404), path
        assert "my own question" not in theirs.text
        missing = bob.http.get(f"{unknown}{path}")
        assert (theirs.status_code, without_ids(theirs.text, thread)) == (
            missing.status_code,
            without_ids(missing.text, unknown),
        )
    page = bob.http.get(thread)
    assert page.status_code == 404
    assert "There is no such conversation." in page.text
    for path in ("/panel/compact", "/panel/undo", "/panel/pins", "/stop", "/upload"):
        assert bob.post(f"{thread}{path}", text="x").status_code in (404, 422), path
    assert "my own question" not in bob.follow(thread)
    assert "my own question" in ann.open(thread).text


def without_ids(html: str, thread: str) -> str:
    return html.replace(thread.rpartition("/")[2], "ID")
