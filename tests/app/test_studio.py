"""LangGraph's own server runs the graph: turns through its SDK and our routes, over real HTTP on
loopback.
"""

import ast
import asyncio
import dataclasses
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
import pytest
from fastapi.routing import APIRoute
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from pyarrow import ipc

from longtable.app.web import app
from longtable.base.errors import ModelContextOverflowError
from longtable.graph import Context
from tests.support.errors import CLASSES, HOSTILE, INSIDE, SECRETS, SQL, made
from tests.support.installed import environment as extras_only
from tests.support.model_server import ModelServer, answer_or_summary, open_model_server
from tests.support.model_server import call as model_call
from tests.support.model_server import say as model_says

ROOT = Path(__file__).parents[2]
LANGGRAPH = [sys.executable, "-m", "langgraph_cli"]
QUIET = {
    "LANGSMITH_TRACING": "false",
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "1",
}
SECONDS = 90


def environment(folder: Path) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LONGTABLE_", "LANGSMITH_", "LANGCHAIN_"))
    }
    ours = {
        "LONGTABLE_DATABASE": f"sqlite:///{folder}/shop.db",
        "LONGTABLE_RESULTS": f"{folder}/results",
        "LONGTABLE_ARCHIVE": f"{folder}/archive",
    }
    installed = extras_only(folder, "studio")  # what `.[studio]` brings, and the tests' own folder
    return {
        **kept,
        **QUIET,
        **ours,
        "HOME": str(folder),
        **installed,
        "PYTHONPATH": f"{installed['PYTHONPATH']}{os.pathsep}{ROOT}",
    }


def make_shop(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n / 2) for n in range(23)])


def test_the_configuration_is_valid() -> None:
    done = subprocess.run(
        [*LANGGRAPH, "validate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Else the server asks nobody at our routes who he is, and the header says whose threads are
    # shown.
    assert (
        json.loads((ROOT / "langgraph.json").read_text())["http"]["enable_custom_route_auth"]
        is True
    )
    ours = [
        route for route in app.routes if str(getattr(route, "path", "")).startswith("/longtable")
    ]
    assert ours
    assert all(isinstance(route, APIRoute) for route in ours)  # Aegra asks before no others


def test_the_configuration_names_a_file_that_defines_no_class() -> None:
    """Aegra knows graphs by file only; a class of such a file would be stored under a name that
    nobody else can import.
    """
    file = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["longtable"].removesuffix(
        ":graph"
    )
    assert not [
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.ClassDef)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with running(folder, {"scripted": "tests.support.served:graph"}) as url:
        yield url


@contextmanager
def running(
    folder: Path,
    graphs: dict[str, str],
    variables: dict[str, str] | None = None,
    **configuration: Any,
) -> Iterator[str]:
    """Start `langgraph dev` on a free port of loopback, wait until it answers, end it and its
    children afterwards.
    """
    make_shop(folder)
    ours = json.loads((ROOT / "langgraph.json").read_text())
    graphs = {"longtable": str(ROOT / ours["graphs"]["longtable"]), **graphs}
    (folder / "langgraph.json").write_text(json.dumps({**ours, "graphs": graphs, **configuration}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-browser",
        "--no-reload",
        "--n-jobs-per-worker",
        "8",
    ]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*LANGGRAPH, "dev", "--config", "langgraph.json", *options],
            cwd=folder,
            env={**environment(folder), **(variables or {})},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + SECONDS
        while not _answers(port):
            assert process.poll() is None, log.read_text()[-3_000:]
            assert time.monotonic() < deadline, log.read_text()[-3_000:]
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.timeout(240)
def test_a_turn_streams_tells_its_events_and_keeps_its_thread(server: str) -> None:
    async def run() -> tuple[list[tuple[str, Any]], dict[str, Any], list[dict[str, Any]]]:
        client = get_client(url=server)
        thread = await client.threads.create()
        parts: list[tuple[str, Any]] = []
        for question in ("How many orders are there?", "What is the maximum price of the orders?"):
            given: dict[str, Any] = {"messages": [{"role": "user", "content": question}]}
            async for part in client.runs.stream(
                thread["thread_id"],
                "longtable",
                input=given,
                stream_mode=["messages-tuple", "custom", "updates"],
            ):
                parts.append((part.event, part.data))
        state = await client.threads.get_state(thread["thread_id"])
        schemas = await client.assistants.search(graph_id="longtable")
        await client.aclose()
        return parts, dict(state), [dict(found) for found in schemas]

    parts, state, assistants = asyncio.run(run())
    assert not [data for event, data in parts if event == "error"]
    custom = [data["type"] for event, data in parts if event == "custom"]
    assert {"context_usage", "query_started", "query_finished"} <= set(custom)
    [rows] = [
        data["rows"]
        for event, data in parts
        if event == "custom" and data["type"] == "query_finished" and "23" in str(data["rows"])
    ]
    assert rows == [[23]]
    tokens = [
        data[0]["content"]
        for event, data in parts
        if event == "messages" and data[1].get("langgraph_node") == "respond"
    ]
    assert len([token for token in tokens if token]) > 3  # the answer came in pieces
    assert any("settle" in data for event, data in parts if event == "updates")
    messages = state["values"]["messages"]
    assert [m["content"] for m in messages if m["type"] == "human"] == [
        "How many orders are there?",
        "What is the maximum price of the orders?",
    ]
    assert "23" in next(m["content"] for m in messages if m["type"] == "ai" and m["content"])
    assert "11" in messages[-1]["content"]
    assert state["next"] == []
    assert [found["graph_id"] for found in assistants] == ["longtable"]


CONTEXT: Any = {"model_limit": 4_000}
Result = TypeVar("Result")


def with_client(
    server: str,
    work: Callable[[LangGraphClient], Awaitable[Result]],
    headers: dict[str, str] | None = None,
) -> Result:
    async def run() -> Result:
        client = get_client(url=server, headers=headers)
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(run())


def said(*texts: str) -> Any:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


async def ask(client: LangGraphClient, thread_id: str, text: str, **options: Any) -> Any:
    return await client.runs.wait(
        thread_id, "scripted", input=said(text), context=CONTEXT, **options
    )


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


def texts(values: Any) -> list[str]:
    return [str(message["content"]) for message in values["messages"]]


def test_a_person_is_shown_what_a_person_types_and_reads(server: str) -> None:
    async def work(client: LangGraphClient) -> Any:
        assistants: Any = await client.assistants.search(graph_id="longtable")
        return await client.assistants.get_schemas(assistants[0]["assistant_id"])

    schemas = with_client(server, work)
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert list(schemas["output_schema"]["properties"]) == ["messages"]
    fields = schemas["context_schema"]["properties"]
    assert set(fields) == {field.name for field in dataclasses.fields(Context)}
    assert all(field.get("description") for field in fields.values())
    assert fields["system_prompt"]["langgraph_type"] == "prompt"
    assert fields["approve_sql"]["enum"] == ["never", "costly", "always"]
    choices = {name: field for name, field in fields.items() if "enum" in json.dumps(field)}
    # Drawn as lists.
    assert set(choices) == {
        "language",
        "approve_sql",
        "check_numbers",
        "privacy",
        "reasoning_effort",
        "prompt_cache",
    }


def test_all_stream_modes_carry_a_turn(server: str) -> None:
    modes: Any = [
        "values",
        "updates",
        "messages",
        "messages-tuple",
        "custom",
        "tasks",
        "checkpoints",
        "debug",
        "events",
    ]

    async def work(client: LangGraphClient) -> dict[str, list[Any]]:
        parts: dict[str, list[Any]] = {}
        thread_id = await new_thread(client)
        async for part in client.runs.stream(
            thread_id, "scripted", input=said("hello"), context=CONTEXT, stream_mode=modes
        ):
            parts.setdefault(part.event.partition("/")[0], []).append(part.data)
        return parts

    parts = with_client(server, work)
    assert "error" not in parts, parts["error"]
    assert {
        "values",
        "updates",
        "messages",
        "custom",
        "tasks",
        "checkpoints",
        "debug",
        "events",
    } <= set(parts)
    assert texts(parts["values"][-1]) == ["hello", "hello"]


def test_an_interrupt_is_answered_and_made_up_answers_of_a_chat_client_are_not_taken_for_results(
    server: str,
) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        asked = await ask(client, thread_id, "confirm this")
        [request] = asked["__interrupt__"]
        answered = await client.runs.wait(
            thread_id,
            "scripted",
            command={"resume": {"decisions": [{"type": "approve"}]}},
            context=CONTEXT,
        )
        stopped = await ask(client, thread_id, "confirm that")
        open_call = stopped["messages"][-1]["tool_calls"][0]
        fake = {
            "type": "tool",
            "id": "do-not-render-1",
            "tool_call_id": open_call["id"],
            "content": "Successfully handled tool call.",
        }
        given: Any = {"messages": [fake, {"type": "human", "content": "never mind"}]}
        left = await client.runs.wait(thread_id, "scripted", input=given, context=CONTEXT)
        return request, answered, left

    request, answered, left = with_client(server, work)
    assert set(request["value"]) == {"action_requests", "review_configs"}
    assert texts(answered)[-1] == "the tool said approve"
    assert not [
        message for message in left["messages"] if str(message["id"]).startswith("do-not-render-")
    ]
    assert texts(left)[-2:] == ["never mind", "confirm this / confirm that / never mind"]


def test_a_query_that_waits_for_approval_is_shown_as_chat_clients_draw_it_and_runs_when_approved(
    server: str,
) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        always: Any = {"approve_sql": "always"}
        asked = await client.runs.wait(
            thread_id, "longtable", input=said("How many orders are there?"), context=always
        )
        decided: Any = {"resume": {"decisions": [{"type": "approve"}]}}
        return asked, await client.runs.wait(
            thread_id, "longtable", command=decided, context=always
        )

    asked, answered = with_client(server, work)
    [request] = asked["__interrupt__"]
    assert [action["name"] for action in request["value"]["action_requests"]] == ["run_sql"]
    assert {"approve", "edit", "reject"} <= set(
        request["value"]["review_configs"][0]["allowed_decisions"]
    )
    assert "23" in texts(answered)[-1]


def test_a_thread_goes_on_from_an_earlier_checkpoint(server: str) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        await ask(client, thread_id, "a")
        await ask(client, thread_id, "b")
        history: Any = await client.threads.get_history(thread_id, limit=50)
        past = next(
            found
            for found in history
            if not found["next"] and len(found["values"]["messages"]) == 2
        )
        return await ask(client, thread_id, "c", checkpoint=past["checkpoint"])

    assert texts(with_client(server, work)) == ["a", "a", "c", "a / c"]


def test_a_cancelled_run_leaves_its_question_and_the_next_turn_works(server: str) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        run = await client.runs.create(thread_id, "scripted", input=said("dawdle"), context=CONTEXT)
        while not (await client.threads.get_state(thread_id))["values"]:
            await asyncio.sleep(0.05)
        await client.runs.cancel(thread_id, run["run_id"], wait=True)
        return await ask(client, thread_id, "go on")

    assert texts(with_client(server, work))[-1] == "dawdle / go on"


def test_the_servers_store_holds_the_index_of_threads(server: str) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        await ask(client, thread_id, "a title")
        return await client.store.get_item(("longtable", "threads"), thread_id)

    assert with_client(server, work)["value"]["title"] == "a title"


def test_our_routes_compact_a_thread_and_tell_its_usage(server: str) -> None:
    async def work(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        for n in range(3):
            await ask(client, thread_id, f"question {n} " + "w " * 90)
        refused = await ask(client, thread_id, "w" * 9_000, raise_error=False)
        # And it stands in no fold's way.
        assert refused["__error__"]["error"] == "MessageTooLongError"
        return thread_id

    thread_id = with_client(server, work)
    place = f"{server}/longtable/threads/{thread_id}"
    folded = httpx.post(f"{place}/compact", timeout=60)
    assert folded.status_code == 200, folded.text
    assert folded.json()["compacted"]["messages"] >= 2
    again = httpx.post(f"{place}/compact", timeout=60).json()
    assert again["compacted"] is None
    assert [reason["code"] for reason in again["reasons"]] == ["all_compacted"]
    used = httpx.get(f"{place}/usage?by=day", timeout=60)
    assert [spent["calls"] for spent in used.json()["usage"]] == [3]
    assert httpx.get(f"{place}/topics", timeout=60).json() == {"topics": [], "next": None}
    [file] = httpx.get(f"{place}/archive", timeout=60).json()["archive"]
    assert file["key"] == folded.json()["compacted"]["archive"]
    kept = httpx.get(f"{place}/archive/{file['key']}", timeout=60)
    assert [each["message"]["fields"]["content"][:10] for each in kept.json()["messages"]][:1] == [
        "question 0"
    ]
    for key in (
        "../../shop.db",
        "..%2f..%2fshop.db",
        "%2Fetc%2Fpasswd",
        f"{file['key']}%00",
        "x.json",
    ):
        assert (answer := httpx.get(f"{place}/archive/{key}", timeout=60)).status_code == 404, (
            answer.text
        )
    for answer in (folded, used, kept):
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == (
            "no-store",
            "nosniff",
        )


def test_our_routes_give_whole_results_as_csv_and_arrow(server: str) -> None:
    async def work(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        await client.runs.wait(thread_id, "longtable", input=said("How many orders are there?"))
        return thread_id

    place = f"{server}/longtable/threads/{with_client(server, work)}/results"
    [known] = httpx.get(place, timeout=60).json()["results"]
    table = httpx.get(f"{place}/r1.csv", timeout=60)
    assert (known["handle"], known["rows"], table.text.splitlines()[1:]) == ("r1", 1, ["23"])
    assert table.headers["content-disposition"] == 'attachment; filename="r1.csv"'
    arrow = httpx.get(f"{place}/r1.arrow", timeout=60)
    assert ipc.open_stream(arrow.content).read_all().to_pylist() == [{known["columns"][0]: 23}]
    assert (arrow.headers["cache-control"], table.headers["x-content-type-options"]) == (
        "no-store",
        "nosniff",
    )


@pytest.mark.parametrize("servers_own_first", [False, True])
def test_our_delete_leaves_nothing_of_a_thread(
    server: str, folder: Path, servers_own_first: bool
) -> None:
    def kept() -> set[Path]:
        return {
            path
            for name in ("results", "archive")
            for path in (folder / name).glob("**/*")
            if path.suffix in {".parquet", ".json"}
        }

    async def work(client: LangGraphClient) -> Any:
        before = kept()
        thread_id = await new_thread(client)
        ann: Any = {"model_limit": 6_000, "owner": "ann"}
        for _ in range(4):
            await client.runs.wait(
                thread_id, "longtable", input=said("List all orders with their price."), context=ann
            )
        place, mine = f"{server}/longtable/threads/{thread_id}", {"x-longtable-owner": "ann"}
        assert httpx.post(f"{place}/compact", headers=mine, timeout=60).json()["compacted"]
        made = kept() - before
        assert {path.suffix for path in made} == {".parquet", ".json"}
        assert (
            httpx.delete(place, headers={"x-longtable-owner": "bob"}, timeout=60).status_code == 404
        )
        assert kept() - before == made
        if servers_own_first:
            await client.threads.delete(thread_id)
            assert kept() - before == made
        assert httpx.delete(place, headers=mine, timeout=60).status_code == 204
        assert httpx.delete(place, headers=mine, timeout=60).status_code == 404
        left = await client.store.search_items(("longtable",), limit=1_000)
        threads = [thread["thread_id"] for thread in await client.threads.search(limit=1_000)]
        return (
            kept() - before,
            [item for item in left["items"] if thread_id in json.dumps(item)],
            thread_id in threads,
        )

    assert with_client(server, work) == (set(), [], False)


def test_our_delete_waits_for_no_run_and_stops_none(server: str) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        run = await client.runs.create(thread_id, "scripted", input=said("dawdle"), context=CONTEXT)
        while not (await client.threads.get_state(thread_id))["values"]:
            await asyncio.sleep(0.05)
        refused = httpx.delete(f"{server}/longtable/threads/{thread_id}", timeout=60)
        await client.runs.cancel(thread_id, run["run_id"], wait=True)
        return (
            refused,
            httpx.delete(f"{server}/longtable/threads/{thread_id}", timeout=60).status_code,
        )

    refused, then = with_client(server, work)
    assert (refused.status_code, refused.json()["error"]["code"], then) == (409, "thread_busy", 204)


def test_our_routes_tell_typed_errors_and_keep_to_the_owner(server: str) -> None:
    async def work(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        await client.runs.wait(
            thread_id, "scripted", input=said("mine"), context={**CONTEXT, "owner": "ann"}
        )
        return thread_id

    thread_id = with_client(server, work)

    def told(path: str, owner: str = "ann", method: str = "GET", **headers: str) -> tuple[int, str]:
        answer = httpx.request(
            method,
            f"{server}/longtable/threads/{path}",
            headers={"x-longtable-owner": owner, **headers},
            timeout=60,
        )
        assert answer.headers["cache-control"] == "no-store"
        assert thread_id not in answer.text or answer.status_code == 200
        assert answer.status_code == 200 or set(answer.json()["error"]) == {
            "code",
            "message",
            "retry_after",
        }
        return answer.status_code, str(answer.json().get("error", {}).get("code"))

    assert told(f"{thread_id}/usage") == (200, "None")
    # Nothing was ever said on it.
    assert told(f"{with_client(server, new_thread)}/usage") == (404, "thread_not_found")
    assert told(f"{thread_id}/usage", owner="bob") == (404, "thread_not_found")
    assert told(f"{thread_id}/compact", owner="bob", method="POST") == (404, "thread_not_found")
    assert told(f"{thread_id}/results/r1.csv", owner="bob") == (404, "thread_not_found")
    assert told(f"{thread_id}/archive", owner="bob") == (404, "thread_not_found")
    assert told(f"{thread_id}/archive/20261121T120000Z-1-4.json", owner="bob") == (
        404,
        "thread_not_found",
    )
    assert told(f"{thread_id}/archive/20261121T120000Z-1-4.json") == (404, "unknown_archive")
    assert told(f"{thread_id}/results/r9.csv") == (404, "unknown_result")
    assert told(f"{thread_id}/topics/t1") == (404, "unknown_topic")
    assert told(f"{thread_id}/usage?by=colour") == (400, "config")
    assert told("00000000-0000-4000-8000-000000000000/usage") == (404, "thread_not_found")
    assert told("no-uuid/usage") == (404, "thread_not_found")
    assert told(f"{thread_id}/usage", owner="a" * 201) == (400, "config")


def inside_told(told: object) -> list[str]:
    """Return what nobody outside may read."""
    text = json.dumps(told, ensure_ascii=False, default=str)
    return [
        each
        for each in (
            *INSIDE,
            "Context.",
            "LONGTABLE_",
            "/srv",
            "longtable threads",
            "internal error",
        )
        if each in text
    ]


@pytest.mark.timeout(240)
def test_each_error_reaches_a_client_as_one_sentence_in_his_language_and_a_code(
    server: str,
) -> None:
    modes: Any = ["custom", "updates", "values", "tasks", "debug"]

    async def fail(client: LangGraphClient, number: int, language: str) -> tuple[Any, ...]:
        thread_id = await new_thread(client)
        text = f"fail {number} " + ("请你用中文告诉我出了什么问题" if language == "zh" else "")
        parts = [
            part
            async for part in client.runs.stream(
                thread_id, "scripted", input=said(text), context=CONTEXT, stream_mode=modes
            )
        ]
        [error] = [part.data for part in parts if part.event == "error"]
        [event] = [
            part.data for part in parts if part.event == "custom" and part.data["type"] == "failed"
        ]
        again: Any = await client.threads.get(thread_id)
        return error, event, parts, await client.threads.get_state(thread_id), again["error"]

    async def work(client: LangGraphClient) -> None:
        languages = ["zh" if number % 2 else "en" for number in range(len(CLASSES))]
        told = await asyncio.gather(
            *(fail(client, number, language) for number, language in enumerate(languages))
        )
        for cls, language, (error, event, *rest) in zip(CLASSES, languages, told, strict=True):
            if cls is not ModelContextOverflowError:  # its own words say more
                assert (error["error"], error["code"]) == (cls.__name__, cls.code)
            assert error["message"] == event["text"] == made(cls).user_text(language), cls
            assert event["code"] == error["code"]
            assert not inside_told([error, event, *rest]), cls

    with_client(server, work)


def test_neither_a_bug_nor_a_refused_input_nor_a_wrong_context_tells_a_client_what_is_inside(
    server: str, folder: Path
) -> None:
    async def work(client: LangGraphClient) -> list[Any]:
        given = [
            ("fall 请你用中文告诉我出了什么问题", CONTEXT),
            ("这" * 9_000, CONTEXT),
            ("hello", {**CONTEXT, "approve_sql": HOSTILE}),
            ("有多少订单", {**CONTEXT, "max_repairs": -1}),
            ("有多少订单", {**CONTEXT, "privcy": "types", "aprove_sql": "always"}),
            ("hello", {**CONTEXT, HOSTILE: "always"}),
            ("hello", {**CONTEXT, "owner": " "}),
        ]
        contexts: list[tuple[str, Any]] = given
        return [
            await client.runs.wait(
                await new_thread(client),
                "scripted",
                input=said(text),
                context=context,
                raise_error=False,
            )
            for text, context in contexts
        ]

    bug, refused, *settings = [answer["__error__"] for answer in with_client(server, work)]
    assert bug == {"error": "ValueError", "code": "error", "message": "出错了。"}
    assert refused == {
        "error": "MessageTooLongError",
        "code": "message_too_long",
        "message": "消息有 9,000 个字符，上限是 8,000：请缩短。",
    }
    assert {each["code"] for each in settings} == {"config"}
    assert [each["message"] for each in settings] == [
        "approve_sql must be never | costly | always.",
        "max_repairs 必须是 0 … 1,000。",
        "没有 privcy 这项设置：是否指 privacy？",
        "One of the settings sent is unknown.",
        "owner must be 1 to 200 printable characters without blanks at the ends.",
    ]
    log = (folder / "log").read_text()
    assert "run failed: error" in log  # there, with its stack and its words, and without keys
    assert "in say" in log
    assert SQL in log
    assert not [secret for secret in SECRETS if secret in log]


# -- a server with authentication, on which the operator set what holds ----------------------------


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with open_model_server() as running_models:
        yield running_models


SETTINGS = """
[model]
name = "a-model-that-no-table-knows"
base_url = "{url}"
limit = "9k"
choices = ["small"]
[policy]
private = true
approve_sql = "costly"
[compaction]
preset = "rolling_chat"
"""


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory, models: ModelServer) -> Iterator[str]:
    file = tmp_path_factory.mktemp("settings") / "longtable.toml"
    file.write_text(SETTINGS.format(url=models.base_url))
    variables = {"LONGTABLE_CONFIG": str(file), "LONGTABLE_APPROVE_SQL": "always"}
    auth = {"path": f"{ROOT}/tests/support/authentication.py:auth", "disable_studio_auth": True}
    with running(tmp_path_factory.mktemp("operated"), {}, variables, auth=auth) as url:
        yield url


CLIENTS: list[dict[str, Any] | None] = [
    None,
    {"approve_sql": "never", "privacy": "off", "model_limit": 1_000_000},
    {"approve_sql": "", "privacy": "", "model_limit": "", "owner": "", "max_model_calls": ""},
]


@pytest.mark.parametrize("context", CLIENTS)
def test_what_the_operator_set_holds_whatever_a_client_sends(
    operated: str, models: ModelServer, context: Any
) -> None:
    async def work(client: LangGraphClient) -> tuple[Any, Any, list[Any], str]:
        thread_id = await new_thread(client)
        models.script(
            model_call("run_sql", sql="SELECT price FROM orders WHERE id = 21"),
            model_says("One.", input_tokens=233, output_tokens=56),
        )
        asked = await client.runs.wait(
            thread_id, "longtable", input=said("What does 21 cost?"), context=context
        )
        before, decided = (
            len(models.requests),
            cast("Any", {"resume": {"decisions": [{"type": "approve"}]}}),
        )
        events: list[Any] = [
            part.data
            async for part in client.runs.stream(
                thread_id, "longtable", command=decided, context=context, stream_mode=["custom"]
            )
            if part.event == "custom"
        ]
        used = httpx.get(
            f"{operated}/longtable/threads/{thread_id}/usage", headers={"x-user": "ann"}, timeout=60
        ).json()["usage"]
        return (
            asked,
            used,
            events,
            json.dumps([request.messages for request in models.requests[before:]]),
        )

    asked, used, events, sent = with_client(operated, work, {"x-user": "ann"})
    assert [action["name"] for action in asked["__interrupt__"][0]["value"]["action_requests"]] == [
        "run_sql"
    ]
    assert "row_count" in sent  # the result was sent, and no cell of it, which the person has
    assert "10.5" not in sent
    assert [event["rows"] for event in events if event["type"] == "query_finished"] == [[[10.5]]]
    assert {event["limit"] for event in events if event["type"] == "context_usage"} == {9_000}
    # As the provider reported.
    assert [(spent["input"], spent["output"], spent["estimated"]) for spent in used] == [
        (333, 66, 0)
    ]


def test_a_client_chooses_among_the_models_of_the_settings_file(
    operated: str, models: ModelServer
) -> None:
    async def work(client: LangGraphClient) -> Any:
        thread_id = await new_thread(client)
        models.script(model_says("One."))
        await client.runs.wait(thread_id, "longtable", input=said("Hi"), context={"model": "small"})
        return await client.runs.wait(
            thread_id, "longtable", input=said("Hi"), context={"model": "large"}, raise_error=False
        )

    refused = with_client(operated, work, {"x-user": "ann"})
    assert models.requests[-1].body["model"] == "small"
    assert refused["__error__"]["code"] == "unknown_model"


def test_a_user_who_is_not_authenticated_is_nobody_whatever_he_sends(
    operated: str, models: ModelServer
) -> None:
    async def ask_as_ann(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        models.script(model_says("Hello."))
        await client.runs.wait(thread_id, "longtable", input=said("hello"))
        return thread_id

    async def intrude(client: LangGraphClient) -> Any:
        return await client.runs.wait(
            thread_id, "longtable", input=said("hers"), context={"owner": "ann"}, raise_error=False
        )

    thread_id = with_client(operated, ask_as_ann, {"x-user": "ann"})
    place, before = f"{operated}/longtable/threads/{thread_id}/usage", len(models.requests)
    guest = {"x-user": "ann", "x-guest": "yes", "x-longtable-owner": "ann"}
    assert httpx.get(place, headers={"x-user": "ann"}, timeout=60).status_code == 200
    for other in (guest, {"x-user": "bob", "x-longtable-owner": "ann"}):
        assert httpx.get(place, headers=other, timeout=60).status_code == 404
        assert with_client(operated, intrude, other)["__error__"]["error"] == "ThreadNotFoundError"
    # An identity without a name.
    assert (
        with_client(operated, intrude, {"x-user": ""})["__error__"]["error"]
        == "ThreadNotFoundError"
    )
    assert len(models.requests) == before


def test_a_server_does_not_start_with_a_setting_that_cannot_be(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import longtable.app.studio"]  # as the server does first
    variables = {**environment(tmp_path), "LONGTABLE_APPROVE_SQL": "sometimes"}
    done = subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 1
    assert "'never', 'costly' or 'always', found 'sometimes'" in done.stderr.splitlines()[-1]


def test_on_a_server_the_conversations_model_writes_the_summaries(
    operated: str, models: ModelServer
) -> None:
    async def work(client: LangGraphClient) -> tuple[int, list[Any]]:
        thread_id, before = await new_thread(client), len(models.requests)
        models.always(answer_or_summary)
        for n in range(7):
            await client.runs.wait(thread_id, "longtable", input=said(f"question {n}"))
        used = httpx.get(
            f"{operated}/longtable/threads/{thread_id}/usage", headers={"x-user": "ann"}, timeout=60
        ).json()["usage"]
        return before, used

    before, used = with_client(operated, work, {"x-user": "ann"})
    written = [request for request in models.requests[before:] if request.is_for_summary]
    assert written
    assert all(
        request.tool_names == [] and request.body["max_completion_tokens"] > 0
        for request in written
    )
    assert {row["purpose"]: row["calls"] for row in used} == {"": 7, "summary": len(written)}


TEAM = """
[team]
mode = "free_chat"
[[team.personas]]
id = "ana"
name = "Ana"
[[team.personas]]
id = "bo"
name = "Bo"
aliases = ["小波"]
"""


@pytest.mark.timeout(240)
def test_the_team_of_the_settings_file_answers_under_its_names_and_its_usage_says_whose_it_was(
    tmp_path: Path,
) -> None:
    (file := tmp_path / "longtable.toml").write_text(TEAM)

    async def work(client: LangGraphClient) -> tuple[str, list[Any]]:
        thread_id = await new_thread(client)
        for question in ("How many orders are there?", "@小波 How many orders are there?"):
            values: Any = await client.runs.wait(thread_id, "longtable", input=said(question))
        return thread_id, [
            message["name"]
            for message in values["messages"]
            if message["type"] == "ai" and message["content"]
        ]

    with running(tmp_path, {}, {"LONGTABLE_CONFIG": str(file)}) as url:
        thread_id, names = with_client(url, work)
        used = httpx.get(
            f"{url}/longtable/threads/{thread_id}/usage", params={"by": "voice"}, timeout=60
        ).json()["usage"]
    assert names == ["Ana", "Bo", "Bo"]
    assert [row["voice"] for row in used] == ["ana", "bo"]
