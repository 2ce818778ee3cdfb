"""Throw each text of `tests/tools/workers/bombs.py` at a database, and look what it does to others:
`python -m evals.bombs`.

From one conversation the bombs come one after another, while eight honest ones ask; then from all
at once. Nobody honest may fail, but by a typed "busy" while all throw; their median may be three
times what it is without bombs; the memory of this process may grow by 100 MB; a second after the
end no thread, process or file of ours may be left.

`--each` throws each bomb in a process of its own, in process without a worker or with one
(`--isolation`), which may take 3 GB and 20 seconds. Of each: seconds to the answer, the longest
time that the process's other threads stood still, its processor time in the two seconds after the
answer, its most memory.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longtable.base.errors import ConnectionWaitError, DatabaseError
from longtable.tools.database import Database, Isolation, QueryLimits
from longtable.tools.toolset import run_sql
from tests.support.mariadb import stop_mariadb_server
from tests.support.postgres import stop_postgres_server
from tests.tools.databases import DIALECTS, make, url
from tests.tools.workers.bombs import BOMBS

LIMITS = QueryLimits(seconds=2.0, memory_bytes=200_000_000)
HONEST = (
    "SELECT count(*) FROM people",
    "SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY n DESC, city",
    "SELECT p.name, b.name FROM people p LEFT JOIN people b ON b.id = p.boss_id",
    "SELECT sum(n), avg(n), max(n) FROM numbers WHERE n > 100",
    "SELECT name FROM people WHERE salary > (SELECT avg(salary) FROM people)",
    "WITH t AS (SELECT n % 7 AS m, n FROM numbers) SELECT m, count(*) FROM t GROUP BY m ORDER BY m",
    "SELECT 名称 FROM 客户 WHERE 城市 = '上海'",
    "SELECT a.n FROM numbers a JOIN numbers b ON b.n = a.n ORDER BY a.n LIMIT 50",
)
THINK_SECONDS = 0.2
"""An honest conversation waits so long between its queries."""
ALONE_SECONDS = 5.0
MOST_GROWTH = 100_000_000
MOST_SLOWER = 3.0
MOST_BYTES = 3_000_000_000
MOST_SECONDS = 20.0
BEAT = 0.005
AFTER = 2.0
"""Seconds to look on after the answer."""


def resident(pid: int | str = "self") -> int:
    """Return the bytes that a process holds in memory, 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


@dataclass
class Pulse:
    """What this process felt of it all: the longest time that its other threads stood still, in
    seconds, and its most bytes.
    """

    pause: float = 0.0
    peak: int = 0


@contextmanager
def beating() -> Iterator[Pulse]:
    """Measure this process while something happens in it."""
    pulse, ended = Pulse(), threading.Event()

    def beat() -> None:
        last = time.monotonic()
        while not ended.wait(BEAT):
            pulse.peak = max(pulse.peak, resident())
            now = time.monotonic()
            pulse.pause = max(pulse.pause, now - last - BEAT)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield pulse
    finally:
        ended.set()
        thread.join()


def outcome_of(database: Database, sql: str) -> str:
    """Run one text, and name what came of it."""
    try:
        return f"{run_sql(database, sql)[1].row_count} rows"
    except DatabaseError as error:
        return f"{type(error).__name__}: {str(error)[:70]}"
    except BaseException as error:  # what nobody promised is what is looked for
        return f"UNTYPED {type(error).__name__}: {str(error)[:70]}"


@dataclass
class Honest:
    """What became of the honest conversations' queries."""

    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    def talk(self, database: Database, sql: str, until: threading.Event) -> None:
        """Ask the same question again and again."""
        while not until.wait(THINK_SECONDS):
            started = time.monotonic()
            outcome = outcome_of(database, sql)
            self.seconds.append(time.monotonic() - started)
            if not outcome.endswith(" rows"):
                self.failures[outcome] += 1

    @property
    def median(self) -> float:
        """Return the median time of a query, in milliseconds."""
        return statistics.median(self.seconds) * 1000


@contextmanager
def talking(database: Database, sqls: Sequence[str] = HONEST) -> Iterator[Honest]:
    """Have honest conversations ask while something else happens."""
    honest, ended = Honest(), threading.Event()
    threads = [threading.Thread(target=honest.talk, args=(database, sql, ended)) for sql in sqls]
    for thread in threads:
        thread.start()
    try:
        yield honest
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def children() -> set[int]:
    """Return the processes that this one began and that have not been waited for."""
    ids: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        ids |= {int(pid) for pid in (task / "children").read_text().split()}
    return ids


def belongings() -> dict[str, set[Any]]:
    """Return what this process has: threads, child processes, open files, files in the folder for
    temporary ones.
    """
    gc.collect()
    return {
        "threads": {thread.name for thread in threading.enumerate()},
        "processes": children(),
        "open files": {name for name in open_files() if not name.startswith(("/proc", "/dev"))},
        "files": set(Path(tempfile.gettempdir()).iterdir()),
    }


def open_files() -> Iterator[str]:
    """Yield what the open files of this process are."""
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder's own, which is closed by now
            yield str(link.readlink())


def left_over(before: dict[str, set[Any]], seconds: float = 1.0) -> dict[str, set[Any]]:
    """Return what is there beyond `before`, a second later at most."""
    until = time.monotonic() + seconds
    while True:
        more = {
            name: now - before[name] for name, now in belongings().items() if now - before[name]
        }
        if not more or time.monotonic() > until:
            return more
        time.sleep(0.05)


def prove(
    place: str,
    dialect: str,
    names: Sequence[str],
    *,
    alone_seconds: float = ALONE_SECONDS,
    limits: QueryLimits = LIMITS,
) -> list[str]:
    """Throw the bombs from one conversation, then from all at once; print what was measured and
    return what is not as promised.
    """
    faults: list[str] = []
    before = belongings()
    database = Database.open(place, limits=limits, isolation="process")
    for sql in HONEST:
        run_sql(database, sql)
    with talking(database) as alone:
        time.sleep(alone_seconds)
    size = resident()
    with beating() as pulse:
        with talking(database) as beside:
            outcomes = [outcome_of(database, BOMBS[dialect][name]) for name in names]
        with talking(database, HONEST[:2]) as crowded:
            parts = [names[start::8] for start in range(8)]
            thrown: list[str] = []
            threads = [
                threading.Thread(
                    target=lambda part=part: thrown.extend(
                        outcome_of(database, BOMBS[dialect][name]) for name in part
                    )
                )
                for part in parts
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    database.close()
    left = left_over(before)
    growth = pulse.peak - size
    print(f"{dialect}: {len(names)} bombs, then from eight conversations at once")
    print(
        f"  honest queries: alone {alone.median:.1f} ms, beside one {beside.median:.1f} ms, beside"
        f" eight {crowded.median:.1f} ms (medians)"
    )
    print(
        f"  most memory of this process: +{growth / 1e6:.0f} MB; its threads stood still for"
        f" {pulse.pause * 1000:.0f} ms at most"
    )
    print(
        "  outcomes:"
        f" {dict(Counter(outcome.partition(':')[0] for outcome in [*outcomes, *thrown]))}"
    )
    faults += [f"an honest query failed: {text}" for text in [*alone.failures, *beside.failures]]
    busy = (ConnectionWaitError.__name__,)
    faults += [
        f"an honest query failed while all threw: {text}"
        for text in crowded.failures
        if not text.startswith(busy)
    ]
    faults += [
        f"a bomb's outcome has no type: {text}"
        for text in [*outcomes, *thrown]
        if text.startswith("UNTYPED")
    ]
    if beside.median > MOST_SLOWER * alone.median:
        faults.append(f"honest queries took {beside.median / alone.median:.1f} times as long")
    if growth > MOST_GROWTH:
        faults.append(f"the memory of this process grew by {growth / 1e6:.0f} MB")
    faults += [f"left over: {what}: {sorted(map(str, names))[:5]}" for what, names in left.items()]
    return [f"{dialect}: {fault}" for fault in faults]


def throw(place: str, dialect: str, name: str, isolation: Isolation) -> None:
    """Run one bomb here, and print what came of it as JSON."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES * 2, MOST_BYTES * 2))
    with Database.open(place, limits=LIMITS, isolation=isolation) as database:
        database.catalog()
        with beating() as pulse:
            started = time.monotonic()
            outcome = outcome_of(database, BOMBS[dialect][name])
            seconds = time.monotonic() - started
            used = time.process_time()
            time.sleep(AFTER)
            used = max(0.0, time.process_time() - used - 0.02)
    print(
        json.dumps({"outcome": outcome, "seconds": seconds, "pause": pulse.pause, "after": used}),
        flush=True,
    )
    os._exit(0)  # a thread may still be at work


def measured(place: str, dialect: str, name: str, isolation: Isolation) -> dict[str, Any]:
    """Throw one bomb in a child process, killed when it takes too much."""
    command = [sys.executable, "-m", "evals.bombs", "--throw", place, dialect, name, isolation]
    started, peak, killed = time.monotonic(), 0, ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        while child.poll() is None:
            peak = max(peak, resident(child.pid))
            killed = (
                "took 3 GB"
                if peak > MOST_BYTES
                else "took 20 s"
                if time.monotonic() - started > MOST_SECONDS
                else ""
            )
            if killed:
                child.kill()
                break
            time.sleep(0.01)
        printed = child.stdout.read() if child.stdout else ""
    nothing = {
        "outcome": f"KILLED: {killed or child.returncode}",
        "seconds": MOST_SECONDS,
        "pause": 0.0,
        "after": 0.0,
    }
    outcome: dict[str, Any] = json.loads(printed) if printed else nothing
    return {**outcome, "mb": peak // 1_000_000}


def main() -> None:
    """Prove what is promised, or print a line a bomb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--only", default="", help="bombs whose names hold this")
    parser.add_argument("--each", action="store_true", help="each bomb in a process of its own")
    parser.add_argument("--isolation", choices=("process", "none"), default="process")
    parser.add_argument("--throw", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.throw:
        throw(*options.throw)
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
        try:
            for dialect in options.dialect or DIALECTS:
                place = url(make(Path(folder), dialect))
                names = [each for each in BOMBS[dialect] if options.only in each]
                for name in names if options.each else ():
                    figures = measured(place, dialect, name, options.isolation)
                    line = (
                        f"{figures['seconds']:6.2f} s {figures['pause']:6.2f} s"
                        f" {figures['after']:6.2f} s {figures['mb']:6} MB"
                    )
                    print(f"{dialect:9} {name:42} {line}  {figures['outcome']}", flush=True)
                # Ours alone: what is left there is ours.
                tempfile.tempdir = os.environ["TMPDIR"] = temporary
                if not options.each:
                    faults += prove(place, dialect, names)
        finally:
            stop_postgres_server()
            stop_mariadb_server()
    print("\n".join(faults) or "all as promised")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
