"""Start and end the worker processes of this process, for all databases together.

One spare process is there for all of them. It has loaded what a database needs, but has opened
none. A database takes it when all its own workers are busy, and another spare is started. Workers
without a job are ended after a while, and soon if there are more of them than processors.

A thread of this module checks all processes every `TICK_SECONDS`. It starts processes, and
interrupts and later kills those whose job is late or cancelled. The thread ends when no process is
left.
"""

import logging
import os
import threading
import time
import weakref

from longtable.base.errors import (
    ConnectionWaitError,
    DatabaseUnavailableError,
    QueryCancelledError,
)
from longtable.tools.workers import worker_handle
from longtable.tools.workers.runner import Cancel
from longtable.tools.workers.worker_handle import Client, WorkerHandle

_log = logging.getLogger(__name__)

MOST_WORKERS = 8
"""The most jobs of one client that run at once; further jobs wait."""
TICK_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
SURPLUS_SECONDS = 1.0
"""How long a worker that is one too many stays after its job. Without it, threads that ask again
and again with a moment between two queries would start a process for each query.
"""


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Supervisor:
    """All worker processes of this process. Threads share it. After a fork, the child process
    starts with none, because the existing ones belong to the parent process.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._most_idle = processors()
        self.workers: list[WorkerHandle] = []
        self._clients: weakref.WeakSet[Client] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._failed: OSError | MemoryError | None = None
        self._pause = TICK_SECONDS
        """After how many seconds a process is tried again if the next one cannot be started."""
        self._next_try = 0.0

    def leave_to_parent(self) -> None:
        """Begin anew, without a worker. Call it in a process that was just forked."""
        for worker in self.workers:
            worker.process.returncode = 0
            worker.leave()
        for client in self._clients:
            client.waiting = 0
        self._begin()

    def add(self, client: Client) -> None:
        """Register a client, and start a first worker without waiting for it. Raises
        `DatabaseUnavailableError` if no thread can be started.
        """
        with self._changed:
            client.used = time.monotonic()
            self._clients.add(client)
            self._wake_thread()

    def workers_of(self, client: Client) -> list[WorkerHandle]:
        """Return the workers that have opened the database of a client, or are about to."""
        return [worker for worker in self.workers if worker.owner is client]

    def take(self, client: Client, cancel: Cancel) -> WorkerHandle:
        """Wait for a worker that is free, and return it. If it has opened no database yet, the
        caller must open the client's in it.

        Raises `ConnectionWaitError` if all workers of the client stayed busy.
        """
        began = time.monotonic()
        with self._changed:
            self._clients.add(client)  # this may be a fork of the process that added it
            client.waiting += 1
            try:
                while True:
                    self._raise_if_stopped(client, cancel)
                    if (worker := self._free(client)) is not None:
                        worker.owner = client
                        worker.busy = True
                        worker.begin(worker_handle.START_SECONDS, cancel)
                        return worker
                    self._raise_if_none_starts()
                    waited = time.monotonic() - began
                    at_work = len(self.workers_of(client))
                    if at_work >= MOST_WORKERS and waited > client.wait_seconds:
                        raise ConnectionWaitError(waited_s=waited, connections=MOST_WORKERS)
                    self._wake_thread()
                    self._changed.wait(TICK_SECONDS / 10)
            finally:
                client.waiting -= 1

    def begin(self, worker: WorkerHandle, seconds: float, cancel: Cancel) -> None:
        """Prepare a worker for a job; see `WorkerHandle.begin`."""
        with self._changed:
            worker.begin(seconds, cancel)
            self._wake_thread()  # its first job asks for another spare

    def release(self, worker: WorkerHandle, *, keep: bool) -> None:
        """Take a worker back after its job. Without `keep`, end it."""
        with self._changed:
            worker.release()
            if worker.owner is not None:
                worker.owner.used = worker.used
                keep = keep and not worker.owner.closed
            if not keep and worker in self.workers:
                self.workers.remove(worker)
            self._changed.notify_all()
        if not keep:
            worker.end()

    def close(self, client: Client) -> None:
        """End all workers of a client, whether they are busy or idle. With the last client the
        spare ends, too.
        """
        with self._changed:
            client.closed = True
            doomed = self.workers_of(client)
            if all(each.closed for each in self._clients):
                doomed += self._spares()
            self.workers = [worker for worker in self.workers if worker not in doomed]
            busy = [worker for worker in doomed if worker.busy]
            self._changed.notify_all()
        for worker in doomed:
            worker.kill()
            if worker not in busy:  # else the thread that reads from it closes it
                worker.leave()

    def _raise_if_stopped(self, client: Client, cancel: Cancel) -> None:
        if client.closed:
            raise DatabaseUnavailableError("the database was closed: open it again")
        if cancel.cancelled:
            raise QueryCancelledError

    def _raise_if_none_starts(self) -> None:
        if self._failed is not None:
            error = self._failed
            self._failed = None
            raise DatabaseUnavailableError(f"no worker process can be started: {_why(error)}")

    def _free(self, client: Client) -> WorkerHandle | None:
        """Return the worker of the client that was idle for the shortest time, otherwise a spare
        that is ready.
        """
        own = self.workers_of(client)
        idle = [worker for worker in own if not worker.busy]
        if idle:
            return max(idle, key=lambda one: one.used)
        if len(own) >= MOST_WORKERS:
            return None
        return next((worker for worker in self._spares() if worker.ready), None)

    def _spares(self) -> list[WorkerHandle]:
        return [worker for worker in self.workers if worker.owner is None]

    def _wake_thread(self) -> None:
        """Start the thread that supervises the workers. If it already runs, wake it if a worker is
        missing.
        """
        if self._thread is None:
            # A daemon: the workers see the end of their pipes when the interpreter ends.
            thread = threading.Thread(target=self._run, name="longtable-workers", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # No memory for a stack, or too many threads; the next call tries again.
                raise DatabaseUnavailableError(
                    f"no worker process can be started: {error}"
                ) from None
            self._thread = thread
        elif self._is_missing():
            self._changed.notify_all()

    def _spares_needed(self, now: float) -> int:
        """Return how many spares there should be: one for each job that waits for a worker, and one
        more for later jobs. That one is started before the first job, or after a database has been
        opened, because it would slow the opening down.
        """
        clients = [client for client in self._clients if not client.closed]
        if not any(client.waiting or now - client.used < client.idle_seconds for client in clients):
            return 0
        waiting = sum(
            min(client.waiting, MOST_WORKERS - len(self.workers_of(client))) for client in clients
        )
        owned = [worker for worker in self.workers if worker.owner is not None]
        if all(worker.opened for worker in owned):
            return waiting + 1 if owned else max(waiting, 1)
        return waiting

    def _is_missing(self) -> bool:
        """Return whether to start another spare. No more are started at once than there are
        processors.
        """
        now = time.monotonic()
        if now < self._next_try and not any(client.waiting for client in self._clients):
            return False
        spares = self._spares()
        starting = sum(not worker.ready for worker in spares)
        needed = self._spares_needed(now)
        return len(spares) < needed and starting < self._most_idle

    def _run(self) -> None:
        """Supervise until no process is left. If that fails, the next call begins with another
        thread; the workers that this one started end with it.
        """
        try:
            self._supervise()
        except BaseException:
            with self._changed:
                self._thread = None
                self._changed.notify_all()
            raise

    def _supervise(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                for worker in self.workers:
                    if worker.busy:
                        worker.enforce(now)
                    elif now - worker.started > worker_handle.START_SECONDS and not worker.ready:
                        worker.killed = True
                        worker.process.kill()  # whoever takes it then reads the end of its pipe
                ended = self._surplus(now)
                self.workers = [worker for worker in self.workers if worker not in ended]
                start = self._is_missing()
                last = not (self.workers or start)
                if last:
                    self._thread = None
                if not (start or ended or last):
                    self._changed.wait(TICK_SECONDS)
            for worker in ended:
                worker.end()
            if last:
                return
            if start:
                self._start()

    def _surplus(self, now: float) -> list[WorkerHandle]:
        """Return the workers to end: those that were idle for long, the oldest of those that are
        more than there are processors, and spares that nobody waits for any more.
        """
        idle: list[WorkerHandle] = []
        ended: list[WorkerHandle] = []
        for worker in sorted(self.workers, key=lambda one: -one.used):
            if worker.owner is None or worker.busy:
                continue
            unused = now - worker.used
            is_surplus = len(idle) >= self._most_idle and unused >= SURPLUS_SECONDS
            if is_surplus or unused >= worker.owner.idle_seconds:
                ended.append(worker)
            else:
                idle.append(worker)
        spares = self._spares()[self._spares_needed(now) :]
        return ended + [spare for spare in spares if now - spare.started >= SURPLUS_SECONDS]

    def _start(self) -> None:
        """Start one spare. This must happen in the supervising thread, because the kernel kills a
        worker when the thread that started it ends.
        """
        with self._changed:
            clients = [client for client in self._clients if not client.closed]
            newest = max(clients, key=lambda one: (one.waiting > 0, one.used), default=None)
        try:
            worker = WorkerHandle(dialect=newest.dialect if newest is not None else "")
        except (OSError, MemoryError) as error:
            with self._changed:
                if any(client.waiting for client in clients):
                    self._failed = error
                self._wait_longer(error)
            return
        with self._changed:
            self._failed = None
            self._pause = TICK_SECONDS
            if self._spares_needed(time.monotonic()):
                self.workers.append(worker)
                self._changed.notify_all()
                return
        worker.end()

    def _wait_longer(self, error: OSError | MemoryError) -> None:
        """Let twice the time pass until the next try. Say in the log that the first one failed."""
        if self._pause == TICK_SECONDS:
            _log.warning("no worker process can be started: %s; it is tried again", _why(error))
        self._next_try = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._changed.wait(TICK_SECONDS)


def _why(error: OSError | MemoryError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "there is no memory"


SUPERVISOR = Supervisor()
"""The supervisor of this process. There is only one, because databases that know nothing of each
other share the spare, and the processors.
"""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SUPERVISOR.leave_to_parent)
