"""Run turns over two instances of Aegra that share threads and results: two messages at once to
each thread, then 40 turns of which SIGKILL of one instance interrupts some. See whether a turn is
lost, and whether two instances report the same.

    python -m benchmarks.aegra --aegra /path/to/environment/bin/aegra

Needs an environment of Python 3.12 or newer that has Aegra and this project
(`pip install aegra-cli` and `pip install -e .`), `redis-server`, and the PostgreSQL of the dev
extra. Everything listens on loopback or in a folder of its own, and ends here. Whole results are
kept in one folder that both instances read, because our server keeps them in files, not in the
store.
"""

import argparse
import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.aegra.aegra_reports import report_differences
from benchmarks.aegra.aegra_turns import ORDERS, THREADS, ask_pairs, ask_with_kill
from benchmarks.aegra.instances import ROOT, running_instance, running_redis
from tests.support.postgres import postgres_server, stop_postgres_server

LEASES = {
    "LEASE_DURATION_SECONDS": "9",
    "HEARTBEAT_INTERVAL_SECONDS": "3",
    "REAPER_INTERVAL_SECONDS": "3",
    "STUCK_PENDING_THRESHOLD_SECONDS": "10",
}
"""A dead instance's runs are taken over after some ten seconds instead of 30, and instead of 120 if
it took a run from Redis and had not begun it.
"""


def main() -> int:
    """Run it; say what is missing, or what was lost."""
    parser = argparse.ArgumentParser(description="Two instances of Aegra, one of them killed.")
    parser.add_argument(
        "--aegra",
        default=shutil.which("aegra"),
        help="the program `aegra` of an environment that has this project, too",
    )
    aegra = parser.parse_args().aegra
    redis = shutil.which("redis-server")
    if missing := _missing(aegra, redis):
        print(missing, file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            faults = _faults(str(aegra), str(redis), Path(folder))
    finally:
        stop_postgres_server()
    for fault in faults:
        print(fault, file=sys.stderr)
    return bool(faults)


def _faults(aegra: str, redis: str, home: Path) -> list[str]:
    """Run everything; return what was lost, and where two instances differ."""
    faults: list[str] = []
    with running_redis(home, redis) as redis_url:
        environment = _environment(home, redis_url, postgres_server().create())
        with running_instance(aegra, home, environment) as first:
            with running_instance(aegra, home, environment) as second:
                faults += asyncio.run(ask_pairs(first, second))
                faults += report_differences(first, second, THREADS)
                faults += asyncio.run(ask_with_kill(first, second))
            with running_instance(aegra, home, environment) as third:
                faults += report_differences(first, third, 2 * THREADS)
    return faults


def _missing(aegra: str | None, redis: str | None) -> str:
    if not aegra or not Path(aegra).is_file():
        return (
            "Aegra is not installed: python3.12 -m venv E; E/bin/pip install aegra-cli -e .; then"
            " --aegra E/bin/aegra"
        )
    version = subprocess.run(
        [Path(aegra).parent / "python", "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if [int(part) for part in version] < [3, 12]:
        return (
            f"Aegra needs Python 3.12 or newer, its environment has {'.'.join(version) or 'none'}"
        )
    return "" if redis else "redis-server is missing; on Debian: apt install redis-server"


def _environment(home: Path, redis_url: str, database_url: str) -> dict[str, str]:
    with closing(sqlite3.connect(home / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n) for n in range(ORDERS)])
    ours = {
        "DATABASE_URL": database_url,
        "REDIS_BROKER_ENABLED": "true",
        "REDIS_URL": redis_url,
        "AUTH_TYPE": "noop",
        **LEASES,
    }
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LONGTABLE_", "LANGSMITH_", "LANGCHAIN_", "PYTHON"))
    }
    shop = {
        "LONGTABLE_DATABASE": f"sqlite:///{home}/shop.db",
        "LONGTABLE_RESULTS": str(home / "results"),
    }
    return {**inherited, **ours, **shop, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}


if __name__ == "__main__":
    sys.exit(main())
