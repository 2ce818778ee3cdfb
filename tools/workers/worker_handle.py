"""One worker process, as its caller sees it."""

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import RawIOBase
from math import inf
from pathlib import Path
from typing import IO, Any, cast

from longtable.base.errors import LongtableError
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.wire import decode, decode_answer, encode, read_frame, write_frame
from longtable.tools.workers.worker_requests import INTERRUPT, Request

START_SECONDS = 60.0
"""The longest time that the start of a worker may take. It allows for a busy machine; on an idle
machine a start takes 0.2 s.
"""
KILL_AFTER_SECONDS = 0.2
LOG_BYTES = 2_000
KEPT_VARIABLES = {
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ"),
    *("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
    *("APPDATA", "PYTHONUSERBASE", "USERPROFILE"),  # where `pip install --user` puts packages
}
"""The environment variables that a worker gets. None of them holds a key or password."""


@dataclass(eq=False)
class Client:
    """Whoever workers do jobs for, such as one open database. The last four fields may be read and
    written only under the lock of the supervisor.
    """

    dialect: str
    """The dialect of the engine that its workers need, "" if they need none."""
    opening: Mapping[str, object]
    """What a worker is told when it is taken: the database to open, and the bound on its memory."""
    wait_seconds: float
    """The longest time that a job waits for a free worker."""
    idle_seconds: float
    used: float = 0.0
    waiting: int = 0
    """The number of jobs that wait for a worker."""
    closed: bool = False


class WorkerHandle:
    """One process and its current job. A spare process has no owner yet. Once it has an owner it
    opens the owner's database, and never works for anybody else. The fields may be read and written
    only under the lock of the supervisor.
    """

    def __init__(self, *, dialect: str) -> None:
        """Start a process that loads what the engine of a dialect needs."""
        self._errors = _log_file()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "longtable.tools.workers.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env={name: value for name, value in os.environ.items() if name in KEPT_VARIABLES},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._requests = cast("RawIOBase", self.process.stdin)
        self._answers = cast("RawIOBase", self.process.stdout)
        self.owner: Client | None = None
        self.started = self.used = time.monotonic()
        self.opened = self.busy = self.killed = False
        self.deadline = inf
        self.interrupted = inf
        self.number = 0
        self.cancel = Cancel()
        with suppress(OSError):  # it has ended already: reading its greeting says why
            write_frame(self._requests, encode({"caller": os.getpid(), "dialect": dialect}))

    @property
    def ready(self) -> bool:
        """Return whether the process has started, so that it can open a database at once."""
        try:
            return self.opened or bool(select.select([self._answers], [], [], 0)[0])
        except (OSError, ValueError):  # a pipe on Windows, or more open files than select knows
            return True

    def begin(self, seconds: float, cancel: Cancel) -> None:
        """Prepare for a job: its answer is late after this many seconds, and `cancel` can stop the
        job.
        """
        self.number += 1
        self.deadline = time.monotonic() + seconds
        self.interrupted = inf
        self.cancel = cancel

    def open(self, opening: Mapping[str, object], *, most: int) -> None:
        """Wait until the process has started and has opened its owner's database. Raises the error
        of opening. Raises `EOFError` or `OSError` if the process has ended.
        """
        decode(read_frame(self._answers, most=most))
        write_frame(self._requests, encode(opening))
        greeting = decode(read_frame(self._answers, most=most))
        if isinstance(greeting, LongtableError):
            raise greeting
        self.opened = True

    def send(self, request: Request[Any]) -> None:
        """Send a job to the process. Raises `OSError` if the process has ended, `TypeError` if an
        argument has a type that cannot be sent.
        """
        write_frame(self._requests, encode([self.number, request.job, request.arguments]))

    def answer(self, *, most: int) -> Any:
        """Wait for the answer and return it. Raises `EOFError` or `OSError` if the process has
        ended.
        """
        return decode_answer(self._frames(most=most))

    def _frames(self, *, most: int) -> Iterator[bytearray]:
        """Yield frames, of `most` bytes together."""
        while True:
            frame = read_frame(self._answers, most=most)
            most -= len(frame)
            yield frame

    def enforce(self, now: float) -> None:
        """Interrupt a job that is late or cancelled. If it still runs `KILL_AFTER_SECONDS` later,
        kill the process.
        """
        if self.interrupted == inf and (now >= self.deadline or self.cancel.cancelled):
            self.interrupted = now
            # Never wait here: a worker that reads nothing is killed in a moment.
            with suppress(OSError, ValueError):
                if self.opened and select.select([], [self._requests], [], 0)[1]:
                    write_frame(self._requests, encode([self.number, INTERRUPT, {}]))
        if now >= self.interrupted + KILL_AFTER_SECONDS:
            self.killed = True
            self.process.kill()

    def release(self) -> None:
        """Note that the job is over."""
        self.busy = False
        self.used = time.monotonic()
        self.deadline = inf
        self.cancel = Cancel()

    def stderr_text(self) -> str:
        """Wait a moment for the process to end, and return the last part of its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(KILL_AFTER_SECONDS)
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - LOG_BYTES))
        return self._errors.read().decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """Kill the process and wait until it is gone. It holds nothing that must be saved."""
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(START_SECONDS)

    def end(self) -> None:
        """Kill the process, and close this side of its pipes. Call it only when nobody reads from
        them.
        """
        self.kill()
        self.leave()

    def leave(self) -> None:
        """Close this side of the process's pipes."""
        for stream in (self._requests, self._answers, self._errors):
            with suppress(OSError):
                stream.close()


def _log_file() -> IO[bytes]:
    """Open a temporary file, or the null device if there is no folder for one."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return Path(os.devnull).open("w+b")
