"""Keep DuckDB's progress bar out of standard output."""

import contextlib

import duckdb


def quiet(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return the connection, told to draw no bar, which it would where Python is interactive."""
    with contextlib.suppress(duckdb.InvalidInputException):  # a notebook without ipywidgets cannot be told, and draws none
        connection.execute("SET enable_progress_bar = false")
    return connection
