"""DESCRIBE, SHOW TABLES, SUMMARIZE, PIVOT and UNPIVOT run as a SELECT, and tell nothing more."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from longtable.base.errors import QueryRefusedError
from longtable.tools.catalog import Catalog
from longtable.tools.database import Database
from longtable.tools.engines.base import QueryResult
from longtable.tools.sql.forms.whole_statements import as_select
from longtable.tools.sql.table_policy import TablePolicy
from tests.tools.databases import DIALECTS, make, url

SCRIPT = """
CREATE TABLE sales (id INTEGER, city VARCHAR, mood ENUM('sad', 'ok'), amount DECIMAL(10, 2), day DATE);
INSERT INTO sales VALUES (1, 'Bern', 'sad', 1.5, '2024-01-01'), (2, 'Genf', 'ok', 3.5, NULL);
CREATE TABLE "o'dd" ("x""y" INTEGER);
CREATE TABLE hidden (id INTEGER);
"""
POLICY = TablePolicy(
    denied=frozenset({"hidden"}),
    denied_columns=frozenset({"sales.day"}),
    masked_columns=frozenset({"sales.city", "sales.mood"}),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forms") / "sales.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(SCRIPT)
    return path


@pytest.fixture(scope="module")
def database(file: Path) -> Iterator[Database]:
    with Database.open(f"duckdb:///{file}") as opened:
        yield opened


@pytest.fixture(scope="module")
def masked(file: Path) -> Iterator[Database]:
    with Database.open(f"duckdb:///{file}", policy=POLICY) as opened:
        yield opened


def of_engine(file: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the rows that DuckDB itself gives."""
    with closing(duckdb.connect(str(file), read_only=True)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW TABLES",
        "/* all */ UNPIVOT sales ON id INTO NAME name VALUE value",
        "PIVOT sales ON city IN ('Bern', 'Basel') USING sum(amount) GROUP BY id",
        "WITH s AS (SELECT id, amount FROM sales) UNPIVOT s ON id INTO NAME name VALUE value",
    ],
)
def test_rows_are_those_of_the_engine(database: Database, file: Path, sql: str) -> None:
    theirs = [_rounded(row) for row in of_engine(file, sql)]
    ours = [_rounded(row) for row in database.run(sql).rows]
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


@pytest.mark.parametrize(
    "sql",
    [
        "SUMMARIZE SELECT id, amount FROM sales",
        "SUMMARIZE sales",
        "summarize (FROM sales SELECT city, day)",
        "-- figures\nSUMMARIZE SELECT * FROM sales WHERE id = 1",
        'SUMMARIZE "o\'dd"',
    ],
)
def test_a_summary_has_the_figures_of_the_engine(database: Database, file: Path, sql: str) -> None:
    """Apart from quantiles, which DuckDB only estimates, and the mean of dates."""
    ours = {str(row[0]): _rounded(row) for row in database.run(sql).rows}
    theirs = {str(row[0]): _rounded(row) for row in of_engine(file, sql)}
    assert ours.keys() == theirs.keys()
    for name, row in theirs.items():
        parts = [slice(0, 5), slice(10, 12)] if name == "day" else [slice(0, 7), slice(10, 12)]
        for part in parts:
            assert ours[name][part] == row[part]


def _rounded(row: tuple[object, ...]) -> list[object]:
    """Return a row with numbers as texts of the same form: DuckDB's figures are texts."""
    cells: list[object] = []
    for cell in row:
        try:
            cells.append(f"{float(str(cell)):.6g}")
        except ValueError:
            cells.append(cell)
    return cells


@pytest.mark.parametrize("word", ["DESCRIBE", "DESC", "describe"])
def test_describe_tells_names_and_types(database: Database, file: Path, word: str) -> None:
    table = database.run(f"{word} sales").rows
    assert [row[:2] for row in table] == [row[:2] for row in of_engine(file, "DESCRIBE sales")]
    query = "SELECT sum(amount) AS total, city FROM sales WHERE false GROUP BY city"
    theirs = [row[:2] for row in of_engine(file, f"DESCRIBE {query}")]
    assert [*database.run(f"{word} {query}").rows] == theirs
    assert theirs == [("total", "DECIMAL(38,2)"), ("city", "VARCHAR")]


def column_of(result: QueryResult, name: str) -> list[object]:
    return [row[result.columns.index(name)] for row in result.rows]


def test_what_is_denied_or_masked_is_not_told(masked: Database) -> None:
    assert column_of(masked.run("SHOW TABLES"), "name") == ["o'dd", "sales"]
    described = masked.run("DESCRIBE sales")
    assert column_of(described, "column_name") == ["id", "city", "mood", "amount"]
    assert "sad" not in str(described.rows)
    summary = masked.run("SUMMARIZE sales")
    assert column_of(summary, "column_name") == ["id", "city", "mood", "amount"]
    assert column_of(summary, "max") == ["2", None, None, "3.50"]
    assert column_of(summary, "approx_unique") == [2, None, None, 2]
    assert "sad" not in str(summary.rows)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SUMMARIZE SELECT city FROM sales", "masked column"),
        ("SUMMARIZE SELECT * FROM sales", "masked column"),
        ("DESCRIBE SELECT mood FROM sales", "masked column"),
        ("PIVOT sales ON city IN ('Bern') USING sum(amount)", "masked column"),
        ("UNPIVOT sales ON city INTO NAME n VALUE v", "masked column"),
        ("SUMMARIZE hidden", "there is no table 'hidden'"),
        ("DESCRIBE hidden", "there is no table 'hidden'"),
        ("DESCRIBE SELECT id FROM hidden", "there is no table 'hidden'"),
        ("DESCRIBE SELECT 1, 1", "not known by name"),
        ("SUMMARIZE SELECT id, id FROM sales", "not known by name"),
        ("SUMMARIZE SELECT * EXCLUDE (id) FROM sales", "not known by name"),
        ('SUMMARIZE SELECT * FROM sales JOIN "o\'dd" USING (id)', "not known by name"),
        ("SUMMARIZE SELECT * FROM (SELECT 1 AS a)", "not known by name"),
        ("SUMMARIZE 'file.csv'", "not known by name"),
        ("DESCRIBE SELECT * FROM read_csv('x')", "not known by name"),
        ("SHOW DATABASES", "not a query"),
        ("SHOW TABLES; DROP TABLE sales", "2 statements"),
        ("PIVOT sales ON id USING sum(amount)", "without the values"),
        ("SUMMARIZE DELETE FROM sales", "syntax error"),
        ("DESCRIBE DELETE FROM sales", "not known by name"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(
    masked: Database, sql: str, reason: str
) -> None:
    with pytest.raises(QueryRefusedError, match=reason):
        masked.run(sql)


@pytest.mark.parametrize(
    "before", ["/**/" * 5_000, "/*" + "*" * 20_000 + "*/", " \n" * 20_000, "-- x\n" * 3_000]
)
def test_many_comments_take_no_time(before: str) -> None:
    began = time.process_time()
    assert as_select(before + "SHOW TABLES", "duckdb", Catalog(())).startswith("SELECT NULL")
    assert as_select(before + "x", "duckdb", Catalog(())) == before + "x"
    assert time.process_time() - began < 10


def test_a_query_of_many_columns_is_refused(database: Database) -> None:
    items = ", ".join(f"{n} AS c{n}" for n in range(301))
    with pytest.raises(QueryRefusedError, match="301 columns, at most 300"):
        database.run(f"SUMMARIZE SELECT {items}")


def test_an_index_hint_is_left_out(tmp_path: Path) -> None:
    with Database.open(url(make(tmp_path, "sqlite"))) as opened:
        for hint in ("INDEXED BY vault", "NOT INDEXED"):
            result = opened.run(f"SELECT p.name FROM people AS p {hint} WHERE p.id = 1")
            assert result.rows == [("Ada",)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_engine_describes_a_table(tmp_path: Path, dialect: str) -> None:
    with Database.open(url(make(tmp_path, dialect))) as opened:
        names = column_of(opened.run("DESCRIBE people"), "column_name")
    assert names == ["id", "name", "city", "salary", "boss_id"]


def test_a_database_without_tables_lists_none(tmp_path: Path) -> None:
    with Database.open(url(make(tmp_path, "duckdb", "CREATE SCHEMA empty"))) as opened:
        assert opened.run("SHOW TABLES").rows == []
