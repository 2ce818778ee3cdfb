"""Worker processes that do jobs for one database. Each worker does one job at a time.

While a query runs, no other job uses its process, so killing the process stops only this query.
`workers.supervisor` starts and ends the processes of all databases.
"""

import logging
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from longtable.base.errors import (
    ConfigError,
    DatabaseUnavailableError,
    LongtableError,
    QueryCancelledError,
    QueryMemoryError,
    QueryRefusedError,
    QueryTimeoutError,
    WorkerLostError,
)
from longtable.tools.workers import worker_handle
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.supervisor import SUPERVISOR
from longtable.tools.workers.wire import encode
from longtable.tools.workers.worker_handle import Client, WorkerHandle
from longtable.tools.workers.worker_requests import Answer, Request

IDLE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Workers:
    """The workers of one database, or workers without a database. Threads may share them. After a
    fork, the child process starts its own workers.
    """

    def __init__(
        self,
        *,
        database: Mapping[str, object] | None = None,
        dialect: str = "",
        memory_bytes: int,
        answer_bytes: int = 0,
        wait_seconds: float = 5.0,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """Start a first worker without waiting for it, if this process has none.

        `database` are arguments of `Database.open`. `dialect` is that of the engine that the
        workers use, "" for none. `answer_bytes` is the largest size of a result. `wait_seconds` is
        the longest time that a job waits for a free worker. Raises `ConfigError` if no Python is
        found to start a process.
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
        self._most_bytes = 64_000_000 + 4 * answer_bytes
        self.client = Client(
            dialect=dialect,
            opening={"memory_bytes": memory_bytes, "database": database},
            wait_seconds=wait_seconds,
            idle_seconds=idle_seconds,
        )
        SUPERVISOR.add(self.client)

    def call(
        self, request: Request[Answer], *, seconds: float, cancel: Cancel | None = None
    ) -> Answer:
        """Let a worker do a job. Return the answer, or raise the error that the job raised.

        Raises `QueryTimeoutError` or `QueryCancelledError` if the job was stopped,
        `ConnectionWaitError` if all workers stayed busy, and `WorkerLostError` if the process of
        the worker ended.
        """
        cancel = cancel or Cancel()
        began = time.monotonic()
        while True:
            worker = self._acquire(cancel)
            sent = False
            keep = False
            try:
                SUPERVISOR.begin(worker, seconds, cancel)
                worker.send(request)
                sent = True
                answer = worker.answer(most=self._most_bytes)
                # The memory it still holds would be missing for the next job.
                keep = not isinstance(answer, QueryMemoryError)
                break
            except (EOFError, OSError, ValueError):
                # One that ended while nobody asked it anything never read the job: the next one
                # does it.
                if sent or worker.killed or self.client.closed or worker.started >= began:
                    raise self._why_lost(worker, seconds) from None
            except TypeError:
                keep = True
                raise QueryRefusedError(
                    "the text holds half a surrogate pair",
                    rule="syntax",
                    hint="leave that character out",
                ) from None
            finally:
                SUPERVISOR.release(worker, keep=keep)
        if isinstance(answer, QueryCancelledError) and not (cancel.cancelled or self.client.closed):
            raise QueryTimeoutError(limit_s=seconds)  # the interrupt came from the deadline
        if isinstance(answer, LongtableError):
            raise answer
        return cast("Answer", answer)

    def close(self) -> None:
        """End all workers, whether they are busy or idle."""
        SUPERVISOR.close(self.client)

    def _acquire(self, cancel: Cancel) -> WorkerHandle:
        """Return a worker that has opened the database and is waiting for a job."""
        began = time.monotonic()
        while True:
            worker = SUPERVISOR.take(self.client, cancel)
            if worker.opened:
                return worker
            error: LongtableError
            try:
                worker.open(self.client.opening, most=self._most_bytes)
                return worker
            except (EOFError, OSError, ValueError):
                error = self._not_started(worker)
                # A spare that ended long ago may have had a reason that is over by now.
                again = worker.started < began and not cancel.cancelled
            except LongtableError as raised:
                error = raised
                again = False
            except BaseException:  # such as Ctrl-C
                SUPERVISOR.release(worker, keep=False)
                raise
            SUPERVISOR.release(worker, keep=False)
            if not again:
                raise error

    def _not_started(self, worker: WorkerHandle) -> LongtableError:
        if worker.cancel.cancelled or self.client.closed:
            return QueryCancelledError()
        words = worker.stderr_text() or (
            f"it was not ready within {worker_handle.START_SECONDS:.0f} s"
            if worker.killed
            else f"it ended (status {worker.process.returncode})"
        )
        _log.warning("a worker could not be started: %s", words)
        return DatabaseUnavailableError(
            "the process that asks the database could not be started:"
            f" {words.rpartition(chr(10))[2]}"
        )

    def _why_lost(self, worker: WorkerHandle, seconds: float) -> LongtableError:
        if worker.cancel.cancelled or self.client.closed:
            return QueryCancelledError()
        if worker.killed:
            return QueryTimeoutError(limit_s=seconds, killed=True)
        words = worker.stderr_text()
        _log.warning("a worker ended with %s: %s", worker.process.returncode, words)
        return WorkerLostError(
            f"the process that ran the query ended (status {worker.process.returncode}): the query"
            " may need too much memory, or meets a fault of the engine; write it another way"
        )
