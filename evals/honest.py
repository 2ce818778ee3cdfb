"""Run the honest queries of `blind/honest` through the walls: `python -m evals.honest [ENGINE]`.

Each query is what a working analyst would write over Chinook, in the engine's own style, and ran on
the engine itself. What the walls refuse is listed with the reason. Chinook is read from
`../shared/data` or from the folder named with `--data`.
"""

import argparse
import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb

from longtable.base.errors import LongtableError
from longtable.tools.database import Database
from tests.support.postgres import postgres_server, stop_postgres_server

SETS = Path(__file__).parent / "blind" / "honest"
DATA = Path(__file__).parents[2] / "shared" / "data"
_DDL_BEGINS = "\\c chinook;"
"""The line of the PostgreSQL script after which its own database is open."""


@dataclass(frozen=True)
class Honest:
    """One query of a set."""

    id: str
    topic: str
    question: str
    sql: str


@dataclass(frozen=True)
class Source:
    """A table of Chinook's SQLite file, with the names that the PostgreSQL script gives it."""

    original: str
    name: str
    columns: Sequence[tuple[str, str]]
    """Names and types."""
    rows: Sequence[Sequence[object]]


def queries(engine: str) -> list[Honest]:
    """Return the queries for an engine."""
    lines = (SETS / f"{engine}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Honest(**json.loads(line)) for line in lines]


def snake_case(name: str) -> str:
    """Return a name of the SQLite file as the PostgreSQL script writes it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def sources(data: Path) -> Iterator[Source]:
    """Yield the tables of Chinook."""
    file = data / "chinook" / "Chinook_Sqlite.sqlite"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
        for (original,) in tables.fetchall():
            columns = [
                (snake_case(name), kind.replace("NVARCHAR", "VARCHAR"))
                for name, kind in connection.execute(
                    "SELECT name, type FROM pragma_table_info(?)", [original]
                )
            ]
            rows = connection.execute(f'SELECT * FROM "{original}"').fetchall()
            yield Source(original, snake_case(original), columns, rows)


def sqlite_file(data: Path, _: Path) -> str:
    """Return the URL of the SQLite file itself."""
    return f"sqlite:///{data / 'chinook' / 'Chinook_Sqlite.sqlite'}"


def duckdb_file(data: Path, folder: Path) -> str:
    """Make a DuckDB file of Chinook, and return its URL."""
    path = folder / "chinook.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        for source in sources(data):
            types = ", ".join(f'"{name}" {kind}' for name, kind in source.columns)
            connection.execute(f'CREATE TABLE "{source.name}" ({types})')
            marks = ", ".join("?" for _ in source.columns)
            connection.executemany(f'INSERT INTO "{source.name}" VALUES ({marks})', source.rows)
    return f"duckdb:///{path}"


def postgres_database(data: Path, _: Path) -> str:
    """Run the PostgreSQL script on a server of its own, and return the database's URL."""
    script = (data / "chinook" / "Chinook_PostgreSql.sql").read_text(encoding="utf-8")
    return postgres_server().create(script.partition(_DDL_BEGINS)[2], name="honest")


MAKERS: dict[str, Callable[[Path, Path], str]] = {
    "sqlite": sqlite_file,
    "duckdb": duckdb_file,
    "postgres": postgres_database,
}


def refused(engine: str, data: Path) -> Iterator[tuple[Honest, str]]:
    """Yield each query that did not run, with the reason."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Database.open(MAKERS[engine](data, Path(folder))) as database,
    ):
        for query in queries(engine):
            try:
                database.run(query.sql)
            except LongtableError as error:
                yield query, str(error)


def main() -> None:
    """Print what is refused on each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=[*MAKERS], metavar="ENGINE")
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    try:
        for engine in arguments.engines:
            count = len(queries(engine))
            left = count
            for query, reason in refused(engine, arguments.data):
                left -= 1
                print(f"{query.id} ({query.topic}): {reason}")
            print(f"{engine}: {left} of {count} ran ({left / count:.0%})\n", flush=True)
    finally:
        stop_postgres_server()


if __name__ == "__main__":
    main()
