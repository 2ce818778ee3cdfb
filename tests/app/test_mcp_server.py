"""`longtable mcp` to a real client of the official SDK, over a process's standard input and
output.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from longtable.app.mcp_server import drawn_text, shown_rows
from longtable.graph import (
    Context,
    Conversation,
    Database,
    ResultStore,
    TablePolicy,
    build_graph,
)
from tests.app.runner import Home, make_home
from tests.support.model_server import answer_or_summary, open_model_server
from tests.support.models import call, script
from tests.tools.databases import make_file, url

Result = TypeVar("Result")
SECONDS = 60.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def with_server(home: Home, work: Callable[[Client], Awaitable[Result]], *options: str) -> Result:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "longtable.app.cli", "mcp", *options],
        env=home.environment(),
        cwd=str(home.folder),
    )

    async def run() -> Result:
        async with Client(command, read_timeout_seconds=SECONDS) as client:
            return await work(client)

    return asyncio.run(run())


def text_of(answer: CallToolResult) -> Any:
    [content] = answer.content
    assert isinstance(content, TextContent)
    return json.loads(
        content.text.partition(": ")[2] if content.text.startswith("Error") else content.text
    )


def test_a_client_asks_goes_on_looks_at_tables_and_runs_sql(home: Home) -> None:
    async def work(client: Client) -> tuple[Any, ...]:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        first = await client.call_tool("ask", {"question": "How many orders are there?"})
        second = await client.call_tool("ask", {"question": "And the average amount?"})
        tables = await client.call_tool("list_tables", {})
        shape = await client.call_tool("describe_tables", {"names": ["orders"]})
        found = await client.call_tool("find_values", {"text": "customer 7"})
        rows = await client.call_tool("run_sql", {"sql": "SELECT max(amount) FROM orders"})
        refused = await client.call_tool("run_sql", {"sql": "DROP TABLE orders"})
        pairs = await client.call_tool(
            "run_sql",
            {
                "sql": (
                    "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e,"
                    " orders f"
                )
            },
        )
        empty = await client.call_tool("ask", {"question": " "})
        return tools, first, second, tables, shape, found, rows, refused, pairs, empty

    tools, first, second, tables, shape, found, rows, refused, pairs, empty = with_server(
        home, work, "--thread", "m"
    )
    assert set(tools) == {
        "ask",
        "list_tables",
        "describe_tables",
        "find_values",
        "run_sql",
        "new_conversation",
    }
    assert all(tool.title and "user sees" not in tool.description for tool in tools.values())
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert "30" in text_of(first)["answer"]
    assert text_of(first)["sql"]
    assert "avg" in text_of(second)["sql"][0].lower()  # the conversation went on
    assert text_of(tables)["total"] == 1
    assert text_of(shape)["tables"][0]["name"] == "orders"
    assert text_of(found)["matches"][0]["value"] == "customer 7"
    assert text_of(rows)["rows"] == [[14.5]]
    assert refused.is_error
    assert text_of(refused)["error"]["class"] == "query_refused"
    assert "costly" in text_of(pairs)["error"]["message"]
    assert text_of(empty)["error"]["class"] == "empty_message"
    assert "How many orders" in home.run("threads", "show", "m").stdout


def test_a_client_gets_rows_by_page_a_structured_answer_progress_and_a_new_conversation(
    home: Home,
) -> None:
    told: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        told.append(message)

    async def work(client: Client) -> tuple[Any, ...]:
        asked = await client.call_tool(
            "ask", {"question": "How many orders are there?"}, progress_callback=note
        )
        page = await client.call_tool(
            "run_sql", {"sql": "SELECT id FROM orders ORDER BY id", "rows": 3, "offset": 5}
        )
        beyond = await client.call_tool(
            "run_sql", {"sql": "SELECT id FROM orders", "offset": 1_001}
        )
        wrong = await client.call_tool("run_sql", {"sql": "SELECT id FROM orders", "rows": 0})
        fresh = await client.call_tool("new_conversation", {})
        lost = await client.call_tool("ask", {"question": "and in 2013?"})
        return client.server_info, asked, page, beyond, wrong, fresh, lost

    info, asked, page, beyond, wrong, fresh, lost = with_server(home, work, "--thread", "m")
    assert info.version
    assert asked.structured_content["columns"]
    assert (asked.structured_content["rows"], asked.structured_content["row_count"]) == ([[30]], 1)
    assert any("orders" in str(message) for message in told)
    assert (text_of(page)["row_count"], text_of(page)["shown"]) == (30, 3)
    # Ids begin at 1.
    assert (text_of(page)["offset"], text_of(page)["rows"]) == (5, [[6], [7], [8]])
    assert {name: text_of(beyond)[name] for name in ("row_count", "offset", "shown", "rows")} == {
        "row_count": 30,
        "offset": 1_001,
        "shown": 0,
        "rows": [],
    }
    assert wrong.is_error
    # Which it says once a conversation.
    assert "I am the built-in analyst" in lost.structured_content["answer"]
    assert "human: How many orders" not in home.run("threads", "show", fresh.content[0].text).stdout


def test_what_a_client_asks_is_summarised_by_the_conversations_model(home: Home) -> None:
    with open_model_server() as models:
        models.always(answer_or_summary)

        async def work(client: Client) -> None:
            for n in range(8):
                await client.call_tool("ask", {"question": f"question {n}"})

        file = (
            f"[model]\nname = 'gpt-4o-mini'\nbase_url = '{models.base_url}'\n[compaction]\npreset ="
            " 'rolling_chat'\n"
        )
        (home.folder / "longtable.toml").write_text(file)
        with_server(home, work, "--config", "longtable.toml")
        assert len([request for request in models.requests if not request.is_for_summary]) == 8
        written = [request for request in models.requests if request.is_for_summary]
    assert written
    assert all(
        request.tool_names == [] and request.body["max_completion_tokens"] > 0
        for request in written
    )


@pytest.mark.parametrize("option", ["--private", "--json", "--approve-sql=always"])
def test_it_does_not_start_with_what_it_cannot_honour(home: Home, option: str) -> None:
    done = home.run("mcp", option)
    assert done.returncode == 1
    option = option.partition("=")[0]
    assert option in done.stderr


def test_no_masked_value_goes_out_by_its_place_or_in_the_name_of_a_type(home: Home) -> None:
    file, policy = home.folder / "people.duckdb", home.folder / "policy.toml"
    with duckdb.connect(file) as connection:
        connection.execute(
            "CREATE TABLE customers (id INTEGER, email VARCHAR, mood ENUM('canary.two', 'ok'))"
        )
        connection.execute(
            "INSERT INTO customers VALUES (1, 'canary.one@example.com', 'canary.two')"
        )
    policy.write_text("columns.masked = ['customers.email', 'customers.mood']\n")
    asked = (
        "SELECT id, #2 FROM customers",
        "SELECT * FROM customers",
        "SELECT typeof(mood) FROM customers",
        "SELECT sum(mood) FROM customers",
    )

    async def work(client: Client) -> list[CallToolResult]:
        rows = [await client.call_tool("run_sql", {"sql": sql}) for sql in asked]
        return [*rows, await client.call_tool("describe_tables", {"names": ["customers"]})]

    answers = with_server(home, work, "--database", f"duckdb:///{file}", "--policy", str(policy))
    assert answers[0].is_error
    assert "write the column's name" in json.dumps(text_of(answers[0]))
    assert text_of(answers[1])["types"] == ["INTEGER", "•••", "•••"]
    assert "canary" not in " ".join(repr(answer) for answer in answers)


def test_rows_and_charts_of_an_answer_are_masked_for_the_client(tmp_path: Path) -> None:
    place = make_file(
        tmp_path,
        "sqlite",
        "CREATE TABLE people (n INTEGER, phone TEXT);"
        "INSERT INTO people VALUES (1, '+41 1'), (2, '+41 2');",
    )
    policy = TablePolicy(masked_columns=frozenset({"people.phone"}))
    database = Database.open(url(place), policy=policy)
    results = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    sql = call("run_sql", sql="SELECT phone, n FROM people ORDER BY n")
    bars = {"mark": "bar", "encoding": {"y": {"field": "phone"}, "x": {"field": "n"}}}
    model = script(sql, call("show_chart", "call_2", handle="r1", spec=bars), "There.")
    graph = build_graph(model=model, database=database, results=results)
    context = Context(model_limit=16_000)
    talk = Conversation(graph.compile(InMemorySaver()), "t", context=context, results=results)
    answer = talk.ask("plot it")
    assert shown_rows(talk, answer.queries[0]) == [["•••", 1], ["•••", 2]]
    text = asyncio.run(drawn_text(talk, answer.charts[0]))
    assert "•••" in text
    assert "+41" not in text
    assert "+41" in talk.chart("r1", answer.charts[0]["spec"]).text()
    database.close()
