"""The process in which a model's texts are parsed, planned and run: `python -P -m
longtable.tools.workers.process`.

It loads what it needs, and waits as a spare until a `workers.pool` takes it. Then it opens the
pool's `Database`, if it has one, and does one job at a time for this pool. To add a job, describe
it in `worker_requests`, write a function here, and register the function. It takes the database
(None if none was opened), a `Cancel`, and the arguments. The classes of the arguments and of the
answer must be in `wire._CLASSES`.
"""

import ctypes
import gc
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from io import RawIOBase
from pathlib import Path
from typing import Any, NoReturn

from longtable.base.errors import (
    LongtableError,
    QueryFailedError,
    QueryMemoryError,
    UnknownTableError,
)
from longtable.tools.catalog import Catalog
from longtable.tools.cells import without_labels
from longtable.tools.database import Cancel, Database, QueryResult
from longtable.tools.engines.base import Fetched, LoadNote, QueryLimits
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers import worker_requests
from longtable.tools.workers.runner import Runner, Stop
from longtable.tools.workers.wire import (
    Rows,
    decode,
    encode,
    encode_answer,
    read_frame,
    write_frame,
)
from longtable.tools.workers.worker_requests import (
    INTERRUPT,
    Answer,
    Arguments,
    CheckSqlArguments,
    Job,
    LoadArguments,
    OverHandlesArguments,
    ParseArguments,
    ReadArguments,
    RefreshArguments,
    Request,
    RunArguments,
    TextArguments,
    VisibleArguments,
)

MOST_REQUEST_BYTES = 64_000_000
SPARE_BYTES = 500_000_000
"""The memory of the process in addition to the engine's own limit: for Python, the parser and the
rows of a result. DuckDB also uses more memory than it counts.
"""
STACK_BYTES = 8_000_000
"""The stack size of each thread of the engine, in bytes. Linux counts the whole stack even if it is
not used.
"""
WATCH_SECONDS = 0.1

Current = list[tuple[int, Cancel]]
"""The number of the running job and the `Cancel` of this job; empty if no job runs."""


def refresh(
    database: Database | None, _cancel: Cancel, request: RefreshArguments
) -> tuple[object, Catalog | None]:
    """Return the schema version. Also return the catalogue, or None if the caller already has this
    version.
    """
    opened = _at(database, None)
    catalog = opened.refresh()
    known = opened.version == request["version"]
    return opened.version, None if known else catalog


def run(database: Database | None, cancel: Cancel, request: RunArguments) -> QueryResult:
    """Run one query."""
    backend = _at(database, request["version"]).backend
    seconds = request["seconds"]
    return backend.run(request["sql"], rows=request["rows"], seconds=seconds, cancel=cancel)


def check_sql(database: Database | None, cancel: Cancel, request: CheckSqlArguments) -> Plan:
    """Return the engine's plan for one query."""
    backend = _at(database, request["version"]).backend
    return backend.check_sql(request["sql"], rows=request["rows"], cancel=cancel)


def text(database: Database | None, _cancel: Cancel, request: TextArguments) -> object:
    """Run a job on a SQL text, with the dialect and the catalogue of the database."""
    job: Request[object] = Request(request["job"], request["arguments"])
    return _at(database, request["version"]).backend.text(job)


def over_handles(
    _database: Database | None, cancel: Cancel, request: OverHandlesArguments
) -> QueryResult | str:
    """Run one query over stored results; see `run_over_handles`."""
    return run_over_handles(**request, runner=Runner(), cancel=cancel)


def run_over_handles(
    sql: str,
    catalog: Catalog,
    files: Mapping[str, str],
    *,
    limits: QueryLimits,
    runner: Runner,
    cancel: Cancel | None,
) -> QueryResult | str:
    """Check one SELECT whose tables are handles, and run it over the files of these handles, behind
    both walls.

    The query can read no other tables. If the file of a handle is gone, return the name of this
    handle.
    """
    # Here, not above: until a starting process has read its opening, nothing ends it with its
    # caller.
    from longtable.tools.engines.dialects import RESULTS
    from longtable.tools.engines.duckdb import session_over_files
    from longtable.tools.sql.hints import explained
    from longtable.tools.sql.wall import check

    started = time.monotonic()
    verdict = check(sql, dialect=RESULTS.name, catalog=catalog)
    try:
        verdict.raise_if_refused()
    except UnknownTableError as error:
        known = ", ".join([table.name for table in catalog.tables][-10:]) or "no results yet"
        hint = f"the tables here are the handles of results: {known}"
        raise UnknownTableError(
            error.reason, rule=error.rule, hint=hint, line=error.line, column=error.column
        ) from error
    handles = {
        table: Path(files[table.name]) for table in catalog.tables if table.name in verdict.tables
    }
    if missing := next((table.name for table, path in handles.items() if not path.exists()), ""):
        return missing

    def work(stop: Stop) -> Fetched:
        with session_over_files(handles, limits=limits) as session, stop.watch(session):
            return session.fetch(verdict.sql, limits=limits, stop=stop)

    try:
        fetched = runner.run(work, seconds=limits.seconds, cancel=cancel)
    except QueryFailedError as error:
        raise explained(
            error, sql=sql, verdict=verdict, dialect=RESULTS.name, catalog=catalog
        ) from error
    return QueryResult(
        sql=verdict.sql,
        columns=fetched.columns,
        types=tuple(map(without_labels, fetched.types)),
        rows=fetched.rows,
        row_count=len(fetched.rows),
        ms=round((time.monotonic() - started) * 1000),
        masked=verdict.masks.of(fetched.columns),
        reads=(*verdict.tables, *verdict.columns),
        tables=verdict.tables,
    )


def read(database: Database | None, cancel: Cancel, request: ReadArguments) -> Rows:
    """Run SQL that this package wrote, and return the rows."""
    backend = _at(database, request["version"]).backend
    rows = backend.read(
        request["sql"],
        request["params"],
        rows=request["rows"],
        seconds=request["seconds"],
        cancel=cancel,
    )
    return Rows(rows)


def load(
    _database: Database | None, _cancel: Cancel, request: LoadArguments
) -> tuple[LoadNote, ...]:
    """Load data files into a new DuckDB file."""
    from longtable.tools.files.load import load_files

    return load_files(Path(request["path"]), Path(request["target"]), files=request["files"])


def visible(_database: Database | None, _cancel: Cancel, request: VisibleArguments) -> Catalog:
    """Return the part of a server's catalogue that the policy shows."""
    from longtable.tools.sql.visible import visible

    return visible(request["reflected"], request["policy"], dialect=request["dialect"])


MOST_CATALOGS = 2
_catalogs: dict[int, Catalog] = {}
"""The newest catalogues that this worker was sent, by number. All are of the same server."""


def parse(
    _database: Database | None, _cancel: Cancel, request: ParseArguments
) -> list[object] | None:
    """Run a job on a SQL text for a server. Return a list that holds only the answer. Return None
    if the worker does not have the catalogue yet.
    """
    from longtable.tools.sql.text_jobs import do_text_job

    number = request["number"]
    if request["catalog"] is not None:
        _catalogs[number] = request["catalog"]
        for old in sorted(_catalogs)[:-MOST_CATALOGS]:
            del _catalogs[old]
    if number not in _catalogs:
        return None
    answer = do_text_job(
        request["job"], request["arguments"], request["dialect"], _catalogs[number]
    )
    return [answer]


JOBS: dict[str, Callable[[Database | None, Cancel, Any], object]] = {}


def _register(
    job: Job[Arguments, Answer],
    act: Callable[[Database | None, Cancel, Arguments], Answer | Rows],
) -> None:
    """Register `act` as the function that does a job. The caller receives an answer of type `Rows`
    as a list of rows.
    """
    JOBS[job.name] = act


_register(worker_requests.CHECK_SQL, check_sql)
_register(worker_requests.LOAD, load)
_register(worker_requests.OVER_HANDLES, over_handles)
_register(worker_requests.PARSE, parse)
_register(worker_requests.READ, read)
_register(worker_requests.REFRESH, refresh)
_register(worker_requests.RUN, run)
_register(worker_requests.TEXT, text)
_register(worker_requests.VISIBLE, visible)


def _at(database: Database | None, version: object) -> Database:
    """Return the database. Its catalogue is read again if the caller has another version."""
    assert database is not None
    if version is not None and version != database.version:
        database.refresh()
    return database


def main() -> NoReturn:
    """Read requests until the caller has ended. An interrupt stops the job that it names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the caller's
    incoming: RawIOBase = os.fdopen(os.dup(0), "rb", buffering=0)
    answers: RawIOBase = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a library that prints spoils no answer
    beginning = decode(read_frame(incoming, most=MOST_REQUEST_BYTES))
    _end_with(beginning["caller"])
    _load(beginning["dialect"])
    write_frame(answers, encode(None))
    try:
        opening = decode(read_frame(incoming, most=MOST_REQUEST_BYTES))
    except EOFError:
        os._exit(0)  # nobody took this spare
    _limit_memory(opening["memory_bytes"])
    work: queue.SimpleQueue[tuple[int, Cancel, str, dict[str, Any]]] = queue.SimpleQueue()
    current: Current = []
    threading.Thread(target=_work, args=(opening, work, current, answers), daemon=True).start()
    while True:
        try:
            number, name, arguments = decode(read_frame(incoming, most=MOST_REQUEST_BYTES))
        except EOFError:
            os._exit(0)  # without waiting for the other threads
        if name == INTERRUPT:
            for _, cancel in [entry for entry in current if entry[0] == number]:
                cancel.cancel()
        else:
            current[:] = [(number, Cancel())]
            work.put((number, current[0][1], name, arguments))


def _work(
    opening: dict[str, Any], work: queue.SimpleQueue[Any], current: Current, answers: RawIOBase
) -> None:
    """Open the database, tell the caller about it, and do one job after the other. An error in this
    package's own code ends the process; the caller then logs the traceback.
    """
    try:
        database = None
        greeting: LongtableError | None = None
        try:
            database = _open(opening["database"])
        except LongtableError as error:
            greeting = error
        gc.freeze()  # what is loaded by now stays; collections need not look at it
        write_frame(answers, encode(greeting))
        while greeting is None:
            _, cancel, name, arguments = work.get()
            if name != worker_requests.LOAD.name:  # it reads whole files
                # Collections took half of the time of encoding a million rows, which hold no
                # cycles. What a job leaves is collected once its answer is on its way.
                gc.disable()
            try:
                answer = JOBS[name](database, cancel, arguments)
            except (MemoryError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and "can't start new thread" not in str(error):
                    raise  # only that one says that there is no memory for a stack
                answer = QueryMemoryError(limit=opening["memory_bytes"])
            except LongtableError as error:
                answer = error
            current.clear()
            for part in encoded_or_failed(answer):
                write_frame(answers, part)
            del answer
            gc.enable()
            gc.collect()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _load(dialect: str) -> None:
    """Load what a worker needs before it is taken: the parser, and the engine of a dialect."""
    import_module("longtable.tools.sql.text_jobs")
    if dialect:
        import_module(dialect_of(dialect).engine.partition(":")[0])


def _open(arguments: dict[str, Any] | None) -> Database | None:
    """Open the database, and read what a first query needs."""
    if arguments is None:
        return None
    database = Database.open(**arguments, isolation="none")
    with suppress(LongtableError):
        # A policy that names what is not there: raised to whoever asks for the catalogue.
        database.check("SELECT 1")
    return database


def encoded_or_failed(answer: object) -> Iterator[bytes]:
    """Yield an answer in parts. If a value cannot be sent, the last part is the error that says
    so.
    """
    try:
        yield from encode_answer(answer)
    except TypeError as error:
        yield encode(
            QueryFailedError(f"the result cannot be passed on: {error}", hint="cast it to text")
        )


def _end_with(caller: int) -> None:
    """Let the kernel kill this process when its caller ends, even while Python cannot run. On
    systems other than Linux, the process ends when its pipe closes.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != caller:
            os._exit(0)


def _limit_memory(memory_bytes: int) -> None:
    """Limit the memory of this process. DuckDB does not count the memory of lambdas and of `||`:
    under its own limit of 1 GB it used 7 GB.
    """
    if sys.platform == "win32":
        return
    import resource

    most = memory_bytes + SPARE_BYTES + STACK_BYTES * (os.cpu_count() or 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold rows
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(
            resource.RLIMIT_DATA,
            (most if hard == resource.RLIM_INFINITY else min(most, hard), hard),
        )
        return

    def watch() -> None:
        while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < most:  # bytes on macOS
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
