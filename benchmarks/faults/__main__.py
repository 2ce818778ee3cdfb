"""Print what threads lose when things fail, and what a person sees: python -m benchmarks.faults
[RANDOM_KILLS].
"""

import sys
import tempfile
from pathlib import Path

from benchmarks.faults.files import all_faults
from benchmarks.faults.kills import Kills, kills
from benchmarks.faults.servers import restarted
from tests.support.postgres import postgres_server, stop_postgres_server

RANDOM_KILLS = 200


def main(random_kills: int = RANDOM_KILLS) -> None:
    """Print both tables as Markdown."""
    print(
        "| kill -9 | durability | where | kills | lost | turns resumed | question not stored yet"
        " |\n|---|---|---|---:|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for row in kills(
            "SQLite", f"sqlite:///{folder}/chat.db", Path(folder), random_kills=random_kills
        ):
            print(_killed(row), flush=True)
    server = postgres_server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for row in kills(
                "PostgreSQL", server.create(), Path(folder), random_kills=random_kills
            ):
                print(_killed(row), flush=True)
        print("\n| fault | turns answered | lost | what was seen |\n|---|---:|---:|---|")
        for suffered in (*all_faults(), restarted(server)):
            print(
                f"| {suffered.fault} | {suffered.answered} | {len(suffered.lost)} |"
                f" {suffered.saw or 'nothing: it went on'} |",
                flush=True,
            )
    finally:
        stop_postgres_server()


def _killed(row: Kills) -> str:
    for text in row.lost:
        print(text, file=sys.stderr)
    return (
        f"| {row.saver} | {row.mode} | {row.where} | {row.kills} | {len(row.lost)} | {row.resumed}"
        f" | {row.unstored} |"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
