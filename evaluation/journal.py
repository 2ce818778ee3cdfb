"""Keep the results of a run in a file, one line each, so that a run that was killed goes on.

A line is on the disk before the next turn of its dialogue begins. A line that a kill cut off is
dropped; its turn is answered from the thread.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from longtable.base.errors import ConfigError
from longtable.evaluation.turn_results import TurnResult

VERSION = 1
DialogueKey = tuple[str, bool, str, str]
"""Model, knowledge, id and fingerprint of a dialogue."""


class Journal:
    """The results of one run. Safe for threads; another process cannot open it meanwhile."""

    def __init__(self, path: Path, *, resume: bool, about: Mapping[str, str] | None = None) -> None:
        """`about`: what all results of a run have in common, such as the database.

        Raises `ConfigError` if there is a run and `resume` is False, if the run is about something
        else, if the file is none of ours or cannot be written, or if another process has it open.
        """
        self.path = path
        self._results: dict[DialogueKey, dict[int, TurnResult]] = {}
        self._about = dict(about or {})
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise ConfigError(
                f"{path.parent} cannot be written: {error.strerror}; name another folder with --out"
            ) from error
        try:
            _hold(self._file, path)
            self._file.seek(0)
            data = self._file.read()
            if data and not resume:
                raise ConfigError(
                    f"{path.parent} holds a run: continue it with --resume, replace it with"
                    " --force, or name another folder with --out"
                )
            whole = data[: data.rfind(b"\n") + 1]
            self._read(whole)
            self._file.truncate(len(whole))
            if not whole:
                self._write({"longtable_eval": VERSION, "about": self._about})
        except BaseException:
            self._file.close()
            raise

    @staticmethod
    def check_free(path: Path) -> None:
        """Raise `ConfigError` if another process has the journal open."""
        with path.open("rb") as file:
            _hold(file, path)

    def add(self, result: TurnResult) -> None:
        """Write a result to the disk."""
        with self._lock:
            self._write(result.as_json())
            self._keep(result)

    def of_dialogue(self, key: DialogueKey) -> Mapping[int, TurnResult]:
        """Return the results of a dialogue so far, by turn."""
        with self._lock:
            return dict(self._results.get(key, {}))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _keep(self, result: TurnResult) -> None:
        self._results.setdefault(result.dialogue_key, {})[result.turn] = result

    def _read(self, data: bytes) -> None:
        for number, line in enumerate(data.splitlines(), 1):
            try:
                value = json.loads(line)
                if number == 1:
                    known = value["longtable_eval"] == VERSION
                    self._check(value["about"] if known else {})
                else:
                    result = TurnResult.from_json(value)
                    self._keep(result)
                    known = True
            except (ValueError, TypeError, KeyError):
                known = False
            if not known:
                raise ConfigError(
                    f"{self.path}, line {number}: this is no journal of `longtable eval`: name"
                    " another folder with --out"
                )

    def _check(self, before: Mapping[str, str]) -> None:
        """Raise `ConfigError` if the run was about something else."""
        for name, value in self._about.items():
            if before.get(name) != value:
                raise ConfigError(
                    f"the run in {self.path.parent} has {name} {before.get(name)!r}, found"
                    f" {value!r}: go on with the same, or name another folder with --out"
                )

    def _write(self, value: dict[str, Any]) -> None:
        line = json.dumps(value, ensure_ascii=True)
        self._file.write(f"{line}\n".encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def _hold(file: IO[bytes], path: Path) -> None:
    """Keep other processes off a journal. Raises `ConfigError` if one has it."""
    if sys.platform == "win32":
        return  # one person runs there
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ConfigError(
            f"another `longtable eval` writes to {path.parent}: wait for its end, or name another"
            " folder with --out"
        ) from error
