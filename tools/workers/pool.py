"""Worker processes that do jobs for this process. Each worker does one job at a time. Workers are
started before they are needed, and ended when idle.

While a query runs, no other job uses its process, so killing the process stops only this query. A
thread of this module checks all processes every `TICK_SECONDS`. It starts processes, and interrupts
and later kills those whose job is late or cancelled. The thread ends when no process is left.
"""

import logging
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from io import RawIOBase
from math import inf
from pathlib import Path
from typing import IO, Any, cast

from longtable.base.errors import (
    ConfigError,
    ConnectionWaitError,
    DatabaseUnavailableError,
    LongtableError,
    QueryCancelledError,
    QueryMemoryError,
    QueryRefusedError,
    QueryTimeoutError,
    WorkerLostError,
)
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.wire import decode, encode, read_frame, write_frame
from longtable.tools.workers.worker_requests import INTERRUPT, Answer, Request

MOST_WORKERS = 8
"""The most jobs that run at once; further jobs wait. Each worker takes about 90 MB."""
IDLE_SECONDS = 60.0
START_SECONDS = 60.0
"""The longest time that the start of a worker may take. It allows for a busy machine; on an idle
machine a start takes 0.3 s.
"""
TICK_SECONDS = 0.05
KILL_AFTER_SECONDS = 0.2
LOG_BYTES = 2_000
KEPT_VARIABLES = {
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ"),
    *("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
    *("APPDATA", "PYTHONUSERBASE", "USERPROFILE"),  # where `pip install --user` puts packages
}
"""The environment variables that a worker gets. None of them holds a key or password."""

_log = logging.getLogger(__name__)


class _Worker:
    """One process and its current job. The fields may be read and written only under the lock of
    the pool.
    """

    def __init__(self, opening: bytes) -> None:
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
        self.started = self.used = time.monotonic()
        self.greeted = self.busy = self.killed = False
        self.deadline = inf
        self.interrupted = inf
        self.number = 0
        self.cancel = Cancel()
        with suppress(OSError):  # it has ended already: reading its greeting says why
            write_frame(self._requests, opening)

    @property
    def ready(self) -> bool:
        """Return whether the process has started, so that it can do a job at once."""
        try:
            return self.greeted or bool(select.select([self._answers], [], [], 0)[0])
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

    def send(self, request: Request[Any]) -> None:
        """Send a job to the process. Raises `OSError` if the process has ended, `TypeError` if an
        argument has a type that cannot be sent.
        """
        write_frame(self._requests, encode([self.number, request.job, request.arguments]))

    def answer(self, *, most: int) -> Any:
        """Wait for the answer and return it. Raises `EOFError` or `OSError` if the process has
        ended.
        """
        return decode(read_frame(self._answers, most=most))

    def greet(self, *, most: int) -> None:
        """Wait until the process has started. If it could not open the database, raise the error of
        opening. Raises `EOFError` or `OSError` if the process has ended.
        """
        greeting = decode(read_frame(self._answers, most=most))
        if isinstance(greeting, LongtableError):
            raise greeting
        self.greeted = True

    def enforce(self, now: float) -> None:
        """Interrupt a job that is late or cancelled. If it still runs `KILL_AFTER_SECONDS` later,
        kill the process.
        """
        if self.interrupted == inf and (now >= self.deadline or self.cancel.cancelled):
            self.interrupted = now
            # Never wait here: a worker that reads nothing is killed in a moment.
            with suppress(OSError, ValueError):
                if self.greeted and select.select([], [self._requests], [], 0)[1]:
                    write_frame(self._requests, encode([self.number, INTERRUPT, {}]))
        if now >= self.interrupted + KILL_AFTER_SECONDS:
            self.killed = True
            self.process.kill()

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


class Workers:
    """The workers of one database, or workers without a database. Threads may share them. After a
    fork, the child process starts its own workers.
    """

    def __init__(
        self,
        *,
        database: Mapping[str, object] | None = None,
        memory_bytes: int,
        answer_bytes: int = 0,
        wait_seconds: float = 5.0,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """Start the first worker without waiting for it.

        `database` are arguments of `Database.open`. `answer_bytes` is the largest size of a result.
        `wait_seconds` is the longest time that a job waits for a free worker. Raises `ConfigError`
        if no Python is found to start a process.
        """
        if getattr(sys, "frozen", False) or not re.search(
            "python|pypy", Path(sys.executable or "").name, re.IGNORECASE
        ):
            raise ConfigError(
                "a database is asked in a process of its own, and there is no Python to start it"
                f' (sys.executable is {sys.executable!r}): Database.open(url, isolation="none")'
                " asks it in this process, without a bound on its memory"
            )
        try:
            encode(database)
        except TypeError:
            raise ConfigError(
                "the path of a database must be UTF-8: rename the file or its folder"
            ) from None
        self._database = database
        self._memory_bytes = memory_bytes
        self._most_bytes = 64_000_000 + 4 * answer_bytes
        self._wait_seconds = wait_seconds
        self._idle_seconds = idle_seconds
        self._closed = False
        self._begin()
        with self._changed:
            self._wake_thread()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._workers: list[_Worker] = []
        self._thread: threading.Thread | None = None
        self._failed: OSError | None = None
        self._waiting = 0
        self._used = time.monotonic()

    def call(
        self, request: Request[Answer], *, seconds: float, cancel: Cancel | None = None
    ) -> Answer:
        """Let a worker do a job. Return the answer, or raise the error that the job raised.

        Raises `QueryTimeoutError` or `QueryCancelledError` if the job was stopped,
        `ConnectionWaitError` if all workers stayed busy, and `WorkerLostError` if the process of
        the worker ended.
        """
        if self._pid != os.getpid():
            self._leave_to_parent()
        cancel = cancel or Cancel()
        began = time.monotonic()
        while True:
            worker = self._acquire(cancel)
            sent = False
            keep = False
            try:
                with self._changed:
                    worker.begin(seconds, cancel)
                worker.send(request)
                sent = True
                answer = worker.answer(most=self._most_bytes)
                # The memory it still holds would be missing for the next job.
                keep = not isinstance(answer, QueryMemoryError)
                break
            except (EOFError, OSError, ValueError):
                # One that ended while nobody asked it anything never read the job: the next one
                # does it.
                if sent or worker.killed or self._closed or worker.started >= began:
                    raise self._why_lost(worker, seconds) from None
            except TypeError:
                keep = True
                raise QueryRefusedError(
                    "the text holds half a surrogate pair",
                    rule="syntax",
                    hint="leave that character out",
                ) from None
            finally:
                self._release(worker, keep=keep)
        if isinstance(answer, QueryCancelledError) and not (cancel.cancelled or self._closed):
            raise QueryTimeoutError(limit_s=seconds)  # the interrupt came from the deadline
        if isinstance(answer, LongtableError):
            raise answer
        return cast("Answer", answer)

    def close(self) -> None:
        """End all workers, whether they are busy or idle."""
        if self._pid != os.getpid():
            self._leave_to_parent()
        with self._changed:
            self._closed = True
            workers = self._workers
            self._workers = []
            busy = [worker for worker in workers if worker.busy]
            self._changed.notify_all()
        for worker in workers:
            worker.kill()
            if worker not in busy:  # else the thread that reads from it closes it
                worker.leave()

    def _leave_to_parent(self) -> None:
        """Start again without workers after a fork, because the existing workers belong to the
        parent process.
        """
        for worker in self._workers:
            worker.process.returncode = 0
            worker.leave()
        self._begin()

    def _acquire(self, cancel: Cancel) -> _Worker:
        """Return a worker that has started and is waiting for a job."""
        began = time.monotonic()
        while True:
            worker = self._free(cancel, began)
            if worker.greeted:
                return worker
            error: LongtableError
            try:
                worker.greet(most=self._most_bytes)
                return worker
            except (EOFError, OSError, ValueError):
                error = self._not_started(worker)
                recent = worker.started >= began
            except LongtableError as raised:
                error = raised
                recent = worker.started > began - self._wait_seconds - 1
            self._release(worker, keep=False)
            if recent or cancel.cancelled:  # an older failure may be over by now: start another
                raise error

    def _free(self, cancel: Cancel, began: float) -> _Worker:
        with self._changed:
            self._waiting += 1
            try:
                while True:
                    if self._closed:
                        raise DatabaseUnavailableError("the database was closed: open it again")
                    if cancel.cancelled:
                        raise QueryCancelledError
                    if self._failed is not None:
                        error = self._failed
                        self._failed = None
                        raise DatabaseUnavailableError(
                            f"no worker process can be started: {error.strerror}"
                        )
                    free = [worker for worker in self._workers if not worker.busy and worker.ready]
                    if free:
                        worker = max(free, key=lambda one: (one.greeted, one.used))
                        worker.busy = True
                        worker.begin(START_SECONDS, cancel)
                        self._wake_thread()
                        return worker
                    busy = [worker for worker in self._workers if worker.busy]
                    if len(busy) >= MOST_WORKERS and time.monotonic() - began > self._wait_seconds:
                        raise ConnectionWaitError(
                            waited_s=time.monotonic() - began, connections=MOST_WORKERS
                        )
                    self._wake_thread()
                    self._changed.wait(TICK_SECONDS / 10)
            finally:
                self._waiting -= 1

    def _release(self, worker: _Worker, *, keep: bool) -> None:
        with self._changed:
            worker.busy = False
            worker.used = time.monotonic()
            worker.deadline = inf
            worker.cancel = Cancel()
            self._used = worker.used
            if not keep and worker in self._workers:
                self._workers.remove(worker)
            self._changed.notify_all()
        if not keep:
            worker.end()

    def _not_started(self, worker: _Worker) -> LongtableError:
        if worker.cancel.cancelled or self._closed:
            return QueryCancelledError()
        late = time.monotonic() - worker.started > START_SECONDS
        words = worker.stderr_text() or (
            f"it was not ready within {START_SECONDS:.0f} s"
            if late
            else f"it ended (status {worker.process.returncode})"
        )
        _log.warning("a worker could not be started: %s", words)
        return DatabaseUnavailableError(
            "the process that asks the database could not be started:"
            f" {words.rpartition(chr(10))[2]}"
        )

    def _why_lost(self, worker: _Worker, seconds: float) -> LongtableError:
        if worker.cancel.cancelled or self._closed:
            return QueryCancelledError()
        if worker.killed:
            return QueryTimeoutError(limit_s=seconds, killed=True)
        words = worker.stderr_text()
        _log.warning("a worker ended with %s: %s", worker.process.returncode, words)
        return WorkerLostError(
            f"the process that ran the query ended (status {worker.process.returncode}): the query"
            " may need too much memory, or meets a fault of the engine; write it another way"
        )

    def _wake_thread(self) -> None:
        """Start the thread that supervises the workers. If it already runs, wake it if a worker is
        missing.
        """
        if self._thread is None:
            # A daemon: the workers see the end of their pipes when the interpreter ends.
            thread = threading.Thread(target=self._supervise, name="longtable-workers", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # No memory for a stack, or too many threads; the next call tries again.
                raise DatabaseUnavailableError(
                    f"no worker process can be started: {error}"
                ) from None
            self._thread = thread
        elif self._missing():
            self._changed.notify_all()

    def _missing(self) -> bool:
        """Return whether to start another worker. There is one worker for each job, and after the
        first job one spare worker. Workers start one at a time.
        """
        jobs = sum(worker.busy for worker in self._workers) + self._waiting
        needed = (
            min(MOST_WORKERS, max(1, jobs)) + 1
            if any(worker.number for worker in self._workers)
            else 1
        )
        return (
            len(self._workers) < needed
            and all(worker.ready for worker in self._workers)
            and not self._closed
        )

    def _supervise(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                awake = now - self._used < self._idle_seconds or bool(self._waiting)
                for worker in self._workers:
                    if worker.busy:
                        worker.enforce(now)
                    elif now - worker.started > START_SECONDS and not worker.ready:
                        worker.process.kill()  # whoever waits for it then reads the end of its pipe
                idle = sorted(
                    (worker for worker in self._workers if not worker.busy),
                    key=lambda one: -one.used,
                )
                ended = [
                    worker
                    for worker in idle[2 if awake else 0 :]
                    if now - worker.used >= self._idle_seconds
                ]
                self._workers = [worker for worker in self._workers if worker not in ended]
                last = self._closed or not (self._workers or awake)
                if last:
                    self._thread = None
                start = awake and self._missing()
                if not (start or ended or last):
                    self._changed.wait(TICK_SECONDS)
            for worker in ended:
                worker.end()
            if last:
                return
            if start:
                self._start()

    def _start(self) -> None:
        """Start one worker. This must happen in the supervising thread, because the kernel kills a
        worker when the thread that started it ends.
        """
        opening = encode(
            {"caller": os.getpid(), "memory_bytes": self._memory_bytes, "database": self._database}
        )
        try:
            worker = _Worker(opening)
        except OSError as error:
            with self._changed:
                self._failed = error
                self._changed.wait(TICK_SECONDS)
            return
        with self._changed:
            if not self._closed:
                self._workers.append(worker)
                self._changed.notify_all()
                return
        worker.end()
