"""LangGraph's own server runs the graph: one turn through its SDK, over real HTTP on loopback."""

import asyncio
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
QUIET = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "1"}
SECONDS = 90


def environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LONGTABLE_", "LANGSMITH_", "LANGCHAIN_"))}
    return {**kept, **QUIET, "LONGTABLE_DATABASE": f"sqlite:///{folder}/shop.db", "HOME": str(folder)}


def make_shop(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n / 2) for n in range(23)])


def test_the_configuration_is_valid() -> None:
    done = subprocess.run([BIN / "langgraph", "validate"], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start `langgraph dev` on a free port of loopback, wait until it answers, end it and its children afterwards."""
    folder = tmp_path_factory.mktemp("studio")
    make_shop(folder)
    (folder / "langgraph.json").write_text((ROOT / "langgraph.json").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(BIN / "langgraph"),
        "dev",
        "--config",
        "langgraph.json",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--no-browser",
        "--no-reload",
    ]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=out, stderr=out, start_new_session=True)
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
                thread["thread_id"], "longtable", input=given, stream_mode=["messages-tuple", "custom", "updates"]
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
    [rows] = [data["rows"] for event, data in parts if event == "custom" and data["type"] == "query_finished" and "23" in str(data["rows"])]
    assert rows == [[23]]
    tokens = [data[0]["content"] for event, data in parts if event == "messages" and data[1].get("langgraph_node") == "respond"]
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
