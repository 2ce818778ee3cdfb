"""Generated columns over closed ones: what a table computes from a masked column is masked and has
no place of its own, what it computes from a denied one is denied.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.base.errors import DatabaseError, QueryRefusedError
from longtable.tools.database import Database, TablePolicy
from longtable.tools.sql.verdict import MASK
from longtable.tools.toolset import run_sql
from tests.tools.databases import DIALECTS, make, open_at
from tests.tools.sql.test_masking import USES

SCHEMA = """
CREATE TABLE vaults (
    id INTEGER, note VARCHAR(9) DEFAULT 'secret', secret TEXT,
    initial TEXT GENERATED ALWAYS AS (substr("secret", 1, 1)) {kind},
    twice INTEGER GENERATED ALWAYS AS (id * 2) {kind}
);
INSERT INTO vaults (id, secret) VALUES (1, 'canary one'), (2, 'dog two'), (3, 'dog two');
CREATE VIEW above AS SELECT id, initial AS letter FROM vaults;
"""
CLICKHOUSE_SCHEMA = """
CREATE TABLE vaults (
    id Int32, note String DEFAULT 'secret', secret String,
    initial String MATERIALIZED substr("secret", 1, 1), twice Int32 ALIAS id * 2
) ENGINE = MergeTree ORDER BY id;
INSERT INTO vaults (id, secret) VALUES (1, 'canary one'), (2, 'dog two'), (3, 'dog two');
CREATE VIEW above AS SELECT id, initial AS letter FROM vaults;
"""
KINDS = {"sqlite": "VIRTUAL", "duckdb": "VIRTUAL", "postgres": "STORED", "mysql": "VIRTUAL"}
COMPUTED = (("vaults", "initial"), ("above", "letter"))


def opened_with(policy: TablePolicy, folder: Path, dialect: str) -> Database:
    schema = CLICKHOUSE_SCHEMA if dialect == "clickhouse" else SCHEMA
    script = schema.format(kind=KINDS.get(dialect))
    return open_at(make(folder, dialect, script), policy=policy)


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    policy = TablePolicy(masked_columns=frozenset({"vaults.secret"}))
    folder = tmp_path_factory.mktemp("generated")
    databases = {dialect: opened_with(policy, folder, dialect) for dialect in DIALECTS}
    yield databases
    for database in databases.values():
        database.close()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("column", COMPUTED, ids="-".join)
def test_what_a_table_computes_from_a_masked_column_has_no_place_of_its_own(
    masked: dict[str, Database], dialect: str, column: tuple[str, str], use: str
) -> None:
    table, name = column
    with pytest.raises(QueryRefusedError) as caught:
        masked[dialect].run(use.format(v=table, c=name))
    assert caught.value.rule == "masked"


@pytest.mark.parametrize("column", COMPUTED, ids="-".join)
def test_it_can_be_selected_and_is_masked(
    masked: dict[str, Database], dialect: str, column: tuple[str, str]
) -> None:
    table, name = column
    preview, _ = run_sql(masked[dialect], f"SELECT {name} FROM {table}")
    assert preview["rows"] == [[MASK]] * 3


def test_columns_that_are_computed_from_open_ones_stay_open(
    masked: dict[str, Database], dialect: str
) -> None:
    preview, _ = run_sql(masked[dialect], "SELECT note, twice FROM vaults ORDER BY twice")
    assert preview["rows"] == [["secret", 2], ["secret", 4], ["secret", 6]]


def test_what_a_table_computes_from_a_denied_column_is_denied(tmp_path: Path, dialect: str) -> None:
    policy = TablePolicy(denied_columns=frozenset({"vaults.secret"}))
    database = opened_with(policy, tmp_path, dialect)
    try:
        tables = {table.name: table.columns for table in database.catalog().tables}
        assert [column.name for column in tables["vaults"]] == ["id", "note", "twice"]
        assert "above" not in tables
        with pytest.raises(DatabaseError, match="initial"):
            database.run("SELECT initial FROM vaults")
    finally:
        database.close()


def test_a_column_that_is_computed_from_a_generated_one_is_masked_too(tmp_path: Path) -> None:
    script = """
    CREATE TABLE chain (a TEXT, c TEXT AS (b || '!'), b TEXT AS (upper(a)), d TEXT AS ('a') STORED);
    INSERT INTO chain (a) VALUES ('x');
    """
    policy = TablePolicy(masked_columns=frozenset({"chain.a"}))
    database = open_at(make(tmp_path, "sqlite", script), policy=policy)
    try:
        assert run_sql(database, "SELECT c, b, d FROM chain")[0]["rows"] == [[MASK, MASK, "a"]]
    finally:
        database.close()
