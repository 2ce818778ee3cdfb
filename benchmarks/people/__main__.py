"""Have simulated people talk to `longtable web`, and see what that takes, and whether anything is
lost.

    python -m benchmarks.people                                   # 20 people in a minute
    python -m benchmarks.people --people 1000 --minutes 30
    python -m benchmarks.people --people 60 --minutes 3 --instances 2

The web chat runs as an operator starts it: in a process of its own, people named by a proxy's
header, a SQLite database in worker processes, a model over HTTP. Each person has a seeded
conversation of three to five turns, and thinks 20 s before each (median; log-normal, see
`person.py`); people arrive evenly in the first 85 % of the time. Of a hundred turns 50 run a query
and 15 one that waits for an approval; 12 are reloaded in mid-turn, 10 stopped, and 8 left by
closing the tab. A page loads all that a browser loads, and looks for news every 4 s while it is
open. With less than ten minutes people think faster.

The model streams fifty pieces a second, so its share of each time is known and taken off. In the
end each thread is compared with what its person sent and saw. Times depend on what else runs on
the machine; processor time does so less.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.people.crowd import run_crowd
from benchmarks.people.people_report import report
from tests.support.postgres import stop_postgres_server


def main() -> int:
    """Run it, print what was measured, and return 1 if there were errors or losses."""
    parser = argparse.ArgumentParser(description="Simulated people in the web chat.")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--instances", type=int, default=1, help="servers on one PostgreSQL")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all programs end with this one
    try:
        with tempfile.TemporaryDirectory() as folder:
            crowd = run_crowd(
                Path(folder),
                people=options.people,
                minutes=options.minutes,
                seed=options.seed,
                instances=options.instances,
                on_postgres=options.store == "postgres",
            )
    finally:
        stop_postgres_server()
    print(report(crowd))
    return 1 if crowd.errors or crowd.lost else 0


if __name__ == "__main__":
    sys.exit(main())
