"""Workers: they start and end with their caller, are killed when late, are replaced when lost, and
errors and values pass unchanged.
"""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import pytest

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    LongtableError,
    QueryCancelledError,
    QueryMemoryError,
    QueryRefusedError,
    QueryTimeoutError,
    UnknownTableError,
    WorkerLostError,
)
from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.database import Cancel, Database, QueryLimits, TablePolicy
from longtable.tools.files.loaded_database import LOADED
from longtable.tools.sql.verdict import Verdict
from longtable.tools.worker_backend import WorkerBackend
from longtable.tools.workers import worker_handle
from longtable.tools.workers.pool import Workers
from longtable.tools.workers.supervisor import SUPERVISOR
from longtable.tools.workers.wire import Rows, decode, encode
from longtable.tools.workers.worker_handle import KILL_AFTER_SECONDS, WorkerHandle
from longtable.tools.workers.worker_requests import CHECK, TEXT, TextArguments
from tests.tools.databases import make_file, url
from tests.tools.test_database import HEAVY

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
SECONDS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_file(tmp_path, "sqlite")


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with Database.open(url(path), isolation="process", limits=QueryLimits(seconds=60)) as database:
        yield database


def workers_of(database: Database) -> Workers:
    assert isinstance(database.backend, WorkerBackend)
    return database.backend.workers


def handles(database: Database) -> list[WorkerHandle]:
    """Return the workers that have opened this database, or are about to."""
    return SUPERVISOR.workers_of(workers_of(database).client)


def pids(database: Database) -> set[int]:
    return {worker.process.pid for worker in handles(database)}


def spares() -> list[WorkerHandle]:
    return [worker for worker in SUPERVISOR.workers if worker.owner is None]


def wait_for_spare() -> int:
    """Wait until a spare is ready, and return its process."""
    wait_for(lambda: [worker for worker in spares() if worker.ready])
    return spares()[0].process.pid


def end_spares() -> None:
    """End the spares that earlier tests left, so that the next database starts a process."""
    gc.collect()
    with SUPERVISOR._changed:
        left = spares()
        SUPERVISOR.workers = [worker for worker in SUPERVISOR.workers if worker not in left]
    for worker in left:
        worker.end()


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def busy(database: Database) -> int:
    """Return the process that is at work on a query, once there is one."""
    at_work: list[int] = []

    def one() -> bool:
        at_work[:] = [
            worker.process.pid for worker in handles(database) if worker.busy and worker.opened
        ]
        return bool(at_work)

    wait_for(one)
    time.sleep(0.1)  # the request is on its way
    return at_work[0]


def alive(pid: int) -> bool:
    """Return whether a process is there; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(some: set[int]) -> None:
    for pid in some:
        os.kill(pid, signal.SIGKILL)
    for pid in some:
        with suppress(ChildProcessError):
            # A zombie's threads may still hold its pipes: this waits for all of them.
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


class Asking:
    """A query in a thread, and what became of it."""

    def __init__(
        self,
        database: Database,
        sql: str,
        *,
        seconds: float | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        self.error: LongtableError | None = None
        self._arguments = (database, sql, seconds, cancel)
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        database, sql, seconds, cancel = self._arguments
        try:
            database.run(sql, seconds=seconds, cancel=cancel)
        except LongtableError as error:
            self.error = error

    def end(self) -> LongtableError | None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self.error


# -- start and end ---------------------------------------------------------------------------------


def test_open_waits_for_no_worker_and_close_leaves_none(path: Path) -> None:
    database = Database.open(url(path), isolation="process")
    assert not handles(database)
    assert database.run("SELECT count(*) FROM people").rows == [(4,)]
    wait_for_spare()
    before = pids(database)
    assert len(before) == 1
    database.close()
    assert not any(map(alive, before))
    with pytest.raises(DatabaseUnavailableError, match="closed"):
        database.run("SELECT 1")


RUN_FOR_EVER = """
import sys, threading, time
from longtable.tools.database import Database
from longtable.tools.workers.supervisor import SUPERVISOR
database = Database.open(sys.argv[1], isolation="process")
threading.Thread(target=database.run, args=(sys.argv[2],), daemon=True).start()
while len(SUPERVISOR.workers) < 2 or not any(one.busy and one.opened for one in SUPERVISOR.workers):
    time.sleep(0.01)
print(*[worker.process.pid for worker in SUPERVISOR.workers], flush=True)
time.sleep(60)
"""


@linux
def test_a_caller_that_is_killed_takes_its_workers_along(path: Path) -> None:
    command = [sys.executable, "-c", RUN_FOR_EVER, url(path), HEAVY["sqlite"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        found = [int(word) for word in caller.stdout.readline().split()]
        assert len(found) >= 2
        assert all(map(alive, found))
        caller.kill()
        killed = time.monotonic()
        wait_for(lambda: not any(map(alive, found)))
        assert time.monotonic() - killed < 1


FORK = """
import os, sys
from longtable.tools.database import Database
from longtable.tools.workers.supervisor import SUPERVISOR
database = Database.open(sys.argv[1], isolation="process")
sql = "SELECT count(*) FROM people"
assert database.run(sql).rows == [(4,)]
mine = {worker.process.pid for worker in SUPERVISOR.workers}
child = os.fork()
if not child:
    assert database.run(sql).rows == [(4,)]
    theirs = {worker.process.pid for worker in SUPERVISOR.workers}
    database.close()
    os._exit(1 if mine & theirs or not theirs else 0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert database.run(sql).rows == [(4,)]
assert mine <= {worker.process.pid for worker in SUPERVISOR.workers}
database.close()
"""


NO_THREAD = """
import resource, sys, threading
from longtable.base.errors import DatabaseUnavailableError
from longtable.tools.workers.pool import Workers
from longtable.tools.workers.worker_requests import CHECK, TEXT

limits = resource.getrlimit(resource.RLIMIT_AS)
threading.stack_size(1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, limits[1]))
workers = Workers.__new__(Workers)
try:
    workers.__init__(database={"url": sys.argv[1]}, memory_bytes=10**9)
    raise SystemExit("a thread was started")
except DatabaseUnavailableError:
    pass
threading.stack_size(0)
resource.setrlimit(resource.RLIMIT_AS, limits)
check = CHECK.request({"sql": "SELECT 1"})
arguments = {"version": None, "job": check.job, "arguments": check.arguments}
assert workers.call(TEXT.request(arguments), seconds=10).allowed
workers.close()
"""


@linux
def test_a_forked_process_starts_its_own_workers_and_leaves_its_parents_alone(path: Path) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, url(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_sleep_when_idle_and_wake_up_with_the_next_call(path: Path) -> None:
    check = CHECK.request({"sql": "SELECT 1"})
    arguments: TextArguments = {"version": None, "job": check.job, "arguments": check.arguments}
    with closing(
        Workers(database={"url": url(path)}, memory_bytes=10**9, idle_seconds=0.3)
    ) as workers:
        workers.call(TEXT.request(arguments), seconds=SECONDS)
        [before] = SUPERVISOR.workers_of(workers.client)
        wait_for(
            lambda: not SUPERVISOR.workers_of(workers.client) and before.process.poll() is not None
        )
        verdict = workers.call(TEXT.request(arguments), seconds=SECONDS)
        assert isinstance(verdict, Verdict)
        assert verdict.allowed


@linux
def test_a_call_that_gets_no_thread_is_a_typed_error_and_the_next_call_tries_again(
    path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_THREAD, url(path)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_database_that_is_dropped_ends_its_workers(path: Path) -> None:
    database = Database.open(url(path), isolation="process")
    database.catalog()
    before = pids(database)
    del database
    wait_for(lambda: not any(map(alive, before)))


# -- late, cancelled, lost -------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_late_query_is_interrupted_and_its_worker_stays(dialect: str, tmp_path: Path) -> None:
    with Database.open(url(make_file(tmp_path, dialect)), isolation="process") as database:
        database.catalog()
        before = pids(database)
        with pytest.raises(QueryTimeoutError, match=r"0\.3 s"):
            database.run(HEAVY[dialect], seconds=0.3)
        assert pids(database) == before


@linux
def test_a_worker_that_does_not_react_is_killed_and_a_spare_takes_its_place(
    database: Database,
) -> None:
    database.catalog()
    for stop, error in (("late", QueryTimeoutError), ("cancelled", QueryCancelledError)):
        spare = wait_for_spare()
        cancel = Cancel()
        asking = Asking(
            database, HEAVY["sqlite"], seconds=0.5 if stop == "late" else None, cancel=cancel
        )
        stuck = busy(database)
        os.kill(stuck, signal.SIGSTOP)
        began = time.monotonic()
        if stop == "cancelled":
            cancel.cancel()
        assert type(asking.end()) is error
        assert KILL_AFTER_SECONDS <= time.monotonic() - began < 3
        assert not alive(stuck)
        assert database.run("SELECT count(*) FROM people").rows == [(4,)]
        assert pids(database) == {spare}


@linux
def test_a_worker_that_is_lost_is_the_error_of_its_query_alone(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.catalog()
    one = Asking(database, HEAVY["sqlite"])
    lost = busy(database)
    other = Asking(database, "SELECT count(*) FROM numbers a, numbers b")
    os.kill(lost, signal.SIGABRT)
    assert isinstance(one.end(), WorkerLostError)
    assert other.end() is None
    assert "-6" in caplog.text
    assert database.run("SELECT count(*) FROM people").rows == [(4,)]


@linux
def test_a_worker_that_is_killed_while_it_sends_rows_gives_none_of_them(path: Path) -> None:
    limits = QueryLimits(rows=400_000, bytes=100_000_000, seconds=60)
    sql = "SELECT a.n, b.n FROM numbers a, numbers b LIMIT 300000"
    lost = 0
    with Database.open(url(path), isolation="process", limits=limits) as database:
        database.catalog()
        began = time.monotonic()
        assert database.run(sql).row_count == 300_000
        whole = time.monotonic() - began
        for share in (0.1, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            asking = Asking(database, sql)
            working = busy(database)
            time.sleep(max(0.0, whole * share - 0.1))
            with suppress(ProcessLookupError):  # one that was killed after its last answer
                kill({working})
            error = asking.end()
            assert error is None or type(error) is WorkerLostError
            lost += error is not None
        assert lost
        assert len(database.run(sql).rows) == 300_000


@linux
def test_a_worker_without_memory_for_a_thread_is_replaced(database: Database) -> None:
    import resource

    database.catalog()
    [before] = pids(database)
    resource.prlimit(before, resource.RLIMIT_DATA, (1, resource.RLIM_INFINITY))
    with pytest.raises(QueryMemoryError):
        database.run("SELECT count(*) FROM people")
    assert database.run("SELECT count(*) FROM people").rows == [(4,)]
    assert before not in pids(database)


@linux
def test_a_worker_that_dies_between_two_queries_fails_none(database: Database) -> None:
    database.catalog()
    kill({*pids(database), wait_for_spare()})
    assert database.run("SELECT count(*) FROM people").rows == [(4,)]


def test_a_schema_that_changes_is_seen_by_every_worker(path: Path) -> None:
    with Database.open(url(path), isolation="process") as database:
        database.catalog()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE later (x INTEGER)")
        assert database.refresh().find("later") is not None
        slow = Asking(database, "SELECT count(*) FROM numbers a, numbers b, numbers c", seconds=1)
        busy(database)
        # By another worker than the one that was asked.
        assert database.run("SELECT count(*) FROM later").rows == [(0,)]
        slow.end()


def test_a_duckdb_file_that_changed_while_no_worker_held_it_is_read_anew(tmp_path: Path) -> None:
    path = make_file(tmp_path, "duckdb", "CREATE TABLE t (x INTEGER)")
    with Database.open(url(path), isolation="process") as database:
        assert database.catalog().find("later") is None

        def written() -> bool:
            kill(pids(database))
            try:
                with duckdb.connect(str(path)) as connection:
                    connection.execute("CREATE TABLE later (x INTEGER)")
            except duckdb.IOException:
                return False  # the next worker holds the file already
            return True

        wait_for(written)
        assert database.refresh().find("later") is not None


# -- what a worker is given ------------------------------------------------------------------------


@linux
def test_a_worker_inherits_no_descriptor(path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        with Database.open(url(path), isolation="process") as database:
            database.catalog()
            [pid, *_] = pids(database)
            links: set[str] = set()
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(FileNotFoundError):  # closed since it was listed
                    links.add(str(link.readlink()))
            assert links
            assert f"pipe:[{os.fstat(writing).st_ino}]" not in links
    finally:
        os.close(reading)
        os.close(writing)


@linux
def test_a_worker_sees_no_key_and_has_a_bound_on_its_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-workers")
    with Database.open(
        url(path), isolation="process", limits=QueryLimits(memory_bytes=100_000_000)
    ) as database:
        database.catalog()
        for pid in [worker.process.pid for worker in handles(database) if worker.opened]:
            assert b"sk-not-for-workers" not in Path(f"/proc/{pid}/environ").read_bytes()
            limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
            [most] = [int(line.split()[3]) for line in limits if line.startswith("Max data size")]
            assert 600_000_000 <= most < 1_500_000_000


NO_PYTHON = """
import sys
from longtable.base.errors import ConfigError
from longtable.tools.database import Database
for executable, frozen in ((None, False), ("", False), ("/usr/bin/uwsgi", False), (sys.executable, True)):
    sys.executable, sys.frozen = executable, frozen
    try: Database.open(sys.argv[1])
    except ConfigError as error: print('isolation="none"' in str(error))
    Database.open(sys.argv[1], isolation="none").close()
"""


def test_without_a_python_to_start_the_error_says_what_to_do(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_PYTHON, url(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["True"] * 4, "")


def test_a_python_that_does_not_start_is_an_error_of_the_first_call(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho no library >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    end_spares()
    with (
        Database.open(url(path), isolation="process") as database,
        pytest.raises(DatabaseUnavailableError, match="no library"),
    ):
        database.catalog()


def test_a_python_that_never_gets_ready_is_an_error_too(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = tmp_path / "python3"
    stuck.write_text("#!/bin/sh\nexec sleep 60\n")
    stuck.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stuck))
    monkeypatch.setattr(worker_handle, "START_SECONDS", 0.3)
    end_spares()
    with (
        Database.open(url(path), isolation="process") as database,
        pytest.raises(DatabaseUnavailableError, match="not ready within"),
    ):
        database.catalog()


def test_a_python_that_ends_without_a_word_is_told_by_its_status(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "python3"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(silent))
    end_spares()
    with (
        Database.open(url(path), isolation="process") as database,
        pytest.raises(DatabaseUnavailableError, match=r"ended \(status 3\)"),
    ):
        database.catalog()


@linux
def test_a_path_that_is_no_text_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    path = make_file(tmp_path, "sqlite").rename(tmp_path / os.fsdecode(b"\xff.db"))
    with pytest.raises(ConfigError, match="UTF-8"):
        Database.open(f"sqlite:///{path}", isolation="process")


def test_an_unknown_isolation_is_a_config_error(path: Path) -> None:
    with pytest.raises(ConfigError, match="isolation must be"):
        Database.open(url(path), isolation="thread")  # type: ignore[arg-type]  # wrong on purpose


def test_data_files_are_loaded_once_and_asked_by_every_worker(tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("id,name,price\n1,Bern,2\n2,Genf\n", encoding="utf-8")
    with Database.open(str(tmp_path / "cities.csv"), isolation="process") as database:
        assert [note.code for note in database.notes] == ["uneven_lines"]
        (tmp_path / "cities.csv").unlink()
        assert database.run("SELECT count(*) FROM cities").rows == [(2,)]
        kill(pids(database))
        assert database.run("SELECT count(*) FROM cities").rows == [(2,)]
    with pytest.raises(DatabaseUnavailableError, match="there is no file"):
        Database.open(str(tmp_path / "cities.csv"), isolation="process")


LOAD_AND_WAIT = """
import sys, time
from longtable.tools.database import Database
database = Database.open(sys.argv[1])
print(database.name, flush=True)
time.sleep(60)
"""


@linux
def test_files_that_a_killed_process_loaded_are_swept_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cities.csv").write_text("id,name\n1,Bern\n", encoding="utf-8")
    (folders := tmp_path / "temp").mkdir()
    monkeypatch.setenv("TMPDIR", str(folders))
    monkeypatch.setattr("tempfile.tempdir", None)
    (folders / f"{LOADED}new").mkdir()
    with Database.open(str(tmp_path / "cities.csv"), isolation="process") as mine:
        alive = set(folders.iterdir())
        command = [sys.executable, "-c", LOAD_AND_WAIT, str(tmp_path / "cities.csv")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as caller:
            assert caller.stdout is not None
            assert caller.stdout.readline()
            caller.kill()
        assert len(set(folders.iterdir()) - alive) == 1

        def swept() -> bool:  # the workers of a killed process end a moment after it
            gc.collect()
            with Database.open(str(tmp_path / "cities.csv"), isolation="process") as other:
                assert other.run("SELECT count(*) FROM cities").rows == [(1,)]
                return len(set(folders.iterdir()) - alive) == 1

        wait_for(swept)
        assert mine.run("SELECT count(*) FROM cities").rows == [(1,)]
    del mine
    gc.collect()
    assert list(folders.glob(f"{LOADED}*")) == [folders / f"{LOADED}new"]


# -- what passes -----------------------------------------------------------------------------------

VALUES = [
    *(
        None,
        True,
        0,
        -1,
        2**63,
        -(2**127),
        1.5,
        -0.0,
        float("inf"),
        "",
        "东京 🛫\x00",
        b"\xff\x00",
        [1, [2]],
        {"a": {"b": None}},
    ),
    *(
        Decimal("1.50"),
        Decimal("NaN"),
        date(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
        clock(10, 0, 0, 1),
    ),
    *(
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        clock(1, tzinfo=UTC),
    ),
    *(
        timedelta(days=-1, microseconds=5),
        UUID(int=7),
        (1, ("a",)),
        {1: "x", (2, "b"): [date(2024, 1, 1)]},
        frozenset({"a"}),
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_passes_with_its_type(value: object) -> None:
    assert repr(decode(encode(value))) == repr(value)
    rows = [(value, 1), (None, 2), (value, 3)]
    assert repr(decode(encode(Rows(rows)))) == repr(rows)


def test_a_catalogue_and_a_policy_pass_whole() -> None:
    table = Table("t", "table", (Column("x", "INT", masked=True),), ("x",), comment="它")
    catalog = Catalog(
        (table,),
        frozenset({"main"}),
        hidden_columns={("main", "t"): frozenset({"y"})},
        view_sql={("main", "v"): "SELECT 1"},
    )
    policy = TablePolicy(
        denied=frozenset({"Vault"}), places={("denied", "vault"): "policy.toml, line 4"}
    )
    for value in (catalog, policy):
        assert vars(decode(encode(value))) == vars(value)


@pytest.mark.parametrize(
    "error",
    [
        UnknownTableError(
            "no such table", rule="table", hint="nearest: t", line=2, column=7, nearest=("t", "u")
        ),
        QueryTimeoutError(limit_s=0.5),
        DatabaseUnavailableError("locked"),
        QueryCancelledError(),
        ConfigError("wrong"),
    ],
    ids=repr,
)
def test_an_error_passes_with_its_class_and_fields(error: LongtableError) -> None:
    passed = decode(encode(error))
    assert (type(passed), str(passed), vars(passed), passed.user_text("zh")) == (
        type(error),
        str(error),
        vars(error),
        error.user_text("zh"),
    )


def test_what_is_not_on_the_list_does_not_pass() -> None:
    with pytest.raises(TypeError, match="Path"):
        encode([Path("x")])
    with pytest.raises(ValueError, match="ext_hook"):
        decode(
            encode(QueryCancelledError()).replace(b"QueryCancelledError", b"NotOfTheListError__")
        )


def test_half_a_surrogate_pair_is_refused(database: Database) -> None:
    with pytest.raises(QueryRefusedError, match="surrogate"):
        database.run("SELECT '\ud83d'")
    assert database.run("SELECT 1").rows == [(1,)]


def test_errors_of_a_worker_are_those_of_this_process(path: Path) -> None:
    said = []
    for isolation in ("none", "process"):
        with Database.open(
            url(path), isolation=isolation, policy=TablePolicy(denied=frozenset({"vault"}))
        ) as database:
            for sql in (
                "SELECT * FROM vault",
                "SELECT nam FROM people",
                "SELECT (",
                "DELETE FROM people",
                "SELECT abs('x', 1)",
            ):
                with pytest.raises(DatabaseError) as caught:
                    database.run(sql)
                said.append(
                    (isolation, sql, type(caught.value), str(caught.value), vars(caught.value))
                )
    half = len(said) // 2
    assert [one[1:] for one in said[:half]] == [one[1:] for one in said[half:]]


@linux
def test_what_a_query_leaves_in_a_worker_is_collected_after_it(database: Database) -> None:
    def resident() -> int:
        [pid] = {pid for pid in pids(database) if pid in busiest}
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def ask(first: int) -> None:
        for n in range(first, first + 100):
            parts = " + ".join(f"{n + part}" for part in range(300))
            assert database.run(f"SELECT {parts} AS n").row_count == 1

    ask(0)
    busiest = {max(handles(database), key=lambda one: one.number).process.pid}
    before = resident()
    ask(1_000)
    assert resident() < before + 10_000  # KiB
