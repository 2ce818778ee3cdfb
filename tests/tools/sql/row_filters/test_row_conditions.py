"""The condition of a row filter is one condition, with parameters by name."""

import pytest
from sqlglot import exp

from longtable.tools.catalog import Column, Table
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.row_filters.row_conditions import column_of, condition_of, parameter_name
from tests.tools.databases import DIALECTS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_condition_is_read_with_its_parameters(dialect: str) -> None:
    tree, source = condition_of("region = :region AND total < :most -- the rest", dialect)
    assert [parameter_name(node) for node in tree.find_all(exp.Placeholder)] == ["region", "most"]
    assert "region = :region" in source


@pytest.mark.parametrize("text", ["a = 1) OR (b = 2", "a = 1 ORDER BY a", "a = 1; SELECT 1", ""])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_anything_but_one_condition_is_refused(text: str, dialect: str) -> None:
    with pytest.raises(RefusedError):
        condition_of(text, dialect)


def test_a_very_long_condition_is_refused() -> None:
    with pytest.raises(RefusedError, match="it has 4,008 characters"):
        condition_of("a = 1 OR" * 501, "sqlite")


@pytest.mark.parametrize(("name", "found"), [("Total", "Total"), ("total", None)])
def test_quoted_names_are_exact_where_the_dialect_says_so(name: str, found: str | None) -> None:
    table = Table("t", "table", (Column("Total", "integer"),))
    tree, _ = condition_of(f'"{name}" = 1', "postgres")
    column = tree.find(exp.Column)
    assert column is not None
    if found:
        assert column_of(column, table, "postgres").name == found
    else:
        with pytest.raises(RefusedError, match="a column that is not there, 'total'"):
            column_of(column, table, "postgres")
    lower, _ = condition_of("TOTAL = 1", "sqlite")
    named = lower.find(exp.Column)
    assert named is not None
    assert column_of(named, table, "sqlite").name == "Total"
