"""Some of the bombs, beside honest queries: `python -m evals.bombs` throws them all, and measures
times, too.
"""

import re
import tempfile
from pathlib import Path
from weakref import WeakSet

import pytest

from evals.bombs import prove
from longtable.tools.database import QueryLimits
from longtable.tools.workers.supervisor import SUPERVISOR
from longtable.tools.workers.worker_handle import Client
from tests.tools.databases import DIALECTS, Place, url
from tests.tools.workers.test_pool import end_spares

LIMITS = QueryLimits(seconds=0.5, memory_bytes=200_000_000)
SAMPLE = {
    "sqlite": (
        "types within types",
        "9,000 conditions in a row",
        "an endless recursion of joins",
        "a text nearly replaced",
        "wide rows",
    ),
    "duckdb": (
        "types within types",
        "list_reduce of text",
        "replace of repeat",
        "list of everything",
        "an endless recursion of joins",
    ),
    "postgres": (
        "types within types",
        "a chain of 12,000 sums",
        "an endless recursion",
        "a temporary file",
        "repeat for each row",
    ),
    "mysql": (
        "types within types",
        "a chain of 12,000 sums",
        "an endless recursion",
        "repeat of repeat",
        "wide rows",
        "a temporary table",
    ),
    "clickhouse": (
        "types within types",
        "a chain of 12,000 sums",
        "an endless recursion",
        "repeat for each row",
        "an array of everything",
        "a sort of everything",
        "replace of repeat",
    ),
}
MAY_BE_SLOW = re.compile("times as long|QueryTimeoutError")
"""Times are for the evaluation to measure: the machine of the tests is busy, and half a second a
short limit.
"""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_bombs_harm_nobody_and_leave_nothing(
    dialect: str, files: dict[str, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_spares()
    # Databases that other tests left open would keep a spare.
    monkeypatch.setattr(SUPERVISOR, "_clients", WeakSet[Client]())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    faults = prove(url(files[dialect]), dialect, SAMPLE[dialect], alone_seconds=0.5, limits=LIMITS)
    assert not [fault for fault in faults if not MAY_BE_SLOW.search(fault)]
