"""A Python that can import what an install command brings, and nothing else: the test environment
without all other distributions.

The closure of an extra is computed from `pyproject.toml` and the metadata of what is installed, as
pip would. A process that starts with `environment(...)` finds neither modules nor metadata of any
other distribution, and neither do its children.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SITE = Path(__file__).with_name("site_of_extras")
HIDDEN = "TESTS_HIDDEN_DISTRIBUTIONS"


@cache
def _distributions() -> dict[str, Distribution]:
    return {canonicalize_name(each.metadata["Name"]): each for each in distributions()}


@cache
def declared() -> dict[str, list[str]]:
    """Return the requirements of each extra, "" for those of longtable itself; the installed
    metadata may be older.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def _wanted(name: str, extra: str) -> Iterable[Requirement]:
    if name == "longtable":
        return [Requirement(line) for line in declared()[extra]]
    lines = [Requirement(line) for line in _distributions()[name].requires or []]
    return [line for line in lines if line.marker is None or line.marker.evaluate({"extra": extra})]


def closure(extras: Iterable[str]) -> set[str]:
    """Return the distributions that `pip install '.[extras]'` leaves in a new environment."""
    seen: set[tuple[str, str]] = set()
    todo = [("longtable", extra) for extra in ("", *extras)]
    while todo:
        name, extra = each = todo.pop()
        if each not in seen:
            seen.add(each)
            todo += [
                (canonicalize_name(line.name), more)
                for line in _wanted(name, extra)
                for more in ("", *line.extras)
            ]
    return {name for name, _ in seen}


@cache
def _modules(distribution: str) -> set[str]:
    """Return the dotted names of a distribution's modules; parts of a namespace package belong to
    several distributions.
    """
    found = set()
    for line in (_distributions()[distribution].read_text("RECORD") or "").splitlines():
        path = line.rpartition(",")[0].rpartition(",")[0]
        if re.search(r"\.(py|so|pyd)$", path) and not path.startswith((".", "/")):
            *folders, file = path.split("/")
            stem = file.partition(".")[0]
            found.add(".".join(folders if stem == "__init__" else [*folders, stem]))
    return found


@cache
def _hidden(extras: tuple[str, ...]) -> dict[str, list[str]]:
    kept = closure(extras)
    others = _distributions().keys() - kept
    modules = {module for name in others for module in _modules(name)}
    modules -= {module for name in kept for module in _modules(name)}
    return {
        "distributions": sorted(others),
        "modules": sorted(name for name in modules if name.rpartition(".")[0] not in modules),
    }


def environment(folder: Path, *extras: str) -> dict[str, str]:
    """Return the variables with which Python, and every child of it, has only these extras;
    `folder` takes a file that lists the rest.
    """
    file = folder / f"without-{'-'.join(extras) or 'extras'}.json"
    file.write_text(json.dumps(_hidden(extras)))
    return {"PYTHONPATH": str(SITE), HIDDEN: str(file)}


class Server:
    """A Python with longtable alone that runs each script in a fork: what all of them import is
    imported once, in 2 s.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ours = (
            "LONGTABLE_",
            "OPENAI_",
            "LANGSMITH_",
            "LANGCHAIN_",
            "XDG_",
            "LC_",
            "LANG",
            "COLUMNS",
            "PYTHON",
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment = kept | {"LANG": "C.UTF-8", "COLUMNS": "120", **environment(folder)}
        self._process = subprocess.Popen(
            [sys.executable, str(SITE / "server.py")],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: Mapping[str, object]) -> int:
        """Run one job, and return its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@dataclass(frozen=True)
class Installed:
    """A Python with longtable and some extras, and a home of its own."""

    server: Server
    folder: Path
    extras: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Return all variables of a process, for one that is not forked."""
        return {
            **self.server.environment,
            "HOME": str(self.folder),
            **environment(self.server.folder, *self.extras),
        }

    def run(
        self,
        script: str,
        *,
        stdin: str = "",
        variables: Mapping[str, str] | None = None,
        arguments: Iterable[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in the folder, and wait for its end."""
        (self.folder / "in").write_text(stdin, encoding="utf-8")
        environ = {**self.environment, **(variables or {})}
        job = {
            "script": script,
            "arguments": list(arguments),
            "folder": str(self.folder),
            "environment": environ,
        }
        code = self.server.run(job)
        out, err = ((self.folder / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return subprocess.CompletedProcess(script, code, out, err)

    def longtable(
        self, *arguments: str, stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line; no command ends in a traceback."""
        done = self.run(
            "from longtable.app.cli import main; main()",
            stdin=stdin,
            variables=variables,
            arguments=arguments,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    def events(self, *arguments: str, stdin: str = "", **variables: str) -> list[dict[str, Any]]:
        """Run the command line with `--json`, and return what it says."""
        return [
            json.loads(line)
            for line in self.longtable(
                *arguments, "--json", stdin=stdin, **variables
            ).stdout.splitlines()
        ]
