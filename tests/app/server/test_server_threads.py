"""A server whose settings name a project and prices: threads stay within reach, and spending is
neither lost nor unpriced.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.client import LangGraphClient

from longtable.app.server.server_lists import NEWEST, PAGE
from longtable.app.server.server_threads import AEGRA_DATABASE, ServerThreads, entries_of_existing
from longtable.base.stored import SEARCH, THREADS
from longtable.graph.listing.thread_search import LEAST_MESSAGES
from longtable.store.records.item_values import newest_in, values_in
from tests.app.test_studio import new_thread, running, said, with_client
from tests.support.model_server import ModelServer, open_model_server
from tests.support.model_server import say as model_says

SETTINGS = """
project = "north"
[model]
name = "gpt-4o-mini"
base_url = "{url}"
[prices."gpt-4o*"]
input = 1_000_000
output = 1
"""
ANN = {"x-longtable-owner": "ann"}


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with open_model_server() as running_models:
        yield running_models


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models: ModelServer) -> Iterator[str]:
    file = tmp_path_factory.mktemp("settings") / "longtable.toml"
    file.write_text(SETTINGS.format(url=models.base_url))
    folder = tmp_path_factory.mktemp("operated")
    with running(folder, {}, {"LONGTABLE_CONFIG": str(file)}) as url:
        yield url


def talk(server: str, models: ModelServer, owner: str = "ann", *, turns: int = 1) -> str:
    async def work(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        for _ in range(turns):
            models.script(model_says("One.", input_tokens=2, output_tokens=1))
            await client.runs.wait(
                thread_id, "longtable", input=said("How many?"), context={"owner": owner}
            )
        return thread_id

    return with_client(server, work)


def get(server: str, path: str, owner: str, **parameters: str) -> Any:
    answer = httpx.get(
        f"{server}/longtable/{path}",
        headers={"x-longtable-owner": owner},
        params=parameters,
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.timeout(240)
def test_a_thread_is_not_moved_out_of_the_servers_reach(server: str, models: ModelServer) -> None:
    thread_id = talk(server, models)
    place = f"{server}/longtable/threads/{thread_id}"
    for elsewhere in ("south", ""):
        fields = {"title": "Mine", "project": elsewhere}
        refused = httpx.patch(place, headers=ANN, json=fields, timeout=60)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == 'project must be "north".'
    moved = httpx.patch(place, headers=ANN, json={"title": "M", "project": "north"}, timeout=60)
    assert (moved.status_code, moved.json()["title"]) == (200, "M")


def test_usage_has_the_prices_of_the_settings(server: str, models: ModelServer) -> None:
    thread_id = talk(server, models, "priced")
    for path in ("usage", f"threads/{thread_id}/usage"):
        [row] = get(server, path, "priced")["usage"]
        assert (row["input"], row["cost"], row["unpriced"]) == (2, 2.000001, 0)


def test_what_a_thread_took_counts_after_the_server_deleted_it(
    server: str, models: ModelServer
) -> None:
    thread_id = talk(server, models, "gone", turns=2)
    before = get(server, "usage", "gone", by="month,model,project")
    assert [(row["calls"], row["input"]) for row in before["usage"]] == [(2, 4)]

    async def delete(client: LangGraphClient) -> None:
        await client.threads.delete(thread_id)

    with_client(server, delete)
    assert get(server, "threads", "gone")["threads"] == []
    assert get(server, "usage", "gone", by="month,model,project") == before
    place = f"{server}/longtable/threads/{thread_id}"
    assert httpx.delete(place, headers={"x-longtable-owner": "gone"}, timeout=60).is_success
    assert get(server, "usage", "gone", by="month,model,project") == before


def test_a_stateless_run_leaves_no_thread_in_the_list_and_its_tokens_count(
    server: str, models: ModelServer
) -> None:
    async def work(client: LangGraphClient) -> Any:
        models.script(model_says("One.", input_tokens=2, output_tokens=1))
        return await client.runs.wait(
            None, "longtable", input=said("How many?"), context={"owner": "stateless"}
        )

    assert with_client(server, work)["messages"][-1]["content"] == "One."
    assert get(server, "threads", "stateless")["threads"] == []
    assert get(server, "search", "stateless", q="many")["hits"] == []
    [row] = get(server, "usage", "stateless", by="model")["usage"]
    assert (row["calls"], row["input"]) == (1, 2)


def test_a_copy_made_by_the_server_is_listed_beside_its_original(
    server: str, models: ModelServer
) -> None:
    thread_id = talk(server, models, "copies")

    async def copy(client: LangGraphClient) -> None:
        await client.threads.copy(thread_id)

    with_client(server, copy)
    listed = get(server, "threads", "copies")["threads"]
    assert len({thread["thread_id"] for thread in listed}) == 2
    lines = [{**thread, "thread_id": "", "updated": ""} for thread in listed]
    assert lines[0] == lines[1]
    for thread in listed:
        assert get(server, f"threads/{thread['thread_id']}/history", "copies")["total"] == 2
    assert get(server, "threads", "ann2")["threads"] == []


def test_what_is_read_of_many_threads_is_what_is_read_of_each(
    server: str, models: ModelServer
) -> None:
    threads = [talk(server, models, "many", turns=turns) for turns in (1, 2, 1)]
    usage = [get(server, f"threads/{each}/usage", "many", by="model")["usage"] for each in threads]
    [together] = get(server, "usage", "many", by="model")["usage"]
    for name in ("calls", "input", "output", "cost"):
        assert together[name] == pytest.approx(sum(row[name] for [row] in usage))
    hits = get(server, "search", "many", q="many", limit="50")["hits"]
    found = {(hit["thread_id"], hit["turn"], hit["number"]) for hit in hits}
    history: set[tuple[str, int, int]] = set()
    for each in threads:
        for message in get(server, f"threads/{each}/history", "many")["messages"]:
            if message["role"] == "human":
                history.add((each, message["turn"], message["number"]))
    assert found == history


def test_words_of_an_edit_in_studio_are_found_at_once(server: str, models: ModelServer) -> None:
    thread_id = talk(server, models, "editor")
    earlier: list[dict[str, str]] = []
    for number in range(LEAST_MESSAGES // 2):
        earlier.append({"role": "user", "content": f"heron {number}"})
        earlier.append({"role": "assistant", "content": f"The answer is {number}."})

    def found(words: str) -> list[str]:
        hits = get(server, "search", "editor", q=words)["hits"]
        return [hit["excerpt"] for hit in hits]

    def is_indexed() -> bool:
        async def read(client: LangGraphClient) -> Any:
            return await client.store.search_items(SEARCH, limit=9)

        heads = [item["value"]["threads"] for item in with_client(server, read)["items"]]
        return thread_id in str(heads)

    async def hand_in(client: LangGraphClient) -> None:
        models.script(model_says("One.", input_tokens=2, output_tokens=1))
        talk_so_far: Any = {"messages": [*earlier, *said("How many?")["messages"]]}
        context: Any = {"owner": "editor"}
        await client.runs.wait(thread_id, "longtable", input=talk_so_far, context=context)

    with_client(server, hand_in)
    assert found("kestrel") == []
    assert found("heron 77")
    assert is_indexed()

    async def edit(client: LangGraphClient) -> None:
        values: Any = (await client.threads.get_state(thread_id))["values"]
        first = {**values["messages"][0], "content": "a kestrel"}
        await client.threads.update_state(thread_id, {"messages": [first]})

    with_client(server, edit)
    assert found("kestrel") == ["a kestrel"]


def test_on_aegra_the_store_of_the_runs_is_read_and_threads_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Aegra refuses `select`, and its API has another part of the store for each user."""
    store = InMemoryStore()
    aegra: Any = ModuleType(AEGRA_DATABASE)
    aegra.db_manager = SimpleNamespace(get_store=lambda: store)
    monkeypatch.setitem(sys.modules, AEGRA_DATABASE, aegra)
    asked: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        if "select" in asked[-1]:
            return httpx.Response(422, json={"error": "validation_error"})
        rows = [{"thread_id": "t1", "metadata": {}}, {"thread_id": "t2", "metadata": None}]
        return httpx.Response(200, json=rows)

    transport = httpx.MockTransport(answer)

    async def work() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://aegra") as http:
            threads = ServerThreads(LangGraphClient(http), asyncio.get_running_loop())
            store.put(THREADS, "t2", {"title": "two"})
            store.put(THREADS, "gone", {})
            entries = await asyncio.to_thread(entries_of_existing, threads)
            assert entries == [("t2", {"title": "two"})]
            await asyncio.to_thread(threads.optional_store.put, ("longtable",), "key", {"value": 1})
        assert [request["limit"] for request in asked] == [NEWEST, PAGE]
        item = store.get(("longtable",), "key")
        assert item is not None
        assert item.value == {"value": 1}

    asyncio.run(work())


def test_values_of_a_namespace_are_not_those_below_it() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        times = {"created_at": "2026-11-27", "updated_at": "2026-11-27"}
        places = [[*THREADS], [*THREADS, "below"]]
        items = [
            {"namespace": place, "key": place[-1], "value": {"updated": place[-1]}, **times}
            for place in places
        ]
        return httpx.Response(200, json={"items": items})

    async def work() -> None:
        transport = httpx.MockTransport(answer)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
            threads = ServerThreads(LangGraphClient(http), asyncio.get_running_loop())
            wanted = [("threads", {"updated": "threads"})]
            store = threads.optional_store
            assert await asyncio.to_thread(lambda: list(values_in(store, THREADS))) == wanted
            newest = await asyncio.to_thread(newest_in, store, THREADS, lambda *_: True, 9)
            assert newest == wanted

    asyncio.run(work())
