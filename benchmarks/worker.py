"""What a worker costs beside the same database in process, in one run: python -m benchmarks.worker.

A small query, 10,000 rows of 8 columns, the time to open, the next query after a worker was killed
and after an idle one was ended, a million rows (by the clock, and by the processor time of both
processes together), 50 open databases, and what is imported. Only Linux has the files in /proc that
are read for memory and processor time.
"""

import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.goals import HEAD, row
from benchmarks.processes import children_seconds, descendants, memory_mib
from longtable.base.errors import DatabaseError
from longtable.tools.database import Database, Isolation, QueryLimits
from longtable.tools.worker_backend import WorkerBackend
from longtable.tools.workers.supervisor import SUPERVISOR, SURPLUS_SECONDS, processors

ROUNDS = 60
ROWS = 10_000
MANY_ROWS = 1_000_000
MANY_ROUNDS = 3
DATABASES = 50
MEGABYTES_GOAL = 60
"""The memory of one worker, at most."""
SMALL = "SELECT count(*) FROM sales WHERE region = 'north'"
ALL = "SELECT id, region, customer, amount, price, quantity, day, noted FROM sales"
WIDE = f"{ALL} LIMIT {ROWS}"
MANY = QueryLimits(rows=MANY_ROWS, bytes=2_000_000_000, seconds=600)
STUCK = {
    "sqlite": (
        "WITH RECURSIVE f(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM f) SELECT count(*) FROM f"
    ),
    "duckdb": (
        "SELECT length(replace(replace(repeat('x', 9000), 'x', repeat('y', 900)), 'y', repeat('z',"
        " 900)))"
    ),
}
"""Texts that no interrupt stops in time, so that the worker is killed, where the engine has one."""
IMPORTS = (
    "import time; s = time.perf_counter(); from longtable.tools.database import Database;"
    " {more}print(time.perf_counter() - s)"
)


def make(folder: Path, rows: int = 2 * ROWS) -> list[str]:
    """Write the same table for both engines, and return their URLs."""
    folder.mkdir(exist_ok=True)
    with duckdb.connect(str(folder / "sales.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE sales AS SELECT i AS id, ['north', 'south', 'east'][1 + i % 3] AS region,"
            " 'customer ' || i % 997 AS customer, (i * 7 % 10007)::DECIMAL(12, 2) AS amount, i /"
            " 7.0 AS price, i % 13 AS quantity, DATE '2024-01-01' + (i % 366)::INTEGER AS day,"
            " TIMESTAMP '2024-01-01' + INTERVAL (i) SECOND AS noted FROM"
            f" range({rows}) t(i)"
        )
        cells = connection.execute(
            "SELECT id, region, customer, amount::DOUBLE, price, quantity, day::TEXT, noted::TEXT"
            " FROM sales"
        ).fetchall()
    with sqlite3.connect(folder / "sales.db") as lite:
        lite.execute(
            "CREATE TABLE sales (id INTEGER, region TEXT, customer TEXT, amount REAL, price REAL,"
            " quantity INTEGER, day TEXT, noted TEXT)"
        )
        lite.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?, ?, ?, ?)", cells)
    lite.close()
    return [f"sqlite:///{folder / 'sales.db'}", f"duckdb:///{folder / 'sales.duckdb'}"]


def timed(run: Callable[[], object]) -> float:
    """Return the milliseconds that one run takes by the clock: a process that waits for another
    uses no time of its own.
    """
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1000


def side_by_side(here: Database, there: Database, sql: str, rounds: int) -> tuple[float, float]:
    """Return the medians in process and by a worker, asked in turn so that a busy machine slows
    both.
    """
    pairs = [(timed(lambda: here.run(sql)), timed(lambda: there.run(sql))) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(
        pair[1] for pair in pairs
    )


def opened(url: str, isolation: Isolation) -> float:
    """Return the milliseconds from opening to the first answer."""

    def first() -> None:
        with Database.open(url, isolation=isolation) as database:
            database.run("SELECT 1")

    return statistics.median(timed(first) for _ in range(5))


def open_and_close(url: str) -> None:
    """Open a database whose worker nobody waits for."""
    Database.open(url, isolation="process").close()


def after_a_kill(url: str, sql: str) -> tuple[float, float]:
    """Return the milliseconds of a query, and of the first one after a query that outlived its
    time.
    """
    with Database.open(url) as database:
        database.run(SMALL)
        before = statistics.median(timed(lambda: database.run(SMALL)) for _ in range(10))
        after = []
        for _ in range(5):
            try:
                database.run(sql, seconds=1.0)
            except DatabaseError:
                after.append(timed(lambda: database.run(SMALL)))
            time.sleep(1)  # for the next spare
    return before, statistics.median(after)


def processor_seconds() -> float:
    """Return the processor time that this process and its workers have used."""
    return time.process_time() + children_seconds(os.getpid())


def many_rows(url: str) -> list[tuple[float, float]]:
    """Return the seconds by the clock and those of the processors that a million rows take, in
    process and by a worker. The least of a few rounds is what other programs disturbed least.
    """
    in_process: list[tuple[float, float]] = []
    by_worker: list[tuple[float, float]] = []
    with (
        Database.open(url, isolation="none", limits=MANY) as here,
        Database.open(url, isolation="process", limits=MANY) as there,
    ):
        for database in (here, there):
            database.run(SMALL)
        time.sleep(1)  # the spare is up
        for _ in range(MANY_ROUNDS):
            for database, seconds in ((here, in_process), (there, by_worker)):
                used = processor_seconds()
                waited = timed(partial(count_rows, database)) / 1000
                seconds.append((waited, processor_seconds() - used))
    return [
        (min(one[0] for one in seconds), min(one[1] for one in seconds))
        for seconds in (in_process, by_worker)
    ]


def count_rows(database: Database) -> None:
    """Read a million rows."""
    assert len(database.run(ALL).rows) == MANY_ROWS


@dataclass(frozen=True)
class Fifty:
    """What many open databases of one process hold. Memory in megabytes, times in milliseconds."""

    opened: int
    """Worker processes before the first query."""
    processes: int
    """Worker processes after each database was asked."""
    memory: float
    first: float
    """The first query of a database if the spare is ready."""
    again: float
    """A query of a database whose idle worker was ended."""
    warm: float


def fifty_databases(url: str, folder: Path) -> Fifty:
    """Open copies of a database, ask each, and ask one of the first again."""
    kind, _, path = url.partition(":///")
    folder.mkdir()
    copies = [folder / f"{number}{Path(path).suffix}" for number in range(DATABASES)]
    with ExitStack() as stack:
        databases = []
        for copy in copies:
            shutil.copy(path, copy)
            databases.append(stack.enter_context(Database.open(f"{kind}:///{copy}")))
        time.sleep(1)
        opened = len(descendants(os.getpid()))
        first = []
        for database in databases:
            wait_for_spare()
            first.append(timed(lambda: database.run(SMALL)))  # noqa: B023  # runs at once
        time.sleep(SURPLUS_SECONDS * 2)
        processes = descendants(os.getpid())
        memory = memory_mib(processes)
        again = []
        for database in databases[:5]:
            assert isinstance(database.backend, WorkerBackend)
            assert not SUPERVISOR.workers_of(database.backend.workers.client)
            wait_for_spare()
            again.append(timed(lambda: database.run(SMALL)))  # noqa: B023
        warm = [timed(lambda: databases[4].run(SMALL)) for _ in range(5)]
    return Fifty(
        opened=opened,
        processes=len(processes),
        memory=memory,
        first=statistics.median(first),
        again=statistics.median(again),
        warm=statistics.median(warm),
    )


def wait_for_spare() -> None:
    """Wait until a spare is ready."""
    while not [one for one in list(SUPERVISOR.workers) if one.owner is None and one.ready]:
        time.sleep(0.01)


def imported(more: str) -> float:
    """Return the milliseconds that importing takes in a new process."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", IMPORTS.format(more=more)],
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(5)
    ]
    return statistics.median(float(run.stdout) for run in runs) * 1000


def table(engine: str, url: str) -> None:
    """Print the milliseconds of one engine."""
    with (
        Database.open(url, isolation="none") as here,
        Database.open(url, isolation="process") as there,
    ):
        rows = []
        for name, sql, rounds in (
            ("a small query, warm", SMALL, ROUNDS),
            (f"{ROWS:,} rows of 8 columns", WIDE, ROUNDS // 3),
        ):
            side_by_side(here, there, sql, 3)
            rows.append((name, *side_by_side(here, there, sql, rounds)))
    rows.append(("opening, to the first answer", opened(url, "none"), opened(url, "process")))
    rows.append(("the query after a kill", *after_a_kill(url, STUCK[engine])))
    for name, alone, isolated in rows:
        print(
            f"  {engine + ': ' + name:<44}{alone:>12.2f}{isolated:>12.2f}{isolated - alone:>10.2f}"
        )
    closing = timed(partial(open_and_close, url))
    print(f"  {engine + ': Database.open alone':<44}{'':>12}{closing:>12.2f}")


def goals(engine: str, url: str, large: str, folder: Path) -> list[str]:
    """Return the rows of the table of goals for one engine."""
    (alone, alone_used), (isolated, isolated_used) = many_rows(large)
    many = fifty_databases(url, folder / engine)
    print(
        f"  {engine}: a million rows of 8 columns in process {alone:.2f} s ({alone_used:.2f} s of"
        f" processor), by a worker {isolated:.2f} s ({isolated_used:.2f} s)"
    )
    print(
        f"  {engine}: {DATABASES} databases open {many.opened} processes; a first query takes"
        f" {many.first:.1f} ms, one whose idle worker was ended {many.again:.1f} ms, the next"
        f" {many.warm:.1f} ms"
    )
    at_most = processors() + 1
    return [
        row(f"{engine}: a million rows, by the clock, x in process", isolated / alone, 1.3),
        row(f"{engine}: the same, of processor", isolated_used / alone_used, 1.3),
        row(f"{engine}: processes of {DATABASES} databases", many.processes, at_most),
        row(f"{engine}: their memory, MB", many.memory, at_most * MEGABYTES_GOAL),
    ]


def main() -> None:
    """Print the tables."""
    print("a worker beside the same database in process, milliseconds (medians)")
    print(f"  {'':<44}{'in process':>12}{'worker':>12}{'more':>10}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = make(folder / "small")
        for url in small:
            table(url.partition(":")[0], url)
        if sys.platform == "linux":
            large = make(folder / "large", MANY_ROWS)
            rows = []
            for url, other in zip(small, large, strict=True):
                rows += goals(url.partition(":")[0], url, other, folder)
            print("\n".join(["", HEAD, *rows, ""]))
    print(
        f"  importing Database: {imported(''):.0f}; with the wall, in process:"
        f" {imported('import longtable.tools.sql.wall; '):.0f}"
    )


if __name__ == "__main__":
    main()
