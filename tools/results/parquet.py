"""Open an empty DuckDB instance that can be shut off from its surroundings, and write rows of any
engine to a Parquet file with it, in chunks and without loss.

The type of a column is decided from its cells. Engines name types in their own ways, and in SQLite
a cell may have another type than its column. Values that Parquet has no type for are stored as
text, such as nested values and columns of mixed types.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from uuid import UUID

import duckdb

from longtable.tools.catalog import fold, quoted
from longtable.tools.cells import dumps, json_value

CHUNK_ROWS = 20_000
LARGE_BYTES = 1_000_000
"""The size of a file from which on a result is large, like one of several chunks."""
MEMORY_BYTES = 512_000_000

_PLAIN = {
    bool: "BOOLEAN",
    float: "DOUBLE",
    str: "VARCHAR",
    bytes: "BLOB",
    date: "DATE",
    time: "TIME",
    timedelta: "INTERVAL",
    UUID: "UUID",
}
TEXT = "VARCHAR"
UNKNOWN = ""
"""The type of a column that has held only NULL so far."""


def empty_instance(
    *, memory_bytes: int, threads: int | None = None, spill: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open an empty DuckDB instance in memory. `close_wall` then shuts it off from files and the
    network. If `spill` is True, the instance may write temporary files.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
        "memory_limit": f"{memory_bytes}B",
    }
    if threads:
        settings["threads"] = threads
    if not spill:
        settings["temp_directory"] = ""
    return quiet(duckdb.connect(":memory:", config=settings))


def close_wall(root: duckdb.DuckDBPyConnection) -> None:
    """Shut the instance off from files and the network. This cannot be undone."""
    root.execute("SET enable_external_access=false")
    root.execute("SET lock_configuration=true")


def quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return the connection with DuckDB's progress bar switched off. In interactive Python, DuckDB
    would print a progress bar to standard output.
    """
    with contextlib.suppress(duckdb.InvalidInputException):
        # A notebook without ipywidgets has no such setting and draws none.
        connection.execute("SET enable_progress_bar = false")
    return connection


def path_literal(path: Path) -> str:
    """Return a path as an SQL string. Wildcards need no escape, because DuckDB takes the path of an
    existing file literally.
    """
    return "'" + str(path.absolute()).replace("'", "''") + "'"


def column_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the column names made unique without regard to case, such as `n` and `n_1`. An empty
    name becomes `column` with its place.
    """
    used = set[str]()
    return tuple(
        free_name(column or f"column{place}", used) for place, column in enumerate(columns)
    )


def free_name(base: str, used: set[str], *, start: int = 1) -> str:
    """Return `base`, or if this is in use, `base` with the first free number from `start` on. The
    returned name is added to `used`.
    """
    numbered = (f"{base}_{number}" for number in count(start))
    name = next(name for name in chain([base], numbered) if fold(name) not in used)
    used.add(fold(name))
    return name


def write_parquet(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write rows to the file `path`, and return the number of rows. Parts are first written to
    files beside `path`, so that memory does not grow with the number of rows.
    """
    parts: list[tuple[Path, list[str]]] = []
    count = 0
    chunks = _chunks(rows)
    first = next(chunks, [])
    with _connect(is_large=len(first) == CHUNK_ROWS) as connection:
        for chunk in chain([first] if first else [], chunks):
            part = path.with_name(f"{path.name}.{len(parts)}")
            parts.append((part, _write_part(connection, part, names, chunk)))
            count += len(chunk)
        if len(parts) == 1 and UNKNOWN not in parts[0][1]:
            parts[0][0].replace(path)
        else:
            _join(connection, path, names, parts)
    for part, _ in parts:
        part.unlink(missing_ok=True)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return count


def read_parquet(
    path: Path, *, offset: int = 0, limit: int | None = None
) -> Iterator[list[tuple[object, ...]]]:
    """Yield the rows of a file in order, in batches."""
    with _connect(is_large=path.stat().st_size > LARGE_BYTES) as connection:
        rows = "" if limit is None else f" LIMIT {limit}"
        cursor = connection.execute(
            f"SELECT * FROM read_parquet({path_literal(path)}){rows} OFFSET {offset}"
        )
        while batch := cursor.fetchmany(2_000):
            yield batch


def _connect(*, is_large: bool) -> duckdb.DuckDBPyConnection:
    """Return a connection for one file. Small files share an instance: to open one takes 11 ms of
    processor, to read or write 40 rows half a millisecond. A large file has an instance of its own,
    whose memory is free again with its end.
    """
    return _instance() if is_large else _shared_instance().cursor()


def _instance() -> duckdb.DuckDBPyConnection:
    return empty_instance(memory_bytes=MEMORY_BYTES, threads=2, spill=True)


_shared_instance = cache(_instance)
if hasattr(os, "register_at_fork"):
    # A forked process has none of the instance's threads, and would crash when it ends.
    os.register_at_fork(before=_shared_instance.cache_clear)


def _chunks(rows: Iterable[Sequence[object]]) -> Iterator[list[Sequence[object]]]:
    iterator = iter(rows)
    yield from iter(lambda: list(islice(iterator, CHUNK_ROWS)), [])


def _write_part(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> list[str]:
    columns = []
    types = []
    for place in range(len(names)):
        cells = [row[place] for row in rows]
        kind = _type_of(cells)
        texts = (None if cell is None else _text(cell) for cell in cells)
        columns.append(list(texts) if kind == TEXT else cells)
        types.append(kind)
    picked = ", ".join(
        f"unnest(?::{kind or TEXT}[]) AS {quoted(name)}"
        for kind, name in zip(types, names, strict=True)
    )
    connection.execute(f"COPY (SELECT {picked}) TO {path_literal(path)} (FORMAT parquet)", columns)
    return types


def _join(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    names: Sequence[str],
    parts: Sequence[tuple[Path, list[str]]],
) -> None:
    """Join the part files into one file. Each column gets a type that holds the values of all
    parts. Without parts, write a file without rows.
    """
    if not parts:
        empty = ", ".join(f"NULL::{TEXT} AS {quoted(name)}" for name in names)
        connection.execute(
            f"COPY (SELECT {empty} WHERE false) TO {path_literal(path)} (FORMAT parquet)"
        )
        return
    types_by_column = zip(*(types for _, types in parts), strict=True)
    kinds = [_common(list(types)) for types in types_by_column]
    picked = ", ".join(
        f"{quoted(name)}::{kind} AS {quoted(name)}" for kind, name in zip(kinds, names, strict=True)
    )
    whole = " UNION ALL ".join(
        f"SELECT {picked} FROM read_parquet({path_literal(part)})" for part, _ in parts
    )
    connection.execute(f"COPY ({whole}) TO {path_literal(path)} (FORMAT parquet)")


def _type_of(cells: Sequence[object]) -> str:
    kinds = {type(cell) for cell in cells} - {type(None)}
    if not kinds:
        return UNKNOWN
    if kinds == {int}:
        most = max(abs(cell) for cell in cells if isinstance(cell, int))
        # Parquet has no wider integer: DuckDB would write HUGEINT as DOUBLE.
        return "BIGINT" if most < 2**63 else "DECIMAL(38,0)" if most < 10**38 else TEXT
    if kinds == {int, float}:
        exact = all(abs(cell) <= 2**53 for cell in cells if isinstance(cell, int))
        return "DOUBLE" if exact else TEXT
    if kinds == {Decimal}:
        return _decimal_type([cell for cell in cells if isinstance(cell, Decimal)])
    if kinds == {datetime}:
        zoned = {cell.tzinfo is not None for cell in cells if isinstance(cell, datetime)}
        return TEXT if len(zoned) > 1 else "TIMESTAMPTZ" if zoned == {True} else "TIMESTAMP"
    zoned_times = any(cell.tzinfo is not None for cell in cells if isinstance(cell, time))
    if zoned_times or any(
        cell.microseconds % 1000 for cell in cells if isinstance(cell, timedelta)
    ):
        return TEXT  # Parquet keeps milliseconds of an interval, and no zone of a time
    return _PLAIN.get(kinds.pop(), TEXT) if len(kinds) == 1 else TEXT


def _decimal_type(cells: Sequence[Decimal]) -> str:
    if not all(cell.is_finite() for cell in cells):
        return TEXT
    parts = [cell.as_tuple() for cell in cells]
    scale = max(0, *(-int(part.exponent) for part in parts))
    whole = max(0, *(len(part.digits) + int(part.exponent) for part in parts))
    return f"DECIMAL(38,{scale})" if scale + whole <= 38 else TEXT


def _common(kinds: Sequence[str]) -> str:
    known = set(kinds) - {UNKNOWN}
    if len(known) == 1:
        return known.pop()
    # Else as text: digits before the point and after it may come to more than 38 together, and a
    # DOUBLE would lose some.
    return "DECIMAL(38,0)" if known == {"BIGINT", "DECIMAL(38,0)"} else TEXT


def _text(cell: object) -> str:
    if isinstance(cell, str):
        # Halves of surrogate pairs are no text, and no file of text can hold them.
        return cell if cell.isascii() else cell.encode("utf-8", "replace").decode("utf-8")
    if isinstance(cell, dict | list | tuple | set | frozenset):
        return dumps(json_value(cell))
    if isinstance(cell, bytes):
        return cell.hex()
    return cell.isoformat() if isinstance(cell, datetime | date | time) else str(cell)
