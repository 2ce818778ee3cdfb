"""Run the queries of `blind/honest` through the walls: `python -m evals.honest [ENGINE ...]`.

Each honest query is what a working analyst would write over Chinook, in the engine's own style, and
ran on the engine itself. What the walls refuse is listed with the reason. With `--hostile` the
hostile texts for MariaDB run, and the legal ones beside them: what runs of the ones, and is refused
of the others, is listed. Chinook is read from `../shared/data` or from the folder named with
`--data`.
"""

import argparse
import json
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb

from longtable.base.errors import LongtableError
from longtable.tools.database import Database
from longtable.tools.engines.dialects import MYSQL
from longtable.tools.sql.table_policy import TablePolicy
from tests.support.mariadb import mariadb_server, stop_mariadb_server
from tests.support.postgres import postgres_server, stop_postgres_server

SETS = Path(__file__).parent / "blind" / "honest"
DATA = Path(__file__).parents[2] / "shared" / "data"
_DDL_BEGINS = "\\c chinook;"
"""The line of the PostgreSQL script after which its own database is open."""


POLICY = TablePolicy(
    denied=frozenset({"secrets"}),
    denied_columns=frozenset({"customer.email"}),
    masked_columns=frozenset({"customer.phone"}),
)
"""The policy of the hostile texts."""
SECRETS = """
CREATE TABLE secrets (id INTEGER PRIMARY KEY, token VARCHAR(100));
INSERT INTO secrets VALUES (1, 'tok-alpha-7f3a'), (2, 'tok-beta-91c2'), (3, 'tok-gamma-00de');
"""


@dataclass(frozen=True)
class Honest:
    """One query of a set."""

    id: str
    topic: str
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
    records = map(json.loads, lines)
    return [
        Honest(each["id"], each.get("topic") or each["category"], each["sql"]) for each in records
    ]


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


def mariadb_database(data: Path, _: Path) -> str:
    """Fill a database on a MariaDB server of its own, and return its URL for an account that only
    reads.
    """
    lines: list[str] = []
    for source in sources(data):
        types = ", ".join(
            f"`{name}` {kind}{' PRIMARY KEY' if name == f'{source.name}_id' else ''}"
            for name, kind in source.columns
        )
        lines.append(f"CREATE TABLE `{source.name}` ({types})")
        for start in range(0, len(source.rows), 500):
            rows = ", ".join(map(_values, source.rows[start : start + 500]))
            lines.append(f"INSERT INTO `{source.name}` VALUES {rows}")
        keys = [name for name, _ in source.columns if name.endswith("_id") or name == "reports_to"]
        for name in keys:
            lines.append(f"CREATE INDEX `ifk_{source.name}_{name}` ON `{source.name}` (`{name}`)")
    lines.append("CREATE FULLTEXT INDEX ft_track_name ON track (name, composer)")
    return mariadb_server().create(";\n".join(lines) + ";" + SECRETS, name="chinook")


def _values(row: Sequence[object]) -> str:
    """Return a row as MariaDB's literals."""
    cells: list[str] = []
    for cell in row:
        if cell is None:
            cells.append("NULL")
        else:
            cells.append(MYSQL.literal(cell) if isinstance(cell, str) else str(cell))
    return f"({', '.join(cells)})"


MAKERS: dict[str, Callable[[Path, Path], str]] = {
    "sqlite": sqlite_file,
    "duckdb": duckdb_file,
    "postgres": postgres_database,
    "mariadb": mariadb_database,
}


def reasons(
    file: str, engine: str, data: Path, policy: TablePolicy | None = None
) -> Iterator[tuple[Honest, str]]:
    """Yield each query of a set with the reason why it did not run, "" if it ran."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Database.open(MAKERS[engine](data, Path(folder)), policy=policy) as database,
    ):
        for query in queries(file):
            reason = ""
            try:
                database.run(query.sql)
            except LongtableError as error:
                reason = str(error)
            yield query, reason


def honest(engine: str, data: Path) -> None:
    """Print which honest queries an engine's walls refuse."""
    results = list(reasons(engine, engine, data))
    for query, reason in results:
        if reason:
            print(f"{query.id} ({query.topic}): {reason}")
    ran = sum(not reason for _, reason in results)
    print(f"{engine}: {ran} of {len(results)} ran ({ran / len(results):.0%})\n", flush=True)


def hostile(data: Path) -> None:
    """Print which hostile texts run on MariaDB, and which legal ones are refused."""
    stopped: Counter[bool] = Counter()
    for query, reason in reasons("hostile_mariadb", "mariadb", data, POLICY):
        is_legal = query.topic == "legal"
        stopped[is_legal] += bool(reason)
        if is_legal == bool(reason):
            print(f"{query.id} ({query.topic}): {reason or query.sql}")
    print(f"stopped: {stopped[False]} of 120 hostile texts, {stopped[True]} of 60 legal ones")


def main() -> None:
    """Print what each set says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=[*MAKERS], metavar="ENGINE")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    try:
        if arguments.hostile:
            hostile(arguments.data)
            return
        for engine in arguments.engines:
            honest(engine, arguments.data)
    finally:
        stop_postgres_server()
        stop_mariadb_server()


if __name__ == "__main__":
    main()
