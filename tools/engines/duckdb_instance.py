"""Open DuckDB in memory with nothing of its surroundings: no extension, no variable of the caller, no progress bar."""

import contextlib
from pathlib import Path

import duckdb


def empty_instance(*, memory_bytes: int, threads: int | None = None, spill: bool = False) -> duckdb.DuckDBPyConnection:
    """Open an instance that holds nothing; `close_wall` shuts it off. With `spill` it may write temporary files."""
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
    """Shut the instance off from files and the network, for good."""
    root.execute("SET enable_external_access=false")
    root.execute("SET lock_configuration=true")


def quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return the connection with its progress bar off; where Python is interactive, DuckDB prints one to standard output."""
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook without ipywidgets has no such setting and draws none
        connection.execute("SET enable_progress_bar = false")
    return connection


def path_literal(path: Path) -> str:
    """Return a path as an SQL string; DuckDB takes the path of an existing file literally, wildcards included."""
    return "'" + str(path.absolute()).replace("'", "''") + "'"
