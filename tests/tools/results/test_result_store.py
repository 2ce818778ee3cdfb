"""The result store: handles, pages, quota, SQL over handles, killed and concurrent processes."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from longtable.base.errors import (
    ConfigError,
    PersistenceError,
    QueryCancelledError,
    QueryFailedError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    TooManyRowsError,
    UnknownTableError,
)
from longtable.tools.database import Cancel, Database, QueryLimits
from longtable.tools.engines.duckdb import session_over_files
from longtable.tools.results.parquet import CHUNK_ROWS, column_names
from longtable.tools.results.result_store import (
    ResultGoneError,
    ResultStore,
    UnknownResultError,
    catalog_of,
)
from longtable.tools.workers.runner import Stop

both_ways = pytest.mark.usefixtures("opened_both_ways")
"""For a test whose SQL runs over handles: all else is the same with and without a worker."""
ROOT = Path(__file__).parents[3]
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that goes on by a minute each time it is looked at."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "results", clock=Clock())


def put(
    store: ResultStore,
    rows: Sequence[Sequence[object]],
    *,
    thread: str = "t",
    columns: Sequence[str] = ("n",),
    sql: str = "SELECT 1",
) -> str:
    return store.put(thread, columns=columns, types=["ANY"] * len(columns), rows=rows, sql=sql)


def noise(count: int, *, seed: int = 1) -> list[tuple[object, ...]]:
    """Return rows that do not compress."""
    return [((number * 2654435761 * seed) % 2**62,) for number in range(count)]


def test_handles_count_up_within_a_thread_and_stand_alone_between_threads(
    store: ResultStore,
) -> None:
    assert [
        put(store, [(1,)]),
        put(store, [(2,)]),
        put(store, [(3,)], thread="u"),
        put(store, [(4,)]),
    ] == ["r1", "r2", "r1", "r3"]
    assert store.get("u", "r1").rows == [(3,)]
    assert [meta.handle for meta in store.handles("t")] == ["r1", "r2", "r3"]


def test_what_was_put_in_comes_out(store: ResultStore) -> None:
    handle = store.put(
        "t",
        columns=["id", "名称"],
        types=["BIGINT", "VARCHAR"],
        rows=[(1, "甲"), (2, None)],
        sql="SELECT id, 名称 FROM x",
    )
    meta = store.meta("t", handle)
    assert (meta.sql, meta.columns, meta.types, meta.row_count) == (
        "SELECT id, 名称 FROM x",
        ("id", "名称"),
        ("BIGINT", "VARCHAR"),
        2,
    )
    assert meta.created == "2026-01-01T00:01:00+00:00"
    result = store.get("t", " R1 ")
    assert (result.rows, result.columns, result.row_count) == (
        [(1, "甲"), (2, None)],
        ("id", "名称"),
        2,
    )


@pytest.mark.parametrize(
    "cells",
    [
        [1, None, -(2**63) + 1],
        [2**63, -5, 10**38 - 1],
        [1.5, float("inf"), 5e-324, None],
        [1, 2.5],
        ["", None, "a\x00b", 'quote " and , and \n', "é 甲 🙂"],
        [True, False, None],
        [Decimal("12.50"), Decimal("-0.001"), None],
        [date(1, 1, 1), date(9999, 12, 31)],
        [datetime(1500, 1, 1, 1, 1, 1, 5), None],
        [
            datetime(2020, 1, 1, tzinfo=UTC),
            datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        ],
        [time(23, 59, 59, 999_999), time(0)],
        [timedelta(days=1, seconds=3), timedelta(0)],
        [b"", b"\x00\xff", None],
        [UUID(int=5), None],
    ],
    ids=lambda cells: type(cells[0]).__name__,
)
def test_cells_keep_their_value(store: ResultStore, cells: list[object]) -> None:
    put(store, [(cell,) for cell in cells])
    assert [row[0] for row in store.get("t", "r1").rows] == cells


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        ([1, "a", None], ["1", "a", None]),
        ([2**60 + 1, 0.5], [str(2**60 + 1), "0.5"]),
        ([10**40], [str(10**40)]),
        ([Decimal("NaN")], ["NaN"]),
        ([Decimal("1e-30"), Decimal(10**20)], ["1E-30", str(10**20)]),
        ([[1, {"a": "é"}], {"k": [None]}], ['[1,{"a":"é"}]', '{"k":[null]}']),
        ([timedelta(microseconds=5)], ["0:00:00.000005"]),
        ([datetime(2020, 1, 1), date(2020, 1, 2)], ["2020-01-01T00:00:00", "2020-01-02"]),
        (["a\ud800b"], ["a?b"]),
        ([None, None], [None, None]),
    ],
)
def test_cells_without_a_type_of_their_own_are_kept_as_text(
    store: ResultStore, cells: list[object], kept: list[object]
) -> None:
    put(store, [(cell,) for cell in cells])
    assert [row[0] for row in store.get("t", "r1").rows] == kept


@pytest.mark.parametrize(
    ("early", "late", "kept"),
    [
        (None, 5, 5),
        (5, None, None),
        (1, "a", "a"),
        (1, 2**70, 2**70),
        (Decimal("1.5"), Decimal("1.25"), "1.25"),
        ("a", None, None),
    ],
)
def test_a_column_may_change_its_kind_between_chunks(
    store: ResultStore, early: object, late: object, kept: object
) -> None:
    put(store, [(early,)] * CHUNK_ROWS + [(late,)])
    rows = store.get("t", "r1").rows
    assert len(rows) == CHUNK_ROWS + 1
    assert rows[-1] == (kept,)
    assert str(rows[0][0]) == str(early)


@both_ways
def test_an_empty_result_keeps_its_columns(store: ResultStore) -> None:
    put(store, [], columns=["a", "b"])
    assert store.get("t", "r1").columns == ("a", "b")
    assert store.sql("t", "SELECT count(a) AS n FROM r1").rows == [(0,)]


@both_ways
def test_columns_of_one_name_can_be_told_apart(store: ResultStore) -> None:
    put(store, [(1, 2, 3, 4)], columns=["n", "N", "", "n_1"])
    assert store.meta("t", "r1").names == ("n", "N_1", "column2", "n_1_1")
    assert store.sql("t", "SELECT n_1_1, column2 FROM r1").rows == [(4, 3)]
    assert column_names(["a", "a", "a"]) == ("a", "a_1", "a_2")


def test_pages_are_in_order_and_bounded(store: ResultStore) -> None:
    put(store, [(number,) for number in range(45)])
    assert [row[0] for row in store.page("t", "r1", page=3).rows] == [40, 41, 42, 43, 44]
    assert (store.page("t", "r1").page, store.page("t", "r1").pages) == (1, 3)
    assert store.page("t", "r1", page=4).rows == []
    assert len(store.page("t", "r1", page=-1, size=10**9).rows) == 45


@pytest.mark.parametrize(
    "handle",
    ["r2", "r0", "r", "", "1", "../t", "r1/../r1", "r1\x00", "r99999999999", "r٣", "data.parquet"],
)
def test_a_handle_that_never_was_is_unknown_and_names_those_that_are(
    store: ResultStore, handle: str
) -> None:
    put(store, [(1,)])
    with pytest.raises(UnknownResultError, match="there are r1"):
        store.page("t", handle)


@pytest.mark.parametrize(
    "thread",
    [
        "..",
        "../../etc",
        "/etc/passwd",
        "",
        "a/b",
        "a\\b",
        "a\x00b",
        "x" * 10_000,
        ".",
        "CON",
        "\ud800",
        "T",
        "t",
    ],
)
def test_no_thread_id_leads_outside_the_folder(tmp_path: Path, thread: str) -> None:
    folder = tmp_path / "deep" / "results"
    store = ResultStore(folder, clock=Clock())
    put(store, [(1,)], thread=thread)
    assert store.get(thread, "r1").rows == [(1,)]
    inside = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert inside
    assert all(path.is_relative_to(folder) for path in inside)
    store.delete(thread)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    with pytest.raises(UnknownResultError):
        store.meta(thread, "r1")


def test_deleting_one_thread_leaves_the_others(store: ResultStore) -> None:
    put(store, [(1,)])
    put(store, [(2,)], thread="u")
    store.delete("t")
    store.delete("t")
    assert store.handles("t") == []
    assert store.get("u", "r1").rows == [(2,)]


@both_ways
def test_past_the_thread_quota_what_was_unused_longest_goes(tmp_path: Path) -> None:
    size = _size(tmp_path / "probe")
    store = ResultStore(tmp_path / "results", clock=Clock(), quota_bytes_per_thread=int(size * 3.5))
    for seed in (1, 2, 3):
        put(store, noise(2_000, seed=seed), sql=f"SELECT {seed}")
    put(store, noise(2_000, seed=9), thread="u")
    store.page("t", "r1")
    assert put(store, noise(2_000, seed=4)) == "r4"
    assert [store.is_gone("t", meta.handle) for meta in store.handles("t")] == [
        False,
        True,
        False,
        False,
    ]
    assert not store.is_gone("u", "r1")
    with pytest.raises(ResultGoneError, match="SELECT 2") as caught:
        store.page("t", "r2")
    assert (caught.value.handle, caught.value.sql, caught.value.code) == (
        "r2",
        "SELECT 2",
        "result_gone",
    )
    assert store.meta("t", "r2").row_count == 2_000
    with pytest.raises(ResultGoneError):
        store.sql("t", "SELECT count(*) FROM r2")
    assert put(store, [(1,)]) == "r5"


def test_a_result_that_is_deleted_while_it_is_read_is_gone(
    store: ResultStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = put(store, [(1,)], sql="SELECT 1")
    path_of = store.path

    def deleted(thread_id: str, handle: str) -> Path:
        path = path_of(thread_id, handle)
        path.unlink()
        return path

    monkeypatch.setattr(store, "path", deleted)
    with pytest.raises(ResultGoneError, match="SELECT 1"):
        store.get("t", handle)


def _size(folder: Path) -> int:
    """Return the bytes that 2,000 rows of noise are kept in."""
    store = ResultStore(folder, clock=Clock())
    return store.meta("t", put(store, noise(2_000))).bytes


def test_past_the_whole_quota_other_threads_give_way(tmp_path: Path) -> None:
    size = _size(tmp_path / "probe")
    store = ResultStore(tmp_path / "results", clock=Clock(), quota_bytes_total=int(size * 2.5))
    for thread in ("a", "b", "c", "d"):
        put(store, noise(2_000), thread=thread)
    assert [store.is_gone(thread, "r1") for thread in "abcd"] == [True, True, False, False]


def test_a_result_over_the_quota_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, clock=Clock(), quota_bytes_per_thread=5_000)
    put(store, [(1,)])
    with pytest.raises(ResultTooLargeError, match="5,000"):
        put(store, noise(5_000))
    assert [meta.handle for meta in store.handles("t")] == ["r1"]
    assert not store.is_gone("t", "r1")
    assert list(tmp_path.rglob("draft-*")) == []


@pytest.mark.parametrize("quota", [0, -1, True, 1.5, "many"])
def test_a_wrong_quota_is_a_config_error(tmp_path: Path, quota: int) -> None:
    with pytest.raises(ConfigError, match="quota_bytes_total"):
        ResultStore(tmp_path, clock=Clock(), quota_bytes_total=quota)


def test_rows_that_fail_half_way_leave_nothing(store: ResultStore) -> None:
    def rows() -> object:
        yield (1,)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        store.put("t", columns=["n"], types=["BIGINT"], rows=rows(), sql="SELECT 1")  # type: ignore[arg-type]  # a generator is meant
    assert store.handles("t") == []
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PersistenceError, match="cannot be kept"):
        put(ResultStore(tmp_path / "file", clock=Clock()), [(1,)])


# -- SQL over handles ------------------------------------------------------------------------------


@pytest.fixture
def two(store: ResultStore) -> ResultStore:
    put(store, [(1, "a"), (2, "b"), (3, "c")], columns=["id", "name"])
    put(store, [(1, 10.5), (3, 30.5)], columns=["id", "amount"])
    put(store, [("secret",)], thread="other", columns=["word"])
    put(store, [("secret",)], thread="other", columns=["word"])
    put(store, [("secret",)], thread="other", columns=["word"])
    return store


JOINED: dict[str, list[tuple[object, ...]]] = {
    "SELECT name, amount FROM r1 JOIN r2 USING (id) ORDER BY id": [("a", 10.5), ("c", 30.5)],
    "SELECT count(*) FROM R1": [(3,)],
    "WITH x AS (SELECT * FROM r2) SELECT sum(amount) FROM x": [(41.0,)],
    "SELECT a.id FROM r1 a LEFT JOIN r2 b ON a.id = b.id WHERE b.id IS NULL": [(2,)],
    "SELECT max(id) OVER () FROM r1 LIMIT 1": [(3,)],
    "SELECT 1 + 1": [(2,)],
}
FOREIGN = [
    "SELECT * FROM r3",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('*')",
    "COPY r1 TO 'x.csv'",
    "CREATE TABLE x AS SELECT 1",
    "DROP VIEW r1",
    "ATTACH 'x.db'",
    "INSTALL httpfs",
    "SET memory_limit = '99GB'",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_views()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM r1; DROP VIEW r1",
    "PRAGMA database_list",
    "SELECT * FROM query('SELECT 1')",
    "WITH r3 AS (SELECT * FROM r3) SELECT * FROM r3",
]


@both_ways
def test_sql_joins_the_results_of_a_thread(two: ResultStore) -> None:
    assert {sql: two.sql("t", sql).rows for sql in JOINED} == JOINED


@both_ways
def test_nothing_but_the_threads_own_handles_can_be_read(two: ResultStore) -> None:
    def refuses(sql: str) -> bool:
        try:
            two.sql("t", sql)
        except QueryRefusedError:
            return True
        return False

    assert [sql for sql in FOREIGN if not refuses(sql)] == []


@both_ways
def test_an_unknown_handle_names_those_there_are(two: ResultStore) -> None:
    with pytest.raises(UnknownTableError, match="r1, r2"):
        two.sql("t", "SELECT * FROM r7")


@both_ways
def test_the_path_of_a_file_cannot_be_asked_for(two: ResultStore) -> None:
    with pytest.raises(QueryFailedError):
        two.sql("t", "SELECT filename FROM r1")


def attempt(store: ResultStore, sql: str) -> list[tuple[object, ...]]:
    """Run SQL past the AST wall, on the engine's wall alone."""
    [table], path = catalog_of([store.meta("t", "r1")]).tables, store.path("t", "r1")
    limits = QueryLimits()
    with session_over_files({table: path}, limits=limits) as session:
        return session.fetch(
            sql.replace("FILE", str(path)), limits=limits, stop=Stop(seconds=5)
        ).rows


PAST_THE_FIRST_WALL = [
    "SELECT * FROM read_text('/etc/passwd')",
    "COPY r1 TO 'FILE'",
    "COPY r1 TO 'FILE' (USE_TMP_FILE false)",
    "COPY r1 TO 'FILE.csv'",
    "ATTACH 'FILE.db' AS x",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE x AS SELECT 1",
    "SELECT 1; SELECT 2",
]


@pytest.mark.parametrize("sql", PAST_THE_FIRST_WALL)
def test_the_engine_refuses_by_itself(two: ResultStore, sql: str) -> None:
    before = {path: path.read_bytes() for path in two.folder.rglob("*") if path.is_file()}
    with pytest.raises((QueryRefusedError, QueryFailedError)):
        attempt(two, sql)
    assert {path: path.read_bytes() for path in two.folder.rglob("*") if path.is_file()} == before
    assert attempt(two, "SELECT count(*) FROM r1") == [(3,)]


@both_ways
def test_limits_and_cancel_hold_over_handles(two: ResultStore) -> None:
    with pytest.raises(TooManyRowsError):
        two.sql("t", "SELECT a.id FROM r1 a, r1 b", limits=QueryLimits(rows=5))
    endless = (
        "SELECT count(*) FROM range(100000000) a, range(100000000) b, r1 WHERE a.range + b.range ="
        " r1.id"
    )
    with pytest.raises(QueryTimeoutError):
        two.sql("t", endless, limits=QueryLimits(seconds=0.3))
    cancel = Cancel()
    cancel.cancel()
    with pytest.raises(QueryCancelledError):
        two.sql("t", "SELECT * FROM r1", cancel=cancel)
    assert two.sql("t", "SELECT count(*) FROM r1").rows == [(3,)]


@both_ways
def test_a_folder_with_odd_characters_is_read_as_it_is_named(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "o'd [d] * ? 甲", clock=Clock())
    put(store, [(7,)])
    assert store.get("t", "r1").rows == [(7,)]
    assert store.sql("t", "SELECT n FROM r1").rows == [(7,)]


@pytest.mark.parametrize("url", ["sqlite", "duckdb"])
def test_a_real_query_result_goes_in_as_it_is(
    store: ResultStore, url: str, make_database: Callable[[str], Database]
) -> None:
    with make_database(url) as database:
        result = database.run("SELECT 1 AS one, 'a' AS a, NULL AS empty, 2.5 AS x")
    handle = store.put(
        "t", columns=result.columns, types=result.types, rows=result.rows, sql=result.sql
    )
    assert [tuple(map(str, row)) for row in store.get("t", handle).rows] == [
        tuple(map(str, row)) for row in result.rows
    ]


@pytest.fixture
def make_database(tmp_path: Path) -> Callable[[str], Database]:
    def make(dialect: str) -> Database:
        import sqlite3

        import duckdb

        path = tmp_path / f"x.{dialect}"
        if dialect == "sqlite":
            with sqlite3.connect(path) as connection:
                connection.execute("CREATE TABLE t (a)")
            connection.close()
        else:
            duckdb.connect(str(path)).close()
        return Database.open(f"{dialect}:///{path}")

    return make


# -- several processes -----------------------------------------------------------------------------


def run(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.tools.results.result_writer", str(folder), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_on_one_store_share_no_handle(tmp_path: Path) -> None:
    writers = [run(tmp_path, "many", "15") for _ in range(2)]
    handles = [
        handle for writer in writers for handle in writer.communicate(timeout=120)[0].split()
    ]
    assert sorted(handles, key=lambda handle: int(handle[1:])) == [
        f"r{number}" for number in range(1, 31)
    ]
    store = ResultStore(tmp_path, clock=Clock())
    assert all(len(store.get("thread", handle).rows) == 3 for handle in handles)


@pytest.mark.parametrize("death", [("die", "1"), ("die", "2"), ("die-at-rename",)])
def test_a_killed_process_leaves_no_half_result(tmp_path: Path, death: tuple[str, ...]) -> None:
    store = ResultStore(tmp_path, clock=lambda: datetime.now(UTC) + timedelta(hours=2))
    put(store, [(1,)], thread="thread")
    writer = run(tmp_path, *death)
    writer.communicate(timeout=120)
    assert writer.returncode == -9
    assert [meta.handle for meta in store.handles("thread")] == ["r1"]
    assert list(tmp_path.rglob("draft-*"))
    assert put(store, [(2,)], thread="thread") == "r2"
    assert list(tmp_path.rglob("draft-*")) == [], "drafts nobody will finish are cleared away"


def test_two_million_rows_take_no_more_memory_than_a_few(tmp_path: Path) -> None:
    few = int(run(tmp_path, "huge", "200000").communicate(timeout=150)[0])
    many = int(run(tmp_path, "huge", "2000000").communicate(timeout=150)[0])
    assert many < few + 200
    store = ResultStore(tmp_path, clock=Clock())
    assert store.meta("thread", "r2").row_count == 2_000_000
    assert store.page("thread", "r2", page=100_000).rows[-1] == (
        1_999_999,
        "name 999",
        1_999_999 / 7,
    )
    assert store.sql("thread", "SELECT count(*), max(id) FROM r2").rows == [(2_000_000, 1_999_999)]
    assert store.path("thread", "r2").stat().st_size == store.meta("thread", "r2").bytes
