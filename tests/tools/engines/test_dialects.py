"""The record of each dialect agrees with what its engine and sqlglot do."""

from dataclasses import FrozenInstanceError
from importlib import import_module

import pytest
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect

from longtable.tools.database import Database
from longtable.tools.engines.dialects import DEFAULT_DIALECT, DIALECTS, RESULTS, dialect_of
from longtable.tools.sql.allow_lists import SCALAR_FUNCTIONS, TABLE_FUNCTIONS
from longtable.tools.sql.parsing import statement, written
from longtable.tools.sql.verdict import CostThresholds, Plan, Scan, reasons
from tests.support import clickhouse, mariadb
from tests.tools.databases import DIALECTS as TESTED


def test_every_dialect_has_its_column_in_the_tables_of_tests() -> None:
    optional = {"mysql", "clickhouse"}
    assert set(DIALECTS) - optional == set(TESTED) - optional
    assert ("mysql" in TESTED) == (mariadb.INSTALLED or mariadb.NEEDED)
    assert ("clickhouse" in TESTED) == (clickhouse.INSTALLED or clickhouse.NEEDED)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_record_names_an_engine_and_tables_of_functions(name: str) -> None:
    rules = dialect_of(name)
    module, _, attribute = rules.engine.partition(":")
    assert getattr(import_module(module), attribute).dialect == name
    assert type(SqlglotDialect.get_or_raise(name)).__name__.lower() == name
    assert SCALAR_FUNCTIONS[name]
    assert name in TABLE_FUNCTIONS


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        dialect_of(DEFAULT_DIALECT).name = "other"  # type: ignore[misc]


def test_an_unknown_dialect_has_no_record() -> None:
    with pytest.raises(KeyError):
        dialect_of("oracle")


def test_kept_results_are_queried_in_a_known_dialect() -> None:
    assert DIALECTS[RESULTS.name] is RESULTS


@pytest.mark.parametrize("name", DIALECTS)
def test_a_functions_own_name_is_one_that_sqlglot_has(name: str) -> None:
    for kind in dialect_of(name).function_names:
        assert issubclass(getattr(exp, kind), exp.Func)


@pytest.mark.parametrize("name", DIALECTS)
def test_each_part_of_a_date_can_be_written_and_read_again(name: str) -> None:
    for form in dialect_of(name).date_parts.values():
        sql = f"SELECT {form.format('x')} FROM t"
        assert written(statement(sql, name), name)


def test_parts_of_dates_are_what_the_engine_computes(dialect: str, database: Database) -> None:
    parts = dialect_of(dialect).date_parts
    items = [form.format("created") for form in parts.values()]
    row = database.run(f"SELECT {', '.join(items)} FROM audit").rows[0]
    found = dict(zip(parts, (str(cell).split(" ")[0] for cell in row), strict=True))
    assert found == {
        "year": "2024",
        "month_of_year": "1",
        "quarter": "1",
        "hour": "0",
        "weekday": "1",
        "month": "2024-01",
        "day": "2024-01-15",
    }


@pytest.mark.parametrize("descending", [False, True])
def test_null_comes_where_the_record_says(
    dialect: str, database: Database, descending: bool
) -> None:
    rules = dialect_of(dialect)
    first = rules.nulls_first_descending if descending else rules.nulls_first_ascending
    order = "DESC" if descending else "ASC"
    rows = database.run(f"SELECT city FROM people ORDER BY city {order}").rows
    assert (rows[0][0] is None) == first
    assert (rows[-1][0] is None) == (not first)


@pytest.mark.parametrize("name", DIALECTS)
def test_scans_are_limited_by_the_field_that_the_record_names(name: str) -> None:
    limits = CostThresholds(scan_rows=10, columnar_scan_rows=100)
    most = {"scan_rows": 10, "columnar_scan_rows": 100}.get(dialect_of(name).scan_limit)
    for rows in (5, 50, 500):
        plan = Plan(scans=(Scan("t", rows),))
        assert bool(reasons(plan, limits, name)) == (most is not None and rows > most)
