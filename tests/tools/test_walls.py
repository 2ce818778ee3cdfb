"""Both walls at once: what is refused, what runs."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from longtable.graph.errors import (
    DatabaseError,
    QueryFailedError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    TooManyRowsError,
)
from longtable.tools.database import Database, QueryLimits, TablePolicy
from tests.tools.databases import DIALECTS, open_at
from tests.tools.sql_texts import ALLOWED, BOTH_ALLOWED, BOTH_REFUSED, REFUSED, STOPPED

CORPUS = Path(__file__).parents[2].parent / "shared" / "data" / "sql_guard"


def _cases(both: list[str], own: dict[str, list[str]]) -> list[Any]:
    pairs = [(dialect, sql) for dialect in DIALECTS for sql in [*both, *own[dialect]]]
    return [pytest.param(dialect, sql, id=f"{dialect}-{index}") for index, (dialect, sql) in enumerate(pairs)]


@pytest.mark.parametrize(("dialect", "sql"), _cases(BOTH_REFUSED, REFUSED))
def test_a_hostile_text_is_refused(dialect: str, sql: str, databases: dict[str, Database]) -> None:
    with pytest.raises((QueryRefusedError, QueryFailedError)) as caught:
        databases[dialect].run(sql)
    assert "combination" not in str(caught.value)


@pytest.mark.parametrize(("dialect", "sql"), _cases(BOTH_ALLOWED, ALLOWED))
def test_a_legal_text_runs(dialect: str, sql: str, databases: dict[str, Database]) -> None:
    result = databases[dialect].run(sql)
    assert result.columns
    assert result.row_count == len(result.rows)


@pytest.mark.parametrize(("dialect", "sql"), _cases([], STOPPED))
def test_a_costly_text_is_stopped_by_a_limit(dialect: str, sql: str, files: dict[str, Path]) -> None:
    limits = QueryLimits(seconds=1.0, memory_bytes=200_000_000)
    with (
        open_at(files[dialect], limits=limits) as database,
        pytest.raises((QueryTimeoutError, TooManyRowsError, ResultTooLargeError)),
    ):
        database.run(sql)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_asked_leaves_the_file_as_it_was(dialect: str, files: dict[str, Path], databases: dict[str, Database]) -> None:
    before = files[dialect].read_bytes()
    beside = sorted(path.name for path in files[dialect].parent.iterdir())
    for sql in [*BOTH_REFUSED, *REFUSED[dialect], *BOTH_ALLOWED, *ALLOWED[dialect]]:
        try:
            databases[dialect].run(sql)
        except DatabaseError:
            continue
    assert files[dialect].read_bytes() == before
    assert sorted(path.name for path in files[dialect].parent.iterdir()) == beside


def test_a_refusal_is_the_same_for_a_denied_table_and_one_that_is_not_there(database: Database) -> None:
    messages = []
    for name in ("vault", "nowhere"):
        with pytest.raises(QueryRefusedError) as caught:
            database.run(f"SELECT * FROM {name}")
        messages.append(caught.value.reason.replace(name, "NAME"))
    assert messages[0] == messages[1]


def test_only_what_is_named_can_be_read_when_the_policy_lists_tables(dialect: str, files: dict[str, Path]) -> None:
    with open_at(files[dialect], policy=TablePolicy(allowed=frozenset({"BOSSES"}))) as database:
        assert [table.name for table in database.catalog().tables] == ["bosses"]
        assert database.run("SELECT name FROM bosses ORDER BY 1").rows == [("Ada",), ("Bo",)]
        with pytest.raises(QueryRefusedError):
            database.run("SELECT name FROM people")
        with pytest.raises(QueryRefusedError):
            database.run("WITH bosses AS (SELECT name FROM people) SELECT * FROM bosses")


def _corpus() -> list[Any]:
    file = CORPUS / "corpus.jsonl"
    if not file.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the folder ../shared/data/sql_guard is not there"), id="no-corpus")]
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [pytest.param(entry, id=entry["id"]) for entry in entries if entry["dialect"] in DIALECTS]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    folder = tmp_path_factory.mktemp("corpus")
    schema = (CORPUS / "schema.sql").read_text(encoding="utf-8")
    lite = sqlite3.connect(folder / "corpus.db")
    lite.executescript(schema)
    lite.close()
    duck = duckdb.connect(str(folder / "corpus.duckdb"))
    duck.execute(schema)
    duck.close()
    policy, limits = TablePolicy(denied=frozenset({"secrets"})), QueryLimits(seconds=2.0)
    opened = {
        "sqlite": Database.open(str(folder / "corpus.db"), policy=policy, limits=limits),
        "duckdb": Database.open(str(folder / "corpus.duckdb"), policy=policy, limits=limits),
    }
    yield opened
    for database in opened.values():
        database.close()


@pytest.mark.parametrize("entry", _corpus())
def test_the_corpus_is_answered_as_it_says(entry: dict[str, str], guarded: dict[str, Database]) -> None:
    database = guarded[entry["dialect"]]
    if entry["expect"] == "allow":
        assert database.run(entry["sql"]).columns
    else:
        with pytest.raises(DatabaseError):
            database.run(entry["sql"])
