"""What a server's routes take over many threads: list, search, rename, usage by day.
`python -m benchmarks.routes [THREADS]`.

`langgraph dev` on loopback, its threads in memory, one turn in each by a model that answers at
once. A route reads a server's threads through the server's own API: search and usage send two
requests a thread. A page and a rename are asked for five times.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_client

from tests.app.test_studio import running, said

THREADS = 1_000
AT_ONCE = 16
OWNER = {"x-longtable-owner": "bench"}
TIMEOUT = 3_600


async def fill(url: str, count: int) -> list[str]:
    """Run one turn in each of so many threads and return their ids."""
    client = get_client(url=url)
    free = asyncio.Semaphore(AT_ONCE)
    context: Any = {"owner": "bench", "model_limit": 8_000}

    async def talk(number: int) -> str:
        async with free:
            thread = await client.threads.create()
            question = said(f"question {number} of the {'north' if number % 2 else 'south'}")
            await client.runs.wait(thread["thread_id"], "scripted", input=question, context=context)
            return str(thread["thread_id"])

    return await asyncio.gather(*map(talk, range(count)))


def measure(url: str, thread_ids: list[str]) -> Iterator[tuple[str, float]]:
    """Yield each route with its seconds, the median where it was asked several times."""
    last = max(0, len(thread_ids) - 100)
    with httpx.Client(base_url=f"{url}/longtable", headers=OWNER, timeout=TIMEOUT) as http:
        for name, times, method, path, body in (
            ("the first page of threads", 5, "GET", "threads", None),
            ("the last page of threads", 5, "GET", f"threads?offset={last}", None),
            ("rename one", 5, "PATCH", f"threads/{thread_ids[0]}", {"title": "renamed"}),
            ("usage by day", 1, "GET", "usage?by=day", None),
            ("search", 1, "GET", "search?q=north", None),
        ):
            runs = []
            for _ in range(times):
                start = time.perf_counter()
                http.request(method, path, json=body).raise_for_status()
                runs.append(time.perf_counter() - start)
            yield name, statistics.median(runs)


def main() -> None:
    """Print a row for each route."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else THREADS
    with (
        tempfile.TemporaryDirectory(prefix="longtable-routes-") as folder,
        running(Path(folder), {"scripted": "tests.support.served:graph"}) as url,
    ):
        thread_ids = asyncio.run(fill(url, count))
        print(f"| route over {count:,} threads | seconds |\n|---|---:|")
        for name, seconds in measure(url, thread_ids):
            print(f"| {name} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
