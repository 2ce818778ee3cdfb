"""A database that is down when it is opened: its uses fail with the reason, until it is up."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.tools.database import Database, TablePolicy
from longtable.tools.several.late import RETRY_SECONDS, LateBackend, open_or_defer

SCHEMA = "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x');"


def make(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)


def test_it_is_opened_by_the_first_use_after_it_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtable.tools.several.late.RETRY_SECONDS", 0.0)
    path = tmp_path / "late.db"
    policy = TablePolicy(masked_columns=frozenset({"t.b"}))
    with open_or_defer(f"sqlite:///{path}", policy=policy) as database:
        assert (database.name, database.dialect) == ("late", "sqlite")
        assert database.version is None
        for use in (
            database.catalog,
            database.refresh,
            lambda: database.run("SELECT 1"),
            lambda: database.check_sql("SELECT 1"),
            lambda: database.check("SELECT 1"),
            lambda: database.read("SELECT 1", seconds=1),
        ):
            with pytest.raises(DatabaseUnavailableError, match=r"late\.db"):
                use()
        make(path)
        assert database.run("SELECT a, b FROM t").masked == {1}, "with its policy"
        assert database.check("SELECT a FROM t").allowed
        assert database.check_sql("SELECT a FROM t") is not None
        assert database.read("SELECT a FROM t", seconds=1) == [(1,)]
        assert database.refresh() is database.catalog()
        assert database.version is not None
    with pytest.raises(DatabaseUnavailableError, match="was closed"):
        database.run("SELECT 1")


def test_what_is_down_is_not_tried_at_every_use() -> None:
    now = [100.0]
    tries: list[float] = []

    def fail() -> Database:
        tries.append(now[0])
        raise DatabaseUnavailableError(f"down at {now[0]:g}")

    late = LateBackend(fail, DatabaseUnavailableError("down at first"), clock=lambda: now[0])
    with pytest.raises(DatabaseUnavailableError, match="down at first"):
        late.catalog()
    now[0] += RETRY_SECONDS
    for _ in range(3):
        with pytest.raises(DatabaseUnavailableError, match="down at 101"):
            late.catalog()
    assert tries == [101.0]


def test_what_is_up_is_opened_at_once_and_wrong_settings_are_told_at_once(tmp_path: Path) -> None:
    make(tmp_path / "up.db")
    with open_or_defer(f"sqlite:///{tmp_path / 'up.db'}") as database:
        assert not isinstance(database.backend, LateBackend)
    with pytest.raises(ConfigError, match="neither a URL nor a path"):
        open_or_defer("nonsense")
    with pytest.raises(ConfigError, match="policy"):
        open_or_defer(f"sqlite:///{tmp_path / 'up.db'}", policy=tmp_path / "no_policy.toml")


def test_files_that_come_late_bring_their_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtable.tools.several.late.RETRY_SECONDS", 0.0)
    path = tmp_path / "sales.csv"
    with open_or_defer(f"files:///{path}") as database:
        with pytest.raises(DatabaseUnavailableError):
            database.catalog()
        path.write_text("day,amount\n01/02/2024,1\n03/04/2024,2\n")
        assert database.run("SELECT count(*) FROM sales").rows == [(2,)]
        with Database.open(str(path)) as same:
            assert database.notes == same.notes
            assert cast("Any", database.notes)


def test_a_row_filter_that_does_not_fit_refuses_all_when_it_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtable.tools.several.late.RETRY_SECONDS", 0.0)
    path = tmp_path / "late.db"
    policy = TablePolicy(row_filters={"t": "nothing = :region"})
    with open_or_defer(f"sqlite:///{path}", policy=policy) as database:
        make(path)
        for _ in range(2):
            with pytest.raises(ConfigError, match="nothing"):
                database.run("SELECT 1 AS n")
