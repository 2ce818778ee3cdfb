"""Knowledge over HTTP: people read it, editors write it, and anybody rates their own threads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.app.test_studio import new_thread, running, said, with_client

ANN, BOB = {"x-longtable-owner": "ann"}, {"x-longtable-owner": "bob"}
OSSIE = (
    '{"semantic_model": [{"name": "m", "metrics": [{"name": "net take", "expression": "SUM(x)"}]}]}'
)
VANNA = (
    '[{"question": "Prices?", "content": "SELECT price FROM orders", "training_data_type": "sql"}]'
)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("taught")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, taught: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    settings = f'[knowledge]\nfolder = "{taught}"\neditors = "ann, carla"\n'
    (folder / "named.toml").write_text(settings)
    variables = {"LONGTABLE_CONFIG": str(folder / "named.toml")}
    with running(folder, {}, variables) as url:
        yield url


def send(
    server: str, method: str, path: str, body: Any = None, owner: dict[str, str] = ANN, **more: Any
) -> httpx.Response:
    kind = {"content": body} if isinstance(body, str) else {"json": body}
    url = f"{server}/longtable/{path}"
    return httpx.request(method, url, headers=owner, timeout=60, **kind, **more)


def files(folder: Path) -> dict[Path, bytes]:
    found = [file for file in folder.rglob("*") if file.is_file() and file.name != ".lock"]
    return {file: file.read_bytes() for file in found}


def names(server: str) -> list[str]:
    entries = send(server, "GET", "knowledge").json()["knowledge"]
    return [entry.get("term") or entry["name"] for entry in entries]


def talk(server: str, *questions: str) -> str:
    """Run the turns of a new thread of Ann's and return its id."""
    settings: Any = {"model_limit": 32_000, "owner": "ann"}

    async def work(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        for question in questions:
            await client.runs.wait(thread_id, "longtable", input=said(question), context=settings)
        return thread_id

    return with_client(server, work)


@pytest.mark.timeout(240)
def test_an_editor_adds_checks_exports_and_removes(server: str, taught: Path) -> None:
    term = {"term": "regular", "synonyms": ["熟客"], "meaning": "somebody who comes often"}
    assert send(server, "POST", "knowledge", term).json() == {"kind": "term", "name": "regular"}
    query = {"question": "How many orders are there?", "sql": "SELECT count(*) FROM orders"}
    added = send(server, "POST", "knowledge", query).json()
    assert "name" in added, added
    assert (added["name"], added["checked_by"]) == ("how_many_orders_are_there", "ann")
    assert (taught / "queries" / "how_many_orders_are_there.sql").is_file()
    assert names(server) == ["regular", "how_many_orders_are_there"]
    assert send(server, "GET", "knowledge/check").json() == {"problems": [], "next": None}
    assert "regular" in send(server, "GET", "knowledge/export").text
    assert send(server, "DELETE", "knowledge/how_many_orders_are_there").status_code == 204
    assert send(server, "DELETE", "knowledge/regular").status_code == 204
    assert send(server, "DELETE", "knowledge/regular").status_code == 404
    assert names(server) == []


@pytest.mark.timeout(240)
def test_who_is_no_editor_reads_and_writes_nothing(server: str, taught: Path) -> None:
    before = sorted(taught.rglob("*"))
    term = {"term": "spy", "meaning": "x"}
    for owner in (BOB, {}):
        for method, path, body in (
            ("POST", "knowledge", term),
            ("POST", "knowledge/import", OSSIE),
            ("DELETE", "knowledge/regular", None),
            ("GET", "knowledge/check", None),
        ):
            answer = send(server, method, path, body, owner)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_an_editor")
        assert send(server, "GET", "knowledge", None, owner).status_code == 200
    assert sorted(taught.rglob("*")) == before


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "body",
    [
        "not JSON",
        "[" * 100_000,
        {"term": 3},
        {"meaning": "a term without a name"},
        {"question": "How many?"},
        {"question": "How many?", "sql": "SELECT 1", "checked_by": "somebody else"},
        {"question": "How many?", "sql": "DROP TABLE orders"},
        {"question": "How many?", "sql": "SELECT wage FROM nowhere"},
        {"term": "x" * 10_000, "meaning": "x"},
    ],
)
def test_a_body_that_is_wrong_writes_nothing(server: str, taught: Path, body: Any) -> None:
    before = files(taught)
    answer = send(server, "POST", "knowledge", body)
    assert answer.status_code == 400, answer.text
    assert files(taught) == before


@pytest.mark.timeout(240)
def test_an_editor_keeps_a_turn_and_its_answer_is_verified_from_then_on(server: str) -> None:
    thread_id = talk(server, "How many orders are there?")
    kept = send(server, "POST", f"threads/{thread_id}/keep", {}).json()
    assert (kept["question"], kept["checked_by"]) == ("How many orders are there?", "ann")
    own = {"turn": 1, "question": "Every price?", "sql": "SELECT price FROM orders"}
    assert send(server, "POST", f"threads/{thread_id}/keep", own).json()["name"] == "every_price"
    assert send(server, "POST", f"threads/{thread_id}/keep", {}, BOB).status_code == 404
    hers = {"x-longtable-owner": "carla"}
    assert send(server, "POST", f"threads/{thread_id}/keep", {}, hers).status_code == 404
    assert send(server, "POST", f"threads/{thread_id}/keep", {"turn": 9}).status_code == 422
    after = talk(server, "How many orders are there?")
    state = httpx.get(f"{server}/threads/{after}/state", timeout=60).json()
    marks = [message["additional_kwargs"]["longtable"] for message in state["values"]["messages"]]
    assert [mark["verified"] for mark in marks if "verified" in mark] == [
        "how_many_orders_are_there"
    ]
    for name in ("every_price", "how_many_orders_are_there"):
        assert send(server, "DELETE", f"knowledge/{name}").status_code == 204


@pytest.mark.timeout(240)
def test_another_programs_file_is_imported(server: str) -> None:
    pairs = send(server, "POST", "knowledge/import", VANNA, params={"name": "pairs.json"}).json()
    assert (pairs["added"], pairs["problems"]) == (1, [])
    broken = VANNA.replace("orders", "nowhere")
    left_out = send(server, "POST", "knowledge/import", broken).json()
    assert left_out["added"] == 0
    assert len(left_out["problems"]) == 1
    assert send(server, "DELETE", "knowledge/prices").status_code == 204


@pytest.mark.timeout(240)
def test_a_turn_is_rated_by_whoever_sees_its_thread(server: str) -> None:
    thread_id = talk(server, "How many orders are there?")
    path = f"threads/{thread_id}/ratings"
    answer = send(server, "POST", path, {"turn": 1, "score": -1, "comment": "too many"})
    assert answer.status_code == 200, answer.text
    (rating,) = send(server, "GET", path).json()["ratings"]
    assert (rating["score"], rating["comment"]) == (-1, "too many")
    assert send(server, "POST", path, {"turn": 1, "score": 1}).status_code == 200
    assert send(server, "GET", path).json()["ratings"][0]["score"] == 1
    assert send(server, "POST", path, {"turn": 1, "score": 1}, BOB).status_code == 404
    assert send(server, "POST", path, {"turn": 5, "score": 1}).status_code == 422
    assert send(server, "POST", path, {"turn": 1}).status_code == 400
    again = talk(server, "How many orders are there?")
    assert send(server, "GET", f"threads/{again}/ratings").json()["ratings"] == []


@pytest.mark.timeout(240)
def test_odd_names_are_added_and_removed_and_reasons_are_told(server: str, taught: Path) -> None:
    assert send(server, "POST", "knowledge", {"term": "and/or", "meaning": "x"}).status_code == 200
    doubled = send(server, "POST", "knowledge", {"term": "and/or", "meaning": "x"})
    assert "is already a name" in doubled.json()["error"]["message"]
    assert send(server, "DELETE", "knowledge/and%2For").status_code == 204
    asked = {"term": "question", "synonyms": ["question"], "meaning": "x"}
    assert send(server, "POST", "knowledge", {**asked, "synonyms": []}).status_code == 200
    assert send(server, "DELETE", "knowledge/question").status_code == 204
    before = files(taught)
    surrogate = '{"term": "\\ud800", "meaning": "x"}'
    assert send(server, "POST", "knowledge", surrogate).status_code == 400
    two_lines = {"term": "a\n\n-- How many?\nSELECT 42", "meaning": "x"}
    assert send(server, "POST", "knowledge", two_lines).status_code == 400
    broken = send(
        server, "POST", "knowledge", {"question": "How?", "sql": "SELECT nope FROM orders"}
    )
    assert "nope" in broken.json()["error"]["message"]
    assert files(taught) == before
