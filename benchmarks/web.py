"""The web chat beside the command line: start, long threads, first words, many readers.
`python -m benchmarks.web`.

`longtable web` runs as a process of its own over a small shop, with the built-in analyst. Times are
medians of a few runs, in seconds.
"""

import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape
from pathlib import Path

import httpx

from benchmarks.processes import own_seconds
from longtable.analyst.model import BuiltInAnalyst
from longtable.graph import open_conversation

RUNS = 5
TURNS = 1_000
READERS = 10
FOLLOWED = 25
"""Turns that readers follow: Linux counts processor time in hundredths of a second."""
QUESTION = "How many orders are there?"
PROGRAM = Path(sys.executable).parent / "longtable"


def environment_of(home: Path) -> dict[str, str]:
    """Return the environment of a program in a home of its own, over its small shop."""
    return {
        **os.environ,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LONGTABLE_DATABASE": f"sqlite:///{home / 'shop.db'}",
        "LONGTABLE_STORE": f"sqlite:///{home / 'threads.db'}",
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def serving(
    home: Path, *options: str, database: str = ""
) -> Iterator[tuple[str, float, "subprocess.Popen[str]"]]:
    """Run `longtable web`, over a small shop if no database is named. Yield its address, when the
    command was given, and its process.
    """
    begun = time.perf_counter()
    environment = environment_of(home)
    if database:
        environment["LONGTABLE_DATABASE"] = database
    process = subprocess.Popen(
        [str(PROGRAM), "web", "--port", "0", *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _address(process), begun, process
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    for line in process.stdout:
        address = re.search(r"http://[\w.:]+", line)
        if address:
            return address.group()
    raise SystemExit("longtable web did not start")


class Page:
    """A browser without pictures and scripts."""

    def __init__(self, address: str) -> None:
        self.http = httpx.Client(base_url=address, timeout=60)

    def open(self, path: str = "/") -> str:
        """Open a page, and return its path."""
        answer = self.http.get(path, follow_redirects=True)
        answer.raise_for_status()
        token = re.search(r'"X-Longtable-Token": "([^"]+)"', unescape(answer.text))
        self.http.headers["X-Longtable-Token"] = token[1] if token else ""
        return str(answer.url.path)

    def ask(self, thread: str, question: str = QUESTION) -> tuple[float, int]:
        """Ask a question, and return the seconds to the first words, and the bytes of the largest
        message of the stream.
        """
        begun = time.perf_counter()
        first = 0.0
        self.http.post(f"{thread}/ask", data={"question": question}).raise_for_status()
        whole = ""
        with self.http.stream("GET", f"{thread}/events") as stream:
            for text in stream.iter_text():
                whole += text
                has_words = 'class="tail"' in whole or 'class="md"' in whole
                if has_words and not first:
                    first = time.perf_counter() - begun
                if "event: done" in whole:
                    break
        largest = max(len(message) for message in whole.split("\n\n"))
        return first, largest


def first_words_in_chat(home: Path) -> float:
    """Return the seconds to the first words of a turn of `longtable chat`."""
    seconds: list[float] = []
    with subprocess.Popen(
        [str(PROGRAM), "chat", "--json"],
        env={**environment_of(home), "LONGTABLE_STORE": "memory://"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(RUNS + 1):
            begun = time.perf_counter()
            process.stdin.write(f"{QUESTION}\n")
            process.stdin.flush()
            first = 0.0
            for line in process.stdout:
                if not first and '"token"' in line:
                    first = time.perf_counter() - begun
                if '"answer"' in line:
                    break
            seconds.append(first)
        process.stdin.close()
    return statistics.median(seconds[1:])  # the first turn waits for what is loaded


def long_thread(home: Path, turns: int) -> None:
    """Keep a thread of many turns in the store."""
    with open_conversation(
        f"sqlite:///{home / 'shop.db'}",
        model=BuiltInAnalyst(),
        store=f"sqlite:///{home / 'threads.db'}",
        thread="long",
    ) as conversation:
        for _ in range(turns):
            conversation.ask(QUESTION)


def opens(page: Page, path: str) -> float:
    """Return the seconds that a page takes to open."""
    seconds: list[float] = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        page.http.get(path).raise_for_status()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def with_readers(page: Page, address: str, process: "subprocess.Popen[str]", readers: int) -> float:
    """Return the processor time of some turns that so many readers follow."""
    thread = page.open()
    page.ask(thread)
    before = own_seconds(process.pid)
    for _ in range(FOLLOWED):
        page.http.post(f"{thread}/ask", data={"question": QUESTION})
        others = [threading.Thread(target=_read, args=(address, thread)) for _ in range(readers)]
        for each in others:
            each.start()
        for each in others:
            each.join(60)
    return own_seconds(process.pid) - before


def _read(address: str, thread: str) -> None:
    with (
        httpx.Client(base_url=address, timeout=60) as client,
        client.stream("GET", f"{thread}/events") as stream,
    ):
        for text in stream.iter_text():
            if "event: done" in text:
                return


def main(turns: int = TURNS) -> None:
    """Print what was measured, with the targets."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with closing(sqlite3.connect(home / "shop.db")) as connection, connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount REAL)")
            connection.executemany("INSERT INTO orders (amount) VALUES (?)", [(1.5,)] * 23)
        long_thread(home, turns)
        chat = first_words_in_chat(home)
        with serving(home) as (address, begun, process):
            page = Page(address)
            page.open()
            start = time.perf_counter() - begun
            long = opens(page, "/threads/long")
            panel = opens(page, "/threads/long/panel")
            thread = page.open()
            page.ask(thread)
            asked = [page.ask(thread) for _ in range(RUNS)]
            first = statistics.median(seconds for seconds, _ in asked)
            one = with_readers(page, address, process, 1)
            many = with_readers(page, address, process, READERS)
            page.http.close()
    print("| the web chat | seconds | target |\n|---|---|---|")
    print(f"| page after the command | {start:.2f} | 2.0 |")
    print(f"| a thread of {turns:,} turns | {long:.2f} | 1.0 |")
    print(f"| what the model sees of that thread | {panel:.2f} | |")
    print(f"| first words, later than `longtable chat` | {first - chat:.3f} | 0.1 |")
    print(f"| processor time of {READERS} readers by that of one | {many / one:.2f} | 1.3 |")
    print(f"| largest update, bytes | {max(size for _, size in asked):,} | |")


if __name__ == "__main__":
    main()
