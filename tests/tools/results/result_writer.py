"""A process that puts results into a store: many of them, one huge one, or one it dies in the
middle of.

    python -m tests.tools.results.result_writer FOLDER ACTION

where ACTION is one of: many COUNT, huge ROWS, die CHUNKS, die-at-rename.

`many` prints the handles it got, `huge` the most memory it ever held, in MB.
"""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from longtable.tools.results.parquet import CHUNK_ROWS
from longtable.tools.results.result_store import ResultStore

COLUMNS, TYPES = ("id", "name", "share"), ("BIGINT", "VARCHAR", "DOUBLE")


def numbered(count: int, *, dies: bool = False) -> Iterator[tuple[object, ...]]:
    """Yield rows one by one; at the end, kill this process when told so."""
    for number in range(count):
        yield number, f"name {number % 1000}", number / 7
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, what: str, number: str = "0") -> None:
    """Do what the command line says."""
    store = ResultStore(Path(folder), clock=lambda: datetime.now(UTC))
    if what == "many":
        for _ in range(int(number)):
            print(
                store.put(
                    "thread",
                    columns=COLUMNS,
                    types=TYPES,
                    rows=numbered(3),
                    sql=f"SELECT {os.getpid()}",
                ),
                flush=True,
            )
    elif what == "huge":
        store.put(
            "thread", columns=COLUMNS, types=TYPES, rows=numbered(int(number)), sql="SELECT 1"
        )
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    elif what == "die":
        store.put(
            "thread",
            columns=COLUMNS,
            types=TYPES,
            rows=numbered(int(number) * CHUNK_ROWS, dies=True),
            sql="SELECT 1",
        )
    else:
        Path.rename = lambda self, target: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign, assignment, return-value]
        store.put("thread", columns=COLUMNS, types=TYPES, rows=numbered(3), sql="SELECT 1")


if __name__ == "__main__":
    main(*sys.argv[1:])
