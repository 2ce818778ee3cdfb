"""Open a database by URL, read its catalogue, and run read-only queries from any number of
threads.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from longtable.base.errors import (
    ConfigError,
    MissingExtraError,
    QueryFailedError,
    QueryRefusedError,
)
from longtable.base.url import Dialect, Location, parse_url, without_password
from longtable.tools.catalog import Catalog, Reflected
from longtable.tools.cells import without_labels
from longtable.tools.engines.base import (
    Engine,
    Fetched,
    FileLimits,
    LoadNote,
    QueryLimits,
    QueryResult,
    Row,
    Session,
    check_path,
)
from longtable.tools.sql.table_policy import TablePolicy, load_policy
from longtable.tools.sql.verdict import Plan
from longtable.tools.workers.pool import Workers
from longtable.tools.workers.runner import Cancel, Runner, Stop

if TYPE_CHECKING:
    from longtable.tools.schema.catalog_facts import Knowledge
    from longtable.tools.sql.verdict import Verdict

__all__ = [
    "BUSY_SECONDS",
    "Cancel",
    "Database",
    "FileLimits",
    "QueryLimits",
    "QueryResult",
    "TablePolicy",
]

T = TypeVar("T")

Isolation = Literal["process", "none"]

BUSY_SECONDS = 5.0
PLAN_SECONDS = 5.0
CATALOG_SECONDS = 60.0
LOAD_SECONDS = 3600.0
LOADED = "longtable-files-"
"""Prefix of the folders of loaded files."""
_locks: dict[Path, int] = {}
"""Descriptors of the locks on such folders that this process holds."""


class Database:
    """A database behind both walls; safe to share between threads, usable as a context manager."""

    notes: tuple[LoadNote, ...] = ()
    """What was guessed when its files were loaded; empty for any other database."""

    def __init__(
        self,
        engine: Engine | None,
        *,
        url: str,
        location: Location,
        limits: QueryLimits,
        policy: TablePolicy,
    ) -> None:
        self.url = without_password(url, location)
        self.name = location.name
        self.limits = limits
        self.policy = policy
        self.dialect: Dialect = location.dialect
        if engine is not None:
            self.engine = engine
        self._runner = Runner()
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._version: object = None
        self._knowledge: Knowledge | None = None

    @classmethod
    def open(
        cls,
        url: str,
        *,
        limits: QueryLimits | None = None,
        policy: TablePolicy | Path | None = None,
        busy_seconds: float = BUSY_SECONDS,
        files: FileLimits | None = None,
        isolation: Isolation = "process",
    ) -> "Database":
        """Open an existing database; never create one. It is a context manager, or `close` ends it.

        `busy_seconds` is how long to wait for what others hold: a SQLite file that another program
        has locked, a locked table of a server, a free connection to it. `files` bounds what is
        loaded from data files. `isolation="process"` asks SQLite and DuckDB in processes of their
        own, which are started without waiting for them: what is wrong with such a file may be
        raised by the first call. A server's queries are parsed in such a process.
        `isolation="none"` does all of it in this process; then nothing bounds the memory that a
        query takes.

        Raises `ConfigError` for a URL or a policy file that cannot be read, and where there is no
        Python to start a process; `DatabaseUnavailableError` for a file or a server that cannot be
        read.
        """
        if isolation not in ("process", "none"):
            raise ConfigError(f'isolation must be "process" or "none", found {isolation!r}')
        limits = limits or QueryLimits()
        policy = load_policy(policy) if isinstance(policy, Path) else policy or TablePolicy()
        if policy.rows is not None and policy.rows < limits.rows:
            limits = replace(limits, rows=policy.rows)
        location = parse_url(url)
        if location.load and location.path is not None:
            loaded, notes = _load(location.path, files or FileLimits(), isolation)
            try:
                database = cls._at(
                    url,
                    replace(location, path=loaded, load=False),
                    limits,
                    policy,
                    busy_seconds,
                    isolation,
                )
            except BaseException:
                _remove(loaded.parent)
                raise
            database.notes = notes
            weakref.finalize(database, _remove, loaded.parent)
            return database
        return cls._at(url, location, limits, policy, busy_seconds, isolation)

    @classmethod
    def _at(
        cls,
        url: str,
        location: Location,
        limits: QueryLimits,
        policy: TablePolicy,
        busy_seconds: float,
        isolation: Isolation,
    ) -> "Database":
        if isolation == "none" or location.server or location.path is None:
            engine = _open_engine(location, limits=limits, busy_seconds=busy_seconds)
            if isolation == "none" or not location.server:
                return cls(engine, url=url, location=location, limits=limits, policy=policy)
            workers = Workers(
                memory_bytes=limits.memory_bytes,
                answer_bytes=limits.bytes,
                wait_seconds=busy_seconds,
            )
            return _ServerDatabase(
                engine, workers, url=url, location=location, limits=limits, policy=policy
            )
        check_path(location.path)
        place = f"{location.dialect}:///{location.path.absolute()}"
        workers = Workers(
            database={
                "url": place,
                "limits": limits,
                "policy": policy,
                "busy_seconds": busy_seconds,
            },
            memory_bytes=limits.memory_bytes,
            answer_bytes=limits.bytes,
            wait_seconds=busy_seconds,
        )
        return _WorkerDatabase(
            None, workers, url=url, location=location, limits=limits, policy=policy
        )

    @property
    def version(self) -> object:
        """Return the version of the schema that the catalogue is of; None before it was read."""
        return self._version

    def catalog(self) -> Catalog:
        """Return the tables that can be read; read once, then kept until `refresh` sees a
        change.
        """
        with self._lock:
            return self._catalog or self._reflect(self.engine.schema_version())

    def refresh(self) -> Catalog:
        """Return the catalogue as it is now; read it again if the schema may have changed."""
        version = self.engine.schema_version()
        with self._lock:
            return (
                self._catalog
                if self._catalog and version == self._version
                else self._reflect(version)
            )

    def knowledge(self) -> "Knowledge":
        """Return what sampling the data adds to the catalogue: search and inferred keys. Kept until
        the schema changes.
        """
        from longtable.tools.schema.catalog_facts import Knowledge

        catalog = self.catalog()
        with self._lock:
            if self._knowledge is None or self._knowledge.catalog is not catalog:
                self._knowledge = Knowledge(self, catalog)
            return self._knowledge

    def _reflect(self, version: object) -> Catalog:
        reflected = self.engine.reflect()
        catalog = self._visible(reflected)
        self.engine.guard(catalog, reflected)
        self._catalog = catalog
        self._version = version
        return catalog

    def run(
        self, sql: str, *, seconds: float | None = None, cancel: Cancel | None = None
    ) -> QueryResult:
        """Check one SELECT, run it behind the engine's wall, and return all its rows.

        `seconds` is a time limit shorter than the database's own. Raises `QueryRefusedError`,
        `QueryFailedError`, `QueryTimeoutError`, `TooManyRowsError`, `ResultTooLargeError`,
        `QueryCancelledError` or `DatabaseUnavailableError`; after any of them the database can be
        used again.
        """
        started = time.monotonic()
        verdict = self._allowed_verdict(sql)

        def fetch(session: Session, stop: Stop) -> Fetched:
            return session.fetch(verdict.sql, limits=self.limits, stop=stop)

        with self._explain_errors(sql, verdict):
            fetched = self._in_session(
                fetch, walled=True, seconds=seconds or self.limits.seconds, cancel=cancel
            )
        ms = round((time.monotonic() - started) * 1000)
        masked = verdict.masks.of(fetched.columns)
        reads = (*verdict.tables, *verdict.columns)
        headings = dict(verdict.headings)
        columns = tuple(headings.get(name, name) for name in fetched.columns)
        types = tuple(map(without_labels, fetched.types))
        return QueryResult(
            verdict.shown_sql,
            columns,
            types,
            fetched.rows,
            len(fetched.rows),
            ms,
            masked,
            reads,
            verdict.tables,
        )

    def check_sql(self, sql: str, *, cancel: Cancel | None = None) -> Plan:
        """Check one SELECT and return the engine's plan for it; nothing runs.

        Raises what `run` raises, except for errors that only running shows.
        """
        verdict = self._allowed_verdict(sql)

        def plan_of(session: Session, stop: Stop) -> Plan:
            return session.plan(verdict.sql, limits=self.limits, stop=stop)

        with self._explain_errors(sql, verdict):
            plan = self._in_session(plan_of, walled=True, seconds=PLAN_SECONDS, cancel=cancel)
        tables = {table.name for table in self.catalog().tables if table.kind == "table"}
        return Plan() if set(verdict.tables) <= tables and verdict.stops_early else plan

    def _allowed_verdict(self, sql: str) -> "Verdict":
        verdict = self.check(sql)
        verdict.raise_if_refused()
        return verdict

    @contextmanager
    def _explain_errors(self, sql: str, verdict: "Verdict") -> Iterator[None]:
        """Add to the error of a failing query where it failed and what was probably meant."""
        try:
            yield
        except (QueryFailedError, QueryRefusedError) as error:
            raise self.text_job("explained", error=error, sql=sql, verdict=verdict) from error

    def _visible(self, reflected: Reflected) -> Catalog:
        # sqlglot takes a tenth of a second to load: not where a worker reads the catalogue.
        from longtable.tools.sql.visible import visible

        return visible(reflected, self.policy, dialect=self.dialect)

    def text_job(self, job: str, **arguments: object) -> Any:
        """Do a job of `text_job` with the dialect and the catalogue of this database."""
        from longtable.tools.sql.text_jobs import text_job

        return text_job(job)(**arguments, dialect=self.dialect, catalog=self.catalog())

    def read(
        self,
        sql: str,
        params: Sequence[object] = (),
        *,
        seconds: float,
        cancel: Cancel | None = None,
    ) -> list[Row]:
        """Run SQL that this package wrote over visible tables, with values as parameters; never a
        model's text.

        It finds no denied columns, and masked ones hold only NULL.
        """
        catalog = self.catalog()
        if catalog.hidden_columns or catalog.has_masks:
            sql = self.text_job("own_sql", sql=sql)

        def fetch(session: Session, stop: Stop) -> Fetched:
            return session.fetch(sql, params, limits=self.limits, stop=stop)

        return self._in_session(fetch, walled=False, seconds=seconds, cancel=cancel).rows

    def _in_session(
        self,
        act: Callable[[Session, Stop], T],
        *,
        walled: bool,
        seconds: float,
        cancel: Cancel | None,
    ) -> T:
        """Run `act` beside the caller in a session of its own, for at most `seconds` and never
        longer than the limit.
        """

        def work(stop: Stop) -> T:
            with self.engine.session(stop, walled=walled) as session, stop.watch(session):
                return act(session, stop)

        return self._runner.run(work, seconds=min(seconds, self.limits.seconds), cancel=cancel)

    def check(self, sql: str) -> "Verdict":
        """Return the wall's verdict on a query, with the tables and columns it reads. Nothing
        runs.
        """
        verdict: Verdict = self.text_job("check", sql=sql)
        return verdict

    def close(self) -> None:
        """Cancel running queries and close the database."""
        self._runner.cancel_all()
        self.engine.close()

    def __repr__(self) -> str:
        return f"<Database {self.name} ({self.dialect})>"

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _WithWorkers(Database):
    """A database whose texts are parsed in worker processes."""

    def __init__(
        self,
        engine: Engine | None,
        workers: Workers,
        *,
        url: str,
        location: Location,
        limits: QueryLimits,
        policy: TablePolicy,
    ) -> None:
        super().__init__(engine, url=url, location=location, limits=limits, policy=policy)
        self._workers = workers
        weakref.finalize(self, workers.close)


class _ServerDatabase(_WithWorkers):
    """A server's database: no text is parsed in this process, but in workers that know no
    driver.
    """

    _numbered: tuple[Catalog | None, int] = (None, 0)

    def _visible(self, reflected: Reflected) -> Catalog:
        catalog: Catalog = self._workers.call(
            "visible", reflected, self.policy, self.dialect, seconds=CATALOG_SECONDS
        )
        return catalog

    def text_job(self, job: str, **arguments: object) -> Any:
        catalog = self.catalog()
        with self._lock:
            if self._numbered[0] is not catalog:
                self._numbered = (catalog, self._numbered[1] + 1)
            number = self._numbered[1]
        # The catalogue is sent to a worker that has not seen it.
        for sent in (None, catalog):
            answer = self._workers.call(
                "parse",
                job,
                number,
                sent,
                {**arguments, "dialect": self.dialect},
                seconds=PLAN_SECONDS,
            )
            if answer is not None:
                break
        return answer[0]

    def close(self) -> None:
        super().close()
        self._workers.close()


class _WorkerDatabase(_WithWorkers):
    """A database that workers hold. In this process it is not opened, and no query is parsed,
    planned or run.
    """

    def catalog(self) -> Catalog:
        return self._catalog or self.refresh()

    def refresh(self) -> Catalog:
        version, catalog = self._workers.call("refresh", self._version, seconds=CATALOG_SECONDS)
        with self._lock:
            if catalog is not None and catalog != self._catalog:
                self._catalog = catalog
            self._version = version
            assert self._catalog is not None
            return self._catalog

    def run(
        self, sql: str, *, seconds: float | None = None, cancel: Cancel | None = None
    ) -> QueryResult:
        result: QueryResult = self._ask(
            "run", sql, seconds=seconds or self.limits.seconds, cancel=cancel
        )
        return result

    def check_sql(self, sql: str, *, cancel: Cancel | None = None) -> Plan:
        plan: Plan = self._call("check_sql", sql, seconds=PLAN_SECONDS, cancel=cancel)
        return plan

    def read(
        self,
        sql: str,
        params: Sequence[object] = (),
        *,
        seconds: float,
        cancel: Cancel | None = None,
    ) -> list[Row]:
        rows: list[Row] = self._ask("read", sql, list(params), seconds=seconds, cancel=cancel)
        return rows

    def text_job(self, job: str, **arguments: object) -> Any:
        return self._call("text", job, arguments, seconds=PLAN_SECONDS)

    def _ask(self, job: str, *arguments: object, seconds: float, cancel: Cancel | None) -> Any:
        return self._call(job, *arguments, seconds, seconds=seconds, cancel=cancel)

    def _call(
        self, job: str, *arguments: object, seconds: float, cancel: Cancel | None = None
    ) -> Any:
        return self._workers.call(
            job, self._version, *arguments, seconds=min(seconds, self.limits.seconds), cancel=cancel
        )

    def close(self) -> None:
        self._workers.close()


def _load(path: Path, files: FileLimits, isolation: Isolation) -> tuple[Path, tuple[LoadNote, ...]]:
    """Load data files into a DuckDB file of ours, in a folder of its own."""
    _sweep()
    target = Path(tempfile.mkdtemp(prefix=LOADED)) / "files.duckdb"
    _lock(target.parent)
    try:
        if isolation == "none":
            from longtable.tools.files.load import load_files

            return target, load_files(path, target, files=files)
        with closing(Workers(memory_bytes=files.memory_bytes)) as workers:
            notes: tuple[LoadNote, ...] = workers.call(
                "load", str(path.absolute()), str(target), files, seconds=LOAD_SECONDS
            )
            return target, notes
    except BaseException:
        _remove(target.parent)
        raise


def _lock(folder: Path) -> None:
    """Hold a lock in the folder until this process ends, however it ends: then the next load may
    sweep the folder.
    """
    if sys.platform != "win32":
        import fcntl

        descriptor = os.open(folder / "new", os.O_CREAT | os.O_WRONLY, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (folder / "new").rename(folder / "lock")  # it is never there without being held
        _locks[folder] = descriptor


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if (descriptor := _locks.pop(folder, None)) is not None:
        os.close(descriptor)


def _sweep() -> None:
    """Remove the folders of loaded files whose process was killed. One without a lock is left: it
    may be new.
    """
    if sys.platform == "win32":
        return
    import fcntl

    for path in Path(tempfile.gettempdir()).glob(f"{LOADED}*/lock"):
        with suppress(OSError):  # held, or gone, or another user's
            lock = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
            finally:
                os.close(lock)


def _open_engine(location: Location, *, limits: QueryLimits, busy_seconds: float) -> Engine:
    """Import one engine only: each takes time to load, and PostgreSQL's driver need not be
    installed.
    """
    if location.server:
        try:
            from longtable.tools.engines.postgres import PostgresEngine
        except ImportError as error:
            raise MissingExtraError("a PostgreSQL database cannot be opened", "postgres") from error
        return PostgresEngine(location.server, limits=limits, wait_seconds=busy_seconds)
    if location.path is None:
        raise ConfigError("the database URL names neither a file nor a server")
    if location.dialect == "sqlite":
        from longtable.tools.engines.sqlite import SqliteEngine

        return SqliteEngine(location.path, limits=limits, busy_seconds=busy_seconds)
    from longtable.tools.engines.duckdb import DuckdbEngine

    return DuckdbEngine.of_file(location.path, limits=limits)
