"""A real MariaDB server for the tests: Debian's, started on first use on loopback, ended with the
session.

Skipped without it, unless LONGTABLE_NEED names mariadb: then a missing part fails. If
LONGTABLE_MYSQLD is the path of a `mysqld`, the same tests run on MySQL.
"""

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

NEEDED = "mariadb" in os.environ.get("LONGTABLE_NEED", "").split(",")
FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
MYSQLD = os.environ.get("LONGTABLE_MYSQLD", "")
DAEMON = MYSQLD or shutil.which("mariadbd", path=FOLDERS) or ""
INSTALL = MYSQLD or shutil.which("mariadb-install-db", path=FOLDERS) or ""
INSTALLED = bool(DAEMON and INSTALL)
INSTALL_OPTIONS = (
    ["--initialize-insecure"]
    if MYSQLD
    else ["--auth-root-authentication-method=normal", "--skip-test-db"]
)
MYSQL_OPTIONS = (
    ["--mysqlx=OFF", "--secure-file-priv=", "--max-allowed-packet=16M"] if MYSQLD else []
)
REASON = "needs Debian's mariadb-server (apt-get install mariadb-server)"
START_SECONDS = 30
RIGHTS = "SELECT, SHOW VIEW, EXECUTE"

_numbers = itertools.count(1)


class MariadbServer:
    """The server; `create` makes a database and returns its URL for an account that may read."""

    def __init__(self, *options: str) -> None:
        if not INSTALLED:
            assert not NEEDED, "LONGTABLE_NEED names mariadb, and it is not installed"
            pytest.skip(REASON)
        self._options = options
        self.folder = Path(tempfile.mkdtemp(prefix="longtable-mariadb-"))
        self.port = free_port()
        made = subprocess.run(
            [
                INSTALL,
                "--no-defaults",
                f"--datadir={self.folder / 'data'}",
                *INSTALL_OPTIONS,
                *self._user(),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        self._process = self._started()

    def _user(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def _started(self) -> "subprocess.Popen[bytes]":
        log = (self.folder / "server.log").open("ab")
        process = subprocess.Popen(
            [
                DAEMON,
                "--no-defaults",
                *self._user(),
                f"--datadir={self.folder / 'data'}",
                "--bind-address=127.0.0.1",
                f"--port={self.port}",
                f"--socket={self.folder / 'socket'}",
                f"--pid-file={self.folder / 'pid'}",
                "--skip-log-bin",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=64M",
                "--character-set-server=utf8mb4",
                "--default-time-zone=+00:00",
                *MYSQL_OPTIONS,
                *self._options,
            ],
            stdout=log,
            stderr=log,
        )
        log.close()
        until = time.monotonic() + START_SECONDS
        while not self._answers():
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                pytest.fail((self.folder / "server.log").read_text(errors="replace")[-2_000:])
            time.sleep(0.05)
        return process

    def _answers(self) -> bool:
        try:
            if (self.folder / "socket").exists():  # else the driver leaves a socket open
                self.run("SELECT 1")
                return True
        except ConnectionError:
            return False
        return False

    def url(
        self, database: str, *, user: str = "reader", password: str = "", more: str = ""
    ) -> str:
        """Return the URL of a database for an account."""
        login = user + (f":{quote(password, safe='')}" if password else "")
        return f"mysql://{login}@127.0.0.1:{self.port}/{quote(database)}{more}"

    def create(self, script: str = "", *, name: str = "", rights: str = RIGHTS) -> str:
        """Make a database, run a script in it, and return its URL for an account of its own with
        these rights. In the script, double quotes quote names.
        """
        name = name or f"db{next(_numbers)}"
        user = f"{name}_reader"
        self.run(f"DROP DATABASE IF EXISTS `{name}`; CREATE DATABASE `{name}`")
        self.run(
            f"DROP USER IF EXISTS `{user}`@`%`; CREATE USER `{user}`@`%`; GRANT {rights} ON `{name}`.* TO `{user}`@`%`"
        )
        self.run(script, database=name)
        return self.url(name, user=user)

    def run(self, script: str, *, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run a script as root, and return the rows of its last statement that has some."""
        import pymysql
        from pymysql.constants import CLIENT

        try:
            connection = pymysql.connect(
                unix_socket=str(self.folder / "socket"),
                user="root",
                database=database,
                charset="utf8mb4",
                autocommit=True,
                client_flag=CLIENT.MULTI_STATEMENTS,
            )
        except pymysql.OperationalError as error:
            raise ConnectionError(str(error)) from error
        rows: list[tuple[Any, ...]] = []
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES,NO_ENGINE_SUBSTITUTION'")
                cursor.execute(script or "SELECT 1")
                while True:
                    rows = list(cursor.fetchall()) or rows
                    if not cursor.nextset():
                        return rows
        finally:
            connection.close()

    def restart(self) -> None:
        """Kill the server, cutting every connection, and start it again."""
        self._process.kill()
        self._process.wait(timeout=START_SECONDS)
        (self.folder / "socket").unlink(missing_ok=True)
        self._process = self._started()

    def stop(self) -> None:
        """End the server and delete its folder."""
        self._process.kill()
        self._process.wait(timeout=START_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@cache
def mariadb_server() -> MariadbServer:
    """Return the session's server, started when first asked for."""
    return MariadbServer()


def stop_mariadb_server() -> None:
    """End the session's server, if there is one."""
    if mariadb_server.cache_info().currsize:
        mariadb_server().stop()
        mariadb_server.cache_clear()
