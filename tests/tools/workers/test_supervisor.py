"""All databases of a process share their workers: one spare, as many idle ones as processors, and
none that outlives its caller.
"""

import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from longtable.base.errors import (
    ConnectionWaitError,
    DatabaseUnavailableError,
    LongtableError,
    WorkerLostError,
)
from longtable.tools.database import Database, QueryLimits
from longtable.tools.workers import supervisor
from longtable.tools.workers.supervisor import SUPERVISOR, SURPLUS_SECONDS
from longtable.tools.workers.worker_handle import WorkerHandle
from tests.tools.databases import make_file, url
from tests.tools.test_database import HEAVY
from tests.tools.workers.test_pool import (
    Asking,
    alive,
    busy,
    end_spares,
    handles,
    kill,
    pids,
    spares,
    wait_for,
    wait_for_spare,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
MOST_IDLE = 2
SLOW = "SELECT count(a.n + b.n) FROM numbers a, numbers b, (SELECT n FROM numbers LIMIT 4) c"
"""A query that takes SQLite longer than a worker takes to start."""
NUMBERS = {
    "sqlite": (
        "CREATE TABLE numbers AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t"
        " WHERE n < 2000) SELECT n FROM t;"
    ),
    "duckdb": "CREATE TABLE numbers AS SELECT range AS n FROM range(2000);",
}


@pytest.fixture
def databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Database]]:
    """Six databases, each with its own number in its table `mine`."""
    monkeypatch.setattr(SUPERVISOR, "_most_idle", MOST_IDLE)
    end_spares()
    with ExitStack() as stack:
        opened = []
        for number in range(6):
            folder = tmp_path / str(number)
            folder.mkdir()
            dialect = ("sqlite", "duckdb")[number % 2]
            mine = f"CREATE TABLE mine (n INTEGER); INSERT INTO mine VALUES ({number});"
            place = url(make_file(folder, dialect, f"{mine} {NUMBERS[dialect]}"))
            database = Database.open(place, isolation="process", limits=QueryLimits(seconds=60))
            opened.append(stack.enter_context(database))
        yield opened


def number_of(database: Database) -> object:
    return database.run("SELECT n FROM mine").rows[0][0]


def idle() -> list[WorkerHandle]:
    return [one for one in list(SUPERVISOR.workers) if one.owner is not None and not one.busy]


def test_databases_that_nobody_asks_share_one_spare(databases: list[Database]) -> None:
    spare = wait_for_spare()
    time.sleep(0.3)
    assert [worker.process.pid for worker in spares()] == [spare]
    assert not any(handles(database) for database in databases)


def test_a_database_takes_the_spare_and_the_next_one_takes_another(
    databases: list[Database],
) -> None:
    taken = []
    for number in (0, 1, 2):
        taken.append(wait_for_spare())
        assert number_of(databases[number]) == number
        assert pids(databases[number]) == {taken[-1]}
    assert len(set(taken)) == 3


def test_the_oldest_idle_workers_end_and_their_databases_go_on(databases: list[Database]) -> None:
    assert [number_of(database) for database in databases] == list(range(6))
    wait_for(lambda: len(idle()) <= MOST_IDLE)
    assert [bool(handles(database)) for database in databases] == [False] * 4 + [True] * 2
    assert len(spares()) == 1
    kept = [pids(databases[4]), pids(databases[5])]
    assert [number_of(databases[5]), number_of(databases[4])] == [5, 4]
    assert [pids(databases[4]), pids(databases[5])] == kept
    assert number_of(databases[0]) == 0
    wait_for(lambda: len(idle()) <= MOST_IDLE)
    assert (pids(databases[4]), pids(databases[5])) == (kept[0], set())


def test_a_running_job_is_not_one_too_many(databases: list[Database]) -> None:
    slow = [Asking(database, HEAVY[database.dialect], seconds=4) for database in databases[:4]]
    wait_for(lambda: all(handles(database) for database in databases[:4]))
    time.sleep(SURPLUS_SECONDS * 1.5)
    assert all(handles(database) for database in databases[:4])
    assert number_of(databases[4]) == 4
    assert {type(one.end()).__name__ for one in slow} == {"QueryTimeoutError"}


def test_threads_that_ask_at_the_same_time_again_and_again_keep_their_workers(
    databases: list[Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SURPLUS_SECONDS", 60.0)
    used = set[int]()
    together = threading.Barrier(5)

    def ask() -> None:
        for _ in range(3):
            together.wait(20)
            assert databases[0].run(SLOW).row_count == 1
            used.update(pids(databases[0]))
            time.sleep(0.2)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(used) == 5
    monkeypatch.setattr(supervisor, "SURPLUS_SECONDS", 0.0)
    wait_for(lambda: len(idle()) <= MOST_IDLE)


def test_a_database_has_at_most_eight_workers(
    databases: list[Database], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "MOST_WORKERS", 2)
    place = url(make_file(tmp_path, "sqlite"))
    with Database.open(place, isolation="process", busy_seconds=0.3) as database:
        slow = [Asking(database, HEAVY["sqlite"], seconds=3) for _ in range(2)]
        wait_for(lambda: len([one for one in handles(database) if one.opened]) == 2)
        with pytest.raises(ConnectionWaitError):
            database.run("SELECT 1")
        assert number_of(databases[1]) == 1
        assert len(pids(database)) == 2
        assert {type(one.end()).__name__ for one in slow} == {"QueryTimeoutError"}


@linux
def test_a_spare_for_sqlite_loads_no_duckdb(tmp_path: Path) -> None:
    for dialect, loads in (("sqlite", False), ("duckdb", True)):
        end_spares()
        folder = tmp_path / dialect
        folder.mkdir()
        with Database.open(url(make_file(folder, dialect)), isolation="process"):
            maps = Path(f"/proc/{wait_for_spare()}/maps").read_text()
            assert ("duckdb" in maps) == loads


def test_a_file_that_cannot_be_opened_is_the_error_of_its_own_queries(
    databases: list[Database], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5_000)
    with Database.open(url(broken), isolation="process") as database:
        for _ in range(2):
            with pytest.raises(DatabaseUnavailableError):
                database.run("SELECT 1")
        assert not handles(database)
        assert number_of(databases[0]) == 0


@linux
def test_several_threads_and_databases_survive_kills_of_any_worker(
    databases: list[Database],
) -> None:
    """A query of a killed worker fails by name, any other returns the rows of its own database."""
    errors: list[LongtableError] = []
    answers: list[int] = []
    ended = threading.Event()

    def ask(seed: int) -> None:
        chance = random.Random(seed)
        while not ended.is_set():
            number = chance.randrange(6)
            try:
                assert number_of(databases[number]) == number
                answers.append(number)
            except LongtableError as error:
                errors.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    for _ in range(12):
        time.sleep(0.4)
        workers = list(SUPERVISOR.workers)
        if workers:
            with suppress(ProcessLookupError):
                chance.choice(workers).process.send_signal(signal.SIGKILL)
    ended.set()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert set(answers) == set(range(6))
    assert all(isinstance(one, WorkerLostError | DatabaseUnavailableError) for one in errors)
    assert len(errors) <= 12
    assert [number_of(database) for database in databases] == list(range(6))
    wait_for(lambda: len(idle()) <= MOST_IDLE)


@linux
def test_databases_opened_and_closed_by_threads_leave_no_worker(tmp_path: Path) -> None:
    place = url(make_file(tmp_path, "sqlite"))
    mine = set[int]()

    def use(closes_while_asked: bool) -> None:
        for _ in range(4):
            database = Database.open(place, isolation="process")
            asking = Asking(database, HEAVY["sqlite"], seconds=30) if closes_while_asked else None
            if asking is None:
                assert database.run("SELECT count(*) FROM people").rows == [(4,)]
            else:
                busy(database)
            mine.update(pids(database))
            database.close()
            if asking is not None:
                assert isinstance(asking.end(), LongtableError)

    threads = [threading.Thread(target=use, args=(number % 2 == 0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(mine) == 16
    assert not any(map(alive, mine))


@linux
def test_a_lost_spare_is_replaced(databases: list[Database]) -> None:
    lost = wait_for_spare()
    kill({lost})
    assert number_of(databases[0]) == 0
    assert number_of(databases[1]) == 1
    assert wait_for_spare() != lost


ENDS = """
import os, sys
from longtable.tools.database import Database
from longtable.tools.workers.supervisor import SUPERVISOR
import time
databases = [Database.open(place, isolation="process") for place in sys.argv[2:]]
for database in databases:
    assert database.run("SELECT count(*) FROM people").rows == [(4,)]
while not [one for one in SUPERVISOR.workers if one.owner is None]:
    time.sleep(0.01)
print(*[worker.process.pid for worker in SUPERVISOR.workers], flush=True)
if sys.argv[1] == "close":
    for database in databases:
        database.close()
    assert not SUPERVISOR.workers
    while SUPERVISOR._thread is not None:
        time.sleep(0.01)
    print("no thread", flush=True)
    time.sleep(60)
if sys.argv[1] == "drop":
    del databases, database
    time.sleep(60)
if sys.argv[1] == "at once":
    os._exit(0)
"""


@linux
@pytest.mark.parametrize("end", ["close", "drop", "at once", "plain"])
def test_no_process_is_left_however_a_caller_ends(tmp_path: Path, end: str) -> None:
    places = []
    for dialect in ("sqlite", "duckdb"):
        (folder := tmp_path / dialect).mkdir()
        places.append(url(make_file(folder, dialect)))
    command = [sys.executable, "-W", "error", "-c", ENDS, end, *places]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        found = [int(word) for word in caller.stdout.readline().split()]
        assert len(found) == 3  # one for each database, and the spare
        wait_for(lambda: not any(map(alive, found)))
        if end == "close":
            assert caller.stdout.readline() == b"no thread\n"
        if end in ("close", "drop"):
            assert caller.poll() is None
            caller.kill()
        _, errors = caller.communicate(timeout=20)
        assert errors == b""


FORK = """
import os, sys
from longtable.tools.database import Database
from longtable.tools.workers.supervisor import SUPERVISOR
import time
one, other = [Database.open(place, isolation="process") for place in sys.argv[1:]]
sql = "SELECT count(*) FROM people"
assert one.run(sql).rows == [(4,)]
while not [each for each in SUPERVISOR.workers if each.owner is None and each.ready]:
    time.sleep(0.01)
mine = {worker.process.pid for worker in SUPERVISOR.workers}
child = os.fork()
if not child:
    assert not SUPERVISOR.workers
    assert other.run(sql).rows == one.run(sql).rows == [(4,)]
    theirs = {worker.process.pid for worker in SUPERVISOR.workers}
    other.close()
    one.close()
    os._exit(1 if mine & theirs or SUPERVISOR.workers else 0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert other.run(sql).rows == one.run(sql).rows == [(4,)]
assert mine <= {worker.process.pid for worker in SUPERVISOR.workers}
"""


@linux
def test_a_fork_takes_no_spare_of_its_parent(tmp_path: Path) -> None:
    places = []
    for dialect in ("sqlite", "duckdb"):
        (folder := tmp_path / dialect).mkdir()
        places.append(url(make_file(folder, dialect)))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, *places]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "error", [OSError(24, "Too many open files"), MemoryError(), ZeroDivisionError()]
)
def test_a_spare_that_cannot_be_started_fails_no_database_that_has_a_worker(
    databases: list[Database], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    assert number_of(databases[0]) == 0
    wait_for(lambda: len(spares()) == 1)
    errors = [error]
    [worker] = handles(databases[0])

    def failing(dialect: str) -> WorkerHandle:
        if errors:
            raise errors.pop()
        return WorkerHandle(dialect=dialect)

    monkeypatch.setattr(supervisor, "WorkerHandle", failing)
    for spare in spares():
        spare.kill()
        SUPERVISOR.release(spare, keep=False)
    wait_for(lambda: not errors)
    if isinstance(error, ZeroDivisionError):
        wait_for(lambda: worker.process.poll() is not None)  # it ends with the thread
    assert number_of(databases[0]) == 0
    assert number_of(databases[1]) == 1


def test_while_no_process_can_be_started_tries_become_rarer_and_one_line_says_so(
    databases: list[Database], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert number_of(databases[0]) == 0
    wait_for(lambda: len(spares()) == 1)
    tries: list[float] = []

    def failing(dialect: str) -> WorkerHandle:
        tries.append(time.monotonic())
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(supervisor, "WorkerHandle", failing)
    for spare in spares():
        spare.kill()
        SUPERVISOR.release(spare, keep=False)
    wait_for(lambda: len(tries) >= 4)
    gaps = [after - before for before, after in itertools.pairwise(tries)]
    assert gaps[2] > gaps[0]
    assert gaps[2] > 4 * supervisor.TICK_SECONDS * 0.9
    assert (
        len([record for record in caplog.records if "Too many open files" in record.message]) == 1
    )
    monkeypatch.undo()
    assert number_of(databases[1]) == 1  # whoever waits is served at once
