"""Store full query results outside the checkpoint, as one Parquet file for each result, by thread
and handle (r1, r2 ...).

  folder/<hash of the thread id>/r3/data.parquet, meta.json

A result is written to a draft folder, which is renamed to the handle when it is complete. So a
killed process leaves no half result, and two processes cannot take the same handle. When a quota is
exceeded, the least recently used data is deleted. Its meta.json stays, so that a deleted result
differs from one that never existed, and its SQL can be run again.
"""

import hashlib
import json
import os
import re
import shutil
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    MissingExtraError,
    OtherRowsError,
    PersistenceError,
    ResultTooLargeError,
    UnknownTableError,
)
from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.database import Isolation, QueryLimits, QueryResult
from longtable.tools.engines.dialects import RESULTS
from longtable.tools.results.parquet import column_names, path_literal, read_parquet, write_parquet
from longtable.tools.row_access import current_keys
from longtable.tools.workers.pool import Workers
from longtable.tools.workers.runner import Cancel, Runner
from longtable.tools.workers.worker_requests import OVER_HANDLES

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["ResultGoneError", "ResultMeta", "ResultPage", "ResultStore", "UnknownResultError"]

DATA = "data.parquet"
META = "meta.json"
STALE_SECONDS = 3_600.0
PAGE_ROWS = 20
MOST_PAGE_ROWS = 1_000
_ABSENT = (FileNotFoundError, NotADirectoryError)
_HANDLE = re.compile(r"r[1-9][0-9]{0,8}")
_HANDLES_IN_SQL = re.compile(r"\br[1-9][0-9]{0,8}\b")


class UnknownResultError(DatabaseError):
    """The thread never had a result with this handle, or the asking voice may not read it."""

    def __init__(self, handle: str, *, known: Sequence[str]) -> None:
        there = f"there are {', '.join(known[-10:])}" if known else "no query has run yet"
        super().__init__(f"this conversation has no result {handle[:40]!r}: {there}")
        self.handle = handle
        self.known = tuple(known)


class ResultGoneError(DatabaseError):
    """The rows of a result were deleted to stay within the quota. Running `sql` gives them
    again.
    """

    def __init__(self, handle: str, *, sql: str) -> None:
        super().__init__(
            f"the rows of {handle} are no longer kept (quota): run its SQL again: {sql}"
        )
        self.handle = handle
        self.sql = sql


@dataclass(frozen=True, kw_only=True)
class ResultMeta:
    """The metadata of a result, without its rows. `names` are the column names to use in SQL over
    handles: those of `columns`, made unique.
    """

    handle: str
    sql: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    row_count: int
    bytes: int
    created: str
    """Time in ISO 8601."""
    masked: tuple[int, ...] = ()
    """Indexes of the columns whose values models must not see."""
    voice: str = ""
    """The only voice (member of a team) that may read the result, "" if all may read it."""
    rows_key: str = ""
    """The key of the row filters and row parameters under which the rows were read, "" if no row
    filter left any out. The result can be read under the same ones only.
    """
    database: str = ""
    """The name of the database that was asked, "" if there was only one."""


def now_in_utc() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def catalog_of(metas: Sequence[ResultMeta]) -> Catalog:
    """Return a catalogue whose tables are these results, for SQL over handles."""
    return Catalog(tuple(map(_table, metas)), frozenset({"memory"}))


def _table(meta: ResultMeta) -> Table:
    types = [*meta.types, *[""] * (len(meta.names) - len(meta.types))]
    # Without a type a masked column can be shown, but not sorted or compared: what is kept may be a
    # union of masked values and others.
    columns = (
        Column(name, "" if place in meta.masked else kind, masked=place in meta.masked)
        for place, (name, kind) in enumerate(zip(meta.names, types, strict=False))
    )
    return Table(meta.handle, "table", tuple(columns))


@dataclass(frozen=True)
class ResultPage:
    """One page of a result's rows. Pages count from 1."""

    meta: ResultMeta
    rows: list[tuple[object, ...]]
    page: int
    pages: int


class ResultStore:
    """All results under one folder. Threads and processes may share it."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: Callable[[], datetime] = now_in_utc,
        quota_bytes_per_thread: int = 200_000_000,
        quota_bytes_total: int = 2_000_000_000,
        isolation: Isolation = "process",
    ) -> None:
        """Use `folder` to store results. `isolation` says where SQL over results runs, as in
        `Database.open`.

        Raises `ConfigError` if a quota is not a whole number of at least 1.
        """
        for name, value in (
            ("quota_bytes_per_thread", quota_bytes_per_thread),
            ("quota_bytes_total", quota_bytes_total),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(
                    f"ResultStore {name} must be a whole number of at least 1, found {value!r}"
                )
        self.folder = folder.absolute()
        self.quota_bytes_per_thread = quota_bytes_per_thread
        self.quota_bytes_total = quota_bytes_total
        self._clock = clock
        self._runner = Runner()
        self._lock = threading.Lock()
        self._isolation = isolation
        self._workers: Workers | None = None

    def put(
        self,
        thread_id: str,
        *,
        columns: Sequence[str],
        types: Sequence[str],
        rows: Iterable[Sequence[object]],
        sql: str,
        masked: Iterable[int] = (),
        voice: str = "",
        rows_key: str = "",
        database: str = "",
    ) -> str:
        """Store a result and return its handle. If a quota is exceeded, the least recently used
        data is deleted.

        `voice` is the only voice of a team that may read the result, "" for all. `rows_key` and
        `database` are those of the `QueryResult`. Raises `ResultTooLargeError` if this result alone
        exceeds a quota, `PersistenceError` if it cannot be written.
        """
        home = self._home(thread_id)
        now = self._clock()
        draft = home / f"draft-{now.timestamp():.0f}-{uuid.uuid4().hex}"
        try:
            draft.mkdir(parents=True)
            names = column_names(columns)
            count = write_parquet(draft / DATA, names, rows)
            size = (draft / DATA).stat().st_size
            most = min(self.quota_bytes_per_thread, self.quota_bytes_total)
            if size > most:
                raise ResultTooLargeError(limit=most, what=f"the result as kept ({size:,} bytes)")
            os.utime(draft / DATA, (now.timestamp(), now.timestamp()))
            meta: dict[str, object] = {
                "sql": sql,
                "columns": list(columns),
                "names": names,
                "types": list(types),
                "row_count": count,
                "bytes": size,
                "created": now.isoformat(),
                "masked": sorted(masked),
            }
            further = {"voice": voice, "rows_key": rows_key, "database": database}
            meta |= {key: value for key, value in further.items() if value}
            handle = self._settle(draft, home, meta)
        except (OSError, duckdb.Error) as error:
            raise PersistenceError(
                f"the result cannot be kept in {str(self.folder)!r}: {str(error).splitlines()[0]}"
            ) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._make_room(home, spared=home / handle)
        return handle

    def meta(self, thread_id: str, handle: str, *, voice: str | None = None) -> ResultMeta:
        """Return the metadata of a result, also if its rows were deleted. `voice` is the voice that
        asks, as in `handles`.

        Raises `UnknownResultError` if there is no such result, or if this voice may not read it,
        and `OtherRowsError` if it was read under other row parameters.
        """
        name = handle.strip().lower()
        if _HANDLE.fullmatch(name):
            with suppress(*_ABSENT):
                meta = _read_meta(name, self._home(thread_id) / name / META)
                if _may_read(voice, meta):
                    _check_rows(meta)
                    return meta
        known = [meta.handle for meta in self.handles(thread_id, voice=voice)]
        raise UnknownResultError(handle, known=known)

    def handles(self, thread_id: str, *, voice: str | None = None) -> list[ResultMeta]:
        """Return every result that a thread ever had, oldest first. Results whose rows were deleted
        are included; those that were read under other row parameters are not.

        If `voice` is the name of a voice of a team, only the results that it may read are returned.
        "" stands for a model without a team. None returns all results, for the person.
        """
        metas = []
        for number in sorted(_numbers(self._home(thread_id))):
            with suppress(*_ABSENT):  # the thread is being deleted
                metas.append(_read_meta(f"r{number}", self._home(thread_id) / f"r{number}" / META))
        return [meta for meta in metas if _may_read(voice, meta) and _has_same_rows(meta)]

    def is_gone(self, thread_id: str, handle: str) -> bool:
        """Return whether the rows of a result were deleted."""
        return not (self._home(thread_id) / self.meta(thread_id, handle).handle / DATA).exists()

    def path(self, thread_id: str, handle: str) -> Path:
        """Return the path of a result's Parquet file, and mark the result as used. Raises
        `ResultGoneError` if the rows were deleted.
        """
        meta = self.meta(thread_id, handle)
        path = self._home(thread_id) / meta.handle / DATA
        try:
            now = self._clock().timestamp()
            os.utime(path, (now, now))
        except FileNotFoundError:
            raise ResultGoneError(meta.handle, sql=meta.sql) from None
        return path

    def batches(
        self, thread_id: str, handle: str, *, offset: int = 0, limit: int | None = None
    ) -> Iterator[list[tuple[object, ...]]]:
        """Yield the rows of a result in order, in batches. The first `offset` rows are skipped; at
        most `limit` rows are yielded.
        """
        path = self.path(thread_id, handle)
        try:
            yield from read_parquet(path, offset=offset, limit=limit)
        except (OSError, duckdb.Error) as error:
            if not path.exists():
                raise ResultGoneError(handle, sql=self.meta(thread_id, handle).sql) from error
            raise PersistenceError(
                f"the result {handle} cannot be read: {str(error).splitlines()[0]}"
            ) from error

    def get(self, thread_id: str, handle: str) -> QueryResult:
        """Return a whole result as it was stored. Its `ms` is 0."""
        meta = self.meta(thread_id, handle)
        rows = list(chain.from_iterable(self.batches(thread_id, handle)))
        return QueryResult(
            meta.sql,
            meta.columns,
            meta.types,
            rows,
            meta.row_count,
            0,
            frozenset(meta.masked),
            reads_some_rows=bool(meta.rows_key),
            rows_key=meta.rows_key,
            database=meta.database,
        )

    def arrow(self, thread_id: str, handle: str) -> "pyarrow.Table":
        """Return a whole result as an Arrow table, with the types in which it is stored. If several
        columns have the same name, the later ones get a number.

        Raises `ConfigError` if pyarrow is not installed.
        """
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise MissingExtraError("a result cannot be made an Arrow table", "frames") from error
        return parquet.read_table(self.path(thread_id, handle))

    def frame(self, thread_id: str, handle: str) -> "pandas.DataFrame":
        """Return a whole result as a pandas DataFrame, as `arrow` does. Raises `ConfigError` if
        pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("a result cannot be made a DataFrame", "frames")
        path = self.path(thread_id, handle)
        with duckdb.connect() as connection:
            return connection.execute(f"SELECT * FROM read_parquet({path_literal(path)})").df()

    def page(
        self, thread_id: str, handle: str, *, page: int = 1, size: int = PAGE_ROWS
    ) -> ResultPage:
        """Return one page of a result. A page after the last one has no rows."""
        meta = self.meta(thread_id, handle)
        size = max(1, min(size, MOST_PAGE_ROWS))
        page = max(1, page)
        first = (page - 1) * size
        pages = max(1, -(-meta.row_count // size))
        rows = (
            list(chain.from_iterable(self.batches(thread_id, handle, offset=first, limit=size)))
            if first < meta.row_count
            else []
        )
        return ResultPage(meta, rows, page, pages)

    def sql(
        self,
        thread_id: str,
        sql: str,
        *,
        limits: QueryLimits | None = None,
        voice: str | None = None,
        cancel: Cancel | None = None,
    ) -> QueryResult:
        """Run one SELECT whose tables are a thread's handles, behind both walls. `voice` is the
        voice that asks, as in `handles`.

        Raises the errors of `Database.run`, `ResultGoneError` if the rows of a handle were deleted,
        and `OtherRowsError` if they were read under other row parameters.
        """
        metas = self.handles(thread_id, voice=voice)
        limits = limits or QueryLimits()
        files = {meta.handle: str(self._home(thread_id) / meta.handle / DATA) for meta in metas}
        try:
            answer = self._answer(sql, catalog_of(metas), files, limits, cancel)
        except UnknownTableError:
            for handle in dict.fromkeys(_HANDLES_IN_SQL.findall(sql.lower())):
                with suppress(UnknownResultError):
                    self.meta(thread_id, handle, voice=voice)  # raises OtherRowsError
            raise
        if isinstance(answer, str):
            raise ResultGoneError(answer, sql=self.meta(thread_id, answer).sql)
        for handle in answer.tables:
            with suppress(ResultGoneError):  # since it was read
                self.path(thread_id, handle)
        return answer

    def _answer(
        self,
        sql: str,
        catalog: Catalog,
        files: dict[str, str],
        limits: QueryLimits,
        cancel: Cancel | None,
    ) -> QueryResult | str:
        if self._isolation == "none":
            from longtable.tools.workers.process import run_over_handles  # it loads the parser

            return run_over_handles(
                sql, catalog, files, limits=limits, runner=self._runner, cancel=cancel
            )
        with self._lock:
            if self._workers is None:
                self._workers = Workers(
                    dialect=RESULTS.name,
                    memory_bytes=limits.memory_bytes,
                    answer_bytes=limits.bytes,
                )
                weakref.finalize(self, self._workers.close)
        request = OVER_HANDLES.request(
            {"sql": sql, "catalog": catalog, "files": files, "limits": limits}
        )
        return self._workers.call(request, seconds=limits.seconds, cancel=cancel)

    def copy(self, thread_id: str, other_id: str) -> None:
        """Copy the results of one thread to another thread that has none. The handles stay the
        same, because the history of a fork names them.

        Raises `PersistenceError` if the results cannot be copied.
        """
        home = self._home(thread_id)
        other = self._home(other_id)
        # Killed half way, its data is counted in the quota, and goes by it.
        draft = self.folder / f"copy-{uuid.uuid4().hex}"
        try:
            for number in sorted(_numbers(home)):
                shutil.copytree(home / f"r{number}", draft / f"r{number}", copy_function=_link)
            if draft.exists():
                draft.rename(other)
        except OSError as error:
            raise PersistenceError(
                f"the results cannot be copied in {str(self.folder)!r}: {error}"
            ) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def delete(self, thread_id: str) -> None:
        """Delete all results of a thread."""
        home = self._home(thread_id)
        doomed = home.with_name(f"deleted-{uuid.uuid4().hex}")
        try:
            home.rename(doomed)
        except _ABSENT:
            return
        shutil.rmtree(doomed, ignore_errors=True)

    def _home(self, thread_id: str) -> Path:
        # A hash: no id can name a place outside, and none is too long or differs from another by
        # case only.
        return (
            self.folder
            / hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]
        )

    def _settle(self, draft: Path, home: Path, meta: dict[str, object]) -> str:
        """Rename the complete draft to the next free handle, and return the handle. If another
        process takes the handle first, renaming fails and the next handle is tried.
        """
        with (draft / META).open("w", encoding="utf-8", errors="replace") as file:
            json.dump(meta, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        number = max(_numbers(home), default=0)
        while True:
            number += 1
            try:
                draft.rename(home / f"r{number}")
            except OSError:
                if not (home / f"r{number}").exists():
                    raise
            else:
                return f"r{number}"

    def _make_room(self, home: Path, *, spared: Path) -> None:
        """Delete the least recently used data until both quotas hold. Also delete drafts that a
        killed process left behind.
        """
        entries = [
            entry for path in self.folder.glob(f"*/r*/{DATA}") if (entry := _used(path)) is not None
        ]
        _drop(
            sorted(entry for entry in entries if entry[2].parent.parent == home),
            self.quota_bytes_per_thread,
            spared,
        )
        _drop(
            sorted(entry for entry in entries if entry[2].exists()), self.quota_bytes_total, spared
        )
        old = self._clock().timestamp() - STALE_SECONDS
        for draft in home.glob("draft-*"):
            if float(draft.name.split("-")[1]) < old:
                shutil.rmtree(draft, ignore_errors=True)
        for doomed in self.folder.glob("deleted-*"):
            shutil.rmtree(doomed, ignore_errors=True)


def _may_read(voice: str | None, meta: ResultMeta) -> bool:
    return voice is None or meta.voice in ("", voice)


def _has_same_rows(meta: ResultMeta) -> bool:
    return not meta.rows_key or meta.rows_key in current_keys()


def _check_rows(meta: ResultMeta) -> None:
    if not _has_same_rows(meta):
        raise OtherRowsError(meta.handle)


def _read_meta(handle: str, path: Path) -> ResultMeta:
    fields = json.loads(path.read_text(encoding="utf-8"))
    for key in ("columns", "names", "types", "masked"):
        fields[key] = tuple(fields.get(key, ()))
    return ResultMeta(handle=handle, **fields)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)  # the files are never written again: both may be one
    except OSError:
        shutil.copy2(source, target)


def _numbers(home: Path) -> list[int]:
    try:
        return [int(path.name[1:]) for path in home.iterdir() if _HANDLE.fullmatch(path.name)]
    except _ABSENT:
        return []


def _used(path: Path) -> tuple[float, int, Path] | None:
    """Return when a file was last used, its size in bytes and its path. Return None if another
    process has just deleted the file.
    """
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime, stat.st_size, path


def _drop(entries: Sequence[tuple[float, int, Path]], quota: int, spared: Path) -> None:
    total = sum(size for _, size, _ in entries)
    for _, size, path in entries:
        if total <= quota:
            return
        if path.parent != spared:
            path.unlink(missing_ok=True)
            total -= size
