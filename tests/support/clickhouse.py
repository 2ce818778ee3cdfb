"""ClickHouse for the tests: chdb behind its HTTP interface, in a process of its own.

Skipped without chdb, unless LONGTABLE_NEED names clickhouse: then a missing part fails.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import urllib3
from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect as SqlglotDialect

NEEDED = "clickhouse" in os.environ.get("LONGTABLE_NEED", "").split(",")
INSTALLED = bool(find_spec("chdb") and find_spec("clickhouse_connect"))
REASON = "needs chdb: the extra clickhouse-test"
OPERATOR = "operator"
SECONDS = 60
ANSI = {
    "data_type_default_nullable": "1",
    "create_table_empty_primary_key_by_default": "1",
    "allow_suspicious_low_cardinality_types": "1",
    "mutations_sync": "1",
    "join_use_nulls": "1",
}
"""Settings under which ClickHouse reads the tests' CREATE TABLE as the other engines do."""

_ENGINE = re.compile(r"\bENGINE\b", re.IGNORECASE)
_INDEX = re.compile(r"CREATE INDEX (\w+) ON (\w+) *\((\w+)\)", re.IGNORECASE)
_FOREIGN = re.compile(
    r"(,\s*FOREIGN KEY *\([^)]*\))?\s+REFERENCES\s+\S+?\s*\([^)]*\)", re.IGNORECASE
)
_numbers = itertools.count(1)


class ClickhouseError(Exception):
    """The server refused a statement of a test."""


class ClickhouseServer:
    """The server; `create` makes a database and returns its URL for an account that may read."""

    def __init__(self, certificate: str = "") -> None:
        self._certificate = certificate
        if not INSTALLED:
            assert not NEEDED, "LONGTABLE_NEED names clickhouse, and chdb is not installed"
            pytest.skip(REASON)
        self.folder = Path(tempfile.mkdtemp(prefix="longtable-clickhouse-"))
        self._process, self.port = self._started(0)

    def _started(self, port: int) -> "tuple[subprocess.Popen[str], int]":
        script = Path(__file__).with_name("chdb_server.py")
        process = subprocess.Popen(
            [
                *(sys.executable, str(script), str(self.folder / "data"), str(port)),
                *([self._certificate] if self._certificate else []),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip().isdigit(), "the server over chdb did not start"
        return process, int(line)

    @property
    def scheme(self) -> str:
        """Return how the server is asked."""
        return "https" if self._certificate else "http"

    def url(
        self, database: str, *, user: str = "reader", password: str = "", more: str = ""
    ) -> str:
        """Return the URL of a database for an account."""
        login = user + (f":{quote(password, safe='')}" if password else "")
        scheme = "clickhouses" if self._certificate else "clickhouse"
        return f"{scheme}://{login}@127.0.0.1:{self.port}/{quote(database)}{more}"

    def account(self, name: str, **more: Any) -> None:
        """Make an account. `password`, `grants` (lines of SHOW GRANTS), `readonly` and `settings`
        are what it has.
        """
        self.run("ACCOUNT " + json.dumps({"grants": [], **more, "name": name}))

    def create(self, script: str = "", *, name: str = "") -> str:
        """Make a database, run a script in it, and return its URL for an account of its own that
        may read. In the script, double quotes quote names.
        """
        name = name or f"db{next(_numbers)}"
        user = f"{name}_reader"
        self.run(f"DROP DATABASE IF EXISTS `{name}`")
        self.run(f"CREATE DATABASE `{name}`")
        self.account(user, grants=[f"GRANT SHOW, SELECT ON {name}.* TO {user}"])
        self.script(script, database=name)
        tables = self.run(
            f"SELECT name FROM system.tables WHERE database = '{name}' AND engine = 'MergeTree'"
        )
        for [table] in tables:  # else each INSERT is a part, and rows come in any order of parts
            self.run(f"OPTIMIZE TABLE `{name}`.`{table}` FINAL")
        return self.url(name, user=user)

    def script(self, script: str, *, database: str) -> None:
        """Run the statements of a script."""
        for statement in statements_of(script):
            self.run(statement, database=database)

    def run(self, sql: str, *, database: str = "default") -> list[list[str]]:
        """Run one statement as an account that may do anything, and return its rows as texts. A
        CREATE TABLE that names no engine is read as the other engines read it.
        """
        settings = {} if _ENGINE.search(sql) or sql.startswith("ACCOUNT ") else ANSI
        manager = urllib3.PoolManager(ca_certs=self._certificate or None)
        answer = manager.request(
            "POST",
            f"{self.scheme}://127.0.0.1:{self.port}/?{urlencode({**settings, 'database': database})}",
            body=(sql if _ENGINE.search(sql) else _without_references(sql)).encode(),
            headers=urllib3.make_headers(basic_auth=f"{OPERATOR}:"),
            timeout=SECONDS,
            retries=False,
        )
        if answer.status != 200:
            raise ClickhouseError(f"{answer.data.decode()} in {sql[:200]}")
        return [line.split("\t") for line in answer.data.decode().splitlines()]

    def restart(self) -> None:
        """Kill the server, cutting every connection, and start it again at the same port."""
        self._end()
        self._process, self.port = self._started(self.port)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait(timeout=SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def stop(self) -> None:
        """End the server and delete its folder."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)


def _without_references(sql: str) -> str:
    """Return a CREATE TABLE without what ClickHouse has not: foreign keys, and keys that may be
    NULL.
    """
    if found := _INDEX.match(sql.strip()):
        name, table, column = found.groups()
        return f"ALTER TABLE {table} ADD INDEX {name} {column} TYPE minmax GRANULARITY 1"
    if not sql.lstrip().upper().startswith("CREATE TABLE"):
        return sql
    plain = re.sub(r"\bNUMERIC\b(?! *\()", "Float64", _FOREIGN.sub("", sql))
    return re.sub(r"(?<!NOT NULL) PRIMARY KEY(?! *\()", " NOT NULL PRIMARY KEY", plain)


def statements_of(script: str) -> list[str]:
    """Return the statements of a script, names beyond ASCII in quotes, which ClickHouse wants."""
    parts = [""]
    done = 0
    for token in SqlglotDialect.get_or_raise("clickhouse").tokenize(script):
        text = script[token.start : token.end + 1]
        parts[-1] += script[done : token.start]
        done = token.end + 1
        if token.token_type == TokenType.SEMICOLON:
            parts.append("")
        else:
            parts[-1] += text if text.isascii() or text[0] in "'\"`" else f'"{text}"'
    plain = [part.strip() for part in parts]
    return [part for part in plain if part and part.upper() not in ("BEGIN", "COMMIT")]


@cache
def clickhouse_server() -> ClickhouseServer:
    """Return the session's server, started when first asked for."""
    return ClickhouseServer()


def stop_clickhouse_server() -> None:
    """End the session's server, if there is one."""
    if clickhouse_server.cache_info().currsize:
        clickhouse_server().stop()
        clickhouse_server.cache_clear()
