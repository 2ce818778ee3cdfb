"""Run the command line as a user does: in a process and a home of its own."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import forked
from tests.support.isolation import opened_by_default

PROGRAM = Path(sys.executable).parent / "longtable"
SECONDS = 60
OURS = ("LONGTABLE_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "XDG_", "COLUMNS", "LC_", "LANG")


@dataclass(frozen=True)
class Home:
    """A user's home with a small shop in it."""

    folder: Path
    at: Path | None = None
    """Where programs are started, if not here."""

    @property
    def shop(self) -> str:
        return f"sqlite:///{self.folder / 'shop.db'}"

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'threads.db'}"

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        places = {
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        given = {"LONGTABLE_DATABASE": self.shop, "LONGTABLE_STORE": self.store, "LANG": "C.UTF-8"}
        return {**kept, **places, **given, **more}

    def run(self, *args: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
        done = forked.run(
            _program,
            *args,
            stdin=stdin,
            environment=self.environment(**env),
            timeout=SECONDS,
            folder=self.at,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in out + err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def events(self, *args: str, stdin: bytes = b"", **env: str) -> list[dict[str, Any]]:
        done = self.run(*args, "--json", stdin=stdin, **env)
        return [json.loads(line) for line in done.stdout.splitlines()]


def _program(*args: str) -> None:
    """Be the program: in a process of its own that has imported already and starts no worker, for
    two hundred runs would spend minutes on that. Tests of a terminal, of streams, of MCP and of the
    README start the program itself.
    """
    from longtable.app.cli import main

    sys.argv = [str(PROGRAM), *args]
    with opened_by_default("none"):
        main()


def make_home(folder: Path) -> Home:
    """Make a home whose shop has 30 orders, one of them with an escape sequence in its name."""
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, amount REAL)"
        )
        rows = [(n, f"customer {n}", n / 2) for n in range(1, 30)] + [
            (30, "\x1b[31mred\x1b]0;owned\x07", None)
        ]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    return Home(folder)
