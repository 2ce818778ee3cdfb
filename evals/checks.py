"""Measure check_sql: `python -m evals.checks` prints, for each kind of fault, how many faulty
queries it finds and how many sound ones.

A query is found when any check says to look at it. The sixty queries and their faults (`faults.py`)
were written before the checker.
"""

import argparse
from collections import Counter
from pathlib import Path

from evals.analyst import HERE, databases
from evals.faults import checks
from longtable.base.errors import DatabaseError
from longtable.tools.check_tool import check_query
from longtable.tools.database import Database

FILES = {"nycflights13": "demo"}
"""What a database is called elsewhere in this folder."""


def found(database: Database, sql: str, question: str) -> bool:
    """Return whether a check sends the query back. A query that does not run is no finding."""
    try:
        return bool(check_query(database, sql, question).findings)
    except DatabaseError:
        return False


def main(arguments: list[str] | None = None) -> None:
    """Print the table; with --alone the checks are not given the question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=HERE.parent.parent / "shared" / "data",
        help="folder with chinook and northwind",
    )
    parser.add_argument("--alone", action="store_true", help="check the query without its question")
    options = parser.parse_args(arguments)
    queries: Counter[str] = Counter()
    faulty: Counter[str] = Counter()
    sound: Counter[str] = Counter()
    with databases(options.data) as files:
        opened: dict[str, Database] = {}
        for check in checks():
            name = FILES.get(check.database, check.database)
            database = opened.get(name) or opened.setdefault(name, Database.open(str(files[name])))
            question = "" if options.alone else check.question
            queries[check.kind] += 1
            faulty[check.kind] += found(database, check.faulty, question)
            sound[check.kind] += found(database, check.sound, question)
        for database in opened.values():
            database.close()
    print("| fault | queries | faulty ones found | sound ones sent back |\n|---|---:|---:|---:|")
    for kind in queries:
        print(f"| `{kind}` | {queries[kind]} | {faulty[kind]} | {sound[kind]} |")
    print(f"| all | {queries.total()} | {faulty.total()} | {sound.total()} |")


if __name__ == "__main__":
    main()
