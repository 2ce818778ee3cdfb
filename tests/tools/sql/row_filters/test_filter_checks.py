"""A row filter that does not fit its table is a typed error when the database is opened."""

from pathlib import Path

import pytest

from longtable.base.errors import ConfigError
from longtable.tools.database import Database, TablePolicy
from longtable.tools.sql.row_filters.filter_checks import kind_of
from longtable.tools.sql.table_policy import load_policy
from tests.tools.databases import DIALECTS, make, url
from tests.tools.sql.row_filters.rows_database import make_rows, open_rows

WRONG = {
    "region =": "syntax error",
    "region = :region ORDER BY 1": "not one condition|syntax error",
    "region = :region) OR (1 = 1": "not one condition",
    "region = :region; DELETE FROM orders": "not one condition|syntax error",
    "zone = :region": "names a column that is not there, 'zone'",
    "regoin = :region": "nearest columns: region",
    "regions.head = :region": "reads another table",
    "region IN (SELECT region FROM regions)": "reads another table",
    "EXISTS (SELECT 1 FROM regions r WHERE r.region = :region)": "reads another table",
    "max(total) > 3": "no condition on one row",
    "row_number() OVER () = 1": "no condition on one row",
    "no_such_function(region) = :region": "the function 'no_such_function' is not allowed",
    "region = ?": "a parameter without a name",
    "region = :who AND total = :who": "compared with a text and with a number",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_filter_is_told_at_open(
    dialect: str, text: str, row_places: dict[str, str]
) -> None:
    policy = TablePolicy(row_filters={"orders": text})
    with pytest.raises(ConfigError, match=WRONG[text]) as caught:
        Database.open(row_places[dialect], policy=policy, isolation="none")
    assert "row_filters['orders']" in str(caught.value)


def test_what_the_engine_says_of_a_filter_is_told_at_open(row_places: dict[str, str]) -> None:
    untyped = TablePolicy(row_filters={"orders": ":region IS NULL OR region = :region"})
    with pytest.raises(ConfigError, match="cast its parameters"):
        Database.open(row_places["postgres"], policy=untyped, isolation="none")
    typed = TablePolicy(
        row_filters={"orders": "CAST(:region AS TEXT) IS NULL OR region = CAST(:region AS TEXT)"}
    )
    with Database.open(row_places["postgres"], policy=typed, isolation="none") as database:
        assert database.bound({"region": "north"}).run("SELECT count(*) FROM orders").rows == [
            (30,)
        ]


def test_a_worker_checks_filters_at_open_too(dialect: str, row_places: dict[str, str]) -> None:
    policy = TablePolicy(row_filters={"orders": "zone = :zone"})
    with pytest.raises(ConfigError, match="names a column that is not there, 'zone'"):
        Database.open(row_places[dialect], policy=policy, isolation="process")


@pytest.fixture(scope="module")
def row_places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {each: url(make_rows(tmp_path_factory.mktemp(each), each)) for each in DIALECTS}


def test_a_filter_of_a_table_that_is_not_there_is_told(
    dialect: str, row_places: dict[str, str]
) -> None:
    policy = TablePolicy(row_filters={"order": "region = :region"})
    with pytest.raises(ConfigError, match="no table 'order'"):
        Database.open(row_places[dialect], policy=policy, isolation="none")


def test_a_policy_file_names_the_line_of_a_wrong_filter(
    tmp_path: Path, row_places: dict[str, str]
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('rows = 9\n\n[row_filters]\norders = "zone = :z"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"policy.toml, line 4: the row filter of 'orders'"):
        Database.open(row_places["sqlite"], policy=file, isolation="none")
    file.write_text("[row_filters]\norders = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"policy.toml, line 2: .* must be a condition"):
        load_policy(file)
    file.write_text('[row_filters]\nmain.orders = "id = 1"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="write a name with a dot in quotes"):
        load_policy(file)
    file.write_text('[row_filters]\n"main.Orders" = "region = :region"\n', encoding="utf-8")
    assert load_policy(file).row_filters == {"main.orders": "region = :region"}


@pytest.mark.parametrize("filters", [{"orders": ""}, {"orders": 1}, {1: "id = 1"}, ["orders"], "x"])
def test_filters_are_a_mapping_of_texts(filters: object) -> None:
    with pytest.raises(ConfigError, match="row_filters must be a mapping"):
        TablePolicy(row_filters=filters)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigError, match="twice"):
        TablePolicy(row_filters={"Orders": "id = 1", "orders": "id = 2"})


PARTS = """
CREATE TABLE whole (id int, region text) PARTITION BY RANGE (id);
CREATE TABLE whole_1 PARTITION OF whole FOR VALUES FROM (0) TO (10);
INSERT INTO whole VALUES (1, 'north'), (2, 'south');
CREATE TABLE parent (id int, region text);
CREATE TABLE child (more int) INHERITS (parent);
INSERT INTO parent VALUES (1, 'north'); INSERT INTO child VALUES (2, 'south', 3), (3, 'north', 4);
CREATE FUNCTION every() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM parent';
CREATE VIEW by_function AS SELECT every() AS n;
CREATE TABLE apart (id int);
CREATE VIEW of_apart AS SELECT id FROM apart;
"""


def test_parts_of_a_table_have_its_filter(tmp_path: Path) -> None:
    place = make(tmp_path, "postgres", PARTS)
    assert isinstance(place, str)
    filters = {"whole": "region = :region", "parent": "region = :region"}
    with open_rows(place, TablePolicy(row_filters=filters)) as database:
        north = database.bound({"region": "north"})
        tables = ("whole", "parent", "child", "ONLY parent")
        counts = [north.run(f"SELECT count(*) FROM {table}").rows[0][0] for table in tables]
        assert counts == [1, 2, 1, 1]
        # Nobody looks what the function reads.
        assert north.catalog().find("by_function") is None
        assert north.catalog().find("of_apart") is not None
    with pytest.raises(ConfigError, match="give 'parent' the filter"):
        open_rows(place, TablePolicy(row_filters={"child": "region = :region"}))


def test_the_server_s_count_of_a_filtered_table_is_not_told(tmp_path: Path) -> None:
    with open_rows(make_rows(tmp_path, "postgres")) as database:
        estimates = {table.name: table.rows_estimate for table in database.catalog().tables}
    assert estimates["orders"] is None
    assert estimates["items"] == 4


@pytest.mark.parametrize(
    ("name", "dialect", "kind"),
    [
        ("VARCHAR(20)", "duckdb", "text"),
        ("DECIMAL(10,2)", "duckdb", "number"),
        ("TIMESTAMP WITH TIME ZONE", "postgres", "time"),
        ("boolean", "postgres", "boolean"),
        ("DATE", "sqlite", ""),
        ("INTEGER[]", "duckdb", ""),
        ("int4range", "postgres", ""),
        ("interval", "postgres", ""),
        ("ENUM mood('a')", "postgres", "text"),
        ("uuid", "postgres", "text"),
    ],
)
def test_kinds_of_columns(name: str, dialect: str, kind: str) -> None:
    assert kind_of(name, dialect) == kind
