"""Run 40 turns over two instances of Aegra, kill one of them with SIGKILL, and see whether a turn
is lost.

    python -m benchmarks.aegra --aegra /path/to/environment/bin/aegra

Needs an environment of Python 3.12 or newer that has Aegra and this project
(`pip install aegra-cli` and `pip install -e .`), `redis-server`, and the PostgreSQL of the dev
extra. Everything listens on loopback or in a folder of its own, and ends here.
"""

import argparse
import asyncio
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.support.postgres import postgres_server, stop_postgres_server

ROOT = Path(__file__).parents[2]
THREADS = 8
TURNS = 5
ORDERS = 400
KILL_AFTER = 12
"""Turns answered when one instance is killed."""
START_S = 90.0
WAIT_S = 240.0
LEASES = {
    "LEASE_DURATION_SECONDS": "9",
    "HEARTBEAT_INTERVAL_SECONDS": "3",
    "REAPER_INTERVAL_SECONDS": "3",
}
"""A dead instance's runs are taken over after nine seconds instead of thirty."""
CONTEXT: Any = {"model_limit": 16_000}


def main() -> int:
    """Run it; say what is missing, or what was lost."""
    parser = argparse.ArgumentParser(description="Two instances of Aegra, one of them killed.")
    parser.add_argument(
        "--aegra",
        default=shutil.which("aegra"),
        help="the program `aegra` of an environment that has this project, too",
    )
    aegra = parser.parse_args().aegra
    redis = shutil.which("redis-server")
    if missing := _missing(aegra, redis):
        print(missing, file=sys.stderr)
        return 2
    try:
        with (
            tempfile.TemporaryDirectory() as home,
            running_redis(Path(home), str(redis)) as redis_url,
        ):
            environment = _environment(Path(home), redis_url, postgres_server().create())
            with (
                instance(str(aegra), Path(home), environment) as first,
                instance(str(aegra), Path(home), environment) as second,
            ):
                return asyncio.run(talk(first, second))
    finally:
        stop_postgres_server()


def _missing(aegra: str | None, redis: str | None) -> str:
    if not aegra or not Path(aegra).is_file():
        return (
            "Aegra is not installed: python3.12 -m venv E; E/bin/pip install aegra-cli -e .; then"
            " --aegra E/bin/aegra"
        )
    version = subprocess.run(
        [Path(aegra).parent / "python", "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if [int(part) for part in version] < [3, 12]:
        return (
            f"Aegra needs Python 3.12 or newer, its environment has {'.'.join(version) or 'none'}"
        )
    return "" if redis else "redis-server is missing; on Debian: apt install redis-server"


def _environment(home: Path, redis_url: str, database_url: str) -> dict[str, str]:
    with closing(sqlite3.connect(home / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n) for n in range(ORDERS)])
    ours = {
        "DATABASE_URL": database_url,
        "REDIS_BROKER_ENABLED": "true",
        "REDIS_URL": redis_url,
        "AUTH_TYPE": "noop",
        **LEASES,
    }
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LONGTABLE_", "LANGSMITH_", "LANGCHAIN_", "PYTHON"))
    }
    shop = {
        "LONGTABLE_DATABASE": f"sqlite:///{home}/shop.db",
        "LONGTABLE_RESULTS": str(home / "results"),
    }
    return {**inherited, **ours, **shop, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}


# -- what runs -------------------------------------------------------------------------------------


class Instance:
    """One server."""

    def __init__(self, url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.url = url
        self.process = process
        self.log = log

    def kill(self) -> None:
        """End it and its children at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)


@contextmanager
def instance(aegra: str, home: Path, environment: dict[str, str]) -> Iterator[Instance]:
    """Start a server and wait until it is healthy."""
    port = _free_port()
    log = home / f"{port}.log"
    command = [
        aegra,
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--config",
        str(ROOT / "langgraph.json"),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    server = Instance(f"http://127.0.0.1:{port}", process, log)
    try:
        _await(lambda: httpx.get(f"{server.url}/health", timeout=2).status_code == 200, server)
        yield server
    finally:
        server.kill()


@contextmanager
def running_redis(home: Path, redis: str) -> Iterator[str]:
    """Start a Redis that keeps nothing."""
    port = _free_port()
    command = [
        redis,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(home),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(ready: Any, server: Instance) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            if ready():
                return
        except httpx.HTTPError:
            pass
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Aegra did not start:\n{server.log.read_text()[-3_000:]}")
        time.sleep(0.3)


# -- the talk --------------------------------------------------------------------------------------


async def talk(first: Instance, second: Instance) -> int:
    """Talk on all threads at once, each turn through the other instance; kill the second under
    way.
    """
    began = time.monotonic()
    answered = Counter[str]()
    clients = [get_client(url=first.url), get_client(url=second.url)]
    ids = [str((await clients[0].threads.create())["thread_id"]) for _ in range(THREADS)]

    async def killer() -> None:
        while answered.total() < KILL_AFTER:
            await asyncio.sleep(0.05)
        second.kill()
        print(f"killed one of two instances after {answered.total()} of {THREADS * TURNS} turns")

    async def one(place: int, thread_id: str) -> None:
        for turn in range(TURNS):
            await _ask(clients, (place + turn) % 2, thread_id, turn)
            answered[thread_id] += 1

    await asyncio.wait_for(
        asyncio.gather(killer(), *(one(place, thread_id) for place, thread_id in enumerate(ids))),
        WAIT_S,
    )
    lost = [
        f"{thread_id}: {texts}"
        for thread_id in ids
        if not _is_whole(texts := await _said(clients[0], thread_id))
    ]
    used = httpx.get(f"{first.url}/longtable/threads/{ids[0]}/usage?by=thread", timeout=20)
    calls = (
        [spent["calls"] for spent in used.json()["usage"]] if used.status_code == 200 else used.text
    )
    print(f"our route for usage counts in the first thread: {calls} calls in {TURNS} turns")
    print(
        f"{answered.total()} turns answered in {time.monotonic() - began:.0f} s, {len(lost)}"
        " threads that lack or double something"
    )
    for text in lost:
        print(text, file=sys.stderr)
    return bool(lost)


async def _ask(clients: list[LangGraphClient], place: int, thread_id: str, turn: int) -> None:
    """Start a turn through one instance, through the other one where it is gone, and wait until it
    is answered.
    """
    body: Any = {
        "messages": [{"type": "human", "id": f"{thread_id}-{turn}", "content": _question(turn)}]
    }
    for client in (clients[place], clients[0]):
        try:
            await client.runs.create(thread_id, "longtable", input=body, context=CONTEXT)
            break
        except httpx.HTTPError:
            # Not known whether it was taken in: sent again, the same id is the same message.
            continue
    while len(await _said(clients[0], thread_id)) < 2 * (turn + 1):
        await asyncio.sleep(0.2)


async def _said(client: LangGraphClient, thread_id: str) -> list[str]:
    """Return the questions and the answers that stand in a thread, in their order."""
    values: Any = (await client.threads.get_state(thread_id))["values"] or {}
    return [
        str(message["content"])
        for message in values.get("messages", [])
        if message["type"] == "human" or (message["type"] == "ai" and not message.get("tool_calls"))
    ]


def _question(turn: int) -> str:
    return f"How many orders have a price above {turn}?"


def _is_whole(texts: list[str]) -> bool:
    """Whether each question is there once, in order, behind each its answer, with the number that
    is right.
    """
    if len(texts) != 2 * TURNS:
        return False
    return all(
        texts[2 * turn] == _question(turn) and str(ORDERS - 1 - turn) in texts[2 * turn + 1]
        for turn in range(TURNS)
    )


if __name__ == "__main__":
    sys.exit(main())
