"""What a worker costs beside the same database in process, in one run: python -m benchmarks.worker.

A small query, 10,000 rows of 8 columns, the time to open, the next query after a worker was killed,
and what is imported.
"""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

from longtable.base.errors import DatabaseError
from longtable.tools.database import Database, Isolation, QueryLimits

ROUNDS = 60
ROWS = 10_000
SMALL = "SELECT count(*) FROM sales WHERE region = 'north'"
WIDE = f"SELECT id, region, customer, amount, price, quantity, day, noted FROM sales LIMIT {ROWS}"
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


def make(folder: Path) -> list[str]:
    """Write the same table for both engines, and return their URLs."""
    with duckdb.connect(str(folder / "sales.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE sales AS SELECT i AS id, ['north', 'south', 'east'][1 + i % 3] AS region,"
            " 'customer ' || i % 997 AS customer, (i * 7 % 10007)::DECIMAL(12, 2) AS amount, i /"
            " 7.0 AS price, i % 13 AS quantity, DATE '2024-01-01' + (i % 366)::INTEGER AS day,"
            " TIMESTAMP '2024-01-01' + INTERVAL (i) SECOND AS noted FROM range(20000) t(i)"
        )
        rows = connection.execute(
            "SELECT id, region, customer, amount::DOUBLE, price, quantity, day::TEXT, noted::TEXT"
            " FROM sales"
        ).fetchall()
    with sqlite3.connect(folder / "sales.db") as lite:
        lite.execute(
            "CREATE TABLE sales (id INTEGER, region TEXT, customer TEXT, amount REAL, price REAL,"
            " quantity INTEGER, day TEXT, noted TEXT)"
        )
        lite.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
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
    with Database.open(url, limits=QueryLimits(seconds=1.0)) as database:
        database.run(SMALL)
        before = statistics.median(timed(lambda: database.run(SMALL)) for _ in range(10))
        after = []
        for _ in range(5):
            try:
                database.run(sql)
            except DatabaseError:
                after.append(timed(lambda: database.run(SMALL)))
            time.sleep(1)  # for the next spare
    return before, statistics.median(after)


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


def main() -> None:
    """Print the table."""
    print("a worker beside the same database in process, milliseconds (medians)")
    print(f"  {'':<44}{'in process':>12}{'worker':>12}{'more':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for url in make(Path(folder)):
            engine = url.partition(":")[0]
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
                rows.append(
                    ("opening, to the first answer", opened(url, "none"), opened(url, "process"))
                )
            for name, alone, isolated in rows:
                print(
                    f"  {engine + ': ' + name:<44}{alone:>12.2f}{isolated:>12.2f}{isolated - alone:>10.2f}"
                )
            print(
                f"  {engine + ': Database.open alone':<44}{'':>12}{timed(partial(open_and_close, url)):>12.2f}"
            )
            before, after = after_a_kill(url, STUCK[engine])
            print(
                f"  {engine + ': the query after a kill':<44}{before:>12.2f}{after:>12.2f}{after - before:>10.2f}"
            )
    print(
        f"  importing Database: {imported(''):.0f}; with the wall, in process:"
        f" {imported('import longtable.tools.sql.wall; '):.0f}"
    )


if __name__ == "__main__":
    main()
