"""Start instances of Aegra and a Redis for them, on loopback; they end with their blocks."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
START_S = 90.0


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

    def is_healthy(self) -> bool:
        """Return whether it answers."""
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False


@contextmanager
def running_instance(aegra: str, home: Path, environment: dict[str, str]) -> Iterator[Instance]:
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
        _wait_for(server.is_healthy, server)
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


def _wait_for(ready: Callable[[], bool], server: Instance) -> None:
    deadline = time.monotonic() + START_S
    while not ready():
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Aegra did not start:\n{server.log.read_text()[-3_000:]}")
        time.sleep(0.3)
