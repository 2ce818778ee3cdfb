"""What a server of pages takes of the machine while people talk."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import psycopg

from benchmarks.processes import (
    children_seconds,
    descendants,
    memory_mib,
    own_seconds,
    parent_of,
)

SAMPLE_S = 5.0
DATABASE = "SELECT pg_database_size(current_database())"
LOG = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class StoreServer:
    """The PostgreSQL that keeps the threads."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self.pid = parent_of(self._number("SELECT pg_backend_pid()"))

    def connections(self) -> int:
        """Return how many connections its clients have to the store."""
        return self._number(CONNECTIONS)

    def size(self) -> tuple[int, int]:
        """Return the bytes of the store, and of the log that was ever written."""
        return self._number(DATABASE), self._number(LOG)

    def close(self) -> None:
        """Close the connection to it."""
        self._connection.close()

    def _number(self, query: str) -> int:
        row = self._connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


@dataclass(frozen=True)
class Reading:
    """Processor seconds and bytes up to a moment."""

    server_s: float = 0.0
    workers_s: float = 0.0
    postgres_s: float = 0.0
    store_bytes: int = 0
    log_bytes: int = 0
    results_bytes: int = 0

    def since(self, before: "Reading") -> "Reading":
        """Return what came after an earlier reading."""
        return Reading(
            server_s=self.server_s - before.server_s,
            workers_s=self.workers_s - before.workers_s,
            postgres_s=self.postgres_s - before.postgres_s,
            store_bytes=self.store_bytes - before.store_bytes,
            log_bytes=self.log_bytes - before.log_bytes,
            results_bytes=self.results_bytes - before.results_bytes,
        )


@dataclass
class Peaks:
    """The most that was seen at once."""

    server_mib: float = 0.0
    workers_mib: float = 0.0
    postgres_mib: float = 0.0
    connections: int = 0
    people: int = 0


@dataclass
class Machine:
    """The web chat by its processes, their home, and the store if that is a server."""

    server_pids: list[int]
    home: Path
    store: StoreServer | None
    peaks: Peaks = field(default_factory=Peaks)

    def read(self) -> Reading:
        """Return the figures of now."""
        store = sum(path.stat().st_size for path in self.home.glob("threads.db*") if path.is_file())
        log = 0
        if self.store is not None:
            store, log = self.store.size()
        results = [path for path in self.home.rglob("*.results/**/*") if path.is_file()]
        return Reading(
            server_s=sum(map(own_seconds, self.server_pids)),
            workers_s=sum(map(children_seconds, self.server_pids)),
            postgres_s=children_seconds(self.store.pid) if self.store else 0.0,
            store_bytes=store,
            log_bytes=log,
            results_bytes=sum(path.stat().st_size for path in results),
        )

    async def watch(self, people: Callable[[], int]) -> None:
        """Look for peaks until it is cancelled. `people` returns how many are there."""
        while True:
            self.look(people())
            await asyncio.sleep(SAMPLE_S)

    def look(self, people: int) -> None:
        """Compare what is there with the peaks so far."""
        peaks = self.peaks
        workers = memory_mib(list(chain.from_iterable(map(descendants, self.server_pids))))
        peaks.server_mib = max(peaks.server_mib, memory_mib(self.server_pids))
        peaks.workers_mib = max(peaks.workers_mib, workers)
        peaks.people = max(peaks.people, people)
        if self.store is not None:
            postgres = [self.store.pid, *descendants(self.store.pid)]
            peaks.postgres_mib = max(peaks.postgres_mib, memory_mib(postgres))
            peaks.connections = max(peaks.connections, self.store.connections())
