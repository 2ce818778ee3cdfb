"""A server's routes as a client of it uses them: over HTTP and the SDK, each thread its owner's
only.
"""

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError

from longtable.app.server.requests import error_response
from longtable.app.web import app
from longtable.base.errors import LongtableError, ThreadBusyError
from tests.app.test_studio import new_thread, running, said, with_client
from tests.support.errors import CLASSES, made

ANN, BOB = {"x-longtable-owner": "ann"}, {"x-longtable-owner": "bob"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(
        tmp_path_factory.mktemp("server"), {"scripted": "tests.support.served:graph"}
    ) as url:
        yield url


def talk(server: str, *questions: str, graph: str = "scripted", **context: Any) -> str:
    """Run the turns of a new thread and return its id."""
    settings: Any = {"model_limit": 8_000, "owner": "ann", **context}

    async def work(client: LangGraphClient) -> str:
        thread_id = await new_thread(client)
        for question in questions:
            await client.runs.wait(thread_id, graph, input=said(question), context=settings)
        return thread_id

    return with_client(server, work)


def get(server: str, path: str, headers: dict[str, str] = ANN, **parameters: Any) -> Any:
    answer = httpx.get(f"{server}/longtable/{path}", headers=headers, params=parameters, timeout=60)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), answer.text
    return answer.json() if answer.headers["content-type"] == "application/json" else answer


@pytest.mark.timeout(240)
def test_threads_are_listed_searched_renamed_and_moved_by_their_owner(server: str) -> None:
    first = talk(server, "where are the herons", owner="list", project="birds")
    second = talk(server, "how many otters swim", "and herons again", owner="list")
    mine = {"x-longtable-owner": "list"}
    listed = get(server, "threads", mine)
    assert [thread["thread_id"] for thread in listed["threads"]] == [second, first]
    assert listed["next"] is None
    page = get(server, "threads", mine, limit=1)
    assert ([thread["thread_id"] for thread in page["threads"]], page["next"]) == ([second], 1)
    assert [
        thread["thread_id"] for thread in get(server, "threads", mine, limit=1, offset=1)["threads"]
    ] == [first]
    assert {hit["thread_id"] for hit in get(server, "search", mine, q="herons")["hits"]} == {
        first,
        second,
    }
    assert get(server, "search", BOB, q="herons") == {"hits": [], "next": None}
    place = f"{server}/longtable/threads/{first}"
    changed = httpx.patch(
        place, headers=mine, json={"title": "鹭 \n birds", "project": "vögel"}, timeout=60
    )
    assert (changed.status_code, changed.json()["title"], changed.json()["project"]) == (
        200,
        "鹭 birds",
        "vögel",
    )
    assert [
        thread["thread_id"] for thread in get(server, "threads", mine, project="vögel")["threads"]
    ] == [first]
    assert get(server, "projects", mine)["projects"] == [
        {"project": "", "threads": 1, "updated": listed["threads"][0]["updated"]},
        {"project": "vögel", "threads": 1, "updated": listed["threads"][1]["updated"]},
    ]
    for body in (
        "",
        "[]",
        "{",
        "{}",
        '{"title": 3}',
        '{"owner": "bob"}',
        '{"title": " "}',
        '{"project": " a"}',
        "[" * 100_000,
    ):
        assert httpx.patch(place, headers=mine, content=body, timeout=60).status_code == 400, body[
            :20
        ]
    for fields in ({"title": " ", "project": "half"}, {"title": "half", "project": " a"}):
        # Both or none.
        assert httpx.patch(place, headers=mine, json=fields, timeout=60).status_code == 400
    assert [(each["title"], each["project"]) for each in get(server, "threads", mine)["threads"]][
        1
    ] == ("鹭 birds", "vögel")
    assert httpx.patch(place, headers=BOB, json={"title": "his"}, timeout=60).status_code == 404


def test_a_thread_is_read_and_exported_whole_by_its_owner_only(server: str) -> None:
    thread_id = talk(
        server,
        "How many orders are there?",
        "Draw a bar chart of the price by id of all orders.",
        graph="longtable",
    )
    place = f"threads/{thread_id}"
    history = get(server, f"{place}/history", limit=2)
    assert [message["number"] for message in history["messages"]] == [1, 2]
    assert history["messages"][0]["content"] == "How many orders are there?"
    assert (history["next"], history["total"] > 3) == (2, True)
    [first, *_] = get(server, f"{place}/audit")["audit"]
    assert (first["thread"], first["verdict"]) == (thread_id, "run")
    assert thread_id in {entry["thread"] for entry in get(server, "audit")["audit"]}
    assert get(server, f"{place}/pins") == {"pins": [], "next": None}
    assert get(server, f"{place}/ratings") == {"ratings": [], "next": None}
    assert get(server, "knowledge") == {"knowledge": [], "next": None}
    exported = get(server, f"{place}/export").text.splitlines()
    assert json.loads(exported[0])["thread_id"] == thread_id
    assert "How many orders are there?" in get(server, f"{place}/export", form="markdown").text
    page = get(server, f"{place}/export", form="html", language="zh")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.text.startswith("<!")
    for wrong in ({"form": "pdf"}, {"language": "xx"}, {"form": ""}):
        assert (
            httpx.get(
                f"{server}/longtable/{place}/export", headers=ANN, params=wrong, timeout=60
            ).status_code
            == 400
        )


def test_a_result_is_drawn_as_a_chart(server: str) -> None:
    thread_id = talk(server, "List all orders with their price.", graph="longtable")
    drawn = get(server, f"threads/{thread_id}/results/r1.svg", wish="bar of price by id")
    assert (drawn.headers["content-type"], drawn.text[:4]) == ("image/svg+xml", "<svg")
    without = get(server, f"threads/{thread_id}/results/r1.svg")  # no answer of the thread drew one
    assert (without.headers["content-type"], without.text[:4]) == ("image/svg+xml", "<svg")
    for handle in ("r99", "nonsense", "%2e%2e%2fr1"):
        assert (
            httpx.get(
                f"{server}/longtable/threads/{thread_id}/results/{handle}.svg",
                headers=ANN,
                timeout=60,
            ).status_code
            == 404
        )


def requests_of(thread_id: str) -> list[tuple[str, str]]:
    """Return method and path of every route that the application has, a thread's with this id and
    its first result.
    """
    names = {"thread_id": thread_id, "handle": "r1", "topic_id": "t1", "key": "k.json", "name": "x"}
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert len(routes) >= 21
    return [
        (method, re.sub(r"{(\w+)(:path)?}", lambda name: names[name[1]], route.path))
        for route in routes
        for method in route.methods or ()
    ]


def test_each_route_refuses_a_thread_of_another_owner_and_lists_nothing_of_it(server: str) -> None:
    thread_id = talk(server, "How many orders are there?", owner="routes", graph="longtable")
    owners: list[dict[str, str]] = [BOB, {}, {"x-longtable-owner": "routes"}]
    for method, path in requests_of(thread_id):
        found = []
        for headers in owners if method == "GET" else owners[:2]:
            answer = httpx.request(
                method,
                server + path,
                headers=headers,
                params={"q": "orders"},
                content='{"title": "x"}',
                timeout=60,
            )
            error = answer.json()["error"]["code"] if answer.status_code >= 400 else ""
            found.append(
                error == "thread_not_found" if thread_id in path else thread_id not in answer.text
            )
            refused = 403 if "/knowledge" in path else 404
            assert answer.status_code in (200, refused), (method, path, answer.text)
        assert (
            found == [True, True, False][: len(found)]
            or path.endswith(("/projects", "/usage"))
            or "/knowledge" in path
        ), (method, path, found)
    assert get(server, f"threads/{thread_id}/history", owners[2])["total"] > 1


def test_past_turns_come_with_their_events_and_with_what_waits(server: str) -> None:
    thread_id = talk(server, "How many orders are there?", "And now?", graph="longtable")
    page = get(server, f"threads/{thread_id}/turns")
    assert page["newest"] == 2
    assert [turn["question"] for turn in page["turns"]] == [
        "How many orders are there?",
        "And now?",
    ]
    first = page["turns"][0]
    (query,) = [event for event in first["events"] if event["type"] == "query_finished"]
    assert (query["rows"], query["row_count"]) == ([[23]], 1)
    assert first["events"][-1]["type"] == "answer"
    assert get(server, f"threads/{thread_id}/turns", start=-1)["turns"] == page["turns"][1:]
    assert get(server, f"threads/{thread_id}/turns", limit=1)["turns"] == page["turns"][:1]
    for wrong in ({"start": 0}, {"start": "-"}, {"start": "--1"}, {"limit": 0}, {"limit": -1}):
        place = f"{server}/longtable/threads/{thread_id}/turns"
        refused = httpx.get(place, headers=ANN, params=wrong, timeout=60)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "config"), wrong
    waiting = talk(server, "confirm this")
    (turn,) = get(server, f"threads/{waiting}/turns")["turns"]
    assert turn["status"] == "approval_requested"
    (asked,) = [event for event in turn["events"] if event["type"] == "approval_requested"]
    assert asked["action_requests"][0]["name"] == "confirm"


def test_every_route_with_pages_refuses_one_that_cannot_be_and_says_what_is_wanted(
    server: str,
) -> None:
    thread_id = talk(server, "How many orders are there?", graph="longtable")
    paged = 0
    for method, path in requests_of(thread_id):
        answer = (
            httpx.request(method, server + path, headers=ANN, timeout=60)
            if method == "GET"
            else None
        )
        if (
            answer is None
            or answer.headers["content-type"] != "application/json"
            or "next" not in answer.json()
        ):
            continue
        paged += 1
        for name, least, most in (("limit", 1, 1_000), ("offset", 0, 1_000_000)):
            for wrong in (
                "-1",
                "1000001",
                "9" * 400,
                "x",
                "1.5",
                "٣",
                "",
                "1e3",
                *(["0", "1001"] if name == "limit" else []),
            ):
                refused = httpx.get(server + path, headers=ANN, params={name: wrong}, timeout=60)
                assert (refused.status_code, refused.json()["error"]["code"]) == (400, "config"), (
                    path,
                    name,
                    wrong,
                )
                assert refused.json()["error"]["message"] == f"{name}= must be {least} … {most}."
        last = get(server, path.removeprefix("/longtable/"), offset=1_001, q="orders")
        assert (last["next"], next(iter(last.values()))) == (None, []), path
    assert paged == 14


def test_an_id_that_names_no_thread_finds_none(server: str) -> None:
    thread_id = talk(server, "hello", owner="ann")
    ids = [
        f"{thread_id}%3F",
        f"{thread_id}%2Fhistory%3F",
        "..%2F..%2Fok",
        f"x%2F..%2F{thread_id}",
        "线程",
        "%00",
        "a" * 5_000,
        str(uuid.uuid4()),
    ]
    for wrong in ids:
        for method, path in (
            ("GET", "/history"),
            ("GET", "/usage"),
            ("DELETE", ""),
            ("PATCH", ""),
            ("POST", "/compact"),
        ):
            answer = httpx.request(
                method,
                f"{server}/longtable/threads/{wrong}{path}",
                headers=ANN,
                content='{"title": "x"}',
                timeout=60,
            )
            assert answer.status_code in (404, 405), (method, wrong[:60], answer.text)
    assert get(server, f"threads/{thread_id}/history")["total"] == 2


def test_a_thread_is_neither_deleted_nor_renamed_while_its_turn_runs(server: str) -> None:
    async def work(client: LangGraphClient) -> list[int]:
        thread_id = await new_thread(client)
        context: Any = {"owner": "ann", "model_limit": 8_000}
        run = await client.runs.create(thread_id, "scripted", input=said("dawdle"), context=context)
        # Only the accepted turn says whose the thread is; its question is stored before that.
        while "turn" not in (await client.threads.get_state(thread_id))["values"]:
            await asyncio.sleep(0.05)
        place = f"{server}/longtable/threads/{thread_id}"
        async with httpx.AsyncClient(headers=ANN, timeout=60) as http:
            codes = [
                (await http.delete(place)).status_code,
                (await http.patch(place, json={"title": "x"})).status_code,
            ]
            codes.append((await http.delete(place, headers=BOB)).status_code)
            await client.runs.cancel(thread_id, run["run_id"], wait=True)
            return [*codes, (await http.delete(place)).status_code]

    assert with_client(server, work) == [409, 409, 404, 204]


def test_usage_is_added_up_over_all_threads_of_an_owner_deleted_ones_too(server: str) -> None:
    mine = {"x-longtable-owner": "usage"}
    thread_id = talk(server, "one", "two", owner="usage", project="p")
    talk(server, "three", owner="usage")
    by_project = get(server, "usage", mine, by="project")["usage"]
    assert [(row["project"], row["calls"]) for row in by_project] == [("", 1), ("p", 2)]
    [hour] = get(server, "usage", mine, by="hour,month")["usage"]
    assert hour["hour"].startswith(hour["month"])
    assert get(server, "usage", mine, by="day", to="2020-01-01")["usage"] == []
    assert (
        get(
            server,
            f"threads/{thread_id}/usage",
            mine,
            **{"by": "day", "from": "2020-01", "to": "2999-01-01"},
        )["usage"][0]["calls"]
        == 2
    )
    assert (
        httpx.delete(
            f"{server}/longtable/threads/{thread_id}", headers=mine, timeout=60
        ).status_code
        == 204
    )
    assert get(server, "usage", mine, by="project")["usage"] == by_project
    assert get(server, "usage", BOB, by="project", **{"from": "2020-01"})["usage"] == []
    for wrong in (
        {"from": "2026-02-30"},
        {"to": "x"},
        {"from": "2026-02", "to": "2026-01"},
        {"by": "week"},
        {"by": ""},
        {"from": "\x00"},
    ):
        assert (
            httpx.get(
                f"{server}/longtable/usage", headers=mine, params=wrong, timeout=60
            ).status_code
            == 400
        ), wrong


def test_a_thread_takes_no_turn_from_another_project_until_it_is_moved(server: str) -> None:
    thread_id = talk(server, "one", project="north")

    async def work(client: LangGraphClient) -> list[Any]:
        async def turn() -> Any:
            context: Any = {"owner": "ann", "project": "south", "model_limit": 8_000}
            return await client.runs.wait(
                thread_id, "scripted", input=said("two"), context=context, raise_error=False
            )

        before = await turn()
        httpx.patch(
            f"{server}/longtable/threads/{thread_id}",
            headers=ANN,
            json={"project": "south"},
            timeout=60,
        ).raise_for_status()
        return [before["__error__"]["error"], len((await turn())["messages"])]

    assert with_client(server, work) == ["ThreadNotFoundError", 4]


def test_title_and_project_stand_in_the_threads_metadata(server: str) -> None:
    thread_id = talk(server, "How many orders are there?", graph="longtable", project="metadata")

    async def found(client: LangGraphClient, **metadata: str) -> list[str]:
        return [
            str(thread["thread_id"]) for thread in await client.threads.search(metadata=metadata)
        ]

    async def work(client: LangGraphClient) -> None:
        assert await found(client, project="metadata", title="How many orders are there?") == [
            thread_id
        ]
        fields = {"title": "Orders", "project": "moved"}
        httpx.patch(
            f"{server}/longtable/threads/{thread_id}", headers=ANN, json=fields, timeout=60
        ).raise_for_status()
        assert await found(client, **fields) == [thread_id]
        assert await found(client, project="metadata") == []
        metadata: Any = (await client.threads.get(thread_id))["metadata"]
        assert metadata["graph_id"] == "longtable"

    with_client(server, work)


def test_our_errors_are_answered_in_an_application_of_ones_own() -> None:
    own = FastAPI()
    own.add_exception_handler(LongtableError, error_response)

    @own.get("/turn")
    def turn() -> None:
        raise ThreadBusyError("monday")

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(own), base_url="http://own"
        ) as client:
            return await client.get("/turn", headers={"accept-language": "zh-CN"})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.headers["cache-control"]) == (409, "no-store")
    assert answer.json()["error"]["code"] == "thread_busy"
    assert answer.json()["error"]["message"] == ThreadBusyError("monday").user_text("zh")


def test_what_a_browser_is_told_names_no_option_of_the_command_line(server: str) -> None:
    thread_id = talk(server, "hello", graph="longtable")
    said_first = get(server, f"threads/{thread_id}/history")["messages"][-1]["content"]
    assert "LONGTABLE_MODEL" in said_first
    assert "--" not in said_first
    for cls in CLASSES:
        assert not re.search(r"--[a-z]", made(cls).user_text("en") + made(cls).user_text("zh")), cls


def test_an_edit_of_a_message_holds_or_is_refused(server: str) -> None:
    thread_id = talk(server, "one", "two")

    async def work(client: LangGraphClient) -> Any:
        values: Any = (await client.threads.get_state(thread_id))["values"]
        first, answer = values["messages"][:2]
        # As Studio sends it.
        await client.threads.update_state(thread_id, {"messages": [{**first, "content": "edited"}]})
        await client.threads.update_state(
            thread_id, {"messages": [{"role": "assistant", "id": answer["id"], "content": "bare"}]}
        )
        with pytest.raises(ConflictError) as refused:
            await client.threads.update_state(
                thread_id, {"messages": [{"type": "ai", "id": first["id"], "content": "no answer"}]}
            )
        assert refused.value.body["error"]["code"] == "edit_refused"  # type: ignore[index]  # the SDK types it as an object
        context: Any = {"owner": "ann", "model_limit": 8_000}
        after: Any = await client.runs.wait(
            thread_id, "scripted", input=said("three"), context=context
        )
        return [message["content"] for message in after["messages"]]

    assert with_client(server, work) == [
        "edited",
        "bare",
        "two",
        "one / two",
        "three",
        "edited / two / three",
    ]
    assert [
        message["turn"] for message in get(server, f"threads/{thread_id}/history")["messages"]
    ] == [1, 1, 2, 2, 3, 3]


def test_an_answer_links_its_chart_and_its_rows_for_browsers_and_no_model_is_sent_the_links(
    server: str,
) -> None:
    question = "Draw a bar chart of the price by id of all orders."
    thread_id = talk(server, question, "How many orders are there?", graph="longtable")

    async def work(client: LangGraphClient) -> Any:
        context: Any = {"owner": "ann", "model_limit": 8_000}
        return await client.runs.wait(
            thread_id, "longtable", input=said("And the maximum price?"), context=context
        )

    messages = with_client(server, work)["messages"]
    answers = [
        message["content"] for message in messages if message["type"] == "ai" and message["content"]
    ]
    links = [re.findall(r"(!?)\[(r\d+)(?:\.csv)?\]\((\S+)\)", answer) for answer in answers]
    assert [[(drawn, handle) for drawn, handle, _ in each] for each in links] == [
        [("!", "r1"), ("", "r1")],
        [("", "r2")],
        [("", "r3")],
    ]
    for drawn, handle, address in links[0]:
        assert (
            address
            == f"{server}/longtable/threads/{thread_id}/results/{handle}.{'svg' if drawn else 'csv'}"
        )
        shown = httpx.get(address, headers=ANN, timeout=60)
        assert shown.text.startswith("<svg" if drawn else "id,price")
        assert httpx.get(address, headers=BOB, timeout=60).status_code == 404


def test_a_changed_text_under_the_id_of_another_message_is_refused_with_a_sentence(
    server: str,
) -> None:
    def message(text: str) -> Any:
        return {"messages": [{"role": "user", "content": text, "id": "mine"}]}

    async def work(client: LangGraphClient) -> list[Any]:
        thread_id = await new_thread(client)
        context: Any = {"owner": "ann", "model_limit": 8_000}
        ended: list[Any] = [
            await client.runs.wait(
                thread_id, "scripted", input=message(text), context=context, raise_error=False
            )
            for text in ("有多少订单", "有多少客户", "有多少订单")
        ]
        return [ended[1]["__error__"], len(ended[2]["messages"])]

    error, length = with_client(server, work)
    assert (error["error"], error["code"], length) == ("UsedIdError", "used_id", 2)
    assert error["message"].startswith("这条消息此前以不同的内容发送过")


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("PATCH", "threads/{}", {"title": " "}, "标题至少要有一个字符。"),
        ("PATCH", "threads/{}", {"project": " a"}, "project 必须是 1 到 200 个可见字符"),
        ("GET", "usage?from=2026-02-30", None, "from= / to= 必须是 2026-11-23"),
        ("GET", "usage?from=2026-02&to=2026-01", None, "时间段的结束早于开始。"),
    ],
)
def test_each_refusal_says_what_is_wrong_in_the_language_of_the_reader(
    server: str, method: str, path: str, body: Any, told: str
) -> None:
    thread_id = talk(server, "hello")
    answer = httpx.request(
        method,
        f"{server}/longtable/{path.format(thread_id)}",
        headers={**ANN, "accept-language": "zh"},
        json=body,
        timeout=60,
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(told)


def test_compacting_is_previewed_and_says_why_nothing_is_left(server: str) -> None:
    thread_id = talk(server, *(f"question {number} " + "word " * 40 for number in range(4)))
    place = f"threads/{thread_id}/compact"
    preview = get(server, place)["preview"]
    assert (preview["first"], preview["messages"]) == (1, 6)
    for codes in (None, ["all_compacted"]):
        answer = httpx.post(f"{server}/longtable/{place}", headers=ANN, timeout=60).json()
        assert bool(answer["compacted"]) == (codes is None)
        assert codes is None or [each["code"] for each in answer["reasons"]] == codes
    assert get(server, place)["preview"] is None
