"""SQL equals a verified query but for parameters, case, blanks and comments."""

import pytest

from longtable.knowledge.entries import VerifiedQuery
from longtable.knowledge.verified import VerifiedQueries, cast_advice, parameters_of, with_nulls

SQL = """SELECT count(*) AS n FROM orders -- all of them
WHERE month = :month AND total > :least AND state = 'paid' AND lost <> 7"""


def equals(sql: str, verified: str = SQL, dialect: str = "sqlite") -> bool:
    query = VerifiedQuery(name="orders", question="?", sql=verified)
    return VerifiedQueries([query], dialect).equal_to(sql) is not None


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("SELECT COUNT(*) n FROM orders WHERE month='2024-05'", False),
        (
            "select COUNT( * ) as N from Orders\nwhere Month = '2024-05' and total > 5"
            " and state = 'paid' and lost <> 7 ;",
            True,
        ),
        (SQL.replace(":month", "5").replace(":least", "-5"), True),
        (SQL.replace(":month", "5").replace(":least", "0.5"), True),
        (SQL.replace(":month", "5").replace(":least", "5").replace("'paid'", "'lost'"), False),
        (SQL.replace(":month", "5").replace(":least", "5").replace("7", "8"), False),
        (SQL.replace(":month", "5").replace(":least", "5").replace("7", "-7"), False),
        (SQL.replace(":month", "5").replace(":least", "total"), False),
        (SQL.replace(":month", "(SELECT 5)").replace(":least", "5"), False),
        (SQL.replace(":month", "5 OR 1 = 1").replace(":least", "5"), False),
        (SQL.replace(":month", "5").replace(":least", "5") + " LIMIT 5", False),
        ("", False),
        ("SELECT 'open", False),
    ],
)
def test_only_parameters_may_differ(sql: str, same: bool) -> None:
    assert equals(sql) is same


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize(
    ("sql", "verified"),
    [
        ("SELECT 'a' FROM t", "SELECT a FROM t"),
        ("SELECT '5' FROM t", "SELECT 5 FROM t"),
        ('SELECT "Amount" FROM t', "SELECT amount FROM t"),
        ('SELECT "date" FROM t', "SELECT date FROM t"),
        ("SELECT 1 FROM t WHERE a = 1 OR b = 2", "SELECT 1 FROM t WHERE a = :x OR b = :x"),
        ('SELECT 5 AS "?" FROM t', 'SELECT "?" AS "?" FROM t'),
    ],
)
def test_what_may_mean_something_else_is_not_equal(sql: str, verified: str, dialect: str) -> None:
    assert not equals(sql, verified, dialect)


@pytest.mark.parametrize("text", ["E'Paid'", "N'Paid'", "$$Paid$$"])
def test_texts_of_postgresql_keep_their_case(text: str) -> None:
    sql = f"SELECT 1 FROM t WHERE b = {text}"
    assert equals(sql, sql, "postgres")
    assert not equals(sql.replace("Paid", "paid"), sql, "postgres")


def test_a_parameter_that_stands_twice_has_one_value() -> None:
    verified = "SELECT 1 FROM t WHERE a = :x OR b = :x"
    assert equals("SELECT 1 FROM t WHERE a = 'y' OR b = 'y'", verified)
    assert not equals("SELECT 1 FROM t WHERE a = 'y' OR b = 'Y'", verified)


@pytest.mark.parametrize(
    "sql", ["SELECT l[1:n] FROM t", "SELECT {'k':n} FROM t", "SELECT l[:n]", "SELECT l[date:n]"]
)
def test_slices_and_fields_of_duckdb_are_no_parameters(sql: str) -> None:
    assert parameters_of(sql, "duckdb") == []
    assert with_nulls(sql, "duckdb") == sql


def test_the_text_of_a_value_keeps_its_case() -> None:
    assert not equals("SELECT 1 FROM t WHERE b = 'Paid'", "SELECT 1 FROM t WHERE b = 'paid'")


@pytest.mark.parametrize(
    ("sql", "names", "planned"),
    [
        ("SELECT :a, :b, :a", ["a", "b"], "SELECT NULL, NULL, NULL"),
        ("SELECT ':a', x::int", [], "SELECT ':a', x::int"),
        ("SELECT 1 WHERE d = :date", ["date"], "SELECT 1 WHERE d = NULL"),
        ("SELECT '日', :月", ["月"], "SELECT '日', NULL"),
    ],
)
def test_parameters_are_named_and_planned_as_null(sql: str, names: list[str], planned: str) -> None:
    assert parameters_of(sql, "postgres") == names
    assert with_nulls(sql, "postgres") == planned


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize(
    ("sql", "planned"),
    [
        ("SELECT 1 WHERE d >= DATE :day", "SELECT 1 WHERE d >= DATE '2000-01-01'"),
        ("SELECT timestamp :moment", "SELECT timestamp '2000-01-01'"),
        ("SELECT TIMESTAMPTZ :moment", "SELECT TIMESTAMPTZ '2000-01-01'"),
        (
            "SELECT TIMESTAMP WITH TIME ZONE :moment",
            "SELECT TIMESTAMP WITH TIME ZONE '2000-01-01'",
        ),
        ("SELECT TIME :moment", "SELECT TIME '00:00:00'"),
        ("SELECT d + INTERVAL :n DAY", "SELECT d + INTERVAL '1' DAY"),
        ("SELECT CAST(:day AS DATE)", "SELECT CAST(NULL AS DATE)"),
        ("SELECT 1 WHERE date = :day", "SELECT 1 WHERE date = NULL"),
    ],
)
def test_a_parameter_after_a_type_is_planned_as_a_value_of_it(
    sql: str, planned: str, dialect: str
) -> None:
    assert with_nulls(sql, dialect) == planned
    assert cast_advice(sql, dialect) == ""


def test_a_value_fits_a_parameter_after_a_type() -> None:
    verified = "SELECT 1 FROM t WHERE d >= DATE :day"
    assert equals("SELECT 1 FROM t WHERE d >= date '2024-05-01'", verified)
    assert not equals("SELECT 1 FROM t WHERE d >= '2024-05-01'", verified)


def test_how_to_write_a_parameter_after_another_type_is_told() -> None:
    assert cast_advice("SELECT 1, uuid :u", "postgres") == "for uuid :u write CAST(:u AS uuid)"


def test_a_verified_query_that_cannot_be_read_equals_nothing() -> None:
    queries = [
        VerifiedQuery(name="bad", question="?", sql="SELECT 'open"),
        VerifiedQuery(name="good", question="?", sql="SELECT 1"),
    ]
    found = VerifiedQueries(queries, "sqlite").equal_to("select 1")
    assert found is not None
    assert found.name == "good"


def test_letters_beyond_ascii_are_names_of_their_own() -> None:
    assert not equals("SELECT strasse FROM places", "SELECT straße FROM places")
    assert equals("SELECT STRAßE FROM PLACES", "select straße from places")
