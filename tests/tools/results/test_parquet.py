"""Results in Parquet files: written and read at once, after a fork, and without a word on standard
output.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from longtable.tools.results import parquet
from longtable.tools.results.parquet import CHUNK_ROWS, read_parquet, write_parquet

INTERACTIVE = """
import __main__
del __main__.__file__
from longtable.tools.results import parquet
from longtable.tools.engines.duckdb import empty_instance
for connection in (empty_instance(memory_bytes=10**8), parquet._connect(is_large=False)):
    print(connection.execute("SELECT current_setting('enable_progress_bar')").fetchone())
"""


def test_duckdb_draws_no_bar_where_python_is_interactive(tmp_path: Path) -> None:
    script = tmp_path / "interactive.py"
    script.write_text(INTERACTIVE)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split("\n") == ["(False,)", "(False,)", ""]


FORKED = """
import os, sys
from pathlib import Path
from longtable.tools.results import parquet
from longtable.tools.results.parquet import CHUNK_ROWS, read_parquet, write_parquet
path = Path(sys.argv[1])
write_parquet(path, ["n"], [(1,)])
child = os.fork()
if child == 0:
    write_parquet(path.with_name("theirs.parquet"), ["n"], [(2,)])
    sys.exit(0 if [*read_parquet(path)] == [[(1,)]] else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), [*read_parquet(path.with_name("theirs.parquet"))], flush=True)
"""


def test_a_process_that_was_forked_reads_and_writes_results(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "ours.parquet")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "0 [[(2,)]]\n"


def test_threads_write_and_read_results_at_once(tmp_path: Path) -> None:
    def copied(number: int) -> bool:
        path = tmp_path / f"{number}.parquet"
        rows = [(number, f"{number}-{n}") for n in range(500)]
        write_parquet(path, ["number", "text"], rows)
        return [*chain.from_iterable(read_parquet(path))] == rows

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(copied, range(24)))


def test_a_large_result_leaves_no_memory_in_the_shared_instance(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    rows = [(n, f"{n * 7919}") for n in range(CHUNK_ROWS + 1)]
    assert write_parquet(path, ["n", "text"], iter(rows)) == CHUNK_ROWS + 1
    assert [*chain.from_iterable(read_parquet(path))] == rows
    used = "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
    with parquet._connect(is_large=False) as connection:
        (row,) = connection.execute(used).fetchall()
        assert row[0] < 1_000_000
    with parquet._connect(is_large=True) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
