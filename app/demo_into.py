"""Load the demo into an empty database of any engine, as `longtable demo --into URL` does.

Nowhere else is a database that is asked written to. It must have no table, and after a failure it
has none again.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtable.app.demo import TABLES, DemoTable, OnStep, Step
from longtable.base.errors import ConfigError, DatabaseUnavailableError, MissingExtraError
from longtable.base.url import Location, parse_url, without_password
from longtable.tools.engines.base import literal_of
from longtable.tools.engines.dialects import Dialect, dialect_of
from longtable.tools.results.parquet import quiet

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH_ROWS = 5_000
Rows = Sequence[tuple[object, ...]]


def load_demo(demo: Path, url: str, *, on_step: OnStep = lambda _: None) -> str:
    """Load the demo from its file into the database that a URL names, and return the URL without
    its password. A database file that does not exist is made.

    Raises `ConfigError` if the database has a table or view, or if the URL names data files. Raises
    `DatabaseUnavailableError` if it cannot be written.
    """
    location = parse_url(url)
    if location.load:
        raise ConfigError(
            f"{url!r} names data files: the demo is loaded into a database file or a server's"
            " database"
        )
    shown = without_password(url, location)
    is_new = location.path is not None and not location.path.exists()
    try:
        with _writer(location) as writer:
            _check_empty(writer, shown)
            _fill(writer, demo, on_step)
    except BaseException:
        if is_new and location.path is not None:
            location.path.unlink(missing_ok=True)
        raise
    return shown


def _check_empty(writer: "_Writer", shown: str) -> None:
    if names := writer.names():
        raise ConfigError(
            f"the database {shown} is not empty, it has {', '.join(map(repr, names[:5]))}: name one"
            " without tables and views"
        )


def _fill(writer: "_Writer", demo: Path, on_step: OnStep) -> None:
    import duckdb

    made: list[str] = []
    with duckdb.connect(str(demo), read_only=True) as source:
        quiet(source)
        counts = [_count(source, table) for table in TABLES]
        done = 0
        try:
            for table, count in zip(TABLES, counts, strict=True):
                on_step(Step(table.name, done, sum(counts)))
                writer.create(table)
                made.append(table.name)
                for rows in _batches(source, table):
                    writer.insert(table, rows)
                done += count
            writer.commit()
        except BaseException as error:
            try:
                writer.undo(made)
            except Exception as failure:
                names = ", ".join(made)
                error.add_note(
                    f"these tables are left and must be dropped by hand: {names} ({failure})"
                )
            raise


def _count(source: "DuckDBPyConnection", table: DemoTable) -> int:
    rows = source.execute(f'SELECT count(*) FROM "{table.name}"').fetchall()
    return int(rows[0][0])


def _batches(source: "DuckDBPyConnection", table: DemoTable) -> Iterator[Rows]:
    cursor = source.execute(f'SELECT * FROM "{table.name}"')
    while rows := cursor.fetchmany(BATCH_ROWS):
        yield rows


def create_sql(table: DemoTable, rules: Dialect, types: Mapping[str, str]) -> str:
    """Return the statement that makes a table in a dialect, with its keys. `types` has the
    dialect's names of types, if they differ from the demo's.
    """
    parts: list[str] = []
    for column in table.columns:
        kind = types.get(column.type, column.type)
        comment = f" COMMENT {rules.literal(column.comment)}" if rules.comments_in_create else ""
        parts.append(f"{rules.quoted(column.name)} {kind}{' NOT NULL' * column.required}{comment}")
    if table.primary_key:
        parts.append(f"PRIMARY KEY ({', '.join(map(rules.quoted, table.primary_key))})")
    for column in table.columns:
        if column.references:
            other, _, key = column.references.partition(".")
            target = f"{rules.quoted(other)} ({rules.quoted(key)})"
            parts.append(f"FOREIGN KEY ({rules.quoted(column.name)}) REFERENCES {target}")
    comment = f" COMMENT = {rules.literal(table.comment)}" if rules.comments_in_create else ""
    return f"CREATE TABLE {rules.quoted(table.name)} ({', '.join(parts)}){comment}"


# -- one writer an engine --------------------------------------------------------------------------


class _Writer:
    """Writes to one database over a connection of its driver, in a transaction."""

    mark = "?"
    """How a statement marks a value."""
    types: Mapping[str, str] = {}
    names_sql = ""
    """Lists the tables and views of the database."""

    def __init__(self, connection: Any, rules: Dialect) -> None:
        self.connection = connection
        self.rules = rules

    def names(self) -> list[str]:
        """Return the tables and views of the database."""
        return [str(row[0]) for row in self.run(self.names_sql).fetchall()]

    def run(self, sql: str) -> Any:
        """Run a statement, and return the cursor of its rows."""
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor

    def create(self, table: DemoTable) -> None:
        """Make a table, with comments if the engine has any."""
        self.run(create_sql(table, self.rules, self.types))
        if self.rules.comment_statements:
            for sql in table.comment_sql():
                self.run(sql)

    def insert(self, table: DemoTable, rows: Rows) -> None:
        """Insert rows."""
        marks = ", ".join(self.mark for _ in table.columns)
        sql = f"INSERT INTO {self.rules.quoted(table.name)} VALUES ({marks})"
        self.connection.cursor().executemany(sql, rows)

    def commit(self) -> None:
        """Keep what was written."""
        self.connection.commit()

    def undo(self, made: Sequence[str]) -> None:  # noqa: ARG002  # the transaction knows them
        """Take away what was made."""
        self.connection.rollback()


class _SqliteWriter(_Writer):
    names_sql = "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"

    def insert(self, table: DemoTable, rows: Rows) -> None:
        """Insert rows, times as text."""
        plain = [tuple(map(_time_as_text, row)) for row in rows]
        super().insert(table, plain)


def _time_as_text(cell: object) -> object:
    return cell.isoformat(" ") if hasattr(cell, "isoformat") else cell


class _DuckdbWriter(_Writer):
    names_sql = (
        "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database()"
    )

    def run(self, sql: str) -> Any:
        """Run a statement. A cursor would be outside of the transaction."""
        return self.connection.execute(sql)

    def insert(self, table: DemoTable, rows: Rows) -> None:
        """Insert rows by columns, because row by row takes minutes."""
        columns = [list(column) for column in zip(*rows, strict=True)]
        values = ", ".join("unnest(?)" for _ in columns)
        self.connection.execute(f'INSERT INTO "{table.name}" SELECT {values}', columns)


class _PostgresWriter(_Writer):
    types: Mapping[str, str] = {"DOUBLE": "DOUBLE PRECISION"}
    names_sql = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )

    def insert(self, table: DemoTable, rows: Rows) -> None:
        """Insert rows by COPY."""
        cursor = self.connection.cursor()
        with cursor.copy(f'COPY "{table.name}" FROM STDIN') as copy:
            for row in rows:
                copy.write_row(row)


class _MysqlWriter(_Writer):
    mark = "%s"
    types: Mapping[str, str] = {"VARCHAR": "VARCHAR(250)", "TIMESTAMP": "DATETIME"}
    names_sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"

    def undo(self, made: Sequence[str]) -> None:
        """Drop the tables: the server commits each CREATE."""
        self.connection.rollback()
        for name in reversed(made):
            self.run(f"DROP TABLE {self.rules.quoted(name)}")


class _ClickhouseWriter(_Writer):
    """Writes over HTTP, where there is no transaction."""

    types: Mapping[str, str] = {
        "VARCHAR": "String",
        "INTEGER": "Int32",
        "SMALLINT": "Int16",
        "BIGINT": "Int64",
        "DOUBLE": "Float64",
        "TIMESTAMP": "DateTime",
    }

    def names(self) -> list[str]:
        """Return the tables and views of the database."""
        rows = self.connection.query("SHOW TABLES").result_rows
        return [str(row[0]) for row in rows]

    def create(self, table: DemoTable) -> None:
        """Make a table that is ordered by its key, with comments."""
        parts: list[str] = []
        for column in table.columns:
            kind = self.types.get(column.type, column.type)
            given = kind if column.required else f"Nullable({kind})"
            comment = self.rules.literal(column.comment)
            parts.append(f"{self.rules.quoted(column.name)} {given} COMMENT {comment}")
        key = ", ".join(map(self.rules.quoted, table.primary_key))
        self.connection.command(
            f"CREATE TABLE {self.rules.quoted(table.name)} ({', '.join(parts)}) ENGINE = MergeTree"
            f" ORDER BY ({key}) COMMENT {self.rules.literal(table.comment)}"
        )

    def insert(self, table: DemoTable, rows: Rows) -> None:
        """Insert rows as one text, which needs no converting of columns."""
        values = ", ".join(f"({self._row(row)})" for row in rows)
        self.connection.command(f"INSERT INTO {self.rules.quoted(table.name)} VALUES {values}")

    def _row(self, row: Sequence[object]) -> str:
        return ", ".join(literal_of(cell, self.rules) for cell in row)

    def commit(self) -> None:
        """Do nothing: each statement is kept at once."""

    def undo(self, made: Sequence[str]) -> None:
        """Drop the tables."""
        for name in reversed(made):
            self.connection.command(f"DROP TABLE {self.rules.quoted(name)}")


def _sqlite(location: Location) -> AbstractContextManager[Any]:
    connection = sqlite3.connect(str(location.path), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return closing(connection)


def _duckdb(location: Location) -> AbstractContextManager[Any]:
    import duckdb

    connection = quiet(duckdb.connect(str(location.path)))
    connection.begin()
    return closing(connection)


def _postgres(location: Location) -> AbstractContextManager[Any]:
    import psycopg

    return closing(psycopg.connect(location.server, connect_timeout=10))


def _mysql(location: Location) -> AbstractContextManager[Any]:
    from longtable.tools.engines.mysql_connection import MysqlDriver

    connection = MysqlDriver(location.server, seconds=600).connect()
    connection.raw.autocommit(False)
    return closing(connection.raw)


def _clickhouse(location: Location) -> AbstractContextManager[Any]:
    from longtable.tools.engines.clickhouse.clickhouse_connection import ClickhouseDriver

    return closing(ClickhouseDriver(location.server, seconds=600).connect().raw)


_OPENED: Mapping[str, tuple[type[_Writer], Callable[[Location], AbstractContextManager[Any]]]] = {
    "sqlite": (_SqliteWriter, _sqlite),
    "duckdb": (_DuckdbWriter, _duckdb),
    "postgres": (_PostgresWriter, _postgres),
    "mysql": (_MysqlWriter, _mysql),
    "clickhouse": (_ClickhouseWriter, _clickhouse),
}


@contextmanager
def _writer(location: Location) -> Iterator[_Writer]:
    """Open a database for writing. Raises `DatabaseUnavailableError` for an error of its driver."""
    rules = dialect_of(location.dialect)
    kind, connect = _OPENED[location.dialect]
    try:
        with connect(location) as connection:
            yield kind(connection, rules)
    except ImportError as error:
        what = f"the demo cannot be loaded into a {rules.title} database"
        raise MissingExtraError(what, rules.extra) from error
    except (ConfigError, DatabaseUnavailableError):
        raise
    except Exception as error:
        # Each driver has errors of its own.
        reason = str(error).strip().split("\n", 1)[0]
        raise DatabaseUnavailableError(
            f"the demo cannot be loaded into the database {location.name!r} ({reason}): check that"
            " the account may create tables in it"
        ) from error
