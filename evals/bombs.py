"""Throw each text of `tests/tools/bombs.py` at a database in a process of its own, and say what it took: `python -m evals.bombs`.

The process may take 3 GB and 20 seconds; then it is killed. Of each: seconds
to the answer, longest time that its other threads stood still, processor time in the two seconds after the answer, most memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longtable.base.errors import DatabaseError
from longtable.tools.database import Database, QueryLimits
from tests.support.postgres import stop_postgres_server
from tests.tools.bombs import BOMBS
from tests.tools.databases import DIALECTS, make, url

LIMITS = QueryLimits(seconds=2.0, memory_bytes=200_000_000)
MOST_BYTES = 3_000_000_000
MOST_SECONDS = 20.0
BEAT = 0.005
AFTER = 2.0
"""Seconds to look on after the answer."""


def resident(pid: int) -> int:
    """Return the bytes that a process holds in memory, 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


@contextmanager
def beating() -> Iterator[list[float]]:
    """Measure how long this process's threads stand still: a list of one number of seconds, the longest pause."""
    longest, ended = [0.0], threading.Event()

    def beat() -> None:
        last = time.monotonic()
        while not ended.wait(BEAT):
            now = time.monotonic()
            longest[0] = max(longest[0], now - last - BEAT)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield longest
    finally:
        ended.set()
        thread.join()


def throw(place: str, dialect: str, name: str) -> None:
    """Run one bomb here, and print what came of it as JSON."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES * 2, MOST_BYTES * 2))
    with Database.open(place, limits=LIMITS) as database:
        database.catalog()
        with beating() as pause:
            started = time.monotonic()
            try:
                outcome = f"{database.run(BOMBS[dialect][name]).row_count} rows"
            except DatabaseError as error:
                outcome = f"{type(error).__name__}: {str(error)[:70]}"
            except BaseException as error:  # what nobody promised is what is looked for
                outcome = f"UNTYPED {type(error).__name__}: {str(error)[:70]}"
            seconds = time.monotonic() - started
            used = time.process_time()
            time.sleep(AFTER)
            used = time.process_time() - used - 0.02
    print(json.dumps({"outcome": outcome, "seconds": seconds, "pause": pause[0], "after": max(0.0, used)}), flush=True)
    os._exit(0)  # a thread may still be at work


def measured(place: str, dialect: str, name: str) -> dict[str, Any]:
    """Throw one bomb in a child process, killed when it takes too much."""
    command = [sys.executable, "-m", "evals.bombs", "--throw", place, dialect, name]
    started, peak, killed = time.monotonic(), 0, ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        while child.poll() is None:
            peak = max(peak, resident(child.pid))
            killed = "took 3 GB" if peak > MOST_BYTES else "took 20 s" if time.monotonic() - started > MOST_SECONDS else ""
            if killed:
                child.kill()
                break
            time.sleep(0.01)
        printed = child.stdout.read() if child.stdout else ""
    found: dict[str, Any] = (
        json.loads(printed)
        if printed
        else {"outcome": f"KILLED: {killed or child.returncode}", "seconds": MOST_SECONDS, "pause": 0.0, "after": 0.0}
    )
    return {**found, "mb": peak // 1_000_000}


def main() -> None:
    """Print a line a bomb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--only", default="", help="bombs whose names hold this")
    parser.add_argument("--throw", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.throw:
        throw(*options.throw)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for dialect in options.dialect or DIALECTS:
                place = url(make(Path(folder), dialect))
                for name in (each for each in BOMBS[dialect] if options.only in each):
                    told = measured(place, dialect, name)
                    line = f"{told['seconds']:6.2f} s {told['pause']:6.2f} s {told['after']:6.2f} s {told['mb']:6} MB"
                    print(f"{dialect:9} {name:42} {line}  {told['outcome']}", flush=True)
    finally:
        stop_postgres_server()


if __name__ == "__main__":
    main()
